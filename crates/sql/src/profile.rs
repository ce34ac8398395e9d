//! The safe profile: what clients may say to SQLite (F31, F32, F35), and how SQLite is set up.
//!
//! A statement may do whatever is a function of the state and the agreed values and leaves nothing behind outside the
//! database file. The list of functions is a list of what is allowed: a new one in a new SQLite is refused until
//! somebody has looked at it.

use crate::moment::{Moment, act};
use crate::pages::{PAGE_BYTES, PAGES_MAX};
use crate::request::SQL_BYTES_MAX;
use crate::roles::MEMBERS;
use crate::value::VALUE_BYTES_MAX;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Tables whose names begin with this are the system's: everybody may read them, administrators may write their
/// rows.
pub const SYSTEM_PREFIX: &str = "bezant_";

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
    "index_xinfo", "integrity_check", "quick_check", "table_info", "table_list", "table_xinfo",
];

fn is_system(table: &str) -> bool {
    table.to_ascii_lowercase().starts_with(SYSTEM_PREFIX)
}

fn made_by_the_system(name: &str) -> String {
    format!("{name} is not allowed: what begins with {SYSTEM_PREFIX} is made by the system alone")
}

/// What to do about [`drawn`].
pub(crate) const DRAWN_HINT: &str = "give the columns names of their own, with AS";

/// The name among those of some columns that SQLite has drawn at random. From the sixth equal name on it does, with a
/// generator that all databases of a process share: x, x:1, x:2, x:3, x:4, x:1483092451.
pub(crate) fn drawn_name<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const COUNTED: [&str; 4] = ["1", "2", "3", "4"];
    let numbered = names.filter_map(|name| name.rsplit_once(':').map(|(base, number)| (name, base, number)));
    let numbered: Vec<_> = numbered.filter(|(_, _, number)| number.bytes().all(|b| b.is_ascii_digit())).collect();
    let mut counted: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (_, base, number) in numbered.iter().filter(|(_, _, number)| COUNTED.contains(number)) {
        counted.entry(base.to_ascii_lowercase()).or_default().insert(number);
    }
    let is_full = |base: &str| counted.get(&base.to_ascii_lowercase()).is_some_and(|all| all.len() == COUNTED.len());
    let drawn = numbered.iter().find(|(_, base, number)| !COUNTED.contains(number) && is_full(base))?;
    Some(drawn.0)
}

/// Why such a name is refused.
pub(crate) fn drawn(name: &str) -> String {
    let base = name.rsplit_once(':').map_or(name, |(base, _)| base);
    format!("more than five columns have the name {base}: SQLite would draw the next names at random")
}

/// What is wrong with the schema that a statement has left. SQLite's authorizer is not told the new name of a table,
/// nor what a foreign key refers to: a table could take the system's name, which nobody could drop again, or hold rows
/// of the system's fast.
pub(crate) fn what_is_wrong(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut names = connection.prepare("select name from sqlite_schema where name <> ?1 and tbl_name <> ?1")?;
    let mut parents = connection.prepare(
        "select distinct f.\"table\" from sqlite_schema s, pragma_foreign_key_list(s.name) f where s.type = 'table'",
    )?;
    for name in names.query_map([MEMBERS], |row| row.get(0))? {
        let name: String = name?;
        if is_system(&name) {
            return Ok(Some(made_by_the_system(&name)));
        }
    }
    for parent in parents.query_map([], |row| row.get::<_, String>(0))? {
        let parent = parent?;
        if is_system(&parent) {
            return Ok(Some(format!(
                "a foreign key may not refer to {parent}: its rows could not be deleted any more"
            )));
        }
    }
    let mut objects = connection.prepare("select name from sqlite_schema where type in ('table', 'view')")?;
    let mut columns = connection.prepare("select name from pragma_table_xinfo(?1)")?;
    for object in objects.query_map([], |row| row.get::<_, String>(0))? {
        // A view that refers to what is gone has none.
        let Ok(names) = columns.query_map([object?], |row| row.get(0))?.collect::<Result<Vec<String>, _>>() else {
            continue;
        };
        if let Some(name) = drawn_name(names.iter().map(String::as_str)) {
            return Ok(Some(drawn(name)));
        }
    }
    Ok(None)
}

/// What it means to write rows of a table. Whoever may write a table can give it a trigger, which acts for whoever
/// writes that table next. So the rows of the system are written by statements alone, and never by what is behind one.
fn written(table: &str, trigger: Option<&str>) -> Result<u32, String> {
    match trigger {
        Some(trigger) if is_system(table) => Err(format!("trigger {trigger} may not write {table}")),
        _ if is_system(table) => Ok(act::WRITES_ROWS | act::WRITES_SYSTEM),
        _ => Ok(act::WRITES_ROWS),
    }
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
        AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name } => note(written(table_name, context.accessor)?),
        AuthAction::CreateTable { table_name: name }
        | AuthAction::CreateView { view_name: name }
        | AuthAction::DropTable { table_name: name }
        | AuthAction::DropView { view_name: name }
        | AuthAction::AlterTable { table_name: name, .. }
        | AuthAction::CreateIndex { table_name: name, .. }
        | AuthAction::DropIndex { table_name: name, .. }
        | AuthAction::CreateTrigger { table_name: name, .. }
        | AuthAction::DropTrigger { table_name: name, .. } => schema(name)?,
        AuthAction::Reindex { .. } | AuthAction::Analyze { .. } => note(act::WRITES_SCHEMA),
        AuthAction::Function { function_name } => {
            // CURRENT_TIMESTAMP and its like come as they were written.
            if !FUNCTIONS.iter().any(|allowed| function_name.eq_ignore_ascii_case(allowed)) {
                return Err(format!("function {function_name}() is not allowed in a replicated database"));
            }
        }
        AuthAction::Pragma { pragma_name, .. } => {
            if !PRAGMAS.iter().any(|allowed| pragma_name.eq_ignore_ascii_case(allowed)) {
                return Err(format!("PRAGMA {pragma_name} is not allowed: settings are the same at all replicas"));
            }
        }
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
