//! The golden bytes of `docs/wire.md`: what a message looks like on the wire does not change unnoticed.
//!
//! And its other half: there is no second way to say the same. Whatever decodes, golden bytes damaged in any way
//! included, encodes to exactly the bytes that it was decoded from.
//!
//! After a change that is meant: `BEZANT_WRITE_DOCS=1 cargo test -p bezant-core --test golden_bytes`, and a new version
//! of the protocol if released software speaks the old one.

use bezant_core::auth::{
    Certificate, Claimed, CoinShare, Ed25519, Keyring, PublicKeys, SecretKey, Signature, Signed, Suite, Tag,
    TreeSignature,
};
use bezant_core::batch::{Batch, Entry, Reference};
use bezant_core::checkpoint::{Checkpoint, NodeContent, NodeId, TransferMessage};
use bezant_core::cluster::{ClientAuth, Cluster, Limits};
use bezant_core::digest::Digest;
use bezant_core::dissent::{Scope, Testimony};
use bezant_core::history::{Boundary, LogEntry};
use bezant_core::ids::{ClientId, IdentityId, InstanceId, Principal, PublicKey, ReplicaId, Sequence, Timestamp, View};
use bezant_core::joining::{Ask, CONTROL_SESSION, CookieMessage, Credential, Given, Join, SessionId, Stamp};
use bezant_core::message::bundle::{self, Results, Single};
use bezant_core::message::{Authentication, Firmness, Outcome, Refusal, Reply, Request};
use bezant_core::notice::Pace;
use bezant_core::protocols::chain::{ChainMessage, ChainReply};
use bezant_core::protocols::pbft::{
    Claim, Here, NewView, Ordering, PbftMessage, Position, PrePrepare, Status, ViewChange, Vote,
};
use bezant_core::protocols::ring_fast::{
    self, Body, Hop, Hops, PaceMessage, Probe, RingMessage, RingPace, RingReply, Round, Strike,
};
use bezant_core::protocols::ring_resilient::{self, Commit, Order, Resilient, ResilientMessage, ResilientRecord};
use bezant_core::protocols::ritas::message::{Heard, Said, Statement, Summary, Value, Word};
use bezant_core::protocols::ritas::order::{Agreement, Lap, Progress, RitasMessage, Whereabouts};
use bezant_core::protocols::ritas::path::{Layer, Path};
use bezant_core::protocols::ritas::statements::Statements;
use bezant_core::protocols::speculative::{Certain, Response};
use bezant_core::protocols::zlight;
use bezant_core::registry::{InstanceRecord, LogRecord, Message};
use bezant_core::service::Proposal;
use bezant_core::switching::certificate::{Prepared, Stable};
use bezant_core::switching::{
    AbortReport, Bodies, Certificates, ClaimedProof, Feedback, Fetch, HistoryRecord, Panic, Returned, Switch,
    SwitchMessage,
};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bytes::Bytes;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

const INSTANCE: InstanceId = InstanceId(1);
const VIEW: View = View(2);
const SEQUENCE: Sequence = Sequence(3);
const FEEDBACK: Feedback = Feedback { machine: CLIENT, load: 2_000, oldest: Some((6, Timestamp(9))) };
const CLIENT: ClientId = ClientId { identity: IdentityId(4), session: 5 };
const TIMESTAMP: Timestamp = Timestamp(6);
const DIGEST: Digest = Digest([0xd1; 32]);
const SIGNATURE: Signature = Signature([0x51; 64]);
const PAGE: u32 = 7;

/// A signature over one request alone.
fn alone() -> TreeSignature {
    TreeSignature { signature: SIGNATURE, sides: 0, path: vec![] }
}

fn request() -> Request {
    let mut request = Request::new(INSTANCE, CLIENT, TIMESTAMP, false, Bytes::from_static(b"hi"));
    request.authentication.tags = [Tag::from_bytes([0x7a; 16]); 4].into_iter().collect();
    request.authentication.signature = Some(alone());
    request
}

