//! A query changes nothing, whichever way it is answered: at once, or by its place in the order.

use crate::client::Completion;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::message::{Firmness, Refusal};
use crate::registry::Message;
use crate::schedule::{Protocol, Quota};
use crate::services::Counter;
use crate::testing::net::{Net, cluster, done};

const PROTOCOLS: [Protocol; 6] =
    [Protocol::Pbft, Protocol::ZLight, Protocol::Quorum, Protocol::Chain, Protocol::Aliph, Protocol::Ring];

/// How long an answer may take, in tenths of a second.
const PATIENCE: usize = 100;

fn net(protocol: Protocol) -> Net {
    let cluster = cluster(4, ClientAuth::Hybrid, Limits { checkpoint_interval: 1_000, ..Limits::default() });
    Net::of(Cluster { protocol, ..cluster }, 1, |_| Counter::default())
}

/// What comes of a query.
fn query(net: &mut Net, operation: &[u8]) -> Option<Completion> {
    net.submit(0, operation, true);
    for _ in 0..PATIENCE {
        net.pass(100_000);
        if let Some(completed) = net.completed.pop() {
            return Some(completed.result);
        }
    }
    None
}

const REFUSED: Option<Completion> = Some(Completion::Refused(Refusal::NotReadOnly));

#[test]
fn a_query_that_writes_is_refused_under_every_protocol() {
    for protocol in PROTOCOLS {
        let mut net = net(protocol);
        assert_eq!(net.add_within(PATIENCE, 0, 1), done(1), "{protocol}");
        assert_eq!(query(&mut net, &Counter::add(5)), REFUSED, "{protocol}");
        assert_eq!(query(&mut net, Counter::READ), done(1), "{protocol}");
        assert_eq!(net.add_within(PATIENCE, 0, 1), done(2), "{protocol}");
    }
}

#[test]
fn a_query_that_writes_is_refused_where_it_is_ordered_in_the_end() {
    let mut net = net(Protocol::Pbft);
    net.lose(|frame| matches!(&frame.message, Message::Reply(reply) if reply.firmness == Firmness::Read));
    assert_eq!(query(&mut net, &Counter::add(5)), REFUSED);
    assert_eq!(net.executed(), [1, 1, 1, 1], "it was ordered");
    assert_eq!(query(&mut net, Counter::READ), done(0));
}

/// Each request ends an instance, so that the next is asked again in another one.
#[test]
fn a_query_that_writes_is_refused_in_the_next_instance_as_well() {
    let schedule = Protocol::Schedule("backup(pbft)".parse().unwrap());
    let cluster = Cluster { quota: Quota::Fixed(1), ..net(schedule).cluster };
    let mut net = Net::of(cluster, 1, |_| Counter::default());
    for sum in 1..=3 {
        assert_eq!(net.add_within(PATIENCE, 0, 1), done(sum));
        assert_eq!(query(&mut net, &Counter::add(5)), REFUSED);
        assert_eq!(query(&mut net, Counter::READ), done(sum));
    }
    assert!(net.hosts.iter().all(|host| host.replica.instance().0 > 6), "each has had an instance of its own");
}
