//! One replica: its machine, its log and its sockets on one thread.
//!
//! A pass of the loop: wait, read every readable socket, verify and step each message, step the timers that are due,
//! let batches form ([`Input::PassEnd`](bezant_core::machine::Input::PassEnd)) unless the log is busy, ask it for a
//! sync, let out what it has made durable, write once per socket. The loop waits for nothing but readiness: fsync runs
//! on the log's own thread and wakes the loop when it is done.

pub mod durability;
mod host;
mod routes;
mod shelf;
mod status;

pub use durability::{Durability, MemoryLog, Stall};
pub use shelf::{Shelf, Shown};
pub use status::{CpuTime, PeerStatus, Status};

use crate::config::Places;
use crate::net::{Channel, ServiceBuild};
use bezant_core::auth::Keyring;
use bezant_core::checkpoint::{Checkpoint, Snapshot};
use bezant_core::ids::Principal;
use bezant_core::machine::Machine;
use bezant_core::notice::{Notice, Report};
use bezant_core::registry::{Incoming, Message, Record};
use bezant_core::rejection::Rejection;
use bezant_core::replica::Replica;
use bezant_core::service::Service;
use bytes::Bytes;
use host::Host;
use mio::Waker;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A machine that a replica's loop can host: the replica of `bezant-core`, or one that wraps it (a liar, for
/// demonstrations).
pub trait Hosted: Machine<Incoming = Incoming, Outgoing = Message, Notice = Notice, Record = Record> + 'static {
    /// Decodes and verifies a frame that came over the link of `from`. A rejection is counted, and `None`.
    fn open(&mut self, frame: Bytes, from: Principal) -> Option<Incoming>;
    /// Counts something that the loop itself did not accept, such as an oversized frame.
    fn reject(&mut self, _from: Principal, _reason: Rejection) {}
    /// The keys with which outgoing messages are sealed.
    fn keyring(&self) -> &Keyring;
    /// The machine's view of itself.
    fn report(&self) -> Report;
    /// The newest checkpoint that is certain, unless it is the one that is known.
    fn certain_checkpoint(&self, known: Option<&Checkpoint>) -> Option<Snapshot>;
    /// What the machine has at its newest checkpoint.
    fn newest_checkpoint(&self) -> Snapshot;
}

impl<S: Service + 'static> Hosted for Replica<S> {
    fn open(&mut self, frame: Bytes, from: Principal) -> Option<Incoming> {
        self.open(frame, from)
    }

    fn reject(&mut self, from: Principal, reason: Rejection) {
        self.reject(from, reason);
    }

    fn keyring(&self) -> &Keyring {
        self.keyring()
    }

    fn report(&self) -> Report {
        self.report()
    }

    fn certain_checkpoint(&self, known: Option<&Checkpoint>) -> Option<Snapshot> {
        self.certain_checkpoint(known)
    }

    fn newest_checkpoint(&self) -> Snapshot {
        self.newest_checkpoint()
    }
}

/// What a replica's loop needs besides its machine.
pub struct ReplicaOptions {
    /// The replica's keys; they say which replica it is.
    pub keyring: Keyring,
    /// What links run over.
    pub channel: Channel,
    /// The service and its build. Replicas that run another one are refused.
    pub service: ServiceBuild,
    /// Where every replica listens for replicas, by number.
    pub replicas: Places,
    /// This replica's port for replicas, bound. See [`bind`].
    pub replica_listener: TcpListener,
    /// This replica's port for clients, bound.
    pub client_listener: TcpListener,
    /// Where records go.
    pub log: Box<dyn Durability>,
    /// Called on the replica's thread with everything that its machine tells; must not block.
    pub on_notice: Box<dyn FnMut(&Notice) + Send>,
}

impl fmt::Debug for ReplicaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaOptions").field("replicas", &self.replicas).finish_non_exhaustive()
    }
}

/// Binds a port to listen on.
///
/// # Errors
/// What the system says, with the address: another process has the port, say.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))
}

/// Why a replica ended by itself.
#[derive(Debug)]
pub enum ReplicaError {
    /// The machine could not be made.
    Start(String),
    /// The log cannot make anything durable any more.
    Log(Stall),
    /// The system's readiness queue or a listener failed.
    System(io::Error),
    /// The machine broke one of its own invariants, or the service panicked; the message is on standard error.
    Panicked,
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(what) => write!(f, "the replica cannot start: {what}"),
            Self::Log(stall) => write!(f, "the replica stopped speaking because its log failed: {stall}"),
            Self::System(error) => write!(f, "the replica stopped: {error}"),
            Self::Panicked => {
                f.write_str("the replica stopped: it found its own state inconsistent, or its service panicked")
            }
        }
    }
}

impl std::error::Error for ReplicaError {}

const RUN: u8 = 0;
const STOP: u8 = 1;
const KILL: u8 = 2;

/// A running replica. Dropping the handle lets it run on.
#[derive(Debug)]
pub struct ReplicaHandle {
    status: Arc<Mutex<Status>>,
    shelf: Arc<Shelf>,
    order: Arc<AtomicU8>,
    waker: Arc<Waker>,
    thread: JoinHandle<Result<(), ReplicaError>>,
}

impl ReplicaHandle {
    /// What the replica last published, at most 100 ms old while something happens. For the admin port.
    pub fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the status is published.
    pub fn shared_status(&self) -> Arc<Mutex<Status>> {
        Arc::clone(&self.status)
    }

    /// Where its checkpoints are shown.
    pub fn shelf(&self) -> Arc<Shelf> {
        Arc::clone(&self.shelf)
    }

    /// Whether the replica has ended by itself.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Writes out what is under way (for at most a second), closes log and sockets, and waits for the end.
    ///
    /// # Errors
    /// [`ReplicaError`] if it had ended by itself, or if its log could not be closed.
    pub fn stop(self) -> Result<(), ReplicaError> {
        self.end(STOP)
    }

    /// Ends at once, as if the process had been killed: nothing more is written or sent.
    ///
    /// # Errors
    /// [`ReplicaError`] if it had ended by itself.
    pub fn kill(self) -> Result<(), ReplicaError> {
        self.end(KILL)
    }

    /// Waits until the replica ends by itself.
    ///
    /// # Errors
    /// [`ReplicaError`]: it never ends well by itself.
    pub fn join(self) -> Result<(), ReplicaError> {
        self.thread.join().unwrap_or(Err(ReplicaError::Panicked))
    }

    fn end(self, order: u8) -> Result<(), ReplicaError> {
        self.order.store(order, Ordering::Release);
        // If waking fails the loop notices at its next pass.
        let _ = self.waker.wake();
        self.join()
    }
}

/// Starts a replica on its own thread. `make` builds its machine there: fresh, or recovered from the log.
///
/// # Errors
/// If the system gives no readiness queue, or cannot watch the listeners.
pub fn run<R: Hosted>(
    options: ReplicaOptions,
    make: impl FnOnce() -> Result<R, String> + Send + 'static,
) -> io::Result<ReplicaHandle> {
    let order = Arc::new(AtomicU8::new(RUN));
    let status = Arc::new(Mutex::new(Status::default()));
    let shelf = Arc::new(Shelf::default());
    let parts = host::Parts::new(options, Arc::clone(&order), Arc::clone(&status), Arc::clone(&shelf))?;
    let waker = parts.waker();
    let thread = std::thread::Builder::new().name("replica".into()).spawn(move || {
        let machine = make().map_err(ReplicaError::Start)?;
        Host::new(machine, parts).run()
    })?;
    Ok(ReplicaHandle { status, shelf, order, waker, thread })
}
