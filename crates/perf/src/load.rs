//! Closed-loop load: every session sends its next request as soon as the last one is answered.

use crate::histogram::Histogram;
use bezant_core::client::{Completion, Submit};
use bezant_core::machine::{Duration, Instant};
use bezant_node::client::{ClientOptions, Driver, EngineHandle, Finished, run};
use bezant_node::replica::CpuTime;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time;

/// After this long a request counts as failed.
const DEADLINE: Duration = Duration::from_millis(30_000);

/// Bytes of the smallest operation: the size of its reply, and as much ballast.
pub const OPERATION_BYTES_MIN: usize = 8;

/// What the requests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Bytes of an operation; at least [`OPERATION_BYTES_MIN`].
    pub request_bytes: usize,
    /// Bytes of a result.
    pub reply_bytes: usize,
}

impl Workload {
    /// An operation of the null service.
    fn operation(&self) -> Bytes {
        let mut operation = vec![0; self.request_bytes.max(OPERATION_BYTES_MIN)];
        operation[..4].copy_from_slice(&(self.reply_bytes as u32).to_le_bytes());
        operation.into()
    }
}

/// What the measuring thread and the load's own share.
#[derive(Debug, Default)]
struct Shared {
    measuring: AtomicBool,
    finished: AtomicU64,
}

/// Sends without pause and keeps latencies while the measurement is on.
#[derive(Debug)]
struct ClosedLoop {
    operation: Bytes,
    reply_bytes: usize,
    shared: Arc<Shared>,
    latencies: Histogram,
    failures: u64,
    last_failure: Option<String>,
}

impl Driver for ClosedLoop {
    fn next(&mut self, _session: usize, now: Instant) -> Option<Submit> {
        Some(Submit { operation: self.operation.clone(), read_only: false, deadline: Some(now + DEADLINE) })
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
    }
}

impl ClosedLoop {
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
}

impl Load {
    /// Connects, and begins to send.
    ///
    /// # Errors
    /// What the system refuses: threads or sockets.
    pub fn start(options: ClientOptions, workload: Workload) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let links = options.connections * options.cluster.n;
        let driver = ClosedLoop {
            operation: workload.operation(),
            reply_bytes: workload.reply_bytes,
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
        let ClosedLoop { latencies, failures, last_failure, .. } = driver;
        Ok(Measured { elapsed, latencies, client_cpu, failures, last_failure })
    }
}

/// How long a measurement took, and the processor time of this process in it.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    elapsed: time::Duration,
    client_cpu: time::Duration,
}
