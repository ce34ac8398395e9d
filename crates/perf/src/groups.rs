//! What a group of processes does without a service: how long a layer takes, and how fast atomic broadcast is (thesis,
//! chapter 5).
//!
//! All processes are threads of this program: on one machine they would share its cores in any case. Each process is
//! its group's thread and one of the application. Their links are over loopback, or from [`Place`] to place.

use bezant_core::auth::{Ed25519, SecretKey, Suite};
use bezant_core::ids::ReplicaId;
use bezant_core::protocols::ritas::group::{GroupMessage, Speech};
use bezant_core::protocols::ritas::message::{Said, Statement, Value, Word};
use bezant_core::protocols::ritas::path::{Layer, Path};
use bezant_core::replicas::Replicas;
use bezant_core::wire::{Wire, encode_list};
use bezant_node::group::{GroupHandle, GroupSettings, Problem, Witness};
use bezant_node::net::Channel;
use bezant_node::replica::CpuTime;
use bytes::Bytes;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// How long a call may take: longer, and the measurement has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long calls or bursts come one after the other, and how many there are at least; and how many come before that
/// are not measured.
const SPAN: Duration = Duration::from_millis(500);
const CALLS_MIN: usize = 40;
const CALLS_BEFORE: u64 = 10;
/// Bytes of a value, where layers are measured (thesis, section 5.2).
const LAYER_BYTES: usize = 10;
/// The same of bursts.
const BURSTS_MIN: usize = 5;
const BURSTS_BEFORE: u64 = 2;

/// What is wrong with f of the processes (thesis, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faultload {
    /// Nothing.
    FailureFree,
    /// They are not there.
    FailStop,
    /// They vote 0 in binary consensus, and for ⊥ in multi-valued consensus.
    Byzantine,
}

/// Whose variant runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Ours: bundles, values by name.
    Ours,
    /// The thesis': each message by itself, values repeated.
    Thesis,
}

/// A layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Echo broadcast.
    Echo,
    /// Reliable broadcast.
    Reliable,
    /// Binary consensus.
    Binary,
    /// Multi-valued consensus.
    Multi,
    /// Vector consensus.
    Vector,
    /// Atomic broadcast.
    Atomic,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Calls of a layer, one at a time.
    Calls(Stage),
    /// Bursts of so many messages of so many bytes, from all processes together.
    Burst {
        /// Messages.
        messages: usize,
        /// Bytes of each.
        bytes: usize,
    },
}

/// A group, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Processes; as many of them may be faulty as there can be.
    pub n: usize,
    /// What is wrong with those.
    pub faultload: Faultload,
    /// Whose variant.
    pub style: Style,
    /// Whether links are encrypted; they are authenticated in any case.
    pub encrypted: bool,
    /// Mbit/s that each process's link carries in each direction. `None`: loopback.
    pub mbit: Option<u64>,
    /// What it does.
    pub work: Work,
}

/// Where a process runs.
pub struct Place {
    /// Its address there.
    pub address: IpAddr,
    /// Takes the calling thread there, and all threads that it starts from then on.
    pub enter: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
}

impl Place {
    /// On loopback, wherever the calling thread is.
    fn here() -> Self {
        Self { address: Ipv4Addr::LOCALHOST.into(), enter: Box::new(|| Ok(())) }
    }

    /// Does something there. What it makes stays there.
    fn within<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| (self.enter)().and_then(|()| act()));
            inside.join().unwrap_or_else(|_| Err(io::Error::other("a process has panicked")))
        })
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ran {
    /// From the beginning to the result at one process; of calls or bursts the median.
    pub latency: Duration,
    /// Messages per second; of calls: one in that time.
    pub per_second: f64,
    /// Processor time of all processes for each message or call.
    pub cpu: Duration,
    /// Which part of the broadcasts were for agreement, and not for messages themselves.
    pub agreement: f64,
}

/// What the witnesses of all processes have counted: broadcasts of messages, and others.
#[derive(Debug, Default)]
struct Broadcasts {
    messages: AtomicU64,
    agreement: AtomicU64,
}

