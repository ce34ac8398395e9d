//! One replica: its machine, its log and its sockets on one thread.
//!
//! A pass of the loop: wait, read every readable socket, verify and step each message, step the timers that are due,
//! let batches form ([`Input::PassEnd`](bezant_core::machine::Input::PassEnd)) unless the log is busy, ask it for a
//! sync, let out what it has made durable, write once per socket. The loop waits for nothing but readiness: fsync runs
//! on the log's own thread and wakes the loop when it is done.

pub mod durability;
mod error;
mod host;
mod hosted;
mod memory;
mod options;
pub(crate) mod routes;
mod shelf;
mod status;

pub use durability::{Durability, MemoryLog, Stall};
pub use error::ReplicaError;
pub use hosted::Hosted;
pub use memory::memory_max;
pub use options::ReplicaOptions;
pub use shelf::{Shelf, Shown};
pub use status::{CpuTime, PeerStatus, QUARANTINED_SHOWN_MAX, Status};

use host::{Host, KILL, RUN, STOP};
use mio::Waker;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Binds a port to listen on.
///
/// # Errors
/// What the system says, with the address: another process has the port, say.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))
}

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

/// Bytes of the stack of a replica's thread. Services may recurse, within bounds of their own that leave room here:
/// what is not used costs nothing.
const STACK_BYTES: usize = 16 << 20;

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
    let thread = std::thread::Builder::new().name("replica".into()).stack_size(STACK_BYTES).spawn(move || {
        let machine = make().map_err(ReplicaError::Start)?;
        Host::new(machine, parts).run()
    })?;
    Ok(ReplicaHandle { status, shelf, order, waker, thread })
}
