//! What client machines say of themselves: Robust 1, 2 and 5 of the [module](super).

use crate::ids::{ClientId, IdentityId, Timestamp};
use crate::shares::{Bounds, Room, Shares};
use crate::switching::Feedback;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The most machines that are remembered.
pub(super) const MACHINES_MAX: usize = 4_096;
const BOUNDS: Bounds = Bounds { number: MACHINES_MAX, bytes: usize::MAX };

/// Requests that may be executed besides, while one waits: twice as many as its machine may have had answered before it
/// said so, and as many as cross it on the way.
const LEFT_OUT_SLACK: u64 = 64;

/// What has waited longest of a machine.
#[derive(Clone, Copy, Debug)]
struct Oldest {
    client: ClientId,
    timestamp: Timestamp,
    /// Requests that had been executed when it was first named.
    executed: u64,
    /// How many waited then, over all machines.
    waiting: u64,
}

#[derive(Clone, Copy, Debug)]
struct Machine {
    heard: Instant,
    waiting: u64,
    oldest: Option<Oldest>,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Machines {
    machines: BTreeMap<ClientId, Machine>,
    shares: Shares<IdentityId>,
    /// How many requests wait, since when, and how many microseconds they waited together before that.
    waiting: u64,
    at: Instant,
    waited: u64,
}

impl Machines {
    /// A machine says this, when so many requests had been executed. Returns whether there was room for it.
    pub(super) fn hear(&mut self, now: Instant, said: &Feedback, executed: u64) -> bool {
        if !self.machines.contains_key(&said.machine) && !self.make_room(now, said.machine.identity) {
            return false;
        }
        let before = self.remove(now, said.machine);
        let waiting = u64::from(said.waiting);
        let oldest = said.oldest.map(|(session, timestamp)| {
            let client = ClientId { session, ..said.machine };
            let known = before.and_then(|machine| machine.oldest);
            let known = known.filter(|oldest| (oldest.client, oldest.timestamp) == (client, timestamp));
            known.unwrap_or(Oldest { client, timestamp, executed, waiting: self.waiting + waiting })
        });
        self.machines.insert(said.machine, Machine { heard: now, waiting, oldest });
        self.shares.add(said.machine.identity, 0);
        self.waiting += waiting;
        true
    }

    fn make_room(&mut self, now: Instant, identity: IdentityId) -> bool {
        match self.shares.room(identity, 0, BOUNDS) {
            Room::Free => true,
            Room::InPlaceOf(identity) => {
                let last = self.machines.range(..=ClientId { identity, session: u32::MAX }).next_back();
                let given = *last.expect("whoever gives way has something").0;
                self.remove(now, given);
                true
            }
            Room::None => false,
        }
    }

    fn remove(&mut self, now: Instant, machine: ClientId) -> Option<Machine> {
        self.pass(now);
        let removed = self.machines.remove(&machine)?;
        self.shares.remove(machine.identity, 0);
        self.waiting -= removed.waiting;
        Some(removed)
    }

    /// Time passes.
    fn pass(&mut self, now: Instant) {
        self.waited = self.waited.saturating_add((now - self.at).0.saturating_mul(self.waiting));
        self.at = now.max(self.at);
    }

    /// Forgets who has said nothing for so long.
    pub(super) fn forget_silent(&mut self, now: Instant, after: Duration) {
        let silent = self.machines.iter().filter(|(_, machine)| now - machine.heard > after);
        let silent: Vec<ClientId> = silent.map(|(name, _)| *name).collect();
        for name in silent {
            self.remove(now, name);
        }
    }

    /// How many microseconds requests have waited together since the last time.
    pub(super) fn take_waited(&mut self, now: Instant) -> u64 {
        self.pass(now);
        core::mem::take(&mut self.waited)
    }

    /// An instance begins, when so many requests have been executed: what waits has waited for no other.
    pub(super) fn begin(&mut self, executed: u64) {
        for oldest in self.machines.values_mut().filter_map(|machine| machine.oldest.as_mut()) {
            (oldest.executed, oldest.waiting) = (executed, self.waiting);
        }
    }

