//! A *bundle*: several operations in one request.
//!
//! What a host has waiting when a pass ends leaves as one request. It has one proof, one digest, one place in the order
//! and in the client table, and one reply from each replica. To the service its operations are operations like all
//! others: each is executed by itself, in turn, with its own agreed seed, its own bound, and a result or refusal of its
//! own.
//!
//! **Bounds.** A bundle has 2 to [`BUNDLE_OPERATIONS_MAX`] operations, or [`QUERIES_MAX`] queries, and is itself no
//! longer than one operation may be. Its results share one reply: once they are longer than [`RESULTS_BYTES_MAX`] the
//! operations after them are not executed, and refused as [`Refusal::NoRoom`]. Who asked for them asks again.
//!
//! Bytes that are no bundle are no request: nothing that was decoded has to be checked again.

use super::Refusal;
use crate::service::RESULTS_BYTES_MAX;
use crate::wire::{FRAME_BYTES_MAX, Reader, Sink, Wire, WireError, encode_list, encode_payload, encode_shared};
use alloc::vec::Vec;
use bytes::Bytes;

/// Most operations in a bundle.
pub const BUNDLE_OPERATIONS_MAX: usize = 64;

/// Most operations in a bundle that is answered at once, without an order: they are answered in one step, and meanwhile
/// a replica does nothing else.
pub const QUERIES_MAX: usize = 16;

/// Bytes that an operation takes in a bundle beside its own.
pub const BUNDLE_OVERHEAD: usize = 4;

/// The bytes of a bundle.
///
/// # Panics
/// Unless there are 2 to [`BUNDLE_OPERATIONS_MAX`] operations.
pub fn pack(operations: &[Bytes]) -> Bytes {
    assert!((2..=BUNDLE_OPERATIONS_MAX).contains(&operations.len()), "a bundle has several operations, but not many");
    let bytes: usize = operations.iter().map(|operation| BUNDLE_OVERHEAD + operation.len()).sum();
    let mut out = Vec::with_capacity(BUNDLE_OVERHEAD + bytes);
    out.extend_from_slice(&(operations.len() as u32).to_le_bytes());
    operations.iter().for_each(|operation| encode_payload(operation, &mut out));
    out.into()
}

/// The operations of a bundle, in order.
///
/// # Errors
/// [`WireError`] if [`pack`] does not make these bytes.
pub fn unpack(bundle: &Bytes) -> Result<Vec<Bytes>, WireError> {
    let mut operations = Vec::new();
    walk(bundle, |operation| operations.push(operation))?;
    Ok(operations)
}

/// How many operations a bundle has.
///
/// # Errors
/// As of [`unpack`].
pub(crate) fn count(bundle: &Bytes) -> Result<usize, WireError> {
    let mut count = 0;
    walk(bundle, |_| count += 1)?;
    Ok(count)
}

fn walk(bundle: &Bytes, mut each: impl FnMut(Bytes)) -> Result<(), WireError> {
    let mut reader = Reader::new(bundle.clone());
    let count = reader.length(BUNDLE_OPERATIONS_MAX, BUNDLE_OVERHEAD)?;
    if count < 2 {
        return Err(WireError::NotCanonical);
    }
    for _ in 0..count {
        let length = reader.length(FRAME_BYTES_MAX, 1)?;
        each(reader.slice(length)?);
    }
    reader.finish()
}

/// What came of one operation of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Single {
    /// It was executed: the result.
    Done(Bytes),
    /// It was not, and never will be.
    Refused(Refusal),
}

impl Single {
    fn bytes(&self) -> usize {
        match self {
            Self::Done(result) => result.len(),
            Self::Refused(_) => 1,
        }
    }
}

impl Wire for Single {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Done(result) => {
                out.push(0);
                encode_shared(result, out);
            }
            Self::Refused(refusal) => {
                out.push(1);
                refusal.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::Done(reader.payload(FRAME_BYTES_MAX)?)),
            1 => Ok(Self::Refused(Wire::decode(reader)?)),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// What came of a bundle, operation by operation: the result of its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    singles: Vec<Single>,
    bytes: usize,
}

impl Results {
    /// Whether there is room for one more.
    pub(crate) const fn has_room(&self) -> bool {
        self.bytes <= RESULTS_BYTES_MAX
    }

    pub(crate) fn push(&mut self, single: Single) {
        assert!(self.singles.len() < BUNDLE_OPERATIONS_MAX, "each operation has one result");
        self.bytes += single.bytes();
        self.singles.push(single);
    }

    /// What came of each operation, in the order of the operations.
    pub fn into_singles(self) -> Vec<Single> {
        self.singles
    }
}

impl FromIterator<Single> for Results {
    fn from_iter<I: IntoIterator<Item = Single>>(singles: I) -> Self {
        let mut results = Self::default();
        singles.into_iter().for_each(|single| results.push(single));
        results
    }
}

impl Wire for Results {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.singles, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(reader.list(BUNDLE_OPERATIONS_MAX)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::RESULT_BYTES_MAX;
    use alloc::vec;

    fn operations(of: &[&'static [u8]]) -> Vec<Bytes> {
        of.iter().map(|bytes| Bytes::from_static(bytes)).collect()
    }

    #[test]
    fn a_bundle_has_one_form() {
        let packed = pack(&operations(&[b"one", b"", b"three"]));
        assert_eq!(unpack(&packed).unwrap(), operations(&[b"one", b"", b"three"]));
        for at in 0..packed.len() {
            let short = packed.slice(..at);
            assert!(unpack(&short).is_err(), "{at} bytes of it are none");
        }
        let longer: Bytes = [&packed[..], &[0]].concat().into();
        assert_eq!(unpack(&longer), Err(WireError::Trailing));
    }

    #[test]
    fn one_operation_is_no_bundle_and_too_many_are_none() {
        let of = |count: usize| {
            let mut bytes = (count as u32).to_le_bytes().to_vec();
            bytes.resize(4 + 4 * count, 0);
            unpack(&bytes.into()).map(|operations| operations.len())
        };
        assert_eq!(of(0), Err(WireError::NotCanonical));
        assert_eq!(of(1), Err(WireError::NotCanonical));
        assert_eq!(of(2), Ok(2));
        assert_eq!(of(BUNDLE_OPERATIONS_MAX), Ok(BUNDLE_OPERATIONS_MAX));
        assert_eq!(of(BUNDLE_OPERATIONS_MAX + 1), Err(WireError::TooLong));
    }

    #[test]
    fn results_come_back_in_order() {
        let singles =
            vec![Single::Done(Bytes::from_static(b"x")), Single::Refused(Refusal::NoRoom), Single::Done(Bytes::new())];
        let results: Results = singles.iter().cloned().collect();
        let read = Results::from_bytes(results.to_bytes().into()).unwrap();
        assert_eq!(read, results);
        assert_eq!(read.into_singles(), singles);
    }

    /// However long they are: as many bytes as leave room, one result more, and the overhead of all.
    #[test]
    fn results_fit_into_a_frame() {
        const LONGEST: usize = RESULTS_BYTES_MAX + RESULT_BYTES_MAX + 8 * BUNDLE_OPERATIONS_MAX;
        const { assert!(LONGEST < FRAME_BYTES_MAX - FRAME_BYTES_MAX / 16) };
    }
}
