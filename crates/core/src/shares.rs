//! Who holds how much of something that is bounded.
//!
//! An identity may open as many sessions as it likes, so a bound for each session is none. Whatever waits for
//! clients here is bounded in number and in bytes over all of them, and counted for each *owner*: an identity of the
//! cluster file or a member. All who ask to join are one owner, because a key costs nothing.
//!
//! # The rule
//! As long as there is room, whoever comes gets it: one busy client may have all. When there is none, the owner that
//! holds most gives something up, if it holds more than the newcomer will. So what one owner holds costs others
//! nothing; and nobody takes in turns what the other has just got, since whoever gives way still holds as much as the
//! newcomer did.
//!
//! What is held is the container's affair: [`Shares`] counts, and says who gives way.

use crate::cluster::Limits;
use crate::ids::{ClientId, IdentityId};
use alloc::collections::{BTreeMap, BTreeSet};

/// The most of something, over all owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Of items.
    pub(crate) number: usize,
    /// Of their bytes.
    pub(crate) bytes: usize,
}

impl Bounds {
    /// Of requests that wait to be ordered.
    pub(crate) const fn of_waiting(limits: &Limits) -> Self {
        Self { number: limits.pending_requests_max, bytes: limits.pending_bytes_max }
    }
}

/// What one owner holds, or all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    number: usize,
    bytes: usize,
}

impl Share {
    const fn with(self, bytes: usize) -> Self {
        Self { number: self.number + 1, bytes: self.bytes + bytes }
    }

    /// Part of the one bound and part of the other, added.
    const fn weight(self, bounds: Bounds) -> u128 {
        self.number as u128 * bounds.bytes as u128 + self.bytes as u128 * bounds.number as u128
    }
}

/// Where one more item finds room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room<O> {
    /// There is some.
    Free,
    /// In the place of something that this owner holds.
    InPlaceOf(O),
    /// Nowhere.
    None,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Shares<O> {
    of: BTreeMap<O, Share>,
    all: Share,
}

impl<O> Default for Shares<O> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), all: Share::default() }
    }
}

impl<O: Copy + Ord> Shares<O> {
    /// Bytes of all owners.
    pub(crate) const fn bytes(&self) -> usize {
        self.all.bytes
    }

    /// Where one more item of an owner, of so many bytes, finds room.
    pub(crate) fn room(&self, owner: O, bytes: usize, bounds: Bounds) -> Room<O> {
        let all = self.all.with(bytes);
        if all.number <= bounds.number && all.bytes <= bounds.bytes {
            return Room::Free;
        }
        let newcomer = self.of.get(&owner).copied().unwrap_or_default().with(bytes).weight(bounds);
        let largest = self.of.iter().max_by_key(|(_, share)| share.weight(bounds));
        match largest {
            Some((largest, share)) if *largest != owner && share.weight(bounds) > newcomer => Room::InPlaceOf(*largest),
            _ => Room::None,
        }
    }

    /// Whether an owner alone keeps to bounds with one more item of so many bytes.
    pub(crate) fn keeps_to(&self, owner: O, bytes: usize, bounds: Bounds) -> bool {
        let share = self.of.get(&owner).copied().unwrap_or_default().with(bytes);
        share.number <= bounds.number && share.bytes <= bounds.bytes
    }

    /// One more is held.
    pub(crate) fn add(&mut self, owner: O, bytes: usize) {
        let share = self.of.entry(owner).or_default();
        *share = share.with(bytes);
        self.all = self.all.with(bytes);
    }

    /// One less is.
    ///
    /// # Panics
    /// If the owner does not hold it.
    pub(crate) fn remove(&mut self, owner: O, bytes: usize) {
        let share = self.of.get_mut(&owner).expect("what is removed was added");
        assert!(share.bytes >= bytes, "nobody gives up more than it holds");
        for share in [&mut *share, &mut self.all] {
            share.number -= 1;
            share.bytes -= bytes;
        }
        if share.number == 0 {
            self.of.remove(&owner);
        }
    }
}

impl<O: Copy + Ord> Shares<O> {
    /// What is true between steps, where the container holds so many items and bytes.
    pub(crate) fn check_invariants(&self, number: usize, bytes: usize) {
        let held = Share { number, bytes };
        assert_eq!(self.all, held, "what is counted is what is held");
        let add = |sum: Share, of: &Share| Share { number: sum.number + of.number, bytes: sum.bytes + of.bytes };
        let sum = self.of.values().fold(Share::default(), add);
        assert_eq!(sum, self.all, "what all hold is what each of them holds");
        assert!(self.of.values().all(|share| share.number > 0), "who holds nothing is forgotten");
    }
}

/// Who owns what a client asks for.
pub(crate) const fn owner_of(client: ClientId) -> IdentityId {
    if client.identity.is_joining() { IdentityId::JOINING } else { client.identity }
}

/// Clients that are to be told something: so many that an identity that knows of more sessions than it has costs others
/// nothing. Whoever finds no room asks again.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSet {
    clients: BTreeSet<ClientId>,
    shares: Shares<IdentityId>,
}

/// The most that one of them holds.
pub(crate) const CLIENT_SET_MAX: usize = 4_096;

impl ClientSet {
    /// Adds a client, if there is room.
    pub(crate) fn insert(&mut self, client: ClientId) {
        if self.clients.contains(&client) {
            return;
        }
        match self.shares.room(client.identity, 0, Bounds { number: CLIENT_SET_MAX, bytes: usize::MAX }) {
            Room::Free => {}
            Room::InPlaceOf(identity) => {
                let last = self.clients.range(..=ClientId { identity, session: u32::MAX }).next_back().copied();
                let given = last.expect("whoever gives way has something");
                self.clients.remove(&given);
                self.shares.remove(identity, 0);
            }
            Room::None => return,
        }
        self.clients.insert(client);
        self.shares.add(client.identity, 0);
    }

    /// Adds clients, as long as there is room.
    pub(crate) fn extend(&mut self, clients: impl IntoIterator<Item = ClientId>) {
        clients.into_iter().for_each(|client| self.insert(client));
    }

    /// What is true between steps.
    pub(crate) fn check_invariants(&self) {
        assert!(self.clients.len() <= CLIENT_SET_MAX, "at most CLIENT_SET_MAX");
        self.shares.check_invariants(self.clients.len(), 0);
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ClientId> {
        self.clients.iter().copied()
    }
}
