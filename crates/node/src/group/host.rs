//! The loop of a process of a group: links, timers, calls, the machine.

use super::inbox::{Problem, Shared};
use super::settings::{GroupSettings, Witness};
use crate::config::Places;
use crate::net::clock::{Clock, until};
use crate::net::{Event, Hub, HubOptions, Lane, LinkId, Peer, Port, Worth};
use crate::replica::routes::Routes;
use bezant_core::auth::{Keyring, Tag};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::machine::{Destination, Effect, Input, Machine, Outbox};
use bezant_core::protocols::ritas::group::{Command, Group, GroupEvent, GroupMessage, GroupOptions, GroupTimer};
use bezant_core::protocols::ritas::variant::Variant;
use bezant_core::rejection::Rejection;
use bezant_core::time::{Duration, Instant};
use bezant_core::wire::{Rope, Wire};
use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// First byte of what a MAC covers; no handshake's statement begins with it.
const STATEMENT: u8 = 0xb3;
/// How long a process that leaves tries to get rid of what it has said.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(1);
/// Frames that are longer are hashed once for all receivers.
const HASHED_ONCE: usize = 256;

pub(super) struct Host {
    machine: Group,
    keyring: Keyring,
    hub: Hub,
    routes: Routes,
    shared: Arc<Shared>,
    clock: Clock,
    now: Instant,
    timer: Option<Instant>,
    outbox: Outbox<Group>,
    /// What the machine has come to in this pass.
    events: Vec<GroupEvent>,
    rejected: Vec<(ReplicaId, Rejection)>,
    is_holding: bool,
    witness: Witness,
}

/// What a MAC covers.
fn statement(body: &[u8]) -> Vec<u8> {
    let mut statement = vec![STATEMENT];
    if body.len() > HASHED_ONCE {
        statement.extend_from_slice(&Digest::of(Domain::Frame, body).0);
    } else {
        statement.extend_from_slice(body);
    }
    statement
}

