//! The instance that runs, whatever protocol it is of. A new protocol is one more variant; the compiler lists the
//! places to touch, which are all here.

use super::message::Message;
use super::record::InstanceRecord;
use super::timer::ReplicaTimer;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::LogEntry;
use crate::ids::{ClientId, Principal, ReplicaId};
use crate::machine::Machine;
use crate::notice::{Notice, Report};
use crate::protocols::backup::{Backup, BackupMessage, BackupTimer};
use crate::protocols::chain::{Chain, Topology};
use crate::protocols::pbft::Pbft;
use crate::protocols::quorum::Quorum;
use crate::protocols::ring_fast::{RingFast, RingHeard, RingTimer};
use crate::protocols::ring_resilient::RingResilient;
use crate::protocols::speculative::{Speculation, SpeculativeTimer};
use crate::protocols::unreplicated::Unreplicated;
use crate::protocols::zlight::ZLight;
use crate::rejection::Rejection;
use crate::schedule::{Part, Specification};
use crate::service::Service;
use crate::stop::StopReason;
use crate::switching::{
    self, Abortable, CheckedReport, Heard, HistoryRecord, Ledger, Record, Steps, Surroundings, Switch,
};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The machine that all instances are a part of.
pub(crate) trait Speaker:
    switching::Speaker<
        InstanceRecord = InstanceRecord,
        Outgoing = Message,
        Timer = ReplicaTimer,
        Notice = Notice,
        Record = Record<InstanceRecord>,
    >
{
}

impl<M> Speaker for M where
    M: switching::Speaker<InstanceRecord = InstanceRecord>
        + Machine<Outgoing = Message, Timer = ReplicaTimer, Notice = Notice, Record = Record<InstanceRecord>>
{
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) enum Instance<S: Service> {
    Quorum(Box<Quorum<S>>),
    ZLight(Box<ZLight<S>>),
    Chain(Box<Chain<S>>),
    RingFast(Box<RingFast<S>>),
    RingResilient(Box<RingResilient<S>>),
    Backup(Box<Backup<Pbft, S>>),
    Unreplicated(Box<Unreplicated<S>>),
}

/// Lets whichever instance it is do the same thing.
macro_rules! each {
    ($self:expr, $instance:ident => $act:expr) => {
        match $self {
            Instance::Quorum($instance) => $act,
            Instance::ZLight($instance) => $act,
            Instance::Chain($instance) => $act,
            Instance::RingFast($instance) => $act,
            Instance::RingResilient($instance) => $act,
            Instance::Backup($instance) => $act,
            Instance::Unreplicated($instance) => $act,
        }
    };
}

impl<S: Service> Instance<S> {
    /// An instance over a ledger that holds the init history. `speaks`: whether this replica remembers what it said; a
    /// Backup runs without that as well, because its order abstains.
    pub(crate) fn open(cluster: &Cluster, me: ReplicaId, what: Specification, ledger: Ledger<S>, speaks: bool) -> Self {
        let Specification { number, part, head, view, watches_load, .. } = what;
        assert!(speaks || part == Part::Backup, "who has forgotten what it said speculates about nothing");
        match part {
            Part::Quorum => Self::Quorum(Box::new(Quorum::open(number, watches_load, ledger))),
            Part::ZLight => Self::ZLight(Box::new(ZLight::open(number, head, ledger))),
            Part::Chain => {
                let topology = Topology::new(cluster, head);
                Self::Chain(Box::new(Chain::open(number, topology, me, watches_load, ledger)))
            }
            Part::RingFast => Self::RingFast(Box::new(RingFast::open(number, head, watches_load, ledger))),
            Part::RingResilient => Self::RingResilient(Box::new(RingResilient::open(cluster, &what, ledger))),
            Part::Backup => {
                let order = Pbft::new(number, Digest::ZERO, !speaks).beginning_with(view);
                let order = if number.0 > 1 { order.awaiting_init() } else { order };
                Self::Backup(Box::new(Backup::open_limited(what, order, ledger)))
            }
        }
    }

