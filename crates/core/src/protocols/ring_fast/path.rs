//! Who authenticates what for whom: the sets of section 4.3 of the thesis, as functions of positions.
//!
//! A request of entry e goes twice around the ring: over 2n *positions*, of which 0 to n−1 are the RING pass and the
//! others the ACK pass. Position p is replica e + p. Every rule is one on positions; the thesis writes them as
//! intervals of replicas, which go wrong where the two passes meet (ring-F9).
//!
//! # Where the number is given
//! f+1 replicas check a client's MACs, and only then may a request get a number (ring-F16). So where the sequencer
//! comes earlier, at q < f, it gives numbers when it comes again, at σ = n + q. All n replicas execute from there on,
//! one at each position, the last one at n + q + n − 1: the path is q positions longer than 2n, and these are ACKs too.

use crate::ids::{ClientId, ReplicaId, Timestamp};
use crate::replicas::Replicas;
use core::ops::{Range, RangeInclusive};

/// The path of one entry's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    entry: ReplicaId,
    replicas: Replicas,
    stamp: usize,
    last: usize,
    is_probe: bool,
}

impl Path {
    /// The path from an entry, where this replica is the sequencer.
    pub const fn new(replicas: Replicas, sequencer: ReplicaId, entry: ReplicaId) -> Self {
        let n = replicas.n();
        let offset = replicas.distance(entry, sequencer);
        // An entry asks nobody whether its batch may have a number: at f = 0 as well, the sequencer's own waits.
        let stamp = if offset == 0 || offset + 1 < replicas.weak() { n + offset } else { offset };
        let last = if stamp > n { stamp + n - 1 } else { 2 * n - 1 };
        assert!(stamp + n - 1 <= last, "each replica executes at one position of the path");
        Self { entry, replicas, stamp, last, is_probe: false }
    }

    /// The path of a probe: it comes back to the entry when all others have seen it twice. It has no client whose MACs
    /// had to be checked before the sequencer says what it has.
    pub const fn of_probe(replicas: Replicas, sequencer: ReplicaId, entry: ReplicaId) -> Self {
        let n = replicas.n();
        let offset = replicas.distance(entry, sequencer);
        let stamp = if offset == 0 { n } else { offset };
        assert!(stamp > 0 && stamp <= n, "the sequencer says what it has before the entry answers for itself");
        Self { entry, replicas, stamp, last: 2 * n, is_probe: true }
    }

    /// The replica that a client asks: one for each request and attempt, so that all are asked equally often, and the
    /// next one after one that did not serve it.
    pub fn entry_for(replicas: Replicas, client: ClientId, timestamp: Timestamp, attempt: u64) -> ReplicaId {
        let n = replicas.n() as u64;
        ReplicaId(((u64::from(client.session) % n + timestamp.0 % n + attempt) % n) as u8)
    }

    /// Where a replica is in the RING pass.
    pub const fn offset(&self, replica: ReplicaId) -> usize {
        self.replicas.distance(self.entry, replica)
    }

    /// The replica at a position.
    pub const fn at(&self, position: usize) -> ReplicaId {
        self.replicas.after(self.entry, position)
    }

    /// The first position whose messages are ACKs: that of the exit, in the RING pass.
    pub const fn exit(&self) -> usize {
        self.replicas.n() - 1
    }

    /// The last position, which answers the client: the exit again, unless the path is longer; of a probe, the entry.
    pub const fn last(&self) -> usize {
        self.last
    }

    /// What the link that leaves a position belongs to: 0 the RING pass, 1 the ACK pass, 2 what is left of the ACK pass
    /// when it comes by for the second time, and the last link of a probe. MACs cover it, so one for a replica in
    /// one pass is none in another.
    pub const fn pass(&self, position: usize) -> u8 {
        ((position + 1) / self.replicas.n()) as u8
    }

    /// Whether what passes this position comes to the same replica again.
    pub const fn comes_again(&self, position: usize) -> bool {
        position + self.replicas.n() <= self.last
    }

