//! Queries: SELECT, VALUES, and what is made of several of them.

use super::casts::Context;
use super::expression::{Expression, Origin};
use super::kinds::Type;
use super::schema::Column;
use super::scope::Scope;
use super::from::unique;
use super::{Translator, With, folded, mismatch, name, refuse, unsupported};
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{
    Cte, Distinct, Expr, GroupByExpr, LimitClause, NamedWindowExpr, OrderByExpr, OrderByKind, OrderBySort, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, Value, Values,
    WildcardAdditionalOptions,
};

/// A query in SQLite's words, but for the last word about the types of its columns.
pub(super) struct Body {
    /// The WITH clause.
    with: String,
    core: Core,
    /// ORDER BY, LIMIT and OFFSET.
    tail: String,
}

enum Core {
    Select {
        distinct: bool,
        items: Vec<(Expression, String)>,
        /// From FROM on.
        rest: String,
    },
    Values(Vec<Vec<Expression>>),
    Set {
        left: Box<Body>,
        operator: &'static str,
        right: Box<Body>,
    },
}

impl Body {
    /// The columns of its rows.
    pub(super) fn columns(&self) -> Vec<Column> {
        match &self.core {
            Core::Select { items, .. } => {
                items.iter().map(|(value, name)| Column::new(name.clone(), value.kind, value.modifier)).collect()
            }
            Core::Values(rows) => {
                let first = rows.first().map(Vec::as_slice).unwrap_or_default();
                let column =
                    |(at, value): (usize, &Expression)| Column::new(format!("column{}", at + 1), value.kind, None);
                first.iter().enumerate().map(column).collect()
            }
            Core::Set { left, .. } => left.columns(),
        }
    }

    /// The whole, its columns called by these names, or as PostgreSQL calls them.
    pub(super) fn render(&self, names: Option<&[String]>) -> String {
        format!("{}{}{}", self.with, self.core(names, false), self.tail)
    }

    fn core(&self, names: Option<&[String]>, is_part: bool) -> String {
        match &self.core {
            Core::Select { distinct, items, rest } => {
                let list: Vec<String> = items
                    .iter()
                    .enumerate()
                    .map(|(at, (value, own))| {
                        let called = names.and_then(|names| names.get(at)).unwrap_or(own);
                        let sql = if *distinct || is_part { value.compared() } else { value.sql.clone() };
                        format!("{sql} AS {}", name(called))
                    })
                    .collect();
                format!("SELECT {}{}{rest}", if *distinct { "DISTINCT " } else { "" }, list.join(", "))
            }
            Core::Values(rows) => {
                let row = |row: &Vec<Expression>| {
                    let values: Vec<&str> = row.iter().map(|value| value.sql.as_str()).collect();
                    format!("({})", values.join(", "))
                };
                let rows: Vec<String> = rows.iter().map(row).collect();
                let values = format!("VALUES {}", rows.join(", "));
                match names {
                    None if !is_part => values,
                    _ => {
                        let columns = self.columns();
                        let list: Vec<String> = columns
                            .iter()
                            .enumerate()
                            .map(|(at, column)| {
                                let called = names.and_then(|names| names.get(at)).unwrap_or(&column.name);
                                let collation = if is_part { column.kind.collation() } else { "" };
                                format!("{}{collation} AS {}", name(&column.name), name(called))
                            })
                            .collect();
                        format!("SELECT {} FROM ({values})", list.join(", "))
                    }
                }
            }
            Core::Set { left, operator, right } => {
                format!("{} {operator} {}", left.part(names, true), right.part(names, false))
            }
        }
    }

    /// As an operand of a set operation, which SQLite takes from the left, one after the other.
    fn part(&self, names: Option<&[String]>, is_left: bool) -> String {
        let is_set = matches!(self.core, Core::Set { .. });
        if self.with.is_empty() && self.tail.is_empty() && (is_left || !is_set) {
            return self.core(names, true);
        }
        let columns = self.columns();
        let list: Vec<String> = (0..columns.len())
            .map(|at| {
                format!(
                    "\"{at}\"{} AS {}",
                    columns[at].kind.collation(),
                    name(names.and_then(|names| names.get(at)).unwrap_or(&columns[at].name))
                )
            })
            .collect();
        let inner: Vec<String> = (0..columns.len()).map(|at| at.to_string()).collect();
        format!("SELECT {} FROM ({})", list.join(", "), self.render(Some(&inner)))
    }
}

