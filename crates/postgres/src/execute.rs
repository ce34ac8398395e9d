//! Carries out the statements of one connection.

use crate::catalog::Catalog;
use crate::error::{PgError, sqlstate};
use crate::link::Link;
use crate::plan::{Plan, Tag};
use crate::rewrite::rename;
use crate::settings::Settings;
use crate::transaction::Transaction;
use crate::types;
use crate::wire::Status;
use bezant_sql::{Batch, Column, Request, Rows, Statement, Value};
use std::sync::Arc;

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
    fn done(tag: &str) -> Self {
        Self { tag: tag.into(), ..Self::default() }
    }

    fn of(mut rows: Rows, tag: &Tag, sql: &str) -> Self {
        let tag = tag.text(rows.rows.len(), rows.changes);
        name_and_type(&mut rows.columns, sql);
        Self { rows, tag, notice: None }
    }

    fn warning(tag: &str, sqlstate: &'static str, text: &str) -> Self {
        Self { notice: Some(PgError::new(sqlstate, text)), ..Self::done(tag) }
    }
}

/// What one connection is in the middle of.
pub(crate) struct Executor {
    pub(crate) link: Link,
    pub(crate) settings: Settings,
    catalog: Arc<Catalog>,
    user: String,
    transaction: Option<Transaction>,
}

impl Executor {
    /// At the start of a connection.
    pub(crate) fn new(link: Link, settings: Settings, catalog: Arc<Catalog>, user: String) -> Self {
        Self { link, settings, catalog, user, transaction: None }
    }

    /// Whether a transaction is open.
    pub(crate) fn status(&self) -> Status {
        match &self.transaction {
            None => Status::Idle,
            Some(transaction) if transaction.has_failed() => Status::Failed,
            Some(_) => Status::Open,
        }
    }

