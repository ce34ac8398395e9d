//! SQLite as a [`Service`].

use crate::connection::Handle;
use crate::engine::{Engine, Known, Near, denied};
use crate::meter::{Allowance, Limits, Past};
use crate::moment::act;
use crate::request::{Batch, Rehearsal, Request};
use crate::response::{Failure, RESULT_BYTES_MAX, Response};
use crate::roles::{GENESIS, Role, Roles};
use crate::scratch::{Scratch, Scratches};
use crate::unreadable::SnapshotError;
use crate::vfs::Disk;
use bezant_core::digest::Digest;
use bezant_core::service::{Agreed, Asker, BadState, NotReadOnly, Operation, PageNumber, Service};
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

/// What a writer's statements can do.
const WRITER: u32 = act::WRITES_ROWS | act::WRITES_SCHEMA | act::ALTERS_TABLES | act::ADDS_SCHEMA;

/// Everything that a statement can do.
const ALL: u32 = WRITER | act::WRITES_SYSTEM;

/// The most requests in a transaction: as many as a bundle may have operations.
const RUN_MAX: usize = bezant_core::message::bundle::BUNDLE_OPERATIONS_MAX;

/// Pages that SQLite keeps beside those of the file, in KiB.
const CACHE_KIB: u32 = 8 << 10;

