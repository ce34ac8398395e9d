//! Compositions: schedules of abortable instances over one estate (design.md section 1).
//!
//! A replicated state machine is an abortable instance that never aborts, so that every configuration, plain PBFT
//! included, is a schedule. So far there are two: `pbft` is `backup(pbft, k = ∞)`, and `unreplicated` is one server
//! without any protocol, the yardstick of every benchmark.

mod unreplicated;

pub use unreplicated::Unreplicated;

use crate::auth::Certificate;
use crate::checkpoint::{Checkpoint, genesis};
use crate::cluster::{Cluster, InstanceId};
use crate::estate::Estate;
use crate::machine::Principal;
use crate::message::Message;
use crate::protocols::backup::{Backup, Quota, Surroundings};
use crate::protocols::pbft::Pbft;
use crate::replica::ReplicaTimer;
use crate::service::Service;
use crate::switching::Abortable;
use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

/// A composition by its name in the cluster file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// `backup(pbft, k = ∞)`.
    #[default]
    Pbft,
    /// One server: executes on arrival, tolerates nothing.
    Unreplicated,
}

impl Protocol {
    /// Every composition.
    pub const ALL: &'static [Self] = &[Self::Pbft, Self::Unreplicated];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pbft => "pbft",
            Self::Unreplicated => "unreplicated",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no composition of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProtocol;

impl fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown protocol; there are")?;
        for protocol in Protocol::ALL {
            write!(f, " {protocol}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownProtocol {}

impl FromStr for Protocol {
    type Err = UnknownProtocol;
    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        Self::ALL.iter().copied().find(|protocol| protocol.name() == name).ok_or(UnknownProtocol)
    }
}

/// The instance that runs. A new protocol is one more variant; the compiler lists the places to touch.
#[derive(Clone, Debug)]
pub(crate) enum Running<S: Service> {
    Backup(Box<Backup<Pbft, S>>),
    Unreplicated(Box<Unreplicated<S>>),
}

/// A schedule of instances, of which one runs.
#[derive(Clone, Debug)]
pub(crate) struct Composite<S: Service> {
    pub(crate) protocol: Protocol,
    pub(crate) instance: InstanceId,
    pub(crate) running: Running<S>,
}

impl<S: Service> Composite<S> {
    /// The first instance of the schedule, over the state before the first batch or one restored from disk.
    pub(crate) fn open(
        protocol: Protocol,
        estate: Estate<S>,
        restored: Option<Certificate<Checkpoint>>,
        lost_log: bool,
    ) -> Self {
        let instance = InstanceId(1);
        let running = match protocol {
            Protocol::Pbft => {
                let root = estate.newest_version().root();
                let mut order = Pbft::new(instance, root, lost_log);
                let stable = restored.unwrap_or_else(|| genesis(instance, root));
                order.restored(stable.clone());
                Running::Backup(Box::new(Backup::open(instance, Quota::Unlimited, order, estate, stable)))
            }
            Protocol::Unreplicated => Running::Unreplicated(Box::new(Unreplicated::open(instance, estate))),
        };
        Self { protocol, instance, running }
    }

    /// Why this protocol cannot run on this cluster, in words.
    pub(crate) fn objection(protocol: Protocol, cluster: &Cluster) -> Option<&'static str> {
        (protocol == Protocol::Unreplicated && cluster.n != 1).then_some("unreplicated runs on exactly one replica")
    }
}

impl<S: Service> Abortable<S> for Composite<S> {
    fn start(&mut self, surroundings: &mut Surroundings<'_, S>) {
        match &mut self.running {
            Running::Backup(backup) => backup.start(surroundings),
            Running::Unreplicated(server) => server.start(surroundings),
        }
    }

    fn message(&mut self, surroundings: &mut Surroundings<'_, S>, from: Principal, message: Message) {
        match &mut self.running {
            Running::Backup(backup) => backup.message(surroundings, from, message),
            Running::Unreplicated(server) => server.message(surroundings, from, message),
        }
    }

    fn timer(&mut self, surroundings: &mut Surroundings<'_, S>, timer: ReplicaTimer) {
        match &mut self.running {
            Running::Backup(backup) => backup.timer(surroundings, timer),
            Running::Unreplicated(server) => server.timer(surroundings, timer),
        }
    }

    fn pass_end(&mut self, surroundings: &mut Surroundings<'_, S>) {
        match &mut self.running {
            Running::Backup(backup) => backup.pass_end(surroundings),
            Running::Unreplicated(server) => server.pass_end(surroundings),
        }
    }

    fn estate(&self) -> &Estate<S> {
        match &self.running {
            Running::Backup(backup) => backup.estate(),
            Running::Unreplicated(server) => server.estate(),
        }
    }

    fn halt(self) -> Estate<S> {
        match self.running {
            Running::Backup(backup) => backup.halt(),
            Running::Unreplicated(server) => server.halt(),
        }
    }
}
