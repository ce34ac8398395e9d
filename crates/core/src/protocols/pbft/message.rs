//! What PBFT's replicas say to one another.

use crate::auth::{Certificate, Claimed, Keyring, Signable, Signed};
use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal, Sequence, View};
use crate::message::Request;
use crate::rejection::Rejection;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::time::Instant;
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// First byte of a PRE-PREPARE's statement.
const PRE_PREPARE: u8 = 0xa1;

/// Most P or Q entries in a VIEW-CHANGE.
const CLAIMS_MAX: usize = 1 << 14;

/// PRE-PREPARE(v, n, batch): the primary's proposal.
#[derive(Clone, Debug)]
pub struct PrePrepare {
    /// v.
    pub view: View,
    /// n.
    pub sequence: Sequence,
    /// The batch, shared with the slot that holds it.
    pub batch: alloc::sync::Arc<Batch>,
}
wire_struct!(PrePrepare { view, sequence, batch });

impl PrePrepare {
    /// d.
    pub fn digest(&self) -> Digest {
        self.batch.digest()
    }
}

/// PREPARE(v, n, d) or COMMIT(v, n, d), by the message that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// v.
    pub view: View,
    /// n.
    pub sequence: Sequence,
    /// d.
    pub digest: Digest,
}
wire_struct!(Vote { view, sequence, digest });

/// One entry of P or Q in a VIEW-CHANGE: the digest at a sequence number and the view in which it prepared (P) or
/// was last pre-prepared (Q).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// n.
    pub sequence: Sequence,
    /// d.
    pub digest: Digest,
    /// v.
    pub view: View,
}
wire_struct!(Claim { sequence, digest, view });

/// VIEW-CHANGE(v, h, C, P, Q): what a replica brings into view v.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// The view that it wants.
    pub view: View,
    /// Its stable checkpoint with the proof: h and C.
    pub stable: Claimed<Certificate<Checkpoint>>,
    /// Prepared: at most one per sequence number, ascending.
    pub prepared: Vec<Claim>,
    /// Pre-prepared: at most one per sequence number, ascending.
    pub pre_prepared: Vec<Claim>,
}

impl Wire for ViewChange {
    fn encode(&self, out: &mut impl Sink) {
        self.view.encode(out);
        self.stable.encode(out);
        encode_list(&self.prepared, out);
        encode_list(&self.pre_prepared, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let view = Wire::decode(reader)?;
        let stable = Wire::decode(reader)?;
        let prepared: Vec<Claim> = reader.list(CLAIMS_MAX)?;
        let pre_prepared: Vec<Claim> = reader.list(CLAIMS_MAX)?;
        let ascending = |claims: &[Claim]| claims.windows(2).all(|pair| pair[0].sequence < pair[1].sequence);
        if ascending(&prepared) && ascending(&pre_prepared) {
            Ok(Self { view, stable, prepared, pre_prepared })
        } else {
            Err(WireError::NotCanonical)
        }
    }
}

impl Signable for ViewChange {
    const KIND: u8 = 3;
}

/// NEW-VIEW(v, V, X): the view changes that justify view v and the batches that they force. Every backup computes X
/// from V again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewView {
    /// v.
    pub view: View,
    /// V: at least 2f+1, by ascending signer.
    pub view_changes: Vec<Claimed<Signed<ViewChange>>>,
    /// X: the digests chosen for h+1, h+2, … After those that V forces, null batches may follow.
    pub chosen: Vec<Digest>,
}

/// The positions of what was chosen above h.
pub(super) fn positions(low: Sequence, chosen: &[Digest]) -> impl Iterator<Item = (Sequence, Digest)> {
    (low.0 + 1..).map(Sequence).zip(chosen.iter().copied())
}

