//! A decision vector in a buffer: for each process the length of its value in four bytes, little end first, and the
//! value; or [`BOTTOM`] in place of a length.

use crate::types::RITAS_PROCESSES_MAX;
use bytes::Bytes;

/// In place of a length: ⊥.
const BOTTOM: u32 = u32::MAX;
/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

/// Bytes that a vector takes.
pub(crate) fn size(vector: &[Option<Bytes>]) -> usize {
    vector.iter().map(|value| LENGTH_BYTES + value.as_ref().map_or(0, Bytes::len)).sum()
}

pub(crate) fn encoded(vector: &[Option<Bytes>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size(vector));
    for value in vector {
        let length = value.as_ref().map_or(BOTTOM, |value| value.len() as u32);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(value.as_deref().unwrap_or_default());
    }
    bytes
}

/// The values in a buffer; `None` if there is no vector in it.
pub(crate) fn extracted(mut bytes: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
        let length = u32::from_le_bytes(*length);
        let (value, rest) = if length == BOTTOM { (None, rest) } else { some(rest.split_at_checked(length as usize)?) };
        values.push(value);
        bytes = rest;
        if values.len() > RITAS_PROCESSES_MAX {
            return None;
        }
    }
    Some(values).filter(|values| !values.is_empty())
}

fn some<'a>((value, rest): (&'a [u8], &'a [u8])) -> (Option<&'a [u8]>, &'a [u8]) {
    (Some(value), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_nothing_else() {
        let vector = [Some(Bytes::from_static(b"one")), None, Some(Bytes::new()), Some(Bytes::from_static(&[7; 300]))];
        let bytes = encoded(&vector);
        assert_eq!(bytes.len(), size(&vector));
        assert_eq!(extracted(&bytes).unwrap(), vector.iter().map(Option::as_deref).collect::<Vec<_>>());
        let complete = [7, 11, 15];
        for length in 0..bytes.len() {
            assert_eq!(extracted(&bytes[..length]).is_some(), complete.contains(&length), "{length}");
        }
        assert!(extracted(&[0; 4 * RITAS_PROCESSES_MAX]).is_some());
        assert!(extracted(&[0; 4 * RITAS_PROCESSES_MAX + 4]).is_none());
    }
}
