//! GROUP BY, ORDER BY and LIMIT.

use super::body::Body;
use super::casts::Context;
use super::expression::{Expression, Origin};
use super::kinds::Type;
use super::names::folded;
use super::refusal::{mismatch, refuse, unsupported};
use super::scope::Scope;
use super::translator::Translator;
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{Expr, GroupByExpr, LimitClause, OrderByExpr, OrderBySort, Query, Value};

impl Translator<'_> {
    /// LIMIT, OFFSET and FETCH, which PostgreSQL takes in any order.
    pub(super) fn limit(&mut self, query: &Query, body: &mut Body, outer: Option<&Scope<'_>>) -> Result<(), PgError> {
        let one = Expr::value(Value::Number("1".into(), false));
        let (mut limit, mut offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(_) => return Err(unsupported("this form of LIMIT")),
        };
        if let Some(fetch) = &query.fetch {
            refuse(fetch.with_ties || fetch.percent, "FETCH WITH TIES")?;
            limit = Some(fetch.quantity.as_ref().unwrap_or(&one));
        }
        let scope = Scope::within(outer);
        let mut count = |expr: Option<&Expr>, clause: &str| match expr {
            Some(Expr::Value(value)) if value.value == Value::Null => Ok(None),
            None => Ok(None),
            Some(expr) => {
                let value = self.expression(expr, &scope)?;
                let converted = self.convert(&value, Type::Int8, Context::Assignment)?;
                let sql = converted.ok_or_else(|| mismatch("argument of LIMIT must be type bigint"))?.sql;
                // SQLite would take a negative number for all rows.
                let is_number = sql.bytes().all(|byte| byte.is_ascii_digit());
                Ok::<_, PgError>(Some(if is_number { sql } else { format!("pg_limit({sql}, '{clause}')") }))
            }
        };
        let (limit, skipped) = (count(limit.take(), "LIMIT")?, count(offset.take(), "OFFSET")?);
        if limit.is_some() || skipped.is_some() {
            body.tail += &format!(" LIMIT {}", limit.map_or("-1".into(), |limit| format!("coalesce({limit}, -1)")));
        }
        if let Some(skipped) = skipped {
            body.tail += &format!(" OFFSET coalesce({skipped}, 0)");
        }
        Ok(())
    }

    /// The clause behind GROUP BY: places of the list, columns, names of the list, expressions.
    pub(super) fn group_by(
        &mut self,
        group_by: &GroupByExpr,
        items: &[(Expression, String)],
        scope: &Scope<'_>,
    ) -> Result<String, PgError> {
        let GroupByExpr::Expressions(terms, modifiers) = group_by else { return Err(unsupported("GROUP BY ALL")) };
        refuse(!modifiers.is_empty(), "this GROUP BY")?;
        let (mut keys, mut originals) = (Vec::new(), Vec::new());
        let aggregates = scope.aggregates.replace(false);
        for term in terms {
            let key = match (ordinal(term), term) {
                (Some(place), _) => item(items, place, "GROUP BY")?.clone(),
                (None, Expr::Identifier(ident)) => match scope.find_here(None, &folded(ident))? {
                    Some(column) => column,
                    None => match items.iter().find(|(_, name)| *name == folded(ident)) {
                        Some((value, _)) => value.clone(),
                        None => self.expression(term, scope)?,
                    },
                },
                (None, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_)) => return Err(unsupported(term)),
                (None, term) => self.expression(term, scope)?,
            };
            Self::comparable(key.kind)?;
            originals.push(key.sql.clone());
            // A number would be a place in the list.
            let is_constant = !matches!(key.origin, Origin::Value) || key.sql.bytes().all(|byte| byte.is_ascii_digit());
            keys.push(if is_constant { "''".into() } else { unfolded(&key.compared(), key.kind) });
        }
        if scope.aggregates.get() {
            return Err(PgError::new("42803", "aggregate functions are not allowed in GROUP BY"));
        }
        scope.aggregates.set(aggregates);
        if !keys.is_empty() {
            scope.group(originals);
        }
        Ok(if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) })
    }

    /// The terms behind ORDER BY: places and names of the list first, as in PostgreSQL.
    pub(super) fn order(
        &mut self,
        terms: &[OrderByExpr],
        body: &mut Body,
        scope: Option<&Scope<'_>>,
    ) -> Result<String, PgError> {
        let mut all = Vec::new();
        for term in terms {
            let columns = body.columns();
            let by_name = |expr: &Expr| match expr {
                Expr::Identifier(ident) => columns.iter().position(|column| column.name == folded(ident)),
                _ => None,
            };
            let place = match ordinal(&term.expr) {
                Some(place) if (1..=columns.len()).contains(&place) => Some(place - 1),
                Some(place) => {
                    let text = format!("ORDER BY position {place} is not in select list");
                    return Err(PgError::new("42P10", text));
                }
                None => by_name(&term.expr),
            };
            let (sql, kind) = match (place, scope) {
                (Some(at), _) => {
                    if columns[at].kind == Type::Unknown {
                        self.convert_column(body, at, Type::Text, Context::Implicit)?;
                    }
                    ((at + 1).to_string(), columns[at].kind)
                }
                (None, Some(scope)) => {
                    scope.loose.take();
                    let value = self.expression(&term.expr, scope)?;
                    scope.check_grouped(&value.sql, &scope.loose.take())?;
                    if value.origin != Origin::Value {
                        return Err(PgError::new(sqlstate::SYNTAX, "non-integer constant in ORDER BY"));
                    }
                    (value.sql, value.kind)
                }
                (None, None) => {
                    return Err(unsupported("ORDER BY an expression of a UNION")
                        .detail("Only result column names can be used, not expressions or functions."));
                }
            };
            all.push(direct(term, &sql, kind, scope)?);
        }
        Ok(all.join(", "))
    }

    /// The terms of an ORDER BY that knows no list.
    pub(super) fn order_terms(&mut self, terms: &[OrderByExpr], scope: &Scope<'_>) -> Result<String, PgError> {
        let mut all = Vec::new();
        for term in terms {
            let value = self.expression(&term.expr, scope)?;
            all.push(direct(term, &value.sql, value.kind, Some(scope))?);
        }
        Ok(all.join(", "))
    }
}

