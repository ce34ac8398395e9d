//! What a total order orders: batches of requests with the values agreed for them.

use crate::auth::Keyring;
use crate::cluster::{ClientAuth, ClientId, Cluster, Timestamp};
use crate::digest::{Digest, Domain};
use crate::message::{Request, Vouched};
use crate::service::Proposal;
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::{wire_enum, wire_struct};
use alloc::vec::Vec;

/// Most requests that a batch may name on the wire; `Limits::batch_requests_max` is checked on top.
const ENTRIES_MAX: usize = 1 << 16;

/// One request of a batch: in full, or by digest when the client sends the body to every replica itself (F22).
#[derive(Clone, Debug)]
pub enum Entry {
    /// The request with its client's proof.
    Inline(Request),
    /// A big request, by reference.
    Reference(Reference),
}
wire_enum!(Entry { 0 => Inline, 1 => Reference });

/// A big request by its digest; client and timestamp tell a replica where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Whose request.
    pub client: ClientId,
    /// Which one.
    pub timestamp: Timestamp,
    /// Its digest: this is what is ordered.
    pub digest: Digest,
}
wire_struct!(Reference { client, timestamp, digest });

impl Entry {
    /// Whose request.
    pub const fn client(&self) -> ClientId {
        match self {
            Self::Inline(request) => request.client,
            Self::Reference(reference) => reference.client,
        }
    }

    /// D(req).
    pub const fn digest(&self) -> Digest {
        match self {
            Self::Inline(request) => request.digest(),
            Self::Reference(reference) => reference.digest,
        }
    }
}

/// What is agreed at one sequence number: the proposed values and the requests, in order. The null batch, which
/// fills gaps in a new view, has no requests and proposes nothing.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Agreed time and seed as proposed.
    pub proposal: Proposal,
    /// The requests.
    pub entries: Vec<Entry>,
    digest: Digest,
}

impl Batch {
    /// A batch and its digest.
    pub fn new(proposal: Proposal, entries: Vec<Entry>) -> Self {
        let mut bytes = Vec::with_capacity(40 + 32 * entries.len());
        proposal.encode(&mut bytes);
        for entry in &entries {
            bytes.extend_from_slice(&entry.digest().0);
        }
        let digest = Digest::of(Domain::Batch, &bytes);
        Self { proposal, entries, digest }
    }

    /// The null batch.
    pub fn null() -> Self {
        Self::new(Proposal::default(), Vec::new())
    }

    /// Over the proposed values and the digests of the requests.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether it is the null batch.
    pub fn is_null(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of operations that it carries itself.
    pub fn inline_bytes(&self) -> usize {
        self.entries.iter().map(|entry| if let Entry::Inline(r) = entry { r.operation.len() } else { 0 }).sum()
    }

    /// Checks which inline requests are their clients': by this replica's MAC entries, and whatever they leave open
    /// by signature, all at once.
    pub fn vouch(&mut self, cluster: &Cluster, keyring: &Keyring) {
        let mut open = Vec::new();
        for entry in &mut self.entries {
            if let Entry::Inline(request) = entry
                && !request.vouch_by_mac(cluster, keyring)
            {
                open.push(request);
            }
        }
        if cluster.client_auth != ClientAuth::Mac && !open.is_empty() {
            Request::vouch_signatures(open.into_iter(), cluster, keyring);
        }
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
