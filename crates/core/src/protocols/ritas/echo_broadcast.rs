//! Echo broadcast: no two correct processes deliver different values of one owner, but some may deliver none.
//!
//! # Steps
//! * EB 1. The owner sends INITIAL with its value.
//! * EB 2. Whoever has the INITIAL, from its owner and nobody else (ritas-F11), sends ECHO with the value's word, once.
//! * EB 3. Who has ⌊(n + f) / 2⌋ + 1 ECHOs of a word delivers its value, once.
//!
//! # Why it is safe
//! ⌊(n + f) / 2⌋ + 1 is [`strong`](crate::replicas::Replicas::strong): two such sets share a correct process, and that
//! one says ECHO once. The thesis prints 2f + 1, and ⌈(n + f) / 2⌉ elsewhere; both are too few for some n (ritas-F1).
//!
//! # Values by name
//! ECHO names a long value by its digest. Of a strong set that says ECHO, strong − f ≥ f + 1 are correct and had the
//! INITIAL before: who lacks the value asks all that said the word, and checks what comes by the digest. (The thesis
//! repeats the value in every ECHO: [`Scope::repeats`].)
//!
//! # Cost
//! (n − 1)(n + 1) messages, two message delays.

use super::message::{Heard, Statement, Value, Word};
use super::path::Path;
use super::scope::Scope;
use super::tally::Tally;
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use crate::replicas::ReplicaSet;

/// The value of one owner, and who has seen it. Reliable broadcast begins the same way, and goes on.
#[derive(Clone, Debug)]
pub(super) struct Echoes {
    owner: ReplicaId,
    /// The owner's INITIAL, and its name.
    initial: Option<(Word, Value)>,
    /// What was fetched, because it is not the INITIAL, or there is none.
    fetched: Option<(Word, Value)>,
    /// What ECHO was said with.
    said: Tally<Word>,
    /// What was asked for since the last tick.
    asked: Option<Word>,
    /// To whom a value was sent since then: who asks once more waits for the next.
    served: ReplicaSet,
}

impl Echoes {
    pub(super) const fn new(owner: ReplicaId) -> Self {
        Self { owner, initial: None, fetched: None, said: Tally::new(), asked: None, served: ReplicaSet::NOBODY }
    }

    /// EB 1. An owner that has said something else before, as its log knows, says that.
    pub(super) fn broadcast(&mut self, scope: &mut Scope<'_>, at: Path, value: Value) {
        assert_eq!(self.owner, scope.me, "nobody broadcasts for others");
        if self.initial.is_none() {
            self.initial = Some((Word::of(&value, scope.repeats), value.clone()));
            scope.say(at, Statement::Initial(value));
        }
    }

    /// EB 2.
    ///
    /// # Errors
    /// Why it does not count.
    pub(super) fn on_initial(&mut self, scope: &Scope<'_>, from: ReplicaId, value: Value) -> Result<(), Rejection> {
        if from != self.owner {
            return Err(Rejection::WrongSender);
        }
        if let Some((_, known)) = &self.initial {
            return Err(if *known == value { Rejection::Duplicate } else { Rejection::Equivocation });
        }
        self.initial = Some((Word::of(&value, scope.repeats), value));
        Ok(())
    }

    /// EB 2.
    ///
    /// # Errors
    /// Why it does not count.
    pub(super) fn on_echo(&mut self, from: ReplicaId, word: Word) -> Result<(), Rejection> {
        self.said.hear(from, word)
    }

    /// EB 2. Says ECHO, if this process has not yet.
    pub(super) fn echo(&mut self, scope: &mut Scope<'_>, at: Path, word: Word) {
        if self.said.hear(scope.me, word.clone()).is_ok() {
            scope.say(at, Statement::Echo(word));
        }
    }

    /// EB 2. What this process has to say ECHO with, because it has the INITIAL and has not said so.
    pub(super) fn due(&self, scope: &Scope<'_>) -> Option<Word> {
        let (word, _) = self.initial.as_ref().filter(|_| self.said.said(scope.me).is_none())?;
        Some(word.clone())
    }

    /// The word that so many have said ECHO with.
    pub(super) fn echoed(&self, enough: usize) -> Option<&Word> {
        self.said.said_by(enough)
    }

    /// The value with this name, if it is here.
    pub(super) fn value(&self, word: &Word) -> Option<Value> {
        let known = self.initial.iter().chain(&self.fetched).find(|(known, _)| known == word);
        known.map(|(_, value)| value).or_else(|| word.whole()).cloned()
    }

