//! Is the ring slower than its replicas? Section 5.3.2 of the thesis, with the repairs of ring-F21.
//!
//! A ring is as fast as its slowest replica, and a replica that delays what it passes on harms everybody without ever
//! being silent. So the replicas compare how long a batch takes around the ring with how long its hops should.
//!
//! # Steps
//! * Pace 1. Every replica sends PING to its successor, once in each interval. PONG waits its turn like anything else;
//!   half the time until it comes back is the *hop*. So is half the time for which none has come.
//! * Pace 2. Each in turn begins a round: CHECK goes once around, and every replica adds its hop, signed for this
//!   round.
//! * Pace 3. When it is back with n hops, the originator sends them around again: REPORT.
//! * Pace 4. Whoever has the n hops compares them with the time that the batches of this entry took since the last
//!   round, on average, for the first time around; if there were none, with the last such time, up to n intervals ago.
//!   It votes that the ring is slow if that is more than `ring_slow_after`, and more than twice what n hops take among
//!   correct replicas: n times the (f+1)-th smallest. The vote is signed for this round, and goes to all.
//! * Pace 5. 2f+1 votes end a round; what f+1 of them say is its verdict. A replica raises the *alarm* while the last
//!   rounds of f+1 originators, one of them correct, say that the ring is slow. Whoever passes no rounds on keeps
//!   nobody from it: if there are none for 2n intervals, it is raised by `ring_slow_after` alone.
//!
//! # What it is worth
//! Of n hops at most 2f are measured by or with a faulty replica, and the others, f+1 at least, are right. Where n is
//! more than 3f+1, 2f+1 reads [`strong`](crate::replicas::Replicas::strong), which is never less.
//! * The (f+1)-th smallest is no larger than the largest right one: nobody can make the ring look as if it had to be
//!   slow. But f replicas that answer PING at once make 2f ≥ f+1 hops too *small*, and then everybody finds an even
//!   ring slow (ring-F21). So the alarm is a signal to the operator.
//! * The (2f+1)-th smallest is no smaller than the smallest right one: where links are equally fast, nobody can make an
//!   even ring look slow. A ring that is slow by that measure too is slow *beyond doubt*, although not each slow ring
//!   is. That is a reason to switch, if the operator wants it: `ring_stop_after`, which the batches must exceed
//!   besides, so that who wants a switch has to make the ring as slow as that. One liar's word is not enough, since f+1
//!   of the 2f+1 votes are needed, of f+1 originators; nor are its switches free, since the next ring is measured anew
//!   for n intervals, and the Backups in between grow.
//!
//! The alarm names the link with the longest hop if that is longer than the others. A replica that is quick with PINGs
//! and slow with batches is noticed, but not named.
//!
//! # Bounds
//! Each replica sends one PING in an interval, and n rounds take as many intervals: a message has at most n hops, and
//! who asks for more signatures than one for each originator in an interval is refused. State is n² votes.
//!
//! # Deviations from the thesis
//! Signatures name instance, originator and round; a vote is of a round and not of a number of its own, so that an old
//! one cannot be counted again; the hops are of n distinct replicas in the order of the ring. What is measured is the
//! first time around of a batch at its entry, which the thesis leaves open.

mod message;

pub use message::{Delay, Hop, Hops, PaceMessage, RingPace, Round, Vote};

use crate::auth::{Claimed, Keyring, Signed};
use crate::cluster::Cluster;
use crate::cluster::Limits;
use crate::ids::{InstanceId, ReplicaId};
use crate::machine::Destination;
use crate::notice::{Alarm, Pace, Suspect};
use crate::rejection::Rejection;
use crate::replicas::Replicas;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Status intervals in an interval: how often there is a PING, and a round of one replica.
const STATUS_INTERVALS: u64 = 5;

/// Twice what n hops should take is not slow yet (K_lat and 1 + ε of the thesis, as one).
const ALLOWANCE: u64 = 2;

/// Pace 5: what a round has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verdict {
    number: u64,
    pace: Pace,
    suspect: Option<Suspect>,
    at: Instant,
}

