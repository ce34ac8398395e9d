//! Where two versions of the state differ: from roots that are not equal to pages, tables, rows and values.
//!
//! 1. The Merkle trees give the pages.
//! 2. Walking the trees of SQLite gives the table or index of each.
//! 3. The rows of those tables are compared one by one. If a page belongs to none (the list of free pages, a part of a
//!    large value), all tables are.
//!
//! One of the two may be anything at all: what a liar sent, or what a broken disk gave. SQLite's own errors are what
//! is said then; the walk is bounded by the number of pages.

use crate::pages::KV;
use crate::snapshot::{Snapshot, kv_pages, quoted};
use crate::unreadable::SnapshotError;
use bezant_core::checkpoint::Tree;
use bezant_core::estate::page_holder;
use bezant_core::service::{Asker, PageNumber, Service};
use bezant_core::services::kv::{Kv, KvOperation, KvResult};
use bezant_core::wire::Wire;
use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most differences that are named; there may be more.
pub const DIFFERENCES_MAX: usize = 100;
/// Rows that are compared of a table without row numbers, which have to be kept meanwhile.
const KEYED_ROWS_MAX: usize = 1_000_000;
/// Bytes of a value that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// What is not equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A column of a row that both have.
    Value {
        /// The table.
        table: String,
        /// The row's number or primary key, as SQL writes it.
        row: String,
        /// The column.
        column: String,
    },
    /// A row that one of them does not have.
    Row {
        /// The table.
        table: String,
        /// The row's number or primary key, as SQL writes it.
        row: String,
    },
    /// A key of the key-value service.
    Key(String),
    /// The tables cannot be read.
    Unreadable,
}

/// One difference. Values are as SQL writes them; `None`: there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub place: Place,
    /// In the first version.
    pub mine: Option<String>,
    /// In the second.
    pub agreed: Option<String>,
}

/// What two versions of the state do not have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The pages, with what each belongs to.
    pub pages: Vec<(PageNumber, String)>,
    /// The first of the differences in rows and keys, at most [`DIFFERENCES_MAX`].
    pub differences: Vec<Difference>,
    /// Whether there are more.
    pub more: bool,
}

/// Compares two versions of the state.
pub fn compare(mine: &Tree, agreed: &Tree) -> Comparison {
    let numbers: Vec<_> = mine.changed(agreed).into_iter().map(|(number, _)| number).collect();
    let tables = [mine, agreed].map(Snapshot::open);
    let only_keys = tables.iter().all(|opened| matches!(opened, Err(SnapshotError::NoTables)));
    let mut comparison = Comparison::default();
    let mut owners = BTreeMap::new();
    if !only_keys && numbers.iter().any(|number| *number < KV) {
        match &tables {
            [Ok(mine), Ok(agreed)] => match rows(mine, agreed, &numbers, &mut owners, &mut comparison) {
                Ok(()) => {}
                Err(error) => comparison.unreadable(&error),
            },
            [Err(error), _] | [_, Err(error)] => comparison.unreadable(error),
        }
    }
    keys(mine, agreed, only_keys, &mut comparison);
    comparison.pages = numbers.into_iter().map(|number| (number, owner(number, only_keys, &owners))).collect();
    comparison
}

fn owner(number: PageNumber, only_keys: bool, owners: &BTreeMap<PageNumber, String>) -> String {
    match page_holder(number) {
        "service" if !only_keys && number < KV => owners.get(&number).cloned().unwrap_or_else(|| match number {
            0 => "file header and schema".to_owned(),
            _ => "free, or part of a large value".to_owned(),
        }),
        "service" => "keys and values".to_owned(),
        other => other.to_owned(),
    }
}

impl Comparison {
    /// Takes a difference; `false`: there is no room for more.
    fn push(&mut self, place: Place, mine: Option<String>, agreed: Option<String>) -> bool {
        if self.differences.len() == DIFFERENCES_MAX {
            self.more = true;
            return false;
        }
        self.differences.push(Difference { place, mine, agreed });
        true
    }

    fn unreadable(&mut self, error: &SnapshotError) {
        self.push(Place::Unreadable, Some(error.to_string()), None);
    }
}

/// A table, from the schema.
struct Table {
    name: String,
    root: u32,
}

fn tables_of(connection: &Connection, kind: &str) -> rusqlite::Result<Vec<Table>> {
    let sql = "select tbl_name, rootpage from sqlite_schema where type = ?1 and rootpage > 0 order by name";
    let mut statement = connection.prepare(sql)?;
    let table = |row: &rusqlite::Row<'_>| Ok(Table { name: row.get(0)?, root: row.get(1)? });
    statement.query_map([kind], table)?.collect()
}