    /// See [`Steps::start`].
    pub(crate) fn start(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        each!(self, instance => instance.start(s));
    }

    /// See [`Steps::message`].
    pub(crate) fn message(&mut self, s: &mut Surroundings<'_, impl Speaker>, from: Principal, message: Message) {
        match (self, message) {
            (instance, Message::Request(request)) => {
                each!(instance, instance => instance.message(s, from, Heard::Request(request)));
            }
            (instance, Message::Switch(Switch { message, .. })) => {
                each!(instance, instance => instance.message(s, from, Heard::Switch(message)));
            }
            (Self::ZLight(zlight), Message::Order(order)) => zlight.message(s, from, Heard::Own(order)),
            (Self::Chain(chain), Message::Chain(message)) => chain.message(s, from, Heard::Own(message)),
            (Self::RingFast(ring), Message::Ring(message)) => {
                ring.message(s, from, Heard::Own(RingHeard::Ring(message)));
            }
            (Self::RingFast(ring), Message::RingPace(pace)) => {
                ring.message(s, from, Heard::Own(RingHeard::Pace(pace.message)));
            }
            (Self::RingResilient(ring), Message::Resilient(resilient)) => {
                ring.message(s, from, Heard::Own(resilient.message));
            }
            (Self::Backup(backup), Message::Ordering(ordering)) => {
                let message = BackupMessage::Order(ordering.instance, ordering.message);
                backup.message(s, from, Heard::Own(message));
            }
            (Self::Backup(backup), Message::Checkpoint(vote)) => {
                backup.message(s, from, Heard::Own(BackupMessage::Checkpoint(vote)));
            }
            (Self::Backup(backup), Message::Testimony(signed)) => {
                backup.message(s, from, Heard::Own(BackupMessage::Testimony(signed)));
            }
            (Self::Backup(backup), Message::Transfer(message)) => {
                backup.message(s, from, Heard::Own(BackupMessage::Transfer(message)));
            }
            // What another protocol says.
            (_, _) => s.reject(from, Rejection::WrongSender),
        }
    }

    /// See [`Steps::timer`]. One of another protocol means nothing here.
    pub(crate) fn timer(&mut self, s: &mut Surroundings<'_, impl Speaker>, timer: ReplicaTimer) {
        match (self, timer) {
            (instance, ReplicaTimer::Checkpoint) => instance.speculative_timer(s, SpeculativeTimer::Checkpoint),
            (instance, ReplicaTimer::LowLoad) => instance.speculative_timer(s, SpeculativeTimer::LowLoad),
            (Self::RingFast(ring), ReplicaTimer::Panic) => ring.timer(s, RingTimer::Panic),
            (Self::RingFast(ring), ReplicaTimer::Pace) => ring.timer(s, RingTimer::Pace),
            (Self::RingResilient(ring), ReplicaTimer::Resilient(timer)) => ring.timer(s, timer),
            (Self::Backup(backup), ReplicaTimer::Transfer) => backup.timer(s, BackupTimer::Transfer),
            (Self::Backup(backup), ReplicaTimer::Opening) => backup.timer(s, BackupTimer::Opening),
            (Self::Backup(backup), ReplicaTimer::Pbft(timer)) => backup.timer(s, BackupTimer::Order(timer)),
            (_, _) => {}
        }
    }

    fn speculative_timer(&mut self, s: &mut Surroundings<'_, impl Speaker>, timer: SpeculativeTimer) {
        match self {
            Self::Quorum(quorum) => quorum.timer(s, timer),
            Self::ZLight(zlight) => zlight.timer(s, timer),
            Self::Chain(chain) => chain.timer(s, timer),
            Self::RingFast(ring) => ring.timer(s, RingTimer::Speculative(timer)),
            Self::RingResilient(_) | Self::Backup(_) | Self::Unreplicated(_) => {}
        }
    }

