//! What a replica says that has an intruder: wrong answers to clients, wrong results along a chain, and
//! votes for wrong checkpoints. Every lie is well-formed, and liars agree with each other.

use bezant_core::auth::Keyring;
use bezant_core::checkpoint::Checkpoint;
use bezant_core::digest::{Digest, Domain};
use bezant_core::message::{Outcome, Reply};
use bezant_core::protocols::chain::{ChainMessage, ChainReply};
use bezant_core::protocols::ring_fast::RingReply;
use bezant_core::protocols::speculative::{Certain, Response};
use bezant_core::registry::Message;
use bezant_core::services::kv::KvResult;
use bezant_core::wire::Wire;
use bytes::Bytes;

/// What a liar says instead, if that is something else.
pub(super) fn falsified(message: &Message, keyring: &Keyring) -> Option<Message> {
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
