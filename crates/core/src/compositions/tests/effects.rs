//! Equal answers mean equal states: nobody is told of a write that the replicas did not write alike.

use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::compositions::Protocol;
use crate::digest::{Digest, Domain};
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use crate::services::Counter;
use crate::testing::net::{Net, cluster, done};
use bytes::Bytes;

/// The amount with which replicas write otherwise and answer alike, as after a name that was drawn at random.
const AMISS: u64 = 9;

/// A counter that writes its own name beside the sum when [`AMISS`] is added.
#[derive(Clone, Debug)]
struct Drifting {
    counter: Counter,
    name: u8,
    written: Digest,
}

impl Drifting {
    fn named(name: usize) -> Self {
        Self { counter: Counter::default(), name: name as u8, written: Digest::ZERO }
    }
}

impl Service for Drifting {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        let name = if operation == Counter::add(AMISS) { self.name } else { 0 };
        let result = self.counter.execute(operation, agreed);
        self.written = Digest::of_parts(Domain::Effects, &[&result, &[name]]);
        result
    }
    fn take_written(&mut self) -> Digest {
        core::mem::replace(&mut self.written, Digest::ZERO)
    }
    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        self.counter.query(operation, asker)
    }
    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.counter.save(write);
    }
    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        self.counter.load(pages)
    }
}

const PROTOCOLS: [Protocol; 6] =
    [Protocol::Pbft, Protocol::ZLight, Protocol::Quorum, Protocol::Chain, Protocol::Aliph, Protocol::Ring];

fn net(protocol: Protocol, make: fn(usize) -> Drifting) -> Net<Drifting> {
    let cluster = cluster(4, ClientAuth::Hybrid, Limits { checkpoint_interval: 1_000, ..Limits::default() });
    Net::of(Cluster { protocol, ..cluster }, 1, make)
}

/// What came of an addition within ten seconds.
fn add(net: &mut Net<Drifting>, amount: u64) -> Option<crate::client::Completion> {
    net.submit(0, &Counter::add(amount), false);
    for _ in 0..100 {
        net.pass(100_000);
        if let Some(completed) = net.completed.pop() {
            return Some(completed.result);
        }
    }
    None
}

/// All say nine, and no two hold the same.
#[test]
fn what_replicas_wrote_otherwise_is_never_acknowledged() {
    for protocol in PROTOCOLS {
        let mut net = net(protocol, Drifting::named);
        assert_eq!(add(&mut net, 1), done(1), "{protocol}");
        assert_eq!(add(&mut net, AMISS), None, "{protocol}");
    }
}

/// One that writes otherwise is one of the f, however right its answers are.
#[test]
fn who_writes_otherwise_alone_stops_nobody() {
    for protocol in PROTOCOLS {
        let mut net = net(protocol, |id| Drifting::named(usize::from(id == 2)));
        for (amount, sum) in [(1, 1), (AMISS, 10), (1, 11), (AMISS, 20)] {
            assert_eq!(add(&mut net, amount), done(sum), "{protocol}: {sum}");
        }
    }
}
