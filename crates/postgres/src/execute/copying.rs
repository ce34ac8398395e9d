//! Carries out COPY: rows are inserted together, or asked for.

use super::{Executor, Given};
use crate::copy::{Row, Table, too_much};
use crate::error::{PgError, sqlstate};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::transaction::AHEAD_MAX;
use crate::{types, understand};
use bezant_sql::{Batch, Request, Statement, Value};

/// Where rows go.
pub(crate) struct Destination {
    /// The columns' names.
    pub(crate) columns: Vec<String>,
    /// One row's INSERT, and the types of its parameters.
    sql: String,
    types: Vec<u32>,
}

impl Executor {
    /// Where the rows of a COPY go.
    ///
    /// # Errors
    /// That there is no such table or column, or that nothing may be written.
    pub(crate) fn copy_into(&mut self, plan: &Plan, table: &Table) -> Result<Destination, PgError> {
        self.admit(plan)?;
        if self.is_read_only() {
            return Err(PgError::read_only());
        }
        let (texts, names) = self.copied_columns(table)?;
        let sql = insert(&table.name, &texts);
        let translation = self.again_if_stale(|this| this.translate(&sql, &[]))?;
        let types = translation.parameters.iter().map(|kind| kind.oid()).collect();
        Ok(Destination { columns: names, sql, types })
    }

    /// The columns that a COPY of a table is about, as they are written and as they are called.
    fn copied_columns(&mut self, table: &Table) -> Result<(Vec<String>, Vec<String>), PgError> {
        let texts = table.columns.as_ref().map_or_else(|| "*".into(), |columns| columns.join(", "));
        let sql = format!("select {texts} from {}", table.name);
        let translation = self.again_if_stale(|this| this.translate(&sql, &[]))?;
        let names: Vec<String> = translation.columns.iter().map(|column| column.name.clone()).collect();
        if let Some(texts) = &table.columns {
            let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
            if let Some((_, name)) = twice {
                return Err(PgError::new("42701", format!("column \"{name}\" specified more than once")));
            }
            return Ok((texts.clone(), names));
        }
        let mut both = (Vec::new(), Vec::new());
        for name in names {
            let text = format!("\"{}\"", name.replace('"', "\"\""));
            let alone = insert(&table.name, std::slice::from_ref(&text));
            // Nothing can be written into a generated column.
            let is_generated = |error: &PgError| error.sqlstate == "428C9";
            if !self.again_if_stale(|this| this.translate(&alone, &[])).is_err_and(|error| is_generated(&error)) {
                both.0.push(text);
                both.1.push(name);
            }
        }
        Ok(both)
    }

    /// Inserts rows, all or none, and says how many; each is with the number of its line.
    ///
    /// # Errors
    /// That of the first value or row that is wrong, or that they are too many for one request.
    pub(crate) fn copy_rows(&mut self, into: &Destination, rows: Vec<(usize, Row)>) -> Result<usize, PgError> {
        let (count, mut bytes, mut all) = (rows.len(), 0, Vec::with_capacity(rows.len()));
        for (line, row) in rows {
            let take = |(at, value): (usize, &Option<bytes::Bytes>)| {
                let type_id = into.types.get(at).copied().unwrap_or(types::oid::TEXT);
                let taken =
                    value.as_ref().map_or(Ok(Value::Null), |value| types::take(value, type_id, types::TEXT_FORMAT));
                taken.map_err(|error| {
                    let column = into.columns.get(at).map_or("", String::as_str);
                    error.detail(format!("line {line} of the COPY, column {column}"))
                })
            };
            let values = row.iter().enumerate().map(take).collect::<Result<Vec<Value>, PgError>>()?;
            bytes += row.iter().flatten().map(bytes::Bytes::len).sum::<usize>();
            if self.link.admit_bytes(bytes).is_err() {
                return Err(too_much("as many bytes as a request has"));
            }
            all.push(values);
        }
        if all.is_empty() {
            return Ok(0);
        }
        self.again_if_stale(|this| {
            let translation = this.translate(&into.sql, &into.types)?;
            let statements: Vec<Statement> =
                all.iter().flat_map(|values| translation.statements(values.clone())).collect();
            match &mut this.transaction {
                Some(transaction) => {
                    // The first one finds out whether the schema is still this one.
                    let mut rest = &statements[..];
                    while let Some(first) = rest.first() {
                        if transaction.has_begun() && transaction.looks_ahead() {
                            let next = &rest[..rest.len().min(AHEAD_MAX)];
                            transaction.look_ahead(&mut this.link, next.to_vec())?;
                        }
                        transaction.execute(&mut this.link, first.clone())?;
                        rest = &rest[1..];
                    }
                }
                None => {
                    let batch = Batch { statements, schema: this.link.schema, ..Batch::default() };
                    this.link.results(&Request::Run(batch))?;
                }
            }
            Ok(count)
        })
    }

    /// The rows that a COPY takes out.
    ///
    /// # Errors
    /// Those of the statement; one that gives no rows is not executed.
    pub(crate) fn copy_out(&mut self, plan: &Plan, query: Result<&Table, &str>) -> Result<Outcome, PgError> {
        self.admit(plan)?;
        let sql = match query {
            Ok(table) => {
                let (texts, _) = self.copied_columns(table)?;
                format!("select {} from {}", texts.join(", "), table.name)
            }
            Err(query) => query.into(),
        };
        let plan = understand::plan(&sql)?;
        if !matches!(plan, Plan::Cluster { .. } | Plan::Catalog(_)) {
            return Err(PgError::new(sqlstate::SYNTAX, "a COPY is of a table or a query"));
        }
        if self.describe(&plan, &[])?.0.is_empty() {
            return Err(PgError::unsupported("a COPY is of a query that gives rows").hint("add RETURNING"));
        }
        self.execute(&plan, &Given::default())
    }
}

fn insert(table: &str, columns: &[String]) -> String {
    let numbers: Vec<String> = (1..=columns.len()).map(|number| format!("${number}")).collect();
    format!("insert into {table} ({}) overriding system value values ({})", columns.join(", "), numbers.join(", "))
}
