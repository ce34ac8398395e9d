//! Carries out the statements of one connection.

mod copying;

pub(crate) use copying::Destination;

use crate::catalog::Catalog;
use crate::cursor::Cursors;
use crate::error::{PgError, sqlstate};
use crate::link::Link;
use crate::outcome::{Outcome, columns_of, name_and_type, text_column, types_of};
use crate::plan::{Declared, Plan};
use crate::settings::{Settings, on_or_off};
use crate::tag::Tag;
use crate::transaction::Transaction;
use crate::translate::Translation;
use crate::translator::Translators;
use crate::wire::Status;
use bezant_sql::{Batch, Column, Request, Rows, Statement, Value};
use std::sync::Arc;

/// How often a statement is translated until the schema stays the same meanwhile.
const STALE_MAX: usize = 4;

/// What comes with a statement.
#[derive(Default)]
pub(crate) struct Given<'a> {
    /// The types of its parameters.
    pub(crate) types: &'a [u32],
    /// Their values.
    pub(crate) values: &'a [Value],
    /// The types that the client was told that its columns have.
    pub(crate) announced: Option<&'a [u32]>,
}

/// A statement that the client has sent and not asked an answer for yet.
pub(crate) struct Coming {
    /// Its text.
    pub(crate) sql: String,
    /// The types of its parameters.
    pub(crate) types: Vec<u32>,
    /// Their values.
    pub(crate) values: Vec<Value>,
}

/// What one connection is in the middle of.
pub(crate) struct Executor {
    pub(crate) link: Link,
    pub(crate) settings: Settings,
    catalog: Arc<Catalog>,
    user: String,
    transaction: Option<Transaction>,
    cursors: Cursors,
    translators: Translators,
}

impl Executor {
    /// At the start of a connection.
    pub(crate) fn new(link: Link, settings: Settings, catalog: Arc<Catalog>, user: String) -> Self {
        let (cursors, translators) = (Cursors::default(), Translators::default());
        Self { link, settings, catalog, user, transaction: None, cursors, translators }
    }

    /// Whether a transaction is open.
    pub(crate) fn status(&self) -> Status {
        match &self.transaction {
            None => Status::Idle,
            Some(transaction) if transaction.has_failed() => Status::Failed,
            Some(_) => Status::Open,
        }
    }

    /// Whether nothing may be written now.
    fn is_read_only(&self) -> bool {
        self.transaction.as_ref().map_or(self.settings.is_read_only(), Transaction::is_read_only)
    }

