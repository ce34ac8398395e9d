//! Bytes in, frames out.

use bytes::{Buf, Bytes, BytesMut};

/// Bytes of the length prefix.
pub(crate) const PREFIX_BYTES: usize = 4;

/// A peer announced a frame longer than it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Oversized;

/// What was read and not handed out yet. Its memory follows what really arrived, not what a prefix announced.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffer {
    bytes: BytesMut,
}

impl FrameBuffer {
    /// Appends what was read.
    pub(crate) fn extend(&mut self, read: &[u8]) {
        self.bytes.extend_from_slice(read);
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The next whole frame, without its prefix, as a slice of what was read.
    pub(crate) fn next(&mut self, frame_bytes_max: usize) -> Result<Option<Bytes>, Oversized> {
        let Some(prefix) = self.bytes.first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > frame_bytes_max {
            return Err(Oversized);
        }
        if self.bytes.len() < PREFIX_BYTES + length {
            return Ok(None);
        }
        self.bytes.advance(PREFIX_BYTES);
        Ok(Some(self.bytes.split_to(length).freeze()))
    }
}

/// Appends one frame made of `parts`.
pub(crate) fn append_frame(out: &mut Vec<u8>, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&(length as u32).to_le_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_any_cut() {
        let mut stream = Vec::new();
        let frames: [&[u8]; 4] = [b"one", b"", b"three", &[7; 3000]];
        for frame in frames {
            append_frame(&mut stream, &[frame]);
        }
        for step in [1, 2, 3, 7, 1000, stream.len()] {
            let mut buffer = FrameBuffer::default();
            let mut got = Vec::new();
            for piece in stream.chunks(step) {
                buffer.extend(piece);
                while let Some(frame) = buffer.next(3000).unwrap() {
                    got.push(frame);
                }
            }
            assert_eq!(got, frames, "in pieces of {step}");
            assert_eq!(buffer.len(), 0);
        }
    }

    #[test]
    fn a_frame_too_long_is_refused_on_its_prefix() {
        let mut buffer = FrameBuffer::default();
        buffer.extend(&11u32.to_le_bytes());
        assert_eq!(buffer.next(10), Err(Oversized));
    }
}
