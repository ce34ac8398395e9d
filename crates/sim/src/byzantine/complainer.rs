//! Complaints: a replica that finds every view of Aardvark failed, from its first proposal on. With f of them a single
//! correct replica that finds it too is enough to end the view.

use super::{Behaviour, Liar};
use bezant_core::digest::Digest;
use bezant_core::ids::{Principal, Sequence, View};
use bezant_core::protocols::pbft::{Ordering, PbftMessage, Status};
use bezant_core::registry::Message;

#[derive(Debug)]
pub(super) struct Complainer;

impl Behaviour for Complainer {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let Message::Ordering(Ordering { instance, message: said }) = message else { return liar.say(to, message) };
        let complaint = match said {
            PbftMessage::Status(status) => Status { failing: true, ..*status },
            PbftMessage::Prepare(vote) => complaint(vote.view, vote.sequence),
            PbftMessage::PrePrepare(proposal) => complaint(proposal.view, proposal.sequence),
            _ => return liar.say(to, message),
        };
        if !matches!(said, PbftMessage::Status(_)) {
            liar.say(to, message);
        }
        let message = PbftMessage::Status(complaint);
        liar.say(to, &Message::Ordering(Ordering { instance: *instance, message }));
    }
}

fn complaint(view: View, committed: Sequence) -> Status {
    Status {
        view,
        changing: false,
        stable: Sequence(0),
        committed,
        begun: view,
        way: Digest::ZERO,
        abstaining: false,
        failing: true,
    }
}
