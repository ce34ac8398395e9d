//! The history of an instance that may abort: what was logged since the anchor, and the digest after every position.
//!
//! Positions count requests from the beginning of the composition: position p is the p-th request ever logged (abs-D3).
//! The **anchor** is the last position that is certain to be in every correct replica's history: the state before the
//! first request, a checkpoint that all n replicas confirmed, or the end of a Backup. Nothing at or below it is ever
//! taken back, so a log begins above it. A **boundary** is a checkpoint that this replica has taken above its
//! anchor and that is not certain yet.
//!
//! A log can be cut back when another history is inherited. What is cut off was vouched for in an abort report, and
//! somebody may still have to fetch it: its bodies are kept until the anchor moves (abs-D9).

use crate::digest::{Digest, Domain};
use crate::ids::InstanceId;
use crate::message::{Authentication, Request};
use crate::service::Proposal;
use crate::wire::{Reader, Sink, Wire, WireError};
use crate::wire_struct;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

/// A request with the values agreed for it: what stands at one position of a history.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// Agreed time and seed, before clamping.
    pub proposal: Proposal,
    /// The request, without its client's proof: whoever logged it checked it, and the digest identifies it. Without the
    /// instance that was asked, too, which the digest does not cover: nothing is said here that whoever sends the entry
    /// on could change.
    pub request: Request,
}

impl LogEntry {
    /// An entry for a request that was checked.
    pub fn new(proposal: Proposal, mut request: Request) -> Self {
        request.authentication = Authentication::default();
        request.instance = InstanceId::default();
        Self { proposal, request }
    }

    /// The request as it was asked in this instance.
    pub fn asked_in(&self, instance: InstanceId) -> Request {
        let mut request = self.request.clone();
        request.instance = instance;
        request
    }

    /// Over agreed values and request.
    pub fn digest(&self) -> Digest {
        self.digest_under(self.proposal.digest())
    }

    /// The same, where the digest of the agreed values is known: one block of the hash function.
    fn digest_under(&self, agreed: Digest) -> Digest {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&agreed.0);
        bytes[32..].copy_from_slice(&self.request.digest().0);
        Digest::of(Domain::Entry, &bytes)
    }
}

impl Wire for LogEntry {
    fn encode(&self, out: &mut impl Sink) {
        self.proposal.encode(out);
        self.request.encode_covered(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { proposal: Wire::decode(reader)?, request: Request::decode_covered(reader, InstanceId::default())? })
    }
}

/// A position with the digests of history and state there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boundary {
    /// Requests up to here.
    pub position: u64,
    /// The history's digest.
    pub history: Digest,
    /// The Merkle root of the state: service, client table, position and history (abs-S11).
    pub root: Digest,
}
wire_struct!(Boundary { position, history, root });

/// One position of a log.
#[derive(Clone, Debug)]
pub struct Logged {
    /// What was logged.
    pub entry: LogEntry,
    /// The entry's digest.
    pub digest: Digest,
    /// The history's digest with it.
    pub history: Digest,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Log {
    anchor: Boundary,
    entries: VecDeque<Logged>,
    boundaries: Vec<Boundary>,
    retained: BTreeMap<Digest, LogEntry>,
    /// The agreed values pushed last, with their digest: those of a batch are the same for all of its entries.
    agreed: Option<(Proposal, Digest)>,
}

impl Log {
    /// An empty log above an anchor.
    pub const fn new(anchor: Boundary) -> Self {
        Self { anchor, entries: VecDeque::new(), boundaries: Vec::new(), retained: BTreeMap::new(), agreed: None }
    }

    /// The anchor.
    pub const fn anchor(&self) -> Boundary {
        self.anchor
    }

    /// Checkpoints taken above the anchor, oldest first.
    pub fn boundaries(&self) -> &[Boundary] {
        &self.boundaries
    }

    /// L: the last position.
    pub fn length(&self) -> u64 {
        self.anchor.position + self.entries.len() as u64
    }

    /// The digest of the whole history.
    pub fn history(&self) -> Digest {
        self.entries.back().map_or(self.anchor.history, |last| last.history)
    }

    /// The digest at a position between anchor and end.
    pub fn history_at(&self, position: u64) -> Option<Digest> {
        if position == self.anchor.position {
            return Some(self.anchor.history);
        }
        self.at(position).map(|logged| logged.history)
    }

