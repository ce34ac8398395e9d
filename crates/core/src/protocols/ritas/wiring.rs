//! What the layers of a [stack](super::stack) are to one another: whose outputs are whose inputs.

use super::atomic_broadcast;
use super::binary_consensus;
use super::common_coin_consensus;
use super::message::Value;
use super::multi_valued_consensus;
use super::path::{Id, Layer, Path};
use super::scope::Scope;
use super::stack::{Instance, Outcome, Proposal, Stack, Work, toss};
use super::vector_consensus;
use crate::wire::Wire;
use alloc::vec::Vec;
use bytes::Bytes;

impl Stack {
    pub(super) fn delivered(&mut self, scope: &mut Scope<'_>, path: Path, value: Value) {
        let replicas = scope.replicas;
        let owner = path.owner(&replicas).expect("broadcasts have owners");
        let at = path.parent().expect("an owner is of something");
        let Some(parent) = at.parent() else {
            return self.outcomes.push(Outcome::Delivered(path, value));
        };
        let number = at.last().number();
        match (self.instances.get_mut(&parent), at.last().layer()) {
            (Some(Instance::Binary(binary, _)), Layer::Step) => {
                match binary.deliver(&replicas, (number, owner), &value, &toss(&self.secret, parent)) {
                    Ok(outputs) => self.of_binary(scope, parent, outputs),
                    Err(reason) => scope.reject(owner, reason),
                }
            }
            (Some(Instance::Multi(multi, _)), Layer::Init) => {
                let outputs = multi.on_init(&replicas, owner, value);
                self.of_multi(scope, parent, outputs);
            }
            (Some(Instance::Multi(multi, _)), Layer::Vect) => match multi.on_vect(&replicas, owner, &value) {
                Ok(outputs) => self.of_multi(scope, parent, outputs),
                Err(reason) => scope.reject(owner, reason),
            },
            (Some(Instance::Vector(vector, _)), Layer::Value) => match vector.on_value(&replicas, owner, value) {
                Ok(outputs) => self.of_vector(scope, parent, outputs),
                Err(reason) => scope.reject(owner, reason),
            },
            (Some(Instance::Atomic(atomic)), Layer::Message) => {
                let id = Id { sender: owner, number };
                if atomic.on_message(id, value.clone()) {
                    self.outcomes.push(Outcome::Message(parent, id, value));
                }
                let outputs = atomic.advance(&replicas);
                self.of_atomic(scope, parent, outputs);
            }
            (None, Layer::Proposal) => {
                let (round, root) = (parent.last().number(), parent.of_root());
                let Some(atomic) = self.atomic_mut(root) else { return };
                match atomic.on_proposal(&replicas, round, &value) {
                    Ok(outputs) => self.of_atomic(scope, root, outputs),
                    Err(reason) => scope.reject(owner, reason),
                }
            }
            // It is over.
            _ => {}
        }
    }

    pub(super) fn propose_to(&mut self, scope: &mut Scope<'_>, path: Path, proposal: Proposal) {
        if self.admit(scope, path).is_err() {
            return;
        }
        let replicas = scope.replicas;
        match (self.instances.get_mut(&path), proposal) {
            (Some(Instance::Binary(binary, _)), Proposal::Bit(bit)) => {
                let outputs = binary.propose(&replicas, bit, &toss(&self.secret, path));
                self.of_binary(scope, path, outputs);
            }
            (Some(Instance::CommonCoin(consensus, decision)), Proposal::Bit(bit)) => {
                let output = consensus.propose(bit, decision.own(scope.me).is_some());
                self.of_common_coin(scope, path, output);
            }
            (Some(Instance::Multi(multi, _)), Proposal::Value(value)) => {
                let outputs = multi.propose(&replicas, value);
                self.of_multi(scope, path, outputs);
            }
            (Some(Instance::Vector(vector, _)), Proposal::Value(value)) => {
                let outputs = vector.propose(&replicas, value);
                self.of_vector(scope, path, outputs);
            }
            // It is over.
            _ => {}
        }
    }