    /// Something went wrong before a statement could be carried out.
    pub(crate) fn fail(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.fail();
        }
    }

    /// Carries out one statement.
    ///
    /// # Errors
    /// Its own; an open transaction has failed then.
    pub(crate) fn execute(&mut self, plan: &Plan, values: Vec<Value>) -> Result<Outcome, PgError> {
        let result = self.admit(plan).and_then(|()| self.carry_out(plan, values));
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// In a failed transaction there is only the way back.
    fn admit(&self, plan: &Plan) -> Result<(), PgError> {
        let leads_back = matches!(plan, Plan::Commit | Plan::Rollback | Plan::RollbackTo(_));
        if self.status() == Status::Failed && !leads_back {
            let text = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(PgError::new(sqlstate::FAILED_TRANSACTION, text));
        }
        Ok(())
    }

    fn carry_out(&mut self, plan: &Plan, values: Vec<Value>) -> Result<Outcome, PgError> {
        match plan {
            Plan::Begin { read_only } => return Ok(self.begin(*read_only)),
            Plan::Commit => return self.commit(),
            Plan::Rollback => return Ok(self.roll_back()),
            Plan::Savepoint(name) => self.transaction()?.save(name.clone())?,
            Plan::RollbackTo(name) => self.transaction()?.go_back(name)?,
            Plan::Release(name) => self.transaction()?.release(name)?,
            Plan::Set { name, value } => self.settings.set(name, value)?,
            Plan::Reset(name) => self.settings.reset(name.as_deref()),
            Plan::Show(name) => return self.show(name),
            Plan::DiscardAll if self.transaction.is_some() => {
                return Err(PgError::new("25001", "DISCARD ALL cannot run inside a transaction block"));
            }
            Plan::DiscardAll => self.settings.reset(None),
            Plan::Deallocate(_) => {}
            Plan::Nothing(tag) => return Ok(Outcome::done(tag)),
            Plan::Catalog(sql) => return self.ask_catalog(sql, &values),
            Plan::Cluster { sql, tag } => return self.ask_cluster(sql, tag, values),
        }
        Ok(Outcome::done(match plan {
            Plan::Savepoint(_) => "SAVEPOINT",
            Plan::RollbackTo(_) => "ROLLBACK",
            Plan::Release(_) => "RELEASE",
            Plan::Reset(_) => "RESET",
            Plan::DiscardAll => "DISCARD ALL",
            Plan::Deallocate(None) => "DEALLOCATE ALL",
            Plan::Deallocate(_) => "DEALLOCATE",
            _ => "SET",
        }))
    }

    fn begin(&mut self, read_only: bool) -> Outcome {
        if self.transaction.is_some() {
            return Outcome::warning("BEGIN", "25001", "there is already a transaction in progress");
        }
        let by_default = self.settings.get("default_transaction_read_only") == Some("on");
        self.transaction = Some(Transaction::new(read_only || by_default));
        Outcome::done("BEGIN")
    }

    fn commit(&mut self) -> Result<Outcome, PgError> {
        match self.transaction.take() {
            None => Ok(Outcome::warning("COMMIT", sqlstate::NO_TRANSACTION, "there is no transaction in progress")),
            Some(transaction) if transaction.has_failed() => Ok(Outcome::done("ROLLBACK")),
            Some(transaction) => transaction.commit(&mut self.link).map(|()| Outcome::done("COMMIT")),
        }
    }

    fn roll_back(&mut self) -> Outcome {
        match self.transaction.take() {
            Some(_) => Outcome::done("ROLLBACK"),
            None => Outcome::warning("ROLLBACK", sqlstate::NO_TRANSACTION, "there is no transaction in progress"),
        }
    }

    fn transaction(&mut self) -> Result<&mut Transaction, PgError> {
        let none = || PgError::new(sqlstate::NO_TRANSACTION, "savepoints can only be used in transaction blocks");
        self.transaction.as_mut().ok_or_else(none)
    }

    fn show(&self, name: &str) -> Result<Outcome, PgError> {
        let value = self.settings.show(name, &self.link)?;
        let rows = Rows { columns: vec![text_column(name)], rows: vec![vec![Value::Text(value)]], ..Rows::default() };
        Ok(Outcome { rows, tag: "SHOW".into(), notice: None })
    }

    fn ask_cluster(&mut self, sql: &str, tag: &Tag, values: Vec<Value>) -> Result<Outcome, PgError> {
        let statement = Statement { sql: sql.into(), parameters: values };
        let rows = match &mut self.transaction {
            Some(transaction) => transaction.execute(&mut self.link, statement, tag.reads())?,
            None => {
                let mut results = self.link.results(&Request::one(statement))?;
                results.pop().ok_or_else(|| PgError::new(sqlstate::PROTOCOL, "the replicas gave no result"))?
            }
        };
        Ok(Outcome::of(rows, tag, sql))
    }

    fn ask_catalog(&mut self, sql: &str, values: &[Value]) -> Result<Outcome, PgError> {
        let schema = self.schema()?;
        let rows = self.catalog.query(&schema, &self.user, sql, values)?;
        Ok(Outcome::of(rows, &Tag::Select, sql))
    }

    /// What the tables are, as the open transaction sees them.
    fn schema(&mut self) -> Result<Rows, PgError> {
        let statement = Statement::new(crate::catalog::SCHEMA_SQL);
        match &self.transaction {
            Some(transaction) => transaction.look(&mut self.link, &statement, true),
            None => {
                let mut results = self.link.results(&Request::one(statement))?;
                Ok(results.pop().unwrap_or_default())
            }
        }
    }

    /// Statements that came together and take effect together; there is no transaction.
    ///
    /// # Errors
    /// That of the first one that failed; nothing was changed.
    pub(crate) fn execute_batch(&mut self, plans: &[(String, Tag)]) -> Result<Vec<Outcome>, PgError> {
        let statements = plans.iter().map(|(sql, _)| Statement::new(sql.clone())).collect();
        let results = self.link.results(&Request::Run(Batch { checks: Vec::new(), statements }))?;
        Ok(results.into_iter().zip(plans).map(|(rows, (sql, tag))| Outcome::of(rows, tag, sql)).collect())
    }

    /// The columns that a statement will give, and how many parameters it has.
    ///
    /// # Errors
    /// Those of the statement.
    pub(crate) fn describe(&mut self, plan: &Plan) -> Result<(Vec<Column>, usize), PgError> {
        match plan {
            Plan::Show(name) => Ok((vec![text_column(name)], 0)),
            Plan::Catalog(sql) => {
                let schema = self.schema()?;
                self.catalog.describe(&schema, &self.user, sql)
            }
            // A table that the open transaction has made is not there for anybody else.
            Plan::Cluster { sql, .. } => {
                let mut description = self.link.describe(sql)?;
                let parameters = description.parameters as usize;
                name_and_type(&mut description.columns, sql);
                Ok((description.columns, parameters))
            }
            _ => Ok((Vec::new(), 0)),
        }
    }

    /// Says who vouched for the last answer, if the client wants to know.
    pub(crate) fn provenance(&self) -> Option<PgError> {
        let last = self.link.last().filter(|_| self.settings.shows_provenance())?;
        let text = format!("sequence {}, vouched for by replicas {}", last.sequence, last.replicas());
        Some(PgError::new(sqlstate::NOTICE, text))
    }
}

/// What SQLite calls a column that has no name tells its type, and is no name.
fn name_and_type(columns: &mut [Column], sql: &str) {
    for column in columns.iter_mut() {
        column.declared = column.declared.take().or_else(|| types::of_expression(&column.name));
    }
    rename(columns, sql);
}

fn text_column(name: &str) -> Column {
    Column { name: name.into(), declared: Some("TEXT".into()) }
}
