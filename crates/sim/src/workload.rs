//! What the clients do: operations on a few keys, with values that occur once, so that every answer says which write
//! it saw.

use crate::feature::Feature;
use crate::rng::Rng;
use bezant_core::cluster::Limits;
use bezant_core::ids::IdentityId;

/// A key of the store. Clients that lie have keys of their own, so that what they did need not be guessed.
pub type Key = u8;

/// The identity of clients that lie.
pub const LIARS_IDENTITY: IdentityId = IdentityId(99);

/// Keys at and above this belong to clients that lie.
pub const LIARS_KEYS: Key = 128;

/// An operation on one key. `None` is an absent key; values are numbers, see [`padding_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads.
    Get,
    /// Writes.
    Set(u64),
    /// Removes.
    Delete,
    /// Writes the second if the first is there.
    CompareAndSet(Option<u64>, u64),
    /// Adds one and answers the sum.
    Increment,
    /// Writes a value that lives for so many milliseconds.
    SetFor(u64, u64),
    /// Reads whether the value lives for ever.
    Life,
}

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The value.
    pub value: u64,
    /// Whether it may go by itself.
    pub mortal: bool,
}

impl Held {
    const fn for_ever(value: u64) -> Self {
        Self { value, mortal: false }
    }
}

/// Values say how many bytes of padding they are stored with, so that a value has one form.
const PADDINGS: u64 = 1 << 12;

/// Reads of a client that watches, for each request of another.
const WATCHES: u64 = 5;
/// The most of them in the first phase: what the check of one register can take.
const WATCHED_MAX: u64 = 60;

/// Calls that all clients together make besides, in bundles: whether an order explains a key's calls is known of so
/// many of them only.
const BUNDLED_MAX: u64 = 40;
/// The same for each client that has to join.
const BUNDLED_BY_STRANGERS_MAX: u64 = 3;

/// The bytes of padding after a value.
pub const fn padding_of(value: u64) -> usize {
    (value % PADDINGS) as usize
}

/// What an operation answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The value read.
    Value(Option<u64>),
    /// Done; nothing to say.
    Done,
    /// Whether the change was made.
    Changed(bool),
    /// The sum.
    Sum(u64),
    /// Whether the value may go by itself; `None`: there is none.
    Life(Option<bool>),
    /// It was executed otherwise by each replica: it has no effect.
    Refused,
    /// Something that no correct store answers to this operation.
    Nonsense,
}

impl Action {
    /// The sequential specification: what a store answers whose key holds this, and what it holds then. When it is that
    /// what is mortal goes does not depend on the operations.
    pub fn apply(self, held: Option<Held>) -> (Answer, Option<Held>) {
        let value = held.map(|held| held.value);
        match self {
            Self::Get => (Answer::Value(value), held),
            Self::Set(new) => (Answer::Done, Some(Held::for_ever(new))),
            Self::SetFor(new, _) => (Answer::Done, Some(Held { value: new, mortal: true })),
            Self::Delete => (Answer::Changed(held.is_some()), None),
            Self::CompareAndSet(expected, new) if value == expected => {
                (Answer::Changed(true), Some(Held::for_ever(new)))
            }
            Self::CompareAndSet(..) => (Answer::Changed(false), held),
            Self::Increment => {
                let Held { value, mortal } = held.unwrap_or(Held::for_ever(0));
                (Answer::Sum(value + 1), Some(Held { value: value + 1, mortal }))
            }
            Self::Life => (Answer::Life(held.map(|held| held.mortal)), held),
        }
    }

    /// Whether it leaves the store as it is.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Life)
    }
}

/// The sizes of a run's workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Sessions.
    pub clients: u64,
    /// Identities over which the sessions are spread.
    pub identities: u64,
    /// Requests of each client in the first phase, unless it ends before.
    pub requests: u64,
    /// Requests of each client in the second phase, besides what the first left open.
    pub more: u64,
    /// Registers and counters.
    pub keys: u64,
    /// Most microseconds between an answer and the next request.
    pub think: u64,
    /// Reads, per mille.
    pub reads: u64,
    /// Reads that are asked for as read-only queries, per mille.
    pub queries: u64,
    /// Writes above `inline_bytes_max`, per mille.
    pub big: u64,
    /// Bytes of padding that make a write big.
    pub big_bytes: usize,
    /// Requests with a deadline, per mille, and the deadline's span in microseconds.
    pub deadlines: (u64, u64),
    /// Writes of values that do not live for ever, and reads that ask for that, per mille of all writes and reads; and
    /// for how many milliseconds such values live at most.
    pub mortals: (u64, u64),
    /// Reads for each request of another, if the last client does nothing but read what is first; 0: it does not.
    pub watches: u64,
    /// Clients besides that nobody has named.
    pub strangers: u64,
    /// How often one of those leaves and comes back before it asks, per mille.
    pub leaves: u64,
    /// Requests that are bundles, per mille, and how many calls more a client makes with all of its own.
    pub bundles: (u64, u64),
}

