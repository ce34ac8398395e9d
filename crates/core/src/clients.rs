//! The replicated client table: exactly once.
//!
//! For each session the table holds the last request executed and what came of it. It is a function of the history
//! (abs-D4): part of every checkpoint, rolled back and transferred with the rest of the state. So a
//! request is executed once however often it is ordered, and its reply can be sent again by every replica.
//!
//! **Bounds.** An identity holds at most `Limits::sessions_per_identity_max` sessions and [`REPLY_BYTES_MAX`] bytes
//! of replies. When it would hold more, its least recently executed sessions are evicted and its *floor* is raised to
//! their timestamps. A session that is not in the table may only use timestamps above the floor, hence an evicted
//! session's requests never run again. Eviction never looks beyond the identity: whoever opens too many sessions, or
//! uses timestamps of the far future, hurts nobody else.
//!
//! **Stale is not refused.** What is not above a floor must not run any more; whether it did is forgotten. And a floor
//! may rise between the moment when somebody orders or logs a request and the moment when it is executed. So only
//! execution decides, in the same way everywhere, and what the client is told says nothing about the past.
//!
//! **Pages.** Sessions lie in [`BUCKETS`] buckets, by a hash of the client id. A bucket's encoding is cut into pages
//! of [`PAGE_BYTES_MAX`]: page `i · BUCKETS + b` is the i-th piece of bucket b. Nearly always that is one page; only
//! many large replies need more. Executing a request merely marks its bucket; encoding waits for the checkpoint.

use crate::digest::Digest;
use crate::ids::{ClientId, IdentityId, Sequence, Timestamp};
use crate::joining::{MEMBER_REPLY_BYTES_MAX, MEMBER_SESSIONS_MAX};
use crate::message::{Outcome, Refusal};
use crate::service::{BadState, PAGE_BYTES_MAX, PageNumber};
use crate::wire::{Reader, Sink, Wire, WireError};
use crate::wire_struct;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// Buckets that the sessions are spread over.
pub const BUCKETS: u32 = 256;

/// Page numbers of the table are below this: 2¹⁴ pages, that is 16 GiB, for each bucket.
pub const PAGES_MAX: u32 = 1 << 22;

/// Bytes of replies that the sessions of one identity keep together: the longest unused go first. The reply of the
/// session executed last is always kept.
pub const REPLY_BYTES_MAX: u64 = 64 << 20;

/// The last request of a session that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The client's number for it.
    pub timestamp: Timestamp,
    /// The batch in which it was executed.
    pub sequence: Sequence,
    /// How many requests the history had with it.
    pub position: u64,
    /// The history's digest with it.
    pub history: Digest,
    /// What came of it, in full, to be sent again.
    pub outcome: Outcome,
}
wire_struct!(Entry { timestamp, sequence, position, history, outcome });

impl Entry {
    /// Bytes of the reply.
    const fn reply_bytes(&self) -> u64 {
        self.outcome.result_bytes() as u64
    }
}

/// What a request's timestamp says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness<'a> {
    /// It was not executed before and may be now.
    New,
    /// It is the last one that its session had executed: here is the reply.
    Last(&'a Entry),
    /// Its client has no session: it must not be executed, whether or not it was before the session ended.
    Gone(Refusal),
    /// It is older than the session's last one, or not above the floor of an identity that has no such session (any
    /// more). It must not be executed, whether or not it was before.
    Stale,
}

/// A session in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Session {
    entry: Entry,
    /// The number of its last execution among all executions: the order of eviction.
    used: u64,
}
wire_struct!(Session { entry, used });

/// The unit in which the table is saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bucket {
    floors: BTreeMap<IdentityId, Timestamp>,
    sessions: BTreeMap<ClientId, Session>,
    /// Changed since it was saved.
    dirty: bool,
    /// Pages that it had when it was saved.
    pages: usize,
}

/// What the sessions of an identity take together. Follows from the buckets and is not saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Its sessions, the least recently executed first.
    order: BTreeMap<u64, ClientId>,
    reply_bytes: u64,
}

impl Usage {
    fn add(&mut self, client: ClientId, session: &Session) {
        self.order.insert(session.used, client);
        self.reply_bytes += session.entry.reply_bytes();
    }

    fn remove(&mut self, session: &Session) {
        self.order.remove(&session.used);
        self.reply_bytes -= session.entry.reply_bytes();
    }
}

