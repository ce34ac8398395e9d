//! Hosts a replica: carries out its effects in order, holds back what may not leave before a record is durable,
//! crashes it in the middle of a step and brings it back from its disk.

mod counts;
mod faults;
mod measured;
mod speech;

pub use self::counts::Counts;

use self::measured::Measured;
use self::speech::Speech;
use crate::byzantine::{self, Liar, Mind};
use crate::checks::{Event, Holdings};
use crate::clock::Clock;
use crate::disk::{Disk, DiskProfile, Stored, Unreadable};
use crate::network::ProcessId;
use crate::rng::Rng;
use crate::schedule::Outage;
use crate::stage::{Occurrence, Stage};
use crate::store::{Dissent, ServiceKind, Store};
use bezant_core::auth::{Keyring, Tag};
use bezant_core::cluster::Cluster;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::machine::hold_back::{HoldBack, Leaving};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::notice::{Notice, Report};
use bezant_core::protocols::pbft::{Ordering, PbftMessage, PbftRecord};
use bezant_core::protocols::ritas::order::RitasRecord;
use bezant_core::registry::{InstanceRecord, LogRecord, Message, Record, ReplicaTimer};
use bezant_core::replica::{Replica, ReplicaConfig};
use bezant_core::time::Instant;
use bezant_core::wire::{Rope, Wire};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// What a node is made from.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its number.
    pub id: ReplicaId,
    /// Its keys.
    pub keyring: Keyring,
    /// The cluster.
    pub cluster: Cluster,
    /// What it runs.
    pub service: ServiceKind,
    /// If it executes some requests otherwise than others: in which way.
    pub dissent: Option<Dissent>,
    /// Which replicas lie; it is one of them or not.
    pub liars: BTreeSet<ReplicaId>,
}

/// A replica in its host.
#[derive(Debug)]
pub struct Node {
    /// Its place in the world.
    pub process: ProcessId,
    identity: Identity,
    machine: Option<Replica<Store>>,
    mind: Option<Mind>,
    /// When it looks next at what has come, if its mind stalls.
    looks_at: u64,
    clock: Clock,
    profile: DiskProfile,
    /// Microseconds that a pass of its event loop gathers inputs; 0: each input is a pass.
    pass: u64,
    rng: Rng,
    disk: Disk,
    /// It never comes back.
    retired: bool,
    /// Restarts so far.
    life: u32,
    timers: BTreeMap<ReplicaTimer, u64>,
    settings: u64,
    /// What waits for the disk.
    hold_back: HoldBack<Replica<Store>>,
    /// Effects until a planned crash, and the crash.
    crash: Option<(u64, Outage)>,
    /// The next sync will fail, and the replica be down for so long.
    sync_fails: Option<u64>,
    pass_planned: bool,
    outbox: Outbox<Replica<Store>>,
    /// What all receivers of a message get, kept for its memory.
    body: Rope,
    steps: u64,
    measured: Measured,
    /// How often things happened.
    pub counts: Counts,
}

impl Node {
    /// A replica that has not started yet.
    pub fn new(
        process: ProcessId,
        identity: Identity,
        clock: Clock,
        (profile, pass): (DiskProfile, u64),
        mut rng: Rng,
        parts: &[byzantine::Adversary],
    ) -> Self {
        let mind = Mind::new(parts, &mut rng);
        Self {
            process,
            identity,
            machine: None,
            mind,
            looks_at: 0,
            clock,
            profile,
            pass,
            rng,
            disk: Disk::default(),
            retired: false,
            life: 0,
            timers: BTreeMap::new(),
            settings: 0,
            hold_back: HoldBack::default(),
            crash: None,
            sync_fails: None,
            pass_planned: false,
            outbox: Outbox::new(),
            body: Rope::new(),
            steps: 0,
            measured: Measured::default(),
            counts: Counts::default(),
        }
    }

    /// Its number.
    pub const fn id(&self) -> ReplicaId {
        self.identity.id
    }

    /// Whether the checks hold it to anything.
    pub fn is_correct(&self) -> bool {
        !self.identity.liars.contains(&self.identity.id)
    }

    /// Whether it has a mind of its own that wants to be asked now and then.
    pub const fn has_behaviour(&self) -> bool {
        self.mind.is_some()
    }

    /// What it did as a liar.
    pub fn acts(&self) -> byzantine::Acts {
        self.mind.as_ref().map(|mind| mind.acts.clone()).unwrap_or_default()
    }

    /// Whether it is up.
    pub const fn is_up(&self) -> bool {
        self.machine.is_some()
    }

