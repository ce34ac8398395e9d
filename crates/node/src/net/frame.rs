//! Bytes in, frames out.
//!
//! What one read of a socket brings, a *gulp*, is not copied again where a copy would cost much. It goes into a buffer
//! of its own, or, if it is the rest of a long frame, into that frame's buffer; the frames are slices of the buffer.
//! Two things are copied: a gulp that is small, and the beginning of a frame at the end of a gulp. Frames share a
//! buffer only if it is no longer than a gulp. So a payload that is kept for long keeps little else in memory, and the
//! wire format copies short ones.

use bezant_core::wire::{Rope, Sink};
use bytes::{Buf, Bytes};
use std::mem;

/// Bytes of the length prefix.
pub(crate) const PREFIX_BYTES: usize = 4;

/// Bytes read at once, if they are not the rest of a longer frame.
pub(crate) const GULP_BYTES: usize = 64 << 10;

/// Up to here copying costs less than a buffer does.
const SMALL_BYTES: usize = 2 << 10;

/// A peer announced a frame longer than it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Oversized;

/// What was read and not handed out yet. Its memory follows what really arrived: it is at most a gulp more than twice
/// that, whatever a prefix announced.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffer {
    /// Whole frames, each with its prefix.
    whole: Bytes,
    /// What follows them.
    begun: Vec<u8>,
}

impl FrameBuffer {
    /// Appends what `read` appends to the buffer that it is given. `spare` is an empty buffer, to be used and, if that
    /// is possible, given back.
    pub(crate) fn fill<T>(&mut self, spare: &mut Vec<u8>, read: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        assert!(self.whole.is_empty(), "all frames are handed out before more is read");
        let mut buffer = mem::take(&mut self.begun);
        if frame_bytes(&buffer).is_some_and(|bytes| bytes > SMALL_BYTES) {
            buffer.reserve_exact(room(&buffer) - buffer.len());
        } else {
            let begun = mem::replace(&mut buffer, mem::take(spare));
            buffer.reserve_exact(GULP_BYTES);
            buffer.extend_from_slice(&begun);
        }
        let result = read(&mut buffer);
        self.cut(buffer, spare);
        result
    }

    /// Divides what was read into whole frames and the rest.
    fn cut(&mut self, mut buffer: Vec<u8>, spare: &mut Vec<u8>) {
        let end = end_of_frames(&buffer);
        let kept_as_it_is = end == 0 && buffer.capacity() <= room(&buffer);
        if kept_as_it_is {
            self.begun = buffer;
            return;
        }
        let rest = &buffer[end..];
        self.begun = Vec::with_capacity(room(rest));
        self.begun.extend_from_slice(rest);
        if end <= SMALL_BYTES {
            self.whole = Bytes::copy_from_slice(&buffer[..end]);
            buffer.clear();
            *spare = buffer;
        } else {
            buffer.truncate(end);
            buffer.shrink_to_fit();
            self.whole = Bytes::from(buffer);
        }
    }

    /// Whether there is the beginning of a frame.
    pub(crate) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Whether there is a frame that nobody has taken yet.
    pub(crate) fn has_whole(&self) -> bool {
        !self.whole.is_empty() || end_of_frames(&self.begun) > 0
    }

    /// Bytes that the frame which has begun still lacks, as far as its prefix says.
    pub(crate) fn missing(&self) -> usize {
        frame_bytes(&self.begun).map_or(0, |bytes| bytes.saturating_sub(self.begun.len()))
    }

    /// Bytes of memory held.
    pub(crate) fn len(&self) -> usize {
        self.whole.len() + self.begun.capacity()
    }

    /// The next whole frame, without its prefix, as a slice of what was read.
    pub(crate) fn next(&mut self, frame_bytes_max: usize) -> Result<Option<Bytes>, Oversized> {
        if self.whole.is_empty() && end_of_frames(&self.begun) > 0 {
            let begun = mem::take(&mut self.begun);
            self.cut(begun, &mut Vec::new());
        }
        let first = if self.whole.is_empty() { self.begun.as_slice() } else { &self.whole };
        let Some(bytes) = frame_bytes(first) else { return Ok(None) };
        if bytes - PREFIX_BYTES > frame_bytes_max {
            return Err(Oversized);
        }
        if self.whole.is_empty() {
            return Ok(None);
        }
        let mut frame = self.whole.split_to(bytes);
        frame.advance(PREFIX_BYTES);
        Ok(Some(frame))
    }
}

/// Bytes of the frame that `bytes` begin with, its prefix included, if that is there.
fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    let prefix = bytes.first_chunk::<PREFIX_BYTES>()?;
    Some(PREFIX_BYTES + u32::from_le_bytes(*prefix) as usize)
}

/// Where the frames end that share a buffer: those that are whole, or the first one, if it is longer than a gulp.
fn end_of_frames(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(next) = frame_bytes(&bytes[end..]).map(|bytes| end + bytes)
        && next <= bytes.len()
        && (end == 0 || next <= GULP_BYTES)
    {
        end = next;
    }
    end
}

/// The memory for a frame of which these bytes are here: all of it if that is no more than a gulp, at most twice as
/// much as there is otherwise.
fn room(begun: &[u8]) -> usize {
    frame_bytes(begun).unwrap_or(0).min(GULP_BYTES.max(2 * begun.len())).max(begun.len())
}

