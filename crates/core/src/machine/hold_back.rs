//! What must not leave before it is durable: the contract of [`Effect::Persist`](super::Effect::Persist), for every
//! host that has a log.
//!
//! The host counts the records that it hands to its log, in whatever unit: a **position** is a count that never goes
//! down while the host runs. The log says up to which position it is durable, and that only goes up.
//!
//! 1. A `Persist` is handed to the log, and [`HoldBack::wait_for`] is told the log's position after it.
//! 2. An `Append` is handed to the log, and that is all. It takes a position, so whoever waits for a later record
//!    waits for it as well.
//! 3. Before anything leaves, a message or a notice, [`HoldBack::is_open`] is asked, in the order of the effects. If it
//!    is not, [`HoldBack::hold`] takes what was to leave. What may leave at once is not moved through here: messages
//!    are large, and many of them find it open.
//! 4. When [`HoldBack::barrier`] is above what the log was last asked to make durable, the log is asked.
//! 5. When the log has got further, [`HoldBack::durable_to`] is told, and [`HoldBack::release`] gives what may leave
//!    now, one after the other.
//!
//! Timers are no part of it: nobody but the machine itself hears of them.
//!
//! **Order.** What came first leaves first. So as long as anything is held, what comes is held behind it, even if the
//! log has meanwhile got past the barrier: it may be durable before anybody has called [`HoldBack::release`].
//!
//! **Notices** wait as messages do. What a replica tells its host may rest on its own vote, which a crash undoes until
//! it is durable; and the host acts on it where no replica can undo anything.
//!
//! **A write that fails** is never durable, and neither is what comes after it. The host stops as in a crash: it asks
//! the log no more, and drops this with all that it holds. Nobody has heard any of that, so the machine may come
//! back from the log as if it had never been said. A host that sees, as a simulator does, what a crash has left on the
//! disk can still tell [`HoldBack::durable_to`] and learn what has become true.

use super::{Destination, Machine};
use alloc::collections::VecDeque;
use core::fmt::Debug;

/// What leaves a machine, and therefore waits.
#[derive(Debug)]
pub enum Leaving<M: Machine> {
    /// A message to others.
    Message(Destination, M::Outgoing),
    /// What the host or the application is told.
    Notice(M::Notice),
}

/// See the [module](self).
///
/// It grows by what one step makes after another while the log is not durable: the host bounds it by giving the machine
/// no more inputs.
#[derive(Debug)]
pub struct HoldBack<M: Machine> {
    /// What waits, oldest first, and for which position.
    held: VecDeque<(u64, Leaving<M>)>,
    /// The position that whatever comes now waits for.
    barrier: u64,
    /// The position up to which the log is durable, as far as was told.
    durable: u64,
}

impl<M: Machine> Default for HoldBack<M> {
    fn default() -> Self {
        Self { held: VecDeque::new(), barrier: 0, durable: 0 }
    }
}

impl<M: Machine> HoldBack<M> {
    /// From now on, what comes waits until the log is durable up to this position.
    ///
    /// # Panics
    /// If it is before an earlier one: the log would have forgotten what it was handed.
    pub fn wait_for(&mut self, position: u64) {
        assert!(position >= self.barrier, "the log's position went from {} back to {position}", self.barrier);
        self.barrier = position;
    }

    /// The position that the log must reach before anything new leaves.
    pub const fn barrier(&self) -> u64 {
        self.barrier
    }

    /// Whether what comes now would wait for the log, as far as is known here.
    pub const fn waits(&self) -> bool {
        self.barrier > self.durable
    }

    /// Whether what comes now may leave at once.
    #[must_use = "what may not leave is to be held"]
    pub fn is_open(&self) -> bool {
        self.held.is_empty() && !self.waits()
    }

    /// Holds what may not leave yet.
    pub fn hold(&mut self, leaving: Leaving<M>) {
        assert!(!self.is_open(), "only what may not leave is held");
        self.held.push_back((self.barrier, leaving));
    }

    /// The log is durable up to this position. What was said once stays true.
    pub fn durable_to(&mut self, position: u64) {
        self.durable = self.durable.max(position);
    }

    /// The next of those that were held and may leave.
    #[must_use = "what comes back is to leave"]
    pub fn release(&mut self) -> Option<Leaving<M>> {
        let (position, _) = self.held.front()?;
        if *position > self.durable {
            return None;
        }
        self.held.pop_front().map(|(_, leaving)| leaving)
    }

    /// How many are held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Effect, Input, Outbox};
    use crate::time::Instant;
    use alloc::vec::Vec;

    /// A machine that says numbers.
    #[derive(Debug)]
    struct Speaker;

    impl Machine for Speaker {
        type Incoming = ();
        type Outgoing = u64;
        type Timer = ();
        type Command = ();
        type Notice = u64;
        type Record = ();

        fn step(&mut self, _now: Instant, _input: Input<Self>, _out: &mut Outbox<Self>) {}
    }

    const fn say(number: u64) -> Effect<Speaker> {
        Effect::Send(Destination::Replicas, number)
    }

    /// A host whose log counts records.
    #[derive(Default)]
    struct Host {
        hold_back: HoldBack<Speaker>,
        position: u64,
        left: Vec<u64>,
    }

