//! Who authenticates what for whom: the sets of section 5.2 of the paper, as functions of places in the chain.
//!
//! The place of a replica is its distance from the head, 0 to n−1. The client stands before place 0 and after the last.
//! The paper writes the sets for n = 3f + 1, where the last f+1 places begin with 2f. What they are for holds for every
//! n: f+1 places in a row have a correct replica among them.

use crate::ids::ReplicaId;
use crate::replicas::Replicas;
use core::ops::RangeInclusive;

/// The chain of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    head: ReplicaId,
    replicas: Replicas,
}

impl Topology {
    /// The chain that begins with this head.
    pub const fn new(replicas: Replicas, head: ReplicaId) -> Self {
        assert!(replicas.contains(head), "the head is a replica");
        Self { head, replicas }
    }

    /// The place of a replica.
    pub const fn place(&self, replica: ReplicaId) -> usize {
        self.replicas.distance(self.head, replica)
    }

    /// The replica at a place.
    pub const fn at(&self, place: usize) -> ReplicaId {
        assert!(place < self.replicas.n(), "the tail has the last place");
        self.replicas.after(self.head, place)
    }

    /// The last place: the tail, which answers.
    pub const fn tail(&self) -> usize {
        self.replicas.n() - 1
    }

    /// Succ(c): the places whose replicas check the client's MACs, the first f+1.
    pub const fn client_receivers(&self) -> RangeInclusive<usize> {
        0..=self.replicas.weak() - 1
    }

    /// Whether the replica at this place executes before it passes on, and vouches for the results to those behind it:
    /// all but the first f.
    pub const fn executes(&self, place: usize) -> bool {
        place + 1 >= self.replicas.weak()
    }

    /// Whether the replica at this place compares what it came to with what the place before did.
    pub const fn compares(&self, place: usize) -> bool {
        place > 0 && self.executes(place - 1)
    }

    /// Whether the replica at this place vouches to the client: the last f+1.
    pub const fn is_last(&self, place: usize) -> bool {
        self.reply_tags(place) > 0
    }

    /// Succ(p) among replicas: the next f+1 places, or all that are left.
    pub fn successors(&self, place: usize) -> RangeInclusive<usize> {
        place + 1..=(place + self.replicas.weak()).min(self.tail())
    }

    /// Pred(q) among replicas: whose MACs the replica at place q checks.
    pub fn predecessors(&self, place: usize) -> impl Iterator<Item = usize> + use<> {
        let topology = *self;
        (0..place).filter(move |earlier| topology.successors(*earlier).contains(&place))
    }

    /// The MACs that the link from a place to the next one carries, as (maker, receiver), in their order on the wire:
    /// the maker is at this place or before it, the receiver after it.
    pub fn carried(&self, place: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let topology = *self;
        (0..=place).flat_map(move |maker| {
            topology.successors(maker).filter(move |receiver| *receiver > place).map(move |receiver| (maker, receiver))
        })
    }

    /// How many MACs of a client travel with each of its requests on the link that leaves a place.
    pub const fn client_tags(&self, place: usize) -> usize {
        self.replicas.weak().saturating_sub(place + 1)
    }

    /// How many MACs for the client travel with each request on the link that leaves a place.
    pub const fn reply_tags(&self, place: usize) -> usize {
        (place + self.replicas.weak()).saturating_sub(self.tail())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn topology(f: usize) -> Topology {
        Topology::new(Replicas::of(3 * f + 1).unwrap(), ReplicaId(0))
    }

    /// The sets of `docs/papers/abstract.md`, for f = 1 and 2.
    #[test]
    fn the_sets_are_the_papers() {
        let one = topology(1);
        let predecessors = |t: &Topology, place| t.predecessors(place).collect::<Vec<_>>();
        let ends = |t: &Topology| (0..=t.tail()).map(|place| *t.successors(place).end()).collect::<Vec<_>>();
        assert_eq!(ends(&one), [2, 3, 3, 3]);
        assert_eq!(predecessors(&one, 2), [0, 1]);
        assert_eq!(predecessors(&one, 3), [1, 2]);
        let two = topology(2);
        assert_eq!(ends(&two), [3, 4, 5, 6, 6, 6, 6]);
        assert_eq!(predecessors(&two, 5), [2, 3, 4]);
    }

    /// MACs on each hop: own ones, and those forwarded to replicas further on; with the client's at both ends.
    #[test]
    fn hops_carry_what_the_note_lists() {
        let sizes = |t: &Topology| {
            (0..=t.tail())
                .map(|place| t.carried(place).count() + t.client_tags(place) + t.reply_tags(place))
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(&topology(1)), [3, 3, 3, 2]);
        assert_eq!(sizes(&topology(2)), [5, 6, 6, 6, 6, 5, 3]);
        for f in 1..=6 {
            let inside = (f + 1) * (f + 2) / 2;
            assert!(sizes(&topology(f))[f..=2 * f].iter().all(|size| *size == inside), "f = {f}");
            assert_eq!(topology(f).client_receivers().count(), f + 1);
        }
    }

    /// What the module of Chain says of every n: those whose MACs are checked, those who vouch to the client, and those
    /// who check the client's are f+1 each, or all that are before; and n−f execute.
    #[test]
    fn each_set_has_a_correct_replica_for_every_n() {
        for (n, f) in (1..=64).flat_map(|n| (0..=(n - 1) / 3).map(move |f| (n, f))) {
            let topology = Topology::new(Replicas::new(n, f).unwrap(), ReplicaId(0));
            let count = |is: &dyn Fn(usize) -> bool| (0..n).filter(|place| is(*place)).count();
            for place in 0..n {
                assert_eq!(topology.predecessors(place).count(), place.min(f + 1), "{n}, {f}");
                let client = topology.client_receivers().contains(&place);
                assert!(topology.predecessors(place).count() + usize::from(client) > 0, "{n}, {f}");
            }
            assert_eq!(count(&|place| topology.is_last(place)), f + 1);
            assert_eq!(count(&|place| topology.client_receivers().contains(&place)), f + 1);
            assert_eq!(count(&|place| topology.executes(place)), n - f);
            assert_eq!(count(&|place| topology.compares(place)), n - f - 1);
            assert_eq!(topology.reply_tags(topology.tail()), f + 1);
            assert!(
                (0..n).all(|place| !topology.is_last(place) || topology.executes(place)),
                "who vouches has executed"
            );
        }
    }

    #[test]
    fn places_count_from_the_head() {
        let turned = Topology::new(Replicas::of(4).unwrap(), ReplicaId(3));
        assert_eq!((0..4).map(|id| turned.place(ReplicaId(id))).collect::<Vec<_>>(), [1, 2, 3, 0]);
        assert_eq!(turned.at(1), ReplicaId(0));
    }
}