/// What surrounds it: the part of [`crate::switching::Surroundings`] that it needs.
pub(super) struct Around<'a> {
    pub(super) now: Instant,
    pub(super) limits: &'a Limits,
    pub(super) keyring: &'a Keyring,
    pub(super) me: ReplicaId,
    /// What is to be sent.
    pub(super) send: &'a mut dyn FnMut(Destination, PaceMessage),
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Watch {
    instance: InstanceId,
    /// Those of the instance.
    replicas: Replicas,
    /// When the first PING was sent.
    began: Option<Instant>,
    /// The PING that is under way.
    pinged: Option<(u64, Instant)>,
    hop: Option<Duration>,
    /// Of the batches since the last vote: how many came around, and how long they took together.
    came_around: (u64, Duration),
    /// How long the requests of this entry wait until they leave it, smoothed: the first of each batch.
    wait: Duration,
    /// How many microseconds they took on average, and when there were some for the last time.
    took: Option<(u64, Instant)>,
    /// The last round that this replica began.
    begun: u64,
    /// When a CHECK of an originator last passed: each costs a signature.
    passed: BTreeMap<ReplicaId, Instant>,
    /// The last round of each originator of which there is a REPORT, and the hop that stands out in it.
    reported: BTreeMap<ReplicaId, (u64, Option<Suspect>)>,
    /// The last vote of each voter on the rounds of an originator, by (originator, voter): votes may overtake REPORT.
    votes: BTreeMap<(ReplicaId, ReplicaId), (u64, Pace)>,
    /// The last one of each originator.
    verdicts: BTreeMap<ReplicaId, Verdict>,
}

/// Pace 1: how often.
pub(super) const fn interval(limits: &Limits) -> Duration {
    Duration(STATUS_INTERVALS * limits.status_interval.0)
}

impl Watch {
    pub(super) const fn new(instance: InstanceId, replicas: Replicas) -> Self {
        Self {
            instance,
            replicas,
            began: None,
            pinged: None,
            hop: None,
            came_around: (0, Duration(0)),
            wait: Duration(0),
            took: None,
            begun: 0,
            passed: BTreeMap::new(),
            reported: BTreeMap::new(),
            votes: BTreeMap::new(),
            verdicts: BTreeMap::new(),
        }
    }

    /// Pace 5. A round that was long ago says nothing: its originator has stopped, or is silenced.
    pub(super) fn alarm(&self, now: Instant, limits: &Limits) -> Option<Alarm> {
        let two_cycles = Duration(2 * self.replicas.n() as u64 * interval(limits).0);
        let recent = || self.verdicts.values().filter(|verdict| now - verdict.at <= two_cycles);
        if recent().count() < self.replicas.weak() {
            let are_missed = self.began.is_some_and(|began| now - began > two_cycles);
            let is_slow = self.average().is_some_and(|took| took > limits.ring_slow_after.0);
            return (are_missed && is_slow).then_some(Alarm { pace: Pace::Slow, suspect: None });
        }
        let slow = || recent().filter(|verdict| verdict.pace > Pace::Even);
        // One correct originator's round says at least as much.
        let pace = self.replicas.reached(slow().map(|verdict| verdict.pace))?;
        let suspect = slow().max_by_key(|verdict| verdict.at).and_then(|verdict| verdict.suspect);
        Some(Alarm { pace, suspect })
    }

    /// A batch of this entry has come around.
    pub(super) const fn note(&mut self, took: Duration) {
        self.came_around = (self.came_around.0 + 1, Duration(self.came_around.1.0.saturating_add(took.0)));
    }

    /// A batch leaves, whose first request has waited for so long.
    pub(super) const fn note_wait(&mut self, wait: Duration) {
        self.wait = Duration((7 * self.wait.0 + wait.0) / 8);
    }

    /// How long a request of this entry takes, as far as is known: it waits, and goes around twice. The hops that some
    /// paths have more are without bodies.
    pub(super) fn delay(&self) -> Option<u64> {
        let around = self.average().or(self.took.map(|(took, _)| took))?;
        Some(self.wait.0.saturating_add(around.saturating_mul(2)))
    }

    /// How long batches took on average since the last vote.
    const fn average(&self) -> Option<u64> {
        self.came_around.1.0.checked_div(self.came_around.0)
    }

    /// Pace 1 and 2: every interval.
    pub(super) fn tick(&mut self, around: &mut Around<'_>) {
        let Around { now, limits, me, .. } = *around;
        let number = now.0 / interval(limits).0.max(1);
        self.began.get_or_insert(now);
        // One that takes long is asked for again, and goes on taking long.
        let (asked, since) = *self.pinged.get_or_insert((number, now));
        (around.send)(successor(self.replicas, me), PaceMessage::Ping(asked));
        let waited = Duration((now - since).0 / 2);
        self.hop = self.hop.map(|hop| hop.max(waited)).or((since < now).then_some(waited));
        if number % self.replicas.n() as u64 == u64::from(me.0) && number > self.begun && self.hop.is_some() {
            self.begun = number;
            let round = Round { originator: me, number };
            self.pass_on(around, Hops { round, hops: Vec::new() });
        }
    }

