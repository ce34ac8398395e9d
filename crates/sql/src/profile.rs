//! The safe profile: what clients may say to SQLite (prac-F31, prac-F32, prac-F35), and how SQLite is set up.
//!
//! A statement may do whatever is a function of the state and the agreed values and leaves nothing behind outside the
//! database file. The list of functions is a list of what is allowed: a new one in a new SQLite is refused until
//! somebody has looked at it.

use crate::moment::{Moment, act};
use crate::pages::{PAGE_BYTES, PAGES_MAX};
use crate::request::SQL_BYTES_MAX;
use crate::system::{is_system, made_by_the_system};
use crate::value::VALUE_BYTES_MAX;
use crate::{functions, meter};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// What the n-th question about a statement costs, times n, in bytes gone through.
const ASKED_BYTES: i64 = 8;

/// How the names of tables begin in which the planner's statistics are.
const STATISTICS: &str = "sqlite_stat";

/// Functions that are allowed. Time and randomness are agreed; `changes` and `last_insert_rowid` are the request's.
#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    // Scalar
    "abs", "changes", "char", "coalesce", "concat", "concat_ws", "format", "glob", "hex", "if", "ifnull", "iif",
    "instr", "last_insert_rowid", "length", "like", "likelihood", "likely", "lower", "ltrim", "nullif",
    "octet_length", "printf", "quote", "random", "randomblob", "replace", "round", "rtrim", "sign",
    "sqlite_source_id", "sqlite_version", "substr", "substring", "trim", "typeof", "unhex", "unicode", "unistr",
    "unistr_quote", "unlikely", "upper", "zeroblob",
    // Date and time
    "current_date", "current_time", "current_timestamp", "date", "datetime", "julianday", "strftime", "time",
    "timediff", "unixepoch",
    // Aggregate and window
    "avg", "count", "cume_dist", "dense_rank", "first_value", "group_concat", "lag", "last_value", "lead", "max",
    "min", "nth_value", "ntile", "percent_rank", "rank", "row_number", "string_agg", "sum", "total",
    // JSON
    "->", "->>", "json", "json_array", "json_array_insert", "json_array_length", "json_error_position",
    "json_extract", "json_group_array", "json_group_object", "json_insert", "json_object", "json_patch",
    "json_pretty", "json_quote", "json_remove", "json_replace", "json_set", "json_type", "json_valid", "jsonb",
    "jsonb_array", "jsonb_array_insert", "jsonb_extract", "jsonb_group_array", "jsonb_group_object",
    "jsonb_insert", "jsonb_object", "jsonb_patch", "jsonb_remove", "jsonb_replace", "jsonb_set",
    // What SQLite itself calls in ALTER TABLE and ANALYZE; nobody else can
    "sqlite_add_constraint", "sqlite_drop_column", "sqlite_drop_constraint", "sqlite_fail",
    "sqlite_find_constraint", "sqlite_rename_column", "sqlite_rename_quotefix", "sqlite_rename_table",
    "sqlite_rename_test", "stat_get", "stat_init", "stat_push",
];

/// Pragmas that only tell about the schema.
#[rustfmt::skip]
const PRAGMAS: &[&str] = &[
    "collation_list", "foreign_key_check", "foreign_key_list", "function_list", "index_info", "index_list",
    "index_xinfo", "integrity_check", "quick_check", "schema_version", "table_info", "table_list", "table_xinfo",
];

/// What it means to write rows of a table. Whoever may write a table can give it a trigger, which acts for whoever
/// writes that table next. So the rows of the system are written by statements alone, and never by what is behind one.
fn written(table: &str, trigger: Option<&str>) -> Result<u32, String> {
    match trigger {
        Some(trigger) if is_system(table) => Err(format!("trigger {trigger} may not write {table}")),
        _ if is_system(table) => Ok(act::WRITES_ROWS | act::WRITES_SYSTEM),
        // What the planner knows is read with the schema, and not when it changes: who starts again would plan
        // otherwise than others.
        _ if table.to_ascii_lowercase().starts_with(STATISTICS) => {
            Ok(act::WRITES_ROWS | act::WRITES_SCHEMA | act::ADDS_SCHEMA)
        }
        _ => Ok(act::WRITES_ROWS),
    }
}

/// What a pragma may be, and with which value.
fn pragma(name: &str, value: Option<&str>) -> Result<(), String> {
    if !PRAGMAS.iter().any(|allowed| name.eq_ignore_ascii_case(allowed)) {
        return Err(format!("PRAGMA {name} is not allowed: settings are the same at all replicas"));
    }
    if name.eq_ignore_ascii_case("schema_version") && value.is_some() {
        return Err("the version of the schema is SQLite's to say".into());
    }
    Ok(())
}

