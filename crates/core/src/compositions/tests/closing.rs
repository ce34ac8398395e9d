//! After CLOSE nothing is written any more, at any replica, and everything is read.

use crate::client::{Client, Completion};
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::estate::{Summary, genesis_of, successor_of};
use crate::ids::ClientId;
use crate::joining::CONTROL_SESSION;
use crate::members::Admission;
use crate::message::{Firmness, Refusal};
use crate::registry::Message;
use crate::schedule::Protocol;
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use crate::services::Counter;
use crate::testing::net::{IDENTITY, Net, cluster, done};
use crate::time::Instant;
use crate::wire::Wire;
use alloc::rc::Rc;
use alloc::vec::Vec;
use bytes::Bytes;

const PROTOCOLS: [Protocol; 8] = [
    Protocol::Pbft,
    Protocol::ZLight,
    Protocol::Quorum,
    Protocol::Chain,
    Protocol::Azyzzyva,
    Protocol::Aliph,
    Protocol::Ring,
    Protocol::Unreplicated,
];

/// How long an answer may take, in tenths of a second.
const PATIENCE: usize = 100;

const CLOSED: Option<Completion> = Some(Completion::Refused(Refusal::Closed));

fn limits() -> Limits {
    Limits { checkpoint_interval: 4, history_interval: 4, ..Limits::default() }
}

/// Client 0 writes, and client 1 closes.
fn net_of<S: Service>(cluster: Cluster, make: fn(usize) -> S) -> Net<S> {
    let mut net = Net::of(cluster, 2, make);
    let (shared, keys) = (Rc::new(net.cluster.clone()), net.client_keys.clone());
    net.clients[1] = Client::new(shared, keys, ClientId { identity: IDENTITY, session: CONTROL_SESSION });
    net
}

fn net(protocol: Protocol) -> Net {
    let n = if protocol == Protocol::Unreplicated { 1 } else { 4 };
    net_of(Cluster { protocol, ..cluster(n, ClientAuth::Hybrid, limits()) }, |_| Counter::default())
}

/// What comes of a call.
fn call<S: Service>(net: &mut Net<S>, client: usize, operation: &[u8], read_only: bool) -> Option<Completion> {
    net.submit(client, operation, read_only);
    for _ in 0..PATIENCE {
        net.pass(100_000);
        if let Some(completed) = net.completed.pop() {
            return Some(completed.result);
        }
    }
    None
}

/// The position that CLOSE is answered with.
fn close<S: Service>(net: &mut Net<S>) -> u64 {
    match call(net, 1, &[], false) {
        Some(Completion::Done(result)) => u64::from_bytes(result).unwrap(),
        other => panic!("not closed: {other:?}"),
    }
}

/// What each replica says of it.
fn closed<S: Service>(net: &Net<S>) -> Vec<Option<u64>> {
    net.hosts.iter().map(|host| host.replica.report().closed).collect()
}

#[test]
fn after_a_close_nothing_is_written_under_any_protocol() {
    for protocol in PROTOCOLS {
        let mut net = net(protocol);
        for sum in 1..=5 {
            assert_eq!(call(&mut net, 0, &Counter::add(1), false), done(sum), "{protocol}");
        }
        assert!(closed(&net).iter().all(Option::is_none), "{protocol}");
        let position = close(&mut net);
        for _ in 0..6 {
            assert_eq!(call(&mut net, 0, &Counter::add(1), false), CLOSED, "{protocol}");
        }
        assert_eq!(call(&mut net, 0, Counter::READ, true), done(5), "{protocol}");
        assert_eq!(close(&mut net), position, "{protocol}: asked again");
        let sum = Ok(Bytes::copy_from_slice(&5_u64.to_le_bytes()));
        net.pass(5_000_000);
        assert!(closed(&net).iter().all(|at| *at == Some(position)), "{protocol}: {:?}", closed(&net));
        assert!(
            net.hosts.iter().all(|host| host.replica.service().query(Counter::READ, &Asker::default()) == sum),
            "{protocol}"
        );
    }
}

#[test]
fn a_closed_cluster_is_closed_after_a_restart() {
    for protocol in PROTOCOLS.into_iter().filter(|protocol| *protocol != Protocol::Unreplicated) {
        let mut net = net(protocol);
        assert_eq!(call(&mut net, 0, &Counter::add(1), false), done(1), "{protocol}");
        let position = close(&mut net);
        for round in 0..3 {
            for id in 0..net.hosts.len() {
                net.restart(id, false);
                net.pass(1_000_000);
            }
            assert!(closed(&net).iter().all(|at| *at == Some(position)), "{protocol}: {:?}", closed(&net));
            // From the log at first, and from a checkpoint later.
            for _ in 0..6 {
                assert_eq!(call(&mut net, 0, &Counter::add(1), false), CLOSED, "{protocol} after {round}");
            }
        }
        assert_eq!(call(&mut net, 0, Counter::READ, true), done(1), "{protocol}");
    }
}

