//! `.import`: a file of comma-separated values into a table, in batches of rows that are in as a whole or not at all.

use super::format::name_literal;
use super::records::Records;
use super::{Shell, plural};
use crate::failure::{Failure, Result};
use bezant_sql::{Batch, Request, Response, Statement, Value};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

/// Most rows of a batch.
const ROWS_PER_BATCH: usize = 1_000;
/// Bytes of values after which a batch is full: a request has room for much more, but the replicas share it fairly.
const BYTES_PER_BATCH: usize = 128 << 10;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Values are separated by commas [default, unless --separator says otherwise]
    #[arg(long)]
    csv: bool,
    /// What separates values: one character, or tab
    #[arg(long, value_name = "CHARACTER", conflicts_with = "csv", default_value = ",", value_parser = separator)]
    separator: u8,
    /// Leave out the first rows of the file
    #[arg(long, value_name = "ROWS", default_value_t = 0)]
    skip: u64,
    /// The file
    file: PathBuf,
    /// The table; if there is none, the first row names the columns of a new one
    table: String,
}

fn separator(text: &str) -> std::result::Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("it must be one ASCII character and no quote, or tab".into()),
    }
}

/// Rows of a file that wait to be sent.
#[derive(Default)]
struct Waiting {
    rows: Vec<Vec<Value>>,
    bytes: usize,
    /// The place in the file of each.
    places: Vec<u64>,
}

/// An import under way.
struct Import<'a> {
    shell: &'a Shell,
    arguments: &'a Arguments,
    records: Records<BufReader<File>>,
    bar: ProgressBar,
    /// One row's statement.
    sql: String,
    columns: usize,
    /// Rows of the file that were read, with those left out and the header.
    read: u64,
    /// The last row of the file that is in the table, or was left out.
    last_in: u64,
    inserted: u64,
    /// Rows that had fewer or more values than the table has columns.
    padded: u64,
    cut: u64,
}

impl Shell {
    /// Imports a file.
    pub(super) fn import(&mut self, arguments: &Arguments) -> Result {
        let wrong = |error| Failure::usage(format!("cannot read {}: {error}.", arguments.file.display()));
        let file = File::open(&arguments.file).map_err(wrong)?;
        let size = file.metadata().map_err(wrong)?.len();
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}, {eta} left");
        let bar = ProgressBar::with_draw_target(Some(size), target)
            .with_style(style.expect("the template is a constant and was tried"));
        bar.set_message(plural(0, "row"));
        let mut import = Import {
            shell: self,
            arguments,
            records: Records::new(BufReader::new(file), arguments.separator),
            bar,
            sql: String::new(),
            columns: 0,
            read: 0,
            last_in: 0,
            inserted: 0,
            padded: 0,
            cut: 0,
        };
        let outcome = import.run();
        import.bar.finish_and_clear();
        let told = import.told();
        match outcome {
            Ok(()) => {
                eprintln!("{told}");
                Ok(())
            }
            Err(failure) => Err(failure.with(&format!("\n  {told}{}", import.advice()))),
        }
    }
}

