//! Wrong answers: to clients, in every part of a REPLY. Liars who answer alike are the dangerous ones, so the wrong
//! result depends on the request alone. Or what was true once: a query is answered with what the same query was
//! answered before, so that a correct replica that lags behind makes the second of those that agree.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{ClientId, Principal, Sequence, Timestamp, View};
use bezant_core::message::bundle::Results;
use bezant_core::message::{Firmness, Outcome, Refusal, Reply};
use bezant_core::registry::Message;
use bezant_core::services::kv::KvResult;
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Queries that it remembers.
const QUERIES_MAX: usize = 200;

#[derive(Debug)]
pub(super) struct WrongReply {
    /// Answers also what it never executed, as soon as it hears of it.
    eager: bool,
    /// Tells nothing but what was true before, and that to queries only.
    stale: bool,
    /// The first answer to each query, and which query a client's number stands for.
    first: BTreeMap<Bytes, Outcome>,
    asked: BTreeMap<(ClientId, Timestamp), Bytes>,
}

impl WrongReply {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { eager: rng.coin(), stale: rng.coin(), first: BTreeMap::new(), asked: BTreeMap::new() }
    }

    /// The answer of the past.
    fn past(&mut self, reply: &Reply) -> Option<Outcome> {
        let query = self.asked.get(&(reply.client, reply.timestamp)).filter(|_| reply.firmness == Firmness::Read)?;
        Some(self.first.entry(query.clone()).or_insert_with(|| reply.outcome.clone()).clone())
    }
}

/// What a read of an absent key answers: the most tempting lie.
fn nothing() -> Bytes {
    KvResult::Value(None).to_bytes().into()
}

/// The results of a bundle, each for another operation.
fn mixed_up(outcome: &Outcome) -> Option<Bytes> {
    let Outcome::Done { result, .. } = outcome else { return None };
    let mut singles = Results::from_bytes(result.clone()).ok()?.into_singles();
    singles.reverse();
    let results: Results = singles.into_iter().collect();
    Some(results.to_bytes().into()).filter(|other| other != result)
}

fn wrong_outcome(reply: &Reply) -> Outcome {
    let result = mixed_up(&reply.outcome).unwrap_or_else(nothing);
    match reply.timestamp.0 % 4 {
        0 => with_result(&reply.outcome, result),
        1 => Outcome::DoneDigest(Digest::of(Domain::Result, &result)),
        2 => Outcome::Refused(Refusal::StaleTimestamp),
        _ => match &reply.outcome {
            Outcome::Done { result: real, effects } => {
                let mut changed = real.to_vec();
                changed.push(0);
                Outcome::Done { result: changed.into(), effects: *effects }
            }
            other => other.clone(),
        },
    }
}

impl Behaviour for WrongReply {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let Message::Reply(reply) = message else { return liar.say(to, message) };
        let mut lie = reply.clone();
        if self.stale {
            lie.outcome = self.past(reply).unwrap_or(lie.outcome);
            return liar.say(to, &Message::Reply(lie));
        }
        lie.outcome = wrong_outcome(reply);
        match liar.rng.below(4) {
            0 => lie.firmness = Firmness::Final,
            1 => lie.view = View(reply.view.0 + 1),
            2 => lie.sequence = Sequence(reply.sequence.0.wrapping_sub(1)),
            _ => {}
        }
        liar.say(to, &Message::Reply(lie));
    }

    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &bezant_core::registry::Incoming) -> bool {
        if let Message::Request(request) = &*incoming.message
            && request.read_only
            && self.asked.len() < QUERIES_MAX
        {
            self.asked.insert((request.client, request.timestamp), request.operation.clone());
        }
        if self.eager
            && !self.stale
            && let Message::Request(request) = &*incoming.message
        {
            let firmness = if request.read_only { Firmness::Read } else { Firmness::Final };
            let mut reply = Reply {
                instance: request.instance,
                view: View(0),
                sequence: Sequence(1),
                client: request.client,
                timestamp: request.timestamp,
                firmness,
                outcome: Outcome::read(nothing()),
            };
            reply.outcome = wrong_outcome(&reply);
            liar.say(request.signer(), &Message::Reply(reply));
        }
        true
    }
}

/// Another result of a request, with the effects that it had: whatever else differs, a lie must not be told by those.
pub(super) fn with_result(outcome: &Outcome, result: Bytes) -> Outcome {
    match outcome {
        Outcome::Done { effects, .. } => Outcome::Done { result, effects: *effects },
        Outcome::DoneDigest(_) | Outcome::Refused(_) => Outcome::read(result),
    }
}
