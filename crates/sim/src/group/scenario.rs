//! What a seed decides about a group.

use super::ADVERSARIES;
use crate::byzantine::{Adversary, Choice};
use crate::rng::Rng;
use bezant_core::cluster::Coin;
use bezant_core::ids::ReplicaId;
use bezant_core::protocols::ritas::group::Call;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Which run.
#[derive(Clone, Copy, Debug)]
pub struct GroupOptions {
    /// Processes.
    pub n: usize,
    /// Faults tolerated.
    pub f: usize,
    /// Who lies.
    pub adversary: Choice,
    /// What is tossed; `None`: the seed decides.
    pub coin: Option<Coin>,
    /// What decides the rest.
    pub seed: u64,
}

impl fmt::Display for GroupOptions {
    /// The one command that replays the run.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n, f, adversary, coin, seed } = self;
        let coin = coin.map_or_else(String::new, |coin| format!(" --coin {}", coin.label()));
        write!(out, "bezant sim --layers --f {f} --replicas {n} --adversary {adversary}{coin} --seed {seed}")
    }
}

/// Whose frame is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The one that was sent first.
    First,
    /// Any.
    Any,
    /// Any, but those of and to these processes only now and then: a bit for each.
    Starve(u64),
    /// Rather one for a process that has come to less than others: who is about to make progress waits.
    Behind,
}

impl Turn {
    /// What such a network is like.
    pub const fn label(self) -> &'static str {
        match self {
            Self::First => "LAN",
            Self::Any => "WAN",
            Self::Starve(_) => "skewed",
            Self::Behind => "against whoever is ahead",
        }
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct GroupScenario {
    /// Which.
    pub options: GroupOptions,
    /// The way of lying, if anybody lies.
    pub adversary: Option<Adversary>,
    /// Who lies.
    pub liars: BTreeSet<ReplicaId>,
    /// Who stops for good after so many deliveries. Together with liars they are f at most.
    pub crashes: BTreeMap<ReplicaId, u64>,
    /// Frames that are lost, per mille.
    pub loss: u64,
    /// Frames that arrive twice, per mille.
    pub duplication: u64,
    /// Whose frame is next.
    pub turn: Turn,
    /// Passes that end after a frame, per mille: others go on with the next.
    pub pass: u64,
    /// Whether long values are repeated, as in the thesis.
    pub repeats: bool,
    /// Whether messages of the atomic broadcast go together.
    pub bundles: bool,
    /// What is tossed.
    pub coin: Coin,
    /// Who calls what after so many deliveries, in order.
    pub calls: Vec<(u64, ReplicaId, Call)>,
}

impl GroupScenario {
    /// Draws a run.
    pub fn draw(options: &GroupOptions) -> Self {
        let GroupOptions { n, f, adversary, coin, seed } = *options;
        let mut rng = Rng::stream(seed, "group");
        let adversary = match adversary {
            Choice::Nobody => None,
            Choice::Only(adversary) => Some(adversary),
            Choice::All => Some(*rng.pick(&ADVERSARIES)).filter(|_| rng.per_mille(800)),
        };
        let mut ids: Vec<ReplicaId> = (0..n as u8).map(ReplicaId).collect();
        rng.shuffle(&mut ids);
        let liars = if adversary.is_some() { rng.between(1, f.max(1) as u64) as usize } else { 0 };
        let crashes = rng.below((f - liars.min(f)) as u64 + 1) as usize;
        let crashed = ids[liars..liars + crashes].to_vec();
        let turn = match rng.below(5) {
            0 => Turn::First,
            1 => Turn::Starve(rng.next() & rng.next()),
            2 => Turn::Behind,
            _ => Turn::Any,
        };
        Self {
            options: *options,
            adversary,
            liars: ids[..liars].iter().copied().collect(),
            crashes: crashed.into_iter().map(|id| (id, rng.below(2_000))).collect(),
            loss: *rng.pick(&[0, 0, 10, 100]),
            duplication: *rng.pick(&[0, 0, 50]),
            turn,
            pass: *rng.pick(&[1000, 300, 100]),
            repeats: rng.per_mille(200),
            bundles: rng.per_mille(700),
            coin: coin.unwrap_or_else(|| {
                if Rng::stream(seed, "coin of a group").per_mille(300) { Coin::Common } else { Coin::Local }
            }),
            calls: draw_calls(n, &mut rng),
        }
    }

    /// Who does what it should, to the end or until it crashes.
    pub fn honest(&self) -> Vec<ReplicaId> {
        (0..self.options.n as u8).map(ReplicaId).filter(|id| !self.liars.contains(id)).collect()
    }

    /// Who does so to the end.
    pub fn correct(&self) -> Vec<ReplicaId> {
        self.honest().into_iter().filter(|id| !self.crashes.contains_key(id)).collect()
    }
}

/// Some values are named by themselves, and some by their digest.
fn value(rng: &mut Rng, of: &str) -> Bytes {
    let repeated = if rng.coin() { 1 } else { 12 };
    Bytes::from(of.repeat(repeated))
}

fn draw_calls(n: usize, rng: &mut Rng) -> Vec<(u64, ReplicaId, Call)> {
    // Of each kind: whether there are any, and how many; in one run in four nothing but one kind.
    let only = rng.per_mille(250).then(|| rng.below(6));
    let mut some = |kind: u64, most: u64| match only {
        Some(only) if only == kind => rng.between(1, most),
        Some(_) => 0,
        None => rng.below(most + 1),
    };
    let (reliable, echo, bits, values) = (some(0, 3), some(1, 3), some(2, 3), some(3, 2));
    let (vectors, ordered) = (some(4, 1), some(5, 6));
    let spread = *rng.pick(&[0, 200, 3_000]);
    let mut calls = Vec::new();
    let mut call = |rng: &mut Rng, who: usize, call: Call| {
        calls.push((rng.below(spread + 1), ReplicaId(who as u8), call));
    };
    for who in 0..n {
        for number in 0..rng.below(reliable + 1) {
            let value = value(rng, &format!("r{who}.{number}"));
            call(rng, who, Call::Reliable(number, value));
        }
        for number in 0..rng.below(echo + 1) {
            let value = value(rng, &format!("e{who}.{number}"));
            call(rng, who, Call::Echo(number, value));
        }
        for number in 0..rng.below(ordered + 1) {
            let value = value(rng, &format!("o{who}.{number}"));
            call(rng, who, Call::Order(value));
        }
    }
    // All processes make the same calls of consensus. What they propose is the same, or one of two, or their own.
    for number in 0..bits {
        let common = rng.below(3);
        for who in 0..n {
            let bit = if common < 2 { common == 1 } else { rng.coin() };
            call(rng, who, Call::Bit(number, bit));
        }
    }
    for number in 0..values {
        let (choices, long) = (rng.between(1, 3), rng.coin());
        for who in 0..n {
            let of = format!("v{number}.{}", rng.below(choices)).repeat(if long { 12 } else { 1 });
            call(rng, who, Call::Value(number, Bytes::from(of)));
        }
    }
    for number in 0..vectors {
        for who in 0..n {
            let value = value(rng, &format!("c{number}.{who}"));
            call(rng, who, Call::Vector(number, value));
        }
    }
    calls.sort_by_key(|(at, ..)| *at);
    calls
}
