//! The replicas: how many there are, how many of them may be faulty, and what sets of them are worth.
//!
//! # The fault model
//! At most f of n ≥ 3f + 1 replicas are faulty: they do anything at all, together. It is the only one. Every threshold
//! is named here, and whoever needs one asks for it by its name: with more replicas than 3f + 1 no sum of f's is right
//! everywhere. *Quorum* is a protocol in this project, so that the sets have other names.
//!
//! | name | how many | n = 3f + 1 | what they are worth |
//! |---|---|---|---|
//! | [`weak`](Replicas::weak) | f + 1 | f + 1 | one of them is correct |
//! | [`strong`](Replicas::strong) | ⌈(n + f + 1) / 2⌉ | 2f + 1 | two such sets share a correct replica |
//! | [`reachable`](Replicas::reachable) | n − f | 2f + 1 | they answer although f do not |
//! | [`blocking`](Replicas::blocking) | n − strong + 1 | f + 1 | they share a replica with every strong set |
//! | [`honest`](Replicas::honest) | n − 2f | f + 1 | so many of any n − f are correct |
//! | [`all`](Replicas::all) | n | 3f + 1 | every correct replica is among them |
//!
//! # Why
//! * *weak.* At most f of f + 1 are faulty.
//! * *Two strong sets share a correct replica.* Each leaves out n − strong, so that they share 2·strong − n ≥ f + 1.
//! * *The correct ones are a strong set.* n ≥ 3f + 1 gives 2(n − f) ≥ n + f + 1. So waiting for a strong set ends,
//!   and so does waiting for n − f.
//! * *A strong set holds weak many correct ones.* strong ≥ (4f + 2) / 2 = 2f + 1, of which f are faulty at most.
//! * *All but a strong set and some that are faulty are blocking.* If n − f have spoken, at most n − strong of them are
//!   outside of a given strong set. The others are n − f − (n − strong) = strong − f. They are as many as blocking,
//!   since 2·strong ≥ n + f + 1. So what a strong set has in common is seen among any n − f, whoever they are.
//! * *blocking is weak at least.* strong ≤ n − f gives n − strong + 1 ≥ f + 1.
//! * *The correct ones among n − f are blocking:* n − 2f ≥ n − strong + 1, since strong ≥ 2f + 1.
//!
//! The tests count all of that out, for every n and f that there are.

use crate::ids::{ReplicaId, View};
use crate::wire_struct;
use core::fmt;

/// The largest cluster: replica numbers fit in a byte, and sets of replicas in one `u64`.
pub const REPLICAS_MAX: usize = 64;

/// Why there cannot be such replicas: shown to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicasError {
    /// n < 3f + 1.
    TooFew {
        /// Replicas named.
        n: usize,
        /// Faults to be tolerated.
        f: usize,
    },
    /// More than [`REPLICAS_MAX`].
    TooMany {
        /// Replicas named.
        n: usize,
    },
}

impl fmt::Display for ReplicasError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooFew { n, f } => {
                let needed = f.saturating_mul(3).saturating_add(1);
                write!(out, "{n} replicas cannot tolerate {f} liars: at least 3·{f}+1 = {needed} are needed")
            }
            Self::TooMany { n } => write!(out, "{n} replicas are too many: at most {REPLICAS_MAX}"),
        }
    }
}

impl core::error::Error for ReplicasError {}

/// n replicas, 0 to n − 1, of which f may be faulty; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    n: u8,
    f: u8,
}

impl Replicas {
    /// n replicas that tolerate f faulty ones.
    ///
    /// # Errors
    /// [`ReplicasError`] unless 3f + 1 ≤ n ≤ [`REPLICAS_MAX`].
    pub const fn new(n: usize, f: usize) -> Result<Self, ReplicasError> {
        if n > REPLICAS_MAX {
            return Err(ReplicasError::TooMany { n });
        }
        if f > n || n < 3 * f + 1 {
            return Err(ReplicasError::TooFew { n, f });
        }
        Ok(Self { n: n as u8, f: f as u8 })
    }

    /// n replicas that tolerate as many faulty ones as n allows.
    ///
    /// # Errors
    /// [`ReplicasError`] if n is 0 or more than [`REPLICAS_MAX`].
    pub const fn of(n: usize) -> Result<Self, ReplicasError> {
        Self::new(n, n.saturating_sub(1) / 3)
    }

    /// n: how many there are.
    pub const fn n(&self) -> usize {
        self.n as usize
    }

    /// f: how many of them may be faulty. To be shown, or for a formula that counts faulty replicas; who asks whether
    /// enough have said something wants one of the thresholds below.
    pub const fn faults(&self) -> usize {
        self.f as usize
    }

