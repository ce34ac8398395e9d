//! What the sessions of an engine ask for in one pass is signed together: one signature for up to
//! [`LEAVES_MAX`](bezant_core::auth::LEAVES_MAX) requests, each of which bears it with its own path
//! ([`bezant_core::auth::TreeSignature`]).
//!
//! Nothing waits for others to come: when a pass ends is when requests leave anyway. What a session sends again in a
//! later pass is signed again there, with whatever else leaves: sessions keep no signatures.

use super::driver::Driver;
use super::engine::{Engine, Unsigned};
use bezant_core::message::Request;
use bezant_core::registry::Message;

impl<D: Driver> Engine<D> {
    /// The pass ends: what was to be signed is signed, and all leaves.
    pub(super) fn let_out(&mut self) {
        let mut unsigned = std::mem::take(&mut self.unsigned);
        Request::sign_all(unsigned.iter_mut().map(|unsigned| &mut unsigned.request), &self.keyring);
        for Unsigned { session, to, request } in unsigned.drain(..) {
            self.send(session, to, &Message::Request(request));
        }
        self.unsigned = unsigned;
        self.hub.flush();
    }
}
