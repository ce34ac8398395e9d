//! Whole replicas over RITAS that toss one coin together.

use super::super::message::{Said, Statement};
use super::super::path::Layer;
use super::RitasMessage;
use crate::cluster::{ClientAuth, Cluster, Coin, Limits};
use crate::protocols::ritas::statements::Statements;
use crate::registry::Message;
use crate::services::Counter;
use crate::testing::net::{Net, cluster, done};
use alloc::vec::Vec;

/// Microseconds in which whatever was lost is said again.
const A_WHILE: u64 = 3_000_000;

fn net_of(protocol: &str, n: usize) -> Net<Counter> {
    let limits = Limits { checkpoint_interval: 8, ..Limits::default() };
    let protocol = protocol.parse().unwrap();
    let cluster = Cluster { protocol, coin: Coin::Common, ..cluster(n, ClientAuth::Hybrid, limits) };
    Net::of(cluster, 1, |_| Counter::default())
}

fn ask(net: &mut Net<Counter>, sum: &mut u64, count: u64) {
    for _ in 0..count {
        *sum += 1;
        assert_eq!(net.add_within(100, 0, 1), done(*sum));
    }
}

fn executed(net: &Net<Counter>) -> Vec<u64> {
    net.hosts.iter().map(|host| host.replica.estate().position()).collect()
}

/// What was said about binary consensus.
fn statements(net: &Net<Counter>) -> Vec<Said> {
    let of_frame = |message: &Message| match message {
        Message::Agreement(agreement) => match &agreement.message {
            RitasMessage::Said(Statements(said)) => said.clone(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let said = net.sent.iter().flat_map(|frame| of_frame(&frame.message));
    said.filter(|said| said.path.number(Layer::Binary).is_some()).collect()
}

#[test]
fn requests_are_executed_and_nobody_votes_in_steps() {
    for n in [4, 5, 7] {
        let (mut net, mut sum) = (net_of("ritas", n), 0);
        ask(&mut net, &mut sum, 10);
        assert_eq!(executed(&net), [10].repeat(n));
        let said = statements(&net);
        assert!(said.iter().any(|said| matches!(said.statement, Statement::Est(true))));
        assert!(said.iter().all(|said| said.path.number(Layer::Step).is_none()));
    }
}

#[test]
fn who_crashes_goes_on_where_it_was_with_one_coin_for_all() {
    let (mut net, mut sum) = (net_of("ritas", 4), 0);
    for round in 0..12 {
        ask(&mut net, &mut sum, 3);
        net.submit(0, &Counter::add(1), false);
        (0..round).for_each(|_| _ = net.round());
        net.restart(round % 4, false);
        net.pass(A_WHILE);
        sum += 1;
        assert_eq!(net.completed.pop().map(|completed| completed.result), done(sum));
        net.completed.clear();
    }
    for rounds in 0..10 {
        ask(&mut net, &mut sum, 1);
        net.submit(0, &Counter::add(1), false);
        (0..rounds).for_each(|_| _ = net.round());
        (0..4).for_each(|id| net.restart(id, false));
        net.pass(A_WHILE);
        sum += 1;
        assert_eq!(net.completed.pop().map(|completed| completed.result), done(sum), "{rounds}");
        net.completed.clear();
    }
    assert_eq!(executed(&net), [sum; 4]);
}

/// Order 8 to 10: also of rounds with a common coin it says nothing that it may have said differently.
#[test]
fn who_lost_its_log_is_silent_about_rounds_with_one_coin_for_all() {
    let (mut net, mut sum) = (net_of("ritas", 4), 0);
    ask(&mut net, &mut sum, 5);
    net.restart(3, true);
    let from = net.sent.len();
    net.settle();
    let is_binding = |said: &Said| said.statement.binds();
    let spoke = net.sent[from..].iter().filter(|frame| frame.from == crate::testing::net::r(3)).any(|frame| {
        matches!(&frame.message, Message::Agreement(agreement)
            if matches!(&agreement.message, RitasMessage::Said(Statements(said)) if said.iter().any(is_binding)))
    });
    assert!(!spoke, "it may have said something else");
    net.pass(10 * A_WHILE);
    assert!(!net.hosts[3].replica.report().abstaining);
    net.isolate(&[0]);
    ask(&mut net, &mut sum, 5);
}

#[test]
fn a_composition_falls_back_to_it_with_one_coin_for_all() {
    let (mut net, mut sum) = (net_of("quorum, backup(ritas)", 4), 0);
    ask(&mut net, &mut sum, 3);
    net.isolate(&[2]);
    net.pass(1_000_000);
    ask(&mut net, &mut sum, 5);
    assert!(!statements(&net).is_empty(), "RITAS runs");
    net.heal();
    net.pass(A_WHILE);
    ask(&mut net, &mut sum, 5);
    net.pass(A_WHILE);
    assert_eq!(executed(&net), [sum; 4]);
}
