//! Expressions: what type they have, and how SQLite says them.

use super::casts::Context;
use super::expression::{Expression, Origin};
use super::kinds::{Modifier, Type};
use super::resolve::{Found, resolve};
use super::scope::Scope;
use super::{Translator, folded, literal, mismatch, operators, unsupported};
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{
    BinaryOperator, CaseWhen, CharacterLength, DataType, ExactNumberInfo, Expr, InTarget, Query, TimezoneInfo,
    UnaryOperator, Value,
};

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
            Expr::AnyOp { left, compare_op, right, .. } => self.any(left, compare_op, right, scope)?,
            Expr::AllOp { left, compare_op, right } => self.all(left, compare_op, right, scope)?,
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
                let place = text.trim_start_matches('$').parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let place = place.filter(|place| *place < self.parameters.len());
                let none = || PgError::new("42P02", format!("there is no parameter {text}"));
                self.parameter(place.ok_or_else(none)?)
            }
            other => return Err(unsupported(other)),
        })
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
        if let (Origin::Number(text), UnaryOperator::Minus, false) = (&value.origin, op, value.sql.contains('-')) {
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
        if name == "||" && !is_bytes && (takes_text(left.kind) || takes_text(right.kind)) {
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

    /// Rows of the same length, compared.
    fn rows(&mut self, name: &str, left: &[Expr], right: &[Expr], scope: &Scope<'_>) -> Result<Expression, PgError> {
        if left.len() != right.len() || !operators::is_comparison(name) {
            return Err(PgError::new(sqlstate::SYNTAX, "unequal number of entries in row expressions"));
        }
        let (mut ones, mut others) = (Vec::new(), Vec::new());
        for (one, other) in left.iter().zip(right) {
            let (one, other) = (self.expression(one, scope)?, self.expression(other, scope)?);
            let both = self.unify(&[one, other], "row")?;
            Self::comparable(both[0].kind)?;
            ones.push(both[0].compared());
            others.push(both[1].sql.clone());
        }
        Ok(Expression::new(format!("(({}) {name} ({}))", ones.join(", "), others.join(", ")), Type::Bool))
    }

    fn is_null(&mut self, inner: &Expr, how: &str, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let mut value = self.expression(inner, scope)?;
        if let Origin::Parameter(place) = value.origin {
            value = self.decide(place, Type::Text)?;
        }
        Ok(Expression::new(format!("({} {how})", value.sql), Type::Bool))
    }

    fn is_truth(&mut self, inner: &Expr, how: &str, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let value = self.expression(inner, scope)?;
        let sql = self.condition(&value, how)?;
        Ok(Expression::new(format!("({sql} {how})"), Type::Bool))
    }

    fn distinct(&mut self, left: &Expr, how: &str, right: &Expr, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let both = [self.expression(left, scope)?, self.expression(right, scope)?];
        let both = self.unify(&both, "IS DISTINCT FROM")?;
        Self::comparable(both[0].kind)?;
        Ok(Expression::new(format!("({} {how} {})", both[0].compared(), both[1].sql), Type::Bool))
    }

    fn between(&mut self, all: [&Expr; 3], negated: bool, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let values = all.into_iter().map(|expr| self.expression(expr, scope)).collect::<Result<Vec<_>, _>>()?;
        let values = self.unify(&values, "BETWEEN")?;
        Self::comparable(values[0].kind)?;
        let not = if negated { "NOT " } else { "" };
        let sql = format!("({} {not}BETWEEN {} AND {})", values[0].compared(), values[1].sql, values[2].sql);
        Ok(Expression::new(sql, Type::Bool))
    }

    fn is_in(
        &mut self,
        inner: &Expr,
        target: &InTarget,
        negated: bool,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        match target {
            InTarget::List(list) => self.in_list(inner, list, negated, scope),
            InTarget::Subquery(query) => self.in_query(inner, query, negated, scope),
            _ => Err(unsupported("this kind of IN")),
        }
    }

    fn in_list(
        &mut self,
        inner: &Expr,
        list: &[Expr],
        negated: bool,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let not = if negated { "NOT " } else { "" };
        if let Expr::Tuple(left) = inner {
            let mut all = Vec::new();
            for item in list {
                let Expr::Tuple(right) = item else { return Err(mismatch("a row is compared with what is none")) };
                all.push(self.rows("=", left, right, scope)?.sql);
            }
            return Ok(Expression::new(format!("({not}({}))", all.join(" OR ")), Type::Bool));
        }
        let mut values = vec![self.expression(inner, scope)?];
        for item in list {
            values.push(self.expression(item, scope)?);
        }
        let values = self.unify(&values, "IN")?;
        Self::comparable(values[0].kind)?;
        let list: Vec<&str> = values[1..].iter().map(|value| value.sql.as_str()).collect();
        Ok(Expression::new(format!("({} {not}IN ({}))", values[0].compared(), list.join(", ")), Type::Bool))
    }

    fn in_query(
        &mut self,
        inner: &Expr,
        query: &Query,
        negated: bool,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let not = if negated { "NOT " } else { "" };
        let lefts = if let Expr::Tuple(left) = inner { &left[..] } else { std::slice::from_ref(inner) };
        let mut body = self.query(query, Some(scope))?;
        let columns = body.columns();
        if columns.len() != lefts.len() {
            return Err(PgError::new(
                sqlstate::SYNTAX,
                "subquery has another number of columns than what is looked for",
            ));
        }
        let mut out = Vec::new();
        for (at, (left, column)) in lefts.iter().zip(&columns).enumerate() {
            let left = self.expression(left, scope)?;
            let kinds = [left.kind, column.kind];
            let common = super::resolve::common(&kinds)
                .ok_or_else(|| no_operator(&format!("{} = {}", kinds[0].name(), kinds[1].name())))?;
            Self::comparable(common)?;
            self.convert_column(&mut body, at, common, Context::Implicit)?;
            out.push(self.implicit(&left, common)?.compared());
        }
        let left = if out.len() == 1 { out.remove(0) } else { format!("({})", out.join(", ")) };
        Ok(Expression::new(format!("({left} {not}IN ({}))", body.render(None)), Type::Bool))
    }

    /// `= ANY (…)` of a list or a subquery.
    fn any(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        match (op, without_parentheses(right)) {
            (BinaryOperator::Eq, Expr::Array(array)) => self.in_list(left, &array.elem, false, scope),
            (BinaryOperator::Eq, Expr::Subquery(query)) => self.in_query(left, query, false, scope),
            _ => Err(arrays()),
        }
    }

    /// `<> ALL (…)` of a list or a subquery.
    fn all(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        match (op, without_parentheses(right)) {
            (BinaryOperator::NotEq, Expr::Array(array)) => self.in_list(left, &array.elem, true, scope),
            (BinaryOperator::NotEq, Expr::Subquery(query)) => self.in_query(left, query, true, scope),
            _ => Err(arrays()),
        }
    }

    fn like(
        &mut self,
        function: &str,
        negated: bool,
        operands: [&Expr; 2],
        escape: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let mut texts = Vec::new();
        for operand in operands {
            let value = self.expression(operand, scope)?;
            let said = format!("{} ~~ unknown", value.kind.name());
            let text = self.convert(&value, Type::Text, Context::Implicit)?;
            texts.push(text.ok_or_else(|| no_operator(&said))?.sql);
        }
        let escape = match escape {
            None => "\\",
            Some(Expr::Value(value)) => match &value.value {
                Value::SingleQuotedString(text) if text.chars().count() <= 1 => text,
                _ => return Err(bad_escape()),
            },
            Some(_) => return Err(bad_escape()),
        };
        let not = if negated { "NOT " } else { "" };
        let sql = format!("({not}{function}({}, {}, {}))", texts[0], texts[1], crate::tokens::quote(escape));
        Ok(Expression::new(sql, Type::Bool))
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
        for when in conditions {
            results.push(self.expression(&when.result, scope)?);
        }
        results.push(match otherwise {
            Some(expr) => self.expression(expr, scope)?,
            None => Expression::unknown("NULL", Origin::Null),
        });
        let results = self.unify(&results, "CASE")?;
        let mut sql = format!("CASE{head}");
        for (when, result) in whens.iter().zip(&results) {
            sql += &format!(" WHEN {when} THEN {}", result.sql);
        }
        let last = &results[results.len() - 1];
        Ok(Expression::new(format!("({sql} ELSE {} END)", last.sql), last.kind))
    }

    fn scalar(&mut self, query: &Query, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let (sql, columns) = self.subquery(query, scope)?;
        let [column] = &columns[..] else {
            return Err(PgError::new(sqlstate::SYNTAX, "subquery must return only one column"));
        };
        let sql = format!("({sql})");
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
            Type::Timestamp | Type::Date => {
                let value = self.implicit(&value, Type::Timestamp)?;
                Expression::new(format!("pg_timestamp_to_timestamptz({}, {zone})", value.sql), Type::Timestamptz)
            }
            Type::Unknown => {
                let value = self.implicit(&value, Type::Timestamptz)?;
                Expression::new(format!("pg_timestamptz_to_timestamp({}, {zone})", value.sql), Type::Timestamp)
            }
            other => return Err(no_function(&format!("timezone(unknown, {})", other.name()))),
        })
    }
}

