//! What the event loop, the log thread and the snapshot thread tell one another.

use super::format::OpenFrames;
use crate::replica::Stall;
use bezant_core::checkpoint::Snapshot;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// One thing for the log thread.
#[derive(Debug)]
pub(crate) enum Work {
    /// Frames to append.
    Frames(OpenFrames),
    /// Begin a new segment.
    Rotate(Box<Rotation>),
}

/// What a new segment begins with.
#[derive(Debug)]
pub(crate) struct Rotation {
    /// To be written by the snapshot thread.
    pub(crate) snapshot: Snapshot,
    /// Its first frames.
    pub(crate) live: OpenFrames,
    /// The position of the snapshot's record, if others wait for it: the state came from other replicas.
    pub(crate) holds: Option<u64>,
    /// Whether the replica has written down from where on it may vote, in case that it lost its log.
    pub(crate) abstains: bool,
}

/// A snapshot to write.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) snapshot: Snapshot,
    /// The segment that goes on where the snapshot ends.
    pub(crate) segment: u64,
}

/// Which of the log's two threads speaks of its disk: what one can write says nothing about the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// The one that writes records.
    Records,
    /// The one that writes snapshots.
    Snapshots,
}

/// How the log is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// Write what was appended.
    Flush,
    /// Stop where it is, as a crash would.
    Abandon,
}

/// Behind the mutex.
#[derive(Debug, Default)]
pub(crate) struct State {
    queue: VecDeque<Work>,
    /// The position of the last record in the queue.
    queued: u64,
    /// A buffer to reuse.
    spare: Option<OpenFrames>,
    /// The position up to which the log itself is durable.
    synced: u64,
    /// Positions of transferred snapshots that are not durable yet, with their segments.
    holds: VecDeque<(u64, u64)>,
    /// The latest snapshot to write. A later one makes an earlier one pointless.
    job: Option<Job>,
    /// What keeps each thread from writing, in the order of [`Writes`].
    stalls: [Option<Stall>; 2],
    closing: Option<Closing>,
    /// The log thread has ended: no more jobs come.
    log_ended: bool,
}

type Wake = Arc<dyn Fn() + Send + Sync>;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// There is something in the queue.
    work: Condvar,
    /// There is a snapshot to write, or none will come.
    jobs: Condvar,
    /// The log is to close.
    closed: Condvar,
    durable: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) bytes: AtomicU64,
    wake: OnceLock<Wake>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("durable", &self.durable).finish_non_exhaustive()
    }
}

impl Shared {
    /// The state. A thread that panicked while it held the lock has left it consistent: every change is one step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands work to the log thread.
    pub(crate) fn enqueue(&self, work: impl IntoIterator<Item = Work>, position: u64) {
        let mut state = self.lock();
        state.queue.extend(work);
        state.queued = position;
        self.work.notify_one();
    }

    /// An empty buffer, with the capacity of an earlier one if there is one to reuse.
    pub(crate) fn take_spare(&self) -> OpenFrames {
        self.lock().spare.take().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub(crate) fn return_spare(&self, mut buffer: OpenFrames) {
        buffer.clear();
        self.lock().spare = Some(buffer);
    }

    /// Waits for work: everything that is there, and the position after it. `None`: the log thread is to end.
    pub(crate) fn next_group(&self) -> Option<(VecDeque<Work>, u64)> {
        let mut state = self.lock();
        loop {
            match state.closing {
                Some(Closing::Abandon) => return None,
                _ if !state.queue.is_empty() => return Some((std::mem::take(&mut state.queue), state.queued)),
                Some(Closing::Flush) => return None,
                None => state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits for a snapshot to write. `None`: the snapshot thread is to end.
    pub(crate) fn next_job(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.closing == Some(Closing::Abandon) {
                return None;
            }
            if let Some(job) = state.job.take() {
                return Some(job);
            }
            if state.log_ended {
                return None;
            }
            state = self.jobs.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells both threads how to end. Only the first call counts.
    pub(crate) fn close(&self, closing: Closing) {
        self.lock().closing.get_or_insert(closing);
        self.work.notify_one();
        self.jobs.notify_one();
        self.closed.notify_all();
    }

    /// The log thread has ended.
    pub(crate) fn end_log(&self) {
        self.lock().log_ended = true;
        self.jobs.notify_one();
    }

    /// Whether to drop everything.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().closing == Some(Closing::Abandon)
    }

    /// Waits for a while, or until the log is to close. Says how it is to close.
    pub(crate) fn pause(&self, time: Duration) -> Option<Closing> {
        let state = self.lock();
        let (state, _) = self
            .closed
            .wait_timeout_while(state, time, |state| state.closing.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        state.closing
    }

    /// Sets who is told of changes. Only the first call counts.
    pub(crate) fn set_wake(&self, wake: Wake) {
        let _ = self.wake.set(wake);
    }

    fn wake_waiting(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// The position up to which everything is durable.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    fn publish(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let held = state.holds.front().map_or(u64::MAX, |(position, _)| position - 1);
        self.durable.store(state.synced.min(held), Ordering::Release);
        drop(state);
        self.wake_waiting();
    }

    /// The log is durable up to `position`.
    pub(crate) fn publish_synced(&self, position: u64) {
        self.publish(|state| state.synced = position);
    }

    /// Hands a snapshot to its thread. If others wait for it, nothing from `holds` on is durable before it is.
    pub(crate) fn publish_job(&self, job: Job, holds: Option<u64>) {
        self.publish(|state| {
            state.holds.extend(holds.map(|position| (position, job.segment)));
            state.job = Some(job);
        });
        self.jobs.notify_one();
    }

    /// The snapshot that belongs to `segment`, and so every earlier one, is durable.
    pub(crate) fn publish_snapshot(&self, segment: u64) {
        self.publish(|state| state.holds.retain(|(_, waiting)| *waiting > segment));
    }

    /// Reports a stall of a thread or the end of one. [`Stall::Broken`] stays.
    pub(crate) fn report(&self, who: Writes, stall: Option<Stall>) {
        let mut state = self.lock();
        let known = &mut state.stalls[who as usize];
        if *known == stall || matches!(known, Some(Stall::Broken(_))) {
            return;
        }
        *known = stall;
        drop(state);
        self.wake_waiting();
    }

    /// What is wrong; what is final before what may pass.
    pub(crate) fn stall(&self) -> Option<Stall> {
        let state = self.lock();
        let mut known = state.stalls.iter().flatten();
        known.clone().find(|stall| matches!(stall, Stall::Broken(_))).or_else(|| known.next()).cloned()
    }
}
