//! INSERT, UPDATE and DELETE: every value becomes one of its column's declared type, or is refused.

use super::body::Body;
use super::kinds::Type;
use super::names::{folded, name, object};
use super::refusal::{refuse, unsupported};
use super::schema::{Column, Table};
use super::scope::{Scope, Source};
use super::translator::Translator;
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, Delete, Expr, FromTable, Ident, Insert, InsertOverriding,
    OnConflictAction, OnInsert, Query, SelectItem, SetExpr, TableFactor, TableObject, TableWithJoins, Update,
    UpdateTableFromKind,
};

/// A statement that writes, the columns that it returns, and whether it changes the schema, which it does not.
type Written = (String, Vec<Column>, bool);

impl Translator<'_> {
    pub(super) fn insert(&mut self, insert: &Insert) -> Result<Written, PgError> {
        refuse(insert.or.is_some() || insert.replace_into || insert.ignore, "INSERT OR")?;
        refuse(insert.overwrite || insert.by_name || !insert.assignments.is_empty(), "this INSERT")?;
        refuse(
            insert.partitioned.is_some() || insert.output.is_some() || insert.insert_alias.is_some(),
            "this INSERT",
        )?;
        refuse(insert.overriding == Some(InsertOverriding::User), "OVERRIDING USER VALUE")?;
        let TableObject::TableName(table) = &insert.table else { return Err(unsupported("INSERT into a function")) };
        let table = self.written(&object(table)?)?;
        let alias = insert.table_alias.as_ref().map_or_else(|| table.name.clone(), |alias| folded(&alias.alias));
        let mut columns =
            insert.columns.iter().map(|name| target(&table, &object(name)?)).collect::<Result<Vec<_>, _>>()?;
        let is_listed = !columns.is_empty();
        if !is_listed {
            columns = table.columns.iter().filter(|column| !column.is_generated).cloned().collect();
        }
        if insert.overriding.is_some() {
            columns.iter_mut().for_each(|column| column.is_always = false);
        }
        let source = match &insert.source {
            None => "DEFAULT VALUES".into(),
            Some(query) => {
                let is_plain = query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none();
                match &*query.body {
                    SetExpr::Values(values) if is_plain && query.fetch.is_none() => {
                        let width = values.rows.first().map_or(0, |row| row.content.len());
                        fewer(&mut columns, width, is_listed)?;
                        let rows: Vec<&Vec<Expr>> = values.rows.iter().map(|row| &row.content).collect();
                        self.rows_of(&rows, &columns)?
                    }
                    _ => {
                        let mut body = self.query(query, None)?;
                        fewer(&mut columns, body.columns().len(), is_listed)?;
                        columns.iter().try_for_each(numbers_itself)?;
                        self.assign_columns(&mut body, &columns)?;
                        selected(&body, insert.on.is_some())
                    }
                }
            }
        };
        let list: Vec<String> = columns.iter().map(|column| name(&column.name)).collect();
        let list = if insert.source.is_none() { String::new() } else { format!("({})", list.join(", ")) };
        let called = if alias == table.name { String::new() } else { format!(" AS {}", name(&alias)) };
        let on = match &insert.on {
            None => String::new(),
            Some(OnInsert::OnConflict(conflict)) => self.conflict(conflict, &table, &alias)?,
            Some(_) => return Err(unsupported("ON DUPLICATE KEY")),
        };
        let (returning, columns) = self.returning(insert.returning.as_deref(), &table, &alias)?;
        Ok((format!("INSERT INTO {}{called}{list} {source}{on}{returning}", name(&table.name)), columns, false))
    }

    /// A table that can be written.
    pub(super) fn written(&self, table: &str) -> Result<Table, PgError> {
        let found = self.known(table)?.clone();
        if found.is_view {
            return Err(PgError::new("55000", format!("cannot write view \"{table}\"")).hint("write its table"));
        }
        Ok(found)
    }

    fn rows_of(&mut self, rows: &[&Vec<Expr>], columns: &[Column]) -> Result<String, PgError> {
        let scope = Scope::default();
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != columns.len() {
                return Err(PgError::new(sqlstate::SYNTAX, "VALUES lists must all be the same length"));
            }
            let mut values = Vec::with_capacity(row.len());
            for (expr, column) in row.iter().zip(columns) {
                if !is_default(expr) {
                    numbers_itself(column)?;
                }
                values.push(self.value_for(expr, column, &scope)?);
            }
            all.push(format!("({})", values.join(", ")));
        }
        Ok(format!("VALUES {}", all.join(", ")))
    }

    /// A value for a column, or its default.
    fn value_for(&mut self, expr: &Expr, column: &Column, scope: &Scope<'_>) -> Result<String, PgError> {
        if is_default(expr) {
            let default = column.default.as_ref().filter(|_| !column.is_rowid);
            return Ok(default.map_or_else(|| "NULL".into(), |default| format!("({default})")));
        }
        let value = self.expression(expr, scope)?;
        Ok(self.assign(&value, column)?.sql)
    }

    /// Columns that become those of the one row of a query, or NULL if it has none.
    fn row_for(&mut self, query: &Query, columns: &[Column], scope: &Scope<'_>) -> Result<String, PgError> {
        let mut body = self.query(query, Some(scope))?;
        if body.columns().len() != columns.len() {
            return Err(PgError::new(sqlstate::SYNTAX, "number of columns does not match number of values"));
        }
        let is_one = body.is_one;
        self.assign_columns(&mut body, columns)?;
        let names: Vec<String> = columns.iter().map(|column| name(&column.name)).collect();
        let inner: Vec<String> = (0..columns.len()).map(|at| at.to_string()).collect();
        let rows = body.render(Some(&inner));
        let only = |(at, column): (usize, &String)| match at {
            // SQLite would take the first row of several.
            0 if !is_one => format!("iif(count(*) > 1, pg_only(count(*)), max({}))", name(column)),
            _ => format!("max({})", name(column)),
        };
        let row: Vec<String> = inner.iter().enumerate().map(only).collect();
        Ok(format!("({}) = (SELECT {} FROM ({rows}))", names.join(", "), row.join(", ")))
    }

    fn conflict(
        &mut self,
        conflict: &sqlparser::ast::OnConflict,
        table: &Table,
        alias: &str,
    ) -> Result<String, PgError> {
        let place = match &conflict.conflict_target {
            None => String::new(),
            Some(ConflictTarget::Columns { columns, predicate }) => {
                let list = columns.iter().map(|ident| Ok(name(&target(table, &folded(ident))?.name)));
                let list = list.collect::<Result<Vec<_>, PgError>>()?;
                let scope = plain(table);
                let predicate = self.clause("WHERE", predicate.as_ref(), &scope)?;
                format!(" ({}){predicate}", list.join(", "))
            }
            Some(ConflictTarget::OnConstraint(constraint)) => {
                let constraint = object(constraint)?;
                let text = || format!("constraint \"{constraint}\" for table \"{}\" does not exist", table.name);
                let found = table.unique.iter().find(|(called, _)| *called == constraint);
                let (_, columns) = found.ok_or_else(|| PgError::new("42704", text()))?;
                format!(" ({})", columns.iter().map(|column| name(column)).collect::<Vec<_>>().join(", "))
            }
        };
        let OnConflictAction::DoUpdate(update) = &conflict.action else {
            return Ok(format!(" ON CONFLICT{place} DO NOTHING"));
        };
        let mut scope = Scope::default();
        scope.sources.push(Source::new(alias, &table.columns));
        scope.sources.push(Source::new("excluded", &table.columns));
        // A name without a table is the table's.
        for named in scope.sources.iter_mut().skip(1).flat_map(|source| &mut source.columns) {
            named.is_merged = true;
        }
        let set = self.assignments(&update.assignments, table, &scope)?;
        let condition = self.clause("WHERE", update.selection.as_ref(), &scope)?;
        Ok(format!(" ON CONFLICT{place} DO UPDATE SET {set}{condition}"))
    }

    fn clause(&mut self, word: &str, condition: Option<&Expr>, scope: &Scope<'_>) -> Result<String, PgError> {
        let Some(condition) = condition else { return Ok(String::new()) };
        let value = self.expression(condition, scope)?;
        Ok(format!(" {word} {}", self.condition(&value, word)?))
    }

    fn assignments(&mut self, all: &[Assignment], table: &Table, scope: &Scope<'_>) -> Result<String, PgError> {
        let mut out = Vec::new();
        for Assignment { target: to, value } in all {
            match (to, value) {
                (AssignmentTarget::ColumnName(column), value) => {
                    let column = target(table, &object(column)?)?;
                    refuse_always(&column, is_default(value))?;
                    out.push(format!("{} = {}", name(&column.name), self.value_for(value, &column, scope)?));
                }
                (AssignmentTarget::Tuple(columns), Expr::Tuple(values)) if columns.len() == values.len() => {
                    for (column, value) in columns.iter().zip(values) {
                        let column = target(table, &object(column)?)?;
                        refuse_always(&column, is_default(value))?;
                        out.push(format!("{} = {}", name(&column.name), self.value_for(value, &column, scope)?));
                    }
                }
                (AssignmentTarget::Tuple(columns), Expr::Subquery(query)) => {
                    let columns = columns.iter().map(|column| target(table, &object(column)?));
                    let columns = columns.collect::<Result<Vec<_>, _>>()?;
                    columns.iter().try_for_each(|column| refuse_always(column, false))?;
                    out.push(self.row_for(query, &columns, scope)?);
                }
                (AssignmentTarget::Tuple(_), Expr::Tuple(_)) => {
                    return Err(PgError::new(sqlstate::SYNTAX, "number of columns does not match number of values"));
                }
                (AssignmentTarget::Tuple(_), _) => return Err(unsupported("an assignment to several columns of this")),
            }
        }
        Ok(out.join(", "))
    }

    fn returning(
        &mut self,
        items: Option<&[SelectItem]>,
        table: &Table,
        alias: &str,
    ) -> Result<(String, Vec<Column>), PgError> {
        let Some(items) = items else { return Ok((String::new(), Vec::new())) };
        let mut scope = plain(table);
        scope.sources[0].alias = alias.into();
        let (mut list, mut columns) = (Vec::new(), Vec::new());
        for (value, called) in self.projection(items, &scope)?.0 {
            let value = if value.kind == Type::Unknown { self.implicit(&value, Type::Text)? } else { value };
            list.push(format!("{} AS {}", value.sql, name(&called)));
            columns.push(Column::new(called, value.kind, value.modifier));
        }
        Ok((format!(" RETURNING {}", list.join(", ")), columns))
    }

    pub(super) fn update(&mut self, update: &Update) -> Result<Written, PgError> {
        refuse(update.or.is_some() || update.output.is_some() || update.limit.is_some(), "this UPDATE")?;
        refuse(!update.order_by.is_empty(), "UPDATE … ORDER BY")?;
        let (table, alias) = self.target_table(&update.table)?;
        let mut scope = Scope::default();
        scope.sources.push(Source::new(&alias, &table.columns));
        let from = match &update.from {
            None => String::new(),
            Some(UpdateTableFromKind::AfterSet(tables)) => format!(" FROM {}", self.from(tables, &mut scope)?),
            Some(UpdateTableFromKind::BeforeSet(_)) => return Err(unsupported("UPDATE FROM … SET")),
        };
        let set = self.assignments(&update.assignments, &table, &scope)?;
        let condition = self.clause("WHERE", update.selection.as_ref(), &scope)?;
        let (returning, columns) = self.returning(update.returning.as_deref(), &table, &alias)?;
        let called = called(&table, &alias);
        Ok((format!("UPDATE {called} SET {set}{from}{condition}{returning}"), columns, false))
    }

    pub(super) fn delete(&mut self, delete: &Delete) -> Result<Written, PgError> {
        refuse(!delete.tables.is_empty() || delete.output.is_some() || delete.limit.is_some(), "this DELETE")?;
        refuse(!delete.order_by.is_empty(), "DELETE … ORDER BY")?;
        let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
        let [table] = &tables[..] else { return Err(unsupported("DELETE from several tables")) };
        let (table, alias) = self.target_table(table)?;
        let mut scope = Scope::default();
        scope.sources.push(Source::new(&alias, &table.columns));
        let condition = match &delete.using {
            None => self.clause("WHERE", delete.selection.as_ref(), &scope)?,
            Some(tables) => format!(" WHERE {}", self.exists(tables, delete.selection.as_ref(), &scope)?),
        };
        let (returning, columns) = self.returning(delete.returning.as_deref(), &table, &alias)?;
        Ok((format!("DELETE FROM {}{condition}{returning}", called(&table, &alias)), columns, false))
    }

    /// The table that is written, and what it is called in the statement.
    fn target_table(&self, table: &TableWithJoins) -> Result<(Table, String), PgError> {
        refuse(!table.joins.is_empty(), "a join as the target")?;
        let TableFactor::Table { name: table, alias, args: None, .. } = &table.relation else {
            return Err(unsupported("a target that is no table"));
        };
        let table = self.written(&object(table)?)?;
        let alias = alias.as_ref().map_or_else(|| table.name.clone(), |alias| folded(&alias.name));
        Ok((table, alias))
    }
}

