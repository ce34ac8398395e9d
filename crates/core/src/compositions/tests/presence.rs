//! Who is there: what a composition does while a replica is down, and when it is back.

use crate::auth::Signed;
use crate::checkpoint::Evidence;
use crate::clients::Freshness;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::compositions::tests::script::panic;
use crate::digest::Digest;
use crate::ids::{InstanceId, ReplicaId, View};
use crate::message::{Firmness, Request};
use crate::notice::Notice;
use crate::protocols::pbft::{PbftMessage, ViewChange};
use crate::registry::Message;
use crate::schedule::{Protocol, Quota};
use crate::services::Counter;
use crate::stop::StopReason;
use crate::switching::{AbortReport, Returned, Switch, SwitchMessage};
use crate::testing::net::{Frame, Net, c, cluster, done, kind, r};
use crate::time::Duration;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// k of every Backup.
const K: u64 = 3;
/// Microseconds in which a replica becomes silent, and a client panics.
const A_WHILE: u64 = 700_000;

fn net(protocol: &str) -> Net<Counter> {
    net_of(protocol, 1)
}

fn net_of(protocol: &str, clients: u32) -> Net<Counter> {
    net_with(protocol, 4, clients, Limits::default())
}

fn net_with(protocol: &str, n: usize, clients: u32, limits: Limits) -> Net<Counter> {
    let protocol: Protocol = protocol.parse().unwrap();
    let cluster = Cluster { quota: Quota::Fixed(K), protocol, ..cluster(n, ClientAuth::Hybrid, limits) };
    Net::of(cluster, clients, |_| Counter::default())
}

fn instance(net: &Net<Counter>, id: usize) -> u64 {
    net.hosts[id].replica.instance().0
}

/// The replica is down from now on, and the others find out.
fn cut(net: &mut Net<Counter>, replica: &'static [u8]) {
    net.isolate(replica);
    net.pass(A_WHILE);
}

/// The next `count` requests are answered, and with what.
fn ask(net: &mut Net<Counter>, sum: &mut u64, count: u64) {
    for _ in 0..count {
        *sum += 1;
        assert_eq!(net.add_within(25, 0, 1), done(*sum));
    }
}

fn stopped_for_missing(net: &Net<Counter>, id: usize, of: u64) -> bool {
    net.noticed(id, |notice| {
        matches!(notice, Notice::Stopped { instance: InstanceId(number), reason: StopReason::SomebodyMissing }
            if *number == of)
    })
}

#[test]
fn a_backup_stays_while_a_replica_is_missing_and_ends_when_it_is_back() {
    // Quorum, Chain, Backup.
    let mut net = net("aliph");
    let mut sum = 0;
    ask(&mut net, &mut sum, 2);
    assert_eq!(instance(&net, 1), 1);
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, 1);
    assert_eq!(instance(&net, 1), 3, "Chain was left at once");
    assert!((0..3).all(|id| stopped_for_missing(&net, id, 2)));
    ask(&mut net, &mut sum, 10 * K);
    net.pass(3 * A_WHILE);
    assert_eq!((instance(&net, 0), instance(&net, 3)), (3, 1), "the Backup stays");
    net.heal();
    net.pass(A_WHILE);
    ask(&mut net, &mut sum, 1);
    assert_eq!([0, 1, 2, 3].map(|id| instance(&net, id)), [4; 4], "Quorum runs again");
    ask(&mut net, &mut sum, 5);
    assert_eq!(instance(&net, 0), 4);
}

#[test]
fn a_backup_that_stays_has_its_quota_at_least() {
    let mut net = net("chain");
    let mut sum = 0;
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, 1);
    assert_eq!(instance(&net, 0), 2);
    net.heal();
    net.pass(A_WHILE);
    assert!(!net.said(r(0), "RETURNED").is_empty());
    assert_eq!(instance(&net, 0), 2, "it has its quota to do");
    // The first one was in Chain's history.
    ask(&mut net, &mut sum, K - 1);
    assert_eq!(instance(&net, 0), 2);
    ask(&mut net, &mut sum, 1);
    net.settle();
    assert_eq!(instance(&net, 0), 3);
    ask(&mut net, &mut sum, 1);
}

