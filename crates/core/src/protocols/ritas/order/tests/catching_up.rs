//! Order 7: who is behind comes along.

use super::*;
use crate::testing::net::Net;

/// Rounds that one of four misses: fewer than lead to a stable checkpoint.
fn net_with_one_behind(rounds: u64) -> Net<Counter> {
    let limits = Limits { checkpoint_interval: 128, ..Limits::default() };
    let cluster = Cluster { protocol: "ritas".parse().unwrap(), ..cluster(4, ClientAuth::Hybrid, limits) };
    let mut net = Net::of(cluster, 5, |_| Counter::default());
    net.isolate(&[3]);
    ask(&mut net, &mut 0, rounds);
    net.heal();
    net
}

/// No timer leads it further: three rounds for each would not do while the others go on.
#[test]
fn who_hears_that_others_are_ahead_comes_along_at_once() {
    let mut net = net_with_one_behind(40);
    assert_eq!(history(&net, &[3]), [0]);
    (0..4).for_each(|session| net.submit(session, &Counter::add(1), false));
    net.settle();
    assert_eq!(history(&net, &[0, 1, 2, 3]), [44; 4]);
}

/// What is far ahead of it nobody says to it.
#[test]
fn nobody_says_more_than_is_of_use() {
    let mut net = net_with_one_behind(40);
    net.pass(A_WHILE);
    assert_eq!(history(&net, &[0, 1, 2, 3]), [40; 4]);
    let dropped: u64 = (0..3).map(|from| net.rejected(3, r(from), Rejection::OutsideWindow)).sum();
    assert!(dropped < 100, "{dropped} statements were dropped");
}

/// A liar that speaks about far rounds.
#[test]
fn one_that_says_that_it_is_ahead_is_not_believed() {
    let mut net = net_of("ritas", 4, 1);
    let path = Path::atomic_broadcast().child(Layer::Round, 1_000).child(Layer::Proposal, 0).by(ReplicaId(3));
    let statement = Statement::Initial(Value(Bytes::from_static(&[0; 4])));
    let message = RitasMessage::Said(Statements(vec![Said { path, statement }]));
    for _ in 0..5 {
        net.forge(r(3), r(0), Message::Agreement(Agreement { instance: InstanceId(1), message: message.clone() }));
        net.settle();
    }
    assert_eq!(net.said(r(0), "PROGRESS").len(), 0);
}
