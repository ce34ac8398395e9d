//! One connection: messages in, messages out.
//!
//! The description of a portal waits for the next message. If that is `Execute`, as it nearly always is, a column
//! without a declared type is announced by its values; otherwise the statement is described and not executed.
//!
//! In a transaction, statements that a client sends without waiting for answers, as drivers do for many rows, are
//! rehearsed together ([`Session::look_ahead`]); whatever is answered is the same.

mod copying;
mod incoming;
mod prepared;
mod rows;

use self::incoming::Incoming;
use self::rows::{fields, format_of, give_fields, give_rows, value_types};
use crate::error::{PgError, sqlstate};
use crate::execute::{Coming, Executor, Given};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::settings::REPORTED;
use crate::tag::Tag;
use crate::tokens::{Kind, statements, tokens};
use crate::transaction::AHEAD_MAX;
use crate::translate::Type;
use crate::wire::{Frontend, Output, Status, Target};
use crate::{types, understand};
use bezant_sql::Value;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Prepared statements of a connection.
pub const PREPARED_MAX: usize = 1_024;
/// Bytes of their texts.
pub const PREPARED_BYTES_MAX: usize = 8 << 20;
/// Portals of a connection; each may hold a result.
pub const PORTALS_MAX: usize = 16;

/// A prepared statement.
#[derive(Debug)]
struct Prepared {
    /// `None`: an empty statement.
    plan: Option<Plan>,
    /// The types of its parameters, as far as they are known; 0 where they are not.
    types: Vec<u32>,
    /// How many parameters it has at least, from its text.
    parameters: usize,
    /// Bytes of its text.
    bytes: usize,
    /// The types that the client was told its columns have.
    announced: Option<Vec<u32>>,
}

/// A prepared statement with values.
#[derive(Debug)]
struct Portal {
    prepared: Arc<Prepared>,
    values: Vec<Value>,
    formats: Vec<i16>,
    /// What came of it, once it was executed, the types of its columns, and how many rows the client has.
    outcome: Option<(Outcome, Vec<u32>, usize)>,
}

/// Whether the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It does.
    Continue,
    /// It ends.
    Close,
}

/// See the [module](self).
pub(crate) struct Session {
    executor: Executor,
    prepared: BTreeMap<String, Arc<Prepared>>,
    portals: BTreeMap<String, Portal>,
    /// A portal whose description is still owed.
    described: Option<String>,
    /// A message has failed: the rest of its series is skipped.
    skipping: bool,
    /// Rows that the client is bringing.
    incoming: Option<Incoming>,
}

impl Session {
    /// For a client that has said who it is.
    pub(crate) fn new(executor: Executor) -> Self {
        let (prepared, portals) = (BTreeMap::new(), BTreeMap::new());
        Self { executor, prepared, portals, described: None, skipping: false, incoming: None }
    }

    /// Settings that every client is told first.
    pub(crate) fn greet(&self, out: &mut Output) {
        for name in REPORTED {
            out.parameter(name, self.executor.settings.get(name).unwrap_or_default());
        }
    }

    /// Answers a message; `ahead` are those behind it that have come already.
    pub(crate) fn handle(&mut self, message: Frontend, ahead: &VecDeque<Frontend>, out: &mut Output) -> Flow {
        match message {
            Frontend::Terminate => return Flow::Close,
            message if self.incoming.is_some() => self.bring(message, out),
            Frontend::Sync => {
                let owed = self.give_description(None, out);
                self.report(owed, out);
                self.skipping = false;
                if self.executor.status() == Status::Idle {
                    self.portals.clear();
                }
                out.ready(self.executor.status());
            }
            _ if self.skipping => {}
            Frontend::Query(sql) => {
                self.portals.clear();
                let all = statements(&sql);
                if all.is_empty() {
                    out.empty();
                }
                let result = self.query(all, out);
                self.end_query(result, out);
            }
            other => {
                let result = self.look_ahead(&other, ahead).and_then(|()| self.extended(other, out));
                self.report(result, out);
            }
        }
        Flow::Continue
    }

    /// An error ends the series of messages that it is in.
    fn report(&mut self, result: Result<(), PgError>, out: &mut Output) {
        if let Err(error) = result {
            self.executor.fail();
            self.skipping = true;
            self.described = None;
            out.error(&error);
        }
    }

