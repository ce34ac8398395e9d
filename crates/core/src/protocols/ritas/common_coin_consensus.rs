//! Binary consensus with a common coin (Mostéfaoui, Moumen, Raynal; PODC 2014, with a repair): all correct processes
//! decide the same bit, and one that a correct process has proposed.
//!
//! # What it is for
//! Against a network that schedules by what it sees, local coins take about 2ⁿ⁻ᶠ⁻¹ rounds to agree with one another
//! (ritas-F10). One coin for all agrees with itself: four rounds are expected, whatever the network does and whatever
//! n is. And a round is some n² short messages, where [`super::binary_consensus`] has 3n reliable broadcasts.
//!
//! # Steps
//! Rounds, counted from 0.
//! * CC 1. Say EST with the estimate; in the first round that is what is proposed.
//! * CC 2. Say EST with a bit that f + 1 say. A bit that 2f + 1 say is *possible*.
//! * CC 3. Say AUX with the first possible bit, once.
//! * CC 4. Wait for n − f AUX with possible bits. Say CONF: with the bit if they all say one, with ⊥ if they say both.
//! * CC 5. Wait for n − f CONF whose bits are possible. They *confirm* a bit if they all say that, and none otherwise.
//!   Now, and not before, say the share of this round's coin.
//! * CC 6. f + 1 valid shares show the coin. If a bit is confirmed it is the next estimate, and it is decided if the
//!   coin shows it. If none is, the coin is the next estimate.
//! * CC 7. Who has decided takes part in a further round if it sees anybody there.
//! * CC 8. The first round has a coin that everybody knows, 1, and neither CONF nor SHARE: what n − f AUX say is
//!   confirmed.
//!
//! # Why it is safe
//! *Possible bits were proposed*: the first correct process that says EST with a bit that it does not estimate has f +
//! 1 before it. *One bit is confirmed*: two sets of n − f share a correct process, and that says CONF, and AUX, once.
//! *A decision is the only one*: if one process confirms a bit, n − f say CONF with it, and a correct one of these is
//! among any n − f. So the others confirm it, too, or none; those take the coin, and the coin is the bit if anybody
//! decides. Then all correct processes estimate it, the other bit is never possible again, and nobody decides that.
//! None of this asks when the coin is seen, or what it shows: whoever foresees it harms nothing but the next part. (2f
//! + 1 reads [`strong`](crate::replicas::Replicas::strong), which is no less, and no more than the n − f.)
//!
//! # Why it ends
//! *No round is for ever.* Some bit is estimated by f + 1 of the n − f ≥ 2f + 1 correct processes; all say it, and it
//! becomes possible. What is possible to one is so to all, for f + 1 correct ones of 2f + 1 have said it to all. So the
//! AUX and CONF of all correct processes count with all, and with the CONF come the shares.
//!
//! *The coin is as good as tossed when it is too late to schedule against it.* The first correct process that says its
//! share has n − f CONF. Any n − f CONF of another share a correct one with these, and that one's is said already. If
//! it is ⊥ no process confirms a bit any more, and all take the coin. If it is a bit no other is ever confirmed; the
//! coin is that bit with probability ½, and then all estimate it. So from the second round on all correct processes
//! estimate one bit after two rounds, as is to be expected; from then on the bit is confirmed in each round, and
//! decided with probability ½.
//!
//! *Without CONF it need not end.* In PODC 2014 shares are said after CC 4. A process that has both bits lets the coin
//! be seen while another has no AUX yet, and a scheduler with one liar gives that one n − f AUX of whichever bit the
//! coin does *not* show: the estimates stay split, for ever (Cachin, Zanolini, arXiv:2005.08795; a test plays it).
//!
//! # After a crash, and without a log
//! What was said was on disk, and is not said differently. What a round had confirmed is found anew from the CONF of
//! the others, and may be another set of n − f of them; the arguments above hold for each. What a process is silent
//! about ([`super::scope::Silence`]) it does not count as said by itself either.
//!
//! # Deviations
//! * *CONF* is the repair that HoneyBadgerBFT took up; JACM 2015 has another, with two more steps.
//! * *CC 7* instead of endless rounds, and [`super::decision`] ends the instance: one that decides late is helped, and
//!   if all decide in one round nobody begins another.
//! * *CC 8*, as implementations of HoneyBadgerBFT have it: multi-valued consensus proposes 1 unless something is wrong.
//!   All who propose 1 decide after two message delays without a coin. It costs a round where estimates are split.
//! * *AUX and CONF are counted live*, as votes are in the sibling (ritas-F4): what is not possible yet may become so.
//!
//! # Cost
//! n(n − 1) messages for EST, twice as many if both bits are about; as many for AUX; from the second round on as many
//! for CONF, and for SHARE. f shares of others are checked in each such round.