/// Steps 2 and 3.
fn rows(
    mine: &Snapshot,
    agreed: &Snapshot,
    numbers: &[PageNumber],
    owners: &mut BTreeMap<PageNumber, String>,
    comparison: &mut Comparison,
) -> Result<(), SnapshotError> {
    for snapshot in [agreed, mine] {
        snapshot.sql().privileged(|connection| {
            for (kind, what) in [("table", "table"), ("index", "an index of table")] {
                for Table { name, root } in tables_of(connection, kind)? {
                    let label = format!("{what} {name}");
                    for page in pages_below(snapshot, root) {
                        owners.entry(page).or_insert_with(|| label.clone());
                    }
                }
            }
            Ok(())
        })?;
    }
    let is_owned = |number: &PageNumber| *number == 0 || owners.contains_key(number);
    let all = !numbers.iter().filter(|number| **number < KV).all(is_owned);
    let touched: BTreeSet<&String> = numbers.iter().filter_map(|number| owners.get(number)).collect();
    let is_touched = |table: &str| {
        all || [format!("table {table}"), format!("an index of table {table}")]
            .iter()
            .any(|label| touched.contains(label))
    };
    mine.sql()
        .privileged(|mine| Ok(agreed.sql().privileged(|agreed| compare_tables(mine, agreed, is_touched, comparison))))?
}

/// Compares every table that one of them has alone, and those that `is_touched` names.
fn compare_tables(
    mine: &Connection,
    agreed: &Connection,
    is_touched: impl Fn(&str) -> bool,
    comparison: &mut Comparison,
) -> rusqlite::Result<()> {
    let names = |connection| -> rusqlite::Result<BTreeSet<String>> {
        Ok(tables_of(connection, "table")?.into_iter().map(|table| table.name).collect())
    };
    let (here, there) = (names(mine)?, names(agreed)?);
    for table in here.union(&there) {
        if !(here.contains(table) && there.contains(table)) {
            let said = |there: bool| there.then(|| "the table is there".to_owned());
            let place = Place::Row { table: table.clone(), row: "every row".to_owned() };
            comparison.push(place, said(here.contains(table)), said(there.contains(table)));
        } else if is_touched(table) {
            compare_table(mine, agreed, table, comparison)?;
        }
    }
    Ok(())
}

