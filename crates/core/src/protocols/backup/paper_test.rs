//! Sentences of *The Next 700 BFT Protocols* about Backup, as tests. Where we deviate on purpose, a test says so and
//! checks what `docs/papers/abstract.md` says instead.

use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::ids::{ClientId, InstanceId, ReplicaId, Timestamp};
use crate::notice::Notice;
use crate::registry::Message;
use crate::schedule::Quota;
use crate::services::Counter;
use crate::stop::StopReason;
use crate::switching::{Panic, Switch, SwitchMessage};
use crate::testing::net::{IDENTITY, INSTANCE, Net, c, cluster, done, kind, r};
use alloc::vec::Vec;

/// A schedule whose Backups serve so many requests.
fn net(schedule: &str, k: u64) -> Net {
    let protocol = schedule.parse().unwrap();
    let quota = Quota::Fixed(k);
    let cluster = Cluster { protocol, quota, ..cluster(4, ClientAuth::Hybrid, Limits::default()) };
    Net::of(cluster, 2, |_| Counter::default())
}

fn instances(net: &Net) -> Vec<u64> {
    net.hosts.iter().map(|host| host.replica.instance().0).collect()
}

/// The last client panics in the first instance.
fn panic(net: &mut Net) {
    let client = ClientId { identity: IDENTITY, session: 1 };
    for id in 0..4 {
        let message = SwitchMessage::Panic(Panic { client, timestamp: Timestamp(1) });
        net.forge(c(1), r(id), Message::Switch(Switch { instance: INSTANCE, message }));
    }
}

/// Section 4.3: Backup "guarantees that exactly k ≥ 1 requests will be committed".
#[test]
fn exactly_k_requests_commit() {
    for k in 1..4 {
        let mut net = net("backup(pbft),quorum", k);
        for value in 1..=k {
            assert_eq!(instances(&net), [1; 4], "request {value} of {k}");
            assert_eq!(net.add(1), done(value));
        }
        assert_eq!(instances(&net), [2; 4]);
        let ended = |notice: &Notice| matches!(notice, Notice::Stopped { reason: StopReason::RequestsDone, .. });
        assert!((0..4).all(|id| net.noticed(id, ended)));
        assert_eq!(net.add(1), done(k + 1), "the next one serves what comes after");
    }
}

/// Section 4.3: "it ignores all the requests delivered by the underlying BFT protocol until it receives a request
/// containing a valid init history". Here such a request is held, and executed after the init history (abs-L3).
#[test]
fn what_is_delivered_before_the_init_history_is_held() {
    let mut net = net("quorum,backup(pbft)", 9);
    // r3 misses a request, and cannot have it: it knows the init history, and does not come to it.
    net.lose(|frame| frame.to == r(3) && kind(&frame.message) == "REQUEST" && frame.from == c(0));
    assert_eq!(net.add(5), None);
    net.lose(|frame| kind(&frame.message) == "BODIES");
    panic(&mut net);
    net.settle();
    net.pass(1_000_000);
    let begun = |net: &Net, id| net.noticed(id, |notice| matches!(notice, Notice::Begun { .. }));
    assert_eq!([0, 1, 2, 3].map(|id| begun(&net, id)), [true, true, true, false], "r3 waits for a body");
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(5));
    assert_eq!(net.add(1), done(6));
    assert_eq!(net.hosts[3].replica.report().position, 0);
    net.heal();
    net.pass(2_000_000);
    assert_eq!(net.hosts[3].replica.report().position, 2, "it does what was delivered meanwhile");
    assert_eq!(net.executed()[3], net.executed()[0]);
}

/// Section 4.3: "Backup sets its state by executing all the requests contained in the valid init history it received."
#[test]
fn the_state_is_the_init_history_executed() {
    let mut net = net("quorum,backup(pbft)", 9);
    assert_eq!((net.add(5), net.add(6)), (done(5), done(11)));
    panic(&mut net);
    net.settle();
    assert_eq!(instances(&net), [2; 4]);
    assert!((0..4).all(|id| net.noticed(id, |notice| matches!(notice, Notice::Begun { position: 2, .. }))));
    assert_eq!(net.add_within(20, 0, 1), done(12));
}

/// Section 4.3: "it simply executes the first k requests ordered by the underlying BFT protocol (neglecting subsequent
/// init histories)".
#[test]
fn later_init_histories_cost_nothing() {
    let mut net = net("quorum,backup(pbft)", 2);
    panic(&mut net);
    net.settle();
    let inits = net.sent.iter().filter(|frame| kind(&frame.message) == "REQUEST" && frame.to == r(0)).count();
    assert_eq!(inits, 3, "every replica but the primary hands one on");
    assert!(net.executed().iter().all(|executed| *executed > 1), "and they are ordered, in {:?}", net.executed());
    assert_eq!(instances(&net), [2; 4]);
    assert_eq!(net.add_within(20, 0, 1), done(1));
    assert_eq!(instances(&net), [2; 4]);
    assert_eq!(net.add(1), done(2));
    assert_eq!(instances(&net), [3; 4], "two requests are two");
}

/// Section 4.3: "A client can switch from Backup as soon as it receives f + 1 signed messages from different replicas,
/// containing an identical abort history". Here replicas do (abs-P11).
#[test]
fn f_1_reports_are_enough() {
    let mut net = net("backup(pbft),quorum", 1);
    net.lose(|frame| kind(&frame.message) == "ABORT" && (frame.from == r(2) || frame.from == r(3)));
    assert_eq!(net.add(1), done(1));
    let proofs = net.sent.iter().filter_map(|frame| match &frame.message {
        Message::Switch(Switch { message: SwitchMessage::Init(proof), .. }) => Some(proof.reports.len()),
        _ => None,
    });
    let sizes: Vec<usize> = proofs.collect();
    assert_eq!(instances(&net), [2; 4]);
    assert!(!sizes.is_empty() && sizes.iter().all(|size| *size == 2), "{sizes:?}");
}

/// Section 4.3: "Our default configuration increases k exponentially, with every new instance of Backup."
#[test]
fn k_grows_from_one_backup_to_the_next() {
    let of_default = cluster(4, ClientAuth::Hybrid, Limits::default());
    let cluster = Cluster { protocol: "quorum,backup(pbft)".parse().unwrap(), ..of_default };
    let k = |instance| cluster.specification(InstanceId(instance)).requests(false);
    let backups = [2, 4, 6, 8].map(k);
    assert!(backups.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{backups:?}");
}

/// Section 4.3: "After committing the k^th request, Backup aborts all subsequent requests, returning the signed
/// sequence of executed requests as the abort history." What is answered is in it, and the report is the checkpoint at
/// the end.
#[test]
fn what_a_backup_answers_is_in_its_report() {
    let mut net = net("backup(pbft),quorum", 2);
    assert_eq!((net.add(1), net.add(1)), (done(1), done(2)));
    assert_eq!((0..4).flat_map(|id| net.said(r(id), "REPLY")).count(), 8);
    let reports = net.sent.iter().filter_map(|frame| match &frame.message {
        Message::Switch(Switch { message: SwitchMessage::Abort(report), .. }) => Some(report),
        _ => None,
    });
    let ends: Vec<(ReplicaId, u64)> =
        reports.map(|report| (report.signer(), report.claims().anchor.position)).collect();
    assert!(!ends.is_empty() && ends.iter().all(|(_, position)| *position == 2), "{ends:?}");
}