/// See the [module](self).
#[derive(Clone, PartialEq, Eq)]
pub struct ClientTable {
    sessions_per_identity_max: usize,
    buckets: Vec<Bucket>,
    usage: BTreeMap<IdentityId, Usage>,
    /// Executions recorded so far. The last one's session is in the table, so this need not be saved.
    executions: u64,
}

impl fmt::Debug for ClientTable {
    /// Without the buckets that are empty: nearly all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_empty = |bucket: &&Bucket| bucket.floors.is_empty() && bucket.sessions.is_empty();
        let buckets: Vec<&Bucket> = self.buckets.iter().filter(|bucket| !is_empty(bucket)).collect();
        f.debug_struct("ClientTable")
            .field("sessions_per_identity_max", &self.sessions_per_identity_max)
            .field("buckets", &buckets)
            .field("usage", &self.usage)
            .field("executions", &self.executions)
            .finish()
    }
}

/// The bucket of a session. Multiplication by the golden ratio spreads the small numbers that session ids are.
const fn bucket_of(client: ClientId) -> usize {
    let id = (client.identity.0 as u64) << 32 | client.session as u64;
    (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BUCKETS.trailing_zeros())) as usize
}

/// The bucket of an identity's floor.
const fn floor_bucket_of(identity: IdentityId) -> usize {
    bucket_of(ClientId { identity, session: 0 })
}

impl ClientTable {
    /// An empty table.
    ///
    /// # Panics
    /// If `sessions_per_identity_max` is 0.
    pub fn new(sessions_per_identity_max: usize) -> Self {
        assert!(sessions_per_identity_max > 0, "an identity needs a session");
        let buckets = alloc::vec![Bucket::default(); BUCKETS as usize];
        Self { sessions_per_identity_max, buckets, usage: BTreeMap::new(), executions: 0 }
    }

    /// Timestamps up to this one are closed to sessions of the identity that are not in the table.
    fn floor(&self, identity: IdentityId) -> Timestamp {
        self.buckets[floor_bucket_of(identity)].floors.get(&identity).copied().unwrap_or_default()
    }

    /// The last executed request of a session, if the session is in the table.
    pub fn last(&self, client: ClientId) -> Option<&Entry> {
        self.buckets[bucket_of(client)].sessions.get(&client).map(|session| &session.entry)
    }

