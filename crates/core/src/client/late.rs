//! Whom a client passes over, because it was late: Client 4 and 12 of the [module](super).
//!
//! * *Long results* come in full from one replica, and as a digest from the others. When enough others agree and the
//!   result is still missing after twice as long as they took, the client asks everybody again: they answer a request
//!   that they have executed in full.
//! * *Requests* go to one replica first where there is no primary (RITAS), and to all when they are not answered in
//!   time.
//!
//! Whose turn it is follows from the request's timestamp. Were clients to wait for that replica each time, one that is
//! down, slow or wants nobody to be served would cost each n-th request the time until it is asked again. So it is
//! passed over for some requests, whose timestamps the client chooses so that they are the turn of others
//! ([`crate::protocols::speculative::PassedOver`]).
//!
//! Nothing is believed that was not before: the result must have the digest that 2f+1 replicas sent, and whoever is
//! asked first decides nothing.

use super::Client;
use super::call::{Gist, Key};
use crate::ids::Timestamp;
use crate::machine::Outbox;
use crate::message::Request;
use crate::time::{Duration, Instant};

/// How long a client waits at least for a result in full: this part of `Limits::client_retry`.
const OWED_PART: u64 = 256;

impl Client {
    /// Enough agree on a result that somebody else should have sent in full by now.
    pub(super) fn wait_for_whole(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let least = Duration(self.cluster.limits.client_retry.0 / OWED_PART);
        let Some(call) = self.call.as_mut().filter(|call| !call.is_owed) else { return };
        call.is_owed = true;
        let at = now + least.max(Duration((now - call.asked).0.saturating_mul(2)));
        if at < call.retry_at {
            call.retry_at = at;
            self.set_retry(at, out);
        }
    }

    /// A call has waited in vain: for the result in full, if that is what it waits for, else for whoever was asked.
    pub(super) fn pass_over_who_is_late(&mut self, now: Instant, out: &mut Outbox<Self>) {
        let Some(call) = &mut self.call else { return };
        let is_owed = core::mem::take(&mut call.is_owed);
        let is_late = call.attempts == 0 && now - call.asked >= call.patience;
        let request = call.request.clone();
        if is_owed {
            out.step("Client 12");
            self.note_whole(request.timestamp, false);
        } else if is_late {
            self.note_turn(&request, false);
        }
    }

    /// A call is done, and nobody had to be asked again.
    pub(super) fn note_in_time(&mut self, request: &Request, key: &Key) {
        if matches!(key.gist, Gist::Digest(_)) {
            self.note_whole(request.timestamp, true);
        }
        self.note_turn(request, true);
    }

    /// A result came in full from whose turn that was, or did not in time.
    fn note_whole(&mut self, timestamp: Timestamp, in_time: bool) {
        let at = self.asking();
        self.memory.end_whole(&at, timestamp, in_time);
    }

    /// Whoever alone was asked first saw to a request in time, or did not.
    fn note_turn(&mut self, request: &Request, in_time: bool) {
        if self.asks_one(request) {
            let (part, at) = (self.part(), self.asking());
            self.memory.end_turn(part, &at, request.timestamp, in_time);
        }
    }
}
