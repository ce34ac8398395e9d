//! Aardvark (Clement, Wong, Alvisi, Dahlin and Marchetti): PBFT whose replicas watch what their primary is worth.
//!
//! # What it is for
//! PBFT is safe whoever its primary is, and as fast as its primary wants: one that orders a request just before the
//! time-out of each keeps its view, and a hundredth of the throughput. In Aardvark no view lasts for ever. What the
//! views before this one were worth is what the present primary has to be worth as well, and a little more every
//! second, until it fails; then the next one has its turn. So a faulty primary that wants to stay must be as fast as a
//! correct one.
//!
//! It is no other protocol: messages, records, safety and recovery are [PBFT's](super::pbft), which holds a [`Watch`]
//! where the schedule says `backup(aardvark)`. A watch changes nothing but *when* a replica leaves its view.
//!
//! # Steps
//! * Aardvark 1. Clients ask all replicas, so that each knows what waits.
//! * Aardvark 2. A quarter of the view time-out is a turn. After each, the request that has waited longest to be
//!   proposed is passed on to the primary and watched, if it has waited for a whole turn, as if its client had asked
//!   again (PBFT 1): whoever sends a request to some replicas only gains nothing by it. It is sent twice, which makes
//!   it a [reminder](super::pool): a correct primary proposes it before what it has not been reminded of.
//! * Aardvark 3. *Heartbeat.* While something is watched that it has not proposed, and nothing that it has proposed is
//!   under way, the primary proposes something within two turns.
//! * Aardvark 4. *Fairness.* What was passed on is proposed before the next turn ends, if the primary proposes more than
//!   2(n − 1) + 6 batches in it: as many others may be reminded of, and a few batches are under way.
//! * Aardvark 5. *Expectations.* After each turn a replica knows how many requests were executed in it, and how many
//!   waited on average: the load. But for its first two turns, a view has to execute nine tenths of the most that was
//!   executed, in a turn of the last n views or of this one, at no more load. Only a busy view may fail: where less
//!   than half a request waits nothing is expected; and what waits counts as executed, which is a batch more or less.
//!   After two and a half view time-outs, its grace, every busy turn raises what is expected by a hundredth, so that
//!   every busy view fails in the end.
//! * Aardvark 6. Whoever finds that the view has failed says so in a STATUS, now and after every turn until the view
//!   ends. When f others have said it of the same view it leaves (PBFT 7), and then all do. Nobody leaves alone for
//!   this: who has left does not vote, and falls behind while the others stay.
//!
//! # Why it is safe
//! PBFT is, whenever a replica leaves a view. Clocks decide nothing else here.
//!
//! # Why it is live
//! No view fails by expectations in its first two turns, which is half of the time-out of a view; and where nothing was
//! executed in the last n views nothing is expected. So what is expected comes down with the views that do not meet it,
//! and after n of them a view with a correct primary in which PBFT would be live is left in peace. A view change for
//! expectations is no suspicion: it does not double the time-out. f liars cannot end a view: that
//! takes a correct replica that has seen it fail by the same rule. A primary that is slow or silent for at most f
//! correct replicas keeps its view, as in PBFT; the time-out for each request is still there.
//!
//! # Deviations from the paper
//! * There a view lasts as long as it is fast enough, however little there is to do: when load falls, view follows
//!   view. Here what waits is counted. It is more if the primary is slow, so a turn is compared with those in which no
//!   more waited.
//! * A view has half a time-out to begin: what the change itself costs says nothing about its primary. From then on,
//!   and not only after its grace, it has to do nine tenths: else a slow primary would have its grace each time.
//! * The paper measures throughput between checkpoints, and raises what it expects with each. Here it is by time: a
//!   primary that is too slow to ever reach a checkpoint must not be judged late.
//! * What a replica expects is local, and forgotten when it starts again.
//! * The paper has clients sign. Here they do where the cluster says so ([`crate::cluster::ClientAuth`]).
//! * The paper says that the primary is to be fair to each client, and not how one sees that. Here a request is left
//!   out that has waited longest of all, for a turn, and for the next as well although it was passed on.
//! * The paper isolates clients and replicas from one another, each of them with a network card of its own. That is not
//!   done here yet.
//!
//! # Cost
//! What PBFT costs, and for each request n − 1 copies more: from its client, who asks all replicas. A view change in
//! about every five view time-outs under constant load.

mod expectation;
#[cfg(test)]
mod paper_test;

use self::expectation::Expectation;
use crate::ids::ReplicaId;
use crate::machine::Step;
use crate::time::{Duration, Instant};

/// Turns in a view time-out: how often a view is looked at.
const TURNS: u64 = 4;

/// Turns in which a primary has to propose something: a request that it lacks and its proposal cross the network in
/// them, which a correct primary may need more than one turn for.
const HEARTBEAT_TURNS: u64 = 2;

/// Batches that a primary may propose between a reminder and the request that it is about, besides those with what
/// others have reminded of: as many as are in flight when the reminder comes, and those that it crosses on its way.
const BATCHES_BEFORE: usize = 6;

/// Why a view has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocols) enum Failed {
    /// The primary proposes nothing, although something waits.
    Silent,
    /// The primary proposes what came later than a request that it was given, and not that request.
    Unfair,
    /// It executes less than others did.
    Slow,
}