    /// Whether a request may be executed. Timestamp 0 never may.
    pub fn check(&self, client: ClientId, timestamp: Timestamp) -> Freshness<'_> {
        match self.last(client) {
            Some(last) if timestamp > last.timestamp => Freshness::New,
            Some(last) if timestamp == last.timestamp => Freshness::Last(last),
            None if timestamp > self.floor(client.identity) => Freshness::New,
            _ => Freshness::Stale,
        }
    }

    /// Notes that a request was executed, and evicts what the identity may no longer hold.
    ///
    /// # Panics
    /// Unless [`ClientTable::check`] says that the request is new.
    pub fn record(&mut self, client: ClientId, entry: Entry) {
        self.executions += 1;
        let timestamp = entry.timestamp;
        let session = Session { entry, used: self.executions };
        self.usage.entry(client.identity).or_default().add(client, &session);
        let bucket = &mut self.buckets[bucket_of(client)];
        bucket.dirty = true;
        let old = bucket.sessions.insert(client, session);
        let last = old.as_ref().map_or_else(|| self.floor(client.identity), |old| old.entry.timestamp);
        assert!(timestamp > last, "{client} {timestamp} is executed once");
        if let Some(old) = old
            && let Some(usage) = self.usage.get_mut(&client.identity)
        {
            usage.remove(&old);
        }
        self.evict(client.identity);
    }

    /// Whether nothing is evicted if so many sessions more of an identity, and so many bytes of replies, are recorded.
    pub(crate) fn has_room(&self, identity: IdentityId, sessions: usize, reply_bytes: usize) -> bool {
        let (sessions_max, reply_bytes_max) = self.quota(identity);
        let (held, held_bytes) =
            self.usage.get(&identity).map_or((0, 0), |usage| (usage.order.len(), usage.reply_bytes));
        held + sessions <= sessions_max && held_bytes + reply_bytes as u64 <= reply_bytes_max
    }

    fn evict(&mut self, identity: IdentityId) {
        let (sessions_max, reply_bytes_max) = self.quota(identity);
        let Some(usage) = self.usage.get_mut(&identity) else { return };
        while usage.order.len() > sessions_max || (usage.reply_bytes > reply_bytes_max && usage.order.len() > 1) {
            let (_, client) = usage.order.pop_first().expect("there is more than one session");
            let bucket = &mut self.buckets[bucket_of(client)];
            let evicted = bucket.sessions.remove(&client).expect("sessions in order are in their buckets");
            bucket.dirty = true;
            usage.remove(&evicted);
            let bucket = &mut self.buckets[floor_bucket_of(identity)];
            bucket.dirty = true;
            let floor = bucket.floors.entry(identity).or_default();
            *floor = evicted.entry.timestamp.max(*floor);
        }
        assert!(!usage.order.is_empty(), "the session executed last is never evicted");
    }

    /// What is true between steps. As long as the table: for checkpoints.
    pub(crate) fn check_invariants(&self) {
        assert_eq!(self.buckets.len(), BUCKETS as usize, "each bucket has its pages");
        let sessions: usize = self.buckets.iter().map(|bucket| bucket.sessions.len()).sum();
        let counted: usize = self.usage.values().map(|usage| usage.order.len()).sum();
        assert_eq!(sessions, counted, "each session is counted for its identity");
        for (identity, usage) in &self.usage {
            self.check_usage(*identity, usage);
        }
        let last = self.usage.values().filter_map(|usage| usage.order.keys().last()).max();
        assert_eq!(self.executions, last.copied().unwrap_or(0), "who reads the pages counts as many executions");
    }

    fn check_usage(&self, identity: IdentityId, usage: &Usage) {
        let (sessions_max, reply_bytes_max) = self.quota(identity);
        assert!(!usage.order.is_empty(), "an identity without sessions is forgotten");
        assert!(usage.order.len() <= sessions_max, "{identity} keeps to its sessions");
        assert!(usage.order.len() == 1 || usage.reply_bytes <= reply_bytes_max, "{identity} keeps to its bytes");
        let mut bytes = 0;
        for (used, client) in &usage.order {
            assert_eq!(client.identity, identity, "nobody's sessions count for another");
            let session = self.buckets[bucket_of(*client)].sessions.get(client);
            assert_eq!(session.map(|session| session.used), Some(*used), "{client} is evicted in its turn");
            bytes += session.map_or(0, |session| session.entry.reply_bytes());
        }
        assert_eq!(bytes, usage.reply_bytes, "each reply of {identity} is counted");
    }

    /// Whether some identity has all the sessions that it may have, and whether sessions of one were evicted.
    pub fn crowding(&self) -> (bool, bool) {
        let is_full = self.usage.iter().any(|(identity, usage)| usage.order.len() >= self.quota(*identity).0);
        (is_full, self.buckets.iter().any(|bucket| !bucket.floors.is_empty()))
    }

    /// Forgets all about an identity whose number means nothing any more.
    pub fn forget(&mut self, identity: IdentityId) {
        let usage = self.usage.remove(&identity).unwrap_or_default();
        for client in usage.order.values() {
            let bucket = &mut self.buckets[bucket_of(*client)];
            bucket.dirty |= bucket.sessions.remove(client).is_some();
        }
        let bucket = &mut self.buckets[floor_bucket_of(identity)];
        bucket.dirty |= bucket.floors.remove(&identity).is_some();
        self.recount();
    }

    /// The count of executions is that of the last one that is still in the table: whoever reads the pages sees no
    /// more.
    fn recount(&mut self) {
        self.executions = self.usage.values().filter_map(|usage| usage.order.keys().last()).max().copied().unwrap_or(0);
    }

    /// What an identity may hold: sessions, and bytes of replies. Anybody may join: those who do hold less.
    const fn quota(&self, identity: IdentityId) -> (usize, u64) {
        if identity.is_member() {
            (MEMBER_SESSIONS_MAX, MEMBER_REPLY_BYTES_MAX)
        } else {
            (self.sessions_per_identity_max, REPLY_BYTES_MAX)
        }
    }

    /// Calls `write` with every page that changed since the last call (`None`: the page is gone).
    pub fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        for (number, bucket) in (0..).zip(&mut self.buckets).filter(|(_, bucket)| bucket.dirty) {
            let bytes = bucket.to_bytes();
            let pages = bytes.chunks(PAGE_BYTES_MAX);
            let count = pages.len();
            for (piece, page) in pages.enumerate() {
                write(page_number(number, piece), Some(Bytes::copy_from_slice(page)));
            }
            for piece in count..bucket.pages {
                write(page_number(number, piece), None);
            }
            bucket.pages = count;
            bucket.dirty = false;
        }
    }

    /// Takes back pages, after a rollback or a transfer: each named page now has this content (`None`: gone).
    ///
    /// # Errors
    /// [`BadState`] if the pages are not what [`ClientTable::save`] writes.
    ///
    /// # Panics
    /// If something was recorded since the last save: nobody could know which pages to name.
    pub fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        assert!(self.buckets.iter().all(|bucket| !bucket.dirty), "everything is saved before pages are loaded");
        let mut changes: BTreeMap<usize, BTreeMap<usize, Option<Bytes>>> = BTreeMap::new();
        for (number, content) in pages {
            if number >= PAGES_MAX {
                return Err(BadState);
            }
            let (bucket, piece) = ((number % BUCKETS) as usize, (number / BUCKETS) as usize);
            changes.entry(bucket).or_default().insert(piece, content);
        }
        let mut loaded = Vec::new();
        for (number, changes) in changes {
            loaded.push((number, Bucket::from_pages(number, &self.buckets[number].to_bytes(), changes)?));
        }
        // Everything old goes before anything new comes: another history may have used the same number in another
        // bucket.
        for (number, _) in &loaded {
            for (client, session) in &self.buckets[*number].sessions {
                if let Some(usage) = self.usage.get_mut(&client.identity) {
                    usage.remove(session);
                }
            }
        }
        for (number, new) in loaded {
            for (client, session) in &new.sessions {
                self.usage.entry(client.identity).or_default().add(*client, session);
            }
            self.buckets[number] = new;
        }
        self.usage.retain(|_, usage| !usage.order.is_empty());
        self.recount();
        Ok(())
    }
}