impl Host {
    pub(super) fn new(settings: GroupSettings) -> io::Result<(Self, Arc<Shared>)> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let (replicas, keyring) = (settings.replicas().map_err(invalid)?, settings.keyring().map_err(invalid)?);
        let (coin, tossed) = (settings.common_coin(&keyring), settings.tossed());
        let places: Places = settings.members.iter().map(|(address, _)| *address).collect();
        let mut hub = Hub::new(HubOptions::new(keyring.clone(), settings.channel))?;
        hub.listen(settings.listener, Port::Replicas)?;
        let shared = Arc::new(Shared::new(hub.waker()));
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()))?;
        let machine = Group::new(GroupOptions {
            replicas,
            me: settings.me,
            epoch: settings.epoch,
            secret: Digest(secret),
            coin,
            variant: Variant { repeats: settings.repeats, coin: tossed, ..Variant::default() },
            bundles: settings.bundles,
            interval: Duration(settings.interval.as_micros() as u64),
            history_bytes_max: settings.history_bytes_max,
        });
        let clock = Clock::start();
        let host = Self {
            machine,
            keyring,
            hub,
            routes: Routes::new(settings.me, &places),
            shared: shared.clone(),
            clock,
            now: clock.now(),
            timer: None,
            outbox: Outbox::new(),
            events: Vec::new(),
            rejected: Vec::new(),
            is_holding: false,
            witness: settings.witness,
        };
        Ok((host, shared))
    }

    /// Until the group is left.
    pub(super) fn run(mut self) {
        self.step(Input::Start);
        while self.shared.lock().ended.is_none() {
            if let Err(error) = self.pass() {
                self.shared.lock().ended = Some(Problem::Failed(error.to_string()));
            }
        }
        if self.shared.lock().ended == Some(Problem::Closed) {
            self.say_the_rest();
        }
        self.shared.tell();
    }

    /// What was called for before the group was left is said, as far as there are links.
    fn say_the_rest(&mut self) {
        self.carry_out_commands();
        self.step(Input::PassEnd);
        self.hub.flush();
        let end = self.clock.now() + Duration(FAREWELL.as_micros() as u64);
        while self.hub.pending() > 0 && self.clock.now() < end {
            let left = until(end, self.clock.now());
            if self.hub.poll(Some(left)).is_err() {
                break;
            }
            while self.hub.next_event().is_some() {}
            self.hub.flush();
        }
    }

    /// What the program's threads have called for; and whether it receives what is ordered.
    fn carry_out_commands(&mut self) {
        let mut inbox = self.shared.lock();
        let (commands, is_full) = (inbox.take_commands(), inbox.is_full());
        drop(inbox);
        let hold = (std::mem::replace(&mut self.is_holding, is_full) != is_full).then_some(Command::Hold(is_full));
        hold.into_iter().chain(commands).for_each(|command| self.step(Input::Command(command)));
    }

    fn pass(&mut self) -> io::Result<()> {
        let dial = self.routes.tick(&mut self.hub, self.now);
        let next = [dial, self.timer].into_iter().flatten().min();
        self.hub.poll(next.map(|at| until(at, self.clock.now())))?;
        self.now = self.clock.now();
        self.carry_out_commands();
        while let Some(event) = self.hub.next_event() {
            match event {
                Event::Frame(_, peer, frame) => self.on_frame(peer, &frame),
                Event::Up(link, peer) => self.routes.on_up(link, peer, &mut self.hub),
                Event::Down(link, reason) => drop(self.routes.on_down(link, reason, self.now)),
            }
        }
        if self.timer.take_if(|at| *at <= self.now).is_some() {
            self.step(Input::Timer(GroupTimer::Channel));
        }
        self.step(Input::PassEnd);
        self.hub.flush();
        self.publish();
        Ok(())
    }

    fn on_frame(&mut self, peer: Peer, frame: &Bytes) {
        let Principal::Replica(from) = peer.principal() else { return };
        self.rejected.clear();
        match self.open(from, frame) {
            Ok(message) => self.step(Input::Message((from, message))),
            Err(reason) => self.rejected.push((from, reason)),
        }
        let its = self.rejected.iter().filter(|(of, _)| *of == from).map(|(_, reason)| *reason);
        self.hub.judge(peer, frame.len(), Worth::of(its, false));
    }

    fn open(&self, from: ReplicaId, frame: &Bytes) -> Result<GroupMessage, Rejection> {
        let body = frame.len().checked_sub(Tag::BYTES).ok_or(Rejection::Malformed)?;
        let tag = Tag::from_bytes(*frame[body..].first_chunk().expect("so many are left"));
        if !self.keyring.check(Principal::Replica(from), &statement(&frame[..body]), &tag) {
            return Err(Rejection::BadMac);
        }
        GroupMessage::from_bytes(frame.slice(..body)).map_err(|_| Rejection::Malformed)
    }

    fn step(&mut self, input: Input<Group>) {
        let mut outbox = std::mem::take(&mut self.outbox);
        self.machine.step(self.now, input, &mut outbox);
        for effect in outbox.drain() {
            match effect {
                Effect::Send(to, mut message) => {
                    if let Some(see) = &mut self.witness.0 {
                        see(&mut message);
                    }
                    self.send(to, &message);
                }
                Effect::SetTimer(GroupTimer::Channel, at) => self.timer = Some(at),
                Effect::CancelTimer(GroupTimer::Channel) => self.timer = None,
                Effect::Notify(GroupEvent::Rejected(from, reason)) => self.rejected.push((from, reason)),
                Effect::Notify(event) => self.events.push(event),
                Effect::Persist(record) | Effect::Append(record) => match record {},
            }
        }
        self.outbox = outbox;
    }

    fn send(&mut self, to: Destination, message: &GroupMessage) {
        let links: Vec<(ReplicaId, LinkId)> = match to {
            // What one process alone is told is what it has not heard, or a question for that: on a link that is behind
            // it would only make the queue longer.
            Destination::Replica(id) => {
                let link = self.routes.replica(id).filter(|link| !self.hub.is_behind(*link));
                link.map(|link| (id, link)).into_iter().collect()
            }
            _ => {
                let linked = self.routes.linked_replicas();
                linked.filter_map(|id| Some((id, self.routes.replica(id)?))).collect()
            }
        };
        if links.is_empty() {
            return;
        }
        let mut body = Rope::new();
        message.encode(&mut body);
        let mut flat = Vec::new();
        let statement = statement(body.whole(&mut flat));
        for (id, link) in links {
            let tag = self.keyring.tag(Principal::Replica(id), &statement);
            self.hub.send(link, Lane::Usual, &body, tag.as_bytes());
        }
    }

    /// Tells the program what the pass has come to.
    fn publish(&mut self) {
        let unlinked = self.routes.peers().filter(|(_, is_up, _)| !is_up).map(|(id, ..)| id).collect();
        let mut inbox = self.shared.lock();
        inbox.unlinked = unlinked;
        inbox.waiting_bytes = self.machine.waiting();
        self.events.drain(..).for_each(|event| inbox.add(event));
        drop(inbox);
        self.shared.tell();
    }
}
