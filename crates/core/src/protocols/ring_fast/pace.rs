//! Is the ring slower than its replicas? Section 5.3.2 of the thesis, with the repairs of F21 of the note.
//!
//! A ring is as fast as its slowest replica, and a replica that delays what it passes on harms everybody without ever
//! being silent. So the replicas compare how long the way around the ring takes with how long its hops should.
//!
//! # Steps
//! * T1. Every replica sends PING to its successor from time to time. PONG waits its turn like anything else; half the
//!   time until it comes back is the *hop*.
//! * T2. Each in turn begins a round: CHECK goes once around, and every replica adds its hop, signed for this round.
//! * T3. When it is back with n hops, the originator sends them around again: REPORT.
//! * T4. Whoever has the n hops takes the (f+1)-th smallest as what a hop takes among correct replicas. If the requests
//!   that this replica took in needed more than n such hops, with an allowance, it votes that the ring is slow. The vote
//!   is signed for this round, and goes to all.
//! * T5. 2f+1 votes end a round; what most of them say is its verdict.
//!
//! # What it is worth
//! At most 2f hops are measured by or with a faulty replica, so f+1 are right, and the chosen one is no larger than the
//! largest right one: delaying cannot make the ring look as if it had to be slow. But 2f ≥ f+1 hops can be made too
//! *small*, by replicas that answer PING at once, and then everybody finds the ring slow (F21). So the verdict is a
//! signal to the operator, who also sees which link had the longest hop, and never stops an instance by itself.
//!
//! # Deviations from the thesis
//! Signatures name instance, originator and round; a vote is of a round and not of a number of its own, so that an old
//! one cannot be counted again; the hops are of n distinct replicas in the order of the ring. What is measured is the
//! first time around of a request at its entry, which the thesis leaves open.

use crate::auth::{Keyring, Signable, Signed};
use crate::cluster::{Cluster, InstanceId, REPLICAS_MAX, ReplicaId};
use crate::machine::{Duration, Instant};
use crate::rejection::Rejection;
use crate::wire::{Reader, Wire, WireError, encode_list};
use crate::{wire_enum, wire_struct};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How often something is done: a PING each time, and a round by one replica.
pub(crate) const INTERVAL: Duration = Duration::from_millis(1_000);

/// Twice what n hops should take is not slow yet (K_lat and 1 + ε of the thesis, as one).
const ALLOWANCE: u64 = 2;

/// Nor is anything below this: timers and disks are no better.
const FLOOR: Duration = Duration::from_millis(20);

/// A round of somebody: the originator, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Round {
    /// Whose.
    pub originator: ReplicaId,
    /// Which, counted by the originator.
    pub number: u64,
}
wire_struct!(Round { originator, number });

/// T2: how long a replica's PING to its successor took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The instance.
    pub instance: InstanceId,
    /// For this round only.
    pub round: Round,
    /// Half the way there and back, in microseconds.
    pub microseconds: u64,
}
wire_struct!(Hop { instance, round, microseconds });

impl Signable for Hop {
    const KIND: u8 = 9;
}

/// T4: what a replica makes of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// The instance.
    pub instance: InstanceId,
    /// The round.
    pub round: Round,
    /// Whether requests need longer than they should.
    pub slow: bool,
}
wire_struct!(Vote { instance, round, slow });

impl Signable for Vote {
    const KIND: u8 = 10;
}

/// CHECK and REPORT: hops of the replicas from the originator on, as far as it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hops {
    /// The round.
    pub round: Round,
    /// In the order of the ring.
    pub hops: Vec<Signed<Hop>>,
}

impl Wire for Hops {
    fn encode(&self, out: &mut Vec<u8>) {
        self.round.encode(out);
        encode_list(&self.hops, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { round: Wire::decode(reader)?, hops: reader.list(REPLICAS_MAX)? })
    }
}

/// What replicas say to each other about the ring's pace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaceMessage {
    /// T1, with a number that PONG repeats.
    Ping(u64),
    /// T1.
    Pong(u64),
    /// T2.
    Check(Hops),
    /// T3.
    Report(Hops),
    /// T4.
    Vote(Signed<Vote>),
}
wire_enum!(PaceMessage { 0 => Ping, 1 => Pong, 2 => Check, 3 => Report, 4 => Vote });

