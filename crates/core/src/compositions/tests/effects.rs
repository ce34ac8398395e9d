//! Equal answers mean equal states: nobody is told of a write that the replicas did not write alike.

use crate::client::Completion;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::digest::{Digest, Domain};
use crate::notice::Notice;
use crate::registry::Message;
use crate::schedule::Protocol;
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, RESULT_BYTES_MAX, Service};
use crate::services::Counter;
use crate::testing::net::{Net, cluster, done};
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// The amount with which replicas write otherwise and answer alike, as after a name that was drawn at random.
pub(super) const AMISS: u64 = 9;

/// A counter that writes its own name beside the sum when [`AMISS`] is added.
#[derive(Clone, Debug)]
pub(super) struct Drifting {
    counter: Counter,
    name: u8,
    written: Digest,
    run_max: usize,
}

impl Drifting {
    pub(super) fn named(name: usize) -> Self {
        Self { counter: Counter::default(), name: name as u8, written: Digest::ZERO, run_max: 1 }
    }

    /// The same, which gets requests together.
    pub(super) fn together(name: usize) -> Self {
        Self { run_max: 64, ..Self::named(name) }
    }
}

impl Service for Drifting {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        let name = if operation == Counter::add(AMISS) { self.name } else { 0 };
        let result = self.counter.execute(operation, agreed);
        self.written = Digest::of_parts(Domain::Effects, &[&self.written.0, &result, &[name]]);
        result
    }
    fn run_max(&self) -> usize {
        self.run_max
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

/// How long an addition may take, in tenths of a second.
const PATIENCE: usize = 100;

/// All say nine, and no two hold the same.
#[test]
fn what_replicas_wrote_otherwise_is_never_acknowledged() {
    for protocol in PROTOCOLS {
        let mut net = net(protocol, Drifting::named);
        assert_eq!(net.add_within(PATIENCE, 0, 1), done(1), "{protocol}");
        assert!(!matches!(net.add_within(PATIENCE, 0, AMISS), Some(Completion::Done(_))), "{protocol}");
    }
}

/// One that writes otherwise is one of the f, however right its answers are.
#[test]
fn who_writes_otherwise_alone_stops_nobody() {
    for protocol in PROTOCOLS {
        let mut net = net(protocol, |id| Drifting::named(usize::from(id == 2)));
        for (amount, sum) in [(1, 1), (AMISS, 10), (1, 11), (AMISS, 20)] {
            assert_eq!(net.add_within(PATIENCE, 0, amount), done(sum), "{protocol}: {sum}");
        }
    }
}

/// A counter that writes down its guests, and that it was loaded, and answers with more than it may when a thousand is
/// added.
#[derive(Clone, Debug, Default)]
struct Inviting {
    counter: Counter,
    written: Digest,
}

impl Inviting {
    fn note(&mut self, what: &[u8]) {
        self.written = Digest::of_parts(Domain::Effects, &[what, &self.written.0]);
    }
}

impl Service for Inviting {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        let result = self.counter.execute(operation, agreed);
        self.note(&result);
        if operation == Counter::add(1_000) { vec![0; RESULT_BYTES_MAX + 1].into() } else { result }
    }
    fn take_written(&mut self) -> Digest {
        core::mem::replace(&mut self.written, Digest::ZERO)
    }
    fn authorize(&mut self, _identification: &[u8], agreed: &Agreed) -> bool {
        self.counter.execute(&Counter::add(100), agreed);
        self.note(b"a guest");
        true
    }
    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        self.counter.query(operation, asker)
    }
    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.counter.save(write);
    }
    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        self.note(b"pages");
        self.counter.load(pages)
    }
}

/// What a service writes when somebody joins is written by the JOIN: who begins from a checkpoint after it has it.
#[test]
fn what_authorize_wrote_is_written_everywhere() {
    let limits = Limits { checkpoint_interval: 4, ..Limits::default() };
    let cluster = cluster(4, ClientAuth::Hybrid, limits).with_dynamic_clients();
    let mut net = Net::of(cluster, 1, |_| Inviting::default());
    for sum in 1..=3 {
        assert_eq!(net.add(1), done(sum));
    }
    let client = net.stranger(77);
    net.now.0 += 10;
    net.drive_client(client, |client, now, out| client.join(now, [1; 16], Bytes::new(), Instant(u64::MAX), out));
    net.settle();
    net.completed.pop().expect("the JOIN is answered");
    net.restart(3, true);
    for _ in 0..50 {
        net.pass(100_000);
    }
    assert_eq!(net.executed(), [4; 4]);
    let before = net.sent.len();
    assert_eq!(net.add(1), done(104));
    let outcomes: Vec<_> = net.sent[before..]
        .iter()
        .filter_map(|frame| match &frame.message {
            Message::Reply(reply) => Some(reply.outcome.digest()),
            _ => None,
        })
        .collect();
    assert!(outcomes.len() >= 4 && outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{outcomes:?}");
}

/// It would be in the client table of every checkpoint, which nobody could load.
#[test]
fn a_result_that_fits_into_no_frame_is_none() {
    let mut net = Net::of(cluster(4, ClientAuth::Hybrid, Limits::default()), 1, |_| Inviting::default());
    let Some(Completion::Done(result)) = net.add(1_000) else { panic!("it is answered") };
    assert!(result.is_empty());
}

/// Whoever has restarted from a snapshot, or has fetched a state, comes to the same states as the others.
#[test]
fn what_is_loaded_was_written_by_nobody() {
    for lost_log in [false, true] {
        let limits = Limits { checkpoint_interval: 2, log_bytes_per_snapshot: 0, ..Limits::default() };
        let cluster = Cluster { protocol: Protocol::Pbft, ..cluster(4, ClientAuth::Hybrid, limits) };
        let mut net = Net::of(cluster, 1, |_| Inviting::default());
        for sum in 1..=4 {
            assert_eq!(net.add_within(PATIENCE, 0, 1), done(sum));
        }
        assert!(!net.hosts[3].is_without_snapshot());
        net.restart(3, lost_log);
        net.settle();
        for sum in 5..=10 {
            assert_eq!(net.add_within(PATIENCE, 0, 1), done(sum));
        }
        let differs = |notice: &Notice| matches!(notice, Notice::Diverged { .. } | Notice::Repaired(_));
        assert!(!net.noticed(3, differs), "lost its log: {lost_log}");
    }
}