impl Broadcasts {
    fn see(&self, message: &GroupMessage) {
        let Speech::Said(statements) = &message.speech else { return };
        for Said { path, statement } in &statements.0 {
            if let Statement::Initial(_) = statement {
                let is_message = path.number(Layer::Message).is_some();
                let counter = if is_message { &self.messages } else { &self.agreement };
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn read(&self) -> (f64, f64) {
        (self.messages.load(Ordering::Relaxed) as f64, self.agreement.load(Ordering::Relaxed) as f64)
    }
}

/// Votes 0 and proposes ⊥, wherever it says something of its own.
#[derive(Debug)]
struct Saboteur {
    me: ReplicaId,
    n: usize,
    repeats: bool,
}

impl Saboteur {
    fn other(&self, path: Path) -> Option<Value> {
        let bottom = || {
            let mut bytes = Vec::new();
            None::<Word>.encode(&mut bytes);
            encode_list(&vec![None::<Word>; self.n], &mut bytes);
            bytes
        };
        match path.parent()?.last().layer() {
            Layer::Step => Some(Value(Bytes::from_static(&[0]))),
            Layer::Init => Some(Value(Bytes::new())),
            Layer::Vect => Some(Value(Bytes::from(bottom()))),
            _ => None,
        }
    }

    fn change(&self, message: &mut GroupMessage) {
        let Speech::Said(statements) = &mut message.speech else { return };
        for Said { path, statement } in &mut statements.0 {
            let is_own = path.last().layer() == Layer::By && path.last().number() == u64::from(self.me.0);
            let Some(other) = is_own.then(|| self.other(*path)).flatten() else { continue };
            match statement {
                Statement::Initial(value) => *value = other,
                Statement::Echo(word) | Statement::Ready(word) => *word = Word::of(&other, self.repeats),
                _ => {}
            }
        }
    }
}

/// Starts the processes of a group, but for those that are not there: each at its place, or all here.
fn start(setting: &Setting, places: &[Place], counted: &Arc<Broadcasts>) -> io::Result<Vec<GroupHandle>> {
    let Setting { n, faultload, style, encrypted, .. } = *setting;
    let replicas = Replicas::of(n).map_err(|error| io::Error::other(error.to_string()))?;
    let faults = replicas.faults();
    let secret = |of: usize| SecretKey([of as u8 + 1; 32]);
    let here = Place::here();
    let place = |of: usize| places.get(of).unwrap_or(&here);
    let listen = |of: usize| place(of).within(|| TcpListener::bind((place(of).address, 0)));
    let listeners: Vec<TcpListener> = (0..n).map(listen).collect::<io::Result<_>>()?;
    let member = |(of, listener): (usize, &TcpListener)| Ok((listener.local_addr()?, Ed25519.public(&secret(of))));
    let members: Vec<_> = listeners.iter().enumerate().map(member).collect::<io::Result<_>>()?;
    let present = if faultload == Faultload::FailStop { n - faults } else { n };
    let one = |(me, listener): (usize, TcpListener)| {
        let id = ReplicaId(me as u8);
        let counted = counted.clone();
        let lies = faultload == Faultload::Byzantine && me >= n - faults;
        let saboteur = lies.then(|| Saboteur { me: id, n, repeats: style == Style::Thesis });
        let witness = Witness::new(move |message| {
            counted.see(message);
            if let Some(saboteur) = &saboteur {
                saboteur.change(message);
            }
        });
        let settings = GroupSettings {
            channel: if encrypted { Channel::Tls } else { Channel::Plain },
            bundles: style == Style::Ours,
            repeats: style == Style::Thesis,
            witness,
            ..GroupSettings::new(members.clone(), faults, id, secret(me), listener)
        };
        let group = place(me).within(|| GroupHandle::start(settings))?;
        group.set_patience(Some(PATIENCE));
        Ok(group)
    };
    listeners.into_iter().enumerate().take(present).map(one).collect()
}

/// Measures: each process at its place, or all here if there are no places.
///
/// # Errors
/// If the group cannot be started, or does not come to an end.
pub fn measure(setting: &Setting, places: &[Place]) -> io::Result<Ran> {
    let counted = Arc::new(Broadcasts::default());
    let groups = start(setting, places, &counted)?;
    let turns = Turns { barrier: Barrier::new(groups.len()), end: AtomicU64::new(u64::MAX), counted: &counted };
    let act = |me: usize| match setting.work {
        Work::Calls(stage) => call_each(stage, me, &groups, &turns),
        Work::Burst { messages, bytes } => burst_each(messages, bytes, me, &groups, &turns),
    };
    let ran: io::Result<Vec<Ran>> = thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> = (0..groups.len()).map(|me| scope.spawn(move || act(me))).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|ran| ran.unwrap_or_else(|_| Err(io::Error::other("a process has panicked")))).collect()
    });
    ran?.into_iter().next().ok_or_else(|| io::Error::other("there is no process"))
}

/// What all processes do in turns, as long as it is measured.
struct Turns<'a> {
    barrier: Barrier,
    /// The first turn that is not taken any more: process 0 has seen enough, or somebody has failed.
    end: AtomicU64,
    counted: &'a Broadcasts,
}

