//! Aardvark (Clement, Wong, Alvisi, Dahlin and Marchetti): PBFT whose replicas watch what their primary is worth.
//!
//! # What it is for
//! PBFT is safe whoever its primary is, and as fast as its primary wants: one that orders a request just before the
//! time-out of each keeps its view, and a hundredth of the throughput. In Aardvark no busy view lasts for ever. The
//! present primary has to be worth nearly as much as those of the views before this one, and a little more every
//! second, until it fails; then the next one has its turn. So a faulty primary that wants to stay must be nearly as
//! fast as a correct one.
//!
//! It is no other protocol: messages, records, safety and recovery are [PBFT's](super::pbft), which holds a [`Watch`]
//! where the schedule says `backup(aardvark)`. A watch changes nothing but *when* a replica leaves its view.
//!
//! # Steps
//! * Aardvark 1. Clients ask all replicas, so that each knows what waits.
//! * Aardvark 2. A quarter of the view time-out is a turn. After each, the request that has waited longest to be
//!   proposed is passed on to the primary and watched, if it has waited for a whole turn, as if its client had asked
//!   again (PBFT 1). It is sent twice, which makes it a [reminder](super::pool): a correct primary proposes it before
//!   what it has not been reminded of.
//! * Aardvark 3. *Heartbeat.* While something is watched that it has not proposed, and nothing that it has proposed is
//!   under way, the primary proposes something within two turns. Once 2f + 1 have left for its view it begins that
//!   within four times as long as any of the last n views took, between two fifths of a turn and a turn, or half of
//!   that if its last view did not begin: else they leave for the next (PBFT 7), whose primary has twice as long, up to
//!   the longest time-out. What a Backup begins with
//!   (Backup 9) is to be ordered within two turns as well.
//! * Aardvark 4. *Fairness.* What was passed on is proposed before the next turn ends, if the primary proposes more
//!   than 2n + 6 batches in it: fewer others have a turn before it, and a few batches are under way.
//! * Aardvark 5. *Expectations.* After each turn a replica knows how many of the requests that waited here were
//!   executed in it, and how many waited on average: the load. But for its first two turns, a view has to execute nine
//!   tenths of the most that was executed, in a turn of the last n views or of this one, at no more load. Only a busy
//!   view may fail: where less than half a request waits nothing is expected; and of what waits a batch counts as
//!   executed. After two and a half view time-outs, its grace, every busy turn raises what is expected by a hundredth.
//!   At four times what was ever done a busy view fails, whatever that was: so every busy view fails in the end. A
//!   primary that begins its view anew goes on where it was. In its first two turns a view fails as well if in two
//!   looks in a row, of a fifth of a turn each, less than half of that was executed: but not where the view before it
//!   failed for this, at this replica or at f + 1 others. A look without a batch lasts until at least twice as much
//!   should have been executed as the longest batch had: one that takes that long is under way.
//! * Aardvark 6. Whoever finds that the view has failed says so in a STATUS, now and after each of the next two turns.
//!   When f others have said it of the same view within three turns it leaves (PBFT 7), and then all do. No correct
//!   replica leaves alone for this unless a liar says that it agrees: who has left does not vote, and falls behind.
//!
//! # Why it is safe
//! PBFT is, whenever a replica leaves a view. Clocks decide nothing else here.
//!
//! # Why it is live
//! Of two views that follow one another at least one does not fail by expectations in its first two turns, which is
//! half of the time-out of a view; and where nothing was executed in the last n views nothing is expected. So what is
//! expected comes down with the views that do not meet it, and after n of them a view with a correct primary in which
//! PBFT would be live is left in peace for long. To leave a view in which something was executed because it was slow is
//! no suspicion: it does not double the time-out of whoever found it so, or heard it of f + 1 others. f liars cannot
//! end a view: that takes a correct replica that has seen it fail by the same rule. A primary that is slow or silent
//! for at most f correct replicas keeps its view, as in PBFT; the time-out for each request is still there.
//!
//! # What it does not do
//! Clients that ask all replicas but the primary make it look slow: what they ask for waits, and only one of their
//! requests is passed on in each turn. Where the last n views have once done as much with as little waiting, a correct
//! primary loses its view, for as many requests as make up that load. And a primary that is fast when it is the turn of
//! its own clients raises what the next ones are held to. Both end views sooner, which costs a view change, and in n
//! views it is forgotten unless it is done again.
//!
//! # Deviations from the paper
//! * There a view lasts as long as it is fast enough, however little there is to do: when load falls, view follows
//!   view. Here what waits is counted. It is more if the primary is slow, so a turn is compared with those in which no
//!   more waited.
//! * A view has half a time-out to begin: what the change itself costs says little about its primary. From then on,
//!   and not only after its grace, it has to do nine tenths: else a slow primary would have its grace each time.
//! * The paper measures throughput between checkpoints, and raises what it expects with each. Here it is by time: a
//!   primary that is too slow to ever reach a checkpoint must not be judged late.
//! * What a replica expects is local, and forgotten when it starts again. In a composition that takes turns with other
//!   instances, a Backup hands it on to the next one ([`crate::compositions::robust`]).
//! * The paper has clients sign. Here they do where the cluster says so ([`crate::cluster::ClientAuth`]).
//! * The paper says that the primary is to be fair to each client, and not how one sees that. Here a request is left
//!   out that has waited longest of all, for a turn, and for the next as well although it was passed on.
//! * The paper isolates clients and replicas from one another, each of them with a network card of its own, and has a
//!   blacklist of clients whose signatures were bad. Here the runtime gives each a ration of what it may cost, checks
//!   that fail included, and reads who has used it up last: that is quarantine. A replica may listen at an address of
//!   its own for each of the others.
//!
//! # Cost
//! What PBFT costs, and for each request n − 1 copies more: from its client, who asks all replicas. A view change in
//! about every five view time-outs under constant load.

