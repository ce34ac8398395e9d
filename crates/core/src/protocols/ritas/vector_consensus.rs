//! Vector consensus (Correia, Neves, Veríssimo): all correct processes decide the same vector, which has the values of
//! n − f processes at least, hence of f + 1 correct ones, each as that process proposed it.
//!
//! # Steps
//! * VC 1. Broadcast the own value, reliably.
//! * VC 2. In turn r, from 0 to f: wait for n − f + r values, and propose the vector of those that are here to
//!   multi-valued consensus r.
//! * VC 3. The first that decides no ⊥ decides the vector.
//!
//! A vector is a value of multi-valued consensus. So a value that is longer than its share of one counts as none: a
//! liar could make vectors that nobody reads.
//!
//! # Why it ends
//! Turn r ends with ⊥ only if two correct processes proposed different vectors. Together these have n − f + r + 1
//! values at least, which reliable broadcast brings to all: nobody waits for a silent process in turn r + 1. In turn f
//! all have all n values, so that all correct processes propose the same.
//!
//! # Cost
//! n reliable broadcasts and, where nobody is slow, one multi-valued consensus.

use super::message::{VALUE_BYTES_MAX, Value};
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
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

/// Bytes of a vector around each value in it: more than its encoding takes.
const ALLOWANCE: usize = 16;

/// Bytes of the longest value of one of so many processes: a vector of all is a value, too.
pub const fn share_bytes_max(n: usize) -> usize {
    VALUE_BYTES_MAX / n - ALLOWANCE
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
    ///
    /// # Errors
    /// [`Rejection::TooLarge`] if it is longer than its share of a vector: all correct processes see that alike.
    pub(super) fn on_value(
        &mut self,
        replicas: &Replicas,
        owner: ReplicaId,
        value: Value,
    ) -> Result<Vec<Output>, Rejection> {
        if value.0.len() > share_bytes_max(replicas.n()) {
            return Err(Rejection::TooLarge);
        }
        self.values[usize::from(owner.0)] = Some(value);
        Ok(self.advance(replicas))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_of_the_longest_values_can_be_proposed_and_no_longer_value_counts() {
        let replicas = Replicas::of(4).unwrap();
        let mut vector = VectorConsensus::new(&replicas);
        let value = |bytes: usize| Value(Bytes::from(vec![7; bytes]));
        assert!(vector.propose(&replicas, value(1)).len() == 1);
        let longest = share_bytes_max(4);
        assert_eq!(vector.on_value(&replicas, ReplicaId(3), value(longest + 1)), Err(Rejection::TooLarge));
        let outputs = (0..3).flat_map(|owner| vector.on_value(&replicas, ReplicaId(owner), value(longest)).unwrap());
        let [Output::Propose(0, proposed)] = &outputs.collect::<Vec<_>>()[..] else { panic!("three are enough") };
        assert!(proposed.0.len() <= VALUE_BYTES_MAX);
        let all = Vector(vec![Some(value(longest)); 4]);
        assert!(all.to_bytes().len() <= VALUE_BYTES_MAX);
    }
}
