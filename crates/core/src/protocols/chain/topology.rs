//! Who authenticates what for whom: the sets of section 5.2 of the paper, as functions of places in the chain.
//!
//! The place of a replica is its distance from the head, 0 to 3f. The client stands before place 0 and after place 3f.

use crate::cluster::Cluster;
use crate::ids::ReplicaId;
use core::ops::RangeInclusive;

/// The chain of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    head: ReplicaId,
    n: usize,
    f: usize,
}

impl Topology {
    /// The chain that begins with this head.
    pub const fn new(cluster: &Cluster, head: ReplicaId) -> Self {
        assert!(cluster.contains(head), "the head is a replica");
        Self { head, n: cluster.n, f: cluster.f }
    }

    /// The place of a replica.
    pub const fn place(&self, replica: ReplicaId) -> usize {
        (replica.0 as usize + self.n - self.head.0 as usize) % self.n
    }

    /// The replica at a place.
    pub const fn at(&self, place: usize) -> ReplicaId {
        assert!(place < self.n, "the tail has the last place");
        ReplicaId(((self.head.0 as usize + place) % self.n) as u8)
    }

    /// The last place: the tail, which answers.
    pub const fn tail(&self) -> usize {
        self.n - 1
    }

    /// Succ(c): the places whose replicas check the client's MACs, 0 to f.
    pub const fn client_receivers(&self) -> RangeInclusive<usize> {
        0..=self.f
    }

    /// Whether the replica at this place executes before it passes on, and vouches for the results to those behind it:
    /// f to 3f.
    pub const fn executes(&self, place: usize) -> bool {
        place >= self.f
    }

    /// Whether the replica at this place vouches to the client: 2f to 3f.
    pub const fn is_last(&self, place: usize) -> bool {
        place >= 2 * self.f
    }

    /// Succ(p) among replicas: the next f+1 places, or all that are left.
    pub fn successors(&self, place: usize) -> RangeInclusive<usize> {
        let end = if self.is_last(place) { self.tail() } else { (place + self.f + 1).min(self.tail()) };
        place + 1..=end
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
        self.f.saturating_sub(place)
    }

    /// How many MACs for the client travel with each request on the link that leaves a place.
    pub const fn reply_tags(&self, place: usize) -> usize {
        (place + 1).saturating_sub(2 * self.f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn topology(f: usize) -> Topology {
        Topology::new(&Cluster::of([0; 16], 3 * f + 1).unwrap(), ReplicaId(0))
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

    #[test]
    fn places_count_from_the_head() {
        let turned = Topology::new(&Cluster::of([0; 16], 4).unwrap(), ReplicaId(3));
        assert_eq!((0..4).map(|id| turned.place(ReplicaId(id))).collect::<Vec<_>>(), [1, 2, 3, 0]);
        assert_eq!(turned.at(1), ReplicaId(0));
    }
}
