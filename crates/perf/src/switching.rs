//! How long it takes to go from Quorum to the next instance, with a history of a given length.
//!
//! One client with many sessions fills the history: each session asks once, and what some replicas are to lack goes to
//! the others only. When all have answered, another session panics, perhaps while somebody attacks the cluster. If a
//! Backup over PBFT comes next, which has to answer one request (k = 1), one more session asks it, and the one that
//! panicked does so again, to be told when the instance behind the Backup runs.

use crate::raw::RawClient;
use bezant_core::ids::{ClientId, InstanceId, ReplicaId, Timestamp};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::schedule::{Order, Part};
use bezant_core::switching::{Panic, Switch, SwitchMessage};
use bezant_node::client::ClientOptions;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use std::{io, thread};

/// How long connecting, or one step of the story, may take.
const STEP_MAX: Duration = Duration::from_secs(20);

/// Sessions besides those that fill the history: who panics, who asks a Backup, who asks a liar.
pub const OTHER_SESSIONS: usize = 2 + TO_LIAR;

/// Requests that are under way at the same time while the history is filled, and the pause after them: more than
/// three clients that go on for long are too many for Quorum, which would end before it is asked to.
const AT_ONCE: usize = 32;
/// See [`AT_ONCE`].
const PAUSE: Duration = Duration::from_millis(50);
/// Requests to a replica that lies, and to nobody else: who treats clients unfairly needs some.
const TO_LIAR: usize = 8;

/// What is in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Requests.
    pub requests: usize,
    /// How many of a hundred some replicas lack.
    pub missing_percent: usize,
    /// How many replicas these are: the last ones, but the first ones if the first one lies, so that a liar, who is the
    /// first or the last, is among them. Then what is missing is in the reports of those that are honest.
    pub lacking: usize,
    /// Bytes of each.
    pub request_bytes: usize,
}

/// From the PANIC until replicas said that they run the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// f + 1 of them: a client believes it.
    pub told: Duration,
    /// All of them, but for one that lies.
    pub all: Duration,
}

/// Measures one switch of a cluster that runs the first instance, Quorum, and has not answered anything yet. When the
/// history is there, `attack` lets an attack begin; nothing that the liar says counts, if that is a replica.
///
/// # Errors
/// If replicas do not answer in time, or the system fails, or the attack does.
///
/// # Panics
/// If the options have fewer sessions than the history and [`OTHER_SESSIONS`] need, or all replicas lack something.
pub fn measure(
    options: &ClientOptions,
    history: History,
    liar: Option<ReplicaId>,
    attack: impl FnOnce() -> io::Result<()>,
) -> io::Result<Took> {
    let sessions = options.connections * options.sessions_per_connection;
    assert!(sessions >= history.requests + OTHER_SESSIONS, "a session for each request");
    let raw = RawClient::new(options)?;
    let told_first = raw.cluster().replicas.iter().collect();
    let mut story = Story { raw, next: 0, liar, told_first };
    story.wait("connections", |raw, _| raw.links_up() == raw.cluster().replicas.n())?;
    story.fill(history)?;
    attack()?;
    story.ask_liar()?;
    story.switch()
}

