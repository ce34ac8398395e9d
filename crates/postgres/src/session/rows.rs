//! Rows and their columns as messages.

use crate::error::PgError;
use crate::outcome::Outcome;
use crate::types;
use crate::wire::{Field, Output};
use bezant_sql::Column;

pub(super) fn value_types(outcome: &Outcome) -> Vec<u32> {
    let rows = &outcome.rows;
    let of = |(at, column)| types::of_values(column, rows.rows.iter().map(move |row| &row[at]));
    rows.columns.iter().enumerate().map(of).collect()
}

pub(super) fn fields(columns: &[Column], types: &[u32], formats: &[i16]) -> Vec<Field> {
    let field = |(at, (column, type_id)): (usize, (&Column, &u32))| Field {
        name: column.name.clone(),
        type_id: *type_id,
        size: types::size_of(*type_id),
        format: format_of(formats, at),
    };
    columns.iter().zip(types).enumerate().map(field).collect()
}

pub(super) fn give_fields(columns: &[Column], types: &[u32], formats: &[i16], out: &mut Output) {
    if columns.is_empty() {
        out.no_data();
    } else {
        out.fields(&fields(columns, types, formats));
    }
}

pub(super) fn give_rows(
    outcome: &Outcome,
    types: &[u32],
    formats: &[i16],
    range: std::ops::Range<usize>,
    zone: i32,
    out: &mut Output,
) -> Result<(), PgError> {
    let mut failure = None;
    for row in outcome.rows.rows.get(range).unwrap_or_default() {
        out.row(types.len(), |at, bytes| {
            types::put(&row[at], types[at], format_of(formats, at), zone, bytes).unwrap_or_else(|error| {
                failure = Some(error);
                false
            })
        });
    }
    failure.map_or(Ok(()), Err)
}

/// The code at a place: one may be for all.
pub(super) fn format_of(formats: &[i16], at: usize) -> i16 {
    match formats {
        [] => types::TEXT_FORMAT,
        [one] => *one,
        all => all.get(at).copied().unwrap_or(types::TEXT_FORMAT),
    }
}
