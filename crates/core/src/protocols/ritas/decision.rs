//! DECIDE: how an instance ends that others still need.
//!
//! # What it is for
//! Whoever has decided could drop the instance, but others may wait for what only it can say (ritas-F3). So decisions
//! are said, and there is a moment at which nobody needs the instance any more.
//!
//! # Steps
//! * Decide 1. Who decides says DECIDE with the decision, once.
//! * Decide 2. Who has f + 1 DECIDEs with one decision decides so, too.
//! * Decide 3. Who has 2f + 1 drops the instance, and keeps the decision for those who ask.
//!
//! # Why it is safe
//! One of f + 1 is correct and has decided: by the layer's own agreement, or because of f + 1 others. The first correct
//! one did by the layer's own, and that agrees.
//!
//! # Why all decide
//! Of 2f + 1, f + 1 are correct: they say DECIDE to all, and say it again to those who have not heard it, also after
//! they have dropped the instance. So all decide without anything else of it. (2f + 1 reads
//! [`strong`](crate::replicas::Replicas::strong) here, as in [`super::reliable_broadcast`].)
//!
//! # Cost
//! n(n − 1) messages for each instance, where running on for a round takes 3n reliable broadcasts.

use super::message::{Heard, Statement, Value};
use super::path::Path;
use super::scope::Scope;
use super::tally::Tally;
use crate::ids::ReplicaId;
use crate::rejection::Rejection;

/// Who has decided what in one instance.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    decided: Tally<Value>,
}

impl Decision {
    pub(super) const fn new() -> Self {
        Self { decided: Tally::new() }
    }

    /// Decide 1. The layer has decided.
    pub(super) fn decide(&mut self, scope: &mut Scope<'_>, at: Path, value: Value) {
        if let Some(known) = self.own(scope.me) {
            assert_eq!(*known, value, "{at:?} is decided once");
            return;
        }
        scope.step("Decide 1");
        self.decided.hear(scope.me, value.clone()).expect("it was not decided");
        scope.say(at, Statement::Decide(value));
    }

    /// Decide 2. What it is decided as since, if it is by this.
    ///
    /// # Errors
    /// Why it does not count.
    pub(super) fn on_decide(
        &mut self,
        scope: &mut Scope<'_>,
        at: Path,
        from: ReplicaId,
        value: Value,
    ) -> Result<Option<Value>, Rejection> {
        self.decided.hear(from, value)?;
        if self.own(scope.me).is_some() {
            return Ok(None);
        }
        let adopted = self.decided.said_by(scope.replicas.weak()).cloned();
        if let Some(value) = &adopted {
            scope.step("Decide 2");
            self.decide(scope, at, value.clone());
        }
        Ok(adopted)
    }

    /// Decide 3. Whether nobody needs the instance any more.
    pub(super) fn is_over(&self, scope: &Scope<'_>) -> bool {
        self.decided.said_by(scope.replicas.strong()).is_some()
    }

    /// What this process has decided.
    pub(super) fn own(&self, me: ReplicaId) -> Option<&Value> {
        self.decided.said(me)
    }

    /// What was heard of one process.
    pub(super) fn heard(&self, of: ReplicaId, heard: &mut Heard) {
        if self.decided.said(of).is_some() {
            heard.add(Heard::DECIDE);
        }
    }

    /// This process has said so before it crashed.
    pub(super) fn replay(&mut self, me: ReplicaId, value: Value) {
        self.decided.replay(me, value);
    }
}