/// The second of three requests that were signed together, without its MACs.
fn signed_with_others() -> Message {
    let mut request = request();
    let path = vec![DIGEST; 2];
    let signature = Some(TreeSignature { signature: SIGNATURE, sides: 1, path });
    request.authentication = Authentication { signature, ..Authentication::default() };
    Message::Request(request)
}

fn bundle_of_two() -> Message {
    let operation = bundle::pack(&[Bytes::from_static(b"hi"), Bytes::from_static(b"ho")]);
    let mut request = Request::new(INSTANCE, CLIENT, TIMESTAMP, false, operation).as_bundle();
    request.authentication = self::request().authentication;
    Message::Request(request)
}

/// A result, and no room for another.
fn results_of_two() -> Bytes {
    let singles = vec![Single::Done(Bytes::from_static(b"hi")), Single::Refused(Refusal::NoRoom)];
    singles.into_iter().collect::<Results>().to_bytes().into()
}

fn close() -> Message {
    let client = ClientId { session: CONTROL_SESSION, ..CLIENT };
    let mut request = Request::new(INSTANCE, client, TIMESTAMP, false, Bytes::new());
    request.authentication = self::request().authentication;
    Message::Request(request)
}

fn reply(firmness: Firmness, outcome: Outcome) -> Message {
    let (instance, view, sequence) = (INSTANCE, VIEW, SEQUENCE);
    Message::Reply(Reply { instance, view, sequence, client: CLIENT, timestamp: TIMESTAMP, firmness, outcome })
}

fn signed<T>(value: T) -> Claimed<Signed<T>> {
    Claimed::signed(value, ReplicaId(0), SIGNATURE)
}

fn view_change() -> Claimed<Signed<ViewChange>> {
    let claim = |sequence| Claim { sequence: Sequence(sequence), digest: DIGEST, view: View(1) };
    let (prepared, pre_prepared) = (vec![claim(4)], vec![claim(4), claim(5)]);
    signed(ViewChange { view: VIEW, stable: certificate(), prepared, pre_prepared })
}

fn checkpoint() -> Checkpoint {
    Checkpoint { instance: INSTANCE, sequence: SEQUENCE, ruled: Sequence(2), root: DIGEST }
}

fn testimony(block: Option<u32>) -> Testimony {
    let scope = Scope { base: checkpoint(), position: 9, ruled: Sequence(2), block };
    Testimony { scope, effects: vec![DIGEST, DIGEST] }
}

fn certificate() -> Claimed<Certificate<Checkpoint>> {
    certified(checkpoint())
}

fn batch() -> Arc<Batch> {
    let reference = Reference { digest: DIGEST, length: 2_000 };
    let entries = vec![Entry::Inline(request()), Entry::Reference(reference)];
    Arc::new(Batch::new(Proposal { time: Instant(8), seed: DIGEST }, entries))
}

fn transfers() -> Vec<(&'static str, TransferMessage)> {
    let (version, node, number) = (DIGEST, NodeId::ROOT, PAGE);
    // Child 1 and no other.
    let content = [&2u64.to_le_bytes()[..], &DIGEST.0].concat();
    let content = NodeContent::from_bytes(content.into()).expect("one child");
    vec![
        ("FETCH-NODE", TransferMessage::FetchNode { version, node }),
        ("NODE", TransferMessage::Node { version, node, content }),
        ("FETCH-PAGE", TransferMessage::FetchPage { version, number }),
        ("PAGE", TransferMessage::Page { version, number, content: Bytes::from_static(b"hi") }),
        ("GONE", TransferMessage::Gone { version }),
    ]
}