    pub(super) fn of_binary(&mut self, scope: &mut Scope<'_>, path: Path, outputs: Vec<binary_consensus::Output>) {
        for output in outputs {
            match output {
                binary_consensus::Output::Cast(step, vote) => {
                    scope.step(["BC 1", "BC 2", "BC 3"][(step % binary_consensus::STEPS) as usize]);
                    let at = path.child(Layer::Step, step).by(scope.me);
                    self.work.push_back(Work::Broadcast(at, binary_consensus::value_of(vote)));
                }
                binary_consensus::Output::Decided(bit) => {
                    self.decide(scope, path, binary_consensus::value_of(Some(bit)));
                }
            }
        }
    }

    /// CC 7. Somebody is in this round of a consensus with a common coin.
    pub(super) fn see(&mut self, scope: &mut Scope<'_>, round: Path) {
        let Some(path) = round.parent() else { return };
        if let Some(Instance::CommonCoin(consensus, decision)) = self.instances.get_mut(&path) {
            let output = consensus.see(round.last().number(), decision.own(scope.me).is_some());
            self.of_common_coin(scope, path, output);
        }
    }

    /// CC 6. A round of it has come to its end.
    pub(super) fn ended(&mut self, scope: &mut Scope<'_>, round: Path, end: common_coin_consensus::End) {
        let Some(path) = round.parent() else { return };
        if let Some(Instance::CommonCoin(consensus, decision)) = self.instances.get_mut(&path) {
            let outputs = consensus.on_end(round.last().number(), end, decision.own(scope.me).is_some());
            self.of_common_coin(scope, path, outputs);
        }
    }

    fn of_common_coin(
        &mut self,
        scope: &mut Scope<'_>,
        path: Path,
        outputs: impl IntoIterator<Item = common_coin_consensus::Output>,
    ) {
        for output in outputs {
            match output {
                common_coin_consensus::Output::Begin(number, estimate) => {
                    let at = path.child(Layer::Toss, number);
                    if self.admit(scope, at).is_ok()
                        && let Some(Instance::CommonCoinRound(round)) = self.instances.get_mut(&at)
                    {
                        round.begin(scope, at, estimate);
                        self.work.push_back(Work::Advance(at));
                    }
                }
                common_coin_consensus::Output::Decided(bit) => {
                    self.decide(scope, path, binary_consensus::value_of(Some(bit)));
                }
            }
        }
    }

    pub(super) fn of_multi(&mut self, scope: &mut Scope<'_>, path: Path, outputs: Vec<multi_valued_consensus::Output>) {
        for output in outputs {
            let work = match output {
                multi_valued_consensus::Output::Init(value) => {
                    scope.step("MVC 1");
                    Work::Broadcast(path.child(Layer::Init, 0).by(scope.me), value)
                }
                multi_valued_consensus::Output::Vect(value) => {
                    scope.step("MVC 2");
                    Work::Broadcast(path.child(Layer::Vect, 0).by(scope.me), value)
                }
                multi_valued_consensus::Output::Propose(bit) => {
                    scope.step("MVC 4");
                    Work::Propose(path.child(Layer::Binary, 0), Proposal::Bit(bit))
                }
                multi_valued_consensus::Output::Decided(decided) => {
                    scope.step("MVC 5");
                    self.decide(scope, path, Value(Bytes::from(decided.to_bytes())));
                    continue;
                }
            };
            self.work.push_back(work);
        }
    }

    pub(super) fn of_vector(&mut self, scope: &mut Scope<'_>, path: Path, outputs: Vec<vector_consensus::Output>) {
        for output in outputs {
            match output {
                vector_consensus::Output::Value(value) => {
                    scope.step("VC 1");
                    self.work.push_back(Work::Broadcast(path.child(Layer::Value, 0).by(scope.me), value));
                }
                vector_consensus::Output::Propose(turn, value) => {
                    scope.step("VC 2");
                    self.work.push_back(Work::Propose(path.child(Layer::Multi, turn), Proposal::Value(value)));
                }
                vector_consensus::Output::Decided(value) => {
                    scope.step("VC 3");
                    self.decide(scope, path, value);
                }
            }
        }
    }

