//! What client machines say of themselves: Robust 1, 2 and 5 of the [module](super).

use crate::ids::{ClientId, IdentityId, Timestamp};
use crate::protocols::aardvark::rates::BUSY;
use crate::shares::{Bounds, Room, Shares};
use crate::switching::Feedback;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The most machines that are remembered.
pub(super) const MACHINES_MAX: usize = 4_096;
const BOUNDS: Bounds = Bounds { number: MACHINES_MAX, bytes: usize::MAX };

/// What has waited longest of a machine.
#[derive(Clone, Copy, Debug)]
struct Oldest {
    client: ClientId,
    timestamp: Timestamp,
    /// When it was first named.
    named: Instant,
    /// How many requests had been served when it was first looked after.
    served: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Machine {
    heard: Instant,
    /// Looks since then.
    looks: u64,
    /// In thousandths of a request.
    load: u64,
    /// The same times the microseconds for which that was so, up to `at`, of which nothing was counted yet.
    waited: u64,
    at: Instant,
    oldest: Option<Oldest>,
}

impl Machine {
    /// Time passes.
    fn pass(&mut self, now: Instant) {
        self.waited = self.waited.saturating_add((now - self.at).0.saturating_mul(self.load));
        self.at = now.max(self.at);
    }
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Machines {
    machines: BTreeMap<ClientId, Machine>,
    shares: Shares<IdentityId>,
}

impl Machines {
    /// A machine says this. Returns whether there was room for it.
    pub(super) fn hear(&mut self, now: Instant, said: &Feedback) -> bool {
        if !self.machines.contains_key(&said.machine) && !self.make_room(said.machine.identity) {
            return false;
        }
        let before = self.remove(said.machine);
        let oldest = said.oldest.map(|(session, timestamp)| {
            let client = ClientId { session, ..said.machine };
            let known = before.and_then(|machine| machine.oldest);
            let known = known.filter(|oldest| (oldest.client, oldest.timestamp) == (client, timestamp));
            known.unwrap_or(Oldest { client, timestamp, named: now, served: None })
        });
        let mut machine = before.unwrap_or(Machine { heard: now, looks: 0, load: 0, waited: 0, at: now, oldest });
        machine.pass(now);
        let load = u64::from(said.load);
        self.machines.insert(said.machine, Machine { heard: now, looks: 0, load, oldest, ..machine });
        self.shares.add(said.machine.identity, 0);
        true
    }

    /// Makes room for a machine of this identity: in the place of another one of its own if need be.
    fn make_room(&mut self, identity: IdentityId) -> bool {
        let from = match self.shares.room(identity, 0, BOUNDS) {
            Room::Free => return true,
            Room::InPlaceOf(other) => other,
            Room::None => identity,
        };
        let first = ClientId { identity: from, session: 0 };
        let last = self.machines.range(first..=ClientId { identity: from, session: u32::MAX }).next_back();
        let given = last.map(|(name, _)| *name);
        given.is_some_and(|name| self.remove(name).is_some())
    }

    fn remove(&mut self, machine: ClientId) -> Option<Machine> {
        let removed = self.machines.remove(&machine)?;
        self.shares.remove(machine.identity, 0);
        Some(removed)
    }

    /// Another look: forgets who has said nothing for more than so many. They are counted, not timed: where a replica
    /// has too much to do to look as often as it should, it reads what machines say late as well.
    pub(super) fn forget_silent(&mut self, after: u64) {
        self.machines.values_mut().for_each(|machine| machine.looks += 1);
        let silent = self.machines.iter().filter(|(_, machine)| machine.looks > after);
        let silent: Vec<ClientId> = silent.map(|(name, _)| *name).collect();
        for name in silent {
            self.remove(name);
        }
    }

    /// Whether half a request or more waits, as machines have said last.
    pub(super) fn anything_waits(&self) -> bool {
        self.anything_waits_of(|_| true)
    }

    /// The same, as they have said since then.
    pub(super) fn anything_waits_since(&self, since: Instant) -> bool {
        self.anything_waits_of(|machine| machine.heard >= since)
    }

    fn anything_waits_of(&self, counts: impl Fn(&Machine) -> bool) -> bool {
        let loads = self.machines.values().filter(|machine| counts(machine)).map(|machine| machine.load);
        loads.fold(0, u64::saturating_add) >= BUSY
    }

    /// How much has waited since the last time, in thousandths of a request times microseconds; for each identity no
    /// more than so much. What it had more than that counts the next time, if it waited in the last `kept`.
    pub(super) fn take_waited(&mut self, now: Instant, kept: Duration, most: impl Fn(IdentityId) -> u64) -> u64 {
        let (mut sum, mut left, mut of) = (0_u64, 0, None);
        for (name, machine) in &mut self.machines {
            machine.pass(now);
            if of.replace(name.identity) != Some(name.identity) {
                left = most(name.identity);
            }
            let counted = machine.waited.min(left);
            machine.waited = (machine.waited - counted).min(machine.load.saturating_mul(kept.0));
            left -= counted;
            sum = sum.saturating_add(counted);
        }
        sum
    }

    /// An instance begins: what waits has waited for no other.
    pub(super) fn begin(&mut self) {
        for oldest in self.machines.values_mut().filter_map(|machine| machine.oldest.as_mut()) {
            oldest.served = None;
        }
    }

