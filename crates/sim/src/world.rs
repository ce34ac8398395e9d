//! The world: makes the cluster that a scenario describes, lets things happen one after the other, and judges.

mod judgement;

use crate::byzantine::{Acts, Adversary, Asynchrony, ClientMind, Crowd, Echo, Sides, Tamper};
use crate::caller::Caller;
use crate::checks::{Checks, Event, Violation};
use crate::evidence::Evidence;
use crate::feature::Feature;
use crate::network::{CLIENTS, Network, ProcessId};
use crate::node::{Counts, Identity, Node};
use crate::paper_coin::PaperCoin;
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::schedule::{Ambush, Fault, Outage};
use crate::size::Size;
use crate::stage::{Occurrence, Stage};
use crate::trace::Trace;
use crate::workload::LIARS_IDENTITY;
use bezant_core::auth::paper::Paper;
use bezant_core::auth::{CoinKey, CoinScheme, Keyring, PublicKeys, SecretKey, Suite};
use bezant_core::client::Client;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, IdentityId, Principal, ReplicaId};
use bezant_core::joining::CONTROL_SESSION;
use std::rc::Rc;

/// Happenings in a run before it counts as one that never ends, and how many more for each millisecond: while a client
/// waits for another's place to come free, liars may well say 60 things in a millisecond, and all answer.
const HAPPENINGS_MAX: u64 = 2_000_000;
const HAPPENINGS_PER_MS: u64 = 100;

/// So many replicas keep to [`HAPPENINGS_PER_MS`] in a round of RITAS, which takes as long and has messages as the cube
/// of n: while requests wait, a round follows the other.
const ROUNDS_OF: u64 = 4;

/// The names of cuts that wait for a moment begin here, beside those of the schedule.
const AMBUSHES: u32 = 1 << 31;

pub(crate) static SUITE: Paper = Paper;

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What was wrong.
    pub violations: Vec<Violation>,
    /// The run as a number.
    pub trace_hash: u64,
    /// Happenings.
    pub events: u64,
    /// Frames sent.
    pub frames: u64,
    /// Calls of clients that ended.
    pub answered: u64,
    /// Over all replicas.
    pub counts: Counts,
    /// What the liars did.
    pub acts: Acts,
    /// What the run met.
    pub evidence: Evidence,
}

/// See the [module](self).
pub struct World {
    scenario: Scenario,
    stage: Stage,
    nodes: Vec<Node>,
    callers: Vec<Caller>,
    rng: Rng,
    events: u64,
}

/// A client, as the world knows it.
#[derive(Clone, Copy, Debug)]
enum Who {
    /// The cluster names it.
    Named(ClientId),
    /// It does not; by its number.
    Stranger(u32),
}

