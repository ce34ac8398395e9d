//! A write in a WITH clause whose rows are selected: `WITH x AS (INSERT … RETURNING a, b) SELECT b FROM x`.
//!
//! SQLite has no such tables. Where the rows are selected as they are, the write with another RETURNING gives the same.

use super::names::{folded, object};
use super::naming::name_of;
use super::refusal::{refuse, unsupported};
use super::translator::Translator;
use crate::error::PgError;
use sqlparser::ast::{
    Cte, Expr, GroupByExpr, Ident, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement,
    TableFactor,
};

impl Translator<'_> {
    /// The write that a query is, with what it returns, behind the tables of the WITH clause that it may use; `None`:
    /// it is none.
    pub(super) fn returned(&mut self, query: &Query) -> Result<Option<Query>, PgError> {
        let Some(with) = &query.with else { return Ok(None) };
        let writes = |cte: &Cte| {
            !matches!(*cte.query.body, SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Query(_))
                && written(&cte.query.body).is_some()
        };
        let Some(at) = with.cte_tables.iter().position(writes) else { return Ok(None) };
        let cte = &with.cte_tables[at];
        let others = || {
            unsupported("a write in WITH, unless its rows are selected as they are")
                .hint("write first, with RETURNING, and use the rows in the next statement of a transaction")
        };
        let is_last = at + 1 == with.cte_tables.len();
        let is_plain = query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
        let SetExpr::Select(select) = &*query.body else { return Err(others()) };
        if !is_last || !is_plain || !cte.alias.columns.is_empty() || !selects_from(select, &folded(&cte.alias.name))? {
            return Err(others());
        }
        refuse(query.for_clause.is_some(), "this clause")?;
        let mut statement = written(&cte.query.body).ok_or_else(others)?.clone();
        let Some(returning) = returning(&mut statement) else {
            let text = format!("WITH query \"{}\" does not have a RETURNING clause", folded(&cte.alias.name));
            return Err(PgError::new("0A000", text));
        };
        let mut list = Vec::new();
        for item in &select.projection {
            list.extend(selected(item, returning).ok_or_else(others)??);
        }
        *returning = list;
        let mut with = with.clone();
        with.cte_tables.pop();
        let body = Box::new(match &statement {
            Statement::Insert(_) => SetExpr::Insert(statement),
            Statement::Update(_) => SetExpr::Update(statement),
            _ => SetExpr::Delete(statement),
        });
        let with = Some(with).filter(|with| !with.cte_tables.is_empty());
        Ok(Some(Query { with, body, ..query.clone() }))
    }
}

fn written(body: &SetExpr) -> Option<&Statement> {
    match body {
        SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => Some(statement),
        _ => None,
    }
}

fn returning(statement: &mut Statement) -> Option<&mut Vec<SelectItem>> {
    match statement {
        Statement::Insert(insert) => insert.returning.as_mut(),
        Statement::Update(update) => update.returning.as_mut(),
        Statement::Delete(delete) => delete.returning.as_mut(),
        _ => None,
    }
}

/// Whether a SELECT is a list of columns of this table, and no more.
fn selects_from(select: &Select, table: &str) -> Result<bool, PgError> {
    let [from] = &select.from[..] else { return Ok(false) };
    let TableFactor::Table { name, args: None, .. } = &from.relation else { return Ok(false) };
    let groups =
        !matches!(&select.group_by, GroupByExpr::Expressions(keys, more) if keys.is_empty() && more.is_empty());
    let is_more = select.distinct.is_some() || select.selection.is_some() || select.having.is_some() || groups;
    Ok(from.joins.is_empty() && object(name)? == table && !is_more && select.into.is_none() && select.top.is_none())
}

/// What is returned for an item of the list; `None`: it is no column.
fn selected(item: &SelectItem, returning: &[SelectItem]) -> Option<Result<Vec<SelectItem>, PgError>> {
    let (column, alias) = match item {
        SelectItem::Wildcard(_) => return Some(Ok(returning.to_vec())),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), _) => {
            return Some(Ok(returning.to_vec()));
        }
        SelectItem::UnnamedExpr(expr) => (column(expr)?, None),
        SelectItem::ExprWithAlias { expr, alias } => (column(expr)?, Some(alias.clone())),
        _ => return None,
    };
    let alias = alias.unwrap_or_else(|| Ident::with_quote('"', folded(&column)));
    let mut found = Vec::new();
    for item in returning {
        match item {
            SelectItem::UnnamedExpr(expr) if name_of(expr) == folded(&column) => found.push(expr.clone()),
            SelectItem::ExprWithAlias { expr, alias } if folded(alias) == folded(&column) => found.push(expr.clone()),
            SelectItem::Wildcard(_) => found.push(Expr::Identifier(column.clone())),
            _ => {}
        }
    }
    match found.pop() {
        Some(expr) if found.is_empty() => Some(Ok(vec![SelectItem::ExprWithAlias { expr, alias }])),
        Some(_) => None,
        None => Some(Err(PgError::new("42703", format!("column \"{}\" does not exist", folded(&column))))),
    }
}

/// The column that an expression is.
fn column(expr: &Expr) -> Option<Ident> {
    match expr {
        Expr::Identifier(ident) => Some(ident.clone()),
        Expr::CompoundIdentifier(parts) => parts.last().cloned(),
        _ => None,
    }
}