/// A scope in which a table's columns have no table before them.
pub(super) fn plain<'a>(table: &Table) -> Scope<'a> {
    let mut source = Source::new(&table.name, &table.columns);
    for named in &mut source.columns {
        named.sql = name(&named.column.name);
    }
    let mut scope = Scope::default();
    scope.sources.push(source);
    scope
}

fn called(table: &Table, alias: &str) -> String {
    if alias == table.name { name(alias) } else { format!("{} AS {}", name(&table.name), name(alias)) }
}

fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default"))
}

/// The column of a table that is written.
fn target(table: &Table, column: &str) -> Result<Column, PgError> {
    let found = table.columns.iter().find(|known| known.name == column || known.name.to_lowercase() == column);
    let text = || format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
    let found = found.ok_or_else(|| PgError::new("42703", text()))?;
    if found.is_generated {
        return Err(only_default(column));
    }
    Ok(found.clone())
}

fn only_default(column: &str) -> PgError {
    PgError::new("428C9", format!("column \"{column}\" can only be updated to DEFAULT"))
}

/// Refuses to change the number that a row has got.
fn refuse_always(column: &Column, is_default: bool) -> Result<(), PgError> {
    if column.is_always && !is_default { Err(only_default(&column.name)) } else { Ok(()) }
}

/// Refuses a number for a row that gets one.
fn numbers_itself(column: &Column) -> Result<(), PgError> {
    if !column.is_always {
        return Ok(());
    }
    Err(PgError::new("428C9", format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name))
        .detail(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name))
        .hint("Use OVERRIDING SYSTEM VALUE to override."))
}

/// Without a list of columns there may be fewer values than columns.
fn fewer(columns: &mut Vec<Column>, values: usize, is_listed: bool) -> Result<(), PgError> {
    if values > columns.len() {
        return Err(PgError::new(sqlstate::SYNTAX, "INSERT has more expressions than target columns"));
    }
    if is_listed && values < columns.len() {
        return Err(PgError::new(sqlstate::SYNTAX, "INSERT has more target columns than expressions"));
    }
    columns.truncate(values);
    Ok(())
}

/// A query as the source of rows. SQLite takes ON CONFLICT for the condition of a join unless WHERE comes before.
fn selected(body: &Body, has_conflict: bool) -> String {
    let sql = body.render(None);
    if has_conflict { format!("SELECT * FROM ({sql}) WHERE true") } else { sql }
}
