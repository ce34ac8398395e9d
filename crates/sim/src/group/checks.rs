//! What must be true of a group, whoever lies: ritas-I1, ritas-I2, ritas-I3 and ritas-I4.

use super::scenario::GroupScenario;
use crate::checks::Violation;
use bezant_core::ids::ReplicaId;
use bezant_core::protocols::ritas::group::{Call, GroupEvent};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

type Calls = [(u64, ReplicaId, Call)];
type Broadcasts = BTreeMap<(ReplicaId, u64), Bytes>;

/// What each process has come to.
#[derive(Debug)]
pub(super) struct Answers {
    of: Vec<Vec<GroupEvent>>,
}

/// What is known of one process, by layer. What it came to twice is a violation of its own.
#[derive(Debug, Default)]
struct Found {
    reliable: Broadcasts,
    echo: Broadcasts,
    bits: BTreeMap<u64, bool>,
    values: BTreeMap<u64, Option<Bytes>>,
    vectors: BTreeMap<u64, Vec<Option<Bytes>>>,
    ordered: Vec<(ReplicaId, Bytes)>,
    twice: Vec<GroupEvent>,
    left_behind: bool,
}

/// What correct processes have asked for.
#[derive(Debug, Default)]
struct Asked {
    reliable: Broadcasts,
    echo: Broadcasts,
    bits: BTreeMap<u64, BTreeSet<bool>>,
    values: BTreeMap<u64, BTreeSet<Bytes>>,
    vectors: BTreeMap<u64, BTreeMap<ReplicaId, Bytes>>,
    ordered: BTreeMap<ReplicaId, Vec<Bytes>>,
}

impl Answers {
    pub(super) fn new(n: usize) -> Self {
        Self { of: vec![Vec::new(); n] }
    }

    pub(super) fn add(&mut self, of: ReplicaId, event: GroupEvent) {
        if !matches!(event, GroupEvent::Rejected(..)) {
            self.of[usize::from(of.0)].push(event);
        }
    }

    pub(super) fn of(&self, id: ReplicaId) -> &[GroupEvent] {
        &self.of[usize::from(id.0)]
    }

    /// Over all of these processes.
    pub(super) fn count(&self, of: &[ReplicaId]) -> u64 {
        of.iter().map(|id| self.of(*id).len() as u64).sum()
    }

    /// Whether all correct processes have come to all that correct ones have asked for.
    pub(super) fn are_complete(&self, calls: &Calls, correct: &[ReplicaId]) -> bool {
        let asked = Asked::of(calls, correct);
        correct.iter().all(|id| Found::of(self.of(*id)).lacks(&asked).is_none())
    }

    /// Whether one has come to something of a liar that another has not come to yet.
    pub(super) fn differ(&self, correct: &[ReplicaId]) -> bool {
        let found = |id: &ReplicaId| {
            let Found { reliable, bits, values, vectors, ordered, .. } = Found::of(self.of(*id));
            (reliable, bits, values, vectors, ordered)
        };
        correct.windows(2).any(|pair| found(&pair[0]) != found(&pair[1]))
    }
}

impl Asked {
    fn of(calls: &Calls, correct: &[ReplicaId]) -> Self {
        let mut asked = Self::default();
        for (_, id, call) in calls.iter().filter(|(_, id, _)| correct.contains(id)) {
            match call {
                Call::Reliable(number, bytes) => drop(asked.reliable.insert((*id, *number), bytes.clone())),
                Call::Echo(number, bytes) => drop(asked.echo.insert((*id, *number), bytes.clone())),
                Call::Bit(number, bit) => drop(asked.bits.entry(*number).or_default().insert(*bit)),
                Call::Value(number, bytes) => drop(asked.values.entry(*number).or_default().insert(bytes.clone())),
                Call::Vector(number, bytes) => {
                    drop(asked.vectors.entry(*number).or_default().insert(*id, bytes.clone()));
                }
                Call::Order(bytes) => asked.ordered.entry(*id).or_default().push(bytes.clone()),
            }
        }
        asked
    }
}

impl Found {
    fn of(events: &[GroupEvent]) -> Self {
        let mut found = Self::default();
        for event in events {
            let is_new = match event.clone() {
                GroupEvent::Reliable(id, number, bytes) => found.reliable.insert((id, number), bytes).is_none(),
                GroupEvent::Echo(id, number, bytes) => found.echo.insert((id, number), bytes).is_none(),
                GroupEvent::Bit(number, bit) => found.bits.insert(number, bit).is_none(),
                GroupEvent::Value(number, value) => found.values.insert(number, value).is_none(),
                GroupEvent::Vector(number, vector) => found.vectors.insert(number, vector).is_none(),
                GroupEvent::Ordered(id, bytes) => {
                    found.ordered.push((id, bytes));
                    true
                }
                GroupEvent::LeftBehind => {
                    found.left_behind = true;
                    true
                }
                GroupEvent::Rejected(..) => true,
            };
            if !is_new {
                found.twice.push(event.clone());
            }
        }
        found
    }

