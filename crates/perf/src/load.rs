//! Closed-loop load: every session sends its next request as soon as the last one is answered.
//!
//! Sessions may be spread over several threads. Those of one thread hardly ever contend: what it sends in one go
//! arrives everywhere in the same order. Those of different threads meet as clients on several hosts do.
//!
//! Clients that join have a key and a thread each, and send nothing before the cluster has let them in. To compare
//! them with those that the cluster file names, give those a thread each as well.

use crate::bursts::{Bursts, share};
use crate::histogram::Histogram;
use crate::recorded::Recorded;
use crate::sql;
use crate::workload::Workload;
use bezant_core::auth::SecretKey;
use bezant_core::client::{Completion, Read, Submit};
use bezant_core::ids::IdentityId;
use bezant_core::message::Refusal;
use bezant_core::time::{Duration, Instant};
use bezant_node::client::{Admitted, CallError, ClientOptions, Driver, EngineHandle, Finished, Operation, run};
use bezant_node::keys;
use bezant_node::replica::CpuTime;
use bytes::Bytes;
use mio::Waker;
use std::ops::Add;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{io, time};

/// After this long a request counts as failed.
const DEADLINE: Duration = Duration::from_millis(30_000);

/// How often is looked whether everything is answered.
const HELD_POLL: time::Duration = time::Duration::from_millis(1);

/// What the measuring thread and the load's own share.
#[derive(Debug)]
struct Shared {
    bursts: Option<Mutex<Bursts>>,
    /// Of all threads, for a burst that begins when another one ends.
    wakers: OnceLock<Vec<Arc<Waker>>>,
    measuring: AtomicBool,
    /// Whether nothing goes for now.
    held: AtomicBool,
    /// Operations that are not answered yet.
    under_way: AtomicUsize,
    finished: AtomicU64,
    /// How often a client was let in that had to join.
    joined: AtomicUsize,
    /// Why one never will be.
    barred: OnceLock<Refusal>,
    /// Since when there is a timeline.
    origin: OnceLock<time::Instant>,
    /// Whether all bursts are over.
    done: AtomicBool,
}

impl Shared {
    fn new(bursts: Option<Bursts>) -> Self {
        Self {
            bursts: bursts.map(Mutex::new),
            wakers: OnceLock::new(),
            measuring: AtomicBool::new(false),
            held: AtomicBool::new(false),
            under_way: AtomicUsize::new(0),
            finished: AtomicU64::new(0),
            joined: AtomicUsize::new(0),
            barred: OnceLock::new(),
            origin: OnceLock::new(),
            done: AtomicBool::new(false),
        }
    }

    fn bursts(&self) -> Option<MutexGuard<'_, Bursts>> {
        Some(self.bursts.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether this thread may send one more; then it counts as under way. It does so before it looks: whoever
    /// [holds](Load::hold) the load either sees it, or is seen by it.
    fn admit(&self, thread: usize) -> bool {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let is_held = self.held.load(Ordering::SeqCst);
        let admitted = !is_held && self.bursts().is_none_or(|mut bursts| bursts.admit(thread));
        if !admitted {
            self.under_way.fetch_sub(1, Ordering::SeqCst);
        }
        admitted
    }

    /// Has every thread look whether it may send.
    fn wake(&self) {
        for waker in self.wakers.get().into_iter().flatten() {
            // A thread that is not woken looks again after 100 ms.
            let _ = waker.wake();
        }
    }
}

/// Sends without pause and keeps latencies while the measurement is on.
#[derive(Debug)]
struct ClosedLoop {
    thread: usize,
    /// Taken in turn.
    operations: Vec<Bytes>,
    sent: usize,
    /// Bytes of a proper result, if that is known.
    reply_bytes: Option<usize>,
    sql: Option<sql::Requests>,
    recorded: Option<Recorded>,
    shared: Arc<Shared>,
    latencies: Histogram,
    failures: u64,
    last_failure: Option<String>,
}

impl Driver for ClosedLoop {
    fn next(&mut self, now: Instant) -> Option<Operation> {
        if !self.shared.admit(self.thread) {
            return None;
        }
        if self.recorded.is_some() {
            self.shared.origin.get_or_init(time::Instant::now);
        }
        if let Some(sql) = &mut self.sql {
            return Some(Operation { token: 0, submit: sql.next(now + DEADLINE) });
        }
        let operation = self.operations[self.sent % self.operations.len()].clone();
        self.sent += 1;
        let deadline = Some(now + DEADLINE);
        let submit = Submit { operation, is_bundle: false, read_only: false, read: Read::Quorum, deadline };
        Some(Operation { token: 0, submit })
    }

