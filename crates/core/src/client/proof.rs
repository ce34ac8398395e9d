//! The proof that a client gives with a request: as the cluster's mode asks for it, and where that is MACs alone, a
//! signature as well after it had to ask again. Its MACs may not have held everywhere, or the view has failed and
//! replicas order only what is signed (pbft-F20, `protocols/pbft/careful.rs`).

use super::Client;
use crate::cluster::ClientAuth;
use crate::message::{Form, Request};
use crate::time::{Duration, Instant};
use bytes::Bytes;

/// For how many times `Limits::view_timeout` it goes on signing: somewhat longer than replicas ask for that.
const SIGNS_FOR: u64 = 40;

impl Client {
    pub(super) fn request(&mut self, now: Instant, form: Form, operation: Bytes) -> Request {
        let timestamp = self.next_timestamp(now);
        self.prove(now, self.compose(timestamp, form, operation))
    }

    /// Adds this client's proof, but for a signature that its host adds.
    pub(super) fn prove(&self, now: Instant, request: Request) -> Request {
        let request = match self.host_signs {
            true => request.authenticate_unsigned(&self.cluster, &self.keyring),
            false => request.authenticate(&self.cluster, &self.keyring),
        };
        let is_signed = now < self.signs_until && !request.read_only;
        if is_signed { request.sign(&self.keyring) } else { request }
    }

    /// Client 4. It has to ask again.
    pub(super) fn sign_for_a_while(&mut self, now: Instant) {
        if self.cluster.client_auth != ClientAuth::Mac {
            return;
        }
        self.signs_until = now + Duration(self.cluster.limits.view_timeout.0.saturating_mul(SIGNS_FOR));
        if let Some(call) = self.call.as_mut().filter(|call| call.request.authentication.signature.is_none()) {
            call.request = call.request.clone().sign(&self.keyring);
        }
    }
}
