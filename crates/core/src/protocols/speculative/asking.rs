//! A protocol's half of the client: whom it asks, and what the answers of its replicas are worth. What all have in
//! common, one request after the other with their time-outs and deadlines, is [`crate::client`].

use super::response::Response;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, ReplicaId, Timestamp, View};
use crate::machine::{Destination, Step};
use crate::message::Outcome;
use crate::replicas::Replicas;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Where a client asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// Who takes part in the instance.
    pub(crate) replicas: Replicas,
    pub(crate) client: ClientId,
    pub(crate) instance: InstanceId,
    /// Who leads the instance, where somebody does.
    pub(crate) head: ReplicaId,
    /// Where the primary is believed to be, where views change.
    pub(crate) view: View,
}

/// What was accepted in an instance that may abort.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    pub(crate) position: u64,
    pub(crate) history: Digest,
    pub(crate) outcome: Outcome,
    /// Whose word it is: bit i stands for replica i.
    pub(crate) vouchers: u64,
}

/// What the answers so far amount to.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// More are needed.
    Open,
    /// This came of the request.
    Settled(Settled),
    /// They will never be equal.
    Hopeless,
}

/// What a client says that waits in vain although it has asked everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complaint {
    /// PANIC.
    Panic,
    /// Its request again, signed.
    Signed,
    /// Nothing: it asks again.
    Nothing,
}

/// See the [module](self). Nothing here has a default: a protocol that leaves something out does not compile.
pub(crate) trait ClientHalf: Sync {
    /// The replicas that a request's MACs are for, in the order of the MACs.
    fn receivers(&self, at: &Asking, timestamp: Timestamp) -> Vec<ReplicaId>;

    /// Whom a request goes to first. `everybody`: it has to come to all, wherever they would otherwise get it from.
    fn first(&self, at: &Asking, timestamp: Timestamp, everybody: bool) -> Destination;

    /// Whether a RESP of this replica counts.
    fn counts(&self, at: &Asking, from: ReplicaId) -> bool;

    /// What the RESPs that count amount to.
    fn weigh(&self, at: &Asking, responses: &BTreeMap<ReplicaId, Response>) -> Verdict;

    /// Whether f + 1 equal CERTAINs settle a request.
    fn believes_certain(&self) -> bool;

    /// The step of its page at which a client asks, if it has one.
    fn asks(&self) -> Option<Step>;

    /// The step of its page at which a client accepts what replicas executed, if it has one.
    fn accepts(&self) -> Option<Step>;

    /// The step of [`crate::client`] at which a call ends in an instance that hands on.
    fn ends(&self) -> Step;

    /// What a client says that waits in vain.
    fn complaint(&self) -> Complaint;
}

/// Whether two answers say the same.
fn are_equal(one: &Response, other: &Response) -> bool {
    (one.position, one.history) == (other.position, other.history) && one.outcome.agrees_with(&other.outcome)
}

/// Equal answers of all of so many replicas, one of them whole, commit; two that differ never will.
pub(crate) fn all_equal(responses: &BTreeMap<ReplicaId, Response>, needed: usize) -> Verdict {
    let Some(first) = responses.values().next() else { return Verdict::Open };
    if responses.values().any(|response| !are_equal(response, first)) {
        return Verdict::Hopeless;
    }
    let Response { position, history, .. } = *first;
    let whole = responses.values().map(|response| &response.outcome).find(|outcome| outcome.is_whole());
    match whole {
        Some(outcome) if responses.len() == needed => {
            let vouchers = responses.keys().fold(0, |bits, id| bits | 1 << id.0);
            Verdict::Settled(Settled { position, history, outcome: outcome.clone(), vouchers })
        }
        _ => Verdict::Open,
    }
}

/// So many equal answers, one of them whole, commit; those that differ mean nothing.
pub(crate) fn enough_equal(responses: &BTreeMap<ReplicaId, Response>, needed: usize) -> Verdict {
    let equal = |to: &Response| {
        let equal = responses.iter().filter(|(_, other)| are_equal(other, to));
        equal.fold(0_u64, |bits, (id, _)| bits | 1 << id.0)
    };
    let whole = responses.values().filter(|response| response.outcome.is_whole());
    let agreed = whole.map(|response| (response, equal(response)));
    let agreed = agreed.into_iter().find(|(_, bits)| bits.count_ones() as usize >= needed);
    agreed.map_or(Verdict::Open, |(response, vouchers)| {
        let Response { position, history, outcome, .. } = response.clone();
        Verdict::Settled(Settled { position, history, outcome, vouchers })
    })
}
