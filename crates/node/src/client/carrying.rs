//! What sessions carry: operations become requests, and what came of a request is told to whoever waits for one of its
//! operations.
//!
//! A request lasts as long as somebody waits for it, and each operation as long as whoever asked for it: an operation
//! whose deadline has passed ends as unknown while its request goes on for others.

use super::bundling::{self, Carried};
use super::call::RequestId;
use super::driver::{Again, Driver, Finished};
use super::engine::{Engine, Session};
use super::explanation;
use bezant_core::client::{Completed, Completion};
use bezant_core::digest::Digest;
use bezant_core::ids::{InstanceId, Sequence, Timestamp};
use bezant_core::machine::Input;
use bezant_core::message::Refusal;
use bezant_core::time::{Duration, Instant};

impl<D: Driver> Engine<D> {
    /// What waits for a connection: no more than it has sessions for, were each operation a request of its own.
    pub(super) fn gather(&mut self, connection: usize) -> Vec<Carried> {
        let room = &mut self.rooms[connection];
        let most = room.idle.len();
        let again = room.again.drain(..most.min(room.again.len()));
        let mut asked: Vec<Carried> = again.map(|(carried, _)| carried).collect();
        while asked.len() < most
            && room.places > 0
            && let Some(next) = self.driver.next(self.now)
        {
            room.places -= 1;
            asked.push(Carried::new(next, self.now));
        }
        asked
    }

    pub(super) fn ask(&mut self, connection: usize, carried: Vec<Carried>) {
        let session = self.rooms[connection].idle.pop().expect("there are as many sessions as operations");
        self.requests += 1;
        self.operations += carried.len() as u64;
        let submit = bundling::submit(&carried);
        self.sessions[session].carried = carried;
        self.plan_look(session);
        self.step(session, Input::Command(submit));
    }

    /// Asks for what came of an operation: with its whole request, which is executed at most once.
    pub(super) fn ask_again(&mut self, again: &Again) {
        let RequestId { client, timestamp, place } = again.id;
        let carries = |session: &Session| {
            let carried = session.carried.get(place as usize);
            session.machine.id() == client && carried.is_some_and(|carried| carried.is_unknown(timestamp))
        };
        let Some(session) = self.sessions.iter().position(carries) else {
            return self.driver.on_forgotten(again.token);
        };
        self.sessions[session].carried[place as usize].ask_again(again.token, self.now, again.deadline);
        self.plan_look(session);
        if !self.sessions[session].machine.is_busy() {
            let room = &mut self.rooms[session / self.sessions_per_connection];
            room.kept.retain(|kept| *kept != session);
            room.idle.retain(|idle| *idle != session);
            self.go_on(session);
        }
    }

    /// Asks again for what some still wait for.
    fn go_on(&mut self, session: usize) {
        let Session { machine, carried, ended, .. } = &mut self.sessions[session];
        let submit = bundling::submit(carried);
        let mut outbox = std::mem::take(&mut self.outbox);
        machine.ask_again(self.now, (machine.id(), *ended), submit, &mut outbox);
        self.carry_out(session, outbox);
    }

    /// Sees to it that the session is looked at when the first one waits no longer. A look that is planned already is
    /// not put off: most requests end long before.
    fn plan_look(&mut self, session: usize) {
        let Session { carried, look_at, .. } = &mut self.sessions[session];
        let deadlines = carried.iter().filter(|carried| carried.is_awaited());
        let Some(first) = deadlines.filter_map(|carried| carried.submit.deadline).min() else { return };
        if look_at.is_none_or(|at| first < at) {
            if let Some(at) = look_at.replace(first) {
                self.looks.remove(&(at, session));
            }
            self.looks.insert((first, session));
        }
    }

    /// Ends what nobody waits for any longer.
    pub(super) fn look(&mut self) {
        let due: Vec<(Instant, usize)> = self.looks.range(..(self.now, usize::MAX)).copied().collect();
        for (at, session) in due {
            self.looks.remove(&(at, session));
            self.sessions[session].look_at = None;
            self.tell_late(session);
            self.plan_look(session);
        }
    }

