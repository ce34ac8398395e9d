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
use crate::machine::Step;
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
    /// The name of what enough have said and is not here: it was asked for.
    asked: Option<Word>,
    /// To whom a value was sent since the last tick: who asks once more waits for the next.
    served: ReplicaSet,
    delivered: bool,
}

impl Echoes {
    pub(super) const fn new(owner: ReplicaId) -> Self {
        Self {
            owner,
            initial: None,
            fetched: None,
            said: Tally::new(),
            asked: None,
            served: ReplicaSet::NOBODY,
            delivered: false,
        }
    }

    /// EB 1. An owner that has said something else before, as its log knows, says that.
    pub(super) fn broadcast(&mut self, scope: &mut Scope<'_>, at: Path, value: Value) {
        assert_eq!(self.owner, scope.me, "nobody broadcasts for others");
        if self.initial.is_none() && scope.speaks_of(at) {
            self.initial = Some((Word::of(&value, scope.repeats), value.clone()));
            scope.say(at, Statement::Initial(value));
        }
    }

    /// EB 2. Another process says something.
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
            Statement::Initial(value) => self.on_initial(scope, from, value),
            Statement::Echo(word) if word.is_due(scope.repeats) => self.said.hear(from, word),
            Statement::Want(word) => self.on_want(scope, at, from, &word),
            Statement::Body(value) => self.on_body(value),
            Statement::Echo(_)
            | Statement::Ready(_)
            | Statement::Decide(_)
            | Statement::Est(_)
            | Statement::Aux(_)
            | Statement::Conf(_)
            | Statement::Share(_) => Err(Rejection::Malformed),
        }
    }

    fn on_initial(&mut self, scope: &Scope<'_>, from: ReplicaId, value: Value) -> Result<(), Rejection> {
        if from != self.owner {
            return Err(Rejection::WrongSender);
        }
        if let Some((_, known)) = &self.initial {
            return Err(if *known == value { Rejection::Duplicate } else { Rejection::Equivocation });
        }
        self.initial = Some((Word::of(&value, scope.repeats), value));
        Ok(())
    }

    /// EB 2. Says ECHO, if this process has not yet.
    pub(super) fn echo(&mut self, scope: &mut Scope<'_>, at: Path, word: Word) {
        if !scope.speaks_of(at) || self.said.hear(scope.me, word.clone()).is_err() {
            return;
        }
        // The owner's log has it in INITIAL.
        if let (None, Some(value)) = (word.whole(), self.value(&word).filter(|_| self.owner != scope.me)) {
            scope.keep(at, value);
        }
        scope.say(at, Statement::Echo(word));
    }

    /// EB 2. What this process has to say ECHO with, because it has the INITIAL and has not said so.
    pub(super) fn due(&self, scope: &Scope<'_>, at: Path) -> Option<Word> {
        let is_due = self.said.said(scope.me).is_none() && scope.speaks_of(at);
        self.initial.as_ref().filter(|_| is_due).map(|(word, _)| word.clone())
    }

    /// The word that so many have said ECHO with.
    pub(super) fn echoed(&self, enough: usize) -> Option<&Word> {
        self.said.said_by(enough)
    }

    /// EB 3 and RB 4. Enough have said this word: its value, the first time that it is here. If it is not, it is asked
    /// for.
    pub(super) fn deliver(&mut self, scope: &mut Scope<'_>, at: Path, word: Option<Word>, step: Step) -> Option<Value> {
        let word = word.filter(|_| !self.delivered)?;
        let value = self.value(&word);
        if value.is_some() {
            scope.step(step);
            (self.delivered, self.asked) = (true, None);
        } else if self.asked.is_none() {
            self.ask(scope, at, word);
        }
        value
    }

    /// Whether it is done here.
    pub(super) const fn is_delivered(&self) -> bool {
        self.delivered
    }

    /// The value with this name, if it is here.
    fn value(&self, word: &Word) -> Option<Value> {
        let known = self.initial.iter().chain(&self.fetched).find(|(known, _)| known == word);
        known.map(|(_, value)| value).or_else(|| word.whole()).cloned()
    }

    /// Asks those for a value who said its name.
    fn ask(&mut self, scope: &mut Scope<'_>, at: Path, word: Word) {
        let (me, speakers) = (scope.me, self.said.speakers(&word));
        for replica in scope.replicas.iter().filter(|id| *id != me && speakers.contains(*id)) {
            scope.tell(replica, at, Statement::Want(word.clone()));
        }
        self.asked = Some(word);
    }

    /// Somebody needs the value.
    fn on_want(&mut self, scope: &mut Scope<'_>, at: Path, from: ReplicaId, word: &Word) -> Result<(), Rejection> {
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
    fn on_body(&mut self, value: Value) -> Result<(), Rejection> {
        match &self.asked {
            None => Err(Rejection::Unsolicited),
            Some(word) if !word.names(&value) => Err(Rejection::DigestMismatch),
            Some(word) => {
                self.fetched = Some((word.clone(), value));
                Ok(())
            }
        }
    }

    /// A tick of the channel: what was asked is asked again, and may be answered again.
    pub(super) fn tick(&mut self, scope: &mut Scope<'_>, at: Path) {
        self.served = ReplicaSet::NOBODY;
        if let Some(word) = self.asked.take() {
            self.ask(scope, at, word);
        }
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

    /// The value that this process has said ECHO of by its name, and that others may have to fetch.
    pub(super) fn kept(&self, me: ReplicaId) -> Option<Value> {
        let word = self.said.said(me).filter(|word| word.whole().is_none() && self.owner != me)?;
        self.value(word)
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
            Statement::Echo(word) => self.said.replay(scope.me, word),
            Statement::Body(value) => self.fetched = Some((Word::of(&value, scope.repeats), value)),
            _ => unreachable!("an echo broadcast is INITIAL and ECHO"),
        }
    }
}

/// An instance of echo broadcast.
#[derive(Clone, Debug)]
pub(super) struct EchoBroadcast {
    pub(super) echoes: Echoes,
}

impl EchoBroadcast {
    pub(super) const fn new(owner: ReplicaId) -> Self {
        Self { echoes: Echoes::new(owner) }
    }

    /// EB 2 and 3: what follows from what is known. The value, when it is delivered.
    pub(super) fn advance(&mut self, scope: &mut Scope<'_>, at: Path) -> Option<Value> {
        if let Some(word) = self.echoes.due(scope, at) {
            scope.step("EB 2");
            self.echoes.echo(scope, at, word);
        }
        let word = self.echoes.echoed(scope.replicas.strong()).cloned();
        self.echoes.deliver(scope, at, word, "EB 3")
    }
}