    fn on_finished(&mut self, finished: Finished) {
        self.shared.under_way.fetch_sub(1, Ordering::SeqCst);
        match &finished.completed.result {
            Completion::Done(result) => match self.objection(result) {
                Some(objection) => self.fail(objection),
                None => {
                    self.shared.finished.fetch_add(1, Ordering::Relaxed);
                    if self.shared.measuring.load(Ordering::Relaxed) {
                        self.latencies.record(finished.completed.latency.0);
                    }
                }
            },
            Completion::Refused(reason) => self.fail(format!("refused: {reason:?}")),
            Completion::TooLate(reason) | Completion::Ended(reason) => self.fail(format!("unknown: {reason:?}")),
            Completion::Unknown => self.fail(format!("not answered in time: {:?}", finished.explanation)),
        }
        self.keep_time();
    }

    fn on_admission(&mut self, admitted: Admitted) {
        match admitted {
            Admitted::Yes => {
                self.shared.joined.fetch_add(1, Ordering::Relaxed);
            }
            Admitted::NotYet(_) => {}
            Admitted::Never(reason) => {
                self.shared.barred.get_or_init(|| reason);
            }
        }
    }
}

impl ClosedLoop {
    /// What is wrong with a result.
    fn objection(&self, result: &Bytes) -> Option<String> {
        if self.sql.is_some() {
            return sql::Requests::objection(result);
        }
        let (bytes, wanted) = (result.len(), self.reply_bytes?);
        (bytes != wanted).then(|| format!("a result of {bytes} bytes instead of {wanted}: is the service `null`?"))
    }

    /// Another request has ended, one way or the other.
    fn keep_time(&mut self) {
        let at = self.shared.origin.get().map_or(time::Duration::ZERO, time::Instant::elapsed);
        if let Some(recorded) = &mut self.recorded {
            recorded.on_answer(at);
        }
        let Some(mut bursts) = self.shared.bursts() else { return };
        if !bursts.on_answer(self.thread) {
            return;
        }
        self.shared.done.store(bursts.coming.is_empty(), Ordering::Relaxed);
        if let Some(recorded) = &mut self.recorded {
            recorded.bursts.push(at);
        }
        self.shared.wake();
    }

    fn fail(&mut self, what: String) {
        self.failures += 1;
        self.last_failure = Some(what);
    }
}

/// Load that is running.
#[derive(Debug)]
pub struct Load {
    /// One for each thread.
    engines: Vec<EngineHandle<ClosedLoop>>,
    shared: Arc<Shared>,
    links: usize,
    /// Clients that have to join.
    joining: usize,
    began: Option<(time::Instant, time::Duration, Sent)>,
}

/// What the clients saw.
#[derive(Debug, Default)]
pub struct Measured {
    /// How long the measurement took.
    pub elapsed: time::Duration,
    /// Latencies of the operations that ended in it, in microseconds.
    pub latencies: Histogram,
    /// Processor time of this process during it.
    pub client_cpu: time::Duration,
    /// Requests that were not answered properly, from the start of the load.
    pub failures: u64,
    /// What went wrong last.
    pub last_failure: Option<String>,
    /// The timeline, if one was asked for.
    pub recorded: Option<Recorded>,
    /// What was sent.
    pub sent: Sent,
}

/// Requests that were sent, and the operations that they carried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    requests: u64,
    operations: u64,
}

