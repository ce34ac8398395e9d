//! Functions that catalog queries call, and arrays as the text that PostgreSQL writes them in.

use crate::settings::{DATABASE, SERVER_VERSION, Settings};
use crate::types;
use regex_lite::Regex;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What functions know of the schema.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Numbers of tables, views and indexes.
    pub(super) relations: BTreeMap<String, i64>,
    /// How constraints, indexes, views and triggers are defined, by number.
    pub(super) definitions: BTreeMap<i64, String>,
}

/// Shared with the functions of a connection.
pub(super) type SharedNames = Arc<Mutex<Names>>;

/// Functions that say yes to everything.
const YES: &[&str] = &[
    "pg_table_is_visible",
    "pg_type_is_visible",
    "pg_function_is_visible",
    "pg_collation_is_visible",
    "pg_opclass_is_visible",
    "has_table_privilege",
    "has_schema_privilege",
    "has_database_privilege",
    "has_column_privilege",
    "has_any_column_privilege",
    "has_sequence_privilege",
    "has_function_privilege",
];

/// Functions about things that there are none of.
const NOTHING: &[&str] = &[
    "obj_description",
    "col_description",
    "shobj_description",
    "pg_get_serial_sequence",
    "pg_partition_ancestors",
    "pg_get_partkeydef",
    "pg_get_statisticsobjdef_columns",
    "pg_get_function_result",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_functiondef",
    "inet_server_addr",
    "inet_server_port",
    "inet_client_addr",
    "pg_tablespace_location",
    "pg_get_ruledef",
    "pg_options_to_table",
];

/// Functions whose answer is a number that nobody should rely on.
const ZERO: &[&str] = &[
    "pg_table_size",
    "pg_relation_size",
    "pg_total_relation_size",
    "pg_indexes_size",
    "pg_database_size",
    "pg_backend_pid",
    "pg_is_in_recovery",
    "pg_relation_is_publishable",
    "txid_current",
    "pg_is_other_temp_schema",
    "pg_my_temp_schema",
];

/// Functions whose answer is always the same text.
const TEXTS: &[(&str, &str)] = &[
    ("current_schema", "public"),
    ("current_database", DATABASE),
    ("current_catalog", DATABASE),
    ("pg_get_userbyid", DATABASE),
    ("pg_encoding_to_char", "UTF8"),
];

fn text(context: &Context<'_>, at: usize) -> Result<String> {
    Ok(match context.get_raw(at) {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    })
}

/// A function with any number of arguments; null if the first one is.
fn strict(
    connection: &Connection,
    name: &str,
    function: impl Fn(&Context<'_>) -> Result<Value> + Send + 'static,
) -> Result<()> {
    connection.create_scalar_function(name, -1, FunctionFlags::SQLITE_UTF8, move |context| {
        let is_null = !context.is_empty() && context.get_raw(0) == ValueRef::Null;
        if is_null { Ok(Value::Null) } else { function(context) }
    })
}

/// Makes the functions known to a connection.
pub(super) fn register(connection: &Connection, user: &Arc<Mutex<String>>) -> Result<SharedNames> {
    for name in YES {
        connection.create_scalar_function(*name, -1, FunctionFlags::SQLITE_UTF8, |_| Ok(true))?;
    }
    for name in NOTHING {
        connection.create_scalar_function(*name, -1, FunctionFlags::SQLITE_UTF8, |_| Ok(Value::Null))?;
    }
    for name in ZERO {
        connection.create_scalar_function(*name, -1, FunctionFlags::SQLITE_UTF8, |_| Ok(0))?;
    }
    for (name, text) in TEXTS {
        connection.create_scalar_function(*name, -1, FunctionFlags::SQLITE_UTF8, |_| Ok(*text))?;
    }
    for name in ["current_user", "session_user", "current_role"] {
        let user = Arc::clone(user);
        connection.create_scalar_function(name, -1, FunctionFlags::SQLITE_UTF8, move |_| {
            Ok(user.lock().unwrap_or_else(PoisonError::into_inner).clone())
        })?;
    }
    settings(connection)?;
    arrays(connection)?;
    patterns(connection)?;
    let names = SharedNames::default();
    definitions(connection, &names)?;
    Ok(names)
}

fn settings(connection: &Connection) -> Result<()> {
    let version = format!("PostgreSQL {SERVER_VERSION} (Bezant {}, a replicated SQLite)", env!("CARGO_PKG_VERSION"));
    strict(connection, "version", move |_| Ok(Value::Text(version.clone())))?;
    strict(connection, "current_setting", |context| {
        let known = Settings::default().get(&text(context, 0)?).map(ToOwned::to_owned);
        Ok(known.map_or(Value::Null, Value::Text))
    })?;
    strict(connection, "set_config", |context| text(context, 1).map(Value::Text))?;
    strict(connection, "quote_ident", |context| text(context, 0).map(|name| Value::Text(quoted(&name))))?;
    strict(connection, "pg_size_pretty", |context| Ok(Value::Text(format!("{} bytes", text(context, 0)?))))
}

/// A name as SQL.
pub(super) fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The elements of `{a,"b c"}`, or of numbers with spaces between them.
pub(super) fn elements(array: &str) -> Vec<String> {
    let Some(inside) = array.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return array.split_whitespace().map(Into::into).collect();
    };
    if inside.is_empty() {
        return Vec::new();
    }
    let (mut all, mut current, mut in_quotes) = (Vec::new(), String::new(), false);
    let mut characters = inside.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => in_quotes = !in_quotes,
            '\\' => current.extend(characters.next()),
            ',' if !in_quotes => all.push(std::mem::take(&mut current)),
            other => current.push(other),
        }
    }
    all.push(current);
    all
}