    impl Host {
        fn carry_out(&mut self, effect: Effect<Speaker>) {
            let leaving = match effect {
                Effect::Persist(()) => {
                    self.position += 1;
                    return self.hold_back.wait_for(self.position);
                }
                Effect::Append(()) => return self.position += 1,
                Effect::Send(to, number) => Leaving::Message(to, number),
                Effect::Notify(number) => Leaving::Notice(number),
                Effect::SetTimer(..) | Effect::CancelTimer(()) => return,
            };
            if self.hold_back.is_open() { self.leave(&leaving) } else { self.hold_back.hold(leaving) }
        }

        fn leave(&mut self, leaving: &Leaving<Speaker>) {
            let (Leaving::Message(_, number) | Leaving::Notice(number)) = leaving;
            self.left.push(*number);
        }

        fn sync(&mut self, position: u64) {
            self.hold_back.durable_to(position);
            while let Some(leaving) = self.hold_back.release() {
                self.leave(&leaving);
            }
        }
    }

    fn host(effects: impl IntoIterator<Item = Effect<Speaker>>) -> Host {
        let mut host = Host::default();
        effects.into_iter().for_each(|effect| host.carry_out(effect));
        host
    }

    #[test]
    fn what_nothing_precedes_leaves_at_once() {
        let host = host([say(1), Effect::Notify(2), Effect::Append(()), say(3)]);
        assert_eq!(host.left, [1, 2, 3]);
    }

    #[test]
    fn a_record_holds_what_follows_until_it_is_durable() {
        let mut host = host([say(1), Effect::Persist(()), say(2), Effect::Notify(3)]);
        assert_eq!(host.left, [1]);
        assert_eq!((host.hold_back.len(), host.hold_back.barrier()), (2, 1));
        host.sync(1);
        assert_eq!(host.left, [1, 2, 3]);
        host.carry_out(say(4));
        assert_eq!(host.left, [1, 2, 3, 4]);
    }

    #[test]
    fn each_waits_for_the_records_before_it_only() {
        let mut host = host([Effect::Persist(()), say(1), Effect::Persist(()), say(2)]);
        host.sync(1);
        assert_eq!(host.left, [1]);
        assert!(host.hold_back.waits());
        host.sync(2);
        assert_eq!(host.left, [1, 2]);
    }

    #[test]
    fn an_appended_record_is_waited_for_with_the_next_one_and_not_before() {
        let mut host = host([Effect::Persist(()), Effect::Append(()), say(1), Effect::Persist(()), say(2)]);
        host.sync(1);
        assert_eq!(host.left, [1], "the one behind the first does not wait for the appended one");
        host.sync(2);
        assert_eq!(host.left, [1], "the last record is not durable with the one before it");
        host.sync(3);
        assert_eq!(host.left, [1, 2]);
    }

    #[test]
    fn nothing_overtakes_what_is_held_although_the_log_is_durable() {
        let mut host = host([Effect::Persist(()), say(1)]);
        host.hold_back.durable_to(1);
        assert!(!host.hold_back.waits());
        host.carry_out(say(2));
        assert_eq!(host.left, []);
        host.sync(1);
        assert_eq!(host.left, [1, 2]);
    }

    #[test]
    fn a_write_that_fails_lets_nothing_out_that_rests_on_it() {
        let mut host = host([Effect::Persist(()), say(1), Effect::Persist(()), say(2), Effect::Notify(3)]);
        host.sync(1);
        // The second write fails: the log never gets there, however often it says where it is.
        host.sync(1);
        host.carry_out(say(4));
        assert_eq!((&host.left[..], host.hold_back.len()), (&[1][..], 3));
    }

    #[test]
    #[should_panic(expected = "the log's position went from 2 back to 1")]
    fn a_log_that_forgets_is_found_out() {
        let mut hold_back = HoldBack::<Speaker>::default();
        hold_back.wait_for(2);
        hold_back.wait_for(1);
    }

    /// Any effects, with syncs in between that cover any part of what was written.
    #[test]
    fn order_is_kept_and_nothing_passes_a_record_that_is_not_durable() {
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..2_000 {
            let mut host = Host::default();
            let (mut durable, mut said, mut barriers) = (0, 0, Vec::new());
            for _ in 0..below(40) {
                match below(6) {
                    0 => host.carry_out(Effect::Persist(())),
                    1 => host.carry_out(Effect::Append(())),
                    kind @ 2..=4 => {
                        barriers.push(host.hold_back.barrier());
                        host.carry_out(if kind == 2 { Effect::Notify(said) } else { say(said) });
                        said += 1;
                    }
                    _ => {
                        durable += below(host.position - durable + 1);
                        host.sync(durable);
                    }
                }
                assert!(host.left.iter().copied().eq(0..host.left.len() as u64), "in order: {:?}", host.left);
                assert!(barriers[..host.left.len()].iter().all(|barrier| *barrier <= durable));
                let waits = barriers.get(host.left.len()).is_none_or(|barrier| *barrier > durable);
                assert!(waits, "what may leave has left: {:?} of {said}", host.left);
            }
            host.sync(host.position);
            assert!(host.hold_back.is_empty());
            assert_eq!(host.left.len() as u64, said);
        }
    }
}