    /// Pace 2: adds this replica's hop.
    fn pass_on(&self, around: &mut Around<'_>, mut hops: Hops) {
        // Who has no hop yet ends the round: it has only just begun.
        let Some(hop) = self.hop else { return };
        let hop = Hop { instance: self.instance, round: hops.round, microseconds: hop.0 };
        hops.hops.push(around.keyring.sign(hop).into());
        (around.send)(successor(self.replicas, around.me), PaceMessage::Check(hops));
    }

    /// # Errors
    /// Why it is not what a correct replica says.
    pub(super) fn on_message(
        &mut self,
        around: &mut Around<'_>,
        from: ReplicaId,
        message: PaceMessage,
    ) -> Result<(), Rejection> {
        let after_us = from == self.replicas.next(around.me);
        let before_us = around.me == self.replicas.next(from);
        match message {
            PaceMessage::Ping(number) if before_us => {
                (around.send)(Destination::Replica(from), PaceMessage::Pong(number));
            }
            PaceMessage::Pong(number) if after_us => {
                if let Some((_, at)) = self.pinged.take_if(|(pinged, _)| *pinged == number) {
                    self.hop = Some(Duration((around.now - at).0 / 2));
                }
            }
            PaceMessage::Check(hops) if before_us => return self.on_check(around, hops),
            PaceMessage::Report(hops) if before_us => return self.on_report(around, hops),
            PaceMessage::Vote(vote) if vote.signer() == from => return self.on_vote(around, vote),
            _ => return Err(Rejection::WrongSender),
        }
        Ok(())
    }

    /// Pace 2, and Pace 3 at the originator.
    fn on_check(&mut self, around: &mut Around<'_>, hops: Hops) -> Result<(), Rejection> {
        let Around { now, limits, me, .. } = *around;
        let originator = hops.round.originator;
        if !self.replicas.contains(originator) {
            return Err(Rejection::Malformed);
        }
        let come = if originator == me { self.replicas.n() } else { self.replicas.distance(originator, me) };
        if hops.hops.len() != come {
            return Err(Rejection::Malformed);
        }
        if originator == me && hops.round.number != self.begun {
            return Err(Rejection::OutsideWindow);
        }
        if self.passed.get(&originator).is_some_and(|at| now - *at < interval(limits)) {
            return Err(Rejection::Overload);
        }
        self.check_last(around, &hops)?;
        self.passed.insert(originator, now);
        if originator != me {
            self.pass_on(around, hops);
            return Ok(());
        }
        // Those before it its predecessor has only passed on.
        self.check(around, &hops).map_err(|_| Rejection::OutsideWindow)?;
        (around.send)(successor(self.replicas, me), PaceMessage::Report(hops));
        Ok(())
    }

    /// Pace 3: passes on, and Pace 4. The originator gets it last.
    fn on_report(&mut self, around: &mut Around<'_>, hops: Hops) -> Result<(), Rejection> {
        let Around { now, limits, me, .. } = *around;
        let round = hops.round;
        if !self.replicas.contains(round.originator) || hops.hops.len() != self.replicas.n() {
            return Err(Rejection::Malformed);
        }
        if self.reported.get(&round.originator).is_some_and(|(last, _)| *last >= round.number) {
            return Err(Rejection::StaleTimestamp);
        }
        let signed = self.check(around, &hops)?.into_iter();
        let mut times: Vec<(u64, ReplicaId)> = signed.map(|hop| (hop.value().microseconds, hop.signer())).collect();
        times.sort_unstable();
        if let Some(took) = self.average() {
            self.took = Some((took, now));
            self.came_around = (0, Duration(0));
        }
        let cycle = Duration(self.replicas.n() as u64 * interval(limits).0);
        let took = self.took.filter(|(_, at)| now - *at <= cycle);
        let pace = took.map_or(Pace::Even, |(took, _)| judge(self.replicas, limits, &times, took));
        if round.originator != me {
            (around.send)(successor(self.replicas, me), PaceMessage::Report(hops));
        }
        let vote = around.keyring.sign(Vote { instance: self.instance, round, pace });
        (around.send)(Destination::Replicas, PaceMessage::Vote(vote.into()));
        self.reported.insert(round.originator, (round.number, suspect(self.replicas, around.limits, &times)));
        self.votes.insert((round.originator, me), (round.number, pace));
        self.decide(around, round.originator);
        Ok(())
    }

    /// Pace 5.
    fn on_vote(&mut self, around: &Around<'_>, vote: Claimed<Signed<Vote>>) -> Result<(), Rejection> {
        let Vote { instance, round, .. } = *vote.claims();
        if instance != self.instance || !self.replicas.contains(round.originator) {
            return Err(Rejection::Malformed);
        }
        let slot = (round.originator, vote.signer());
        if self.votes.get(&slot).is_some_and(|(last, _)| *last >= round.number) {
            return Err(Rejection::StaleTimestamp);
        }
        let vote = around.keyring.verify(vote).ok_or(Rejection::BadSignature)?;
        self.votes.insert(slot, (round.number, vote.value().pace));
        self.decide(around, round.originator);
        Ok(())
    }