impl Turns<'_> {
    /// Process `me`'s part: `before` turns that are not measured, and then so many at least, of so many messages each.
    fn take(
        &self,
        me: usize,
        (before, turns_min): (u64, usize),
        messages: usize,
        turn: impl Fn(u64) -> Result<(), Problem>,
    ) -> io::Result<Ran> {
        let mut latencies = Vec::new();
        let (mut cpu, mut broadcasts, mut since) = (Duration::ZERO, (0.0, 0.0), Instant::now());
        let mut failure = None;
        for number in 0.. {
            if failure.is_some() || me == 0 && latencies.len() >= turns_min && since.elapsed() >= SPAN {
                self.end.fetch_min(number, Ordering::Relaxed);
            }
            self.barrier.wait();
            if number >= self.end.load(Ordering::Relaxed) {
                break;
            }
            if number == before {
                (cpu, broadcasts, since) = (CpuTime::now().process, self.counted.read(), Instant::now());
            }
            let begin = Instant::now();
            failure = turn(number).err();
            if number >= before {
                latencies.push(begin.elapsed());
            }
        }
        if let Some(problem) = failure {
            return Err(io::Error::other(problem.to_string()));
        }
        if latencies.is_empty() {
            return Err(io::Error::other("another process has failed"));
        }
        let cpu = (CpuTime::now().process - cpu) / (latencies.len() * messages) as u32;
        latencies.sort_unstable();
        let latency = latencies[latencies.len() / 2];
        let (of_messages, of_agreement) = self.counted.read();
        let (of_messages, of_agreement) = (of_messages - broadcasts.0, of_agreement - broadcasts.1);
        let agreement = of_agreement / (of_messages + of_agreement).max(1.0);
        Ok(Ran { latency, per_second: messages as f64 / latency.as_secs_f64(), cpu, agreement })
    }
}

/// One process's part in calls of a layer. Process 0 broadcasts, and all propose the same (thesis, section 5.2).
fn call_each(stage: Stage, me: usize, groups: &[GroupHandle], turns: &Turns<'_>) -> io::Result<Ran> {
    let (group, first) = (&groups[me], ReplicaId(0));
    let value = Bytes::from(vec![7; LAYER_BYTES]);
    turns.take(me, (CALLS_BEFORE, CALLS_MIN), 1, |number| match stage {
        Stage::Echo => {
            let said = if me == 0 { group.echo_broadcast(number, value.clone()) } else { Ok(()) };
            said.and_then(|()| group.echo_receive(first, number)).map(drop)
        }
        Stage::Reliable => {
            let said = if me == 0 { group.reliable_broadcast(number, value.clone()) } else { Ok(()) };
            said.and_then(|()| group.reliable_receive(first, number)).map(drop)
        }
        Stage::Binary => group.agree_on_bit(number, true).map(drop),
        Stage::Multi => group.agree(number, value.clone()).map(drop),
        Stage::Vector => group.agree_on_vector(number, value.clone()).map(drop),
        Stage::Atomic => {
            let said = if me == 0 { group.order(value.clone()) } else { Ok(()) };
            said.and_then(|()| group.next_ordered()).map(drop)
        }
    })
}

/// One process's part in bursts.
fn burst_each(messages: usize, bytes: usize, me: usize, groups: &[GroupHandle], turns: &Turns<'_>) -> io::Result<Ran> {
    let (group, share) = (&groups[me], messages.div_ceil(groups.len()));
    let all = share * groups.len();
    let message = Bytes::from(vec![7; bytes]);
    turns.take(me, (BURSTS_BEFORE, BURSTS_MIN), all, |_| {
        (0..share).try_for_each(|_| group.order(message.clone()))?;
        (0..all).try_for_each(|_| group.next_ordered().map(drop))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(faultload: Faultload, style: Style, work: Work) -> Setting {
        Setting { n: 4, faultload, style, encrypted: false, mbit: None, work }
    }

    #[test]
    fn every_faultload_delivers_its_bursts() {
        for faultload in [Faultload::FailureFree, Faultload::FailStop, Faultload::Byzantine] {
            for style in [Style::Ours, Style::Thesis] {
                let work = Work::Burst { messages: 12, bytes: 10 };
                let ran = measure(&setting(faultload, style, work), &[]).unwrap();
                assert!(ran.per_second > 0.0 && ran.agreement > 0.0 && ran.agreement < 1.0, "{faultload:?}: {ran:?}");
            }
        }
    }

    #[test]
    fn every_layer_has_a_latency() {
        for stage in [Stage::Echo, Stage::Reliable, Stage::Binary, Stage::Multi, Stage::Vector, Stage::Atomic] {
            let ran = measure(&setting(Faultload::FailureFree, Style::Thesis, Work::Calls(stage)), &[]).unwrap();
            assert!(ran.latency > Duration::ZERO, "{stage:?}");
        }
    }
}
