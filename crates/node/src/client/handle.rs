//! An engine from outside: what it says of itself, and how it is woken and stopped.

use crate::net::NetMetrics;
use crate::net::clock::Clock;
use crate::replica::CpuTime;
use bezant_core::auth::Counters;
use bezant_core::ids::ReplicaId;
use mio::Waker;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// What an engine publishes about itself; counters since its start.
#[derive(Clone, Debug, Default)]
pub struct EngineStatus {
    /// What its network layer counted.
    pub net: NetMetrics,
    /// Authentication operations.
    pub counters: Counters,
    /// Passes of the loop.
    pub passes: u64,
    /// Replies that were not accepted at the boundary.
    pub rejected: u64,
    /// Links that are up.
    pub links_up: usize,
    /// How often each replica gave another result than the agreed one. Replicas that never did are not in it.
    pub differed: BTreeMap<ReplicaId, u64>,
    /// Requests sent, each counted once, and the operations that they carried.
    pub requests: u64,
    /// See [`EngineStatus::requests`].
    pub operations: u64,
    /// Processor time.
    pub cpu: CpuTime,
}

/// A running engine.
#[derive(Debug)]
pub struct EngineHandle<D> {
    pub(super) waker: Arc<Waker>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) status: Arc<Mutex<EngineStatus>>,
    pub(super) clock: Clock,
    pub(super) thread: JoinHandle<D>,
}

impl<D> EngineHandle<D> {
    /// Wakes the engine, so that it asks its driver for requests.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// The engine's clock: deadlines are in its time.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// What the engine last published.
    pub fn status(&self) -> EngineStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes all connections and gives the driver back. `None` if the engine ended by a failure of the system.
    pub fn stop(self) -> Option<D> {
        self.stop.store(true, Ordering::Release);
        // If waking fails the engine notices at its next pass, at most 100 ms later.
        let _ = self.waker.wake();
        self.thread.join().ok()
    }
}