    fn decide(&mut self, around: &Around<'_>, originator: ReplicaId) {
        let Some((number, suspect)) = self.reported.get(&originator).copied() else { return };
        let on_it = self.votes.range((originator, ReplicaId(0))..=(originator, ReplicaId(u8::MAX)));
        let votes: Vec<Pace> = on_it.filter(|(_, (last, _))| *last == number).map(|(_, (_, pace))| *pace).collect();
        let is_over = self.verdicts.get(&originator).is_some_and(|verdict| verdict.number == number);
        // Whoever votes later changes nothing.
        if votes.len() >= self.replicas.strong() && !is_over {
            let pace = self.replicas.reached(votes).expect("strong is weak at least");
            self.verdicts.insert(originator, Verdict { number, pace, suspect, at: around.now });
        }
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self, cluster: &Cluster) {
        let is_replica = |id: &ReplicaId| cluster.replicas.contains(*id);
        assert!(self.passed.keys().all(is_replica), "replicas begin rounds");
        assert!(self.reported.keys().all(is_replica), "replicas report");
        let are_replicas = self.votes.keys().all(|(of, by)| is_replica(of) && is_replica(by));
        assert!(are_replicas, "replicas vote on one another's rounds: n² votes");
        assert!(self.pinged.is_none() || self.began.is_some(), "who pings has begun to");
        assert!(self.came_around.0 > 0 || self.came_around.1 == Duration(0), "only batches take time");
        for (originator, verdict) in &self.verdicts {
            let last = self.reported.get(originator).map(|(number, _)| *number);
            assert!(last.is_some_and(|last| verdict.number <= last), "a verdict is on a reported round (Pace 5)");
        }
    }

    /// Pace 2: whether the last hop is that of the replica before this one, for this round. It answers for that and for
    /// no other: each replica has its hop checked by the next.
    fn check_last(&self, around: &Around<'_>, hops: &Hops) -> Result<(), Rejection> {
        let last = hops.hops.last().ok_or(Rejection::Malformed)?;
        let is_of = |hop: &Hop| hop.round == hops.round && hop.instance == self.instance;
        if self.replicas.next(last.signer()) != around.me || !is_of(last.claims()) {
            return Err(Rejection::Malformed);
        }
        around.keyring.verify_in_place(last).map(drop).ok_or(Rejection::BadSignature)
    }

    /// Whether the hops are those of the replicas from the originator on, for this round.
    fn check<'a>(&self, around: &Around<'_>, hops: &'a Hops) -> Result<Vec<&'a Signed<Hop>>, Rejection> {
        let mut expected = hops.round.originator;
        for hop in &hops.hops {
            if hop.signer() != expected || hop.claims().round != hops.round || hop.claims().instance != self.instance {
                return Err(Rejection::Malformed);
            }
            expected = self.replicas.next(expected);
        }
        let signed = hops.hops.iter().map(|hop| around.keyring.verify_in_place(hop));
        signed.collect::<Option<_>>().ok_or(Rejection::BadSignature)
    }
}

/// Pace 4: what a replica makes of n hops in ascending order, when its own batches took so many microseconds.
fn judge(replicas: Replicas, limits: &Limits, hops: &[(u64, ReplicaId)], took: u64) -> Pace {
    let longer_than = |hop: u64| took > hop.saturating_mul(ALLOWANCE * replicas.n() as u64);
    if took <= limits.ring_slow_after.0 || !longer_than(hops[replicas.weak() - 1].0) {
        return Pace::Even;
    }
    let is_reason = limits.ring_stop_after.0 > 0 && took > limits.ring_stop_after.0;
    if is_reason && longer_than(hops[replicas.strong() - 1].0) { Pace::BeyondDoubt } else { Pace::Slow }
}

/// The longest of n hops in ascending order, if it stands out, and more than its part of what is not slow.
fn suspect(replicas: Replicas, limits: &Limits, hops: &[(u64, ReplicaId)]) -> Option<Suspect> {
    let (longest, from) = hops[hops.len() - 1];
    let typical = hops[replicas.weak() - 1].0.max(limits.ring_slow_after.0 / replicas.n() as u64);
    let stands_out = longest > typical.saturating_mul(ALLOWANCE);
    stands_out.then(|| Suspect { from, to: replicas.next(from), took: Duration(longest) })
}

