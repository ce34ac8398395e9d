//! Frames on their way to a socket: short ones that others wait for overtake the rest.
//!
//! What a socket has taken nobody overtakes any more. So it gets one piece at a time, and is told to ask for the next
//! one when little is left of the last ([`UNSENT_BYTES`]).

use super::frame::append_frame;
use bezant_core::wire::Rope;
use std::collections::VecDeque;

/// Bytes that a socket holds and has not sent when it asks for more. With less, a fast link might have to wait for us.
pub(super) const UNSENT_BYTES: u32 = 16 << 10;

/// A piece that is this long gets no further frames.
pub(super) const PIECE_BYTES: usize = 16 << 10;

/// A buffer that grew beyond this gives its memory back when it is empty.
const KEPT_CAPACITY_BYTES: usize = 1 << 20;

/// Which frames may overtake which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// In the order in which they were queued.
    Usual,
    /// Before all that are in the other lane and have not begun to leave, in their own order.
    Express,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Output {
    express: Rope,
    /// Of whole frames each.
    pieces: VecDeque<Rope>,
    /// In all of it.
    bytes: usize,
    /// Empty, for the next piece.
    spare: Rope,
}

impl Output {
    /// Bytes that wait.
    pub(super) const fn len(&self) -> usize {
        self.bytes
    }

    /// Queues one frame made of `body` and `tail`.
    pub(super) fn push(&mut self, lane: Lane, body: &Rope, tail: &[u8]) {
        let target = match lane {
            Lane::Express => &mut self.express,
            Lane::Usual => self.open_piece(),
        };
        let before = target.len();
        append_frame(target, body, tail);
        let added = target.len() - before;
        self.bytes += added;
    }

    /// Queues frames as they are.
    pub(super) fn append(&mut self, frames: &Rope) {
        self.open_piece().append(frames);
        self.bytes += frames.len();
    }

    /// The next piece in place of what is in `wire`. False if there is none, and `wire` is empty.
    pub(super) fn take(&mut self, wire: &mut Rope) -> bool {
        wire.clear();
        if self.express.is_empty() {
            if let Some(piece) = self.pieces.pop_front() {
                self.spare = std::mem::replace(wire, piece);
            }
        } else {
            std::mem::swap(&mut self.express, wire);
        }
        self.shrink(KEPT_CAPACITY_BYTES);
        self.bytes -= wire.len();
        !wire.is_empty()
    }

    /// Gives back memory beyond so many bytes for each buffer that is empty.
    pub(super) fn shrink(&mut self, most: usize) {
        for idle in [&mut self.express, &mut self.spare] {
            if idle.is_empty() && idle.capacity() > most {
                *idle = Rope::new();
            }
        }
    }

    /// What [`Output::take`] would give, one after the other.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Rope> {
        let express = std::iter::once(&self.express).filter(|express| !express.is_empty());
        express.chain(&self.pieces)
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.express.capacity() + self.spare.capacity() + self.pieces.iter().map(Rope::capacity).sum::<usize>()
    }

    fn open_piece(&mut self) -> &mut Rope {
        if self.pieces.back().is_none_or(|last| last.len() >= PIECE_BYTES) {
            self.pieces.push_back(std::mem::take(&mut self.spare));
        }
        self.pieces.back_mut().expect("it was just made")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_frames_overtake_what_has_not_begun_to_leave() {
        let mut output = Output::default();
        let long = vec![7; PIECE_BYTES].into();
        for _ in 0..3 {
            output.push(Lane::Usual, &long, &[]);
        }
        let mut wire = Rope::new();
        assert!(output.take(&mut wire) && wire.len() == PIECE_BYTES + 4);
        output.push(Lane::Express, &b"a".to_vec().into(), &[]);
        output.push(Lane::Usual, &b"z".to_vec().into(), &[]);
        output.push(Lane::Express, &b"b".to_vec().into(), b"c");
        assert_eq!(output.len(), 2 * (PIECE_BYTES + 4) + 5 + 11);
        let waiting: Vec<usize> = output.waiting().map(Rope::len).collect();
        assert_eq!(waiting, [11, PIECE_BYTES + 4, PIECE_BYTES + 4, 5]);
        assert!(output.take(&mut wire));
        assert_eq!(wire.to_vec(), b"\x01\0\0\0a\x02\0\0\0bc");
        let mut lengths = Vec::new();
        while output.take(&mut wire) {
            lengths.push(wire.len());
        }
        assert_eq!(lengths, [PIECE_BYTES + 4, PIECE_BYTES + 4, 5]);
        assert_eq!((output.len(), wire.len()), (0, 0));
    }

    #[test]
    fn short_frames_share_a_piece() {
        let mut output = Output::default();
        output.push(Lane::Usual, &b"a".to_vec().into(), &[]);
        output.push(Lane::Usual, &b"b".to_vec().into(), &[]);
        output.append(&vec![0; 4].into());
        let mut wire = Rope::new();
        assert!(output.take(&mut wire) && !output.take(&mut Rope::new()));
        assert_eq!(wire.to_vec(), b"\x01\0\0\0a\x01\0\0\0b\0\0\0\0");
    }
}
