//! SQLite over pages in memory, set up so that every replica does the same.

use crate::vfs::{Disk, Vfs};
use crate::{functions, meter, profile};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::Action;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, ffi};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Steps of SQLite's virtual machine between two looks at the budget.
pub(crate) const STEPS_PER_LOOK: u32 = 1_000;

/// Prepared statements that are kept.
const STATEMENTS_KEPT: usize = 256;

/// What a random byte costs, in bytes gone through: each 32 of them are a digest.
const DRAWN: i64 = 8;

/// An open database. The connection is closed before its file system goes.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) connection: Connection,
    _vfs: Vfs,
}

impl Handle {
    /// Opens the database on a disk.
    ///
    /// # Panics
    /// If SQLite cannot be set up: there is no memory, or it is not the build that we expect.
    pub(crate) fn open(disk: &Arc<Disk>, cache_kib: u32) -> Self {
        Self::try_open(disk, cache_kib).unwrap_or_else(|error| panic!("SQLite cannot be set up: {error}"))
    }

    /// The same over pages that may not be those of a database.
    ///
    /// # Errors
    /// Those of SQLite.
    pub(crate) fn try_open(disk: &Arc<Disk>, cache_kib: u32) -> rusqlite::Result<Self> {
        let vfs = Vfs::register(Arc::clone(disk));
        let connection = disk.moment.privileged(|| set_up(&vfs, disk, cache_kib));
        connection.map(|connection| Self { connection, _vfs: vfs })
    }
}

fn set_up(vfs: &Vfs, disk: &Arc<Disk>, cache_kib: u32) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags_and_vfs("main", flags, vfs.name())?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    profile::apply(&connection, cache_kib)?;
    add_functions(&connection, disk)?;
    functions::add(&connection)?;
    // Reads the schema, so that a large one costs nobody anything.
    connection.query_row("select count(*) from sqlite_schema", [], |_| Ok(()))?;
    let watch = Arc::clone(disk);
    connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| {
        profile::authorize(&context, &watch.moment)
    }))?;
    let steps = i64::from(STEPS_PER_LOOK) * meter::STEP_BYTES;
    connection.progress_handler(STEPS_PER_LOOK as i32, Some(move || meter::pay(steps)))?;
    let watch = Arc::clone(disk);
    connection.update_hook(Some(move |_: Action, _: &str, _: &str, rowid: i64| {
        if rowid == i64::MAX {
            watch.moment.last_rowid_used.store(true, Ordering::Relaxed);
        }
    }))?;
    Ok(connection)
}

/// The functions whose answers SQLite would take from outside the agreed state (prac-F31, prac-F35). Being
/// application-defined they hold wherever SQL can name them: in defaults, triggers, views and generated columns
/// (prac-F32).
fn add_functions(connection: &Connection, disk: &Arc<Disk>) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
    let watch = Arc::clone(disk);
    connection.create_scalar_function("random", 0, flags, move |_| {
        let mut bytes = [0; 8];
        watch.moment.draw(&mut bytes);
        Ok(i64::from_le_bytes(bytes))
    })?;
    let watch = Arc::clone(disk);
    connection.create_scalar_function("randomblob", 1, flags, move |context| {
        // As SQLite's own: at least one byte.
        let length = usize::try_from(integer(context.get_raw(0))).unwrap_or(0).max(1);
        let fail = |code| Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        if length > crate::value::VALUE_BYTES_MAX {
            return fail(ffi::SQLITE_TOOBIG);
        }
        if meter::pay(length as i64 * DRAWN) {
            return fail(ffi::SQLITE_INTERRUPT);
        }
        let mut bytes = vec![0; length];
        watch.moment.draw(&mut bytes);
        Ok(ToSqlOutput::Owned(Value::Blob(bytes)))
    })?;
    let watch = Arc::clone(disk);
    connection
        .create_scalar_function("changes", 0, flags, move |_| Ok(watch.moment.changes.load(Ordering::Relaxed) as i64))
}

/// A value as an integer, as `randomblob` of SQLite sees it for numbers and for text that begins with one.
fn integer(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::Integer(number) => number,
        ValueRef::Real(number) => number as i64,
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            let text = text.trim_start();
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text[..digits].parse().unwrap_or(0)
        }
        ValueRef::Null | ValueRef::Blob(_) => 0,
    }
}

/// The statement of a text, if there is one and no other. (rusqlite's own way prepares what follows the first one by
/// recursion, however much that is, and gives a statement for a text without any.)
pub(crate) fn only_statement<'a>(
    connection: &'a Connection,
    sql: &str,
) -> rusqlite::Result<Option<rusqlite::Statement<'a>>> {
    let mut all = rusqlite::Batch::new(connection, sql);
    let first = all.next()?;
    if all.next()?.is_some() { Err(rusqlite::Error::MultipleStatement) } else { Ok(first) }
}
