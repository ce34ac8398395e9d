//! FROM: tables, subqueries and joins.

use super::expression::Expression;
use super::names::{folded, name, object};
use super::refusal::{refuse, unsupported};
use super::schema::Column;
use super::scope::{Named, Scope, Source};
use super::translator::{Translator, With};
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, Query, TableAlias, TableFactor, TableFunctionArgs, TableWithJoins,
};
use std::collections::BTreeSet;

impl Translator<'_> {
    /// The clause behind FROM; its tables come into the scope.
    pub(super) fn from(&mut self, tables: &[TableWithJoins], scope: &mut Scope<'_>) -> Result<String, PgError> {
        let mut all = Vec::new();
        for table in tables {
            all.push(self.joined(table, scope)?);
        }
        Ok(all.join(", "))
    }

    fn joined(&mut self, table: &TableWithJoins, scope: &mut Scope<'_>) -> Result<String, PgError> {
        let first = scope.sources.len();
        let mut sql = self.factor(&table.relation, scope)?;
        for join in &table.joins {
            refuse(join.global, "GLOBAL")?;
            let (words, constraint) = match &join.join_operator {
                JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => ("JOIN", constraint),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => ("LEFT JOIN", constraint),
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => ("RIGHT JOIN", constraint),
                JoinOperator::FullOuter(constraint) => ("FULL JOIN", constraint),
                JoinOperator::CrossJoin(constraint) => ("CROSS JOIN", constraint),
                _ => return Err(unsupported("this kind of join")),
            };
            let second = scope.sources.len();
            let right = self.factor(&join.relation, scope)?;
            let on = match constraint {
                JoinConstraint::None => String::new(),
                JoinConstraint::On(condition) => {
                    let value = self.expression(condition, scope)?;
                    format!(" ON {}", self.condition(&value, "JOIN/ON")?)
                }
                JoinConstraint::Using(names) => {
                    let names = names.iter().map(object).collect::<Result<Vec<_>, _>>()?;
                    self.by_name(&names, words, (first, second), scope)?
                }
                JoinConstraint::Natural => {
                    let names = common_names(&scope.sources[first..second], &scope.sources[second..]);
                    self.by_name(&names, words, (first, second), scope)?
                }
                JoinConstraint::UsingAlias(..) => return Err(unsupported("USING … AS")),
            };
            sql += &format!(" {words} {right}{on}");
        }
        Ok(sql)
    }

    /// The condition of a join by names; each of them stands for both columns from here on.
    fn by_name(
        &mut self,
        names: &[String],
        words: &str,
        (first, second): (usize, usize),
        scope: &mut Scope<'_>,
    ) -> Result<String, PgError> {
        let mut conditions = Vec::new();
        for name in names {
            let missing =
                || PgError::new("42703", format!("column \"{name}\" specified in USING clause does not exist"));
            let find = |sources: &[Source]| {
                let mut all =
                    sources.iter().flat_map(|source| &source.columns).filter(|named| named.column.name == *name);
                all.next().cloned()
            };
            let merged = scope.merged.iter().find(|merged| merged.column.name == *name).cloned();
            let left = merged.or_else(|| find(&scope.sources[first..second])).ok_or_else(missing)?;
            let right = find(&scope.sources[second..]).ok_or_else(missing)?;
            let value = |named: &Named| Expression::new(named.sql.clone(), named.column.kind);
            conditions.push(self.operate("=", &value(&left), &value(&right))?.sql);
            let both = self.unify(&[value(&left), value(&right)], "JOIN/USING")?;
            let sql = match words {
                "FULL JOIN" => format!("coalesce({}, {})", both[0].sql, both[1].sql),
                "RIGHT JOIN" => both[1].sql.clone(),
                _ => both[0].sql.clone(),
            };
            let column = Column { kind: both[0].kind, ..left.column.clone() };
            scope.merged.retain(|merged| merged.column.name != *name);
            scope.merged.push(Named { column, sql, is_merged: false });
            for named in scope.sources[first..].iter_mut().flat_map(|source| &mut source.columns) {
                named.is_merged |= named.column.name == *name;
            }
        }
        Ok(if conditions.is_empty() { String::new() } else { format!(" ON {}", conditions.join(" AND ")) })
    }

    fn factor(&mut self, factor: &TableFactor, scope: &mut Scope<'_>) -> Result<String, PgError> {
        match factor {
            TableFactor::Table {
                name: table,
                alias,
                args: None,
                with_hints,
                version: None,
                with_ordinality: false,
                partitions,
                json_path: None,
                sample: None,
                index_directives,
                inheritance: None,
            } => {
                refuse(!with_hints.is_empty() || !partitions.is_empty() || !index_directives.is_empty(), "a hint")?;
                self.table(&object(table)?, alias.as_ref(), scope)
            }
            TableFactor::Table {
                name: function,
                alias,
                args: Some(TableFunctionArgs { args, settings: None }),
                with_ordinality: false,
                ..
            }
            | TableFactor::Function { name: function, args, alias, with_ordinality: false, .. } => {
                self.set(function, args, alias.as_ref(), scope)
            }
            TableFactor::Derived { lateral, subquery, alias, sample: None } => {
                if *lateral {
                    self.check_lateral(subquery, scope)?;
                }
                let mut body = self.query(subquery, scope.outer)?;
                self.settle(&mut body)?;
                let Some(alias) = alias else {
                    return Err(PgError::new(sqlstate::SYNTAX, "subquery in FROM must have an alias")
                        .hint("For example, FROM (SELECT ...) [AS] foo."));
                };
                let columns = renamed(body.columns(), alias)?;
                let names = unique(&columns);
                let sql = format!("({}) AS {}", body.render(Some(&names)), name(&folded(&alias.name)));
                enter(Source::called(&folded(&alias.name), &columns, &names), scope)?;
                Ok(sql)
            }
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: false,
            } => self.unnest(alias.as_ref(), array_exprs, scope),
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                Ok(format!("({})", self.joined(table_with_joins, scope)?))
            }
            other => Err(unsupported(format!("{other} in FROM"))),
        }
    }

    /// LATERAL means nothing if the subquery is not about the tables before it. SQLite has no other.
    fn check_lateral(&mut self, subquery: &Query, scope: &Scope<'_>) -> Result<(), PgError> {
        let beside = self.query(subquery, Some(scope))?.render(None);
        if self.query(subquery, scope.outer).is_ok_and(|alone| alone.render(None) == beside) {
            return Ok(());
        }
        Err(unsupported("LATERAL of tables beside it")
            .hint("write a subquery in the list of columns, or a join with GROUP BY"))
    }

    fn unnest(
        &mut self,
        alias: Option<&TableAlias>,
        arrays: &[Expr],
        scope: &mut Scope<'_>,
    ) -> Result<String, PgError> {
        let mut body = self.query(&super::unnest::rows_of(arrays)?, scope.outer)?;
        self.settle(&mut body)?;
        let table = alias.map_or_else(|| "unnest".into(), |alias| folded(&alias.name));
        // One column is called as the table is, several as the function.
        let called = if arrays.len() == 1 { table.clone() } else { "unnest".into() };
        let mut columns = body.columns();
        columns.iter_mut().for_each(|column| column.name.clone_from(&called));
        if let Some(alias) = alias {
            columns = renamed(columns, alias)?;
        }
        let names = unique(&columns);
        let sql = format!("({}) AS {}", body.render(Some(&names)), name(&table));
        enter(Source::called(&table, &columns, &names), scope)?;
        Ok(sql)
    }

    fn table(&mut self, table: &str, alias: Option<&TableAlias>, scope: &mut Scope<'_>) -> Result<String, PgError> {
        let called = alias.map_or_else(|| table.to_owned(), |alias| folded(&alias.name));
        let with = self.tables.iter().rev().find(|with| with.name == table).cloned();
        let (real, columns, names, is_open) = match with {
            Some(With { name, columns, names }) => (name, columns, names, false),
            None => {
                let found = self.known(table)?;
                let names = found.columns.iter().map(|column| column.name.clone()).collect();
                (found.name.clone(), found.columns.clone(), names, found.is_view && found.columns.is_empty())
            }
        };
        if let Some(alias) = alias.filter(|alias| !alias.columns.is_empty()) {
            let columns = renamed(columns, alias)?;
            let others = unique(&columns);
            let list: Vec<String> =
                names.iter().zip(&others).map(|(own, other)| format!("{} AS {}", name(own), name(other))).collect();
            enter(Source::called(&called, &columns, &others), scope)?;
            return Ok(format!("(SELECT {} FROM {}) AS {}", list.join(", "), name(&real), name(&called)));
        }
        enter(Source { is_open, ..Source::called(&called, &columns, &names) }, scope)?;
        Ok(if called == real { name(&real) } else { format!("{} AS {}", name(&real), name(&called)) })
    }

    /// A table of the schema.
    pub(super) fn known(&self, table: &str) -> Result<&super::schema::Table, PgError> {
        let none = || PgError::new("42P01", format!("relation \"{table}\" does not exist"));
        self.schema.table(table).ok_or_else(none)
    }

    /// Whether an expression of a FROM that is none is one: for DELETE … USING.
    pub(super) fn exists(
        &mut self,
        tables: &[TableWithJoins],
        condition: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<String, PgError> {
        let mut inner = Scope::within(Some(scope));
        let from = self.from(tables, &mut inner)?;
        let condition = match condition {
            Some(expr) => {
                let value = self.expression(expr, &inner)?;
                format!(" WHERE {}", self.condition(&value, "WHERE")?)
            }
            None => String::new(),
        };
        Ok(format!("EXISTS (SELECT 1 FROM {from}{condition})"))
    }
}

