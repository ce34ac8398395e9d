//! What this replica's requests did, one by one, and what a ruling has refused of them: Dissent 1 and 5 of
//! [`crate::dissent`].

use super::{Estate, Summary};
use crate::checkpoint::Tree;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::estate::Ruled;
use crate::history::Log;
use crate::ids::Sequence;
use crate::message::Refusal;
use crate::service::{BadState, Service};
use alloc::vec::Vec;

impl<S: Service> Estate<S> {
    /// The batch of the last ruling that the state follows, whether or not it has come to that batch; 0 if none.
    pub fn ruled(&self) -> Sequence {
        self.rulings.last().map_or(self.meta.ruled, |ruled| ruled.until.max(self.meta.ruled))
    }

    /// Whether there is a ruling in this batch, and the state follows it.
    pub fn follows_ruling_in(&self, batch: Sequence) -> bool {
        self.rulings.iter().any(|ruled| ruled.until == batch)
    }

    /// The batch just executed has a ruling that changes nothing here.
    pub fn note_ruling(&mut self, batch: Sequence) {
        assert!(self.ruled() < batch, "rulings are followed in their order");
        self.rulings.push(Ruled { position: u64::MAX, until: batch });
        self.meta.ruled = batch;
    }

    /// Another instance runs, in which nothing is ruled yet, and no stay has ended.
    pub fn forget_rulings(&mut self) {
        self.rulings.clear();
        self.stay_ends = None;
        self.meta.ruled = Sequence(0);
    }

    /// Goes back, to execute again under one more ruling what follows. Returns the batch after which the state is: the
    /// newest checkpoint before the disputed request, but none before `stable`. If the request is one of those that the
    /// instance began with, which stand in the log, these are executed again before this returns.
    ///
    /// # Errors
    /// [`BadState`] if the service does not accept its own pages.
    ///
    /// # Panics
    /// If there is no version at `stable`.
    pub fn rule(&mut self, cluster: &Cluster, ruled: Ruled, stable: Sequence, log: &Log) -> Result<Sequence, BadState> {
        assert!(self.ruled() < ruled.until, "rulings are followed in their order");
        self.rulings.push(ruled);
        let is_before = |(_, tree): &(&Sequence, &Tree)| position_of(tree).is_some_and(|at| at < ruled.position);
        let before = self.versions.range(stable..).rev().find(is_before).map(|(sequence, _)| *sequence);
        let sequence = before.unwrap_or(stable);
        self.return_to(sequence)?;
        self.interval.clear();
        if before.is_none() {
            self.begin_again(cluster, ruled.position, log)?;
        }
        Ok(sequence)
    }

    /// Comes to what the instance began with from a version before the disputed request, if there is one: who was given
    /// a later state keeps that, and differs from the others until it is given theirs.
    fn begin_again(&mut self, cluster: &Cluster, disputed: u64, log: &Log) -> Result<(), BadState> {
        let leads_on = log.anchor().position..disputed;
        let before = self.earlier.iter().rev().find(|tree| position_of(tree).is_some_and(|at| leads_on.contains(&at)));
        let Some(before) = before.cloned() else { return Ok(()) };
        let (begun, ends) = (self.meta.executed, (self.meta.least, self.meta.last));
        self.restore(&before)?;
        let position = self.meta.position;
        self.meta.executed = Sequence(position);
        // All that the log holds stands before the batches with the rulings.
        let rulings = core::mem::take(&mut self.rulings);
        self.rulings = rulings.iter().map(|ruled| Ruled { until: Sequence(u64::MAX), ..*ruled }).collect();
        for logged in log.after(position) {
            self.execute_entry(cluster, logged, |_, _| ());
        }
        self.rulings = rulings;
        self.versions.clear();
        self.count_batches(begun, ends);
        Ok(())
    }

    /// Why the next request is not executed, if a ruling says so.
    pub(super) fn refused(&self) -> Option<Refusal> {
        let next = self.meta.position + 1;
        let ruled = self.rulings.iter().filter(|ruled| self.meta.executed <= ruled.until && ruled.position <= next);
        let first = ruled.map(|ruled| ruled.position).min()?;
        Some(if first == next { Refusal::Disputed } else { Refusal::Undone })
    }

    /// The state holds what the last request did.
    pub(super) fn remember_effects(&mut self) {
        self.trace.effects.push_back(self.meta.effects);
    }

    /// How many requests were refused because they are disputed, and the position of the last of them.
    pub const fn disputed(&self) -> (u64, u64) {
        (self.meta.disputed, self.meta.disputed_last)
    }

    /// The trace goes on from the present state.
    pub(super) fn return_trace(&mut self) {
        self.trace.return_to(self.meta.position, self.meta.effects);
    }

