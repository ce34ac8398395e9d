//! One call: a future, or something to wait for.

use bezant_core::ids::{ClientId, ReplicaId, Sequence, Timestamp};
use bezant_core::message::Refusal;
use bytes::Bytes;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Names an operation that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestId {
    /// The session of its request.
    pub client: ClientId,
    /// The number of its request.
    pub timestamp: Timestamp,
    /// Where in its request it stands, from 0.
    pub place: u32,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, timestamp, place } = self;
        write!(f, "{client}.{}", timestamp.0)?;
        if *place > 0 { write!(f, ".{place}") } else { Ok(()) }
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The replicas agree that it was not executed and never will be.
    Rejected(Refusal),
    /// The deadline passed without enough equal answers, or newer requests of this client overtook it in a protocol
    /// that may take back what it executes: it may have been executed, or may be yet. See
    /// [`Client::ask_again`](super::Client::ask_again).
    Unknown {
        /// Names the operation.
        id: RequestId,
        /// What each replica did, in words.
        replicas: Vec<(ReplicaId, String)>,
    },
    /// It was not sent, because too many calls are under way already.
    NotSent,
    /// It cannot be asked for again: its session has gone on to other requests. Look at the service's state instead.
    Forgotten,
    /// It will not be executed from now on, and here is why. It may have been before: look at the service's state.
    TooLate(Refusal),
    /// The session ended, and here is why. The operation may have been executed before that.
    SessionOver(Refusal),
    /// It was not sent, because the cluster does not let this client join, and here is why.
    NotAdmitted(Refusal),
    /// The client has been closed.
    Closed,
}

impl CallError {
    /// Whether the operation may have been executed all the same.
    pub const fn may_have_been_executed(&self) -> bool {
        match self {
            Self::Unknown { .. } | Self::TooLate(_) | Self::SessionOver(_) | Self::Forgotten | Self::Closed => true,
            Self::Rejected(_) | Self::NotSent | Self::NotAdmitted(_) => false,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Nobody joins by a call.
            Self::Rejected(Refusal::Unauthorized) => {
                f.write_str("rejected: the service does not let this key close the cluster")
            }
            Self::Rejected(refusal) => write!(f, "rejected: {}", why(*refusal)),
            Self::Unknown { id, replicas } => {
                write!(f, "unknown whether it was executed: not enough equal answers in time (request {id})")?;
                for (replica, what) in replicas {
                    write!(f, "; replica {}: {what}", replica.0)?;
                }
                Ok(())
            }
            Self::NotSent => f.write_str("not sent: all sessions were busy until the deadline, or the queue was full"),
            Self::Forgotten => f.write_str("too late to ask again: its session has gone on to other requests"),
            Self::TooLate(reason) | Self::SessionOver(reason) => {
                write!(f, "unknown whether it was executed: {}", why(*reason))
            }
            Self::NotAdmitted(reason) => write!(f, "not sent: {}", why(*reason)),
            Self::Closed => f.write_str("the client is closed"),
        }
    }
}

const fn why(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::StaleTimestamp => "newer requests of this client overtook it, and what came of it is forgotten",
        Refusal::TooLarge => "the operation is too large for this cluster",
        Refusal::NotReadOnly => "the operation is not read-only",
        Refusal::NoSession => "the session is over, its place was given to another client",
        Refusal::TakenOver => "somebody joined with the same key, which ended this session",
        Refusal::Full => "the cluster has as many clients as it takes, and all of them are active",
        Refusal::TooSoon => "a session of this key was begun a moment ago: wait, or let that one leave first",
        Refusal::Unauthorized => "the service does not let this key join",
        Refusal::Expired => "joining took too long",
        Refusal::Disputed => {
            "the replicas executed it otherwise, each in its own way, so that it was undone everywhere: \
             it asks the service for something that is not the same on every machine"
        }
        Refusal::Undone => "it was undone together with a request that the replicas had executed otherwise",
        Refusal::NoRoom => "the results of the operations before it left no room for its own: ask again",
        Refusal::Closed => {
            "the cluster was closed for good by its administrator: nothing is written here any more. It has, or will \
             have, a successor with another cluster.toml"
        }
    }
}

impl std::error::Error for CallError {}

/// A result, and whose word it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vouched {
    /// The result.
    pub result: Bytes,
    /// The position at which it was executed or read; 0 if unknown.
    pub sequence: Sequence,
    /// The replicas that had given this result when there were enough of them.
    pub replicas: Vec<ReplicaId>,
}

impl Vouched {
    /// From a set of bits: bit i stands for replica i.
    pub(super) fn new(result: Bytes, sequence: Sequence, vouchers: u64) -> Self {
        let replicas = (0..u64::BITS as u8).filter(|id| vouchers >> id & 1 == 1).map(ReplicaId).collect();
        Self { result, sequence, replicas }
    }
}

type CallResult = Result<Vouched, CallError>;

#[derive(Debug, Default)]
struct State {
    result: Option<CallResult>,
    waker: Option<Waker>,
}

#[derive(Debug, Default)]
struct Slot(Mutex<State>);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes a thread that waits. A condition variable would ask the system to wake somebody for every call, also where
/// nobody waits.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A call under way. Dropping it does not undo it: the operation may be executed all the same.
#[derive(Debug)]
#[must_use = "a call that nobody waits for may fail unseen"]
pub struct Call(Arc<Slot>);

impl Call {
    /// A call and the means to complete it.
    pub(super) fn new() -> (Self, Completer) {
        let slot = Arc::new(Slot::default());
        (Self(Arc::clone(&slot)), Completer(Some(slot)))
    }

    /// Blocks until the call has ended; its deadline sees to it that it does.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn wait(self) -> Result<Bytes, CallError> {
        self.wait_vouched().map(|vouched| vouched.result)
    }

    /// Like [`Self::wait`], and says who vouched for the result.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn wait_vouched(self) -> CallResult {
        let waker = Waker::from(Arc::new(Parked(thread::current())));
        loop {
            match self.poll_vouched(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// As a future is polled, and with who vouched for the result. It is ready once.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn poll_vouched(&self, context: &mut Context<'_>) -> Poll<CallResult> {
        let mut state = self.0.lock();
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                match &mut state.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl Future for Call {
    type Output = Result<Bytes, CallError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_vouched(context).map(|result| result.map(|vouched| vouched.result))
    }
}

/// The other end of a [`Call`]. Dropped without a result, it says [`CallError::Closed`].
#[derive(Debug)]
pub(super) struct Completer(Option<Arc<Slot>>);

impl Completer {
    pub(super) fn complete(mut self, result: CallResult) {
        self.finish(result);
    }

    fn finish(&mut self, result: CallResult) {
        let Some(slot) = self.0.take() else { return };
        let mut state = slot.lock();
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        self.finish(Err(CallError::Closed));
    }
}
