//! What came of a statement, with the columns as clients are told of them.

use crate::error::{PgError, sqlstate};
use crate::rewrite::rename;
use crate::tag::Tag;
use crate::tokens::{Token, tokens};
use crate::translate::{Translation, Type};
use crate::types;
use bezant_sql::{Column, Rows, Value};

/// What came of a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Its columns and rows; no columns: it gives none.
    pub(crate) rows: Rows,
    /// How its end is told.
    pub(crate) tag: String,
    /// Worth knowing, but no error.
    pub(crate) notice: Option<PgError>,
}

impl Outcome {
    pub(crate) fn done(tag: &str) -> Self {
        Self { tag: tag.into(), ..Self::default() }
    }

    /// Rows of the catalog, whose columns go by what SQLite calls them.
    pub(crate) fn of_catalog(mut rows: Rows, sql: &str) -> Self {
        let tag = Tag::Select.text(rows.rows.len(), rows.changes);
        name_and_type(&mut rows.columns, sql);
        Self { rows, tag, notice: None }
    }

    /// What a translated statement gave.
    pub(crate) fn of(mut rows: Rows, tag: &Tag, translation: &Translation) -> Self {
        let tag = translation.tag.as_ref().unwrap_or(tag).text(rows.rows.len(), rows.changes);
        if !translation.columns.is_empty() {
            rows.columns = columns_of(translation);
            pad(&mut rows, translation);
        }
        let notice = translation.notice.map(|text| PgError::new(sqlstate::NOTICE, text));
        Self { rows, tag, notice }
    }

    pub(crate) fn warning(tag: &str, sqlstate: &'static str, text: &str) -> Self {
        Self { notice: Some(PgError::new(sqlstate, text)), ..Self::done(tag) }
    }
}

/// The types of the columns of a translated statement, as they are announced before there are values.
pub(crate) fn types_of(translation: &Translation) -> Vec<u32> {
    columns_of(translation).iter().map(types::of_column).collect()
}

/// Values of `character(n)` are kept without the blanks at their end, and told with them.
fn pad(rows: &mut Rows, translation: &Translation) {
    for (at, column) in translation.columns.iter().enumerate().filter(|(_, column)| column.kind == Type::Char) {
        let Some((length, _)) = column.modifier else { continue };
        for row in &mut rows.rows {
            if let Some(Value::Text(text)) = row.get_mut(at) {
                let missing = (length as usize).saturating_sub(text.chars().count());
                text.extend(std::iter::repeat_n(' ', missing));
            }
        }
    }
}

/// The columns of a translated statement as clients are told of them.
pub(crate) fn columns_of(translation: &Translation) -> Vec<Column> {
    let column = |column: &crate::translate::Column| Column {
        name: column.name.clone(),
        declared: types::name_of(column.kind.oid()).map(Into::into),
    };
    translation.columns.iter().map(column).collect()
}

/// What SQLite calls a column that has no name tells its type, and is no name.
pub(crate) fn name_and_type(columns: &mut [Column], sql: &str) {
    let names = arrays_of_names(sql);
    for column in columns.iter_mut() {
        let declared = column.declared.take().or_else(|| types::of_expression(&column.name));
        let is_number = || match column.name.to_ascii_lowercase().as_str() {
            // As pgjdbc calls it.
            "non_unique" => Some("boolean".into()),
            name => SMALL_NUMBERS.contains(&name).then(|| "int4".into()),
        };
        let is_names = || names.contains(&column.name).then(|| "name[]".into());
        column.declared = is_names().or(declared).or_else(is_number);
    }
    rename(columns, sql);
}

/// The aliases of arrays that are made of names: a driver that does not know `name[]` leaves it as it is, and tools
/// count on that.
fn arrays_of_names(sql: &str) -> Vec<String> {
    const NAMES: [&str; 4] = ["attname", "relname", "conname", "nspname"];
    let tokens = tokens(sql);
    let solid: Vec<&Token<'_>> = tokens.iter().filter(|token| token.is_solid()).collect();
    let is_array = |part: &&[&Token<'_>]| {
        part[0].is("array_agg") && part[1].is_symbol("(") && part[3].is_symbol(".") && part[4].is_any(&NAMES)
    };
    let aliases = solid.windows(8).filter(is_array).filter(|part| part[5].is_symbol(")") && part[6].is("as"));
    aliases.filter_map(|part| part[7].name()).collect()
}

/// What `information_schema` has as integers.
const SMALL_NUMBERS: [&str; 6] = [
    "ordinal_position",
    "character_maximum_length",
    "numeric_precision",
    "numeric_precision_radix",
    "numeric_scale",
    "datetime_precision",
];

/// A column of texts.
pub(crate) fn text_column(name: &str) -> Column {
    Column { name: name.into(), declared: Some("TEXT".into()) }
}
