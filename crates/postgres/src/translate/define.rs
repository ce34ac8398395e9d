//! CREATE and DROP: tables whose columns keep values of their declared types, whoever writes them.

use super::definition::{Definition, not_understood};
use super::expression::{Expression, Origin};
use super::functions::{NOW, RANDOM_UUID};
use super::kinds::Type;
use super::names::{folded, name, object};
use super::refusal::{refuse, unsupported};
use super::schema::{ALWAYS, Column, Table, view_comment};
use super::scope::Scope;
use super::translator::Translator;
use super::type_check::check;
use super::type_names::data_type;
use super::write::plain;
use crate::error::{PgError, sqlstate};
use crate::tokens::quote;
use crate::types;
use rusqlite::Connection;
use sqlparser::ast::{
    ColumnDef, ColumnOption, ColumnOptionDef, ConstraintCharacteristics, CreateIndex, CreateTable, CreateView,
    DataType, DeferrableInitial, ForeignKeyConstraint, GeneratedAs, IndexColumn, IndexType, ObjectName, ObjectType,
    OrderBySort, ReferentialAction, Statement, TableConstraint,
};

/// A column that is being defined.
pub(super) struct Defined {
    pub(super) column: Column,
    /// It numbers itself.
    pub(super) is_serial: bool,
}

