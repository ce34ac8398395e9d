//! What the tests with the files in the folder `slt` share, those through a cluster too.

#![allow(unreachable_pub, reason = "each test program uses it as a module of its own")]

use bezant_core::wire::Wire;
use bezant_sql::{Response, Value};
use bytes::Bytes;
use sqllogictest::{DBOutput, DefaultColumnType};
use std::fmt;
use std::path::{Path, PathBuf};

/// An error as both sides say it.
#[derive(Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// What a statement gives.
pub type Output = DBOutput<DefaultColumnType>;

/// A result as the files have it: one row a line, so that ends of lines are escaped and nothing is empty.
pub fn output(columns: usize, rows: &[Vec<Value>]) -> Output {
    let show = |value: &Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Text(text) if text.is_empty() => "(empty)".to_owned(),
        Value::Text(text) => text.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'"),
        Value::Blob(_) => format!("X'{value}'"),
        number => number.to_string(),
    };
    match columns {
        0 => DBOutput::StatementComplete(0),
        _ => DBOutput::Rows {
            types: vec![DefaultColumnType::Text; columns],
            rows: rows.iter().map(|row| row.iter().map(show).collect()).collect(),
        },
    }
}

/// The answer to a request of one statement.
pub fn answered(bytes: Bytes) -> Result<Output, Refusal> {
    match Response::from_bytes(bytes).expect("a response") {
        Response::Done(results) => Ok(output(results[0].columns.len(), &results[0].rows)),
        Response::Failed(failure) => Err(Refusal(failure.error.message)),
        other => panic!("{other:?}"),
    }
}

/// The files, in the order of their names, whichever crate's test asks.
pub fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/tests/slt");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    files.sort();
    assert!(files.len() > 10, "the files have gone");
    files
}
