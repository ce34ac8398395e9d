//! Messages of a head that have overtaken others, or for which the log has no room yet: kept until it is their turn.

use crate::message::Request;
use alloc::collections::BTreeMap;

/// How many are kept where one replica sends them.
pub(crate) const AHEAD_MAX: usize = 256;

/// Bytes that they take, as [`weight`] says: as many as [`crate::cluster::Limits`] lets wait for a head by default.
pub(crate) const AHEAD_BYTES_MAX: usize = 64 << 20;

/// What a request takes besides its operation, about.
const OVERHEAD: usize = 256;

/// What requests take in memory, about.
pub(crate) fn weight(requests: &[Request]) -> usize {
    requests.iter().map(|request| OVERHEAD + request.operation.len()).sum()
}

/// See the [module](self). Nobody sends again what is dropped here, so what comes sooner takes the place of what
/// comes later: who fills it, with whatever is far ahead, never keeps out the message whose turn is next.
#[derive(Clone, Debug)]
pub(crate) struct Ahead<T> {
    /// By the position of its first request, with its bytes.
    messages: BTreeMap<u64, (usize, T)>,
    bytes: usize,
}

impl<T> Default for Ahead<T> {
    fn default() -> Self {
        Self { messages: BTreeMap::new(), bytes: 0 }
    }
}

impl<T> Ahead<T> {
    /// Keeps a message that begins at a position, in place of another one there. Whether there was room for it, among
    /// so many in all.
    pub(crate) fn keep(&mut self, first: u64, bytes: usize, message: T, most: usize) -> bool {
        self.bytes += bytes;
        if let Some((old, _)) = self.messages.insert(first, (bytes, message)) {
            self.bytes -= old;
        }
        while self.messages.len() > 1 && (self.messages.len() > most || self.bytes > AHEAD_BYTES_MAX) {
            let last = self.messages.pop_last();
            self.bytes -= last.map_or(0, |(_, (bytes, _))| bytes);
        }
        self.messages.contains_key(&first)
    }

    /// What is true between steps, where so many are kept in all.
    pub(crate) fn check_invariants(&self, most: usize) {
        let bytes: usize = self.messages.values().map(|(bytes, _)| bytes).sum();
        assert_eq!(self.bytes, bytes, "the bytes of all are counted");
        let is_one = self.messages.len() <= 1;
        assert!(is_one || self.messages.len() <= most, "at most {most} messages");
        assert!(is_one || self.bytes <= AHEAD_BYTES_MAX, "at most AHEAD_BYTES_MAX");
    }

    /// Whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Takes the message that begins at a position, if it is there and due.
    pub(crate) fn take_if(&mut self, first: u64, is_due: impl FnOnce(&T) -> bool) -> Option<T> {
        if !self.messages.get(&first).is_some_and(|(_, message)| is_due(message)) {
            return None;
        }
        let (bytes, message) = self.messages.remove(&first)?;
        self.bytes -= bytes;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_sooner_takes_the_place_of_what_comes_later() {
        let mut ahead = Ahead::default();
        assert!((2..10).all(|first| ahead.keep(first, 1, first, 8)));
        assert!(!ahead.keep(10, 1, 10, 8), "it would be the last");
        assert!(ahead.keep(1, 1, 1, 8), "it is the next");
        assert_eq!(ahead.take_if(9, |_| true), None, "that was the last");
        assert_eq!(ahead.take_if(1, |_| false), None);
        let taken: alloc::vec::Vec<u64> = (1..10).filter_map(|first| ahead.take_if(first, |_| true)).collect();
        assert_eq!((taken, ahead.bytes), ((1..9).collect(), 0));
    }

    #[test]
    fn bytes_are_bounded_but_for_a_single_message() {
        let mut ahead = Ahead::default();
        assert!(ahead.keep(7, AHEAD_BYTES_MAX + 1, (), AHEAD_MAX));
        assert!(ahead.keep(5, AHEAD_BYTES_MAX / 2, (), AHEAD_MAX), "and the other one goes");
        assert!(ahead.keep(6, AHEAD_BYTES_MAX / 2, (), AHEAD_MAX));
        assert!(!ahead.keep(7, 1, (), AHEAD_MAX));
        assert!(ahead.keep(5, 1, (), AHEAD_MAX), "in place of the one that was there");
        assert_eq!(ahead.bytes, AHEAD_BYTES_MAX / 2 + 1);
    }
}
