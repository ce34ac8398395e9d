//! Closed-loop load: every session sends its next request as soon as the last one is answered.

use crate::compare::course::{BUCKET, Burst};
use crate::histogram::Histogram;
use bezant_core::client::{Completion, Submit};
use bezant_core::machine::{Duration, Instant};
use bezant_node::client::{ClientOptions, Driver, EngineHandle, Finished, run};
use bezant_node::replica::CpuTime;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time;

/// After this long a request counts as failed.
const DEADLINE: Duration = Duration::from_millis(30_000);

/// Bytes of the smallest operation: the size of its reply, and as much ballast.
pub const OPERATION_BYTES_MIN: usize = 8;

/// What the requests are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Bytes of operations, taken in turn; each at least [`OPERATION_BYTES_MIN`].
    pub request_bytes: Vec<usize>,
    /// Bytes of a result.
    pub reply_bytes: usize,
    /// How many of them are under way, if that is not always one for each session.
    pub bursts: Option<Vec<Burst>>,
    /// Whether what is answered is counted for each [`BUCKET`] of time.
    pub timeline: bool,
}

impl Workload {
    /// One for each session, at all times.
    pub fn steady(request_bytes: usize, reply_bytes: usize) -> Self {
        Self { request_bytes: vec![request_bytes], reply_bytes, bursts: None, timeline: false }
    }

    /// Operations of the null service.
    fn operations(&self) -> Vec<Bytes> {
        let operation = |bytes: &usize| {
            let mut operation = vec![0; (*bytes).max(OPERATION_BYTES_MIN)];
            operation[..4].copy_from_slice(&(self.reply_bytes as u32).to_le_bytes());
            operation.into()
        };
        self.request_bytes.iter().map(operation).collect()
    }
}

/// Lets requests go burst after burst.
#[derive(Debug)]
struct Bursts {
    /// The first one is under way.
    coming: VecDeque<Burst>,
    sent: u64,
    answered: u64,
}

impl Bursts {
    fn new(bursts: &[Burst]) -> Self {
        let coming = bursts.iter().filter(|burst| burst.clients > 0 && burst.operations > 0).copied().collect();
        Self { coming, sent: 0, answered: 0 }
    }

    /// Whether one more may be sent; then it counts as sent.
    fn admit(&mut self) -> bool {
        let Some(burst) = self.coming.front() else { return false };
        let admitted = self.sent < burst.operations && self.sent - self.answered < burst.clients as u64;
        self.sent += u64::from(admitted);
        admitted
    }

    /// One was answered. Whether that was the last one of its burst.
    fn on_answer(&mut self) -> bool {
        self.answered += 1;
        let ended = self.coming.front().is_some_and(|burst| self.answered == burst.operations);
        if ended {
            self.coming.pop_front();
            (self.sent, self.answered) = (0, 0);
        }
        ended
    }
}

/// What was answered when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Operations that ended in each [`BUCKET`] since the first request was sent.
    pub buckets: Vec<u64>,
    /// When each burst ended.
    pub bursts: Vec<time::Duration>,
    /// When the last operation ended.
    pub total: time::Duration,
}

impl Recorded {
    fn on_answer(&mut self, at: time::Duration) {
        let bucket = at.div_duration_f64(BUCKET) as usize;
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.total = at;
    }
}

/// What the measuring thread and the load's own share.
#[derive(Debug, Default)]
struct Shared {
    measuring: AtomicBool,
    finished: AtomicU64,
    /// Since when there is a timeline.
    origin: OnceLock<time::Instant>,
    /// Whether all bursts are over.
    done: AtomicBool,
}

/// Sends without pause and keeps latencies while the measurement is on.
#[derive(Debug)]
struct ClosedLoop {
    /// Taken in turn.
    operations: Vec<Bytes>,
    sent: usize,
    reply_bytes: usize,
    bursts: Option<Bursts>,
    recorded: Option<Recorded>,
    shared: Arc<Shared>,
    latencies: Histogram,
    failures: u64,
    last_failure: Option<String>,
}

impl Driver for ClosedLoop {
    fn next(&mut self, _session: usize, now: Instant) -> Option<Submit> {
        if !self.bursts.as_mut().is_none_or(Bursts::admit) {
            return None;
        }
        if self.recorded.is_some() {
            self.shared.origin.get_or_init(time::Instant::now);
        }
        let operation = self.operations[self.sent % self.operations.len()].clone();
        self.sent += 1;
        Some(Submit { operation, read_only: false, deadline: Some(now + DEADLINE) })
    }