fn without_parentheses(expr: &Expr) -> &Expr {
    if let Expr::Nested(inner) = expr { without_parentheses(inner) } else { expr }
}

fn bad_escape() -> PgError {
    PgError::new("22025", "invalid escape string").hint("It must be empty or one character.")
}

fn arrays() -> PgError {
    PgError::unsupported("arrays are not supported").hint("write IN (…), with a parameter for each element")
}

pub(super) fn no_operator(said: &str) -> PgError {
    PgError::new("42883", format!("operator does not exist: {said}"))
        .hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

pub(super) fn no_function(said: &str) -> PgError {
    PgError::new("42883", format!("function {said} does not exist"))
        .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

fn ambiguous(said: &str) -> PgError {
    PgError::new("42725", format!("operator is not unique: {said}"))
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}

/// A type as a statement names it.
pub(super) fn data_type(named: &DataType) -> Result<(Type, Modifier), PgError> {
    let plain = |kind| Ok((kind, None));
    let length = |kind, length: &Option<CharacterLength>| match length {
        None => Ok((kind, None)),
        Some(CharacterLength::IntegerLength { length, unit: None }) if (1..=10_485_760).contains(length) => {
            Ok((kind, Some((*length as i32, 0))))
        }
        Some(_) => Err(PgError::new("22023", "the length of a type must be at least 1 and at most 10485760")),
    };
    match named {
        DataType::Bool | DataType::Boolean => plain(Type::Bool),
        DataType::SmallInt(None) | DataType::Int2(None) => plain(Type::Int2),
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => plain(Type::Int4),
        DataType::BigInt(None) | DataType::Int8(None) => plain(Type::Int8),
        DataType::Real | DataType::Float4 => plain(Type::Float4),
        DataType::Float8 | DataType::DoublePrecision | DataType::Float(ExactNumberInfo::None) => plain(Type::Float8),
        DataType::Double(ExactNumberInfo::None) => plain(Type::Float8),
        DataType::Float(ExactNumberInfo::Precision(bits @ 1..=53)) => {
            plain(if *bits <= 24 { Type::Float4 } else { Type::Float8 })
        }
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => numeric(info),
        DataType::Text => plain(Type::Text),
        DataType::Varchar(n) | DataType::CharacterVarying(n) | DataType::CharVarying(n) => length(Type::Varchar, n),
        DataType::Char(None) | DataType::Character(None) => Ok((Type::Char, Some((1, 0)))),
        DataType::Char(n) | DataType::Character(n) => length(Type::Char, n),
        DataType::Bytea => plain(Type::Bytea),
        DataType::Date => plain(Type::Date),
        DataType::Time(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => plain(Type::Time),
        DataType::Timestamp(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            plain(Type::Timestamp)
        }
        DataType::Timestamp(None | Some(6), TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => plain(Type::Timestamptz),
        DataType::Interval { fields: None, precision: None } => plain(Type::Interval),
        DataType::Uuid => plain(Type::Uuid),
        DataType::JSON => plain(Type::Json),
        DataType::JSONB => plain(Type::Jsonb),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => custom(&name.to_string()),
        other => Err(unsupported(format!("type {other}"))),
    }
}

fn custom(name: &str) -> Result<(Type, Modifier), PgError> {
    let kind = match name.to_lowercase().trim_start_matches("pg_catalog.") {
        "text" | "name" => Type::Text,
        "timestamptz" => Type::Timestamptz,
        "bytea" => Type::Bytea,
        "bpchar" => Type::Char,
        "float8" => Type::Float8,
        "float4" => Type::Float4,
        "int8" => Type::Int8,
        "int4" => Type::Int4,
        "int2" => Type::Int2,
        "bool" => Type::Bool,
        "varchar" => Type::Varchar,
        "uuid" => Type::Uuid,
        "numeric" => Type::Numeric,
        "jsonb" => Type::Jsonb,
        "json" => Type::Json,
        "timetz" => return Err(unsupported("type timetz")),
        other => return Err(PgError::new("42704", format!("type \"{other}\" does not exist"))),
    };
    Ok((kind, None))
}

fn numeric(info: &ExactNumberInfo) -> Result<(Type, Modifier), PgError> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok((Type::Numeric, None)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    if !(1..=1_000).contains(&precision) || !(-1_000..=1_000).contains(&scale) {
        return Err(PgError::new("22023", "a numeric has a precision of 1 to 1000 and a scale of -1000 to 1000"));
    }
    Ok((Type::Numeric, Some((precision as i32, scale as i32))))
}