/// The other way round.
pub(super) fn array<T: AsRef<str>>(elements: &[T]) -> String {
    let one = |element: &T| {
        let text = element.as_ref();
        let plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.:".contains(c));
        if plain { text.into() } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
    };
    format!("{{{}}}", elements.iter().map(one).collect::<Vec<String>>().join(","))
}

/// As JSON, so that SQLite can make rows of it: numbers as numbers.
fn json(array: &str) -> String {
    let one = |element: &String| match element.parse::<i64>() {
        Ok(number) => number.to_string(),
        Err(_) => {
            let escaped: String = element.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            format!("\"{}\"", escaped.replace('\\', "\\\\").replace('"', "\\\""))
        }
    };
    format!("[{}]", elements(array).iter().map(one).collect::<Vec<_>>().join(","))
}

fn arrays(connection: &Connection) -> Result<()> {
    strict(connection, "pg_json", |context| Ok(Value::Text(json(&text(context, 0)?))))?;
    connection.create_scalar_function("pg_array", -1, FunctionFlags::SQLITE_UTF8, |context| {
        let all: Vec<String> = (0..context.len()).map(|at| text(context, at)).collect::<Result<_>>()?;
        Ok(array(&all))
    })?;
    strict(connection, "current_schemas", |context| {
        let implicit = text(context, 0)? == "1";
        Ok(Value::Text(if implicit { "{pg_catalog,public}" } else { "{public}" }.into()))
    })?;
    strict(connection, "pg_item", |context| {
        let place: usize = text(context, 1)?.parse().unwrap_or(0);
        let item = place.checked_sub(1).and_then(|at| elements(&text(context, 0).ok()?).get(at).cloned());
        Ok(item.map_or(Value::Null, number_or_text))
    })?;
    strict(connection, "pg_series", |context| {
        /// More numbers than anybody asks the catalog for.
        const NUMBERS_MAX: i64 = 10_000;
        let (first, last) = (context.get::<i64>(0)?, context.get::<Option<i64>>(1)?);
        let last = last.unwrap_or(first - 1).min(first.saturating_add(NUMBERS_MAX));
        let all: Vec<String> = (first..=last).map(|number| number.to_string()).collect();
        Ok(Value::Text(array(&all)))
    })?;
    strict(connection, "pg_trim", |context| {
        let (what, of) = (text(context, 0)?, text(context, 1)?);
        Ok(Value::Text(of.trim_matches(|c| what.contains(c)).into()))
    })?;
    strict(connection, "array_to_string", |context| {
        Ok(Value::Text(elements(&text(context, 0)?).join(&text(context, 1)?)))
    })?;
    strict(connection, "string_to_array", |context| {
        let (all, separator) = (text(context, 0)?, text(context, 1)?);
        Ok(Value::Text(array(&all.split(&separator).collect::<Vec<_>>())))
    })?;
    for name in ["array_length", "array_upper", "cardinality"] {
        strict(connection, name, |context| Ok(Value::Integer(elements(&text(context, 0)?).len() as i64)))?;
    }
    connection.create_aggregate_function("array_agg", 1, FunctionFlags::SQLITE_UTF8, Collect)?;
    connection.create_aggregate_function("bool_and", 1, FunctionFlags::SQLITE_UTF8, Every)
}

fn number_or_text(text: String) -> Value {
    text.parse().map_or_else(|_| Value::Text(text.clone()), Value::Integer)
}

/// `array_agg`.
struct Collect;

impl Aggregate<Vec<String>, Option<String>> for Collect {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, all: &mut Vec<String>) -> Result<()> {
        all.push(text(context, 0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, all: Option<Vec<String>>) -> Result<Option<String>> {
        Ok(all.map(|all| array(&all)))
    }
}

/// `bool_and`.
struct Every;

impl Aggregate<bool, Option<bool>> for Every {
    fn init(&self, _: &mut Context<'_>) -> Result<bool> {
        Ok(true)
    }

