//! A replica that can be told to lie, for demonstrations, end-to-end tests, and measurements of what an attack costs.
//!
//! The liar wraps an honest replica and changes what leaves it, or when it acts. The state inside stays right, so that
//! the replica is as good as any other from the moment it is told to be honest again. It counts its lies: an attack
//! that did nothing shows nothing.

use bezant_core::auth::Keyring;
use bezant_core::checkpoint::{Checkpoint, Snapshot};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::Principal;
use bezant_core::machine::{Effect, Input, Machine, Outbox};
use bezant_core::message::{Outcome, Reply};
use bezant_core::notice::{Notice, Report};
use bezant_core::protocols::chain::{ChainMessage, ChainReply};
use bezant_core::protocols::ring_fast::RingReply;
use bezant_core::protocols::speculative::{Certain, Response};
use bezant_core::registry::{Incoming, Message, Record, ReplicaTimer};
use bezant_core::replica::Replica;
use bezant_core::service::Service;
use bezant_core::services::kv::KvResult;
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bezant_node::replica::Hosted;
use bytes::Bytes;
use clap::ValueEnum;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long each pass takes longer at a replica that is slow on purpose: as in the attacks of the paper on Abstract.
const PROCESSING_DELAY: Duration = Duration::from_millis(10);

/// Ways to misbehave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lie {
    /// Answer clients wrongly, pass wrong results along a chain, and vote for wrong checkpoints
    #[default]
    WrongReply,
    /// Take 10 ms longer for whatever comes
    ProcessingDelay,
}

/// What a replica that misbehaves is told, and how often it did.
#[derive(Debug, Default)]
pub(crate) struct Lying {
    how: Mutex<Option<Lie>>,
    lies: AtomicU64,
}

impl Lie {
    /// Its name, on the command line and as an order.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().expect("none is hidden").get_name().to_owned()
    }
}

impl Lying {
    /// To lie like this from now on, or not.
    pub(crate) fn tell(&self, how: Option<Lie>) {
        *self.how.lock().unwrap_or_else(PoisonError::into_inner) = how;
    }

    fn how(&self) -> Option<Lie> {
        *self.how.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lied(&self) {
        self.lies.fetch_add(1, Ordering::Relaxed);
    }

    /// How many lies it has told so far.
    pub(crate) fn lies(&self) -> u64 {
        self.lies.load(Ordering::Relaxed)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Liar<S: Service> {
    honest: Replica<S>,
    lying: Arc<Lying>,
    /// Whether something has come in this pass.
    heard: bool,
    outbox: Outbox<Replica<S>>,
}

impl<S: Service> Liar<S> {
    /// A replica that lies as it is told.
    pub(crate) fn new(honest: Replica<S>, lying: Arc<Lying>) -> Self {
        Self { honest, lying, heard: false, outbox: Outbox::new() }
    }
}

impl<S: Service> Machine for Liar<S> {
    type Incoming = Incoming;
    type Outgoing = Message;
    type Timer = ReplicaTimer;
    type Command = <Replica<S> as Machine>::Command;
    type Notice = Notice;
    type Record = Record;

    fn step(&mut self, now: Instant, input: Input<Self>, out: &mut Outbox<Self>) {
        let lie = self.lying.how();
        if matches!(input, Input::Message(_)) {
            self.heard = true;
        }
        if matches!(input, Input::PassEnd) && std::mem::take(&mut self.heard) && lie == Some(Lie::ProcessingDelay) {
            thread::sleep(PROCESSING_DELAY);
            self.lying.lied();
        }
        let input = match input {
            Input::Start => Input::Start,
            Input::Message(message) => Input::Message(message),
            Input::Timer(timer) => Input::Timer(timer),
            Input::Command(command) => Input::Command(command),
            Input::PassEnd => Input::PassEnd,
        };
        self.honest.step(now, input, &mut self.outbox);
        for effect in self.outbox.drain() {
            out.push(match effect {
                Effect::Send(to, message) if lie == Some(Lie::WrongReply) => {
                    let said = falsified(&message, self.honest.keyring());
                    said.iter().for_each(|_| self.lying.lied());
                    Effect::Send(to, said.unwrap_or(message))
                }
                Effect::Send(to, message) => Effect::Send(to, message),
                Effect::Persist(record) => Effect::Persist(record),
                Effect::Append(record) => Effect::Append(record),
                Effect::SetTimer(timer, at) => Effect::SetTimer(timer, at),
                Effect::CancelTimer(timer) => Effect::CancelTimer(timer),
                Effect::Notify(notice) => Effect::Notify(notice),
            });
        }
    }
}

impl<S: Service + 'static> Hosted for Liar<S> {
    fn open(&mut self, frame: Bytes, from: Principal) -> Option<Incoming> {
        self.honest.open(frame, from)
    }

    fn keyring(&self) -> &Keyring {
        self.honest.keyring()
    }

    fn report(&self) -> Report {
        self.honest.report()
    }

    fn certain_checkpoint(&self, known: Option<&Checkpoint>) -> Option<Snapshot> {
        self.honest.certain_checkpoint(known)
    }

    fn newest_checkpoint(&self) -> Snapshot {
        self.honest.newest_checkpoint()
    }
}

/// What a liar says instead, if that is something else.
fn falsified(message: &Message, keyring: &Keyring) -> Option<Message> {
    Some(match message {
        Message::Reply(reply) => Message::Reply(Reply { outcome: false_outcome(&reply.outcome), ..reply.clone() }),
        Message::Response(response) => Message::Response(falsified_response(response)),
        Message::RingCertain(Certain(response)) => Message::RingCertain(Certain(falsified_response(response))),
        Message::ChainReply(reply) => {
            Message::ChainReply(ChainReply { outcome: false_outcome(&reply.outcome), ..reply.clone() })
        }
        Message::RingReply(reply) => {
            Message::RingReply(RingReply { outcome: false_outcome(&reply.outcome), ..reply.clone() })
        }
        // Only the last f+1 places of a chain say what the results are.
        Message::Chain(message) if message.results != Digest::ZERO => {
            let results = Digest::of(Domain::Cluster, &message.results.0);
            Message::Chain(ChainMessage { results, ..message.clone() })
        }
        Message::Checkpoint(signed) => {
            let root = Digest::of(Domain::Cluster, &signed.claims().root.0);
            Message::Checkpoint(Box::new(keyring.sign(Checkpoint { root, ..*signed.claims() }).into()))
        }
        _ => return None,
    })
}

fn falsified_response(response: &Response) -> Response {
    Response { outcome: false_outcome(&response.outcome), ..response.clone() }
}

/// A well-formed outcome that is never the right one, and always the same: liars agree with each other.
fn false_outcome(truth: &Outcome) -> Outcome {
    let lie = |value: &'static [u8]| Outcome::read(KvResult::Value(Some(Bytes::from_static(value))).to_bytes().into());
    let first = lie(b"a lie");
    if first.digest() == truth.digest() { lie(b"another lie") } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lie_is_never_the_truth() {
        let truths = [KvResult::Done, KvResult::Value(None), KvResult::Value(Some(Bytes::from_static(b"a lie")))];
        for truth in truths {
            let truth = Outcome::read(truth.to_bytes().into());
            assert_ne!(false_outcome(&truth).digest(), truth.digest());
            assert_ne!(false_outcome(&Outcome::DoneDigest(truth.digest())).digest(), truth.digest());
        }
    }
}
