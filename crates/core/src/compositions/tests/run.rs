//! A composition under load, with an onlooker who knows every history: the properties of section 1 of the paper.
//!
//! The service is a [`Journal`], so that every reply is a whole history. What is checked, over all instances as if they
//! were one (the composition theorem) and from one to the next:
//!
//! * Validity, exactly-once: a history has only what was invoked before, nothing twice, and ends with the operation.
//! * Commit order: of two histories that committed one is a prefix of the other, in an order that respects real time.
//! * Abort order and init order: what committed in an instance is in every history with which a later one begins; what
//!   commits in one agrees with what all histories with which it began have in common.
//! * A Backup ends after exactly k requests, INIT not counted, with one history (abs-D11, abs-D14); after k or more if
//!   somebody was missing when it began.
//! * Who has reported says nothing more in that instance, and reports the same for ever (abs-A5).
//!
//! And after every message, of every correct replica:
//!
//! * Within an instance that has begun, its history only grows (abs-A1); nothing is in it twice (abs-A4), nor before it
//!   was invoked (abs-A10); the state is that history executed (abs-A3). It never goes back from there to an earlier
//!   instance (abs-A7).

use crate::client::Completion;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::digest::Digest;
use crate::ids::{InstanceId, Principal, ReplicaId};
use crate::machine::Input;
use crate::notice::Notice;
use crate::registry::Message;
use crate::schedule::{Part, Protocol, Quota};
use crate::switching::{Switch, SwitchMessage};
use crate::testing::Random;
use crate::testing::journal::{Journal, names};
use crate::testing::net::{Event, Frame, Net, cluster, kind};
use crate::time::Instant;
use crate::wire::Wire;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

/// k of every Backup in these runs.
pub(super) const K: u64 = 3;

/// Requests between two lightweight checkpoints in these runs.
const CHK: u64 = 4;

/// One operation that a client was told the outcome of.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) instance: InstanceId,
    pub(super) position: u64,
    /// The digest of the history there, in instances that say it.
    pub(super) digest: Digest,
    pub(super) history: Vec<u32>,
}

/// What there is to see of a replica.
#[derive(Clone, Default)]
struct Seen {
    instance: InstanceId,
    /// Whether it has the history with which that began.
    has_begun: bool,
    history: Vec<u32>,
}

/// See the [module](self).
#[derive(Clone)]
pub(super) struct Run {
    pub(super) net: Net<Journal>,
    pub(super) random: Random,
    /// Whether messages overtake one another: about half of them arrive one round late.
    pub(super) scrambled: bool,
    /// Who may say and do anything, and is not looked at.
    pub(super) liar: Option<u8>,
    late: Vec<Frame>,
    /// The next operation's name, and what each client waits for: its name, and what had committed before.
    pub(super) next: u32,
    waits: BTreeMap<usize, (u32, usize)>,
    pub(super) commits: Vec<Commit>,
    /// Each replica as it was when it was last looked at.
    seen: Vec<Seen>,
    /// With which history each correct replica began which instance.
    pub(super) begun: Vec<(ReplicaId, InstanceId, Vec<u32>)>,
}

impl Run {
    pub(super) fn new(protocol: Protocol, n: usize, clients: u32, seed: u64) -> Self {
        Self::of(Self::cluster(protocol, n), clients, seed)
    }

    /// A run in which a log begins again after so many bytes.
    pub(super) fn with_short_logs(
        protocol: Protocol,
        n: usize,
        clients: u32,
        seed: u64,
        log_bytes_per_snapshot: u64,
    ) -> Self {
        let cluster = Self::cluster(protocol, n);
        let limits = Limits { log_bytes_per_snapshot, ..cluster.limits };
        Self::of(Cluster { limits, ..cluster }, clients, seed)
    }

