//! What the paper on Abstract says of Aardvark (Section 6.2), as tests, and golden scripts.

use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::digest::Digest;
use crate::ids::{Sequence, View};
use crate::notice::Notice;
use crate::protocols::pbft::{PbftMessage, Status};
use crate::registry::Message;
use crate::schedule::Protocol;
use crate::services::Counter;
use crate::testing::net::{Net, cluster, done, kind, ordering, r};
use crate::time::Duration;
use alloc::collections::BTreeSet;

const TURN: u64 = 500_000;
/// Why a view ends that is not as fast as the best of the last ones.
const SLOW: &str = "the view is slower than those before it";

fn net(clients: u32) -> Net<Counter> {
    let cluster = Cluster { protocol: Protocol::Aardvark, ..cluster(4, ClientAuth::Hybrid, Limits::default()) };
    Net::of(cluster, clients, |_| Counter::default())
}

/// So many clients ask, and what is proposed arrives this much later.
fn ask_once(net: &mut Net<Counter>, clients: usize, later: u64) {
    (0..clients).for_each(|session| net.submit(session, &Counter::add(1), false));
    net.round();
    let proposals = core::mem::take(&mut net.in_flight);
    net.pass(later - 10 * clients as u64);
    net.in_flight.extend(proposals);
    net.settle();
}

/// So many clients ask, and are answered this much later; so often.
fn ask(net: &mut Net<Counter>, clients: usize, times: u64, later: u64) {
    for _ in 0..times {
        ask_once(net, clients, later);
        assert_eq!(core::mem::take(&mut net.completed).len(), clients, "each is answered");
    }
}

/// The last replica finds that the first view has failed.
fn complain(net: &mut Net<Counter>) {
    let (view, none) = (View(0), Sequence(0));
    let way = Digest::ZERO;
    let status = Status {
        view,
        changing: false,
        stable: none,
        committed: none,
        begun: view,
        way,
        abstaining: false,
        failing: true,
    };
    (0..3).for_each(|id| net.forge(r(3), r(id), ordering(PbftMessage::Status(status))));
    net.settle();
}

/// So often, three clients ask, a sixteenth of a turn after one another.
fn ask_all_but_the_last(net: &mut Net<Counter>, times: usize) {
    for _ in 0..times {
        (0..3).for_each(|session| net.submit(session, &Counter::add(1), false));
        net.settle();
        net.pass(TURN / 16);
    }
}

/// Why replicas left views.
fn reasons(net: &Net<Counter>) -> BTreeSet<&'static str> {
    let notices = net.hosts.iter().flat_map(|host| &host.notices);
    let of = |notice: &Notice| match notice {
        Notice::ViewChangeStarted { reason, .. } => Some(*reason),
        _ => None,
    };
    notices.filter_map(|(_, notice)| of(notice)).collect()
}

/// "The primary is expected to achieve a throughput at least equal to 90% of the maximum throughput achieved by the
/// primary replicas of the n preceding views." Here the present one counts as well.
#[test]
fn a_primary_that_becomes_slow_loses_its_view() {
    let mut net = net(4);
    ask(&mut net, 4, 60, TURN / 20);
    assert_eq!(net.views(), [0; 4]);
    ask(&mut net, 4, 20, TURN / 10);
    assert_eq!(net.views(), [1; 4]);
    assert!(reasons(&net).contains(SLOW));
}

/// A view change for expectations does not double the time-out of those who found the view slow: the next primary gets
/// as long as another would.
#[test]
fn a_view_that_was_slow_costs_the_next_one_no_patience() {
    let mut net = net(4);
    ask(&mut net, 4, 60, TURN / 20);
    net.lose(|frame| frame.from == r(1) && kind(&frame.message) == "NEW-VIEW");
    while net.views() == [0; 4] {
        ask_once(&mut net, 4, TURN / 10);
    }
    assert!(reasons(&net).contains(SLOW));
    let left = net.now;
    while net.views() == [1; 4] {
        net.pass(TURN / 10);
    }
    let waited = net.now - left;
    assert!(waited < Duration(TURN * 3 / 2), "{waited:?} for a view to begin");
}

