//! A replica that lost its log, in a composition of several instances (rule A of `docs/durability.md`; S13).
//!
//! It cannot know what it said, so that it must not say anything that it may have said differently before: no abort
//! report, no vote, no speculative answer, no link of a chain, no word on a checkpoint. It counts as one of the f
//! faulty replicas until it takes part again.
//!
//! # Steps
//! * A1. It writes down that it abstains, then asks all others which instance they are in, until 2f+1 have told. LOST
//!   carries the time of the question and HERE repeats it: what somebody said before the loss does not count.
//! * A2. Meanwhile it learns. It opens what somebody proves, fetches state and bodies, and gives them to others. In an
//!   instance that speculates it does nothing else ([`Running::Silent`](super::Running::Silent)). In a Backup it
//!   executes what the others order, and the order abstains by its own rule A, so that a long Backup need not end
//!   before this replica votes again.
//! * A3. It waits until it has come to the instances that 2f+1 others named. Let m be the latest of these. It writes
//!   down m + 1, and is a replica like any other in each instance that it opens from m + 2 on.
//!
//! # Why it is safe
//! It said nothing about an instance after m + 1. To have opened m + 2 it needed a proof that m + 1 had ended. Of the
//! reports of an instance that speculates, 2f+1, at least f+1 are those of correct others, since this replica counts
//! as one of the f faulty. For the end of a Backup, one of f+1 reports is such a replica's, and it saw batches that
//! 2f+1 had voted for, f+1 correct others among them. So f+1 of the 2f+1 correct others had opened m + 1 durably, and
//! f+2 of them at least are among the 2f+1 that answered: two would have named m + 1 or a later one.
//!
//! In an instance from m + 2 on nothing that it forgot matters. It begins like a replica that was cut off before: with
//! a history that was proved without its help. What committed in the instances in which it is silent is in the reports
//! of the others, because every 2f+1 of them without this one's hold f+1 of correct replicas that remember. What it
//! reported before the loss was true. The end of a Backup it may sign although it abstains: it is the same for all who
//! execute it, and f+1 equal words still come from one correct replica that remembers.
//!
//! # Why it is live
//! Instances that need all n replicas commit nothing while one is silent: clients panic, the 2f+1 others stop, and the
//! schedule comes to a Backup, which needs 2f+1. No liar can keep a replica silent by naming a late instance: such a
//! word counts when the instance is proved to have begun.

use super::composite::Composite;
use crate::ids::{InstanceId, Principal, ReplicaId};
use crate::machine::Destination;
use crate::replica::InstanceRecord;
use crate::service::Service;
use crate::switching::{Surroundings, SwitchMessage};
use crate::time::Instant;
use alloc::collections::BTreeMap;

/// The last instance in which a replica may have spoken that does not know yet.
const UNKNOWN: InstanceId = InstanceId(u64::MAX);

/// What a replica knows about what it forgot. See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Amnesia {
    /// The last instance in which it may have spoken.
    until: InstanceId,
    /// When it asked the others.
    question: Instant,
    /// What each said first.
    answers: BTreeMap<ReplicaId, InstanceId>,
}

impl Amnesia {
    /// The log is lost.
    pub(crate) const fn total() -> Self {
        Self::until(UNKNOWN)
    }

    /// The new log says up to where.
    pub(super) const fn until(until: InstanceId) -> Self {
        Self { until, question: Instant(0), answers: BTreeMap::new() }
    }

    /// What the new log says, whenever it begins again.
    pub(crate) const fn record(&self) -> InstanceRecord {
        InstanceRecord::Abstain(self.until)
    }

    /// A3: an instance is opened. Whether the replica may speak in it.
    pub(super) fn lets_speak(amnesia: &mut Option<Self>, instance: InstanceId) -> bool {
        amnesia.take_if(|amnesia| amnesia.until < instance);
        amnesia.is_none()
    }

    /// A3, in an instance, when so many answers are enough. Whether they have become enough now.
    fn look_back(&mut self, here: InstanceId, enough: usize) -> bool {
        let reached = self.answers.values().copied().filter(|instance| *instance <= here);
        match reached.clone().max() {
            Some(latest) if self.until == UNKNOWN && reached.count() >= enough => {
                self.until = InstanceId(latest.0 + 1);
                true
            }
            _ => false,
        }
    }
}

impl<S: Service> Composite<S> {
    /// A1, after a start.
    pub(super) fn begin_to_ask(&self, s: &mut Surroundings<'_, S>) {
        if let Some(amnesia) = s.amnesia {
            amnesia.question = s.now;
            let record = amnesia.record();
            s.persist(self.instance, record);
        }
    }

    /// A1. Whether this replica has to ask where the others are.
    pub(super) fn ask_where(&self, s: &mut Surroundings<'_, S>) -> bool {
        let Some(amnesia) = s.amnesia.as_ref().filter(|amnesia| amnesia.until == UNKNOWN) else { return false };
        s.out.send(Destination::Replicas, self.switch(SwitchMessage::Lost(amnesia.question)));
        true
    }

    /// A1: somebody lost its log.
    pub(super) fn on_lost(
        &mut self,
        s: &mut Surroundings<'_, S>,
        from: ReplicaId,
        instance: InstanceId,
        question: Instant,
    ) {
        s.out.send(Destination::Replica(from), self.switch(SwitchMessage::Here(question)));
        if instance < self.instance {
            let message = self.switch(SwitchMessage::Behind(()));
            self.tell(s, Principal::Replica(from), &message);
        }
    }

    /// A1: the answer.
    pub(super) fn on_here(s: &mut Surroundings<'_, S>, from: ReplicaId, instance: InstanceId, question: Instant) {
        if let Some(amnesia) = s.amnesia.as_mut().filter(|amnesia| amnesia.question == question) {
            amnesia.answers.entry(from).or_insert(instance);
        }
    }

    /// A3.
    pub(super) fn look_back(&self, s: &mut Surroundings<'_, S>) {
        let enough = s.cluster.strong();
        if let Some(amnesia) = s.amnesia
            && amnesia.look_back(self.instance, enough)
        {
            let record = amnesia.record();
            s.persist(self.instance, record);
        }
    }
}