    /// f + 1: at least one of them is correct.
    pub const fn weak(&self) -> usize {
        self.faults() + 1
    }

    /// ⌈(n + f + 1) / 2⌉: two such sets share at least f + 1 replicas, hence a correct one. 2f + 1 when n = 3f + 1.
    pub const fn strong(&self) -> usize {
        (self.n() + self.faults() + 2) / 2
    }

    /// n − f: as many are left when f are down or mute. 2f + 1 when n = 3f + 1; more than [`Replicas::strong`] where n
    /// has more to spare.
    pub const fn reachable(&self) -> usize {
        self.n() - self.faults()
    }

    /// n − strong + 1: so many share one with every strong set, so that where they say otherwise no strong set can be.
    /// f + 1 when n = 3f + 1, never less.
    pub const fn blocking(&self) -> usize {
        self.n() - self.strong() + 1
    }

    /// n − 2f: so many of any n − f are correct, and say the same if all correct ones do. f + 1 when n = 3f + 1, never
    /// less.
    pub const fn honest(&self) -> usize {
        self.n() - 2 * self.faults()
    }

    /// n, where everybody must have said so.
    pub const fn all(&self) -> usize {
        self.n()
    }

    /// What a correct replica has or exceeds: the highest value that is reached by f + 1 of those that replicas name;
    /// none if there are fewer. Nobody lies it up.
    pub fn reached<T: Ord>(&self, values: impl IntoIterator<Item = T>) -> Option<T> {
        let mut values: alloc::vec::Vec<T> = values.into_iter().collect();
        values.sort_unstable_by(|one, other| other.cmp(one));
        values.into_iter().nth(self.faults())
    }

    /// What the arguments for safety and progress rest on, whatever n and f are.
    pub(crate) const fn check_invariants(self) {
        assert!(self.n() > 3 * self.faults() && self.n() <= REPLICAS_MAX, "3f + 1 to REPLICAS_MAX replicas");
        assert!(2 * self.strong() > self.n() + self.faults(), "two strong sets share a correct replica");
        assert!(self.strong() <= self.reachable(), "the correct replicas are a strong set");
        assert!(self.blocking() > self.faults(), "who is in every strong set is not liars alone");
        assert!(self.weak() <= self.strong(), "a strong set has a correct replica");
    }

    /// The primary of a view.
    pub const fn primary(&self, view: View) -> ReplicaId {
        ReplicaId((view.0 % self.n as u64) as u8)
    }

    /// Every replica.
    pub fn iter(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        (0..self.n).map(ReplicaId)
    }

    /// The replica that comes so many places after this one; the first comes after the last.
    pub const fn after(&self, replica: ReplicaId, places: usize) -> ReplicaId {
        ReplicaId(((replica.0 as usize + places) % self.n()) as u8)
    }

    /// The replica after this one.
    pub const fn next(&self, replica: ReplicaId) -> ReplicaId {
        self.after(replica, 1)
    }

    /// How many places one replica comes after another. One that does not exist has a place as well.
    pub const fn distance(&self, from: ReplicaId, to: ReplicaId) -> usize {
        (to.0 as usize + self.n() - from.0 as usize % self.n()) % self.n()
    }

    /// Whether there is such a replica.
    pub const fn contains(&self, replica: ReplicaId) -> bool {
        replica.0 < self.n
    }
}

/// Some of the replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Bit i stands for replica i.
    bits: u64,
}
wire_struct!(ReplicaSet { bits });

impl ReplicaSet {
    /// Nobody.
    pub const NOBODY: Self = Self { bits: 0 };

