//! ALTER TABLE: by SQLite's own where it can, and else by a table that is made anew.

use super::anew::{Anew, already_there, depends};
use super::define::define;
use super::definition::{ColumnPart, Definition, Kind, not_understood};
use super::names::{folded, name, object};
use super::refusal::{refuse, unsupported};
use super::schema::Table;
use super::translator::Translator;
use super::write::plain;
use crate::error::{PgError, sqlstate};
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, Expr, GeneratedAs,
    RenameTableNameKind, TableConstraint,
};

/// Changes of a table that is made anew, in one statement.
const OPERATIONS_MAX: usize = 100;

impl Translator<'_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<String, PgError> {
        let called = object(&alter.name)?;
        if alter.if_exists && self.schema.table(&called).is_none() {
            return Ok(format!("DROP TABLE IF EXISTS {}", name(&called)));
        }
        refuse(
            alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some(),
            "this ALTER TABLE",
        )?;
        let table = self.known(&called)?.clone();
        if table.is_view {
            return Err(PgError::new("42809", format!("\"{called}\" is not a table")));
        }
        // Both are of one table, unless it is declared in a way that is not understood.
        let is_whole = |definition: &Definition| {
            let names = definition.columns.iter().map(|part| &part.name);
            names.eq(table.columns.iter().map(|column| &column.name))
        };
        let definition = Definition::parse(&table.sql).filter(is_whole);
        if !alter.operations.iter().all(|operation| is_native(operation, definition.as_ref())) {
            let unknown = || unsupported(format!("ALTER of the table {called}, which was not made here"));
            return self.make_anew(table, definition.ok_or_else(unknown)?, &alter.operations);
        }
        let mut all = Vec::new();
        for operation in &alter.operations {
            all.extend(self.alteration(&table, operation)?);
        }
        // There was nothing left to do.
        let last = all.pop().unwrap_or_else(|| format!("DELETE FROM {} WHERE false", name(&table.name)));
        self.first = all;
        Ok(last)
    }

    /// One change of a table, in SQLite's words. None: it is so already.
    fn alteration(&mut self, table: &Table, operation: &AlterTableOperation) -> Result<Vec<String>, PgError> {
        let quoted = name(&table.name);
        let has = |column: &str| table.columns.iter().any(|known| known.name == column);
        let one = match operation {
            AlterTableOperation::AddColumn { if_not_exists, column_def, .. } => {
                let defined = define(column_def)?;
                if has(&defined.column.name) {
                    let none = Ok(Vec::new());
                    return if *if_not_exists { none } else { Err(already_there(&defined.column.name, table)) };
                }
                let mut known = table.clone();
                known.columns.push(defined.column.clone());
                let scope = plain(&known);
                let text = self.column(column_def, &defined, false, false, &scope)?;
                format!("ALTER TABLE {quoted} ADD COLUMN {}", pinned(table, text)?)
            }
            AlterTableOperation::DropColumn { column_names, if_exists, .. } => {
                let mut all = Vec::new();
                for column in column_names.iter().map(folded).filter(|column| !*if_exists || has(column)) {
                    if let Some(view) = self.schema.view_of(&table.name, &column) {
                        let what = format!("column {column} of table {}", table.name);
                        return Err(depends(&what, &format!("view {view}")));
                    }
                    let indexes = table.indexes_of(&column);
                    all.extend(indexes.map(|index| format!("DROP INDEX IF EXISTS {}", name(&index.name))));
                    all.push(format!("ALTER TABLE {quoted} DROP COLUMN {}", name(&column)));
                }
                return Ok(all);
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                let (old, new) = (name(&folded(old_column_name)), name(&folded(new_column_name)));
                format!("ALTER TABLE {quoted} RENAME COLUMN {old} TO {new}")
            }
            AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(new) } => {
                format!("ALTER TABLE {quoted} RENAME TO {}", name(&object(new)?))
            }
            other => return Err(not_here(other)),
        };
        Ok(vec![one])
    }

    /// Changes of a table that SQLite cannot make: it is made anew. PostgreSQL, too, does first what drops something,
    /// and last what adds a constraint.
    fn make_anew(
        &mut self,
        table: Table,
        definition: Definition,
        operations: &[AlterTableOperation],
    ) -> Result<String, PgError> {
        if operations.len() > OPERATIONS_MAX {
            let text = format!("{} changes of a table at once, of at most {OPERATIONS_MAX}", operations.len());
            return Err(PgError::new(sqlstate::LIMIT, text));
        }
        let mut anew = Anew::new(table, definition);
        let mut ordered: Vec<&AlterTableOperation> = operations.iter().collect();
        ordered.sort_by_key(|operation| turn(operation));
        for operation in ordered {
            self.change(&mut anew, operation)?;
        }
        let (first, statement) = anew.finish()?;
        self.first = first;
        self.values = statement.parameters;
        Ok(statement.sql.to_string())
    }

    fn change(&mut self, anew: &mut Anew, operation: &AlterTableOperation) -> Result<(), PgError> {
        match operation {
            AlterTableOperation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
                self.add_column(anew, column_def, *if_not_exists)
            }
            AlterTableOperation::DropColumn { column_names, if_exists, .. } => {
                column_names.iter().map(folded).try_for_each(|column| self.drop_column(anew, &column, *if_exists))
            }
            AlterTableOperation::AddConstraint { constraint, not_valid } => {
                refuse(*not_valid, "NOT VALID")?;
                self.add_constraint(anew, constraint)
            }
            AlterTableOperation::DropConstraint { if_exists, name, .. } => {
                self.drop_constraint(anew, &folded(name), *if_exists)
            }
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                anew.rename_constraint(&folded(old_name), &folded(new_name))
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                let at = anew.column(&folded(column_name))?;
                match op {
                    AlterColumnOperation::SetNotNull => anew.set_not_null(at),
                    AlterColumnOperation::DropNotNull => anew.drop_not_null(at)?,
                    AlterColumnOperation::SetDefault { value } => self.set_default(anew, at, value)?,
                    AlterColumnOperation::DropDefault => anew.drop_default(at)?,
                    AlterColumnOperation::SetDataType { data_type, using, .. } => {
                        self.set_type(anew, at, data_type, using.as_ref())?;
                    }
                    AlterColumnOperation::AddGenerated { generated_as, sequence_options } => {
                        refuse(
                            sequence_options.as_ref().is_some_and(|all| !all.is_empty()),
                            "an option of a sequence",
                        )?;
                        anew.add_identity(at, *generated_as == Some(GeneratedAs::Always))?;
                    }
                    AlterColumnOperation::GenericOptions { .. } => return Err(not_here(operation)),
                }
                Ok(())
            }
            other => Err(not_here(other)),
        }
    }
}

