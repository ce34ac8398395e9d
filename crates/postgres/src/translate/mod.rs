//! PostgreSQL's statements in SQLite's words, by the types of what they are about.
//!
//! A statement is parsed, its names are bound to the tables' columns, every expression gets the type that it has in
//! PostgreSQL, and SQLite is told to compute the same: with its own operators where they decide alike, and with the
//! replicas' functions `pg_…` where they do not. What is not understood is refused; nothing passes through unread.
//!
//! | question | file |
//! |---|---|
//! | Which token is it, and which statement? | `lexical.rs`, `parse.rs` |
//! | What is known of a statement under way? | `translator.rs` |
//! | What is refused, and in which words? | `refusal.rs` |
//! | Which types are there, and which become which? | `kinds.rs`, `casts.rs`; `type_check.rs` says what each asks |
//! | Which operator or function is meant? | `resolve.rs`, from `operators.rs` and `functions.rs` |
//! | What are the tables? | `schema.rs` |
//! | Which column is it? | `scope.rs`, `names.rs` |
//! | What is an expression? | `value.rs`, `compare.rs`, `call.rs` and `documents.rs`, with `expression.rs` and `literal.rs` |
//! | What is a query? | `query.rs`, `from.rs`, `sets.rs`, `order.rs`, `first.rs`, `naming.rs`; `body.rs` waits for the types of its columns |
//! | What does a statement write? | `write.rs`, `returned.rs`, `define.rs`, `fill.rs`, `upkeep.rs` |
//! | How does a table change? | `alter.rs`; `anew.rs` and `retype.rs`, from the parts that `definition.rs` finds |
//! | Which values are told apart from its text? | `lift.rs` |

mod alter;
mod anew;
mod body;
mod call;
mod casts;
mod compare;
mod define;
mod definition;
mod documents;
mod expression;
mod fill;
mod first;
mod from;
mod functions;
mod kinds;
mod lexical;
mod lift;
mod literal;
mod names;
mod naming;
mod operators;
mod order;
mod parse;
mod query;
mod refusal;
mod resolve;
mod returned;
mod retype;
mod schema;
mod scope;
mod sets;
#[cfg(test)]
mod tests;
mod translator;
mod type_check;
mod type_names;
mod unnest;
mod upkeep;
mod value;
mod write;

use crate::error::{PgError, sqlstate};
use crate::tag::Tag;
use crate::tokens::{Token, tokens};
use bezant_sql::{PARAMETERS_MAX, SQL_BYTES_MAX, Value};
use parse::parse;
use refusal::{refuse, unsupported};
use sqlparser::ast::{SetExpr, Statement};
use translator::Translator;

pub(crate) use define::default_of;
pub(crate) use definition::{Definition, Kind as ConstraintKind, Named as NamedConstraint};
pub(crate) use functions::REFUSED;
pub(crate) use kinds::Type;
pub(crate) use names::name;
pub(crate) use schema::{Column, SCHEMA_SQL, Schema, view_columns};

/// A statement for the replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Translation {
    /// What they execute before that: PostgreSQL does several things in one statement that SQLite does one by one.
    first: Vec<String>,
    /// What they execute.
    pub(crate) sql: String,
    /// The values that stood in it, or by which a table is made anew. Only a statement without parameters of the
    /// client's has any.
    values: Vec<Value>,
    /// The columns of its rows.
    pub(crate) columns: Vec<Column>,
    /// The types of its parameters.
    pub(crate) parameters: Vec<Type>,
    /// The version of the schema that all of this depends on.
    pub(crate) schema: u32,
    /// Whether it changes the schema.
    pub(crate) defines: bool,
    /// What is worth knowing about it.
    pub(crate) notice: Option<&'static str>,
    /// How its end is told, if its first words do not say.
    pub(crate) tag: Option<Tag>,
}

impl Translation {
    /// The statement with the client's parameters, behind those that come first.
    pub(crate) fn statements(&self, mut parameters: Vec<Value>) -> impl Iterator<Item = bezant_sql::Statement> {
        parameters.extend_from_slice(&self.values);
        let last = bezant_sql::Statement::with(self.sql.as_str(), parameters);
        self.first.iter().map(|sql| bezant_sql::Statement::new(sql.as_str())).chain([last])
    }

    /// How many those are.
    pub(crate) const fn count(&self) -> usize {
        self.first.len() + 1
    }

    /// Bytes of its text and of the values that stood in it.
    pub(crate) fn bytes(&self) -> usize {
        let longer = |value: &Value| if let Value::Text(text) = value { text.len() } else { 0 };
        self.first.iter().chain([&self.sql]).map(String::len).sum::<usize>()
            + self.values.iter().map(|value| size_of::<Value>() + longer(value)).sum::<usize>()
    }
}