/// It has no last request that an answer could come after (Backup 11).
#[test]
fn a_backup_that_stays_answers_before_it_commits_and_keeps_what_it_answered() {
    let mut net = net("quorum");
    let mut sum = 0;
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, K);
    net.lose(|frame| frame.to == r(3) || frame.from == r(3) || kind(&frame.message) == "COMMIT");
    ask(&mut net, &mut sum, 1);
    let executed = |net: &Net<Counter>, id: usize| net.hosts[id].replica.estate().executed_for_good();
    assert_eq!([0, 1, 2].map(|id| executed(&net, id)), [executed(&net, 0); 3]);
    assert!([0, 1, 2].iter().all(|id| net.hosts[*id].replica.estate().is_tentative()));
    // Another view, without the primary of this one, has it as well.
    net.isolate(&[0]);
    net.pass(3 * Limits::default().view_timeout.0);
    ask(&mut net, &mut sum, 1);
    net.heal();
    net.pass(2 * A_WHILE);
    ask(&mut net, &mut sum, K);
    assert_eq!([0, 1, 2, 3].map(|id| instance(&net, id)), [3; 4]);
}

/// Batches are numbered in each instance anew: Chain's last one has a greater number than any that the Backup has done.
#[test]
fn what_chain_executed_is_answered_as_final_beside_a_tentative_batch() {
    let mut net = net_of("chain", 2);
    let mut sum = 0;
    ask(&mut net, &mut sum, 4 * K);
    net.submit(0, &Counter::add(1), false);
    let timestamp = net.clients[0].asked().expect("it is outstanding");
    cut(&mut net, &[3]);
    net.completed.clear();
    assert_eq!(net.add_within(25, 1, 1), done(sum + 2));
    assert_eq!(instance(&net, 0), 2);
    net.lose(|frame| frame.to == r(3) || frame.from == r(3) || kind(&frame.message) == "COMMIT");
    assert_eq!(net.add_within(25, 1, 1), done(sum + 3));
    let estate = net.hosts[0].replica.estate();
    assert!(estate.is_tentative());
    let again = net.request(InstanceId(2), 0, timestamp.0, &Counter::add(1));
    let Freshness::Last(last) = estate.freshness(&again) else { panic!("Chain executed it last") };
    assert!(last.sequence > estate.executed_for_good());
    let before = net.sent.len();
    net.forge(c(0), r(0), Message::Request(again));
    net.round();
    let answers = net.sent[before..].iter().filter_map(|frame| match &frame.message {
        Message::Reply(reply) if frame.to == c(0) => Some(reply.firmness),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [Firmness::Final]);
}

/// What it executed tentatively may not be what the instance ended with.
#[test]
fn who_is_moved_on_with_a_tentative_batch_undoes_it() {
    let mut net = net("quorum");
    let mut sum = 0;
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, K);
    // Replica 2 hears nothing that is final from now on.
    net.lose(|frame| frame.to == r(3) || frame.from == r(3) || frame.to == r(2) && kind(&frame.message) == "COMMIT");
    ask(&mut net, &mut sum, 1);
    assert!(net.hosts[2].replica.estate().is_tentative());
    net.heal();
    net.isolate(&[2]);
    net.pass(2 * A_WHILE);
    ask(&mut net, &mut sum, 1);
    assert!(instance(&net, 1) > 2 && instance(&net, 2) == 2, "the others have ended it");
    assert!(net.hosts[2].replica.estate().is_tentative());
    net.heal();
    net.pass(2 * A_WHILE);
    ask(&mut net, &mut sum, 2);
    assert!(!net.hosts[2].replica.estate().is_tentative());
    assert_eq!(net.hosts[2].replica.estate().history(), net.hosts[1].replica.estate().history());
}

/// Without this its clients wait for a time-out of the view.
#[test]
fn a_backup_does_not_wait_for_a_primary_that_is_missing() {
    let mut net = net("quorum");
    let mut sum = 0;
    cut(&mut net, &[0]);
    let from = net.now;
    ask(&mut net, &mut sum, 1);
    let took = net.now.0 - from.0;
    assert!(took < Limits::default().view_timeout.0, "it took {took} µs");
    assert!(
        net.noticed(1, |notice| matches!(notice, Notice::ViewChangeStarted { reason: "the primary is missing", .. }))
    );
}

