//! MACs of replicas and clients on their way: which are checked, which go on, which are added.

use super::message::{RingMessage, Strike};
use super::path::Path;
use crate::auth::{Authenticator, Tag};
use crate::digest::Digest;
use crate::ids::Principal;
use crate::message::{Request, Vouched};
use crate::protocols::ring_fast::message::Speaker;
use crate::rejection::Rejection;
use crate::replicas::Replicas;
use crate::switching::Surroundings;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Whether the MAC that the replica at `maker` made for this one is good.
pub(super) fn check(
    s: &Surroundings<'_, impl Speaker>,
    path: &Path,
    batch: Digest,
    message: &RingMessage,
    maker: usize,
    position: usize,
) -> bool {
    let index = path.carried(position - 1).position(|pair| pair == (maker, position));
    let statement = message.statement(path, batch, maker);
    let maker = Principal::Replica(path.at(maker));
    index.is_some_and(|index| s.keyring.check(maker, &statement, &message.tags[index]))
}

/// The MACs that go on: those of others for positions still to come, then this replica's own.
pub(super) fn add_tags(
    s: &Surroundings<'_, impl Speaker>,
    path: &Path,
    position: usize,
    batch: Digest,
    message: &mut RingMessage,
) {
    let mut tags: Vec<Tag> = Vec::new();
    if position > 0 {
        let carried = path.carried(position - 1).zip(&message.tags);
        tags.extend(carried.filter(|((_, receiver), _)| *receiver > position).map(|(_, tag)| *tag));
    }
    let statement = message.statement(path, batch, position);
    for receiver in path.successors(position) {
        tags.push(s.keyring.tag(Principal::Replica(path.at(receiver)), &statement));
    }
    debug_assert_eq!(tags.len(), path.carried(position).count(), "the next position counts them");
    message.tags = tags;
}

/// Strikes the requests whose client's MAC for this position is bad, and takes those MACs off.
pub(super) fn strike_and_trim(
    s: &mut Surroundings<'_, impl Speaker>,
    path: &Path,
    position: usize,
    requests: &mut [Request],
    strikes: &mut Vec<Strike>,
) {
    if !path.checks_client(position) {
        return;
    }
    let struck: BTreeSet<u32> = strikes.iter().map(|strike| strike.request).collect();
    let mut bad = Vec::new();
    for (at, request) in requests.iter_mut().enumerate() {
        let tag = request.authentication.tags.get(0);
        let mut good = tag.is_some_and(|tag| request.is_from_client(s.keyring, &tag));
        if !good && request.authentication.signature.is_some() {
            Request::vouch_signatures(core::iter::once(&mut *request), s.cluster, s.keyring);
            good = request.vouched == Vouched::Signature;
        }
        if !good && !struck.contains(&(at as u32)) {
            s.reject(Principal::Client(request.client), Rejection::UnauthenticRequest);
            bad.push(at);
        }
        request.authentication.tags = request.authentication.tags.clone().iter().skip(1).collect();
    }
    add_strikes(strikes, position, bad);
}

/// Adds strikes of a position after those of the positions before. A sequencer at the last of the positions that check
/// clients' MACs strikes twice: for those, and what it may not give a number.
pub(super) fn add_strikes(strikes: &mut Vec<Strike>, position: usize, requests: Vec<usize>) {
    let position = position as u8;
    strikes.extend(requests.into_iter().map(|request| Strike { position, request: request as u32 }));
    strikes.sort_unstable();
    assert!(strikes.is_sorted_by(|one, next| one < next), "nothing is struck twice at one position");
}

/// A client's MACs for the positions after the entry's, as it sent them to the entry or to everybody. In the place of
/// one that is missing stands one that nobody accepts: what a client left out must not cost others their batch.
pub(super) fn client_tags(replicas: Replicas, path: &Path, request: &Request) -> Authenticator {
    let tags = &request.authentication.tags;
    let is_sent_to_all = tags.iter().len() == replicas.n();
    let place = |position| if is_sent_to_all { path.at(position).0 as usize } else { position };
    (1..replicas.weak()).map(|position| tags.get(place(position)).unwrap_or(Tag::from_bytes([0; 16]))).collect()
}
