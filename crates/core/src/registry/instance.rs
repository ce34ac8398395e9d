//! The instance that runs, whatever protocol it is of. A new protocol is one more variant; the compiler lists the
//! places to touch, which are all here.

use super::message::Message;
use super::record::InstanceRecord;
use super::timer::ReplicaTimer;
use crate::auth::Signed;
use crate::checkpoint::{Evidence, Tree};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::history::LogEntry;
use crate::ids::{ClientId, Principal, ReplicaId};
use crate::machine::Machine;
use crate::notice::{Notice, Report};
use crate::protocols::aardvark::{Measure, Watch};
use crate::protocols::backup::{Backup, BackupMessage, BackupTimer};
use crate::protocols::chain::Chain;
use crate::protocols::pbft::Pbft;
use crate::protocols::quorum::Quorum;
use crate::protocols::ring_fast::{RingFast, RingHeard, RingTimer};
use crate::protocols::ring_resilient::RingResilient;
use crate::protocols::ritas::order::Ritas;
use crate::protocols::speculative::{Speculation, SpeculativeTimer};
use crate::protocols::unreplicated::Unreplicated;
use crate::protocols::zlight::ZLight;
use crate::rejection::Rejection;
use crate::schedule::{Order, Part, Specification};
use crate::service::Service;
use crate::stop::{StopReason, SwitchReason};
use crate::switching::report::BOUNDARIES_MAX;
use crate::switching::{
    self, Abortable, Begun, Certainty, CheckedReport, ClaimedProof, Heard, HistoryRecord, Ledger, Proof, Record,
    Returned, Steps, Surroundings, Switch,
};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::sync::Arc;
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
    Pbft(Box<Backup<Pbft, S>>),
    Ritas(Box<Backup<Ritas, S>>),
    Unreplicated(Box<Unreplicated<S>>),
    #[cfg(test)]
    Sample(Box<crate::protocols::sample::Sample<S>>),
}

/// What is said to a Backup whatever its order is.
///
/// # Errors
/// Why it is nothing for one.
fn of_backup<T>(message: Message) -> Result<BackupMessage<T>, Rejection> {
    match message {
        Message::Checkpoint(vote) => Ok(BackupMessage::Checkpoint(vote)),
        Message::Testimony(signed) => Ok(BackupMessage::Testimony(signed)),
        Message::Transfer(message) => Ok(BackupMessage::Transfer(message)),
        // What another protocol says.
        _ => Err(Rejection::WrongSender),
    }
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
            Instance::Pbft($instance) => $act,
            Instance::Ritas($instance) => $act,
            Instance::Unreplicated($instance) => $act,
            #[cfg(test)]
            Instance::Sample($instance) => $act,
        }
    };
}

impl<S: Service> Instance<S> {
    /// An instance over a ledger that holds the init history. `speaks`: whether this replica remembers what it said; a
    /// Backup runs without that as well, because its order abstains.
    pub(crate) fn open(cluster: &Cluster, me: ReplicaId, what: Specification, ledger: Ledger<S>, speaks: bool) -> Self {
        let Specification { part, .. } = what;
        assert!(what.replicas.contains(what.head), "whoever leads is a replica");
        assert!(what.number.0 > 0, "the first instance is 1");
        assert!(speaks || part.is_backup(), "who has forgotten what it said speculates about nothing");
        let opened = match part {
            Part::Quorum => Self::Quorum(Box::new(Quorum::open(what, ledger))),
            Part::ZLight => Self::ZLight(Box::new(ZLight::open(what, ledger))),
            Part::Chain => Self::Chain(Box::new(Chain::open(what, me, ledger))),
            Part::RingFast => Self::RingFast(Box::new(RingFast::open(what, ledger))),
            Part::RingResilient => Self::RingResilient(Box::new(RingResilient::open(cluster, what, ledger))),
            Part::Backup(Order::Pbft | Order::Aardvark) => Self::Pbft(Box::new(Backup::open(what, ledger, !speaks))),
            Part::Backup(Order::Ritas) => Self::Ritas(Box::new(Backup::open(what, ledger, !speaks))),
            Part::Unreplicated => Self::Unreplicated(Box::new(Unreplicated::open(what, ledger))),
            #[cfg(test)]
            Part::Sample => Self::Sample(Box::new(crate::protocols::sample::Sample::open(what, ledger))),
        };
        assert_eq!(opened.certifying().is_some(), part.certifies(), "what its part says of it");
        opened
    }