impl Import<'_> {
    fn run(&mut self) -> Result {
        for _ in 0..self.arguments.skip {
            self.next()?;
        }
        self.last_in = self.read;
        self.columns = self.table()?;
        let places: Vec<_> = (1..=self.columns).map(|number| format!("?{number}")).collect();
        self.sql = format!("insert into {} values ({})", name_literal(&self.arguments.table), places.join(","));
        let mut waiting = Waiting::default();
        while let Some(fields) = self.next()? {
            let values = self.fitted(fields);
            waiting.bytes += values.iter().map(size).sum::<usize>();
            waiting.rows.push(values);
            waiting.places.push(self.read);
            if waiting.rows.len() == ROWS_PER_BATCH || waiting.bytes >= BYTES_PER_BATCH {
                self.send(std::mem::take(&mut waiting))?;
            }
        }
        self.send(waiting)
    }

    fn next(&mut self) -> Result<Option<Vec<String>>> {
        let record = self.records.next_record().map_err(|error| {
            Failure::usage(format!("row {} of {}: {error}.", self.read + 1, self.arguments.file.display()))
        })?;
        self.read += u64::from(record.is_some());
        Ok(record)
    }

    fn call(&self, request: &Request) -> Result<Response> {
        self.shell.service.database().call(request).map(|answer| answer.response).map_err(super::failure)
    }

    /// How many columns the table has; makes it if there is none.
    fn table(&mut self) -> Result<usize> {
        let table = &self.arguments.table;
        let count = Statement::with(
            "select count(*) from pragma_table_xinfo(?1) where hidden = 0",
            [Value::Text(table.clone())],
        );
        // As it is now, at whatever level the shell reads.
        let count = match self.call(&Request::one(count))? {
            Response::Done(results) => match results.first().and_then(|result| result.rows.first()?.first()) {
                Some(Value::Integer(count)) => *count as usize,
                _ => 0,
            },
            other => return Err(Failure::failed(format!("the service answered {other:?}."))),
        };
        if count > 0 {
            return Ok(count);
        }
        let Some(header) = self.next()? else {
            return Err(Failure::failed("there is no such table, and the file has no row that names its columns."));
        };
        let names = column_names(&header);
        let columns: Vec<_> = names.iter().map(|name| format!("{} TEXT", name_literal(name))).collect();
        self.shell.rows(Statement::new(format!("create table {}({})", name_literal(table), columns.join(", "))))?;
        self.last_in = self.read;
        Ok(names.len())
    }

    /// A row as long as the table is wide.
    fn fitted(&mut self, fields: Vec<String>) -> Vec<Value> {
        self.padded += u64::from(fields.len() < self.columns);
        self.cut += u64::from(fields.len() > self.columns);
        let values = fields.into_iter().map(Value::Text).chain(std::iter::repeat(Value::Null));
        values.take(self.columns).collect()
    }

    /// One batch: all of its rows or none.
    fn send(&mut self, waiting: Waiting) -> Result {
        let (Some(first), Some(last)) = (waiting.places.first(), waiting.places.last()) else { return Ok(()) };
        let count = waiting.rows.len() as u64;
        let sql: Arc<str> = self.sql.as_str().into();
        let statement = |parameters| Statement { sql: Arc::clone(&sql), parameters };
        let statements = waiting.rows.into_iter().map(statement).collect();
        let request = Request::Run(Batch { statements, ..Batch::default() });
        let rows = format!("\n  It was about the rows {first} to {last} of the file.");
        match self.call(&request).map_err(|failure| failure.with(&rows))? {
            Response::Done(_) => {}
            Response::Failed(failure) => {
                let place = waiting.places.get(failure.statement as usize).unwrap_or(first);
                return Err(Failure::failed(format!("row {place} of the file: {}", failure.error)));
            }
            other => return Err(Failure::failed(format!("the service answered {other:?}."))),
        }
        self.last_in = *last;
        self.inserted += count;
        self.bar.set_position(self.records.bytes);
        self.bar.set_message(plural(self.inserted, "row"));
        Ok(())
    }

    fn told(&self) -> String {
        let mut text = format!("{} imported", plural(self.inserted, "row"));
        if self.padded > 0 {
            text += &format!("; {} had too few values, and NULL instead", self.padded);
        }
        if self.cut > 0 {
            text += &format!("; {} had too many values, which were left out", self.cut);
        }
        text
    }

    /// How to go on after a failure.
    fn advice(&self) -> String {
        if self.last_in == 0 {
            return String::new();
        }
        format!(". Row {0} of the file is the last that is in; --skip {0} goes on after it", self.last_in)
    }
}

/// Bytes of a value, about.
fn size(value: &Value) -> usize {
    const OVERHEAD: usize = 5;
    OVERHEAD + if let Value::Text(text) = value { text.len() } else { 0 }
}

/// Names of columns that are all there and all different, as sqlite3 makes them so.
fn column_names(header: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let doubled: BTreeSet<_> =
        header.iter().map(|name| name.to_lowercase()).filter(|name| !seen.insert(name.clone())).collect();
    let name = |(number, name): (usize, &String)| match name.as_str() {
        "" => format!("c{number}"),
        name if doubled.contains(&name.to_lowercase()) => format!("{name}_{number}"),
        name => name.to_owned(),
    };
    (1..).zip(header).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_names_are_made_different() {
        let header = ["a", "b", "A", ""].map(String::from);
        assert_eq!(column_names(&header), ["a_1", "b", "A_3", "c4"]);
    }

    #[test]
    fn a_separator_is_one_character() {
        assert_eq!(separator("tab"), Ok(b'\t'));
        assert_eq!(separator(";"), Ok(b';'));
        assert!(separator("\"").is_err() && separator("ab").is_err() && separator("").is_err());
    }
}