/// From now on this primary proposes nothing. Replica 3 is cut off.
fn hold_proposals(net: &mut Net<Counter>, primary: u8) {
    net.lose(move |frame| {
        let proposes = frame.from == r(primary) && kind(&frame.message) == "PRE-PREPARE";
        proposes || [frame.from, frame.to].contains(&r(3))
    });
}

/// The same, and its view is left.
fn change_view(net: &mut Net<Counter>, sum: &mut u64, primary: u8) {
    hold_proposals(net, primary);
    ask(net, sum, 1);
}

/// The views that a replica has left for.
fn left_for(net: &Net<Counter>, id: usize) -> Vec<u64> {
    let started = net.hosts[id].notices.iter().filter_map(|(_, notice)| match notice {
        Notice::ViewChangeStarted { view, .. } => Some(view.0),
        _ => None,
    });
    started.collect()
}

/// Otherwise clients wait for nothing in each turn of that replica.
#[test]
fn a_backup_that_stays_passes_over_who_is_missing() {
    let mut net = net("backup(pbft), quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, K + 1);
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, 1);
    assert_eq!([0, 1, 2].map(|id| (instance(&net, id), net.views()[id])), [(3, 1); 3], "the second Backup");
    change_view(&mut net, &mut sum, 1);
    change_view(&mut net, &mut sum, 2);
    assert_eq!([0, 1, 2].map(|id| left_for(&net, id)), [[2, 4]; 3], "3 is not anybody's view");
    // Also after a restart.
    net.restart(1, false);
    net.settle();
    [0, 1, 2].into_iter().for_each(|primary| change_view(&mut net, &mut sum, primary));
    assert_eq!([0, 1, 2].map(|id| left_for(&net, id).split_off(2)), [[5, 6, 8]; 3]);
    // Nobody is missing any more.
    net.heal();
    net.pass(A_WHILE);
    ask(&mut net, &mut sum, 1);
    assert_eq!([0, 1, 2, 3].map(|id| instance(&net, id)), [4; 4]);
}

/// Views end by themselves there, as Aardvark expects more and more of them.
#[test]
fn a_watched_backup_that_stays_passes_over_who_is_missing() {
    let turn = Limits::default().view_timeout.0 / 4;
    let mut net = net_of("backup(aardvark), quorum", 4);
    let mut sum = 0;
    ask(&mut net, &mut sum, K + 1);
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, 1);
    assert_eq!(net.views()[0], 1, "the second Backup");
    // A primary takes a twentieth of a turn to propose, and later a tenth.
    for later in [[turn / 20; 60], [turn / 10; 60]].concat() {
        (0..4).for_each(|client| net.submit(client, &Counter::add(1), false));
        net.round();
        let proposals = core::mem::take(&mut net.in_flight);
        net.pass(later);
        net.in_flight.extend(proposals);
        net.settle();
        assert_eq!(core::mem::take(&mut net.completed).len(), 4, "each is answered");
    }
    assert_eq!([0, 1, 2].map(|id| left_for(&net, id)), [[2, 4, 5]; 3]);
}

#[test]
fn who_leaves_with_the_primary_passes_over_who_is_missing() {
    let mut net = net("backup(pbft), quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, K + 1);
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, 1);
    change_view(&mut net, &mut sum, 1);
    let (instance, view) = (InstanceId(3), View(4));
    let stable = Evidence::genesis(instance, Digest::ZERO).claim();
    let left = ViewChange { view, stable, prepared: Vec::new(), pre_prepared: Vec::new() };
    let left = PbftMessage::ViewChange(Box::new(net.keyring(r(2)).sign(left).into()));
    [0, 1].into_iter().for_each(|id| net.forge(r(2), r(id), Message::from((instance, left.clone()))));
    net.settle();
    assert_eq!([0, 1].map(|id| left_for(&net, id)), [[2, 4]; 2]);
}