use super::binary_consensus::Vote;
use super::message::{Heard, Statement};
use super::path::Path;
use super::scope::Scope;
use super::tally::Tally;
use crate::auth::{CoinShare, CommonCoin};
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use crate::replicas::{ReplicaSet, Replicas};
use crate::wire::Wire;
use alloc::vec::Vec;

/// Rounds that a process lets in before it comes to them. Who is further on is asked again.
const ROUNDS_AHEAD: u64 = 2;

/// CC 8. What the coin of the first round shows.
const FIRST_SIDE: bool = true;

/// Whether the coin of this round is tossed.
const fn is_tossed(round: u64) -> bool {
    round > 0
}

/// What it wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// CC 1: begin this round with this estimate.
    Begin(u64, bool),
    /// CC 6.
    Decided(bool),
}

/// An instance: which round it is in.
#[derive(Clone, Debug)]
pub(super) struct CommonCoinConsensus {
    has_proposed: bool,
    /// Rounds that this process has begun.
    begun: u64,
    /// What it estimates at the beginning of the next one, if it may begin that.
    estimate: Option<bool>,
    /// Rounds that anybody was seen in, and all before.
    seen: u64,
}

impl CommonCoinConsensus {
    pub(super) const fn new() -> Self {
        Self { has_proposed: false, begun: 0, estimate: None, seen: 0 }
    }

    /// Rounds that a process may be seen in: more than a correct one is ahead without this one being asked for it
    /// again.
    pub(super) const fn rounds_max(&self) -> u64 {
        self.begun + ROUNDS_AHEAD
    }

    /// CC 1. Whoever has proposed before, as its log knows, does not do so again.
    pub(super) fn propose(&mut self, bit: bool, has_decided: bool) -> Option<Output> {
        if core::mem::replace(&mut self.has_proposed, true) {
            return None;
        }
        self.estimate = Some(bit);
        self.begin(has_decided)
    }

    /// CC 7. Somebody is in this round.
    pub(super) fn see(&mut self, round: u64, has_decided: bool) -> Option<Output> {
        self.seen = self.seen.max(round + 1);
        self.begin(has_decided)
    }

    /// CC 6. A round has come to its end.
    pub(super) fn on_end(&mut self, round: u64, end: End, has_decided: bool) -> Vec<Output> {
        let decided = end.confirmed.filter(|bit| *bit == end.side && !has_decided);
        // After a crash the end of an earlier round may be found anew.
        if round + 1 == self.begun && self.estimate.is_none() {
            self.estimate = Some(end.confirmed.unwrap_or(end.side));
        }
        let next = self.begin(has_decided || decided.is_some());
        decided.map(Output::Decided).into_iter().chain(next).collect()
    }

    /// CC 1 and 7.
    fn begin(&mut self, has_decided: bool) -> Option<Output> {
        if has_decided && self.seen <= self.begun {
            return None;
        }
        let estimate = self.estimate.take()?;
        self.begun += 1;
        Some(Output::Begin(self.begun - 1, estimate))
    }

    /// This process has said something about this round before it crashed.
    pub(super) fn replay(&mut self, round: u64) {
        self.has_proposed = true;
        self.begun = self.begun.max(round + 1);
    }
}

/// CC 6: how a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// What is confirmed.
    confirmed: Option<bool>,
    /// What the coin shows.
    side: bool,
}

/// A round: what everybody says in it.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// Whether this process has begun it. Before that it only listens.
    is_begun: bool,
    /// CC 2: who says EST with 0, and with 1.
    ests: [ReplicaSet; 2],
    auxes: Tally<bool>,
    /// CC 4: what n − f AUX say.
    seen: Option<Vote>,
    confs: Tally<Vote>,
    /// CC 5.
    confirmed: Option<Vote>,
    /// This process's share, and those of others as long as f + 1 are not here: valid ones.
    shares: Vec<(ReplicaId, CoinShare)>,
    /// Whose share was heard, and whose is none.
    shared: ReplicaSet,
    refused: ReplicaSet,
    has_ended: bool,
}

