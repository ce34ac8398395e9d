//! Statements of RITAS that differ from receiver to receiver (ritas-A1, ritas-A4, ritas-A5).

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::ids::Principal;
use bezant_core::protocols::ritas::message::{Said, Statement, Value, Word};
use bezant_core::protocols::ritas::order::{Agreement, RitasMessage, Statements};
use bezant_core::protocols::ritas::path::{Layer, Path};
use bezant_core::registry::{Incoming, Message};
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct TwoFaced {
    /// Bit per replica: who hears the second story.
    second: u64,
    /// Instances about which it tells two stories, per mille.
    often: u64,
    /// Whether it tells two about this one.
    about: BTreeMap<Path, bool>,
    /// What others have broadcast: it says that it was something else.
    heard: BTreeMap<Path, Value>,
}

/// Instances of which it remembers what it has decided to say.
const REMEMBERED_MAX: usize = 4_000;

impl TwoFaced {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { second: rng.next(), often: rng.between(100, 1000), about: BTreeMap::new(), heard: BTreeMap::new() }
    }

    fn lies_about(&mut self, rng: &mut Rng, path: Path) -> bool {
        if self.about.len() > REMEMBERED_MAX {
            self.about.clear();
        }
        let often = self.often;
        *self.about.entry(path).or_insert_with(|| rng.per_mille(often))
    }
}

/// Another value that is as good: of a vote, another vote; of a payload, another part of the seed; of anything else,
/// another byte.
pub(super) fn other(rng: &mut Rng, path: Path, value: &Value) -> Value {
    let mut bytes = value.0.to_vec();
    if path.number(Layer::Step).is_some() && bytes.len() == 1 {
        let votes: &[u8] = if rng.per_mille(300) { &[0, 1, 2] } else { &[0, 1] };
        return Value(Bytes::from(vec![*rng.pick(votes)]));
    }
    let Some(last) = bytes.len().checked_sub(1) else { return Value(Bytes::from_static(b"\0")) };
    let at = match path.number(Layer::Message) {
        Some(_) => 8 + rng.below(32) as usize,
        None => rng.below(last as u64 + 1) as usize,
    };
    bytes[at.min(last)] ^= 1 << rng.below(8);
    Value(Bytes::from(bytes))
}

impl Behaviour for TwoFaced {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let (Principal::Replica(id), Message::Agreement(Agreement { instance, message: said })) = (to, message) else {
            return liar.say(to, message);
        };
        let RitasMessage::Said(Statements(said)) = said else { return liar.say(to, message) };
        let second = self.second >> id.0 & 1 == 1;
        let told = said.iter().map(|said| {
            let Said { path, statement } = said;
            if !second || !self.lies_about(liar.rng, *path) {
                return said.clone();
            }
            let of_word = |word: &Word, liar: &mut Liar<'_>| {
                let known = word.whole().or_else(|| self.heard.get(path));
                known.map_or_else(|| word.clone(), |value| Word::of(&other(liar.rng, *path, value), false))
            };
            let statement = match statement {
                Statement::Initial(value) => Statement::Initial(other(liar.rng, *path, value)),
                Statement::Echo(word) => Statement::Echo(of_word(word, liar)),
                Statement::Ready(word) => Statement::Ready(of_word(word, liar)),
                Statement::Decide(value) => Statement::Decide(other(liar.rng, *path, value)),
                Statement::Body(value) => Statement::Body(other(liar.rng, *path, value)),
                Statement::Want(word) => Statement::Want(word.clone()),
            };
            Said { path: *path, statement }
        });
        let message = RitasMessage::Said(Statements(told.collect()));
        liar.say(to, &Message::Agreement(Agreement { instance: *instance, message }));
    }

    /// It says INITIAL in the name of others (ritas-A4).
    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        let Message::Agreement(Agreement { instance, message: RitasMessage::Said(Statements(said)) }) =
            &*incoming.message
        else {
            return true;
        };
        for Said { path, statement } in said {
            let Statement::Initial(value) = statement else { continue };
            if self.heard.len() > REMEMBERED_MAX {
                self.heard.clear();
            }
            self.heard.insert(*path, value.clone());
            if liar.rng.per_mille(20) {
                let to = *liar.rng.pick(&liar.others());
                let said = Said { path: *path, statement: Statement::Initial(other(liar.rng, *path, value)) };
                let message = RitasMessage::Said(Statements(vec![said]));
                liar.say(to, &Message::Agreement(Agreement { instance: *instance, message }));
            }
        }
        true
    }
}
