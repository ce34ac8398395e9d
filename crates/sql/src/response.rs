//! What the SQL service answers, in a canonical encoding: f+1 replicas must answer byte for byte alike.

use crate::error::SqlError;
use crate::value::{Value, text};
use bezant_core::digest::{Digest, Domain};
use bezant_core::wire::{Reader, Sink, Wire, WireError, encode_list, encode_payload};
use bezant_core::wire_struct;

/// The most bytes of all rows of a response as encoded.
pub const RESULT_BYTES_MAX: usize = 2 << 20;
/// The most columns of a result.
pub const COLUMNS_MAX: usize = 2_000;
/// The longest name of a column or of its type, in bytes.
const NAME_BYTES_MAX: usize = 1 << 20;
/// The most results, rows and parameters: what the bytes of a response leave room for.
const COUNT_MAX: usize = RESULT_BYTES_MAX;

/// A column of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type that the table's definition declares, if it is a column of a table and has one.
    pub declared: Option<String>,
}

impl Column {
    /// Those of a prepared statement.
    pub fn of(statement: &rusqlite::Statement<'_>) -> Vec<Self> {
        statement.columns().map(|column| Self::from(&column)).collect()
    }
}

impl From<&rusqlite::Column<'_>> for Column {
    fn from(column: &rusqlite::Column<'_>) -> Self {
        Self { name: column.name().to_owned(), declared: column.decl_type().map(ToOwned::to_owned) }
    }
}

impl Wire for Column {
    fn encode(&self, out: &mut impl Sink) {
        encode_payload(self.name.as_bytes(), out);
        out.push(self.declared.is_some().into());
        if let Some(declared) = &self.declared {
            encode_payload(declared.as_bytes(), out);
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let name = text(reader, NAME_BYTES_MAX)?;
        let declared = if bool::decode(reader)? { Some(text(reader, NAME_BYTES_MAX)?) } else { None };
        Ok(Self { name, declared })
    }
}

/// What a statement gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// No columns: the statement gives no rows.
    pub columns: Vec<Column>,
    /// Each as long as the list of columns. Without ORDER BY their order is that of SQLite's plan, the same at every
    /// replica.
    pub rows: Vec<Vec<Value>>,
    /// Rows inserted, changed or removed by the statement itself, not by triggers.
    pub changes: u64,
    /// The rowid of the last row that the request has inserted so far; 0 if there is none, or if it is undone.
    pub last_insert_rowid: i64,
}

impl Rows {
    /// A digest of columns, rows and changes; not of the last rowid, at which a client need not have looked.
    pub fn digest(&self) -> Digest {
        let mut bytes = self.to_bytes();
        bytes.truncate(bytes.len() - size_of_val(&self.last_insert_rowid));
        Digest::of(Domain::Service, &bytes)
    }
}

impl Wire for Rows {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.columns, out);
        (self.rows.len() as u32).encode(out);
        for value in self.rows.iter().flatten() {
            value.encode(out);
        }
        self.changes.encode(out);
        self.last_insert_rowid.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let columns: Vec<Column> = reader.list(COLUMNS_MAX)?;
        let count = reader.length(if columns.is_empty() { 0 } else { COUNT_MAX }, columns.len())?;
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            rows.push(columns.iter().map(|_| Value::decode(reader)).collect::<Result<_, _>>()?);
        }
        Ok(Self { columns, rows, changes: Wire::decode(reader)?, last_insert_rowid: Wire::decode(reader)? })
    }
}

/// What a statement takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// How many parameters it has.
    pub parameters: u32,
    /// The columns of its rows.
    pub columns: Vec<Column>,
    /// Whether it changes nothing.
    pub read_only: bool,
}

impl Wire for Description {
    fn encode(&self, out: &mut impl Sink) {
        self.parameters.encode(out);
        encode_list(&self.columns, out);
        self.read_only.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self {
            parameters: Wire::decode(reader)?,
            columns: reader.list(COLUMNS_MAX)?,
            read_only: Wire::decode(reader)?,
        })
    }
}

/// Why a batch changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which of its statements, from 0 on; the checks come first.
    pub statement: u32,
    /// What was wrong with it.
    pub error: SqlError,
}
wire_struct!(Failure { statement, error });

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// One result per statement.
    Done(Vec<Rows>),
    /// Nothing was changed.
    Failed(Failure),
    /// Nothing was changed: the check with this number gave something else than before.
    Conflict(u32),
    /// To [`Request::Describe`](crate::Request::Describe).
    Described(Description),
    /// The bytes were no request.
    Malformed,
    /// To a [`Rehearsal`](crate::Rehearsal): what it goes on from is not kept here. Nothing was executed.
    NotHeld,
    /// Nothing was executed: the schema is not the one that the batch was written for
    /// ([`Batch::schema`](crate::Batch::schema)).
    Stale,
}

const DONE: u8 = 0;
const FAILED: u8 = 1;
const CONFLICT: u8 = 2;
const DESCRIBED: u8 = 3;
const MALFORMED: u8 = 4;
const NOT_HELD: u8 = 5;
const STALE: u8 = 6;

impl Wire for Response {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Done(results) => {
                out.push(DONE);
                encode_list(results, out);
            }
            Self::Failed(failure) => {
                out.push(FAILED);
                failure.encode(out);
            }
            Self::Conflict(check) => {
                out.push(CONFLICT);
                check.encode(out);
            }
            Self::Described(description) => {
                out.push(DESCRIBED);
                description.encode(out);
            }
            Self::Malformed => out.push(MALFORMED),
            Self::NotHeld => out.push(NOT_HELD),
            Self::Stale => out.push(STALE),
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            DONE => Ok(Self::Done(reader.list(COUNT_MAX)?)),
            FAILED => Ok(Self::Failed(Wire::decode(reader)?)),
            CONFLICT => Ok(Self::Conflict(Wire::decode(reader)?)),
            DESCRIBED => Ok(Self::Described(Wire::decode(reader)?)),
            MALFORMED => Ok(Self::Malformed),
            NOT_HELD => Ok(Self::NotHeld),
            STALE => Ok(Self::Stale),
            _ => Err(WireError::UnknownTag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn responses_come_back() {
        let columns = vec![
            Column { name: "a".into(), declared: Some("INTEGER".into()) },
            Column { name: "b".into(), declared: None },
        ];
        let rows = Rows {
            columns: columns.clone(),
            rows: vec![vec![Value::Integer(1), Value::Null], vec![Value::Text("x".into()), Value::Real(1.5)]],
            changes: 2,
            last_insert_rowid: -7,
        };
        let error = SqlError::new(ErrorKind::Syntax, "near \"x\": syntax error");
        let all = [
            Response::Done(vec![rows, Rows::default()]),
            Response::Failed(Failure { statement: 3, error }),
            Response::Conflict(1),
            Response::Described(Description { parameters: 2, columns, read_only: true }),
            Response::Malformed,
            Response::NotHeld,
            Response::Stale,
        ];
        for response in all {
            assert_eq!(Response::from_bytes(response.to_bytes().into()), Ok(response));
        }
    }

    #[test]
    fn rows_without_columns_cannot_claim_memory() {
        let bytes = [&[DONE, 1, 0, 0, 0][..], &[0; 4], &u32::MAX.to_le_bytes(), &[0; 16]].concat();
        assert_eq!(Response::from_bytes(bytes.into()), Err(WireError::TooLong));
    }
}
