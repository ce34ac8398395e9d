//! ALTER COLUMN … TYPE: values, defaults and constraints of a column become those of another type.

use super::anew::Anew;
use super::casts::Context;
use super::define::work_out;
use super::definition::{ColumnPart, Kind};
use super::expression::Expression;
use super::kinds::Type;
use super::names::name;
use super::refusal::{mismatch, unsupported};
use super::schema::Column;
use super::translator::Translator;
use super::type_names::data_type;
use super::write::plain;
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{DataType, Expr};

impl Anew {
    /// What stands in the way of another type: what was translated by the old one.
    fn check_type_is_free(&self, at: usize, alike: &dyn Fn(&str) -> bool) -> Result<(), PgError> {
        let column = &self.definition.columns[at].name;
        let in_the_way = |what: String| {
            Err(unsupported(format!("another type of the column {column}, which {what} depends on"))
                .hint("drop that first, and create it again"))
        };
        for part in &self.definition.columns {
            let own = part.constraints.iter().filter(|constraint| !self.definition.is_of_type(part, constraint));
            let mut own = own.filter(|own| matches!(own.kind, Kind::Generated | Kind::Check) && !alike(&own.text));
            if own.any(|own| own.mentions(column)) {
                return in_the_way(format!("a CHECK or the value of column {}", part.name));
            }
        }
        let mut checks = self.definition.constraints.iter().filter(|own| own.kind == Kind::Check && !alike(&own.text));
        if checks.any(|own| own.mentions(column)) {
            return in_the_way("a CHECK".into());
        }
        match self.old.indexes_of(column).find(|index| !index.is_plain && !self.indexes.contains(&index.name)) {
            Some(index) => in_the_way(format!("the index {}", index.name)),
            None => Ok(()),
        }
    }
}

impl Translator<'_> {
    pub(super) fn set_type(
        &mut self,
        anew: &mut Anew,
        at: usize,
        data_type_: &DataType,
        using: Option<&Expr>,
    ) -> Result<(), PgError> {
        let (kind, modifier) = data_type(data_type_)?;
        let part = anew.definition.columns[at].clone();
        let old = anew.definition.column_of(&part);
        let new = Column { kind, modifier, ..old.clone() };
        if let Some(view) = self.schema.view_of(&anew.old.name, &part.name) {
            let text = "cannot alter type of a column used by a view or rule";
            return Err(PgError::new(sqlstate::UNSUPPORTED, text).detail(format!("view {view} depends on it")));
        }
        if part.find(Kind::Generated).is_some() {
            return Err(unsupported("another type of a generated column"));
        }
        let value = self.converted(anew, &old, &new, using)?;
        anew.values.insert(part.name.clone(), value);
        let default = match part.find(Kind::Default) {
            Some(default) => Some(self.default_as(&default.text, &old, &new)?),
            None => None,
        };
        if old.kind != kind {
            let is_text = |kind| matches!(kind, Type::Text | Type::Varchar);
            let are_texts = is_text(old.kind) && is_text(kind);
            let are_integers = old.kind.bits().is_some() && kind.bits().is_some();
            // Without a function of PostgreSQL's nothing in an expression depends on how wide its integers are.
            anew.check_type_is_free(at, &|text| are_texts || are_integers && !text.contains("pg_"))?;
        }
        let is_identity = anew.is_identity(at);
        if is_identity && kind.bits().is_none() {
            return Err(PgError::new("22023", "identity column type must be smallint, integer, or bigint"));
        }
        let numbered_itself = anew.is_key(at) && part.declared.eq_ignore_ascii_case("integer");
        let type_check = ColumnPart::type_check(&old);
        let part = &mut anew.definition.columns[at];
        part.constraints.retain(|own| own.name.is_some() || type_check.as_ref().is_none_or(|old| old.text != own.text));
        part.remove(Kind::Collate);
        part.remove(Kind::Default);
        part.declared = if is_identity { "INTEGER".into() } else { new.declaration() };
        if !kind.collation().is_empty() {
            part.add(Kind::Collate, kind.collation().trim());
        }
        if let Some(default) = default {
            part.add(Kind::Default, format!("DEFAULT {default}"));
        }
        part.constraints.extend(ColumnPart::type_check(&new));
        if numbered_itself && !part.declared.eq_ignore_ascii_case("integer") && part.find(Kind::NotNull).is_none() {
            part.add(Kind::NotNull, "NOT NULL");
        }
        let (quoted, known) = (name(&new.name), new.name.clone());
        for own in anew.definition.constraints.iter_mut().filter(|own| own.mentions(&known)) {
            own.text = own.text.replace(&format!("{quoted}{}", old.kind.collation()), &quoted);
        }
        anew.definition.retyped();
        anew.new.columns[at] = Column { kind, modifier, ..anew.new.columns[at].clone() };
        Ok(())
    }

    /// What a column's values become.
    fn converted(&mut self, anew: &Anew, old: &Column, new: &Column, using: Option<&Expr>) -> Result<String, PgError> {
        let (given, what, hint) = match using {
            Some(using) => {
                let given = self.expression(using, &plain(&anew.old))?;
                (given, "result of USING clause for column", "You might need to add an explicit cast.".into())
            }
            None => {
                let own = Expression { modifier: old.modifier, ..Expression::new(name(&old.name), old.kind) };
                let hint = format!("You might need to specify \"USING {}::{}\".", old.name, new.kind.name());
                (own, "column", hint)
            }
        };
        if self.convert(&given, new.kind, Context::Assignment)?.is_none() {
            let (column, kind) = (&old.name, new.kind.name());
            return Err(mismatch(format!("{what} \"{column}\" cannot be cast automatically to type {kind}")).hint(hint));
        }
        Ok(self.assign(&given, new)?.sql)
    }

    /// A default for a column of another type.
    fn default_as(&mut self, text: &str, old: &Column, new: &Column) -> Result<String, PgError> {
        let sql = text.get("DEFAULT".len()..).unwrap_or_default().trim();
        if old.kind == new.kind && old.modifier == new.modifier || sql.eq_ignore_ascii_case("null") {
            return Ok(sql.into());
        }
        let given = Expression::new(sql, old.kind);
        if self.convert(&given, new.kind, Context::Assignment)?.is_none() {
            let (column, kind) = (&old.name, new.kind.name());
            let text = format!("default for column \"{column}\" cannot be cast automatically to type {kind}");
            return Err(mismatch(text));
        }
        let assigned = self.assign(&given, new)?.sql;
        if sql.starts_with('(') { Ok(format!("({assigned})")) } else { work_out(&assigned) }
    }
}