pub(super) fn enter(source: Source, scope: &mut Scope<'_>) -> Result<(), PgError> {
    if scope.sources.iter().any(|known| known.alias == source.alias) {
        let text = format!("table name \"{}\" specified more than once", source.alias);
        return Err(PgError::new("42712", text));
    }
    scope.sources.push(source);
    Ok(())
}

/// Columns with the names that an alias gives to the first of them.
pub(super) fn renamed(columns: Vec<Column>, alias: &TableAlias) -> Result<Vec<Column>, PgError> {
    if alias.columns.len() > columns.len() {
        let text = format!(
            "table \"{}\" has {} columns available but {} columns specified",
            folded(&alias.name),
            columns.len(),
            alias.columns.len()
        );
        return Err(PgError::new("42P10", text));
    }
    refuse(alias.columns.iter().any(|column| column.data_type.is_some()), "a type in an alias")?;
    let one = |(at, column): (usize, Column)| match alias.columns.get(at) {
        Some(given) => Column { name: folded(&given.name), ..column },
        None => column,
    };
    Ok(columns.into_iter().enumerate().map(one).collect())
}

/// Names by which SQLite can tell columns apart: it would take the first of two with one name.
pub(super) fn unique(columns: &[Column]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let one = |(at, column): (usize, &Column)| {
        let is_new = seen.insert(column.name.to_lowercase());
        if is_new { column.name.clone() } else { format!("{} #{at}", column.name) }
    };
    columns.iter().enumerate().map(one).collect()
}

fn common_names(left: &[Source], right: &[Source]) -> Vec<String> {
    let names = |sources: &[Source]| -> Vec<String> {
        sources.iter().flat_map(|source| &source.columns).map(|named| named.column.name.clone()).collect()
    };
    let others: BTreeSet<String> = names(right).into_iter().collect();
    let mut seen = BTreeSet::new();
    names(left).into_iter().filter(|name| others.contains(name) && seen.insert(name.clone())).collect()
}
