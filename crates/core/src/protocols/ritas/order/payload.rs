//! What a replica broadcasts: requests, with its clock.

use crate::auth::Keyring;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::InstanceId;
use crate::message::{Request, Vouched, are_of_distinct_clients};
use crate::time::Instant;
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use alloc::vec::Vec;

/// Requests in one payload, at most on the wire; `Limits::batch_requests_max` is checked on top.
const REQUESTS_MAX: usize = 1 << 16;

/// The requests that one replica has ordered together, and what it adds to what is agreed for them.
#[derive(Clone, Debug)]
pub struct Payload {
    /// The sender's clock.
    pub time: Instant,
    /// The sender's part of the seed.
    pub seed: Digest,
    /// Of distinct clients.
    pub requests: Vec<Request>,
}

impl Wire for Payload {
    fn encode(&self, out: &mut impl Sink) {
        self.time.encode(out);
        self.seed.encode(out);
        encode_list(&self.requests, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { time: Wire::decode(reader)?, seed: Wire::decode(reader)?, requests: reader.list(REQUESTS_MAX)? })
    }
}

impl Payload {
    /// Order 3. Whether a correct replica sends such a payload: its requests may be ordered, and each is its client's,
    /// by a signature, which convinces everybody alike. Every correct replica comes to the same answer. Who has chosen
    /// the requests itself has checked the signatures then.
    pub(super) fn is_sound(
        &mut self,
        (cluster, keyring): (&Cluster, &Keyring),
        instance: InstanceId,
        chosen: bool,
    ) -> bool {
        let limits = &cluster.limits;
        let bytes: usize = self.requests.iter().map(|request| request.operation.len()).sum();
        if self.requests.len() > limits.batch_requests_max
            || self.requests.len() > 1 && bytes > limits.batch_bytes_max
            || !self.requests.iter().all(|request| request.may_be_ordered(limits, instance))
            || !are_of_distinct_clients(self.requests.iter())
        {
            return false;
        }
        if chosen {
            self.requests.iter_mut().for_each(|request| request.vouched = Vouched::Signature);
        } else {
            vouch(cluster, keyring, &mut self.requests);
        }
        self.requests.iter().all(|request| request.vouched != Vouched::No)
    }
}

/// Finds out which requests convince everybody that they are their clients': by a signature.
pub(super) fn vouch(cluster: &Cluster, keyring: &Keyring, requests: &mut [Request]) {
    for request in requests.iter_mut().filter(|request| request.is_system()) {
        request.vouch_by_mac(cluster, keyring);
    }
    Request::vouch_signatures(requests.iter_mut().filter(|request| !request.is_system()), cluster, keyring);
    for request in requests.iter_mut().filter(|request| !request.is_system()) {
        if request.vouched != Vouched::Signature {
            request.vouched = Vouched::No;
        }
    }
}