impl Translator<'_> {
    pub(super) fn create_table(&mut self, table: &CreateTable) -> Result<String, PgError> {
        refuse(table.temporary || table.or_replace, "a temporary table")?;
        refuse(table.like.is_some() || table.inherits.is_some() || table.partition_of.is_some(), "LIKE or INHERITS")?;
        refuse(table.partition_by.is_some() || table.clone.is_some() || table.on_commit.is_some(), "this table")?;
        refuse(table.columns.is_empty(), "a table without columns")?;
        let called = object(&table.name)?;
        let mut defined = Vec::new();
        for column in &table.columns {
            defined.push(define(column)?);
        }
        let columns: Vec<Column> = defined.iter().map(|defined| defined.column.clone()).collect();
        different(&columns)?;
        let keys = key_of(table);
        let known = Table::new(called.clone(), columns);
        let scope = plain(&known);
        let mut parts = Vec::new();
        for (column, defined) in table.columns.iter().zip(&defined) {
            let is_key = keys.len() == 1 && keys[0] == defined.column.name;
            if defined.is_serial && !is_key {
                return Err(no_key(&defined.column.name));
            }
            let mut column = column.clone();
            if defined.is_serial {
                column.options.extend(keys_of(&table.constraints));
            }
            parts.push(self.column(&column, defined, keys.contains(&defined.column.name), is_key, &scope)?);
        }
        let is_serial = defined.iter().any(|defined| defined.is_serial);
        for constraint in &table.constraints {
            if !(is_serial && matches!(constraint, TableConstraint::PrimaryKey(_))) {
                parts.push(self.constraint(constraint, &scope)?);
            }
        }
        let exists = if table.if_not_exists { "IF NOT EXISTS " } else { "" };
        let mut definition = Definition::parse(&format!("({})", parts.join(", "))).ok_or_else(not_understood)?;
        definition.pin(&called)?;
        Ok(format!("CREATE TABLE {exists}{} {}", name(&called), definition.render()))
    }

    /// One column with its constraints.
    pub(super) fn column(
        &mut self,
        column: &ColumnDef,
        defined: &Defined,
        is_in_key: bool,
        is_key: bool,
        scope: &Scope<'_>,
    ) -> Result<String, PgError> {
        let own = &defined.column;
        let quoted = name(&own.name);
        let numbers_itself = is_key && (defined.is_serial || own.kind == Type::Int4);
        let declaration = match defined.is_serial {
            true if own.is_always => format!("INTEGER {ALWAYS}"),
            true => "INTEGER".into(),
            false => own.declaration(),
        };
        let mut sql = format!("{quoted} {declaration}{}", own.kind.collation());
        let mut not_null = is_in_key && !numbers_itself;
        let mut rest = String::new();
        for option in &column.options {
            let called = option.name.as_ref().map(|ident| format!(" CONSTRAINT {}", name(&folded(ident))));
            let called = called.unwrap_or_default();
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => not_null = true,
                ColumnOption::Default(expr) => {
                    let value = self.expression(expr, &Scope::default())?;
                    rest += &format!(" DEFAULT {}", default(&value, &self.assign(&value, own)?)?);
                }
                ColumnOption::PrimaryKey(key) => {
                    characteristics(key.characteristics.as_ref())?;
                    let counts = if defined.is_serial { " AUTOINCREMENT" } else { "" };
                    rest += &format!("{called} PRIMARY KEY{counts}");
                }
                ColumnOption::Unique(unique) => {
                    characteristics(unique.characteristics.as_ref())?;
                    rest += &format!("{called} UNIQUE");
                }
                ColumnOption::ForeignKey(key) => rest += &format!("{called} {}", references(key)?),
                ColumnOption::Check(check) => {
                    let value = self.expression(&check.expr, scope)?;
                    rest += &format!("{called} CHECK ({})", self.condition(&value, "CHECK")?);
                }
                ColumnOption::Generated { generation_expr: None, .. } => {}
                ColumnOption::Generated { generation_expr: Some(expr), .. } => {
                    let value = self.expression(expr, scope)?;
                    rest += &format!(" GENERATED ALWAYS AS ({}) STORED", self.assign(&value, own)?.sql);
                }
                ColumnOption::Collation(collation) => c_collation(&collation.to_string())?,
                other => return Err(unsupported(format!("{other} of a column"))),
            }
        }
        if defined.is_serial && !rest.contains(" PRIMARY KEY") {
            rest += " PRIMARY KEY AUTOINCREMENT";
        }
        if not_null {
            sql += " NOT NULL";
        }
        let check = check(own);
        Ok(if check.is_empty() { sql + &rest } else { format!("{sql}{rest} CHECK ({check})") })
    }

    pub(super) fn constraint(&mut self, constraint: &TableConstraint, scope: &Scope<'_>) -> Result<String, PgError> {
        let called = |ident: &Option<sqlparser::ast::Ident>| {
            ident.as_ref().map(|ident| format!("CONSTRAINT {} ", name(&folded(ident)))).unwrap_or_default()
        };
        Ok(match constraint {
            TableConstraint::PrimaryKey(key) => {
                characteristics(key.characteristics.as_ref())?;
                refuse(!key.include.is_empty(), "INCLUDE")?;
                format!("{}PRIMARY KEY ({})", called(&key.name), self.index_columns(&key.columns, scope)?)
            }
            TableConstraint::Unique(unique) => {
                characteristics(unique.characteristics.as_ref())?;
                refuse(!unique.include.is_empty(), "INCLUDE")?;
                refuse(
                    unique.nulls_distinct == sqlparser::ast::NullsDistinctOption::NotDistinct,
                    "NULLS NOT DISTINCT",
                )?;
                format!("{}UNIQUE ({})", called(&unique.name), self.index_columns(&unique.columns, scope)?)
            }
            TableConstraint::ForeignKey(key) => {
                let columns: Vec<String> = key.columns.iter().map(|ident| name(&folded(ident))).collect();
                format!("{}FOREIGN KEY ({}) {}", called(&key.name), columns.join(", "), references(key)?)
            }
            TableConstraint::Check(check) => {
                let value = self.expression(&check.expr, scope)?;
                format!("{}CHECK ({})", called(&check.name), self.condition(&value, "CHECK")?)
            }
            other => return Err(unsupported(other)),
        })
    }

    /// What an index is about. Where it has NULLs decides nothing but speed.
    fn index_columns(&mut self, columns: &[IndexColumn], scope: &Scope<'_>) -> Result<String, PgError> {
        let mut all = Vec::new();
        for IndexColumn { column, operator_class } in columns {
            let value = self.expression(&column.expr, scope)?;
            // Texts are sorted by bytes in any index.
            let is_by_bytes = |class: &ObjectName| {
                let class = object(class).unwrap_or_default();
                let known = matches!(class.as_str(), "text_pattern_ops" | "varchar_pattern_ops" | "bpchar_pattern_ops");
                known && value.kind.is_string()
            };
            refuse(operator_class.as_ref().is_some_and(|class| !is_by_bytes(class)), "an operator class")?;
            Self::comparable(value.kind)?;
            let direction = match &column.options.sort {
                None | Some(OrderBySort::Asc) => "",
                Some(OrderBySort::Desc) => " DESC",
                Some(_) => return Err(unsupported("USING in an index")),
            };
            all.push(format!("{}{direction}", value.compared()));
        }
        Ok(all.join(", "))
    }

    pub(super) fn create_index(&mut self, index: &CreateIndex) -> Result<String, PgError> {
        refuse(!matches!(index.using, None | Some(IndexType::BTree)), "an index that is no btree")?;
        refuse(index.nulls_distinct == Some(false), "NULLS NOT DISTINCT")?;
        refuse(!index.with.is_empty() || !index.index_options.is_empty(), "an option of an index")?;
        let table = self.known(&object(&index.table_name)?)?.clone();
        let scope = plain(&table);
        let columns = self.index_columns(&index.columns, &scope)?;
        let called = match &index.name {
            Some(called) => object(called)?,
            None => self.index_name(&table, &index.columns),
        };
        let predicate = match &index.predicate {
            None => String::new(),
            Some(expr) => {
                let value = self.expression(expr, &scope)?;
                format!(" WHERE {}", self.condition(&value, "WHERE")?)
            }
        };
        let unique = if index.unique { "UNIQUE " } else { "" };
        let exists = if index.if_not_exists { "IF NOT EXISTS " } else { "" };
        let (called, table) = (name(&called), name(&table.name));
        Ok(format!("CREATE {unique}INDEX {exists}{called} ON {table} ({columns}){predicate}"))
    }

    pub(super) fn create_view(&mut self, view: &CreateView) -> Result<String, PgError> {
        refuse(view.materialized || view.temporary, "this kind of view")?;
        let mut body = self.query(&view.query, None)?;
        self.settle(&mut body)?;
        refuse(!self.parameters.is_empty(), "a parameter in a view")?;
        let mut columns = body.columns();
        for (column, given) in columns.iter_mut().zip(&view.columns) {
            column.name = folded(&given.name);
        }
        different(&columns)?;
        for column in &columns {
            refuse(column.name.contains("*/") || column.name.contains("/*"), "a comment in a column's name")?;
        }
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let exists = if view.if_not_exists { "IF NOT EXISTS " } else { "" };
        let called = object(&view.name)?;
        if view.or_replace
            && let Some(old) = self.schema.table(&called)
        {
            replaces(old, &columns)?;
            self.first.push(format!("DROP VIEW {}", name(&called)));
        }
        let called = name(&called);
        Ok(format!("CREATE VIEW {exists}{called} AS {} {}", view_comment(&columns), body.render(Some(&names))))
    }

    pub(super) fn drop(&mut self, statement: &Statement) -> Result<String, PgError> {
        let Statement::Drop { object_type, if_exists, names, temporary: false, table: None, .. } = statement else {
            return Err(unsupported("this DROP"));
        };
        let what = match object_type {
            ObjectType::Table => "TABLE",
            ObjectType::View => "VIEW",
            ObjectType::Index => "INDEX",
            other => return Err(unsupported(format!("DROP {other}"))),
        };
        let mut names = names.iter().map(object).collect::<Result<Vec<_>, _>>()?;
        let exists = if *if_exists { "IF EXISTS " } else { "" };
        if what == "TABLE" {
            names = self.schema.referrers_first(names).map_err(|(table, referrer)| {
                PgError::new("2BP01", format!("cannot drop table {table} because other objects depend on it"))
                    .detail(format!("rows of {referrer} refer to it"))
                    .hint("drop that table first")
            })?;
        }
        if let Some(none) = names.iter().find(|name| what == "INDEX" && self.schema.indexed(name).is_none())
            && !*if_exists
        {
            return Err(PgError::new("42704", format!("index \"{none}\" does not exist")));
        }
        let mut all: Vec<String> = names.iter().map(|called| format!("DROP {what} {exists}{}", name(called))).collect();
        let last = all.pop().ok_or_else(|| unsupported("this DROP"))?;
        self.first = all;
        Ok(last)
    }
}

