//! The replica as one machine: what the simulator and the runtime drive.
//!
//! A replica is a composition ([`crate::compositions`]) of abortable instances over one estate. This module gives it
//! its outer face: configuration, the boundary where bytes become verified messages, records, notices, timers,
//! recovery, and the report that `status` shows.

mod checkpoints;
mod memory;

pub use memory::memory_max;

use crate::auth::{Keyring, Signable};
use crate::checkpoint::{ClaimedSnapshot, Evidence, Tree};
use crate::cluster::Cluster;
use crate::compositions::{Composite, objection};
use crate::estate::Estate;
use crate::ids::{InstanceId, Principal, PublicKey, ReplicaId};
use crate::joining::{Ask, Cookie, CookieMessage, Given};
use crate::machine::{Destination, Input, Machine, Outbox};
use crate::notice::{Notice, Report};
use crate::registry::{Incoming, InstanceRecord, LogRecord, Message, Record, ReplicaTimer};
use crate::rejection::{Account, Rejection, Rejections};
use crate::replicas::ReplicaSet;
use crate::service::Service;
use crate::switching::{Amnesia, Recorded, Speaker, Surroundings};
use crate::time::Instant;
use crate::wire::Wire;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::convert::Infallible;
use core::fmt;

/// What makes a replica.
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// Sizes and limits, the same everywhere.
    pub cluster: Cluster,
    /// This replica's keys.
    pub keyring: Keyring,
    /// The operator says that this replica had a log and lost it: it learns, and abstains until it may vote again.
    pub lost_log: bool,
    /// The state before the first batch, if [`Cluster::genesis`] names one. Not needed once there is a snapshot.
    pub genesis: Option<Tree>,
}

/// Why a replica cannot start from what is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoverError {
    /// The snapshot's certificate is not signed by 2f+1 replicas of this cluster.
    BadCertificate,
    /// The snapshot's pages do not have the certified root.
    BadSnapshot,
    /// The service does not accept the pages: another service, or another version of it, wrote them.
    BadState,
    /// The protocol cannot run on a cluster of this size.
    WrongCluster(&'static str),
    /// The keys are a client's.
    NotAReplica,
    /// The cluster begins with a state that is not the one given, or none is given.
    BadGenesis,
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadCertificate => "the snapshot is not certified by 2f+1 replicas of this cluster",
            Self::BadSnapshot => "the snapshot's pages do not have the certified root",
            Self::BadState => "the service cannot read the snapshot: was it written by another service or version?",
            Self::WrongCluster(reason) => reason,
            Self::NotAReplica => "these are a client's keys",
            Self::BadGenesis => "the state that this cluster begins with is missing or another one",
        })
    }
}

impl core::error::Error for RecoverError {}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Replica<S: Service> {
    cluster: Cluster,
    keyring: Keyring,
    me: ReplicaId,
    composite: Composite<S>,
    rejections: Rejections,
    /// Bytes logged since the last snapshot.
    log_bytes: u64,
    /// What it knows about an earlier log, if it lost one in a composition of several instances.
    amnesia: Option<Amnesia>,
}

impl<S: Service> Replica<S> {
    /// A replica before its first batch.
    ///
    /// # Errors
    /// [`RecoverError`] if the protocol cannot run on this cluster or the keys are a client's.
    pub fn new(config: ReplicaConfig, service: S) -> Result<Self, RecoverError> {
        Self::recover(config, service, None, core::iter::empty())
    }

    /// A replica as its log and its newest snapshot tell. Records must come in the order in which they were logged;
    /// what they say about positions at or below the snapshot is passed over.
    ///
    /// # Errors
    /// [`RecoverError`] if the snapshot is not one of this cluster and service.
    pub fn recover(
        config: ReplicaConfig,
        service: S,
        snapshot: Option<ClaimedSnapshot>,
        log: impl IntoIterator<Item = LogRecord>,
    ) -> Result<Self, RecoverError> {
        let ReplicaConfig { cluster, keyring, lost_log, genesis } = config;
        let Principal::Replica(me) = keyring.me() else { return Err(RecoverError::NotAReplica) };
        if let Some(objection) = objection(&cluster) {
            return Err(RecoverError::WrongCluster(objection));
        }
        let several = cluster.protocol.hands_on();
        let mut estate = Estate::new(&cluster, keyring.keys(), service);
        let mut restored = None;
        if let Some(ClaimedSnapshot { certificate, tree }) = snapshot {
            // Within a composition the state may come from abort reports that f+1 signed: the log says so again.
            let evidence = if several {
                Evidence::recalled(certificate)
            } else {
                let checked = keyring.verify_certificate(certificate, cluster.replicas.strong());
                Evidence::Certified(checked.ok_or(RecoverError::BadCertificate)?)
            };
            if tree.root() != evidence.checkpoint().root {
                return Err(RecoverError::BadSnapshot);
            }
            estate.install(tree).map_err(|_| RecoverError::BadState)?;
            restored = Some(evidence);
        } else if cluster.genesis != genesis.as_ref().map(Tree::root) {
            return Err(RecoverError::BadGenesis);
        } else if let Some(tree) = genesis {
            estate.install(tree).map_err(|_| RecoverError::BadState)?;
        }
        let mut composite = Composite::open(&cluster, me, estate, restored.clone(), lost_log);
        let (mut rejections, mut out, mut log_bytes) = (Rejections::default(), Outbox::<Self>::new(), 0);
        let mut amnesia = (lost_log && several).then(Amnesia::total);
        let (cluster_of, keys) = (&cluster, &keyring);
        for record in log {
            let (length, before) = (record.record.log_bytes() as u64, composite.what.number);
            let mut s = Surroundings {
                now: Instant(0),
                cluster: cluster_of,
                keyring: keys,
                me,
                rejections: &mut rejections,
                log_bytes: &mut 0,
                amnesia: &mut amnesia,
                silent: ReplicaSet::NOBODY,
                out: &mut out,
            };
            composite.replay(&mut s, restored.as_ref(), record);
            assert!(composite.what.number >= before, "the log tells of one instance after the other");
            log_bytes += length;
        }
        Ok(Self { cluster, keyring, me, composite, rejections: Rejections::default(), log_bytes, amnesia })
    }

