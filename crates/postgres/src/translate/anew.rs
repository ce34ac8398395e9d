//! A table that is made anew because SQLite cannot change it: its definition is edited part by part, and its rows are
//! copied by [`Statement::rebuild`].

use super::define::{default, define, no_key};
use super::definition::{ColumnPart, Constraint, Definition, Kind, Named, not_understood, taken};
use super::names::name;
use super::refusal::unsupported;
use super::schema::Table;
use super::scope::Scope;
use super::translator::Translator;
use super::write::plain;
use crate::error::{PgError, sqlstate};
use crate::tokens::quote;
use bezant_sql::Statement;
use sqlparser::ast::{ColumnDef, ColumnOption, Expr, TableConstraint};
use std::collections::{BTreeMap, BTreeSet};

/// See the [module](self).
pub(super) struct Anew {
    /// The table as it is.
    pub(super) old: Table,
    /// The table with the columns that it will have.
    pub(super) new: Table,
    pub(super) definition: Definition,
    /// What columns get that do not keep their values, by their names.
    pub(super) values: BTreeMap<String, String>,
    /// Columns that there were not.
    added: BTreeSet<String>,
    /// Columns that must not be NULL from now on.
    required: BTreeSet<String>,
    /// Indexes that go.
    pub(super) indexes: BTreeSet<String>,
}

impl Anew {
    pub(super) fn new(table: Table, definition: Definition) -> Self {
        let (values, added, required, indexes) = Default::default();
        Self { new: table.clone(), old: table, definition, values, added, required, indexes }
    }

    /// What is executed first, and what makes the table.
    pub(super) fn finish(mut self) -> Result<(Vec<String>, Statement), PgError> {
        let table = &self.old.name;
        self.definition.pin(table)?;
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for part in self.definition.columns.iter().filter(|part| part.find(Kind::Generated).is_none()) {
            let quoted = name(&part.name);
            let value = match self.values.get(&part.name) {
                Some(value) => value.clone(),
                None if self.added.contains(&part.name) => continue,
                None => quoted.clone(),
            };
            values.push(if self.required.contains(&part.name) {
                let text = format!("column \"{}\" of relation \"{table}\" contains null values", part.name);
                format!("coalesce({value}, pg_raise('23502', {}))", quote(&text))
            } else {
                value
            });
            columns.push(quoted);
        }
        if columns.is_empty() {
            return Err(unsupported("a table of which no column stays"));
        }
        let first = self.indexes.iter().map(|index| format!("DROP INDEX IF EXISTS {}", name(index))).collect();
        let (columns, values) = (columns.join(", "), values.join(", "));
        Ok((first, Statement::rebuild(table, self.definition.render(), columns, values)))
    }

    /// The place of a column.
    pub(super) fn column(&self, column: &str) -> Result<usize, PgError> {
        let is = |part: &ColumnPart| part.name == column || part.name.to_lowercase() == column;
        let text = || format!("column \"{column}\" of relation \"{}\" does not exist", self.old.name);
        self.definition.columns.iter().position(is).ok_or_else(|| PgError::new("42703", text()))
    }

    fn named(&self) -> Vec<Named> {
        self.definition.named(&self.old.name)
    }

    fn constraint(&self, called: &str) -> Result<Named, PgError> {
        let text = || format!("constraint \"{called}\" of relation \"{}\" does not exist", self.old.name);
        self.named().into_iter().find(|named| named.name == called).ok_or_else(|| PgError::new("42704", text()))
    }

    /// Whether a column is the whole primary key.
    pub(super) fn is_key(&self, at: usize) -> bool {
        self.definition.key() == [self.definition.columns[at].name.clone()]
    }

    /// Whether a column numbers itself because it was declared so.
    pub(super) fn is_identity(&self, at: usize) -> bool {
        let key = self.definition.columns[at].find(Kind::PrimaryKey);
        key.is_some_and(|key| key.text.to_ascii_uppercase().contains("AUTOINCREMENT"))
    }

