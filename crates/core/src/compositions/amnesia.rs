//! A replica that lost its log, in a composition of several instances (rule A of `docs/durability.md`; abs-S13).
//!
//! It cannot know what it said, so that it must not say anything that it may have said differently before: no abort
//! report, no vote, no speculative answer, no link of a chain, no word on a checkpoint. It counts as one of the f
//! faulty replicas until it takes part again.
//!
//! # Steps
//! * Amnesia 1. It writes down that it abstains, then asks all others which instance they are in, until 2f+1 have told.
//!   LOST carries the time of the question and HERE repeats it: what somebody said before the loss does not count.
//! * Amnesia 2. Meanwhile it learns. It opens what somebody proves, fetches state and bodies, and gives them to others.
//!   In an instance that speculates it does nothing else ([`Running::Silent`](super::Running::Silent)). In a Backup it
//!   executes what the others order, and the order abstains by its own rule A, so that a long Backup need not end
//!   before this replica votes again.
//! * Amnesia 3. It waits until it has come to the instances that 2f+1 others named. Let m be the latest of these. It
//!   writes down m + 1, and is a replica like any other in each instance that it opens from m + 2 on.
//!
//! # Why it is safe
//! It said nothing about an instance after m + 1. To have opened m + 2 it needed a proof that m + 1 had ended. Of the
//! reports of an instance that speculates, 2f+1, at least f+1 are those of correct others, since this replica counts
//! as one of the f faulty. For the end of a Backup, one of f+1 reports is such a replica's, and it saw batches that
//! 2f+1 had voted for, f+1 correct others among them. So f+1 of the 2f+1 correct others had opened m + 1 durably, and
//! f+2 of them at least are among the 2f+1 that answered: two would have named m + 1 or a later one.
//!
//! Where n is more than 3f+1, 2f+1 reads [`strong`](crate::replicas::Replicas::strong), and the count is the same one.
//! strong − f correct others had opened m+1, and strong − f + 1 of those that answered are correct others. There are
//! n − f of these in all, so that 2·strong − n − f + 1 ≥ 2 are both.
//!
//! In an instance from m + 2 on nothing that it forgot matters. It begins like a replica that was cut off before: with
//! a history that was proved without its help. What committed in the instances in which it is silent is in the reports
//! of the others, because every 2f+1 of them without this one's hold f+1 of correct replicas that remember. What it
//! reported before the loss was true. The end of a Backup it may sign although it abstains: where that is is the
//! same for all who execute it, and of f+1 who say so one is correct and remembers. Whom it has not heard of it says
//! anew, and that may be somebody else by then.
//!
//! # Why it is live
//! Instances that need all n replicas commit nothing while one is silent: clients panic, the 2f+1 others stop, and the
//! schedule comes to a Backup, which needs 2f+1. No liar can keep a replica silent by naming a late instance: such a
//! word counts when the instance is proved to have begun.

use super::composite::Composite;
use crate::ids::{InstanceId, Principal, ReplicaId};
use crate::machine::Destination;
use crate::registry::Speaker;
use crate::service::Service;
use crate::switching::{Amnesia, Surroundings, SwitchMessage};
use crate::time::Instant;

impl<S: Service> Composite<S> {
    /// Amnesia 1, after a start.
    pub(super) fn begin_to_ask(&self, s: &mut Surroundings<'_, impl Speaker>) {
        if let Some(amnesia) = s.amnesia {
            amnesia.ask(s.now);
            let record = amnesia.record();
            s.persist(self.what.number, record);
        }
    }

    /// Amnesia 1. Whether this replica has to ask where the others are.
    pub(super) fn ask_where(&self, s: &mut Surroundings<'_, impl Speaker>) -> bool {
        let Some(question) = s.amnesia.as_ref().and_then(Amnesia::question) else { return false };
        s.step("Amnesia 1");
        s.send(Destination::Replicas, self.switch(SwitchMessage::Lost(question)));
        true
    }

    /// Amnesia 1: somebody lost its log.
    pub(super) fn on_lost(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        instance: InstanceId,
        question: Instant,
    ) {
        s.step("Amnesia 1");
        s.send(Destination::Replica(from), self.switch(SwitchMessage::Here(question)));
        if instance < self.what.number {
            let message = self.switch(SwitchMessage::Behind(())).into();
            self.tell_it_is_over(s, Principal::Replica(from), &message);
        }
    }

    /// Amnesia 1: the answer.
    pub(super) fn on_here(
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        instance: InstanceId,
        question: Instant,
    ) {
        s.amnesia.iter_mut().for_each(|amnesia| amnesia.note_answer(from, instance, question));
    }

    /// Amnesia 3.
    pub(super) fn end_abstention(&self, s: &mut Surroundings<'_, impl Speaker>) {
        let enough = self.what.replicas.strong();
        if let Some(amnesia) = s.amnesia
            && amnesia.has_enough_answers(self.what.number, enough)
        {
            let record = amnesia.record();
            s.step("Amnesia 3");
            s.persist(self.what.number, record);
        }
    }
}