    /// Turns a frame into a verified message, or counts why it is none.
    pub fn open(&mut self, frame: Bytes, from: Principal) -> Option<Incoming> {
        match Message::open(frame, from, &self.cluster, &self.keyring) {
            Ok(incoming) => Some(incoming),
            Err(reason) => {
                self.reject(from, reason);
                None
            }
        }
    }

    /// Counts something that the host itself did not accept, such as an oversized frame.
    pub fn reject(&mut self, from: Principal, reason: Rejection) {
        self.rejections.add(from, self.keyring.keys(), reason);
    }

    /// What was rejected since the host asked last: see [`Rejections::take_recent`].
    pub fn recent_rejections(&mut self) -> Vec<(Account, Rejection)> {
        self.rejections.take_recent()
    }

    /// Sizes and limits.
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Our keys, for sealing.
    pub const fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Who we are.
    pub const fn id(&self) -> ReplicaId {
        self.me
    }

    /// The running instance.
    pub const fn instance(&self) -> InstanceId {
        self.composite.what.number
    }

    /// The application, as of the last executed batch.
    pub fn service(&self) -> &S {
        self.composite.ledger().estate.service()
    }

    /// Service, client table and history.
    pub fn estate(&self) -> &Estate<S> {
        &self.composite.ledger().estate
    }

    /// Asserts what is true of this replica between steps, whatever others say. In debug builds each step ends with it.
    ///
    /// # Panics
    /// If something is not.
    pub fn check_invariants(&self) {
        let Self { cluster, keyring, me, composite, rejections, amnesia, .. } = self;
        cluster.check_invariants();
        assert_eq!(keyring.me(), Principal::Replica(*me), "a replica speaks for itself");
        rejections.check_invariants(keyring.keys());
        if let Some(amnesia) = amnesia {
            assert!(cluster.protocol.hands_on(), "where there is one instance its order abstains");
            amnesia.check_invariants(cluster, *me);
        }
        composite.check_invariants(cluster, *me, amnesia.as_ref());
    }

    /// This replica's view of itself.
    pub fn report(&self) -> Report {
        let estate = &self.composite.ledger().estate;
        let several = self.cluster.protocol.hands_on();
        let mut report = Report {
            protocol: self.cluster.protocol.to_string(),
            instance: self.composite.what.number,
            part: if several { self.composite.what.part.to_string() } else { String::new() },
            position: estate.position(),
            members: estate.members().live(),
            switch_reason: self.composite.last_switch.reason,
            switch_took: self.composite.last_switch.took,
            executed: estate.executed_for_good(),
            history: estate.history(),
            abstaining: self.amnesia.is_some(),
            disputed: estate.disputed(),
            closed: estate.closed(),
            rejections: self.rejections.iter().map(|(from, counts)| (from, counts.clone())).collect(),
            ..Report::default()
        };
        for (from, counts) in self.rejections.iter() {
            let Account::Replica(replica) = from else { continue };
            let blamed = counts.iter().filter(|(reason, _)| reason.is_blame());
            report.suspicions.extend(blamed.map(|(reason, count)| (replica, reason, count)));
        }
        if let Some(instance) = self.composite.running().open() {
            instance.describe(&mut report);
        }
        report
    }
}

impl<S: Service> Speaker for Replica<S> {
    type InstanceRecord = InstanceRecord;
}

impl<S: Service> Machine for Replica<S> {
    type Incoming = Incoming;
    type Outgoing = Message;
    type Timer = ReplicaTimer;
    type Command = Infallible;
    type Notice = Notice;
    type Record = Record;

    fn step(&mut self, now: Instant, input: Input<Self>, out: &mut Outbox<Self>) {
        let Self { cluster, keyring, me, composite, rejections, log_bytes, amnesia } = self;
        let silent = composite.silent(now, cluster, *me);
        let mut s = Surroundings { now, cluster, keyring, me: *me, rejections, log_bytes, amnesia, silent, out };
        match input {
            Input::Start => composite.start(&mut s),
            Input::Message(Incoming { from, message }) => match (message.into_inner(), from) {
                (Message::Cookie(CookieMessage::Ask(ask)), Principal::Key(key)) => give_cookie(&mut s, key, ask),
                (message, from) => composite.message(&mut s, from, message),
            },
            Input::Timer(timer) => composite.timer(&mut s, timer),
            Input::Command(never) => match never {},
            Input::PassEnd => composite.pass_end(&mut s),
        }
        // The tests of this crate look now and then: at every step it would be half of the time of many.
        if cfg!(all(debug_assertions, not(test))) {
            self.check_invariants();
        }
    }
}

/// Members 1 of [`crate::members`]: nothing is kept of it.
fn give_cookie(s: &mut Surroundings<'_, impl Speaker<Outgoing = Message>>, key: PublicKey, ask: Ask) {
    s.step("Members 1");
    let Ask { nonce } = ask;
    let time = s.now;
    let signature = s.keyring.sign_bytes(Cookie::KIND, &Cookie { key, nonce, time }.to_bytes());
    s.send(Destination::Key(key), CookieMessage::Given(Given { nonce, time, signature }));
}