    /// Robust 5: looks after all that was named so long ago, when so many requests have been served. Whether there is
    /// any.
    pub(super) fn look_after(&mut self, now: Instant, named: Duration, served: u64) -> bool {
        let oldest = self.machines.values_mut().filter_map(|machine| machine.oldest.as_mut());
        let waits = oldest.filter(|oldest| now - oldest.named >= named);
        waits.map(|oldest| oldest.served.get_or_insert(served)).count() > 0
    }

    /// The same: whether anything is not `done` that was looked after when no more than so many had been served.
    pub(super) fn waits_since(&self, served: u64, done: impl Fn(ClientId, Timestamp) -> bool) -> bool {
        let oldest = self.machines.values().filter_map(|machine| machine.oldest);
        let mut before = oldest.filter(|oldest| oldest.served.is_some_and(|at| at <= served));
        before.any(|oldest| !done(oldest.client, oldest.timestamp))
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self) {
        assert!(self.machines.len() <= MACHINES_MAX, "at most MACHINES_MAX");
        self.shares.check_invariants(self.machines.len(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration(100);

    fn machine(identity: u32, session: u32) -> ClientId {
        ClientId { identity: IdentityId(identity), session }
    }

    fn said(machine: ClientId, load: u32, timestamp: u64) -> Feedback {
        let oldest = (load > 0).then_some((machine.session, Timestamp(timestamp)));
        Feedback { machine, load, oldest }
    }

    #[test]
    fn what_waits_is_what_the_machines_last_said() {
        let mut machines = Machines::default();
        let take = |machines: &mut Machines, now| machines.take_waited(Instant(now), SOON, |_| u64::MAX);
        machines.hear(Instant(0), &said(machine(1, 0), 10, 1));
        machines.hear(Instant(100), &said(machine(2, 0), 5, 1));
        assert_eq!(take(&mut machines, 200), 10 * 200 + 5 * 100);
        machines.hear(Instant(300), &said(machine(1, 0), 0, 0));
        assert_eq!(take(&mut machines, 400), 10 * 100 + 5 * 200);
        machines.forget_silent(2);
        machines.hear(Instant(400), &said(machine(1, 0), 10, 1));
        (0..2).for_each(|_| machines.forget_silent(2));
        assert_eq!(take(&mut machines, 500), 10 * 100, "the second has said nothing for too long");
        machines.check_invariants();
    }

    #[test]
    fn what_an_identity_has_said_beyond_its_most_counts_later() {
        let mut machines = Machines::default();
        let two = [said(machine(1, 0), 10, 1), said(machine(1, 7), 10, 1), said(machine(2, 0), 3, 1)];
        assert!(two.iter().all(|said| machines.hear(Instant(0), said)));
        let mut take = |now, most: [u64; 2]| machines.take_waited(Instant(now), SOON, |of| most[of.0 as usize - 1]);
        assert_eq!(take(100, [1_500, 900]), 1_500 + 300, "both machines together");
        assert_eq!(take(100, [900, 900]), 500);
        assert_eq!(take(100, [900, 900]), 0, "nothing counts twice");
        assert_eq!(take(1_000, [0, 0]), 0, "nothing of it was served");
        assert_eq!(take(1_000, [9_000, 9_000]), 2 * 1_000 + 300, "and then what waited of late");
    }

    #[test]
    fn what_has_waited_longest_counts_from_when_it_is_first_looked_after() {
        let mut machines = Machines::default();
        let first = said(machine(1, 0), 10, 7);
        machines.hear(Instant(0), &first);
        machines.hear(Instant(50), &said(machine(2, 0), 10, 9));
        let waits = |machines: &Machines, served, done| machines.waits_since(served, |_, at| at.0 == done);
        assert!(!machines.look_after(Instant(99), SOON, 1_000), "it is under way");
        assert!(machines.look_after(Instant(100), SOON, 1_000));
        assert_eq!([waits(&machines, 999, 0), waits(&machines, 1_000, 0)], [false, true]);
        machines.hear(Instant(120), &first);
        assert!(machines.look_after(Instant(150), SOON, 1_500));
        assert!(waits(&machines, 1_000, 0), "to say it again changes nothing");
        assert!(!waits(&machines, 1_000, 7), "it was served, and its machine does not know yet");
        assert!(waits(&machines, 1_500, 7), "the other has waited as long by now, whoever was named before it");
        machines.begin();
        assert!(!waits(&machines, u64::MAX, 0), "another instance");
        assert!(machines.look_after(Instant(200), SOON, 3_000));
        machines.hear(Instant(201), &said(machine(1, 0), 10, 8));
        assert!(!machines.waits_since(3_000, |client, _| client == machine(2, 0)), "that is another request");
        machines.check_invariants();
    }

    #[test]
    fn an_identity_with_many_machines_costs_others_nothing() {
        let mut machines = Machines::default();
        for session in 0..MACHINES_MAX as u32 {
            assert!(machines.hear(Instant(0), &said(machine(1, session), u32::MAX, 1)));
        }
        assert!(machines.hear(Instant(0), &said(machine(1, u32::MAX), 1, 1)), "in the place of one of its own");
        assert!(machines.hear(Instant(0), &said(machine(0, 3), 1, 1)));
        assert!(machines.machines.contains_key(&machine(0, 3)));
        machines.check_invariants();
    }

    #[test]
    fn nobody_gives_way_to_whoever_has_as_little() {
        let mut machines = Machines::default();
        for identity in 0..MACHINES_MAX as u32 {
            assert!(machines.hear(Instant(0), &said(machine(identity, 0), 1, 1)));
        }
        assert!(!machines.hear(Instant(0), &said(machine(u32::MAX >> 2, 0), 1, 1)));
        machines.check_invariants();
    }
}
