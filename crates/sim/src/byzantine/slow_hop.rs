//! A place of a ring that takes its time with whatever goes around (ring-A12). What is said about the ring's pace it
//! delays as well; or else it answers at once, says that its own hop takes no time, and votes that nothing is slow.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::ids::Principal;
use bezant_core::notice::Pace;
use bezant_core::protocols::ring_fast::{Hop, PaceMessage, RingPace, Vote};
use bezant_core::registry::Message;

#[derive(Debug)]
pub(super) struct SlowHop {
    /// Of `ring_slow_after`, in per mille.
    part: u64,
    /// Whether it looks fast.
    hasty: bool,
}

impl SlowHop {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { part: rng.between(1_100, 4_000), hasty: rng.coin() }
    }
}

/// What a replica says that wants to look fast.
fn embellished(liar: &Liar<'_>, said: &RingPace) -> Message {
    let mut lie = said.clone();
    match &mut lie.message {
        PaceMessage::Check(hops) => {
            if let Some(own) = hops.hops.pop() {
                hops.hops.push(liar.keyring.sign(Hop { microseconds: 0, ..*own.claims() }).into());
            }
        }
        PaceMessage::Vote(vote) => *vote = liar.keyring.sign(Vote { pace: Pace::Even, ..*vote.claims() }).into(),
        _ => {}
    }
    Message::RingPace(lie)
}

impl Behaviour for SlowHop {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let delay = liar.cluster.limits.ring_slow_after.0 * self.part / 1_000;
        match message {
            Message::Ring(_) => liar.say_later(delay, to, message),
            Message::RingPace(_) if !self.hasty => liar.say_later(delay, to, message),
            Message::RingPace(said) => {
                let lie = embellished(liar, said);
                liar.say(to, &lie);
            }
            _ => liar.say(to, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::byzantine::{Adversary, Choice};
    use crate::feature::Feature;
    use crate::options::ScenarioOptions;
    use crate::scenario::Scenario;
    use crate::world::World;
    use bezant_core::time::Duration;

    /// What correct replicas noticed about the pace of a busy ring: who was named, for each time.
    fn noticed(adversary: Choice, seed: u64, f: usize) -> (Scenario, Vec<Option<u8>>) {
        let protocol = "ring-fast,backup(pbft)".parse().unwrap();
        let without = Feature::ALL.iter().copied().collect();
        let options = ScenarioOptions { protocol, f, adversary, seed, without, ..ScenarioOptions::default() };
        let mut scenario = Scenario::draw(&options);
        scenario.limits.client_retry = Duration::from_millis(2_000);
        scenario.limits.status_interval = Duration::from_millis(20);
        scenario.plan.requests = 60 / scenario.plan.clients;
        scenario.plan.think = 25_000 * scenario.plan.clients;
        let (verdict, trace) = World::new(scenario.clone(), true).run();
        assert_eq!(verdict.violations, [], "{options}");
        let text = trace.text();
        let alarms = text.lines().filter(|line| line.contains("Paced") && line.contains("Some(Alarm"));
        let named = |line: &str| line.split_once("from: r").and_then(|(_, rest)| rest[..1].parse().ok());
        (scenario, alarms.map(named).collect())
    }

    #[test]
    fn a_slow_hop_is_noticed_and_nobody_else_is_named() {
        for f in [1, 2] {
            let mut named = 0;
            for seed in 0..10 {
                let (scenario, alarms) = noticed(Choice::Only(Adversary::SlowHop), seed, f);
                assert!(!alarms.is_empty(), "f = {f}, seed {seed}");
                // The link before it or the one behind.
                let liars = scenario.liars.iter().map(|liar| liar.0);
                let links: Vec<u8> =
                    liars.flat_map(|liar| [liar, (liar + scenario.n as u8 - 1) % scenario.n as u8]).collect();
                let suspects: Vec<u8> = alarms.into_iter().flatten().collect();
                assert!(suspects.iter().all(|from| links.contains(from)), "f = {f}, seed {seed}: {suspects:?}");
                named += usize::from(!suspects.is_empty());
            }
            assert!(named >= 3, "f = {f}: {named}");
        }
    }

    #[test]
    fn a_ring_without_a_slow_hop_raises_no_alarm() {
        for (f, seed) in [1, 2].into_iter().flat_map(|f| (0..10).map(move |seed| (f, seed))) {
            assert_eq!(noticed(Choice::Nobody, seed, f).1, [], "f = {f}, seed {seed}");
        }
    }
}
