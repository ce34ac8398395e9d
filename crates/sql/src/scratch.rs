//! Scratch states: where a replica goes on with a transaction that a client builds step by step.
//!
//! A scratch state is a copy of the database as it was when the transaction began here, with a connection of its own
//! and a transaction open on it, which is never committed. The copy shares all pages; those that the transaction has
//! changed are in the cache of its connection.
//!
//! They are a cache, and no more. What a replica has kept depends on what it was asked and when it started, so nothing
//! that is ordered looks here: neither an answer nor a page nor what a request may cost. Whoever asks is told that a
//! state is not held, and asks for all of it again.
//!
//! What is kept is bounded by number, by bytes, and by the old pages that the database would have forgotten. The least
//! recently used goes first, of that client who holds the most: nobody pushes out the only one of somebody else.

use crate::connection::Handle;
use crate::engine::Known;
use crate::pages::PAGE_BYTES;
use crate::request::{Dated, Rehearsal};
use crate::vfs::{Disk, cache_bytes, statement_bytes};
use bezant_core::digest::Digest;
use bezant_core::ids::PublicKey;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Scratch states that are kept.
pub(crate) const SCRATCHES_MAX: usize = 128;

/// Bytes of memory that all of them may have.
const BYTES_MAX: u64 = 256 << 20;

/// Bytes of old pages that they may keep, which the database has replaced since.
const OLD_BYTES_MAX: u64 = 64 << 20;

/// Unchanged pages in the cache of one of them, in KiB: they are in memory anyway.
const CACHE_KIB: u32 = 128;

/// Statements that one of them keeps prepared.
const STATEMENTS_KEPT: usize = 32;

/// Steps between two looks at what its statements and its schema take.
const STEPS_PER_LOOK: u64 = 16;

/// One transaction under way. See the [module](self).
#[derive(Debug)]
pub(crate) struct Scratch {
    owner: PublicKey,
    transaction: Digest,
    time: u64,
    /// What it has executed ([`Rehearsal::chain`]).
    pub(crate) held: Digest,
    /// How many pages the database had written when it began.
    since: u64,
    /// Bytes of memory that it has.
    bytes: u64,
    /// What of them is not for pages, as it was at the last look.
    statement_bytes: u64,
    /// Steps that its connection has taken, in this transaction and those before.
    steps: u64,
    /// The schema that its connection knows: whoever has changed one, or what the database had when it was opened so
    /// often, knows it otherwise than one that reads it.
    pub(crate) schema: Option<u64>,
    pub(crate) database: Handle,
    pub(crate) disk: Arc<Disk>,
    pub(crate) known: Known,
}

impl Scratch {
    /// At the beginning of a transaction, in a database that was opened so often. The connection of one that is over
    /// is used again.
    pub(crate) fn begin(of: &Disk, opened: u64, over: Option<Self>, owner: PublicKey, rehearsal: &Rehearsal) -> Self {
        let (pages, since) = {
            let pages = of.pages();
            (pages.copy(), pages.written())
        };
        let again = over.filter(|over| over.schema == Some(opened)).and_then(Self::undone);
        let (transaction, time) = (rehearsal.transaction, rehearsal.dated.time);
        if let Some(again) = again {
            *again.disk.pages() = pages;
            return Self { transaction, time, held: Digest::ZERO, since, ..again };
        }
        let disk = Arc::new(Disk::over(pages));
        let database = Handle::open(&disk, CACHE_KIB);
        database.connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        Self {
            owner,
            transaction,
            time,
            held: Digest::ZERO,
            since,
            bytes: 0,
            statement_bytes: 0,
            steps: 0,
            schema: Some(opened),
            database,
            disk,
            known: Known::default(),
        }
    }

    /// Finds out what it takes: what it has changed is in memory as it was, too.
    fn measure(&mut self) {
        let connection = &self.database.connection;
        if self.steps.is_multiple_of(STEPS_PER_LOOK) {
            self.statement_bytes = statement_bytes(connection);
        }
        self.steps += 1;
        self.bytes = self.statement_bytes + 2 * cache_bytes(connection);
    }

    /// Without what its transaction has done. SQLite finds out by itself, from the first page, that the file is another
    /// one.
    fn undone(self) -> Option<Self> {
        let connection = &self.database.connection;
        let done = self.disk.moment.privileged(|| connection.execute_batch("rollback"));
        done.is_ok().then_some(self)
    }
}

/// Those that are kept, the least recently used first. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Scratches(Vec<Scratch>);

impl Scratches {
    /// That which a rehearsal goes on from, if it is there. It is gone from here until it is kept again. A request that
    /// comes twice goes on from what is over by then, and takes nothing away.
    pub(crate) fn take(&mut self, owner: PublicKey, rehearsal: &Rehearsal) -> Option<Scratch> {
        let Rehearsal { transaction, held, dated: Dated { time, .. }, .. } = rehearsal;
        let is_it = |kept: &Scratch| {
            // Nothing has asked for the time as long as there was none.
            let is_in_time = kept.time == 0 || kept.time == *time;
            kept.transaction == *transaction && kept.owner == owner && kept.held == *held && is_in_time
        };
        let kept = self.0.remove(self.0.iter().position(is_it)?);
        Some(Scratch { time: *time, ..kept })
    }

    /// Takes away that of a transaction which is over.
    pub(crate) fn end(&mut self, owner: PublicKey, transaction: Digest) -> Option<Scratch> {
        let is_it = |kept: &Scratch| kept.transaction == transaction && kept.owner == owner;
        Some(self.0.remove(self.0.iter().position(is_it)?))
    }

    /// Keeps one, and forgets others until all are within their bounds.
    pub(crate) fn keep(&mut self, mut scratch: Scratch) {
        scratch.measure();
        self.0.push(scratch);
        while self.0.len() > SCRATCHES_MAX {
            self.forget_one(|_| 1);
        }
        while self.0.iter().map(|kept| kept.bytes).sum::<u64>() > BYTES_MAX {
            self.forget_one(|kept| kept.bytes);
        }
    }

    /// Forgets the least recently used one of whoever has the most.
    fn forget_one(&mut self, weight: impl Fn(&Scratch) -> u64) {
        let mut totals: BTreeMap<PublicKey, u64> = BTreeMap::new();
        for kept in &self.0 {
            *totals.entry(kept.owner).or_default() += weight(kept);
        }
        let most = totals.values().max().copied();
        let place = self.0.iter().position(|kept| totals.get(&kept.owner).copied() == most);
        drop(place.map(|place| self.0.remove(place)));
    }

    /// Forgets those that keep too many old pages, when the database has written so many.
    pub(crate) fn forget_old(&mut self, written: u64) {
        self.0.retain(|kept| written - kept.since <= OLD_BYTES_MAX / PAGE_BYTES as u64);
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
