//! SELECT DISTINCT ON: of the rows that are alike in some expressions, the first one.
//!
//! SQLite numbers the rows of each group in the order that was asked for, and those with the number 1 are kept.

use super::body::{Body, Core};
use super::expression::Expression;
use super::kinds::Type;
use super::names::folded;
use super::order::{direct, ordinal};
use super::scope::Scope;
use super::translator::Translator;
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{Expr, OrderByExpr, Select};

impl Translator<'_> {
    /// A query that is distinct by some keys, in an order that begins with them.
    pub(super) fn distinct_on(
        &mut self,
        select: &Select,
        keys: &[Expr],
        terms: &[OrderByExpr],
        outer: Option<&Scope<'_>>,
    ) -> Result<Body, PgError> {
        let (core, scope) = self.select(select, outer)?;
        let Core::Select { items, rest, .. } = core else { return Err(super::unsupported("DISTINCT ON")) };
        let mut all = Vec::new();
        for (value, called) in items {
            all.push((if value.kind == Type::Unknown { self.implicit(&value, Type::Text)? } else { value }, called));
        }
        let keys = keys.iter().map(|key| self.of_list(key, &all, "SELECT DISTINCT ON", &scope));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        keys.iter().try_for_each(|key| Self::comparable(key.kind))?;
        let mut list: Vec<String> =
            all.iter().enumerate().map(|(at, (value, _))| format!("{} AS \"{at}\"", value.sql)).collect();
        let (mut within, mut tail, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        for (at, term) in terms.iter().enumerate() {
            let value = self.of_list(&term.expr, &all, "ORDER BY", &scope)?;
            if keys.iter().any(|key| key.sql == value.sql) {
                if at != seen.len() {
                    return Err(not_initial());
                }
                seen.push(value.sql.clone());
            }
            within.push(direct(term, &value.sql, value.kind, Some(&scope))?);
            tail.push(direct(term, &format!("\"by {at}\""), value.kind, None)?);
            list.push(format!("{} AS \"by {at}\"", value.sql));
        }
        if seen.len() < terms.len() && keys.iter().any(|key| !seen.contains(&key.sql)) {
            return Err(not_initial());
        }
        let groups: Vec<String> = keys.iter().map(Expression::compared).collect();
        let order = if within.is_empty() { String::new() } else { format!(" ORDER BY {}", within.join(", ")) };
        list.push(format!("row_number() OVER (PARTITION BY {}{order}) AS \"number\"", groups.join(", ")));
        let outside = |(at, (value, called)): (usize, (Expression, String))| {
            (Expression { modifier: value.modifier, ..Expression::new(format!("\"{at}\""), value.kind) }, called)
        };
        let items = all.into_iter().enumerate().map(outside).collect();
        let rest = format!(" FROM (SELECT {}{rest}) WHERE \"number\" = 1", list.join(", "));
        let mut body = Body::plain(Core::Select { distinct: false, items, rest });
        if !tail.is_empty() {
            body.tail = format!(" ORDER BY {}", tail.join(", "));
        }
        Ok(body)
    }

    /// A place or a name of the list, or an expression.
    fn of_list(
        &mut self,
        expr: &Expr,
        list: &[(Expression, String)],
        clause: &str,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        if let Some(place) = ordinal(expr) {
            let text = || format!("{clause} position {place} is not in select list");
            let found = place.checked_sub(1).and_then(|at| list.get(at));
            return found.map(|(value, _)| value.clone()).ok_or_else(|| PgError::new("42P10", text()));
        }
        if let Expr::Identifier(ident) = expr
            && let Some((value, _)) = list.iter().find(|(_, called)| *called == folded(ident))
        {
            return Ok(value.clone());
        }
        scope.loose.take();
        let value = self.expression(expr, scope)?;
        scope.check_grouped(&value.sql, &scope.loose.take())?;
        if value.kind == Type::Unknown {
            return Err(PgError::new(sqlstate::SYNTAX, format!("non-integer constant in {clause}")));
        }
        Ok(value)
    }
}

fn not_initial() -> PgError {
    PgError::new("42P10", "SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
}