/// Translates one statement. The client may have said the types of some parameters by their numbers; 0 for the rest.
///
/// # Errors
/// What PostgreSQL objects to, or what is not understood.
pub(crate) fn translate(sql: &str, schema: &Schema, zone: &str, types: &[u32]) -> Result<Translation, PgError> {
    if sql.len() > SQL_BYTES_MAX {
        return Err(PgError::new(
            sqlstate::LIMIT,
            format!("{} bytes of a statement, of at most {SQL_BYTES_MAX}", sql.len()),
        ));
    }
    let normal = lexical::normalize(sql)?;
    let (normal, constraint) = match upkeep::of_constraint(&normal) {
        Some((about_table, constraint)) => (about_table, Some(constraint)),
        None => (normal, None),
    };
    let statement = parse(&normal)?;
    let count = tokens(&normal).iter().filter_map(Token::parameter).max().unwrap_or(0);
    if count > PARAMETERS_MAX {
        return Err(PgError::new(sqlstate::LIMIT, format!("{count} parameters, of at most {PARAMETERS_MAX}")));
    }
    let mut parameters = vec![Type::Unknown; count];
    for (parameter, number) in parameters.iter_mut().zip(types) {
        let none = || PgError::unsupported(format!("parameters of the type with number {number} are not supported"));
        *parameter = Type::of_oid(*number).ok_or_else(none)?;
    }
    // What a table says holds for whoever writes it, in whatever zone.
    let is_lasting = match &statement {
        Statement::CreateTable(table) => table.query.is_none(),
        Statement::AlterTable(_) | Statement::CreateIndex(_) | Statement::CreateView(_) => true,
        _ => false,
    };
    let zone = if is_lasting { "UTC" } else { zone };
    let mut translator = Translator {
        schema,
        zone,
        parameters,
        tables: Vec::new(),
        first: Vec::new(),
        values: Vec::new(),
        notice: None,
        tag: None,
        constraint,
    };
    let (sql, columns, defines) = translator.statement(&statement)?;
    let parameters =
        translator.parameters.iter().map(|kind| if *kind == Type::Unknown { Type::Text } else { *kind }).collect();
    let Translator { first, values, notice, tag, .. } = translator;
    let (sql, values) = if count == 0 && !defines { lift::lift(&sql) } else { (sql, values) };
    Ok(Translation { first, sql, values, columns, parameters, schema: schema.version, defines, notice, tag })
}

impl Translator<'_> {
    /// A whole statement, the columns of its rows, and whether it changes the schema.
    fn statement(&mut self, statement: &Statement) -> Result<(String, Vec<Column>, bool), PgError> {
        let without = |sql| (sql, Vec::new(), true);
        Ok(match statement {
            Statement::Query(query) => {
                if let Some((target, rest)) = fill::into(query) {
                    return Ok(without(self.select_into(&target, &rest)?));
                }
                if let SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) = &*query.body {
                    refuse(query.order_by.is_some() || query.limit_clause.is_some(), "this clause")?;
                    let with = self.with_clause(query, None)?;
                    let (sql, columns, defines) = self.statement(inner)?;
                    return Ok((with + &sql, columns, defines));
                }
                if let Some(written) = self.returned(query)? {
                    return self.statement(&Statement::Query(Box::new(written)));
                }
                let (sql, columns) = self.outermost(query)?;
                (sql, columns, false)
            }
            Statement::Insert(insert) => self.insert(insert)?,
            Statement::Update(update) => self.update(update)?,
            Statement::Delete(delete) => self.delete(delete)?,
            Statement::Truncate(truncate) => (self.truncate(truncate)?, Vec::new(), false),
            Statement::Comment { object_type, object_name, if_exists: false, .. } => {
                (self.comment(object_type, object_name)?, Vec::new(), false)
            }
            Statement::Explain { statement, analyze: false, .. } => {
                let (sql, ..) = self.statement(statement)?;
                // It would be done.
                refuse(!self.first.is_empty(), "EXPLAIN of this statement")?;
                let columns =
                    [("id", Type::Int8), ("parent", Type::Int8), ("notused", Type::Int8), ("detail", Type::Text)];
                let columns = columns.map(|(name, kind)| Column::new(name, kind, None)).into();
                (format!("EXPLAIN QUERY PLAN {sql}"), columns, false)
            }
            Statement::CreateTable(table) => match &table.query {
                Some(query) => without(self.create_table_as(table, query)?),
                None => without(self.create_table(table)?),
            },
            Statement::CreateIndex(index) => without(self.create_index(index)?),
            Statement::CreateView(view) => without(self.create_view(view)?),
            Statement::AlterTable(alter) => without(self.alter_table(alter)?),
            Statement::Drop { .. } => without(self.drop(statement)?),
            Statement::Analyze(_) => without("ANALYZE".into()),
            other => {
                let words: Vec<String> = other.to_string().split_whitespace().take(2).map(str::to_uppercase).collect();
                return Err(unsupported(words.join(" ")));
            }
        })
    }
}