    /// Forgets what led to the oldest version, and the rulings that it follows. What led to an anchor that others may
    /// not have yet is still asked for.
    pub(super) fn forget_effects(&mut self) {
        let Some((&oldest, tree)) = self.versions.first_key_value() else { return };
        if let Some(position) = position_of(self.earlier.first().unwrap_or(tree)) {
            self.trace.forget_before(position);
        }
        self.rulings.retain(|ruled| ruled.until > oldest);
    }

    /// Requests executed at a version of the state.
    pub fn position_at(&self, version: Sequence) -> Option<u64> {
        position_of(self.versions.get(&version)?)
    }

    /// What the last request and all before it answered and wrote.
    pub const fn effects(&self) -> Digest {
        self.meta.effects
    }

    /// The same at a position, if it is remembered.
    pub fn effects_at(&self, position: u64) -> Option<Digest> {
        self.trace.at(position)
    }

    /// The effects after every `step`-th request from a position on, as far as requests were executed for good; zero
    /// where they are not remembered any more.
    pub fn effects_from(&self, position: u64, step: usize, count_max: usize) -> Vec<Digest> {
        let last = self.tentative.as_ref().map_or(self.meta.position, |tentative| tentative.position);
        let positions = (position..=last).step_by(step).take(count_max);
        let forgotten = |at| (at < self.trace.first).then_some(Digest::ZERO);
        positions.map_while(|at| self.trace.at(at).or_else(|| forgotten(at))).collect()
    }
}

fn position_of(tree: &Tree) -> Option<u64> {
    Summary::of(tree).map(|of| of.position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::PublicKeys;
    use crate::estate::next_batch;
    use crate::estate::trace::Trace;
    use crate::history::Boundary;
    use crate::ids::{ClientId, IdentityId, Timestamp};
    use crate::message::Request;
    use crate::services::Counter;
    use crate::testing::net::{INSTANCE, cluster};
    use alloc::collections::VecDeque;
    use alloc::vec;
    use bytes::Bytes;

    #[test]
    fn a_trace_goes_back_and_forgets() {
        let digest = |byte| Digest([byte; 32]);
        let mut trace = Trace { kept: 0, first: 5, effects: VecDeque::from(vec![digest(5), digest(6), digest(7)]) };
        assert_eq!((trace.at(4), trace.at(7), trace.at(8)), (None, Some(digest(7)), None));
        trace.forget_before(6);
        assert_eq!((trace.at(5), trace.at(6)), (None, Some(digest(6))));
        trace.return_to(6, digest(6));
        assert_eq!(trace.at(7), None);
        trace.return_to(6, digest(9));
        assert_eq!((trace.first, trace.at(6)), (6, Some(digest(9))));
        trace.forget_before(100);
        assert_eq!((trace.first, trace.at(6)), (6, Some(digest(9))));
        let mut trace = Trace { kept: 1, first: 5, effects: VecDeque::from(vec![digest(5), digest(6), digest(7)]) };
        trace.forget_before(7);
        assert_eq!((trace.first, trace.at(6)), (6, Some(digest(6))));
    }

    /// Otherwise it could neither testify nor go back before another checkpoint is stable, and two of four that were
    /// repaired like this held up all for ever (found by the simulator: `aardvark`, seed 15228).
    #[test]
    fn who_takes_what_was_ruled_right_keeps_the_stable_version() {
        let cluster = cluster(4, Default::default(), Default::default());
        let [mut right, mut wrong] =
            [(); 2].map(|()| Estate::new(&cluster, &PublicKeys::default(), Counter::default()));
        let add = |estate: &mut Estate<Counter>, timestamp, amount| {
            let client = ClientId { identity: IdentityId(1), session: 0 };
            let operation = Bytes::copy_from_slice(&Counter::add(amount));
            let request = Request::new(INSTANCE, client, Timestamp(timestamp), false, operation);
            let ordered = next_batch(estate, [request]);
            estate.execute(&cluster, ordered, true, |_, _, _| ());
        };
        for (estate, amount) in [(&mut right, 1), (&mut wrong, 9)] {
            add(estate, 1, 1);
            estate.checkpoint();
            estate.forget_versions_before(Sequence(1));
            add(estate, 2, amount);
            estate.checkpoint();
        }
        wrong.repair(right.newest_version().clone(), Sequence(1)).unwrap();
        assert_eq!(wrong.newest_version().root(), right.newest_version().root());
        assert_eq!([1, 2].map(|at| wrong.position_at(Sequence(at))), [Some(1), Some(2)]);
        assert_eq!(wrong.effects_from(1, 1, 9), [Digest::ZERO, right.effects()], "what it did itself was wrong");
        add(&mut wrong, 3, 1);
        let ruled = Ruled { position: 2, until: Sequence(4) };
        assert_eq!(wrong.rule(&cluster, ruled, Sequence(1), &Log::new(Boundary::default())), Ok(Sequence(1)));
    }
}
