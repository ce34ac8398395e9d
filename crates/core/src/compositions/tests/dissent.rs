//! A request that every replica executes otherwise costs itself and not the cluster: see [`crate::dissent`].

use super::effects::{AMISS, Drifting};
use crate::client::Completion;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::digest::{Digest, Domain};
use crate::message::Refusal;
use crate::notice::Notice;
use crate::registry::Message;
use crate::schedule::{Protocol, Quota};
use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use crate::services::Counter;
use crate::testing::net::{Host, Net, c, cluster, done, kind, r};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

const PROTOCOLS: [Protocol; 6] =
    [Protocol::Pbft, Protocol::Quorum, Protocol::ZLight, Protocol::Chain, Protocol::Aliph, Protocol::Ring];

const REFUSED: Option<Completion> = Some(Completion::Refused(Refusal::Disputed));

fn net(protocol: Protocol, interval: u64, clients: u32, make: fn(usize) -> Drifting) -> Net<Drifting> {
    let limits = Limits { checkpoint_interval: interval, ..Limits::default() };
    // Backups end soon: while something is disputed, and behind that.
    let quota = Quota::Fixed(interval + 3);
    Net::of(Cluster { protocol, quota, ..cluster(4, ClientAuth::Hybrid, limits) }, clients, make)
}

/// How long an addition may take, in tenths of a second.
const PATIENCE: usize = 600;

fn sums(net: &Net<Drifting>) -> Vec<u64> {
    let read = |host: &Host<Drifting>| {
        let sum = host.replica.service().query(Counter::READ, &Asker::default());
        u64::from_le_bytes(sum.map_or([0; 8], |bytes| bytes[..].try_into().unwrap_or_default()))
    };
    net.hosts.iter().map(read).collect()
}

/// Four names, or two twice; with a checkpoint soon or never.
#[test]
fn a_disputed_request_is_refused_and_the_cluster_goes_on() {
    for protocol in PROTOCOLS {
        for (interval, make) in [
            (4, Drifting::named as fn(usize) -> Drifting),
            (1_000, Drifting::named),
            (4, |id| Drifting::named(id / 2)),
            (1_000, |id| Drifting::named(id / 2)),
        ] {
            let mut net = net(protocol, interval, 1, make);
            let mut sum = 0;
            for round in 0..6 {
                sum += 1;
                assert_eq!(net.add_within(PATIENCE, 0, 1), done(sum), "{protocol} {interval} {round}");
                assert_eq!(net.add_within(PATIENCE, 0, AMISS), REFUSED, "{protocol} {interval} {round}");
            }
            for _ in 0..20 {
                sum += 1;
                assert_eq!(net.add_within(PATIENCE, 0, 1), done(sum), "{protocol} {interval}");
            }
            net.pass(1_000_000);
            assert_eq!(sums(&net), vec![sum; 4], "{protocol} {interval}");
            assert!((0..4).all(|id| net.noticed(id, |notice| matches!(notice, Notice::Ruled { .. }))));
        }
    }
}

/// Eight clients at once, of which one asks for what is disputed, again and again: the checkpoints in between have
/// other roots at each replica, or two roots for two replicas each.
#[test]
fn what_came_after_a_disputed_request_is_asked_for_again() {
    for protocol in PROTOCOLS {
        for interval in [2, 4, 8] {
            for make in [
                Drifting::named as fn(usize) -> Drifting,
                |id| Drifting::named(id / 2),
                |id| Drifting::named(id.min(2)),
            ] {
                // Some in one batch, others in batches of their own.
                nobody_else_is_refused(net(protocol, interval, 8, make), 3);
            }
        }
    }
}

/// The same where the service gets requests together, so that a dispute may name another one than the culprit (Runs 4
/// and 5).
#[test]
fn who_was_executed_together_with_a_culprit_is_asked_for_again() {
    for protocol in [Protocol::Pbft, Protocol::Ring] {
        for interval in [2, 8] {
            for make in [Drifting::together as fn(usize) -> Drifting, |id| Drifting::together(id / 2)] {
                nobody_else_is_refused(net(protocol, interval, 8, make), 8);
            }
        }
    }
}

/// No checkpoint becomes stable any more before the ruling: it has places of its own, where each round has one batch.
#[test]
fn a_ruling_finds_a_place_in_ritas() {
    for interval in [2, 4, 8] {
        nobody_else_is_refused(net(Protocol::Ritas, interval, 8, Drifting::named), 3);
    }
}

