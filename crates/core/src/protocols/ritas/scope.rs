//! What a layer sees of its surroundings in one step, and what it wants done.

use super::message::{Said, Statement};
use super::path::Path;
use crate::ids::ReplicaId;
use crate::machine::{Step, StepsTaken};
use crate::rejection::Rejection;
use crate::replicas::Replicas;
use alloc::vec::Vec;

/// One thing that is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// To every other process. If it [binds](Statement::binds), it is on disk before.
    Say(Said),
    /// To one.
    Tell(ReplicaId, Said),
    /// Count something that was not accepted.
    Reject(ReplicaId, Rejection),
}

/// The surroundings.
#[derive(Debug)]
pub struct Scope<'a> {
    /// The processes.
    pub replicas: Replicas,
    /// This one.
    pub me: ReplicaId,
    /// Whether ECHO, READY and vectors repeat long values, as the thesis has it.
    pub repeats: bool,
    /// What is to be done, in order.
    pub out: &'a mut Vec<Effect>,
    /// Where numbered steps go.
    pub steps: &'a mut StepsTaken,
}

impl Scope<'_> {
    /// Says something to all others. Whoever says it counts it as heard by itself.
    pub(super) fn say(&mut self, path: Path, statement: Statement) {
        self.out.push(Effect::Say(Said { path, statement }));
    }

    /// Says something to one other.
    pub(super) fn tell(&mut self, to: ReplicaId, path: Path, statement: Statement) {
        self.out.push(Effect::Tell(to, Said { path, statement }));
    }

    /// Counts something that was not accepted.
    pub(super) fn reject(&mut self, from: ReplicaId, reason: Rejection) {
        self.out.push(Effect::Reject(from, reason));
    }

    /// Takes a numbered step.
    pub(super) fn step(&mut self, step: Step) {
        self.steps.step(step);
    }
}