mod beginnings;
mod expectation;
#[cfg(test)]
mod paper_test;
pub(crate) mod rates;

use self::beginnings::Beginnings;
use self::expectation::Expectation;
pub(crate) use self::expectation::Measure;
use crate::digest::Digest;
use crate::ids::{IdentityId, ReplicaId};
use crate::machine::Step;
use crate::time::{Duration, Instant};

/// Turns in a view time-out: how often a view is judged.
const TURNS: u64 = 4;

/// Looks in a turn: how often a view is looked at that has just begun.
const LOOKS: u64 = 5;

/// Turns in which a primary has to propose something: a request that it lacks and its proposal cross the network in
/// them, which a correct primary may need more than one turn for.
const HEARTBEAT_TURNS: u64 = 2;

/// Turns for which it counts that somebody has found the view failed.
const COMPLAINT_TURNS: usize = 3;

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
pub(crate) struct Watch {
    expectation: Expectation,
    beginnings: Beginnings,
    /// Since when another primary may begin its view, if it has not.
    awaits_since: Option<Instant>,
    /// When the primary last proposed something, or had nothing to propose, or the view began.
    heard: Instant,
    /// Who leads the view, once one has begun.
    primary: Option<ReplicaId>,
    /// Why this replica finds that the view has failed, and in how many more turns it says so.
    failed: Option<(Failed, usize)>,
    /// Whether that is to be said now.
    is_to_complain: bool,
    /// Looks in this turn.
    looks: u64,
    /// Which others say so, in this turn and in those before it: bit i stands for replica i.
    complaints: [u64; COMPLAINT_TURNS],
    /// Whether the view has executed anything.
    has_executed: bool,
    /// The first ticket of the turn: what has an earlier one waited before it began.
    first_ticket: u64,
    /// What had been passed on when the turn began, as it had waited longest.
    passed_on: Option<Digest>,
    /// Batches that the primary has proposed in the turn, and how many it may before what was passed on.
    proposals: usize,
    before: usize,
}

impl Watch {
    /// Among n replicas.
    pub(in crate::protocols) fn new(n: usize) -> Self {
        Self::with(Expectation::new(n), Beginnings::new(n), 2 * n + BATCHES_BEFORE)
    }

    fn with(expectation: Expectation, beginnings: Beginnings, before: usize) -> Self {
        Self {
            expectation,
            beginnings,
            awaits_since: None,
            heard: Instant(0),
            primary: None,
            failed: None,
            is_to_complain: false,
            looks: 0,
            complaints: [0; COMPLAINT_TURNS],
            has_executed: false,
            first_ticket: 0,
            passed_on: None,
            proposals: 0,
            before,
        }
    }

    /// Goes on in another instance, with what is expected and nothing else.
    pub(in crate::protocols) fn resumed(self) -> Self {
        Self::with(self.expectation.resumed(), self.beginnings, self.before)
    }

    /// How long a turn is.
    pub(in crate::protocols) const fn turn(view_timeout: Duration) -> Duration {
        Duration(view_timeout.0 / TURNS)
    }

