//! What waits on a connection when a pass ends leaves as few requests: operations of one kind go together, as a
//! [`bundle`]. Nothing waits for others to come.

use bezant_core::client::{Completion, Read, Submit};
use bezant_core::cluster::Limits;
use bezant_core::ids::Timestamp;
use bezant_core::message::Refusal;
use bezant_core::message::bundle::{self, BUNDLE_OPERATIONS_MAX, BUNDLE_OVERHEAD, QUERIES_MAX, Results, Single};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bytes::Bytes;

/// Bytes that a bundle has at most. One operation alone may have more.
const BUNDLE_BYTES_MAX: usize = 64 << 10;

/// An operation for the cluster.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The driver's own number for it: comes back with what came of it.
    pub token: u64,
    /// The operation; itself no bundle.
    pub submit: Submit,
}

/// An operation that a session's request carries.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    pub(super) submit: Submit,
    /// When somebody began to wait for it.
    pub(super) since: Instant,
    /// Whether it counts as one of those that may be under way: what is asked for again does not.
    pub(super) has_place: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Somebody waits for it, under this number.
    Awaited(u64),
    /// Whoever waited was told that the outcome of it, in the request with this number, is unknown.
    Unknown(Timestamp),
    /// Whoever waited knows what came of it.
    Known,
}

impl Carried {
    pub(super) fn new(asked: Operation, since: Instant) -> Self {
        assert!(!asked.submit.is_bundle, "bundles are made here");
        Self { submit: asked.submit, since, has_place: true, state: State::Awaited(asked.token) }
    }

    pub(super) const fn is_awaited(&self) -> bool {
        matches!(self.state, State::Awaited(_))
    }

    /// Whether somebody was told that the outcome is unknown, and nothing since.
    pub(super) const fn is_told_nothing(&self) -> bool {
        matches!(self.state, State::Unknown(_))
    }

    /// The same, of the request with this number.
    pub(super) fn is_unknown(&self, timestamp: Timestamp) -> bool {
        self.state == State::Unknown(timestamp)
    }

    /// Whether whoever waits for it waits no longer.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.is_awaited() && self.submit.deadline.is_some_and(|at| at <= now)
    }

    /// Somebody waits for it again.
    pub(super) fn ask_again(&mut self, token: u64, now: Instant, deadline: Option<Instant>) {
        assert!(self.is_told_nothing(), "what is known is not asked for again");
        (self.state, self.since, self.submit.deadline) = (State::Awaited(token), now, deadline);
    }

    /// Whoever waits for it is told, perhaps that the outcome in the request with some number is unknown. Returns who
    /// that is, if somebody waits.
    pub(super) const fn end(&mut self, unknown: Option<Timestamp>) -> Option<u64> {
        let State::Awaited(token) = self.state else { return None };
        self.state = match unknown {
            Some(timestamp) => State::Unknown(timestamp),
            None => State::Known,
        };
        Some(token)
    }
}

/// How long bundles may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    operations: usize,
    bytes: usize,
}

impl Bounds {
    /// In a cluster with these limits, for a client that wants at most so many operations in one.
    pub(super) fn new(limits: &Limits, operations: usize) -> Self {
        let operations = operations.clamp(1, BUNDLE_OPERATIONS_MAX);
        Self { operations, bytes: limits.operation_bytes_max.min(BUNDLE_BYTES_MAX) }
    }

    /// Divides operations into requests, each of one kind and in their order.
    pub(super) fn divide(self, asked: Vec<Carried>) -> Vec<Vec<Carried>> {
        let mut requests: Vec<(usize, Vec<Carried>)> = Vec::new();
        for asked in asked {
            let more = BUNDLE_OVERHEAD + asked.submit.operation.len();
            let fits = |(bytes, request): &&mut (usize, Vec<Carried>)| {
                let most = if request[0].submit.read_only { self.operations.min(QUERIES_MAX) } else { self.operations };
                bytes.saturating_add(more) <= self.bytes
                    && request.len() < most
                    && is_plain(&request[0].submit)
                    && is_plain(&asked.submit)
            };
            // Whoever comes later overtakes none of its kind.
            let last = requests.iter_mut().rfind(|(_, request)| request[0].submit.read_only == asked.submit.read_only);
            match last.filter(fits) {
                Some((bytes, request)) => {
                    *bytes += more;
                    request.push(asked);
                }
                None => requests.push((BUNDLE_OVERHEAD + more, vec![asked])),
            }
        }
        requests.into_iter().map(|(_, request)| request).collect()
    }
}

/// Whether it may share a request. A read that takes the word of some replicas goes to those alone.
const fn is_plain(submit: &Submit) -> bool {
    matches!(submit.read, Read::Quorum)
}

/// The request that carries these operations, as long as somebody waits for one of them.
pub(super) fn submit(carried: &[Carried]) -> Submit {
    let awaited = || carried.iter().filter(|carried| carried.is_awaited());
    let for_ever = awaited().any(|carried| carried.submit.deadline.is_none());
    let last = awaited().filter_map(|carried| carried.submit.deadline).max();
    let deadline = last.filter(|_| !for_ever);
    let first = carried[0].submit.clone();
    if carried.len() == 1 {
        return Submit { deadline, ..first };
    }
    let operations: Vec<Bytes> = carried.iter().map(|carried| carried.submit.operation.clone()).collect();
    Submit { operation: bundle::pack(&operations), is_bundle: true, deadline, ..first }
}