impl Add for Sent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { requests: self.requests + other.requests, operations: self.operations + other.operations }
    }
}

impl Measured {
    /// Operations in a request, on average.
    pub fn operations_per_request(&self) -> f64 {
        if self.sent.requests == 0 { 1.0 } else { self.sent.operations as f64 / self.sent.requests as f64 }
    }

    /// What one thread saw.
    fn add(&mut self, driver: ClosedLoop) {
        let ClosedLoop { latencies, failures, last_failure, recorded, .. } = driver;
        self.latencies.add(&latencies);
        self.failures += failures;
        self.last_failure = self.last_failure.take().or(last_failure);
        if let Some(recorded) = recorded {
            self.recorded.get_or_insert_default().add(&recorded);
        }
    }
}

impl Load {
    /// Connects, and begins to send, from so many threads; no more of them than there are connections to each replica.
    /// The connections are shared among the identity of the options and the others, which have a thread each at least.
    /// Without an identity each connection is a client of its own, which makes itself a key and joins, on a thread of
    /// its own.
    ///
    /// # Errors
    /// What the system refuses: threads, sockets or random bytes.
    pub fn start(
        options: &ClientOptions,
        others: &[(IdentityId, SecretKey)],
        threads: usize,
        workload: &Workload,
    ) -> io::Result<Self> {
        let joins = options.identity.is_none();
        let threads = if joins { usize::MAX } else { threads.max(1 + others.len()) };
        let threads = threads.clamp(1, options.connections.max(1));
        let shared = Arc::new(Shared::new(workload.bursts.as_deref().map(|bursts| Bursts::new(bursts, threads))));
        let keys = Arc::new(AtomicI64::new(0));
        let start = |thread: usize| {
            let connections = share(options.connections, thread, threads);
            let driver = ClosedLoop {
                thread,
                operations: workload.operations(),
                sent: 0,
                reply_bytes: workload.given.is_empty().then_some(workload.reply_bytes),
                sql: workload.sql.map(|mix| sql::Requests::new(mix, Arc::clone(&keys))),
                recorded: workload.timeline.then(Recorded::default),
                shared: Arc::clone(&shared),
                latencies: Histogram::default(),
                failures: 0,
                last_failure: None,
            };
            let (identity, secret) = match (thread % (1 + others.len())).checked_sub(1) {
                Some(other) => (Some(others[other].0), others[other].1.clone()),
                None if joins => (None, keys::generate()?),
                None => (options.identity, options.secret.clone()),
            };
            run(ClientOptions { connections, identity, secret, ..options.clone() }, driver)
        };
        let engines = (0..threads).map(start).collect::<io::Result<Vec<_>>>()?;
        let links = options.connections * options.cluster.replicas.n();
        shared.wakers.get_or_init(|| engines.iter().map(EngineHandle::waker).collect());
        Ok(Self { engines, shared, links, joining: if joins { threads } else { 0 }, began: None })
    }

    /// Connections that are made, and how many there should be.
    pub fn connections(&self) -> (usize, usize) {
        (self.engines.iter().map(|engine| engine.status().links_up).sum(), self.links)
    }

    /// Clients that have joined, and how many have to.
    pub fn joined(&self) -> (usize, usize) {
        (self.shared.joined.load(Ordering::Relaxed), self.joining)
    }

    /// Why a client will never be let in, if there is one.
    pub fn barred(&self) -> Option<CallError> {
        self.shared.barred.get().copied().map(CallError::NotAdmitted)
    }

    /// Operations that have ended since the start.
    pub fn finished(&self) -> u64 {
        self.shared.finished.load(Ordering::Relaxed)
    }

    /// Since when there is a timeline: the first request. `None` if there is none yet, or was none asked for.
    pub fn origin(&self) -> Option<time::Instant> {
        self.shared.origin.get().copied()
    }

    /// Whether all bursts are over. Never true without any.
    pub fn is_done(&self) -> bool {
        self.shared.done.load(Ordering::Relaxed)
    }

