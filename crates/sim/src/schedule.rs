//! The faults of the first phase: what happens when. Drawn before the run, so that a run is data.

use crate::feature::Feature;
use crate::moments::Moment;
use crate::network::{CLIENTS, Cut};
use crate::rng::Rng;
use bezant_core::ids::ReplicaId;
use std::collections::BTreeSet;

/// Clients whose links are cut one by one as well.
const CUT_CLIENTS: usize = 3;

/// Something that the world does to the cluster. Spans in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Links are cut for a while.
    Cut(Cut, u64),
    /// A replica stops in the middle of its next step's effects and comes back later.
    Crash {
        /// Which.
        replica: ReplicaId,
        /// Effects of that step still carried out.
        effects: u64,
        /// What else happens.
        outage: Outage,
    },
    /// A durable record on a replica's disk becomes unreadable.
    Rot(ReplicaId),
    /// The next sync of a replica's disk fails: it stops, and comes back after this time.
    FailedSync(ReplicaId, u64),
    /// A replica's disk is copied: see [`Ruin::PutBack`].
    Copy(ReplicaId),
    /// All replicas stop at once and come back one by one.
    PowerCut {
        /// How long the first is down.
        down: u64,
    },
    /// The first phase ends after this time.
    Turn(u64),
}

/// A fault that waits for a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambush {
    /// When.
    pub moment: Moment,
    /// What.
    pub fault: Fault,
}

impl Fault {
    /// Whether it is no part of something longer: rot waits for a crash, a copy for its return.
    pub const fn is_one_of_many(&self) -> bool {
        match self {
            Self::Crash { outage, .. } => matches!(outage.ruin, Ruin::Nothing),
            Self::Cut(..) | Self::FailedSync(..) => true,
            Self::Rot(_) | Self::Copy(_) | Self::PowerCut { .. } | Self::Turn(_) => false,
        }
    }

    /// Whether a replica comes back without its disk.
    pub const fn loses_a_disk(&self) -> bool {
        matches!(self, Self::Crash { outage: Outage { ruin: Ruin::Lost, .. }, .. })
    }

    /// Whether nobody hears anybody for a while.
    pub const fn is_blackout(&self) -> bool {
        matches!(self, Self::Cut(Cut::All, _))
    }
}

/// A replica stops for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// How long it is down; `None`: it never comes back.
    pub down: Option<u64>,
    /// What its disk has lost when it comes back, beyond what was not synced.
    pub ruin: Ruin,
}

/// What an outage does to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruin {
    /// Nothing.
    Nothing,
    /// All is gone.
    Lost,
    /// It is as it was when it was copied, and nobody knows.
    PutBack,
}

impl Outage {
    /// One that harms nothing that was durable.
    pub const fn harmless(down: Option<u64>) -> Self {
        Self { down, ruin: Ruin::Nothing }
    }
}

/// Who plays which part.
#[derive(Debug)]
pub struct Places<'a> {
    /// Replicas.
    pub n: usize,
    /// The Byzantine ones. Their crashes would only make them more honest.
    pub liars: &'a BTreeSet<ReplicaId>,
    /// The one that loses its disk, all of it or a record.
    pub amnesiac: Option<ReplicaId>,
    /// The Byzantine one whose disk is put back to an earlier copy.
    pub put_back: Option<ReplicaId>,
}