impl Round {
    pub(super) const fn new() -> Self {
        Self {
            is_begun: false,
            ests: [ReplicaSet::NOBODY; 2],
            auxes: Tally::new(),
            seen: None,
            confs: Tally::new(),
            confirmed: None,
            shares: Vec::new(),
            shared: ReplicaSet::NOBODY,
            refused: ReplicaSet::NOBODY,
            has_ended: false,
        }
    }

    /// CC 1.
    pub(super) fn begin(&mut self, scope: &mut Scope<'_>, at: Path, estimate: bool) {
        self.is_begun = true;
        scope.step("CC 1");
        self.estimate(scope, at, estimate);
    }

    fn estimate(&mut self, scope: &mut Scope<'_>, at: Path, bit: bool) {
        let said = &mut self.ests[usize::from(bit)];
        if scope.speaks_of(at) && !said.contains(scope.me) {
            said.insert(scope.me);
            scope.say(at, Statement::Est(bit));
        }
    }

    /// Another process says something.
    ///
    /// # Errors
    /// Why it does not count: [`Rejection::BadShare`] if a share is not its sender's.
    pub(super) fn take(
        &mut self,
        scope: &Scope<'_>,
        (at, coin): (Path, Option<&CommonCoin>),
        from: ReplicaId,
        statement: Statement,
    ) -> Result<(), Rejection> {
        match statement {
            Statement::Est(bit) => match self.ests[usize::from(bit)].contains(from) {
                true => Err(Rejection::Duplicate),
                false => {
                    self.ests[usize::from(bit)].insert(from);
                    Ok(())
                }
            },
            Statement::Aux(bit) => self.auxes.hear(from, bit),
            Statement::Conf(vote) if is_tossed(at.last().number()) => self.confs.hear(from, vote),
            Statement::Share(share) if is_tossed(at.last().number()) => self.on_share(scope, (at, coin), from, share),
            _ => Err(Rejection::Malformed),
        }
    }

    /// CC 6. No more shares are checked than are needed, and of each process one.
    fn on_share(
        &mut self,
        scope: &Scope<'_>,
        (at, coin): (Path, Option<&CommonCoin>),
        from: ReplicaId,
        share: CoinShare,
    ) -> Result<(), Rejection> {
        if self.shared.contains(from) || self.refused.contains(from) {
            return Err(Rejection::Duplicate);
        }
        let is_needed = self.shares.len() < scope.replicas.weak();
        if is_needed && !coin.is_some_and(|coin| coin.verify(from, &at.to_bytes(), &share)) {
            self.refused.insert(from);
            return Err(Rejection::BadShare);
        }
        self.shared.insert(from);
        if is_needed {
            self.shares.push((from, share));
        }
        Ok(())
    }

    /// CC 2 to 6: what follows from what is known; how the round ends, when it does.
    pub(super) fn advance(&mut self, scope: &mut Scope<'_>, at: Path, coin: Option<&CommonCoin>) -> Option<End> {
        if !self.is_begun {
            return None;
        }
        self.pass_on(scope, at);
        self.look(scope, at);
        if is_tossed(at.last().number()) {
            self.confirm(scope, at, coin);
        } else {
            self.confirmed = self.seen;
        }
        let side = self.side(&scope.replicas, at, coin)?;
        let confirmed = self.confirmed.filter(|_| !self.has_ended)?;
        scope.step("CC 6");
        self.has_ended = true;
        Some(End { confirmed, side })
    }

    fn is_possible(&self, replicas: &Replicas, bit: bool) -> bool {
        self.ests[usize::from(bit)].len() >= replicas.strong()
    }

    /// CC 2.
    fn pass_on(&mut self, scope: &mut Scope<'_>, at: Path) {
        for bit in [false, true] {
            let said = self.ests[usize::from(bit)];
            if said.len() >= scope.replicas.weak() && !said.contains(scope.me) {
                scope.step("CC 2");
                self.estimate(scope, at, bit);
            }
        }
    }

