//! Checkpoints for those who read them without taking part: what there is, and pieces of it.
//!
//! Nothing here has to be believed. Whoever knows the replicas' keys checks a certificate, and from its root downwards
//! every node and page against the digest that it must have, as in a state transfer, whose messages these are.

use crate::keys::{from_hex_any, to_hex};
use crate::replica::{Shelf, Shown};
use bezant_core::auth::Certificate;
use bezant_core::checkpoint::Checkpoint;
use bezant_core::checkpoint::transfer::TransferMessage;
use bezant_core::wire::{Reader, Wire};
use bytes::Bytes;
use serde_json::{Value, json};

/// What stands before the requests in a path.
pub(crate) const PATH: &str = "/state/";
/// The most requests in one path: what fits into a request of HTTP.
pub(crate) const REQUESTS_MAX: usize = 64;
/// Requests are answered until the answer is so large; the rest has to be asked for again.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What `/checkpoint` says. A state that was repaired is shown after its divergence was announced, so that whoever
/// sees the one sees the other, or its record.
pub(super) fn checkpoints(shelf: &Shelf, announced: impl FnOnce() -> usize) -> Value {
    let list = |shown: Vec<Shown>| shown.iter().map(checkpoint).collect::<Vec<_>>();
    let (certain, own) = (list(shelf.certain()), list(shelf.own()));
    json!({ "certain": certain, "own": own, "announced": announced() })
}

fn checkpoint(shown: &Shown) -> Value {
    let Shown { evidence, pages, bytes } = shown;
    let Checkpoint { instance, sequence, root, .. } = evidence.checkpoint();
    let signers = evidence.certificate().into_iter().flat_map(Certificate::signers);
    json!({
        "instance": instance.0,
        "sequence": sequence.0,
        "root": to_hex(&root.0),
        "signers": signers.map(|signer| signer.0).collect::<Vec<_>>(),
        "certificate": to_hex(&evidence.claim().to_bytes()),
        "pages": pages,
        "bytes": bytes,
    })
}

/// The path that asks for pieces.
pub(crate) fn path(requests: &[TransferMessage]) -> String {
    let mut bytes = Vec::new();
    requests.iter().for_each(|request| request.encode(&mut bytes));
    format!("{PATH}{}", to_hex(&bytes))
}

/// The messages in a path or in an answer, at most [`REQUESTS_MAX`].
pub(crate) fn messages(bytes: Bytes) -> Option<Vec<TransferMessage>> {
    let mut reader = Reader::new(bytes);
    let mut messages = Vec::new();
    while reader.remaining() > 0 {
        if messages.len() == REQUESTS_MAX {
            return None;
        }
        messages.push(TransferMessage::decode(&mut reader).ok()?);
    }
    Some(messages)
}

/// The answers to the requests in a path.
pub(super) fn answer(shelf: &Shelf, asked: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for request in messages(Bytes::from(from_hex_any(asked)?))? {
        shelf.serve(&request)?.encode(&mut out);
        if out.len() >= ANSWER_BYTES_MAX {
            break;
        }
    }
    Some(out)
}