impl Failed {
    /// In words.
    pub(in crate::protocols) const fn reason(self) -> &'static str {
        match self {
            Self::Silent => "the primary proposes nothing, although requests wait",
            Self::Unfair => "the primary leaves a request out",
            Self::Slow => "the view is slower than those before it",
        }
    }

    /// The step that finds it.
    pub(in crate::protocols) const fn step(self) -> Step {
        match self {
            Self::Silent => "Aardvark 3",
            Self::Unfair => "Aardvark 4",
            Self::Slow => "Aardvark 5",
        }
    }

    /// Whether the network may be the reason as well: then the next primary gets more time.
    pub(in crate::protocols) const fn is_suspicion(self) -> bool {
        matches!(self, Self::Silent | Self::Unfair)
    }
}

/// What a replica has seen of its primary. See the [module](self).
#[derive(Clone, Debug)]
pub(in crate::protocols) struct Watch {
    expectation: Expectation,
    /// When the primary last proposed something, or had nothing to propose, or the view began.
    heard: Instant,
    /// Why this replica finds that the view has failed.
    failed: Option<Failed>,
    /// Which others say so: bit i stands for replica i.
    complaints: u64,
    /// The first ticket of the turn: what has an earlier one waited before it began.
    first_ticket: u64,
    /// The ticket of what had been passed on when the turn began, as it had waited longest.
    passed_on: Option<u64>,
    /// Batches that the primary has proposed in the turn, and how many it may before what was passed on.
    proposals: usize,
    before: usize,
}

impl Watch {
    /// Among n replicas.
    pub(in crate::protocols) fn new(n: usize) -> Self {
        Self {
            expectation: Expectation::new(n),
            heard: Instant(0),
            failed: None,
            complaints: 0,
            first_ticket: 0,
            passed_on: None,
            proposals: 0,
            before: 2 * (n - 1) + BATCHES_BEFORE,
        }
    }

    /// How long a turn is: how often [`Self::judge`] is to be asked.
    pub(in crate::protocols) const fn turn(view_timeout: Duration) -> Duration {
        Duration(view_timeout.0 / TURNS)
    }

    /// A view begins.
    pub(in crate::protocols) fn entered(&mut self, now: Instant) {
        (self.heard, self.failed, self.complaints) = (now, None, 0);
        (self.passed_on, self.proposals) = (None, 0);
        self.expectation.entered(now);
    }

    /// Nothing can be said of the view, or of this turn.
    pub(in crate::protocols) fn pause(&mut self, now: Instant) {
        (self.heard, self.passed_on, self.proposals) = (now, None, 0);
        self.expectation.pause(now);
    }

    /// Aardvark 2: the next turn begins, whose requests have tickets from this one on. The first ticket of the turn
    /// that is over: what has an earlier one has waited for all of it.
    pub(in crate::protocols) const fn next_turn(&mut self, first_ticket: u64) -> u64 {
        core::mem::replace(&mut self.first_ticket, first_ticket)
    }

    /// Aardvark 2: the primary has been given what has waited longest.
    pub(in crate::protocols) const fn passed_on(&mut self, ticket: u64) {
        self.passed_on = Some(ticket);
    }

    /// The primary proposes a batch.
    pub(in crate::protocols) fn proposed(&mut self, now: Instant) {
        self.heard = now;
        self.proposals = self.proposals.saturating_add(1);
    }

    /// So many requests were executed.
    pub(in crate::protocols) fn executed(&mut self, requests: usize) {
        self.expectation.executed(requests);
    }

    /// So many requests wait from now on.
    pub(in crate::protocols) fn waiting(&mut self, now: Instant, requests: usize) {
        self.expectation.waiting(now, requests);
    }

    /// Another replica says that the view has failed.
    pub(in crate::protocols) const fn complained(&mut self, from: ReplicaId) {
        self.complaints |= 1 << from.0;
    }

    /// Why this replica finds that the view has failed, if it does.
    pub(in crate::protocols) const fn failed(&self) -> Option<Failed> {
        self.failed
    }

    /// Aardvark 6: why to leave the view, once so many, this replica among them, find that it has failed.
    pub(in crate::protocols) fn leaves(&self, enough: usize) -> Option<Failed> {
        self.failed.filter(|_| self.complaints.count_ones() as usize + 1 >= enough)
    }

    /// Aardvark 3 to 5, at the end of a turn: whether the view has failed in it. `watched`: whether the primary has
    /// something that it must propose. `oldest`: the ticket of what has waited longest to be proposed.
    pub(in crate::protocols) fn judge(
        &mut self,
        now: Instant,
        view_timeout: Duration,
        watched: bool,
        oldest: Option<u64>,
    ) {
        if !watched {
            self.heard = now;
        }
        let is_slow = self.expectation.turn(now, view_timeout);
        let silence = Duration(Self::turn(view_timeout).0.saturating_mul(HEARTBEAT_TURNS));
        let is_left_out = self.passed_on.take().is_some_and(|ticket| oldest == Some(ticket));
        let is_unfair = core::mem::take(&mut self.proposals) > self.before && is_left_out;
        self.failed = self.failed.or(match () {
            () if now - self.heard >= silence => Some(Failed::Silent),
            () if is_unfair => Some(Failed::Unfair),
            () => is_slow.then_some(Failed::Slow),
        });
    }
}