    /// CC 3 and 4.
    fn look(&mut self, scope: &mut Scope<'_>, at: Path) {
        let replicas = scope.replicas;
        let [zero, one] = [false, true].map(|bit| self.is_possible(&replicas, bit));
        if (zero || one) && self.auxes.said(scope.me).is_none() && scope.speaks_of(at) {
            scope.step("CC 3");
            self.auxes.hear(scope.me, one).expect("nothing was said");
            scope.say(at, Statement::Aux(one));
        }
        let count = |bit: bool, is_possible: bool| if is_possible { self.auxes.speakers(&bit).len() } else { 0 };
        let counts = [count(false, zero), count(true, one), 0];
        if self.seen.is_none()
            && let Some(vote) = said_by_enough(&replicas, counts)
        {
            self.seen = Some(vote);
            if is_tossed(at.last().number()) && self.confs.said(scope.me).is_none() && scope.speaks_of(at) {
                scope.step("CC 4");
                self.confs.hear(scope.me, vote).expect("nothing was said");
                scope.say(at, Statement::Conf(vote));
            }
        }
    }

    /// CC 5.
    fn confirm(&mut self, scope: &mut Scope<'_>, at: Path, coin: Option<&CommonCoin>) {
        let replicas = scope.replicas;
        let [zero, one] = [false, true].map(|bit| self.is_possible(&replicas, bit));
        let count = |vote: Vote, is_possible: bool| if is_possible { self.confs.speakers(&vote).len() } else { 0 };
        let counts = [count(Some(false), zero), count(Some(true), one), count(None, zero && one)];
        if self.seen.is_none() || self.confirmed.is_some() {
            return;
        }
        let Some(vote) = said_by_enough(&replicas, counts) else { return };
        self.confirmed = Some(vote);
        if !self.shared.contains(scope.me) && scope.speaks_of(at) {
            scope.step("CC 5");
            let share = coin.expect("whoever tosses has keys for it").share(&at.to_bytes());
            self.shared.insert(scope.me);
            self.shares.push((scope.me, share));
            scope.say(at, Statement::Share(share));
        }
    }

    /// CC 6 and 8.
    fn side(&self, replicas: &Replicas, at: Path, coin: Option<&CommonCoin>) -> Option<bool> {
        if !is_tossed(at.last().number()) {
            return Some(FIRST_SIDE);
        }
        let enough = self.shares.get(..replicas.weak()).filter(|_| !self.has_ended && self.confirmed.is_some())?;
        Some(coin.expect("whoever tosses has keys for it").side(enough))
    }

    /// What was heard of one process.
    pub(super) fn heard(&self, of: ReplicaId, heard: &mut Heard) {
        for bit in [false, true].into_iter().filter(|bit| self.ests[usize::from(*bit)].contains(of)) {
            heard.add(Heard::est(bit));
        }
        let is_heard = [
            (self.auxes.said(of).is_some(), Heard::AUX),
            (self.confs.said(of).is_some(), Heard::CONF),
            (self.shared.contains(of) || self.refused.contains(of), Heard::SHARE),
        ];
        is_heard.into_iter().filter(|(is_heard, _)| *is_heard).for_each(|(_, what)| heard.add(what));
    }

    /// What this process has said.
    pub(super) fn own(&self, me: ReplicaId) -> Vec<Statement> {
        let ests = [false, true].into_iter().filter(|bit| self.ests[usize::from(*bit)].contains(me));
        let aux = self.auxes.said(me).copied().map(Statement::Aux);
        let conf = self.confs.said(me).copied().map(Statement::Conf);
        let share = self.shares.iter().find(|(of, _)| *of == me).map(|(_, share)| Statement::Share(*share));
        ests.map(Statement::Est).chain(aux).chain(conf).chain(share).collect()
    }

    /// This process has said so before it crashed.
    pub(super) fn replay(&mut self, me: ReplicaId, statement: &Statement) {
        self.is_begun = true;
        match statement {
            Statement::Est(bit) => self.ests[usize::from(*bit)].insert(me),
            Statement::Aux(bit) => self.auxes.replay(me, *bit),
            Statement::Conf(vote) => {
                self.confs.replay(me, *vote);
                self.seen = Some(*vote);
            }
            Statement::Share(share) => {
                if !self.shared.contains(me) {
                    self.shared.insert(me);
                    self.shares.push((me, *share));
                }
            }
            other => unreachable!("{other:?} is never said about a round"),
        }
    }
}

/// CC 4 and 5: what n − f say, of those that say 0, 1 and both. A bit, if there are n − f that all say that.
fn said_by_enough(replicas: &Replicas, [zeros, ones, both]: [usize; 3]) -> Option<Vote> {
    let enough = replicas.reachable();
    match () {
        () if zeros >= enough => Some(Some(false)),
        () if ones >= enough => Some(Some(true)),
        () if zeros + ones + both >= enough => Some(None),
        () => None,
    }
}