    /// Its machine, if it is up.
    pub const fn replica(&self) -> Option<&Replica<Store>> {
        self.machine.as_ref()
    }

    /// Its view of itself, if it is up.
    pub fn report(&self) -> Option<Report> {
        self.machine.as_ref().map(Replica::report)
    }

    /// All that it holds, if it is up.
    pub fn holdings(&self) -> Option<Holdings> {
        self.machine.as_ref().map(Holdings::of)
    }

    /// The same, if it is time to look.
    pub fn holdings_in_time(&mut self) -> Option<Holdings> {
        self.measured.measure(self.steps, self.machine.as_ref()?)
    }

    fn now(&self, stage: &Stage) -> Instant {
        self.clock.read(stage.now)
    }

    /// Starts, from whatever is on the disk.
    pub fn start(&mut self, stage: &mut Stage) {
        if self.machine.is_some() || self.retired {
            return;
        }
        let Stored { snapshot, log, lost_log } = self.read_disk(stage);
        let config = ReplicaConfig {
            cluster: self.identity.cluster.clone(),
            keyring: self.identity.keyring.clone(),
            lost_log,
            genesis: None,
        };
        if self.life > 0 {
            self.counts.recoveries += 1;
            if self.is_correct() {
                stage.checks.see(stage.now, &Event::Restarted(self.id(), &log));
            }
            stage.note(self.process, 1, || format!("restarts with {} records", log.len()));
        }
        let dissent = self.identity.dissent.clone();
        let store = Store::new(self.identity.service).with(dissent);
        match Replica::recover(config, store, snapshot.map(Into::into), log) {
            Ok(machine) => self.machine = Some(machine),
            Err(error) => {
                let what = format!("{} cannot recover from its own disk: {error}", self.id());
                return stage.checks.fail("recovery", stage.now, what);
            }
        }
        self.input(stage, Input::Start);
    }

    /// What is on the disk. A log that is refused is moved away: its operator starts the replica with
    /// `--recover-lost-log`.
    fn read_disk(&mut self, stage: &mut Stage) -> Stored {
        self.disk.stored().unwrap_or_else(|Unreadable| {
            stage.note(self.process, 6, || "refuses its log".into());
            self.lose_disk(stage);
            self.disk.stored().expect("nothing rots on an empty disk")
        })
    }

    fn lose_disk(&mut self, stage: &mut Stage) {
        self.disk.lose();
        self.counts.lost_logs += 1;
        stage.checks.see(stage.now, &Event::Forgot(self.id()));
    }

    /// A frame arrived.
    pub fn frame(&mut self, stage: &mut Stage, from: Principal, frame: Bytes) {
        let Some(machine) = &mut self.machine else { return };
        let stall = self.mind.as_mut().filter(|_| stage.now != self.looks_at);
        if let Some(stall) = stall.and_then(|mind| mind.stall(&self.identity.cluster)) {
            self.looks_at = (stage.now / stall + 1) * stall;
            return stage.plan(self.looks_at, Occurrence::Frame { to: self.process, from, frame });
        }
        stage.arrived(from, self.process, &frame);
        let Some(incoming) = machine.open(frame, from) else { return };
        if let Some(mind) = &mut self.mind {
            let Identity { keyring, cluster, liars, .. } = &self.identity;
            let mut voice = Speech { process: self.process, keyring, stage };
            let mut liar = Liar::new(keyring, cluster, &mut self.rng, liars, &mut voice);
            if !mind.receive(&mut liar, &incoming) {
                return;
            }
        }
        self.input(stage, Input::Message(incoming));
    }

    /// A timer may have come due.
    pub fn timer(&mut self, stage: &mut Stage, timer: ReplicaTimer, life: u32, setting: u64) {
        if life == self.life && self.timers.get(&timer) == Some(&setting) {
            self.timers.remove(&timer);
            stage.note(self.process, 2, || format!("{timer:?} is due"));
            self.input(stage, Input::Timer(timer));
        }
    }

    /// Time for a liar to speak without being spoken to.
    pub fn tick(&mut self, stage: &mut Stage) {
        if let (Some(mind), true) = (&mut self.mind, self.machine.is_some()) {
            let Identity { keyring, cluster, liars, .. } = &self.identity;
            let mut voice = Speech { process: self.process, keyring, stage };
            let mut liar = Liar::new(keyring, cluster, &mut self.rng, liars, &mut voice);
            mind.tick(&mut liar);
        }
    }

