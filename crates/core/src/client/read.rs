//! Whose word a read is taken on (Client 3 of the [module](super)).

use super::{Call, Client};
use crate::client::Read;
use crate::ids::ReplicaId;
use crate::machine::{Destination, Outbox};
use crate::message::Request;
use crate::registry::Message;
use crate::replicas::Replicas;

impl Client {
    /// Sends a read to those whose word counts; for that of one, to the next one each time.
    pub(super) fn transmit_to(&self, read: Read, request: &Request, out: &mut Outbox<Self>) {
        let whom = match read {
            Read::Quorum => u64::MAX,
            Read::Few(few) => few,
            Read::One => 1 << (request.timestamp.0 % self.asked.replicas.n() as u64),
        };
        for id in self.asked.replicas.iter().filter(|id| whom >> id.0 & 1 == 1) {
            out.send(Destination::Replica(id), Message::Request(request.clone()));
        }
    }
}

impl Call {
    /// How many replicas were asked, and how many of them must agree.
    pub(super) const fn quorum(&self, replicas: Replicas) -> (usize, usize) {
        match self.read {
            Read::Few(few) => (few.count_ones() as usize, replicas.weak()),
            Read::Quorum | Read::One => (replicas.n(), replicas.strong()),
        }
    }

    /// Whether an answer of this replica counts.
    pub(super) const fn asks(&self, replica: ReplicaId) -> bool {
        match self.read {
            Read::Few(few) => few >> replica.0 & 1 == 1,
            Read::Quorum | Read::One => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Completion, Submit};
    use crate::cluster::Limits;
    use crate::ids::Sequence;
    use crate::machine::Input;
    use crate::message::Outcome;
    use crate::services::Counter;
    use crate::testing::net::{Net, c, done, r};
    use bytes::Bytes;

    /// The first client asks these replicas for the counter.
    fn submit(net: &mut Net, few: u64) {
        let operation = Bytes::copy_from_slice(Counter::READ);
        net.now.0 += 10;
        let submit = Submit { operation, is_bundle: false, read_only: true, read: Read::Few(few), deadline: None };
        net.step_client(0, Input::Command(submit));
        net.settle();
    }

    fn ask(net: &mut Net, few: u64) -> Option<Completion> {
        submit(net, few);
        net.completed.pop().map(|completed| completed.result)
    }

    /// A reply to the read that is under way, as if the counter stood at this value.
    fn says(net: &mut Net, from: u8, value: u64) {
        let timestamp = net.clients[0].last_timestamp;
        let asked = net.said(r(from), "REPLY").into_iter().find_map(|frame| match &frame.message {
            Message::Reply(reply) if reply.firmness == crate::message::Firmness::Read => Some(reply.clone()),
            _ => None,
        });
        let outcome = Outcome::read(Bytes::copy_from_slice(&value.to_le_bytes()));
        let reply = crate::message::Reply { timestamp, outcome, ..asked.unwrap() };
        net.forge(r(from), c(0), Message::Reply(reply));
    }

    #[test]
    fn few_are_asked_and_believed_wherever_they_stand() {
        let mut net = Net::new(4, Limits::default());
        net.isolate(&[3]);
        assert_eq!(net.add(0), done(0), "a write that does not change what is read");
        net.heal();
        submit(&mut net, 0b1010);
        let completed = net.completed.pop().unwrap();
        assert_eq!(Some(completed.result), done(0), "replica 3 is one batch behind, and says the same");
        assert_eq!((completed.sequence, completed.vouchers), (Sequence(0), 0b1010));
        assert_eq!(net.said(c(0), "QUERY").len(), 2, "nobody else is asked");
        assert_eq!(net.said(c(0), "REQUEST").len(), 1, "nothing but the write was ordered");
    }

    #[test]
    fn a_liar_among_few_is_not_believed() {
        let mut net = Net::new(4, Limits::default());
        assert_eq!(net.read(), done(0), "so that all have answered a read");
        net.lose(|frame| frame.from == r(3));
        assert_eq!(ask(&mut net, 0b1010), None, "one of two says nothing yet");
        says(&mut net, 3, 9);
        net.settle();
        assert_eq!(net.completed.pop().map(|completed| completed.result), done(0), "the others are asked");
        assert_eq!(net.said(c(0), "ORDERED-QUERY").len(), 1, "it was ordered at once");
    }

    #[test]
    fn who_was_not_asked_does_not_count() {
        let mut net = Net::new(4, Limits::default());
        assert_eq!(net.read(), done(0), "so that all have answered a read");
        net.lose(|frame| frame.from == r(1));
        assert_eq!(ask(&mut net, 0b1010), None);
        for liar in [0, 2] {
            says(&mut net, liar, 9);
        }
        net.settle();
        assert!(net.completed.is_empty(), "two agree that were not asked");
        net.pass(2_000_000);
        assert_eq!(net.completed.pop().map(|completed| completed.result), done(0), "who is silent stops nobody");
    }

    #[test]
    fn too_few_are_no_quorum() {
        let mut net = Net::new(4, Limits::default());
        assert_eq!(ask(&mut net, 0b1000), done(0));
        assert_eq!(net.said(c(0), "QUERY").len(), 4);
        net.sent.clear();
        assert_eq!(ask(&mut net, 0b1111_0001), done(0), "replica 4 and the like are not there");
        assert_eq!(net.said(c(0), "QUERY").len(), 4);
    }
}