    /// σ: where the sequencer gives a number.
    pub const fn stamp(&self) -> usize {
        self.stamp
    }

    /// Whether the replica at this position logs and executes: each replica does at one position, from the sequencer
    /// on.
    pub const fn executes(&self, position: usize) -> bool {
        position >= self.stamp && position < self.stamp + self.replicas.n()
    }

    /// Whether what arrives here has a number in it: the sequencer has been passed, and this replica does not have the
    /// number yet.
    pub const fn is_told(&self, position: usize) -> bool {
        position > self.stamp && (self.is_probe || self.executes(position))
    }

    /// Whether a replica here checks the client's MAC.
    pub const fn checks_client(&self, position: usize) -> bool {
        position < self.replicas.weak()
    }

    /// Whether a replica here may strike a request: where clients' MACs are checked, and where the number is given.
    pub const fn may_strike(&self, position: usize) -> bool {
        self.checks_client(position) || position == self.stamp
    }

    /// Whether a replica here vouches to the client: Σ_last, the last f + 1 positions.
    pub const fn is_last(&self, position: usize) -> bool {
        self.reply_tags(position) > 0
    }

    /// ←r: the positions whose MACs a replica here checks.
    pub const fn predecessors(&self, position: usize) -> Range<usize> {
        position.saturating_sub(self.replicas.weak())..position
    }

    /// →r: the positions that a replica here makes MACs for.
    pub fn successors(&self, position: usize) -> RangeInclusive<usize> {
        position + 1..=(position + self.replicas.weak()).min(self.last())
    }

    /// The MACs that the link from a position to the next one carries, as (maker, receiver), in their order on the
    /// wire.
    pub fn carried(&self, position: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let path = *self;
        ((position + 1).saturating_sub(path.replicas.weak())..=position).flat_map(move |maker| {
            path.successors(maker).filter(move |receiver| *receiver > position).map(move |receiver| (maker, receiver))
        })
    }

    /// How many MACs of a client travel with each request on the link that leaves a position.
    pub const fn client_tags(&self, position: usize) -> usize {
        self.replicas.weak().saturating_sub(position + 1)
    }

    /// How many MACs for the client travel with each request on the link that leaves a position.
    pub const fn reply_tags(&self, position: usize) -> usize {
        if self.is_probe { 0 } else { (position + self.replicas.weak()).saturating_sub(self.last) }
    }

    /// The replicas that vouch to the client, in the order of their positions; not for probes, which have no client.
    pub fn vouchers(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        let path = *self;
        (path.last() + 1 - path.replicas.weak()..=path.last()).map(move |position| path.at(position))
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Body, RingMessage, Stamp};
    use super::*;
    use crate::digest::Digest;
    use crate::ids::{IdentityId, InstanceId};
    use crate::service::Proposal;
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    fn path(f: usize, entry: u8) -> Path {
        Path::new(Replicas::of(3 * f + 1).unwrap(), ReplicaId(0), ReplicaId(entry))
    }

    /// One line for each position, as in the table of `docs/papers/ring.md`: whose MACs are checked, of which kind,
    /// with a number or without; what is sent on; for whom MACs are made; whether the replica executes.
    fn table(path: Path) -> Vec<String> {
        let tag = |q: usize| {
            let kind = if q >= path.exit() { 'A' } else { 'R' };
            format!("{:?}/{kind}{}", path.at(q), if q >= path.stamp() { '#' } else { '-' })
        };
        let line = |p: usize| {
            let client = path.checks_client(p).then(|| String::from("client"));
            let checked: Vec<String> = client.into_iter().chain(path.predecessors(p).map(tag)).collect();
            let to_client = path.is_last(p).then(|| String::from("client"));
            let made: Vec<String> = path.successors(p).map(|q| format!("{:?}", path.at(q))).chain(to_client).collect();
            let executes = if path.executes(p) { " executes" } else { "" };
            format!("{p} {:?} [{}] [{}]{executes}", path.at(p), checked.join(" "), made.join(" "))
        };
        (0..=path.last()).map(line).collect()
    }