/// Draws the schedule of a run whose first phase lasts `safety` and whose replicas wait `patience` for a view.
pub fn draw(
    seed: u64,
    safety: u64,
    patience: u64,
    places: &Places<'_>,
    has: &impl Fn(Feature) -> bool,
) -> Vec<(u64, Fault)> {
    let mut faults = Vec::new();
    let mut rng = Rng::stream(seed, "partitions");
    for _ in 0..rng.between(1, 5) {
        let at = rng.below(safety);
        let cut = draw_cut(&mut rng, places.n);
        let span = rng.between(patience / 4, patience * 3);
        if has(Feature::Partitions) {
            faults.push((at, Fault::Cut(cut, span)));
        }
    }
    let mut rng = Rng::stream(seed, "crashes");
    for _ in 0..rng.between(1, 6) {
        let at = rng.below(safety);
        let replica = ReplicaId(rng.below(places.n as u64) as u8);
        let effects = rng.below(6);
        let down = rng.between(patience / 20, patience * 3);
        if has(Feature::Crashes) && !places.liars.contains(&replica) {
            let outage = Outage::harmless(Some(down));
            faults.push((at, Fault::Crash { replica, effects, outage }));
        }
    }
    let mut rng = Rng::stream(seed, "disasters");
    let (at, effects, down) = (rng.below(safety), rng.below(6), rng.between(patience / 20, patience));
    if let (Some(replica), true) = (places.amnesiac, has(Feature::LostDisk)) {
        let outage = Outage { down: Some(down), ruin: Ruin::Lost };
        faults.push((at, Fault::Crash { replica, effects, outage }));
    }
    for _ in 0..rng.between(1, 2) {
        let (at, down) = (rng.below(safety), rng.between(patience / 20, patience));
        if has(Feature::PowerCut) {
            faults.push((at, Fault::PowerCut { down }));
        }
    }
    faults.extend(draw_disk_faults(seed, safety, patience, places, has));
    faults.sort_by_key(|(at, _)| *at);
    faults
}

/// Rot, failed syncs and an old disk.
fn draw_disk_faults(
    seed: u64,
    safety: u64,
    patience: u64,
    places: &Places<'_>,
    has: &impl Fn(Feature) -> bool,
) -> Vec<(u64, Fault)> {
    let mut faults = Vec::new();
    let mut rng = Rng::stream(seed, "rot");
    let (at, later, effects, down) =
        (rng.below(safety), rng.below(2 * patience), rng.below(6), rng.between(patience / 20, patience));
    if let (Some(replica), true) = (places.amnesiac, has(Feature::Rot)) {
        faults.push((at, Fault::Rot(replica)));
        // Nobody reads a log before the next start.
        faults.push((at + later, Fault::Crash { replica, effects, outage: Outage::harmless(Some(down)) }));
    }
    let mut rng = Rng::stream(seed, "failed syncs");
    for _ in 0..rng.between(1, 4) {
        let at = rng.below(safety);
        let replica = ReplicaId(rng.below(places.n as u64) as u8);
        let down = rng.between(patience / 20, patience * 3);
        if has(Feature::FailedSyncs) && !places.liars.contains(&replica) {
            faults.push((at, Fault::FailedSync(replica, down)));
        }
    }
    let mut rng = Rng::stream(seed, "old disk");
    let (at, later, effects, down) =
        (rng.below(safety), rng.between(patience / 4, safety), rng.below(6), rng.between(patience / 20, patience));
    if let Some(replica) = places.put_back {
        faults.push((at, Fault::Copy(replica)));
        let outage = Outage { down: Some(down), ruin: Ruin::PutBack };
        faults.push((at + later, Fault::Crash { replica, effects, outage }));
    }
    faults
}

/// A long spell without a network, which lengthens the first phase: when it begins and how long it lasts.
pub fn draw_blackout(seed: u64, safety: u64, patience: u64, has: &impl Fn(Feature) -> bool) -> Option<(u64, u64)> {
    let mut rng = Rng::stream(seed, "blackout");
    let (at, span, happens) = (rng.below(safety), patience * rng.between(4, 24), rng.below(4) == 0);
    (has(Feature::Blackouts) && happens).then_some((at, span))
}

/// The faults that wait for a moment.
pub fn draw_ambushes(seed: u64, patience: u64, n: usize, has: &impl Fn(Feature) -> bool) -> Vec<Ambush> {
    let partings = draw_partings(seed, patience, n, has);
    partings.into_iter().chain(draw_ambush(seed, patience, has)).collect()
}

