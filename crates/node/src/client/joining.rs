//! How an engine whose key the cluster file does not name comes in, stays in and leaves: it joins as soon as it is
//! connected, again when its place was given to another, and leaves when it is stopped.
//!
//! One more session, the *door*, does that for all others (see `client/door.rs` of the core).

use super::driver::Driver;
use super::engine::Engine;
use super::membership::{Admitted, Membership, Phase};
use bezant_core::client::{Client as Logical, Completed, Completion};
use bezant_core::joining::Nonce;
use bezant_core::machine::Outbox;
use bezant_core::members::Admission;
use bezant_core::message::Refusal;
use bezant_core::registry::Message;
use bezant_core::time::{Duration, Instant};
use bezant_core::wire::Wire;

/// How long an attempt to join may take.
const JOIN_PATIENCE: Duration = Duration::from_millis(10_000);
/// The pause after a refusal that may be another one later.
const JOIN_PAUSE: Duration = Duration::from_millis(500);
/// How long a LEAVE may take. If it does not come through, the session grows stale.
const LEAVE_PATIENCE: Duration = Duration::from_millis(1_000);

impl<D: Driver> Engine<D> {
    /// Whether requests may be sent: nobody need join, or this client has.
    pub(super) fn may_ask(&self) -> bool {
        self.membership.as_ref().is_none_or(Membership::is_inside)
    }

    /// Whom a message is for, by the engine's number.
    pub(super) fn session_of(&self, message: &Message) -> Option<usize> {
        let addressee = message.addressee();
        let Some(membership) = &self.membership else {
            return Some(addressee?.session.checked_sub(self.first_session)? as usize);
        };
        let door = membership.door();
        match addressee {
            Some(id) if id.identity.is_member() && (id.session as usize) < door => Some(id.session as usize),
            _ => Some(door),
        }
    }

    /// Which connection is a session's. The door has the first.
    pub(super) fn connection_of(&self, session: usize) -> usize {
        let is_door = self.membership.as_ref().is_some_and(|it| it.door() == session);
        if is_door { 0 } else { session / self.sessions_per_connection }
    }

    /// Joins, if it is time to.
    pub(super) fn join(&mut self) {
        let now = self.now;
        let Some(membership) = self.membership.as_mut().filter(|it| it.next().is_some_and(|at| at <= now)) else {
            return;
        };
        let mut nonce: Nonce = [0; 16];
        if getrandom::fill(&mut nonce).is_err() {
            membership.phase = Phase::Outside(now + JOIN_PAUSE);
            return;
        }
        membership.phase = Phase::Joining;
        let (door, identification) = (membership.door, membership.identification.clone());
        self.drive(door, |machine, now, out| machine.join(now, nonce, identification, now + JOIN_PATIENCE, out));
    }

    /// What came of the door's request.
    pub(super) fn on_door(&mut self, completed: &Completed) {
        let now = self.now;
        let Some(membership) = &mut self.membership else { return };
        let admission = match (membership.phase, &completed.result) {
            (Phase::Joining, Completion::Done(bytes)) => Admission::from_bytes(bytes.clone()).ok(),
            _ => None,
        };
        if let Some(admission) = admission {
            membership.phase = Phase::Inside(admission);
            self.driver.on_admission(Admitted::Yes);
            return self.enter(admission);
        }
        let (phase, told) = match (membership.phase, &completed.result) {
            (Phase::Joining, Completion::Refused(reason @ (Refusal::Full | Refusal::TooSoon))) => {
                (Phase::Outside(now + JOIN_PAUSE), Some(Admitted::NotYet(*reason)))
            }
            (Phase::Joining, Completion::Refused(reason @ (Refusal::Unauthorized | Refusal::Closed))) => {
                (Phase::Barred, Some(Admitted::Never(*reason)))
            }
            (Phase::Joining, _) => (Phase::Outside(now + JOIN_PAUSE), None),
            _ => (Phase::Barred, None),
        };
        membership.phase = phase;
        if let Some(told) = told {
            self.driver.on_admission(told);
        }
    }

    /// All sessions are this member's from now on.
    fn enter(&mut self, admission: Admission) {
        let Some(door) = self.membership.as_ref().map(Membership::door) else { return };
        for session in 0..door {
            let ended = self.sessions[session].machine.enter(self.now, admission, session as u32);
            if let Some(completed) = ended {
                self.end(session, &completed);
            }
            self.forget_carried(session);
        }
    }

    /// Looks at how a session's request ended: the session may be over.
    pub(super) fn on_ended(&mut self, completed: &Completed) {
        let (Some(membership), Completion::Ended(reason)) = (&mut self.membership, &completed.result) else { return };
        match membership.phase {
            Phase::Inside(admission) if admission.identity == completed.client.identity => {}
            _ => return,
        }
        if *reason == Refusal::TakenOver {
            // Joining again would end the other one's session, which would end this one's, and so on.
            membership.phase = Phase::Barred;
            self.driver.on_admission(Admitted::Never(*reason));
        } else {
            membership.phase = Phase::Outside(self.now);
        }
    }

    /// Leaves, and waits a little for the answer.
    pub(super) fn leave(&mut self) {
        let Some(membership) = &mut self.membership else { return };
        let Phase::Inside(admission) = membership.phase else { return };
        membership.phase = Phase::Leaving;
        let door = membership.door;
        self.now = self.clock.now();
        let until = self.now + LEAVE_PATIENCE;
        self.drive(door, |machine, now, out| machine.leave(now, admission, until, out));
        self.let_out();
        while self.membership.as_ref().is_some_and(|it| it.phase == Phase::Leaving) && self.now < until {
            if self.hub.poll(Some(std::time::Duration::from_millis(50))).is_err() {
                return;
            }
            self.pass();
        }
    }

    fn drive(&mut self, session: usize, act: impl FnOnce(&mut Logical, Instant, &mut Outbox<Logical>)) {
        let mut outbox = std::mem::take(&mut self.outbox);
        act(&mut self.sessions[session].machine, self.now, &mut outbox);
        self.carry_out(session, outbox);
    }
}