fn agreements() -> Vec<(&'static str, RitasMessage)> {
    let atomic = Path::root(Layer::Atomic, 0);
    let payload = atomic.child(Layer::Message, 7).by(ReplicaId(1));
    let step = atomic.child(Layer::Round, 3).child(Layer::Multi, 0).child(Layer::Binary, 0).child(Layer::Step, 2);
    let toss = step.parent().expect("a step has a parent").child(Layer::Toss, 1);
    let (long, vote) = (Value(vec![0x7a; 40].into()), Value(vec![1].into()));
    let said = |path, statement| Said { path, statement };
    let statements = vec![
        said(payload, Statement::Initial(long.clone())),
        said(payload, Statement::Echo(Word::of(&long, false))),
        said(payload, Statement::Ready(Word::of(&long, false))),
        said(step.by(ReplicaId(2)), Statement::Echo(Word::of(&vote, false))),
        said(step.parent().expect("a step has a parent"), Statement::Decide(vote)),
        said(payload, Statement::Want(Word::of(&long, false))),
        said(payload, Statement::Body(long)),
        said(toss, Statement::Est(true)),
        said(toss, Statement::Aux(true)),
        said(toss, Statement::Conf(None)),
        said(toss, Statement::Conf(Some(true))),
        said(toss, Statement::Share(CoinShare([0x5a; CoinShare::BYTES]))),
    ];
    let mut heard = Heard::INITIAL;
    heard.add(Heard::ECHO);
    let summary = Summary { heard: vec![(payload, heard)], round: 3, messages: vec![7, 6, 5, 4] };
    vec![
        ("SAID", RitasMessage::Said(Statements(statements))),
        ("PROGRESS", RitasMessage::Progress(Progress { summary, stable: SEQUENCE })),
        ("STABLE of RITAS", RitasMessage::Stable(Box::new(certificate()))),
        ("LOST of RITAS", RitasMessage::Lost(Whereabouts { question: Instant(8), round: 5 })),
        ("ROUND", RitasMessage::Round(Whereabouts { question: Instant(8), round: 3 })),
        ("PING", RitasMessage::Ping(Lap { round: 9, number: 0 })),
        ("PONG", RitasMessage::Pong(Lap { round: 9, number: 2 })),
    ]
}

fn orderings() -> Vec<(&'static str, PbftMessage)> {
    let vote = Vote { view: VIEW, sequence: SEQUENCE, digest: DIGEST };
    let position = Position { sequence: SEQUENCE, digest: DIGEST };
    let new_view = NewView { view: VIEW, view_changes: vec![view_change()], chosen: vec![DIGEST] };
    let (stable, committed, way) = (SEQUENCE, Sequence(9), DIGEST);
    let status =
        Status { view: VIEW, changing: true, stable, committed, begun: View(1), way, abstaining: true, failing: false };
    let here = Here { question: Instant(8), view: VIEW, committed };
    vec![
        ("PRE-PREPARE", PbftMessage::PrePrepare(PrePrepare { view: VIEW, sequence: SEQUENCE, batch: batch() })),
        ("PREPARE", PbftMessage::Prepare(vote)),
        ("COMMIT", PbftMessage::Commit(vote)),
        ("VIEW-CHANGE", PbftMessage::ViewChange(Box::new(view_change()))),
        ("NEW-VIEW", PbftMessage::NewView(Arc::new(signed(new_view)))),
        ("STATUS", PbftMessage::Status(status)),
        ("FETCH-BATCH", PbftMessage::FetchBatch(position)),
        ("BATCH", PbftMessage::Batch(batch())),
        ("FETCH-REQUEST", PbftMessage::FetchRequest(DIGEST)),
        ("BODY", PbftMessage::Body(Box::new(request()))),
        ("DECIDED", PbftMessage::Decided(position)),
        ("STABLE", PbftMessage::Stable(Box::new(certificate()))),
        ("LOST of PBFT", PbftMessage::Lost(Instant(8))),
        ("HERE of PBFT", PbftMessage::Here(here)),
    ]
}

/// What a client says that the cluster file does not name, and what it is told.
fn strangers() -> Vec<(&'static str, Message)> {
    let nonce = [0x90; 16];
    let credential = Credential { key: PublicKey([0x1c; 32]), session: SessionId(nonce) };
    let stamp = |replica| Stamp { replica: ReplicaId(replica), time: Instant(8), signature: SIGNATURE };
    let join = Join { identification: Bytes::from_static(b"me"), stamps: vec![stamp(0), stamp(2)] };
    let request = |client, operation| {
        let mut request = Request::of_stranger(INSTANCE, client, credential, TIMESTAMP, false, operation);
        request.authentication.signature = Some(alone());
        Message::Request(request)
    };
    let member = ClientId { identity: IdentityId::MEMBERS, session: 5 };
    let given = Given { nonce, time: Instant(8), signature: SIGNATURE };
    vec![
        ("ASK", Message::Cookie(CookieMessage::Ask(Ask { nonce }))),
        ("GIVEN", Message::Cookie(CookieMessage::Given(given))),
        ("JOIN", request(credential.joining(), join.to_bytes().into())),
        ("REQUEST of a member", request(member, Bytes::from_static(b"hi"))),
        ("LEAVE", request(ClientId { session: CONTROL_SESSION, ..member }, Bytes::new())),
    ]
}

