//! What a total order orders: batches of requests with the values agreed for them.

use crate::auth::{PATH_MAX, Tag};
use crate::cluster::Cluster;
use crate::digest::{Digest, Domain};
use crate::ids::{Sequence, View};
use crate::message::{Request, Vouched};
use crate::service::Proposal;
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::{wire_enum, wire_struct};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// Most requests that a batch may name on the wire; `Limits::batch_requests_max` is checked on top.
const ENTRIES_MAX: usize = 1 << 16;

/// One request of a batch: in full, or by digest when the client sends the body to every replica itself (pbft-F22).
#[derive(Clone, Debug)]
pub enum Entry {
    /// The request with its client's proof.
    Inline(Request),
    /// A big request, by reference.
    Reference(Reference),
}
wire_enum!(Entry { 0 => Inline, 1 => Reference });

/// A big request by its digest. Whose it is, and all else that is believed of it, is read from the request itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// D(req): this is what is ordered.
    pub digest: Digest,
    /// Bytes of its operation, so that what has to be fetched is bounded before any of it comes. Nobody accepts the
    /// batch if the request has another length.
    pub length: u32,
}
wire_struct!(Reference { digest, length });

impl Reference {
    /// To this request.
    pub fn to(request: &Request) -> Self {
        let length = u32::try_from(request.operation.len()).expect("an operation fits into a frame");
        Self { digest: request.digest(), length }
    }

    /// Whether this is the request, as long as the reference says.
    pub fn fits(&self, request: &Request) -> bool {
        self.digest == request.digest() && self.length as usize == request.operation.len()
    }
}

impl Entry {
    /// D(req).
    pub const fn digest(&self) -> Digest {
        match self {
            Self::Inline(request) => request.digest(),
            Self::Reference(reference) => reference.digest,
        }
    }

    /// Bytes of its operation.
    pub const fn length(&self) -> usize {
        match self {
            Self::Inline(request) => request.operation.len(),
            Self::Reference(reference) => reference.length as usize,
        }
    }

    /// The request, if it stands here.
    pub const fn inline(&self) -> Option<&Request> {
        match self {
            Self::Inline(request) => Some(request),
            Self::Reference(_) => None,
        }
    }

    /// The reference, if it is one.
    pub const fn reference(&self) -> Option<&Reference> {
        match self {
            Self::Inline(_) => None,
            Self::Reference(reference) => Some(reference),
        }
    }
}

/// What is agreed at one sequence number: the proposed values and the requests, in order. The null batch, which
/// fills gaps in a new view, has no requests and proposes nothing.
#[derive(Clone, Debug)]
pub struct Batch {
    proposal: Proposal,
    entries: Vec<Entry>,
    digest: Digest,
}

impl Batch {
    /// A batch and its digest. One digest means one encoding, but for the instance in each request, which every reader
    /// compares with its own, and the clients' proofs: were a request in full and one by reference equal under it,
    /// replicas could commit the same digest and be left without the body that others hold.
    pub fn new(proposal: Proposal, entries: Vec<Entry>) -> Self {
        let mut bytes = Vec::with_capacity(40 + 37 * entries.len());
        proposal.encode(&mut bytes);
        for entry in &entries {
            match entry {
                Entry::Inline(request) => {
                    bytes.push(0);
                    request.digest().encode(&mut bytes);
                }
                Entry::Reference(reference) => {
                    bytes.push(1);
                    reference.encode(&mut bytes);
                }
            }
        }
        let digest = Digest::of(Domain::Batch, &bytes);
        Self { proposal, entries, digest }
    }

    /// Agreed time and seed as proposed.
    pub const fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// The requests.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The requests that it carries itself, for whoever finds out whether they are their clients': only that may
    /// change.
    pub(crate) fn inline_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Inline(request) => Some(request),
            Entry::Reference(_) => None,
        })
    }

    /// The most bytes of one that a correct replica proposes, and of the message around it: every request stands in it,
    /// with a credential and all its proofs.
    pub fn bytes_max(cluster: &Cluster) -> u64 {
        let limits = &cluster.limits;
        let request = 153 + PATH_MAX * Digest::BYTES + Tag::BYTES * cluster.replicas.n();
        let operations = limits.batch_bytes_max.max(limits.operation_bytes_max.min(limits.inline_bytes_max));
        (256 + limits.batch_requests_max * request + operations) as u64
    }

    /// The null batch.
    pub fn null() -> Self {
        Self::new(Proposal::default(), Vec::new())
    }

    /// Over the proposed values, the digests of the requests, and whether each stands here or by reference.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether it is the null batch.
    pub fn is_null(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of its operations, wherever they are.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(Entry::length).sum()
    }

    /// Bytes of operations that it carries itself.
    pub fn inline_bytes(&self) -> usize {
        self.entries.iter().filter(|entry| entry.reference().is_none()).map(Entry::length).sum()
    }

    /// The requests that are not in it themselves.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.entries.iter().filter_map(Entry::reference)
    }

    /// Whether every inline request is known to be its client's.
    pub fn is_vouched(&self) -> bool {
        self.entries.iter().all(|entry| !matches!(entry, Entry::Inline(r) if r.vouched == Vouched::No))
    }
}

impl Wire for Batch {
    fn encode(&self, out: &mut impl Sink) {
        self.proposal.encode(out);
        encode_list(&self.entries, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        // Requests with a body in the batch are small: they become slices of one copy.
        reader.detach(usize::MAX);
        let proposal = Wire::decode(reader)?;
        let entries = reader.list(ENTRIES_MAX)?;
        Ok(Self::new(proposal, entries))
    }
}

/// A batch at its place with everything needed to execute it.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// Its place.
    pub sequence: Sequence,
    /// The view in which it was ordered, for tentative replies.
    pub view: View,
    /// The batch.
    pub batch: Arc<Batch>,
    /// The requests that the batch names by reference only, in the batch's order.
    pub bodies: Vec<Request>,
    /// What the order has to know to go on after it, if it wants that to be a part of the state.
    pub standing: Option<Bytes>,
}

impl Ordered {
    /// The requests in their order, wherever their bodies are.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        let mut bodies = self.bodies.iter();
        self.batch.entries.iter().map(move |entry| match entry {
            Entry::Inline(request) => request,
            Entry::Reference(_) => bodies.next().expect("delivered with every body"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ClientId, InstanceId, Timestamp};
    use alloc::vec;
    use bytes::Bytes;

    #[test]
    fn one_digest_means_one_encoding() {
        let request =
            Request::new(InstanceId(1), ClientId::default(), Timestamp(1), false, Bytes::from_static(b"operation"));
        let reference = Reference::to(&request);
        let longer = Reference { length: reference.length + 1, ..reference };
        let forms = [Entry::Inline(request), Entry::Reference(reference), Entry::Reference(longer)];
        let digests = forms.map(|entry| Batch::new(Proposal::default(), vec![entry]).digest());
        assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
    }
}
