//! What crosses the boundary, with the layout of C. `include/bezant.h` has the same in its words.

use bezant_sql::{Rows, Value};

pub(crate) const NULL: i32 = 0;
pub(crate) const INTEGER: i32 = 1;
pub(crate) const REAL: i32 = 2;
pub(crate) const TEXT: i32 = 3;
pub(crate) const BLOB: i32 = 4;

/// Bytes of somebody: of the caller during a call, of a result until it is freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BezantBytes {
    /// Where they begin; anything if there are none.
    pub data: *const u8,
    /// How many.
    pub length: usize,
}

impl BezantBytes {
    pub(crate) const fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), length: bytes.len() }
    }

    pub(crate) const fn none() -> Self {
        Self { data: std::ptr::null(), length: 0 }
    }
}

/// A value of SQL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BezantValue {
    /// Which: 0 null, 1 an integer, 2 a floating point number, 3 text, 4 bytes.
    pub kind: i32,
    /// The integer.
    pub integer: i64,
    /// The floating point number.
    pub real: f64,
    /// The text, or the bytes.
    pub bytes: BezantBytes,
}

impl BezantValue {
    pub(crate) const fn null() -> Self {
        Self { kind: NULL, integer: 0, real: 0.0, bytes: BezantBytes::none() }
    }

    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::null(),
            Value::Integer(integer) => Self { kind: INTEGER, integer: *integer, ..Self::null() },
            Value::Real(real) => Self { kind: REAL, real: *real, ..Self::null() },
            Value::Text(text) => Self { kind: TEXT, bytes: BezantBytes::of(text.as_bytes()), ..Self::null() },
            Value::Blob(blob) => Self { kind: BLOB, bytes: BezantBytes::of(blob), ..Self::null() },
        }
    }
}

/// A statement of SQL with the values of its parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BezantStatement {
    /// One statement, in UTF-8.
    pub sql: BezantBytes,
    /// The values, in order.
    pub parameters: *const BezantValue,
    /// How many.
    pub count: usize,
}

/// The measures of a table.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BezantTable {
    /// How many rows.
    pub rows: usize,
    /// How many columns in each.
    pub columns: usize,
    /// Rows that the statement inserted, changed or removed.
    pub changes: u64,
    /// The rowid of the row that was inserted last; 0 if there is none.
    pub last_insert_rowid: i64,
}

impl BezantTable {
    pub(crate) fn of(table: &Rows) -> Self {
        Self {
            rows: table.rows.len(),
            columns: table.columns.len(),
            changes: table.changes,
            last_insert_rowid: table.last_insert_rowid,
        }
    }
}

/// What an error of SQL is about.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BezantFailure {
    /// Five characters, as PostgreSQL has them; none if it was no error of SQL.
    pub sqlstate: BezantBytes,
    /// Which statement, from 0 on.
    pub statement: usize,
}

impl Default for BezantFailure {
    fn default() -> Self {
        Self { sqlstate: BezantBytes::none(), statement: 0 }
    }
}
