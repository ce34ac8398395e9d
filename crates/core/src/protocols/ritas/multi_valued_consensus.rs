//! Multi-valued consensus (Correia, Neves, Veríssimo): all correct processes decide the same value or ⊥.
//!
//! # Steps
//! * MVC 1. Broadcast INIT with the proposed value, reliably.
//! * MVC 2. After n − f INITs: w is the value that n − 2f of *these* have, or ⊥. Broadcast VECT with w and the names of
//!   these INITs.
//! * MVC 3. A VECT is valid if its w is ⊥, or if n − 2f of the INITs that it names are known here with that value. That
//!   is asked again with every INIT (ritas-F6).
//! * MVC 4. After n − f valid VECTs: propose 1 to binary consensus if n − 2f of them have one w and none has another
//!   value; propose 0 otherwise.
//! * MVC 5. The bit 0 decides ⊥. With 1, the w of n − 2f valid VECTs is decided as soon as there are so many.
//!
//! n − 2f is [`honest`](crate::replicas::Replicas::honest): so many of any n − f are correct, and f are fewer.
//!
//! # Why it is safe
//! *One value*: who proposes 1 has n − f VECTs with w or ⊥. Any n − 2f with another value would be among the f that it
//! does not have. If the bit is 1, some correct process has proposed 1. *A correct process proposed it*: n − 2f ≥ f + 1
//! INITs have it. *No ⊥ if all correct processes propose one value*: every w is that value or not valid, but ⊥, which
//! a liar may say; n − f INITs always hold n − 2f with it, so that correct processes say w.
//!
//! # Why it ends
//! VECTs are broadcast reliably (ritas-F5). The thesis sends them by echo broadcast, where a liar can let one process
//! have what the others wait for in MVC 5 for ever. With reliable broadcast the n − 2f that made somebody propose 1
//! reach all, with the INITs that make them valid. [`Vects::Echo`] is the thesis' way, to be measured, and not to be
//! relied on.
//!
//! [`Vects::Echo`]: crate::cluster::Vects::Echo
//!
//! # Cost
//! 2n reliable broadcasts and a binary consensus.

use super::message::{Value, Word};
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use crate::replicas::{REPLICAS_MAX, Replicas};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// VECT: a value or ⊥, and the INITs that it follows from, by process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Vect {
    word: Option<Word>,
    inits: Vec<Option<Word>>,
}

impl Wire for Vect {
    fn encode(&self, out: &mut impl Sink) {
        self.word.encode(out);
        encode_list(&self.inits, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { word: Wire::decode(reader)?, inits: reader.list(REPLICAS_MAX)? })
    }
}

/// Bytes of the longest VECT whose words are names.
pub(super) fn vect_bytes_max(replicas: &Replicas) -> usize {
    const COUNT: usize = 4;
    COUNT + (1 + replicas.n()) * (1 + Word::BYTES_MAX)
}

/// A decision: a value, or ⊥.
pub type Decided = Option<Value>;

/// What it wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// MVC 1: broadcast this INIT, reliably.
    Init(Value),
    /// MVC 2: broadcast this VECT.
    Vect(Value),
    /// MVC 4: propose this to the binary consensus.
    Propose(bool),
    /// MVC 5.
    Decided(Decided),
}

/// An instance.
#[derive(Clone, Debug)]
pub(super) struct MultiValuedConsensus {
    /// Whether VECTs name long values by themselves.
    repeats: bool,
    has_proposed: bool,
    inits: Vec<Option<(Word, Value)>>,
    /// In the order in which they came, the first n − f.
    first: Vec<ReplicaId>,
    has_said_vect: bool,
    vects: Vec<Option<Vect>>,
    has_proposed_bit: bool,
    bit: Option<bool>,
    is_decided: bool,
}

impl MultiValuedConsensus {
    pub(super) fn new(replicas: &Replicas, repeats: bool) -> Self {
        let n = replicas.n();
        Self {
            repeats,
            has_proposed: false,
            inits: vec![None; n],
            first: Vec::new(),
            has_said_vect: false,
            vects: vec![None; n],
            has_proposed_bit: false,
            bit: None,
            is_decided: false,
        }
    }

    /// MVC 1. Whoever has proposed before, as its log knows, does not do so again.
    /// INITs of others may all be here: then its own, which nobody may need any more, is not waited for.
    pub(super) fn propose(&mut self, replicas: &Replicas, value: Value) -> Vec<Output> {
        if self.has_proposed {
            return Vec::new();
        }
        self.has_proposed = true;
        let mut out = vec![Output::Init(value)];
        out.extend(self.advance(replicas));
        out
    }

    /// MVC 2.
    pub(super) fn on_init(&mut self, replicas: &Replicas, owner: ReplicaId, value: Value) -> Vec<Output> {
        self.inits[usize::from(owner.0)] = Some((Word::of(&value, self.repeats), value));
        if self.first.len() < replicas.reachable() {
            self.first.push(owner);
        }
        self.advance(replicas)
    }

