//! The library's own [`Driver`]: calls of other threads wait for a free session.

use super::bundling::Operation;
use super::call::{Call, CallError, Completer, RequestId, Vouched};
use super::driver::{Again, Driver, Finished};
use super::engine::run_from;
use super::handle::{EngineHandle, EngineStatus};
use super::{Admitted, ClientOptions};
use crate::net::Clock;
use bezant_core::client::{Completed, Completion, Read, Submit};
use bezant_core::ids::ReplicaId;
use bezant_core::time::Instant;
use bytes::Bytes;
use mio::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Calls that may wait for a free session.
const WAITING_MAX: usize = 1 << 16;

/// How a call is carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ordered,
    Query(Read),
}

#[derive(Debug)]
struct Waiting {
    submit: Submit,
    deadline: Instant,
    completer: Completer,
}

#[derive(Debug, Default)]
struct Inbox {
    calls: VecDeque<Waiting>,
    /// Operations whose outcome was unknown and that are to be asked for again.
    again: VecDeque<(RequestId, Instant, Completer)>,
    closed: bool,
}

#[derive(Debug, Clone, Default)]
struct SharedInbox(Arc<Mutex<Inbox>>);

impl SharedInbox {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all clones of a [`Client`] share; the last one to go ends the engine.
#[derive(Debug)]
struct Shared {
    inbox: SharedInbox,
    waker: Arc<Waker>,
    clock: Clock,
    engine: Option<EngineHandle<Pool>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.inbox.lock().closed = true;
        if let Some(engine) = self.engine.take() {
            drop(engine.stop());
        }
    }
}

/// A handle to a cluster. Clones share sessions and connections; the last one dropped closes them.
#[derive(Clone, Debug)]
pub struct Client(Arc<Shared>);

/// Connects to a cluster. Returns at once: calls wait for the connections, and connections that break are made again.
///
/// # Errors
/// If the keys are not those of the identity, or the system gives no readiness queue or thread.
pub fn connect(options: ClientOptions) -> io::Result<Client> {
    let first = options.first_session()?;
    connect_from(options, first)
}

/// The same with sessions from this number on.
pub(super) fn connect_from(options: ClientOptions, first: u32) -> io::Result<Client> {
    let inbox = SharedInbox::default();
    let pool = Pool { inbox: inbox.clone(), active: BTreeMap::new(), tokens: 0, admitted: Admitted::Yes };
    let engine = run_from(options, first, pool)?;
    let (waker, clock) = (engine.waker(), engine.clock());
    Ok(Client(Arc::new(Shared { inbox, waker, clock, engine: Some(engine) })))
}

impl Client {
    /// What the connections and the replicas' answers have been like, at most 100 ms ago.
    pub fn status(&self) -> EngineStatus {
        self.0.engine.as_ref().map(EngineHandle::status).unwrap_or_default()
    }

    /// Executes an operation: ordered among all others, exactly once if at all.
    pub fn execute(&self, operation: Bytes, deadline: Duration) -> Call {
        self.submit(operation, Kind::Ordered, deadline)
    }

    /// Asks without changing anything. Where replicas cannot agree on an answer, or the protocol orders every read, the
    /// question is ordered. What is not read-only is [`CallError::Rejected`] in any case.
    pub fn query(&self, operation: Bytes, deadline: Duration) -> Call {
        self.submit(operation, Kind::Query(Read::Quorum), deadline)
    }

    /// Asks one replica without changing anything, and believes it: the answer may be old or a lie.
    pub fn query_local(&self, operation: Bytes, deadline: Duration) -> Call {
        self.submit(operation, Kind::Query(Read::One), deadline)
    }

    /// Asks these replicas only, without changing anything, and believes what f+1 of them say alike: one correct
    /// replica says so. Whether that is not an old answer is for the caller to know.
    pub fn query_few(&self, operation: Bytes, replicas: &[ReplicaId], deadline: Duration) -> Call {
        let few = replicas.iter().filter(|id| u32::from(id.0) < u64::BITS).fold(0, |bits, id| bits | 1 << id.0);
        self.submit(operation, Kind::Query(Read::Few(few)), deadline)
    }

    /// Asks again for an operation that ended as [`CallError::Unknown`]. It is executed at most once, whether it had
    /// been before or not. The sooner the better: with many unknown outcomes the oldest sessions are used for other
    /// requests, and then this ends as [`CallError::Forgotten`].
    pub fn ask_again(&self, id: RequestId, deadline: Duration) -> Call {
        self.enter(deadline, |inbox, deadline, completer| inbox.again.push_back((id, deadline, completer)))
    }

