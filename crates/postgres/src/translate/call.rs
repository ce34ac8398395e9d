//! Functions, and what the parser takes for something of its own although PostgreSQL has a function for it.

use super::casts::Context;
use super::documents::{self, makes_json};
use super::expression::{Expression, Origin, common_modifier};
use super::functions::{self, ORDERED, Sort};
use super::kinds::Type;
use super::names::{folded, object};
use super::refusal::{refuse, unsupported};
use super::resolve::{Found, resolve};
use super::scope::Scope;
use super::translator::Translator;
use super::value::no_function;
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{
    CeilFloorKind, DateTimeField, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, TrimWhereField, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowSpec, WindowType,
};

/// How a function is called, beside its arguments.
#[derive(Default)]
struct Manner {
    distinct: bool,
    /// `ORDER BY …` within the parentheses.
    order: String,
    /// ` FILTER (…)` and ` OVER (…)` behind them.
    tail: String,
    is_window: bool,
    /// The argument is the row of a table.
    is_row: bool,
}

/// Whether a function is one of many rows.
fn is_aggregate(name: &str, arguments: &FunctionArguments) -> bool {
    let count = if let FunctionArguments::List(list) = arguments { list.args.len() } else { 0 };
    match name {
        "min" | "max" => count == 1,
        name if documents::AGGREGATES.contains(&name) => true,
        "count" | "group_concat" | "total" | "json_group_array" | "json_group_object" => true,
        _ => functions::named(name).is_some_and(|(sort, _)| sort == Sort::Aggregate),
    }
}

