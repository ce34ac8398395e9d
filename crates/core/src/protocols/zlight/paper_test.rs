//! Sentences of *The Next 700 BFT Protocols* about ZLight, as tests, and a golden script. Where we deviate on purpose,
//! a test says so and checks what `docs/papers/abstract.md` says instead.

use super::Order;
use crate::auth::Tag;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::notice::Notice;
use crate::registry::Message;
use crate::schedule::Protocol;
use crate::services::Counter;
use crate::stop::StopReason;
use crate::switching::{Switch, SwitchMessage};
use crate::testing::net::{INSTANCE, Net, c, cluster, done, kind, r};
use crate::wire::Wire;
use alloc::vec::Vec;

fn net_with(clients: u32, limits: Limits) -> Net {
    let cluster = Cluster { protocol: Protocol::ZLight, ..cluster(4, ClientAuth::Mac, limits) };
    Net::of(cluster, clients, |_| Counter::default())
}

fn net(clients: u32) -> Net {
    net_with(clients, Limits::default())
}

fn positions(net: &Net) -> Vec<u64> {
    net.hosts.iter().map(|host| host.replica.report().position).collect()
}

fn orders(net: &Net) -> Vec<&Order> {
    let said = net.sent.iter().map(|frame| &frame.message);
    said.filter_map(|message| if let Message::Order(order) = message { Some(order) } else { None }).collect()
}

/// Section 4.1: "The primary appends a sequence number to the request and broadcasts the request to all replicas."
#[test]
fn the_primary_numbers_and_broadcasts() {
    let mut net = net(1);
    assert_eq!((net.add(1), net.add(2)), (done(1), done(3)));
    assert_eq!(net.said(c(0), "REQUEST").iter().map(|frame| frame.to).collect::<Vec<_>>(), [r(0); 2]);
    assert_eq!(orders(&net).iter().map(|order| order.first).collect::<Vec<_>>(), [1, 1, 1, 2, 2, 2]);
    assert!(net.said(r(0), "ORDER").len() == 6 && (1..4).all(|id| net.said(r(id), "ORDER").is_empty()));
}

/// Section 4.1: "The client commits the request if it receives the same reply from all 3f + 1 replicas."
#[test]
fn a_client_wants_the_same_reply_of_everybody() {
    let mut net = net(1);
    net.submit(0, &Counter::add(1), false);
    net.round();
    net.round();
    let last = net.in_flight.iter().position(|frame| frame.from == r(2)).map(|at| net.in_flight.remove(at));
    net.settle();
    assert!(net.completed.is_empty(), "3f are not enough");
    net.deliver(last.unwrap());
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
}

/// Section 4.2.1, step `Z3`: "If MAC_j verification fails, r_j stops executing Step `Z3` in instance i."
#[test]
fn who_cannot_check_a_request_follows_no_more_orders() {
    let mut net = net(2);
    let mut request = net.request(INSTANCE, 0, 1, &Counter::add(1));
    let tags = request.authentication.tags.iter().enumerate();
    request.authentication.tags =
        tags.map(|(id, tag)| if id == 2 { Tag::from_bytes([0xee; 16]) } else { tag }).collect();
    net.forge(c(0), r(0), Message::Request(request));
    net.settle();
    assert_eq!(positions(&net), [1, 1, 0, 1]);
    net.submit(1, &Counter::add(2), false);
    net.settle();
    assert_eq!(positions(&net), [2, 2, 0, 2], "nor a good one");
    let why = |notice: &Notice| matches!(notice, Notice::Stopped { reason: StopReason::Unauthentic, .. });
    assert_eq!([0, 1, 2, 3].map(|id| net.noticed(id, why)), [false, false, true, false]);
}

