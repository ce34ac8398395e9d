//! What a request costs, counted: the formulas of `docs/protocols.md` are equations here.
//!
//! Every run is one batch without a timer coming due, so that nothing but the requests themselves is counted: no
//! heartbeat, no checkpoint, no repetition.

use super::conformance::ring_fast;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::ids::{Principal, ReplicaId, Timestamp};
use crate::protocols::ring_fast::{Body, Path, RingMessage};
use crate::registry::Message;
use crate::schedule::{Order, Part, Protocol, Schedule};
use crate::services::Counter;
use crate::testing::net::{Net, c, cluster, kind, r};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

const FAULTS: [usize; 3] = [1, 2, 3];
const REQUESTS: [u32; 3] = [1, 8, 64];

fn net(f: usize, clients: u32, protocol: Protocol) -> Net {
    let cluster = Cluster { protocol, ..cluster(3 * f + 1, ClientAuth::Mac, Limits::default()) };
    Net::of(cluster, clients, |_| Counter::default())
}

/// MACs made and checked by all replicas in order, then by all clients together.
fn macs(net: &Net) -> Vec<u64> {
    let parties = (0..net.cluster.replicas.n() as u8).map(r).chain([c(0)]);
    let count = |party: Principal| {
        let counters = net.keyring(party).counters();
        counters.macs_made.get() + counters.macs_checked.get()
    };
    parties.map(count).collect()
}

/// One batch of `requests` requests at 3f+1 replicas: MAC operations of each replica and of all clients together, and
/// frames of each kind.
fn one_batch(f: usize, requests: u32, protocol: Protocol) -> (Vec<u64>, BTreeMap<String, usize>) {
    let mut net = net(f, requests, protocol);
    let before = macs(&net);
    for session in 0..requests as usize {
        net.submit(session, &Counter::add(1), false);
        if protocol == Protocol::Quorum {
            // Without contention: one client after the other.
            net.settle();
        }
    }
    net.settle();
    assert_eq!(net.completed.len(), requests as usize);
    let mut frames = BTreeMap::new();
    for frame in &net.sent {
        *frames.entry(kind(&frame.message)).or_default() += 1;
    }
    (macs(&net).iter().zip(before).map(|(after, before)| after - before).collect(), frames)
}

fn each_case(check: impl Fn(u64, u64, &str, &dyn Fn(Protocol) -> (Vec<u64>, BTreeMap<String, usize>))) {
    for f in FAULTS {
        for requests in REQUESTS {
            let case = format!("f = {f}, b = {requests}");
            check(f as u64, u64::from(requests), &case, &|protocol| one_batch(f, requests, protocol));
        }
    }
}

fn frames(expected: &[(&str, u64)]) -> BTreeMap<String, usize> {
    expected.iter().map(|(kind, count)| ((*kind).into(), *count as usize)).collect()
}

/// "2 at a replica, 2(3f+1) at the client": every request of Quorum is a batch of one.
#[test]
fn quorum_costs_what_the_formulas_say() {
    each_case(|f, b, case, run| {
        let n = 3 * f + 1;
        let (macs, sent) = run(Protocol::Quorum);
        let (clients, replicas) = macs.split_last().unwrap();
        assert!(replicas.iter().all(|macs| *macs == 2 * b), "replicas, {case}: {replicas:?}");
        assert_eq!(*clients, 2 * n * b, "clients, {case}");
        assert_eq!(sent, frames(&[("REQUEST", n * b), ("RESP", n * b)]), "{case}");
    });
}

/// "2 + 3f/b at the primary, 2 + 1/b at a backup, 2(3f+1) at the client."
#[test]
fn zlight_costs_what_the_formulas_say() {
    each_case(|f, b, case, run| {
        let n = 3 * f + 1;
        let (macs, sent) = run(Protocol::ZLight);
        let (clients, replicas) = macs.split_last().unwrap();
        assert_eq!(replicas[0], 2 * b + 3 * f, "primary, {case}");
        assert!(replicas[1..].iter().all(|macs| *macs == 2 * b + 1), "backups, {case}: {replicas:?}");
        assert_eq!(*clients, 2 * n * b, "clients, {case}");
        assert_eq!(sent, frames(&[("REQUEST", b), ("ORDER", 3 * f), ("RESP", n * b)]), "{case}");
    });
}

