//! The machine: what the simulator and the runtime drive.
//!
//! One input, one entry point, one **ordered** list of effects. The order is the contract: whatever comes after an
//! [`Effect::Persist`] must not leave before that record is durable. [`hold_back`] keeps that contract for every host
//! that has a log.

pub mod hold_back;
mod steps;

pub use steps::{Step, StepsTaken};

use crate::ids::{ClientId, PublicKey, ReplicaId};
use crate::time::Instant;
use alloc::vec::Vec;
use core::fmt::Debug;

/// Whom a message goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One replica. Never the sender itself: a machine handles its own votes inside the step.
    Replica(ReplicaId),
    /// Every replica but the sender (for a client: every replica).
    Replicas,
    /// One client that the cluster file names.
    Client(ClientId),
    /// One that it does not name.
    Key(PublicKey),
}

/// A deterministic state machine with typed inputs and ordered effects.
pub trait Machine: Sized {
    /// What the boundary hands in after it verified it. See [`crate::auth::Verified`].
    type Incoming: Debug;
    /// What it asks the host to send; the host seals it for each receiver.
    type Outgoing: Debug;
    /// Named timers; setting one again moves it.
    type Timer: Copy + Ord + Debug;
    /// What the host or the application asks for.
    type Command: Debug;
    /// What it tells the host or the application.
    type Notice: Debug;
    /// What must be durable.
    type Record: Debug;

    /// Handles one input. `now` never decreases.
    fn step(&mut self, now: Instant, input: Input<Self>, out: &mut Outbox<Self>);
}

/// One thing that happened.
#[derive(Debug)]
pub enum Input<M: Machine> {
    /// The first input, exactly once, after construction or recovery.
    Start,
    /// A message that the boundary verified.
    Message(M::Incoming),
    /// A timer that was set has come due.
    Timer(M::Timer),
    /// A request of the host or the application.
    Command(M::Command),
    /// The host has handed over all that was waiting. Batches form here, so at low load nothing waits.
    PassEnd,
}

/// One thing to do. The host carries effects out in order.
#[derive(Debug)]
pub enum Effect<M: Machine> {
    /// Append this record to the log; nothing after it may leave before it is durable: see [`hold_back`].
    Persist(M::Record),
    /// Append this record to the log. Nothing waits for it; it is durable, at the latest, with the next one that
    /// something waits for.
    Append(M::Record),
    /// Seal and send.
    Send(Destination, M::Outgoing),
    /// Arm a timer, replacing an earlier setting of the same name.
    SetTimer(M::Timer, Instant),
    /// Disarm a timer.
    CancelTimer(M::Timer),
    /// Tell the host or the application.
    Notify(M::Notice),
}

/// The ordered list of effects of a step. Reused between steps.
#[derive(Debug)]
pub struct Outbox<M: Machine> {
    effects: Vec<Effect<M>>,
    steps: StepsTaken,
}

impl<M: Machine> Default for Outbox<M> {
    fn default() -> Self {
        Self { effects: Vec::new(), steps: StepsTaken::default() }
    }
}

impl<M: Machine> Outbox<M> {
    /// An empty outbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends any effect.
    pub fn push(&mut self, effect: Effect<M>) {
        self.effects.push(effect);
    }

    /// Appends [`Effect::Persist`].
    pub fn persist(&mut self, record: M::Record) {
        self.push(Effect::Persist(record));
    }

    /// Appends [`Effect::Append`].
    pub fn append(&mut self, record: M::Record) {
        self.push(Effect::Append(record));
    }

    /// Appends [`Effect::Send`].
    pub fn send(&mut self, to: Destination, message: M::Outgoing) {
        self.push(Effect::Send(to, message));
    }

    /// Appends [`Effect::SetTimer`].
    pub fn set_timer(&mut self, timer: M::Timer, at: Instant) {
        self.push(Effect::SetTimer(timer, at));
    }

    /// Appends [`Effect::CancelTimer`].
    pub fn cancel_timer(&mut self, timer: M::Timer) {
        self.push(Effect::CancelTimer(timer));
    }

    /// Appends [`Effect::Notify`].
    pub fn notify(&mut self, notice: M::Notice) {
        self.push(Effect::Notify(notice));
    }

    /// The machine takes a numbered step of its protocol.
    #[inline]
    pub fn step(&mut self, step: Step) {
        self.steps.step(step);
    }

    /// Where the steps go.
    pub(crate) const fn steps(&mut self) -> &mut StepsTaken {
        &mut self.steps
    }

    /// From now on the host wants to know the steps.
    pub fn listen_to_steps(&mut self) {
        self.steps.listen();
    }

    /// Takes the steps since the last time, oldest first: none for a host that does not listen.
    pub fn take_steps(&mut self) -> Vec<Step> {
        self.steps.take()
    }

    /// Takes all effects, oldest first, and leaves the outbox empty with its capacity kept.
    pub fn drain(&mut self) -> alloc::vec::Drain<'_, Effect<M>> {
        self.effects.drain(..)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }
}
