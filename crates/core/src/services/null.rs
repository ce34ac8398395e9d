//! A service that does nothing, for benchmarks: the first four bytes of an operation (`u32` little-endian) are the
//! size of the reply that is wanted; whatever follows is ballast.

use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use bytes::Bytes;

/// The largest reply, in bytes. Whoever asks for more gets this much.
pub const REPLY_BYTES_MAX: usize = 1 << 16;

static ZEROS: [u8; REPLY_BYTES_MAX] = [0; REPLY_BYTES_MAX];

/// Counts what it executes, so that replicas have a state to compare, and replies with zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Null {
    executed: u64,
    dirty: bool,
}

/// As many zeros as the operation asks for; none if it is too short to ask.
fn reply(operation: &[u8]) -> Bytes {
    let wanted = operation.first_chunk().map_or(0, |size| u32::from_le_bytes(*size) as usize);
    Bytes::from_static(&ZEROS[..wanted.min(REPLY_BYTES_MAX)])
}

impl Service for Null {
    fn execute(&mut self, operation: &[u8], _agreed: &Agreed) -> Bytes {
        self.executed += 1;
        self.dirty = true;
        reply(operation)
    }

    fn query(&self, operation: &[u8], _asker: &Asker) -> Result<Bytes, NotReadOnly> {
        Ok(reply(operation))
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        if core::mem::take(&mut self.dirty) {
            write(0, Some(Bytes::copy_from_slice(&self.executed.to_le_bytes())));
        }
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        for (number, content) in pages {
            self.executed = match (number, content) {
                (0, Some(content)) => u64::from_le_bytes(content.as_ref().try_into().map_err(|_| BadState)?),
                (0, None) => 0,
                _ => return Err(BadState),
            };
            self.dirty = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_the_size_asked_for_up_to_the_bound() {
        let mut null = Null::default();
        let mut size = |operation: &[u8]| null.execute(operation, &Agreed::default()).len();
        assert_eq!(size(&4096u32.to_le_bytes()), 4096);
        assert_eq!(size(b"\x08\0\0\0ballast"), 8);
        assert_eq!(size(&[0xff; 4]), REPLY_BYTES_MAX);
        assert_eq!(size(b"abc"), 0);
    }

    #[test]
    fn the_count_survives_save_and_load() {
        let mut null = Null::default();
        let agreed = Agreed::default();
        null.execute(b"", &agreed);
        let mut page = None;
        null.save(&mut |number, content| page = Some((number, content)));
        null.save(&mut |_, _| panic!("nothing changed"));
        let saved = null.clone();
        null.execute(b"", &agreed);
        null.load(&mut page.clone().into_iter()).unwrap();
        assert_eq!(null, saved);
        assert_eq!(null.load(&mut [(0, Some(Bytes::from_static(b"?")))].into_iter()), Err(BadState));
        assert_eq!(null.load(&mut [(1, None)].into_iter()), Err(BadState));
    }
}
