//! Processes with stacks of their own, and a network that delivers in order, or as a seed says.

mod agreement;
mod common_coin;
mod counters;
mod rounds;
mod validity;
mod vectors;

use super::message::{Said, Statement, Summary, Value};
use super::path::{Id, Layer, Path};
use super::scope::{Effect, Scope};
use super::stack::{Outcome, Stack};
use super::variant::Variant;
use crate::cluster::Coin;
use crate::digest::Digest;
use crate::ids::ReplicaId;
use crate::machine::StepsTaken;
use crate::rejection::Rejection;
use crate::replicas::Replicas;
use crate::testing::paper_coin::PaperCoin;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// Deliveries after which a run that does not come to rest has failed.
const DELIVERIES_MAX: usize = 3_000_000;

#[derive(Clone, Debug)]
enum Packet {
    Said(Said),
    Summary(Summary),
}

/// The next number of a sequence that the seed decides (SplitMix64).
#[derive(Clone, Debug)]
struct Lots(u64);

impl Lots {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.draw() % end as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// How the network treats what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// It delivers in the order in which was sent: everything takes one step.
    InOrder,
    /// It delivers in any order, and loses one in so many.
    Lossy(usize),
}

struct Group {
    replicas: Replicas,
    variant: Variant,
    stacks: Vec<Stack>,
    /// What each has said that binds it: its log.
    logs: Vec<Vec<Said>>,
    outcomes: Vec<Vec<Outcome>>,
    packets: Vec<(ReplicaId, ReplicaId, Packet)>,
    /// The first that is not delivered, where they are delivered in order.
    next: usize,
    network: Network,
    lots: Lots,
    /// Nothing goes to these and nothing comes from them.
    silent: Vec<ReplicaId>,
    /// What was sent to others by layer, and DECIDE.
    sent: BTreeMap<Option<Layer>, usize>,
    deliveries: usize,
    /// Whose statements did not count, and why.
    rejected: Vec<(ReplicaId, Rejection)>,
}

fn value(byte: u8) -> Value {
    Value(Bytes::from(vec![byte; 100]))
}

fn secret(of: usize, seed: u64) -> Digest {
    let mut secret = [of as u8; 32];
    secret[..8].copy_from_slice(&seed.to_le_bytes());
    Digest(secret)
}

fn stack(n: usize, me: usize, variant: Variant, seed: u64) -> Stack {
    let mut stack = Stack::new(secret(me, seed), variant);
    if variant.coin == Coin::Common {
        stack.arm(secret(me, seed), Some(PaperCoin::coin(n, seed, ReplicaId(me as u8))));
    }
    stack
}

impl Group {
    fn new(n: usize, variant: Variant, network: Network, seed: u64) -> Self {
        let replicas = Replicas::of(n).unwrap();
        Self {
            replicas,
            variant,
            stacks: (0..n).map(|of| stack(n, of, variant, seed)).collect(),
            logs: vec![Vec::new(); n],
            outcomes: vec![Vec::new(); n],
            packets: Vec::new(),
            next: 0,
            network,
            lots: Lots(seed),
            silent: Vec::new(),
            sent: BTreeMap::new(),
            deliveries: 0,
            rejected: Vec::new(),
        }
    }

