//! Long results come in full from one replica, and as a digest from the others: Client 12 of the [module](super).
//!
//! Whose turn it is follows from the request's timestamp. Were clients to wait for that replica, one that is down, slow
//! or wants nobody to have long results would cost each n-th request the time until it is asked again. So when enough
//! others agree and the result is still missing after twice as long as they took, the client asks everybody again:
//! they answer a request that they have executed in full. And it passes that replica over for some requests, whose
//! timestamps it chooses so that they are the turn of others ([`crate::protocols::speculative::PassedOver`]).
//!
//! Nothing is believed that was not before: the result must have the digest that 2f+1 replicas sent.

use super::Client;
use crate::ids::Timestamp;
use crate::machine::Outbox;
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

    /// The time for the result in full is over, if that is what the call waits for.
    pub(super) fn pass_over_who_is_late(&mut self, out: &mut Outbox<Self>) {
        let Some(call) = self.call.as_mut().filter(|call| call.is_owed) else { return };
        call.is_owed = false;
        let timestamp = call.request.timestamp;
        out.step("Client 12");
        self.end_whole(timestamp, false);
    }

    /// A result came in full from whose turn that was, or did not in time.
    pub(super) fn end_whole(&mut self, timestamp: Timestamp, in_time: bool) {
        let at = self.asking();
        self.memory.end_whole(&at, timestamp, in_time);
    }
}