    /// Whether it is one of them.
    pub const fn contains(self, replica: ReplicaId) -> bool {
        (replica.0 as usize) < REPLICAS_MAX && self.bits >> replica.0 & 1 == 1
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Adds one.
    pub fn insert(&mut self, replica: ReplicaId) {
        self.bits |= 1u64.checked_shl(replica.0.into()).unwrap_or(0);
    }

    /// How many they are.
    pub const fn len(self) -> usize {
        self.bits.count_ones() as usize
    }
}

impl FromIterator<ReplicaId> for ReplicaSet {
    fn from_iter<T: IntoIterator<Item = ReplicaId>>(replicas: T) -> Self {
        let mut set = Self::NOBODY;
        replicas.into_iter().for_each(|replica| set.insert(replica));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All that there are.
    fn every() -> impl Iterator<Item = Replicas> {
        (1..=REPLICAS_MAX).flat_map(|n| (0..=(n - 1) / 3).map(move |f| Replicas::new(n, f).unwrap()))
    }

    #[test]
    fn thresholds_are_the_papers_when_n_is_3f_plus_1() {
        for f in 0..=21 {
            let replicas = Replicas::of(3 * f + 1).unwrap();
            assert_eq!(replicas.faults(), f);
            assert_eq!((replicas.weak(), replicas.strong(), replicas.all()), (f + 1, 2 * f + 1, 3 * f + 1));
            assert_eq!((replicas.blocking(), replicas.reachable()), (f + 1, 2 * f + 1));
        }
    }

    /// The module's arguments, counted out; the fewest that do, too: one less would not.
    #[test]
    fn thresholds_are_worth_what_the_module_says() {
        for replicas in every() {
            let (n, f, case) = (replicas.n(), replicas.faults(), replicas);
            let (weak, strong) = (replicas.weak(), replicas.strong());
            let (reachable, blocking) = (replicas.reachable(), replicas.blocking());
            let shared = |one: usize, other: usize| (one + other).saturating_sub(n);
            assert!(weak > f && weak - 1 <= f, "{case:?}");
            assert!(shared(strong, strong) > f && shared(strong - 1, strong - 1) <= f, "{case:?}");
            assert!(n - f >= strong && n - f >= reachable && n - f < reachable + 1, "{case:?}");
            assert!(strong - f >= weak, "{case:?}");
            assert!(shared(blocking, strong) > 0 && shared(blocking - 1, strong) == 0, "{case:?}");
            assert!(blocking >= weak && blocking <= strong && strong <= reachable, "{case:?}");
            let outside = n - strong;
            assert!(reachable - outside >= blocking && reachable - f >= blocking, "{case:?}");
            assert!(blocking > outside.max(f), "{case:?}");
        }
    }

    #[test]
    fn too_few_and_too_many_are_refused() {
        let error = Replicas::new(3, 1).unwrap_err();
        assert_eq!(alloc::format!("{error}"), "3 replicas cannot tolerate 1 liars: at least 3·1+1 = 4 are needed");
        assert_eq!(Replicas::of(0), Err(ReplicasError::TooFew { n: 0, f: 0 }));
        assert_eq!(Replicas::new(65, 1), Err(ReplicasError::TooMany { n: 65 }));
        assert_eq!(Replicas::new(64, usize::MAX), Err(ReplicasError::TooFew { n: 64, f: usize::MAX }));
    }

    /// Sets as the bits of a number, with some replicas in them and others faulty.
    fn sets() -> impl Strategy<Value = (Replicas, u64, u64, u64)> {
        let sizes = (1..=REPLICAS_MAX).prop_flat_map(|n| (Just(n), 0..=(n - 1) / 3));
        sizes.prop_flat_map(|(n, f)| {
            let replicas = Replicas::new(n, f).unwrap();
            let set = move |size: usize| {
                let all = proptest::sample::subsequence((0..n).collect::<alloc::vec::Vec<_>>(), size);
                all.prop_map(|members| members.into_iter().fold(0_u64, |bits, id| bits | 1 << id))
            };
            let (strong, reachable) = (replicas.strong(), replicas.reachable());
            (Just(replicas), set(f), set(strong), prop_oneof![set(strong), set(reachable)])
        })
    }

    proptest! {
        #[test]
        fn sets_meet_where_the_module_says_so((replicas, faulty, one, other) in sets()) {
            let count = |bits: u64| bits.count_ones() as usize;
            let correct = replicas.iter().fold(0_u64, |bits, id| bits | 1 << id.0) & !faulty;
            prop_assert!(count(correct) >= replicas.strong());
            prop_assert!(one & other & correct != 0, "a correct one in common");
            prop_assert!(count(one & correct) >= replicas.weak());
            if count(other) >= replicas.reachable() {
                prop_assert!(count(one & other) >= replicas.blocking());
                prop_assert!(count(other & correct) >= replicas.blocking());
            }
        }

        #[test]
        fn what_is_reached_no_liar_has_made_up(
            (replicas, faulty, one, _) in sets(),
            values in proptest::collection::vec(0_u8..8, REPLICAS_MAX),
        ) {
            let value = |id: ReplicaId| values[usize::from(id.0)];
            let said = |of: u64| replicas.iter().filter(move |id| of >> id.0 & 1 == 1).map(value);
            let reached = replicas.reached(said(one));
            let correct = said(one & !faulty);
            prop_assert!(reached.is_some() && reached <= correct.max());
        }
    }

    #[test]
    fn places_go_around() {
        for replicas in every() {
            for (from, to) in replicas.iter().flat_map(|from| replicas.iter().map(move |to| (from, to))) {
                assert_eq!(replicas.after(from, replicas.distance(from, to)), to);
            }
            let last = ReplicaId(replicas.n() as u8 - 1);
            assert_eq!(replicas.next(last), ReplicaId(0));
            assert!(replicas.contains(last) && !replicas.contains(ReplicaId(replicas.n() as u8)));
        }
    }
}
