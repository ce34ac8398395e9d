//! Order 11: the rest between two rounds.

use super::super::{LAPS, Lap};
use super::*;

/// In how many frames a replica has said what it lists.
fn proposals(net: &Net<Counter>, from: u8) -> usize {
    let is_initial = |said: &Said| matches!(said.statement, Statement::Initial(_));
    let is_proposal = |said: &Said| said.path.number(Layer::Proposal).is_some() && is_initial(said);
    net.sent.iter().filter(|frame| frame.from == r(from) && said(frame).iter().any(is_proposal)).count()
}

/// Four of five sessions, whose requests reach four replicas.
fn net_of_several() -> Net<Counter> {
    let mut net = net_of("ritas", 4, 5);
    for session in 0..4 {
        net.now.0 += 1;
        net.submit(session, &Counter::add(1), false);
    }
    net
}

#[test]
fn whose_client_is_not_alone_rests() {
    let mut net = net_of_several();
    net.settle();
    assert_eq!(net.completed.len(), 4);
    (0..4).for_each(|id| assert_eq!(net.said(r(id), "PING").len(), 3 * usize::from(LAPS), "to three others"));
    (0..4).for_each(|id| assert_eq!(net.said(r(id), "PONG").len(), 3 * usize::from(LAPS), "{id} answers three"));
    assert!(net.hosts.iter().all(|host| host.replica.report().pending_requests == 0));
    let mut net = net_of("ritas", 4, 1);
    ask(&mut net, &mut 0, 5);
    assert_eq!(net.said(r(0), "PING").len(), 3 * usize::from(LAPS), "after the first round: others may come yet");
}

/// Nobody waits for one that rests for ever, and it takes part in what others begin (AB 3).
#[test]
fn who_gets_no_answer_joins_what_others_begin() {
    let mut net = net_of_several();
    net.lose(|frame| kind(&frame.message) == "PONG" && frame.to == r(3));
    net.settle();
    let (before, mut sum) = (proposals(&net, 3), 4);
    net.completed.clear();
    for client in [0, 1, 0, 1, 0] {
        sum += 1;
        assert_eq!(net.add_within(100, client, 1), done(sum));
    }
    net.settle();
    assert_eq!(history(&net, &[0, 1, 2, 3]), [9; 4]);
    assert!(proposals(&net, 3) > before);
}

#[test]
fn who_gets_no_answer_asks_again() {
    let mut net = net_of_several();
    net.lose(|frame| kind(&frame.message) == "PONG");
    net.settle();
    net.completed.clear();
    net.submit(0, &Counter::add(1), false);
    net.settle();
    assert!(net.completed.is_empty(), "all rest");
    net.heal();
    net.pass(A_WHILE);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(5));
}

/// Its answers would be about a round that is long over.
#[test]
fn who_fetches_a_state_does_not_rest() {
    let mut net = net_of_several();
    net.lose(|frame| kind(&frame.message) == "PONG" && frame.to == r(3));
    net.settle();
    net.completed.clear();
    net.isolate(&[3]);
    let mut sum = 4;
    ask(&mut net, &mut sum, 40);
    net.heal();
    net.lose(|frame| kind(&frame.message) == "PONG" && frame.to == r(3));
    net.pass(A_WHILE);
    assert_eq!(history(&net, &[0, 1, 2, 3]), [sum; 4]);
    net.heal();
    net.isolate(&[0]);
    ask(&mut net, &mut sum, 10);
    assert_eq!(history(&net, &[1, 2, 3]), [sum; 3]);
}

/// What others begin it takes part in.
#[test]
fn who_rests_waits_for_its_own_payload() {
    let mut net = net_of_several();
    net.lose(|frame| frame.from == r(3) && is_about(frame, Layer::Message));
    net.settle();
    assert_eq!(history(&net, &[0, 1, 2]), [3; 3]);
    net.lose(|frame| frame.to == r(3) && is_about(frame, Layer::Proposal));
    let before = proposals(&net, 3);
    net.submit(4, &Counter::add(1), false);
    net.settle();
    assert_eq!(history(&net, &[0, 1, 2]), [4; 3]);
    assert_eq!(proposals(&net, 3), before);
    net.heal();
    net.pass(A_WHILE);
    assert_eq!(history(&net, &[0, 1, 2, 3]), [5; 4]);
}

/// Each lap has its own answers, and each replica has one.
#[test]
fn an_answer_counts_once_and_in_its_lap() {
    let mut net = net_of_several();
    net.lose(|frame| kind(&frame.message) == "PONG");
    net.settle();
    let pings = net.said(r(0), "PING").len();
    let round = net.said(r(0), "PING").iter().find_map(|frame| match &frame.message {
        Message::Agreement(Agreement { message: RitasMessage::Ping(lap), .. }) => Some(lap.round),
        _ => None,
    });
    let mut tell = |from: u8, ahead: u64, number: u8| {
        let message = RitasMessage::Pong(Lap { round: round.unwrap() + ahead, number });
        net.heal();
        net.forge(r(from), r(0), Message::Agreement(Agreement { instance: InstanceId(1), message }));
        net.lose(|frame| kind(&frame.message) == "PONG");
        net.settle();
        net.said(r(0), "PING").len()
    };
    assert_eq!([tell(1, 0, 0), tell(1, 0, 0), tell(2, 1, 0), tell(2, 0, 1)], [pings; 4]);
    assert_eq!(tell(2, 0, 0), pings + 3, "the next lap");
}
