//! Queries: SELECT, VALUES, and what is made of several of them.

use super::body::{Body, Core};
use super::casts::Context;
use super::expression::Expression;
use super::from::unique;
use super::kinds::Type;
use super::names::{folded, name, object};
use super::naming::name_of;
use super::refusal::{mismatch, refuse, unsupported};
use super::schema::Column;
use super::scope::Scope;
use super::translator::{Translator, With};
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{
    Cte, Distinct, Expr, NamedWindowExpr, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, SetOperator, SetQuantifier, Values, WildcardAdditionalOptions,
};

/// What is selected, with names.
type Items = Vec<(Expression, String)>;

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

    /// A query with all its clauses.
    pub(super) fn query(&mut self, query: &Query, outer: Option<&Scope<'_>>) -> Result<Body, PgError> {
        refuse(query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some(), "this clause")?;
        refuse(!query.pipe_operators.is_empty(), "|>")?;
        let tables = self.tables.len();
        let with = self.with_clause(query, outer)?;
        let terms = match query.order_by.as_ref().map(|order| &order.kind) {
            None => &[][..],
            Some(OrderByKind::Expressions(terms)) => terms,
            Some(OrderByKind::All(_)) => return Err(unsupported("ORDER BY ALL")),
        };
        let mut body = match on(&query.body) {
            Some((select, keys)) => Body { with, ..self.distinct_on(select, keys, terms, outer)? },
            None => {
                let (core, scope) = self.set_expr(&query.body, outer)?;
                let is_one = scope.as_ref().is_some_and(Scope::is_one_row);
                let mut body = Body { with, is_one, ..Body::plain(core) };
                if !terms.is_empty() {
                    body.tail = format!(" ORDER BY {}", self.order(terms, &mut body, scope.as_ref())?);
                }
                body
            }
        };
        self.limit(query, &mut body, outer)?;
        self.tables.truncate(tables);
        Ok(body)
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
                let mut left = Body::plain(core);
                self.settle(&mut left)?;
                let columns = rename(left.columns());
                self.tables.push(With { name: alias.clone(), names: unique(&columns), columns });
                let (core, _) = self.set_expr(right, outer)?;
                self.tables.pop();
                let right = Body::plain(core);
                let mut body = Body::plain(self.combine(left, operator, right)?);
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
                if let Some((select, keys)) = on(body) {
                    return Ok((self.distinct_on(select, keys, &[], outer)?.core, None));
                }
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
                let plain = |core| Body::plain(core);
                let left = plain(self.set_expr(left, outer)?.0);
                let right = plain(self.set_expr(right, outer)?.0);
                (self.combine(left, operator, right)?, None)
            }
            other => return Err(unsupported(format!("{other} within a query"))),
        })
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

    pub(super) fn select<'s>(
        &mut self,
        select: &Select,
        outer: Option<&'s Scope<'s>>,
    ) -> Result<(Core, Scope<'s>), PgError> {
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
        let distinct = select.distinct == Some(Distinct::Distinct);
        let mut scope = Scope::within(outer);
        let from = self.from(&select.from, &mut scope)?;
        let mut rest = if from.is_empty() { String::new() } else { format!(" FROM {from}") };
        if let Some(condition) = &select.selection {
            let value = self.expression(condition, &scope)?;
            rest += &format!(" WHERE {}", self.condition(&value, "WHERE")?);
        }
        if scope.aggregates.get() {
            return Err(PgError::new("42803", "aggregate functions are not allowed in WHERE"));
        }
        let (items, loose) = self.projection(&select.projection, &scope)?;
        if distinct {
            items.iter().try_for_each(|(value, _)| Self::comparable(value.kind))?;
        }
        rest += &self.group_by(&select.group_by, &items, &scope)?;
        scope.loose.take();
        let having = match &select.having {
            None => None,
            Some(condition) => {
                let value = self.expression(condition, &scope)?;
                Some(self.condition(&value, "HAVING")?)
            }
        };
        if scope.keys.borrow().is_none() && (scope.aggregates.get() || having.is_some()) {
            scope.group(Vec::new());
        }
        for ((value, _), loose) in items.iter().zip(&loose) {
            scope.check_grouped(&value.sql, loose)?;
        }
        if let Some(having) = having {
            scope.check_grouped(&having, &scope.loose.take())?;
            rest += &format!(" HAVING {having}");
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

    /// A list of what is selected or returned, with names; and the columns that each names outside of aggregates.
    pub(super) fn projection(
        &mut self,
        items: &[SelectItem],
        scope: &Scope<'_>,
    ) -> Result<(Items, Vec<Vec<String>>), PgError> {
        let (mut all, mut loose) = (Vec::new(), Vec::new());
        for item in items {
            scope.loose.take();
            match item {
                SelectItem::UnnamedExpr(expr) => all.push((self.expression(expr, scope)?, name_of(expr))),
                SelectItem::ExprWithAlias { expr, alias } => all.push((self.expression(expr, scope)?, folded(alias))),
                SelectItem::Wildcard(options) => {
                    no_options(options)?;
                    all.extend(star(scope, None)?);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options) => {
                    no_options(options)?;
                    all.extend(star(scope, Some(&object(table)?))?);
                }
                other => return Err(unsupported(other)),
            }
            // Each column of a star stands for itself.
            while loose.len() + 1 < all.len() {
                loose.push(vec![all[loose.len()].0.sql.clone()]);
            }
            if loose.len() < all.len() {
                let is_star = matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
                let own = if is_star { vec![all[loose.len()].0.sql.clone()] } else { scope.loose.take() };
                loose.push(own);
            }
        }
        if all.is_empty() {
            return Err(unsupported("a list without columns"));
        }
        Ok((all, loose))
    }
}

/// A SELECT DISTINCT ON, and what it is distinct by.
fn on(body: &SetExpr) -> Option<(&Select, &[Expr])> {
    match body {
        SetExpr::Select(select) => match &select.distinct {
            Some(Distinct::On(keys)) => Some((select, keys)),
            _ => None,
        },
        _ => None,
    }
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
