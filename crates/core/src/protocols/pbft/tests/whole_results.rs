//! Long results, which one replica sends in full: Client 12 of [`crate::client`].

use crate::client::Completion;
use crate::cluster::{ClientAuth, Limits};
use crate::services::Null;
use crate::testing::net::{Net, c, r};
use alloc::string::ToString;

/// An operation with a result of a hundred bytes.
const LONG: [u8; 4] = 100_u32.to_le_bytes();

fn net() -> Net<Null> {
    Net::serving(4, 1, ClientAuth::Hybrid, Limits::default(), |_| Null::default())
}

/// How many of so many requests were answered only some milliseconds later.
fn late(net: &mut Net<Null>, requests: usize) -> usize {
    let mut late = 0;
    for _ in 0..requests {
        net.submit(0, &LONG, false);
        net.settle();
        if net.completed.is_empty() {
            late += 1;
            net.pass(net.cluster.limits.client_retry.0 / 128);
        }
        let answer = net.completed.pop().map(|completed| completed.result);
        assert!(matches!(answer, Some(Completion::Done(result)) if result.len() == 100));
    }
    late
}

#[test]
fn who_keeps_long_results_back_is_passed_over() {
    let mut net = net();
    assert_eq!(late(&mut net, 16), 0);
    // It is the turn of this one in every second of these requests.
    net.lose(|frame| frame.from == r(2) && frame.to == c(0));
    assert_eq!(late(&mut net, 120), 4, "about the 1st, the 10th, the 27th and the 60th");
    net.heal();
    assert_eq!(late(&mut net, 200), 0);
    let said = net.said(r(2), "REPLY");
    let whole = said.iter().rev().take(20).filter(|frame| frame.message.to_string().contains("100 bytes"));
    assert!(whole.count() > 0, "it has its turn again");
}

#[test]
fn a_result_that_comes_in_full_a_little_later_is_waited_for() {
    let mut net = net();
    net.submit(0, &LONG, false);
    net.settle();
    net.completed.clear();
    let asked = net.said(c(0), "REQUEST").len();
    (0..16).for_each(|_| {
        net.submit(0, &LONG, false);
        net.settle();
        assert_eq!(net.completed.len(), 1);
        net.completed.clear();
    });
    assert_eq!(net.said(c(0), "REQUEST").len(), asked + 16, "each is asked once");
}
