//! What the paper on Abstract says of Aardvark (Section 6.2), as tests, and golden scripts.

use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::notice::Notice;
use crate::schedule::Protocol;
use crate::services::Counter;
use crate::testing::net::{Net, cluster, done};
use alloc::collections::BTreeSet;

const TURN: u64 = 500_000;
/// Why a view ends that is not as fast as the best of the last ones.
const SLOW: &str = "the view is slower than those before it";

fn net(clients: u32) -> Net<Counter> {
    let cluster = Cluster { protocol: Protocol::Aardvark, ..cluster(4, ClientAuth::Hybrid, Limits::default()) };
    Net::of(cluster, clients, |_| Counter::default())
}

/// So many clients ask, and are answered this much later; so often.
fn ask(net: &mut Net<Counter>, clients: usize, times: u64, later: u64) {
    for _ in 0..times {
        (0..clients).for_each(|session| net.submit(session, &Counter::add(1), false));
        net.round();
        let proposals = core::mem::take(&mut net.in_flight);
        net.pass(later - 10 * clients as u64);
        net.in_flight.extend(proposals);
        net.settle();
        assert_eq!(core::mem::take(&mut net.completed).len(), clients, "each is answered");
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

/// "The expected throughput is then periodically raised by a factor of 0.01. As soon as a primary does not meet the
/// throughput expectations, a primary change occurs."
#[test]
fn no_busy_view_lasts_for_ever() {
    let mut net = net(4);
    ask(&mut net, 4, 20 * 45, TURN / 20);
    assert_eq!(net.views(), [1; 4]);
    assert!(reasons(&net).contains(SLOW));
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

#[test]
fn every_script_goes_as_written() {
    crate::testing::stage::play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/protocols/aardvark/scripts"), 1);
}
