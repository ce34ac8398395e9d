//! Messages for an instance that this replica has not opened yet: kept, within bounds, until it has.
//!
//! Each sender has a share of its own: what somebody says about instances that will never be must not take the place of
//! what others say about the next one. Within its share what is for the nearest instance is kept. Whatever is for
//! instance 2⁶⁴ − 1 gives way to it. Over all senders, [`crate::shares`] holds: identities that fill their shares
//! together leave room for those who have not.

use crate::ids::{IdentityId, InstanceId, Principal, ReplicaId};
use crate::registry::Message;
use crate::shares::{Bounds, Room, Shares};
use crate::wire::Wire;
use alloc::collections::BTreeMap;

/// All of them together, bytes as on the wire.
pub(crate) const ALL_MAX: Bounds = Bounds { number: 4_096, bytes: 32 << 20 };

/// Those of one replica, or of one identity's clients.
const PER_SENDER_MAX: Bounds = Bounds { number: 512, bytes: 4 << 20 };

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Early {
    /// By instance, then in the order in which they came.
    messages: BTreeMap<(InstanceId, u64), Kept>,
    next: u64,
    shares: Shares<Sender>,
}

#[derive(Clone, Debug)]
struct Kept {
    from: Principal,
    message: Message,
    /// As on the wire.
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sender {
    Replica(ReplicaId),
    Clients(IdentityId),
}

impl Sender {
    const fn of(from: Principal) -> Self {
        match from {
            Principal::Replica(replica) => Self::Replica(replica),
            Principal::Client(client) => Self::Clients(client.identity),
            // All of them together: whoever may join has as many keys as it likes.
            Principal::Key(_) => Self::Clients(IdentityId::MEMBERS),
        }
    }
}

impl Early {
    /// Keeps a message. Whether there was room for it.
    pub(super) fn keep(&mut self, from: Principal, message: Message) -> bool {
        let (sender, bytes) = (Sender::of(from), message.length());
        let instance = message.instance().unwrap_or_default();
        while !self.shares.keeps_to(sender, bytes, PER_SENDER_MAX) {
            match self.farthest(sender) {
                Some(farthest) if farthest.0 > instance => self.remove(farthest),
                _ => return false,
            }
        }
        loop {
            match self.shares.room(sender, bytes, ALL_MAX) {
                Room::Free => break,
                Room::InPlaceOf(owner) => {
                    let farthest = self.farthest(owner).expect("whoever gives way has something");
                    self.remove(farthest);
                }
                Room::None => return false,
            }
        }
        assert!(self.shares.keeps_to(sender, bytes, PER_SENDER_MAX), "each sender keeps to its share");
        self.shares.add(sender, bytes);
        self.messages.insert((instance, self.next), Kept { from, message, bytes });
        self.next += 1;
        true
    }

    /// What a sender said last about the farthest instance.
    fn farthest(&self, sender: Sender) -> Option<(InstanceId, u64)> {
        let mut farthest = self.messages.iter().rev();
        farthest.find(|(_, kept)| Sender::of(kept.from) == sender).map(|(at, _)| *at)
    }

    fn remove(&mut self, at: (InstanceId, u64)) {
        if let Some(kept) = self.messages.remove(&at) {
            self.shares.remove(Sender::of(kept.from), kept.bytes);
        }
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self) {
        let bytes = self.messages.values().map(|kept| kept.bytes).sum();
        self.shares.check_invariants(self.messages.len(), bytes);
        assert!(self.messages.len() <= ALL_MAX.number, "at most ALL_MAX messages");
        assert!(bytes <= ALL_MAX.bytes, "at most ALL_MAX bytes");
        assert!(self.messages.keys().all(|(_, ticket)| *ticket < self.next), "tickets come in their order");
    }

    /// Everything, for each instance in the order in which it came.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Principal, Message)> + use<> {
        core::mem::take(self).messages.into_values().map(|kept| (kept.from, kept.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ClientId, Timestamp};
    use crate::message::Request;
    use alloc::vec::Vec;
    use bytes::Bytes;

    fn request(instance: u64, identity: u32, bytes: usize) -> (Principal, Message) {
        let client = ClientId { identity: IdentityId(identity), session: 0 };
        let operation = Bytes::from(alloc::vec![7; bytes]);
        let request = Request::new(InstanceId(instance), client, Timestamp(1), false, operation);
        (Principal::Client(client), Message::Request(request))
    }

    fn keep(early: &mut Early, instance: u64, identity: u32, bytes: usize) -> bool {
        let (from, message) = request(instance, identity, bytes);
        early.keep(from, message)
    }

    #[test]
    fn one_sender_fills_its_own_share_only_in_number_and_in_bytes() {
        let mut early = Early::default();
        let mut keep = |identity, bytes| keep(&mut early, 2, identity, bytes);
        assert_eq!((0..1_000).filter(|_| keep(1, 8)).count(), PER_SENDER_MAX.number);
        assert_eq!((0..1_000).filter(|_| keep(2, 1 << 20)).count(), 3, "and their headers");
        assert!(keep(2, 8), "what is small still fits");
        assert!(keep(3, 8));
    }

    #[test]
    fn many_senders_leave_room_for_others() {
        let mut early = Early::default();
        for identity in 1..=8 {
            assert_eq!((0..1_000).filter(|_| keep(&mut early, 2, identity, 8)).count(), PER_SENDER_MAX.number);
        }
        let (_, message) = request(2, 9, 8);
        let replica = Principal::Replica(ReplicaId(2));
        assert_eq!((0..1_000).filter(|_| early.keep(replica, message.clone())).count(), ALL_MAX.number / 9);
        let kept: Vec<_> = early.take().collect();
        assert_eq!(kept.len(), ALL_MAX.number);
        assert_eq!(kept.iter().filter(|(from, _)| *from == replica).count(), ALL_MAX.number / 9);
        assert_eq!(early.take().count(), 0);
        let big = |early: &mut Early, identity| (0..9).filter(|_| keep(early, 2, identity, 1 << 20)).count();
        assert_eq!((1..=20).map(|identity| big(&mut early, identity)).max(), Some(3));
        assert!(early.shares.bytes() <= ALL_MAX.bytes);
    }

    #[test]
    fn what_is_for_the_nearest_instance_is_kept() {
        let mut early = Early::default();
        assert!((0..PER_SENDER_MAX.number).all(|_| keep(&mut early, u64::MAX, 1, 8)));
        assert!(!keep(&mut early, u64::MAX, 1, 8));
        assert!((0..10).all(|_| keep(&mut early, 3, 1, 8)) && keep(&mut early, 2, 1, 8));
        let kept: Vec<_> = early.take().map(|(_, message)| message.instance().unwrap().0).collect();
        assert_eq!((kept.len(), &kept[..11]), (PER_SENDER_MAX.number, &[2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3][..]));
    }
}