    /// The cluster of a run, unless a test wants to change something about it.
    pub(super) fn cluster(protocol: Protocol, n: usize) -> Cluster {
        let limits = Limits { history_interval: CHK, checkpoint_interval: CHK, ..Limits::default() };
        Cluster { quota: Quota::Fixed(K), protocol, ..cluster(n, ClientAuth::Hybrid, limits) }
    }

    /// A run of a cluster that is chosen in full.
    pub(super) fn of(cluster: Cluster, clients: u32, seed: u64) -> Self {
        let seen = vec![Seen::default(); cluster.replicas.n()];
        Self {
            seen,
            net: Net::of(cluster, clients, |_| Journal::default()),
            random: Random::new(seed),
            scrambled: false,
            liar: None,
            late: Vec::new(),
            next: 1,
            waits: BTreeMap::new(),
            commits: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// A client invokes an operation, unless it waits for one.
    pub(super) fn invoke(&mut self, session: usize) {
        self.call(session, false);
    }

    /// The same, and the client says that it only reads. (What it is told is what it reads: the history.)
    pub(super) fn read(&mut self, session: usize) {
        self.call(session, true);
    }

    fn call(&mut self, session: usize, read_only: bool) {
        if !self.waits.contains_key(&session) {
            let longest = self.commits.iter().map(|commit| commit.history.len()).max().unwrap_or(0);
            self.waits.insert(session, (self.next, longest));
            self.net.submit(session, &self.next.to_le_bytes(), read_only);
            self.next += 1;
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waits.is_empty()
    }

    /// One message arrives.
    pub(super) fn deliver(&mut self, frame: Frame) {
        self.net.deliver(frame);
        self.take_notes();
    }

    /// One message delay. How many messages arrived or are late.
    pub(super) fn round(&mut self) -> usize {
        let mut frames = core::mem::take(&mut self.net.in_flight);
        if self.scrambled {
            let (held, now): (Vec<_>, Vec<_>) = frames.into_iter().partition(|_| self.random.once_in(2));
            frames = core::mem::replace(&mut self.late, held);
            frames.extend(now);
            for last in (1..frames.len()).rev() {
                frames.swap(last, self.random.below(last + 1));
            }
        }
        let count = frames.len() + self.late.len();
        let receivers: BTreeSet<Principal> = frames.iter().map(|frame| frame.to).collect();
        for frame in frames {
            self.deliver(frame);
        }
        for receiver in receivers {
            if let Principal::Replica(id) = receiver {
                self.net.step(id.0 as usize, Input::PassEnd);
                self.take_notes();
            }
        }
        count
    }

    /// Rounds until nothing is in flight.
    pub(super) fn settle(&mut self) {
        while self.round() > 0 {}
    }

    /// Lets milliseconds pass, and everything arrive.
    pub(super) fn pass(&mut self, milliseconds: u64) {
        let end = Instant(self.net.now.0 + 1_000 * milliseconds);
        self.settle();
        while self.net.fire_before(end) {
            self.take_notes();
            self.settle();
        }
        self.net.now = end;
    }

    /// Lets time pass until every client has its answer.
    ///
    /// # Panics
    /// If that takes more than a minute: Termination.
    pub(super) fn finish(&mut self) {
        let rounds = (0..600).take_while(|_| {
            self.pass(100);
            !self.is_idle()
        });
        assert!(rounds.count() < 600, "clients wait for {:?} in {:?}", self.waits, self.instances());
    }

    pub(super) fn instances(&self) -> Vec<u64> {
        self.net.hosts.iter().map(|host| host.replica.instance().0).collect()
    }

    /// The histories of all correct replicas as their services have them.
    pub(super) fn journals(&self) -> Vec<Vec<u32>> {
        let correct = (0..self.net.hosts.len()).filter(|id| self.liar != Some(*id as u8));
        correct.map(|id| self.net.hosts[id].replica.service().entries.clone()).collect()
    }

    /// Whether anybody said this.
    pub(super) fn anybody_said(&self, what: &str) -> bool {
        self.net.sent.iter().any(|frame| kind(&frame.message) == what)
    }

    /// Notes what has happened since the last look.
    fn take_notes(&mut self) {
        for event in core::mem::take(&mut self.net.events) {
            match event {
                Event::Noticed(id, Notice::Begun { instance, position, .. }) if self.liar != Some(id.0) => {
                    let journal = &self.net.hosts[id.0 as usize].replica.service().entries;
                    self.begun.push((id, instance, journal[..position as usize].to_vec()));
                }
                Event::Forgot(id) => self.seen[id.0 as usize] = Seen::default(),
                Event::Completed(completed) => {
                    let (name, longest) = self.waits.remove(&(completed.client.session as usize)).unwrap();
                    let Completion::Done(result) = completed.result else { panic!("{:?}", completed.result) };
                    let history = names(&result);
                    assert_eq!(history.last(), Some(&name), "the reply is the operation's own");
                    assert!(history.len() > longest, "what committed before it was invoked is before it");
                    assert!(history.iter().all(|name| *name < self.next), "nothing that nobody invoked");
                    let distinct: BTreeSet<&u32> = history.iter().collect();
                    assert_eq!(distinct.len(), history.len(), "nothing twice: {history:?}");
                    let (instance, position) = (completed.instance, completed.sequence.0);
                    self.commits.push(Commit { instance, position, digest: completed.history, history });
                }
                _ => {}
            }
        }
        self.check_replicas();
    }

    /// The properties of each step.
    fn check_replicas(&mut self) {
        for (id, (host, seen)) in (0..).zip(self.net.hosts.iter().zip(&mut self.seen)) {
            if self.liar == Some(id) {
                continue;
            }
            let (replica, history) = (&host.replica, &host.replica.service().entries);
            let instance = replica.instance();
            if replica.estate().is_tentative() {
                // In a Backup that stays: the last batch may be undone.
                continue;
            }
            let begun = |(by, of, _): &(ReplicaId, InstanceId, _)| (by.0, *of) == (id, instance);
            let has_begun = instance.0 == 1 || self.begun.iter().any(begun);
            if (seen.instance, seen.has_begun, &seen.history) == (instance, has_begun, history) {
                continue;
            }
            let distinct: BTreeSet<&u32> = history.iter().collect();
            assert_eq!(distinct.len(), history.len(), "r{id} has something twice: {history:?}");
            assert!(history.iter().all(|name| *name < self.next), "r{id} has what nobody invoked: {history:?}");
            assert_eq!(replica.estate().position(), history.len() as u64, "r{id}: its state is its history");
            // Who crashes before it has the history may come back where it was before.
            assert!(instance >= seen.instance || !seen.has_begun, "r{id} goes back to {instance}");
            let grows = instance > seen.instance || !seen.has_begun || history.starts_with(&seen.history);
            assert!(grows, "r{id} has {history:?} in {instance} after {:?}", seen.history);
            *seen = Seen { instance, has_begun, history: history.clone() };
        }
    }

    /// What the [module](self) says of orders, quotas and silence.
    pub(super) fn check(&self) {
        let mut histories: Vec<&Vec<u32>> = self.commits.iter().map(|commit| &commit.history).collect();
        histories.sort_by_key(|history| history.len());
        assert!(histories.windows(2).all(|pair| pair[1].starts_with(pair[0])), "commit order: {histories:?}");
        for Commit { instance, history, position, .. } in &self.commits {
            for (replica, begun, init) in &self.begun {
                let inherits = begun <= instance || init.starts_with(history);
                assert!(inherits, "abort order: {history:?} of {instance}, {replica} begins {begun} with {init:?}");
                let agrees = begun != instance || init.starts_with(history) || history.starts_with(init);
                assert!(agrees || self.part(*instance) == Part::Chain, "init order: {history:?}, {init:?}");
                // abs-D5: what is inherited is answered with the history at its end.
                let inherited = init.ends_with(&history[history.len() - 1..]) || init.starts_with(history);
                let speculative = !self.part(*instance).is_backup();
                assert!(begun != instance || !inherited || !speculative || *position >= init.len() as u64, "abs-D5");
            }
            let common = self.common_init(*instance);
            assert!(common.starts_with(history) || history.starts_with(&common), "init order: {history:?}, {common:?}");
        }
        self.check_quotas();
        self.check_silence();
    }

    fn part(&self, instance: InstanceId) -> Part {
        self.net.cluster.part(instance)
    }

    fn inits(&self, instance: InstanceId) -> impl Iterator<Item = &Vec<u32>> {
        self.begun.iter().filter(move |(_, begun, _)| *begun == instance).map(|(_, _, init)| init)
    }

    /// What all histories with which an instance began have in common.
    fn common_init(&self, instance: InstanceId) -> Vec<u32> {
        let mut inits = self.inits(instance);
        let mut common = inits.next().cloned().unwrap_or_default();
        for init in inits {
            let length = common.iter().zip(init).take_while(|(one, other)| one == other).count();
            common.truncate(length);
        }
        common
    }

    fn check_quotas(&self) {
        let backups: BTreeSet<InstanceId> = self.begun.iter().map(|(_, begun, _)| InstanceId(begun.0 - 1)).collect();
        for backup in backups.into_iter().filter(|instance| self.part(*instance).is_backup()) {
            let ends: BTreeSet<&Vec<u32>> = self.inits(InstanceId(backup.0 + 1)).collect();
            assert_eq!(ends.len(), 1, "a Backup has one history: {ends:?}");
            let begin = self.inits(backup).next().map_or(0, Vec::len);
            let known = backup.0 == 1 || self.inits(backup).next().is_some();
            let Quota::Fixed(k) = self.net.cluster.quota else { continue };
            let length = |end: &&Vec<u32>| (end.len() - begin) as u64;
            let is_right = |end: &&Vec<u32>| length(end) == k || length(end) > k && self.may_stay(backup);
            assert!(!known || ends.iter().all(is_right), "k in {backup}: {ends:?}");
        }
    }

    /// Whether somebody may have been missing when a Backup began (Presence 4).
    fn may_stay(&self, backup: InstanceId) -> bool {
        self.net.sent.iter().any(|frame| match &frame.message {
            Message::Switch(Switch { message: SwitchMessage::Abort(report), .. }) => {
                report.claims().instance.0 + 1 == backup.0 && !report.claims().silent.is_empty()
            }
            _ => false,
        })
    }

    fn check_silence(&self) {
        let mut reports: BTreeMap<(Principal, InstanceId), Vec<u8>> = BTreeMap::new();
        let correct = |frame: &&Frame| self.liar.is_none_or(|liar| frame.from != Principal::Replica(ReplicaId(liar)));
        for Frame { from, message, .. } in self.net.sent.iter().filter(correct) {
            let Some(instance) = message.instance() else { continue };
            let key = (*from, instance);
            match message {
                Message::Switch(Switch { message: SwitchMessage::Abort(report), .. }) => {
                    let bytes = report.to_bytes();
                    assert_eq!(*reports.entry(key).or_insert_with(|| bytes.clone()), bytes, "one report for ever");
                }
                Message::Response(_)
                | Message::Order(_)
                | Message::Chain(_)
                | Message::ChainReply(_)
                | Message::Ring(_)
                | Message::RingReply(_)
                | Message::RingCertain(_) => {
                    assert!(!reports.contains_key(&key), "{from:?} speaks in {instance} after its report");
                }
                Message::Switch(Switch { message: SwitchMessage::Checkpoint(_), .. }) => {
                    assert!(!reports.contains_key(&key), "{from:?} takes a checkpoint after its report");
                }
                _ => {}
            }
        }
    }
}
