//! Who lies and how, in one run: at f > 1 each liar has behaviours of its own, some change theirs while the run lasts,
//! and a client may lie beside them.

use super::{Adversary, Choice};
use crate::options::ScenarioOptions;
use crate::rng::Rng;
use crate::size::Size;
use bezant_core::ids::ReplicaId;
use std::collections::{BTreeMap, BTreeSet};

/// The parts in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cast {
    /// What each lying replica does, one after the other.
    pub replicas: BTreeMap<ReplicaId, Vec<Adversary>>,
    /// What the lying client does.
    pub client: Option<Adversary>,
    /// Whether it speaks unasked as well, in the names of many sessions.
    pub crowds: bool,
}

impl Cast {
    /// A liar with what it does, for a person.
    pub fn describe(&self, liar: ReplicaId) -> String {
        let parts = self.replicas.get(&liar).map_or(&[][..], Vec::as_slice);
        let parts: Vec<&str> = parts.iter().map(|part| part.label()).collect();
        if parts.is_empty() { liar.to_string() } else { format!("{liar}:{}", parts.join(",")) }
    }

    /// The same; in half of the calm runs its client speaks unasked as well.
    #[must_use]
    pub fn crowding(self, seed: u64, calm: bool) -> Self {
        Self { crowds: calm && self.client.is_some() && Rng::stream(seed, "crowds").coin(), ..self }
    }

    /// Gives the liars of a seed their parts. The first plays the run's adversary; who was asked for by name plays
    /// alone, everywhere and always.
    pub fn draw(
        options: &ScenarioOptions,
        size: Size,
        adversary: Option<Adversary>,
        liars: &BTreeSet<ReplicaId>,
    ) -> Self {
        let Some(first) = adversary else { return Self::default() };
        let client = Some(first).filter(|first| first.corrupts_clients());
        let parts = if first.corrupts_replicas() { vec![first] } else { Vec::new() };
        let replicas = liars.iter().map(|liar| (*liar, parts.clone())).collect();
        let mut cast = Self { replicas, client, crowds: false };
        if options.adversary != Choice::All || first == Adversary::Twins {
            return cast;
        }
        let mut rng = Rng::stream(options.seed, "cast");
        let fitting = Adversary::drawn_against(options.protocol);
        let minds: Vec<Adversary> =
            fitting.iter().copied().filter(|a| a.corrupts_replicas() && *a != Adversary::Twins).collect();
        for (number, parts) in cast.replicas.values_mut().filter(|parts| !parts.is_empty()).enumerate() {
            if number > 0 {
                *parts = vec![*rng.pick(&minds)];
            }
            // Half of the liars keep to what they do; the others do up to three things in turn.
            for _ in 0..rng.below(5).saturating_sub(2) {
                parts.push(*rng.pick(&minds));
            }
        }
        let clients: Vec<Adversary> = fitting.iter().copied().filter(|a| a.corrupts_clients()).collect();
        if first.corrupts_replicas() && client.is_none() && rng.per_mille(300) {
            cast.client = Some(*rng.pick(&clients));
        }
        // What is replayed says most where somebody joins with another's key: some of those JOINs are refused.
        let beside = size != Size::First && Rng::stream(options.seed, "takeover beside").coin();
        if beside && first == Adversary::MemberReplay {
            cast.client = Some(Adversary::Takeover);
        }
        cast
    }
}
