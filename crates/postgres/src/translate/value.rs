//! Expressions: what type they have, and how SQLite says them.

use super::casts::Context;
use super::expression::{Expression, Origin};
use super::kinds::Type;
use super::names::folded;
use super::refusal::{mismatch, no_operator, unsupported};
use super::resolve::{Found, resolve};
use super::scope::Scope;
use super::translator::Translator;
use super::type_names::data_type;
use super::{literal, operators};
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{BinaryOperator, CaseWhen, Expr, Query, UnaryOperator, Value};

impl Translator<'_> {
    /// An expression.
    pub(super) fn expression(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<Expression, PgError> {
        Ok(match expr {
            Expr::Nested(inner) => {
                let inner = self.expression(inner, scope)?;
                if inner.origin == Origin::Value {
                    Expression { sql: format!("({})", inner.sql), ..inner }
                } else {
                    inner
                }
            }
            Expr::Identifier(ident) => scope.column(None, &folded(ident))?,
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [table, column] => scope.column(Some(&folded(table)), &folded(column))?,
                [schema, table, column] if folded(schema) == "public" => {
                    scope.column(Some(&folded(table)), &folded(column))?
                }
                _ => return Err(unsupported(expr)),
            },
            Expr::Value(value) => self.constant(&value.value)?,
            Expr::TypedString(typed) => {
                let Value::SingleQuotedString(text) = &typed.value.value else { return Err(unsupported(expr)) };
                let (kind, modifier) = data_type(&typed.data_type)?;
                self.cast(&Expression::unknown(String::new(), Origin::Literal(text.clone())), kind, modifier)?
            }
            Expr::Interval(interval) => self.interval(interval)?,
            Expr::Cast { expr: inner, data_type: to, format: None, .. } => {
                let (kind, modifier) = data_type(to)?;
                let inner = self.expression(inner, scope)?;
                self.cast(&inner, kind, modifier)?
            }
            Expr::UnaryOp { op, expr: inner } => self.unary(*op, inner, scope)?,
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right, scope)?,
            Expr::IsNull(inner) => self.is_null(inner, "IS NULL", scope)?,
            Expr::IsNotNull(inner) => self.is_null(inner, "IS NOT NULL", scope)?,
            Expr::IsTrue(inner) => self.is_truth(inner, "IS TRUE", scope)?,
            Expr::IsNotTrue(inner) => self.is_truth(inner, "IS NOT TRUE", scope)?,
            Expr::IsFalse(inner) => self.is_truth(inner, "IS FALSE", scope)?,
            Expr::IsNotFalse(inner) => self.is_truth(inner, "IS NOT FALSE", scope)?,
            Expr::IsUnknown(inner) => self.is_truth(inner, "IS NULL", scope)?,
            Expr::IsNotUnknown(inner) => self.is_truth(inner, "IS NOT NULL", scope)?,
            Expr::IsDistinctFrom(left, right) => self.distinct(left, "IS NOT", right, scope)?,
            Expr::IsNotDistinctFrom(left, right) => self.distinct(left, "IS", right, scope)?,
            Expr::In { expr: inner, target, negated, global: false } => self.is_in(inner, target, *negated, scope)?,
            Expr::Between { expr: inner, negated, low, high } => self.between([inner, low, high], *negated, scope)?,
            Expr::Like { negated, any: false, expr: inner, pattern, escape_char } => {
                self.like("pg_like", *negated, [inner, pattern], escape_char.as_deref(), scope)?
            }
            Expr::ILike { negated, any: false, expr: inner, pattern, escape_char } => {
                self.like("pg_ilike", *negated, [inner, pattern], escape_char.as_deref(), scope)?
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), scope)?
            }
            Expr::Exists { subquery, negated } => {
                let (sql, _) = self.subquery(subquery, scope)?;
                Expression::new(format!("({}EXISTS ({sql}))", if *negated { "NOT " } else { "" }), Type::Bool)
            }
            Expr::Subquery(query) => self.scalar(query, scope)?,
            Expr::AnyOp { left, compare_op, right, .. } => self.quantified(left, compare_op, right, false, scope)?,
            Expr::AllOp { left, compare_op, right } => self.quantified(left, compare_op, right, true, scope)?,
            Expr::Collate { expr: inner, collation } => {
                super::define::c_collation(&collation.to_string())?;
                self.expression(inner, scope)?
            }
            Expr::AtTimeZone { timestamp, time_zone } => self.at_time_zone(timestamp, time_zone, scope)?,
            _ => self.called(expr, scope)?,
        })
    }

    fn constant(&mut self, value: &Value) -> Result<Expression, PgError> {
        Ok(match value {
            Value::Number(text, false) => {
                let kind = literal::type_of_number(text);
                let sql = if kind == Type::Numeric { literal::numeric(text) } else { text.clone() };
                Expression { origin: Origin::Number(text.clone()), ..Expression::new(sql, kind) }
            }
            Value::SingleQuotedString(text) => {
                Expression::unknown(crate::tokens::quote(text), Origin::Literal(text.clone()))
            }
            Value::Boolean(is) => Expression::new(u8::from(*is).to_string(), Type::Bool),
            Value::Null => Expression::unknown("NULL", Origin::Null),
            Value::Placeholder(text) => {
                let parameter = self.parameter(self.place(text)?);
                if let Type::Array(_) = parameter.kind {
                    return Err(super::compare::arrays());
                }
                parameter
            }
            other => return Err(unsupported(other)),
        })
    }

    /// The place of `$1`, from 0 on.
    pub(super) fn place(&self, text: &str) -> Result<usize, PgError> {
        let place = text.trim_start_matches('$').parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let none = || PgError::new("42P02", format!("there is no parameter {text}"));
        place.filter(|place| *place < self.parameters.len()).ok_or_else(none)
    }

    fn interval(&mut self, interval: &sqlparser::ast::Interval) -> Result<Expression, PgError> {
        let text = match &*interval.value {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => text,
                other => return Err(unsupported(format!("interval {other}"))),
            },
            other => return Err(unsupported(format!("interval {other}"))),
        };
        if interval.last_field.is_some()
            || interval.leading_precision.is_some()
            || interval.fractional_seconds_precision.is_some()
        {
            return Err(unsupported("an interval between fields"));
        }
        let unit = interval.leading_field.as_ref().map(|field| format!(" {field}")).unwrap_or_default();
        self.literal(&format!("{text}{unit}"), Type::Interval)
    }

    fn unary(&mut self, op: UnaryOperator, inner: &Expr, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let value = self.expression(inner, scope)?;
        let name = match op {
            UnaryOperator::Not | UnaryOperator::BangNot => {
                let sql = self.condition(&value, "NOT")?;
                return Ok(Expression::new(format!("(NOT {sql})"), Type::Bool));
            }
            UnaryOperator::Minus => "-",
            UnaryOperator::Plus => "+",
            UnaryOperator::BitwiseNot => "~",
            UnaryOperator::PGAbs => "@",
            other => return Err(unsupported(format!("operator {other}"))),
        };
        // A number and its sign are one number: the smallest integer is none without it.
        if let (Origin::Number(text), UnaryOperator::Minus, false) = (&value.origin, op, value.sql.contains('-'))
            && value.kind == literal::type_of_number(text)
        {
            return self.constant(&Value::Number(format!("-{text}"), false));
        }
        if value.kind == Type::Any {
            return Ok(Expression::new(format!("({name} {})", value.sql), Type::Any));
        }
        match resolve(operators::prefixes(name), &[value.kind]) {
            Found::One(operator) => {
                let value = self.implicit(&value, operator.inputs[0])?;
                Ok(Expression::new(self.fill(operator.how, &[&value.sql])?, operator.result))
            }
            Found::None => Err(no_operator(&format!("{name} {}", value.kind.name()))),
            Found::Many => Err(ambiguous(&format!("{name} {}", value.kind.name()))),
        }
    }

    fn binary(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        if let BinaryOperator::And | BinaryOperator::Or = op {
            return self.chain(left, op, right, scope);
        }
        let name = match op {
            BinaryOperator::Plus => "+",
            BinaryOperator::Minus => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::StringConcat => "||",
            BinaryOperator::Gt => ">",
            BinaryOperator::Lt => "<",
            BinaryOperator::GtEq => ">=",
            BinaryOperator::LtEq => "<=",
            BinaryOperator::Eq => "=",
            BinaryOperator::NotEq => "<>",
            BinaryOperator::BitwiseOr => "|",
            BinaryOperator::BitwiseAnd => "&",
            BinaryOperator::PGLikeMatch => return self.like("pg_like", false, [left, right], None, scope),
            BinaryOperator::PGNotLikeMatch => return self.like("pg_like", true, [left, right], None, scope),
            BinaryOperator::PGILikeMatch => return self.like("pg_ilike", false, [left, right], None, scope),
            BinaryOperator::PGNotILikeMatch => return self.like("pg_ilike", true, [left, right], None, scope),
            BinaryOperator::Arrow => "->",
            BinaryOperator::LongArrow => "->>",
            BinaryOperator::PGRegexMatch => "~",
            BinaryOperator::PGRegexIMatch => "~*",
            BinaryOperator::PGRegexNotMatch => "!~",
            BinaryOperator::PGRegexNotIMatch => "!~*",
            BinaryOperator::AtArrow => "@>",
            BinaryOperator::ArrowAt => "<@",
            BinaryOperator::Question => "?",
            BinaryOperator::HashArrow | BinaryOperator::HashLongArrow => {
                let left = self.expression(left, scope)?;
                return self.path(left, right, *op == BinaryOperator::HashLongArrow);
            }
            other => return Err(unsupported(format!("operator {other}"))),
        };
        if let (Expr::Tuple(left), Expr::Tuple(right)) = (left, right) {
            return self.rows(name, left, right, scope);
        }
        let (left, right) = (self.expression(left, scope)?, self.expression(right, scope)?);
        self.operate(name, &left, &right)
    }

    /// Two operands and the operator between them.
    pub(super) fn operate(&mut self, name: &str, left: &Expression, right: &Expression) -> Result<Expression, PgError> {
        let is_comparison = operators::is_comparison(name);
        if left.kind == Type::Any || right.kind == Type::Any {
            let (left, right) = (self.implicit(left, Type::Any)?, self.implicit(right, Type::Any)?);
            let kind = if is_comparison { Type::Bool } else { Type::Any };
            return Ok(Expression::new(format!("({} {name} {})", left.sql, right.sql), kind));
        }
        // A text takes whatever is appended to it.
        let (mut left, mut right) = (left.clone(), right.clone());
        let takes_text = |kind: Type| kind.is_string() || kind == Type::Unknown;
        let is_bytes = left.kind == Type::Bytea || right.kind == Type::Bytea;
        let is_json = left.kind == Type::Jsonb && matches!(right.kind, Type::Jsonb | Type::Unknown)
            || right.kind == Type::Jsonb && left.kind == Type::Unknown;
        if name == "||" && !is_bytes && !is_json && (takes_text(left.kind) || takes_text(right.kind)) {
            for side in [&mut left, &mut right] {
                let text = self.convert(side, Type::Text, Context::Assignment)?;
                *side = text.ok_or_else(|| mismatch("an operand of || is no text"))?;
            }
        }
        let said = || format!("{} {name} {}", left.kind.name(), right.kind.name());
        let operator = match resolve(operators::named(name), &[left.kind, right.kind]) {
            Found::One(operator) => operator,
            Found::None => return Err(no_operator(&said())),
            Found::Many => return Err(ambiguous(&said())),
        };
        let [one, other] = *operator.inputs else { return Err(no_operator(&said())) };
        let (left, right) = (self.implicit(&left, one)?, self.implicit(&right, other)?);
        if is_comparison {
            Self::comparable(one)?;
            return Ok(Expression::new(operators::comparison(name, one, &left.sql, &right.sql), Type::Bool));
        }
        Ok(Expression::new(self.fill(operator.how, &[&left.sql, &right.sql])?, operator.result))
    }

    /// AND and OR, of which there may be many: without parentheses between those of one kind, and without recursion.
    fn chain(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let name = if *op == BinaryOperator::And { "AND" } else { "OR" };
        let (mut parts, mut rest) = (vec![right], left);
        while let Expr::BinaryOp { left, op: inner, right } = rest
            && inner == op
        {
            parts.push(right);
            rest = left;
        }
        parts.push(rest);
        let mut conditions = Vec::with_capacity(parts.len());
        for part in parts.into_iter().rev() {
            let value = self.expression(part, scope)?;
            conditions.push(self.condition(&value, name)?);
        }
        Ok(Expression::new(format!("({})", conditions.join(&format!(" {name} "))), Type::Bool))
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let mut whens = Vec::new();
        let mut head = String::new();
        if let Some(operand) = operand {
            let mut all = vec![self.expression(operand, scope)?];
            for when in conditions {
                all.push(self.expression(&when.condition, scope)?);
            }
            let all = self.unify(&all, "CASE/WHEN")?;
            Self::comparable(all[0].kind)?;
            head = format!(" {}", all[0].compared());
            whens.extend(all[1..].iter().map(|value| value.sql.clone()));
        } else {
            for when in conditions {
                let value = self.expression(&when.condition, scope)?;
                whens.push(self.condition(&value, "CASE/WHEN")?);
            }
        }
        let mut results = Vec::new();
        // What stands behind ELSE counts first.
        results.push(match otherwise {
            Some(expr) => self.expression(expr, scope)?,
            None => Expression::unknown("NULL", Origin::Null),
        });
        for when in conditions {
            results.push(self.expression(&when.result, scope)?);
        }
        let results = self.unify(&results, "CASE")?;
        let mut sql = format!("CASE{head}");
        for (when, result) in whens.iter().zip(&results[1..]) {
            sql += &format!(" WHEN {when} THEN {}", result.sql);
        }
        let last = &results[0];
        let sql = format!("({sql} ELSE {} END)", last.sql);
        Ok(Expression { modifier: super::expression::common_modifier(&results), ..Expression::new(sql, last.kind) })
    }

    fn scalar(&mut self, query: &Query, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let mut body = self.query(query, Some(scope))?;
        self.settle(&mut body)?;
        let [column] = &body.columns()[..] else {
            return Err(PgError::new(sqlstate::SYNTAX, "subquery must return only one column"));
        };
        // SQLite would take the first row of several.
        let sql = if body.is_one {
            format!("({})", body.render(None))
        } else {
            let inner = body.render(Some(&["0".to_owned()]));
            format!("(SELECT iif(count(*) > 1, pg_only(count(*)), max(\"0\")) FROM ({inner}))")
        };
        Ok(Expression { modifier: column.modifier, ..Expression::new(sql, column.kind) })
    }

    fn at_time_zone(&mut self, value: &Expr, zone: &Expr, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let value = self.expression(value, scope)?;
        let zone = self.expression(zone, scope)?;
        let Origin::Literal(zone) = &zone.origin else { return Err(unsupported("a time zone that is no literal")) };
        let zone = crate::tokens::quote(&crate::settings::zone(zone)?);
        Ok(match value.kind {
            Type::Timestamptz => {
                Expression::new(format!("pg_timestamptz_to_timestamp({}, {zone})", value.sql), Type::Timestamp)
            }
            Type::Timestamp => {
                let value = self.implicit(&value, Type::Timestamp)?;
                Expression::new(format!("pg_timestamp_to_timestamptz({}, {zone})", value.sql), Type::Timestamptz)
            }
            Type::Unknown | Type::Date => {
                let value = self.implicit(&value, Type::Timestamptz)?;
                Expression::new(format!("pg_timestamptz_to_timestamp({}, {zone})", value.sql), Type::Timestamp)
            }
            Type::Time => return Err(unsupported("a time with a time zone")),
            other => return Err(no_function(&format!("timezone(unknown, {})", other.name()))),
        })
    }
}

pub(super) fn no_function(said: &str) -> PgError {
    PgError::new("42883", format!("function {said} does not exist"))
        .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

fn ambiguous(said: &str) -> PgError {
    PgError::new("42725", format!("operator is not unique: {said}"))
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}