    /// Robust 5: whether a request has been left out, and not been `done`.
    pub(super) fn is_any_left_out(&self, executed: u64, done: impl Fn(ClientId, Timestamp) -> bool) -> bool {
        let may = |waiting: u64| 2 * waiting.max(self.waiting) + LEFT_OUT_SLACK;
        let is_long = |oldest: &&Oldest| executed.saturating_sub(oldest.executed) > may(oldest.waiting);
        let mut waits = self.machines.values().filter_map(|machine| machine.oldest.as_ref()).filter(is_long);
        waits.any(|oldest| !done(oldest.client, oldest.timestamp))
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self) {
        assert!(self.machines.len() <= MACHINES_MAX, "at most MACHINES_MAX");
        self.shares.check_invariants(self.machines.len(), 0);
        let waiting: u64 = self.machines.values().map(|machine| machine.waiting).sum();
        assert_eq!(self.waiting, waiting, "what waits is what the machines say");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(identity: u32, session: u32) -> ClientId {
        ClientId { identity: IdentityId(identity), session }
    }

    fn said(machine: ClientId, waiting: u32, timestamp: u64) -> Feedback {
        let oldest = (waiting > 0).then_some((machine.session + 1, Timestamp(timestamp)));
        Feedback { machine, waiting, oldest }
    }

    #[test]
    fn what_waits_is_what_the_machines_last_said() {
        let mut machines = Machines::default();
        machines.hear(Instant(0), &said(machine(1, 0), 10, 1), 0);
        machines.hear(Instant(100), &said(machine(2, 0), 5, 1), 0);
        assert_eq!(machines.take_waited(Instant(200)), 10 * 200 + 5 * 100);
        machines.hear(Instant(300), &said(machine(1, 0), 0, 0), 0);
        assert_eq!(machines.take_waited(Instant(400)), 10 * 100 + 5 * 200);
        machines.forget_silent(Instant(401), Duration(200));
        assert_eq!(machines.waiting, 0, "the second has said nothing for too long");
        machines.check_invariants();
    }

    #[test]
    fn a_request_is_left_out_when_twice_as_many_as_waited_were_executed() {
        let mut machines = Machines::default();
        let waits = said(machine(1, 0), 10, 7);
        machines.hear(Instant(0), &waits, 100);
        let bound = 100 + 20 + LEFT_OUT_SLACK;
        let of = |client: ClientId, timestamp: Timestamp| (client.session, timestamp) == (1, Timestamp(7));
        assert!(!machines.is_any_left_out(bound, |_, _| false));
        assert!(machines.is_any_left_out(bound + 1, |client, timestamp| !of(client, timestamp)));
        assert!(!machines.is_any_left_out(bound + 1, of), "it was executed, and its client has not said so yet");
        machines.hear(Instant(1), &waits, 150);
        assert!(machines.is_any_left_out(bound + 1, |_, _| false), "to say it again changes nothing");
        machines.hear(Instant(2), &said(machine(1, 0), 10, 8), 150);
        assert!(!machines.is_any_left_out(bound + 1, |_, _| false), "that is another request");
        machines.begin(1_000);
        assert!(!machines.is_any_left_out(1_000 + 20 + LEFT_OUT_SLACK, |_, _| false), "another instance");
    }

    #[test]
    fn an_identity_with_many_machines_costs_others_nothing() {
        let mut machines = Machines::default();
        for session in 0..MACHINES_MAX as u32 {
            assert!(machines.hear(Instant(0), &said(machine(1, session), u32::MAX, 1), 0));
        }
        assert!(!machines.hear(Instant(0), &said(machine(1, u32::MAX - 1), 1, 1), 0), "it has all the room");
        assert!(machines.hear(Instant(0), &said(machine(0, 3), 1, 1), 0));
        assert!(machines.machines.contains_key(&machine(0, 3)));
        machines.check_invariants();
    }
}
