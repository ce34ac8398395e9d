//! A message in one line, for traces, logs and golden scripts: its name in capitals, then what tells it apart.

use super::{Message, Outcome, Reply, Request};
use crate::checkpoint::TransferMessage;
use crate::dissent::Testimony;
use crate::estate::is_close;
use crate::history::Boundary;
use crate::members::{CookieMessage, is_leave};
use crate::protocols::pbft::{self, Claim, PbftMessage};
use crate::protocols::ring_fast::{Body, PaceMessage, Probe, RingMessage, RingPace, Stamp};
use crate::protocols::ring_resilient::{Commit, Resilient, ResilientMessage, Status};
use crate::switching::certificate::Prepared;
use crate::switching::{Switch, SwitchMessage};
use core::fmt::{Display, Formatter, Result};

impl Display for Message {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Request(request) => request.fmt(f),
            Self::Reply(reply) => reply.fmt(f),
            Self::Ordering(ordering) => ordering.message.fmt(f),
            Self::Checkpoint(signed) => write!(f, "CHECKPOINT {} {:?}", signed.value.sequence, signed.value.root),
            Self::Testimony(signed) => {
                let Testimony { scope, effects } = &signed.value;
                let block = scope.block.map_or(-1, i64::from);
                write!(f, "TESTIMONY {} r{} b{block} {}", scope.base.sequence, scope.ruled.0, effects.len())
            }
            Self::Transfer(transfer) => transfer.fmt(f),
            Self::Switch(switch) => switch.fmt(f),
            Self::RingCertain(r) => {
                write!(f, "CERTAIN {} p{} {:?} {} {} ", r.instance, r.position, r.history, r.client, r.timestamp)?;
                r.outcome.fmt(f)
            }
            Self::Response(r) => {
                write!(f, "RESP {} p{} {:?} {} {} ", r.instance, r.position, r.history, r.client, r.timestamp)?;
                r.outcome.fmt(f)
            }
            Self::Cookie(CookieMessage::Ask(_)) => f.write_str("ASK"),
            Self::Cookie(CookieMessage::Given(_)) => f.write_str("GIVEN"),
            Self::Resilient(resilient) => resilient.fmt(f),
            Self::RingPace(pace) => pace.fmt(f),
            Self::Order(o) => write!(f, "ORDER {} p{} with {} requests", o.instance, o.first, o.requests.len()),
            Self::Chain(c) => {
                write!(f, "CHAIN {} p{} {:?} with {} requests", c.instance, c.first, c.history, c.requests.len())
            }
            Self::ChainReply(r) => {
                write!(f, "CHAIN-REPLY {} p{} {:?} {} {} ", r.instance, r.position, r.history, r.client, r.timestamp)?;
                r.outcome.fmt(f)
            }
            Self::Ring(RingMessage { instance, entry, body, strikes, stamp, .. }) => {
                match body {
                    Body::Requests(requests) => {
                        write!(f, "RING {instance} of {entry} with {} requests", requests.len())
                    }
                    Body::Probe(Probe { number, pass }) => {
                        write!(f, "PROBE {instance} of {entry} n{number} pass {pass}")
                    }
                    Body::Digest(digest) | Body::DigestAgain(digest) => {
                        write!(f, "ACK {instance} of {entry} for {digest:?}")
                    }
                }?;
                if let Some(Stamp { first, history, .. }) = stamp {
                    write!(f, " p{first} {history:?}")?;
                }
                if strikes.is_empty() { Ok(()) } else { write!(f, " but for {}", strikes.len()) }
            }
            Self::RingReply(r) => {
                write!(f, "RING-REPLY {} p{} {:?} {} {} ", r.instance, r.position, r.history, r.client, r.timestamp)?;
                r.outcome.fmt(f)
            }
        }
    }
}

impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let kind = match () {
            () if self.client.identity.is_joining() => "JOIN",
            () if is_leave(self.client) => "LEAVE",
            () if is_close(self) => "CLOSE",
            () if self.read_only => "QUERY",
            () if self.is_ordered_query() => "ORDERED-QUERY",
            () => "REQUEST",
        };
        write!(f, "{kind} {} {} {} bytes", self.client, self.timestamp, self.operation.len())
    }
}

impl Display for Reply {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { view, sequence, client, timestamp, firmness, outcome, .. } = self;
        write!(f, "REPLY {firmness:?} {view} {sequence} {client} {timestamp} ")?;
        outcome.fmt(f)
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Done { result, .. } => write!(f, "{} bytes", result.len()),
            Self::DoneDigest(digest) => write!(f, "digest {digest:?}"),
            Self::Refused(refusal) => write!(f, "refused {refusal:?}"),
        }
    }
}

impl Display for Switch {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { instance, message } = self;
        match message {
            SwitchMessage::Panic(panic) => write!(f, "PANIC {instance} {} {}", panic.client, panic.timestamp),
            SwitchMessage::Active(client) => write!(f, "ACTIVE {instance} to {client}"),
            SwitchMessage::Abort(signed) => {
                let report = &signed.value;
                write!(f, "ABORT {instance} of {} p{}..p{}", signed.signer, report.anchor.position, report.end())
            }
            SwitchMessage::Init(proof) => write!(f, "INIT {instance} with {} reports", proof.reports.len()),
            SwitchMessage::Behind(()) => write!(f, "BEHIND {instance}"),
            SwitchMessage::Fetch(fetch) => write!(f, "FETCH {instance} {} entries", fetch.0.len()),
            SwitchMessage::Bodies(bodies) => write!(f, "BODIES {instance} {} entries", bodies.0.len()),
            SwitchMessage::Lost(question) => write!(f, "LOST {instance} at {}", question.0),
            SwitchMessage::Here(question) => write!(f, "HERE {instance} to {}", question.0),
            SwitchMessage::Anchor(b) => write!(f, "ANCHOR {instance} p{} {:?} {:?}", b.position, b.history, b.root),
            SwitchMessage::Checkpoint(b) => write!(f, "LCS {instance} p{} {:?} {:?}", b.position, b.history, b.root),
        }
    }
}

