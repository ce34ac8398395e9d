//! Who authenticates what for whom: the sets of section 4.3 of the thesis, as functions of positions.
//!
//! A request of entry e goes twice around the ring: over 2n *positions*, of which 0 to n−1 are the RING pass and n to
//! 2n−1 the ACK pass. Position p is replica e + p. Every rule is one on positions; the thesis writes them as intervals
//! of replicas, which go wrong where the two passes meet (F9).

use crate::cluster::{ClientId, Cluster, ReplicaId, Timestamp};
use core::ops::{Range, RangeInclusive};

/// The way of one entry's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    entry: ReplicaId,
    sequencer: ReplicaId,
    n: usize,
    f: usize,
    last: usize,
}

impl Path {
    /// The way from an entry, where this replica is the sequencer.
    pub const fn new(cluster: &Cluster, sequencer: ReplicaId, entry: ReplicaId) -> Self {
        Self { entry, sequencer, n: cluster.n, f: cluster.f, last: 2 * cluster.n - 1 }
    }

    /// The way of a probe: one position longer, so that it comes back to the entry when all others have seen it twice.
    pub const fn of_probe(cluster: &Cluster, sequencer: ReplicaId, entry: ReplicaId) -> Self {
        Self { last: 2 * cluster.n, ..Self::new(cluster, sequencer, entry) }
    }

    /// The replica that a client asks: one for each request and attempt, so that all are asked equally often, and the
    /// next one after one that did not serve it.
    pub fn entry_for(
        cluster: &Cluster,
        sequencer: ReplicaId,
        client: ClientId,
        timestamp: Timestamp,
        attempt: u64,
    ) -> ReplicaId {
        let allowed = || cluster.replicas().filter(|entry| Self::new(cluster, sequencer, *entry).is_allowed());
        let count = allowed().count().max(1) as u64;
        let choice = (u64::from(client.session) % count + timestamp.0 % count + attempt) % count;
        allowed().nth(choice as usize).unwrap_or(sequencer)
    }

    /// Whether clients may ask this entry. The sequencer must not come before f + 1 replicas have checked the client's
    /// MACs, and a replica that would strike a request after it has a number would leave a gap (F16).
    pub const fn is_allowed(&self) -> bool {
        let offset = self.offset(self.sequencer);
        offset == 0 || offset >= self.f
    }

    /// Where a replica is in the RING pass.
    pub const fn offset(&self, replica: ReplicaId) -> usize {
        (replica.0 as usize + self.n - self.entry.0 as usize) % self.n
    }

    /// The replica at a position.
    pub const fn at(&self, position: usize) -> ReplicaId {
        ReplicaId(((self.entry.0 as usize + position) % self.n) as u8)
    }

    /// The first position whose messages are ACKs: that of the exit, in the RING pass.
    pub const fn exit(&self) -> usize {
        self.n - 1
    }

    /// The last position: the exit again, which answers the client; of a probe, the entry.
    pub const fn last(&self) -> usize {
        self.last
    }

    /// What the link that leaves a position belongs to: 0 the RING pass, 1 the ACK pass, 2 the last link of a probe.
    /// MACs cover it, so that one for a replica in one pass is none in another.
    pub const fn pass(&self, position: usize) -> u8 {
        ((position + 1) / self.n) as u8
    }

    /// σ: where the sequencer gives a number. A sequencer that is the entry itself waits for the ACK pass, when others
    /// have checked the client's MACs as well (F16).
    pub const fn stamp(&self) -> usize {
        match self.offset(self.sequencer) {
            0 => self.n,
            offset => offset,
        }
    }

    /// Whether the replica at this position logs and executes: each replica does at one position, from the sequencer
    /// on.
    pub const fn executes(&self, position: usize) -> bool {
        position >= self.stamp() && position < self.stamp() + self.n
    }

    /// Whether what arrives here has a number in it: the sequencer has been passed, and this replica does not have the
    /// number yet.
    pub const fn is_told(&self, position: usize) -> bool {
        let is_probe = self.last == 2 * self.n;
        position > self.stamp() && (is_probe || self.executes(position))
    }

    /// Whether a replica here checks the client's MAC.
    pub const fn checks_client(&self, position: usize) -> bool {
        position <= self.f
    }

    /// Whether a replica here may strike a request: where clients' MACs are checked, and where the number is given.
    pub const fn may_strike(&self, position: usize) -> bool {
        self.checks_client(position) || position == self.stamp()
    }