/// Around the ring, from replica 3 with replica 0 as the sequencer: before it, after it, and what the client gets.
fn ring() -> Vec<(&'static str, Message)> {
    let (instance, entry, tag) = (INSTANCE, ReplicaId(3), Tag::from_bytes([0x7a; 16]));
    let stamp = ring_fast::Stamp {
        first: 9,
        proposal: Proposal { time: Instant(8), seed: DIGEST },
        history: DIGEST,
        effects: DIGEST,
    };
    let unnumbered = RingMessage {
        instance,
        entry,
        body: Body::Requests(vec![request()]),
        strikes: vec![Strike { position: 1, request: 0 }],
        stamp: None,
        tags: vec![tag; 2],
        reply_tags: vec![],
    };
    let body = Body::Digest(unnumbered.body.digest());
    let ack = RingMessage { body, stamp: Some(stamp), strikes: vec![], reply_tags: vec![tag], ..unnumbered.clone() };
    let body = Body::DigestAgain(ack.body.digest());
    let again = RingMessage { body, ..ack.clone() };
    let reply = RingReply {
        instance,
        entry,
        client: CLIENT,
        timestamp: TIMESTAMP,
        position: 9,
        history: DIGEST,
        outcome: Outcome::read(Bytes::from_static(b"hi")),
        tags: vec![tag; 2],
    };
    let body = Body::Probe(Probe { number: 2, pass: 0 });
    let probe = Message::Ring(RingMessage { body, strikes: vec![], ..unnumbered.clone() });
    let (position, history, outcome) = (9, DIGEST, reply.outcome.clone());
    let certain = Response { instance, client: CLIENT, timestamp: TIMESTAMP, position, history, outcome };
    vec![
        ("RING", Message::Ring(unnumbered)),
        ("ACK", Message::Ring(ack)),
        ("ACK that comes by again", Message::Ring(again)),
        ("PROBE", probe),
        ("RING-REPLY", Message::RingReply(reply)),
        ("CERTAIN", Message::RingCertain(Certain(certain))),
    ]
}

fn certified<T>(value: T) -> Claimed<Certificate<T>> {
    Claimed::certified(value, vec![(ReplicaId(0), SIGNATURE), (ReplicaId(2), SIGNATURE)])
}

const PREPARED: Prepared = Prepared { instance: INSTANCE, position: 9, history: DIGEST };
const STABLE: Stable =
    Stable { instance: INSTANCE, init: (3, DIGEST), boundary: Boundary { position: 9, history: DIGEST, root: DIGEST } };

/// What replicas of the resilient ring say to one another.
fn resilient() -> Vec<(&'static str, Message)> {
    let order = Order { first: 8, batch: (*batch()).clone(), prepare: signed(PREPARED) };
    let (prepared, committed) = (Some(9), None);
    let status = ring_resilient::Status { opened: true, logged: 9, prepared, committed, anchor: 3 };
    let statements = [
        ("ORDER", ResilientMessage::Order(Box::new(order))),
        ("PREP", ResilientMessage::Prepare(signed(PREPARED))),
        ("COMM", ResilientMessage::Commit(Commit { position: 9, history: DIGEST })),
        ("CHECKPOINT of the resilient ring", ResilientMessage::Checkpoint(signed(STABLE))),
        ("STATUS of the resilient ring", ResilientMessage::Status(status)),
        ("FETCH of the resilient ring", ResilientMessage::Fetch(Fetch(vec![DIGEST]))),
        ("STABLE of the resilient ring", ResilientMessage::Stable(certified(STABLE))),
    ];
    let say = |message| Message::Resilient(Resilient { instance: INSTANCE, message });
    statements.map(|(name, message)| (name, say(message))).into()
}

