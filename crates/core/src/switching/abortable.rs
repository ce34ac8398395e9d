//! A protocol instance within a composition.

use super::ledger::Ledger;
use super::message::SwitchMessage;
use super::record::HistoryRecord;
use super::report::CheckedReport;
use super::surroundings::{Speaker, Surroundings};
use crate::cluster::Cluster;
use crate::history::LogEntry;
use crate::ids::{ClientId, Principal};
use crate::message::Request;
use crate::notice::Report;
use crate::service::Service;
use crate::stop::StopReason;
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

/// See the [module](self): what it has to show, and what it leaves. Its inputs are those of [`Steps`].
pub trait Abortable {
    /// What it replicates.
    type Service: Service;
    /// What only its own protocol says.
    type Message;
    /// Its timers.
    type Timer;

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
    fn describe(&self, cluster: &Cluster, report: &mut Report);
    /// Hands everything on: nothing of this instance can speak any more.
    fn halt(self) -> Ledger<Self::Service>;
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
    /// A client says that it was not served in time (S2).
    fn panicked(&mut self, s: &mut Surroundings<'_, M>);
    /// Stops in this instance, unless it only ends by itself. `low_load`: because there is hardly any load.
    fn stop(&mut self, s: &mut Surroundings<'_, M>, reason: StopReason, low_load: bool);
}
