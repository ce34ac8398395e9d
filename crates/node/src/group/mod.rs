//! A process of a group: broadcasts and agreement between programs, over the runtime's links, without a service.
//!
//! A thread of its own drives the [`Group`] machine of the core. Calls block until they have their answer, and any
//! number of threads may call. `docs/groups.md` says how a group is set up; `crates/ritas` opens it to C.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | what a program calls |
//! | `settings.rs` | who is in the group |
//! | `inbox.rs` | what waits between the program's threads and the group's |
//! | `host.rs` | the loop: links, timers, the machine |
//! | `within.rs` | the calls that give something back, for callers with so much room |
//!
//! [`Group`]: bezant_core::protocols::ritas::group::Group

mod host;
mod inbox;
mod settings;
#[cfg(test)]
mod tests;
mod within;

use bezant_core::ids::ReplicaId;
use bezant_core::protocols::ritas::group::{Call, Command, MESSAGE_BYTES_MAX};
use bezant_core::protocols::ritas::path::NUMBER_MAX;
use bezant_core::protocols::ritas::vector_consensus::share_bytes_max;
use bytes::Bytes;
use inbox::{Inbox, Number, Shared};
pub use inbox::{Ordered, Problem};
pub use settings::{DealtCoin, GroupSettings, SettingsError, Witness};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A process of a group. When it is dropped it leaves, and all calls that wait end.
#[derive(Debug)]
pub struct GroupHandle {
    shared: Arc<Shared>,
    n: usize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl GroupHandle {
    /// Joins a group. Returns at once: calls wait for the others.
    ///
    /// # Errors
    /// If the settings do not fit together, the address cannot be listened to, or the system gives no thread.
    pub fn start(settings: GroupSettings) -> io::Result<Self> {
        let n = settings.members.len();
        let (host, shared) = host::Host::new(settings)?;
        let ending = Ending(shared.clone());
        let run = move || {
            let _ending = ending;
            host.run();
        };
        let thread = std::thread::Builder::new().name("group".to_owned()).spawn(run)?;
        Ok(Self { shared, n, thread: Mutex::new(Some(thread)) })
    }

    /// Leaves the group: calls that wait end, and so does every later one. What was called for before is said, as far
    /// as there are links that take it within a second. Returns when they are closed.
    pub fn leave(&self) {
        self.shared.close();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // If it has panicked, it has said so.
            let _ = thread.join();
        }
    }

    /// How long a call may take from now on; for ever, if nothing is said.
    pub fn set_patience(&self, patience: Option<Duration>) {
        self.shared.lock().patience = patience;
    }

    /// Broadcasts a value reliably, as this process's broadcast of that number.
    ///
    /// # Errors
    /// [`Problem`]; a number is good for one broadcast.
    pub fn reliable_broadcast(&self, number: u64, value: Bytes) -> Result<(), Problem> {
        self.call(Some(Number::Reliable(number)), Call::Reliable(number, value))
    }

    /// The value that a process has broadcast reliably under that number: the same at every correct process, if any has
    /// one. Each is received once.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn reliable_receive(&self, from: ReplicaId, number: u64) -> Result<Bytes, Problem> {
        self.reliable_receive_within(from, number, usize::MAX)
    }

    /// Broadcasts a value by echo: no two correct processes have different ones, and some may have none.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn echo_broadcast(&self, number: u64, value: Bytes) -> Result<(), Problem> {
        self.call(Some(Number::Echo(number)), Call::Echo(number, value))
    }

    /// The value that a process has broadcast by echo under that number.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn echo_receive(&self, from: ReplicaId, number: u64) -> Result<Bytes, Problem> {
        self.echo_receive_within(from, number, usize::MAX)
    }

    /// Agrees on a bit that a correct process has proposed. If a call ends without a result because of the time or the
    /// room, another one of the same number waits for that result; what it proposes is not looked at.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn agree_on_bit(&self, number: u64, proposal: bool) -> Result<bool, Problem> {
        self.bit(number, proposal)
    }

    /// Agrees on a value that a correct process has proposed, or on none, if not all have proposed the same.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn agree(&self, number: u64, proposal: Bytes) -> Result<Option<Bytes>, Problem> {
        self.agree_within(number, proposal, usize::MAX)
    }

    /// Agrees on what n − f processes at least have proposed: by process, a value or none.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn agree_on_vector(&self, number: u64, proposal: Bytes) -> Result<Vec<Option<Bytes>>, Problem> {
        self.agree_on_vector_within(number, proposal, usize::MAX, |_| 0)
    }

    /// Has a message ordered among those of all processes.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn order(&self, message: Bytes) -> Result<(), Problem> {
        self.call(None, Call::Order(message))
    }

    /// The next message in the order that is the same at all correct processes. Those of one of them come as it sent
    /// them.
    ///
    /// # Errors
    /// [`Problem`].
    pub fn next_ordered(&self) -> Result<Ordered, Problem> {
        self.next_ordered_within(usize::MAX)
    }

    /// Bytes of the longest proposal to a vector consensus: those of all processes make one value together.
    pub const fn vector_value_bytes_max(&self) -> usize {
        let fitting = share_bytes_max(self.n);
        if fitting < MESSAGE_BYTES_MAX { fitting } else { MESSAGE_BYTES_MAX }
    }

    fn check_member(&self, id: ReplicaId) -> Result<(), Problem> {
        if usize::from(id.0) < self.n { Ok(()) } else { Err(Problem::NoMember) }
    }

    fn call(&self, number: Option<Number>, call: Call) -> Result<(), Problem> {
        let weight = call.weight();
        let bytes_max = if let Call::Vector(..) = &call { self.vector_value_bytes_max() } else { MESSAGE_BYTES_MAX };
        if call.bytes() > bytes_max {
            return Err(Problem::TooLong);
        }
        if number.is_some_and(|number| Inbox::window(number).1 > NUMBER_MAX) {
            return Err(Problem::NoNumber);
        }
        let mut call = Some(call);
        self.shared.wait(|inbox| {
            if number.is_some_and(|number| inbox.is_used(number)) {
                return Some(Err(Problem::Used));
            }
            if let Some(problem) = &inbox.ended {
                return Some(Err(problem.clone()));
            }
            inbox.has_room().then(|| {
                inbox.use_up(number);
                inbox.command(Command::Call(call.take().expect("it is made once")), weight);
                Ok(())
            })
        })??;
        self.shared.wake();
        Ok(())
    }
}

impl Drop for GroupHandle {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Ends the calls that wait if the group's thread ends, however it does.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.lock().ended.get_or_insert_with(|| Problem::Failed("its thread has ended by a mistake".to_owned()));
        self.0.tell();
    }
}