    /// Something went wrong before a statement could be carried out.
    pub(crate) fn fail(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.fail();
        }
    }

    /// Whether it is worth telling which statements the client has sent already.
    pub(crate) fn looks_ahead(&self) -> bool {
        // Before anything was executed in it, the schema may still turn out to be another one.
        let works = |transaction: &Transaction| transaction.has_begun() && transaction.looks_ahead();
        self.transaction.as_ref().is_some_and(works)
    }

    /// Rehearses statements of the open transaction that come next, up to the first that may change what the next ones
    /// mean, or that is wrong.
    ///
    /// # Errors
    /// Those of the way there, or that the transaction must be run again.
    pub(crate) fn look_ahead(&mut self, coming: Vec<Coming>) -> Result<(), PgError> {
        let mut statements = Vec::new();
        for Coming { sql, types, values } in coming {
            match self.translate(&sql, &types) {
                Ok(translation) if !translation.defines => {
                    statements.extend(translation.statements(values));
                }
                _ => break,
            }
        }
        match &mut self.transaction {
            Some(transaction) if statements.len() > 1 => transaction.look_ahead(&mut self.link, statements),
            _ => Ok(()),
        }
    }

    /// Carries out one statement.
    ///
    /// # Errors
    /// Its own; an open transaction has failed then.
    pub(crate) fn execute(&mut self, plan: &Plan, given: &Given<'_>) -> Result<Outcome, PgError> {
        let result = self.admit(plan).and_then(|()| self.carry_out(plan, given));
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

    fn carry_out(&mut self, plan: &Plan, given: &Given<'_>) -> Result<Outcome, PgError> {
        match plan {
            Plan::Begin { read_only } => return Ok(self.begin(*read_only)),
            Plan::SetTransaction { read_only } => return self.set_transaction(*read_only),
            Plan::Commit { chain } => return self.commit(*chain),
            Plan::Rollback { chain } => return self.roll_back(*chain),
            Plan::Savepoint(name) => self.transaction()?.save(name.clone())?,
            Plan::RollbackTo(name) => {
                let depth = self.transaction()?.go_back(name)?;
                self.cursors.go_back(depth);
                self.translators.forget_own();
            }
            Plan::Release(name) => {
                let depth = self.transaction()?.release(name)?;
                self.cursors.release(depth);
            }
            Plan::Declare(declared, query) => self.declare(declared, query, given)?,
            Plan::Fetch { name, way, moves } => return self.cursors.fetch(name, *way, *moves),
            Plan::Close(name) => self.cursors.close(name.as_deref())?,
            Plan::Set { name, value } => self.settings.set(name, value)?,
            Plan::Reset(name) => self.settings.reset(name.as_deref()),
            Plan::Show(name) => return self.show(name),
            Plan::DiscardAll if self.transaction.is_some() => {
                return Err(PgError::new(
                    sqlstate::ACTIVE_TRANSACTION,
                    "DISCARD ALL cannot run inside a transaction block",
                ));
            }
            Plan::DiscardAll => {
                self.settings.reset(None);
                self.cursors.close(None)?;
            }
            Plan::Deallocate(_) => {}
            // The session has this conversation.
            Plan::Copy(_) | Plan::Prepare { .. } | Plan::Execute { .. } => {
                return Err(PgError::unsupported("this cannot be part of another statement"));
            }
            Plan::Nothing(tag) => return Ok(Outcome::done(tag)),
            Plan::Catalog(sql) => return self.ask_catalog(sql, given.values),
            Plan::Cluster { sql, tag } => return self.ask_cluster(sql, tag, given),
        }
        Ok(Outcome::done(match plan {
            Plan::Savepoint(_) => "SAVEPOINT",
            Plan::RollbackTo(_) => "ROLLBACK",
            Plan::Release(_) => "RELEASE",
            Plan::Reset(_) => "RESET",
            Plan::DiscardAll => "DISCARD ALL",
            Plan::Declare(..) => "DECLARE CURSOR",
            Plan::Close(None) => "CLOSE CURSOR ALL",
            Plan::Close(_) => "CLOSE CURSOR",
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
        self.translators.end();
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
            self.cursors.end(false);
            return Ok(Outcome::done("ROLLBACK"));
        }
        let committed = transaction.commit(&mut self.link);
        self.cursors.end(committed.is_ok());
        if committed.is_err() {
            self.transaction = None;
        }
        committed.map(|()| Outcome::done("COMMIT"))
    }

    fn roll_back(&mut self, chain: bool) -> Result<Outcome, PgError> {
        let ended = self.end(chain)?;
        self.cursors.end(false);
        Ok(ended.map_or_else(|| no_transaction("ROLLBACK"), |_| Outcome::done("ROLLBACK")))
    }

    fn transaction(&mut self) -> Result<&mut Transaction, PgError> {
        let none = || PgError::new(sqlstate::NO_TRANSACTION, "savepoints can only be used in transaction blocks");
        self.transaction.as_mut().ok_or_else(none)
    }

    fn declare(&mut self, declared: &Declared, query: &Plan, given: &Given<'_>) -> Result<(), PgError> {
        if self.transaction.is_none() && !declared.holds {
            let text = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(PgError::new(sqlstate::NO_TRANSACTION, text).hint("or declare it WITH HOLD"));
        }
        self.cursors.admit(&declared.name)?;
        let depth = self.transaction.as_ref().map(Transaction::depth);
        let outcome = self.carry_out(query, given)?;
        self.cursors.keep(declared, outcome, depth);
        Ok(())
    }

    /// The columns of a cursor, if there is one with this name.
    pub(crate) fn cursor(&self, name: &str) -> Option<&[Column]> {
        self.cursors.columns(name)
    }

    fn show(&self, name: &str) -> Result<Outcome, PgError> {
        let read_only = self.is_read_only();
        let value = match name {
            "transaction_read_only" => on_or_off(read_only).into(),
            _ => self.settings.show(name, &self.link)?,
        };
        let rows = Rows { columns: vec![text_column(name)], rows: vec![vec![Value::Text(value)]], ..Rows::default() };
        Ok(Outcome { rows, tag: "SHOW".into(), notice: None })
    }

    /// Translates a statement, and once more whenever the tables have changed meanwhile.
    fn ask_cluster(&mut self, sql: &str, tag: &Tag, given: &Given<'_>) -> Result<Outcome, PgError> {
        self.again_if_stale(|this| {
            let translation = this.translate(sql, given.types)?;
            if given.announced.is_some_and(|announced| announced != types_of(&translation)) {
                return Err(PgError::unsupported("cached plan must not change result type")
                    .hint("prepare the statement again: the tables have changed"));
            }
            let rows = this.ask_all(translation.statements(given.values.to_vec()))?;
            if translation.defines {
                this.translators.defined(this.transaction.is_some());
            }
            Ok(Outcome::of(rows, tag, &translation))
        })
    }

    /// Does something that depends on the schema, and once more if it was another one, as long as nobody has been shown
    /// anything of it.
    fn again_if_stale<T>(&mut self, act: impl Fn(&mut Self) -> Result<T, PgError>) -> Result<T, PgError> {
        for _ in 0..STALE_MAX {
            self.link.begin();
            let result = act(self);
            if !self.link.was_stale() {
                return result;
            }
            self.translators.forget();
            if self.transaction.as_ref().is_some_and(Transaction::has_begun) {
                return result;
            }
            self.link.schema = 0;
        }
        Err(PgError::conflict())
    }

    /// A statement in SQLite's words, as the tables are for it.
    fn translate(&mut self, sql: &str, types: &[u32]) -> Result<Arc<Translation>, PgError> {
        let zone = self.settings.zone();
        self.translators.translate(sql, types, zone, &mut self.link, self.transaction.as_mut())
    }

    /// The types of the parameters of a statement: those that the client says, and for the rest those that the
    /// statement itself says.
    ///
    /// # Errors
    /// Those of the statement.
    pub(crate) fn parameters(&mut self, plan: &Plan, types: Vec<u32>) -> Result<Vec<u32>, PgError> {
        if let Plan::Declare(_, query) = plan {
            return self.parameters(query, types);
        }
        let Plan::Cluster { sql, .. } = plan else { return Ok(types) };
        self.admit(plan)?;
        let translation = self.again_if_stale(|this| this.translate(sql, &types))?;
        Ok(translation.parameters.iter().map(|kind| kind.oid()).collect())
    }

    fn ask(&mut self, statement: Statement) -> Result<Rows, PgError> {
        self.ask_all([statement].into_iter())
    }

    /// Has statements executed that are one to the client, and gives the result of the last.
    fn ask_all(&mut self, statements: impl Iterator<Item = Statement>) -> Result<Rows, PgError> {
        let mut last = None;
        if let Some(transaction) = &mut self.transaction {
            for statement in statements {
                last = Some(transaction.execute(&mut self.link, statement)?);
            }
        } else {
            let statements: Vec<Statement> = statements.collect();
            for statement in &statements {
                self.admit_alone(statement)?;
            }
            let batch = Batch { statements, schema: self.link.schema, ..Batch::default() };
            last = self.link.results(&Request::Run(batch))?.pop();
        }
        last.ok_or_else(PgError::no_result)
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
        let schema = self.again_if_stale(|this| this.ask(Statement::new(crate::catalog::SCHEMA_SQL)))?;
        let rows = self.catalog.query(&schema, &self.user, sql, values)?;
        Ok(Outcome::of_catalog(rows, sql))
    }

    /// Statements that came together and take effect together; there is no transaction.
    ///
    /// # Errors
    /// That of the first one that failed; nothing was changed.
    pub(crate) fn execute_batch(&mut self, plans: &[(String, Tag)]) -> Result<Vec<Outcome>, PgError> {
        self.again_if_stale(|this| {
            let translated = this.translate_all(plans);
            this.translators.end();
            let (translations, statements) = translated?;
            let batch = Batch { statements, schema: this.link.schema, ..Batch::default() };
            let mut results = this.link.results(&Request::Run(batch))?.into_iter();
            let all = plans.iter().zip(&translations);
            let one = |((_, tag), translation): (&(String, Tag), &Arc<Translation>)| {
                results.nth(translation.count() - 1).map(|rows| Outcome::of(rows, tag, translation))
            };
            Ok(all.filter_map(one).collect())
        })
    }

    /// Statements in SQLite's words, each as the tables are behind those before it.
    fn translate_all(&mut self, plans: &[(String, Tag)]) -> Result<(Vec<Arc<Translation>>, Vec<Statement>), PgError> {
        let zone = self.settings.zone().to_owned();
        let (mut translations, mut statements) = (Vec::new(), Vec::new());
        for (sql, _) in plans {
            let translation = self.translators.translate_after(sql, &zone, &mut self.link, &statements)?;
            for statement in translation.statements(Vec::new()) {
                self.admit_alone(&statement)?;
                statements.push(statement);
            }
            if translation.defines {
                self.translators.defined(true);
            }
            translations.push(translation);
        }
        Ok((translations, statements))
    }

    /// The columns that a statement will give, and how many parameters it has at least.
    ///
    /// # Errors
    /// Those of the statement.
    pub(crate) fn describe(&mut self, plan: &Plan, types: &[u32]) -> Result<(Vec<Column>, usize), PgError> {
        self.admit(plan)?;
        match plan {
            Plan::Show(name) => Ok((vec![text_column(name)], 0)),
            Plan::Fetch { name, moves: false, .. } => Ok((self.cursor(name).unwrap_or_default().to_vec(), 0)),
            Plan::Declare(_, query) => Ok((Vec::new(), self.describe(query, types)?.1)),
            Plan::Catalog(sql) => {
                let schema = self.again_if_stale(|this| this.peek(Statement::new(crate::catalog::SCHEMA_SQL)))?;
                let (mut columns, parameters) = self.catalog.describe(&schema, &self.user, sql)?;
                name_and_type(&mut columns, sql);
                Ok((columns, parameters))
            }
            Plan::Cluster { sql, .. } => {
                let translation = self.again_if_stale(|this| this.translate(sql, types))?;
                Ok((columns_of(&translation), translation.parameters.len()))
            }
            _ => Ok((Vec::new(), 0)),
        }
    }

    /// What a read gives, without being part of the open transaction.
    fn peek(&mut self, statement: Statement) -> Result<Rows, PgError> {
        match &mut self.transaction {
            Some(transaction) => transaction.peek(&mut self.link, statement),
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

fn no_transaction(tag: &str) -> Outcome {
    Outcome::warning(tag, sqlstate::NO_TRANSACTION, "there is no transaction in progress")
}