/// A column that comes to a table, with the names of its constraints.
fn pinned(table: &Table, column: String) -> Result<String, PgError> {
    let Some(mut definition) = Definition::parse(&table.sql) else { return Ok(column) };
    let known = definition.columns.len();
    definition.columns.push(ColumnPart::parse(&column).ok_or_else(not_understood)?);
    definition.retyped();
    definition.pin(&table.name)?;
    Ok(definition.columns[known].render())
}

fn not_here(operation: &AlterTableOperation) -> PgError {
    unsupported(format!("ALTER TABLE … {operation}"))
        .hint("make a new table, fill it with INSERT … SELECT, and rename it")
}

/// When a change is made among those of one statement.
const fn turn(operation: &AlterTableOperation) -> u8 {
    use AlterColumnOperation::{AddGenerated, DropDefault, DropNotNull, SetDataType, SetDefault, SetNotNull};
    match operation {
        AlterTableOperation::DropColumn { .. } | AlterTableOperation::DropConstraint { .. } => 0,
        AlterTableOperation::AddColumn { .. } => 2,
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::PrimaryKey(_) | TableConstraint::Unique(_),
            ..
        } => 4,
        AlterTableOperation::AlterColumn { op, .. } => match op {
            DropDefault | DropNotNull => 0,
            SetDataType { .. } => 1,
            SetNotNull => 3,
            SetDefault { .. } | AddGenerated { .. } | AlterColumnOperation::GenericOptions { .. } => 5,
        },
        _ => 5,
    }
}

/// Whether SQLite makes a change itself, in the table as it is.
fn is_native(operation: &AlterTableOperation, definition: Option<&Definition>) -> bool {
    match operation {
        AlterTableOperation::AddColumn { column_def, column_position: None, .. } => adds_simply(column_def),
        AlterTableOperation::DropColumn { column_names, .. } => definition
            .is_none_or(|definition| column_names.iter().all(|column| stands_alone(definition, &folded(column)))),
        AlterTableOperation::RenameColumn { .. } | AlterTableOperation::RenameTable { .. } => true,
        _ => false,
    }
}

/// SQLite adds columns whose values in the old rows need neither be computed nor looked at.
fn adds_simply(column: &ColumnDef) -> bool {
    let has = |wanted: fn(&ColumnOption) -> bool| column.options.iter().any(|option| wanted(&option.option));
    let default = column.options.iter().find_map(|option| match &option.option {
        ColumnOption::Default(value) => Some(value),
        _ => None,
    });
    let is_constant = default.is_none_or(|value| match value {
        Expr::UnaryOp { expr, .. } => matches!(**expr, Expr::Value(_)),
        value => matches!(value, Expr::Value(_)),
    });
    let is_filled = default.is_some() || !has(|option| matches!(option, ColumnOption::NotNull));
    is_constant
        && is_filled
        && !has(|option| matches!(option, ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_)))
        && !has(|option| matches!(option, ColumnOption::Generated { .. }))
        && !(default.is_some() && has(|option| matches!(option, ColumnOption::ForeignKey(_))))
        && define(column).is_ok_and(|defined| !defined.is_serial)
}

/// Whether no constraint has to do with a column but those that SQLite drops with it.
fn stands_alone(definition: &Definition, column: &str) -> bool {
    let goes = |kind| matches!(kind, Kind::Null | Kind::NotNull | Kind::Default | Kind::Collate);
    definition.columns.iter().all(|part| {
        part.constraints.iter().all(|constraint| {
            let is_own = part.name == column && (goes(constraint.kind) || definition.is_of_type(part, constraint));
            is_own || !constraint.mentions(column)
        })
    }) && definition.constraints.iter().all(|constraint| !constraint.mentions(column))
}