    /// See [`Abortable::what`].
    pub(crate) fn what(&self) -> &Specification {
        each!(self, instance => instance.what())
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
            (Self::Pbft(backup), Message::Ordering(ordering)) => {
                let message = BackupMessage::Order(ordering.instance, ordering.message);
                backup.message(s, from, Heard::Own(message));
            }
            (Self::Ritas(backup), Message::Agreement(agreement)) => {
                let message = BackupMessage::Order(agreement.instance, agreement.message);
                backup.message(s, from, Heard::Own(message));
            }
            (Self::Pbft(backup), message) => match of_backup(message) {
                Ok(message) => backup.message(s, from, Heard::Own(message)),
                Err(reason) => s.reject(from, reason),
            },
            (Self::Ritas(backup), message) => match of_backup(message) {
                Ok(message) => backup.message(s, from, Heard::Own(message)),
                Err(reason) => s.reject(from, reason),
            },
            #[cfg(test)]
            (Self::Sample(sample), Message::Sample(pass)) => sample.message(s, from, Heard::Own(pass)),
            (_, Message::Transfer(_)) => s.reject(from, Rejection::Unsolicited),
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
            (Self::Pbft(backup), ReplicaTimer::Transfer) => backup.timer(s, BackupTimer::Transfer),
            (Self::Pbft(backup), ReplicaTimer::Opening) => backup.timer(s, BackupTimer::Opening),
            (Self::Ritas(backup), ReplicaTimer::Transfer) => backup.timer(s, BackupTimer::Transfer),
            (Self::Ritas(backup), ReplicaTimer::Opening) => backup.timer(s, BackupTimer::Opening),
            (Self::Pbft(backup), ReplicaTimer::Pbft(timer)) => backup.timer(s, BackupTimer::Order(timer)),
            (Self::Ritas(backup), ReplicaTimer::Ritas(timer)) => backup.timer(s, BackupTimer::Order(timer)),
            (_, _) => {}
        }
    }

    fn speculative_timer(&mut self, s: &mut Surroundings<'_, impl Speaker>, timer: SpeculativeTimer) {
        match self {
            Self::Quorum(quorum) => quorum.timer(s, timer),
            Self::ZLight(zlight) => zlight.timer(s, timer),
            Self::Chain(chain) => chain.timer(s, timer),
            Self::RingFast(ring) => ring.timer(s, RingTimer::Speculative(timer)),
            Self::RingResilient(_) | Self::Pbft(_) | Self::Ritas(_) | Self::Unreplicated(_) => {}
            #[cfg(test)]
            Self::Sample(sample) => sample.timer(s, timer),
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

    /// Whether this replica has the instance's state, and could go on with it. Who has stopped is there as well.
    pub(crate) fn is_current(&self, cluster: &Cluster) -> bool {
        match self {
            Self::Pbft(backup) => backup.is_current(cluster),
            Self::Ritas(backup) => backup.is_current(cluster),
            _ => true,
        }
    }

    /// Presence 5: a Backup that stays has it ordered that nobody is missing.
    pub(crate) fn ask_for_end(&mut self, s: &mut Surroundings<'_, impl Speaker>, returned: Vec<Signed<Returned>>) {
        match self {
            Self::Pbft(backup) => backup.ask_for_end(s, returned),
            Self::Ritas(backup) => backup.ask_for_end(s, returned),
            _ => {}
        }
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
    pub(crate) fn halt(self, cluster: &Cluster) -> Ledger<S> {
        each!(self, instance => instance.halt(cluster))
    }

    /// Replays a record, oldest first. One of another protocol is none of this instance.
    pub(crate) fn replay(&mut self, cluster: &Cluster, me: ReplicaId, record: InstanceRecord) {
        match (self, record) {
            (instance, InstanceRecord::History(record)) => {
                each!(instance, instance => instance.replay(cluster, record));
            }
            (Self::Pbft(backup), InstanceRecord::Pbft(record)) => backup.replay_order(cluster, me, record),
            (Self::Ritas(backup), InstanceRecord::Ritas(record)) => backup.replay_order(cluster, me, record),
            (Self::RingResilient(ring), InstanceRecord::Resilient(record)) => ring.replay_own(cluster, record),
            (_, InstanceRecord::Pbft(_) | InstanceRecord::Ritas(_) | InstanceRecord::Resilient(_)) => {}
        }
    }

    /// See [`Abortable::restored`].
    pub(crate) fn restored(&mut self, evidence: Evidence) {
        each!(self, instance => instance.restored(evidence));
    }

    /// The ledger is at an anchor above the history with which this instance began, whose end and digest are these.
    /// These entries were logged above it. Only the log of an instance with an anchor begins so.
    pub(crate) fn resume(&mut self, cluster: &Cluster, init: (u64, Digest), logged: Vec<LogEntry>) {
        let base = self.base_mut().expect("the log of a Backup begins with what its order needs");
        base.resume_after(init);
        // Without one a resilient ring has not begun (Resilient 2).
        if !logged.is_empty() {
            each!(self, instance => instance.replay(cluster, HistoryRecord::Logged(logged)));
        }
    }

    /// The beginning of a shorter log, if there is one: the anchor's position, the state there, and the records above.
    /// `proof`: what proves that this instance may run.
    pub(crate) fn begin_log(&mut self, proof: Option<Arc<ClaimedProof>>) -> Option<(u64, Tree, Vec<InstanceRecord>)> {
        let (position, tree, entries) = self.base_mut()?.begin_log()?;
        let (init, above) = (self.base()?.init(), entries.iter().map(LogEntry::digest).collect());
        let begun = HistoryRecord::Begun(Begun { proof, init, above });
        let records = HistoryRecord::bodies(entries).into_iter().chain([begun]).map(InstanceRecord::from);
        Some((position, tree, records.chain(self.records_at_anchor()).collect()))
    }

    fn records_at_anchor(&self) -> Vec<InstanceRecord> {
        match self {
            Self::RingResilient(ring) => ring.records_at_anchor(),
            Self::Quorum(_) | Self::ZLight(_) | Self::Chain(_) | Self::RingFast(_) => {
                let certificate = self.ledger().certificate().cloned();
                certificate.map(|certificate| HistoryRecord::Stable(certificate.into()).into()).into_iter().collect()
            }
            Self::Pbft(_) | Self::Ritas(_) | Self::Unreplicated(_) => Vec::new(),
            #[cfg(test)]
            Self::Sample(_) => Vec::new(),
        }
    }

    /// See [`Abortable::begin_with`].
    pub(crate) fn begin_with(&mut self, proof: Proof) {
        each!(self, instance => instance.begin_with(proof));
    }

    /// What was done since the last time, if it is a Backup that knows.
    pub(crate) fn take_measure(&mut self, now: Instant) -> Option<Measure> {
        if let Self::Pbft(backup) = self { backup.order_mut().take_measure(now) } else { None }
    }

    /// What it expects of its primaries, if it is a Backup that watches them. It is over.
    pub(crate) fn take_watch(&mut self) -> Option<Watch> {
        if let Self::Pbft(backup) = self { backup.order_mut().take_watch() } else { None }
    }

    /// Lets it go on expecting that, if it is such a Backup, and has not begun yet. Returns what it has no use for.
    pub(crate) fn resume_watch(&mut self, watch: Watch) -> Option<Watch> {
        if let Self::Pbft(backup) = self { backup.order_mut().resume_watch(watch) } else { Some(watch) }
    }

    /// See [`Abortable::lose_log`].
    pub(crate) fn lose_log(&mut self) -> bool {
        each!(self, instance => instance.lose_log())
    }

    /// See [`Abortable::left_because`].
    pub(crate) fn left_because(&self) -> SwitchReason {
        each!(self, instance => instance.left_because())
    }

    /// See [`Abortable::certainty`].
    pub(crate) fn certainty(&self) -> Certainty<'_> {
        each!(self, instance => instance.certainty())
    }

    /// The instance as one whose replicas sign how far they have come, if it is one
    /// ([`crate::schedule::Part::certifies`]).
    pub(crate) const fn certifying(&self) -> Option<&RingResilient<S>> {
        if let Self::RingResilient(ring) = self { Some(ring) } else { None }
    }

    /// The same.
    pub(crate) const fn certifying_mut(&mut self) -> Option<&mut RingResilient<S>> {
        if let Self::RingResilient(ring) = self { Some(ring) } else { None }
    }

    /// See [`Abortable::retain`].
    pub(crate) fn retain(&mut self, entries: Vec<LogEntry>) {
        each!(self, instance => instance.retain(entries));
    }

    /// See [`Abortable::describe`].
    pub(crate) fn describe(&self, report: &mut Report) {
        each!(self, instance => instance.describe(report));
    }

    /// See [`Abortable::check_invariants`].
    pub(crate) fn check_invariants(&self, cluster: &Cluster, me: ReplicaId) {
        each!(self, instance => instance.check_invariants(cluster, me));
        if let Some(report) = self.report() {
            assert_eq!(report.signer(), me, "a replica reports what it has logged itself");
            assert!(report.value().digests.len() as u64 <= cluster.inherited_bound(), "others accept the report");
            assert!(report.value().boundaries.len() <= BOUNDARIES_MAX, "others can read the report");
            assert!(report.value().boundaries.is_sorted(), "a report lists checkpoints in their order");
            let end = report.value().end();
            assert!(end <= self.ledger().log.length(), "what is reported is logged (abs-S13)");
            let beyond = report.value().boundaries.iter().find(|boundary| boundary.position > end);
            assert_eq!(beyond, None, "no checkpoint is reported beyond what is listed");
        }
    }

    /// What it shares with the others that speculate, if it is one of them.
    const fn base(&self) -> Option<&Speculation<S>> {
        match self {
            Self::Quorum(quorum) => Some(&quorum.base),
            Self::ZLight(zlight) => Some(&zlight.base),
            Self::Chain(chain) => Some(&chain.base),
            Self::RingFast(ring) => Some(&ring.base),
            Self::RingResilient(ring) => Some(&ring.base),
            #[cfg(test)]
            Self::Sample(sample) => Some(&sample.base),
            Self::Pbft(_) | Self::Ritas(_) | Self::Unreplicated(_) => None,
        }
    }

    /// The same.
    const fn base_mut(&mut self) -> Option<&mut Speculation<S>> {
        match self {
            Self::Quorum(quorum) => Some(&mut quorum.base),
            Self::ZLight(zlight) => Some(&mut zlight.base),
            Self::Chain(chain) => Some(&mut chain.base),
            Self::RingFast(ring) => Some(&mut ring.base),
            Self::RingResilient(ring) => Some(&mut ring.base),
            #[cfg(test)]
            Self::Sample(sample) => Some(&mut sample.base),
            Self::Pbft(_) | Self::Ritas(_) | Self::Unreplicated(_) => None,
        }
    }

    /// See [`Abortable::waiting_clients`].
    pub(crate) fn waiting_clients(&self) -> Vec<ClientId> {
        each!(self, instance => instance.waiting_clients())
    }
}