    #[test]
    fn the_sets_for_four_are_those_of_the_table() {
        let expected = [
            "0 r2 [client] [r3 r0]",
            "1 r3 [client r2/R-] [r0 r1]",
            "2 r0 [r2/R- r3/R-] [r1 r2] executes",
            "3 r1 [r3/R- r0/R#] [r2 r3] executes",
            "4 r2 [r0/R# r1/A#] [r3 r0] executes",
            "5 r3 [r1/A# r2/A#] [r0 r1] executes",
            "6 r0 [r2/A# r3/A#] [r1 client]",
            "7 r1 [r3/A# r0/A#] [client]",
        ];
        assert_eq!(table(path(1, 2)), expected);
    }

    #[test]
    fn a_sequencer_that_is_the_entry_waits_for_the_ack_pass() {
        let expected = [
            "0 r0 [client] [r1 r2]",
            "1 r1 [client r0/R-] [r2 r3]",
            "2 r2 [r0/R- r1/R-] [r3 r0]",
            "3 r3 [r1/R- r2/R-] [r0 r1]",
            "4 r0 [r2/R- r3/A-] [r1 r2] executes",
            "5 r1 [r3/A- r0/A#] [r2 r3] executes",
            "6 r2 [r0/A# r1/A#] [r3 client] executes",
            "7 r3 [r1/A# r2/A#] [client] executes",
        ];
        assert_eq!(table(path(1, 0)), expected);
    }

    #[test]
    fn the_sets_for_seven_are_those_of_the_table() {
        let lines = table(path(2, 2));
        let expected = [
            "0 r2 [client] [r3 r4 r5]",
            "1 r3 [client r2/R-] [r4 r5 r6]",
            "2 r4 [client r2/R- r3/R-] [r5 r6 r0]",
            "3 r5 [r2/R- r3/R- r4/R-] [r6 r0 r1]",
            "4 r6 [r3/R- r4/R- r5/R-] [r0 r1 r2]",
            "5 r0 [r4/R- r5/R- r6/R-] [r1 r2 r3] executes",
            "6 r1 [r5/R- r6/R- r0/R#] [r2 r3 r4] executes",
            "7 r2 [r6/R- r0/R# r1/A#] [r3 r4 r5] executes",
            "8 r3 [r0/R# r1/A# r2/A#] [r4 r5 r6] executes",
        ];
        assert_eq!(lines[..9], expected);
        assert_eq!(
            lines[11..],
            [
                "11 r6 [r3/A# r4/A# r5/A#] [r0 r1 client] executes",
                "12 r0 [r4/A# r5/A# r6/A#] [r1 client]",
                "13 r1 [r5/A# r6/A# r0/A#] [client]",
            ]
        );
    }

    /// The sequencer comes first at position 1, before f + 1 replicas have checked the client's MACs.
    #[test]
    fn a_sequencer_shortly_after_the_entry_waits_for_the_ack_pass() {
        let lines = table(path(2, 6));
        let expected =
            ["0 r6 [client] [r0 r1 r2]", "1 r0 [client r6/R-] [r1 r2 r3]", "2 r1 [client r6/R- r0/R-] [r2 r3 r4]"];
        assert_eq!(lines[..3], expected);
        let expected = [
            "6 r5 [r2/R- r3/R- r4/R-] [r6 r0 r1]",
            "7 r6 [r3/R- r4/R- r5/A-] [r0 r1 r2]",
            "8 r0 [r4/R- r5/A- r6/A-] [r1 r2 r3] executes",
            "9 r1 [r5/A- r6/A- r0/A#] [r2 r3 r4] executes",
            "10 r2 [r6/A- r0/A# r1/A#] [r3 r4 r5] executes",
            "11 r3 [r0/A# r1/A# r2/A#] [r4 r5 r6] executes",
            "12 r4 [r1/A# r2/A# r3/A#] [r5 r6 client] executes",
            "13 r5 [r2/A# r3/A# r4/A#] [r6 client] executes",
            "14 r6 [r3/A# r4/A# r5/A#] [client] executes",
        ];
        assert_eq!(lines[6..], expected);
        assert_eq!([0, 5, 6, 12, 13].map(|leaving| path(2, 6).pass(leaving)), [0, 0, 1, 1, 2]);
        assert_eq!([0, 1, 6, 7, 8].map(|at| path(2, 6).comes_again(at)), [true, true, true, true, false]);
    }

