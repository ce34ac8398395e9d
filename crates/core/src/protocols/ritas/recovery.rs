//! After a crash: a process says nothing different from what it has said before (ritas-F11).
//!
//! Whatever [binds](super::message::Statement::binds) was on disk before it was said. It is replayed, oldest first: it
//! counts as said, and the layers that had it said do not say it again. What others had said is gone; the
//! [channel](super::channel) brings it back.

use super::decision::Decision;
use super::message::{Said, Statement, Value};
use super::path::{Layer, Path};
use super::scope::Scope;
use super::stack::{Instance, Outcome, Stack, Work};
use alloc::vec::Vec;

impl Stack {
    /// This process has said so before it crashed.
    pub fn replay(&mut self, scope: &mut Scope<'_>, Said { path, statement }: Said) {
        // What has become superfluous since is not let in, and not said again either.
        if self.admit_own(scope, path).is_err() {
            return;
        }
        if let Statement::Initial(_) = &statement {
            self.replay_cause(path, &statement);
        }
        self.replay_round(path);
        match (self.instances.get_mut(&path), statement) {
            (Some(Instance::Echo(echo)), statement) => echo.echoes.replay(scope, statement),
            (Some(Instance::Reliable(reliable)), statement) => reliable.replay(scope, statement),
            (Some(Instance::CommonCoinRound(round)), statement) => round.replay(scope.me, &statement),
            (Some(instance), Statement::Decide(value)) => {
                let decision = instance.decision_mut().expect("what has decided decides");
                let is_known = decision.own(scope.me).is_some();
                decision.replay(scope.me, value.clone());
                if !is_known {
                    self.work.push_back(Work::Decided(path, value));
                }
            }
            (_, statement) => unreachable!("{statement:?} is never said about {path:?}"),
        }
    }

    /// An instance was over for this process before it crashed, with this decision.
    pub fn replay_over(&mut self, scope: &mut Scope<'_>, path: Path, value: Value) {
        if self.admit_own(scope, path).is_err() {
            return;
        }
        let is_known =
            self.instances.get(&path).and_then(Instance::decision).is_some_and(|d| d.own(scope.me).is_some());
        let mut decision = Decision::new();
        decision.replay(scope.me, value.clone());
        let round = path.parent().filter(|parent| parent.last().layer() == Layer::Round);
        self.forget(round.unwrap_or(path));
        self.instances.insert(path, Instance::Over(decision));
        if !is_known {
            self.work.push_back(Work::Decided(path, value));
        }
    }

    /// Who has begun a round of a consensus with a common coin has proposed to it.
    fn replay_round(&mut self, path: Path) {
        let Some(parent) = path.parent() else { return };
        if let (Some(Instance::CommonCoin(consensus, _)), Layer::Toss) =
            (self.instances.get_mut(&parent), path.last().layer())
        {
            consensus.replay(path.last().number());
            if let Some(Instance::Multi(multi, _)) = parent.parent().and_then(|at| self.instances.get_mut(&at)) {
                multi.replay_bit();
            }
        }
    }

    /// Who had something broadcast: it does not want that again.
    fn replay_cause(&mut self, path: Path, statement: &Statement) {
        let Some(at) = path.parent() else { return };
        let Some(parent) = at.parent() else { return };
        let number = at.last().number();
        match (self.instances.get_mut(&parent), at.last().layer(), statement) {
            (Some(Instance::Binary(binary, _)), Layer::Step, Statement::Initial(value)) => {
                binary.replay(number, value);
                if let Some(Instance::Multi(multi, _)) = parent.parent().and_then(|at| self.instances.get_mut(&at)) {
                    multi.replay_bit();
                }
            }
            (Some(Instance::Multi(multi, _)), Layer::Init, _) => {
                multi.replay_init();
                if let (Some(round), Some(atomic)) = (parent.number(Layer::Round), self.atomic_mut(parent.of_root())) {
                    atomic.replay_agreed(round);
                }
            }
            (Some(Instance::Multi(multi, _)), Layer::Vect, _) => multi.replay_vect(),
            (Some(Instance::Vector(vector, _)), Layer::Value, _) => vector.replay_value(),
            (Some(Instance::Atomic(atomic)), Layer::Message, _) => atomic.replay_message(number),
            (None, Layer::Proposal, _) => {
                if let Some(atomic) = self.atomic_mut(parent.of_root()) {
                    atomic.replay_proposal(parent.last().number());
                }
            }
            _ => {}
        }
    }

    /// Everything was replayed.
    pub fn resume(&mut self, scope: &mut Scope<'_>) -> Vec<Outcome> {
        self.work.extend(self.instances.keys().copied().map(Work::Advance));
        self.run(scope)
    }
}