impl Translator<'_> {
    /// Whatever calls a function.
    pub(super) fn called(&mut self, expr: &Expr, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let date_field = |field: &DateTimeField| {
            Expression::unknown(String::new(), Origin::Literal(field.to_string().to_lowercase()))
        };
        match expr {
            Expr::Function(function) => self.function(function, scope),
            Expr::Extract { field, expr, .. } => {
                let value = self.expression(expr, scope)?;
                let value = self.in_zone(value)?;
                self.call("extract", vec![date_field(field), value], Manner::default())
            }
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                self.call_with("ceil", &[expr], scope)
            }
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                self.call_with("floor", &[expr], scope)
            }
            Expr::Position { expr, r#in } => self.call_with("position", &[r#in, expr], scope),
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let one = sqlparser::parser::Parser::new(&sqlparser::dialect::PostgreSqlDialect {});
                let one = one.try_with_sql("1").and_then(|mut parser| parser.parse_expr());
                let one = one.map_err(|error| PgError::new(sqlstate::SYNTAX, error.to_string()))?;
                let from = substring_from.as_deref().unwrap_or(&one);
                match substring_for {
                    Some(length) => self.call_with("substring", &[expr, from, length], scope),
                    None => self.call_with("substring", &[expr, from], scope),
                }
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "btrim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                match (trim_what.as_deref(), trim_characters.as_deref()) {
                    (None, None) => self.call_with(name, &[expr], scope),
                    (Some(what), None) | (None, Some([what])) => self.call_with(name, &[expr, what], scope),
                    _ => Err(unsupported(expr)),
                }
            }
            _ => Err(unsupported(format!("the expression {expr}"))),
        }
    }

    fn call_with(&mut self, name: &str, arguments: &[&Expr], scope: &Scope<'_>) -> Result<Expression, PgError> {
        let values = arguments.iter().map(|expr| self.expression(expr, scope)).collect::<Result<Vec<_>, _>>()?;
        self.call(name, values, Manner::default())
    }

    /// Parts of a `timestamptz` are those of the session's zone.
    fn in_zone(&mut self, value: Expression) -> Result<Expression, PgError> {
        if value.kind != Type::Timestamptz {
            return Ok(value);
        }
        self.cast(&value, Type::Timestamp, None)
    }

    fn function(&mut self, function: &Function, scope: &Scope<'_>) -> Result<Expression, PgError> {
        let name = object(&function.name)?;
        refuse(!function.within_group.is_empty(), "WITHIN GROUP")?;
        refuse(function.null_treatment.is_some(), "IGNORE NULLS")?;
        refuse(function.uses_odbc_syntax || function.parameters != FunctionArguments::None, "this call")?;
        let mut manner = Manner::default();
        let mut values = Vec::new();
        let is_aggregate = function.over.is_none() && is_aggregate(&name, &function.args);
        let before = (scope.loose.borrow().len(), scope.aggregates.replace(false));
        match &function.args {
            FunctionArguments::None => {
                scope.aggregates.set(before.1);
                return self.word(&name);
            }
            FunctionArguments::Subquery(_) => return Err(unsupported(format!("{name}(SELECT …)"))),
            FunctionArguments::List(list) => {
                manner.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
                for argument in &list.args {
                    match argument {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) if makes_json(&name) => {
                            let (value, is_row) = self.row_or_value(expr, scope)?;
                            values.push(value);
                            manner.is_row |= is_row;
                        }
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => values.push(self.expression(expr, scope)?),
                        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" => {}
                        other => return Err(unsupported(format!("the argument {other}"))),
                    }
                }
                for clause in &list.clauses {
                    match clause {
                        FunctionArgumentClause::OrderBy(terms) => {
                            manner.order = format!(" ORDER BY {}", self.order_terms(terms, scope)?);
                        }
                        other => return Err(unsupported(other)),
                    }
                }
            }
        }
        if let Some(filter) = &function.filter {
            let condition = self.expression(filter, scope)?;
            manner.tail = format!(" FILTER (WHERE {})", self.condition(&condition, "FILTER")?);
        }
        if is_aggregate && scope.aggregates.get() {
            return Err(PgError::new("42803", "aggregate function calls cannot be nested"));
        }
        if is_aggregate {
            scope.loose.borrow_mut().truncate(before.0);
        }
        scope.aggregates.set(is_aggregate || before.1 || scope.aggregates.get());
        if let Some(window) = &function.over {
            manner.is_window = true;
            manner.tail += &match window {
                WindowType::NamedWindow(ident) => format!(" OVER {}", super::name(&folded(ident))),
                WindowType::WindowSpec(spec) => format!(" OVER {}", self.window(spec, scope)?),
            };
        }
        let called = self.call(&name, values, manner)?;
        if is_aggregate {
            scope.folded.borrow_mut().push(called.sql.clone());
        }
        Ok(called)
    }

    /// A word that is a function without parentheses.
    fn word(&mut self, name: &str) -> Result<Expression, PgError> {
        let now = Expression::new(functions::NOW, Type::Timestamptz);
        match name {
            "current_timestamp" => Ok(now),
            "localtimestamp" => self.cast(&now, Type::Timestamp, None),
            "current_date" => self.cast(&now, Type::Date, None),
            "localtime" => self.cast(&now, Type::Time, None),
            _ => Err(unsupported(name)),
        }
    }

    /// A function with arguments.
    fn call(&mut self, name: &str, mut values: Vec<Expression>, manner: Manner) -> Result<Expression, PgError> {
        let is_char = values.iter().any(|value| value.kind == Type::Char);
        refuse(is_char && name == "octet_length", "octet_length() of a character(n)")?;
        if name == "date_part" || name == "extract" {
            values = values.into_iter().map(|value| self.in_zone(value)).collect::<Result<_, _>>()?;
        }
        if makes_json(name) {
            refuse(manner.distinct, "DISTINCT in this function")?;
            return self.make_json(name, &values, manner.is_row, &manner.order, &manner.tail);
        }
        match name {
            "count" => return self.count(&values, &manner),
            "min" | "max" => return self.extreme(name, values, &manner),
            "coalesce" | "greatest" | "least" | "nullif" | "concat" | "concat_ws" | "lag" | "lead" | "first_value"
            | "last_value" | "nth_value" | "ifnull" => return self.any_type(name, values, &manner),
            _ => {}
        }
        let Some((sort, candidates)) = functions::named(name) else { return self.of_sqlite(name, &values, &manner) };
        if sort == Sort::Set {
            return Err(
                unsupported(format!("{name}() outside of FROM")).hint(format!("select from it: FROM {name}(…)"))
            );
        }
        if values.iter().any(|value| value.kind == Type::Any) && sort != Sort::Scalar {
            return self.of_sqlite(name, &values, &manner);
        }
        // What SQLite gives is a text if a text is wanted.
        let kinds: Vec<Type> =
            values.iter().map(|value| if value.kind == Type::Any { Type::Unknown } else { value.kind }).collect();
        let names: Vec<&str> = values.iter().map(|value| value.kind.name()).collect();
        let said = format!("{name}({})", names.join(", "));
        // PostgreSQL's third one is of network addresses, and what is not known may be one.
        let may_be_address = name == "trunc" && matches!(&values[..], [value] if value.kind == Type::Unknown);
        let found = if may_be_address { Found::Many } else { resolve(candidates, &kinds) };
        let signature = match found {
            Found::One(signature) => signature,
            Found::None => return Err(no_function(&said)),
            Found::Many => {
                return Err(PgError::new("42725", format!("function {said} is not unique"))
                    .hint("Could not choose a best candidate function. You might need to add explicit type casts."));
            }
        };
        refuse(signature.how.is_empty(), &said)?;
        let mut arguments = Vec::new();
        for (value, input) in values.iter().zip(signature.inputs) {
            arguments.push(self.implicit(value, *input)?.sql);
        }
        if name == "string_agg" && manner.distinct {
            return self.distinct_texts(&arguments, &values[1], &manner);
        }
        if sort == Sort::Scalar && (manner.distinct || !manner.tail.is_empty() || !manner.order.is_empty()) {
            return Err(PgError::new("42809", format!("{name} is not an aggregate function")));
        }
        if sort == Sort::Window && !manner.is_window {
            return Err(PgError::new("42P20", format!("window function {name} requires an OVER clause")));
        }
        self.aggregate(signature.how, signature.result, arguments, &manner)
    }

    /// A function's words, with DISTINCT and ORDER BY inside of its parentheses and the rest behind them.
    fn aggregate(
        &mut self,
        how: &str,
        result: Type,
        mut arguments: Vec<String>,
        manner: &Manner,
    ) -> Result<Expression, PgError> {
        if manner.distinct {
            // SQLite wants a single argument then.
            refuse(how.contains(','), "DISTINCT in this function")?;
            arguments[0] = format!("DISTINCT {}{}", arguments[0], result.collation());
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut sql = self.fill(how, &arguments)?;
        if !manner.order.is_empty() {
            sql.truncate(sql.len() - 1);
            sql += &format!("{})", manner.order);
        }
        Ok(Expression::new(sql + &manner.tail, result))
    }

    /// Different texts in their own order, which PostgreSQL has them in without being told, with a separator that is
    /// the same for all. SQLite takes DISTINCT with one argument.
    fn distinct_texts(
        &mut self,
        arguments: &[String],
        separator: &Expression,
        manner: &Manner,
    ) -> Result<Expression, PgError> {
        let [text, between] = arguments else { return Err(no_function("string_agg")) };
        let order = manner.order.strip_prefix(" ORDER BY ").map_or(Some(""), |order| order.strip_prefix(text.as_str()));
        let order = order.map(|order| order.trim_end_matches(" NULLS FIRST").trim_end_matches(" NULLS LAST"));
        let is_literal = matches!(separator.origin, Origin::Literal(_));
        let (Some(order @ ("" | " DESC")), true) = (order, is_literal) else {
            return Err(unsupported("DISTINCT in this function")
                .hint("order by what is aggregated, and give a literal as the separator"));
        };
        let texts = format!("pg_json_agg(DISTINCT pg_json_string({text})){}", manner.tail);
        let sql = format!("pg_text_join({texts}, {between}, {})", u8::from(!order.is_empty()));
        Ok(Expression::new(sql, Type::Text))
    }

    fn count(&mut self, values: &[Expression], manner: &Manner) -> Result<Expression, PgError> {
        let sql = match values {
            [] => format!("count(*){}", manner.tail),
            [value] => {
                let value = match value.origin {
                    Origin::Parameter(place) => self.decide(place, Type::Text)?,
                    _ => value.clone(),
                };
                if manner.distinct {
                    Self::comparable(value.kind)?;
                }
                let distinct = if manner.distinct { "DISTINCT " } else { "" };
                format!("count({distinct}{}){}", value.compared(), manner.tail)
            }
            _ => return Err(no_function("count with several arguments")),
        };
        Ok(Expression::new(sql, Type::Int8))
    }

    /// MIN and MAX of rows; of several values that is LEAST and GREATEST.
    fn extreme(&mut self, name: &str, values: Vec<Expression>, manner: &Manner) -> Result<Expression, PgError> {
        let [value] = &values[..] else { return Err(no_function(&format!("{name} with several arguments"))) };
        let value = match value.kind {
            Type::Unknown => self.implicit(value, Type::Text)?,
            Type::Varchar => self.implicit(value, Type::Text)?,
            _ => value.clone(),
        };
        let kind = value.kind;
        if !ORDERED.contains(&kind) && !matches!(kind, Type::Any | Type::Char) {
            Self::comparable(kind)?;
            return Err(no_function(&format!("{name}({})", kind.name())));
        }
        let sql = format!("{name}({}){}", value.compared(), manner.tail);
        Ok(Expression { modifier: value.modifier.filter(|_| kind == Type::Char), ..Expression::new(sql, kind) })
    }

    /// Functions that take values of any type, and give one of the same.
    fn any_type(&mut self, name: &str, values: Vec<Expression>, manner: &Manner) -> Result<Expression, PgError> {
        if values.is_empty() {
            return Err(no_function(&format!("{name}()")));
        }
        let list = |values: &[Expression]| values.iter().map(|value| value.sql.as_str()).collect::<Vec<_>>().join(", ");
        match name {
            "coalesce" | "ifnull" => {
                let values = self.unify(&values, "COALESCE")?;
                let sql =
                    if values.len() == 1 { values[0].sql.clone() } else { format!("coalesce({})", list(&values)) };
                Ok(Expression { modifier: common_modifier(&values), ..Expression::new(sql, values[0].kind) })
            }
            "nullif" => self.null_if(&values),
            "greatest" | "least" => self.best(name, &values),
            "concat" | "concat_ws" => {
                let mut texts = Vec::new();
                for value in &values {
                    // As it is shown, and not as it is cast.
                    if value.kind == Type::Bool {
                        texts.push(Expression::new(format!("substr(pg_out_bool({}), 1, 1)", value.sql), Type::Text));
                        continue;
                    }
                    let text = self.convert(value, Type::Text, Context::Assignment)?;
                    texts.push(text.ok_or_else(|| no_function(name))?);
                }
                Ok(Expression::new(format!("{name}({})", list(&texts)), Type::Text))
            }
            _ => self.neighbour(name, values, manner),
        }
    }

    fn null_if(&mut self, values: &[Expression]) -> Result<Expression, PgError> {
        let [left, right] = values else { return Err(no_function("nullif")) };
        let equal = self.operate("=", left, right)?;
        // The value is that which was compared.
        let has_own = left.kind.bits().is_some() && right.kind.bits().is_some()
            || left.kind.category() == super::kinds::Category::Moment;
        let kind = match self.unify(values, "NULLIF")?[0].kind {
            Type::Varchar => Type::Text,
            // These are compared without becoming one type.
            _ if has_own => left.kind,
            kind => kind,
        };
        let left = self.implicit(left, kind)?;
        let sql = format!("(CASE WHEN {} THEN NULL ELSE {} END)", equal.sql, left.sql);
        Ok(Expression { modifier: left.modifier, ..Expression::new(sql, kind) })
    }

    /// The largest or smallest of several values, without regard to NULLs.
    fn best(&mut self, name: &str, values: &[Expression]) -> Result<Expression, PgError> {
        /// Each value more doubles what SQLite is told.
        const VALUES_MAX: usize = 8;
        refuse(values.len() > VALUES_MAX, &format!("{name} of more than {VALUES_MAX} values"))?;
        let values = self.unify(values, &name.to_uppercase())?;
        Self::comparable(values[0].kind)?;
        let function = if name == "greatest" { "max" } else { "min" };
        let mut best = values[0].sql.clone();
        let collation = values[0].kind.collation();
        for value in &values[1..] {
            best = self
                .fill(&format!("coalesce({function}({{0}}{collation}, {{1}}), {{0}}, {{1}})"), &[&best, &value.sql])?;
        }
        Ok(Expression { modifier: common_modifier(&values), ..Expression::new(best, values[0].kind) })
    }

    /// A value of another row of the window.
    fn neighbour(&mut self, name: &str, mut values: Vec<Expression>, manner: &Manner) -> Result<Expression, PgError> {
        if !manner.is_window {
            return Err(PgError::new("42P20", format!("window function {name} requires an OVER clause")));
        }
        if values.len() > 1 {
            values[1] = self.implicit(&values[1].clone(), Type::Int4)?;
        }
        if values.len() > 2 {
            let both = self.unify(&[values[0].clone(), values[2].clone()], name)?;
            values[0] = both[0].clone();
            values[2] = both[1].clone();
        }
        let first = if values[0].kind == Type::Unknown {
            self.implicit(&values[0].clone(), Type::Text)?
        } else {
            values[0].clone()
        };
        values[0] = first.clone();
        let list: Vec<&str> = values.iter().map(|value| value.sql.as_str()).collect();
        let sql = format!("{name}({}){}", list.join(", "), manner.tail);
        Ok(Expression { modifier: first.modifier, ..Expression::new(sql, first.kind) })
    }

    /// A function that only SQLite has.
    fn of_sqlite(&mut self, name: &str, values: &[Expression], manner: &Manner) -> Result<Expression, PgError> {
        if functions::REFUSED.contains(&name) {
            return Err(unsupported(format!("function {name}()")));
        }
        if name.starts_with("pg_") || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(no_function(&format!("{name}()")));
        }
        let mut arguments = Vec::new();
        for value in values {
            arguments.push(self.implicit(value, Type::Any)?.sql);
        }
        let distinct = if manner.distinct { "DISTINCT " } else { "" };
        let sql = format!("{name}({distinct}{}{}){}", arguments.join(", "), manner.order, manner.tail);
        Ok(Expression::new(sql, Type::Any))
    }

    /// `(PARTITION BY … ORDER BY … frame)`
    pub(super) fn window(&mut self, spec: &WindowSpec, scope: &Scope<'_>) -> Result<String, PgError> {
        let mut parts = Vec::new();
        if let Some(ident) = &spec.window_name {
            parts.push(super::name(&folded(ident)));
        }
        if !spec.partition_by.is_empty() {
            let mut keys = Vec::new();
            for expr in &spec.partition_by {
                let key = self.expression(expr, scope)?;
                Self::comparable(key.kind)?;
                keys.push(key.compared());
            }
            parts.push(format!("PARTITION BY {}", keys.join(", ")));
        }
        if !spec.order_by.is_empty() {
            parts.push(format!("ORDER BY {}", self.order_terms(&spec.order_by, scope)?));
        }
        if let Some(frame) = &spec.window_frame {
            parts.push(self.frame(frame, scope)?);
        }
        Ok(format!("({})", parts.join(" ")))
    }

    fn frame(&mut self, frame: &WindowFrame, scope: &Scope<'_>) -> Result<String, PgError> {
        let units = match frame.units {
            WindowFrameUnits::Rows => "ROWS",
            WindowFrameUnits::Range => "RANGE",
            WindowFrameUnits::Groups => "GROUPS",
        };
        let mut bound = |bound: &WindowFrameBound| {
            Ok::<String, PgError>(match bound {
                WindowFrameBound::CurrentRow => "CURRENT ROW".into(),
                WindowFrameBound::Preceding(None) => "UNBOUNDED PRECEDING".into(),
                WindowFrameBound::Following(None) => "UNBOUNDED FOLLOWING".into(),
                _ if frame.units == WindowFrameUnits::Range => return Err(unsupported("a RANGE of values")),
                WindowFrameBound::Preceding(Some(expr)) => {
                    let value = self.expression(expr, scope)?;
                    format!("{} PRECEDING", self.implicit(&value, Type::Int8)?.sql)
                }
                WindowFrameBound::Following(Some(expr)) => {
                    let value = self.expression(expr, scope)?;
                    format!("{} FOLLOWING", self.implicit(&value, Type::Int8)?.sql)
                }
            })
        };
        let start = bound(&frame.start_bound)?;
        Ok(match &frame.end_bound {
            Some(end) => format!("{units} BETWEEN {start} AND {}", bound(end)?),
            None => format!("{units} {start}"),
        })
    }
}