/// Appends one frame made of `body` and `tail`.
pub(crate) fn append_frame(out: &mut Rope, body: &Rope, tail: &[u8]) {
    out.extend_from_slice(&((body.len() + tail.len()) as u32).to_le_bytes());
    out.append(body);
    out.extend_from_slice(tail);
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::wire::FRAME_BYTES_MAX;

    fn stream(frames: &[&[u8]]) -> Vec<u8> {
        let mut stream = Rope::new();
        for frame in frames {
            append_frame(&mut stream, &frame.to_vec().into(), &[]);
        }
        stream.to_vec()
    }

    /// Gives it a piece as a socket would: no more than there is room for. Says how much it took.
    fn give(buffer: &mut FrameBuffer, spare: &mut Vec<u8>, piece: &[u8]) -> usize {
        buffer.fill(spare, |into| {
            let taken = piece.len().min(into.capacity() - into.len());
            into.extend_from_slice(&piece[..taken]);
            taken
        })
    }

    #[test]
    fn frames_survive_any_cut() {
        let frames: [&[u8]; 8] =
            [b"one", b"", b"three", &[7; 3000], b"five", &[6; 100_000], &[7; 5000], &[8; 2 * GULP_BYTES]];
        let stream = stream(&frames);
        for step in [1, 2, 3, 7, 1000, 70_000, stream.len()] {
            for copied_in in [false, true] {
                let (mut buffer, mut spare) = (FrameBuffer::default(), Vec::new());
                let mut got = Vec::new();
                for piece in stream.chunks(step) {
                    let mut piece = piece;
                    while !piece.is_empty() {
                        let taken = if copied_in {
                            buffer.fill(&mut spare, |into| into.extend_from_slice(piece));
                            piece.len()
                        } else {
                            give(&mut buffer, &mut spare, piece)
                        };
                        piece = &piece[taken..];
                        while let Some(frame) = buffer.next(FRAME_BYTES_MAX).unwrap() {
                            got.push(frame);
                        }
                        assert!(spare.is_empty());
                    }
                }
                assert_eq!(got, frames, "in pieces of {step}");
                assert_eq!(buffer.len(), 0);
            }
        }
    }

    #[test]
    fn a_frame_too_long_is_refused_on_its_prefix() {
        let mut buffer = FrameBuffer::default();
        give(&mut buffer, &mut Vec::new(), &11u32.to_le_bytes());
        assert_eq!(buffer.next(10), Err(Oversized));
    }

    #[test]
    fn memory_follows_what_arrived_and_not_what_was_announced() {
        let (mut buffer, mut spare) = (FrameBuffer::default(), Vec::new());
        let mut arrived = PREFIX_BYTES;
        give(&mut buffer, &mut spare, &(FRAME_BYTES_MAX as u32).to_le_bytes());
        while arrived < FRAME_BYTES_MAX {
            assert!(buffer.len() <= GULP_BYTES.max(2 * arrived), "{} bytes for {arrived}", buffer.len());
            arrived += give(&mut buffer, &mut spare, &[0; 1000]);
        }
    }

    #[test]
    fn what_follows_the_kernel_is_not_copied() {
        let stream = stream(&[&[1; 4096], &[2; 4096], &[3; 16 << 10]]);
        let (mut buffer, mut spare) = (FrameBuffer::default(), Vec::new());
        let (mut gulp, mut rest) = (std::ptr::null(), std::ptr::null());
        let taken = buffer.fill(&mut spare, |into| {
            gulp = into.as_ptr();
            into.extend_from_slice(&stream[..9000]);
            9000
        });
        let first = buffer.next(FRAME_BYTES_MAX).unwrap().unwrap();
        let second = buffer.next(FRAME_BYTES_MAX).unwrap().unwrap();
        assert_eq!((second.as_ptr() as usize) - (first.as_ptr() as usize), 4100, "slices of one buffer");
        assert_eq!(buffer.next(FRAME_BYTES_MAX), Ok(None));
        buffer.fill(&mut spare, |into| {
            rest = into.as_ptr();
            assert_eq!(into.capacity(), PREFIX_BYTES + (16 << 10), "exactly the frame");
            into.extend_from_slice(&stream[taken..]);
        });
        let third = buffer.next(FRAME_BYTES_MAX).unwrap().unwrap();
        assert_eq!(third.as_ptr(), rest.wrapping_add(PREFIX_BYTES));
        assert_eq!(third, vec![3; 16 << 10]);
        assert!(!gulp.is_null());
    }

    /// Small frames behind a long one do not keep it in memory, nor the other way round.
    #[test]
    fn a_frame_longer_than_a_gulp_has_a_buffer_of_its_own() {
        let stream = stream(&[&[1; 2 * GULP_BYTES], &[2; 3000], &[3; 3000]]);
        let mut buffer = FrameBuffer::default();
        buffer.fill(&mut Vec::new(), |into| into.extend_from_slice(&stream));
        let mut next = || buffer.next(FRAME_BYTES_MAX).unwrap().unwrap();
        let (long, short, last) = (next(), next(), next());
        assert!(long.is_unique(), "nobody else has a part of its buffer");
        assert!(!short.is_unique() && !last.is_unique());
    }
}
