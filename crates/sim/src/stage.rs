//! What all processes share: the time, the queue of things to come, the links between them, the trace and the checks.

use crate::byzantine::{Asynchrony, Echo, Sides, Tamper};
use crate::checks::Checks;
use crate::moments::Moments;
use crate::network::{Network, PROCESSES_MAX, ProcessId};
use crate::passes::Passes;
use crate::trace::Trace;
use bezant_core::client::ClientTimer;
use bezant_core::cluster::Cluster;
use bezant_core::ids::Principal;
use bezant_core::machine::Step;
use bezant_core::registry::ReplicaTimer;
use bytes::Bytes;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

/// Something that will happen. `life` counts a process's restarts: what was meant for an earlier life is void.
#[derive(Debug)]
pub enum Occurrence {
    /// A frame arrives.
    Frame {
        /// Where.
        to: ProcessId,
        /// Over whose link.
        from: Principal,
        /// The bytes.
        frame: Bytes,
    },
    /// A replica's timer may be due; `setting` says which setting of it this was.
    ReplicaTimer {
        /// Whose.
        process: ProcessId,
        /// Of which life.
        life: u32,
        /// Which.
        timer: ReplicaTimer,
        /// Which setting.
        setting: u64,
    },
    /// A client's timer may be due.
    ClientTimer {
        /// Whose.
        process: ProcessId,
        /// Which.
        timer: ClientTimer,
        /// Which setting.
        setting: u64,
    },
    /// A pass of a replica's event loop is over.
    PassEnd(ProcessId, u32),
    /// A pass of an identity's clients is over, which began with a request of this one.
    ClientPassEnd(ProcessId),
    /// A client looks whether to tell replicas what it waits for.
    Report(ProcessId),
    /// A disk has synced.
    Synced(ProcessId, u32),
    /// A background snapshot is on disk.
    SnapshotWritten(ProcessId, u32),
    /// A replica starts again.
    Restart(ProcessId),
    /// A client makes its next call.
    Call(ProcessId),
    /// A liar is given a chance to speak without being spoken to.
    Tick(ProcessId),
    /// A liar releases a frame that it kept back.
    Late {
        /// The liar.
        from: ProcessId,
        /// To whom.
        to: Principal,
        /// The bytes.
        frame: Bytes,
    },
    /// A fault of the schedule, by number.
    Fault(usize),
    /// A cut ends.
    Mend(u32),
    /// Another arrangement of who hears which twin.
    Regroup,
    /// Replicas are asked for their reports.
    Sample,
}

/// When something happens. The order of two things at the same time is the order in which they were planned. What it is
/// lies elsewhere, so that little is moved when the queue is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Planned {
    at: u64,
    number: u64,
    /// Its place among [`Stage::occurrences`].
    place: usize,
}

/// See the [module](self).
pub struct Stage {
    /// True time since the run began, in microseconds.
    pub now: u64,
    /// The cluster's parameters.
    pub cluster: Rc<Cluster>,
    /// Who says nothing any more.
    pub gone: BTreeSet<ProcessId>,
    /// Links.
    pub network: Network,
    /// What happened.
    pub trace: Trace,
    /// What must be true.
    pub checks: Checks,
    /// Who hears which twin.
    pub sides: Sides,
    /// Who changes frames on their way, if anybody does.
    pub tamper: Option<Tamper>,
    /// Who delivers frames again, if anybody does.
    pub echo: Option<Echo>,
    /// Who delays frames beyond all time-outs from now on, if anybody does.
    pub asynchrony: Option<Asynchrony>,
    /// Frames sent.
    pub frames: u64,
    /// What has been said that faults wait for.
    pub moments: Moments,
    /// Requests that their clients sign when a pass ends.
    pub unsigned: Passes,
    /// The processes that answer to a replica's name, by number: two for twins.
    replicas: Vec<Vec<ProcessId>>,
    /// The same for clients.
    clients: BTreeMap<Principal, Vec<ProcessId>>,
    /// The name of each process, as the trace shows it.
    names: Vec<Option<(Principal, String)>>,
    queue: BinaryHeap<Reverse<Planned>>,
    planned: u64,
    /// What is planned, and the places that are free.
    occurrences: Vec<Option<Occurrence>>,
    free: Vec<usize>,
}

