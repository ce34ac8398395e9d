//! JSON made of values, and its parts.

use super::casts::Context;
use super::expression::{Expression, Origin};
use super::kinds::Type;
use super::names::folded;
use super::refusal::unsupported;
use super::scope::{Scope, Source};
use super::translator::Translator;
use super::value::no_function;
use crate::error::PgError;
use crate::tokens::quote;
use crate::types::elements;
use sqlparser::ast::{Expr, Value};

/// Functions that make JSON of rows.
pub(super) const AGGREGATES: [&str; 4] = ["json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"];

/// Functions that make JSON of values of any type; `row_to_json` takes rows only.
const BUILDERS: [&str; 7] = [
    "to_json",
    "to_jsonb",
    "row_to_json",
    "json_build_object",
    "jsonb_build_object",
    "json_build_array",
    "jsonb_build_array",
];

/// Whether a function makes JSON of values of any type.
pub(super) fn makes_json(name: &str) -> bool {
    AGGREGATES.contains(&name) || BUILDERS.contains(&name)
}

impl Translator<'_> {
    /// An argument of such a function: a table stands for its row.
    pub(super) fn row_or_value(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<(Expression, bool), PgError> {
        if let Expr::Identifier(ident) = expr
            && scope.find(None, &folded(ident))?.is_none()
            && let Some(source) = scope.sources.iter().find(|source| source.alias == folded(ident))
        {
            return Ok((self.row(source, scope)?, true));
        }
        Ok((self.expression(expr, scope)?, false))
    }

    /// The row of a table as an object without blanks.
    fn row(&mut self, source: &Source, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let never_null = source.columns.iter().find(|named| named.column.not_null);
        if source.is_open || scope.sources.len() > 1 && never_null.is_none() {
            return Err(unsupported(format!("the whole row of {}", source.alias)).hint("name its columns"));
        }
        let mut members = Vec::new();
        for named in &source.columns {
            scope.loose.borrow_mut().push(named.sql.clone());
            let value =
                Expression { modifier: named.column.modifier, ..Expression::new(&named.sql, named.column.kind) };
            let key = quote(&named.column.name);
            members.push(format!("pg_json_string({key}) || ':' || {}", self.json_or_null(&value)?));
        }
        let object = format!("('{{' || {} || '}}')", members.join(" || ',' || "));
        // An outer join may have made a row of nothing.
        let sql = match never_null.filter(|_| scope.sources.len() > 1) {
            Some(named) => format!("iif({} IS NULL, NULL, {object})", named.sql),
            None => object,
        };
        Ok(Expression::new(sql, Type::Json))
    }

    /// A value as JSON; NULL stays NULL.
    fn json(&mut self, value: &Expression) -> Result<String, PgError> {
        let value = match (value.kind, value.modifier) {
            (Type::Unknown, _) => self.implicit(value, Type::Text)?,
            (Type::Char, Some((length, _))) => Expression::new(format!("pg_rpad({}, {length})", value.sql), Type::Text),
            (Type::Any | Type::Char | Type::Array(_), _) => {
                return Err(unsupported(format!("JSON of a value of type {}", value.kind.name())));
            }
            _ => value.clone(),
        };
        let kind = value.kind;
        if kind == Type::Bool {
            return Ok(format!("CASE {} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END", value.sql));
        }
        let text = self.convert(&value, Type::Text, Context::Assignment)?;
        let text = text.ok_or_else(|| unsupported(format!("JSON of a value of type {}", kind.name())))?.sql;
        Ok(match kind {
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric | Type::Json | Type::Jsonb => text,
            Type::Float4 | Type::Float8 => format!("pg_json_number({text})"),
            Type::Timestamp | Type::Timestamptz => format!("pg_json_moment({text})"),
            _ => format!("pg_json_string({text})"),
        })
    }

    fn json_or_null(&mut self, value: &Expression) -> Result<String, PgError> {
        Ok(format!("coalesce({}, 'null')", self.json(value)?))
    }

    /// A value as a key.
    fn json_key(&mut self, value: &Expression) -> Result<String, PgError> {
        if matches!(value.kind, Type::Json | Type::Jsonb) {
            return Err(PgError::new("22023", "key value must be scalar, not array, composite, or json"));
        }
        Ok(format!("coalesce(pg_json_key({}), pg_json_no_key())", self.json(value)?))
    }

    /// A function that makes JSON of values, of which the first may be a row; `order` stands within its parentheses
    /// and `tail` behind them.
    pub(super) fn make_json(
        &mut self,
        name: &str,
        values: &[Expression],
        is_row: bool,
        order: &str,
        tail: &str,
    ) -> Result<Expression, PgError> {
        let names: Vec<&str> = values.iter().map(|value| value.kind.name()).collect();
        let none = || no_function(&format!("{name}({})", names.join(", ")));
        let (plain, kind) = match name.strip_prefix("jsonb_") {
            Some(rest) => (format!("json_{rest}"), Type::Jsonb),
            None if name == "to_jsonb" => ("to_json".into(), Type::Jsonb),
            None => (name.to_owned(), Type::Json),
        };
        let knows_type = |value: &Expression| match value.kind {
            Type::Unknown => {
                Err(PgError::new("42804", "could not determine polymorphic type because input has type unknown"))
            }
            _ => Ok(()),
        };
        let sql = match (plain.as_str(), values) {
            ("to_json", [value]) => {
                knows_type(value)?;
                self.json(value)?
            }
            ("row_to_json", [value]) if is_row => value.sql.clone(),
            ("json_agg", [value]) => {
                knows_type(value)?;
                let function = if is_row { "pg_json_rows" } else { "pg_json_agg" };
                format!("{function}({}{order}){tail}", self.json_or_null(value)?)
            }
            ("json_object_agg", [key, value]) => {
                format!("pg_json_object_agg({}, {}{order}){tail}", self.json_key(key)?, self.json_or_null(value)?)
            }
            ("json_build_array", values) => {
                let all = values.iter().map(|value| self.json_or_null(value)).collect::<Result<Vec<_>, _>>()?;
                let all = all.join(" || ', ' || ");
                if all.is_empty() { "'[]'".into() } else { format!("('[' || {all} || ']')") }
            }
            ("json_build_object", values) if values.len() % 2 == 1 => {
                return Err(PgError::new("22023", "argument list must have even number of elements"));
            }
            ("json_build_object", values) => {
                let mut all = Vec::new();
                for pair in values.chunks(2) {
                    all.push(format!("{} || ' : ' || {}", self.json_key(&pair[0])?, self.json_or_null(&pair[1])?));
                }
                let all = all.join(" || ', ' || ");
                if all.is_empty() { "'{}'".into() } else { format!("('{{' || {all} || '}}')") }
            }
            _ => return Err(none()),
        };
        Ok(Expression::new(if kind == Type::Jsonb { format!("pg_in_jsonb({sql})") } else { sql }, kind))
    }

    /// `#>` and `#>>`: a path is a literal.
    pub(super) fn path(&mut self, left: Expression, right: &Expr, is_text: bool) -> Result<Expression, PgError> {
        let left = match left.origin {
            Origin::Value => left,
            _ => self.implicit(&left, Type::Jsonb)?,
        };
        let text = |expr: &Expr| match expr {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        let steps = match (text(right), right) {
            (Some(text), _) => elements(&text)?,
            (None, Expr::Array(array)) => {
                array.elem.iter().map(|step| text(step).map(Some)).collect::<Option<_>>().unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let is_json = matches!(left.kind, Type::Json | Type::Jsonb);
        if !is_json || steps.is_empty() || steps.contains(&None) {
            return Err(unsupported("#> with a path that is no literal").hint("write #> '{a,b}', or -> and ->>"));
        }
        let mut sql = left.sql;
        for step in steps.into_iter().flatten() {
            sql = format!("pg_json_step({sql}, {})", quote(&step));
        }
        let (sql, kind) = if is_text { (format!("pg_json_shown({sql})"), Type::Text) } else { (sql, left.kind) };
        Ok(Expression::new(sql, kind))
    }
}
