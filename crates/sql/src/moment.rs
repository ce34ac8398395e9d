//! What the functions of SQL may know of the request under way, and what they and SQLite's hooks note about it.
//!
//! Everything here is atomic only because SQLite's callbacks must be `Send`; one thread uses it at a time.

use bezant_core::digest::{Digest, Domain};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a statement does, as SQLite's authorizer tells when it is prepared: bits of [`Moment::acts`].
pub(crate) mod act {
    /// Changes rows.
    pub(crate) const WRITES_ROWS: u32 = 1;
    /// Changes tables, indexes, triggers or views.
    pub(crate) const WRITES_SCHEMA: u32 = 2;
    /// Changes tables of the system.
    pub(crate) const WRITES_SYSTEM: u32 = 4;
    /// Changes what a table or its name is.
    pub(crate) const ALTERS_TABLES: u32 = 8;
    /// Adds to the schema.
    pub(crate) const ADDS_SCHEMA: u32 = 16;
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Moment {
    /// Agreed time, in microseconds since 1970.
    time: AtomicU64,
    seed: Mutex<Digest>,
    /// The request brought its own time, so that asking for it is no question about the moment of execution.
    pub(crate) dated: AtomicBool,
    /// Random numbers drawn in this request.
    draws: AtomicU64,
    /// A function asked for time or randomness: what it gave is no function of the state alone.
    touched: AtomicBool,
    /// Rows that the statement before this one changed, in this request.
    pub(crate) changes: AtomicU64,
    /// The service itself prepares a statement: everything is allowed.
    privileged: AtomicBool,
    /// See [`act`].
    pub(crate) acts: AtomicU32,
    /// A row got the largest rowid that there is: the next one would be random.
    pub(crate) last_rowid_used: AtomicBool,
    /// What the authorizer was asked about the statement.
    pub(crate) asked: AtomicU64,
    /// Tables and views that a statement creates.
    pub(crate) created: Mutex<Vec<String>>,
    /// Why the authorizer said no.
    pub(crate) refusal: Mutex<Option<String>>,
}

impl Moment {
    /// A request begins.
    pub(crate) fn begin(&self, time: u64, seed: Digest) {
        *self.seed.lock().unwrap_or_else(PoisonError::into_inner) = seed;
        self.changes.store(0, Ordering::Relaxed);
        self.go_on(time);
        self.dated.store(false, Ordering::Relaxed);
    }

    /// A request goes on where another one left off, and brings its own time, if it has one.
    pub(crate) fn go_on(&self, time: u64) {
        self.time.store(time, Ordering::Relaxed);
        self.dated.store(time != 0, Ordering::Relaxed);
        self.draws.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
        self.touched.store(false, Ordering::Relaxed);
        self.last_rowid_used.store(false, Ordering::Relaxed);
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What a statement creates, once.
    pub(crate) fn take_created(&self) -> Vec<String> {
        std::mem::take(&mut self.created.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does something of the service's own, for which everything is allowed.
    pub(crate) fn privileged<T>(&self, act: impl FnOnce() -> T) -> T {
        self.privileged.store(true, Ordering::Relaxed);
        let result = act();
        self.privileged.store(false, Ordering::Relaxed);
        result
    }

    /// Whether it is the service itself that acts.
    pub(crate) fn is_privileged(&self) -> bool {
        self.privileged.load(Ordering::Relaxed)
    }

    /// The agreed time.
    pub(crate) fn read_clock(&self) -> u64 {
        self.touched.fetch_or(!self.dated.load(Ordering::Relaxed), Ordering::Relaxed);
        self.time.load(Ordering::Relaxed)
    }

    /// Random bytes: a function of the agreed seed and of how many were drawn before in this request, whatever
    /// SQLite itself does with its own generator (prac-F31).
    pub(crate) fn draw(&self, into: &mut [u8]) {
        self.touched.store(true, Ordering::Relaxed);
        let seed = *self.seed.lock().unwrap_or_else(PoisonError::into_inner);
        let draw = self.draws.fetch_add(1, Ordering::Relaxed);
        for (block, piece) in (0_u64..).zip(into.chunks_mut(size_of::<Digest>())) {
            let digest = Digest::of_parts(Domain::Service, &[&seed.0, &draw.to_le_bytes(), &block.to_le_bytes()]);
            piece.copy_from_slice(&digest.0[..piece.len()]);
        }
    }

    /// Whether a function asked for time or randomness since the request began.
    pub(crate) fn was_touched(&self) -> bool {
        self.touched.load(Ordering::Relaxed)
    }
}