/// `apart`: how many requests are sent until what they cause is waited for.
fn nobody_else_is_refused(mut net: Net<Drifting>, apart: usize) {
    let (protocol, interval) = (net.cluster.protocol, net.cluster.limits.checkpoint_interval);
    let (mut added, mut refused) = (0, 0);
    for round in 0..12 {
        for client in 0..8 {
            let amount = if client == (round + 3) % 8 && round % 3 == 0 { AMISS } else { 1 };
            net.submit(client, &Counter::add(amount), false);
            if client % apart == 0 {
                net.settle();
            }
        }
        let rounds = (0..600).take_while(|_| {
            net.pass(100_000);
            net.completed.len() < 8
        });
        assert!(rounds.count() < 600, "{protocol} {interval} {round}: {:?}", net.completed);
        for completed in core::mem::take(&mut net.completed) {
            match completed.result {
                Completion::Done(_) => added += 1,
                Completion::Refused(Refusal::Disputed) => refused += 1,
                other => panic!("{protocol} {interval} {round}: {other:?}"),
            }
        }
    }
    net.pass(2_000_000);
    let found = (sums(&net), added, refused);
    assert!(refused <= 4 && found.0.iter().all(|sum| *sum == found.0[0]), "{protocol} {interval}: {found:?}");
    assert_eq!(found.0[0], added + 8 * (4 - refused), "{protocol} {interval}: nines that were agreed on");
}

/// All clients ask for what is disputed, in batches of their own: there are fewer places for rulings in a window than
/// that.
#[test]
fn disputed_requests_in_one_window_are_ruled_upon_one_by_one() {
    let mut net = net(Protocol::Pbft, 8, 8, Drifting::named);
    for client in 0..8 {
        net.submit(client, &Counter::add(AMISS), false);
        net.settle();
    }
    for _ in 0..600 {
        net.pass(100_000);
    }
    let results: Vec<_> = net.completed.iter().map(|completed| completed.result.clone()).collect();
    assert_eq!(results, vec![Completion::Refused(Refusal::Disputed); 8]);
    assert_eq!(sums(&net), [0; 4]);
}

/// A counter that keeps a mark beside the sum: the first replica another one than the others when [`AMISS`] is added,
/// and each its own when [`ALL_AMISS`] is.
#[derive(Clone, Debug, Default)]
struct Marking {
    counter: Counter,
    name: u8,
    mark: u8,
    written: Digest,
}

const ALL_AMISS: u64 = 8;

impl Service for Marking {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        self.mark = match operation {
            _ if operation == Counter::add(AMISS) => 1 + u8::from(self.name == 0),
            _ if operation == Counter::add(ALL_AMISS) => 10 + self.name,
            _ => self.mark,
        };
        let result = self.counter.execute(operation, agreed);
        self.written = Digest::of_parts(Domain::Effects, &[&result, &[self.mark]]);
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
        write(99, Some(Bytes::copy_from_slice(&[self.mark])));
    }
    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        let (marks, others): (Vec<_>, Vec<_>) = pages.partition(|(number, _)| *number == 99);
        for (_, content) in marks {
            self.mark = content.and_then(|content| content.first().copied()).unwrap_or_default();
        }
        self.counter.load(&mut others.into_iter())
    }
}

/// One replica neither testifies nor votes, as one that abstains, but has answered; another one executed the first
/// request otherwise, and testified. All execute the second one otherwise. What was testified before that says nothing
/// against it, and nothing against the first one.
#[test]
fn old_testimonies_refuse_nothing_that_was_answered() {
    let limits = Limits { checkpoint_interval: 4, ..Limits::default() };
    let interval = limits.status_interval.0;
    let make = |id: usize| Marking { name: id as u8, ..Marking::default() };
    let cluster = Cluster { protocol: Protocol::Pbft, ..cluster(4, ClientAuth::Hybrid, limits) };
    let mut net = Net::of(cluster, 2, make);
    net.lose(|frame| frame.from == r(1) && ["TESTIMONY", "CHECKPOINT"].contains(&kind(&frame.message).as_str()));
    let answers = [1, AMISS].map(|amount| net.call(&Counter::add(amount), false));
    assert_eq!(answers, [done(1), done(10)]);
    let said = net.said(c(0), "REQUEST");
    let Some(Message::Request(asked)) = said.last().map(|frame| frame.message.clone()) else { panic!("{said:?}") };
    for id in 0..4 {
        // It asks again.
        net.forge(c(0), r(id), Message::Request(asked.clone()));
    }
    net.settle();
    assert_eq!(net.said(r(3), "TESTIMONY").len(), 6, "in outline and in detail");
    net.pass(2 * interval);
    net.submit(0, &Counter::add(ALL_AMISS), false);
    net.settle();
    net.submit(1, &Counter::add(1), false);
    for _ in 0..PATIENCE {
        net.pass(100_000);
    }
    let mut results: Vec<_> = net.completed.iter().map(|completed| completed.result.clone()).collect();
    results.sort_by_key(|result| matches!(result, Completion::Done(_)));
    assert_eq!(results.into_iter().map(Some).collect::<Vec<_>>(), [REFUSED, done(11)]);
}
