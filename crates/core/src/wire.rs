//! The wire format: canonical, bounded, and free of copies where copies cost.
//!
//! The bytes are those of the Borsh specification for the subset used here (fixed-width little-endian integers, `u32`
//! length prefixes, a `u8` tag per enum variant, options as a tag byte), which makes the encoding canonical: equal
//! values have equal bytes, and a decoder that accepts bytes re-encodes to the same bytes. The reader is our own,
//! because it must bound every length before it allocates and hand out payloads as slices of the received buffer;
//! `docs/decisions` weighs that against the `borsh` crate, which the tests use as a referee. `docs/wire.md` spells
//! the messages out byte by byte.

mod rope;

pub use rope::Rope;

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// The largest frame, without its length prefix. A connection that announces more is closed.
pub const FRAME_BYTES_MAX: usize = 8 << 20;

/// Payloads up to this size are copied out of the receive buffer, so that a small payload that is kept for long
/// never pins a large buffer.
const COPY_BYTES_MAX: usize = 1024;

/// A payload that is a slice of the received buffer keeps at most so many times its own length in memory: shorter ones
/// are copied as well. Batches of a mebibyte share their payloads of 4 KiB.
const PINNED_TIMES_MAX: usize = 256;

/// A payload to be kept for long: it no longer pins the buffer that it is a slice of, unless it is large itself.
pub fn unpinned(payload: Bytes) -> Bytes {
    if payload.len() <= COPY_BYTES_MAX { Bytes::copy_from_slice(&payload) } else { payload }
}

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WireError {
    /// The bytes end before the value does.
    Truncated,
    /// There are bytes after the value.
    Trailing,
    /// A tag byte without a meaning.
    UnknownTag,
    /// A length above the bound for that field.
    TooLong,
    /// Bytes that another encoding of the same value would have: not canonical.
    NotCanonical,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the bytes end before the value does",
            Self::Trailing => "there are bytes after the value",
            Self::UnknownTag => "unknown tag",
            Self::TooLong => "a length exceeds its bound",
            Self::NotCanonical => "not the canonical encoding",
        })
    }
}

impl core::error::Error for WireError {}

/// What a sink is told beside the bytes: which of them belong together, and as what. Only what takes encodings apart
/// listens, as the liars of the simulator do: they put one part in place of another of the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A value of the type with this name.
    Value(&'static str),
    /// A list: its length as `u32`, then values.
    List,
    /// A payload: its length as `u32`, then bytes.
    Payload,
    /// A value, its signer, and a signature of this kind.
    Signed(u8),
    /// A value, and a list of signers with signatures of this kind.
    Certified(u8),
    /// The innermost of these ends here.
    End,
}

/// What encodings are appended to.
pub trait Sink {
    /// Appends one byte.
    fn push(&mut self, byte: u8);

    /// Appends bytes.
    fn extend_from_slice(&mut self, bytes: &[u8]);

    /// Appends a payload, which a sink may keep as it is instead of copying it.
    fn share(&mut self, payload: &Bytes) {
        self.extend_from_slice(payload);
    }

    /// Takes note of what begins or ends here.
    fn mark(&mut self, _mark: Mark) {}
}

impl Sink for Vec<u8> {
    fn push(&mut self, byte: u8) {
        Self::push(self, byte);
    }

    fn extend_from_slice(&mut self, bytes: &[u8]) {
        Self::extend_from_slice(self, bytes);
    }
}

/// Counts bytes.
struct Length(usize);

impl Sink for Length {
    fn push(&mut self, _byte: u8) {
        self.0 += 1;
    }

    fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

/// A value with one encoding.
pub trait Wire: Sized {
    /// Appends the encoding.
    fn encode(&self, out: &mut impl Sink);
    /// Reads one value.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are not exactly what [`Wire::encode`] would have written.
    fn decode(reader: &mut Reader) -> Result<Self, WireError>;

    /// The encoding as a new vector.
    fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with(0)
    }

    /// The same, with room for `more` bytes behind it. It is measured before it is written: a vector that grows is
    /// moved half a dozen times, and one that is larger than its bytes costs more where it is shared.
    fn to_bytes_with(&self, more: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.length() + more);
        self.encode(&mut out);
        out
    }

    /// The bytes that it takes.
    fn length(&self) -> usize {
        let mut length = Length(0);
        self.encode(&mut length);
        length.0
    }

    /// Reads a value that must fill `bytes` exactly.
    ///
    /// # Errors
    /// [`WireError`], with [`WireError::Trailing`] if something is left over.
    fn from_bytes(bytes: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let value = Self::decode(&mut reader)?;
        reader.finish()?;
        Ok(value)
    }
}

/// Reads values from a received buffer.
#[derive(Debug)]
pub struct Reader {
    bytes: Bytes,
    at: usize,
    /// Nothing but what is being read lies in `bytes`, so slices of it pin nothing else.
    detached: bool,
}

