//! Which instances may be there: what the [stack](super::stack) lets in.

use super::atomic_broadcast::AtomicBroadcast;
use super::binary_consensus::BinaryConsensus;
use super::bounds::{roots_max, value_bytes_max};
use super::common_coin_consensus::{CommonCoinConsensus, Round};
use super::decision::Decision;
use super::echo_broadcast::EchoBroadcast;
use super::message::Said;
use super::multi_valued_consensus::MultiValuedConsensus;
use super::path::{Id, Layer, Path};
use super::reliable_broadcast::ReliableBroadcast;
use super::scope::Scope;
use super::stack::{Instance, Stack};
use super::vector_consensus::VectorConsensus;
use crate::cluster::{Coin, Vects};
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use crate::replicas::Replicas;
use alloc::vec::Vec;

/// Whose statement asks to be let in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Others,
    BeforeACrash,
}

impl Stack {
    /// Lets something be said about an instance: it exists, or may exist and is made, with those that lead to it.
    ///
    /// # Errors
    /// [`Rejection::OutsideWindow`] if it is over, or too far ahead; [`Rejection::Malformed`] if it never is there.
    pub(super) fn admit(&mut self, scope: &Scope<'_>, path: Path) -> Result<(), Rejection> {
        self.let_in(scope, path, Origin::Others)
    }

    /// The same of a statement of another process.
    ///
    /// # Errors
    /// As above; and [`Rejection::Malformed`] if its value is longer than a correct process's.
    pub(super) fn admit_said(&mut self, scope: &Scope<'_>, said: &Said) -> Result<(), Rejection> {
        if said.statement.value_bytes() > value_bytes_max(scope, said.path) {
            return Err(Rejection::Malformed);
        }
        self.admit(scope, said.path)
    }

    /// The same of what this process has said itself before a crash. It may have come further then than its replay has
    /// so far, so that only what is over is not let in: what it forgets it might say differently.
    ///
    /// # Errors
    /// As above.
    pub(super) fn admit_own(&mut self, scope: &Scope<'_>, path: Path) -> Result<(), Rejection> {
        self.let_in(scope, path, Origin::BeforeACrash)
    }

    fn let_in(&mut self, scope: &Scope<'_>, path: Path, origin: Origin) -> Result<(), Rejection> {
        let is_own = origin == Origin::BeforeACrash;
        if self.instances.contains_key(&path) {
            return Ok(());
        }
        // Nothing is made before all of the way is checked.
        let mut made: Vec<(Path, Instance)> = Vec::new();
        for way in path.ways() {
            if let Some(instance) = self.instances.get(&way) {
                match instance {
                    Instance::Over(_) => return Err(Rejection::OutsideWindow),
                    _ => continue,
                }
            }
            let number = way.last().number();
            let parent = way.parent();
            let is_admitted = match (way.last().layer(), parent) {
                (_, None) => self.admits_root(&scope.replicas, path),
                (Layer::Message, Some(root)) => {
                    let id = Id { sender: path.owner(&scope.replicas).ok_or(Rejection::Malformed)?, number };
                    let admits = |atomic: &AtomicBroadcast| match origin {
                        Origin::Others => atomic.hears_message(id),
                        Origin::BeforeACrash => !atomic.standing().has(id),
                    };
                    self.atomic(root).is_none_or(admits)
                }
                (Layer::Round, Some(root)) => {
                    let is_over = matches!(self.instances.get(&way.child(Layer::Multi, 0)), Some(Instance::Over(_)));
                    let admits = |atomic: &AtomicBroadcast| {
                        atomic.admits_round(number) || is_own && number >= atomic.standing().round
                    };
                    !is_over && self.atomic(root).is_none_or(admits)
                }
                (Layer::Multi, Some(_)) => number < scope.replicas.weak() as u64,
                (Layer::Step | Layer::Toss, Some(_)) if is_own => true,
                (Layer::Step, Some(binary)) => {
                    let steps_max = match self.instances.get(&binary) {
                        Some(Instance::Binary(binary, _)) => binary.steps_max(),
                        _ => BinaryConsensus::new().steps_max(),
                    };
                    number < steps_max
                }
                (Layer::Toss, Some(binary)) => {
                    let rounds_max = match self.instances.get(&binary) {
                        Some(Instance::CommonCoin(consensus, _)) => consensus.rounds_max(),
                        _ => CommonCoinConsensus::new().rounds_max(),
                    };
                    number < rounds_max
                }
                _ => true,
            };
            if !is_admitted {
                return Err(Rejection::OutsideWindow);
            }
            made.extend(self.new_instance(scope, way)?.map(|instance| (way, instance)));
        }
        if made.last().is_none_or(|(last, _)| *last != path) {
            return Err(Rejection::Malformed);
        }
        self.instances.extend(made);
        Ok(())
    }