impl Translator<'_> {
    /// A query that is a statement: what nobody has decided is text.
    pub(super) fn outermost(&mut self, query: &Query) -> Result<(String, Vec<Column>), PgError> {
        let mut body = self.query(query, None)?;
        self.settle(&mut body)?;
        Ok((body.render(None), body.columns()))
    }

    /// A query within an expression.
    pub(super) fn subquery(&mut self, query: &Query, scope: &Scope<'_>) -> Result<(String, Vec<Column>), PgError> {
        let mut body = self.query(query, Some(scope))?;
        self.settle(&mut body)?;
        Ok((body.render(None), body.columns()))
    }

    /// What nobody has decided is text.
    pub(super) fn settle(&mut self, body: &mut Body) -> Result<(), PgError> {
        for (at, column) in body.columns().iter().enumerate() {
            if column.kind == Type::Unknown {
                self.convert_column(body, at, Type::Text, Context::Implicit)?;
            }
        }
        Ok(())
    }

    /// Makes a column of a query one of another type.
    pub(super) fn convert_column(
        &mut self,
        body: &mut Body,
        at: usize,
        to: Type,
        context: Context,
    ) -> Result<(), PgError> {
        let mut change = |value: &mut Expression| {
            let from = value.kind;
            let converted = self.convert(value, to, context)?;
            *value = converted.ok_or_else(|| mismatch(format!("{} cannot be used as {}", from.name(), to.name())))?;
            Ok::<(), PgError>(())
        };
        match &mut body.core {
            Core::Select { items, .. } => change(&mut items[at].0),
            Core::Values(rows) => rows.iter_mut().try_for_each(|row| change(&mut row[at])),
            Core::Set { left, right, .. } => {
                self.convert_column(left, at, to, context)?;
                self.convert_column(right, at, to, context)
            }
        }
    }

    /// Makes the columns of a query those of a table.
    pub(super) fn assign_columns(&mut self, body: &mut Body, targets: &[Column]) -> Result<(), PgError> {
        let is_plain = body.with.is_empty() || body.tail.is_empty();
        match &mut body.core {
            Core::Select { distinct: false, items, .. } if is_plain => {
                for ((value, _), target) in items.iter_mut().zip(targets) {
                    *value = self.assign(value, target)?;
                }
                return Ok(());
            }
            Core::Values(rows) => {
                for (value, target) in rows.iter_mut().flat_map(|row| row.iter_mut().zip(targets)) {
                    *value = self.assign(value, target)?;
                }
                return Ok(());
            }
            _ => {}
        }
        // Rows are made distinct before they are made others.
        self.settle(body)?;
        let columns = body.columns();
        let inner: Vec<String> = (0..columns.len()).map(|at| at.to_string()).collect();
        let mut items = Vec::new();
        for (at, (column, target)) in columns.iter().zip(targets).enumerate() {
            let value = Expression { modifier: column.modifier, ..Expression::new(format!("\"{at}\""), column.kind) };
            items.push((self.assign(&value, target)?, target.name.clone()));
        }
        let rest = format!(" FROM ({})", body.render(Some(&inner)));
        *body = Body { with: String::new(), core: Core::Select { distinct: false, items, rest }, tail: String::new() };
        Ok(())
    }

    /// A query with all its clauses.
    pub(super) fn query(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Result<Body, PgError> {
        refuse(query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some(), "this clause")?;
        refuse(!query.pipe_operators.is_empty(), "|>")?;
        let tables = self.tables.len();
        let with = self.with_clause(query, outer)?;
        let (core, scope) = self.set_expr(&query.body, outer)?;
        let mut body = Body { with, core, tail: String::new() };
        let terms = match query.order_by.as_ref().map(|order| &order.kind) {
            None => &[][..],
            Some(OrderByKind::Expressions(terms)) => terms,
            Some(OrderByKind::All(_)) => return Err(unsupported("ORDER BY ALL")),
        };
        if !terms.is_empty() {
            body.tail = format!(" ORDER BY {}", self.order(terms, &mut body, scope.as_ref())?);
        }
        self.limit(query, &mut body, outer)?;
        self.tables.truncate(tables);
        Ok(body)
    }

    fn limit(&mut self, query: &Query, body: &mut Body, outer: Option<&Scope<'_>>) -> Result<(), PgError> {
        let (mut limit, mut offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(_) => return Err(unsupported("this form of LIMIT")),
        };
        if let Some(fetch) = &query.fetch {
            refuse(fetch.with_ties || fetch.percent, "FETCH WITH TIES")?;
            limit = fetch.quantity.as_ref();
            refuse(limit.is_none(), "FETCH without a number")?;
        }
        let scope = Scope::within(outer);
        let mut count = |expr: Option<&Expr>| match expr {
            Some(Expr::Value(value)) if value.value == Value::Null => Ok(None),
            None => Ok(None),
            Some(expr) => {
                let value = self.expression(expr, &scope)?;
                let converted = self.convert(&value, Type::Int8, Context::Assignment)?;
                let sql = converted.ok_or_else(|| mismatch("argument of LIMIT must be type bigint"))?.sql;
                Ok::<_, PgError>(Some(sql))
            }
        };
        let (limit, skipped) = (count(limit.take())?, count(offset.take())?);
        if limit.is_some() || skipped.is_some() {
            body.tail += &format!(" LIMIT {}", limit.map_or("-1".into(), |limit| format!("coalesce({limit}, -1)")));
        }
        if let Some(skipped) = skipped {
            body.tail += &format!(" OFFSET coalesce({skipped}, 0)");
        }
        Ok(())
    }

    /// What stands before the query; its tables are there until somebody closes them.
    pub(super) fn with_clause(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Result<String, PgError> {
        let Some(with) = &query.with else { return Ok(String::new()) };
        let mut all = Vec::new();
        for cte in &with.cte_tables {
            refuse(cte.from.is_some(), "FROM in WITH")?;
            all.push(self.cte(cte, with.recursive, outer)?);
        }
        Ok(format!("WITH {}{} ", if with.recursive { "RECURSIVE " } else { "" }, all.join(", ")))
    }

    fn cte(&mut self, cte: &Cte, recursive: bool, outer: Option<&Scope<'_>>) -> Result<String, PgError> {
        let alias = folded(&cte.alias.name);
        let named: Vec<String> = cte.alias.columns.iter().map(|column| folded(&column.name)).collect();
        let rename = |columns: Vec<Column>| -> Vec<Column> {
            let one = |(at, column): (usize, Column)| match named.get(at) {
                Some(name) => Column { name: name.clone(), ..column },
                None => column,
            };
            columns.into_iter().enumerate().map(one).collect()
        };
        let mut body = match &*cte.query.body {
            // What it says of itself is of the types that it begins with.
            SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } if recursive => {
                let operator = if *set_quantifier == SetQuantifier::All { "UNION ALL" } else { "UNION" };
                let (core, _) = self.set_expr(left, outer)?;
                let mut left = Body { with: String::new(), core, tail: String::new() };
                self.settle(&mut left)?;
                let columns = rename(left.columns());
                self.tables.push(With { name: alias.clone(), names: unique(&columns), columns });
                let (core, _) = self.set_expr(right, outer)?;
                self.tables.pop();
                let right = Body { with: String::new(), core, tail: String::new() };
                let mut body =
                    Body { with: String::new(), core: self.combine(left, operator, right)?, tail: String::new() };
                let clauses = Query { with: None, ..(*cte.query).clone() };
                refuse(clauses.order_by.is_some(), "ORDER BY in a recursive query")?;
                self.limit(&clauses, &mut body, outer)?;
                body
            }
            _ => self.query(&cte.query, outer)?,
        };
        self.settle(&mut body)?;
        let columns = rename(body.columns());
        let names = unique(&columns);
        let list: Vec<String> = names.iter().map(|column| name(column)).collect();
        let sql = format!("{}({}) AS ({})", name(&alias), list.join(", "), body.render(Some(&names)));
        self.tables.push(With { name: alias, columns, names });
        Ok(sql)
    }

    fn set_expr<'s>(
        &mut self,
        body: &SetExpr,
        outer: Option<&'s Scope<'s>>,
    ) -> Result<(Core, Option<Scope<'s>>), PgError> {
        Ok(match body {
            SetExpr::Select(select) => {
                let (core, scope) = self.select(select, outer)?;
                (core, Some(scope))
            }
            SetExpr::Values(values) => (self.values(values, outer)?, None),
            SetExpr::Query(query) => {
                let inner = self.query(query, outer)?;
                if inner.with.is_empty() && inner.tail.is_empty() {
                    return Ok((inner.core, None));
                }
                (self.whole(inner)?, None)
            }
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let all = match set_quantifier {
                    SetQuantifier::All => " ALL",
                    SetQuantifier::None | SetQuantifier::Distinct => "",
                    _ => return Err(unsupported("BY NAME")),
                };
                let operator = match (op, all) {
                    (SetOperator::Union, "") => "UNION",
                    (SetOperator::Union, _) => "UNION ALL",
                    (SetOperator::Except, "") => "EXCEPT",
                    (SetOperator::Intersect, "") => "INTERSECT",
                    _ => return Err(unsupported(format!("{op}{all}"))),
                };
                let plain = |core| Body { with: String::new(), core, tail: String::new() };
                let left = plain(self.set_expr(left, outer)?.0);
                let right = plain(self.set_expr(right, outer)?.0);
                (self.combine(left, operator, right)?, None)
            }
            other => return Err(unsupported(format!("{other} within a query"))),
        })
    }

    /// A query with clauses of its own, as a table that another one selects from.
    fn whole(&mut self, mut body: Body) -> Result<Core, PgError> {
        self.settle(&mut body)?;
        let columns = body.columns();
        let inner: Vec<String> = (0..columns.len()).map(|at| at.to_string()).collect();
        let item = |(at, column): (usize, &Column)| {
            let value = Expression { modifier: column.modifier, ..Expression::new(format!("\"{at}\""), column.kind) };
            (value, column.name.clone())
        };
        let items = columns.iter().enumerate().map(item).collect();
        Ok(Core::Select { distinct: false, items, rest: format!(" FROM ({})", body.render(Some(&inner))) })
    }

    fn combine(&mut self, mut left: Body, operator: &'static str, mut right: Body) -> Result<Core, PgError> {
        let (ones, others) = (left.columns(), right.columns());
        let word = operator.split(' ').next().unwrap_or_default();
        if ones.len() != others.len() {
            let text = format!("each {word} query must have the same number of columns");
            return Err(PgError::new(sqlstate::SYNTAX, text));
        }
        for (at, (one, other)) in ones.iter().zip(&others).enumerate() {
            let common = super::resolve::common(&[one.kind, other.kind]).ok_or_else(|| {
                mismatch(format!("{word} types {} and {} cannot be matched", one.kind.name(), other.kind.name()))
            })?;
            if operator != "UNION ALL" {
                Self::comparable(common)?;
            }
            self.convert_column(&mut left, at, common, Context::Implicit)?;
            self.convert_column(&mut right, at, common, Context::Implicit)?;
        }
        Ok(Core::Set { left: Box::new(left), operator, right: Box::new(right) })
    }

    /// Rows of values, column by column of one type.
    fn values(&mut self, values: &Values, outer: Option<&Scope<'_>>) -> Result<Core, PgError> {
        let scope = Scope::within(outer);
        let mut rows = Vec::new();
        for row in &values.rows {
            let row: Vec<Expression> =
                row.content.iter().map(|expr| self.expression(expr, &scope)).collect::<Result<_, _>>()?;
            rows.push(row);
        }
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != width) {
            return Err(PgError::new(sqlstate::SYNTAX, "VALUES lists must all be the same length"));
        }
        for at in 0..width {
            let column: Vec<Expression> = rows.iter().map(|row| row[at].clone()).collect();
            // One that nobody knows may still be assigned to a column.
            if column.iter().all(|value| value.kind == Type::Unknown) {
                continue;
            }
            let column = self.unify(&column, "VALUES")?;
            rows.iter_mut().zip(column).for_each(|(row, value)| row[at] = value);
        }
        Ok(Core::Values(rows))
    }

    fn select<'s>(&mut self, select: &Select, outer: Option<&'s Scope<'s>>) -> Result<(Core, Scope<'s>), PgError> {
        refuse(select.top.is_some() || select.into.is_some(), "SELECT INTO")?;
        refuse(
            !select.lateral_views.is_empty() || select.prewhere.is_some() || select.qualify.is_some(),
            "this clause",
        )?;
        refuse(
            !select.connect_by.is_empty() || !select.cluster_by.is_empty() || !select.sort_by.is_empty(),
            "this clause",
        )?;
        refuse(select.exclude.is_some() || select.value_table_mode.is_some(), "this clause")?;
        let distinct = match &select.distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => return Err(unsupported("DISTINCT ON").clone()),
        };
        let mut scope = Scope::within(outer);
        let from = self.from(&select.from, &mut scope)?;
        let mut rest = if from.is_empty() { String::new() } else { format!(" FROM {from}") };
        let items = self.projection(&select.projection, &scope)?;
        if distinct {
            items.iter().try_for_each(|(value, _)| Self::comparable(value.kind))?;
        }
        if let Some(condition) = &select.selection {
            let value = self.expression(condition, &scope)?;
            rest += &format!(" WHERE {}", self.condition(&value, "WHERE")?);
        }
        rest += &self.group_by(&select.group_by, &items, &scope)?;
        if let Some(condition) = &select.having {
            let value = self.expression(condition, &scope)?;
            rest += &format!(" HAVING {}", self.condition(&value, "HAVING")?);
        }
        let mut windows = Vec::new();
        for window in &select.named_window {
            let NamedWindowExpr::WindowSpec(spec) = &window.1 else { return Err(unsupported("this window")) };
            windows.push(format!("{} AS {}", name(&folded(&window.0)), self.window(spec, &scope)?));
        }
        if !windows.is_empty() {
            rest += &format!(" WINDOW {}", windows.join(", "));
        }
        Ok((Core::Select { distinct, items, rest }, scope))
    }

    /// A list of what is selected or returned, with names.
    pub(super) fn projection(
        &mut self,
        items: &[SelectItem],
        scope: &Scope<'_>,
    ) -> Result<Vec<(Expression, String)>, PgError> {
        let mut all = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => all.push((self.expression(expr, scope)?, name_of(expr))),
                SelectItem::ExprWithAlias { expr, alias } => all.push((self.expression(expr, scope)?, folded(alias))),
                SelectItem::Wildcard(options) => {
                    no_options(options)?;
                    all.extend(star(scope, None)?);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options) => {
                    no_options(options)?;
                    all.extend(star(scope, Some(&super::object(table)?))?);
                }
                other => return Err(unsupported(other)),
            }
        }
        if all.is_empty() {
            return Err(unsupported("a list without columns"));
        }
        Ok(all)
    }

    fn group_by(
        &mut self,
        group_by: &GroupByExpr,
        items: &[(Expression, String)],
        scope: &Scope<'_>,
    ) -> Result<String, PgError> {
        let GroupByExpr::Expressions(terms, modifiers) = group_by else { return Err(unsupported("GROUP BY ALL")) };
        refuse(!modifiers.is_empty(), "this GROUP BY")?;
        let mut keys = Vec::new();
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
            // A number would be a place in the list.
            let is_constant = !matches!(key.origin, Origin::Value) || key.sql.bytes().all(|byte| byte.is_ascii_digit());
            keys.push(if is_constant { "''".into() } else { key.compared() });
        }
        Ok(if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) })
    }

    /// The terms behind ORDER BY: places and names of the list first, as in PostgreSQL.
    fn order(&mut self, terms: &[OrderByExpr], body: &mut Body, scope: Option<&Scope<'_>>) -> Result<String, PgError> {
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
                    let value = self.expression(&term.expr, scope)?;
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

/// One term, with its direction. PostgreSQL has NULLs behind all values, SQLite before them.
fn direct(term: &OrderByExpr, sql: &str, kind: Type, scope: Option<&Scope<'_>>) -> Result<String, PgError> {
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
    Ok(format!("{sql}{}{direction}{nulls}", kind.collation()))
}

/// A place in the list, if an expression is one.
fn ordinal(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(text, _) = &value.value else { return None };
    text.parse().ok()
}

fn item<'a>(items: &'a [(Expression, String)], place: usize, clause: &str) -> Result<&'a Expression, PgError> {
    let found = place.checked_sub(1).and_then(|at| items.get(at));
    let text = || format!("{clause} position {place} is not in select list");
    found.map(|(value, _)| value).ok_or_else(|| PgError::new("42P10", text()))
}

