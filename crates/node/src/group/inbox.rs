//! What waits between the threads of the program and the group's own.

use bezant_core::ids::ReplicaId;
use bezant_core::protocols::ritas::group::{Command, GroupEvent, Taken};
use bezant_core::protocols::ritas::window::Window;
use bytes::Bytes;
use mio::Waker;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of calls that are not begun: who calls waits while there are more. Each counts as its
/// [`weight`](bezant_core::protocols::ritas::group::Call::weight).
const CALLS_BYTES_MAX: usize = 16 << 20;
/// Calls that have not reached the group's thread.
const CALLS_MAX: usize = 1 << 16;
/// Bytes of ordered messages that nobody has received: with more of them this process takes part in no further round.
/// An empty message counts as [`MESSAGE_ALLOWANCE`].
pub(super) const ORDERED_BYTES_MAX: usize = 32 << 20;
/// What is counted for a message besides its bytes.
const MESSAGE_ALLOWANCE: usize = 64;

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It took longer than the patience that was set. Whom there is no link to is named.
    TimedOut(Vec<ReplicaId>),
    /// The group was left meanwhile.
    Closed,
    /// The value is longer than a value may be.
    TooLong,
    /// It is longer than the caller has room for: so many bytes. It stays for the next call.
    TooShort(usize),
    /// The number was used before.
    Used,
    /// The number is larger than numbers are.
    NoNumber,
    /// The group has no such process.
    NoMember,
    /// The others have gone on, and nobody keeps what this process misses. It can do no more in this run.
    LeftBehind,
    /// The system failed the group's thread.
    Failed(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(missing) if missing.is_empty() => write!(out, "not in time: too few processes take part"),
            Self::TimedOut(missing) => {
                let missing: Vec<String> = missing.iter().map(|id| id.0.to_string()).collect();
                write!(out, "not in time: no link to process {}", missing.join(", "))
            }
            Self::Closed => write!(out, "the group was left"),
            Self::TooLong => write!(out, "the value is too long"),
            Self::TooShort(needed) => write!(out, "there is no room for the {needed} bytes of it: it waits"),
            Self::Used => write!(out, "the number was used before: each is good for one call"),
            Self::NoNumber => write!(out, "the number is too large: numbers begin at 0 and leave none out"),
            Self::NoMember => write!(out, "the group has no such process"),
            Self::LeftBehind => write!(out, "the others have gone on without this process: begin a new run"),
            Self::Failed(why) => write!(out, "the group cannot go on: {why}"),
        }
    }
}

impl std::error::Error for Problem {}

/// A message of the atomic broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// Its place in the order, from 0.
    pub number: u64,
    /// Who sent it.
    pub sender: ReplicaId,
    /// What.
    pub message: Bytes,
}

/// A number that is good for one call of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Number {
    Reliable(u64),
    Echo(u64),
    Bit(u64),
    Value(u64),
    Vector(u64),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) commands: VecDeque<Command>,
    /// The weight of calls among them, and of those that the machine has not begun.
    commands_bytes: usize,
    pub(super) waiting_bytes: usize,
    pub(super) reliable: BTreeMap<(ReplicaId, u64), Bytes>,
    pub(super) echo: BTreeMap<(ReplicaId, u64), Bytes>,
    pub(super) bits: BTreeMap<u64, bool>,
    pub(super) values: BTreeMap<u64, Option<Bytes>>,
    pub(super) vectors: BTreeMap<u64, Vec<Option<Bytes>>>,
    pub(super) ordered: VecDeque<Ordered>,
    pub(super) ordered_bytes: usize,
    next_ordered: u64,
    used: [Window; 5],
    /// Numbers whose call has ended without the result, so that another call may ask for it.
    pub(super) unanswered: BTreeSet<Number>,
    /// Broadcasts that the program has received: reliable ones, and those by echo.
    received: [BTreeMap<ReplicaId, Window>; 2],
    pub(super) patience: Option<Duration>,
    pub(super) unlinked: Vec<ReplicaId>,
    /// Why no call is answered any more.
    pub(super) ended: Option<Problem>,
    left_behind: bool,
}

impl Inbox {
    pub(super) const fn window(number: Number) -> (usize, u64) {
        match number {
            Number::Reliable(number) => (0, number),
            Number::Echo(number) => (1, number),
            Number::Bit(number) => (2, number),
            Number::Value(number) => (3, number),
            Number::Vector(number) => (4, number),
        }
    }