    /// An atomic broadcast.
    pub(super) fn atomic(&self, root: Path) -> Option<&AtomicBroadcast> {
        match self.instances.get(&root) {
            Some(Instance::Atomic(atomic)) => Some(atomic),
            _ => None,
        }
    }

    /// The same.
    pub(super) fn atomic_mut(&mut self, root: Path) -> Option<&mut AtomicBroadcast> {
        match self.instances.get_mut(&root) {
            Some(Instance::Atomic(atomic)) => Some(atomic),
            _ => None,
        }
    }

    /// Whether the root that leads here may be there: it is in the window of its layer and owner, or was in it.
    pub(super) fn has_come_to(&self, replicas: &Replicas, path: Path) -> bool {
        let root = path.of_root().last();
        let owner = path.owner(replicas);
        let is_taken = self.roots.get(&(root.layer(), owner)).is_some_and(|window| window.is_finished(root.number()));
        is_taken || self.admits_root(replicas, path)
    }

    /// Whether it is in that window.
    fn admits_root(&self, replicas: &Replicas, path: Path) -> bool {
        let root = path.of_root().last();
        let (layer, number) = (root.layer(), root.number());
        if layer == Layer::Atomic {
            return number == 0;
        }
        let owner: Option<ReplicaId> = match layer {
            Layer::Reliable | Layer::Echo => path.owner(replicas),
            _ => None,
        };
        match self.roots.get(&(layer, owner)) {
            Some(window) => window.admits(number, roots_max(layer)),
            None => number < roots_max(layer),
        }
    }

    /// What is made for a path: nothing for one that only leads somewhere.
    fn new_instance(&self, scope: &Scope<'_>, path: Path) -> Result<Option<Instance>, Rejection> {
        let (replicas, repeats) = (&scope.replicas, self.variant.repeats);
        Ok(Some(match path.last().layer() {
            Layer::Atomic => Instance::Atomic(AtomicBroadcast::new(replicas, self.variant)),
            Layer::Vector => Instance::Vector(VectorConsensus::new(replicas), Decision::new()),
            Layer::Multi => Instance::Multi(MultiValuedConsensus::new(replicas, repeats), Decision::new()),
            Layer::Binary => match self.variant.coin {
                Coin::Local => Instance::Binary(BinaryConsensus::new(), Decision::new()),
                Coin::Common => Instance::CommonCoin(CommonCoinConsensus::new(), Decision::new()),
            },
            // Each coin has a consensus of its own, and that one its own statements.
            Layer::Step if self.variant.coin != Coin::Local => return Err(Rejection::Malformed),
            Layer::Toss if self.variant.coin != Coin::Common => return Err(Rejection::Malformed),
            Layer::Toss => Instance::CommonCoinRound(Round::new()),
            Layer::By => {
                let owner = path.owner(replicas).ok_or(Rejection::Malformed)?;
                let of = path.parent().map(|parent| parent.last().layer());
                let is_echo = match of {
                    Some(Layer::Echo) => true,
                    Some(Layer::Vect) => self.variant.vects == Vects::Echo,
                    _ => false,
                };
                if is_echo {
                    Instance::Echo(EchoBroadcast::new(owner))
                } else {
                    Instance::Reliable(ReliableBroadcast::new(owner))
                }
            }
            _ => return Ok(None),
        }))
    }
}