fn no_options(options: &WildcardAdditionalOptions) -> Result<(), PgError> {
    let is_plain = options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_alias.is_none();
    refuse(!is_plain, "an option of *")
}

/// All columns, or those of one table.
fn star(scope: &Scope<'_>, table: Option<&str>) -> Result<Vec<(Expression, String)>, PgError> {
    let sources: Vec<_> =
        scope.sources.iter().filter(|source| table.is_none_or(|table| source.alias == table)).collect();
    if sources.is_empty() {
        let text = match table {
            Some(table) => {
                return Err(PgError::new("42P01", format!("missing FROM-clause entry for table \"{table}\"")));
            }
            None => "SELECT * with no tables specified is not valid",
        };
        return Err(PgError::new(sqlstate::SYNTAX, text));
    }
    if let Some(open) = sources.iter().find(|source| source.is_open) {
        return Err(unsupported(format!("* of the view {}", open.alias))
            .hint("name its columns, or create it through the gateway: nobody has said what its columns are"));
    }
    let merged = scope.merged.iter().filter(|_| table.is_none());
    let own = sources.iter().flat_map(|source| &source.columns);
    let own = own.filter(|named| table.is_some() || !named.is_merged);
    let all = merged.chain(own).map(|named| {
        let value = Expression::new(named.sql.clone(), named.column.kind);
        (Expression { modifier: named.column.modifier, ..value }, named.column.name.clone())
    });
    Ok(all.collect())
}