    /// Has one process do something, and sends what it says.
    fn with<T>(&mut self, me: usize, act: impl FnOnce(&mut Stack, &mut Scope<'_>) -> T) -> T {
        let id = ReplicaId(me as u8);
        let (mut out, mut steps) = (Vec::new(), StepsTaken::default());
        let repeats = self.variant.repeats;
        let (replicas, silence) = (self.replicas, None);
        let mut scope = Scope { replicas, me: id, repeats, silence, out: &mut out, steps: &mut steps };
        let result = act(&mut self.stacks[me], &mut scope);
        for effect in out {
            match effect {
                Effect::Say(said) => {
                    if said.statement.binds() {
                        self.logs[me].push(said.clone());
                    }
                    for to in self.replicas.iter().filter(|to| *to != id) {
                        self.count(&said);
                        self.send(id, to, Packet::Said(said.clone()));
                    }
                }
                Effect::Tell(to, said) => {
                    self.count(&said);
                    self.send(id, to, Packet::Said(said));
                }
                Effect::Keep(said) => self.logs[me].push(said),
                Effect::Reject(from, reason) => self.rejected.push((from, reason)),
            }
        }
        result
    }

    fn count(&mut self, said: &Said) {
        let layer = match said.statement {
            Statement::Decide(_) => None,
            Statement::Est(_) | Statement::Aux(_) | Statement::Conf(_) | Statement::Share(_) => Some(Layer::Toss),
            _ => said.path.parent().map(|at| at.last().layer()),
        };
        *self.sent.entry(layer).or_default() += 1;
    }

    fn send(&mut self, from: ReplicaId, to: ReplicaId, packet: Packet) {
        let is_lost = match self.network {
            Network::InOrder => false,
            Network::Lossy(times) => self.lots.one_in(times),
        };
        if !is_lost && !self.silent.contains(&from) && !self.silent.contains(&to) {
            self.packets.push((from, to, packet));
        }
    }

    fn learn(&mut self, me: usize, outcomes: Vec<Outcome>) {
        for outcome in outcomes {
            let vouched = match &outcome {
                Outcome::Message(root, id, _) => Some((*root, *id)),
                Outcome::Delivered(path, _)
                | Outcome::Bit(path, _)
                | Outcome::Agreed(path, _)
                | Outcome::Vector(path, _) => {
                    self.stacks[me].taken(*path);
                    None
                }
                _ => None,
            };
            self.outcomes[me].push(outcome);
            if let Some((root, id)) = vouched {
                let more = self.with(me, |stack, scope| stack.vouch(scope, root, id));
                self.learn(me, more);
            }
        }
    }

    fn act(&mut self, me: usize, act: impl FnOnce(&mut Stack, &mut Scope<'_>) -> Vec<Outcome>) {
        let outcomes = self.with(me, act);
        self.learn(me, outcomes);
    }

    fn hear(&mut self, me: usize, from: ReplicaId, packet: Packet) {
        match packet {
            Packet::Said(said) => self.act(me, |stack, scope| stack.hear(scope, from, said)),
            Packet::Summary(summary) => {
                self.with(me, |stack, scope| stack.on_summary(scope, from, &summary, usize::MAX));
            }
        }
    }

    /// Delivers all that is on its way.
    fn drain(&mut self) {
        while self.next < self.packets.len() {
            let (from, to, packet) = match self.network {
                Network::InOrder => {
                    self.next += 1;
                    self.packets[self.next - 1].clone()
                }
                Network::Lossy(_) => {
                    let at = self.lots.below(self.packets.len());
                    self.packets.swap_remove(at)
                }
            };
            self.deliveries += 1;
            assert!(self.deliveries < DELIVERIES_MAX, "it does not come to rest");
            self.hear(to.0.into(), from, packet);
        }
    }

    fn tick(&mut self, me: usize) -> bool {
        let summaries = self.with(me, |stack, scope| stack.tick(scope, false));
        let waits = !summaries.is_empty();
        for (to, summary) in summaries {
            self.send(ReplicaId(me as u8), to, Packet::Summary(summary));
        }
        waits
    }

    /// Delivers, and lets the channel say again what was lost, until nobody waits for anything.
    fn settle(&mut self) {
        for _ in 0..200 {
            self.drain();
            let mut waits = false;
            for me in 0..self.stacks.len() {
                waits |= !self.silent.contains(&ReplicaId(me as u8)) && self.tick(me);
            }
            if !waits {
                return;
            }
        }
        panic!("somebody waits for ever");
    }

    /// Loses all that a process knows, but what it has said.
    fn restart(&mut self, me: usize, seed: u64) {
        self.stacks[me] = stack(self.replicas.n(), me, self.variant, seed);
        self.outcomes[me].clear();
        for said in self.logs[me].clone() {
            self.with(me, |stack, scope| stack.replay(scope, said));
        }
        self.act(me, Stack::resume);
    }

    fn ordered(&self, me: usize) -> Vec<(Id, Value)> {
        let ordered = self.outcomes[me].iter().filter_map(|outcome| match outcome {
            Outcome::Ordered(_, id, value) => Some((*id, value.clone())),
            _ => None,
        });
        ordered.collect()
    }

    /// What each has come to, but for messages that only arrive.
    fn results(&self, me: usize) -> Vec<Outcome> {
        let results = self.outcomes[me].iter().filter(|outcome| !matches!(outcome, Outcome::Message(..)));
        results.cloned().collect()
    }
}
