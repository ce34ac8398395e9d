//! Lightweight checkpoints: Speculation 3 of the [module](super).

use super::lightweight::STATEMENTS_PER_REPLICA_MAX;
use super::speculation::Speculation;
use crate::history::Boundary;
use crate::ids::{Principal, ReplicaId};
use crate::machine::Destination;
use crate::notice::Notice;
use crate::protocols::speculative::Speaker;
use crate::rejection::Rejection;
use crate::service::Service;
use crate::switching::{AbortReport, HistoryRecord, Surroundings, Switch, SwitchMessage};

impl<S: Service> Speculation<S> {
    pub(super) fn take_checkpoint(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        s.step("Speculation 3");
        assert!(self.may_take_checkpoint(), "a report has room for it");
        let boundary = self.ledger.checkpoint();
        self.announce(s, boundary);
        self.checkpoints.arm(s);
        self.try_anchor(s);
    }

    /// Tells the others, unless they would go further beyond this replica's anchor then than its log may grow:
    /// see [`crate::switching::report`].
    fn announce(&self, s: &mut Surroundings<'_, impl Speaker>, boundary: Boundary) {
        if boundary.position - self.ledger.log.anchor().position > AbortReport::confirmed_max(s.cluster) {
            return;
        }
        let message = SwitchMessage::Checkpoint(boundary);
        s.send(Destination::Replicas, Switch { instance: self.what.number, message });
    }

    /// What another replica says about checkpoints of this instance.
    pub(crate) fn on_switch(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        message: &SwitchMessage,
    ) {
        match *message {
            SwitchMessage::Checkpoint(boundary) => self.on_checkpoint(s, from, boundary, false),
            SwitchMessage::Anchor(boundary) => self.on_checkpoint(s, from, boundary, true),
            _ => {}
        }
    }

    /// The state of another replica at a checkpoint.
    fn on_checkpoint(
        &mut self,
        s: &mut Surroundings<'_, impl Speaker>,
        from: ReplicaId,
        boundary: Boundary,
        is_answer: bool,
    ) {
        let anchor = self.ledger.log.anchor();
        if boundary.position <= anchor.position {
            // It does not know yet that this one is certain: it lacks our own statement.
            if boundary == anchor && !is_answer {
                let message = SwitchMessage::Anchor(anchor);
                let to = Destination::Replica(from);
                s.send(to, Switch { instance: self.what.number, message });
            }
            return;
        }
        let said = self.checkpoints.said.entry(from).or_default();
        if said.iter().any(|known| known.position == boundary.position && *known != boundary) {
            return s.reject(Principal::Replica(from), Rejection::Equivocation);
        }
        if !said.contains(&boundary) {
            said.push(boundary);
            said.sort();
            if said.len() > STATEMENTS_PER_REPLICA_MAX {
                said.remove(0);
            }
        }
        self.try_anchor(s);
    }

    /// All n said the same: that position is in every correct history, for ever.
    fn try_anchor(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        if self.is_stopped() {
            return;
        }
        let certain = self.ledger.log.boundaries().iter().rev().copied().find(|boundary| {
            let others = self.checkpoints.said.values().filter(|said| said.contains(boundary)).count();
            others + 1 == self.what.replicas.all()
        });
        let Some(boundary) = certain else { return };
        s.step("Speculation 3");
        assert!(boundary.position > self.ledger.log.anchor().position, "the anchor only moves up (abs-D7)");
        self.ledger.anchor_at(boundary);
        self.checkpoints.said.values_mut().for_each(|said| said.retain(|known| known.position > boundary.position));
        self.checkpoints.waited = 0;
        if self.ledger.log.boundaries().is_empty() {
            self.checkpoints.cancel(s);
        }
        let record = HistoryRecord::Anchored(boundary);
        s.append(self.what.number, record);
        s.out.notify(Notice::Anchored { instance: self.what.number, position: boundary.position, root: boundary.root });
    }

    /// A checkpoint is still under way: say it again.
    pub(crate) fn on_checkpoint_timeout(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        self.checkpoints.armed = false;
        if self.is_stopped() || self.ledger.log.boundaries().is_empty() {
            return;
        }
        self.checkpoints.waited += 1;
        self.announce_again(s);
    }

    /// Says every checkpoint that is under way.
    pub(super) fn announce_again(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        for boundary in self.ledger.log.boundaries().to_vec() {
            self.announce(s, boundary);
        }
        self.checkpoints.arm(s);
    }
}