    /// Whether a replica here vouches to the client: Σ_last, the last f + 1 positions.
    pub const fn is_last(&self, position: usize) -> bool {
        self.reply_tags(position) > 0
    }

    /// ←r: the positions whose MACs a replica here checks.
    pub const fn predecessors(&self, position: usize) -> Range<usize> {
        position.saturating_sub(self.f + 1)..position
    }

    /// →r: the positions that a replica here makes MACs for.
    pub fn successors(&self, position: usize) -> RangeInclusive<usize> {
        position + 1..=(position + self.f + 1).min(self.last())
    }

    /// The MACs that the link from a position to the next one carries, as (maker, receiver), in their order on the
    /// wire.
    pub fn carried(&self, position: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let path = *self;
        (position.saturating_sub(path.f)..=position).flat_map(move |maker| {
            path.successors(maker).filter(move |receiver| *receiver > position).map(move |receiver| (maker, receiver))
        })
    }

    /// How many MACs of a client travel with each request on the link that leaves a position.
    pub const fn client_tags(&self, position: usize) -> usize {
        self.f.saturating_sub(position)
    }

    /// How many MACs for the client travel with each request on the link that leaves a position.
    pub const fn reply_tags(&self, position: usize) -> usize {
        if self.last == 2 * self.n {
            return 0;
        }
        (position + self.f + 1).saturating_sub(self.last)
    }

    /// The replicas that vouch to the client, in the order of their positions; not for probes, which have no client.
    pub fn vouchers(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        let path = *self;
        (path.last() - path.f..=path.last()).map(move |position| path.at(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::IdentityId;
    use alloc::collections::BTreeMap;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    fn path(f: usize, entry: u8) -> Path {
        Path::new(&Cluster::of([0; 16], 3 * f + 1).unwrap(), ReplicaId(0), ReplicaId(entry))
    }

    /// One line for each position, as the note's `ra_tables.py` prints it: whose MACs are checked, of which kind, with
    /// a number or without; what is sent on; for whom MACs are made; whether the replica executes.
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

    /// What the proofs of P1 to P3 use, for every f, entry and sequencer.
    #[test]
    fn the_sets_are_what_the_proofs_need() {
        for f in 1..=3 {
            let cluster = Cluster::of([0; 16], 3 * f + 1).unwrap();
            for (entry, sequencer) in cluster.replicas().flat_map(|e| cluster.replicas().map(move |s| (e, s))) {
                let path = Path::new(&cluster, sequencer, entry);
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
                assert_eq!(executing.len(), cluster.n, "each replica executes once");
                assert_eq!(path.at(executing[0]), sequencer);
                assert_eq!(path.vouchers().count(), f + 1);
                if path.is_allowed() {
                    assert!(path.stamp() >= f, "nothing is struck after the number is given");
                }
            }
        }
    }

    /// (7.1) and (7.3) as the note derives them: (f+1)(2b + 11f + 2) MACs made and checked for a batch of b.
    #[test]
    fn the_sets_add_up_to_the_formula() {
        for f in 1..=3 {
            for b in [1, 10, 100] {
                let path = path(f, 1);
                let of_clients = |at: bool| if at { b } else { 0 };
                let total: usize = (0..=path.last())
                    .map(|p| {
                        let between = path.predecessors(p).count() + path.successors(p).count();
                        between + of_clients(path.checks_client(p)) + of_clients(path.is_last(p))
                    })
                    .sum();
                assert_eq!(total, (f + 1) * (2 * b + 11 * f + 2), "f = {f}, b = {b}");
            }
        }
    }

    #[test]
    fn all_entries_that_may_be_asked_are_asked_equally_often() {
        for (f, forbidden) in [(1, 0), (2, 1), (3, 2)] {
            let cluster = Cluster::of([0; 16], 3 * f + 1).unwrap();
            let client = ClientId { identity: IdentityId(3), session: 7 };
            let choose = |time: u64, attempt| Path::entry_for(&cluster, ReplicaId(1), client, Timestamp(time), attempt);
            let mut asked = BTreeMap::new();
            for time in 0..60 * (cluster.n - forbidden) as u64 {
                *asked.entry(choose(time, 0)).or_insert(0) += 1;
                assert_ne!(choose(time, 0), choose(time, 1), "another one is asked next");
            }
            assert_eq!(asked.len(), cluster.n - forbidden);
            assert!(asked.values().all(|times| *times == 60), "{asked:?}");
        }
    }
}
