//! Comparisons beyond two operands: rows, lists, subqueries, ranges and patterns.

use super::casts::{Context, from_text};
use super::expression::{Expression, Origin};
use super::kinds::Type;
use super::operators;
use super::refusal::{mismatch, no_operator, refuse, unsupported};
use super::scope::Scope;
use super::translator::Translator;
use super::type_names::data_type;
use crate::error::{PgError, sqlstate};
use crate::tokens::quote;
use crate::types::elements;
use sqlparser::ast::{ArrayElemTypeDef, BinaryOperator, DataType, Expr, InTarget, Query, Value};

impl Translator<'_> {
    /// Values that are compared with the first of them, as values of one type.
    fn comparable_types(&mut self, values: &[Expression]) -> Result<Vec<Expression>, PgError> {
        let kinds: Vec<Type> = values.iter().map(|value| value.kind).collect();
        if super::resolve::common(&kinds).is_none() {
            let other = kinds.iter().find(|kind| super::resolve::common(&[kinds[0], **kind]).is_none());
            let other = other.unwrap_or(&kinds[0]);
            return Err(no_operator(&format!("{} = {}", kinds[0].name(), other.name())));
        }
        self.unify(values, "comparison")
    }

    /// Rows of the same length, compared.
    pub(super) fn rows(
        &mut self,
        name: &str,
        left: &[Expr],
        right: &[Expr],
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        if left.len() != right.len() || !operators::is_comparison(name) {
            return Err(PgError::new(sqlstate::SYNTAX, "unequal number of entries in row expressions"));
        }
        let (mut ones, mut others) = (Vec::new(), Vec::new());
        for (one, other) in left.iter().zip(right) {
            let (one, other) = (self.expression(one, scope)?, self.expression(other, scope)?);
            let both = self.comparable_types(&[one, other])?;
            Self::comparable(both[0].kind)?;
            ones.push(both[0].compared());
            others.push(both[1].sql.clone());
        }
        Ok(Expression::new(format!("(({}) {name} ({}))", ones.join(", "), others.join(", ")), Type::Bool))
    }

    pub(super) fn is_null(&mut self, inner: &Expr, how: &str, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let mut value = self.expression(inner, scope)?;
        if let Origin::Parameter(place) = value.origin {
            value = self.decide(place, Type::Text)?;
        }
        Ok(Expression::new(format!("({} {how})", value.sql), Type::Bool))
    }

    pub(super) fn is_truth(&mut self, inner: &Expr, how: &str, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let value = self.expression(inner, scope)?;
        let sql = self.condition(&value, how)?;
        Ok(Expression::new(format!("({sql} {how})"), Type::Bool))
    }

    pub(super) fn distinct(
        &mut self,
        left: &Expr,
        how: &str,
        right: &Expr,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let both = [self.expression(left, scope)?, self.expression(right, scope)?];
        let both = self.comparable_types(&both)?;
        Self::comparable(both[0].kind)?;
        Ok(Expression::new(format!("({} {how} {})", both[0].compared(), both[1].sql), Type::Bool))
    }

    pub(super) fn between(&mut self, all: [&Expr; 3], negated: bool, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let values = all.into_iter().map(|expr| self.expression(expr, scope)).collect::<Result<Vec<_>, _>>()?;
        let values = self.comparable_types(&values)?;
        Self::comparable(values[0].kind)?;
        let not = if negated { "NOT " } else { "" };
        let sql = format!("({} {not}BETWEEN {} AND {})", values[0].compared(), values[1].sql, values[2].sql);
        Ok(Expression::new(sql, Type::Bool))
    }

    pub(super) fn is_in(
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
        self.in_values(&values, negated)
    }

    /// Whether the first of these values is one of the others.
    fn in_values(&mut self, values: &[Expression], negated: bool) -> Result<Expression, PgError> {
        let not = if negated { "NOT " } else { "" };
        let values = self.comparable_types(values)?;
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

    /// `= ANY (…)` or, negated, `<> ALL (…)` of a list or a subquery.
    pub(super) fn quantified(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        negated: bool,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let known = if negated { BinaryOperator::NotEq } else { BinaryOperator::Eq };
        match without_parentheses(right) {
            Expr::Subquery(query) if *op != known => self.any_or_all(left, op, query, negated, scope),
            _ if *op != known => Err(arrays()),
            Expr::Array(array) => self.in_list(left, &array.elem, negated, scope),
            Expr::Subquery(query) => self.in_query(left, query, negated, scope),
            Expr::Cast { expr, data_type: DataType::Array(array), format: None, .. } => {
                let (ArrayElemTypeDef::SquareBracket(of, _) | ArrayElemTypeDef::Parenthesis(of)) = array else {
                    return Err(arrays());
                };
                let (of, modifier) = data_type(of)?;
                refuse(modifier.is_some(), "an array of values with a length")?;
                self.in_array(left, expr, Some(of), negated, scope)
            }
            other => self.in_array(left, other, None, negated, scope),
        }
    }

    /// A comparison with the rows of a subquery: with any of them, or with all.
    fn any_or_all(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        query: &Query,
        all: bool,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let op = op.to_string();
        let op = if op == "!=" { "<>" } else { op.as_str() };
        if !operators::is_comparison(op) {
            return Err(unsupported(format!("{op} with ANY or ALL")));
        }
        let mut body = self.query(query, Some(scope))?;
        self.settle(&mut body)?;
        let [column] = &body.columns()[..] else {
            return Err(PgError::new(sqlstate::SYNTAX, "subquery has too many columns"));
        };
        let left = self.expression(left, scope)?;
        let compared = self.operate(op, &left, &Expression::new("\"0\"", column.kind))?.sql;
        let rows = format!("SELECT {compared} AS \"is\" FROM ({})", body.render(Some(&["0".to_owned()])));
        // One of them decides; else nothing is known if one is not known.
        let (best, decides) = if all { ("min", 0) } else { ("max", 1) };
        let sql = format!(
            "(SELECT CASE WHEN {best}(\"is\") = {decides} THEN {decides} \
             WHEN count(*) = count(\"is\") THEN {} END FROM ({rows}))",
            1 - decides
        );
        Ok(Expression::new(sql, Type::Bool))
    }

    /// Whether a value is in an array, which is a parameter or a literal.
    fn in_array(
        &mut self,
        left: &Expr,
        array: &Expr,
        of: Option<Type>,
        negated: bool,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let Expr::Value(array) = without_parentheses(array) else { return Err(arrays()) };
        let left = self.expression(left, scope)?;
        match &array.value {
            Value::SingleQuotedString(text) => {
                let mut values = vec![left];
                for element in elements(text)? {
                    let literal = match element {
                        Some(text) => Expression::unknown(quote(&text), Origin::Literal(text)),
                        None => Expression::unknown("NULL", Origin::Null),
                    };
                    values.push(match of {
                        Some(of) => self.cast(&literal, of, None)?,
                        None => self.implicit(&literal, values[0].kind)?,
                    });
                }
                self.in_values(&values, negated)
            }
            Value::Placeholder(text) => {
                let place = self.place(text)?;
                let of = of.unwrap_or(if left.kind == Type::Unknown { Type::Text } else { left.kind });
                let known = self.parameters[place];
                let kind = if known == Type::Unknown { of.array().ok_or_else(arrays)? } else { known };
                let Type::Array(element) = kind else { return Err(arrays()) };
                self.parameters[place] = kind;
                let is_stored = matches!(element, Type::Bool | Type::Int2 | Type::Int4 | Type::Int8);
                let value = if is_stored { "value".into() } else { self.fill(from_text(*element), &["value"])? };
                let both = self.comparable_types(&[left, Expression::new(value, *element)])?;
                Self::comparable(both[0].kind)?;
                let (not, place) = (if negated { "NOT " } else { "" }, place + 1);
                // Compared with an array that is NULL nothing is known, as with NULL in a list.
                let elements = format!("SELECT {} FROM json_each(coalesce(?{place}, '[null]'))", both[1].sql);
                let sql = format!("({} {not}IN ({elements}))", both[0].compared());
                Ok(Expression::new(sql, Type::Bool))
            }
            _ => Err(arrays()),
        }
    }

    pub(super) fn like(
        &mut self,
        function: &str,
        negated: bool,
        operands: [&Expr; 2],
        escape: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Expression, PgError> {
        let mut texts = Vec::new();
        for operand in operands {
            let mut value = self.expression(operand, scope)?;
            let said = format!("{} ~~ unknown", value.kind.name());
            if value.kind == Type::Char {
                // A pattern sees the blanks at the end.
                let Some((length, _)) = value.modifier else {
                    return Err(unsupported("LIKE of a character without length"));
                };
                value = Expression::new(format!("pg_rpad({}, {length})", value.sql), Type::Text);
            }
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
        let sql = format!("({not}{function}({}, {}, {}))", texts[0], texts[1], quote(escape));
        Ok(Expression::new(sql, Type::Bool))
    }
}

fn without_parentheses(expr: &Expr) -> &Expr {
    if let Expr::Nested(inner) = expr { without_parentheses(inner) } else { expr }
}

fn bad_escape() -> PgError {
    PgError::new("22025", "invalid escape string").hint("It must be empty or one character.")
}

pub(super) fn arrays() -> PgError {
    PgError::unsupported("arrays are not supported, but for = ANY (…) and <> ALL (…)")
        .hint("write IN (…), with a parameter for each element")
}
