//! The golden bytes of `docs/wire.md`: what a message looks like on the wire does not change unnoticed.
//!
//! After a change that is meant: `BEZANT_WRITE_DOCS=1 cargo test -p bezant-core --test golden_bytes`, and a new version
//! of the protocol if released software speaks the old one.

use bezant_core::auth::{Certificate, Signature, Signed, Tag};
use bezant_core::checkpoint::{Checkpoint, NodeContent, NodeId, TransferMessage};
use bezant_core::cluster::{ClientId, IdentityId, InstanceId, ReplicaId, Sequence, Timestamp, View};
use bezant_core::digest::Digest;
use bezant_core::machine::Instant;
use bezant_core::message::{Firmness, Message, Ordering, Outcome, Refusal, Reply, Request};
use bezant_core::protocols::batch::{Batch, Entry, Reference};
use bezant_core::protocols::pbft::{Claim, NewView, PbftMessage, Position, PrePrepare, Status, ViewChange, Vote};
use bezant_core::service::Proposal;
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

const INSTANCE: InstanceId = InstanceId(1);
const VIEW: View = View(2);
const SEQUENCE: Sequence = Sequence(3);
const CLIENT: ClientId = ClientId { identity: IdentityId(4), session: 5 };
const TIMESTAMP: Timestamp = Timestamp(6);
const DIGEST: Digest = Digest([0xd1; 32]);
const SIGNATURE: Signature = Signature([0x51; 64]);
const PAGE: u32 = 7;

fn request() -> Request {
    let mut request = Request::new(INSTANCE, CLIENT, TIMESTAMP, false, Bytes::from_static(b"hi"));
    request.authentication.tags = vec![Tag::from_bytes([0x7a; 16]); 4];
    request.authentication.signature = Some(SIGNATURE);
    request
}

fn reply(firmness: Firmness, outcome: Outcome) -> Message {
    let (instance, view, sequence) = (INSTANCE, VIEW, SEQUENCE);
    Message::Reply(Reply { instance, view, sequence, client: CLIENT, timestamp: TIMESTAMP, firmness, outcome })
}

fn signed<T>(value: T) -> Signed<T> {
    Signed { value, signer: ReplicaId(0), signature: SIGNATURE }
}

fn view_change() -> Signed<ViewChange> {
    let claim = Claim { sequence: SEQUENCE, digest: DIGEST, view: VIEW };
    let (prepared, pre_prepared) = (vec![claim], vec![claim]);
    signed(ViewChange { view: VIEW, stable: certificate(), prepared, pre_prepared })
}

fn checkpoint() -> Checkpoint {
    Checkpoint { instance: INSTANCE, sequence: SEQUENCE, root: DIGEST }
}

fn certificate() -> Certificate<Checkpoint> {
    Certificate { value: checkpoint(), signatures: vec![(ReplicaId(0), SIGNATURE), (ReplicaId(2), SIGNATURE)] }
}

fn batch() -> Arc<Batch> {
    let reference = Reference { client: CLIENT, timestamp: TIMESTAMP, digest: DIGEST };
    let entries = vec![Entry::Inline(request()), Entry::Reference(reference)];
    Arc::new(Batch::new(Proposal { time: Instant(8), seed: DIGEST }, entries))
}

fn transfers() -> Vec<(&'static str, TransferMessage)> {
    let (sequence, node, number) = (SEQUENCE, NodeId::ROOT, PAGE);
    // Child 1 and no other.
    let content = [&2u64.to_le_bytes()[..], &DIGEST.0].concat();
    let content = NodeContent::from_bytes(content.into()).expect("one child");
    vec![
        ("FETCH-NODE", TransferMessage::FetchNode { sequence, node }),
        ("NODE", TransferMessage::Node { sequence, node, content }),
        ("FETCH-PAGE", TransferMessage::FetchPage { sequence, number }),
        ("PAGE", TransferMessage::Page { sequence, number, content: Bytes::from_static(b"hi") }),
        ("GONE", TransferMessage::Gone { sequence }),
    ]
}

