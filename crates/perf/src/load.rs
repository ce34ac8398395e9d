//! Closed-loop load: every session sends its next request as soon as the last one is answered.
//!
//! Sessions may be spread over several threads. Those of one thread hardly ever contend: what it sends in one go
//! arrives everywhere in the same order. Those of different threads meet as clients on several hosts do.
//!
//! Clients that join have a key and a thread each, and send nothing before the cluster has let them in. To compare
//! them with those that the cluster file names, give those a thread each as well.

use crate::compare::course::Burst;
use crate::histogram::Histogram;
use crate::recorded::Recorded;
use crate::sql::{self, Mix};
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
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{io, time};

/// After this long a request counts as failed.
const DEADLINE: Duration = Duration::from_millis(30_000);

/// Bytes of the smallest operation: the size of its reply, and as much ballast.
pub const OPERATION_BYTES_MIN: usize = 8;

/// Bytes of operations of mixed sizes, in turn, and their mean.
pub const MIXED: [usize; 5] = [8, 512, 2048, 256, 4096];
/// See [`MIXED`].
pub const MIXED_BYTES: usize = (MIXED[0] + MIXED[1] + MIXED[2] + MIXED[3] + MIXED[4]) / MIXED.len();

/// One operation in so many is short where they are [almost alike](Asked::AlmostAlike), and how many bytes it has.
const SHORT_EVERY: usize = 50;
const SHORT_BYTES: usize = 512;

/// What clients ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// Operations of the null service, all of one size.
    #[default]
    Alike,
    /// The same, but one in fifty has 512 bytes. Where all frames of a link are alike, what came before decides whether
    /// Linux acknowledges them in their receiver's time or in their sender's.
    AlmostAlike,
    /// Operations of the null service, of [`MIXED`] bytes.
    Mixed,
    /// Operations of any service, as they are given.
    Given,
    /// Requests to the SQL service.
    Sql(Mix),
}

impl Asked {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alike => "null",
            Self::AlmostAlike => "null-almost-alike",
            Self::Mixed => "null-mixed",
            Self::Given => "given",
            Self::Sql(mix) => mix.name(),
        }
    }

    /// What the SQL service is asked, if it is asked.
    pub const fn sql(self) -> Option<Mix> {
        match self {
            Self::Sql(mix) => Some(mix),
            Self::Alike | Self::AlmostAlike | Self::Mixed | Self::Given => None,
        }
    }
}

/// What the requests are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Bytes of operations, taken in turn; each at least [`OPERATION_BYTES_MIN`].
    pub request_bytes: Vec<usize>,
    /// Bytes of a result.
    pub reply_bytes: usize,
    /// Requests to the SQL service instead; sizes do not matter then.
    pub sql: Option<Mix>,
    /// These operations in turn instead, whatever their results are; none: not these.
    pub given: Vec<Bytes>,
    /// How many of them are under way, if that is not always one for each session.
    pub bursts: Option<Vec<Burst>>,
    /// Whether what is answered is counted for each [`BUCKET`](crate::compare::course::BUCKET) of time.
    pub timeline: bool,
}

impl Workload {
    /// One for each session, at all times.
    pub fn steady(request_bytes: usize, reply_bytes: usize) -> Self {
        let request_bytes = vec![request_bytes];
        Self { request_bytes, reply_bytes, sql: None, given: Vec::new(), bursts: None, timeline: false }
    }

    /// One for each session, at all times; sizes matter for operations that are alike.
    pub fn of(asked: Asked, request_bytes: usize, reply_bytes: usize) -> Self {
        match asked {
            Asked::Alike | Asked::Given => Self::steady(request_bytes, reply_bytes),
            Asked::AlmostAlike => {
                let mut sizes = vec![request_bytes; SHORT_EVERY];
                sizes[SHORT_EVERY - 1] = request_bytes.min(SHORT_BYTES);
                Self { request_bytes: sizes, ..Self::steady(0, reply_bytes) }
            }
            Asked::Mixed => Self { request_bytes: MIXED.to_vec(), ..Self::steady(0, reply_bytes) },
            Asked::Sql(mix) => Self { sql: Some(mix), ..Self::steady(OPERATION_BYTES_MIN, 0) },
        }
    }

    /// What is asked, if not the SQL service.
    fn operations(&self) -> Vec<Bytes> {
        if !self.given.is_empty() {
            return self.given.clone();
        }
        let operation = |bytes: usize| {
            let mut operation = vec![0; bytes.max(OPERATION_BYTES_MIN)];
            operation[..4].copy_from_slice(&(self.reply_bytes as u32).to_le_bytes());
            Bytes::from(operation)
        };
        let mut made = BTreeMap::new();
        self.request_bytes.iter().map(|bytes| made.entry(*bytes).or_insert_with(|| operation(*bytes)).clone()).collect()
    }
}

/// Lets requests go burst after burst.
#[derive(Debug)]
struct Bursts {
    /// The first one is under way.
    coming: VecDeque<Burst>,
    sent: u64,
    answered: u64,
    /// Requests under way of each thread.
    under_way: Vec<usize>,
}