impl Display for Resilient {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { instance, message } = self;
        match message {
            ResilientMessage::Order(order) => {
                let (end, requests) = (order.prepare.value.position, order.batch.entries.len());
                write!(f, "RING-ORDER {instance} p{}..p{end} with {requests} requests", order.first)
            }
            ResilientMessage::Prepare(signed) => {
                let Prepared { position, history, .. } = signed.value;
                write!(f, "PREP {instance} of {} p{position} {history:?}", signed.signer)
            }
            ResilientMessage::Commit(Commit { position, history }) => {
                write!(f, "COMM {instance} p{position} {history:?}")
            }
            ResilientMessage::Checkpoint(signed) => {
                let Boundary { position, history, root } = signed.value.boundary;
                write!(f, "RING-CHECKPOINT {instance} of {} p{position} {history:?} {root:?}", signed.signer)
            }
            ResilientMessage::Status(Status { logged, prepared, committed, anchor, .. }) => {
                let [prepared, committed] = [prepared, committed].map(|position| position.unwrap_or(0));
                write!(f, "RING-STATUS {instance} p{anchor}..p{logged} prepared p{prepared} committed p{committed}")
            }
            ResilientMessage::Stable(certificate) => {
                let Boundary { position, history, .. } = certificate.value.boundary;
                write!(f, "RING-STABLE {instance} p{position} {history:?}")
            }
            ResilientMessage::Fetch(fetch) => write!(f, "RING-FETCH {instance} {} requests", fetch.0.len()),
        }
    }
}

impl Display for RingPace {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { instance, message } = self;
        match message {
            PaceMessage::Ping(number) => write!(f, "PACE-PING {instance} n{number}"),
            PaceMessage::Pong(number) => write!(f, "PACE-PONG {instance} n{number}"),
            PaceMessage::Check(hops) => {
                write!(f, "PACE-CHECK {instance} {} with {} hops", hops.round, hops.hops.len())
            }
            PaceMessage::Report(hops) => write!(f, "PACE-REPORT {instance} {}", hops.round),
            PaceMessage::Ask(client) => write!(f, "PACE-ASK {instance} {client}"),
            PaceMessage::Delay(delay) => write!(f, "PACE-DELAY {instance} to {}", delay.client),
            PaceMessage::Vote(vote) => write!(f, "PACE-VOTE {instance} {} {:?}", vote.value.round, vote.value.pace),
        }
    }
}

impl Display for PbftMessage {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::PrePrepare(p) => {
                let requests = p.batch.entries.len();
                write!(f, "PRE-PREPARE {} {} {:?} with {requests} requests", p.view, p.sequence, p.digest())
            }
            Self::Prepare(vote) => write!(f, "PREPARE {} {} {:?}", vote.view, vote.sequence, vote.digest),
            Self::Commit(vote) => write!(f, "COMMIT {} {} {:?}", vote.view, vote.sequence, vote.digest),
            Self::ViewChange(signed) => {
                let change = &signed.value;
                let low = change.stable.value.sequence;
                write!(f, "VIEW-CHANGE of {} for {} above {low} P [", signed.signer, change.view)?;
                claims(f, &change.prepared)?;
                f.write_str("] Q [")?;
                claims(f, &change.pre_prepared)?;
                f.write_str("]")
            }
            Self::NewView(signed) => {
                write!(f, "NEW-VIEW {} chooses {} batches", signed.value.view, signed.value.chosen.len())
            }
            Self::Status(status) => {
                let changing = if status.changing { " changing" } else { "" };
                let abstaining = if status.abstaining { " abstaining" } else { "" };
                let pbft::Status { view, begun, stable, committed, .. } = status;
                write!(f, "STATUS {view}{changing}{abstaining} since {begun} stable {stable} committed {committed}")
            }
            Self::FetchBatch(position) => write!(f, "FETCH-BATCH {} {:?}", position.sequence, position.digest),
            Self::Batch(batch) => write!(f, "BATCH {:?} with {} requests", batch.digest(), batch.entries.len()),
            Self::FetchRequest(digest) => write!(f, "FETCH-REQUEST {digest:?}"),
            Self::Body(r) => write!(f, "BODY {} {} {} bytes", r.client, r.timestamp, r.operation.len()),
            Self::Decided(position) => write!(f, "DECIDED {} {:?}", position.sequence, position.digest),
            Self::Stable(proof) => write!(f, "STABLE {} {:?}", proof.value.sequence, proof.value.root),
            Self::Lost(question) => write!(f, "LOST at {}", question.0),
            Self::Here(here) => write!(f, "HERE {} committed {}", here.view, here.committed),
        }
    }
}

fn claims(f: &mut Formatter<'_>, claims: &[Claim]) -> Result {
    for (index, claim) in claims.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{} {:?} {}", claim.sequence, claim.digest, claim.view)?;
    }
    Ok(())
}

impl Display for TransferMessage {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::FetchNode { version, node } => write!(f, "FETCH-NODE {version:?} {node}"),
            Self::Node { version, node, .. } => write!(f, "NODE {version:?} {node}"),
            Self::FetchPage { version, number } => write!(f, "FETCH-PAGE {version:?} page {number}"),
            Self::Page { version, number, content } => {
                write!(f, "PAGE {version:?} page {number} {} bytes", content.len())
            }
            Self::Gone { version } => write!(f, "GONE {version:?}"),
        }
    }
}
