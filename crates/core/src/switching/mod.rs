//! How one instance follows another (design.md section 1).
//!
//! An [`Abortable`] instance executes and answers in its own pattern over an estate that it owns by value. `halt`
//! consumes it: a halted instance cannot execute, answer or vote again, because it no longer exists. What it leaves
//! behind is the only thing that the next instance can be opened with.

use crate::estate::Estate;
use crate::machine::Principal;
use crate::message::Message;
use crate::protocols::backup::{Backup, Surroundings};
use crate::protocols::pbft::Pbft;
use crate::replica::ReplicaTimer;
use crate::service::Service;

/// A protocol instance within a composition.
pub trait Abortable<S: Service> {
    /// The first input.
    fn start(&mut self, surroundings: &mut Surroundings<'_, S>);
    /// A message that the boundary verified.
    fn message(&mut self, surroundings: &mut Surroundings<'_, S>, from: Principal, message: Message);
    /// A timer came due.
    fn timer(&mut self, surroundings: &mut Surroundings<'_, S>, timer: ReplicaTimer);
    /// Everything that was waiting has been handed over.
    fn pass_end(&mut self, surroundings: &mut Surroundings<'_, S>);
    /// Service, client table and history.
    fn estate(&self) -> &Estate<S>;
    /// Stops for good.
    fn halt(self) -> Estate<S>;
}

impl<S: Service> Abortable<S> for Backup<Pbft, S> {
    fn start(&mut self, surroundings: &mut Surroundings<'_, S>) {
        Self::start(self, surroundings);
    }

    fn message(&mut self, surroundings: &mut Surroundings<'_, S>, from: Principal, message: Message) {
        Self::message(self, surroundings, from, message);
    }

    fn timer(&mut self, surroundings: &mut Surroundings<'_, S>, timer: ReplicaTimer) {
        match timer {
            ReplicaTimer::Pbft(timer) => self.order_timer(surroundings, timer),
            ReplicaTimer::Transfer => self.on_transfer_timeout(surroundings),
        }
    }

    fn pass_end(&mut self, surroundings: &mut Surroundings<'_, S>) {
        Self::pass_end(self, surroundings);
    }

    fn estate(&self) -> &Estate<S> {
        Self::estate(self)
    }

    fn halt(self) -> Estate<S> {
        Self::halt(self)
    }
}