    pub(super) fn of_atomic(&mut self, scope: &mut Scope<'_>, root: Path, outputs: Vec<atomic_broadcast::Output>) {
        for output in outputs {
            match output {
                atomic_broadcast::Output::Proposal(round, value) => {
                    scope.step("AB 3");
                    let at = root.child(Layer::Round, round).child(Layer::Proposal, 0).by(scope.me);
                    self.work.push_back(Work::Broadcast(at, value));
                }
                atomic_broadcast::Output::Propose(round, value) => {
                    scope.step("AB 4");
                    let at = root.child(Layer::Round, round).child(Layer::Multi, 0);
                    self.work.push_back(Work::Propose(at, Proposal::Value(value)));
                }
                atomic_broadcast::Output::Deliver(id, value) => {
                    scope.step("AB 5");
                    self.outcomes.push(Outcome::Ordered(root, id, value));
                }
                atomic_broadcast::Output::Reached(standing) => {
                    self.outcomes.push(Outcome::Reached(root, standing));
                }
            }
        }
    }

    /// Decide 1. A layer has decided.
    pub(super) fn decide(&mut self, scope: &mut Scope<'_>, path: Path, value: Value) {
        let Some(decision) = self.instances.get_mut(&path).and_then(Instance::decision_mut) else { return };
        if decision.own(scope.me).is_none() {
            self.work.push_back(Work::Decided(path, value.clone()));
        }
        decision.decide(scope, path, value);
        self.end(scope, path);
    }

    /// The layer above learns a decision.
    pub(super) fn decided(&mut self, scope: &mut Scope<'_>, path: Path, value: Value) {
        let replicas = scope.replicas;
        let layer = path.last().layer();
        let Some(parent) = path.parent() else {
            return self.outcomes.push(match layer {
                Layer::Binary => Outcome::Bit(path, bit_of(&value)),
                Layer::Multi => Outcome::Agreed(path, agreed_of(&value)),
                _ => Outcome::Vector(path, value),
            });
        };
        match (self.instances.get_mut(&parent), layer) {
            (Some(Instance::Multi(multi, _)), Layer::Binary) => {
                let outputs = multi.on_bit(&replicas, bit_of(&value));
                self.of_multi(scope, parent, outputs);
            }
            (Some(Instance::Vector(vector, _)), Layer::Multi) => {
                let outputs = vector.on_decided(&replicas, path.last().number(), agreed_of(&value));
                self.of_vector(scope, parent, outputs);
            }
            (None, Layer::Multi) => {
                let (root, round) = (parent.of_root(), parent.last().number());
                let is_over = matches!(self.instances.get(&path), Some(Instance::Over(_)));
                let Some(atomic) = self.atomic_mut(root) else { return };
                let mut outputs = atomic.on_decided(&replicas, round, agreed_of(&value));
                if is_over {
                    outputs.extend(atomic.on_over(&replicas, round));
                }
                self.of_atomic(scope, root, outputs);
            }
            // It is over.
            _ => {}
        }
    }
}

impl Instance {
    /// Whether it may come to such a decision: nothing longer than a bit is kept where it is one.
    pub(super) fn may_decide(&self, value: &Value) -> bool {
        let is_bit = matches!(self, Self::Binary(..) | Self::CommonCoin(..));
        !is_bit || binary_consensus::vote_of(value).is_some()
    }
}

fn bit_of(value: &Value) -> bool {
    binary_consensus::vote_of(value).flatten().unwrap_or_default()
}

fn agreed_of(value: &Value) -> Option<Value> {
    Wire::from_bytes(value.0.clone()).unwrap_or_default()
}