/// It does not have the INIT any more, and visits all views that others may be in.
#[test]
fn who_restarts_from_a_snapshot_passes_over_nobody() {
    let limits = Limits { checkpoint_interval: 4, log_bytes_per_snapshot: 1, ..Limits::default() };
    let mut net = net_with("backup(pbft), quorum", 4, 1, limits);
    let mut sum = 0;
    ask(&mut net, &mut sum, K + 1);
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, 20);
    net.restart(0, false);
    net.settle();
    change_view(&mut net, &mut sum, 1);
    hold_proposals(&mut net, 2);
    // Another goes with it, so that all wait for view 3.
    assert_eq!(net.add_within(80, 0, 1), done(sum + 1));
    assert_eq!((left_for(&net, 0), left_for(&net, 1)), (vec![2, 3, 4], vec![2, 4]));
}

/// It has its quota to do, with all. The one that was missing leads, also after a restart.
#[test]
fn a_backup_whose_stay_is_over_passes_over_nobody() {
    for who in [1, 3] {
        let mut net = net("quorum");
        let mut sum = 0;
        cut(&mut net, &[3]);
        ask(&mut net, &mut sum, 1);
        net.heal();
        net.pass(A_WHILE);
        assert!(!net.hosts[0].replica.estate().stays(), "the END was ordered");
        net.lose(|frame| [r(0), r(1), r(2)].contains(&frame.from) && kind(&frame.message) == "PRE-PREPARE");
        assert_eq!(net.add_within(200, 0, 1), done(sum + 1));
        assert_eq!(left_for(&net, 0), [1, 2, 3]);
        net.heal();
        net.pass(A_WHILE);
        let before = net.views();
        net.restart(who, false);
        net.settle();
        assert_eq!(net.views(), before, "replica {who} restarts");
    }
}