    /// What the proofs of ring-P1 to ring-P3 use, for every entry and sequencer, with more replicas than 3f+1 as well.
    #[test]
    fn the_sets_are_what_the_proofs_need() {
        for (n, f) in (4..=13).flat_map(|n| (0..=(n - 1) / 3).map(move |f| (n, f))) {
            let replicas = Replicas::new(n, f).unwrap();
            for (entry, sequencer) in replicas.iter().flat_map(|e| replicas.iter().map(move |s| (e, s))) {
                let path = Path::new(replicas, sequencer, entry);
                let positions = 0..=path.last();
                for p in positions.clone() {
                    let makers: Vec<usize> = positions.clone().filter(|q| path.successors(*q).contains(&p)).collect();
                    assert_eq!(path.predecessors(p).collect::<Vec<_>>(), makers, "who checks is who was meant");
                    assert!(p <= f || makers.len() == f + 1, "one of them is correct");
                    assert!(path.carried(p).count() <= (f + 1) * (f + 2) / 2);
                    let own = path.predecessors(p).map(|q| (q, p)).filter(|_| p > 0);
                    let arriving: Vec<_> = if p == 0 { Vec::new() } else { path.carried(p - 1).collect() };
                    assert!(own.into_iter().all(|pair| arriving.contains(&pair)));
                }
                let executing: Vec<usize> = positions.clone().filter(|p| path.executes(*p)).collect();
                assert_eq!(executing.len(), n, "each replica executes once");
                assert_eq!(path.at(executing[0]), sequencer);
                assert_eq!(path.vouchers().count(), f + 1);
                let q = path.offset(sequencer);
                assert_eq!(path.last(), 2 * n - 1 + if q < f { q } else { 0 });
                assert!(path.stamp() >= f && executing.iter().all(|p| *p <= path.last()));
                assert!(positions.clone().all(|p| p <= path.stamp() || !path.may_strike(p)), "no number is struck");
                let vouching: Vec<usize> = positions.clone().filter(|p| path.is_last(*p)).collect();
                assert!(vouching.iter().all(|p| path.is_told(*p) || *p >= path.stamp() + n));
                let seen: BTreeSet<_> = positions.clone().map(|p| (path.at(p), path.pass(p))).collect();
                assert_eq!(seen.len(), path.last() + 1, "a MAC tells the positions of its maker apart");
                let last_time: Vec<usize> = positions.filter(|p| !path.comes_again(*p)).collect();
                assert_eq!(last_time, (path.last() + 1 - n..=path.last()).collect::<Vec<_>>());
                let probe = Path::of_probe(replicas, sequencer, entry);
                assert_eq!(probe.at(probe.last()), entry, "it comes back");
                assert!((0..probe.last()).filter(|p| probe.executes(*p)).count() == n && !probe.is_last(2 * n));
            }
        }
    }

    /// MACs made and checked for a batch of b.
    fn macs(path: &Path, b: usize) -> usize {
        let of_clients = |at: bool| if at { b } else { 0 };
        let between = |p| path.predecessors(p).count() + path.successors(p).count();
        let at = |p| between(p) + of_clients(path.checks_client(p)) + of_clients(path.is_last(p));
        (0..=path.last()).map(at).sum()
    }