/// The page of a bucket's i-th piece.
fn page_number(bucket: u32, piece: usize) -> PageNumber {
    assert!(piece < (PAGES_MAX / BUCKETS) as usize, "replies are bounded per identity");
    piece as u32 * BUCKETS + bucket
}

impl Bucket {
    /// The canonical encoding; nothing for a bucket with nothing in it.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.floors.is_empty() || !self.sessions.is_empty() {
            encode_map(&self.floors, &mut out);
            encode_map(&self.sessions, &mut out);
        }
        out
    }

    /// Replaces pages of the encoding `old` and reads the result.
    fn from_pages(number: usize, old: &[u8], changes: BTreeMap<usize, Option<Bytes>>) -> Result<Self, BadState> {
        let old_pages = old.chunks(PAGE_BYTES_MAX).map(|page| Some(Bytes::copy_from_slice(page)));
        let mut all: BTreeMap<usize, Option<Bytes>> = old_pages.enumerate().collect();
        all.extend(changes);
        all.retain(|_, page| page.is_some());
        let pages = all.len();
        let mut bytes = Vec::new();
        for (expected, (piece, page)) in all.into_iter().enumerate() {
            if piece != expected || bytes.len() != piece * PAGE_BYTES_MAX {
                return Err(BadState);
            }
            bytes.extend_from_slice(&page.unwrap_or_default());
        }
        if bytes.is_empty() {
            return if pages == 0 { Ok(Self::default()) } else { Err(BadState) };
        }
        let bucket = Self { pages, ..Self::decode(bytes.into()).map_err(|_| BadState)? };
        let at_home = bucket.floors.keys().all(|identity| floor_bucket_of(*identity) == number)
            && bucket.sessions.keys().all(|client| bucket_of(*client) == number);
        if at_home { Ok(bucket) } else { Err(BadState) }
    }

    fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let floors = decode_map(&mut reader)?;
        let mut sessions: BTreeMap<ClientId, Session> = decode_map(&mut reader)?;
        reader.finish()?;
        for session in sessions.values_mut() {
            // A slice of the page would keep all of the page in memory.
            if let Outcome::Done { result, .. } = &mut session.entry.outcome {
                *result = Bytes::copy_from_slice(result);
            }
        }
        Ok(Self { floors, sessions, dirty: false, pages: 0 })
    }
}

fn encode_map<K: Wire, V: Wire>(map: &BTreeMap<K, V>, out: &mut impl Sink) {
    (map.len() as u32).encode(out);
    for (key, value) in map {
        key.encode(out);
        value.encode(out);
    }
}

