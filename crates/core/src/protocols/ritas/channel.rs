//! The reliable channel: what a correct process has said is heard by every correct process.
//!
//! # What it is for
//! The links lose frames: a queue is full, a connection breaks, a process was down, or it was not so far and dropped
//! what it heard. Everything above needs every statement to arrive at some time.
//!
//! # Steps
//! * Channel 1. On a tick, as long as there are instances that are not finished, a process sends each other one a
//!   SUMMARY: what it has heard of that one about them.
//! * Channel 2. Who gets a SUMMARY says again what it has said about instances of its own table, and what is not in the
//!   SUMMARY; of atomic broadcast, what is near where the author of the SUMMARY stands. Statements are repeated, never
//!   made again.
//!
//! # Why it is enough
//! A correct process keeps what it has said until 2f + 1 have decided, and the decision after that. So whatever an
//! unfinished instance of another one lacks of it is said again, until it is heard. The clock decides when something is
//! said once more, and nothing else: no statement says anything different because of it.

use super::atomic_broadcast::{HEARD, ROUNDS_TOLD};
use super::message::{Heard, Summary};
use super::path::{Id, Layer, Path};
use super::scope::Scope;
use super::stack::{Instance, Stack};
use crate::ids::ReplicaId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

impl Stack {
    /// Channel 1. What is to be sent to each other process; nothing if all is finished, but `anyway`.
    pub fn tick(&mut self, scope: &mut Scope<'_>, anyway: bool) -> Vec<(ReplicaId, Summary)> {
        let mut waits = anyway;
        for (at, instance) in &mut self.instances {
            let broadcast = match instance {
                Instance::Echo(echo) => Some(&mut echo.echoes),
                Instance::Reliable(reliable) => Some(&mut reliable.echoes),
                Instance::Atomic(atomic) => {
                    waits |= atomic.waits();
                    None
                }
                other => {
                    waits |= other.decision().is_some_and(|decision| !decision.is_over(scope));
                    None
                }
            };
            if let Some(echoes) = broadcast {
                echoes.tick(scope, *at);
                waits |= !echoes.is_delivered();
            }
        }
        if !waits {
            return Vec::new();
        }
        scope.step("Channel 1");
        let root = Path::atomic_broadcast();
        let (atomic, round) = (self.atomic(root), self.needs_from(root));
        let first = |sender| atomic.map_or(0, |atomic| atomic.standing().first_of(sender));
        let messages: Vec<u64> = scope.replicas.iter().map(first).collect();
        let others = scope.replicas.iter().filter(|replica| *replica != scope.me);
        others.map(|to| (to, Summary { heard: self.heard(to), round, messages: messages.clone() })).collect()
    }

    /// Channel 1. What was heard of one process.
    fn heard(&self, of: ReplicaId) -> Vec<(Path, Heard)> {
        let heard = self.instances.iter().map(|(at, instance)| {
            let mut heard = Heard::default();
            match instance {
                Instance::Echo(echo) => echo.echoes.heard(of, &mut heard),
                Instance::Reliable(reliable) => reliable.heard(of, &mut heard),
                Instance::CommonCoinRound(round) => round.heard(of, &mut heard),
                other => {
                    if let Some(decision) = other.decision() {
                        decision.heard(of, &mut heard);
                    }
                }
            }
            (*at, heard)
        });
        heard.filter(|(_, heard)| *heard != Heard::default()).collect()
    }

    /// Channel 2. Says at most so many bytes of values, but for the last one. How many it were.
    pub fn on_summary(&self, scope: &mut Scope<'_>, from: ReplicaId, summary: &Summary, room: usize) -> usize {
        scope.step("Channel 2");
        let mut bytes = 0;
        let heard: BTreeMap<Path, Heard> = summary.heard.iter().copied().collect();
        for (at, instance) in &self.instances {
            if !is_of_use(scope, *at, summary) {
                continue;
            }
            let known = heard.get(at).copied().unwrap_or_default();
            for statement in instance.own(scope.me).into_iter().filter(|statement| !known.has(statement)) {
                if bytes >= room {
                    return bytes;
                }
                bytes += statement.value_bytes();
                scope.tell(from, *at, statement);
            }
        }
        bytes
    }
}

/// Whether the author of a summary lets anything in about an instance: not of rounds that are over there, of messages
/// that it has delivered, or of what is too far ahead.
fn is_of_use(scope: &Scope<'_>, at: Path, summary: &Summary) -> bool {
    let is_within = |number: u64, first: u64, most: u64| number.checked_sub(first).is_some_and(|ahead| ahead < most);
    let of_round = at.number(Layer::Round).is_none_or(|round| is_within(round, summary.round, ROUNDS_TOLD));
    let first = |id: Id| summary.messages.get(usize::from(id.sender.0)).copied().unwrap_or_default();
    of_round && at.message(&scope.replicas).is_none_or(|id| is_within(id.number, first(id), HEARD))
}