/// SQLite makes a number of `x AND false` before it looks whether a number is meant, which would be a place in the
/// list.
fn unfolded(sql: &str, kind: Type) -> String {
    if kind == Type::Bool && sql.starts_with('(') { format!("CAST({sql} AS INTEGER)") } else { sql.into() }
}

/// One term, with its direction. PostgreSQL has NULLs behind all values, SQLite before them.
pub(super) fn direct(term: &OrderByExpr, sql: &str, kind: Type, scope: Option<&Scope<'_>>) -> Result<String, PgError> {
    refuse(term.with_fill.is_some(), "WITH FILL")?;
    Translator::comparable(kind)?;
    let descends = match &term.options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        Some(other) => return Err(unsupported(format!("ORDER BY {other:?}"))),
    };
    let nulls_first = term.options.nulls_first.unwrap_or(descends);
    let direction = if descends { " DESC" } else { "" };
    let is_never_null = scope.is_some_and(|scope| scope.is_never_null(sql));
    let nulls = match nulls_first {
        _ if is_never_null => "",
        true => " NULLS FIRST",
        false => " NULLS LAST",
    };
    Ok(format!("{}{}{direction}{nulls}", unfolded(sql, kind), kind.collation()))
}

/// A place in the list, if an expression is one.
pub(super) fn ordinal(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(text, _) = &value.value else { return None };
    text.parse().ok()
}

fn item<'a>(items: &'a [(Expression, String)], place: usize, clause: &str) -> Result<&'a Expression, PgError> {
    let found = place.checked_sub(1).and_then(|at| items.get(at));
    let text = || format!("{clause} position {place} is not in select list");
    found.map(|(value, _)| value).ok_or_else(|| PgError::new("42P10", text()))
}
