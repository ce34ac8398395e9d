//! The library's own [`Driver`]: calls of other threads wait for a free session.

use super::call::{Call, CallError, Completer};
use super::engine::{ClientOptions, Driver, EngineHandle, EngineStatus, Finished, run};
use crate::net::Clock;
use bezant_core::client::{Completion, Submit};
use bezant_core::machine::Instant;
use bytes::Bytes;
use mio::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Calls that may wait for a free session.
const WAITING_MAX: usize = 1 << 16;

#[derive(Debug)]
struct Waiting {
    submit: Submit,
    deadline: Instant,
    completer: Completer,
}

#[derive(Debug, Default)]
struct Inbox {
    calls: VecDeque<Waiting>,
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
    let inbox = SharedInbox::default();
    let engine = run(options, Pool { inbox: inbox.clone(), active: BTreeMap::new() })?;
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
        self.call(operation, false, deadline)
    }

    /// Asks without changing anything. Falls back to an ordered execution where the operation is not read-only.
    pub fn query(&self, operation: Bytes, deadline: Duration) -> Call {
        self.call(operation, true, deadline)
    }

    fn call(&self, operation: Bytes, read_only: bool, deadline: Duration) -> Call {
        let (call, completer) = Call::new();
        let micros = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
        let deadline = self.0.clock.now() + bezant_core::machine::Duration(micros);
        let submit = Submit { operation, read_only, deadline: Some(deadline) };
        let mut inbox = self.0.inbox.lock();
        if inbox.closed || inbox.calls.len() >= WAITING_MAX {
            let reason = if inbox.closed { CallError::Closed } else { CallError::NotSent };
            drop(inbox);
            completer.complete(Err(reason));
            return call;
        }
        inbox.calls.push_back(Waiting { submit, deadline, completer });
        let first = inbox.calls.len() == 1;
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
    active: BTreeMap<usize, Completer>,
}

impl Driver for Pool {
    fn next(&mut self, session: usize, now: Instant) -> Option<Submit> {
        loop {
            let waiting = self.inbox.lock().calls.pop_front()?;
            if now < waiting.deadline {
                self.active.insert(session, waiting.completer);
                return Some(waiting.submit);
            }
            waiting.completer.complete(Err(CallError::NotSent));
        }
    }

    fn on_finished(&mut self, finished: Finished) {
        let Some(completer) = self.active.remove(&finished.session) else { return };
        let completed = finished.completed;
        completer.complete(match completed.result {
            Completion::Done(result) => Ok(result),
            Completion::Refused(refusal) => Err(CallError::Rejected(refusal)),
            Completion::Unknown => {
                Err(CallError::Unknown { id: (completed.client, completed.timestamp), replicas: finished.explanation })
            }
        });
    }

    fn expire(&mut self, now: Instant) -> Option<Instant> {
        let mut inbox = self.inbox.lock();
        let expired: Vec<Waiting> = if inbox.calls.iter().any(|call| call.deadline <= now) {
            let (late, rest) = std::mem::take(&mut inbox.calls).into_iter().partition(|call| call.deadline <= now);
            inbox.calls = rest;
            Vec::from(late)
        } else {
            Vec::new()
        };
        let next = inbox.calls.iter().map(|call| call.deadline).min();
        drop(inbox);
        for call in expired {
            call.completer.complete(Err(CallError::NotSent));
        }
        next
    }
}
