//! Reliable broadcast (Bracha): all correct processes deliver the same value of an owner, or none does.
//!
//! # Steps
//! * RB 1. The owner sends INITIAL with its value.
//! * RB 2. ECHO, once, with the word of: the owner's INITIAL; or ⌊(n + f) / 2⌋ + 1 ECHOs; or f + 1 READYs.
//! * RB 3. READY, once, with the word of: ⌊(n + f) / 2⌋ + 1 ECHOs; or f + 1 READYs.
//! * RB 4. Who has 2f + 1 READYs of a word, and its value, delivers it, once.
//!
//! # Why it is safe
//! The first correct READY of a word rests on a [`strong`](crate::replicas::Replicas::strong) set of ECHOs, since f + 1
//! READYs have a correct one among them. Two strong sets share a correct process, which says ECHO once: no two words
//! are READY at correct processes, and no two are delivered. Here 2f + 1 READYs are a strong set, too, which is more
//! where n is more than 3f + 1, and no more than the correct ones are.
//!
//! # Why all deliver if one does
//! A strong set of READYs has f + 1 correct ones at least. All correct processes hear these, say READY, and then all
//! hear n − f. The value is there: the first correct ECHO that rests on no INITIAL rests on a strong set of ECHOs,
//! and strong − f ≥ f + 1 of these are of correct processes that had the INITIAL. Any of them answers.
//!
//! What a process may forget when is a question to the layer above: an instance that is destroyed because its result
//! is no longer needed *here* leaves others without READYs that they wait for (ritas-F3).
//!
//! # Deviations
//! Thresholds for every n ≥ 3f + 1 (ritas-F1); INITIAL of nobody but the owner (ritas-F11); values by name, as in
//! [`super::echo_broadcast`].
//!
//! # Cost
//! (n − 1)(2n + 1) messages, three message delays.

use super::echo_broadcast::Echoes;
use super::message::{Heard, Statement, Value, Word};
use super::path::Path;
use super::scope::Scope;
use super::tally::Tally;
use crate::ids::ReplicaId;
use crate::rejection::Rejection;

/// An instance of reliable broadcast.
#[derive(Clone, Debug)]
pub(super) struct ReliableBroadcast {
    pub(super) echoes: Echoes,
    readies: Tally<Word>,
}

impl ReliableBroadcast {
    pub(super) const fn new(owner: ReplicaId) -> Self {
        Self { echoes: Echoes::new(owner), readies: Tally::new() }
    }

    /// RB 2 to 4. Another process says something.
    ///
    /// # Errors
    /// Why it does not count.
    pub(super) fn take(
        &mut self,
        scope: &mut Scope<'_>,
        at: Path,
        from: ReplicaId,
        statement: Statement,
    ) -> Result<(), Rejection> {
        match statement {
            Statement::Ready(word) if word.is_due(scope.repeats) => self.readies.hear(from, word),
            other => self.echoes.take(scope, at, from, other),
        }
    }

    /// RB 2 to 4: what follows from what is known. The value, when it is delivered.
    pub(super) fn advance(&mut self, scope: &mut Scope<'_>, at: Path) -> Option<Value> {
        let (strong, weak) = (scope.replicas.strong(), scope.replicas.weak());
        if let Some(word) = self.echoes.due(scope, at) {
            scope.step("RB 2");
            self.echoes.echo(scope, at, word);
        }
        if self.readies.said(scope.me).is_none()
            && scope.speaks_of(at)
            && let Some(word) = self.echoes.echoed(strong).or_else(|| self.readies.said_by(weak)).cloned()
        {
            self.echoes.echo(scope, at, word.clone());
            scope.step("RB 3");
            self.readies.hear(scope.me, word.clone()).expect("nothing was said");
            scope.say(at, Statement::Ready(word));
        }
        let word = self.readies.said_by(strong).cloned();
        self.echoes.deliver(scope, at, word, "RB 4")
    }

    /// What was heard of one process.
    pub(super) fn heard(&self, of: ReplicaId, heard: &mut Heard) {
        self.echoes.heard(of, heard);
        if self.readies.said(of).is_some() {
            heard.add(Heard::READY);
        }
    }

    /// What this process has said.
    pub(super) fn own(&self, me: ReplicaId) -> impl Iterator<Item = Statement> + '_ {
        self.echoes.own(me).chain(self.readies.said(me).cloned().map(Statement::Ready))
    }

    /// This process has said so before it crashed.
    pub(super) fn replay(&mut self, scope: &Scope<'_>, statement: Statement) {
        match statement {
            Statement::Ready(word) => self.readies.replay(scope.me, word),
            other => self.echoes.replay(scope, other),
        }
    }
}