/// One of f+1 is correct, so that those who are missing can be others for everybody, if liars help.
#[test]
fn own_proofs_serve_to_leave_the_first_view_only() {
    let mut net = net("quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, 1);
    // Each correct replica lacks the word of one other; and of what ends the instance it hears that of the third.
    let lacks =
        |frame: &Frame| [(1, 0), (2, 1), (0, 2)].iter().any(|&(from, to)| frame.from == r(from) && frame.to == r(to));
    let liar = |frame: &Frame| frame.from == r(3);
    net.lose(move |frame| lacks(frame) && kind(&frame.message) == "PRESENT");
    net.pass(A_WHILE);
    net.lose(move |frame| {
        let is_about = ["PRESENT", "INIT", "ABORT", "PROOF"].contains(&kind(&frame.message).as_str());
        liar(frame) || lacks(frame) && is_about
    });
    let panic = panic(InstanceId(1), 0);
    (0..3).for_each(|id| net.forge(c(0), r(id), panic.clone()));
    net.settle();
    let report = net.said(r(0), "ABORT").into_iter().find_map(|frame| match &frame.message {
        Message::Switch(Switch { message: SwitchMessage::Abort(report), .. }) => Some(report.claims().clone()),
        _ => None,
    });
    let report = report.expect("it has stopped");
    for (to, named) in [(0, 1), (1, 2), (2, 0)] {
        let silent = core::iter::once(ReplicaId(named)).collect();
        let lie = net.keyring(r(3)).sign(AbortReport { silent, ..report.clone() });
        let message = SwitchMessage::Abort(Arc::new(lie.claim()));
        net.forge(r(3), r(to), Message::Switch(Switch { instance: InstanceId(1), message }));
    }
    net.round();
    // No view begins until all time-outs are the same.
    net.lose(move |frame| liar(frame) || kind(&frame.message) == "NEW-VIEW");
    net.settle();
    assert_eq!([0, 1, 2].map(|id| instance(&net, id)), [2; 3]);
    net.submit(0, &Counter::add(1), false);
    let pass_together = |net: &mut Net<Counter>, seconds: u64| {
        let end = net.now + Duration::from_millis(1_000 * seconds);
        while net.fire_before(end) {
            let now = net.now;
            while net.fire_before(now) {}
            net.settle();
        }
    };
    pass_together(&mut net, 300);
    net.lose(liar);
    pass_together(&mut net, 200);
    assert_eq!(net.completed.len(), 1, "the network is perfect");
}

/// Four of six replicas go on without two, though one only may lie.
#[test]
fn a_backup_passes_over_as_many_as_it_does_not_need() {
    let mut net = net_with("quorum", 6, 1, Limits::default());
    let mut sum = 0;
    cut(&mut net, &[0, 5]);
    let from = net.now;
    ask(&mut net, &mut sum, 1);
    let took = net.now.0 - from.0;
    assert!(took < Limits::default().view_timeout.0, "it took {took} µs");
}

/// Who is missing is the same for all, whichever reports each has.
#[test]
fn whom_a_backup_passes_over_is_what_its_init_says() {
    let mut net = net("backup(pbft), quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, K + 1);
    // Replicas 1 and 2 do not hear replica 3. Replica 0 does, and has one report at most that names it.
    let mute = |frame: &Frame| {
        let said = kind(&frame.message);
        said == "RETURNED" || said == "PRESENT" && frame.from == r(3) && [r(1), r(2)].contains(&frame.to)
    };
    let unheard = |frame: &Frame| {
        let said = kind(&frame.message);
        frame.to == r(0) && (said == "INIT" || frame.from == r(1) && said == "ABORT")
    };
    net.lose(move |frame| mute(frame) || unheard(frame));
    net.pass(A_WHILE);
    let panic = panic(InstanceId(2), 0);
    (1..3).for_each(|id| net.forge(c(0), r(id), panic.clone()));
    net.settle();
    assert_eq!([0, 1, 2, 3].map(|id| (instance(&net, id), net.views()[id])), [(3, 1); 4]);
    for primary in 1..3 {
        net.lose(move |frame| mute(frame) || frame.from == r(primary) && kind(&frame.message) == "PRE-PREPARE");
        ask(&mut net, &mut sum, 1);
    }
    assert_eq!([0, 1, 2].map(|id| left_for(&net, id)), [[2, 4]; 3]);
}

/// Each named all others, after a partition. A liar who names all others as well would be the only one to lead.
#[test]
fn more_than_f_who_are_missing_lead_all_the_same() {
    let mut net = net("quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, 1);
    net.lose(|frame| kind(&frame.message) == "PRESENT");
    net.pass(A_WHILE);
    let panic = panic(InstanceId(1), 0);
    (0..2).for_each(|id| net.forge(c(0), r(id), panic.clone()));
    net.settle();
    ask(&mut net, &mut sum, 1);
    assert!(net.hosts[1].replica.estate().stays(), "somebody is missing");
    assert!((0..4).all(|id| left_for(&net, id).is_empty()));
    net.lose(|frame| frame.from == r(0) && ["PRE-PREPARE", "PRESENT"].contains(&kind(&frame.message).as_str()));
    ask(&mut net, &mut sum, 1);
    assert_eq!(left_for(&net, 2), [1]);
}

/// It died just now, so that nobody is silent yet. A watched primary has half a time-out to order the INIT.
#[test]
fn a_backup_does_not_wait_a_whole_time_out_for_a_first_primary_that_has_just_died() {
    let mut net = net("backup(aardvark), quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, K + 1);
    net.isolate(&[1]);
    let panic = panic(InstanceId(2), 0);
    [0, 2].into_iter().for_each(|id| net.forge(c(0), r(id), panic.clone()));
    net.settle();
    assert_eq!([0, 2, 3].map(|id| (instance(&net, id), net.views()[id])), [(3, 1); 3], "it is to begin");
    let from = net.now;
    ask(&mut net, &mut sum, 1);
    let took = net.now.0 - from.0;
    assert!(took <= Limits::default().view_timeout.0 * 6 / 10, "it took {took} µs");
    let why = |notice: &Notice| matches!(notice, Notice::ViewChangeStarted { reason: "a request waits too long", .. });
    assert!(net.noticed(0, why), "nobody is missing");
}

#[test]
fn who_restarts_in_a_backup_that_stays_stays_and_ends_with_the_others() {
    let mut net = net("quorum");
    let mut sum = 0;
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, 2 * K);
    net.restart(1, false);
    net.settle();
    ask(&mut net, &mut sum, K);
    assert_eq!([0, 1, 2].map(|id| instance(&net, id)), [2; 3]);
    net.heal();
    net.pass(2 * A_WHILE);
    ask(&mut net, &mut sum, 1);
    assert_eq!([0, 1, 2, 3].map(|id| instance(&net, id)), [3; 4]);
    net.restart(2, false);
    net.settle();
    ask(&mut net, &mut sum, 2);
    assert_eq!([0, 1, 2, 3].map(|id| instance(&net, id)), [3; 4]);
}

/// One of f+1 is correct, and hears all, in this instance.
#[test]
fn f_replicas_end_no_stay() {
    let number = InstanceId(2);
    let signers: [&[(u8, InstanceId)]; 4] =
        [&[(1, number)], &[(1, number), (2, InstanceId(4))], &[(1, number), (1, number)], &[(1, number), (2, number)]];
    for (case, signers) in signers.into_iter().enumerate() {
        let mut net = net("quorum");
        let mut sum = 0;
        cut(&mut net, &[3]);
        ask(&mut net, &mut sum, 2 * K);
        let signed: Vec<Signed<Returned>> =
            signers.iter().map(|&(id, instance)| net.keyring(r(id)).sign(Returned { instance })).collect();
        let said = SwitchMessage::Returned(Box::new(signed[0].claim()));
        let said = Message::Switch(Switch { instance: number, message: said });
        let end = Message::Request(Request::end_of_stay(number, ReplicaId(1), net.now, signed));
        for id in [0, 2] {
            net.forge(r(1), r(id), said.clone());
            net.forge(r(1), r(id), end.clone());
        }
        net.settle();
        net.pass(A_WHILE);
        // With two of them it would be right. Quorum is left as soon as it begins: the third is missing all the same.
        assert_eq!(instance(&net, 0), if case == 3 { 4 } else { 2 }, "{case}");
    }
}

/// It was there when the Backup began, so the Backup has a last request. Otherwise Quorum would wait for it, and every
/// client for a time-out.
#[test]
fn who_falls_silent_in_a_backup_is_missing_when_it_ends() {
    let mut net = net("backup(pbft), quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, 1);
    cut(&mut net, &[3]);
    ask(&mut net, &mut sum, K - 1);
    net.settle();
    assert!((0..3).all(|id| stopped_for_missing(&net, id, 2)));
    assert!(net.said(c(0), "PANIC").is_empty(), "no client waits for Quorum");
    ask(&mut net, &mut sum, 3 * K);
    assert_eq!([0, 1, 2].map(|id| instance(&net, id)), [3; 3], "the next one stays");
    net.heal();
    net.pass(A_WHILE);
    ask(&mut net, &mut sum, 2);
    assert_eq!([0, 1, 2, 3].map(|id| instance(&net, id)), [4; 4]);
}

/// Until it has begun nobody is there, and that may take long. It ends sooner after that than anybody says so again.
#[test]
fn a_backup_that_took_long_to_begin_calls_nobody_silent() {
    let mut net = net("backup(pbft), quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, K + 1);
    net.lose(|frame| kind(&frame.message) == "PRE-PREPARE");
    let panic = panic(InstanceId(2), 0);
    (0..2).for_each(|id| net.forge(c(0), r(id), panic.clone()));
    net.settle();
    net.pass(A_WHILE);
    assert_eq!([0, 1, 2, 3].map(|id| instance(&net, id)), [3; 4]);
    net.lose(|frame| kind(&frame.message) == "PRESENT");
    ask(&mut net, &mut sum, K);
    net.settle();
    assert_eq!([0, 1, 2, 3].map(|id| instance(&net, id)), [4; 4]);
    assert!((0..4).all(|id| !stopped_for_missing(&net, id, 4)));
}

/// The log begins anew with the state that was fetched, and tells of the report as well.
#[test]
fn who_fetched_the_end_of_a_backup_reports_it_in_the_same_way_after_a_restart() {
    let mut net = net("backup(pbft), quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, 1);
    // Replica 3 calls replica 0 silent, lacks the last batches, and is not told that the others have gone on.
    net.lose(|frame| {
        let said = kind(&frame.message);
        let is_order = ["PRE-PREPARE", "PREPARE", "COMMIT", "DECIDED", "PROOF", "FETCH"].contains(&said.as_str());
        let is_lost = is_order || ["ABORT", "INIT"].contains(&said.as_str()) || frame.from == r(0) && said == "PRESENT";
        frame.to == r(3) && is_lost && frame.from != c(0)
    });
    net.pass(A_WHILE);
    ask(&mut net, &mut sum, K - 1);
    net.pass(3 * A_WHILE);
    let reports = |net: &Net<Counter>| {
        let said = net.said(r(3), "ABORT").into_iter().filter_map(|frame| match &frame.message {
            Message::Switch(Switch { instance: InstanceId(1), message: SwitchMessage::Abort(report) }) => {
                Some(report.clone())
            }
            _ => None,
        });
        said.collect::<Vec<_>>()
    };
    let first = reports(&net).first().cloned().expect("it has come to the end");
    assert!(first.claims().silent.contains(ReplicaId(0)));
    let before = reports(&net).len();
    net.restart(3, false);
    net.pass(A_WHILE);
    let all = reports(&net);
    assert!(all.len() > before, "it says so again");
    assert!(all.iter().all(|report| *report == first));
}

/// Two reports of one end prove it, whomever else they name.
#[test]
fn where_a_backup_ended_does_not_depend_on_who_was_not_heard_of() {
    let mut net = net("backup(pbft), quorum");
    let mut sum = 0;
    ask(&mut net, &mut sum, 1);
    let present = |frame: &Frame| frame.to == r(1) && frame.from != c(0) && kind(&frame.message) == "PRESENT";
    // Replica 0 has its own report, and that of replica 1, which calls the other two silent.
    net.lose(move |frame| present(frame) || frame.to == r(0) && frame.from != r(1) && kind(&frame.message) == "ABORT");
    net.pass(A_WHILE);
    ask(&mut net, &mut sum, K - 1);
    net.settle();
    let named = net.said(r(1), "ABORT").iter().any(|frame| match &frame.message {
        Message::Switch(Switch { message: SwitchMessage::Abort(report), .. }) => !report.claims().silent.is_empty(),
        _ => false,
    });
    assert!(named);
    assert_eq!([0, 1, 2, 3].map(|id| instance(&net, id)), [2; 4], "f name nobody, and each has a proof");
    ask(&mut net, &mut sum, 1);
    assert!((0..4).all(|id| !stopped_for_missing(&net, id, 2)));
}

/// An instance that f replicas find nobody in is not left.
#[test]
fn one_replica_that_hears_nothing_makes_nobody_missing() {
    let mut net = net("aliph");
    let mut sum = 0;
    ask(&mut net, &mut sum, 1);
    net.lose(|frame| frame.to == r(1) && frame.from != c(0) && kind(&frame.message) == "PRESENT");
    net.pass(A_WHILE);
    let panic = panic(InstanceId(1), 0);
    (0..2).for_each(|id| net.forge(c(0), r(id), panic.clone()));
    net.settle();
    assert_eq!(instance(&net, 0), 2, "Quorum has stopped");
    ask(&mut net, &mut sum, 1);
    assert!((0..4).all(|id| !stopped_for_missing(&net, id, 2)));
}

/// Otherwise a client that panics at one replica makes that one missing, and has the others leave its view.
#[test]
fn who_has_stopped_alone_is_there() {
    let mut net = net("aliph");
    let mut sum = 0;
    ask(&mut net, &mut sum, 1);
    let panic = panic(InstanceId(1), 0);
    net.forge(c(0), r(0), panic.clone());
    net.settle();
    net.pass(2 * A_WHILE);
    assert_eq!(instance(&net, 1), 1, "one that stops is not enough");
    net.forge(c(0), r(1), panic);
    net.settle();
    assert_eq!(instance(&net, 1), 2);
    net.pass(A_WHILE);
    assert!((0..4).all(|id| !stopped_for_missing(&net, id, 2)));
}