/// "[p ≤ f] + [p ≥ 2f] + (min(p, f+1) + |Succ|) / b at place p, at most 1 + (2f+1)/b, at f and at 2f."
#[test]
fn chain_costs_what_the_formulas_say() {
    each_case(|f, b, case, run| {
        let (macs, sent) = run(Protocol::Chain);
        let (clients, replicas) = macs.split_last().unwrap();
        let formula = |p: u64| {
            let successors = if p < 2 * f { (f + 1).min(3 * f - p) } else { 3 * f - p };
            (u64::from(p <= f) + u64::from(p >= 2 * f)) * b + p.min(f + 1) + successors
        };
        assert_eq!(replicas, (0..=3 * f).map(formula).collect::<Vec<_>>(), "{case}");
        let most = b + 2 * f + 1;
        assert_eq!(replicas.iter().max(), Some(&most), "{case}");
        assert_eq!((replicas[f as usize], replicas[2 * f as usize]), (most, most), "{case}");
        assert_eq!(*clients, 2 * (f + 1) * b, "clients, {case}");
        assert_eq!(sent, frames(&[("REQUEST", b), ("CHAIN", 3 * f), ("CHAIN-REPLY", b)]), "{case}");
    });
}

/// How many positions longer than others the way from this entry of Ring is: q, if the sequencer is so few replicas
/// behind it, and fewer than f.
fn longer(f: usize, entry: u8) -> u64 {
    let n = 3 * f + 1;
    let q = (n - usize::from(entry)) % n;
    if q < f { q as u64 } else { 0 }
}

/// Equations 7.1 and 7.3 of the thesis, added up anew (`docs/papers/ring.md`), and 2(f+1) for each position more:
/// (f+1)(2b + 11f + 2 + 2q) / (bn) at a replica for each request; and f + 1 MACs made and checked by the client.
#[test]
fn ring_costs_what_the_formulas_say() {
    for f in FAULTS {
        let entries = 0..3 * f as u8 + 1;
        for (requests, entry) in entries.flat_map(|entry| [1, 10, 64].map(|requests| (requests, entry))) {
            let q = longer(f, entry);
            let case = format!("f = {f}, b = {requests}, entry r{entry}");
            let (macs, sent) = one_batch_at(f, requests, ReplicaId(entry));
            let (clients, replicas) = macs.split_last().unwrap();
            let (f, b) = (f as u64, u64::from(requests));
            let n = 3 * f + 1;
            assert_eq!(replicas.iter().sum::<u64>(), (f + 1) * (2 * b + 11 * f + 2 + 2 * q), "{case}");
            assert_eq!(*clients, 2 * (f + 1) * b, "clients, {case}");
            let expected = [("REQUEST", b), ("RING", n - 1), ("ACK", n + q), ("RING-REPLY", b)];
            assert_eq!(sent, frames(&expected), "{case}");
        }
    }
}

/// A request that comes to this entry of Ring.
fn submit_at(net: &mut Net, session: usize, operation: &[u8], entry: ReplicaId) {
    let Principal::Client(client) = c(session as u32) else { unreachable!() };
    let asks = |net: &Net, wait| {
        let at = Timestamp(net.now.0 + wait + 10);
        Path::entry_for(net.cluster.replicas, client, at, 0) == entry
    };
    net.now.0 += (0..99).find(|wait| asks(net, *wait)).unwrap();
    net.submit(session, operation, false);
}

/// Batches form of what comes while others are under way, and full ones do not wait for these.
#[test]
fn a_full_batch_of_ring_waits_for_no_other() {
    let batches = |requests: usize, bytes: usize| -> Vec<usize> {
        let mut net = net(1, requests as u32, ring_fast());
        net.lose(|frame| kind(&frame.message) == "RING");
        for session in 0..requests {
            submit_at(&mut net, session, &vec![0; bytes], ReplicaId(2));
            net.settle();
        }
        let requests = |message: &Message| match message {
            Message::Ring(RingMessage { body: Body::Requests(requests), .. }) => Some(requests.len()),
            _ => None,
        };
        net.sent.iter().filter_map(|frame| requests(&frame.message)).collect()
    };
    assert_eq!(batches(8, 8), [1; 4]);
    assert_eq!(batches(8, 8_000), [1, 1, 1, 1, 2]);
    assert_eq!(batches(8, 8_192), [1, 1, 1, 1, 2, 2]);
    assert_eq!(batches(8, 20_000), [1, 1, 1, 1, 2, 2], "a full one has two at least");
    let most = batches(70, 8_192);
    assert_eq!((most.len(), most.iter().sum::<usize>()), (32, 60), "there is a bound");
}