impl Reader {
    /// Starts at the first byte.
    pub const fn new(bytes: Bytes) -> Self {
        Self { bytes, at: 0, detached: false }
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Copies what is left, at most `max` bytes of it, into a buffer of its own, if that was not done yet: the small
    /// payloads in it then are slices of one copy. More than that is left where it is.
    pub fn detach(&mut self, max: usize) {
        if !self.detached && self.remaining() <= max {
            self.bytes = Bytes::copy_from_slice(&self.bytes[self.at..]);
            self.at = 0;
            self.detached = true;
        }
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let end = self.at + N;
        let slice = self.bytes.get(self.at..end).ok_or(WireError::Truncated)?;
        self.at = end;
        slice.try_into().map_err(|_| WireError::Truncated)
    }

    /// A tag byte.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn tag(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    /// A `u32` length that must not exceed `max`, nor what is left when each element takes at least `element` bytes.
    ///
    /// # Errors
    /// [`WireError::TooLong`] or [`WireError::Truncated`].
    pub fn length(&mut self, max: usize, element: usize) -> Result<usize, WireError> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        if length > max {
            return Err(WireError::TooLong);
        }
        if length.saturating_mul(element) > self.remaining() {
            return Err(WireError::Truncated);
        }
        Ok(length)
    }

    /// A payload of at most `max` bytes: a slice of the received buffer if it is large, also beside the buffer, or the
    /// buffer is [detached](Self::detach), a copy otherwise.
    ///
    /// # Errors
    /// [`WireError::TooLong`] or [`WireError::Truncated`].
    pub fn payload(&mut self, max: usize) -> Result<Bytes, WireError> {
        let length = self.length(max, 1)?;
        self.piece(length)
    }

    /// The next `length` bytes, as [`Reader::payload`] hands them out.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn piece(&mut self, length: usize) -> Result<Bytes, WireError> {
        let slice = self.slice(length)?;
        if self.detached {
            return Ok(slice);
        }
        let pins_much = length.saturating_mul(PINNED_TIMES_MAX) < self.bytes.len();
        Ok(if pins_much { Bytes::copy_from_slice(&slice) } else { unpinned(slice) })
    }

    /// The next `length` bytes as a slice of the received buffer. Whoever keeps it for long [unpins](unpinned) it.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn slice(&mut self, length: usize) -> Result<Bytes, WireError> {
        if length > self.remaining() {
            return Err(WireError::Truncated);
        }
        let range = self.at..self.at + length;
        self.at += length;
        Ok(self.bytes.slice(range))
    }

    /// A list of at most `max` values.
    ///
    /// # Errors
    /// Whatever the elements say, or [`WireError::TooLong`].
    pub fn list<T: Wire>(&mut self, max: usize) -> Result<Vec<T>, WireError> {
        let length = self.length(max, 1)?;
        let mut values = Vec::with_capacity(length.min(256));
        for _ in 0..length {
            values.push(T::decode(self)?);
        }
        Ok(values)
    }

    /// Declares the value complete.
    ///
    /// # Errors
    /// [`WireError::Trailing`] if bytes are left.
    pub fn finish(self) -> Result<(), WireError> {
        if self.remaining() == 0 { Ok(()) } else { Err(WireError::Trailing) }
    }
}

fn encode_length(length: usize, out: &mut impl Sink) {
    out.extend_from_slice(&(length as u32).to_le_bytes());
}

/// Appends a payload with its `u32` length.
pub fn encode_payload(payload: &[u8], out: &mut impl Sink) {
    out.mark(Mark::Payload);
    encode_length(payload.len(), out);
    out.extend_from_slice(payload);
    out.mark(Mark::End);
}

/// The same, for a payload that need not be copied where it is long.
pub fn encode_shared(payload: &Bytes, out: &mut impl Sink) {
    out.mark(Mark::Payload);
    encode_length(payload.len(), out);
    out.share(payload);
    out.mark(Mark::End);
}

/// Appends a list with its `u32` length.
pub fn encode_list<T: Wire>(values: &[T], out: &mut impl Sink) {
    out.mark(Mark::List);
    encode_length(values.len(), out);
    for value in values {
        encode_part(value, out);
    }
    out.mark(Mark::End);
}

/// Appends a part of a value, and says of which type it is.
pub fn encode_part<T: Wire>(part: &T, out: &mut impl Sink) {
    out.mark(Mark::Value(core::any::type_name::<T>()));
    part.encode(out);
    out.mark(Mark::End);
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            fn encode(&self, out: &mut impl Sink) {
                out.mark(Mark::Value(stringify!($type)));
                out.extend_from_slice(&self.to_le_bytes());
                out.mark(Mark::End);
            }
            fn decode(reader: &mut Reader) -> Result<Self, WireError> {
                Ok(Self::from_le_bytes(reader.array()?))
            }
        }
    )*};
}
integer!(u8, u16, u32, u64, i64);

impl Wire for bool {
    fn encode(&self, out: &mut impl Sink) {
        out.mark(Mark::Value("bool"));
        out.push(u8::from(*self));
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError::NotCanonical),
        }
    }
}

