//! What a schema may be: what the authorizer is not told when a statement is prepared.

use crate::roles::MEMBERS;
use crate::system::{is_system, made_by_the_system};
use rusqlite::{Connection, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};

/// What each table, index, view and trigger counts besides its text.
pub(crate) const OBJECT_BYTES: i64 = 64;

/// Bytes of the planner's statistics that count as one of the schema: most of them are only copied.
const STATISTICS_BYTES: i64 = 16;

/// The tables in which these are.
const STATISTICS: [(&str, &[&str]); 2] =
    [("sqlite_stat1", &["stat"]), ("sqlite_stat4", &["neq", "nlt", "ndlt", "sample"])];

/// The largest schema, by [`size`]: a replica reads it within a request's time, and less than half of what a request
/// may cost is left for that.
pub(crate) const SCHEMA_BYTES_MAX: i64 = 4 << 20;

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

/// What is wrong with the tables and views that a statement has created, or with all if it has altered some, which may
/// change a view of them. SQLite's authorizer is not told the new name of a table, nor what a foreign key refers to: a
/// table could take the system's name, which nobody could drop again, or hold rows of the system's fast.
/// With `draws_names` nobody looks for names that SQLite drew.
pub(crate) fn what_is_wrong(
    connection: &Connection,
    created: Option<Vec<String>>,
    draws_names: bool,
) -> rusqlite::Result<Option<String>> {
    let names = match created {
        Some(names) => names,
        None => {
            let mut all = connection.prepare("select name from sqlite_schema where name <> ?1 and tbl_name <> ?1")?;
            all.query_map([MEMBERS], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?
        }
    };
    let mut parents = connection.prepare("select distinct \"table\" from pragma_foreign_key_list(?1)")?;
    let mut columns = connection.prepare("select name from pragma_table_xinfo(?1)")?;
    for name in &names {
        if is_system(name) {
            return Ok(Some(made_by_the_system(name)));
        }
        for parent in parents.query_map([name], |row| row.get::<_, String>(0))? {
            let parent = parent?;
            if is_system(&parent) {
                return Ok(Some(format!(
                    "a foreign key may not refer to {parent}: its rows could not be deleted any more"
                )));
            }
        }
        let columns = match columns.query_map([name], |row| row.get(0))?.collect::<Result<Vec<String>, _>>() {
            Ok(columns) => columns,
            // A view that refers to what is gone has none.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => continue,
            Err(error) => return Err(error),
        };
        let name = drawn_name(columns.iter().map(String::as_str));
        if let Some(name) = name.filter(|_| !draws_names) {
            return Ok(Some(drawn(name)));
        }
    }
    Ok(None)
}

/// Bytes of the schema: of its texts, and [`OBJECT_BYTES`] for each table, index, view and trigger. The planner's
/// statistics are read with it: they count as much for each row, and one for [`STATISTICS_BYTES`] of theirs.
pub(crate) fn size(connection: &Connection) -> rusqlite::Result<i64> {
    let bytes =
        |columns: &[&str]| columns.iter().map(|name| format!("total(octet_length({name}))")).collect::<Vec<_>>();
    let ask = |table: &str, columns: &[&str], share: i64| {
        let sum = bytes(columns).join(" + ");
        let mut all = connection.prepare(&format!("select count(*) * ?1 + ({sum}) / ?2 from {table}"))?;
        all.query_row([OBJECT_BYTES, share], |row| Ok(row.get::<_, f64>(0)? as i64))
    };
    let mut size = ask("sqlite_schema", &["sql"], 1)?;
    for (table, columns) in STATISTICS {
        size += match ask(table, columns, STATISTICS_BYTES) {
            // Nobody has analysed anything yet.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => 0,
            rows => rows?,
        };
    }
    Ok(size)
}