impl Wire for NewView {
    fn encode(&self, out: &mut impl Sink) {
        self.view.encode(out);
        encode_list(&self.view_changes, out);
        encode_list(&self.chosen, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let view = Wire::decode(reader)?;
        let view_changes: Vec<Claimed<Signed<ViewChange>>> = reader.list(crate::replicas::REPLICAS_MAX)?;
        if view_changes.windows(2).any(|pair| pair[0].signer() >= pair[1].signer()) {
            return Err(WireError::NotCanonical);
        }
        Ok(Self { view, view_changes, chosen: reader.list(CLAIMS_MAX)? })
    }
}

impl Signable for NewView {
    const KIND: u8 = 4;
}

impl NewView {
    /// The most bytes of one that a correct primary sends: all have left, and each claims all that a window holds.
    pub fn bytes_max(cluster: &Cluster) -> u64 {
        /// Sequence number, digest, view.
        const CLAIM: u64 = 48;
        /// Signer, signature.
        const SIGNATURE: u64 = 65;
        let (n, window) = (cluster.replicas.n() as u64, cluster.window());
        let view_change = 160 + SIGNATURE * n + 2 * CLAIM * window;
        256 + n * view_change + Digest::BYTES as u64 * window
    }

    /// Whether all that a correct replica has to say for a view change, and its primary, can be said.
    pub fn fits(cluster: &Cluster, bytes: usize) -> bool {
        cluster.window() <= CLAIMS_MAX as u64 && Self::bytes_max(cluster) <= bytes as u64
    }
}

/// STATUS: what a replica has; the others send what it lacks. Our retransmission, in place of the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The view it is in or wants.
    pub view: View,
    /// Whether it has left the previous view and waits for NEW-VIEW.
    pub changing: bool,
    /// Its last stable checkpoint.
    pub stable: Sequence,
    /// The last batch that it knows to be committed, without a gap before it.
    pub committed: Sequence,
    /// The last view whose beginning it knows, entered or not.
    pub begun: View,
    /// What it knows of that: the same as others do, unless its primary lies.
    pub way: Digest,
    /// Whether it lost its log and does not vote yet.
    pub abstaining: bool,
    /// Whether it finds that the view it is in has failed ([`crate::protocols::aardvark`]).
    pub failing: bool,
}
wire_struct!(Status { view, changing, stable, committed, begun, way, abstaining, failing });

/// HERE: the answer to LOST. What the one that asks may have heard from its author, or its author from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here {
    /// The question's time, which no earlier answer carries.
    pub question: Instant,
    /// The view that its author is in or wants.
    pub view: View,
    /// The last batch that its author knows to be committed, without a gap before it.
    pub committed: Sequence,
}
wire_struct!(Here { question, view, committed });

/// A batch by position and digest: asked for, or said to be committed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// n.
    pub sequence: Sequence,
    /// d.
    pub digest: Digest,
}
wire_struct!(Position { sequence, digest });

/// A message of the total order PBFT within an instance.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// The instance that it belongs to (abs-D1).
    pub instance: InstanceId,
    /// What PBFT says.
    pub message: PbftMessage,
}
wire_struct!(Ordering { instance, message });

/// Everything that PBFT says.
#[derive(Clone, Debug)]
pub enum PbftMessage {
    /// The primary proposes.
    PrePrepare(PrePrepare),
    /// A backup accepts the proposal.
    Prepare(Vote),
    /// A replica holds a prepared certificate.
    Commit(Vote),
    /// A replica leaves its view.
    ViewChange(Box<Claimed<Signed<ViewChange>>>),
    /// The primary of a view begins it.
    NewView(alloc::sync::Arc<Claimed<Signed<NewView>>>),
    /// What I have.
    Status(Status),
    /// Send me this batch.
    FetchBatch(Position),
    /// The batch asked for.
    Batch(alloc::sync::Arc<Batch>),
    /// Send me this request.
    FetchRequest(Digest),
    /// The request asked for: its digest says that it is the right one.
    Body(Box<Request>),
    /// I know this to be committed: f+1 of these are a proof to the receiver (pbft-F21).
    Decided(Position),
    /// A stable checkpoint with its proof.
    Stable(Box<Claimed<Certificate<Checkpoint>>>),
    /// I lost my log, and ask at this time: what may I have said?
    Lost(Instant),
    /// Where its author is.
    Here(Here),
}
wire_enum!(PbftMessage {
    1 => PrePrepare,
    2 => Prepare,
    3 => Commit,
    4 => ViewChange,
    5 => NewView,
    6 => Status,
    7 => FetchBatch,
    8 => Batch,
    9 => FetchRequest,
    10 => Body,
    11 => Decided,
    12 => Stable,
    13 => Lost,
    14 => Here,
});