struct Story {
    raw: RawClient,
    /// The next session that has not asked.
    next: u32,
    liar: Option<ReplicaId>,
    /// Who is told to leave Quorum; the others follow. Where more than f lack something, chance would decide whether it
    /// is in the first 2f + 1 reports often enough: so those that have it report first.
    told_first: Vec<ReplicaId>,
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
        let operation = Bytes::from(vec![0; bytes.max(crate::workload::OPERATION_BYTES_MIN)]);
        let request = Request::new(instance, client, timestamp, false, operation);
        Message::Request(request.authenticate(self.raw.cluster(), self.raw.keyring()))
    }

    fn fill(&mut self, history: History) -> io::Result<()> {
        let replicas: Vec<ReplicaId> = self.raw.cluster().replicas.iter().collect();
        let middle = if self.liar == Some(ReplicaId(0)) { history.lacking } else { replicas.len() - history.lacking };
        let (first, last) = replicas.split_at(middle);
        let (with, without) = if self.liar == Some(ReplicaId(0)) { (last, first) } else { (first, last) };
        if history.lacking >= self.raw.cluster().replicas.weak() {
            self.told_first = with.to_vec();
        }
        let numbers: Vec<usize> = (0..history.requests).collect();
        for numbers in numbers.chunks(AT_ONCE) {
            let mut answers = 0;
            for number in numbers {
                let is_missing = number % 100 * history.missing_percent % 100 < history.missing_percent;
                let others = if is_missing { &[] } else { without };
                let request = self.request(InstanceId(1), history.request_bytes);
                with.iter().chain(others).for_each(|to| _ = self.raw.say(*to, &request));
                answers += with.len() + others.len();
            }
            self.wait("answers", |_, heard| {
                let came = heard.iter().filter(|(_, message)| matches!(message, Message::Response(_))).count();
                answers = answers.saturating_sub(came);
                answers == 0
            })?;
            if history.requests > AT_ONCE {
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// Nobody waits for its answers.
    fn ask_liar(&mut self) -> io::Result<()> {
        let Some(liar) = self.liar else { return Ok(()) };
        for _ in 0..TO_LIAR {
            let request = self.request(InstanceId(1), 0);
            self.raw.say(liar, &request);
        }
        self.raw.listen().map(drop)
    }

    fn switch(&mut self) -> io::Result<Took> {
        let replicas = self.raw.cluster().replicas;
        let (weak, all) = (replicas.weak(), replicas.n() - usize::from(self.liar.is_some()));
        let client = self.raw.session(self.next);
        self.next += 1;
        let begin = Instant::now();
        let panic = self.panic(client, InstanceId(1));
        self.told_first.iter().for_each(|to| _ = self.raw.say(*to, &panic));
        if self.raw.cluster().part(InstanceId(2)) == Part::Backup(Order::Pbft) {
            self.until_active(InstanceId(2), weak, begin, &panic)?;
            let request = self.request(InstanceId(2), 0);
            self.say_to_all(&request);
            let panic = self.panic(client, InstanceId(2));
            self.say_to_all(&panic);
            return self.until_active(InstanceId(3), all, begin, &panic);
        }
        self.until_active(InstanceId(2), all, begin, &panic)
    }

    fn panic(&self, client: ClientId, instance: InstanceId) -> Message {
        let panic = Panic { client, timestamp: Timestamp(self.raw.now().0) };
        Message::Switch(Switch { instance, message: SwitchMessage::Panic(panic) })
    }

    fn say_to_all(&mut self, message: &Message) {
        let replicas: Vec<ReplicaId> = self.raw.cluster().replicas.iter().collect();
        replicas.into_iter().for_each(|to| _ = self.raw.say(to, message));
    }

    /// Until so many replicas have said that an instance runs. A replica says so to who has panicked there; those that
    /// were not told first are told when one of the others is there.
    fn until_active(
        &mut self,
        wanted: InstanceId,
        replicas: usize,
        begin: Instant,
        panic: &Message,
    ) -> io::Result<Took> {
        let (mut active, mut told, liar) = (BTreeSet::new(), None, self.liar);
        let says = |message: &Message| match message {
            Message::Switch(Switch { instance, message: SwitchMessage::Active(_) }) => *instance >= wanted,
            _ => false,
        };
        while active.len() < replicas {
            let mut heard = BTreeSet::new();
            self.wait("word of the next instance", |_, messages| {
                let honest = messages.iter().filter(|(from, message)| Some(*from) != liar && says(message));
                heard.extend(honest.map(|(from, _)| *from));
                !heard.is_empty()
            })?;
            if active.is_empty() {
                let all: Vec<ReplicaId> = self.raw.cluster().replicas.iter().collect();
                let others = all.into_iter().filter(|replica| !self.told_first.contains(replica));
                others.collect::<Vec<_>>().into_iter().for_each(|to| _ = self.raw.say(to, panic));
            }
            active.extend(heard);
            if active.len() >= self.raw.cluster().replicas.weak() {
                told.get_or_insert_with(|| begin.elapsed());
            }
        }
        let all = begin.elapsed();
        Ok(Took { told: told.unwrap_or(all), all })
    }
}
