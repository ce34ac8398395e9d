//! Four replicas, one of them faulty, over a network that a fuzzer plays.
//!
//! The fuzzer's bytes are a script: which message arrives next, what the faulty replica changes in the messages that
//! it sends, which timer runs out, what the client asks. Replica 3 computes honestly, and then the fuzzer alters what
//! it says, authenticated anew with its keys. Whatever it does, the other three must not panic and must not disagree.

use crate::{CLIENT, Sound, four, keyring};
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::digest::Digest;
use bezant_core::ids::{ClientId, Principal, ReplicaId, Sequence, Timestamp};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::message::{Request, bundle};
use bezant_core::protocols::pbft::{Ordering, PbftMessage};
use bezant_core::registry::{Message, ReplicaTimer};
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::services::Counter;
use bezant_core::time::{Duration, Instant};
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The faulty one.
const FAULTY: ReplicaId = ReplicaId(3);
/// Each step has its own bytes, so that a change in one does not shift the meaning of all that follow.
const STEP_BYTES: usize = 5;
/// Steps of one script: enough for a few batches, a checkpoint and a view change.
const STEPS_MAX: usize = 400;
/// Messages in flight; more are lost, as on any network.
const IN_FLIGHT_MAX: usize = 200;

type Timers = BTreeMap<ReplicaTimer, Instant>;

struct Node {
    replica: Replica<Counter>,
    timers: Timers,
}

struct Envelope {
    from: Principal,
    to: ReplicaId,
    frame: Bytes,
}

/// The whole world of a script.
pub struct World {
    cluster: Cluster,
    client: Keyring,
    faulty: Keyring,
    nodes: Vec<Node>,
    in_flight: VecDeque<Envelope>,
    now: Instant,
    timestamp: u64,
    histories: BTreeMap<Sequence, Digest>,
}

impl World {
    /// Four replicas before their first batch.
    ///
    /// # Panics
    /// If a new replica does not start: it always does.
    pub fn new() -> Self {
        let mut cluster = four();
        // Small, so that a short script sees checkpoints and a full window.
        cluster.limits.checkpoint_interval = 4;
        let nodes = cluster.replicas.iter().map(|id| {
            let keyring = keyring(&Sound, &cluster, Principal::Replica(id));
            let config = ReplicaConfig { cluster: cluster.clone(), keyring, lost_log: false, genesis: None };
            let replica = Replica::new(config, Counter::default()).expect("a new replica starts");
            Node { replica, timers: Timers::new() }
        });
        let nodes = nodes.collect();
        let client = keyring(&Sound, &cluster, Principal::Client(CLIENT));
        let faulty = keyring(&Sound, &cluster, Principal::Replica(FAULTY));
        let now = Instant(1_000_000_000);
        let (in_flight, histories) = (VecDeque::new(), BTreeMap::new());
        let mut world = Self { cluster, client, faulty, nodes, in_flight, now, timestamp: 0, histories };
        for id in world.cluster.replicas.iter() {
            world.step(id, Input::Start);
        }
        world
    }

    /// Plays a script to its end.
    pub fn play(&mut self, script: &[u8]) {
        for step in script.chunks(STEP_BYTES).take(STEPS_MAX) {
            let mut script = Script(step.iter());
            match script.byte() % 8 {
                0 => self.request(&mut script),
                1 => self.run_out(script.replica()),
                2 => drop(self.take(&mut script)),
                3 => self.repeat(&mut script),
                _ => self.deliver(&mut script),
            }
        }
    }

    /// The client asks for something, of the replicas that the script names.
    fn request(&mut self, script: &mut Script<'_>) {
        let choice = script.byte();
        self.timestamp += u64::from(choice & 1);
        let client = ClientId { session: u32::from(choice >> 1 & 1), ..CLIENT };
        let byte = script.byte();
        let operation = Bytes::from(vec![byte; usize::from(choice >> 2 & 1)]);
        let is_bundle = byte > 0x7f;
        let operation = if is_bundle { bundle::pack(&[operation.clone(), operation]) } else { operation };
        let instance = self.nodes[0].replica.instance();
        let request = Request::new(instance, client, Timestamp(self.timestamp), choice & 8 != 0, operation);
        let request = if is_bundle { request.as_bundle() } else { request };
        let message = Message::Request(request.authenticate(&self.cluster, &self.client));
        let receivers = choice >> 4;
        for id in self.cluster.replicas.iter().filter(|id| receivers >> id.0 & 1 == 0) {
            let frame = message.sealed(&self.client, Principal::Replica(id)).into();
            self.post(Envelope { from: Principal::Client(client), to: id, frame });
        }
    }

    /// The next timer of a replica runs out.
    fn run_out(&mut self, id: ReplicaId) {
        let timers = &mut self.nodes[usize::from(id.0)].timers;
        let Some((&timer, &at)) = timers.iter().min_by_key(|(_, at)| **at) else { return };
        timers.remove(&timer);
        self.now = self.now.max(at);
        self.step(id, Input::Timer(timer));
        self.step(id, Input::PassEnd);
    }

    fn take(&mut self, script: &mut Script<'_>) -> Option<Envelope> {
        let position = usize::from(script.byte()) % self.in_flight.len().max(1);
        self.in_flight.remove(position)
    }

    /// A message arrives twice.
    fn repeat(&mut self, script: &mut Script<'_>) {
        if let Some(Envelope { from, to, frame }) = self.take(script) {
            self.post(Envelope { from, to, frame: frame.clone() });
            self.arrive(Envelope { from, to, frame });
        }
    }

