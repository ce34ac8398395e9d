//! Tests: what a bundle is to a service, and to the client table.

use super::{Estate, next_batch};
use crate::auth::PublicKeys;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, IdentityId, Timestamp};
use crate::message::bundle::{Results, Single, pack};
use crate::message::{Outcome, Refusal, Request};
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, RESULT_BYTES_MAX, RESULTS_BYTES_MAX, Service};
use crate::testing::net::{INSTANCE, cluster};
use crate::wire::Wire;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// Answers `draw` with its seed, `long` with as much as it may, `full` with just more than leaves room for another
/// result, and all else with how often it was asked to write.
#[derive(Clone, Debug, Default)]
struct Talkative {
    written: u64,
}

impl Service for Talkative {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        match operation {
            b"draw" => agreed.seed.digest().0.to_vec().into(),
            b"long" => vec![b'x'; RESULT_BYTES_MAX].into(),
            b"full" => vec![b'y'; RESULTS_BYTES_MAX + 1].into(),
            _ => {
                self.written += 1;
                self.written.to_bytes().into()
            }
        }
    }
    fn query(&self, operation: &[u8], _asker: &Asker) -> Result<Bytes, NotReadOnly> {
        if operation == b"read" { Ok(self.written.to_bytes().into()) } else { Err(NotReadOnly) }
    }
    fn save(&mut self, _write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {}
    fn load(&mut self, _pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        Ok(())
    }
}

fn open() -> (Cluster, Estate<Talkative>) {
    let cluster = cluster(4, Default::default(), Default::default());
    let estate = Estate::new(&cluster, &PublicKeys::default(), Talkative::default());
    (cluster, estate)
}

fn request(session: u32, timestamp: u64, operation: Bytes) -> Request {
    let client = ClientId { identity: IdentityId(1), session };
    Request::new(INSTANCE, client, Timestamp(timestamp), false, operation)
}

fn bundle(session: u32, timestamp: u64, operations: &[&'static [u8]]) -> Request {
    let operations: Vec<Bytes> = operations.iter().map(|operation| Bytes::from_static(operation)).collect();
    request(session, timestamp, pack(&operations)).as_bundle()
}

/// Executes requests as the next batch.
fn execute(cluster: &Cluster, estate: &mut Estate<Talkative>, requests: Vec<Request>) -> Vec<(Outcome, bool)> {
    let ordered = next_batch(estate, requests);
    let mut outcomes = Vec::new();
    estate.execute(cluster, ordered, true, |_, said, is_new| outcomes.push((said.clone(), is_new)));
    outcomes
}

fn singles(outcome: &Outcome) -> Vec<Single> {
    let Outcome::Done { result, .. } = outcome else { panic!("{outcome}") };
    Results::from_bytes(result.clone()).unwrap().into_singles()
}

fn written(count: u64) -> Single {
    Single::Done(count.to_bytes().into())
}

#[test]
fn operations_of_a_bundle_are_executed_in_turn_and_once() {
    let (cluster, mut estate) = open();
    let three = bundle(0, 5, &[b"a", b"b", b"c"]);
    let first = execute(&cluster, &mut estate, vec![three.clone()]);
    assert_eq!(singles(&first[0].0), [written(1), written(2), written(3)]);
    assert_eq!(estate.position(), 1, "one request, one place in the history");
    let again = execute(&cluster, &mut estate, vec![three, bundle(0, 4, &[b"d", b"e"]), bundle(1, 1, &[b"f", b"g"])]);
    assert_eq!(again[0], (first[0].0.clone(), false), "the outcome is remembered, whole");
    assert_eq!(again[1], (Outcome::Refused(Refusal::StaleTimestamp), false));
    assert_eq!(singles(&again[2].0), [written(4), written(5)]);
}

/// Two rows that two clients insert at the same time have different random keys.
#[test]
fn every_operation_of_a_batch_has_its_own_seed() {
    let (cluster, mut estate) = open();
    let requests = vec![
        bundle(0, 1, &[b"draw", b"draw"]),
        request(1, 1, Bytes::from_static(b"draw")),
        bundle(2, 1, &[b"x", b"draw"]),
    ];
    let outcomes = execute(&cluster, &mut estate, requests);
    let mut seeds: Vec<Bytes> = Vec::new();
    for (outcome, _) in [&outcomes[0], &outcomes[2]] {
        seeds.extend(singles(outcome).into_iter().filter_map(|single| match single {
            Single::Done(seed) if seed.len() == size_of::<Digest>() => Some(seed),
            _ => None,
        }));
    }
    let Outcome::Done { result, .. } = &outcomes[1].0 else { panic!("{}", outcomes[1].0) };
    seeds.push(result.clone());
    assert_eq!(seeds.len(), 4);
    assert_eq!(seeds.into_iter().collect::<BTreeSet<_>>().len(), 4);
}

/// What finds no room has had no effect.
#[test]
fn results_that_fill_a_reply_leave_no_room_for_more() {
    let (cluster, mut estate) = open();
    let outcomes = execute(&cluster, &mut estate, vec![bundle(0, 1, &[b"a", b"full", b"b", b"draw"])]);
    let results = singles(&outcomes[0].0);
    assert_eq!(results[0], written(1));
    assert!(matches!(&results[1], Single::Done(result) if result.len() == RESULTS_BYTES_MAX + 1));
    assert_eq!(results[2..], [Single::Refused(Refusal::NoRoom), Single::Refused(Refusal::NoRoom)]);
    assert_eq!(estate.service().written, 1);
    let outcomes = execute(&cluster, &mut estate, vec![bundle(0, 2, &[b"b", b"long", b"c"])]);
    let results = singles(&outcomes[0].0);
    assert_eq!((&results[0], &results[2]), (&written(2), &Single::Refused(Refusal::NoRoom)));
    assert!(matches!(&results[1], Single::Done(result) if result.len() == RESULT_BYTES_MAX));
}

#[test]
fn a_bundle_of_queries_refuses_what_writes_and_answers_the_rest() {
    let (cluster, mut estate) = open();
    execute(&cluster, &mut estate, vec![request(1, 1, Bytes::from_static(b"a"))]);
    let mixed = bundle(0, 1, &[b"read", b"write", b"read"]).as_ordered_query();
    assert!(mixed.is_bundle());
    let expected = [written(1), Single::Refused(Refusal::NotReadOnly), written(1)];
    assert_eq!(singles(&estate.query(&mixed)), expected);
    let ordered = execute(&cluster, &mut estate, vec![mixed]);
    assert_eq!(singles(&ordered[0].0), expected);
    assert_eq!(estate.service().written, 1);
}
