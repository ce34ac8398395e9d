//! A replica that lost its log (rule A of `docs/durability.md`): it may have said anything that the protocol allows,
//! and must not say the opposite. It learns, and is silent until it is past all of that. Until then it counts as one
//! of the f faulty replicas.
//!
//! # Steps
//! * PBFT 11. It asks all others where they are (LOST), until 2f+1 have answered (HERE). LOST carries the time of the
//!   question and HERE repeats it: what was said before the loss, and comes late or again, does not count.
//! * PBFT 12. It waits until it has come to what 2f+1 of them named: their views have begun here, and its stable
//!   checkpoint is a window beyond what they had executed. Let v be the latest of these views. It writes down that it
//!   votes again in view v + n and later ones.
//! * PBFT 13. If none of these has begun by then, it asks for view v + n. That is the one with which the primary of v
//!   begins its view anew, and it does so ([`Pbft::renew`]).
//! * While nobody orders anything, no checkpoint becomes stable. So a primary that has nothing to order and hears from
//!   a replica that abstains begins its view anew as well, and fills the window with null batches.
//!
//! # Why it is safe
//! Let a be the replica, in whose place there may be up to f−1 other faulty ones.
//! * *Positions*. It voted within a window above a checkpoint that was stable for it. 2f+1 replicas had executed that,
//!   f+1 correct others among them; as 2f+1 others answer, one of these is among any 2f+1 answers. So everything that
//!   it voted for is at or below what PBFT 12 waits for. What is stable needs no votes, and no claim in a VIEW-CHANGE.
//! * *Views*. It never was more than n views ahead of f+1 correct others. It left a view w that it had entered, or
//!   that 2f+1 wanted, for the next one whose primary is not missing, which is before w+n, or with its primary for
//!   w+n ([`Pbft::next_view`], [`Pbft::renew`]); and of 2f+1 VIEW-CHANGEs for w or later views f+1 are of correct
//!   others. Or f+1 others had asked for its view before, and then the first correct one of all replicas that did
//!   so had left a view w in this way. So one of the answers names w or a later view, and its last VIEW-CHANGE was
//!   for v + n at most. It votes in no view before that. What it may have said for v + n is as true as what it
//!   says now: it has voted for nothing in between, and nothing that it listed is needed.
//! * *Acknowledgements*. A position at which it answered a client is one at which it voted. It answers no read before
//!   its state includes all of these ([`Pbft::promised`]).
//!
//! # Why it ends
//! A liar that names a late view or position keeps nobody silent: it counts when that is reached, and the other 2f+1
//! are correct. In a cluster that is well, batches follow, or null batches do, and the primary brings back whoever
//! waits in a later view.

use super::PbftRecord;
use super::message::{Here, PbftMessage};
use super::replica::{Abstention, Ctx, Pbft, Phase};
use crate::ids::{ReplicaId, Sequence, View};
use crate::protocols::total_order::{OrderEffect, TotalOrder};
use crate::time::Instant;

impl Pbft {
    /// Whether this replica may say anything in a view: not while it abstains after the loss of its log.
    pub(super) fn may_vote_in(&self, wanted: View) -> bool {
        self.abstention.as_ref().is_none_or(|abstention| {
            abstention.marks.is_some_and(|(view, sequence)| wanted > view && self.low_water_mark() >= sequence)
        })
    }

    /// PBFT 11, after a start.
    pub(super) fn begin_to_ask(&mut self, context: &mut Ctx<'_>) {
        if let Some(abstention) = self.abstention.as_mut().filter(|abstention| abstention.marks.is_none()) {
            abstention.question = context.now;
            context.push(OrderEffect::Persist(PbftRecord::Abstain(None)));
        }
        self.ask_what_is_forgotten(context);
        self.try_to_vote_again(context);
    }

    /// PBFT 11.
    pub(super) fn ask_what_is_forgotten(&self, context: &mut Ctx<'_>) {
        let others = self.replicas.n() - 1;
        let asks = |abstention: &&Abstention| abstention.marks.is_none() && abstention.reports.len() < others;
        if let Some(abstention) = self.abstention.as_ref().filter(asks) {
            context.step("PBFT 11");
            context.push(OrderEffect::Broadcast(PbftMessage::Lost(abstention.question)));
        }
    }

    /// PBFT 11: somebody lost its log.
    pub(super) fn on_lost(&self, context: &mut Ctx<'_>, from: ReplicaId, question: Instant) {
        context.step("PBFT 11");
        let here = Here { question, view: self.view, committed: self.committed };
        context.push(OrderEffect::Send(from, PbftMessage::Here(here)));
    }

    /// PBFT 11: the answer.
    pub(super) fn on_here(&mut self, context: &mut Ctx<'_>, from: ReplicaId, here: Here) {
        let last = Sequence(here.committed.0.saturating_add(context.cluster.window()));
        if let Some(abstention) = self.abstention.as_mut().filter(|abstention| abstention.question == here.question) {
            abstention.reports.entry(from).or_insert((here.view, last));
        }
        self.try_to_vote_again(context);
    }

    /// PBFT 12 and 13.
    pub(super) fn try_to_vote_again(&mut self, context: &mut Ctx<'_>) {
        let (begun, low) = (self.begun.view(), self.low_water_mark());
        let Some(abstention) = &mut self.abstention else { return };
        if abstention.marks.is_none() {
            let reached = abstention.reports.values().filter(|(view, last)| *view <= begun && *last <= low);
            let enough = self.replicas.strong().min(self.replicas.n() - 1).max(1);
            let Some(view) = reached.clone().map(|(view, _)| *view).max().filter(|_| reached.count() >= enough) else {
                return;
            };
            context.step("PBFT 12");
            assert!(view <= begun, "a word counts when its view is reached");
            let last = View(view.0 + self.replicas.n() as u64 - 1);
            abstention.marks = Some((last, low));
            self.promised = self.promised.max(low);
            context.push(OrderEffect::Persist(PbftRecord::Abstain(Some((last, low)))));
        }
        let Some((last, _)) = abstention.marks else { return };
        if self.phase == Phase::Normal && !self.may_vote() && self.may_vote_in(last.next()) {
            context.step("PBFT 13");
            self.start_view_change(context, last.next(), "it lost its log, and may vote in that view");
        }
    }
}