pub(crate) fn secret(kind: u8, number: u32) -> SecretKey {
    let mut bytes = [kind; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    SecretKey(bytes)
}

/// The public keys of everybody.
pub(crate) fn public_keys(n: usize, identities: &[IdentityId]) -> PublicKeys {
    PublicKeys {
        replicas: (0..n as u32).map(|number| SUITE.public(&secret(1, number))).collect(),
        identities: identities.iter().map(|id| (*id, SUITE.public(&secret(2, id.0)))).collect(),
    }
}

/// The replicas' keys for common coins.
pub(crate) fn coin_keys(n: usize) -> Vec<CoinKey> {
    (0..n as u32).filter_map(|number| PaperCoin.public(&secret(4, number))).collect()
}

impl World {
    /// Everything in its place, nothing started.
    pub fn new(scenario: Scenario, readable: bool) -> Self {
        let Scenario { seed, n, f, .. } = scenario;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&seed.to_le_bytes());
        let cluster = Cluster::new(id, n, f, scenario.client_auth, scenario.limits.clone());
        let mut cluster = cluster.expect("the options were checked").with_protocol(scenario.protocol);
        cluster.quota = scenario.quota;
        cluster.coin = scenario.coin;
        cluster.dynamic_clients = scenario.features.contains(&Feature::DynamicClients);
        let cluster = Rc::new(cluster);
        let twins: Vec<(ProcessId, ProcessId)> = match scenario.adversary {
            Some(Adversary::Twins) => {
                scenario.liars.iter().enumerate().map(|(k, liar)| (liar.0 as usize, n + k)).collect()
            }
            _ => Vec::new(),
        };
        let network = Network::new(scenario.network.clone(), Rng::stream(seed, "network"));
        let correct = n - scenario.liars.union(&scenario.outsiders).count();
        let dissent = scenario.features.contains(&Feature::Dissent);
        let identities = scenario.plan.identities as usize + 1;
        let calm = (scenario.is_calm(), scenario.adversary.is_none());
        let checks = Checks::new(&cluster, identities, correct, calm, dissent, !scenario.liars.is_empty());
        let mut stage = Stage::new(cluster.clone(), network, Trace::new(readable), checks, Sides::new(twins.clone()));
        if scenario.adversary == Some(Adversary::Tamper) {
            stage.tamper = Some(Tamper::new(Rng::stream(seed, "tamper")));
        }
        if scenario.adversary == Some(Adversary::Echo) {
            stage.echo = Some(Echo::new(Rng::stream(seed, "echo")));
        }
        let rng = Rng::stream(seed, "world");
        let mut world = Self { scenario, stage, nodes: Vec::new(), callers: Vec::new(), rng, events: 0 };
        world.add_replicas(&cluster, &twins);
        world.add_clients(&cluster);
        world
    }

    fn identities(&self) -> Vec<IdentityId> {
        (0..self.scenario.plan.identities as u32).map(IdentityId).chain([LIARS_IDENTITY]).collect()
    }

    fn add_replicas(&mut self, cluster: &Rc<Cluster>, twins: &[(ProcessId, ProcessId)]) {
        let scenario = &self.scenario;
        let keys = public_keys(scenario.n, &self.identities());
        let originals = (0..scenario.n).map(|process| (process, process));
        for (process, number) in originals.chain(twins.iter().map(|(first, second)| (*second, *first))) {
            let id = ReplicaId(number as u8);
            let principal = Principal::Replica(id);
            let keyring = Keyring::new(&SUITE, cluster, principal, secret(1, number as u32), keys.clone())
                .and_then(|keyring| keyring.with_coin(&PaperCoin, secret(4, number as u32), coin_keys(scenario.n)))
                .expect("the keys belong together");
            let identity = Identity {
                id,
                keyring,
                cluster: (**cluster).clone(),
                service: scenario.service,
                dissent: scenario.dissent_of(id),
                liars: scenario.liars.clone(),
            };
            let clock = scenario.clocks[process];
            let rng = Rng::stream(scenario.seed ^ (process as u64) << 40, "node");
            let disk = (scenario.disk, scenario.pass);
            let parts = scenario.cast.replicas.get(&id).map_or(&[][..], Vec::as_slice);
            self.nodes.push(Node::new(process, identity, clock, disk, rng, parts));
            self.stage.register(process, principal);
        }
    }

    fn add_clients(&mut self, cluster: &Rc<Cluster>) {
        let keys = public_keys(self.scenario.n, &self.identities());
        let plan = self.scenario.plan.clone();
        for number in 0..plan.clients as u32 {
            let identity = IdentityId(number % plan.identities as u32);
            let id = ClientId { identity, session: number / plan.identities as u32 };
            self.add_client(cluster, &keys, Who::Named(id), None);
        }
        for number in 0..plan.strangers as u32 {
            self.add_client(cluster, &keys, Who::Stranger(number), None);
        }
        if let Some(adversary) = self.scenario.cast.client {
            let mut rng = Rng::stream(self.scenario.seed, "lying client");
            let mind = ClientMind::new(adversary, &mut rng, &self.scenario.liars);
            let crowds = self.scenario.cast.crowds;
            let crowd = crowds.then(|| Crowd::new(Rng::stream(self.scenario.seed, "crowd"), self.scenario.protocol));
            let mind = mind.map(|mind| mind.with_crowd(crowd));
            if mind.is_some() {
                let who = match adversary {
                    Adversary::JoinFlood => Who::Stranger(LIARS_IDENTITY.0),
                    // The key of the first honest one.
                    Adversary::Takeover => Who::Stranger(0),
                    _ => Who::Named(ClientId { identity: LIARS_IDENTITY, session: 0 }),
                };
                self.add_client(cluster, &keys, who, mind);
            }
        }
        if self.scenario.features.contains(&Feature::Closing) {
            let who = Who::Named(ClientId { identity: IdentityId(0), session: CONTROL_SESSION });
            self.add_client(cluster, &keys, who, None);
            let closer = self.callers.pop().map(Caller::closing);
            self.callers.extend(closer);
        }
    }

    fn add_client(&mut self, cluster: &Rc<Cluster>, keys: &PublicKeys, who: Who, mind: Option<ClientMind>) {
        let process = CLIENTS + self.callers.len();
        let (principal, secret) = match who {
            Who::Named(id) => (Principal::Client(id), secret(2, id.identity.0)),
            Who::Stranger(number) => {
                let secret = secret(3, number);
                (Principal::Key(SUITE.public(&secret)), secret)
            }
        };
        let keyring = Keyring::new(&SUITE, cluster, principal, secret, keys.clone());
        let keyring = Rc::new(keyring.expect("the keys belong together"));
        let machine = match who {
            Who::Named(id) => Client::new(cluster.clone(), keyring.clone(), id),
            Who::Stranger(_) => Client::stranger(cluster.clone(), keyring.clone()),
        };
        let rng = Rng::stream(self.scenario.seed ^ (process as u64) << 40, "caller");
        let clock = self.scenario.clocks[process];
        let plan = match who {
            Who::Named(_) if mind.is_none() && self.callers.len() as u64 + 1 == self.scenario.plan.clients => {
                self.scenario.plan.of_last()
            }
            Who::Named(_) => self.scenario.plan.clone(),
            Who::Stranger(_) => self.scenario.plan.of_strangers(),
        };
        let again = Rng::stream(self.scenario.seed ^ (process as u64) << 40, "asks again");
        let caller = Caller::new(process, machine, keyring, mind, clock, (plan, self.scenario.service), rng);
        let caller = caller.signing_within(self.scenario.client_pass);
        let caller = if self.scenario.size == Size::First { caller } else { caller.asking_again(again) };
        self.callers.push(caller);
        self.stage.register(process, principal);
    }

    /// Runs both phases.
    pub fn run(mut self) -> (Verdict, Trace) {
        self.begin();
        self.play(self.scenario.safety, |world| world.stage.now > world.scenario.safety);
        if self.is_fine() {
            self.heal();
            let limit = self.scenario.safety + self.scenario.liveness;
            self.play(limit, Self::all_answered);
            self.judge_answers();
            self.inspect(limit);
            self.converge(limit);
            self.judge_closing();
            self.measure();
            self.come_to_rest();
        }
        if self.is_fine() {
            self.stage.checks.finish(self.stage.now);
        }
        self.verdict()
    }

    fn begin(&mut self) {
        for number in 0..self.scenario.faults.len() {
            self.stage.plan(self.scenario.faults[number].0, Occurrence::Fault(number));
        }
        for node in &mut self.nodes {
            node.start(&mut self.stage);
            if node.has_behaviour() {
                self.stage.plan(self.scenario.limits.status_interval.0, Occurrence::Tick(node.process));
            }
        }
        for caller in &mut self.callers {
            caller.start(&mut self.stage);
        }
        if !self.stage.sides.is_empty() {
            self.stage.plan(0, Occurrence::Regroup);
        }
        self.stage.plan(self.scenario.limits.view_timeout.0 / 2, Occurrence::Sample);
    }

    fn is_fine(&self) -> bool {
        self.stage.checks.violations.is_empty()
    }

    /// Lets things happen until `limit`, a violation, or `done`.
    fn play(&mut self, limit: u64, done: impl Fn(&Self) -> bool) {
        let happenings_per_ms = self.happenings_per_ms();
        while self.is_fine() && !done(self) {
            let Some(occurrence) = self.stage.next(limit) else { return };
            self.events += 1;
            if self.events > HAPPENINGS_MAX + happenings_per_ms * self.stage.now / 1_000 {
                let what = format!("{} things happened: somebody talks without end", self.events);
                return self.stage.checks.fail("storm", self.stage.now, what);
            }
            self.carry_out(occurrence);
            self.ambush();
        }
    }

    /// How many things may happen in a millisecond, over the whole run, before somebody talks without end.
    fn happenings_per_ms(&self) -> u64 {
        let Scenario { n, protocol, .. } = &self.scenario;
        let growth = if protocol.has_ritas() { (*n as u64).pow(3).div_ceil(ROUNDS_OF.pow(3)) } else { 1 };
        HAPPENINGS_PER_MS * growth
    }

    fn node(&mut self, process: ProcessId) -> (&mut Node, &mut Stage) {
        (&mut self.nodes[process], &mut self.stage)
    }

    fn carry_out(&mut self, occurrence: Occurrence) {
        match occurrence {
            Occurrence::Frame { to, from, frame } if to >= CLIENTS => {
                self.callers[to - CLIENTS].frame(&mut self.stage, from, frame);
            }
            Occurrence::Frame { to, from: Principal::Replica(from), .. }
                if self.stage.network.loses(usize::from(from.0), to) => {}
            Occurrence::Frame { to, from, frame } => {
                let (node, stage) = self.node(to);
                node.frame(stage, from, frame);
            }
            Occurrence::ReplicaTimer { process, life, timer, setting } => {
                let (node, stage) = self.node(process);
                node.timer(stage, timer, life, setting);
            }
            Occurrence::ClientTimer { process, timer, setting } => {
                self.callers[process - CLIENTS].timer(&mut self.stage, timer, setting);
            }
            Occurrence::PassEnd(process, life) => {
                let (node, stage) = self.node(process);
                node.pass_end(stage, life);
            }
            Occurrence::ClientPassEnd(process) => self.callers[process - CLIENTS].pass_end(&mut self.stage),
            Occurrence::Report(process) => self.callers[process - CLIENTS].report(&mut self.stage),
            Occurrence::Synced(process, life) => {
                let (node, stage) = self.node(process);
                node.synced(stage, life);
            }
            Occurrence::SnapshotWritten(process, life) => {
                let (node, stage) = self.node(process);
                node.snapshot_written(stage, life);
            }
            Occurrence::Restart(process) => {
                let (node, stage) = self.node(process);
                node.start(stage);
            }
            Occurrence::Call(process) => self.callers[process - CLIENTS].call(&mut self.stage),
            Occurrence::Tick(process) if process >= CLIENTS => self.callers[process - CLIENTS].tick(&mut self.stage),
            Occurrence::Tick(process) => {
                let again = self.stage.now + self.scenario.limits.status_interval.0;
                let (node, stage) = self.node(process);
                node.tick(stage);
                stage.plan(again, Occurrence::Tick(process));
            }
            Occurrence::Late { from, to, frame } => self.stage.post(from, to, frame),
            Occurrence::Fault(number) => self.fault(number),
            Occurrence::Mend(name) => self.stage.network.mend(name),
            Occurrence::Regroup => self.regroup(),
            Occurrence::Sample => self.sample(),
        }
    }

    /// Lets the next fault happen that waited for this moment.
    fn ambush(&mut self) {
        let Self { scenario, stage, .. } = self;
        let next = scenario.ambushes.iter().position(|ambush| stage.moments.has_come(ambush.moment));
        if let Some(next) = next {
            let Ambush { fault, .. } = scenario.ambushes.remove(next);
            let name = AMBUSHES + scenario.ambushes.len() as u32;
            self.let_fail(name, fault);
        }
    }

    fn fault(&mut self, number: usize) {
        self.let_fail(number as u32, self.scenario.faults[number].1.clone());
    }

    fn let_fail(&mut self, name: u32, fault: Fault) {
        if self.stage.now > self.scenario.safety {
            return;
        }
        match fault {
            Fault::Cut(cut, span) => {
                self.stage.note(0, 8, || format!("{cut:?} for {span} µs"));
                self.stage.network.cut(name, cut);
                self.stage.plan(self.stage.now + span, Occurrence::Mend(name));
            }
            Fault::Crash { replica, effects, outage } => {
                let (node, stage) = self.node(replica.0 as usize);
                node.plan_crash(stage, effects, outage);
            }
            Fault::Rot(replica) => {
                let (node, stage) = self.node(replica.0 as usize);
                node.rot(stage);
            }
            Fault::FailedSync(replica, down) => self.nodes[replica.0 as usize].plan_failed_sync(down),
            Fault::Copy(replica) => {
                let (node, stage) = self.node(replica.0 as usize);
                node.copy_disk(stage);
            }
            Fault::Turn(after) => self.scenario.safety = self.scenario.safety.min(self.stage.now + after),
            Fault::PowerCut { down } => {
                for node in &mut self.nodes {
                    let down = down + self.rng.below(down + 1);
                    node.power_off(&mut self.stage, Outage::harmless(Some(down)));
                }
            }
        }
    }

    fn regroup(&mut self) {
        let callers = self.callers.iter().map(|caller| caller.process);
        let processes: Vec<ProcessId> = (0..self.scenario.n).chain(callers).collect();
        self.stage.sides.regroup(&mut self.rng, &processes);
        let span = self.scenario.limits.view_timeout.0 * self.rng.between(1, 12) / 4;
        self.stage.plan(self.stage.now + span, Occurrence::Regroup);
    }

    /// Shows the reports of correct replicas to the checks.
    fn sample(&mut self) {
        for node in self.nodes.iter().filter(|node| node.is_correct()) {
            if let Some((replica, report)) = node.replica().zip(node.report()) {
                self.stage.checks.watch.inspect(replica);
                self.stage.checks.see(self.stage.now, &Event::Reported(node.id(), &report));
            }
        }
        for node in self.nodes.iter_mut().filter(|node| node.is_correct()) {
            if let Some(holdings) = node.holdings_in_time() {
                self.stage.checks.see(self.stage.now, &Event::Holds(node.id(), &holdings));
            }
        }
        let at = self.stage.now + self.scenario.limits.view_timeout.0 / 2;
        self.stage.plan(at, Occurrence::Sample);
    }

    /// The second phase: links, disks and correct replicas are well from now on; the liars are not.
    fn heal(&mut self) {
        self.stage.network.heal();
        let mut delay = 0;
        if self.scenario.adversary == Some(Adversary::Asynchrony) {
            let timeout_max = self.scenario.limits.view_timeout_max.0;
            delay = Asynchrony::most(timeout_max);
            self.stage.asynchrony = Some(Asynchrony::new(Rng::stream(self.scenario.seed, "asynchrony"), timeout_max));
        }
        self.stage.note(0, 9, || "the second phase begins".into());
        let outsiders = self.scenario.outsiders.clone();
        for node in &mut self.nodes {
            node.spare();
            if outsiders.contains(&node.id()) {
                node.power_off(&mut self.stage, Outage::harmless(None));
            } else {
                node.start(&mut self.stage);
            }
        }
        for caller in &mut self.callers {
            caller.second_phase(&mut self.stage);
        }
        self.stage.checks.see(self.stage.now, &Event::Healed { delay });
    }
}