impl fmt::Display for PbftMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PrePrepare(p) => {
                let requests = p.batch.entries().len();
                write!(f, "PRE-PREPARE {} {} {:?} with {requests} requests", p.view, p.sequence, p.digest())
            }
            Self::Prepare(vote) => write!(f, "PREPARE {} {} {:?}", vote.view, vote.sequence, vote.digest),
            Self::Commit(vote) => write!(f, "COMMIT {} {} {:?}", vote.view, vote.sequence, vote.digest),
            Self::ViewChange(signed) => {
                let change = &signed.claims();
                let low = change.stable.claims().sequence;
                write!(f, "VIEW-CHANGE of {} for {} above {low} P [", signed.signer(), change.view)?;
                claims(f, &change.prepared)?;
                f.write_str("] Q [")?;
                claims(f, &change.pre_prepared)?;
                f.write_str("]")
            }
            Self::NewView(signed) => {
                write!(f, "NEW-VIEW {} chooses {} batches", signed.claims().view, signed.claims().chosen.len())
            }
            Self::Status(status) => {
                let changing = if status.changing { " changing" } else { "" };
                let abstaining = if status.abstaining { " abstaining" } else { "" };
                let failing = if status.failing { " failing" } else { "" };
                let Status { view, begun, stable, committed, .. } = status;
                write!(
                    f,
                    "STATUS {view}{changing}{abstaining}{failing} since {begun} stable {stable} committed {committed}"
                )
            }
            Self::FetchBatch(position) => write!(f, "FETCH-BATCH {} {:?}", position.sequence, position.digest),
            Self::Batch(batch) => write!(f, "BATCH {:?} with {} requests", batch.digest(), batch.entries().len()),
            Self::FetchRequest(digest) => write!(f, "FETCH-REQUEST {digest:?}"),
            Self::Body(r) => write!(f, "BODY {} {} {} bytes", r.client, r.timestamp, r.operation.len()),
            Self::Decided(position) => write!(f, "DECIDED {} {:?}", position.sequence, position.digest),
            Self::Stable(proof) => write!(f, "STABLE {} {:?}", proof.claims().sequence, proof.claims().root),
            Self::Lost(question) => write!(f, "LOST at {}", question.0),
            Self::Here(here) => write!(f, "HERE {} committed {}", here.view, here.committed),
        }
    }
}

fn claims(f: &mut fmt::Formatter<'_>, claims: &[Claim]) -> fmt::Result {
    for (index, claim) in claims.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{} {:?} {}", claim.sequence, claim.digest, claim.view)?;
    }
    Ok(())
}

impl fmt::Display for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

impl Spoken for Ordering {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    /// Of a proposal, the digest of its batch: the bytes of the requests are hashed once, and not for each receiver.
    fn cover(&self) -> Cover {
        match &self.message {
            PbftMessage::PrePrepare(proposal) => {
                let mut summary = Vec::with_capacity(64);
                summary.push(PRE_PREPARE);
                self.instance.encode(&mut summary);
                proposal.view.encode(&mut summary);
                proposal.sequence.encode(&mut summary);
                proposal.digest().encode(&mut summary);
                Cover::Summary(summary)
            }
            PbftMessage::Prepare(_)
            | PbftMessage::Commit(_)
            | PbftMessage::ViewChange(_)
            | PbftMessage::NewView(_)
            | PbftMessage::Status(_)
            | PbftMessage::FetchBatch(_)
            | PbftMessage::Batch(_)
            | PbftMessage::FetchRequest(_)
            | PbftMessage::Body(_)
            | PbftMessage::Decided(_)
            | PbftMessage::Stable(_)
            | PbftMessage::Lost(_)
            | PbftMessage::Here(_) => Cover::Whole,
        }
    }

    fn may_overtake(&self) -> bool {
        false
    }

    /// Clients' proofs are checked when that is due: those in a proposal in PBFT 3, that of a body if it was asked for.
    fn admit(&mut self, from: Principal, _: &Cluster, _: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Authenticator, PATH_MAX, Signature, Tag, TreeSignature};
    use crate::batch::Entry;
    use crate::cluster::{ClientAuth, Limits};
    use crate::ids::{ClientId, IdentityId, InstanceId, ReplicaId, Timestamp};
    use crate::joining::Credential;
    use crate::protocols::pbft::Ordering;
    use crate::registry::Message;
    use crate::wire::FRAME_BYTES_MAX;