/// What its replicas keep.
fn records() -> [(&'static str, LogRecord); 3] {
    let records = [
        ("Prepared", InstanceRecord::Resilient(ResilientRecord::Prepared(certified(PREPARED)))),
        ("Stable", InstanceRecord::History(HistoryRecord::Stable(certified(STABLE)))),
        ("Committed", InstanceRecord::Resilient(ResilientRecord::Committed(9))),
    ];
    records.map(|(name, record)| (name, LogRecord { instance: INSTANCE, record }))
}

/// About instances, and what speculative instances say.
fn switches() -> Vec<(&'static str, Message)> {
    let boundary = Boundary { position: 3, history: DIGEST, root: DIGEST };
    let certificates = Certificates { prepared: Some(certified(PREPARED)), stable: Some(certified(STABLE)) };
    let (boundaries, digests) = (vec![boundary], vec![DIGEST]);
    let silent = [ReplicaId(2)].into_iter().collect();
    let report =
        AbortReport { instance: INSTANCE, anchor: boundary, boundaries, digests, low_load: true, silent, certificates };
    let proof = ClaimedProof { reports: vec![signed(report.clone())] };
    let entry = LogEntry::new(Proposal { time: Instant(8), seed: DIGEST }, request());
    let statements = vec![
        ("PANIC", SwitchMessage::Panic(Panic { client: CLIENT, timestamp: TIMESTAMP })),
        ("ACTIVE", SwitchMessage::Active(CLIENT)),
        ("ABORT", SwitchMessage::Abort(Arc::new(signed(report)))),
        ("INIT", SwitchMessage::Init(Arc::new(proof))),
        ("BEHIND", SwitchMessage::Behind(())),
        ("FETCH", SwitchMessage::Fetch(Fetch(vec![DIGEST]))),
        ("BODIES", SwitchMessage::Bodies(Bodies(vec![entry]))),
        ("LCS", SwitchMessage::Checkpoint(boundary)),
        ("ANCHOR", SwitchMessage::Anchor(boundary)),
        ("LOST", SwitchMessage::Lost(Instant(8))),
        ("HERE", SwitchMessage::Here(Instant(8))),
        ("FEEDBACK", SwitchMessage::Feedback(FEEDBACK)),
        ("PRESENT", SwitchMessage::Present(())),
        ("RETURNED", SwitchMessage::Returned(Box::new(signed(Returned { instance: INSTANCE })))),
    ];
    let say = |message| Message::Switch(Switch { instance: INSTANCE, message });
    statements.into_iter().map(|(name, message)| (name, say(message))).collect()
}

fn speculative() -> Vec<(&'static str, Message)> {
    let (instance, first, history, tag) = (INSTANCE, 8, DIGEST, Tag::from_bytes([0x7a; 16]));
    let proposal = Proposal { time: Instant(8), seed: DIGEST };
    let (client, timestamp, position) = (CLIENT, TIMESTAMP, 9);
    let outcome = Outcome::read(Bytes::from_static(b"hi"));
    let response = Response { instance, client, timestamp, position, history, outcome: outcome.clone() };
    let order = zlight::Order { instance, first, proposal: proposal.clone(), requests: vec![request()] };
    let (tags, reply_tags) = (vec![tag; 2], vec![tag]);
    let requests = vec![request()];
    let chain =
        ChainMessage { instance, first, proposal, requests, history, results: DIGEST, tags: tags.clone(), reply_tags };
    let reply = ChainReply { instance, client, timestamp, position, history, outcome, tags };
    vec![
        ("RESPONSE", Message::Response(response)),
        ("ORDER of ZLight", Message::Order(order)),
        ("CHAIN", Message::Chain(chain)),
        ("CHAIN-REPLY", Message::ChainReply(reply)),
    ]
}

/// How fast the ring is.
fn paces() -> Vec<(&'static str, Message)> {
    let (instance, round) = (INSTANCE, Round { originator: ReplicaId(0), number: 2 });
    let hops = Hops { round, hops: vec![signed(Hop { instance, round, microseconds: 8 })] };
    let vote = signed(ring_fast::Vote { instance, round, pace: Pace::Slow });
    let said = vec![
        ("PACE-PING", PaceMessage::Ping(2)),
        ("PACE-PONG", PaceMessage::Pong(2)),
        ("PACE-CHECK", PaceMessage::Check(hops.clone())),
        ("PACE-REPORT", PaceMessage::Report(hops)),
        ("PACE-VOTE", PaceMessage::Vote(vote)),
        ("PACE-ASK", PaceMessage::Ask(CLIENT)),
        ("PACE-DELAY", PaceMessage::Delay(ring_fast::Delay { client: CLIENT, microseconds: 8 })),
    ];
    said.into_iter().map(|(name, message)| (name, Message::RingPace(RingPace { instance, message }))).collect()
}

fn messages() -> Vec<(&'static str, Message)> {
    let mut messages = vec![
        ("REQUEST", Message::Request(request())),
        ("REQUEST signed with others", signed_with_others()),
        ("REQUEST that is a bundle", bundle_of_two()),
        ("CLOSE", close()),
        ("REPLY with result", reply(Firmness::Tentative, Outcome::read(Bytes::from_static(b"hi")))),
        ("REPLY with digest", reply(Firmness::Final, Outcome::DoneDigest(DIGEST))),
        ("REPLY with refusal", reply(Firmness::Read, Outcome::Refused(Refusal::NotReadOnly))),
        ("REPLY to a bundle", reply(Firmness::Final, Outcome::read(results_of_two()))),
        ("REPLY of a closed cluster", reply(Firmness::Final, Outcome::Refused(Refusal::Closed))),
        ("CHECKPOINT", Message::Checkpoint(Box::new(signed(checkpoint())))),
        ("TESTIMONY in outline", Message::Testimony(Box::new(signed(testimony(None))))),
        ("TESTIMONY of a block", Message::Testimony(Box::new(signed(testimony(Some(1)))))),
    ];
    messages.extend(strangers());
    let ordering = |message| Message::Ordering(Ordering { instance: INSTANCE, message });
    messages.extend(orderings().into_iter().map(|(name, message)| (name, ordering(message))));
    messages.extend(switches());
    messages.extend(speculative());
    let agreement = |message| Message::Agreement(Agreement { instance: INSTANCE, message });
    messages.extend(agreements().into_iter().map(|(name, message)| (name, agreement(message))));
    messages.extend(ring());
    messages.extend(resilient());
    messages.extend(paces());
    messages.extend(transfers().into_iter().map(|(name, message)| (name, Message::Transfer(message))));
    messages
}

/// Name and bytes, the bytes in lines of 50.
fn listing<T: Wire>(named: impl IntoIterator<Item = (&'static str, T)>) -> String {
    let mut text = String::new();
    for (name, value) in named {
        writeln!(text, "{name}").expect("writing to a string cannot fail");
        for line in value.to_bytes().chunks(50) {
            writeln!(text, "  {}", hex(line)).expect("writing to a string cannot fail");
        }
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A request and a reply with real proofs, for the keys that the page names.
fn example() -> String {
    let secret = |byte| SecretKey([byte; 32]);
    let cluster = Cluster::new([7; 16], 4, 1, ClientAuth::Hybrid, Limits::default()).expect("4 = 3·1 + 1");
    let keys = PublicKeys {
        replicas: (1..=4).map(|byte| Ed25519.public(&secret(byte))).collect(),
        identities: [(CLIENT.identity, Ed25519.public(&secret(9)))].into(),
    };
    let keyring = |me, byte| Keyring::new(&Ed25519, &cluster, me, secret(byte), keys.clone()).expect("its own keys");
    let (replica, client) = (Principal::Replica(ReplicaId(0)), Principal::Client(CLIENT));
    let (of_replica, of_client) = (keyring(replica, 1), keyring(client, 9));
    let request = Request::new(INSTANCE, CLIENT, TIMESTAMP, false, Bytes::from_static(b"hi"));
    let request = request.authenticate(&cluster, &of_client);
    let reply = reply(Firmness::Tentative, Outcome::read(Bytes::from_static(b"hi"))).sealed(&of_replica, client);
    let signature = request.authentication.signature.as_ref().expect("hybrid mode signs").signature.0;
    let tag = request.authentication.tags.get(0).expect("hybrid mode has a tag for every replica");
    let lines: [(&str, &[u8]); 7] = [
        ("digest of the cluster", &cluster.digest().0),
        ("public key of replica 0", &keys.replicas[0].0),
        ("public key of identity 4", &keys.identities[&CLIENT.identity].0),
        ("digest of the request", &request.digest().0),
        ("its tag for replica 0", tag.as_bytes()),
        ("its signature", &signature),
        ("tag of the REPLY with result", &reply[reply.len() - Tag::BYTES..]),
    ];
    let mut text = String::new();
    for (name, bytes) in lines {
        writeln!(text, "{name}").expect("writing to a string cannot fail");
        bytes.chunks(50).for_each(|line| writeln!(text, "  {}", hex(line)).expect("writing to a string cannot fail"));
    }
    text
}

/// The page with what stands in its block that begins with `first` replaced.
fn with_block(document: &str, first: &str, text: &str) -> String {
    let begin = format!("```text\n{first}\n");
    let (before, rest) = document.split_once(&begin).expect("the page has the block");
    let (_, after) = rest.split_once("```").expect("the block ends");
    [before, "```text\n", text, "```", after].concat()
}

#[test]
fn documentation_shows_the_bytes_that_we_send() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire.md");
    let document = std::fs::read_to_string(&path).expect("the page exists");
    let current = with_block(&document, "digest of the cluster", &example());
    let current = with_block(&current, "REQUEST", &listing(messages()));
    let current = with_block(&current, "Prepared", &listing(records()));
    if std::env::var_os("BEZANT_WRITE_DOCS").is_some() {
        std::fs::write(&path, current).expect("the page can be written");
    } else {
        assert!(document == current, "docs/wire.md is behind, or the bytes changed unnoticed");
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

#[test]
fn every_record_has_one_encoding() {
    for (name, record) in records() {
        let bytes = record.to_bytes();
        let again = LogRecord::from_bytes(bytes.clone().into()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.to_bytes(), bytes, "{name}");
    }
}

/// Whether these bytes are refused, or are the one encoding of what they say. Anything else panics.
fn is_canonical(bytes: &[u8]) -> bool {
    match Message::from_bytes(Bytes::copy_from_slice(bytes)) {
        Ok(message) => message.to_bytes() == bytes,
        Err(_) => true,
    }
}

#[test]
fn a_message_with_any_one_byte_changed_is_refused_or_another_message() {
    for (name, message) in messages() {
        let golden = message.to_bytes();
        let mut bytes = golden.clone();
        for at in 0..golden.len() {
            // Every bit, and the values at which lengths, tags and flags change their meaning.
            let flips = (0..8).map(|bit| golden[at] ^ (1 << bit));
            for value in flips.chain([0, 1, 2, 3, 13, 0x7f, 0x80, 0xff]) {
                bytes[at] = value;
                assert!(is_canonical(&bytes), "{name} with {value:#04x} at {at}");
            }
            bytes[at] = golden[at];
        }
    }
}

proptest! {
    #[test]
    fn a_message_damaged_anywhere_is_refused_or_another_message(
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, any::<[u8; 3]>(), 0..4usize), 1..4),
    ) {
        let messages = messages();
        let mut bytes = which.get(&messages).1.to_bytes();
        for (at, removed, inserted, count) in cuts {
            let start = at.index(bytes.len() + 1);
            let end = (start + removed).min(bytes.len());
            bytes.splice(start..end, inserted.into_iter().take(count));
        }
        prop_assert!(is_canonical(&bytes));
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_a_message(bytes in prop::collection::vec(any::<u8>(), 0..200), tag in 1u8..6) {
        prop_assert!(is_canonical(&bytes));
        prop_assert!(is_canonical(&[&[tag], &bytes[..]].concat()));
    }
}
