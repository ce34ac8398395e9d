//! What a liar says, well formed: for [`crate::testing::net::Net::forge`].

use crate::auth::{Claimed, Signed};
use crate::batch::{Batch, Entry};
use crate::checkpoint::Evidence;
use crate::digest::Digest;
use crate::ids::{Sequence, View};
use crate::message::Request;
use crate::protocols::pbft::{Claim, NewView, PbftMessage, PrePrepare, ViewChange, Vote};
use crate::registry::Message;
use crate::service::{Proposal, Service};
use crate::testing::net::{INSTANCE, Net, ordering, r};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A client's request with its proof.
pub(crate) fn request<S: Service>(net: &Net<S>, session: u32, timestamp: u64, operation: &[u8]) -> Request {
    net.request(INSTANCE, session, timestamp, operation)
}

/// A batch of small requests, proposed at this time.
pub(crate) fn batch(time: Instant, requests: Vec<Request>) -> Arc<Batch> {
    let proposal = Proposal { time, seed: Digest::ZERO };
    Arc::new(Batch::new(proposal, requests.into_iter().map(Entry::Inline).collect()))
}

/// PRE-PREPARE.
pub(crate) fn pre_prepare(view: u64, sequence: u64, batch: &Arc<Batch>) -> Message {
    let (view, sequence) = (View(view), Sequence(sequence));
    ordering(PbftMessage::PrePrepare(PrePrepare { view, sequence, batch: batch.clone() }))
}

const fn vote(view: u64, sequence: u64, digest: Digest) -> Vote {
    Vote { view: View(view), sequence: Sequence(sequence), digest }
}

/// PREPARE.
pub(crate) const fn prepare(view: u64, sequence: u64, digest: Digest) -> Message {
    ordering(PbftMessage::Prepare(vote(view, sequence, digest)))
}

/// COMMIT.
pub(crate) const fn commit(view: u64, sequence: u64, digest: Digest) -> Message {
    ordering(PbftMessage::Commit(vote(view, sequence, digest)))
}

/// One entry of P or Q.
pub(crate) const fn claim(view: u64, sequence: u64, digest: Digest) -> Claim {
    Claim { sequence: Sequence(sequence), digest, view: View(view) }
}

/// A VIEW-CHANGE above the state before the first batch, signed.
pub(crate) fn signed_view_change<S: Service>(
    net: &Net<S>,
    signer: u8,
    view: u64,
    prepared: Vec<Claim>,
    pre_prepared: Vec<Claim>,
) -> Claimed<Signed<ViewChange>> {
    let root = net.hosts[0].replica.report().stable_root;
    let stable = Evidence::genesis(INSTANCE, root).claim();
    net.keyring(r(signer)).sign(ViewChange { view: View(view), stable, prepared, pre_prepared }).into()
}

/// VIEW-CHANGE of a replica that has seen nothing.
pub(crate) fn view_change<S: Service>(net: &Net<S>, signer: u8, view: u64) -> Message {
    let signed = signed_view_change(net, signer, view, Vec::new(), Vec::new());
    ordering(PbftMessage::ViewChange(Box::new(signed)))
}

/// NEW-VIEW.
pub(crate) fn new_view<S: Service>(
    net: &Net<S>,
    signer: u8,
    view: u64,
    view_changes: Vec<Claimed<Signed<ViewChange>>>,
    chosen: Vec<Digest>,
) -> Message {
    let signed = net.keyring(r(signer)).sign(NewView { view: View(view), view_changes, chosen });
    ordering(PbftMessage::NewView(Arc::new(signed.into())))
}