    pub(super) fn set_not_null(&mut self, at: usize) {
        let part = &mut self.definition.columns[at];
        if part.find(Kind::NotNull).is_none() {
            part.remove(Kind::Null);
            part.add(Kind::NotNull, "NOT NULL");
            self.required.insert(part.name.clone());
        }
    }

    pub(super) fn drop_not_null(&mut self, at: usize) -> Result<(), PgError> {
        let column = &self.definition.columns[at].name;
        if self.definition.key().contains(column) {
            return Err(PgError::new("42P16", format!("column \"{column}\" is in a primary key")));
        }
        self.definition.columns[at].remove(Kind::NotNull);
        self.required.remove(&self.definition.columns[at].name);
        Ok(())
    }

    /// Refuses to touch the default of a column that has none of the usual kind.
    fn check_default(&self, at: usize) -> Result<(), PgError> {
        let part = &self.definition.columns[at];
        let called = format!("column \"{}\" of relation \"{}\"", part.name, self.old.name);
        if part.find(Kind::Generated).is_some() {
            return Err(PgError::new(sqlstate::SYNTAX, format!("{called} is a generated column")));
        }
        let is_identity = self.is_identity(at);
        if is_identity {
            Err(unsupported(format!("another default of {called}, which numbers itself")))
        } else {
            Ok(())
        }
    }

    pub(super) fn drop_default(&mut self, at: usize) -> Result<(), PgError> {
        self.check_default(at)?;
        self.definition.columns[at].remove(Kind::Default);
        Ok(())
    }