/// Refuses columns of the same name.
pub(super) fn different(columns: &[Column]) -> Result<(), PgError> {
    for (at, column) in columns.iter().enumerate() {
        if columns[..at].iter().any(|other| other.name == column.name) {
            let text = format!("column \"{}\" specified more than once", column.name);
            return Err(PgError::new("42701", text));
        }
    }
    Ok(())
}

/// A view may be replaced by one that gives the same columns first.
fn replaces(old: &Table, columns: &[Column]) -> Result<(), PgError> {
    let wrong = |text: String| Err(PgError::new("42P16", text));
    if !old.is_view {
        return Err(PgError::new("42809", format!("\"{}\" is not a view", old.name)));
    }
    if columns.len() < old.columns.len() {
        return wrong("cannot drop columns from view".into());
    }
    for (was, is) in old.columns.iter().zip(columns) {
        if was.name != is.name {
            return wrong(format!("cannot change name of view column \"{}\" to \"{}\"", was.name, is.name));
        }
        if was.kind != is.kind {
            let (was, is, of) = (was.kind.name(), is.kind.name(), &was.name);
            return wrong(format!("cannot change data type of view column \"{of}\" from {was} to {is}"));
        }
    }
    Ok(())
}

/// Only the primary key numbers itself.
pub(super) fn no_key(column: &str) -> PgError {
    unsupported(format!("the column {column}: a serial that is no primary key"))
        .hint("only the primary key numbers itself; make it PRIMARY KEY, or give the numbers yourself")
}