/// T5: what a round has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The round.
    pub round: Round,
    /// Whether most of 2f+1 found the ring slow.
    pub slow: bool,
    /// Who reported the longest hop, to its successor; the longest hop itself.
    pub longest: (ReplicaId, Duration),
}

/// Whom a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// One replica.
    One(ReplicaId),
    /// All others.
    All,
}

/// What surrounds it: see [`crate::switching::Surroundings`].
pub(crate) struct Around<'a> {
    pub(crate) now: Instant,
    pub(crate) cluster: &'a Cluster,
    pub(crate) keyring: &'a Keyring,
    pub(crate) me: ReplicaId,
    /// What is to be sent.
    pub(crate) send: &'a mut dyn FnMut(To, PaceMessage),
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    instance: InstanceId,
    /// How often the timer came.
    ticks: u64,
    pinged: Option<(u64, Instant)>,
    hop: Option<Duration>,
    /// Of the requests since the last vote: how many went around, and how long they took together.
    rounds: (u64, u64),
    /// When a CHECK of an originator last passed: each costs a signature.
    passed: BTreeMap<ReplicaId, Instant>,
    /// The last round of each originator of which there is a REPORT, and the longest hop in it.
    reported: BTreeMap<ReplicaId, (u64, (ReplicaId, Duration))>,
    /// The last vote of each voter on the rounds of an originator, by (originator, voter): votes may overtake REPORT.
    votes: BTreeMap<(ReplicaId, ReplicaId), (u64, bool)>,
    verdict: Option<Verdict>,
}

impl Pace {
    pub(crate) const fn new(instance: InstanceId) -> Self {
        Self {
            instance,
            ticks: 0,
            pinged: None,
            hop: None,
            rounds: (0, 0),
            passed: BTreeMap::new(),
            reported: BTreeMap::new(),
            votes: BTreeMap::new(),
            verdict: None,
        }
    }

    /// What the last round came to.
    pub(crate) const fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// A request of this entry has come around.
    pub(crate) const fn note(&mut self, took: Duration) {
        self.rounds = (self.rounds.0 + 1, self.rounds.1.saturating_add(took.0));
    }

    /// T1 and T2: every [`INTERVAL`].
    pub(crate) fn tick(&mut self, around: &mut Around<'_>) {
        let Around { now, cluster, me, .. } = *around;
        self.ticks += 1;
        self.pinged = Some((self.ticks, now));
        (around.send)(To::One(successor(cluster, me)), PaceMessage::Ping(self.ticks));
        if self.ticks % cluster.n as u64 == u64::from(me.0) && self.hop.is_some() {
            let round = Round { originator: me, number: self.ticks };
            self.pass_on(around, Hops { round, hops: Vec::new() });
        }
    }

    /// T2: adds this replica's hop.
    fn pass_on(&self, around: &mut Around<'_>, mut hops: Hops) {
        // Who has no hop yet ends the round: it has only just begun.
        let Some(hop) = self.hop else { return };
        let hop = Hop { instance: self.instance, round: hops.round, microseconds: hop.0 };
        hops.hops.push(around.keyring.sign(hop));
        (around.send)(To::One(successor(around.cluster, around.me)), PaceMessage::Check(hops));
    }

    /// # Errors
    /// Why it is not what a correct replica says.
    pub(crate) fn on_message(
        &mut self,
        around: &mut Around<'_>,
        from: ReplicaId,
        message: PaceMessage,
    ) -> Result<(), Rejection> {
        let after_us = from == successor(around.cluster, around.me);
        let before_us = around.me == successor(around.cluster, from);
        match message {
            PaceMessage::Ping(number) if before_us => (around.send)(To::One(from), PaceMessage::Pong(number)),
            PaceMessage::Pong(number) if after_us => {
                if let Some((_, at)) = self.pinged.take_if(|(pinged, _)| *pinged == number) {
                    self.hop = Some(Duration((around.now - at).0 / 2));
                }
            }
            PaceMessage::Check(hops) if before_us => return self.on_check(around, hops),
            PaceMessage::Report(hops) if before_us => return self.on_report(around, hops),
            PaceMessage::Vote(vote) if vote.signer == from => return self.on_vote(around, vote),
            _ => return Err(Rejection::WrongSender),
        }
        Ok(())
    }

