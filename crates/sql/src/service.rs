//! SQLite as a [`Service`].

use crate::connection::Handle;
use crate::engine::{Engine, Known};
use crate::moment::act;
use crate::request::Request;
use crate::response::{Failure, RESULT_BYTES_MAX, Response};
use crate::vfs::Disk;
use bezant_core::service::{Agreed, BadState, NotReadOnly, PageNumber, Service};
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a new database contains.
const GENESIS: &str = "create table bezant_members(
    public_key text primary key check (length(public_key) = 64 or public_key = '*'),
    role text not null check (role in ('reader', 'writer', 'admin')),
    name text
) without rowid";

/// A replicated SQLite database.
///
/// Its pages live in memory and in the checkpoints, with those of the client table under one Merkle root and in one
/// snapshot on disk: there is no moment at which one of them is durable and the other is not (F33). There is no
/// other file.
pub struct Sql {
    disk: Arc<Disk>,
    /// `None` only while pages are replaced.
    database: Option<Handle>,
    known: RefCell<Known>,
}

impl fmt::Debug for Sql {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Sql({} bytes)", self.disk.pages().bytes())
    }
}

impl Default for Sql {
    fn default() -> Self {
        Self::new()
    }
}

impl Sql {
    /// A new database.
    ///
    /// # Panics
    /// If SQLite cannot be set up, for want of memory.
    pub fn new() -> Self {
        let disk = Arc::new(Disk::default());
        let database = Handle::open(&disk);
        disk.moment.privileged.store(true, Ordering::Relaxed);
        database.connection.execute_batch(GENESIS).expect("a new database takes its first tables");
        disk.moment.privileged.store(false, Ordering::Relaxed);
        Self { disk, database: Some(database), known: RefCell::default() }
    }

    fn engine<'a>(&'a self, known: &'a mut Known, query: bool) -> Engine<'a> {
        let database = self.database.as_ref().expect("the database is open between requests");
        let allowed = act::WRITES_ROWS | act::WRITES_SCHEMA | act::WRITES_SYSTEM;
        Engine { database, disk: &self.disk, known, allowed, query, room: RESULT_BYTES_MAX, acts: 0 }
    }

    fn describe(&self, sql: &str) -> Response {
        match self.engine(&mut self.known.borrow_mut(), true).describe(sql) {
            Ok(description) => Response::Described(description),
            Err(error) => Response::Failed(Failure { statement: 0, error }),
        }
    }
}

fn parse(operation: &[u8]) -> Option<Request> {
    Request::from_bytes(Bytes::copy_from_slice(operation)).ok()
}

impl Service for Sql {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        let response = match parse(operation) {
            None => Response::Malformed,
            Some(Request::Describe(sql)) => self.describe(&sql),
            Some(Request::Run(batch)) => {
                self.engine(&mut self.known.borrow_mut(), false).execute(&batch, agreed.time.0, agreed.seed)
            }
        };
        response.to_bytes().into()
    }

    fn query(&self, operation: &[u8]) -> Result<Bytes, NotReadOnly> {
        let response = match parse(operation) {
            None => Response::Malformed,
            Some(Request::Describe(sql)) => self.describe(&sql),
            Some(Request::Run(batch)) => self.engine(&mut self.known.borrow_mut(), true).query(&batch)?,
        };
        Ok(response.to_bytes().into())
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.disk.pages().take_dirty(write);
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        // F34: a connection would go on with what it has in its cache.
        self.database = None;
        self.known.get_mut().clear();
        let is_file = self.disk.pages().install(pages);
        if !is_file || self.disk.pages().is_empty() {
            return Err(BadState);
        }
        self.database = Some(Handle::open(&self.disk));
        Ok(())
    }
}