impl Bursts {
    fn new(bursts: &[Burst], threads: usize) -> Self {
        let coming = bursts.iter().filter(|burst| burst.clients > 0 && burst.operations > 0).copied().collect();
        Self { coming, sent: 0, answered: 0, under_way: vec![0; threads] }
    }

    /// Whether this thread may send one more; then it counts as sent. Each has its share of a burst's clients.
    fn admit(&mut self, thread: usize) -> bool {
        let Some(burst) = self.coming.front() else { return false };
        let clients = share(burst.clients, thread, self.under_way.len());
        let admitted = self.sent < burst.operations && self.under_way[thread] < clients;
        self.sent += u64::from(admitted);
        self.under_way[thread] += usize::from(admitted);
        admitted
    }

    /// One was answered. Whether that was the last one of its burst.
    fn on_answer(&mut self, thread: usize) -> bool {
        self.answered += 1;
        self.under_way[thread] -= 1;
        let ended = self.coming.front().is_some_and(|burst| self.answered == burst.operations);
        if ended {
            self.coming.pop_front();
            (self.sent, self.answered) = (0, 0);
        }
        ended
    }
}

/// What one of several threads gets of something that is divided as evenly as possible.
const fn share(whole: usize, thread: usize, threads: usize) -> usize {
    whole / threads + (thread < whole % threads) as usize
}

/// What the measuring thread and the load's own share.
#[derive(Debug)]
struct Shared {
    bursts: Option<Mutex<Bursts>>,
    /// Of all threads, for a burst that begins when another one ends.
    wakers: OnceLock<Vec<Arc<Waker>>>,
    measuring: AtomicBool,
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
    fn bursts(&self) -> Option<MutexGuard<'_, Bursts>> {
        Some(self.bursts.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
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
        if !self.shared.bursts().is_none_or(|mut bursts| bursts.admit(self.thread)) {
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
        for waker in self.shared.wakers.get().into_iter().flatten() {
            // A thread that is not woken looks again after 100 ms.
            let _ = waker.wake();
        }
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
        let shared = Arc::new(Shared {
            bursts: workload.bursts.as_deref().map(|bursts| Mutex::new(Bursts::new(bursts, threads))),
            wakers: OnceLock::new(),
            measuring: AtomicBool::new(false),
            finished: AtomicU64::new(0),
            joined: AtomicUsize::new(0),
            barred: OnceLock::new(),
            origin: OnceLock::new(),
            done: AtomicBool::new(false),
        });
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

    /// The measurement begins.
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
        self.engines.iter().map(EngineHandle::status).fold(Sent::default(), |sent, status| Sent {
            requests: sent.requests + status.requests,
            operations: sent.operations + status.operations,
        })
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
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    elapsed: time::Duration,
    client_cpu: time::Duration,
    sent: Sent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_has_its_clients_and_its_operations_and_then_the_next_begins() {
        let burst = |clients, operations| Burst { clients, operations };
        let mut bursts = Bursts::new(&[burst(2, 3), burst(0, 5), burst(1, 1)], 1);
        assert_eq!([bursts.admit(0), bursts.admit(0), bursts.admit(0)], [true, true, false]);
        assert!(!bursts.on_answer(0));
        assert_eq!([bursts.admit(0), bursts.admit(0)], [true, false]);
        assert_eq!([bursts.on_answer(0), bursts.on_answer(0)], [false, true]);
        assert_eq!([bursts.admit(0), bursts.admit(0)], [true, false]);
        assert!(bursts.on_answer(0));
        assert!(!bursts.admit(0) && bursts.coming.is_empty());
    }

    #[test]
    fn threads_share_the_clients_of_a_burst() {
        let mut bursts = Bursts::new(&[Burst { clients: 3, operations: 4 }], 2);
        assert_eq!([bursts.admit(0), bursts.admit(0), bursts.admit(0)], [true, true, false]);
        assert_eq!([bursts.admit(1), bursts.admit(1)], [true, false]);
        assert!(!bursts.on_answer(1));
        assert_eq!([bursts.admit(0), bursts.admit(1), bursts.admit(1)], [false, true, false]);
        assert_eq!([0, 0, 1].map(|thread| bursts.on_answer(thread)), [false, false, true]);
        assert_eq!((0..4).map(|thread| share(10, thread, 4)).collect::<Vec<_>>(), [3, 3, 2, 2]);
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

    #[test]
    fn operations_say_how_long_their_result_is_and_have_the_asked_for_size() {
        let workload = Workload { request_bytes: vec![8, 512], ..Workload::steady(8, 4096) };
        let operations = workload.operations();
        assert_eq!(operations.iter().map(Bytes::len).collect::<Vec<_>>(), [8, 512]);
        assert!(operations.iter().all(|operation| operation[..4] == 4096_u32.to_le_bytes()));
    }

    #[test]
    fn one_operation_in_fifty_is_short_where_they_are_almost_alike() {
        let sizes = |bytes| Workload::of(Asked::AlmostAlike, bytes, 8).operations().iter().map(Bytes::len).collect();
        let (large, small): (Vec<_>, Vec<_>) = (sizes(4096), sizes(8));
        assert_eq!((large.len(), large.iter().filter(|bytes| **bytes == 4096).count(), large[49]), (50, 49, 512));
        assert_eq!(small, [8; 50]);
    }
}