    /// The simple protocol: statements as text, and text comes back. A COPY may wait for rows when it returns.
    fn query(&mut self, all: Vec<String>, out: &mut Output) -> Result<(), PgError> {
        let mut together: Vec<(String, Tag)> = Vec::new();
        for (number, sql) in all.iter().enumerate() {
            let plan = understand::plan(sql)?;
            if matches!(plan, Plan::Cluster { .. }) && self.executor.looks_ahead() {
                self.executor.look_ahead(for_replicas_of(&all[number..]))?;
            }
            match plan {
                // Outside of a transaction, statements that come together take effect together.
                Plan::Cluster { sql, tag } if self.executor.status() == Status::Idle && all.len() > 1 => {
                    together.push((sql, tag));
                }
                plan => {
                    self.run_batch(&mut together, out)?;
                    if let Plan::Copy(copy) = &plan {
                        if self.copy(&plan, copy, Some(&all[number + 1..]), out)? {
                            return Ok(());
                        }
                        continue;
                    }
                    let outcome = self.execute(&plan, &Given::default(), out)?;
                    self.give_outcome(&outcome, out)?;
                }
            }
        }
        self.run_batch(&mut together, out)
    }

    fn run_batch(&mut self, together: &mut Vec<(String, Tag)>, out: &mut Output) -> Result<(), PgError> {
        if together.is_empty() {
            return Ok(());
        }
        for outcome in self.executor.execute_batch(&std::mem::take(together))? {
            outcome.notice.iter().for_each(|notice| out.notice(notice));
            self.give_outcome(&outcome, out)?;
        }
        Ok(())
    }

    /// Carries out a statement and tells what changed with it.
    fn execute(&mut self, plan: &Plan, given: &Given<'_>, out: &mut Output) -> Result<Outcome, PgError> {
        let outcome = match plan {
            Plan::Prepare { name, types, sql } => {
                self.prepare(name.clone(), sql, types.clone())?;
                Outcome::done("PREPARE")
            }
            Plan::Execute { name, values } => return self.run_prepared(name, values, out),
            _ => self.executor.execute(plan, given)?,
        };
        match plan {
            Plan::Deallocate(None) | Plan::DiscardAll => self.prepared.clear(),
            Plan::Deallocate(Some(name)) if self.prepared.remove(name).is_none() => return Err(no_statement(name)),
            _ => {}
        }
        if let Plan::Set { name, .. } | Plan::Reset(Some(name)) = plan
            && let Some(reported) = REPORTED.iter().find(|reported| reported.eq_ignore_ascii_case(name))
        {
            out.parameter(reported, self.executor.settings.get(name).unwrap_or_default());
        }
        if let Some(notice) = &outcome.notice {
            out.notice(notice);
        }
        if matches!(plan, Plan::Cluster { .. } | Plan::Commit { .. })
            && let Some(notice) = self.executor.provenance()
        {
            out.notice(&notice);
        }
        Ok(outcome)
    }

    /// A whole outcome as text.
    fn give_outcome(&self, outcome: &Outcome, out: &mut Output) -> Result<(), PgError> {
        let columns = &outcome.rows.columns;
        if !columns.is_empty() {
            let types = value_types(outcome);
            out.fields(&fields(columns, &types, &[]));
            give_rows(outcome, &types, &[], 0..outcome.rows.rows.len(), self.executor.settings.offset(), out)?;
        }
        out.complete(&outcome.tag);
        Ok(())
    }

    /// Has the statements rehearsed together that this message and those behind it execute in the open transaction, as
    /// far as they are known already.
    fn look_ahead(&mut self, message: &Frontend, ahead: &VecDeque<Frontend>) -> Result<(), PgError> {
        let Frontend::Execute { portal, .. } = message else { return Ok(()) };
        if ahead.is_empty() || !self.executor.looks_ahead() {
            return Ok(());
        }
        let Some(first) = self.portals.get(portal).filter(|portal| portal.outcome.is_none()) else { return Ok(()) };
        let Some(first) = for_replicas(&first.prepared, first.values.clone()) else { return Ok(()) };
        let (mut all, mut bound) = (vec![first], BTreeMap::new());
        for message in ahead {
            match message {
                _ if all.len() == AHEAD_MAX => break,
                Frontend::Bind { portal, statement, formats, values, .. } => {
                    let Some(prepared) = self.prepared.get(statement) else { break };
                    let Ok(values) = take_values(prepared, formats, values) else { break };
                    let Some(statement) = for_replicas(prepared, values) else { break };
                    bound.insert(portal, statement);
                }
                // A portal that is executed again goes on with its rows.
                Frontend::Execute { portal, .. } => match bound.remove(portal) {
                    Some(statement) => all.push(statement),
                    None => break,
                },
                Frontend::Describe(..) | Frontend::Flush => {}
                _ => break,
            }
        }
        self.executor.look_ahead(all)
    }