/// What came of each of so many operations whose request ended like this. `None`: ask again, with another request.
pub(super) fn singles(result: &Completion, count: usize) -> Vec<Option<Completion>> {
    let Completion::Done(bytes) = result else { return vec![Some(result.clone()); count] };
    if count == 1 {
        return vec![Some(result.clone())];
    }
    let results = Results::from_bytes(bytes.clone()).map(Results::into_singles).unwrap_or_default();
    if results.len() != count {
        // More replicas lie than the cluster tolerates.
        return vec![Some(Completion::Unknown); count];
    }
    let single = |single| match single {
        Single::Done(result) => Some(Completion::Done(result)),
        Single::Refused(Refusal::NoRoom) => None,
        Single::Refused(refusal) => Some(Completion::Refused(refusal)),
    };
    results.into_iter().map(single).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(token: u64, bytes: usize, read_only: bool, read: Read) -> Carried {
        let operation = vec![0; bytes].into();
        let submit = Submit { operation, is_bundle: false, read_only, read, deadline: None };
        Carried::new(Operation { token, submit }, Instant(0))
    }

    fn tokens(mut of: Vec<Vec<Carried>>) -> Vec<Vec<u64>> {
        of.iter_mut().map(|request| request.iter_mut().filter_map(|carried| carried.end(None)).collect()).collect()
    }

    #[test]
    fn what_waits_goes_together_as_far_as_it_may() {
        let bounds = Bounds::new(&Limits::default(), 3);
        let write = |token| asked(token, 10, false, Read::Quorum);
        let query = |token| asked(token, 10, true, Read::Quorum);
        assert_eq!(tokens(bounds.divide(vec![write(1)])), [[1]]);
        let mixed = vec![write(1), query(2), write(3), write(4), query(5), write(6)];
        assert_eq!(tokens(bounds.divide(mixed)), [vec![1, 3, 4], vec![2, 5], vec![6]]);
        let few = vec![asked(1, 10, true, Read::One), asked(2, 10, true, Read::One), query(3)];
        assert_eq!(tokens(bounds.divide(few)), [[1], [2], [3]]);
    }

    #[test]
    fn what_is_long_goes_alone_and_nobody_overtakes_it() {
        let limits = Limits { operation_bytes_max: 100, ..Limits::default() };
        let bounds = Bounds::new(&limits, 64);
        let write = |token, bytes| asked(token, bytes, false, Read::Quorum);
        let mixed = vec![write(1, 40), write(2, 40), write(3, 100), write(4, 1)];
        let divided = bounds.divide(mixed);
        let packed = submit(&divided[0]);
        assert!(packed.is_bundle && packed.operation.len() <= limits.operation_bytes_max);
        assert_eq!(tokens(divided), [vec![1, 2], vec![3], vec![4]]);
    }

    #[test]
    fn a_request_lasts_until_the_last_deadline_of_those_who_wait() {
        let carried = |token, deadline: Option<u64>| {
            let mut carried = asked(token, 1, false, Read::Quorum);
            carried.submit.deadline = deadline.map(Instant);
            carried
        };
        let mut carried = [carried(0, None), carried(1, Some(9)), carried(2, Some(5)), carried(3, Some(11))];
        assert_eq!(submit(&carried).deadline, None);
        assert_eq!(carried[0].end(Some(Timestamp(7))), Some(0));
        assert_eq!(submit(&carried).deadline, Some(Instant(11)));
        assert_eq!(carried[3].end(None), Some(3));
        assert_eq!(submit(&carried).deadline, Some(Instant(9)));
        let late = carried.each_ref().map(|carried| carried.is_late(Instant(7)));
        assert_eq!(late, [false, false, true, false]);
        assert!(carried[0].is_unknown(Timestamp(7)) && !carried[0].is_unknown(Timestamp(8)));
        assert!(carried[0].is_told_nothing() && !carried[3].is_told_nothing());
    }

    #[test]
    fn results_are_told_apart_and_nonsense_is_unknown() {
        let refused = Completion::Refused(Refusal::Closed);
        assert_eq!(singles(&refused, 2), vec![Some(refused.clone()); 2]);
        let done = |bytes: &'static [u8]| Completion::Done(Bytes::from_static(bytes));
        assert_eq!(singles(&done(b"x"), 1), [Some(done(b"x"))]);
        assert_eq!(singles(&done(b"x"), 2), vec![Some(Completion::Unknown); 2]);
        let mut two = vec![2, 0, 0, 0, 0, 1, 0, 0, 0, b'y'];
        two.extend([1, 12]);
        assert_eq!(singles(&Completion::Done(two.clone().into()), 2), [Some(done(b"y")), None]);
        assert_eq!(singles(&Completion::Done(two.into()), 3), vec![Some(Completion::Unknown); 3]);
    }
}