pub(super) fn define(column: &ColumnDef) -> Result<Defined, PgError> {
    let serial = match &column.data_type {
        DataType::Custom(name, _) => match name.to_string().to_lowercase().as_str() {
            "serial" | "serial4" => Some(Type::Int4),
            "bigserial" | "serial8" => Some(Type::Int8),
            "smallserial" | "serial2" => Some(Type::Int2),
            _ => None,
        },
        _ => None,
    };
    let (kind, modifier) = match serial {
        Some(kind) => (kind, None),
        None => data_type(&column.data_type)?,
    };
    let is_identity = |how: GeneratedAs| {
        column.options.iter().any(|option| match &option.option {
            ColumnOption::Generated { generation_expr: None, generated_as, .. } => *generated_as == how,
            _ => false,
        })
    };
    let is_serial = serial.is_some() || is_identity(GeneratedAs::Always) || is_identity(GeneratedAs::ByDefault);
    if is_serial && kind.bits().is_none() {
        return Err(PgError::new("22023", "identity column type must be smallint, integer, or bigint"));
    }
    let is_always = is_identity(GeneratedAs::Always);
    let column = Column { is_always, ..Column::new(folded(&column.name), kind, modifier) };
    Ok(Defined { column, is_serial })
}

/// What a column is if nothing is said. A literal is worked out at once: SQLite adds no column to a table whose default
/// it would have to compute.
pub(super) fn default(given: &Expression, assigned: &Expression) -> Result<String, PgError> {
    if matches!(given.origin, Origin::Value) && !given.sql.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(format!("({})", assigned.sql));
    }
    work_out(&assigned.sql)
}

/// What an expression without columns is, as a literal.
pub(super) fn work_out(sql: &str) -> Result<String, PgError> {
    let compute = || {
        let connection = Connection::open_in_memory()?;
        bezant_sql::add_functions(&connection)?;
        connection.query_row(&format!("SELECT quote({sql})"), [], |row| row.get::<_, String>(0))
    };
    compute().map_err(|error| {
        let text = error.to_string();
        match text.strip_prefix("pg:").and_then(|text| text.split_once(':')) {
            Some((state, text)) => PgError::new(crate::error::known(state), text),
            None => PgError::new(sqlstate::SYNTAX, text),
        }
    })
}