    /// The extended protocol.
    fn extended(&mut self, message: Frontend, out: &mut Output) -> Result<(), PgError> {
        if let Frontend::Execute { portal, rows } = message {
            return self.run_portal(&portal, rows, out);
        }
        self.give_description(None, out)?;
        match message {
            Frontend::Parse { name, sql, types } => self.parse(name, &sql, types, out),
            Frontend::Bind { portal, statement, formats, values, results } => {
                let prepared = self.find(&statement)?;
                let values = take_values(&prepared, &formats, &values)?;
                if self.portals.len() >= PORTALS_MAX && !self.portals.contains_key(&portal) {
                    return Err(PgError::new(sqlstate::LIMIT, format!("more than {PORTALS_MAX} portals are open")));
                }
                self.portals.insert(portal, Portal { prepared, values, formats: results, outcome: None });
                out.bound();
                Ok(())
            }
            Frontend::Describe(Target::Portal, name) => {
                // A cursor that was declared is a portal, too.
                if let (None, Some(columns)) = (self.portals.get(&name), self.executor.cursor(&name)) {
                    let types: Vec<u32> = columns.iter().map(types::of_column).collect();
                    give_fields(columns, &types, &[], out);
                    return Ok(());
                }
                self.portal(&name)?;
                self.described = Some(name);
                Ok(())
            }
            Frontend::Describe(Target::Statement, name) => self.describe_statement(&name, out),
            Frontend::Close(target, name) => {
                match target {
                    Target::Statement => drop(self.prepared.remove(&name)),
                    Target::Portal => drop(self.portals.remove(&name)),
                }
                out.closed();
                Ok(())
            }
            Frontend::Unsupported => Err(PgError::unsupported("function calls are not supported")),
            _ => Ok(()),
        }
    }

    fn parse(&mut self, name: String, sql: &str, types: Vec<u32>, out: &mut Output) -> Result<(), PgError> {
        self.prepare(name, sql, types)?;
        out.parsed();
        Ok(())
    }

    fn portal(&mut self, name: &str) -> Result<&mut Portal, PgError> {
        let none = || PgError::new(sqlstate::NO_PORTAL, format!("portal \"{name}\" does not exist"));
        self.portals.get_mut(name).ok_or_else(none)
    }

    fn describe_statement(&mut self, name: &str, out: &mut Output) -> Result<(), PgError> {
        let prepared = self.find(name)?;
        let meant = self.meant(&prepared)?;
        let (columns, parameters) = match &meant.plan {
            Some(plan) => self.executor.describe(plan, &meant.types)?,
            None => (Vec::new(), 0),
        };
        let parameters = if Arc::ptr_eq(&prepared, &meant) { parameters } else { 0 };
        let type_of = |at: usize| prepared.types.get(at).copied().filter(|type_id| *type_id != 0);
        let count = parameters.max(prepared.types.len());
        let parameters: Vec<u32> = (0..count).map(|at| type_of(at).unwrap_or(types::oid::TEXT)).collect();
        out.parameters(&parameters);
        let announced: Vec<u32> = columns.iter().map(types::of_column).collect();
        give_fields(&columns, &announced, &[], out);
        let prepared =
            Prepared { plan: prepared.plan.clone(), types: parameters, announced: Some(announced), ..*prepared };
        self.prepared.insert(name.into(), Arc::new(prepared));
        Ok(())
    }

    /// Describes the portal that waits for it, unless it is this one.
    fn give_description(&mut self, unless: Option<&str>, out: &mut Output) -> Result<(), PgError> {
        let Some(name) = self.described.take() else { return Ok(()) };
        if unless == Some(name.as_str()) {
            self.described = Some(name);
            return Ok(());
        }
        let portal = self.portal(&name)?;
        let (prepared, formats) = (Arc::clone(&portal.prepared), portal.formats.clone());
        let executed = portal.outcome.as_ref().map(|(outcome, ..)| outcome.rows.columns.clone());
        let prepared = self.meant(&prepared)?;
        let columns = match (executed, &prepared.plan) {
            (Some(columns), _) => columns,
            (None, Some(plan)) => self.executor.describe(plan, &prepared.types)?.0,
            (None, None) => Vec::new(),
        };
        let types: Vec<u32> = columns.iter().map(types::of_column).collect();
        give_fields(&columns, &types, &formats, out);
        Ok(())
    }