/// The numbers, as the state counts them, of all pages of a tree of SQLite, its root first.
fn pages_below(snapshot: &Snapshot, root: u32) -> BTreeSet<PageNumber> {
    let mut seen = BTreeSet::new();
    let mut next = vec![root];
    while let Some(page) = next.pop() {
        let Some(number) = page.checked_sub(1) else { continue };
        let Some(content) = snapshot.page(number) else { continue };
        if !seen.insert(number) {
            continue;
        }
        // The first page begins with the file's header.
        let start = if number == 0 { 100 } else { 0 };
        let two = |at: usize| content.get(at..at + 2).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
        let four = |at: usize| {
            content.get(at..at + 4).map_or(0, |four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
        };
        // Interior pages of tables and indexes; all others have no children.
        if matches!(content.get(start), Some(5 | 2)) {
            next.push(four(start + 8));
            let cells = usize::from(two(start + 3));
            next.extend((0..cells).map(|cell| four(usize::from(two(start + 12 + 2 * cell)))));
        }
    }
    seen
}

/// How rows are told apart, and what their values are called.
struct Shape {
    /// SQL terms that identify a row.
    key: Vec<String>,
    columns: Vec<String>,
}

fn shape(connection: &Connection, table: &str) -> rusqlite::Result<Shape> {
    let mut statement = connection.prepare("select name, pk from pragma_table_info(?1)")?;
    let columns: Vec<(String, u32)> =
        statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut primary: Vec<_> = columns.iter().filter(|(_, pk)| *pk > 0).collect();
    primary.sort_by_key(|(_, pk)| *pk);
    let numbered = connection.prepare(&format!("select _rowid_ from {}", quoted(table))).is_ok();
    let key =
        if numbered { vec!["_rowid_".to_owned()] } else { primary.into_iter().map(|(name, _)| quoted(name)).collect() };
    Ok(Shape { key, columns: columns.into_iter().map(|(name, _)| name).collect() })
}

/// A row: what identifies it, and its values.
type Row = (Vec<Value>, Vec<Value>);

fn compare_table(
    mine: &Connection,
    agreed: &Connection,
    table: &str,
    comparison: &mut Comparison,
) -> rusqlite::Result<()> {
    let (shape_here, shape_there) = (shape(mine, table)?, shape(agreed, table)?);
    if shape_here.columns != shape_there.columns || shape_here.key != shape_there.key {
        let place = Place::Row { table: table.to_owned(), row: "every row".to_owned() };
        let said = |shape: &Shape| Some(shape.columns.join(", "));
        comparison.push(place, said(&shape_here), said(&shape_there));
        return Ok(());
    }
    let Shape { key, columns } = shape_there;
    let terms: Vec<_> = key.iter().cloned().chain(columns.iter().map(|name| quoted(name))).collect();
    let sql = format!("select {} from {} order by {}", terms.join(", "), quoted(table), key.join(", "));
    let (mut here, mut there) = (mine.prepare(&sql)?, agreed.prepare(&sql)?);
    let width = key.len();
    let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Row> {
        let value = |column: usize| row.get::<_, Value>(column);
        Ok((
            (0..width).map(value).collect::<Result<_, _>>()?,
            (width..terms.len()).map(value).collect::<Result<_, _>>()?,
        ))
    };
    let (mut here, mut there) = (here.query_map([], read)?, there.query_map([], read)?);
    // Rows that only one side has shown so far, by their keys as text: with equal keys on both sides it stays empty.
    let mut waiting: BTreeMap<String, (Option<Row>, Option<Row>)> = BTreeMap::new();
    loop {
        let (mine, agreed) = (here.next().transpose()?, there.next().transpose()?);
        if mine.is_none() && agreed.is_none() {
            break;
        }
        for (row, is_mine) in [(mine, true), (agreed, false)] {
            let Some(row) = row else { continue };
            let name = name_of(&row.0);
            let pair = waiting.entry(name.clone()).or_default();
            if is_mine {
                pair.0 = Some(row);
            } else {
                pair.1 = Some(row);
            }
            if let (Some(mine), Some(agreed)) = pair {
                let differ = differing(table, &name, &columns, mine, agreed, comparison);
                waiting.remove(&name);
                if !differ {
                    return Ok(());
                }
            }
        }
        if waiting.len() > KEYED_ROWS_MAX {
            comparison.more = true;
            break;
        }
    }
    for (row, (mine, agreed)) in waiting {
        let said = |row: Option<Row>| row.map(|(_, values)| name_of(&values));
        if !comparison.push(Place::Row { table: table.to_owned(), row }, said(mine), said(agreed)) {
            break;
        }
    }
    Ok(())
}

/// Names the columns in which two rows differ; `false`: there is no room for more.
fn differing(
    table: &str,
    row: &str,
    columns: &[String],
    mine: &Row,
    agreed: &Row,
    comparison: &mut Comparison,
) -> bool {
    let pairs = columns.iter().zip(mine.1.iter().zip(&agreed.1)).filter(|(_, (mine, agreed))| mine != agreed);
    let pairs: Vec<_> = pairs.collect();
    pairs.into_iter().all(|(column, (mine, agreed))| {
        let place = Place::Value { table: table.to_owned(), row: row.to_owned(), column: column.clone() };
        comparison.push(place, Some(shown(mine)), Some(shown(agreed)))
    })
}

fn name_of(values: &[Value]) -> String {
    values.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// A value as SQL writes it; long ones are cut.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:?}"),
        Value::Text(text) => format!("'{}'", cut(&text.replace('\'', "''"))),
        Value::Blob(bytes) => {
            let digits: String = bytes.iter().take(SHOWN_BYTES_MAX / 2).map(|byte| format!("{byte:02X}")).collect();
            let rest = if bytes.len() > SHOWN_BYTES_MAX / 2 { "…" } else { "" };
            format!("x'{digits}{rest}'")
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_BYTES_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The keys on the pages that differ.
fn keys(mine: &Tree, agreed: &Tree, only_keys: bool, comparison: &mut Comparison) {
    let first = if only_keys { 0 } else { KV };
    let changed: BTreeSet<PageNumber> = mine.changed(agreed).into_iter().map(|(number, _)| number).collect();
    // Values with their deadlines.
    let load = |tree: &Tree| -> Option<BTreeMap<Bytes, (Bytes, Option<u64>)>> {
        let pages = kv_pages(tree, only_keys).filter(|(number, _)| changed.contains(&(number + first)));
        let mut kv = Kv::new();
        kv.load(&mut pages.map(|(number, page)| (number, Some(page.clone())))).ok()?;
        let with_deadline = |(key, value): (Bytes, Bytes)| {
            let deadline = kv.deadline_of(&key);
            (key, (value, deadline))
        };
        Some(entries(&kv).into_iter().map(with_deadline).collect())
    };
    let (Some(here), Some(there)) = (load(mine), load(agreed)) else {
        let error = SnapshotError::Unreadable("the keys and values are none of this service's".to_owned());
        return comparison.unreadable(&error);
    };
    let said = |(value, deadline): &(Bytes, Option<u64>)| {
        let until = deadline.map(|deadline_ms| format!(" until {deadline_ms}")).unwrap_or_default();
        cut(&value.escape_ascii().to_string()) + &until
    };
    let all: BTreeSet<&Bytes> = here.keys().chain(there.keys()).collect();
    for key in all {
        let (mine, agreed) = (here.get(key), there.get(key));
        let place = Place::Key(key.escape_ascii().to_string());
        if mine != agreed && !comparison.push(place, mine.map(said), agreed.map(said)) {
            return;
        }
    }
}

/// All keys and values.
pub(crate) fn entries(kv: &Kv) -> BTreeMap<Bytes, Bytes> {
    let (mut all, mut from, mut inclusive) = (BTreeMap::new(), Bytes::new(), true);
    loop {
        let (limit, bytes) = (u32::MAX, u32::MAX);
        let range = KvOperation::Range { from, inclusive, limit, bytes, keys_only: false };
        let answer =
            kv.query(&range.to_bytes(), &Asker::default()).ok().and_then(|answer| KvResult::from_bytes(answer).ok());
        let Some(KvResult::Range { entries, more }) = answer else { return all };
        let Some((last, _)) = entries.last().cloned() else { return all };
        all.extend(entries);
        if !more {
            return all;
        }
        (from, inclusive) = (last, false);
    }
}

/// How many keys a state has.
pub fn key_count(tree: &Tree) -> u64 {
    let only_keys = matches!(Snapshot::open(tree), Err(SnapshotError::NoTables));
    let mut kv = Kv::new();
    let pages = kv_pages(tree, only_keys).map(|(number, page)| (number, Some(page.clone())));
    match kv.load(&mut pages.into_iter()) {
        Ok(()) => entries(&kv).len() as u64,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Database, Request, Response, Statement};
    use bezant_core::service::Agreed;
    use bezant_core::services::kv::{Condition, DeadlineCondition, Until};
    use bezant_core::time::Instant;

    /// A service, and its pages as they would be in a checkpoint.
    #[derive(Default)]
    struct Replica {
        database: Database,
        tree: Tree,
    }

    impl Replica {
        fn with(statements: &[&str]) -> Self {
            let mut replica = Self::default();
            statements.iter().for_each(|sql| replica.run(sql));
            replica
        }

        fn run(&mut self, sql: &str) {
            let request = Request::Run(Batch { statements: vec![Statement::new(sql)], ..Batch::default() });
            let agreed = Agreed { time: Instant(1), ..Agreed::default() };
            let answer = Response::from_bytes(self.database.execute(&request.to_bytes(), &agreed)).unwrap();
            assert!(matches!(answer, Response::Done(_)), "{sql}: {answer:?}");
        }

        fn set(&mut self, key: &'static str, value: &'static str) {
            let set = KvOperation::Set { key: key.into(), value: value.into(), condition: Condition::Always };
            self.database.execute(&set.to_bytes(), &Agreed::default());
        }

        fn expire(&mut self, key: &'static str, deadline: i64) {
            let (key, until, condition) = (key.into(), Until::At(deadline), DeadlineCondition::Always);
            self.database.execute(&KvOperation::Expire { key, until, condition }.to_bytes(), &Agreed::default());
        }

        fn tree(&mut self) -> Tree {
            let Self { database, tree } = self;
            database.save(&mut |number, page| tree.set(number, page));
            tree.seal();
            tree.clone()
        }
    }

    const SCHEMA: [&str; 5] = [
        "create table accounts(id integer primary key, owner text, balance int)",
        "create table other(a, b, primary key (a, b)) without rowid",
        "create index by_owner on accounts(owner)",
        "insert into accounts select value, 'owner ' || value, 100 from json_each((
            select json_group_array(value) from (
                with recursive n(value) as (select 1 union all select value + 1 from n where value < 2000)
                select value from n)))",
        "insert into other values ('x', 1), ('y', 2)",
    ];

    fn value(table: &str, row: &str, column: &str, mine: &str, agreed: &str) -> Difference {
        let place = Place::Value { table: table.into(), row: row.into(), column: column.into() };
        Difference { place, mine: Some(mine.into()), agreed: Some(agreed.into()) }
    }

    #[test]
    fn a_value_is_found_among_thousands() {
        let (mut mine, mut agreed) = (Replica::with(&SCHEMA), Replica::with(&SCHEMA));
        assert_eq!(compare(&mine.tree(), &agreed.tree()), Comparison::default());
        mine.run("update accounts set balance = 1000100 where id = 1234");
        let found = compare(&mine.tree(), &agreed.tree());
        assert_eq!(found.differences, [value("accounts", "1234", "balance", "1000100", "100")]);
        assert!(found.pages.iter().any(|(_, what)| what == "table accounts"), "{found:?}");
        assert!(found.pages.iter().all(|(number, what)| *number == 0 || what == "table accounts"), "{found:?}");
    }

    #[test]
    fn rows_and_keys_that_one_has_alone_are_named() {
        let (mut mine, mut agreed) = (Replica::with(&SCHEMA), Replica::with(&SCHEMA));
        mine.run("delete from other where a = 'x'");
        agreed.run("create table late(a)");
        agreed.run("delete from accounts where id = 7");
        mine.set("color", "a lie");
        agreed.set("color", "blue");
        for (replica, deadline) in [(&mut mine, 7), (&mut agreed, 8)] {
            replica.set("session", "s");
            replica.expire("session", deadline);
        }
        let found = compare(&mine.tree(), &agreed.tree());
        let row = |table: &str, row: &str, mine: Option<&str>, agreed: Option<&str>| Difference {
            place: Place::Row { table: table.into(), row: row.into() },
            mine: mine.map(Into::into),
            agreed: agreed.map(Into::into),
        };
        let key = |key: &str, mine: &str, agreed: &str| Difference {
            place: Place::Key(key.into()),
            mine: Some(mine.into()),
            agreed: Some(agreed.into()),
        };
        let expected = [
            row("accounts", "7", Some("7, 'owner 7', 100"), None),
            row("late", "every row", None, Some("the table is there")),
            row("other", "'x', 1", None, Some("'x', 1")),
            key("color", "a lie", "blue"),
            key("session", "s until 7", "s until 8"),
        ];
        assert_eq!(found.differences, expected, "{found:?}");
        assert_eq!(key_count(&mine.tree()), 2);
    }

    #[test]
    fn many_differences_are_cut() {
        let (mut mine, mut agreed) = (Replica::with(&SCHEMA), Replica::with(&SCHEMA));
        mine.run("update accounts set balance = 0");
        let found = compare(&mine.tree(), &agreed.tree());
        assert_eq!((found.differences.len(), found.more), (DIFFERENCES_MAX, true));
    }

    /// Whatever a liar sends as its pages is an answer, not a panic.
    #[test]
    fn damaged_pages_are_an_answer() {
        let (mut mine, mut agreed) = (Replica::with(&SCHEMA), Replica::with(&SCHEMA));
        let (whole, agreed) = (mine.tree(), agreed.tree());
        for number in 0..12 {
            for byte in [0, 1, 20, 100, 105, 108, 500, 4_000] {
                let mut tree = whole.clone();
                let Some(page) = whole.get(number) else { continue };
                let mut page = page.to_vec();
                page[byte] ^= 0xff;
                tree.set(number, Some(page.into()));
                tree.seal();
                let found = compare(&tree, &agreed);
                assert!(!found.pages.is_empty());
            }
        }
        let mut ragged = whole.clone();
        ragged.set(3, None);
        ragged.seal();
        assert_eq!(compare(&ragged, &agreed).differences[0].place, Place::Unreadable);
    }

    #[test]
    fn a_snapshot_answers_reads_and_is_an_ordinary_file() {
        let mut replica = Replica::with(&SCHEMA);
        let snapshot = Snapshot::open(&replica.tree()).unwrap();
        let tables = [("accounts", 2_000), ("bezant_members", 0), ("other", 2)];
        assert_eq!(snapshot.tables().unwrap(), tables.map(|(name, rows)| (name.to_owned(), rows)));
        assert_eq!(snapshot.complaints().unwrap(), [""; 0]);
        let read = Request::one(Statement::new("select count(*) from accounts where balance = 100"));
        let Ok(Response::Done(results)) = snapshot.query(&read) else { panic!("it reads") };
        assert_eq!(results[0].rows, [[crate::Value::Integer(2_000)]]);
        let write = Request::one(Statement::new("delete from accounts"));
        assert!(snapshot.query(&write).is_err());
        let mut file = Vec::new();
        snapshot
            .write_file(|page| {
                file.extend_from_slice(page);
                Ok(())
            })
            .unwrap();
        assert!(file.starts_with(b"SQLite format 3") && file.len().is_multiple_of(crate::PAGE_BYTES));
        let empty = Snapshot::open(&Tree::new());
        assert_eq!(empty.unwrap_err(), SnapshotError::NoTables);
    }
}
