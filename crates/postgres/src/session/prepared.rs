//! Prepared statements, however they were prepared.

use super::{PREPARED_BYTES_MAX, PREPARED_MAX, Prepared, Session, no_statement, parameters};
use crate::error::{PgError, sqlstate};
use crate::execute::Given;
use crate::outcome::Outcome;
use crate::plan::{Constant, Plan};
use crate::rewrite::parameter_types;
use crate::tokens::statements;
use crate::wire::Output;
use crate::{types, understand};
use bezant_sql::Value;
use bytes::Bytes;
use std::sync::Arc;

impl Session {
    /// Keeps a statement.
    pub(super) fn prepare(&mut self, name: String, sql: &str, types: Vec<u32>) -> Result<(), PgError> {
        if !name.is_empty() && self.prepared.contains_key(&name) {
            let text = format!("prepared statement \"{name}\" already exists");
            return Err(PgError::new(sqlstate::DUPLICATE, text));
        }
        let mut all = statements(sql);
        if all.len() > 1 {
            let text = "cannot insert multiple commands into a prepared statement";
            return Err(PgError::new(sqlstate::SYNTAX, text));
        }
        let plan = all.pop().map(|sql| understand::plan(&sql)).transpose()?;
        let bytes: usize = self.prepared.values().map(|prepared| prepared.bytes).sum();
        if self.prepared.len() >= PREPARED_MAX || bytes + sql.len() > PREPARED_BYTES_MAX {
            let text = format!("more than {PREPARED_MAX} prepared statements, or {PREPARED_BYTES_MAX} bytes of them");
            return Err(PgError::new(sqlstate::LIMIT, text).hint("close some, or DEALLOCATE ALL"));
        }
        let parameters = parameters(sql);
        let types = match &plan {
            Some(Plan::Catalog(_)) => parameter_types(sql, types),
            Some(plan) => self.executor.parameters(plan, types)?,
            None => types,
        };
        let prepared = Prepared { plan, types, parameters, bytes: sql.len(), announced: None };
        self.prepared.insert(name, Arc::new(prepared));
        Ok(())
    }

    pub(super) fn find(&self, name: &str) -> Result<Arc<Prepared>, PgError> {
        self.prepared.get(name).cloned().ok_or_else(|| no_statement(name))
    }

    /// What a statement does: EXECUTE does what another one was prepared for.
    pub(super) fn meant(&self, prepared: &Arc<Prepared>) -> Result<Arc<Prepared>, PgError> {
        match &prepared.plan {
            Some(Plan::Execute { name, .. }) => self.find(name),
            _ => Ok(Arc::clone(prepared)),
        }
    }

    /// Carries out a prepared statement with constants.
    pub(super) fn run_prepared(
        &mut self,
        name: &str,
        constants: &[Constant],
        out: &mut Output,
    ) -> Result<Outcome, PgError> {
        let prepared = self.find(name)?;
        if constants.len() != prepared.parameters {
            let text = format!("wrong number of parameters for prepared statement \"{name}\"");
            return Err(PgError::new(sqlstate::SYNTAX, text));
        }
        let value = |(at, constant): (usize, &Constant)| {
            let type_id = prepared.types.get(at).copied().unwrap_or(types::oid::TEXT);
            match constant {
                Constant::Null => Ok(Value::Null),
                // Where a string may be a truth value a number is none.
                Constant::Typed(text) if (type_id == types::oid::BOOL) != matches!(text.as_str(), "true" | "false") => {
                    let text = format!("parameter ${} cannot be coerced to the expected type", at + 1);
                    Err(PgError::new("42804", text))
                }
                Constant::Text(text) | Constant::Typed(text) => {
                    types::take(&Bytes::from(text.clone()), type_id, types::TEXT_FORMAT)
                }
            }
        };
        let values = constants.iter().enumerate().map(value).collect::<Result<Vec<_>, _>>()?;
        match &prepared.plan {
            Some(plan) => self.execute(plan, &Given { types: &prepared.types, values: &values, announced: None }, out),
            None => Ok(Outcome::default()),
        }
    }
}