    /// Asks those for a value who said its name: once until the next tick.
    pub(super) fn want(&mut self, scope: &mut Scope<'_>, at: Path, word: &Word) {
        if self.asked.as_ref() == Some(word) {
            return;
        }
        self.asked = Some(word.clone());
        let (me, speakers) = (scope.me, self.said.speakers(word));
        for replica in scope.replicas.iter().filter(|id| *id != me && speakers.contains(*id)) {
            scope.tell(replica, at, Statement::Want(word.clone()));
        }
    }

    /// Somebody needs the value.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) fn on_want(
        &mut self,
        scope: &mut Scope<'_>,
        at: Path,
        from: ReplicaId,
        word: &Word,
    ) -> Result<(), Rejection> {
        if self.served.contains(from) {
            return Err(Rejection::Duplicate);
        }
        if let Some(value) = self.value(word) {
            self.served.insert(from);
            scope.tell(from, at, Statement::Body(value));
        }
        Ok(())
    }

    /// A value comes that was asked for.
    ///
    /// # Errors
    /// Why it is of no use.
    pub(super) fn on_body(&mut self, wanted: Option<&Word>, value: Value) -> Result<(), Rejection> {
        match wanted {
            None => Err(Rejection::Unsolicited),
            Some(word) if !word.names(&value) => Err(Rejection::DigestMismatch),
            Some(word) => {
                self.fetched = Some((word.clone(), value));
                Ok(())
            }
        }
    }

    /// A tick of the channel: what was asked may be asked again, and answered again.
    pub(super) fn tick(&mut self) {
        (self.asked, self.served) = (None, ReplicaSet::NOBODY);
    }

    /// What was heard of one process.
    pub(super) fn heard(&self, of: ReplicaId, heard: &mut Heard) {
        if self.said.said(of).is_some() {
            heard.add(Heard::ECHO);
        }
        if of == self.owner && self.initial.is_some() {
            heard.add(Heard::INITIAL);
        }
    }

    /// What this process has said.
    pub(super) fn own(&self, me: ReplicaId) -> impl Iterator<Item = Statement> + '_ {
        let initial = self.initial.iter().filter(move |_| self.owner == me);
        let initial = initial.map(|(_, value)| Statement::Initial(value.clone()));
        initial.chain(self.said.said(me).cloned().map(Statement::Echo))
    }

    /// This process has said so before it crashed.
    pub(super) fn replay(&mut self, scope: &Scope<'_>, statement: Statement) {
        match statement {
            Statement::Initial(value) => self.initial = Some((Word::of(&value, scope.repeats), value)),
            Statement::Echo(word) => self.said.hear(scope.me, word).expect("a process says ECHO once"),
            _ => unreachable!("an echo broadcast is INITIAL and ECHO"),
        }
    }
}

/// An instance of echo broadcast.
#[derive(Clone, Debug)]
pub(super) struct EchoBroadcast {
    pub(super) echoes: Echoes,
    delivered: bool,
}

impl EchoBroadcast {
    pub(super) const fn new(owner: ReplicaId) -> Self {
        Self { echoes: Echoes::new(owner), delivered: false }
    }

    /// EB 2 and 3: what follows from what is known. The value, when it is delivered.
    pub(super) fn advance(&mut self, scope: &mut Scope<'_>, at: Path) -> Option<Value> {
        if let Some(word) = self.echoes.due(scope) {
            scope.step("EB 2");
            self.echoes.echo(scope, at, word);
        }
        let word = self.wanted_word(scope)?.clone();
        let value = self.echoes.value(&word);
        match value {
            Some(value) => {
                scope.step("EB 3");
                self.delivered = true;
                Some(value)
            }
            None => {
                self.echoes.want(scope, at, &word);
                None
            }
        }
    }

    fn wanted_word(&self, scope: &Scope<'_>) -> Option<&Word> {
        self.echoes.echoed(scope.replicas.strong()).filter(|_| !self.delivered)
    }

    /// The value that it could deliver if it were here.
    pub(super) fn wanted(&self, scope: &Scope<'_>) -> Option<&Word> {
        self.wanted_word(scope).filter(|word| self.echoes.value(word).is_none())
    }

    /// Whether it is done here.
    pub(super) const fn is_delivered(&self) -> bool {
        self.delivered
    }
}