/// A replicated SQLite database.
///
/// Its pages live in memory and in the checkpoints, with those of the client table under one Merkle root and in one
/// snapshot on disk: there is no moment at which one of them is durable and the other is not (prac-F33). There is no
/// other file.
pub struct Sql {
    disk: Arc<Disk>,
    cache_kib: u32,
    /// `None` only while pages are replaced.
    database: Option<Handle>,
    pub(crate) known: RefCell<Known>,
    roles: RefCell<Roles>,
    limits: Limits,
    /// See [`Sql::with_drawn_names`].
    draws_names: bool,
    /// Whether references may stay unmet until the end of a transaction, if somebody has looked since the schema has
    /// changed.
    pub(crate) defers: Option<bool>,
    /// What the open database has done.
    past: Cell<Past>,
    /// How often it was opened.
    opened: u64,
    pub(crate) scratches: RefCell<Scratches>,
    /// Bytes that all requests together were charged.
    #[cfg(test)]
    charged: Cell<i64>,
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
        Self::with_cache(CACHE_KIB)
    }

    /// A new database, of which SQLite keeps so many KiB of pages beside the service's own. Neither results nor pages
    /// depend on it.
    ///
    /// # Panics
    /// If SQLite cannot be set up, for want of memory.
    pub fn with_cache(cache_kib: u32) -> Self {
        let disk = Arc::new(Disk::default());
        let database = Handle::open(&disk, cache_kib);
        let made = disk.moment.privileged(|| database.connection.execute_batch(GENESIS));
        made.expect("a new database takes its first tables");
        Self {
            disk,
            cache_kib,
            database: Some(database),
            known: RefCell::default(),
            roles: RefCell::default(),
            limits: Limits::default(),
            draws_names: false,
            defers: None,
            past: Cell::default(),
            opened: 0,
            scratches: RefCell::default(),
            #[cfg(test)]
            charged: Cell::default(),
        }
    }

    /// Over pages that are there already, of whomever.
    ///
    /// # Errors
    /// Those of SQLite.
    pub(crate) fn over(disk: Arc<Disk>) -> rusqlite::Result<Self> {
        let database = Handle::try_open(&disk, CACHE_KIB)?;
        Ok(Self {
            disk,
            cache_kib: CACHE_KIB,
            database: Some(database),
            known: RefCell::default(),
            roles: RefCell::default(),
            limits: Limits::default(),
            draws_names: false,
            defers: None,
            past: Cell::default(),
            opened: 0,
            scratches: RefCell::default(),
            #[cfg(test)]
            charged: Cell::default(),
        })
    }

    /// Lets somebody look at the database with all rights.
    pub(crate) fn privileged<T>(
        &self,
        act: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, SnapshotError> {
        self.disk.moment.begin(0, Digest::ZERO);
        Ok(self.disk.moment.privileged(|| act(&self.handle().connection))?)
    }

    pub(crate) fn engine<'a>(&'a self, known: &'a mut Known, query: bool) -> Engine<'a> {
        Engine {
            database: self.handle(),
            disk: &self.disk,
            known,
            allowed: 0,
            query,
            undone: false,
            chain: None,
            open: 0,
            room: RESULT_BYTES_MAX,
            acts: 0,
            limits: self.limits,
            draws_names: self.draws_names,
            left: Allowance::of(&self.limits),
            least: i64::MAX,
            kept: 0,
            // What a query is refused is refused when it is ordered, or is not.
            before: if query { Past::default() } else { self.past.get() },
            fresh: false,
        }
    }

    fn handle(&self) -> &Handle {
        self.database.as_ref().expect("the database is open between requests")
    }

    /// The role of whoever asks.
    pub(crate) fn role(&self, asker: &Asker) -> Role {
        let ask = || self.roles.borrow_mut().of(&self.handle().connection, asker.public_key, asker.joined);
        self.disk.moment.privileged(ask).expect("the table of members can be read")
    }

    /// The same service with other limits, which all replicas must have alike.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same service with one check less: SQLite may draw names at random, and every replica gets others. For tests
    /// of what a cluster does then. Replicas run a [`Database`](crate::Database), which has no way to ask for it.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_drawn_names(mut self) -> Self {
        self.draws_names = true;
        self
    }

    fn run(&mut self, batch: &Batch, agreed: &Agreed) -> Response {
        self.ordered(agreed, |engine| engine.execute(batch, agreed.time.0, agreed.seed.digest()))
    }

    /// Executes what only reads the state, and nothing else.
    fn run_query(&mut self, batch: &Batch, agreed: &Agreed) -> Result<Response, NotReadOnly> {
        let refused = Cell::new(false);
        let response = self.ordered(agreed, |engine| {
            engine.query = true;
            let answer = engine.query(batch)?;
            refused.set(answer.is_err());
            Ok(answer.unwrap_or(Response::NotHeld))
        });
        if refused.get() { Err(NotReadOnly) } else { Ok(response) }
    }

    fn rehearse(&mut self, rehearsal: &Rehearsal, agreed: &Agreed) -> Response {
        // What is ordered is the same at all replicas, whatever they have kept.
        if rehearsal.held != Digest::ZERO {
            return Response::NotHeld;
        }
        let dated = &rehearsal.dated;
        self.ordered(agreed, |engine| {
            let response = engine.rehearse(dated, agreed.time.0, agreed.seed.digest())?;
            Ok(response.expect("what is ordered and undone may write"))
        })
    }

    /// Executes what was ordered, if the client may.
    fn ordered(&mut self, agreed: &Agreed, execute: impl Fn(&mut Engine<'_>) -> Result<Response, Near>) -> Response {
        match self.allowed(&agreed.asker) {
            None => Response::Failed(Failure { statement: 0, error: denied() }),
            Some(allowed) => self.judged(allowed, execute),
        }
    }

    /// What whoever asks may do, if anything: bits of [`act`].
    pub(crate) fn allowed(&self, asker: &Asker) -> Option<u32> {
        match self.role(asker) {
            Role::None => None,
            Role::Reader => Some(0),
            Role::Writer => Some(WRITER),
            Role::Admin => Some(ALL),
        }
    }

    /// Executes something, again on a database that has just been opened, if it comes near a bound.
    fn judged(&mut self, allowed: u32, execute: impl Fn(&mut Engine<'_>) -> Result<Response, Near>) -> Response {
        self.attempt(allowed, false, &execute).unwrap_or_else(|Near| {
            self.reopen();
            self.attempt(allowed, true, &execute).expect("a database that has just been opened judges")
        })
    }

    fn attempt(
        &mut self,
        allowed: u32,
        fresh: bool,
        execute: impl Fn(&mut Engine<'_>) -> Result<Response, Near>,
    ) -> Result<Response, Near> {
        let mut known = self.known.take();
        let mut engine = Engine { allowed, fresh, ..self.engine(&mut known, false) };
        let response = execute(&mut engine);
        let (acts, done) = (engine.acts, engine.done());
        self.remember(done);
        *self.known.get_mut() = known;
        if acts & act::WRITES_SYSTEM != 0 {
            self.roles.get_mut().forget();
        }
        if acts & act::WRITES_SCHEMA != 0 {
            self.reopen();
        }
        response
    }

    pub(crate) fn forget_old_scratches(&mut self) {
        let written = self.disk.pages().written();
        self.scratches.get_mut().forget_old(written);
    }

    /// What all requests together were charged, in bytes gone through.
    #[cfg(test)]
    pub(crate) const fn charged(&self) -> i64 {
        self.charged.get()
    }

    /// SQLite may have kept something of what it did.
    pub(crate) fn remember(&self, done: Past) {
        #[cfg(test)]
        self.charged.set(self.charged.get().saturating_add(done.bytes));
        let Past { bytes, kept } = self.past.get();
        self.past.set(Past { bytes: bytes.saturating_add(done.bytes), kept: kept.saturating_add(done.kept) });
    }

    /// Answers from the state alone; what comes near a bound is judged where it is ordered.
    fn asked<T>(&self, answer: impl FnOnce(&mut Engine<'_>) -> Result<T, Near>) -> Result<T, NotReadOnly> {
        let mut known = self.known.borrow_mut();
        let mut engine = self.engine(&mut known, true);
        let result = answer(&mut engine);
        self.remember(engine.done());
        result.map_err(|Near| NotReadOnly)
    }

    /// Goes on with a transaction on its scratch state, or begins it on a new one.
    fn go_on(&self, rehearsal: &Rehearsal, asker: &Asker) -> Result<Response, NotReadOnly> {
        let mut scratches = self.scratches.borrow_mut();
        let owner = asker.public_key;
        let mut scratch = if rehearsal.held == Digest::ZERO {
            let over = scratches.end(owner, rehearsal.transaction).or_else(|| scratches.end(owner, rehearsal.after));
            Scratch::begin(&self.disk, self.opened, over, owner, rehearsal)
        } else {
            match scratches.take(owner, rehearsal) {
                Some(scratch) => scratch,
                None => return Ok(Response::NotHeld),
            }
        };
        let mut none = Known::default();
        let mut engine = Engine {
            database: &scratch.database,
            disk: &scratch.disk,
            known: &mut scratch.known,
            allowed: ALL,
            ..self.engine(&mut none, true)
        };
        let answer = engine.go_on(rehearsal);
        let changes_schema = engine.acts & act::WRITES_SCHEMA != 0;
        scratch.schema = scratch.schema.filter(|_| !changes_schema);
        if let Some(held) = engine.chain.filter(|held| *held != Digest::ZERO) {
            scratch.held = held;
            scratches.keep(scratch);
        }
        answer.unwrap_or_else(|Near| Err(NotReadOnly))
    }

    /// Closes the connection and opens another one. What SQLite keeps of the schema in memory must be what it reads
    /// from the file: the order of what was added to it one by one shows in ANALYZE and in some pragmas, and a replica
    /// that has just started has none (found by `cargo xtask sql-fuzz`, seed 146).
    pub(crate) fn reopen(&mut self) {
        self.database = None;
        self.known.get_mut().clear();
        self.roles.get_mut().forget();
        self.past.set(Past::default());
        self.defers = None;
        self.database = Some(Handle::open(&self.disk, self.cache_kib));
        self.opened += 1;
    }

    /// Answers whoever may read.
    pub(crate) fn read(&self, operation: &[u8]) -> Result<Bytes, NotReadOnly> {
        self.answer(operation, &Asker::default())
    }

    fn answer(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        let response = match parse(operation) {
            None => Response::Malformed,
            Some(Request::Describe(sql)) => self.asked(|engine| engine.describe(&sql))?,
            Some(Request::Run(batch)) => self.asked(|engine| engine.query(&batch))??,
            // Nothing of a rehearsal lasts, so that everybody may.
            Some(Request::Rehearse(Rehearsal { held: Digest::ZERO, lasts: false, dated, .. })) => {
                self.asked(|engine| {
                    engine.allowed = ALL;
                    engine.rehearse(&dated, 0, Digest::ZERO)
                })??
            }
            Some(Request::Rehearse(rehearsal)) => self.go_on(&rehearsal, asker)?,
            Some(Request::Settle(_)) => return Err(NotReadOnly),
        };
        Ok(response.to_bytes().into())
    }
}

fn parse(operation: &[u8]) -> Option<Request> {
    Request::from_bytes(Bytes::copy_from_slice(operation)).ok()
}

impl Service for Sql {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        let response = match parse(operation) {
            None => Response::Malformed,
            Some(Request::Describe(sql)) => self.ordered(agreed, |engine| engine.describe(&sql)),
            Some(Request::Run(batch)) => self.run(&batch, agreed),
            Some(Request::Rehearse(rehearsal)) => self.rehearse(&rehearsal, agreed),
            Some(Request::Settle(dated)) => {
                self.ordered(agreed, |engine| engine.settle(&dated, agreed.time.0, agreed.seed.digest()))
            }
        };
        self.forget_old_scratches();
        response.to_bytes().into()
    }

    fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
        let mut results = Vec::with_capacity(operations.len());
        self.execute_together(operations, &mut results);
        results
    }

    fn run_max(&self) -> usize {
        RUN_MAX
    }

    fn take_written(&mut self) -> Digest {
        self.disk.pages().take_effects()
    }

    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        match self.role(asker) {
            Role::None => Ok(Response::Failed(Failure { statement: 0, error: denied() }).to_bytes().into()),
            Role::Reader | Role::Writer | Role::Admin => self.answer(operation, asker),
        }
    }

    /// What comes near a bound is judged here, and no scratch state is asked.
    fn ordered_query(&mut self, operation: &[u8], agreed: &Agreed) -> Result<Bytes, NotReadOnly> {
        match parse(operation) {
            Some(Request::Run(batch)) => self.run_query(&batch, agreed).map(|response| response.to_bytes().into()),
            Some(Request::Settle(_)) => Err(NotReadOnly),
            Some(Request::Describe(_) | Request::Rehearse(_)) | None => Ok(self.execute(operation, agreed)),
        }
    }

    /// A key may join that has a row, or if there is one for everybody.
    fn authorize(&mut self, _identification: &[u8], agreed: &Agreed) -> bool {
        self.role(&Asker { joined: true, ..agreed.asker }) != Role::None
    }

    fn may_close(&self, asker: &Asker) -> bool {
        self.role(asker) == Role::Admin
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.disk.pages().take_dirty(write);
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        self.scratches.get_mut().clear();
        let is_file = self.disk.pages().install(pages);
        if !is_file || self.disk.pages().is_empty() {
            return Err(BadState);
        }
        // prac-F34: the connection would go on with what it has in its cache.
        self.reopen();
        Ok(())
    }
}