    /// Hands an input to the machine and sees to it that the pass ends some time.
    fn input(&mut self, stage: &mut Stage, input: Input<Replica<Store>>) {
        self.step(stage, input);
        if self.machine.is_none() || self.pass_planned {
            return;
        }
        if self.pass == 0 {
            self.step(stage, Input::PassEnd);
        } else {
            self.pass_planned = true;
            stage.plan(stage.now + self.rng.below(self.pass), Occurrence::PassEnd(self.process, self.life));
        }
    }

    /// The pass is over: everything that was waiting has been handed over.
    pub fn pass_end(&mut self, stage: &mut Stage, life: u32) {
        if life == self.life && self.machine.is_some() {
            self.pass_planned = false;
            self.step(stage, Input::PassEnd);
        }
    }

    fn step(&mut self, stage: &mut Stage, input: Input<Replica<Store>>) {
        let (now, is_correct) = (self.now(stage), self.is_correct());
        let Some(machine) = &mut self.machine else { return };
        let mut outbox = std::mem::take(&mut self.outbox);
        if stage.trace.is_readable() {
            outbox.listen_to_steps();
        }
        machine.step(now, input, &mut outbox);
        stage.stepped(self.process, outbox.take_steps());
        // In debug builds it has done so by itself.
        if is_correct && !cfg!(debug_assertions) {
            machine.check_invariants();
        }
        self.steps += 1;
        for effect in outbox.drain() {
            match &mut self.crash {
                Some((0, outage)) => {
                    let outage = *outage;
                    self.power_off(stage, outage);
                    break;
                }
                Some((effects, _)) => *effects -= 1,
                None => {}
            }
            self.carry_out(stage, effect);
        }
        self.outbox = outbox;
        self.start_sync(stage);
    }

    fn carry_out(&mut self, stage: &mut Stage, effect: Effect<Replica<Store>>) {
        match effect {
            Effect::Persist(record) => self.write(stage, record, true),
            Effect::Append(record) => self.write(stage, record, false),
            Effect::Send(to, message) => self.when_durable(stage, Leaving::Message(to, message)),
            Effect::SetTimer(timer, at) => {
                self.settings += 1;
                self.timers.insert(timer, self.settings);
                let due = self.clock.when(at, stage.now);
                let (process, life, setting) = (self.process, self.life, self.settings);
                stage.plan(due, Occurrence::ReplicaTimer { process, life, timer, setting });
            }
            Effect::CancelTimer(timer) => {
                self.timers.remove(&timer);
            }
            Effect::Notify(notice) => self.when_durable(stage, Leaving::Notice(notice)),
        }
    }

    fn when_durable(&mut self, stage: &mut Stage, leaving: Leaving<Replica<Store>>) {
        if self.hold_back.is_open() {
            self.let_go(stage, leaving);
        } else {
            self.hold_back.hold(leaving);
        }
    }

    fn let_go(&mut self, stage: &mut Stage, leaving: Leaving<Replica<Store>>) {
        match leaving {
            Leaving::Message(to, message) => self.leave(stage, to, &message),
            Leaving::Notice(notice) => self.noticed(stage, &notice),
        }
    }

    /// Hands a record to the disk; `awaited` if what follows waits until it is durable.
    fn write(&mut self, stage: &mut Stage, record: Record, awaited: bool) {
        if let Record::Log(LogRecord { record, .. }) = &record {
            match record {
                InstanceRecord::Pbft(PbftRecord::Accepted(proposal)) => {
                    stage.checks.see(stage.now, &Event::Batch(&proposal.batch));
                }
                InstanceRecord::Pbft(PbftRecord::NewView(signed)) => {
                    stage.checks.see(stage.now, &Event::Learned(self.id(), signed));
                }
                InstanceRecord::Ritas(RitasRecord::Delivered(delivered)) => {
                    stage.checks.see(stage.now, &Event::Batch(&delivered.batch));
                }
                _ => {}
            }
        }
        let was_writing = self.disk.writes_snapshot();
        stage.note(self.process, 3, || match &record {
            Record::Log(log) => format!("writes {}", shorten(&log.record)),
            Record::Snapshot(snapshot) => format!("writes snapshot {}", snapshot.snapshot.sequence()),
        });
        self.disk.write(record);
        if awaited {
            self.hold_back.wait_for(self.disk.written());
        }
        if !was_writing && self.disk.writes_snapshot() {
            let at = stage.now + self.profile.snapshot;
            stage.plan(at, Occurrence::SnapshotWritten(self.process, self.life));
        }
    }

    /// A sync begins when something waits for one; what nothing waits for stays in the buffer, and a crash may lose it.
    fn start_sync(&mut self, stage: &mut Stage) {
        if self.hold_back.waits() && self.disk.start_sync() {
            let latency = self.rng.between(self.profile.sync_min, self.profile.sync_max);
            stage.plan(stage.now + latency, Occurrence::Synced(self.process, self.life));
        }
    }