impl<const N: usize> Wire for [u8; N] {
    fn encode(&self, out: &mut impl Sink) {
        out.mark(Mark::Value(core::any::type_name::<Self>()));
        out.extend_from_slice(self);
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        reader.array()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn encode(&self, out: &mut impl Sink) {
        out.mark(Mark::Value(core::any::type_name::<Self>()));
        match self {
            None => out.push(0),
            Some(value) => {
                out.push(1);
                encode_part(value, out);
            }
        }
        out.mark(Mark::End);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(None),
            1 => Ok(Some(T::decode(reader)?)),
            _ => Err(WireError::NotCanonical),
        }
    }
}

impl Wire for () {
    fn encode(&self, _out: &mut impl Sink) {}
    fn decode(_reader: &mut Reader) -> Result<Self, WireError> {
        Ok(())
    }
}

impl<T: Wire> Wire for Box<T> {
    fn encode(&self, out: &mut impl Sink) {
        (**self).encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self::new(T::decode(reader)?))
    }
}

impl<T: Wire> Wire for alloc::sync::Arc<T> {
    fn encode(&self, out: &mut impl Sink) {
        (**self).encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self::new(T::decode(reader)?))
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
        self.1.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok((A::decode(reader)?, B::decode(reader)?))
    }
}

/// Implements [`Wire`] for a struct, field after field in the order given.
#[macro_export]
macro_rules! wire_struct {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $name {
            fn encode(&self, out: &mut impl $crate::wire::Sink) {
                out.mark($crate::wire::Mark::Value(core::any::type_name::<Self>()));
                $( $crate::wire::encode_part(&self.$field, out); )*
                out.mark($crate::wire::Mark::End);
            }
            fn decode(reader: &mut $crate::wire::Reader) -> Result<Self, $crate::wire::WireError> {
                Ok(Self { $( $field: $crate::wire::Wire::decode(reader)?, )* })
            }
        }
    };
}

/// Implements [`Wire`] for an enum of one-field variants: the tag byte, then the field. Tags are explicit, so that a
/// retired one is never used again.
#[macro_export]
macro_rules! wire_enum {
    ($name:ident { $($(#[cfg($when:meta)])? $tag:literal => $variant:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $name {
            fn encode(&self, out: &mut impl $crate::wire::Sink) {
                out.mark($crate::wire::Mark::Value(core::any::type_name::<Self>()));
                match self {
                    $( $(#[cfg($when)])? Self::$variant(value) => {
                        out.push($tag);
                        $crate::wire::encode_part(value, out);
                    } )*
                }
                out.mark($crate::wire::Mark::End);
            }
            fn decode(reader: &mut $crate::wire::Reader) -> Result<Self, $crate::wire::WireError> {
                match reader.tag()? {
                    $( $(#[cfg($when)])? $tag => Ok(Self::$variant($crate::wire::Wire::decode(reader)?)), )*
                    _ => Err($crate::wire::WireError::UnknownTag),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn our_bytes_are_borsh_bytes() {
        let value = (7u64, Some(3u32));
        assert_eq!(value.to_bytes(), borsh::to_vec(&value).unwrap());
        let mut list = Vec::new();
        encode_list(&[1u16, 2, 3], &mut list);
        assert_eq!(list, borsh::to_vec(&vec![1u16, 2, 3]).unwrap());
    }

    #[test]
    fn lengths_are_bounded_before_anything_is_allocated() {
        let mut reader = Reader::new(Bytes::from_static(&[0xff; 4]));
        assert_eq!(reader.length(10, 1), Err(WireError::TooLong));
        let mut reader = Reader::new(Bytes::from_static(&[4, 0, 0, 0, 1]));
        assert_eq!(reader.length(10, 1), Err(WireError::Truncated));
    }

    #[test]
    fn a_payload_pins_at_most_so_many_times_its_own_length() {
        let length = 2 * COPY_BYTES_MAX;
        let mut payload = Vec::new();
        encode_payload(&vec![7; length], &mut payload);
        for (frame_bytes, shared) in [(PINNED_TIMES_MAX * length, true), (PINNED_TIMES_MAX * length + 1, false)] {
            let mut frame = payload.clone();
            frame.resize(frame_bytes, 0);
            let frame = Bytes::from(frame);
            let got = Reader::new(frame.clone()).payload(length).unwrap();
            assert_eq!(got, frame[4..4 + length]);
            assert_eq!(got.as_ptr() == frame[4..].as_ptr(), shared, "in a frame of {frame_bytes} bytes");
        }
    }

    #[test]
    fn a_second_encoding_of_the_same_value_is_refused() {
        assert_eq!(bool::from_bytes(Bytes::from_static(&[2])), Err(WireError::NotCanonical));
        assert_eq!(u8::from_bytes(Bytes::from_static(&[1, 2])), Err(WireError::Trailing));
    }
}