    /// Aardvark 3: in what time something is to be proposed that waits.
    pub(in crate::protocols) const fn heartbeat(view_timeout: Duration) -> Duration {
        Duration(Self::turn(view_timeout).0.saturating_mul(HEARTBEAT_TURNS))
    }

    /// How often [`Self::look`] is to be asked.
    pub(in crate::protocols) const fn look_interval(view_timeout: Duration) -> Duration {
        Duration(view_timeout.0 / (TURNS * LOOKS))
    }

    /// Aardvark 5, while the view begins. Whether a turn is over: then it is to be [judged](Self::judge).
    pub(in crate::protocols) fn look(&mut self, now: Instant, view_timeout: Duration) -> bool {
        if self.expectation.look(now, view_timeout) {
            (self.failed, self.is_to_complain) = (Some((Failed::Slow, COMPLAINT_TURNS - 1)), true);
        }
        self.looks = (self.looks + 1) % LOOKS;
        self.looks == 0
    }

    /// Aardvark 3: how long this primary may take to begin its view, if it is the first that others leave for.
    pub(in crate::protocols) fn time_to_begin(&self, primary: ReplicaId, view_timeout: Duration) -> Duration {
        self.beginnings.expected(primary, Self::look_interval(view_timeout), Self::turn(view_timeout))
    }

    /// Aardvark 3. The view of this primary has not begun in time.
    pub(in crate::protocols) const fn missed(&mut self, primary: ReplicaId) {
        self.beginnings.missed(primary);
    }

    /// Aardvark 3: 2f + 1 have left for a view. What this replica takes itself, if it is `mine`, says nothing.
    pub(in crate::protocols) fn awaits(&mut self, now: Instant, mine: bool) {
        self.awaits_since = (!mine).then_some(now);
    }

