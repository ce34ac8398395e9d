//! Vector consensus (Correia, Neves, Veríssimo): all correct processes decide the same vector, which has the values of
//! n − f processes at least, hence of f + 1 correct ones, each as that process proposed it.
//!
//! # Steps
//! * VC 1. Broadcast the own value, reliably.
//! * VC 2. In turn r, from 0 to f: wait for n − f + r values, and propose the vector of those that are here to
//!   multi-valued consensus r.
//! * VC 3. The first that decides no ⊥ decides the vector.
//!
//! # Why it ends
//! Turn r ends with ⊥ only if two correct processes proposed different vectors. Together these have n − f + r + 1
//! values at least, which reliable broadcast brings to all: nobody waits for a silent process in turn r + 1. In turn f
//! all have all n values, so that all correct processes propose the same.
//!
//! # Cost
//! n reliable broadcasts and, where nobody is slow, one multi-valued consensus.

use super::message::Value;
use crate::ids::ReplicaId;
use crate::replicas::{REPLICAS_MAX, Replicas};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// A vector: by process, a value or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector(pub Vec<Option<Value>>);

impl Wire for Vector {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.0, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.list(REPLICAS_MAX)?))
    }
}

/// What it wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// VC 1: broadcast this value, reliably.
    Value(Value),
    /// VC 2: propose this to the multi-valued consensus of this turn.
    Propose(u64, Value),
    /// VC 3.
    Decided(Value),
}

/// An instance.
#[derive(Clone, Debug)]
pub(super) struct VectorConsensus {
    has_proposed: bool,
    values: Vec<Option<Value>>,
    /// The turn that this process is in, and whether it has proposed its vector.
    turn: u64,
    in_turn: bool,
    is_decided: bool,
    /// What earlier and later turns have decided: a turn may be over here before it begins.
    turns: Vec<Option<Option<Value>>>,
}

impl VectorConsensus {
    pub(super) fn new(replicas: &Replicas) -> Self {
        Self {
            has_proposed: false,
            values: vec![None; replicas.n()],
            turn: 0,
            in_turn: false,
            is_decided: false,
            turns: vec![None; replicas.weak()],
        }
    }

    /// VC 1. Whoever has proposed before, as its log knows, does not do so again.
    pub(super) fn propose(&mut self, replicas: &Replicas, value: Value) -> Vec<Output> {
        if self.has_proposed {
            return Vec::new();
        }
        self.has_proposed = true;
        let mut out = vec![Output::Value(value)];
        out.extend(self.advance(replicas));
        out
    }

    /// VC 2.
    pub(super) fn on_value(&mut self, replicas: &Replicas, owner: ReplicaId, value: Value) -> Vec<Output> {
        self.values[usize::from(owner.0)] = Some(value);
        self.advance(replicas)
    }

    /// VC 3.
    pub(super) fn on_decided(&mut self, replicas: &Replicas, turn: u64, decided: Option<Value>) -> Vec<Output> {
        self.turns[turn as usize] = Some(decided);
        self.advance(replicas)
    }

    fn advance(&mut self, replicas: &Replicas) -> Vec<Output> {
        let mut out = Vec::new();
        while !self.is_decided && self.has_proposed {
            match self.turns.get(self.turn as usize).cloned().flatten() {
                Some(Some(vector)) => {
                    self.is_decided = true;
                    out.push(Output::Decided(vector));
                }
                Some(None) => (self.turn, self.in_turn) = (self.turn + 1, false),
                None => {
                    let enough = (replicas.reachable() + self.turn as usize).min(replicas.n());
                    if self.in_turn || self.values.iter().flatten().count() < enough {
                        break;
                    }
                    self.in_turn = true;
                    let vector = Vector(self.values.clone());
                    out.push(Output::Propose(self.turn, Value(Bytes::from(vector.to_bytes()))));
                }
            }
        }
        out
    }

    /// This process has broadcast its value before it crashed.
    pub(super) const fn replay_value(&mut self) {
        self.has_proposed = true;
    }
}