    /// Something that was asked for and is not here.
    fn lacks(&self, asked: &Asked) -> Option<String> {
        let ordered = |id: &ReplicaId| self.ordered.iter().filter(|(of, _)| of == id).count();
        let reliable = asked.reliable.keys().find(|key| !self.reliable.contains_key(key));
        let echo = asked.echo.keys().find(|key| !self.echo.contains_key(key));
        let bits = asked.bits.keys().find(|number| !self.bits.contains_key(number));
        let values = asked.values.keys().find(|number| !self.values.contains_key(number));
        let vectors = asked.vectors.keys().find(|number| !self.vectors.contains_key(number));
        let short = asked.ordered.iter().find(|(id, sent)| ordered(id) < sent.len());
        None.or_else(|| reliable.map(|key| format!("reliable broadcast {key:?}")))
            .or_else(|| echo.map(|key| format!("echo broadcast {key:?}")))
            .or_else(|| bits.map(|number| format!("binary consensus {number}")))
            .or_else(|| values.map(|number| format!("multi-valued consensus {number}")))
            .or_else(|| vectors.map(|number| format!("vector consensus {number}")))
            .or_else(|| short.map(|(id, _)| format!("messages of {id}")))
    }
}

/// Everything that is wrong.
pub(super) fn check(scenario: &GroupScenario, calls: &Calls, answers: &Answers, at: u64) -> Vec<Violation> {
    let (correct, honest) = (scenario.correct(), scenario.honest());
    let (asked, proposed) = (Asked::of(calls, &correct), Asked::of(calls, &honest));
    let found: BTreeMap<ReplicaId, Found> = correct.iter().map(|id| (*id, Found::of(answers.of(*id)))).collect();
    let mut wrong: Vec<(&'static str, String)> = Vec::new();
    for (id, found) in &found {
        if let Some(what) = found.lacks(&asked) {
            wrong.push(("termination", format!("{id} does not come to {what}")));
        }
        if found.left_behind {
            wrong.push(("termination", format!("{id} is left behind although little was sent")));
        }
        wrong.extend(found.twice.iter().map(|event| ("once", format!("{id} comes to {event:?} twice"))));
    }
    let Some((first, reference)) = found.iter().next() else { return Vec::new() };
    for (id, other) in &found {
        same("I1 reliable", (first, &reference.reliable), (id, &other.reliable), &mut wrong);
        same("I2 bit", (first, &reference.bits), (id, &other.bits), &mut wrong);
        same("I3 value", (first, &reference.values), (id, &other.values), &mut wrong);
        same("I3 vector", (first, &reference.vectors), (id, &other.vectors), &mut wrong);
        same("I3 order", (first, &reference.ordered), (id, &other.ordered), &mut wrong);
        // Some may have what others have not; nobody has anything else.
        for (key, bytes) in &other.echo {
            if reference.echo.get(key).is_some_and(|known| known != bytes) {
                wrong.push(("I1 echo", format!("{first} and {id} have different values of {key:?}")));
            }
        }
        valid(id, other, &proposed, scenario, &mut wrong);
    }
    wrong.into_iter().map(|(check, what)| Violation { check, at, what }).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(
    check: &'static str,
    (first, known): (&ReplicaId, &T),
    (id, other): (&ReplicaId, &T),
    wrong: &mut Vec<(&'static str, String)>,
) {
    if known != other {
        wrong.push((check, format!("{first} has {known:?}, and {id} has {other:?}")));
    }
}

/// What one process came to follows from what was asked for.
fn valid(
    id: &ReplicaId,
    found: &Found,
    asked: &Asked,
    scenario: &GroupScenario,
    wrong: &mut Vec<(&'static str, String)>,
) {
    let (correct, honest) = (scenario.correct(), scenario.honest());
    for (name, sent, got) in [("reliable", &asked.reliable, &found.reliable), ("echo", &asked.echo, &found.echo)] {
        for (key, bytes) in got.iter().filter(|((owner, _), _)| honest.contains(owner)) {
            if sent.get(key) != Some(bytes) {
                wrong.push(("I1 validity", format!("{id} has {bytes:?} by {name} broadcast {key:?}")));
            }
        }
    }
    for (number, bit) in &found.bits {
        if !asked.bits.get(number).is_some_and(|proposed| proposed.contains(bit)) {
            wrong.push(("I2 validity", format!("{id} decides {bit} in {number}: no correct process proposed it")));
        }
    }
    for (number, value) in &found.values {
        let proposed = &asked.values.get(number).cloned().unwrap_or_default();
        let is_valid = match value {
            Some(value) => proposed.contains(value),
            None => proposed.len() > 1,
        };
        if !is_valid {
            wrong.push(("I3 validity", format!("{id} decides {value:?} in {number} of {proposed:?}")));
        }
    }
    for (number, vector) in &found.vectors {
        let proposed = asked.vectors.get(number).cloned().unwrap_or_default();
        let (n, f) = (scenario.options.n, scenario.options.f);
        let entries = vector.iter().flatten().count();
        let is_other = |of: &ReplicaId| {
            vector.get(usize::from(of.0)).cloned().flatten().is_some_and(|entry| proposed.get(of) != Some(&entry))
        };
        if vector.len() != n || entries < n - f || honest.iter().any(is_other) {
            wrong.push(("I3 validity", format!("{id} decides {vector:?} in {number} of {proposed:?}")));
        }
    }
    for of in &correct {
        let sent = asked.ordered.get(of).cloned().unwrap_or_default();
        let got: Vec<Bytes> =
            found.ordered.iter().filter(|(sender, _)| sender == of).map(|(_, bytes)| bytes.clone()).collect();
        if sent != got {
            wrong.push(("I3 validity", format!("{id} has {got:?} of {of}, which sent {sent:?} in this order")));
        }
    }
}