    /// T2, and T3 at the originator.
    fn on_check(&mut self, around: &mut Around<'_>, hops: Hops) -> Result<(), Rejection> {
        let Around { now, cluster, me, .. } = *around;
        let come = if hops.round.originator == me { cluster.n } else { distance(cluster, hops.round.originator, me) };
        if !cluster.contains(hops.round.originator) || hops.hops.len() != come {
            return Err(Rejection::Malformed);
        }
        if hops.round.originator != me {
            if self.passed.get(&hops.round.originator).is_some_and(|at| now - *at < INTERVAL) {
                return Err(Rejection::Overload);
            }
            self.passed.insert(hops.round.originator, now);
            self.pass_on(around, hops);
            return Ok(());
        }
        if hops.round.number > self.ticks || hops.round.number + cluster.n as u64 <= self.ticks {
            return Err(Rejection::OutsideWindow);
        }
        self.check(around, &hops)?;
        (around.send)(To::One(successor(cluster, me)), PaceMessage::Report(hops));
        Ok(())
    }

    /// T3: passes on, and T4. The originator gets it last.
    fn on_report(&mut self, around: &mut Around<'_>, hops: Hops) -> Result<(), Rejection> {
        let Around { cluster, me, .. } = *around;
        let round = hops.round;
        if !cluster.contains(round.originator) || hops.hops.len() != cluster.n {
            return Err(Rejection::Malformed);
        }
        if self.reported.get(&round.originator).is_some_and(|(last, _)| *last >= round.number) {
            return Err(Rejection::StaleTimestamp);
        }
        self.check(around, &hops)?;
        let mut times: Vec<(u64, ReplicaId)> =
            hops.hops.iter().map(|hop| (hop.value.microseconds, hop.signer)).collect();
        times.sort_unstable();
        let (longest, slowest) = times[times.len() - 1];
        let (typical, _) = times[cluster.f];
        let expected = typical.saturating_mul(cluster.n as u64).saturating_mul(ALLOWANCE).max(FLOOR.0);
        let (count, total) = core::mem::take(&mut self.rounds);
        let slow = total.checked_div(count).is_some_and(|measured| measured > expected);
        if round.originator != me {
            (around.send)(To::One(successor(cluster, me)), PaceMessage::Report(hops));
        }
        let vote = around.keyring.sign(Vote { instance: self.instance, round, slow });
        (around.send)(To::All, PaceMessage::Vote(vote));
        self.reported.insert(round.originator, (round.number, (slowest, Duration(longest))));
        self.votes.insert((round.originator, me), (round.number, slow));
        self.decide(cluster, round.originator);
        Ok(())
    }

    /// T5.
    fn on_vote(&mut self, around: &Around<'_>, vote: Signed<Vote>) -> Result<(), Rejection> {
        let Vote { instance, round, slow } = vote.value;
        if instance != self.instance || !around.cluster.contains(round.originator) {
            return Err(Rejection::Malformed);
        }
        let slot = (round.originator, vote.signer);
        if self.votes.get(&slot).is_some_and(|(last, _)| *last >= round.number) {
            return Err(Rejection::StaleTimestamp);
        }
        if !around.keyring.check_signed(&vote) {
            return Err(Rejection::BadSignature);
        }
        self.votes.insert(slot, (round.number, slow));
        self.decide(around.cluster, round.originator);
        Ok(())
    }

