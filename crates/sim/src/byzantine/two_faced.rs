//! Two stories about one instance of RITAS, and each receiver hears one of them (ritas-A1, ritas-A4, ritas-A5). A story
//! is told to its end: whoever hears a second value as INITIAL hears the ECHO, the READY and the body that go with it.

use super::{Behaviour, Liar, coins};
use crate::rng::Rng;
use bezant_core::ids::Principal;
use bezant_core::protocols::ritas::message::{Said, Statement, Value, Word};
use bezant_core::protocols::ritas::order::{Agreement, RitasMessage};
use bezant_core::protocols::ritas::path::{Layer, Path};
use bezant_core::protocols::ritas::statements::Statements;
use bezant_core::registry::{Incoming, Message};
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct TwoFaced {
    /// Bit per replica: who hears the second story.
    second: u64,
    /// Instances about which it tells two stories, per mille.
    often: u64,
    /// What the second story has for the value of each instance; nothing where it tells one story.
    stories: BTreeMap<Path, Option<Value>>,
}

/// Instances whose stories it remembers.
const REMEMBERED_MAX: usize = 8_000;

impl TwoFaced {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { second: rng.next(), often: rng.between(100, 1000), stories: BTreeMap::new() }
    }

    /// Makes the second story of an instance whose value it learns.
    fn learn(&mut self, rng: &mut Rng, path: Path, value: &Value) {
        if self.stories.len() > REMEMBERED_MAX {
            self.stories.clear();
        }
        let often = self.often;
        self.stories.entry(path).or_insert_with(|| rng.per_mille(often).then(|| other(rng, path, value)));
    }

    /// A statement as the second story has it.
    fn retold(&self, rng: &mut Rng, Said { path, statement }: &Said) -> Said {
        let story = self.stories.get(path).and_then(Option::as_ref);
        let value = |honest: &Value| story.unwrap_or(honest).clone();
        let word = |honest: &Word| story.map_or_else(|| honest.clone(), |value| Word::of(value, false));
        let statement = match statement {
            Statement::Initial(honest) => Statement::Initial(value(honest)),
            Statement::Echo(honest) => Statement::Echo(word(honest)),
            Statement::Ready(honest) => Statement::Ready(word(honest)),
            Statement::Decide(honest) => Statement::Decide(value(honest)),
            Statement::Body(honest) => Statement::Body(value(honest)),
            Statement::Want(honest) => Statement::Want(honest.clone()),
            Statement::Est(_) | Statement::Aux(_) | Statement::Conf(_) | Statement::Share(_) => {
                if rng.per_mille(self.often) { coins::other(rng, statement) } else { statement.clone() }
            }
        };
        Said { path: *path, statement }
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
        for Said { path, statement } in said {
            if let Statement::Initial(value) | Statement::Decide(value) = statement {
                self.learn(liar.rng, *path, value);
            }
        }
        if self.second >> id.0 & 1 == 0 {
            return liar.say(to, message);
        }
        let told = said.iter().map(|said| self.retold(liar.rng, said)).collect();
        liar.agree(to, *instance, RitasMessage::Said(Statements(told)));
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
            self.learn(liar.rng, *path, value);
            if liar.rng.per_mille(20) {
                let to = *liar.rng.pick(&liar.others());
                let said = Said { path: *path, statement: Statement::Initial(other(liar.rng, *path, value)) };
                liar.agree(to, *instance, RitasMessage::Said(Statements(vec![said])));
            }
        }
        true
    }
}
