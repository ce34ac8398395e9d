//! Whom clients ask first: Client 4 of [`crate::client`].

use super::net_of;
use crate::services::Counter;
use crate::testing::net::{Net, c, done, r};

/// How many of so many requests were answered only after the client had asked everybody.
fn late(net: &mut Net<Counter>, sum: &mut u64, requests: usize) -> usize {
    let mut late = 0;
    for _ in 0..requests {
        *sum += 1;
        net.submit(0, &Counter::add(1), false);
        net.settle();
        if net.completed.is_empty() {
            late += 1;
            net.pass(net.cluster.limits.client_retry.0);
        }
        assert_eq!(net.completed.pop().map(|completed| completed.result), done(*sum));
    }
    late
}

#[test]
fn who_does_not_see_to_requests_is_passed_over() {
    let (mut net, mut sum) = (net_of("ritas", 4, 1), 0);
    assert_eq!(late(&mut net, &mut sum, 8), 0);
    net.lose(|frame| frame.from == c(0) && frame.to == r(2));
    assert_eq!(late(&mut net, &mut sum, 120), 4, "about the 1st, the 10th, the 27th and the 60th");
    net.heal();
    assert_eq!(late(&mut net, &mut sum, 200), 0);
    let said = net.said(c(0), "REQUEST");
    assert!(said.iter().rev().take(8).any(|frame| frame.to == r(2)), "it has its turn again");
}