fn orderings() -> Vec<(&'static str, PbftMessage)> {
    let vote = Vote { view: VIEW, sequence: SEQUENCE, digest: DIGEST };
    let position = Position { sequence: SEQUENCE, digest: DIGEST };
    let reference = Reference { client: CLIENT, timestamp: TIMESTAMP, digest: DIGEST };
    let new_view = NewView { view: VIEW, view_changes: vec![view_change()], chosen: vec![DIGEST] };
    let status = Status { view: VIEW, changing: true, stable: SEQUENCE, committed: Sequence(9) };
    vec![
        ("PRE-PREPARE", PbftMessage::PrePrepare(PrePrepare { view: VIEW, sequence: SEQUENCE, batch: batch() })),
        ("PREPARE", PbftMessage::Prepare(vote)),
        ("COMMIT", PbftMessage::Commit(vote)),
        ("VIEW-CHANGE", PbftMessage::ViewChange(Box::new(view_change()))),
        ("NEW-VIEW", PbftMessage::NewView(Arc::new(signed(new_view)))),
        ("STATUS", PbftMessage::Status(status)),
        ("FETCH-BATCH", PbftMessage::FetchBatch(position)),
        ("BATCH", PbftMessage::Batch(batch())),
        ("FETCH-REQUEST", PbftMessage::FetchRequest(reference)),
        ("BODY", PbftMessage::Body(Box::new(request()))),
        ("DECIDED", PbftMessage::Decided(position)),
        ("STABLE", PbftMessage::Stable(Box::new(certificate()))),
    ]
}

fn messages() -> Vec<(&'static str, Message)> {
    let mut messages = vec![
        ("REQUEST", Message::Request(request())),
        ("REPLY with result", reply(Firmness::Tentative, Outcome::Done(Bytes::from_static(b"hi")))),
        ("REPLY with digest", reply(Firmness::Final, Outcome::DoneDigest(DIGEST))),
        ("REPLY with refusal", reply(Firmness::Read, Outcome::Refused(Refusal::NotReadOnly))),
        ("CHECKPOINT", Message::Checkpoint(Box::new(signed(checkpoint())))),
    ];
    let ordering = |message| Message::Ordering(Ordering { instance: INSTANCE, message });
    messages.extend(orderings().into_iter().map(|(name, message)| (name, ordering(message))));
    messages.extend(transfers().into_iter().map(|(name, message)| (name, Message::Transfer(message))));
    messages
}

/// Name and bytes, the bytes in lines of 50.
fn listing() -> String {
    let mut text = String::new();
    for (name, message) in messages() {
        writeln!(text, "{name}").expect("writing to a string cannot fail");
        for line in message.to_bytes().chunks(50) {
            let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "  {hex}").expect("writing to a string cannot fail");
        }
    }
    text
}

#[test]
fn documentation_shows_the_bytes_that_we_send() {
    const BEGIN: &str = "```text\nREQUEST\n";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire.md");
    let document = std::fs::read_to_string(&path).expect("the page exists");
    let (before, rest) = document.split_once(BEGIN).expect("the page has a listing");
    let (shown, after) = rest.split_once("```").expect("the listing ends");
    let shown = format!("REQUEST\n{shown}");
    if std::env::var_os("BEZANT_WRITE_DOCS").is_some() {
        std::fs::write(&path, [before, "```text\n", &listing(), "```", after].concat())
            .expect("the page can be written");
    } else {
        assert_eq!(shown, listing(), "docs/wire.md is behind, or the bytes changed unnoticed");
    }
}

#[test]
fn every_message_has_one_encoding() {
    for (name, message) in messages() {
        let bytes = message.to_bytes();
        let again = Message::from_bytes(bytes.clone().into()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.to_bytes(), bytes, "{name}");
        for length in 0..bytes.len() {
            assert!(Message::from_bytes(bytes[..length].to_vec().into()).is_err(), "{name} cut to {length} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Message::from_bytes(longer.into()).is_err(), "{name} with a byte more");
    }
}