    fn decide(&mut self, cluster: &Cluster, originator: ReplicaId) {
        let Some((number, longest)) = self.reported.get(&originator).copied() else { return };
        let on_it = self.votes.range((originator, ReplicaId(0))..=(originator, ReplicaId(u8::MAX)));
        let votes: Vec<bool> = on_it.filter(|(_, (last, _))| *last == number).map(|(_, (_, slow))| *slow).collect();
        // The first 2f+1; whoever votes later changes nothing.
        if votes.len() == cluster.strong() {
            let slow = votes.iter().filter(|slow| **slow).count() > cluster.f;
            self.verdict = Some(Verdict { round: Round { originator, number }, slow, longest });
        }
    }

    /// Whether the hops are those of the replicas from the originator on, for this round.
    fn check(&self, around: &Around<'_>, hops: &Hops) -> Result<(), Rejection> {
        let mut expected = hops.round.originator;
        for hop in &hops.hops {
            if hop.signer != expected || hop.value.round != hops.round || hop.value.instance != self.instance {
                return Err(Rejection::Malformed);
            }
            expected = successor(around.cluster, expected);
        }
        let good = hops.hops.iter().all(|hop| around.keyring.check_signed(hop));
        if good { Ok(()) } else { Err(Rejection::BadSignature) }
    }
}

const fn successor(cluster: &Cluster, of: ReplicaId) -> ReplicaId {
    ReplicaId(((of.0 as usize + 1) % cluster.n) as u8)
}

