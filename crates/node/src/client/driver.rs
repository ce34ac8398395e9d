//! Where an engine's operations come from, and where their results go.

use super::bundling::Operation;
use super::call::RequestId;
use super::membership::Admitted;
use bezant_core::client::Completed;
use bezant_core::ids::ReplicaId;
use bezant_core::time::Instant;

/// An operation that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The driver's number for it.
    pub token: u64,
    /// Where in its request it stands, from 0.
    pub place: u32,
    /// What came of it. Client, timestamp, and who said what, are those of its request.
    pub completed: Completed,
    /// What each replica did, in words. Empty unless the outcome is unknown.
    pub explanation: Vec<(ReplicaId, String)>,
}

/// An operation whose outcome was unknown, to be asked for again.
#[derive(Debug)]
pub struct Again {
    /// The driver's number for it now.
    pub token: u64,
    /// What it was.
    pub id: RequestId,
    /// When to give up.
    pub deadline: Option<Instant>,
}

/// Where requests come from and results go to, on the engine's own thread.
pub trait Driver: Send + 'static {
    /// The next operation, if there is one. Called when there is room for it: when another has ended, and when the
    /// engine was woken. What is given in one pass leaves together where it can.
    fn next(&mut self, now: Instant) -> Option<Operation>;

    /// An operation has ended.
    fn on_finished(&mut self, finished: Finished);

    /// Whether the cluster lets this client in, where it has to join, or not any more.
    fn on_admission(&mut self, _admitted: Admitted) {}

    /// Whether a session whose request ended as unknown is kept aside, as long as at least half of all sessions are
    /// left, so that it can be asked again.
    const KEEPS_UNKNOWN: bool = false;

    /// An operation that is to be asked for again, if there is one.
    fn again(&mut self) -> Option<Again> {
        None
    }

    /// What was to be asked for again is forgotten: its session has gone on to other requests.
    fn on_forgotten(&mut self, _token: u64) {}

    /// Gives up what waited for too long. Returns when to be called again.
    fn expire(&mut self, _now: Instant) -> Option<Instant> {
        None
    }
}