    /// MVC 3.
    ///
    /// # Errors
    /// [`Rejection::Malformed`] if it is no VECT.
    pub(super) fn on_vect(
        &mut self,
        replicas: &Replicas,
        owner: ReplicaId,
        value: &Value,
    ) -> Result<Vec<Output>, Rejection> {
        let vect = Vect::from_bytes(value.0.clone()).map_err(|_| Rejection::Malformed)?;
        if vect.inits.len() != replicas.n() {
            return Err(Rejection::Malformed);
        }
        self.vects[usize::from(owner.0)] = Some(vect);
        Ok(self.advance(replicas))
    }

    /// MVC 5.
    pub(super) fn on_bit(&mut self, replicas: &Replicas, bit: bool) -> Vec<Output> {
        self.bit = Some(bit);
        self.advance(replicas)
    }

    fn advance(&mut self, replicas: &Replicas) -> Vec<Output> {
        let mut out = Vec::new();
        if self.has_proposed && !self.has_said_vect && self.first.len() == replicas.reachable() {
            self.has_said_vect = true;
            out.push(Output::Vect(Value(Bytes::from(self.vect(replicas).to_bytes()))));
        }
        let valid: Vec<&Vect> = self.vects.iter().flatten().filter(|vect| self.is_valid(replicas, vect)).collect();
        if self.has_said_vect && !self.has_proposed_bit && valid.len() >= replicas.reachable() {
            out.push(Output::Propose(agree(replicas, &valid)));
            self.has_proposed_bit = true;
        }
        if let (Some(bit), false) = (self.bit, self.is_decided) {
            let decided = if bit { self.backed(replicas, &valid).map(Some) } else { Some(None) };
            if let Some(decided) = decided {
                self.is_decided = true;
                out.push(Output::Decided(decided));
            }
        }
        out
    }

    /// MVC 2.
    fn vect(&self, replicas: &Replicas) -> Vect {
        let mut inits = vec![None; replicas.n()];
        for owner in self.first.iter().map(|owner| usize::from(owner.0)) {
            inits[owner] = self.inits[owner].as_ref().map(|(word, _)| word.clone());
        }
        let with = |word: &Word| inits.iter().flatten().filter(|other| *other == word).count();
        let word = inits.iter().flatten().find(|word| with(word) >= replicas.honest()).cloned();
        Vect { word, inits }
    }

    /// MVC 3.
    fn is_valid(&self, replicas: &Replicas, vect: &Vect) -> bool {
        let Some(word) = &vect.word else { return true };
        let known = self.inits.iter().zip(&vect.inits);
        let with = known.filter(|(init, named)| {
            named.as_ref() == Some(word) && init.as_ref().is_some_and(|(init, _)| init == word)
        });
        with.count() >= replicas.honest()
    }

    /// MVC 5: the value that n − 2f valid VECTs have.
    fn backed(&self, replicas: &Replicas, valid: &[&Vect]) -> Option<Value> {
        let words = || valid.iter().filter_map(|vect| vect.word.as_ref());
        let word = words().find(|word| words().filter(|other| other == word).count() >= replicas.honest())?;
        let init = self.inits.iter().flatten().find(|(init, _)| init == word);
        Some(init.expect("what makes a VECT valid is here").1.clone())
    }

    /// This process has said INIT before it crashed.
    pub(super) const fn replay_init(&mut self) {
        self.has_proposed = true;
    }

    /// This process has said VECT before it crashed.
    pub(super) const fn replay_vect(&mut self) {
        self.has_said_vect = true;
    }

    /// This process has proposed a bit before it crashed.
    pub(super) const fn replay_bit(&mut self) {
        self.has_proposed_bit = true;
    }
}

/// MVC 4.
fn agree(replicas: &Replicas, valid: &[&Vect]) -> bool {
    let mut words = valid.iter().filter_map(|vect| vect.word.as_ref());
    let Some(first) = words.next() else { return false };
    let mut same = 1;
    for word in words {
        if word != first {
            return false;
        }
        same += 1;
    }
    same >= replicas.honest()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that comes late, when others are done and take no part in its INIT any more.
    #[test]
    fn who_proposes_when_all_is_there_does_not_wait_for_its_own_init() {
        let replicas = Replicas::of(4).unwrap();
        let mut multi = MultiValuedConsensus::new(&replicas, false);
        let value = || Value(Bytes::from_static(b"7"));
        for owner in 0..3 {
            assert_eq!(multi.on_init(&replicas, ReplicaId(owner), value()), []);
        }
        let outputs = multi.propose(&replicas, value());
        assert!(matches!(outputs[..], [Output::Init(_), Output::Vect(_)]), "{outputs:?}");
    }
}
