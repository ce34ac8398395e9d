//! The library's own [`Driver`]: calls of other threads wait for a free session.

use super::call::{Call, CallError, Completer, Vouched};
use super::engine::{Again, Driver, EngineHandle, EngineStatus, Finished, run_from};
use super::{Admitted, ClientOptions};
use crate::net::Clock;
use bezant_core::client::{Completion, Read, Submit};
use bezant_core::ids::{ClientId, ReplicaId, Timestamp};
use bezant_core::time::Instant;
use bytes::Bytes;
use mio::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Calls that may wait for a free session.
const WAITING_MAX: usize = 1 << 16;

/// Names a request: its session and number.
type RequestId = (ClientId, Timestamp);

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
    /// Requests whose outcome was unknown and that are to be asked for again.
    again: VecDeque<(RequestId, Waiting)>,
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
    let pool =
        Pool { inbox: inbox.clone(), active: BTreeMap::new(), unknown: BTreeMap::new(), admitted: Admitted::Yes };
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
        self.submit(None, operation, Kind::Ordered, deadline)
    }

    /// Asks without changing anything. Where replicas cannot agree on an answer, or the protocol orders every read, the
    /// question is ordered. What is not read-only is [`CallError::Rejected`] in any case.
    pub fn query(&self, operation: Bytes, deadline: Duration) -> Call {
        self.submit(None, operation, Kind::Query(Read::Quorum), deadline)
    }

    /// Asks one replica without changing anything, and believes it: the answer may be old or a lie.
    pub fn query_local(&self, operation: Bytes, deadline: Duration) -> Call {
        self.submit(None, operation, Kind::Query(Read::One), deadline)
    }

    /// Asks these replicas only, without changing anything, and believes what f+1 of them say alike: one correct
    /// replica says so. Whether that is not an old answer is for the caller to know.
    pub fn query_few(&self, operation: Bytes, replicas: &[ReplicaId], deadline: Duration) -> Call {
        let few = replicas.iter().filter(|id| u32::from(id.0) < u64::BITS).fold(0, |bits, id| bits | 1 << id.0);
        self.submit(None, operation, Kind::Query(Read::Few(few)), deadline)
    }

    /// Asks again for a request that ended as [`CallError::Unknown`], with the same operation. It is executed at most
    /// once, whether it had been before or not. The sooner the better: with many unknown outcomes the oldest sessions
    /// are used for other requests, and then this ends as [`CallError::Forgotten`].
    pub fn ask_again(&self, id: (ClientId, Timestamp), operation: Bytes, deadline: Duration) -> Call {
        self.submit(Some(id), operation, Kind::Ordered, deadline)
    }

    fn submit(&self, again: Option<RequestId>, operation: Bytes, kind: Kind, deadline: Duration) -> Call {
        let (call, completer) = Call::new();
        let micros = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
        let deadline = self.0.clock.now() + bezant_core::time::Duration(micros);
        let (read_only, read) = match kind {
            Kind::Ordered => (false, Read::Quorum),
            Kind::Query(read) => (true, read),
        };
        let submit = Submit { operation, read_only, read, deadline: Some(deadline) };
        let mut inbox = self.0.inbox.lock();
        if inbox.closed || inbox.calls.len() + inbox.again.len() >= WAITING_MAX {
            let reason = if inbox.closed { CallError::Closed } else { CallError::NotSent };
            drop(inbox);
            completer.complete(Err(reason));
            return call;
        }
        let waiting = Waiting { submit, deadline, completer };
        match again {
            None => inbox.calls.push_back(waiting),
            Some(id) => inbox.again.push_back((id, waiting)),
        }
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
    /// By session: the call that it carries out, and whether that is a query.
    active: BTreeMap<usize, (Completer, bool)>,
    /// By session: the request that it was last used for, if its outcome is unknown, and whether it is a query.
    unknown: BTreeMap<usize, (RequestId, bool)>,
    /// Why calls wait that could be made, if they do.
    admitted: Admitted,
}

impl Pool {
    /// Why a call was not sent.
    const fn not_sent(&self) -> CallError {
        match self.admitted {
            Admitted::Yes => CallError::NotSent,
            Admitted::NotYet(reason) | Admitted::Never(reason) => CallError::NotAdmitted(reason),
        }
    }
}

impl Driver for Pool {
    fn next(&mut self, session: usize, now: Instant) -> Option<Submit> {
        loop {
            let waiting = self.inbox.lock().calls.pop_front()?;
            if now < waiting.deadline {
                self.unknown.remove(&session);
                self.active.insert(session, (waiting.completer, waiting.submit.read_only));
                return Some(waiting.submit);
            }
            waiting.completer.complete(Err(self.not_sent()));
        }
    }

    fn on_admission(&mut self, admitted: Admitted) {
        self.admitted = admitted;
    }

    fn on_finished(&mut self, finished: Finished) {
        let Some((completer, is_query)) = self.active.remove(&finished.session) else { return };
        let completed = finished.completed;
        if completed.result == Completion::Unknown {
            self.unknown.insert(finished.session, ((completed.client, completed.timestamp), is_query));
        }
        completer.complete(match completed.result {
            Completion::Done(result) => Ok(Vouched::new(result, completed.sequence, completed.vouchers)),
            Completion::Refused(refusal) => Err(CallError::Rejected(refusal)),
            Completion::TooLate(refusal) => Err(CallError::TooLate(refusal)),
            Completion::Ended(refusal) => Err(CallError::SessionOver(refusal)),
            Completion::Unknown => {
                Err(CallError::Unknown { id: (completed.client, completed.timestamp), replicas: finished.explanation })
            }
        });
    }

    const KEEPS_UNKNOWN: bool = true;

    fn again(&mut self) -> Option<Again> {
        loop {
            let (id, mut waiting) = self.inbox.lock().again.pop_front()?;
            if let Some((&session, &(_, is_query))) = self.unknown.iter().find(|(_, (kept, _))| *kept == id) {
                self.unknown.remove(&session);
                self.active.insert(session, (waiting.completer, is_query));
                waiting.submit.read_only = is_query;
                return Some(Again { session, id, submit: waiting.submit });
            }
            waiting.completer.complete(Err(CallError::Forgotten));
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