    /// Executes a portal, or goes on with its rows.
    fn run_portal(&mut self, name: &str, wanted: i32, out: &mut Output) -> Result<(), PgError> {
        self.give_description(Some(name), out)?;
        let is_described = self.described.take().is_some();
        let portal = self.portal(name)?;
        let prepared = Arc::clone(&portal.prepared);
        let Some(plan) = &prepared.plan else {
            if is_described {
                out.no_data();
            }
            out.empty();
            return Ok(());
        };
        let mut outcome = portal.outcome.take();
        if let (None, Plan::Copy(copy)) = (&outcome, plan) {
            if is_described {
                out.no_data();
            }
            return self.copy(plan, copy, None, out).map(|_| ());
        }
        if outcome.is_none() {
            let values = std::mem::take(&mut portal.values);
            let announced = prepared.announced.as_deref().filter(|_| !is_described);
            let given = Given { types: &prepared.types, values: &values, announced };
            let executed = self.execute(plan, &given, out)?;
            let types = match &prepared.announced {
                Some(announced) if !is_described && announced.len() == executed.rows.columns.len() => announced.clone(),
                _ => value_types(&executed),
            };
            outcome = Some((executed, types, 0));
        }
        let Some((outcome, types, given)) = outcome else { return Ok(()) };
        // A statement such as DEALLOCATE may have closed the portal with everything else.
        let Some(portal) = self.portals.get_mut(name) else {
            out.complete(&outcome.tag);
            return Ok(());
        };
        if is_described {
            give_fields(&outcome.rows.columns, &types, &portal.formats, out);
        }
        let left = outcome.rows.rows.len() - given;
        let count = usize::try_from(wanted).ok().filter(|wanted| *wanted > 0).map_or(left, |wanted| wanted.min(left));
        let offset = self.executor.settings.offset();
        give_rows(&outcome, &types, &portal.formats, given..given + count, offset, out)?;
        if count < left {
            out.suspended();
        } else {
            out.complete(&outcome.tag);
        }
        portal.outcome = Some((outcome, types, given + count));
        Ok(())
    }
}

fn no_statement(name: &str) -> PgError {
    PgError::new(sqlstate::NO_STATEMENT, format!("prepared statement \"{name}\" does not exist"))
}

/// A prepared statement with values, if it is one for the replicas.
fn for_replicas(prepared: &Prepared, values: Vec<Value>) -> Option<Coming> {
    match &prepared.plan {
        Some(Plan::Cluster { sql, .. }) => Some(Coming { sql: sql.clone(), types: prepared.types.clone(), values }),
        _ => None,
    }
}

/// The first of these statements that are for the replicas.
fn for_replicas_of(all: &[String]) -> Vec<Coming> {
    let one = |sql: &String| match understand::plan(sql) {
        Ok(Plan::Cluster { sql, .. }) => Some(Coming { sql, types: Vec::new(), values: Vec::new() }),
        _ => None,
    };
    all.iter().take(AHEAD_MAX).map_while(one).collect()
}

/// The largest number of a parameter in the text.
fn parameters(sql: &str) -> usize {
    let numbers = tokens(sql).into_iter().filter(|token| token.kind == Kind::Parameter);
    numbers.filter_map(|token| token.text[1..].parse().ok()).max().unwrap_or(0)
}

fn take_values(prepared: &Prepared, formats: &[i16], values: &[Option<Bytes>]) -> Result<Vec<Value>, PgError> {
    if values.len() != prepared.parameters {
        let text = format!("{} values came for {} parameters", values.len(), prepared.parameters);
        return Err(PgError::new(sqlstate::PROTOCOL, text));
    }
    let take = |(at, value): (usize, &Option<Bytes>)| {
        let type_id = prepared.types.get(at).copied().unwrap_or(0);
        let Some(bytes) = value else { return Ok(Value::Null) };
        match (Type::of_oid(type_id), &prepared.plan) {
            // The catalog's own queries have them as text.
            (Some(Type::Array(element)), Some(Plan::Cluster { .. } | Plan::Declare(..))) => {
                types::take_array(bytes, *element, format_of(formats, at))
            }
            _ => types::take(bytes, type_id, format_of(formats, at)),
        }
    };
    values.iter().enumerate().map(take).collect()
}
