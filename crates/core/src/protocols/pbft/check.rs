//! What a backup checks of a proposal: the bounds of a batch, and what it is about. PBFT 3 and 4.

use super::replica::{Ctx, Pbft};
use crate::batch::{Batch, Entry};
use crate::ids::Sequence;
use crate::message::{Request, Vouched, are_of_distinct_clients};
use crate::rejection::Rejection;
use crate::service::Proposal;
use alloc::vec::Vec;

impl Pbft {
    /// The bounds that every batch keeps, and no client twice: what a correct primary never breaks, as far as it can be
    /// seen without the requests that the batch only refers to. The same for every copy with one digest, but for the
    /// instance.
    pub(super) fn check_batch(&self, context: &Ctx<'_>, batch: &Batch) -> Result<(), Rejection> {
        let limits = &context.cluster.limits;
        let well_formed = batch.entries().iter().all(|entry| {
            let is_big = entry.length() > limits.inline_bytes_max;
            is_big == entry.reference().is_some()
                && entry.inline().is_none_or(|request| request.may_be_ordered(limits, context.instance))
        });
        let distinct = are_of_distinct_clients(batch.entries().iter().filter_map(Entry::inline));
        let sized = batch.entries().len() <= limits.batch_requests_max
            && (batch.entries().len() <= 1 || batch.bytes() <= limits.batch_bytes_max);
        if well_formed && distinct && sized && !batch.is_null() { Ok(()) } else { Err(Rejection::BadBatch) }
    }

    /// Whether a fresh batch that is here with its bodies is what a correct primary proposes. Of a request that it
    /// refers to, everything is read from the request itself: whose it is, and whether it is an INIT.
    pub(super) fn is_acceptable(&mut self, context: &mut Ctx<'_>, sequence: Sequence, batch: &Batch) -> bool {
        let requests: Vec<&Request> = self.requests(batch).collect();
        // While INIT is awaited, a batch without one would only fill the window. It is looked at again later.
        let may_be_next = !self.awaits_init || requests.iter().any(|request| request.is_system());
        // Nor may anything but a ruling have the last places of the window, and that must not be over: so all before it
        // must be executed. It is looked at again later, too.
        let has_place = self.in_window_of_requests(context.cluster, sequence)
            || sequence == self.committed.next()
                && requests.iter().any(|request| request.is_ruling() && !(context.is_over)(request));
        let may_be_next = may_be_next && has_place;
        let vouched = requests.iter().all(|request| request.vouched != Vouched::No);
        if batch.references().next().is_none() {
            return may_be_next && vouched;
        }
        let is_valid = is_valid(context, batch.proposal(), requests.iter().copied());
        if !are_of_distinct_clients(requests.into_iter()) {
            context.reject(self.replicas.primary(self.view), Rejection::BadBatch);
            return false;
        }
        if !vouched {
            self.want_better_bodies(context, sequence, batch);
        }
        may_be_next && vouched && is_valid
    }
}

/// prac-F27: a fresh proposal's time must be near this replica's own clock, and the service must agree to it. Never
/// asked when a batch is replayed.
pub(super) fn is_near(context: &Ctx<'_>, proposal: &Proposal) -> bool {
    let skew = context.cluster.limits.clock_skew_max;
    proposal.time <= context.now + skew && proposal.time + skew >= context.now
}

/// The same: the service must agree to it for every request.
pub(super) fn is_valid<'a>(
    context: &Ctx<'_>,
    proposal: &Proposal,
    mut requests: impl Iterator<Item = &'a Request>,
) -> bool {
    requests.all(|request| (context.validate)(proposal, request))
}
