//! Carries out the statements of one connection.

use crate::catalog::Catalog;
use crate::error::{PgError, sqlstate};
use crate::link::Link;
use crate::plan::{Plan, Tag};
use crate::rewrite::rename;
use crate::settings::{Settings, on_or_off};
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
        let leads_back = matches!(plan, Plan::Commit { .. } | Plan::Rollback { .. } | Plan::RollbackTo(_));
        if self.status() == Status::Failed && !leads_back {
            let text = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(PgError::new(sqlstate::FAILED_TRANSACTION, text));
        }
        Ok(())
    }

    fn carry_out(&mut self, plan: &Plan, values: Vec<Value>) -> Result<Outcome, PgError> {
        match plan {
            Plan::Begin { read_only } => return Ok(self.begin(*read_only)),
            Plan::SetTransaction { read_only } => return self.set_transaction(*read_only),
            Plan::Commit { chain } => return self.commit(*chain),
            Plan::Rollback { chain } => return self.roll_back(*chain),
            Plan::Savepoint(name) => self.transaction()?.save(name.clone())?,
            Plan::RollbackTo(name) => self.transaction()?.go_back(name)?,
            Plan::Release(name) => self.transaction()?.release(name)?,
            Plan::Set { name, value } => self.settings.set(name, value)?,
            Plan::Reset(name) => self.settings.reset(name.as_deref()),
            Plan::Show(name) => return self.show(name),
            Plan::DiscardAll if self.transaction.is_some() => {
                return Err(PgError::new(
                    sqlstate::ACTIVE_TRANSACTION,
                    "DISCARD ALL cannot run inside a transaction block",
                ));
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

    fn begin(&mut self, read_only: Option<bool>) -> Outcome {
        if self.transaction.is_some() {
            return Outcome::warning(
                "BEGIN",
                sqlstate::ACTIVE_TRANSACTION,
                "there is already a transaction in progress",
            );
        }
        self.transaction = Some(Transaction::new(read_only.unwrap_or(self.settings.is_read_only())));
        Outcome::done("BEGIN")
    }

    fn set_transaction(&mut self, read_only: Option<bool>) -> Result<Outcome, PgError> {
        let Some(transaction) = &mut self.transaction else {
            let text = "SET TRANSACTION can only be used in transaction blocks";
            return Ok(Outcome::warning("SET", sqlstate::NO_TRANSACTION, text));
        };
        read_only.map_or(Ok(()), |read_only| transaction.set_read_only(read_only))?;
        Ok(Outcome::done("SET"))
    }

    /// Ends the transaction and, if `chain` says so, begins another of its kind. `None`: there is none to end.
    fn end(&mut self, chain: bool) -> Result<Option<Transaction>, PgError> {
        let ended = self.transaction.take();
        if chain {
            let next = ended.as_ref().map(|transaction| Transaction::new(transaction.is_read_only()));
            let none = || PgError::new(sqlstate::NO_TRANSACTION, "AND CHAIN can only be used in transaction blocks");
            self.transaction = Some(next.ok_or_else(none)?);
        }
        Ok(ended)
    }

    fn commit(&mut self, chain: bool) -> Result<Outcome, PgError> {
        let Some(transaction) = self.end(chain)? else { return Ok(no_transaction("COMMIT")) };
        if transaction.has_failed() {
            return Ok(Outcome::done("ROLLBACK"));
        }
        let committed = transaction.commit(&mut self.link);
        if committed.is_err() {
            self.transaction = None;
        }
        committed.map(|()| Outcome::done("COMMIT"))
    }

    fn roll_back(&mut self, chain: bool) -> Result<Outcome, PgError> {
        let ended = self.end(chain)?;
        Ok(ended.map_or_else(|| no_transaction("ROLLBACK"), |_| Outcome::done("ROLLBACK")))
    }

    fn transaction(&mut self) -> Result<&mut Transaction, PgError> {
        let none = || PgError::new(sqlstate::NO_TRANSACTION, "savepoints can only be used in transaction blocks");
        self.transaction.as_mut().ok_or_else(none)
    }

    fn show(&self, name: &str) -> Result<Outcome, PgError> {
        let read_only = self.transaction.as_ref().map_or(self.settings.is_read_only(), Transaction::is_read_only);
        let value = match name {
            "transaction_read_only" => on_or_off(read_only).into(),
            _ => self.settings.show(name, &self.link)?,
        };
        let rows = Rows { columns: vec![text_column(name)], rows: vec![vec![Value::Text(value)]], ..Rows::default() };
        Ok(Outcome { rows, tag: "SHOW".into(), notice: None })
    }

    fn ask_cluster(&mut self, sql: &str, tag: &Tag, values: Vec<Value>) -> Result<Outcome, PgError> {
        let rows = self.ask(Statement { sql: sql.into(), parameters: values })?;
        Ok(Outcome::of(rows, tag, sql))
    }

    fn ask(&mut self, statement: Statement) -> Result<Rows, PgError> {
        if let Some(transaction) = &mut self.transaction {
            return transaction.execute(&mut self.link, statement);
        }
        self.admit_alone(&statement)?;
        let mut results = self.link.results(&Request::one(statement))?;
        results.pop().ok_or_else(|| PgError::new(sqlstate::PROTOCOL, "the replicas gave no result"))
    }

    /// Outside of a transaction, too, nothing is written where transactions only read by default.
    fn admit_alone(&mut self, statement: &Statement) -> Result<(), PgError> {
        if self.settings.is_read_only() && !self.link.reads(&statement.sql)?? {
            return Err(PgError::read_only());
        }
        Ok(())
    }

    /// What the catalog says depends on what the tables are, as the open transaction sees them: it is shown both.
    fn ask_catalog(&mut self, sql: &str, values: &[Value]) -> Result<Outcome, PgError> {
        let schema = self.ask(Statement::new(crate::catalog::SCHEMA_SQL))?;
        let rows = self.catalog.query(&schema, &self.user, sql, values)?;
        Ok(Outcome::of(rows, &Tag::Select, sql))
    }

    /// Statements that came together and take effect together; there is no transaction.
    ///
    /// # Errors
    /// That of the first one that failed; nothing was changed.
    pub(crate) fn execute_batch(&mut self, plans: &[(String, Tag)]) -> Result<Vec<Outcome>, PgError> {
        let statements: Vec<Statement> = plans.iter().map(|(sql, _)| Statement::new(sql.clone())).collect();
        statements.iter().try_for_each(|statement| self.admit_alone(statement))?;
        let results = self.link.results(&Request::Run(Batch { statements, ..Batch::default() }))?;
        Ok(results.into_iter().zip(plans).map(|(rows, (sql, tag))| Outcome::of(rows, tag, sql)).collect())
    }

    /// The columns that a statement will give, and how many parameters it has.
    ///
    /// # Errors
    /// Those of the statement.
    pub(crate) fn describe(&mut self, plan: &Plan) -> Result<(Vec<Column>, usize), PgError> {
        self.admit(plan)?;
        match plan {
            Plan::Show(name) => Ok((vec![text_column(name)], 0)),
            Plan::Catalog(sql) => {
                let schema = self.look(Statement::new(crate::catalog::SCHEMA_SQL))?;
                self.catalog.describe(&schema, &self.user, sql)
            }
            Plan::Cluster { sql, .. } => {
                let (mut columns, parameters) = match self.link.describe(sql)? {
                    Ok(description) => (description.columns, description.parameters as usize),
                    // A table that the open transaction has made is not there for anybody else; and an error is
                    // something that the transaction is shown. Nothing of this look lasts.
                    Err(_) if self.transaction.is_some() => (self.look(Statement::new(sql.clone()))?.columns, 0),
                    Err(error) => return Err(error.into()),
                };
                name_and_type(&mut columns, sql);
                Ok((columns, parameters))
            }
            _ => Ok((Vec::new(), 0)),
        }
    }

    /// What a read gives, without being part of the open transaction.
    fn look(&mut self, statement: Statement) -> Result<Rows, PgError> {
        match &mut self.transaction {
            Some(transaction) => transaction.look(&mut self.link, statement),
            None => self.ask(statement),
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

fn no_transaction(tag: &str) -> Outcome {
    Outcome::warning(tag, sqlstate::NO_TRANSACTION, "there is no transaction in progress")
}

fn text_column(name: &str) -> Column {
    Column { name: name.into(), declared: Some("TEXT".into()) }
}