    fn step(&self, context: &mut Context<'_>, all: &mut bool) -> Result<()> {
        *all &= context.get::<Option<bool>>(0)?.unwrap_or(true);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, all: Option<bool>) -> Result<Option<bool>> {
        Ok(all)
    }
}

fn patterns(connection: &Connection) -> Result<()> {
    strict(connection, "regexp", |context| {
        if context.get_raw(1) == ValueRef::Null {
            return Ok(Value::Null);
        }
        let pattern = Regex::new(&text(context, 0)?).map_err(|error| Error::UserFunctionError(error.into()))?;
        Ok(Value::Integer(pattern.is_match(&text(context, 1)?).into()))
    })
}

/// What an index is about in this place, counted from 1.
fn part_of_index(definition: &str, place: usize) -> Option<String> {
    let (_, list) = definition.split_once(" USING btree (")?;
    let (mut depth, mut parts) = (0_u32, vec![String::new()]);
    for c in list.chars() {
        match c {
            ')' if depth == 0 => break,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        parts.last_mut()?.push(c);
    }
    let part = parts.get(place.checked_sub(1)?)?.trim();
    Some(part.strip_suffix(" DESC").unwrap_or(part).into())
}

fn definitions(connection: &Connection, names: &SharedNames) -> Result<()> {
    let get = |names: &SharedNames| names.lock().unwrap_or_else(PoisonError::into_inner).definitions.clone();
    for name in ["pg_get_constraintdef", "pg_get_indexdef", "pg_get_viewdef", "pg_get_triggerdef"] {
        let names = Arc::clone(names);
        strict(connection, name, move |context| {
            let number = text(context, 0)?.parse().unwrap_or(0);
            let Some(definition) = get(&names).get(&number).cloned() else { return Ok(Value::Null) };
            let part = if name == "pg_get_indexdef" && context.len() > 1 { text(context, 1)? } else { String::new() };
            Ok(match part.parse().unwrap_or(0) {
                0 => Value::Text(definition),
                place => part_of_index(&definition, place).map_or(Value::Null, Value::Text),
            })
        })?;
    }
    strict(connection, "to_regtype", |context| {
        Ok(types::by_name(&text(context, 0)?).map_or(Value::Null, |number| Value::Integer(number.into())))
    })?;
    strict(connection, "pg_get_expr", |context| text(context, 0).map(Value::Text))?;
    strict(connection, "format_type", |context| {
        let (number, modifier) = (text(context, 0)?, text(context, 1)?);
        // A type may be told by its name, as in `('"pg_catalog"."int4"')::regtype::text`.
        let by_name = || types::by_name(number.replace('"', "").trim_start_matches("pg_catalog."));
        let name = number.parse().ok().or_else(by_name).and_then(types::name_of).unwrap_or("???");
        let packed: i32 = modifier.parse().unwrap_or(-1);
        let modifier = packed.saturating_sub(4);
        Ok(Value::Text(match name.split_once(" with") {
            // Digits of a second stand for themselves.
            Some((word, zone)) if packed >= 0 => format!("{word}({packed}) with{zone}"),
            _ if modifier < 0 => name.into(),
            // Precision and scale are packed into one number; a scale may be negative.
            _ if name == "numeric" => format!("{name}({},{})", modifier >> 16, ((modifier & 0x7ff) ^ 0x400) - 0x400),
            _ => format!("{name}({modifier})"),
        }))
    })?;
    let known = Arc::clone(names);
    strict(connection, "pg_relation_name", move |context| {
        let number = text(context, 0)?;
        let names = known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = names.relations.iter().find(|(_, known)| known.to_string() == number);
        Ok(Value::Text(found.map_or(number, |(name, _)| quoted(name))))
    })?;
    for (name, must_exist) in [("to_regclass", false), ("pg_relation_number", true)] {
        let known = Arc::clone(names);
        strict(connection, name, move |context| {
            let name = text(context, 0)?;
            if name.parse::<i64>().is_ok() {
                return Ok(number_or_text(name));
            }
            let plain = name.trim_start_matches("public.").trim_start_matches("pg_catalog.").trim_matches('"');
            let names = known.lock().unwrap_or_else(PoisonError::into_inner);
            match names.relations.get(plain) {
                Some(number) => Ok(Value::Integer(*number)),
                None if !must_exist => Ok(Value::Null),
                // What the catalog says about its own tables nobody needs to know.
                None if plain.starts_with("pg_") => Ok(Value::Integer(0)),
                None => Err(Error::UserFunctionError(format!("relation \"{name}\" does not exist").into())),
            }
        })?;
    }
    Ok(())
}