/// Reads what [`encode_map`] wrote: keys ascend.
fn decode_map<K: Wire + Ord, V: Wire>(reader: &mut Reader) -> Result<BTreeMap<K, V>, WireError> {
    let length = reader.length(u32::MAX as usize, 1)?;
    let mut map = BTreeMap::new();
    for _ in 0..length {
        let key = K::decode(reader)?;
        if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(WireError::NotCanonical);
        }
        map.insert(key, V::decode(reader)?);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Tree;
    use alloc::vec;
    use proptest::prelude::*;

    fn client(identity: u32, session: u32) -> ClientId {
        ClientId { identity: IdentityId(identity), session }
    }

    fn entry(timestamp: u64, sequence: u64, outcome: Outcome) -> Entry {
        let (timestamp, sequence) = (Timestamp(timestamp), Sequence(sequence));
        Entry { timestamp, sequence, position: sequence.0, history: Digest::ZERO, outcome }
    }

    fn done(text: &'static str) -> Outcome {
        Outcome::read(Bytes::from_static(text.as_bytes()))
    }

    /// Saves into the tree and gives the version.
    fn checkpoint(table: &mut ClientTable, tree: &mut Tree) -> Tree {
        table.save(&mut |number, content| tree.set(number, content));
        tree.seal();
        tree.clone()
    }

    fn from_tree(max: usize, tree: &Tree) -> ClientTable {
        let mut table = ClientTable::new(max);
        table.load(&mut tree.iter().map(|(number, content)| (number, Some(content.clone())))).unwrap();
        table
    }

    #[test]
    fn a_request_is_new_once() {
        let mut table = ClientTable::new(8);
        let c = client(1, 1);
        assert_eq!(table.check(c, Timestamp(0)), Freshness::Stale);
        assert_eq!(table.check(c, Timestamp(5)), Freshness::New);
        table.record(c, entry(5, 1, done("a")));
        let entry = entry(5, 1, done("a"));
        assert_eq!(table.check(c, Timestamp(5)), Freshness::Last(&entry));
        assert_eq!(table.check(c, Timestamp(4)), Freshness::Stale);
        assert_eq!(table.check(c, Timestamp(6)), Freshness::New);
        assert_eq!(table.check(client(1, 2), Timestamp(1)), Freshness::New, "sessions do not share numbers");
    }

    #[test]
    fn the_least_recently_executed_session_is_evicted_and_cannot_come_back_with_old_requests() {
        let mut table = ClientTable::new(2);
        table.record(client(1, 1), entry(10, 1, done("a")));
        table.record(client(1, 2), entry(5, 2, done("b")));
        table.record(client(1, 1), entry(11, 3, done("c")));
        table.record(client(1, 3), entry(7, 4, done("d")));
        assert_eq!(table.last(client(1, 2)), None, "session 2 was used longest ago");
        assert_eq!(table.check(client(1, 2), Timestamp(5)), Freshness::Stale);
        assert_eq!(table.check(client(1, 9), Timestamp(5)), Freshness::Stale, "the floor is the identity's");
        assert_eq!(table.check(client(1, 2), Timestamp(6)), Freshness::New);
        assert_eq!(table.check(client(2, 2), Timestamp(1)), Freshness::New, "other identities do not notice");
        table.record(client(1, 4), entry(6, 5, done("e")));
        assert_eq!(table.check(client(1, 1), Timestamp(11)), Freshness::Stale, "session 1 was next");
        assert_eq!(table.check(client(1, 3), Timestamp(8)), Freshness::New, "a session in the table has no floor");
    }

    #[test]
    fn large_replies_are_bounded_per_identity_and_spread_over_pages() {
        const REPLY: usize = 1 << 20;
        let reply = || Outcome::read(Bytes::from(vec![7; REPLY]));
        let mut table = ClientTable::new(8_192);
        let (mut tree, max) = (Tree::new(), (REPLY_BYTES_MAX / REPLY as u64) as u32);
        table.record(client(2, 0), entry(1, 1, done("somebody else")));
        // All in one bucket.
        let sessions: Vec<_> =
            (0..).filter(|&session| bucket_of(client(1, session)) == 3).take(max as usize + 1).collect();
        for &session in &sessions {
            table.record(client(1, session), entry(1, 1, reply()));
        }
        assert_eq!(table.last(client(1, sessions[0])), None, "one reply too many");
        assert!(table.last(client(1, sessions[1])).is_some());
        assert!(table.last(client(2, 0)).is_some(), "only the identity pays");
        let version = checkpoint(&mut table, &mut tree);
        assert!(version.page_count() > max);

        let mut copy = from_tree(8_192, &version);
        let before = copy.clone();
        copy.record(client(1, sessions[5]), entry(2, 2, done("small")));
        let mut other = version.clone();
        checkpoint(&mut copy, &mut other);
        assert!(other.page_count() < version.page_count(), "the bucket shrank");
        copy.load(&mut version.changed(&other).into_iter()).unwrap();
        assert!(copy == before, "rolled back");
    }

    #[test]
    fn a_table_of_another_history_becomes_the_one_whose_pages_it_loads() {
        let (mut here, mut there) = (ClientTable::new(8), ClientTable::new(8));
        // The same numbers, for sessions in other buckets.
        for (number, session) in (1..).zip(0..6) {
            here.record(client(1, session), entry(number, number, done("here")));
            there.record(client(1, 5 - session), entry(number, number, done("there")));
        }
        let versions = [&mut here, &mut there].map(|table| checkpoint(table, &mut Tree::new()));
        here.load(&mut versions[1].changed(&versions[0]).into_iter()).unwrap();
        assert!(here == there, "nothing of the other history is left");
    }

    #[test]
    fn pages_that_nobody_saved_are_refused() {
        let mut table = ClientTable::new(8);
        table.record(client(1, 1), entry(5, 1, done("a")));
        let mut saved = Vec::new();
        table.save(&mut |number, content| saved.push((number, content)));
        let [(number, Some(content))] = saved.as_slice() else { panic!("one page") };
        let load = |number, content: &[u8]| {
            ClientTable::new(8).load(&mut [(number, Some(Bytes::copy_from_slice(content)))].into_iter())
        };
        assert_eq!(load(*number, content), Ok(()));
        assert_eq!(load(number + 1, content), Err(BadState), "another bucket's");
        assert_eq!(load(number + BUCKETS, content), Err(BadState), "the second piece without the first");
        assert_eq!(load(*number, &content[1..]), Err(BadState));
        assert_eq!(load(*number, &[]), Err(BadState));
    }

    /// What an observer of the whole history knows.
    #[derive(Default)]
    struct Model(BTreeMap<ClientId, Vec<Timestamp>>);

    fn requests() -> impl Strategy<Value = Vec<(ClientId, Timestamp)>> {
        let request = (0u32..3, 0u32..6, 1u64..30).prop_map(|(i, s, t)| (client(i, s), Timestamp(t)));
        proptest::collection::vec(request, 0..60)
    }

    fn run(table: &mut ClientTable, requests: &[(ClientId, Timestamp)], mut executed: impl FnMut(ClientId, Timestamp)) {
        for (i, &(client, timestamp)) in requests.iter().enumerate() {
            if table.check(client, timestamp) == Freshness::New {
                executed(client, timestamp);
                let outcome = if i % 3 == 0 { Outcome::Refused(Refusal::TooLarge) } else { done("result") };
                table.record(client, entry(timestamp.0, i as u64, outcome));
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_is_executed_twice_or_out_of_order(requests in requests(), max in 1usize..4) {
            let (mut table, mut model) = (ClientTable::new(max), Model::default());
            run(&mut table, &requests, |client, timestamp| {
                let executed = model.0.entry(client).or_default();
                assert!(executed.last().is_none_or(|last| *last < timestamp), "{client} {timestamp}");
                executed.push(timestamp);
            });
            for identity in 0..3 {
                let sessions = model.0.keys().filter(|client| client.identity.0 == identity);
                prop_assert!(sessions.filter(|client| table.last(**client).is_some()).count() <= max);
            }
        }

        #[test]
        fn a_table_loaded_from_pages_goes_on_as_the_one_that_saved_them(
            first in requests(), second in requests(), third in requests(), max in 1usize..4
        ) {
            let (mut table, mut tree) = (ClientTable::new(max), Tree::new());
            run(&mut table, &first, |_, _| {});
            let early = checkpoint(&mut table, &mut tree);
            let original = table.clone();

            // Execute ahead, and roll back.
            run(&mut table, &second, |_, _| {});
            let late = checkpoint(&mut table, &mut tree);
            table.load(&mut early.changed(&late).into_iter()).unwrap();
            prop_assert_eq!(&table, &original);

            // A replica that joins by state transfer.
            let mut copy = from_tree(max, &early);
            let (mut trees, mut roots) = ([early.clone(), early], vec![]);
            for (table, tree) in [&mut table, &mut copy].into_iter().zip(&mut trees) {
                run(table, &third, |_, _| {});
                roots.push(checkpoint(table, tree).root());
            }
            prop_assert_eq!(roots[0], roots[1]);
        }
    }
}