/// A fault that comes at the moment when replicas have answered so often: what they have just told a client, and nobody
/// else, is then all that there is. They lose one another and all that is under way between them, or their power.
fn draw_ambush(seed: u64, patience: u64, has: &impl Fn(Feature) -> bool) -> Option<Ambush> {
    let mut rng = Rng::stream(seed, "ambush");
    let (answers, span, loses_power) = (rng.between(2, 20), patience * rng.between(1, 12) / 2, rng.below(4) == 0);
    let fault = if loses_power && has(Feature::PowerCut) {
        Fault::PowerCut { down: span / 4 }
    } else {
        Fault::Cut(Cut::Replicas, span)
    };
    has(Feature::Ambushes).then_some(Ambush { moment: Moment::Answers(answers), fault })
}

/// Faults that let replicas part: as something is logged, and as an instance stops and the next begins, everybody
/// hears others. Each has logged something else, collects other reports, and lacks something else. In half of these
/// runs the first phase ends as soon as two begin an instance with different histories, or a little later: whoever is
/// missing from then on leaves the others with what they have.
fn draw_partings(seed: u64, patience: u64, n: usize, has: &impl Fn(Feature) -> bool) -> Vec<Ambush> {
    let mut rng = Rng::stream(seed, "partings");
    let turns = rng.coin();
    let mut ambushes = Vec::new();
    let mut cut = |rng: &mut Rng, moment| {
        let fault = Fault::Cut(draw_links(rng, n), patience * rng.between(1, 8) / 2);
        ambushes.push(Ambush { moment, fault });
    };
    let mut logged = 0;
    for _ in 0..rng.between(1, 6) {
        logged += rng.between(1, 3 * n as u64);
        cut(&mut rng, Moment::Logs(logged));
    }
    let first = rng.between(1, 4);
    for end in first..=first + rng.below(4) {
        cut(&mut rng, Moment::Ends(end));
    }
    let turn = Fault::Turn(*rng.pick(&[0, patience / 8, patience, 3 * patience]));
    if turns {
        ambushes.push(Ambush { moment: Moment::Partings(rng.between(1, 2)), fault: turn });
    }
    ambushes.retain(|_| has(Feature::Partings));
    ambushes
}

/// Some of the links to replicas, each in one direction.
fn draw_links(rng: &mut Rng, n: usize) -> Cut {
    let share = *rng.pick(&[150, 300, 500]);
    let froms = (0..n).chain(CLIENTS..CLIENTS + CUT_CLIENTS);
    let links = froms.flat_map(|from| (0..n).map(move |to| (from, to)));
    Cut::Links(links.filter(|(from, to)| from != to && rng.per_mille(share)).collect())
}

/// Cuts around one replica, one after the other, each long enough for a client to repeat itself: whatever needs all
/// replicas fails, and then what follows it, before anything was done.
pub fn draw_unrest(seed: u64, safety: u64, retry: u64, n: usize, has: &impl Fn(Feature) -> bool) -> Vec<(u64, Fault)> {
    let mut rng = Rng::stream(seed, "unrest");
    let (mut at, one, happens) = (rng.below(safety / 2 + 1), rng.below(n as u64) as usize, rng.below(4) == 0);
    let mut faults = Vec::new();
    for _ in 0..rng.between(4, 10) {
        faults.push((at, Fault::Cut(Cut::Split(BTreeSet::from([one])), retry * rng.between(1, 3))));
        at += retry * rng.between(2, 5);
    }
    faults.retain(|_| has(Feature::Unrest) && happens);
    faults
}

fn draw_cut(rng: &mut Rng, n: usize) -> Cut {
    let mut replicas: Vec<usize> = (0..n).collect();
    rng.shuffle(&mut replicas);
    let one = BTreeSet::from([replicas[0]]);
    let size = rng.between(1, n as u64) as usize;
    let some: BTreeSet<usize> = replicas[..size].iter().copied().collect();
    match rng.below(6) {
        0 => Cut::Split(one),
        1 => Cut::Split(some),
        2 => Cut::Mute(one),
        3 => Cut::Deaf(one),
        4 => Cut::Mute(some),
        _ => Cut::Link(replicas[0], replicas[n.min(2) - 1]),
    }
}
