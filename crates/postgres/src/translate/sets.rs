//! Functions in FROM: those of one value, which are a table of one row, and `generate_series`.

use super::expression::Expression;
use super::from::{enter, renamed};
use super::functions::{self, Sort};
use super::names::{folded, name, object};
use super::refusal::unsupported;
use super::resolve::{Found, resolve};
use super::schema::Column;
use super::scope::{Scope, Source};
use super::translator::Translator;
use super::value::no_function;
use crate::error::PgError;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, ObjectName, TableAlias,
};

impl Translator<'_> {
    /// A function in FROM. Its one column is called as the table is, unless it has a name of its own.
    pub(super) fn set(
        &mut self,
        called: &ObjectName,
        arguments: &[FunctionArg],
        alias: Option<&TableAlias>,
        scope: &mut Scope<'_>,
    ) -> Result<String, PgError> {
        let function = object(called)?;
        let outer = Scope::within(scope.outer);
        let (query, value) = {
            // It may be about the tables before it, which SQLite does not know there.
            let beside = self.set_of(called, &function, arguments, &Scope::within(Some(scope)))?;
            let alone = self.set_of(called, &function, arguments, &outer);
            alone.ok().filter(|alone| *alone == beside).ok_or_else(|| {
                unsupported(format!("{called}() of a table beside it")).hint("call it in the list of columns")
            })?
        };
        if outer.aggregates.take() {
            return Err(PgError::new("42803", "aggregate functions are not allowed in functions in FROM"));
        }
        let table = alias.map_or_else(|| function.clone(), |alias| folded(&alias.name));
        let mut columns = vec![Column::new(table.clone(), value.kind, value.modifier)];
        if let Some(alias) = alias {
            columns = renamed(columns, alias)?;
        }
        let names = [columns[0].name.clone()];
        enter(Source::called(&table, &columns, &names), scope)?;
        Ok(format!("(SELECT {} AS {}{query}) AS {}", value.sql, name(&names[0]), name(&table)))
    }

    /// What gives the rows, and the value in each of them.
    fn set_of(
        &mut self,
        called: &ObjectName,
        function: &str,
        arguments: &[FunctionArg],
        scope: &Scope<'_>,
    ) -> Result<(String, Expression), PgError> {
        let Some((Sort::Set, candidates)) = functions::named(function) else {
            let value = self.expression(&call(called, arguments), scope)?;
            return Ok((String::new(), value));
        };
        let mut values = Vec::new();
        for argument in arguments {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
                return Err(unsupported(format!("the argument {argument}")));
            };
            values.push(self.expression(expr, scope)?);
        }
        let kinds: Vec<_> = values.iter().map(|value| value.kind).collect();
        let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        let said = format!("{function}({})", names.join(", "));
        let signature = match resolve(candidates, &kinds) {
            Found::One(signature) => signature,
            Found::None => return Err(no_function(&said)),
            Found::Many => return Err(PgError::new("42725", format!("function {said} is not unique"))),
        };
        let mut inputs = Vec::new();
        for (value, input) in values.iter().zip(signature.inputs) {
            inputs.push(self.implicit(value, *input)?.sql);
        }
        let inputs: Vec<_> = inputs.iter().map(String::as_str).collect();
        let rows = self.fill(signature.how, &inputs)?;
        Ok((format!(" FROM ({rows})"), Expression::new("\"value\"", signature.result)))
    }
}

/// A call as it would stand in an expression.
fn call(called: &ObjectName, arguments: &[FunctionArg]) -> Expr {
    let arguments = FunctionArgumentList { duplicate_treatment: None, args: arguments.to_vec(), clauses: Vec::new() };
    Expr::Function(Function {
        name: called.clone(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(arguments),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
