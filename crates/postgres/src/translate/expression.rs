//! An expression in SQLite's words, with its type in PostgreSQL; and how it becomes one of another type.

use super::casts::{Context, conversion, from_text};
use super::kinds::{Modifier, Type};
use super::literal;
use super::refusal::mismatch;
use super::schema::Column;
use super::translator::Translator;
use crate::error::{PgError, sqlstate};
use crate::tokens::quote;
use bezant_sql::SQL_BYTES_MAX;

/// What an expression is made of, as far as its type depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Anything with a type of its own.
    Value,
    /// A string without a type.
    Literal(String),
    /// A number as it is written.
    Number(String),
    /// A parameter without a type, by its place from 0 on.
    Parameter(usize),
    /// NULL.
    Null,
}

/// The length or scale that several values have in common.
pub(super) fn common_modifier(values: &[Expression]) -> Modifier {
    let first = values.iter().find(|value| value.origin != Origin::Null)?.modifier;
    first.filter(|_| values.iter().all(|value| value.modifier == first || value.origin == Origin::Null))
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expression {
    pub(crate) sql: String,
    pub(crate) kind: Type,
    pub(crate) modifier: Modifier,
    pub(crate) origin: Origin,
}

impl Expression {
    /// One with a type.
    pub(crate) fn new(sql: impl Into<String>, kind: Type) -> Self {
        Self { sql: sql.into(), kind, modifier: None, origin: Origin::Value }
    }

    /// One whose type the context decides.
    pub(crate) fn unknown(sql: impl Into<String>, origin: Origin) -> Self {
        Self { sql: sql.into(), kind: Type::Unknown, modifier: None, origin }
    }

    /// Where SQLite compares it.
    pub(crate) fn compared(&self) -> String {
        format!("{}{}", self.sql, self.kind.collation())
    }
}

impl Translator<'_> {
    /// Fills the places of a template. Whatever grows must end.
    pub(super) fn fill(&self, how: &str, arguments: &[&str]) -> Result<String, PgError> {
        let mut out = how.replace("{today}", super::functions::TODAY);
        out = out.replace("{now}", super::functions::NOW).replace("{zone}", &quote(self.zone));
        out = out.replace("{uuid}", super::functions::RANDOM_UUID);
        if let [only] = arguments {
            out = out.replace("{}", only);
        }
        // From behind, so that what an argument says is not read again.
        let mut filled = String::new();
        let mut rest = out.as_str();
        while let Some(at) = rest.find('{') {
            let number = rest[at + 1..].chars().next().and_then(|c| c.to_digit(10));
            let is_place = rest.get(at + 2..).unwrap_or_default().starts_with('}');
            match number.and_then(|number| arguments.get(number as usize)).filter(|_| is_place && how.contains("{0}")) {
                Some(argument) => {
                    filled.push_str(&rest[..at]);
                    filled.push_str(argument);
                    rest = &rest[at + 3..];
                }
                None => {
                    filled.push_str(&rest[..=at]);
                    rest = &rest[at + 1..];
                }
            }
        }
        filled.push_str(rest);
        if filled.len() > SQL_BYTES_MAX {
            return Err(PgError::new("54001", "the statement is too complex"));
        }
        Ok(filled)
    }

    /// An expression as one of another type, if it is that in this context.
    ///
    /// # Errors
    /// If a literal is none of that type, with the SQLSTATE that PostgreSQL has for that.
    pub(super) fn convert(
        &mut self,
        expression: &Expression,
        to: Type,
        context: Context,
    ) -> Result<Option<Expression>, PgError> {
        if expression.kind == to && to != Type::Unknown {
            return Ok(Some(expression.clone()));
        }
        match (&expression.origin, to) {
            (Origin::Literal(text), to) => return self.literal(text, to).map(Some),
            (Origin::Null, _) => return Ok(Some(Expression { kind: to, ..expression.clone() })),
            (Origin::Parameter(place), _) => return self.decide(*place, to).map(Some),
            (Origin::Number(text), Type::Float8 | Type::Float4) => return self.literal(text, to).map(Some),
            (Origin::Number(text), Type::Numeric) => {
                return Ok(Some(Expression {
                    origin: Origin::Number(text.clone()),
                    ..Expression::new(literal::numeric(text), Type::Numeric)
                }));
            }
            _ => {}
        }
        let Some(how) = conversion(expression.kind, to, context) else { return Ok(None) };
        Ok(Some(Expression::new(self.fill(how, &[&expression.sql])?, to)))
    }

    /// An expression where another type is wanted.
    pub(super) fn implicit(&mut self, expression: &Expression, to: Type) -> Result<Expression, PgError> {
        let converted = self.convert(expression, to, Context::Implicit)?;
        converted.ok_or_else(|| mismatch(format!("{} cannot be used as {}", expression.kind.name(), to.name())))
    }

    /// A string that is a value of a type.
    pub(super) fn literal(&self, text: &str, to: Type) -> Result<Expression, PgError> {
        if let Some(sql) = literal::fold(text, to)? {
            return Ok(Expression::new(sql, to));
        }
        Ok(Expression::new(self.fill(from_text(to), &[&quote(text)])?, to))
    }

    /// A parameter turns out to be of a type.
    pub(super) fn decide(&mut self, place: usize, to: Type) -> Result<Expression, PgError> {
        let kind = match (self.parameters[place], to) {
            // SQLite's own rules take whatever comes.
            (Type::Unknown, Type::Any) => Type::Text,
            (Type::Unknown, to) => to,
            (known, _) => known,
        };
        self.parameters[place] = kind;
        let parameter = self.parameter(place);
        if kind == to || to == Type::Any {
            return Ok(Expression { kind: to, ..parameter });
        }
        self.implicit(&parameter, to)
    }

    /// A parameter as SQLite may have it: the gateway hands over what its own words say, and texts of other types as
    /// they are.
    pub(super) fn parameter(&self, place: usize) -> Expression {
        let (sql, kind) = (format!("?{}", place + 1), self.parameters[place]);
        let sql = match kind {
            Type::Unknown => return Expression::unknown(sql, Origin::Parameter(place)),
            _ if literal::is_handed_over(kind) => sql,
            _ => from_text(kind).replace("{}", &sql).replace("{zone}", &quote(self.zone)),
        };
        Expression::new(sql, kind)
    }

    /// An explicit cast.
    pub(super) fn cast(
        &mut self,
        expression: &Expression,
        to: Type,
        modifier: Modifier,
    ) -> Result<Expression, PgError> {
        let Some(converted) = self.convert(expression, to, Context::Explicit)? else {
            let text = format!("cannot cast type {} to {}", expression.kind.name(), to.name());
            let is_here = !matches!((expression.kind, to), (Type::Jsonb, _) | (Type::Char, Type::Bytea));
            return Err(if is_here { PgError::new("42846", text) } else { super::unsupported(text) });
        };
        self.fit(converted, to, modifier, true)
    }

    /// Keeps to a length or a scale. An explicit cast cuts what an assignment refuses.
    fn fit(&self, value: Expression, to: Type, modifier: Modifier, cuts: bool) -> Result<Expression, PgError> {
        let Some((first, second)) = modifier else { return Ok(value) };
        let sql = &value.sql;
        let sql = match (to, cuts) {
            (Type::Numeric, _) => format!("pg_numeric_fit({sql}, {first}, {second})"),
            (Type::Time | Type::Timestamp | Type::Timestamptz, _) => format!("pg_moment_fit({sql}, {first})"),
            (Type::Varchar, true) => format!("pg_varchar_cut({sql}, {first})"),
            (Type::Varchar, false) => format!("pg_varchar({sql}, {first})"),
            (Type::Char, true) => format!("pg_char_cut({sql}, {first})"),
            (Type::Char, false) => format!("pg_char({sql}, {first})"),
            _ => return Ok(value),
        };
        Ok(Expression { modifier, ..Expression::new(sql, to) })
    }

    /// A value for a column.
    ///
    /// # Errors
    /// If it cannot be one.
    pub(super) fn assign(&mut self, value: &Expression, column: &Column) -> Result<Expression, PgError> {
        if value.kind == column.kind && value.modifier == column.modifier && column.kind != Type::Unknown {
            return Ok(value.clone());
        }
        let Some(converted) = self.convert(value, column.kind, Context::Assignment)? else {
            let text = format!(
                "column \"{}\" is of type {} but expression is of type {}",
                column.name,
                column.kind.name(),
                value.kind.name()
            );
            return Err(mismatch(text).hint("You will need to rewrite or cast the expression."));
        };
        if converted.origin == Origin::Null {
            return Ok(converted);
        }
        self.fit(converted, column.kind, column.modifier, false)
    }

    /// Something that is true or not, for a clause.
    pub(super) fn condition(&mut self, value: &Expression, clause: &str) -> Result<String, PgError> {
        let kind = value.kind;
        if kind == Type::Any {
            return Ok(value.sql.clone());
        }
        let text = || format!("argument of {clause} must be type boolean, not type {}", kind.name());
        let converted = self.convert(value, Type::Bool, Context::Implicit)?;
        converted.map(|value| value.sql).ok_or_else(|| mismatch(text()))
    }

    /// Several values as values of the one type that they have in common.
    pub(super) fn unify(&mut self, values: &[Expression], what: &str) -> Result<Vec<Expression>, PgError> {
        let kinds: Vec<Type> = values.iter().map(|value| value.kind).collect();
        let Some(common) = super::resolve::common(&kinds) else {
            let names: Vec<&str> =
                kinds.iter().filter(|kind| **kind != Type::Unknown).map(|kind| kind.name()).collect();
            let other = names.iter().find(|name| **name != names[0]).unwrap_or(&names[0]);
            return Err(mismatch(format!("{what} types {} and {other} cannot be matched", names[0])));
        };
        values.iter().map(|value| self.implicit(value, common)).collect()
    }

    /// Refuses to compare what cannot be compared by its stored form.
    pub(super) fn comparable(kind: Type) -> Result<(), PgError> {
        if kind.is_comparable() {
            return Ok(());
        }
        if kind == Type::Json {
            return Err(PgError::new("42883", "could not identify an equality operator for type json"));
        }
        let hint = "compare them in the application, or as text: value::text";
        Err(PgError::new(sqlstate::UNSUPPORTED, format!("values of {} are not compared here", kind.name())).hint(hint))
    }
}