/// What PostgreSQL calls a column that nobody has named.
fn name_of(expr: &Expr) -> String {
    known_name(expr).map_or_else(|| "?column?".into(), |(name, _)| name)
}

/// The name, and whether it is more than that of a type.
fn known_name(expr: &Expr) -> Option<(String, bool)> {
    let sure = |name: &str| Some((name.to_owned(), true));
    match expr {
        Expr::Identifier(ident) => Some((folded(ident), true)),
        Expr::CompoundIdentifier(parts) => parts.last().map(|ident| (folded(ident), true)),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => known_name(inner),
        Expr::Function(function) => super::object(&function.name).ok().map(|name| (name, true)),
        Expr::Cast { expr: inner, data_type, .. } => {
            known_name(inner).filter(|(_, is_sure)| *is_sure).or_else(|| Some((type_name(data_type)?, false)))
        }
        Expr::TypedString(typed) => Some((type_name(&typed.data_type)?, false)),
        Expr::Interval(_) => Some(("interval".into(), false)),
        Expr::Case { else_result, .. } => else_result
            .as_deref()
            .and_then(known_name)
            .filter(|(_, is_sure)| *is_sure)
            .or_else(|| Some(("case".into(), false))),
        Expr::Exists { negated: false, .. } => sure("exists"),
        Expr::Extract { .. } => sure("extract"),
        Expr::Ceil { .. } => sure("ceil"),
        Expr::Floor { .. } => sure("floor"),
        Expr::Position { .. } => sure("position"),
        Expr::Substring { shorthand, .. } => sure(if *shorthand { "substr" } else { "substring" }),
        Expr::AtTimeZone { .. } => sure("timezone"),
        Expr::Trim { trim_where, .. } => sure(match trim_where {
            None | Some(sqlparser::ast::TrimWhereField::Both) => "btrim",
            Some(sqlparser::ast::TrimWhereField::Leading) => "ltrim",
            Some(sqlparser::ast::TrimWhereField::Trailing) => "rtrim",
        }),
        Expr::Subquery(query) => match &*query.body {
            SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::UnnamedExpr(expr) => known_name(expr),
                SelectItem::ExprWithAlias { alias, .. } => Some((folded(alias), true)),
                _ => None,
            },
            SetExpr::Values(_) => sure("column1"),
            _ => None,
        },
        _ => None,
    }
}

fn type_name(named: &sqlparser::ast::DataType) -> Option<String> {
    let (kind, _) = super::value::data_type(named).ok()?;
    Some(
        match kind {
            Type::Bool => "bool",
            Type::Int2 => "int2",
            Type::Int4 => "int4",
            Type::Int8 => "int8",
            Type::Float4 => "float4",
            Type::Float8 => "float8",
            Type::Varchar => "varchar",
            Type::Char => "bpchar",
            Type::Time => "time",
            Type::Timestamp => "timestamp",
            Type::Timestamptz => "timestamptz",
            other => other.name(),
        }
        .into(),
    )
}
