//! How long it takes to go from Quorum to the next instance that is no Backup, with a history of a given length.
//!
//! One client with many sessions fills the history: each session asks once, and what the last replica is to lack goes
//! to the others only. When all have answered, another session panics. If a Backup comes next, which has to answer one
//! request (k = 1), one more session asks it, and the one that panicked does so again, to be told when the instance
//! behind the Backup runs.

use crate::raw::RawClient;
use bezant_core::ids::{ClientId, InstanceId, ReplicaId, Timestamp};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::schedule::{Order, Part};
use bezant_core::switching::{Panic, Switch, SwitchMessage};
use bezant_node::client::ClientOptions;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// How long connecting, or one step of the story, may take.
const STEP_MAX: Duration = Duration::from_secs(20);

/// Sessions besides those that fill the history: who panics, and who asks a Backup.
pub const OTHER_SESSIONS: usize = 2;

/// What is in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Requests.
    pub requests: usize,
    /// How many of a hundred the last replica lacks.
    pub missing_percent: usize,
    /// Bytes of each.
    pub request_bytes: usize,
}

/// From the PANIC until replicas said that they run the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// f + 1 of them: a client believes it.
    pub told: Duration,
    /// All of them.
    pub all: Duration,
}

/// Measures one switch of a cluster that runs the first instance, Quorum, and has not answered anything yet.
///
/// # Errors
/// If replicas do not answer in time, or the system fails.
///
/// # Panics
/// If the options have fewer sessions than the history and [`OTHER_SESSIONS`] need.
pub fn measure(options: &ClientOptions, history: History) -> io::Result<Took> {
    let sessions = options.connections * options.sessions_per_connection;
    assert!(sessions >= history.requests + OTHER_SESSIONS, "a session for each request");
    let mut story = Story { raw: RawClient::new(options)?, next: 0 };
    story.wait("connections", |raw, _| raw.links_up() == raw.cluster().replicas.n())?;
    story.fill(history)?;
    story.switch()
}

struct Story {
    raw: RawClient,
    /// The next session that has not asked.
    next: u32,
}

impl Story {
    /// Listens until it is over. `over` gets what was heard.
    fn wait(
        &mut self,
        what: &str,
        mut over: impl FnMut(&RawClient, &[(ReplicaId, Message)]) -> bool,
    ) -> io::Result<()> {
        let end = Instant::now() + STEP_MAX;
        while Instant::now() < end {
            let heard = self.raw.listen()?;
            if over(&self.raw, &heard) {
                return Ok(());
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("{what} did not come in {} s", STEP_MAX.as_secs())))
    }

    /// The next session's request of so many bytes.
    fn request(&mut self, instance: InstanceId, bytes: usize) -> Message {
        let client = self.raw.session(self.next);
        self.next += 1;
        let timestamp = Timestamp(self.raw.now().0);
        let operation = Bytes::from(vec![0; bytes.max(crate::load::OPERATION_BYTES_MIN)]);
        let request = Request::new(instance, client, timestamp, false, operation);
        Message::Request(request.authenticate(self.raw.cluster(), self.raw.keyring()))
    }

    fn fill(&mut self, history: History) -> io::Result<()> {
        let replicas: Vec<ReplicaId> = self.raw.cluster().replicas.iter().collect();
        let mut answers = 0;
        for number in 0..history.requests {
            let lacks = number % 100 * history.missing_percent % 100 < history.missing_percent;
            let receivers = &replicas[..replicas.len() - usize::from(lacks)];
            let request = self.request(InstanceId(1), history.request_bytes);
            receivers.iter().for_each(|to| self.raw.say(*to, &request));
            answers += receivers.len();
        }
        self.wait("answers", |_, heard| {
            let came = heard.iter().filter(|(_, message)| matches!(message, Message::Response(_))).count();
            answers = answers.saturating_sub(came);
            answers == 0
        })
    }

    fn switch(&mut self) -> io::Result<Took> {
        let (weak, all) = (self.raw.cluster().replicas.weak(), self.raw.cluster().replicas.n());
        let client = self.raw.session(self.next);
        self.next += 1;
        let begin = Instant::now();
        self.panic(client, InstanceId(1));
        if self.raw.cluster().part(InstanceId(2)) == Part::Backup(Order::Pbft) {
            self.until_active(InstanceId(2), weak, begin)?;
            let request = self.request(InstanceId(2), 0);
            self.say_to_all(&request);
            self.panic(client, InstanceId(2));
            return self.until_active(InstanceId(3), all, begin);
        }
        self.until_active(InstanceId(2), all, begin)
    }

    fn panic(&mut self, client: ClientId, instance: InstanceId) {
        let panic = Panic { client, timestamp: Timestamp(self.raw.now().0) };
        self.say_to_all(&Message::Switch(Switch { instance, message: SwitchMessage::Panic(panic) }));
    }

    fn say_to_all(&mut self, message: &Message) {
        let replicas: Vec<ReplicaId> = self.raw.cluster().replicas.iter().collect();
        replicas.into_iter().for_each(|to| self.raw.say(to, message));
    }

    /// Until so many replicas have said that an instance runs.
    fn until_active(&mut self, wanted: InstanceId, replicas: usize, begin: Instant) -> io::Result<Took> {
        let (mut active, mut told) = (BTreeSet::new(), None);
        self.wait("word of the next instance", |raw, heard| {
            let says = |message: &Message| match message {
                Message::Switch(Switch { instance, message: SwitchMessage::Active(_) }) => *instance >= wanted,
                _ => false,
            };
            active.extend(heard.iter().filter(|(_, message)| says(message)).map(|(from, _)| *from));
            if active.len() >= raw.cluster().replicas.weak() {
                told.get_or_insert_with(|| begin.elapsed());
            }
            active.len() >= replicas
        })?;
        let all = begin.elapsed();
        Ok(Took { told: told.unwrap_or(all), all })
    }
}
