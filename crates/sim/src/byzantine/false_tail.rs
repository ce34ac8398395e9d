//! Wrong, early and late speculative answers (abs-K19): of any replica in Quorum and ZLight, of the last places of a
//! chain, and of a tail that makes its own MAC for what nobody executed.

use super::wrong_reply::with_result;
use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::Principal;
use bezant_core::message::Outcome;
use bezant_core::protocols::chain::ChainReply;
use bezant_core::protocols::speculative::{Certain, Response};
use bezant_core::registry::Message;
use bezant_core::services::kv::KvResult;
use bezant_core::wire::Wire;

#[derive(Debug)]
pub(super) struct FalseTail {
    /// Answers that are wrong, per mille.
    wrong: u64,
    /// Answers that come late, per mille.
    late: u64,
    /// Also passes on wrong results along the chain.
    passes_on: bool,
}

impl FalseTail {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        Self { wrong: rng.between(20, 700), late: rng.below(600), passes_on: rng.coin() }
    }
}

/// What a read of an absent key answers: the most tempting lie.
fn nothing(instead_of: &Outcome) -> Outcome {
    with_result(instead_of, KvResult::Value(None).to_bytes().into())
}

fn wrong_response(rng: &mut Rng, response: &Response) -> Response {
    let mut lie = response.clone();
    match rng.below(4) {
        0 => lie.outcome = nothing(&lie.outcome),
        1 => lie.outcome = Outcome::DoneDigest(Digest::of(Domain::Trace, &lie.outcome.digest().0)),
        2 => lie.history = Digest::of(Domain::Trace, &lie.history.0),
        _ => lie.position += 1,
    }
    lie
}

fn wrong_reply(liar: &Liar<'_>, choice: u64, reply: &ChainReply) -> ChainReply {
    let mut lie = reply.clone();
    match choice {
        0 => lie.outcome = nothing(&lie.outcome),
        1 => lie.history = Digest::of(Domain::Trace, &lie.history.0),
        2 => lie.position += 1,
        // The tail's MAC in place of all the others.
        _ => lie.outcome = with_result(&lie.outcome, Vec::new().into()),
    }
    let tag = liar.keyring.tag(Principal::Client(lie.client), &lie.statement().bytes());
    let count = lie.tags.len();
    match choice {
        3 => lie.tags = vec![tag; count],
        _ => lie.tags.last_mut().into_iter().for_each(|last| *last = tag),
    }
    lie
}

impl Behaviour for FalseTail {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let wrong = liar.rng.per_mille(self.wrong);
        let lie = match message {
            Message::Response(response) if wrong => Message::Response(wrong_response(liar.rng, response)),
            Message::RingCertain(Certain(response)) if wrong => {
                Message::RingCertain(Certain(wrong_response(liar.rng, response)))
            }
            Message::ChainReply(reply) if wrong => {
                let choice = liar.rng.below(4);
                Message::ChainReply(wrong_reply(liar, choice, reply))
            }
            Message::Chain(chain) if wrong && self.passes_on => {
                let mut lie = chain.clone();
                lie.results = Digest::of(Domain::Trace, &lie.results.0);
                Message::Chain(lie)
            }
            other => other.clone(),
        };
        let answers = matches!(message, Message::Response(_) | Message::ChainReply(_) | Message::RingReply(_));
        let delay = if answers && liar.rng.per_mille(self.late) {
            liar.rng.below(4 * liar.cluster.limits.client_retry.0)
        } else {
            0
        };
        liar.say_later(delay, to, &lie);
    }
}