#[test]
fn who_has_lost_its_log_learns_that_the_cluster_is_closed() {
    let mut net = net(Protocol::Pbft);
    assert_eq!(net.add(1), done(1));
    let position = close(&mut net);
    net.restart(3, true);
    for _ in 0..20 {
        assert_eq!(call(&mut net, 0, &Counter::add(1), false), CLOSED);
    }
    assert_eq!(closed(&net), [Some(position); 4]);
    let version = net.hosts[3].replica.estate().newest_version();
    assert_eq!(Summary::of(version).and_then(|of| of.closed), Some(position), "a checkpoint says so");

    // A successor begins with what the service has, and is open.
    let genesis = genesis_of(&net.cluster, Counter::default(), version).unwrap();
    assert_eq!(Summary::of(&genesis).map(|of| (of.position, of.closed)), Some((0, None)));
    let successor = successor_of(&net.cluster, version).map(|tree| tree.root());
    assert_eq!(successor, Some(genesis.root()), "whether or not the service is asked");
    assert!(successor_of(&net.cluster, &genesis).is_none(), "an open cluster has none");
}

#[test]
fn a_query_is_answered_where_it_is_ordered_in_the_end() {
    let mut net = net(Protocol::Pbft);
    assert_eq!(net.add(3), done(3));
    close(&mut net);
    net.lose(|frame| matches!(&frame.message, Message::Reply(reply) if reply.firmness == Firmness::Read));
    assert_eq!(call(&mut net, 0, Counter::READ, true), done(3));
    let refused = Some(Completion::Refused(Refusal::NotReadOnly));
    assert_eq!(call(&mut net, 0, &Counter::add(1), true), refused, "a query that writes is none");
    // Nor does one in the session that is kept for closing close anything.
    let mut open = self::net(Protocol::Pbft);
    assert_eq!(call(&mut open, 1, Counter::READ, true), done(0));
    open.lose(|frame| matches!(&frame.message, Message::Reply(reply) if reply.firmness == Firmness::Read));
    assert_eq!(call(&mut open, 1, Counter::READ, true), done(0));
    assert_eq!(closed(&open), [None; 4]);
}

/// Nobody may close it.
#[derive(Clone, Debug, Default)]
struct Guarded(Counter);

impl Service for Guarded {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        self.0.execute(operation, agreed)
    }
    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        self.0.query(operation, asker)
    }
    fn may_close(&self, asker: &Asker) -> bool {
        assert!(!asker.joined && asker.client.session == CONTROL_SESSION);
        false
    }
    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.0.save(write);
    }
    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        self.0.load(pages)
    }
}

#[test]
fn whom_the_service_does_not_let_close_changes_nothing() {
    for protocol in PROTOCOLS.into_iter().filter(|protocol| *protocol != Protocol::Unreplicated) {
        let cluster = Cluster { protocol, ..cluster(4, ClientAuth::Hybrid, limits()) };
        let mut net = net_of(cluster, |_| Guarded::default());
        assert_eq!(net.add_within(PATIENCE, 0, 1), done(1), "{protocol}");
        let refused = Some(Completion::Refused(Refusal::Unauthorized));
        assert_eq!(call(&mut net, 1, &[], false), refused, "{protocol}");
        assert_eq!(net.add_within(PATIENCE, 0, 1), done(2), "{protocol}");
        assert_eq!(closed(&net), [None; 4], "{protocol}");
    }
}

/// Who has joined goes on to read, and leaves; it cannot write, and nobody joins any more.
#[test]
fn nobody_joins_a_closed_cluster() {
    let cluster = cluster(4, ClientAuth::Hybrid, limits()).with_dynamic_clients();
    let mut net = net_of(cluster, |_| Counter::default());
    let (member, late) = (net.stranger(77), net.stranger(78));
    let join = |net: &mut Net, who: usize| {
        net.now.0 += 10;
        let nonce = [who as u8; 16];
        net.drive_client(who, |client, now, out| client.join(now, nonce, Bytes::new(), Instant(u64::MAX), out));
        net.settle();
        net.completed.pop().expect("the JOIN is answered").result
    };
    let Completion::Done(admission) = join(&mut net, member) else { panic!("it joins") };
    let admission = Admission::from_bytes(admission).unwrap();
    let now = net.now;
    net.clients[member].enter(now, admission, 0);
    assert_eq!(call(&mut net, member, &Counter::add(1), false), done(1));
    close(&mut net);
    assert_eq!(call(&mut net, member, &Counter::add(1), false), CLOSED);
    assert_eq!(call(&mut net, member, Counter::READ, true), done(1));
    assert_eq!(join(&mut net, late), Completion::Refused(Refusal::Closed));
    net.drive_client(member, |client, now, out| client.leave(now, admission, Instant(u64::MAX), out));
    net.settle();
    let left = net.completed.pop().map(|completed| completed.result);
    assert_eq!(left, Some(Completion::Done(Bytes::new())));
    assert!(net.hosts.iter().all(|host| host.replica.report().members == 0));
}