/// The same as [`one_batch`] for requests that all come to one entry of Ring.
fn one_batch_at(f: usize, requests: u32, entry: ReplicaId) -> (Vec<u64>, BTreeMap<String, usize>) {
    let mut net = net(f, requests, ring_fast());
    let before = macs(&net);
    for session in 0..requests as usize {
        submit_at(&mut net, session, &Counter::add(1), entry);
    }
    net.settle();
    assert_eq!(net.completed.len(), requests as usize);
    let mut frames = BTreeMap::new();
    for frame in &net.sent {
        *frames.entry(kind(&frame.message)).or_default() += 1;
    }
    (macs(&net).iter().zip(before).map(|(after, before)| after - before).collect(), frames)
}

/// Message delays from a client's request to its completion.
fn delays(f: usize, protocol: Protocol) -> usize {
    let mut net = net(f, 1, protocol);
    net.submit(0, &Counter::add(1), false);
    delays_until_completed(&mut net)
}

fn delays_until_completed(net: &mut Net) -> usize {
    (1..99)
        .find(|_| {
            net.round();
            !net.completed.is_empty()
        })
        .unwrap()
}

#[test]
fn requests_take_the_message_delays_that_the_paper_says() {
    for f in FAULTS {
        assert_eq!(delays(f, Protocol::Quorum), 2);
        assert_eq!(delays(f, Protocol::ZLight), 3);
        assert_eq!(delays(f, Protocol::Chain), 3 * f + 2);
        for entry in 0..3 * f as u8 + 1 {
            let mut net = net(f, 1, ring_fast());
            submit_at(&mut net, 0, &Counter::add(1), ReplicaId(entry));
            let expected = 2 * (3 * f + 1) + 1 + longer(f, entry) as usize;
            assert_eq!(delays_until_completed(&mut net), expected, "f = {f}, entry r{entry}");
        }
        assert_eq!(delays(f, Protocol::Pbft), 4);
        assert_eq!(delays(f, Protocol::Schedule(Schedule::of(&[Part::Backup(Order::Pbft), Part::Quorum]))), 4);
    }
}

/// n(n−1) PREPs, those of the sequencer within its ORDERs, as many COMMs, and one signature of each replica.
#[test]
fn a_resilient_ring_costs_what_the_formulas_say() {
    for f in FAULTS {
        let schedule = Schedule::new(&[Part::RingResilient]).unwrap();
        let mut net = net(f, 2, Protocol::Schedule(schedule));
        net.settle();
        net.sent.clear();
        let signatures = |net: &Net<Counter>| -> Vec<u64> {
            net.cluster
                .replicas
                .iter()
                .map(|id| net.keyring(Principal::Replica(id)).counters().signatures_made.get())
                .collect()
        };
        let before = signatures(&net);
        (0..2).for_each(|session| net.submit(session, &Counter::add(1), false));
        net.settle();
        let made: Vec<u64> = signatures(&net).iter().zip(before).map(|(after, before)| after - before).collect();
        assert!(made.iter().all(|made| *made == 1), "f = {f}: {made:?}");
        let mut sent: BTreeMap<String, usize> = BTreeMap::new();
        for frame in &net.sent {
            *sent.entry(kind(&frame.message)).or_default() += 1;
        }
        let n = 3 * f as u64 + 1;
        let all = [
            ("REQUEST", 2 * n),
            ("RING-ORDER", n - 1),
            ("PREP", (n - 1) * (n - 1)),
            ("COMM", n * (n - 1)),
            ("RESP", 2 * n),
        ];
        assert_eq!(sent, frames(&all), "f = {f}");
    }
}
