//! What a layer sees of its surroundings in one step, and what it wants done.

use super::message::{Said, Statement, Value};
use super::path::{Id, Layer, Path};
use crate::ids::ReplicaId;
use crate::machine::{Step, StepsTaken};
use crate::rejection::Rejection;
use crate::replicas::{REPLICAS_MAX, Replicas};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use alloc::vec::Vec;

/// One thing that is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// To every other process. If it [binds](Statement::binds), it is on disk before.
    Say(Said),
    /// To one.
    Tell(ReplicaId, Said),
    /// To nobody, but on disk before anything that follows is said: a value that others may have to fetch from here.
    Keep(Said),
    /// Count something that was not accepted.
    Reject(ReplicaId, Rejection),
}

/// What a process says nothing about, because it may have said something else and has forgotten it: the instances of
/// an atomic broadcast that it may have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The first round that it speaks about.
    pub rounds_from: u64,
    /// The first message of each sender that it speaks about.
    pub messages_from: Vec<u64>,
}

impl Wire for Silence {
    fn encode(&self, out: &mut impl Sink) {
        self.rounds_from.encode(out);
        encode_list(&self.messages_from, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { rounds_from: Wire::decode(reader)?, messages_from: reader.list(REPLICAS_MAX)? })
    }
}

impl Silence {
    /// About everything.
    pub fn of_all(replicas: &Replicas) -> Self {
        Self { rounds_from: u64::MAX, messages_from: alloc::vec![u64::MAX; replicas.n()] }
    }

    fn covers(&self, path: Path, replicas: &Replicas) -> bool {
        let of_sender = |id: Id| self.messages_from.get(usize::from(id.sender.0)).is_none_or(|from| id.number < *from);
        path.number(Layer::Round).is_some_and(|round| round < self.rounds_from)
            || path.message(replicas).is_some_and(of_sender)
    }
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
    /// What this process says nothing about.
    pub silence: Option<&'a Silence>,
    /// What is to be done, in order.
    pub out: &'a mut Vec<Effect>,
    /// Where numbered steps go.
    pub steps: &'a mut StepsTaken,
}

impl Scope<'_> {
    /// Whether this process says anything that binds it about this instance. What it does not say it does not count as
    /// heard by itself either.
    pub(super) fn speaks_of(&self, path: Path) -> bool {
        self.silence.is_none_or(|silence| !silence.covers(path, &self.replicas))
    }

    /// Says something to all others. Whoever says it counts it as heard by itself.
    pub(super) fn say(&mut self, path: Path, statement: Statement) {
        if self.speaks_of(path) || !statement.binds() {
            self.out.push(Effect::Say(Said { path, statement }));
        }
    }

    /// Keeps a value that this process is about to vouch for by its name.
    pub(super) fn keep(&mut self, path: Path, value: Value) {
        self.out.push(Effect::Keep(Said { path, statement: Statement::Body(value) }));
    }

    /// Says something to one other.
    pub(super) fn tell(&mut self, to: ReplicaId, path: Path, statement: Statement) {
        if self.speaks_of(path) || !statement.binds() {
            self.out.push(Effect::Tell(to, Said { path, statement }));
        }
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
