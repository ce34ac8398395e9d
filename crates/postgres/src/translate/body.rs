//! A query that is translated but for the types of its columns, which what is around it may decide.

use super::casts::Context;
use super::expression::Expression;
use super::kinds::Type;
use super::names::name;
use super::refusal::mismatch;
use super::schema::Column;
use super::translator::Translator;
use crate::error::PgError;

/// A query in SQLite's words, but for the last word about the types of its columns.
pub(super) struct Body {
    /// The WITH clause.
    pub(super) with: String,
    pub(super) core: Core,
    /// ORDER BY, LIMIT and OFFSET.
    pub(super) tail: String,
    /// It cannot have more than one row.
    pub(super) is_one: bool,
}

/// What a query is made of.
pub(super) enum Core {
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
    /// One without other clauses.
    pub(super) const fn plain(core: Core) -> Self {
        Self { with: String::new(), core, tail: String::new(), is_one: false }
    }

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
        // SQLite has no clauses behind VALUES.
        let is_part = !self.tail.is_empty() && matches!(self.core, Core::Values(_));
        format!("{}{}{}", self.with, self.core(names, is_part), self.tail)
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
        let kind = body.columns()[at].kind;
        let is_sorted = !body.tail.is_empty() || matches!(body.core, Core::Select { distinct: true, .. });
        if is_sorted && kind != Type::Unknown && kind != to {
            // By what it was.
            let is_one = body.is_one;
            let inner = std::mem::replace(body, Body::plain(Core::Values(Vec::new())));
            *body = Body { is_one, ..Body::plain(self.whole(inner)?) };
        }
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
        let is_plain = body.tail.is_empty();
        match &mut body.core {
            Core::Select { distinct: false, items, .. } if is_plain => {
                for ((value, _), target) in items.iter_mut().zip(targets) {
                    *value = self.assign(value, target)?;
                }
                return Ok(());
            }
            Core::Values(rows) if is_plain => {
                for (value, target) in rows.iter_mut().flat_map(|row| row.iter_mut().zip(targets)) {
                    *value = self.assign(value, target)?;
                }
                return Ok(());
            }
            _ => {}
        }
        // Rows are sorted, counted and made distinct before they are made others.
        self.settle(body)?;
        let columns = body.columns();
        let inner: Vec<String> = (0..columns.len()).map(|at| at.to_string()).collect();
        let mut items = Vec::new();
        for (at, (column, target)) in columns.iter().zip(targets).enumerate() {
            let value = Expression { modifier: column.modifier, ..Expression::new(format!("\"{at}\""), column.kind) };
            items.push((self.assign(&value, target)?, target.name.clone()));
        }
        let rest = format!(" FROM ({})", body.render(Some(&inner)));
        *body = Body::plain(Core::Select { distinct: false, items, rest });
        Ok(())
    }

    /// A query with clauses of its own, as a table that another one selects from.
    pub(super) fn whole(&mut self, mut body: Body) -> Result<Core, PgError> {
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
}