const fn successor(replicas: Replicas, of: ReplicaId) -> Destination {
    Destination::Replica(replicas.next(of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::ids::Principal;
    use crate::testing::net::keyring;
    use alloc::collections::VecDeque;
    use alloc::vec;

    const INSTANCE: InstanceId = InstanceId(1);

    /// A ring whose replicas take so long over each message, and in which requests go around.
    struct Ring {
        cluster: Cluster,
        keyrings: Vec<Keyring>,
        paces: Vec<Watch>,
        /// Microseconds that a message takes to each replica.
        delays: Vec<u64>,
        /// A link, in both directions, on which everything takes 80 ms.
        slow_link: Option<(usize, usize)>,
        /// Who answers no PING, and is slow with batches.
        mute: Option<usize>,
        /// Or passes no rounds on.
        mutes_rounds: bool,
        /// What batches take around the ring, besides.
        extra: u64,
        /// Replicas that answer PING before its turn, and say that their hops take no time.
        hasty: Vec<usize>,
        /// In flight: when it arrives, from whom, to whom.
        mail: VecDeque<(u64, usize, usize, PaceMessage)>,
        now: u64,
        rejected: Vec<Rejection>,
    }

    impl Ring {
        fn new(f: usize, delays: &[u64]) -> Self {
            let mut cluster = Cluster::of([0; 16], 3 * f + 1).unwrap();
            cluster.limits.ring_slow_after = Duration::from_millis(10);
            let keyrings = cluster.replicas.iter().map(|id| keyring(&cluster, Principal::Replica(id))).collect();
            let paces = vec![Watch::new(INSTANCE, cluster.replicas); cluster.replicas.n()];
            let (hasty, mail, rejected) = (Vec::new(), VecDeque::new(), Vec::new());
            Self {
                cluster,
                keyrings,
                paces,
                delays: delays.to_vec(),
                slow_link: None,
                mute: None,
                mutes_rounds: false,
                extra: 0,
                hasty,
                mail,
                now: 0,
                rejected,
            }
        }

        /// One step of one replica.
        fn step(&mut self, me: usize, act: impl FnOnce(&mut Watch, &mut Around<'_>) -> Result<(), Rejection>) {
            let mut sent = Vec::new();
            let mut around = Around {
                now: Instant(self.now),
                limits: &self.cluster.limits,
                keyring: &self.keyrings[me],
                me: ReplicaId(me as u8),
                send: &mut |to, message| sent.push((to, message)),
            };
            self.rejected.extend(act(&mut self.paces[me], &mut around).err());
            for (to, message) in sent {
                let all: Vec<usize> = match to {
                    Destination::Replica(to) => vec![to.0 as usize],
                    _ => (0..self.cluster.replicas.n()).filter(|to| *to != me).collect(),
                };
                for to in all {
                    self.post(me, to, message.clone());
                }
            }
        }

        fn post(&mut self, from: usize, to: usize, mut message: PaceMessage) {
            let is_kept = match message {
                PaceMessage::Pong(_) => !self.mutes_rounds,
                PaceMessage::Check(_) | PaceMessage::Report(_) => self.mutes_rounds,
                _ => false,
            };
            if is_kept && self.mute == Some(from) {
                return;
            }
            let mut delay = self.delays[to];
            if self.slow_link.is_some_and(|(a, b)| (a, b) == (from, to) || (b, a) == (from, to)) {
                delay = 80_000;
            }
            if self.hasty.contains(&to) && matches!(message, PaceMessage::Ping(_)) {
                delay = 0;
            }
            if self.hasty.contains(&from) {
                delay = if matches!(message, PaceMessage::Pong(_)) { 0 } else { delay };
                if let PaceMessage::Check(hops) = &mut message {
                    let hop = *hops.hops.pop().unwrap().claims();
                    hops.hops.push(self.keyrings[from].sign(Hop { microseconds: 0, ..hop }).into());
                }
            }
            self.mail.push_back((self.now + delay, from, to, message));
        }

        /// Every replica's timer, and everything that follows; requests take as long as the replicas do.
        fn interval(&mut self) {
            let end = self.now + interval(&self.cluster.limits).0;
            let around = self.delays.iter().sum::<u64>() + self.extra;
            for me in 0..self.cluster.replicas.n() {
                self.paces[me].note(Duration(around));
                self.step(me, |pace, around| {
                    pace.tick(around);
                    Ok(())
                });
            }
            while let Some(at) = (0..self.mail.len()).min_by_key(|at| self.mail[*at].0) {
                let (at, from, to, message) = self.mail.remove(at).unwrap();
                self.now = self.now.max(at);
                self.step(to, |pace, around| pace.on_message(around, ReplicaId(from as u8), message));
            }
            self.now = end;
        }

        fn alarms(&self) -> Vec<Option<Alarm>> {
            self.paces.iter().map(|pace| pace.alarm(Instant(self.now), &self.cluster.limits)).collect()
        }

        fn paces(&self) -> Vec<Option<Pace>> {
            self.alarms().iter().map(|alarm| alarm.map(|alarm| alarm.pace)).collect()
        }

        /// The last round of which there is a verdict.
        fn last_round(&self) -> Round {
            let verdicts = self.paces[0].verdicts.iter();
            let last = verdicts.map(|(originator, verdict)| (verdict.number, *originator)).max().unwrap();
            Round { originator: last.1, number: last.0 }
        }
    }

    #[test]
    fn an_even_ring_is_not_slow() {
        for f in [1, 2, 3] {
            let n = 3 * f + 1;
            let mut ring = Ring::new(f, &vec![20_000; n]);
            (0..3 * n).for_each(|_| ring.interval());
            assert!(
                ring.paces.iter().all(|pace| pace.verdicts.len() == n),
                "everybody began a round that came to an end"
            );
            assert_eq!(ring.paces(), vec![None; n], "f = {f}");
            assert_eq!(ring.rejected, []);
        }
    }

    #[test]
    fn a_replica_that_delays_is_noticed_and_its_link_named() {
        for f in [1, 2, 3] {
            let n = 3 * f + 1;
            let mut delays = vec![5_000; n];
            delays[1] = 80_000 * f as u64;
            let mut ring = Ring::new(f, &delays);
            (0..3 * n).for_each(|_| ring.interval());
            assert_eq!(ring.paces(), vec![Some(Pace::Slow); n], "f = {f}");
            // Replica 0 measures the hop to replica 1, replica 1 the hop back to itself.
            let is_link = |alarm: &Option<Alarm>| alarm.unwrap().suspect.is_some_and(|suspect| suspect.from.0 <= 1);
            assert!(ring.alarms().iter().all(is_link), "f = {f}");
        }
    }

    /// ring-S14: f replicas make 2f hops too small, so everybody finds an even ring slow. That is why a
    /// verdict is a signal and no more.
    #[test]
    fn hasty_pongs_make_an_even_ring_look_slow() {
        let mut ring = Ring::new(1, &[20_000; 4]);
        ring.hasty = vec![2];
        (0..12).for_each(|_| ring.interval());
        assert_eq!(ring.paces(), vec![Some(Pace::Slow); 4]);
    }

    /// It is no reason to switch, however low the operator sets that: the (2f+1)-th smallest hop is an honest one.
    #[test]
    fn hasty_pongs_force_no_switch() {
        for f in [1, 2] {
            let n = 3 * f + 1;
            let mut ring = Ring::new(f, &vec![20_000; n]);
            ring.cluster.limits.ring_stop_after = Duration(1);
            ring.hasty = (0..f).map(|liar| 3 * liar).collect();
            (0..3 * n).for_each(|_| ring.interval());
            assert_eq!(ring.paces(), vec![Some(Pace::Slow); n], "f = {f}");
        }
    }

    /// A slow link is one, beyond what the operator bears.
    #[test]
    fn a_slow_link_is_a_reason_to_switch_beyond_the_limit_only() {
        for (limit, expected) in [(0, Pace::Slow), (90, Pace::BeyondDoubt), (200, Pace::Slow)] {
            let mut ring = Ring::new(1, &[5_000; 4]);
            (ring.slow_link, ring.extra) = (Some((1, 2)), 80_000);
            ring.cluster.limits.ring_stop_after = Duration::from_millis(limit);
            (0..12).for_each(|_| ring.interval());
            assert_eq!(ring.paces(), [Some(expected); 4], "{limit} ms");
            let named = |alarm: &Option<Alarm>| alarm.unwrap().suspect.map(|suspect| (suspect.from.0, suspect.to.0));
            assert!(ring.alarms().iter().all(|alarm| named(alarm) == Some((1, 2))));
        }
    }

    /// Who does not answer at all has a long hop, and cannot keep rounds from being held.
    #[test]
    fn no_pong_is_a_slow_one() {
        let mut ring = Ring::new(1, &[5_000; 4]);
        (ring.mute, ring.extra) = (Some(2), 80_000);
        (0..12).for_each(|_| ring.interval());
        let named = |alarm: &Option<Alarm>| alarm.unwrap().suspect.map(|suspect| (suspect.from.0, suspect.to.0));
        assert!(ring.alarms().iter().all(|alarm| named(alarm) == Some((1, 2))));
    }

    /// Who lets no round come to its end is noticed as well, where the ring is slow.
    #[test]
    fn rounds_that_never_end_hide_nothing() {
        for (extra, expected) in [(80_000, Some(Alarm { pace: Pace::Slow, suspect: None })), (0, None)] {
            let mut ring = Ring::new(1, &[2_000; 4]);
            (ring.mute, ring.mutes_rounds, ring.extra) = (Some(2), true, extra);
            (0..12).for_each(|_| ring.interval());
            assert!(ring.paces.iter().all(|pace| pace.verdicts.is_empty()));
            assert_eq!(ring.alarms(), vec![expected; 4]);
        }
    }

    /// One originator's rounds alone raise no alarm, and old ones none at all.
    #[test]
    fn an_alarm_takes_f_plus_1_originators_and_ends() {
        let mut ring = Ring::new(1, &[5_000; 4]);
        (ring.slow_link, ring.extra) = (Some((1, 2)), 80_000);
        (0..12).for_each(|_| ring.interval());
        let mut one = ring.paces[0].clone();
        let others = one.verdicts.iter_mut().filter(|(originator, _)| originator.0 != 3);
        others.for_each(|(_, verdict)| verdict.pace = Pace::Even);
        assert_eq!(one.alarm(Instant(ring.now), &ring.cluster.limits), None);
        assert!(ring.paces[0].alarm(Instant(ring.now + 5_000_000), &ring.cluster.limits).is_some());
        ring.paces[0].came_around = (0, Duration(0));
        assert_eq!(ring.paces[0].alarm(Instant(ring.now + 9_000_000), &ring.cluster.limits), None);
        (ring.slow_link, ring.extra) = (None, 0);
        (0..8).for_each(|_| ring.interval());
        assert_eq!(ring.paces(), [None; 4], "it is fast again");
    }

    /// 2f+1 votes that came before the hops do count with them.
    #[test]
    fn votes_may_overtake_the_hops() {
        let mut ring = Ring::new(1, &[5_000; 4]);
        (ring.slow_link, ring.extra) = (Some((1, 2)), 80_000);
        (0..12).for_each(|_| ring.interval());
        let (last, mut late) = (ring.last_round(), ring.paces[0].clone());
        late.verdicts.remove(&last.originator);
        late.votes.remove(&(last.originator, ReplicaId(0)));
        let (number, suspect) = late.reported.remove(&last.originator).unwrap();
        assert_eq!(late.votes.iter().filter(|((of, _), _)| *of == last.originator).count(), 3);
        late.reported.insert(last.originator, (number, suspect));
        late.votes.insert((last.originator, ReplicaId(0)), (number, Pace::Slow));
        ring.step(0, |pace, around| {
            late.decide(around, last.originator);
            *pace = late;
            Ok(())
        });
        assert_eq!(ring.paces[0].verdicts[&last.originator].pace, Pace::Slow);
    }

    #[test]
    fn hops_of_others_and_old_votes_are_not_counted() {
        let mut ring = Ring::new(1, &[1_000; 4]);
        (0..8).for_each(|_| ring.interval());
        let round = ring.last_round();
        let hop = |ring: &Ring, signer: usize, round| {
            Claimed::from(ring.keyrings[signer].sign(Hop { instance: INSTANCE, round, microseconds: 1 }))
        };
        let next = Round { originator: round.originator, number: round.number + 4 };
        let order: Vec<usize> = (0..4).map(|at| (usize::from(round.originator.0) + at) % 4).collect();
        let whole: Vec<_> = order.iter().map(|signer| hop(&ring, *signer, next)).collect();
        let mut repeated = whole.clone();
        repeated[3] = repeated[2].clone();
        let mut old = whole.clone();
        old[1] = hop(&ring, order[1], round);
        let mut forged = whole.clone();
        forged[1].claims_mut().microseconds = 2;
        let stale: Vec<_> = order.iter().map(|signer| hop(&ring, *signer, round)).collect();
        let cases = [
            (next, whole[..3].to_vec(), Rejection::Malformed),
            (next, repeated, Rejection::Malformed),
            (next, old, Rejection::Malformed),
            (next, forged, Rejection::BadSignature),
            (round, stale, Rejection::StaleTimestamp),
        ];
        for (round, hops, expected) in cases {
            ring.rejected.clear();
            let report = PaceMessage::Report(Hops { round, hops });
            ring.step(1, |pace, around| pace.on_message(around, ReplicaId(0), report));
            assert_eq!(ring.rejected, [expected]);
        }
        ring.rejected.clear();
        let vote = Claimed::from(ring.keyrings[2].sign(Vote { instance: INSTANCE, round, pace: Pace::Slow }));
        ring.step(1, |pace, around| pace.on_message(around, ReplicaId(2), PaceMessage::Vote(vote.clone())));
        ring.step(1, |pace, around| pace.on_message(around, ReplicaId(3), PaceMessage::Vote(vote)));
        assert_eq!(ring.rejected, [Rejection::StaleTimestamp, Rejection::WrongSender]);
    }

    /// A liar begins a round in the name of a replica that does not exist.
    #[test]
    fn a_round_of_nobody_is_refused() {
        for originator in [4, 200, u8::MAX] {
            let mut ring = Ring::new(1, &[1_000; 4]);
            let round = Round { originator: ReplicaId(originator), number: 1 };
            // As many as there were if it was the one that comes to its place.
            let come = ring.cluster.replicas.distance(ReplicaId(originator), ReplicaId(1));
            for (message, come) in [(PaceMessage::Check as fn(Hops) -> PaceMessage, come), (PaceMessage::Report, 4)] {
                let message = message(Hops { round, hops: vec![hop_of(&ring.keyrings[0], round); come] });
                ring.step(1, |pace, around| pace.on_message(around, ReplicaId(0), message));
            }
            let vote = ring.keyrings[0].sign(Vote { instance: INSTANCE, round, pace: Pace::Slow });
            ring.step(1, |pace, around| pace.on_message(around, ReplicaId(0), PaceMessage::Vote(vote.into())));
            assert_eq!(ring.rejected, [Rejection::Malformed; 3]);
        }
    }

    /// The liar is replica 1. Whoever is honest behind it would else seem to have lied itself.
    #[test]
    fn a_bad_hop_is_the_fault_of_whoever_added_it() {
        let mut ring = Ring::new(1, &[1_000; 4]);
        (0..6).for_each(|_| ring.interval());
        ring.rejected.clear();
        let round = |number| Round { originator: ReplicaId(0), number };
        let good = |signer: usize, number| hop_of(&ring.keyrings[signer], round(number));
        let mut forged = good(1, 100);
        forged.claims_mut().microseconds = 2;
        let cases = [
            (vec![good(0, 100), forged], Rejection::BadSignature),
            (vec![good(0, 100), good(1, 99)], Rejection::Malformed),
            (vec![good(0, 100), good(0, 100)], Rejection::Malformed),
        ];
        for (hops, why) in cases {
            let check = PaceMessage::Check(Hops { round: round(100), hops });
            ring.step(2, |pace, around| pace.on_message(around, ReplicaId(1), check));
            assert_eq!((ring.rejected.pop(), ring.mail.len()), (Some(why), 0));
        }
        // Where replica 2 lies as well and passes it on, replica 3 is not to blame.
        let begun = ring.paces[0].begun;
        let mut forged = hop_of(&ring.keyrings[1], round(begun));
        forged.claims_mut().microseconds = 2;
        let hop = |signer: usize| hop_of(&ring.keyrings[signer], round(begun));
        let check = PaceMessage::Check(Hops { round: round(begun), hops: vec![hop(0), forged, hop(2), hop(3)] });
        ring.step(0, |pace, around| pace.on_message(around, ReplicaId(3), check));
        assert_eq!(ring.rejected, [Rejection::OutsideWindow]);
    }

    #[test]
    fn a_flood_of_checks_costs_one_signature_an_interval() {
        let mut ring = Ring::new(1, &[1_000; 4]);
        (0..6).for_each(|_| ring.interval());
        ring.rejected.clear();
        for number in 100..110 {
            let round = Round { originator: ReplicaId(0), number };
            let check = PaceMessage::Check(Hops { round, hops: vec![hop_of(&ring.keyrings[0], round)] });
            ring.step(1, |pace, around| pace.on_message(around, ReplicaId(0), check));
        }
        assert_eq!(ring.rejected, [Rejection::Overload; 9]);
        assert_eq!(ring.mail.len(), 1);
        // So it does at the end of a round, where all hops are there.
        ring.mail.clear();
        ring.rejected.clear();
        let round = Round { originator: ReplicaId(0), number: ring.paces[0].begun };
        let hops: Vec<_> = ring.keyrings.iter().map(|keyring| hop_of(keyring, round)).collect();
        for _ in 0..10 {
            let check = PaceMessage::Check(Hops { round, hops: hops.clone() });
            ring.step(0, |pace, around| pace.on_message(around, ReplicaId(3), check));
        }
        assert_eq!(ring.rejected, [Rejection::Overload; 9]);
        assert_eq!(ring.mail.len(), 1);
    }

    fn hop_of(keyring: &Keyring, round: Round) -> Claimed<Signed<Hop>> {
        keyring.sign(Hop { instance: INSTANCE, round, microseconds: 1 }).into()
    }
}