    fn submit(&self, operation: Bytes, kind: Kind, deadline: Duration) -> Call {
        let (read_only, read) = match kind {
            Kind::Ordered => (false, Read::Quorum),
            Kind::Query(read) => (true, read),
        };
        self.enter(deadline, |inbox, deadline, completer| {
            let submit = Submit { operation, is_bundle: false, read_only, read, deadline: Some(deadline) };
            inbox.calls.push_back(Waiting { submit, deadline, completer });
        })
    }

    /// Puts a call into the inbox, if there is room.
    fn enter(&self, deadline: Duration, put: impl FnOnce(&mut Inbox, Instant, Completer)) -> Call {
        let (call, completer) = Call::new();
        let micros = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
        let deadline = self.0.clock.now() + bezant_core::time::Duration(micros);
        let mut inbox = self.0.inbox.lock();
        if inbox.closed || inbox.calls.len() + inbox.again.len() >= WAITING_MAX {
            let reason = if inbox.closed { CallError::Closed } else { CallError::NotSent };
            drop(inbox);
            completer.complete(Err(reason));
            return call;
        }
        put(&mut inbox, deadline, completer);
        let first = inbox.calls.len() + inbox.again.len() == 1;
        drop(inbox);
        if first {
            // The engine is awake already, or its next pass finds the call.
            let _ = self.0.waker.wake();
        }
        call
    }
}

/// See the [module](self).
#[derive(Debug)]
struct Pool {
    inbox: SharedInbox,
    /// Calls under way, by token.
    active: BTreeMap<u64, Completer>,
    /// Tokens given so far.
    tokens: u64,
    /// Why calls wait that could be made, if they do.
    admitted: Admitted,
}

impl Pool {
    fn begin(&mut self, completer: Completer) -> u64 {
        self.tokens += 1;
        self.active.insert(self.tokens, completer);
        self.tokens
    }

    /// Why a call was not sent.
    const fn not_sent(&self) -> CallError {
        match self.admitted {
            Admitted::Yes => CallError::NotSent,
            Admitted::NotYet(reason) | Admitted::Never(reason) => CallError::NotAdmitted(reason),
        }
    }
}

impl Driver for Pool {
    fn next(&mut self, now: Instant) -> Option<Operation> {
        loop {
            let waiting = self.inbox.lock().calls.pop_front()?;
            if now < waiting.deadline {
                return Some(Operation { token: self.begin(waiting.completer), submit: waiting.submit });
            }
            waiting.completer.complete(Err(self.not_sent()));
        }
    }

    fn on_admission(&mut self, admitted: Admitted) {
        self.admitted = admitted;
    }

    fn on_finished(&mut self, finished: Finished) {
        let Some(completer) = self.active.remove(&finished.token) else { return };
        let Completed { client, timestamp, result, sequence, vouchers, .. } = finished.completed;
        let id = RequestId { client, timestamp, place: finished.place };
        completer.complete(match result {
            Completion::Done(result) => Ok(Vouched::new(result, sequence, vouchers)),
            Completion::Refused(refusal) => Err(CallError::Rejected(refusal)),
            Completion::TooLate(refusal) => Err(CallError::TooLate(refusal)),
            Completion::Ended(refusal) => Err(CallError::SessionOver(refusal)),
            Completion::Unknown => Err(CallError::Unknown { id, replicas: finished.explanation }),
        });
    }

    const KEEPS_UNKNOWN: bool = true;

    fn again(&mut self) -> Option<Again> {
        let (id, deadline, completer) = self.inbox.lock().again.pop_front()?;
        Some(Again { token: self.begin(completer), id, deadline: Some(deadline) })
    }

    fn on_forgotten(&mut self, token: u64) {
        if let Some(completer) = self.active.remove(&token) {
            completer.complete(Err(CallError::Forgotten));
        }
    }

    fn expire(&mut self, now: Instant) -> Option<Instant> {
        let mut inbox = self.inbox.lock();
        let never = matches!(self.admitted, Admitted::Never(_));
        let is_over = |call: &Waiting| never || call.deadline <= now;
        let expired: Vec<Waiting> = if inbox.calls.iter().any(is_over) {
            let (late, rest) = std::mem::take(&mut inbox.calls).into_iter().partition(is_over);
            inbox.calls = rest;
            Vec::from(late)
        } else {
            Vec::new()
        };
        let next = inbox.calls.iter().map(|call| call.deadline).min();
        drop(inbox);
        for call in expired {
            call.completer.complete(Err(self.not_sent()));
        }
        next
    }
}