    use crate::service::Proposal;
    use alloc::sync::Arc;
    use alloc::vec;
    use bytes::Bytes;

    fn cluster(n: usize, limits: Limits) -> Cluster {
        Cluster::new([0; 16], n, (n - 1) / 3, ClientAuth::Hybrid, limits).unwrap()
    }

    fn bytes_of(message: PbftMessage) -> u64 {
        let message = Message::Ordering(Ordering { instance: InstanceId(1), message });
        (message.length() + Tag::BYTES) as u64
    }

    #[test]
    fn no_new_view_is_longer_than_is_said() {
        for (n, checkpoint_interval) in [(1, 1), (4, 128), (64, 7)] {
            let cluster = cluster(n, Limits { checkpoint_interval, ..Limits::default() });
            let claim = |sequence| Claim { sequence: Sequence(sequence), digest: Digest::ZERO, view: View(0) };
            let claims: Vec<Claim> = (1..=cluster.window()).map(claim).collect();
            let signature = Signature([0; 64]);
            let mut stable = crate::checkpoint::Evidence::genesis(InstanceId(1), Digest::ZERO).claim();
            *stable.signatures_mut() = cluster.replicas.iter().map(|id| (id, signature)).collect();
            let value = ViewChange { view: View(1), stable, prepared: claims.clone(), pre_prepared: claims };
            let signed = |signer| Claimed::signed(value.clone(), signer, signature);
            let view_changes = cluster.replicas.iter().map(signed).collect();
            let chosen = vec![Digest::ZERO; cluster.window() as usize];
            let value = NewView { view: View(1), view_changes, chosen };
            let new_view = PbftMessage::NewView(Arc::new(Claimed::signed(value, ReplicaId(0), signature)));
            assert!(bytes_of(new_view) <= NewView::bytes_max(&cluster));
        }
    }

    #[test]
    fn no_proposal_is_longer_than_is_said() {
        for (n, number, size) in [(1, 1, 0), (4, 1024, 4), (64, 100, 900)] {
            let limits = Limits { batch_requests_max: number, batch_bytes_max: number * size, ..Limits::default() };
            let cluster = cluster(n, limits);
            let client = ClientId { identity: IdentityId::MEMBERS, session: 0 };
            let credential = Credential { key: crate::ids::PublicKey([0; 32]), session: Default::default() };
            let operation = Bytes::from(vec![0; size]);
            let mut request = Request::of_stranger(InstanceId(1), client, credential, Timestamp(1), false, operation);
            request.authentication.tags = (0..n).map(|_| Tag::from_bytes([0; 16])).collect::<Authenticator>();
            let signature = Signature([0; 64]);
            let path = vec![Digest::ZERO; PATH_MAX];
            request.authentication.signature = Some(TreeSignature { signature, sides: 0, path });
            let batch = Arc::new(Batch::new(Proposal::default(), vec![Entry::Inline(request); number]));
            let proposal = PbftMessage::PrePrepare(PrePrepare { view: View(0), sequence: Sequence(1), batch });
            assert!(bytes_of(proposal) <= Batch::bytes_max(&cluster));
        }
    }

    /// What would be too long to be said stops the service at the first view change, or at the first burst of requests.
    #[test]
    fn a_cluster_whose_messages_would_be_too_long_is_refused() {
        let objection = |n, limits| crate::compositions::objection(&cluster(n, limits));
        let intervals = |checkpoint_interval| Limits { checkpoint_interval, ..Limits::default() };
        assert_eq!([1, 4, 64].map(|n| objection(n, Limits::default())), [None; 3]);
        assert_eq!([objection(4, intervals(8_192)), objection(64, intervals(600))], [None; 2]);
        assert!(objection(1, intervals(8_193)).is_some(), "more claims than are read");
        assert!(objection(64, intervals(800)).is_some(), "longer than a frame");
        let requests =
            |batch_requests_max| Limits { batch_requests_max, batch_bytes_max: 4 << 20, ..Limits::default() };
        assert_eq!(objection(4, requests(8_192)), None);
        assert!(objection(13, requests(8_192)).is_some());
        assert!(NewView::fits(&cluster(4, Limits::default()), FRAME_BYTES_MAX));
    }
}