    /// Lets nothing go any more, and waits until everything is answered or has failed: half a minute at most.
    pub fn hold(&self) {
        self.shared.held.store(true, Ordering::SeqCst);
        let end = time::Instant::now() + time::Duration::from_micros(DEADLINE.0);
        while self.shared.under_way.load(Ordering::SeqCst) > 0 && time::Instant::now() < end {
            std::thread::sleep(HELD_POLL);
        }
    }

    /// Sends again.
    pub fn go_on(&self) {
        self.shared.held.store(false, Ordering::SeqCst);
        self.shared.wake();
    }

    /// The measurement begins, or goes on.
    pub fn measure(&mut self) {
        self.began = Some((time::Instant::now(), CpuTime::now().process, self.sent()));
        self.shared.measuring.store(true, Ordering::Relaxed);
    }

    /// The measurement ends. The load goes on until [`Load::stop`], so that what the replicas tell about themselves
    /// is of a time under load.
    pub fn pause(&mut self) -> Interval {
        self.shared.measuring.store(false, Ordering::Relaxed);
        let now = || (time::Instant::now(), CpuTime::now().process, Sent::default());
        let (at, cpu, before) = self.began.take().unwrap_or_else(now);
        let Sent { requests, operations } = self.sent();
        let sent = Sent { requests: requests - before.requests, operations: operations - before.operations };
        Interval { elapsed: at.elapsed(), client_cpu: CpuTime::now().process.saturating_sub(cpu), sent }
    }

    /// What was sent since the start, a moment ago.
    fn sent(&self) -> Sent {
        let each = self.engines.iter().map(EngineHandle::status);
        each.fold(Sent::default(), |sent, it| sent + Sent { requests: it.requests, operations: it.operations })
    }

    /// Ends the load.
    ///
    /// # Errors
    /// If the load had ended by itself.
    pub fn stop(self, interval: Interval) -> io::Result<Measured> {
        let Interval { elapsed, client_cpu, sent } = interval;
        let mut measured = Measured {
            elapsed,
            latencies: Histogram::default(),
            client_cpu,
            failures: 0,
            last_failure: None,
            recorded: None,
            sent,
        };
        for engine in self.engines {
            measured.add(engine.stop().ok_or_else(|| io::Error::other("a loop of clients has failed"))?);
        }
        Ok(measured)
    }
}

/// How long a measurement took, and the processor time of this process in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    elapsed: time::Duration,
    client_cpu: time::Duration,
    sent: Sent,
}

/// Both together, of one load.
impl Add for Interval {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            elapsed: self.elapsed + other.elapsed,
            client_cpu: self.client_cpu + other.client_cpu,
            sent: self.sent + other.sent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_sends_nothing_and_counts_what_is_under_way() {
        let shared = Shared::new(None);
        assert!(shared.admit(0));
        shared.held.store(true, Ordering::SeqCst);
        assert!(!shared.admit(0));
        assert_eq!(shared.under_way.load(Ordering::SeqCst), 1);
        shared.held.store(false, Ordering::SeqCst);
        assert!(shared.admit(0));
        assert_eq!(shared.under_way.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn what_threads_recorded_adds_up() {
        let at = |ms| time::Duration::from_millis(ms);
        let mut one = Recorded { buckets: vec![1, 2], bursts: vec![at(150)], total: at(150) };
        one.add(&Recorded { buckets: vec![3, 0, 4], bursts: vec![at(90)], total: at(250) });
        assert_eq!(one, Recorded { buckets: vec![4, 2, 4], bursts: vec![at(90), at(150)], total: at(250) });
    }

    #[test]
    fn answers_are_counted_in_their_bucket() {
        let mut recorded = Recorded::default();
        [0, 99, 100, 350].into_iter().for_each(|ms| recorded.on_answer(time::Duration::from_millis(ms)));
        assert_eq!(recorded.buckets, [2, 1, 0, 1]);
        assert_eq!(recorded.total, time::Duration::from_millis(350));
    }
}