    /// See [`Steps::pass_end`].
    pub(crate) fn pass_end(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        each!(self, instance => instance.pass_end(s));
    }

    /// See [`Steps::panicked`].
    pub(crate) fn panicked(&mut self, s: &mut Surroundings<'_, impl Speaker>) {
        each!(self, instance => instance.panicked(s));
    }

    /// See [`Steps::stop`].
    pub(crate) fn stop(&mut self, s: &mut Surroundings<'_, impl Speaker>, reason: StopReason, low_load: bool) {
        each!(self, instance => instance.stop(s, reason, low_load));
    }

    /// See [`Abortable::report`].
    pub(crate) fn report(&self) -> Option<&CheckedReport> {
        each!(self, instance => instance.report())
    }

    /// See [`Abortable::ledger`].
    pub(crate) fn ledger(&self) -> &Ledger<S> {
        each!(self, instance => instance.ledger())
    }

    /// See [`Abortable::halt`].
    pub(crate) fn halt(self) -> Ledger<S> {
        each!(self, instance => instance.halt())
    }

    /// Replays a record, oldest first. One of another protocol is none of this instance.
    pub(crate) fn replay(&mut self, cluster: &Cluster, me: ReplicaId, record: InstanceRecord) {
        match (self, record) {
            (instance, InstanceRecord::History(record)) => {
                each!(instance, instance => instance.replay(cluster, record));
            }
            (Self::Backup(backup), InstanceRecord::Pbft(record)) => backup.order_mut().replay(cluster, me, record),
            (Self::RingResilient(ring), InstanceRecord::Resilient(record)) => ring.replay_own(cluster, record),
            (_, InstanceRecord::Pbft(_) | InstanceRecord::Resilient(_)) => {}
        }
    }

    /// What the log on disk needs above the state at the anchor, besides the entries, where it begins there.
    pub(crate) fn records_at_anchor(&self) -> Vec<InstanceRecord> {
        match self {
            Self::RingResilient(ring) => ring.records_at_anchor(),
            Self::Quorum(_) | Self::ZLight(_) | Self::Chain(_) | Self::RingFast(_) => {
                let certificate = self.ledger().certificate().cloned();
                certificate.map(|certificate| HistoryRecord::Stable(certificate.into()).into()).into_iter().collect()
            }
            Self::Backup(_) | Self::Unreplicated(_) => Vec::new(),
        }
    }

    /// See [`Abortable::retain`].
    pub(crate) fn retain(&mut self, entries: Vec<LogEntry>) {
        each!(self, instance => instance.retain(entries));
    }

    /// See [`Abortable::describe`].
    pub(crate) fn describe(&self, cluster: &Cluster, report: &mut Report) {
        each!(self, instance => instance.describe(cluster, report));
    }

    /// What it shares with the others that speculate, if it is one of them.
    pub(crate) const fn base(&self) -> Option<&Speculation<S>> {
        match self {
            Self::Quorum(quorum) => Some(&quorum.base),
            Self::ZLight(zlight) => Some(&zlight.base),
            Self::Chain(chain) => Some(&chain.base),
            Self::RingFast(ring) => Some(&ring.base),
            Self::RingResilient(ring) => Some(&ring.base),
            Self::Backup(_) | Self::Unreplicated(_) => None,
        }
    }

    /// The same.
    pub(crate) const fn base_mut(&mut self) -> Option<&mut Speculation<S>> {
        match self {
            Self::Quorum(quorum) => Some(&mut quorum.base),
            Self::ZLight(zlight) => Some(&mut zlight.base),
            Self::Chain(chain) => Some(&mut chain.base),
            Self::RingFast(ring) => Some(&mut ring.base),
            Self::RingResilient(ring) => Some(&mut ring.base),
            Self::Backup(_) | Self::Unreplicated(_) => None,
        }
    }

    /// See [`Abortable::waiting_clients`].
    pub(crate) fn waiting_clients(&self) -> Vec<ClientId> {
        each!(self, instance => instance.waiting_clients())
    }
}
