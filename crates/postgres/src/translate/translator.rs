//! A statement that is being translated, and what is known of it so far.

use super::kinds::Type;
use super::schema::{Column, Schema};
use crate::tag::Tag;
use bezant_sql::Value;

/// One statement under way.
pub(crate) struct Translator<'a> {
    pub(super) schema: &'a Schema,
    /// The session's time zone.
    pub(super) zone: &'a str,
    /// What is known of the parameters' types.
    pub(super) parameters: Vec<Type>,
    /// The tables of the WITH clauses that are open, the innermost last.
    pub(super) tables: Vec<With>,
    /// What is done before the statement.
    pub(super) first: Vec<String>,
    /// The values of the statement, if it changes the schema.
    pub(super) values: Vec<Value>,
    /// What is worth knowing about it.
    pub(super) notice: Option<&'static str>,
    /// How its end is told.
    pub(super) tag: Option<Tag>,
    /// The constraint that a COMMENT is about.
    pub(super) constraint: Option<String>,
}

/// A table of a WITH clause.
#[derive(Clone, Debug)]
pub(super) struct With {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// What SQLite calls its columns.
    pub(super) names: Vec<String>,
}