    /// Has a column number itself, and take no number if that `is_always` so.
    pub(super) fn add_identity(&mut self, at: usize, is_always: bool) -> Result<(), PgError> {
        let part = &self.definition.columns[at];
        let called = format!("column \"{}\" of relation \"{}\"", part.name, self.old.name);
        if self.is_identity(at) {
            return Err(PgError::new("55000", format!("{called} is already an identity column")));
        }
        if part.find(Kind::Default).is_some() {
            return Err(PgError::new("55000", format!("{called} already has a default value")));
        }
        if self.new.columns[at].kind.bits().is_none() {
            return Err(PgError::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        if !self.is_key(at) {
            return Err(no_key(&part.name));
        }
        let key = self.named().into_iter().find(|named| named.constraint.kind == Kind::PrimaryKey);
        if let Some(key) = key {
            self.definition.list(key.place.column).remove(key.place.at);
        }
        let part = &mut self.definition.columns[at];
        part.declared = "INTEGER".into();
        part.is_always = is_always;
        part.add(Kind::PrimaryKey, "PRIMARY KEY AUTOINCREMENT");
        Ok(())
    }

    pub(super) fn rename_constraint(&mut self, old: &str, new: &str) -> Result<(), PgError> {
        let found = self.constraint(old).map_err(|_| {
            PgError::new("42704", format!("constraint \"{old}\" for table \"{}\" does not exist", self.old.name))
        })?;
        self.check_free(new)?;
        self.definition.at(found.place).name = Some(new.into());
        Ok(())
    }

    /// Whether a name is not yet that of a constraint.
    fn check_free(&self, called: &str) -> Result<(), PgError> {
        if self.named().iter().any(|named| named.name == called) {
            return Err(taken(called, &self.old.name));
        }
        Ok(())
    }
}

pub(super) fn depends(what: &str, detail: &str) -> PgError {
    PgError::new("2BP01", format!("cannot drop {what} because other objects depend on it"))
        .detail(format!("{detail} depends on it"))
        .hint("drop that first")
}

impl Translator<'_> {
    pub(super) fn add_column(
        &mut self,
        anew: &mut Anew,
        column: &ColumnDef,
        if_not_exists: bool,
    ) -> Result<(), PgError> {
        let defined = define(column)?;
        let own = &defined.column;
        if anew.column(&own.name).is_ok() {
            return if if_not_exists { Ok(()) } else { Err(already_there(&own.name, &anew.old)) };
        }
        let is_key = column.options.iter().any(|option| matches!(option.option, ColumnOption::PrimaryKey(_)));
        if defined.is_serial && !is_key {
            return Err(no_key(&own.name));
        }
        if is_key {
            only_key(anew)?;
        }
        anew.new.columns.push(own.clone());
        let text = self.column(column, &defined, is_key, is_key, &plain(&anew.new))?;
        let part = ColumnPart::parse(&text).ok_or_else(not_understood)?;
        let is_required = part.find(Kind::NotNull).is_some() || is_key && !defined.is_serial;
        if is_required && part.find(Kind::Default).is_none() && part.find(Kind::Generated).is_none() {
            anew.values.insert(own.name.clone(), "NULL".into());
            anew.required.insert(own.name.clone());
        }
        anew.added.insert(own.name.clone());
        anew.definition.columns.push(part);
        anew.definition.retyped();
        Ok(())
    }

    pub(super) fn drop_column(&mut self, anew: &mut Anew, column: &str, if_exists: bool) -> Result<(), PgError> {
        let at = match anew.column(column) {
            Err(_) if if_exists => return Ok(()),
            at => at?,
        };
        let table = anew.old.name.clone();
        let what = format!("column {column} of table {table}");
        if let Some(view) = self.schema.view_of(&table, column) {
            return Err(depends(&what, &format!("view {view}")));
        }
        let keys = anew.named();
        let mut keys = keys.iter().filter(|key| key.constraint.mentions(column));
        if let Some(other) = keys.find_map(|key| self.referrer_of(anew, &key.constraint, Some(column))) {
            return Err(depends(&what, &other));
        }
        let part = anew.definition.columns.remove(at);
        anew.new.columns.retain(|known| known.name != part.name);
        for other in &mut anew.definition.columns {
            if other.constraints.iter().any(|own| own.kind == Kind::Generated && own.mentions(&part.name)) {
                return Err(depends(&what, &format!("column {}", other.name)));
            }
            other.constraints.retain(|own| own.kind != Kind::Check || !own.mentions(&part.name));
        }
        anew.definition.constraints.retain(|own| !own.mentions(&part.name));
        anew.indexes.extend(anew.old.indexes_of(&part.name).map(|index| index.name.clone()));
        Ok(())
    }

    /// Whose foreign key needs this key. Those of a column that goes are no obstacle.
    fn referrer_of(&self, anew: &Anew, key: &Constraint, but: Option<&str>) -> Option<String> {
        if !matches!(key.kind, Kind::PrimaryKey | Kind::Unique) {
            return None;
        }
        let same = |columns: &[String]| {
            columns.len() == key.columns.len() && columns.iter().all(|column| key.mentions(column))
        };
        self.schema.referrers(&anew.old.name).find_map(|other| {
            let is_own = other.name == anew.old.name;
            let parsed = if is_own { Some(anew.definition.clone()) } else { Definition::parse(&other.sql) };
            let Some(definition) = parsed else { return Some(format!("table {}", other.name)) };
            let needs = |named: &&Named| {
                let goes = is_own && but.is_some_and(|column| named.constraint.mentions(column));
                let target = named.constraint.target().filter(|_| named.constraint.kind == Kind::ForeignKey);
                !goes
                    && target.is_some_and(|(table, columns)| {
                        let is_primary = columns.is_empty() && key.kind == Kind::PrimaryKey;
                        table.eq_ignore_ascii_case(&anew.old.name) && (is_primary || same(&columns))
                    })
            };
            let all = definition.named(&other.name);
            all.iter().find(needs).map(|named| format!("constraint {} on table {}", named.name, other.name))
        })
    }

    pub(super) fn add_constraint(&mut self, anew: &mut Anew, constraint: &TableConstraint) -> Result<(), PgError> {
        let text = self.constraint(constraint, &plain(&anew.new))?;
        let added = Constraint::parse(&text, None).ok_or_else(not_understood)?;
        if let Some(called) = &added.name {
            anew.check_free(called)?;
            let is_index = matches!(added.kind, Kind::PrimaryKey | Kind::Unique);
            if is_index && self.schema.has_relation(called) {
                return Err(PgError::new("42P07", format!("relation \"{called}\" already exists")));
            }
        }
        match added.kind {
            Kind::PrimaryKey => {
                only_key(anew)?;
                for column in &added.columns {
                    let at = anew.column(column)?;
                    anew.set_not_null(at);
                }
            }
            Kind::ForeignKey => self.check_reference(anew, &added)?,
            _ => {}
        }
        anew.definition.constraints.push(added);
        Ok(())
    }

    /// Whether a foreign key is of columns that there are, here and there.
    fn check_reference(&self, anew: &Anew, key: &Constraint) -> Result<(), PgError> {
        let none = |column: &str| {
            let text = format!("column \"{column}\" referenced in foreign key constraint does not exist");
            PgError::new("42703", text)
        };
        if let Some(column) = key.columns.iter().find(|column| anew.column(column).is_err()) {
            return Err(none(column));
        }
        let (other, columns) = key.target().ok_or_else(not_understood)?;
        let other = if other == anew.old.name { &anew.new } else { self.known(&other)? };
        if other.is_view {
            return Err(PgError::new("42809", format!("referenced relation \"{}\" is not a table", other.name)));
        }
        if let Some(column) = columns.iter().find(|column| other.columns.iter().all(|known| known.name != **column)) {
            return Err(none(column));
        }
        let keys = if other.name == anew.old.name { anew.definition.key().len() } else { other.keys() };
        if columns.is_empty() && keys == 0 {
            let text = format!("there is no primary key for referenced table \"{}\"", other.name);
            return Err(PgError::new("42704", text));
        }
        if key.columns.len() != if columns.is_empty() { keys } else { columns.len() } {
            let text = "number of referencing and referenced columns for foreign key disagree";
            return Err(PgError::new("42830", text));
        }
        Ok(())
    }

    pub(super) fn drop_constraint(&mut self, anew: &mut Anew, called: &str, if_exists: bool) -> Result<(), PgError> {
        let found = match anew.constraint(called) {
            Err(_) if if_exists => return Ok(()),
            found => found?,
        };
        if let Some(other) = self.referrer_of(anew, &found.constraint, None) {
            return Err(depends(&format!("constraint {called} on table {}", anew.old.name), &other));
        }
        if found.constraint.kind == Kind::PrimaryKey {
            let columns = found.constraint.columns.iter().map(|column| anew.column(column));
            for at in columns.collect::<Result<Vec<_>, _>>()? {
                if anew.is_identity(at) {
                    return Err(no_key(&anew.definition.columns[at].name));
                }
                anew.set_not_null(at);
            }
        }
        // A column before it may have got a NOT NULL.
        let found = anew.constraint(called)?;
        anew.definition.list(found.place.column).remove(found.place.at);
        Ok(())
    }

    pub(super) fn set_default(&mut self, anew: &mut Anew, at: usize, value: &Expr) -> Result<(), PgError> {
        anew.check_default(at)?;
        let given = self.expression(value, &Scope::default())?;
        let assigned = self.assign(&given, &anew.new.columns[at])?;
        let part = &mut anew.definition.columns[at];
        part.remove(Kind::Default);
        part.add(Kind::Default, format!("DEFAULT {}", default(&given, &assigned)?));
        Ok(())
    }
}

/// A table has one primary key.
fn only_key(anew: &Anew) -> Result<(), PgError> {
    if anew.definition.key().is_empty() {
        return Ok(());
    }
    let text = format!("multiple primary keys for table \"{}\" are not allowed", anew.old.name);
    Err(PgError::new("42P16", text))
}

pub(super) fn already_there(column: &str, table: &Table) -> PgError {
    PgError::new("42701", format!("column \"{column}\" of relation \"{}\" already exists", table.name))
}