/// What the authorizer says about one action, with a reason if it says no.
fn judge(context: &AuthContext<'_>, moment: &Moment) -> Result<(), String> {
    let note = |bits: u32| _ = moment.acts.fetch_or(bits, Ordering::Relaxed);
    // Even an administrator's: the service itself relies on these tables being as it made them.
    let schema = |name: &str| match is_system(name) {
        true => Err(made_by_the_system(name)),
        false => {
            note(act::WRITES_SCHEMA);
            Ok(())
        }
    };
    match &context.action {
        AuthAction::Select | AuthAction::Recursive | AuthAction::Read { .. } => {}
        AuthAction::Insert { table_name } | AuthAction::Update { table_name, .. } => {
            note(written(table_name, context.accessor)?);
        }
        AuthAction::Delete { table_name } => note(written(table_name, context.accessor)? & !act::ADDS_SCHEMA),
        AuthAction::CreateTable { table_name: name } | AuthAction::CreateView { view_name: name } => {
            schema(name)?;
            note(act::ADDS_SCHEMA);
            moment.created.lock().unwrap_or_else(PoisonError::into_inner).push((*name).to_string());
        }
        AuthAction::DropTable { table_name: name }
        | AuthAction::DropView { view_name: name }
        | AuthAction::DropIndex { table_name: name, .. }
        | AuthAction::DropTrigger { table_name: name, .. } => schema(name)?,
        AuthAction::CreateIndex { table_name, index_name: name }
        | AuthAction::CreateTrigger { table_name, trigger_name: name } => {
            schema(table_name)?;
            schema(name)?;
            note(act::ADDS_SCHEMA);
        }
        AuthAction::AlterTable { table_name: name, .. } => {
            schema(name)?;
            note(act::ALTERS_TABLES | act::ADDS_SCHEMA);
        }
        AuthAction::Reindex { .. } | AuthAction::Analyze { .. } => note(act::WRITES_SCHEMA | act::ADDS_SCHEMA),
        AuthAction::Function { function_name } => {
            // CURRENT_TIMESTAMP and its like come as they were written.
            let is_known = FUNCTIONS.iter().any(|allowed| function_name.eq_ignore_ascii_case(allowed));
            if !is_known && !functions::is_function(function_name) {
                return Err(format!("function {function_name}() is not allowed in a replicated database"));
            }
        }
        AuthAction::Pragma { pragma_name, pragma_value } => pragma(pragma_name, *pragma_value)?,
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
            return Err("transaction control is not allowed in a request: send the statements as one batch".into());
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => {
            return Err(
                "ATTACH, DETACH and VACUUM are not allowed: there is one database, and the replicas hold it".into()
            );
        }
        AuthAction::CreateVtable { module_name, .. } | AuthAction::DropVtable { module_name, .. } => {
            return Err(format!("virtual tables of module {module_name} are not allowed"));
        }
        AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::DropTempIndex { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempTrigger { .. }
        | AuthAction::DropTempView { .. } => {
            return Err("temporary tables, views and triggers are not allowed: requests share no connection".into());
        }
        other => return Err(format!("{other:?} is not allowed")),
    }
    Ok(())
}

/// Whether something is created, as `create table temp.t` does without saying that it is temporary.
const fn makes_something(action: &AuthAction<'_>) -> bool {
    matches!(
        action,
        AuthAction::CreateTable { .. }
            | AuthAction::CreateView { .. }
            | AuthAction::CreateIndex { .. }
            | AuthAction::CreateTrigger { .. }
    )
}

/// SQLite's question whether a statement that is being prepared may do something.
pub(crate) fn authorize(context: &AuthContext<'_>, moment: &Moment) -> Authorization {
    // A view stands for its tables as often as it is named, and what SQLite does with all of them grows with their
    // square.
    let asked = moment.asked.fetch_add(1, Ordering::Relaxed) as i64;
    if meter::pay(asked * ASKED_BYTES) {
        return Authorization::Deny;
    }
    if moment.is_privileged() {
        return Authorization::Allow;
    }
    let verdict = match context.database_name {
        Some("temp") if makes_something(&context.action) => {
            Err("temporary tables, views and triggers are not allowed: requests share no connection".into())
        }
        _ => judge(context, moment),
    };
    match verdict {
        Ok(()) => Authorization::Allow,
        Err(reason) => {
            *moment.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            Authorization::Deny
        }
    }
}

/// Settings that decide about bytes or results: the same at every replica. Before the first statement.
///
/// Changed pages stay in the cache until the commit (`cache_spill`). SQLite does not journal what was on a free page:
/// one that is spilled and then rolled back keeps what it had in between, on those replicas whose cache was full (found
/// by `cargo xtask sql-fuzz`, seed 103855).
pub(crate) fn apply(connection: &Connection, cache_kib: u32) -> rusqlite::Result<()> {
    let settings = format!(
        "pragma page_size = {PAGE_BYTES}; pragma encoding = 'UTF-8'; pragma auto_vacuum = none;
         pragma locking_mode = normal; pragma synchronous = off; pragma secure_delete = on;
         pragma temp_store = file; pragma threads = 0; pragma cache_size = -{cache_kib}; pragma cache_spill = off;
         pragma max_page_count = {PAGES_MAX}; pragma foreign_keys = on; pragma recursive_triggers = on;"
    );
    // These two answer with a row.
    connection.query_row("pragma journal_mode = memory", [], |_| Ok(()))?;
    connection.execute_batch(&settings).or_else(|error| match error {
        rusqlite::Error::ExecuteReturnedResults => Ok(()),
        error => Err(error),
    })?;
    for (option, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, true),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, true),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
        // A plan follows from the statement and the schema, never from the values of parameters: it would be made anew
        // for those, at other replicas than those that have kept one.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
    ] {
        connection.set_db_config(option, on)?;
    }
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX as i32),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES_MAX as i32),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 500),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 500),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 127),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 100),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    Ok(())
}