    /// The running sync is complete: what waited for it leaves. If it failed the replica does not speak again before it
    /// has read what is durable: a second sync would claim a success that the first one had not.
    pub fn synced(&mut self, stage: &mut Stage, life: u32) {
        if life != self.life || self.machine.is_none() {
            return;
        }
        if let Some(down) = self.sync_fails {
            self.counts.failed_syncs += 1;
            stage.note(self.process, 7, || "cannot sync".into());
            return self.power_off(stage, Outage::harmless(Some(down)));
        }
        self.disk.sync_done();
        self.hold_back.durable_to(self.disk.durable());
        while let Some(leaving) = self.hold_back.release() {
            self.let_go(stage, leaving);
        }
        self.start_sync(stage);
    }

    /// A background snapshot is on disk.
    pub fn snapshot_written(&mut self, stage: &mut Stage, life: u32) {
        if life != self.life || self.machine.is_none() {
            return;
        }
        self.disk.snapshot_done();
        if self.disk.writes_snapshot() {
            let at = stage.now + self.profile.snapshot;
            stage.plan(at, Occurrence::SnapshotWritten(self.process, self.life));
        }
    }

    /// A message leaves for the network, honest or as the behaviour likes it.
    fn leave(&mut self, stage: &mut Stage, to: Destination, message: &Message) {
        if self.is_correct() {
            stage.checks.see(stage.now, &Event::Said(self.id(), message));
        }
        stage.moments.hear(&self.identity.cluster, self.is_correct(), message);
        if let Message::Ordering(Ordering { message: PbftMessage::PrePrepare(proposal), .. }) = message {
            stage.checks.see(stage.now, &Event::Batch(&proposal.batch));
        }
        let Identity { id, keyring, cluster, liars, .. } = &self.identity;
        let one = match to {
            Destination::Replica(to) => Some(Principal::Replica(to)),
            Destination::Replicas => None,
            Destination::Client(to) => Some(Principal::Client(to)),
            Destination::Key(to) => Some(Principal::Key(to)),
        };
        let others = cluster.replicas.iter().filter(|to| one.is_none() && to != id).map(Principal::Replica);
        let receivers = one.into_iter().chain(others);
        if let Some(mind) = &mut self.mind {
            let mut voice = Speech { process: self.process, keyring, stage };
            let mut liar = Liar::new(keyring, cluster, &mut self.rng, liars, &mut voice);
            for to in receivers {
                mind.send(&mut liar, to, message);
            }
            return;
        }
        if let Some(to) = one {
            return stage.post(self.process, to, message.sealed(keyring, to).into());
        }
        let mut tags = Vec::with_capacity(cluster.replicas.n());
        message.seal(keyring, receivers, &mut self.body, |to, tag| tags.push((to, tag)));
        // Without tags it is the same frame for all.
        let whole = tags.iter().all(|(_, tag)| tag.is_none()).then(|| Bytes::from(self.body.to_vec()));
        for (to, tag) in tags {
            let frame = whole.clone().unwrap_or_else(|| with_tag(&self.body, tag));
            stage.post(self.process, to, frame);
        }
    }

    fn noticed(&mut self, stage: &mut Stage, notice: &Notice) {
        match notice {
            Notice::Executed { .. } => self.counts.executed += 1,
            Notice::RolledBack { .. } => self.counts.rollbacks += 1,
            Notice::Stable { .. } => self.counts.checkpoints += 1,
            Notice::ViewChangeStarted { .. } => self.counts.view_changes += 1,
            Notice::Paced { alarm: Some(_), .. } => self.counts.slow_rings += 1,
            Notice::Transfer { done: true, .. } => self.counts.transfers += 1,
            _ => {}
        }
        stage.note(self.process, 4, || shorten(notice));
        if self.is_correct() {
            stage.moments.notice(notice);
            stage.checks.see(stage.now, &Event::Noticed(self.id(), notice));
        }
    }
}

/// The frame for one receiver.
fn with_tag(body: &Rope, tag: Option<Tag>) -> Bytes {
    let mut frame = Vec::with_capacity(body.len() + Tag::BYTES);
    body.segments().for_each(|segment| frame.extend_from_slice(segment));
    if let Some(tag) = tag {
        tag.encode(&mut frame);
    }
    frame.into()
}

/// The debug form in a line's length.
fn shorten(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    if text.chars().count() <= 110 { text } else { text.chars().take(109).chain(['…']).collect() }
}
