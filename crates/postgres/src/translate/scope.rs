//! Which columns an expression can name.

use super::expression::Expression;
use super::kinds::Type;
use super::schema::Column;
use crate::error::PgError;
use std::cell::{Cell, RefCell};

/// A column that can be named, and how SQLite names it.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) column: Column,
    pub(super) sql: String,
    /// Another one stands for both after a join by name.
    pub(super) is_merged: bool,
}

/// A table of a FROM clause.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    /// What it is called here.
    pub(super) alias: String,
    pub(super) columns: Vec<Named>,
    /// Its columns are not known: it is a view that the gateway has not made.
    pub(super) is_open: bool,
}

impl Source {
    /// A table, whose columns have names of their own.
    pub(super) fn new(alias: &str, columns: &[Column]) -> Self {
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        Self::called(alias, columns, &names)
    }

    /// A table or a subquery, whose columns SQLite calls by these names.
    pub(super) fn called(alias: &str, columns: &[Column], names: &[String]) -> Self {
        let prefix = super::name(alias);
        let named = |(column, name): (&Column, &String)| Named {
            sql: format!("{prefix}.{}", super::name(name)),
            column: column.clone(),
            is_merged: false,
        };
        Self { alias: alias.into(), columns: columns.iter().zip(names).map(named).collect(), is_open: false }
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Scope<'a> {
    pub(super) sources: Vec<Source>,
    /// Columns that stand for two of the same name, after a join by name.
    pub(super) merged: Vec<Named>,
    /// That of the query around this one.
    pub(super) outer: Option<&'a Self>,
    /// Columns that were named outside of aggregates, as SQLite names them.
    pub(super) loose: RefCell<Vec<String>>,
    /// Whether an aggregate was called.
    pub(super) aggregates: Cell<bool>,
    /// The calls of aggregates, as SQLite is told them: columns in there need not be grouped by.
    pub(super) folded: RefCell<Vec<String>>,
    /// What rows are grouped by, if they are.
    pub(super) keys: RefCell<Option<Vec<String>>>,
}

impl<'a> Scope<'a> {
    /// One within another.
    pub(super) fn within(outer: Option<&'a Self>) -> Self {
        Self { outer, ..Self::default() }
    }

    /// The column with a name, and perhaps a table.
    pub(super) fn column(&self, table: Option<&str>, name: &str) -> Result<Expression, PgError> {
        if let Some(found) = self.find(table, name)? {
            return Ok(found);
        }
        if let Some(table) = table {
            if !self.has(table) {
                let text = format!("missing FROM-clause entry for table \"{table}\"");
                return Err(PgError::new("42P01", text));
            }
            return Err(PgError::new("42703", format!("column {table}.{name} does not exist")));
        }
        Err(PgError::new("42703", format!("column \"{name}\" does not exist")))
    }

    fn has(&self, table: &str) -> bool {
        let here = self.sources.iter().any(|source| source.alias == table);
        here || self.outer.is_some_and(|outer| outer.has(table))
    }

    /// The same; `None`: there is none, here or further out.
    pub(super) fn find(&self, table: Option<&str>, name: &str) -> Result<Option<Expression>, PgError> {
        if let Some(found) = self.find_here(table, name)? {
            return Ok(Some(found));
        }
        self.outer.map_or(Ok(None), |outer| outer.find(table, name))
    }

    /// The same, only here.
    pub(super) fn find_here(&self, table: Option<&str>, name: &str) -> Result<Option<Expression>, PgError> {
        let found = self.look_here(table, name)?;
        if let Some(found) = &found {
            self.loose.borrow_mut().push(found.sql.clone());
        }
        Ok(found)
    }

    /// Whether a query of these tables has one row: it has no tables, or makes one row of all.
    pub(super) fn is_one_row(&self) -> bool {
        self.sources.is_empty() || self.keys.borrow().as_ref().is_some_and(Vec::is_empty)
    }

    /// Says what rows are grouped by: the columns of a table whose whole primary key is there belong to it.
    pub(super) fn group(&self, mut keys: Vec<String>) {
        for source in &self.sources {
            let mut parts = source.columns.iter().filter(|named| named.column.is_key).peekable();
            if parts.peek().is_some() && parts.all(|part| keys.contains(&part.sql)) {
                keys.extend(source.columns.iter().map(|named| named.sql.clone()));
            }
        }
        *self.keys.borrow_mut() = Some(keys);
    }

    /// Whether an expression is the same for all rows of a group. It names these columns outside of aggregates.
    pub(super) fn check_grouped(&self, sql: &str, loose: &[String]) -> Result<(), PgError> {
        let keys = self.keys.borrow();
        let Some(keys) = keys.as_ref().filter(|_| !loose.is_empty()) else { return Ok(()) };
        let folded = self.folded.borrow();
        let mut known: Vec<&String> = folded.iter().chain(keys).collect();
        // What is longer may have what is shorter in it.
        known.sort_by_key(|known| std::cmp::Reverse(known.len()));
        let rest = known.into_iter().fold(sql.to_owned(), |rest, known| rest.replace(known.as_str(), ""));
        let Some(column) = loose.iter().find(|column| rest.contains(column.as_str())) else { return Ok(()) };
        let name = column.replace('"', "");
        let text = format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function");
        Err(PgError::new("42803", text))
    }

    fn look_here(&self, table: Option<&str>, name: &str) -> Result<Option<Expression>, PgError> {
        let expression = |named: &Named| Expression {
            modifier: named.column.modifier,
            ..Expression::new(named.sql.clone(), named.column.kind)
        };
        if table.is_none()
            && let Some(merged) = self.merged.iter().find(|merged| merged.column.name == name)
        {
            return Ok(Some(expression(merged)));
        }
        let sources = || self.sources.iter().filter(|source| table.is_none_or(|table| source.alias == table));
        let mut all = sources()
            .flat_map(|source| &source.columns)
            .filter(|named| (table.is_some() || !named.is_merged) && is_called(named, name));
        if let Some(found) = all.next() {
            return match all.next() {
                None => Ok(Some(expression(found))),
                Some(_) => Err(PgError::new("42702", format!("column reference \"{name}\" is ambiguous"))),
            };
        }
        let open = sources().find(|source| source.is_open);
        Ok(open
            .map(|source| Expression::new(format!("{}.{}", super::name(&source.alias), super::name(name)), Type::Any)))
    }

    /// Whether SQLite need not be told where NULL stands among the values of a column.
    pub(super) fn is_never_null(&self, sql: &str) -> bool {
        let all = || self.sources.iter().flat_map(|source| &source.columns);
        // An outer join makes NULLs of its own.
        self.sources.len() == 1 && all().any(|named| named.sql == sql && named.column.not_null)
    }
}

/// SQLite does not tell upper from lower case in names; tables that PostgreSQL would call otherwise may be there.
fn is_called(named: &Named, name: &str) -> bool {
    named.column.name == name || named.column.name.to_lowercase() == name
}
