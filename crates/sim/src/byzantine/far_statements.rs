//! Statements of RITAS about instances that are not there (ritas-A5, ritas-A7, ritas-A8): far ahead, long over, of
//! nobody, or none that could be; and about instances that are, as of somebody else. And the author says that it lost
//! its log, there or in the round that comes next, for which the others have a round follow; and it asks and answers
//! who rests before that round. And messages of its own come before their turn, with requests that it keeps from its
//! honest machine: all deliver them, but no round may order them, and nobody may rely on them.

use super::{Behaviour, Liar, coins, two_faced};
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, Sequence};
use bezant_core::message::Request;
use bezant_core::protocols::ritas::atomic_broadcast::{HEARD, WINDOW};
use bezant_core::protocols::ritas::message::{Heard, Said, Statement, Summary, Value, Word};
use bezant_core::protocols::ritas::order::{Agreement, LAPS, Lap, Payload, Progress, RitasMessage, Whereabouts};
use bezant_core::protocols::ritas::path::{Layer, NUMBER_MAX, Path};
use bezant_core::protocols::ritas::statements::Statements;
use bezant_core::registry::{Incoming, Message};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bytes::Bytes;

/// Statements to each replica at each tick.
const BURST: usize = 8;

#[derive(Debug, Default)]
pub(super) struct FarStatements {
    /// The last statement that was heard of others, and in which instance.
    last: Option<(InstanceId, Said)>,
    /// The last message that was heard of an atomic broadcast, which that is, and in which instance.
    message: Option<(InstanceId, Path, Value)>,
    /// The last round of which anything was heard.
    round: u64,
    /// Its first message that others have not delivered in order, as far as they have said.
    first: u64,
}

/// An instance near the one that somebody has spoken about, or far from it.
fn near(liar: &mut Liar<'_>, path: Path) -> Path {
    let mut segments = path.segments().to_vec();
    let at = liar.rng.below(segments.len() as u64) as usize;
    let (layer, number) = (segments[at] & !NUMBER_MAX, segments[at] & NUMBER_MAX);
    let number = match liar.rng.below(7) {
        0 => number + 1,
        1 => number.saturating_sub(1),
        2 => number + liar.rng.below(8),
        3 => number + 16,
        4 => number + (1 << 16),
        5 => number + (1 << 32),
        _ => NUMBER_MAX - liar.rng.below(3),
    };
    segments[at] = layer | (number & NUMBER_MAX);
    if liar.rng.per_mille(200) {
        segments.truncate(1 + liar.rng.below(segments.len() as u64) as usize);
    }
    Path::from_segments(&segments).unwrap_or(path)
}

fn invent(liar: &mut Liar<'_>, last: &Said) -> Said {
    let path = near(liar, last.path);
    let value = match &last.statement {
        Statement::Initial(value) | Statement::Decide(value) | Statement::Body(value) => value.clone(),
        Statement::Echo(word) | Statement::Ready(word) | Statement::Want(word) => {
            word.whole().cloned().unwrap_or_else(|| Value(Bytes::from(liar.rng.next().to_le_bytes().repeat(8))))
        }
        Statement::Est(_) | Statement::Aux(_) | Statement::Conf(_) | Statement::Share(_) => {
            return Said { path, statement: coins::any(liar.rng) };
        }
    };
    let value = if liar.rng.coin() { value } else { two_faced::other(liar.rng, path, &value) };
    let word = Word::of(&value, liar.rng.per_mille(200));
    let statement = match liar.rng.below(6) {
        0 => Statement::Initial(value),
        1 => Statement::Echo(word),
        2 => Statement::Ready(word),
        3 => Statement::Decide(value),
        4 => Statement::Want(word),
        _ => Statement::Body(value),
    };
    Said { path, statement }
}

/// A broadcast that belongs to nothing else, the same to all: a group may have such ones, an order has none.
fn broadcast_on_its_own(liar: &mut Liar<'_>, instance: InstanceId) {
    let layer = *liar.rng.pick(&[Layer::Reliable, Layer::Echo]);
    let path = Path::root(layer, liar.rng.below(4)).by(liar.me);
    say_to_all(liar, instance, path, &Value(Bytes::from_static(b"alone")));
}