/// A default as PostgreSQL says it.
pub(crate) fn default_of(sql: &str, kind: Type) -> String {
    match (sql, kind) {
        ("0", Type::Bool) => "false".into(),
        ("1", Type::Bool) => "true".into(),
        (_, Type::Interval) => {
            types::interval_text(sql.trim_matches('\'')).map_or_else(|| sql.into(), |text| quote(&text))
        }
        (_, Type::Uuid) if sql.contains(RANDOM_UUID) => "gen_random_uuid()".into(),
        _ if !sql.contains(NOW) => sql.into(),
        (_, Type::Timestamptz | Type::Timestamp) => "CURRENT_TIMESTAMP".into(),
        (_, Type::Date) => "CURRENT_DATE".into(),
        _ => sql.into(),
    }
}

/// The primary key as a column has it: that of a serial stands with its column.
fn keys_of(constraints: &[TableConstraint]) -> impl Iterator<Item = ColumnOptionDef> {
    constraints.iter().filter_map(|constraint| match constraint {
        TableConstraint::PrimaryKey(key) => {
            Some(ColumnOptionDef { name: key.name.clone(), option: ColumnOption::PrimaryKey(key.clone()) })
        }
        _ => None,
    })
}

/// The columns of the primary key, wherever it is declared.
fn key_of(table: &CreateTable) -> Vec<String> {
    let is_key = |option: &ColumnOptionDef| matches!(option.option, ColumnOption::PrimaryKey(_));
    let own =
        table.columns.iter().filter(|column| column.options.iter().any(is_key)).map(|column| folded(&column.name));
    let constraint = table.constraints.iter().find_map(|constraint| match constraint {
        TableConstraint::PrimaryKey(key) => Some(&key.columns),
        _ => None,
    });
    let listed = constraint.into_iter().flatten().filter_map(|column| match &column.column.expr {
        sqlparser::ast::Expr::Identifier(ident) => Some(folded(ident)),
        _ => None,
    });
    own.chain(listed).collect()
}

/// SQLite checks all but references at once.
fn characteristics(said: Option<&ConstraintCharacteristics>) -> Result<(), PgError> {
    let is_deferrable = said.is_some_and(|said| said.deferrable == Some(true) || said.enforced == Some(false));
    refuse(is_deferrable, "a deferrable key")
}

fn references(key: &ForeignKeyConstraint) -> Result<String, PgError> {
    refuse(key.match_kind.is_some(), "MATCH")?;
    let mut sql = format!("REFERENCES {}", name(&object(&key.foreign_table)?));
    if !key.referred_columns.is_empty() {
        let columns: Vec<String> = key.referred_columns.iter().map(|ident| name(&folded(ident))).collect();
        sql += &format!("({})", columns.join(", "));
    }
    for (event, action) in [("UPDATE", &key.on_update), ("DELETE", &key.on_delete)] {
        let words = match action {
            None => continue,
            Some(ReferentialAction::Restrict) => "RESTRICT",
            Some(ReferentialAction::Cascade) => "CASCADE",
            Some(ReferentialAction::SetNull) => "SET NULL",
            Some(ReferentialAction::NoAction) => "NO ACTION",
            Some(ReferentialAction::SetDefault) => "SET DEFAULT",
        };
        sql += &format!(" ON {event} {words}");
    }
    if let Some(said) = &key.characteristics {
        refuse(said.enforced.is_some(), "ENFORCED")?;
        if said.deferrable == Some(true) {
            let initially = if said.initially == Some(DeferrableInitial::Deferred) { "DEFERRED" } else { "IMMEDIATE" };
            sql += &format!(" DEFERRABLE INITIALLY {initially}");
        }
    }
    Ok(sql)
}

/// Refuses collations by which SQLite does not sort.
pub(super) fn c_collation(called: &str) -> Result<(), PgError> {
    let plain = called.to_lowercase().replace('"', "");
    if matches!(plain.as_str(), "c" | "posix" | "default" | "pg_catalog.default" | "pg_catalog.c" | "ucs_basic") {
        return Ok(());
    }
    Err(PgError::new(sqlstate::UNSUPPORTED, format!("collation {called} is not supported"))
        .hint("texts are sorted as by \"C\""))
}
