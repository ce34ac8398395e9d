//! Tables that are made of the rows of a query: CREATE TABLE AS, and SELECT INTO.

use super::define::different;
use super::names::{name, object};
use super::refusal::{refuse, unsupported};
use super::schema::Column;
use super::translator::Translator;
use super::type_check::check;
use crate::error::PgError;
use crate::tag::Tag;
use sqlparser::ast::{CreateTable, Expr, ObjectName, Query, Select, SelectInto, SetExpr};

/// A query that makes a table of its rows: which one, and the query without that.
pub(super) fn into(query: &Query) -> Option<(SelectInto, Query)> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let target = select.into.clone()?;
    let select = Select { into: None, ..(**select).clone() };
    Some((target, Query { body: Box::new(SetExpr::Select(Box::new(select))), ..query.clone() }))
}

impl Translator<'_> {
    pub(super) fn create_table_as(&mut self, table: &CreateTable, query: &Query) -> Result<String, PgError> {
        refuse(table.temporary || table.or_replace, "a temporary table")?;
        refuse(!table.columns.is_empty() || !table.constraints.is_empty(), "CREATE TABLE AS with types of columns")?;
        refuse(table.on_commit.is_some() || table.partition_by.is_some(), "this table")?;
        let called = object(&table.name)?;
        let is_there = table.if_not_exists && self.schema.has_relation(&called);
        let is_empty = table.with_data.as_ref().is_some_and(|with| !with.data);
        let (create, insert) = self.table_of(&called, query)?;
        if is_there || is_empty {
            self.tag = Some(Tag::Words("CREATE TABLE AS".into()));
            let exists = create.replacen("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1);
            return Ok(if is_there { exists } else { create });
        }
        self.tag = Some(Tag::Changes("SELECT"));
        self.first.push(create);
        Ok(insert)
    }

    /// `SELECT … INTO table`
    pub(super) fn select_into(&mut self, target: &SelectInto, rest: &Query) -> Result<String, PgError> {
        refuse(target.temporary, "a temporary table")?;
        let parts = match &target.targets[..] {
            [Expr::Identifier(ident)] => vec![ident.clone()],
            [Expr::CompoundIdentifier(idents)] => idents.clone(),
            _ => return Err(unsupported("this SELECT INTO")),
        };
        let (create, insert) = self.table_of(&object(&ObjectName::from(parts))?, rest)?;
        self.tag = Some(Tag::Changes("SELECT"));
        self.first.push(create);
        Ok(insert)
    }

    /// How a table is made that has the columns of a query, and how its rows come there.
    fn table_of(&mut self, called: &str, query: &Query) -> Result<(String, String), PgError> {
        let mut body = self.query(query, None)?;
        self.settle(&mut body)?;
        let columns = body.columns();
        different(&columns)?;
        self.assign_columns(&mut body, &columns)?;
        let parts = columns.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<String> = columns.iter().map(|column| name(&column.name)).collect();
        let (called, rows) = (name(called), body.render(None));
        Ok((
            format!("CREATE TABLE {called} ({})", parts.join(", ")),
            format!("INSERT INTO {called}({}) {rows}", names.join(", ")),
        ))
    }
}

/// A column as it is declared.
fn part(column: &Column) -> Result<String, PgError> {
    let check = check(column);
    if check.is_empty() {
        let kind = column.kind.name();
        return Err(unsupported(format!("a column of type {kind}: {}", column.name)).hint("cast it to a type"));
    }
    Ok(format!("{} {}{} CHECK ({check})", name(&column.name), column.declaration(), column.kind.collation()))
}