    /// What stands at a position above the anchor.
    pub fn at(&self, position: u64) -> Option<&Logged> {
        let index = position.checked_sub(self.anchor.position + 1)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// What was logged after a position.
    pub fn after(&self, position: u64) -> impl Iterator<Item = &Logged> {
        self.entries.iter().skip(position.saturating_sub(self.anchor.position) as usize)
    }

    /// Appends an entry and returns what is logged now.
    pub fn push(&mut self, entry: LogEntry) -> &Logged {
        let agreed = match &self.agreed {
            Some((proposal, digest)) if *proposal == entry.proposal => *digest,
            _ => self.agreed.insert((entry.proposal.clone(), entry.proposal.digest())).1,
        };
        let digest = entry.digest_under(agreed);
        let history = self.history().chain(digest);
        self.retained.remove(&digest);
        self.entries.push_back(Logged { entry, digest, history });
        self.entries.back().expect("just pushed")
    }

    /// Notes a checkpoint of this replica's own.
    pub fn mark(&mut self, boundary: Boundary) {
        if !self.boundaries.contains(&boundary) {
            self.boundaries.push(boundary);
            self.boundaries.sort();
        }
    }

    /// Forgets the checkpoints above the anchor that are not what this replica has there.
    pub fn retain_boundaries(&mut self, has: impl Fn(&Boundary) -> bool) {
        self.boundaries.retain(has);
    }

    /// Notes a checkpoint that is known to be true, if it is not below the anchor.
    pub fn learn(&mut self, boundary: Boundary) {
        if boundary.position == self.anchor.position {
            self.anchor = boundary;
        } else if boundary.position > self.anchor.position {
            self.mark(boundary);
        }
    }

    /// Cuts off everything after a position. The bodies stay to be fetched.
    ///
    /// # Panics
    /// If the position is below the anchor.
    pub fn cut(&mut self, position: u64) {
        assert!(position >= self.anchor.position, "nothing below the anchor is ever taken back");
        assert!(position <= self.length(), "what is cut off is in the log");
        for logged in self.entries.split_off((position - self.anchor.position) as usize) {
            self.retained.insert(logged.digest, logged.entry);
        }
        self.boundaries.retain(|boundary| boundary.position <= position);
    }

    /// The anchor moves up to a position of this log, or to one above it all that was reached otherwise.
    ///
    /// # Panics
    /// If that is below the anchor.
    pub fn anchor_at(&mut self, anchor: Boundary) {
        assert!(anchor.position >= self.anchor.position, "what is certain stays certain");
        let passed = (anchor.position - self.anchor.position).min(self.entries.len() as u64);
        self.entries.drain(..passed as usize);
        self.anchor = anchor;
        self.boundaries.retain(|boundary| boundary.position > anchor.position);
        self.retained.clear();
    }

    /// Begins again above another anchor, with what is known kept as bodies only.
    pub fn restart(&mut self, anchor: Boundary) {
        self.cut(self.anchor.position);
        assert!(self.entries.is_empty() && self.boundaries.is_empty(), "nothing is left above the old anchor");
        self.anchor = anchor;
    }

    /// Ends here, and begins again above this anchor. The bodies stay: others may still be on their way to it.
    pub fn close(&mut self, anchor: Boundary) {
        self.restart(anchor);
        self.boundaries.clear();
    }

    /// The anchor is certain, and everybody can get its state: nobody needs a body from before.
    pub fn forget_bodies(&mut self) {
        self.retained.clear();
    }

    /// Keeps bodies that will be vouched for, or may be asked for.
    pub fn retain(&mut self, entries: Vec<LogEntry>) {
        let digests: Vec<Digest> = entries.iter().map(LogEntry::digest).collect();
        let logged: BTreeSet<Digest> = self.entries.iter().map(|logged| logged.digest).collect();
        let new = digests.into_iter().zip(entries).filter(|(digest, _)| !logged.contains(digest));
        self.retained.extend(new);
    }

    /// The bodies of these digests that are here.
    pub fn find(&self, digests: &[Digest]) -> Vec<LogEntry> {
        let logged: BTreeMap<Digest, &LogEntry> = self.entries.iter().map(|l| (l.digest, &l.entry)).collect();
        let found = |digest| logged.get(digest).copied().or_else(|| self.retained.get(digest));
        digests.iter().filter_map(found).cloned().collect()
    }

    /// What is true between steps. The chain is looked at where it begins and where it ends.
    pub(crate) fn check_invariants(&self) {
        let chains = |before: Digest, logged: &Logged| before.chain(logged.digest) == logged.history;
        if let (Some(first), Some(last)) = (self.entries.front(), self.entries.back()) {
            assert!(chains(self.anchor.history, first), "the history goes on from the anchor (abs-D3)");
            let before = self.history_at(self.length() - 1);
            assert!(before.is_some_and(|before| chains(before, last)), "each entry goes on from the one before it");
            assert!(!self.retained.contains_key(&last.digest), "what is logged is not kept a second time");
            assert_eq!(last.digest, last.entry.digest(), "the digest of the agreed values is theirs");
        }
        assert!(self.boundaries.is_sorted(), "checkpoints stand in their order");
        let positions = || self.boundaries.iter().map(|boundary| boundary.position);
        assert!(positions().all(|position| position > self.anchor.position), "what the anchor includes is no boundary");
        assert!(positions().all(|position| position <= self.length()), "checkpoints are taken of what is logged");
    }

    /// Bodies kept although no position of this log holds them.
    pub fn retained(&self) -> usize {
        self.retained.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ClientId, Timestamp};

    fn entry(n: u64) -> LogEntry {
        let request = Request::new(InstanceId(1), ClientId::default(), Timestamp(n), false, bytes::Bytes::new());
        LogEntry::new(Proposal::default(), request)
    }

    #[test]
    fn the_digest_at_a_position_does_not_depend_on_where_the_log_was_cut() {
        let (mut whole, mut cut) = (Log::new(Boundary::default()), Log::new(Boundary::default()));
        for n in 1..=9 {
            whole.push(entry(n));
            cut.push(entry(n));
            if n == 4 {
                let history = cut.history();
                cut.anchor_at(Boundary { position: 3, history: cut.history_at(3).unwrap(), root: Digest::ZERO });
                assert_eq!(cut.history(), history);
            }
        }
        assert_eq!(whole.history(), cut.history());
        assert_eq!((whole.length(), cut.length()), (9, 9));
        assert_eq!(whole.at(7).unwrap().history, cut.history_at(7).unwrap());
        assert_eq!(cut.history_at(2), None);
        assert_eq!(whole.after(5).count(), cut.after(5).count());
    }

    /// Two entries with one digest are one sequence of bytes: whoever passes an entry on has nothing to change in it.
    #[test]
    fn an_entry_holds_what_its_digest_covers_and_no_more() {
        let in_one = entry(1);
        let mut request = in_one.asked_in(InstanceId(7));
        request.authentication.tags = [crate::auth::Tag::from_bytes([1; 16]); 4].into_iter().collect();
        let (signature, path) = (crate::auth::Signature([2; 64]), alloc::vec![Digest([3; 32])]);
        request.authentication.signature = Some(crate::auth::TreeSignature { signature, sides: 1, path });
        let in_another = LogEntry { proposal: in_one.proposal.clone(), request };
        assert_eq!(in_one.digest(), in_another.digest());
        assert_eq!(in_one.to_bytes(), in_another.to_bytes());
        let decoded = LogEntry::from_bytes(in_another.to_bytes().into()).unwrap();
        assert_eq!((decoded.digest(), decoded.to_bytes()), (in_one.digest(), in_one.to_bytes()));
    }

    #[test]
    fn a_checkpoint_is_noted_once() {
        let mut log = Log::new(Boundary::default());
        log.push(entry(1));
        let boundary = Boundary { position: 1, history: log.history(), root: Digest::ZERO };
        log.learn(boundary);
        log.mark(boundary);
        log.learn(boundary);
        assert_eq!(log.boundaries(), [boundary]);
    }

    #[test]
    fn what_was_cut_off_can_still_be_fetched_until_the_anchor_moves() {
        let mut log = Log::new(Boundary::default());
        for n in 1..=3 {
            log.push(entry(n));
        }
        log.cut(1);
        log.push(entry(7));
        let wanted = [entry(3).digest(), entry(7).digest(), entry(9).digest()];
        assert_eq!(log.find(&wanted).len(), 2);
        log.anchor_at(Boundary { position: 1, history: log.history_at(1).unwrap(), root: Digest::ZERO });
        assert_eq!(log.find(&wanted).len(), 1);
    }
}