    /// A message arrives, altered first if the faulty replica sent it and the script says so.
    fn deliver(&mut self, script: &mut Script<'_>) {
        let Some(mut envelope) = self.take(script) else { return };
        if envelope.from == Principal::Replica(FAULTY) {
            let altered = self.alter(&envelope, script);
            envelope.frame = altered.unwrap_or(envelope.frame);
        }
        self.arrive(envelope);
    }

    /// The same message with one byte changed, signed and sealed anew; `None` if that is no message any more.
    fn alter(&self, envelope: &Envelope, script: &mut Script<'_>) -> Option<Bytes> {
        let position = usize::from(script.byte()) | usize::from(script.byte()) << 8;
        let mut bytes = envelope.frame.to_vec();
        let length = bytes.len().checked_sub(16)?;
        bytes.truncate(length);
        *bytes.get_mut(position)? ^= script.byte();
        let mut message = Message::from_bytes(bytes.into()).ok()?;
        match &mut message {
            Message::Checkpoint(signed) => **signed = self.faulty.sign(*signed.claims()).into(),
            Message::Ordering(Ordering { message: PbftMessage::ViewChange(signed), .. }) => {
                **signed = self.faulty.sign(signed.claims().clone()).into();
            }
            Message::Ordering(Ordering { message: PbftMessage::NewView(signed), .. }) => {
                *signed = Arc::new(self.faulty.sign(signed.claims().clone()).into());
            }
            _ => {}
        }
        Some(message.sealed(&self.faulty, Principal::Replica(envelope.to)).into())
    }

    fn post(&mut self, envelope: Envelope) {
        if self.in_flight.len() < IN_FLIGHT_MAX {
            self.in_flight.push_back(envelope);
        }
    }

    fn arrive(&mut self, Envelope { from, to, frame }: Envelope) {
        self.now += Duration(100);
        if let Some(incoming) = self.nodes[usize::from(to.0)].replica.open(frame, from) {
            self.step(to, Input::Message(incoming));
            self.step(to, Input::PassEnd);
        }
    }

    fn step(&mut self, id: ReplicaId, input: Input<Replica<Counter>>) {
        let mut out = Outbox::new();
        self.nodes[usize::from(id.0)].replica.step(self.now, input, &mut out);
        for effect in out.drain() {
            match effect {
                Effect::Send(to, message) => self.send(id, to, &message),
                Effect::SetTimer(timer, at) => _ = self.nodes[usize::from(id.0)].timers.insert(timer, at),
                Effect::CancelTimer(timer) => _ = self.nodes[usize::from(id.0)].timers.remove(&timer),
                Effect::Persist(_) | Effect::Append(_) | Effect::Notify(_) => {}
            }
        }
        self.check(id);
    }

    fn send(&mut self, from: ReplicaId, to: Destination, message: &Message) {
        let receivers: Vec<ReplicaId> = match to {
            Destination::Replica(id) => vec![id],
            Destination::Replicas => self.cluster.replicas.iter().filter(|id| *id != from).collect(),
            // What clients make of answers is another target.
            Destination::Client(_) | Destination::Key(_) => return,
        };
        for to in receivers {
            let keyring = self.nodes[usize::from(from.0)].replica.keyring();
            let frame = message.sealed(keyring, Principal::Replica(to)).into();
            self.post(Envelope { from: Principal::Replica(from), to, frame });
        }
    }

    /// Correct replicas that executed equally much for good have executed the same.
    fn check(&mut self, id: ReplicaId) {
        let replica = &self.nodes[usize::from(id.0)].replica;
        if id != FAULTY && replica.estate().tentative_digest().is_none() {
            let report = replica.report();
            let known = self.histories.entry(report.executed).or_insert(report.history);
            assert_eq!(*known, report.history, "{id:?} disagrees at {:?}", report.executed);
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// The bytes of one step; zeros where the last one is cut short.
struct Script<'a>(std::slice::Iter<'a, u8>);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn replica(&mut self) -> ReplicaId {
        ReplicaId(self.byte() % 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One request of a new timestamp to all replicas.
    const REQUEST: [u8; STEP_BYTES] = [0, 1, 0, 0, 0];
    /// The oldest message arrives; of the faulty replica's, zero is added to the first byte.
    const DELIVER: [u8; STEP_BYTES] = [4, 0, 0, 0, 0];

    fn executed(world: &World) -> Vec<u64> {
        world.nodes.iter().map(|node| node.replica.report().executed.0).collect()
    }

    /// Scripts of the fuzzer are of use only if they get somewhere.
    #[test]
    fn a_script_without_malice_executes_requests() {
        let mut world = World::new();
        for round in 1..=3 {
            world.play(&[&REQUEST[..], &DELIVER.repeat(60)].concat());
            assert!(executed(&world).iter().all(|count| *count >= round), "{:?} in round {round}", executed(&world));
        }
    }

    #[test]
    fn a_script_that_delivers_nothing_changes_the_view() {
        const DROP: [u8; STEP_BYTES] = [2, 0, 0, 0, 0];
        let mut world = World::new();
        world.play(&REQUEST);
        world.play(&DELIVER.repeat(world.in_flight.len()));
        for replica in [1, 2, 3].repeat(40) {
            world.play(&[&DROP.repeat(60)[..], &[1, replica, 0, 0, 0]].concat());
        }
        assert!(world.nodes.iter().any(|node| node.replica.report().view_changes > 0));
    }
}
