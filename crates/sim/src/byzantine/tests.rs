//! What some liars do, without a cluster around them.

use super::replica_flood::ReplicaFlood;
use super::slow_by_epsilon::SlowByEpsilon;
use super::{Behaviour, Liar, Voice};
use crate::rng::Rng;
use bezant_core::auth::paper::Paper;
use bezant_core::auth::{Claimed, Keyring, PublicKeys, SecretKey, Suite};
use bezant_core::batch::Batch;
use bezant_core::checkpoint::Checkpoint;
use bezant_core::cluster::{Cluster, Limits};
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, Principal, ReplicaId, Sequence, View};
use bezant_core::protocols::pbft::{Ordering, PbftMessage, PrePrepare, ViewChange};
use bezant_core::registry::Message;
use std::collections::BTreeSet;
use std::sync::Arc;

static SUITE: Paper = Paper;

/// Four replicas.
fn cluster() -> Cluster {
    Cluster::new([7; 16], 4, 1, Default::default(), Limits::default()).expect("4 = 3 + 1")
}

/// The keys of the first of them.
pub(super) fn keyring() -> Keyring {
    let secret = |number| SecretKey([number; 32]);
    let keys = PublicKeys { replicas: (0..4).map(|n| SUITE.public(&secret(n))).collect(), ..Default::default() };
    Keyring::new(&SUITE, &cluster(), Principal::Replica(ReplicaId(0)), secret(0), keys).expect("its own")
}

/// What was said, and after how many microseconds.
#[derive(Default)]
struct Heard(Vec<(u64, Message)>);

impl Voice for Heard {
    fn say(&mut self, delay: u64, _to: Principal, message: &Message) {
        self.0.push((delay, message.clone()));
    }
}

/// A liar, who lies, and what is heard of it.
struct Stand<B> {
    behaviour: B,
    cluster: Cluster,
    keyring: Keyring,
    rng: Rng,
}

impl<B: Behaviour + Default> Stand<B> {
    fn new() -> Self {
        Self { behaviour: B::default(), cluster: cluster(), keyring: keyring(), rng: Rng::stream(1, "liar") }
    }

    fn act(&mut self, act: impl FnOnce(&mut B, &mut Liar<'_>)) -> Vec<(u64, Message)> {
        let (mut heard, liars) = (Heard::default(), BTreeSet::new());
        act(&mut self.behaviour, &mut Liar::new(&self.keyring, &self.cluster, &mut self.rng, &liars, &mut heard));
        heard.0
    }

    /// Its honest machine says something to all others. After how long it leaves for the last.
    fn says(&mut self, message: &Message) -> u64 {
        let heard = self.act(|behaviour, liar| {
            liar.others().into_iter().for_each(|to| behaviour.send(liar, to, message));
        });
        heard.last().expect("it is said").0
    }

    fn ticks(&mut self, times: usize) {
        (0..times).for_each(|_| drop(self.act(Behaviour::tick)));
    }

    fn leaves(&self, view: View) -> Message {
        let value =
            Checkpoint { instance: InstanceId(1), sequence: Sequence(0), ruled: Sequence(0), root: Digest::ZERO };
        let stable = Claimed::certified(value, Vec::new());
        let change = ViewChange { view, stable, prepared: Vec::new(), pre_prepared: Vec::new() };
        ordering(1, PbftMessage::ViewChange(Box::new(self.keyring.sign(change).into())))
    }
}

fn ordering(instance: u64, message: PbftMessage) -> Message {
    Message::Ordering(Ordering { instance: InstanceId(instance), message })
}

fn proposal(instance: u64) -> Message {
    let batch = Arc::new(Batch::null());
    ordering(instance, PbftMessage::PrePrepare(PrePrepare { view: View(0), sequence: Sequence(1), batch }))
}

#[test]
fn who_is_slow_by_epsilon_halves_its_delay_once_for_each_turn_that_it_loses() {
    let mut stand = Stand::<SlowByEpsilon>::new();
    let order = proposal(1);
    stand.ticks(100);
    assert_eq!(stand.says(&order), 0, "who does not order does not learn how slow it may be");
    stand.ticks(100);
    let before = stand.says(&order);
    assert!(before > 10_000, "{before}");
    for view in [1, 1, 2] {
        let leaves = stand.leaves(View(view));
        assert_eq!(stand.says(&leaves), 0, "it is in no hurry to stay");
    }
    stand.ticks(10);
    assert_eq!(stand.says(&order), before / 2);
}

#[test]
fn a_flood_is_about_the_instance_that_runs() {
    let mut stand = Stand::<ReplicaFlood>::new();
    let instances = |said: Vec<(u64, Message)>| -> BTreeSet<u64> {
        said.iter().filter_map(|(_, message)| message.instance()).map(|instance| instance.0).collect()
    };
    let floods = |stand: &mut Stand<ReplicaFlood>| {
        (0..40).flat_map(|_| instances(stand.act(Behaviour::tick))).collect::<BTreeSet<_>>()
    };
    assert_eq!(floods(&mut stand), BTreeSet::from([1, 2]));
    stand.says(&proposal(9));
    assert_eq!(floods(&mut stand), BTreeSet::from([9, 10]));
}