    pub(super) fn is_used(&self, number: Number) -> bool {
        let (kind, number) = Self::window(number);
        self.used[kind].is_finished(number)
    }

    pub(super) fn use_up(&mut self, number: Option<Number>) {
        if let Some((kind, number)) = number.map(Self::window) {
            self.used[kind].finish(number);
        }
    }

    /// Whether the program has received a broadcast.
    pub(super) fn is_received(&self, taken: Taken) -> bool {
        let window = |kind: usize, from: &ReplicaId| self.received[kind].get(from);
        match taken {
            Taken::Reliable(from, number) => window(0, &from).is_some_and(|window| window.is_finished(number)),
            Taken::Echo(from, number) => window(1, &from).is_some_and(|window| window.is_finished(number)),
            Taken::Bit(_) | Taken::Value(_) | Taken::Vector(_) => false,
        }
    }

    /// The program has a result.
    pub(super) fn taken(&mut self, taken: Taken) {
        match taken {
            Taken::Reliable(from, number) => self.received[0].entry(from).or_default().finish(number),
            Taken::Echo(from, number) => self.received[1].entry(from).or_default().finish(number),
            Taken::Bit(_) | Taken::Value(_) | Taken::Vector(_) => {}
        }
        self.command(Command::Taken(taken), 0);
    }

    /// Whether another call may wait.
    pub(super) fn has_room(&self) -> bool {
        self.commands_bytes + self.waiting_bytes < CALLS_BYTES_MAX && self.commands.len() < CALLS_MAX
    }

    pub(super) fn command(&mut self, command: Command, bytes: usize) {
        self.commands_bytes += bytes;
        self.commands.push_back(command);
    }

    pub(super) fn take_commands(&mut self) -> VecDeque<Command> {
        self.commands_bytes = 0;
        std::mem::take(&mut self.commands)
    }

    /// What the machine has come to.
    pub(super) fn add(&mut self, event: GroupEvent) {
        match event {
            GroupEvent::Reliable(owner, number, value) => drop(self.reliable.insert((owner, number), value)),
            GroupEvent::Echo(owner, number, value) => drop(self.echo.insert((owner, number), value)),
            GroupEvent::Bit(number, bit) => drop(self.bits.insert(number, bit)),
            GroupEvent::Value(number, value) => drop(self.values.insert(number, value)),
            GroupEvent::Vector(number, vector) => drop(self.vectors.insert(number, vector)),
            GroupEvent::Ordered(sender, message) => {
                self.ordered_bytes += message.len();
                self.ordered.push_back(Ordered { number: self.next_ordered, sender, message });
                self.next_ordered += 1;
            }
            GroupEvent::LeftBehind => self.left_behind = true,
            GroupEvent::Rejected(..) => {}
        }
    }

    /// Whether more was ordered than is received.
    pub(super) fn is_full(&self) -> bool {
        self.ordered_bytes + self.ordered.len() * MESSAGE_ALLOWANCE > ORDERED_BYTES_MAX
    }
}

/// An inbox that several threads share.
#[derive(Debug)]
pub(super) struct Shared {
    inbox: Mutex<Inbox>,
    changed: Condvar,
    waker: Arc<Waker>,
}

impl Shared {
    pub(super) fn new(waker: Arc<Waker>) -> Self {
        Self { inbox: Mutex::default(), changed: Condvar::new(), waker }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The group's thread looks at the inbox.
    pub(super) fn wake(&self) {
        // If waking fails it finds out at its next pass.
        let _ = self.waker.wake();
    }

    /// The program's threads look at it.
    pub(super) fn tell(&self) {
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.lock().ended.get_or_insert(Problem::Closed);
        self.wake();
        self.tell();
    }

    /// Waits until there is an answer, for as long as the patience lasts.
    pub(super) fn wait<T>(&self, mut answer: impl FnMut(&mut Inbox) -> Option<T>) -> Result<T, Problem> {
        let mut inbox = self.lock();
        let until = inbox.patience.and_then(|patience| Instant::now().checked_add(patience));
        loop {
            if let Some(answer) = answer(&mut inbox) {
                return Ok(answer);
            }
            if let Some(problem) = &inbox.ended {
                return Err(problem.clone());
            }
            if inbox.left_behind {
                return Err(Problem::LeftBehind);
            }
            inbox = match until {
                None => self.changed.wait(inbox).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(Problem::TimedOut(inbox.unlinked.clone()));
                    }
                    self.changed.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