impl Stage {
    /// An empty stage.
    pub fn new(cluster: Rc<Cluster>, network: Network, trace: Trace, checks: Checks, sides: Sides) -> Self {
        Self {
            now: 0,
            cluster,
            gone: BTreeSet::new(),
            network,
            trace,
            checks,
            sides,
            tamper: None,
            echo: None,
            asynchrony: None,
            frames: 0,
            moments: Moments::default(),
            unsigned: Passes::default(),
            replicas: Vec::new(),
            clients: BTreeMap::new(),
            names: vec![None; PROCESSES_MAX],
            queue: BinaryHeap::new(),
            planned: 0,
            occurrences: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Makes a process known under a name.
    pub fn register(&mut self, process: ProcessId, principal: Principal) {
        let twins = match principal {
            Principal::Replica(id) => {
                let known = self.replicas.len().max(usize::from(id.0) + 1);
                self.replicas.resize(known, Vec::new());
                &mut self.replicas[usize::from(id.0)]
            }
            client => self.clients.entry(client).or_default(),
        };
        twins.push(process);
        let prime = "'".repeat(twins.len() - 1);
        let name = match principal {
            Principal::Replica(id) => format!("{id}{prime}"),
            Principal::Client(id) => format!("{id}"),
            Principal::Key(key) => format!("{key:?}{prime}"),
        };
        self.names[process] = Some((principal, name));
    }

    /// The processes that answer to a name.
    fn addresses(&self, principal: Principal) -> &[ProcessId] {
        let known = match principal {
            Principal::Replica(id) => self.replicas.get(usize::from(id.0)),
            client => self.clients.get(&client),
        };
        known.map_or(&[], Vec::as_slice)
    }

    /// The name of a process in traces.
    pub fn name(&self, process: ProcessId) -> &str {
        name_in(&self.names, process)
    }

    /// Plans something, at a true time not before now.
    pub fn plan(&mut self, at: u64, occurrence: Occurrence) {
        self.planned += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.occurrences.push(None);
            self.occurrences.len() - 1
        });
        self.occurrences[place] = Some(occurrence);
        self.queue.push(Reverse(Planned { at: at.max(self.now), number: self.planned, place }));
    }

    /// Takes the next thing to happen and moves the time there. `None` after `limit`.
    pub fn next(&mut self, limit: u64) -> Option<Occurrence> {
        if self.queue.peek()?.0.at > limit {
            return None;
        }
        let Reverse(Planned { at, place, .. }) = self.queue.pop()?;
        self.now = at;
        self.free.push(place);
        self.occurrences[place].take()
    }

    /// Sends a frame from a process to everybody who answers to a name.
    pub fn post(&mut self, from: ProcessId, to: Principal, frame: Bytes) {
        let Some((sender, _)) = self.names[from] else { return };
        if self.gone.contains(&from) {
            return;
        }
        for number in 0..self.addresses(to).len() {
            let process = self.addresses(to)[number];
            if process == from || !self.sides.hears(from, process) {
                continue;
            }
            self.frames += 1;
            self.echo(from, process, &frame);
            if let Some(copy) = self.tamper.as_mut().and_then(|tamper| tamper.copy(&frame)) {
                self.route(from, sender, process, &copy);
            }
            self.route(from, sender, process, &frame);
        }
    }

    fn route(&mut self, from: ProcessId, sender: Principal, to: ProcessId, frame: &Bytes) {
        let held = self.asynchrony.as_mut().map_or(0, |asynchrony| asynchrony.hold(from, to));
        for at in self.network.route(self.now, from, to, frame.len()).into_iter().flatten() {
            self.plan(at + held, Occurrence::Frame { to, from: sender, frame: frame.clone() });
        }
    }

    /// Lets the network deliver an old frame again, if it does such things.
    fn echo(&mut self, from: ProcessId, to: ProcessId, frame: &Bytes) {
        let Some((from, to, frame)) = self.echo.as_mut().and_then(|echo| echo.hear(from, to, frame)) else { return };
        let Some((sender, _)) = self.names[from] else { return };
        self.route(from, sender, to, &frame);
    }

    /// Writes a note about a process into the trace.
    pub fn note(&mut self, process: ProcessId, kind: u64, text: impl FnOnce() -> String) {
        self.trace.note(self.now, (process, name_in(&self.names, process)), kind, text);
    }

    /// Writes the steps that a process has taken into the trace.
    pub fn stepped(&mut self, process: ProcessId, steps: Vec<Step>) {
        self.trace.stepped(self.now, (process, name_in(&self.names, process)), steps);
    }

    /// Writes an arrival into the trace.
    pub fn arrived(&mut self, from: Principal, to: ProcessId, frame: &Bytes) {
        let from = self.addresses(from).first().copied();
        let from = from.map_or("?", |first| name_in(&self.names, first));
        self.trace.arrived(self.now, from, (to, name_in(&self.names, to)), frame);
    }
}

fn name_in(names: &[Option<(Principal, String)>], process: ProcessId) -> &str {
    names.get(process).and_then(Option::as_ref).map_or("?", |(_, name)| name)
}