    /// How many positions a path is longer than 2n.
    fn longer(path: &Path) -> usize {
        let q = path.offset(ReplicaId(0));
        if q + 1 < path.replicas.weak() { q } else { 0 }
    }

    /// Equations 7.1 and 7.3 of the thesis, added up anew (`docs/papers/ring.md`), and 2(f+1) more for each position
    /// that a path is longer: so many MACs are made and checked for a batch of b.
    #[test]
    fn the_sets_add_up_to_the_formula() {
        for (f, b) in [1, 2, 3].into_iter().flat_map(|f| [1, 10, 100].map(|b| (f, b))) {
            for entry in 0..3 * f as u8 + 1 {
                let path = path(f, entry);
                let expected = (f + 1) * (2 * b + 11 * f + 2 + 2 * longer(&path));
                assert_eq!(macs(&path, b), expected, "f = {f}, b = {b}, entry r{entry}");
            }
        }
    }

    /// (7.2) and (7.4): what joint MACs would leave, did every exit begin a batch of its own whenever it sends an ACK,
    /// so the two travel together until the batch comes to its own exit. They are fewer, and little cheaper: a MAC
    /// takes as long as the 64-byte blocks that it covers, and those of two statements are nearly as many together as
    /// apart.
    #[test]
    fn joint_macs_would_be_fewer_and_little_cheaper() {
        let stamp = Stamp { first: 1, proposal: Proposal::default(), history: Digest::ZERO, effects: Digest::ZERO };
        let length = |path: &Path, maker| {
            let (instance, entry, body) = (InstanceId(1), path.at(0), Body::Digest(Digest::ZERO));
            let (stamp, strikes, tags) = (Some(stamp.clone()), Vec::new(), Vec::new());
            let message = RingMessage { instance, entry, body, strikes, stamp, tags, reply_tags: Vec::new() };
            message.statement(path, Digest::ZERO, maker).len()
        };
        let blocks = |bytes: usize| bytes.div_ceil(64);
        for f in 1..=3 {
            for entry in 0..=3 * f {
                let (ack, ring) = (path(f, entry as u8), path(f, ((entry + 3 * f) % (3 * f + 1)) as u8));
                let (mut pairs, mut apart, mut together) = (0, 0, 0);
                for maker in 0..ring.exit() {
                    let (of_ack, of_ring) = (length(&ack, maker + ack.exit()), length(&ring, maker));
                    let joint = ring.successors(maker).filter(|receiver| *receiver <= ring.exit()).count();
                    pairs += joint;
                    apart += joint * (blocks(of_ack) + blocks(of_ring));
                    together += joint * blocks(of_ack + of_ring);
                }
                assert!(7 * together >= 6 * apart, "f = {f}, entry r{entry}: {together}, {apart}");
                for b in [1, 10, 64] {
                    let expected = 2 * (f + 1) * (b + 3 * f + 1 + longer(&ring));
                    assert_eq!(macs(&ring, b) - 2 * pairs, expected, "f = {f}, b = {b}, entry r{entry}");
                }
            }
        }
    }

    #[test]
    fn all_entries_are_asked_equally_often() {
        for n in [4, 7, 10] {
            let replicas = Replicas::of(n).unwrap();
            let client = ClientId { identity: IdentityId(3), session: 7 };
            let choose = |time: u64, attempt| Path::entry_for(replicas, client, Timestamp(time), attempt);
            let mut asked = BTreeMap::new();
            for time in 0..60 * n as u64 {
                *asked.entry(choose(time, 0)).or_insert(0) += 1;
                assert_ne!(choose(time, 0), choose(time, 1), "another one is asked next");
            }
            assert_eq!(asked.len(), n);
            assert!(asked.values().all(|times| *times == 60), "{asked:?}");
        }
    }

    #[test]
    fn an_entry_that_does_not_exist_is_no_reason_to_panic() {
        for entry in 0..=u8::MAX {
            assert!(path(1, entry).offset(ReplicaId(3)) < 4);
        }
    }
}