    /// A view begins. If its primary led the last one as well, that one goes on: it gets no grace by beginning anew.
    pub(in crate::protocols) fn entered(&mut self, now: Instant, primary: ReplicaId) {
        self.awaits_since.take().into_iter().for_each(|since| self.beginnings.note(now - since));
        self.beginnings.begun(primary);
        self.complaints = [0; COMPLAINT_TURNS];
        if self.primary.replace(primary) == Some(primary) {
            return self.pause(now);
        }
        (self.has_executed, self.failed, self.is_to_complain) = (false, None, false);
        (self.heard, self.passed_on, self.proposals) = (now, None, 0);
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
    pub(in crate::protocols) const fn passed_on(&mut self, request: Digest) {
        self.passed_on = Some(request);
    }

    /// The primary proposes a batch.
    pub(in crate::protocols) fn proposed(&mut self, now: Instant) {
        self.heard = now;
        self.proposals = self.proposals.saturating_add(1);
    }

    /// What was done since the last time, but for what was void.
    pub(in crate::protocols) fn take_measure(&mut self, now: Instant) -> Measure {
        self.expectation.take_measure(now)
    }

    /// A request of this identity that waited here was executed.
    pub(in crate::protocols) fn executed(&mut self, of: IdentityId) {
        self.has_executed = true;
        self.expectation.executed(of);
    }

    /// A batch of so many requests was.
    pub(in crate::protocols) fn batch(&mut self, requests: usize) {
        self.expectation.batch(requests);
    }

    /// So many requests wait from now on.
    pub(in crate::protocols) fn waiting(&mut self, now: Instant, requests: usize) {
        self.expectation.waiting(now, requests);
    }

    /// Another replica says that the view has failed.
    pub(in crate::protocols) const fn complained(&mut self, from: ReplicaId) {
        self.complaints[0] |= 1 << from.0;
    }

    /// Aardvark 6: why to say now that the view has failed, if it has.
    pub(in crate::protocols) fn complaint(&mut self) -> Option<Failed> {
        core::mem::take(&mut self.is_to_complain).then(|| self.failed()).flatten()
    }

    /// Why this replica finds that the view has failed, if it does.
    pub(in crate::protocols) fn failed(&self) -> Option<Failed> {
        self.failed.map(|(failed, _)| failed)
    }

    /// How many others find that the view has failed.
    fn others(&self) -> usize {
        self.complaints.iter().fold(0, |all, of_turn| all | of_turn).count_ones() as usize
    }

    /// Aardvark 6: why to leave the view, once so many, this replica among them, find that it has failed.
    pub(in crate::protocols) fn leaves(&self, enough: usize) -> Option<Failed> {
        self.failed().filter(|_| self.others() + 1 >= enough)
    }

    /// Whether to be as patient with the next view as before: this one got on, and only was slow, as this replica
    /// finds, or as so many others do before it has looked.
    pub(in crate::protocols) fn leaves_patience(&self, enough: usize) -> bool {
        let is_slow = self.failed().map_or(self.others() >= enough, |failed| !failed.is_suspicion());
        self.has_executed && is_slow
    }

    /// Aardvark 5. This replica leaves the view. If it does so with others, because so many found it slow in their
    /// looks, it is as patient with the next one as they are.
    pub(in crate::protocols) fn left(&mut self, now: Instant, view_timeout: Duration, enough: usize) {
        if self.others() >= enough {
            self.expectation.ended_by_others(now, view_timeout);
        }
    }

    /// Aardvark 3 to 5, at the end of a turn: whether the view has failed in it. `watched`: whether the primary has
    /// something that it must propose. `oldest`: what has waited longest to be proposed.
    pub(in crate::protocols) fn judge(
        &mut self,
        now: Instant,
        view_timeout: Duration,
        watched: bool,
        oldest: Option<Digest>,
    ) {
        if !watched {
            self.heard = now;
        }
        let is_slow = self.expectation.turn(now, view_timeout);
        let silence = Self::heartbeat(view_timeout);
        let is_left_out = self.passed_on.take().is_some_and(|request| oldest == Some(request));
        let is_unfair = core::mem::take(&mut self.proposals) > self.before && is_left_out;
        let found = match () {
            () if now - self.heard >= silence => Some(Failed::Silent),
            () if is_unfair => Some(Failed::Unfair),
            () => is_slow.then_some(Failed::Slow),
        };
        let still = self.failed.and_then(|(failed, turns)| Some((failed, turns.checked_sub(1)?)));
        self.failed = found.map(|found| (found, COMPLAINT_TURNS - 1)).or(still);
        self.is_to_complain = self.failed.is_some();
        self.complaints.rotate_right(1);
        self.complaints[0] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_of_a_view_is_said_of_no_other() {
        let mut watch = Watch::new(4);
        let silent =
            |watch: &mut Watch, turns: u64| watch.judge(Instant(turns * 500_000), Duration(2_000_000), true, None);
        watch.entered(Instant(0), ReplicaId(0));
        watch.complained(ReplicaId(3));
        assert_eq!(watch.leaves(2), None, "this replica has not found it failed");
        silent(&mut watch, 2);
        assert_eq!(watch.leaves(2), Some(Failed::Silent));
        assert_eq!(watch.leaves(3), None, "one other is not enough");
        for primary in [1, 1] {
            watch.entered(Instant(1_000_000), ReplicaId(primary));
            silent(&mut watch, 4);
            assert_eq!(
                (watch.failed(), watch.leaves(2)),
                (Some(Failed::Silent), None),
                "nobody has said it of this view"
            );
            watch.complained(ReplicaId(2));
        }
    }

    #[test]
    fn what_is_not_said_again_is_forgotten() {
        let mut watch = Watch::new(4);
        let judge =
            |watch: &mut Watch, turn: u64| watch.judge(Instant(turn * 500_000), Duration(2_000_000), turn <= 2, None);
        watch.entered(Instant(0), ReplicaId(0));
        judge(&mut watch, 2);
        (3..5).for_each(|turn| judge(&mut watch, turn));
        assert_eq!(watch.failed(), Some(Failed::Silent), "two turns later");
        watch.complained(ReplicaId(1));
        assert!(watch.leaves(2).is_some());
        judge(&mut watch, 5);
        assert_eq!(watch.failed(), None);
    }

    /// Its view would never be old enough for more to be expected of it.
    #[test]
    fn a_primary_that_begins_anew_goes_on() {
        let timeout = Duration(2_000_000);
        let mut watch = Watch::new(4);
        let mut now = Instant(0);
        let mut fails_at = None;
        for turn in 0..200 {
            if turn % 8 == 0 {
                watch.entered(now, ReplicaId(1));
            }
            watch.waiting(now, 100);
            now += Watch::turn(timeout);
            watch.executed(IdentityId(1));
            watch.judge(now, timeout, false, None);
            fails_at = fails_at.or(watch.failed().map(|failed| (turn, failed)));
        }
        assert!(fails_at.is_some_and(|(turn, failed)| failed == Failed::Slow && turn < 180), "{fails_at:?}");
    }
}