impl Plan {
    /// Draws a workload that lasts about as long as the first phase.
    pub fn draw(seed: u64, safety: u64, limits: &Limits, has: &impl Fn(Feature) -> bool) -> Self {
        let mut rng = Rng::stream(seed, "plan");
        let clients = rng.between(1, 5);
        let identities = rng.between(1, clients);
        let requests = rng.between(6, 30) / clients + 1;
        let more = rng.between(3, 8) / clients + 1;
        let reads = rng.between(100, 600);
        let queries = rng.between(0, 1000);
        let big = rng.between(50, 500);
        let deadlines = (rng.between(20, 300), limits.client_retry.0 * rng.between(1, 10));
        let mut mortals = Rng::stream(seed, "mortals");
        let mortals = (mortals.between(100, 600), safety / 1_000 / mortals.between(2, 40) + 2);
        let watched = has(Feature::Watchers) && Rng::stream(seed, "watchers").coin();
        let bundled = has(Feature::Bundles) && !watched;
        Self {
            clients,
            identities,
            requests,
            more,
            keys: rng.between(1, 4),
            think: 2 * safety / requests * rng.between(1, 10) / 10,
            reads,
            queries: if has(Feature::Reads) { queries } else { 0 },
            big: if has(Feature::BigRequests) { big } else { 0 },
            big_bytes: limits.inline_bytes_max + rng.between(1, 200) as usize,
            deadlines: if has(Feature::Deadlines) { deadlines } else { (0, 0) },
            mortals: if has(Feature::Expiry) { mortals } else { (0, 0) },
            watches: if watched && clients > 1 { WATCHES } else { 0 },
            strangers: if has(Feature::DynamicClients) { Rng::stream(seed, "strangers").between(1, 4) } else { 0 },
            leaves: Rng::stream(seed, "leaves").below(500),
            bundles: if bundled {
                (Rng::stream(seed, "bundles").between(100, 900), BUNDLED_MAX / clients)
            } else {
                (0, 0)
            },
        }
    }

    /// What the last client does.
    #[must_use]
    pub fn of_last(&self) -> Self {
        if self.watches == 0 {
            return self.clone();
        }
        let requests = (self.requests * self.watches).min(WATCHED_MAX);
        let think = self.think / self.watches;
        Self { requests, think, keys: 1, reads: 1_000, queries: 1_000, deadlines: (0, 0), ..self.clone() }
    }

    /// What a client does that has to join: less, because there are more of them.
    #[must_use]
    pub fn of_strangers(&self) -> Self {
        let bundles = (self.bundles.0, self.bundles.1.min(BUNDLED_BY_STRANGERS_MAX));
        Self { requests: self.requests.min(6), more: self.more.min(2), bundles, ..self.clone() }
    }

    /// Caps the requests of each client and phase, as the shrinker asks.
    #[must_use]
    pub fn with_requests_max(mut self, max: Option<u64>) -> Self {
        if let Some(max) = max {
            self.requests = self.requests.min(max);
            self.more = self.more.min(max);
        }
        self
    }

    /// One client with so many requests, one after the other, that what executes them can be measured.
    #[must_use]
    pub fn busy(self) -> Self {
        Self {
            clients: 1,
            identities: 1,
            requests: 220,
            bundles: (0, 0),
            think: 0,
            deadlines: (0, 0),
            watches: 0,
            strangers: 0,
            ..self
        }
    }

    /// Requests of all clients in both phases.
    pub const fn requests_total(&self) -> u64 {
        (self.clients + 3 * self.strangers) * (self.requests + self.more) + self.watches * self.requests
    }
}

/// One request that a client is about to make.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Where.
    pub key: Key,
    /// What.
    pub action: Action,
    /// Whether it is asked for as a read-only query.
    pub query: bool,
    /// Give up after this many microseconds.
    pub deadline: Option<u64>,
}

impl Plan {
    /// Draws the next request. `unique` is a number that no other write of the run has.
    pub fn next(&self, rng: &mut Rng, unique: u64, last_seen: Option<u64>) -> Call {
        let key = rng.below(self.keys) as Key;
        // Every third key is a counter: increments find a request that was executed twice at once.
        let counter = key % 3 == 2;
        let padding = if rng.per_mille(self.big) { self.big_bytes as u64 } else { rng.below(8) };
        let value = unique * PADDINGS + padding;
        let read = rng.per_mille(self.reads);
        let query = rng.per_mille(self.queries);
        let write = rng.below(10);
        let mortal = rng.per_mille(self.mortals.0);
        let action = match (read, counter, write) {
            (true, ..) if mortal && !query => Action::Life,
            (true, ..) => Action::Get,
            (_, true, _) => Action::Increment,
            _ if mortal => Action::SetFor(value, rng.between(1, self.mortals.1)),
            (.., 0) => Action::Delete,
            (.., 1..=3) => Action::CompareAndSet(last_seen, value),
            _ => Action::Set(value),
        };
        let deadline = rng.per_mille(self.deadlines.0).then_some(self.deadlines.1);
        Call { key, action, query: query && action.is_read(), deadline }
    }

    /// Draws a call to be asked for together with this one: as a query if that one is.
    pub fn next_to(&self, first: Call, rng: &mut Rng, unique: u64) -> Call {
        let call = self.next(rng, unique, None);
        let action = if first.query { Action::Get } else { call.action };
        Call { action, query: first.query, deadline: first.deadline, ..call }
    }
}