/// INITIAL of this broadcast, the same to all.
fn say_to_all(liar: &mut Liar<'_>, instance: InstanceId, path: Path, value: &Value) {
    for to in liar.others() {
        let said = vec![Said { path, statement: Statement::Initial(value.clone()) }];
        liar.agree(to, instance, RitasMessage::Said(Statements(said)));
    }
}

impl FarStatements {
    /// Broadcasts this under a number of its own that is beyond its window, the same to all.
    fn send_before_its_turn(&self, liar: &mut Liar<'_>, instance: InstanceId, root: Path, value: Value) {
        let number = self.first + WINDOW + liar.rng.below(WINDOW);
        say_to_all(liar, instance, root.child(Layer::Message, number).by(liar.me), &value);
    }

    fn on_agreement(&mut self, liar: &mut Liar<'_>, Agreement { instance, message }: &Agreement) {
        match message {
            RitasMessage::Said(Statements(said)) => {
                self.round = said.iter().filter_map(|said| said.path.number(Layer::Round)).fold(self.round, u64::max);
                let message = said.iter().rev().find_map(|Said { path, statement }| match statement {
                    Statement::Initial(value) if path.number(Layer::Message).is_some() => Some((path.of_root(), value)),
                    _ => None,
                });
                let message = message.map(|(root, value)| (*instance, root, value.clone()));
                self.message = message.or_else(|| self.message.take());
                self.last = said.last().map(|said| (*instance, said.clone())).or_else(|| self.last.take());
            }
            RitasMessage::Progress(Progress { summary, .. }) => {
                // Who says that it is further than that lies too.
                let said = summary.messages.get(usize::from(liar.me.0)).copied().unwrap_or_default();
                self.first = if said < self.first + HEARD { self.first.max(said) } else { self.first };
            }
            _ => {}
        }
    }

    fn hides(&self, liar: &mut Liar<'_>, request: &Request) {
        let payload = Payload { time: Instant(0), seed: Digest::ZERO, requests: vec![request.clone()] };
        let root = Path::root(Layer::Atomic, 0);
        self.send_before_its_turn(liar, request.instance, root, Value(Bytes::from(payload.to_bytes())));
    }
}

impl Behaviour for FarStatements {
    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        match &*incoming.message {
            Message::Agreement(agreement) => self.on_agreement(liar, agreement),
            Message::Request(request) if liar.rng.coin() => {
                self.hides(liar, request);
                return false;
            }
            _ => {}
        }
        true
    }

    fn tick(&mut self, liar: &mut Liar<'_>) {
        if let Some((instance, root, value)) = self.message.clone().filter(|_| liar.rng.coin()) {
            self.send_before_its_turn(liar, instance, root, value);
        }
        let Some((instance, last)) = self.last.clone() else { return };
        if liar.rng.per_mille(200) {
            broadcast_on_its_own(liar, instance);
        }
        for to in liar.others() {
            let said = (0..BURST).map(|_| invent(liar, &last)).collect();
            liar.agree(to, instance, RitasMessage::Said(Statements(said)));
            let far = *liar.rng.pick(&[0, 1, self.round + 1, 1 << 16, u64::MAX]);
            let lap = Lap { round: far, number: liar.rng.below(2 * u64::from(LAPS)) as u8 };
            let message = match liar.rng.below(6) {
                0 => {
                    let heard = vec![(near(liar, last.path), Heard::default())];
                    RitasMessage::Progress(Progress {
                        summary: Summary { heard, round: far, messages: vec![far; 3] },
                        stable: Sequence(far),
                    })
                }
                1 => RitasMessage::Ping(lap),
                2 => RitasMessage::Pong(lap),
                3 => RitasMessage::Lost(Whereabouts { question: Instant(far), round: far }),
                _ => RitasMessage::Round(Whereabouts { question: Instant(far), round: far }),
            };
            liar.agree(to, instance, message);
        }
    }
}