    fn tell_late(&mut self, session: usize) {
        let Session { machine, carried, .. } = &self.sessions[session];
        let (Some(timestamp), true) = (machine.asked(), carried.iter().any(|it| it.is_late(self.now))) else { return };
        let (client, answers) = (machine.id(), machine.answers());
        let (instance, sequence, history) = (InstanceId(0), Sequence(0), Digest::ZERO);
        let (result, latency) = (Completion::Unknown, Duration(0));
        let unknown =
            Completed { client, timestamp, result, instance, sequence, history, vouchers: 0, answers, latency };
        self.tell(session, &unknown, Carried::is_late);
    }

    /// A session's request has ended.
    pub(super) fn end(&mut self, session: usize, completed: &Completed) {
        self.sessions[session].ended = completed.timestamp;
        let (now, carried) = (self.now, &self.sessions[session].carried);
        let waits_on = |carried: &Carried| carried.is_awaited() && !carried.is_late(now);
        // Who asked again later than others did waits longer.
        let is_over = completed.result == Completion::Unknown && carried.iter().any(|it| it.is_late(now));
        if is_over && carried.iter().any(waits_on) {
            self.tell(session, completed, Carried::is_late);
            return self.go_on(session);
        }
        self.tell(session, completed, |_, _| true);
        self.free(session);
    }

    /// Tells those who wait for some of what a session carries what came of it.
    fn tell(&mut self, session: usize, completed: &Completed, whom: impl Fn(&Carried, Instant) -> bool) {
        let (now, connection) = (self.now, self.connection_of(session));
        let dialers = self.dialers.get(connection).map_or(&[][..], Vec::as_slice);
        let explanation = explanation::of(completed, dialers);
        let carried = &mut self.sessions[session].carried;
        let results = bundling::singles(&completed.result, carried.len());
        let room = &mut self.rooms[connection];
        for ((place, carried), result) in (0..).zip(carried).zip(results) {
            if !whom(carried, now) {
                continue;
            }
            let Some(result) = result else {
                if carried.is_awaited() {
                    room.again.push((carried.clone(), completed.clone()));
                    carried.end(None);
                }
                continue;
            };
            let told = (result == Completion::Unknown).then_some(completed.timestamp);
            let Some(token) = carried.end(told) else { continue };
            room.places += usize::from(std::mem::take(&mut carried.has_place));
            let completed = Completed { result, latency: now - carried.since, ..completed.clone() };
            self.driver.on_finished(Finished { token, place, completed, explanation: explanation.clone() });
        }
    }

    /// Gives back what waits to be asked for again and may not wait any longer: it was not executed.
    pub(super) fn give_back(&mut self) {
        let (now, may_ask) = (self.now, self.may_ask());
        for room in &mut self.rooms {
            for (mut carried, completed) in room.again.extract_if(.., |(it, _)| !may_ask || it.is_late(now)) {
                let Some(token) = carried.end(None) else { continue };
                room.places += usize::from(carried.has_place);
                let result = Completion::Refused(Refusal::NoRoom);
                let completed = Completed { result, latency: now - carried.since, ..completed };
                self.driver.on_finished(Finished { token, place: 0, completed, explanation: Vec::new() });
            }
        }
    }

    fn free(&mut self, session: usize) {
        let room = &mut self.rooms[session / self.sessions_per_connection];
        let carried = &mut self.sessions[session].carried;
        if !D::KEEPS_UNKNOWN || !carried.iter().any(Carried::is_told_nothing) {
            carried.clear();
            return room.idle.push(session);
        }
        room.kept.push_back(session);
        if room.kept.len() > self.sessions_per_connection / 2 {
            room.idle.extend(room.kept.pop_front());
        }
    }

    /// The session is another one from now on: nothing that it carried can be asked for again.
    pub(super) fn forget_carried(&mut self, session: usize) {
        self.sessions[session].carried.clear();
        self.sessions[session].ended = Timestamp(0);
    }
}
