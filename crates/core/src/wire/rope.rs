//! An encoding that shares its long payloads instead of copying them.

use super::{COPY_BYTES_MAX, Sink};
use alloc::vec::Vec;
use bytes::Bytes;

/// Bytes in segments: what was written, and between it the payloads that are shared.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    written: Vec<u8>,
    /// Each with the number of written bytes before it, ascending.
    shared: Vec<(usize, Bytes)>,
    /// In all of `shared`.
    shared_bytes: usize,
}

impl Rope {
    /// Without bytes.
    pub const fn new() -> Self {
        Self { written: Vec::new(), shared: Vec::new(), shared_bytes: 0 }
    }

    /// Bytes in it, shared ones included.
    pub fn len(&self) -> usize {
        self.written.len() + self.shared_bytes
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all bytes and keeps the memory for those that are written next.
    pub fn clear(&mut self) {
        self.written.clear();
        self.shared.clear();
        self.shared_bytes = 0;
    }

    /// Memory for written bytes that it holds, in bytes.
    pub fn capacity(&self) -> usize {
        self.written.capacity()
    }

    /// The bytes in their order, in segments that are not empty.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        let before_and_shared = self.shared.iter().flat_map(move |(at, payload)| {
            let before = &self.written[from..*at];
            from = *at;
            [before, payload.as_ref()]
        });
        let last = self.shared.last().map_or(0, |(at, _)| *at);
        before_and_shared.chain(core::iter::once(&self.written[last..])).filter(|segment| !segment.is_empty())
    }

    /// The same from byte `start` on.
    pub fn segments_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        let mut skip = start;
        self.segments().filter_map(move |segment| {
            let skipped = skip.min(segment.len());
            skip -= skipped;
            Some(&segment[skipped..]).filter(|rest| !rest.is_empty())
        })
    }

    /// Appends another one; what it shares is shared again.
    pub fn append(&mut self, other: &Self) {
        let before = self.written.len();
        self.written.extend_from_slice(&other.written);
        self.shared.extend(other.shared.iter().map(|(at, payload)| (before + at, payload.clone())));
        self.shared_bytes += other.shared_bytes;
    }

    /// Bytes written so far, shared ones not included. What [`Rope::written_mut`] gives begins there.
    pub fn written(&self) -> &[u8] {
        &self.written
    }

    /// What was written, to fill in what was not known then.
    pub fn written_mut(&mut self) -> &mut [u8] {
        &mut self.written
    }

    /// A copy of all bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        self.segments().for_each(|segment| all.extend_from_slice(segment));
        all
    }

    /// All bytes in one piece, copied if any are shared.
    pub fn whole<'a>(&'a self, copy: &'a mut Vec<u8>) -> &'a [u8] {
        if self.shared.is_empty() {
            return &self.written;
        }
        *copy = self.to_vec();
        copy
    }
}

impl From<Vec<u8>> for Rope {
    fn from(written: Vec<u8>) -> Self {
        Self { written, ..Self::new() }
    }
}

impl Sink for Rope {
    fn push(&mut self, byte: u8) {
        self.written.push(byte);
    }

    fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
    }

    fn share(&mut self, payload: &Bytes) {
        if payload.len() <= COPY_BYTES_MAX {
            return self.extend_from_slice(payload);
        }
        self.shared.push((self.written.len(), payload.clone()));
        self.shared_bytes += payload.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::encode_shared;
    use alloc::vec;

    #[test]
    fn what_is_long_is_shared_and_the_bytes_are_the_same() {
        let (long, short) = (Bytes::from(vec![7; COPY_BYTES_MAX + 1]), Bytes::from(vec![8; COPY_BYTES_MAX]));
        let (mut rope, mut flat) = (Rope::new(), Vec::new());
        for payload in [&long, &short, &long, &long] {
            encode_shared(payload, &mut rope);
            encode_shared(payload, &mut flat);
        }
        rope.append(&rope.clone());
        flat.extend_from_slice(&flat.clone());
        assert_eq!(rope.len(), flat.len());
        assert_eq!(rope.written().len(), 2 * (4 * 4 + COPY_BYTES_MAX));
        assert_eq!(rope.segments().filter(|segment| segment.as_ptr() == long.as_ptr()).count(), 6);
        for start in [0, 1, 4, 5, flat.len() - 1, flat.len()] {
            let rest: Vec<u8> = rope.segments_from(start).flatten().copied().collect();
            assert_eq!(rest, flat[start..], "from {start} on");
        }
        assert_eq!(rope.whole(&mut Vec::new()), flat);
        rope.clear();
        assert!(rope.is_empty() && rope.segments().next().is_none());
    }
}
