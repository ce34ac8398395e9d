//! Messages for an instance that this replica has not opened yet: kept, within bounds, until it has.

use crate::cluster::{IdentityId, ReplicaId};
use crate::machine::Principal;
use crate::message::Message;
use crate::wire::Wire;
use alloc::collections::{BTreeMap, VecDeque};

/// All of them together.
const MESSAGES_MAX: usize = 4_096;

/// Those of one replica, or of one identity's clients: what somebody says about instances that will never be must not
/// take the place of what others say about the next one.
const MESSAGES_PER_SENDER_MAX: usize = 512;

/// Bytes of those of one sender, as on the wire.
const BYTES_PER_SENDER_MAX: usize = 4 << 20;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Early {
    messages: VecDeque<(Principal, Message)>,
    /// How many each sender has here, and how many bytes.
    of_sender: BTreeMap<Sender, (usize, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sender {
    Replica(ReplicaId),
    Clients(IdentityId),
}

impl Early {
    /// Keeps a message. Whether there was room for it.
    pub(super) fn keep(&mut self, from: Principal, message: Message) -> bool {
        let sender = match from {
            Principal::Replica(replica) => Sender::Replica(replica),
            Principal::Client(client) => Sender::Clients(client.identity),
            // All of them together: whoever may join has as many keys as it likes.
            Principal::Key(_) => Sender::Clients(IdentityId::MEMBERS),
        };
        let (count, bytes) = self.of_sender.entry(sender).or_default();
        let length = message.to_bytes().len();
        let room = self.messages.len() < MESSAGES_MAX
            && *count < MESSAGES_PER_SENDER_MAX
            && *bytes + length <= BYTES_PER_SENDER_MAX;
        if room {
            *count += 1;
            *bytes += length;
            self.messages.push_back((from, message));
        }
        room
    }

    /// Everything, in the order in which it came.
    pub(super) fn take(&mut self) -> VecDeque<(Principal, Message)> {
        core::mem::take(self).messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClientId, InstanceId, Timestamp};
    use crate::message::Request;
    use bytes::Bytes;

    fn request(identity: u32, bytes: usize) -> (Principal, Message) {
        let client = ClientId { identity: IdentityId(identity), session: 0 };
        let operation = Bytes::from(alloc::vec![7; bytes]);
        let request = Request::new(InstanceId(2), client, Timestamp(1), false, operation);
        (Principal::Client(client), Message::Request(request))
    }

    #[test]
    fn one_sender_fills_its_own_share_only_in_number_and_in_bytes() {
        let mut early = Early::default();
        let mut keep = |identity, bytes| {
            let (from, message) = request(identity, bytes);
            early.keep(from, message)
        };
        assert_eq!((0..1_000).filter(|_| keep(1, 8)).count(), MESSAGES_PER_SENDER_MAX);
        assert_eq!((0..1_000).filter(|_| keep(2, 1 << 20)).count(), 3, "and their headers");
        assert!(keep(2, 8), "what is small still fits");
        assert!(keep(3, 8));
        let total = (4..100).map(|identity| (0..1_000).filter(|_| keep(identity, 8)).count()).sum::<usize>();
        assert_eq!(total + MESSAGES_PER_SENDER_MAX + 5, MESSAGES_MAX);
        assert_eq!(early.take().len(), MESSAGES_MAX);
        assert!(early.take().is_empty());
    }
}
