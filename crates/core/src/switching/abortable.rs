//! A protocol instance within a composition.

use super::ledger::Ledger;
use super::message::SwitchMessage;
use super::record::HistoryRecord;
use super::report::{CheckedReport, Proof};
use super::surroundings::{Speaker, Surroundings};
use crate::checkpoint::Evidence;
use crate::cluster::Cluster;
use crate::history::LogEntry;
use crate::ids::{ClientId, Principal, ReplicaId};
use crate::message::Request;
use crate::notice::Report;
use crate::schedule::Specification;
use crate::service::Service;
use crate::stop::{StopReason, SwitchReason};
use alloc::vec::Vec;

/// A message for an instance, which the boundary verified.
#[derive(Debug)]
pub enum Heard<T> {
    /// A client asks, or somebody passes on what it asks.
    Request(Request),
    /// What is said about instances of every kind.
    Switch(SwitchMessage),
    /// What only this protocol says.
    Own(T),
}

/// Up to where an instance's state is certain, and what proves that.
#[derive(Debug)]
pub enum Certainty<'a> {
    /// Up to a checkpoint, by this.
    Certified(&'a Evidence),
    /// Up to its anchor. Who is asked signs that.
    Anchor,
    /// All of it. Who is asked signs that.
    Newest,
}

/// See the [module](self): what it has to show, and what it leaves. Its inputs are those of [`Steps`].
pub trait Abortable {
    /// What it replicates.
    type Service: Service;
    /// What only its own protocol says.
    type Message;
    /// Its timers.
    type Timer;

    /// What it is.
    fn what(&self) -> &Specification;
    /// The abort report, once stopped.
    fn report(&self) -> Option<&CheckedReport>;
    /// State and history.
    fn ledger(&self) -> &Ledger<Self::Service>;
    /// Clients whose requests it has perhaps not answered.
    fn waiting_clients(&self) -> Vec<ClientId>;
    /// Replays a record of its history, oldest first. What it makes the instance say is thrown away by the caller.
    fn replay(&mut self, cluster: &Cluster, record: HistoryRecord);
    /// Takes bodies that the log has: others may have to fetch them.
    fn retain(&mut self, entries: Vec<LogEntry>);
    /// Adds what it knows of itself.
    fn describe(&self, report: &mut Report);
    /// What proves that it may run. Only a Backup asks for that, which agrees by itself on what it begins with.
    fn begin_with(&mut self, proof: Proof);
    /// The state, from a snapshot, is the one at this checkpoint of this instance. Only a Backup's log begins so.
    fn restored(&mut self, evidence: Evidence);
    /// The log is a new one. Whether this instance goes on without what it forgot; any other must be silent.
    fn lose_log(&mut self) -> bool;
    /// Up to where the state is certain.
    fn certainty(&self) -> Certainty<'_>;
    /// Why a replica leaves it for the next one.
    fn left_because(&self) -> SwitchReason;
    /// Asserts what is true of it between steps, at this replica.
    fn check_invariants(&self, cluster: &Cluster, me: ReplicaId);
    /// Hands everything on: nothing of this instance can speak any more.
    fn halt(self, cluster: &Cluster) -> Ledger<Self::Service>;
}

/// The inputs of an instance. `M` is the machine that it is a part of.
pub trait Steps<M: Speaker>: Abortable {
    /// The first input.
    fn start(&mut self, s: &mut Surroundings<'_, M>);
    /// A message for this instance.
    fn message(&mut self, s: &mut Surroundings<'_, M>, from: Principal, message: Heard<Self::Message>);
    /// A timer came due.
    fn timer(&mut self, s: &mut Surroundings<'_, M>, timer: Self::Timer);
    /// Everything that was waiting has been handed over.
    fn pass_end(&mut self, s: &mut Surroundings<'_, M>);
    /// A client says that it was not served in time (Switch 2).
    fn panicked(&mut self, s: &mut Surroundings<'_, M>);
    /// Stops in this instance, unless it only ends by itself. `low_load`: because there is hardly any load.
    fn stop(&mut self, s: &mut Surroundings<'_, M>, reason: StopReason, low_load: bool);
}