    fn on_finished(&mut self, finished: Finished) {
        match &finished.completed.result {
            Completion::Done(result) if result.len() == self.reply_bytes => {
                self.shared.finished.fetch_add(1, Ordering::Relaxed);
                if self.shared.measuring.load(Ordering::Relaxed) {
                    self.latencies.record(finished.completed.latency.0);
                }
            }
            Completion::Done(result) => {
                let wanted = self.reply_bytes;
                self.fail(format!("a result of {} bytes instead of {wanted}: is the service `null`?", result.len()));
            }
            Completion::Refused(refusal) => self.fail(format!("refused: {refusal:?}")),
            Completion::Unknown => self.fail(format!("not answered in time: {:?}", finished.explanation)),
        }
        self.keep_time();
    }
}

impl ClosedLoop {
    /// Another request has ended, one way or the other.
    fn keep_time(&mut self) {
        let at = self.shared.origin.get().map_or(time::Duration::ZERO, time::Instant::elapsed);
        if let Some(recorded) = &mut self.recorded {
            recorded.on_answer(at);
        }
        let Some(bursts) = &mut self.bursts else { return };
        if bursts.on_answer()
            && let Some(recorded) = &mut self.recorded
        {
            recorded.bursts.push(at);
        }
        self.shared.done.store(bursts.coming.is_empty(), Ordering::Relaxed);
    }

    fn fail(&mut self, what: String) {
        self.failures += 1;
        self.last_failure = Some(what);
    }
}

/// Load that is running.
#[derive(Debug)]
pub struct Load {
    engine: EngineHandle<ClosedLoop>,
    shared: Arc<Shared>,
    links: usize,
    began: Option<(time::Instant, time::Duration)>,
}

/// What the clients saw.
#[derive(Debug)]
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
}

impl Load {
    /// Connects, and begins to send.
    ///
    /// # Errors
    /// What the system refuses: threads or sockets.
    pub fn start(options: ClientOptions, workload: &Workload) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let links = options.connections * options.cluster.n;
        let driver = ClosedLoop {
            operations: workload.operations(),
            sent: 0,
            reply_bytes: workload.reply_bytes,
            bursts: workload.bursts.as_deref().map(Bursts::new),
            recorded: workload.timeline.then(Recorded::default),
            shared: Arc::clone(&shared),
            latencies: Histogram::default(),
            failures: 0,
            last_failure: None,
        };
        Ok(Self { engine: run(options, driver)?, shared, links, began: None })
    }

    /// Connections that are made, and how many there should be.
    pub fn connections(&self) -> (usize, usize) {
        (self.engine.status().links_up, self.links)
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
        self.began = Some((time::Instant::now(), CpuTime::now().process));
        self.shared.measuring.store(true, Ordering::Relaxed);
    }

    /// The measurement ends. The load goes on until [`Load::stop`], so that what the replicas tell about themselves
    /// is of a time under load.
    pub fn pause(&mut self) -> Interval {
        self.shared.measuring.store(false, Ordering::Relaxed);
        let (at, cpu) = self.began.take().unwrap_or((time::Instant::now(), CpuTime::now().process));
        Interval { elapsed: at.elapsed(), client_cpu: CpuTime::now().process.saturating_sub(cpu) }
    }

    /// Ends the load.
    ///
    /// # Errors
    /// If the load had ended by itself.
    pub fn stop(self, interval: Interval) -> io::Result<Measured> {
        let Interval { elapsed, client_cpu } = interval;
        let driver = self.engine.stop().ok_or_else(|| io::Error::other("the clients' loop has failed"))?;
        let ClosedLoop { latencies, failures, last_failure, recorded, .. } = driver;
        Ok(Measured { elapsed, latencies, client_cpu, failures, last_failure, recorded })
    }
}

/// How long a measurement took, and the processor time of this process in it.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    elapsed: time::Duration,
    client_cpu: time::Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_has_its_clients_and_its_operations_and_then_the_next_begins() {
        let burst = |clients, operations| Burst { clients, operations };
        let mut bursts = Bursts::new(&[burst(2, 3), burst(0, 5), burst(1, 1)]);
        assert_eq!([bursts.admit(), bursts.admit(), bursts.admit()], [true, true, false]);
        assert!(!bursts.on_answer());
        assert_eq!([bursts.admit(), bursts.admit()], [true, false]);
        assert_eq!([bursts.on_answer(), bursts.on_answer()], [false, true]);
        assert_eq!([bursts.admit(), bursts.admit()], [true, false]);
        assert!(bursts.on_answer());
        assert!(!bursts.admit() && bursts.coming.is_empty());
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
}
