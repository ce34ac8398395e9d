//! Which adversary a run has: how a seed comes by it.

use super::{Acts, Adversary};
use crate::rng::Rng;
use crate::size::Size;
use bezant_core::schedule::Protocol;
use std::fmt;
use std::str::FromStr;

/// Which adversary a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Everybody is honest; machines and links still fail.
    Nobody,
    /// This one.
    Only(Adversary),
    /// One drawn from the seed, or nobody.
    #[default]
    All,
}

impl Choice {
    /// The adversary of a seed.
    pub fn resolve(self, seed: u64, size: Size, protocol: Protocol, strangers: bool, parts: bool) -> Option<Adversary> {
        if self == Self::All && size != Size::First {
            let mut drawn = Rng::stream(seed, "later adversary").below(10_000);
            for (adversary, runs) in Adversary::drawn_later(protocol) {
                if drawn < runs {
                    return Some(adversary);
                }
                drawn -= runs;
            }
        }
        // In half of the runs with strangers it is about them.
        let mut rng = Rng::stream(seed, "adversary of strangers");
        if self == Self::All && strangers && rng.coin() {
            return Some(*rng.pick(&Adversary::drawn_among_strangers()));
        }
        // In half of the runs in which replicas are to part, somebody sees to it.
        let mut rng = Rng::stream(seed, "adversary of partings");
        if self == Self::All && parts && protocol.hands_on() && rng.coin() {
            return Some(*rng.pick(&[Adversary::DifferentProofs, Adversary::AbortEquivocation]));
        }
        match self {
            Self::Nobody => None,
            Self::Only(adversary) => Some(adversary),
            Self::All => {
                let fitting = Adversary::drawn_against(protocol);
                let drawn = Rng::stream(seed, "adversary").below(fitting.len() as u64 + 1);
                fitting.get(drawn as usize).copied()
            }
        }
    }

    /// The adversary that is named here and never acted: nothing was tried.
    pub fn idle(self, acts: &Acts) -> Option<Adversary> {
        match self {
            Self::Only(adversary) if acts.get(adversary.label()).is_none_or(|acts| *acts == 0) => Some(adversary),
            _ => None,
        }
    }

    /// The adversary of a seed whose run is calm: a client, or nobody. Very many sessions that ask and panic at once
    /// can stop a ring, whose entry works off what they asked first: nobody promises that they do not. Where instances
    /// are measured more is promised if all are honest, who are so in half of all runs.
    pub fn resolve_calm(self, seed: u64, size: Size, protocol: Protocol, strangers: bool) -> Option<Adversary> {
        if self != Self::All {
            return self.resolve(seed, size, protocol, strangers, false).filter(|adversary| adversary.is_a_client());
        }
        let fitting = Adversary::drawn_against(protocol).into_iter().filter(|adversary| adversary.is_a_client());
        let stops_rings = |who: &Adversary| *who == Adversary::ManySessions && !protocol.is_one_order();
        let fitting: Vec<Adversary> = fitting.filter(|who| !stops_rings(who)).collect();
        let drawn = Rng::stream(seed, "adversary of a calm run").below(fitting.len() as u64 + 1);
        let all_honest = protocol.is_robust() && Rng::stream(seed, "all are honest").coin();
        fitting.get(drawn as usize).copied().filter(|_| !all_honest)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("none"),
            Self::Only(adversary) => adversary.fmt(f),
            Self::All => f.write_str("all"),
        }
    }
}

impl FromStr for Choice {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self::Nobody),
            "all" => Ok(Self::All),
            _ => Adversary::ALL.iter().copied().find(|a| a.label() == name).map(Self::Only).ok_or_else(|| {
                let known: Vec<_> = Adversary::ALL.iter().map(|a| a.label()).collect();
                format!("no adversary is called {name:?}; known: all, none, {}", known.join(", "))
            }),
        }
    }
}