/// Hops from one replica to another.
const fn distance(cluster: &Cluster, from: ReplicaId, to: ReplicaId) -> usize {
    (to.0 as usize + cluster.n - from.0 as usize) % cluster.n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Principal;
    use crate::testing::net::keyring;
    use alloc::collections::VecDeque;
    use alloc::vec;

    const INSTANCE: InstanceId = InstanceId(1);

    /// A ring whose replicas take so long over each message, and in which requests go around.
    struct Ring {
        cluster: Cluster,
        keyrings: Vec<Keyring>,
        paces: Vec<Pace>,
        /// Microseconds that a message takes to each replica.
        delays: Vec<u64>,
        /// Replicas that answer PING before its turn, and say that their hops take no time.
        hasty: Vec<usize>,
        /// In flight: when it arrives, from whom, to whom.
        mail: VecDeque<(u64, usize, usize, PaceMessage)>,
        now: u64,
        rejected: Vec<Rejection>,
    }

    impl Ring {
        fn new(f: usize, delays: &[u64]) -> Self {
            let cluster = Cluster::of([0; 16], 3 * f + 1).unwrap();
            let keyrings = cluster.replicas().map(|id| keyring(&cluster, Principal::Replica(id))).collect();
            let paces = vec![Pace::new(INSTANCE); cluster.n];
            let (hasty, mail, rejected) = (Vec::new(), VecDeque::new(), Vec::new());
            Self { cluster, keyrings, paces, delays: delays.to_vec(), hasty, mail, now: 0, rejected }
        }

        /// One step of one replica.
        fn step(&mut self, me: usize, act: impl FnOnce(&mut Pace, &mut Around<'_>) -> Result<(), Rejection>) {
            let mut sent = Vec::new();
            let mut around = Around {
                now: Instant(self.now),
                cluster: &self.cluster,
                keyring: &self.keyrings[me],
                me: ReplicaId(me as u8),
                send: &mut |to, message| sent.push((to, message)),
            };
            self.rejected.extend(act(&mut self.paces[me], &mut around).err());
            for (to, message) in sent {
                let all: Vec<usize> = match to {
                    To::One(to) => vec![to.0 as usize],
                    To::All => (0..self.cluster.n).filter(|to| *to != me).collect(),
                };
                for to in all {
                    self.post(me, to, message.clone());
                }
            }
        }

        fn post(&mut self, from: usize, to: usize, mut message: PaceMessage) {
            let mut delay = self.delays[to];
            if self.hasty.contains(&to) && matches!(message, PaceMessage::Ping(_)) {
                delay = 0;
            }
            if self.hasty.contains(&from) {
                delay = if matches!(message, PaceMessage::Pong(_)) { 0 } else { delay };
                if let PaceMessage::Check(hops) = &mut message {
                    let hop = hops.hops.pop().unwrap().value;
                    hops.hops.push(self.keyrings[from].sign(Hop { microseconds: 0, ..hop }));
                }
            }
            self.mail.push_back((self.now + delay, from, to, message));
        }

        /// Every replica's timer, and everything that follows; requests take as long as the replicas do.
        fn interval(&mut self) {
            let end = self.now + INTERVAL.0;
            let around = self.delays.iter().sum();
            for me in 0..self.cluster.n {
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

        fn verdicts(&self) -> Vec<Option<bool>> {
            self.paces.iter().map(|pace| pace.verdict().map(|verdict| verdict.slow)).collect()
        }
    }

    #[test]
    fn an_even_ring_is_not_slow() {
        for f in [1, 2, 3] {
            let n = 3 * f + 1;
            let mut ring = Ring::new(f, &vec![20_000; n]);
            (0..3 * n).for_each(|_| ring.interval());
            assert_eq!(ring.verdicts(), vec![Some(false); n], "f = {f}");
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
            assert_eq!(ring.verdicts(), vec![Some(true); n], "f = {f}");
            // Replica 0 measures the way to replica 1, replica 1 the way back to itself.
            let suspects = [ReplicaId(0), ReplicaId(1)];
            assert!(ring.paces.iter().all(|pace| suspects.contains(&pace.verdict().unwrap().longest.0)));
        }
    }

    /// S14 of the note: f replicas make 2f hops too small, so that everybody finds an even ring slow. That is why a
    /// verdict is a signal and no more.
    #[test]
    fn hasty_pongs_make_an_even_ring_look_slow() {
        let mut ring = Ring::new(1, &[20_000; 4]);
        ring.hasty = vec![2];
        (0..12).for_each(|_| ring.interval());
        assert_eq!(ring.verdicts(), vec![Some(true); 4]);
    }

    #[test]
    fn hops_of_others_and_old_votes_are_not_counted() {
        let mut ring = Ring::new(1, &[1_000; 4]);
        (0..8).for_each(|_| ring.interval());
        let round = ring.paces[0].verdict().unwrap().round;
        let hop = |ring: &Ring, signer: usize, round| {
            ring.keyrings[signer].sign(Hop { instance: INSTANCE, round, microseconds: 1 })
        };
        let next = Round { originator: round.originator, number: round.number + 4 };
        let order: Vec<usize> = (0..4).map(|at| (usize::from(round.originator.0) + at) % 4).collect();
        let whole: Vec<_> = order.iter().map(|signer| hop(&ring, *signer, next)).collect();
        let mut repeated = whole.clone();
        repeated[3] = repeated[2].clone();
        let mut old = whole.clone();
        old[1] = hop(&ring, order[1], round);
        let mut forged = whole.clone();
        forged[1].value.microseconds = 2;
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
        let vote = ring.keyrings[2].sign(Vote { instance: INSTANCE, round, slow: true });
        ring.step(1, |pace, around| pace.on_message(around, ReplicaId(2), PaceMessage::Vote(vote.clone())));
        ring.step(1, |pace, around| pace.on_message(around, ReplicaId(3), PaceMessage::Vote(vote)));
        assert_eq!(ring.rejected, [Rejection::StaleTimestamp, Rejection::WrongSender]);
    }

    #[test]
    fn a_flood_of_checks_costs_one_signature_an_interval() {
        let mut ring = Ring::new(1, &[1_000; 4]);
        (0..5).for_each(|_| ring.interval());
        ring.rejected.clear();
        for number in 100..110 {
            let round = Round { originator: ReplicaId(0), number };
            let check = PaceMessage::Check(Hops { round, hops: vec![hop_of(&ring.keyrings[0], round)] });
            ring.step(1, |pace, around| pace.on_message(around, ReplicaId(0), check));
        }
        assert_eq!(ring.rejected, [Rejection::Overload; 9]);
        assert_eq!(ring.mail.len(), 1);
    }

    fn hop_of(keyring: &Keyring, round: Round) -> Signed<Hop> {
        keyring.sign(Hop { instance: INSTANCE, round, microseconds: 1 })
    }
}
