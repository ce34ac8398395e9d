//! Who said which word: of each process the first counts.

use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use crate::replicas::ReplicaSet;
use alloc::vec::Vec;

/// The words that processes said in one place: at most one of each.
#[derive(Clone, Debug)]
pub(super) struct Tally<T> {
    words: Vec<(T, ReplicaSet)>,
}

impl<T: PartialEq> Tally<T> {
    /// Nobody has said anything.
    pub(super) const fn new() -> Self {
        Self { words: Vec::new() }
    }

    /// Somebody says a word.
    ///
    /// # Errors
    /// [`Rejection::Duplicate`] if it has said so before, [`Rejection::Equivocation`] if it has said something else:
    /// then this does not count.
    pub(super) fn hear(&mut self, from: ReplicaId, word: T) -> Result<(), Rejection> {
        if let Some(before) = self.said(from) {
            return Err(if *before == word { Rejection::Duplicate } else { Rejection::Equivocation });
        }
        match self.words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, speakers)) => speakers.insert(from),
            None => self.words.push((word, [from].into_iter().collect())),
        }
        Ok(())
    }

    /// This process has said it before it crashed. A log that begins anew says again what older parts of it, if they
    /// are still there, have said.
    pub(super) fn replay(&mut self, me: ReplicaId, word: T) {
        assert_ne!(self.hear(me, word), Err(Rejection::Equivocation), "a process says one thing only");
    }

    /// What one process has said.
    pub(super) fn said(&self, by: ReplicaId) -> Option<&T> {
        self.words.iter().find(|(_, speakers)| speakers.contains(by)).map(|(word, _)| word)
    }

    /// The word that so many have said; there is one at most if they are more than half.
    pub(super) fn said_by(&self, enough: usize) -> Option<&T> {
        self.words.iter().find(|(_, speakers)| speakers.len() >= enough).map(|(word, _)| word)
    }

    /// Who has said this word.
    pub(super) fn speakers(&self, word: &T) -> ReplicaSet {
        let of_word = self.words.iter().find(|(known, _)| known == word);
        of_word.map_or(ReplicaSet::NOBODY, |(_, speakers)| *speakers)
    }
}