/// Section 4.2.1, step `Z3`: a replica takes an ORDER if "sn' = sn_j + 1". The paper assumes that links keep the order.
/// Here one that overtakes another is kept until its turn comes (abs-L8).
#[test]
fn an_order_that_overtakes_waits_for_its_turn() {
    let mut net = net(1);
    net.submit(0, &Counter::add(1), false);
    net.round();
    let is_late = |frame: &crate::testing::net::Frame| frame.to == r(3) && kind(&frame.message) == "ORDER";
    let (late, now) = core::mem::take(&mut net.in_flight).into_iter().partition::<Vec<_>, _>(is_late);
    net.deliver_all(now);
    let again = net.request(INSTANCE, 0, net.now.0 + 1, &Counter::add(2));
    net.forge(c(0), r(0), Message::Request(again));
    net.settle();
    assert_eq!(positions(&net), [2, 2, 2, 0], "the second is there, and is not logged before the first");
    net.deliver_all(late);
    assert_eq!(positions(&net), [2; 4]);
}

/// Section 4.2.2, step `P1`: "Since messages may be lost, the client periodically sends PANIC messages, until it aborts
/// the request."
#[test]
fn a_client_panics_until_it_is_heard() {
    let mut net = net(1);
    net.lose(|frame| frame.from == r(1) || kind(&frame.message) == "PANIC");
    assert_eq!(net.add(1), None);
    net.pass(2_000_000);
    let panics = net.said(c(0), "PANIC").len();
    assert!(panics >= 8, "{panics} to four replicas");
    net.isolate(&[1]);
    net.pass(2_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(1));
    let panics = net.said(c(0), "PANIC").len();
    net.pass(2_000_000);
    assert_eq!(net.said(c(0), "PANIC").len(), panics, "and no longer");
}

/// Section 4.2: "replicas will now send the same abort message for all subsequent requests". Here it is signed once,
/// and goes to the other replicas (abs-P4, abs-P11).
#[test]
fn who_has_stopped_sends_the_same_report_for_ever() {
    let mut net = net(2);
    assert_eq!(net.add(1), done(1));
    // r1 stops; the others do not hear of it.
    net.lose(|frame| frame.to != r(1) || frame.from != c(0));
    let signatures = net.keyring(r(1)).counters().signatures_made.get();
    let reports = |net: &Net| -> Vec<Vec<u8>> {
        let said = net.said(r(1), "ABORT").into_iter();
        said.filter_map(|frame| match &frame.message {
            Message::Switch(Switch { message: SwitchMessage::Abort(report), .. }) => Some(report.to_bytes()),
            _ => None,
        })
        .collect()
    };
    assert_eq!(net.add(1), None);
    net.pass(5_000_000);
    let said = reports(&net);
    assert!(said.len() > 3 && said.iter().all(|report| *report == said[0]), "{}", said.len());
    assert_eq!(net.keyring(r(1)).counters().signatures_made.get(), signatures + 1);
}

/// Section 4.2.4: "If the timer expires and there is no checkpoint, the replica stops executing all requests and
/// retransmits its last checkpoint message to every other replicas."
#[test]
fn without_a_checkpoint_of_all_everything_stops() {
    let mut net = net_with(1, Limits { history_interval: 4, ..Limits::default() });
    net.lose(|frame| frame.from == r(3) && matches!(kind(&frame.message).as_str(), "LCS" | "ANCHOR"));
    for value in 1..=4 {
        assert_eq!(net.add(1), done(value));
    }
    assert_eq!(net.said(r(0), "LCS").len(), 3);
    assert_eq!(net.add(1), done(5), "nobody waits for a checkpoint that is just under way");
    net.pass(3_000_000);
    assert!(net.said(r(0), "LCS").len() > 3, "it is said again");
    assert!((0..3).all(|id| !net.noticed(id, |notice| matches!(notice, Notice::Anchored { .. }))), "2f + 1 make none");
    assert_eq!(net.add(1), None);
    assert_eq!(positions(&net), [5; 4], "although there is room");
    net.heal();
    net.pass(10_000_000);
    assert_eq!(net.completed.pop().map(|completed| completed.result), done(6));
}

#[test]
fn every_script_goes_as_written() {
    crate::testing::stage::play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocols/zlight/scripts"), 1);
}