/// Aardvark 3: a primary whose NEW-VIEW nobody hears, perhaps because it floods them, has its turn as well.
#[test]
fn a_primary_begins_its_view_about_as_soon_as_others_did() {
    let mut net = net(4);
    ask(&mut net, 4, 60, TURN / 20);
    while net.views() == [0; 4] {
        ask_once(&mut net, 4, TURN / 10);
    }
    net.completed.clear();
    ask(&mut net, 4, 60, TURN / 20);
    assert_eq!(net.views(), [1; 4], "it began at once");
    net.lose(|frame| frame.from == r(2) && kind(&frame.message) == "NEW-VIEW");
    while net.views() == [1; 4] {
        ask_once(&mut net, 4, TURN / 10);
    }
    assert_eq!(net.views(), [2; 4]);
    let left = net.now;
    while net.views() == [2; 4] {
        net.pass(TURN / 50);
    }
    let waited = net.now - left;
    assert!(Duration(TURN / 10) < waited && waited <= Duration(TURN * 2 / 5), "{waited:?} for a view to begin");
}

/// Nor does it where others leave first.
#[test]
fn who_leaves_a_slow_view_with_others_is_as_patient_as_they_are() {
    let mut net = net(4);
    ask(&mut net, 4, 60, TURN / 20);
    net.lose(|frame| kind(&frame.message) == "NEW-VIEW");
    let asks_for = |net: &Net<Counter>, wanted: u64| {
        let asked = net.hosts[2].notices.iter().find_map(|(at, notice)| match notice {
            Notice::ViewChangeStarted { view, reason } if view.0 == wanted => Some((*at, *reason)),
            _ => None,
        });
        asked.unwrap_or_else(|| panic!("it leaves for view {wanted}"))
    };
    while net.views() == [0; 4] {
        ask_once(&mut net, 4, TURN / 10);
    }
    net.lose(|frame| frame.to == r(2));
    (0..8).for_each(|_| net.pass(TURN));
    let ((left, why), (next, _)) = (asks_for(&net, 1), asks_for(&net, 2));
    assert_eq!(why, "the primary leaves");
    assert!(next - left < Duration(TURN * 3 / 2), "{:?} for a view to begin", next - left);
}

/// "The expected throughput is then periodically raised by a factor of 0.01. As soon as a primary does not meet the
/// throughput expectations, a primary change occurs."
#[test]
fn no_busy_view_lasts_for_ever() {
    let mut net = net(4);
    ask(&mut net, 4, 20 * 45, TURN / 20);
    assert_eq!(net.views(), [1; 4]);
    assert!(reasons(&net).contains(SLOW));
}

/// Not even one whose primary was slow from the start: there is nothing to compare it with.
#[test]
fn a_primary_that_is_slow_from_the_start_loses_its_view() {
    let mut net = net(2);
    ask(&mut net, 2, 120, 3 * TURN);
    assert!(net.views().iter().all(|view| *view >= 1), "{:?}", net.views());
    assert!(reasons(&net).contains(SLOW), "{:?}", reasons(&net));
}

/// Only a busy view may fail, and less is expected where less waits: the paper's fails as soon as there is less to do.
#[test]
fn a_view_with_less_to_do_lasts() {
    let mut net = net(8);
    ask(&mut net, 8, 60, TURN / 20);
    ask(&mut net, 2, 30, TURN / 5);
    assert_eq!((reasons(&net), net.views()), (BTreeSet::new(), alloc::vec![0; 4]));
    net.pass(100 * TURN);
    assert_eq!((net.add(1), net.views()), (done(8 * 60 + 2 * 30 + 1), alloc::vec![0; 4]), "nor where nobody asks");
}

/// Aardvark 4: a primary that serves everybody but one client. It is noticed before the time-out of a view is over.
#[test]
fn a_primary_that_leaves_a_client_out_loses_its_view() {
    let mut net = net(4);
    ask(&mut net, 4, 16, TURN / 16);
    let left_out = net.clients[3].id();
    net.lose(move |frame| matches!(&frame.message, Message::Request(it) if it.client == left_out) && frame.to == r(0));
    net.submit(3, &Counter::add(1), false);
    ask_all_but_the_last(&mut net, 46);
    assert_eq!((reasons(&net), net.views()), (BTreeSet::new(), alloc::vec![0; 4]));
    ask_all_but_the_last(&mut net, 8);
    assert!(reasons(&net).contains("the primary leaves a request out"), "{:?}", reasons(&net));
    assert_eq!(net.views(), [1; 4]);
}

/// Aardvark 6: what f replicas say of a view ends it for none who has not found it failed.
#[test]
fn complaints_of_liars_end_no_view() {
    let mut net = net(4);
    ask(&mut net, 4, 20, TURN / 20);
    for _ in 0..20 {
        complain(&mut net);
        ask(&mut net, 4, 1, TURN / 20);
    }
    assert_eq!((reasons(&net), net.views()), (BTreeSet::new(), alloc::vec![0; 4]));
}

#[test]
fn every_script_goes_as_written() {
    crate::testing::stage::play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocols/aardvark/scripts"), 1);
}
