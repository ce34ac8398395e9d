//! A counter: the smallest service that is complete. `docs/service.md` walks through it.

use crate::service::{Agreed, BadState, NotReadOnly, PageNumber, Service};
use alloc::vec::Vec;
use bytes::Bytes;

/// A number that clients add to and read. Every reply is the number after the operation, as `u64` little-endian;
/// an empty reply means that the operation was neither of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    value: u64,
    /// Changed since it was saved.
    dirty: bool,
}

impl Counter {
    /// The operation that reads.
    pub const READ: &[u8] = b"";

    /// The operation that adds `amount`, wrapping around at 2⁶⁴.
    pub const fn add(amount: u64) -> [u8; 8] {
        amount.to_le_bytes()
    }

    fn reply(&self) -> Bytes {
        Bytes::copy_from_slice(&self.value.to_le_bytes())
    }
}

impl Service for Counter {
    fn execute(&mut self, operation: &[u8], _agreed: &Agreed) -> Bytes {
        if operation == Self::READ {
            return self.reply();
        }
        let Ok(amount) = operation.try_into() else { return Bytes::new() };
        self.value = self.value.wrapping_add(u64::from_le_bytes(amount));
        self.dirty = true;
        self.reply()
    }

    fn query(&self, operation: &[u8]) -> Result<Bytes, NotReadOnly> {
        if operation == Self::READ { Ok(self.reply()) } else { Err(NotReadOnly) }
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Vec<u8>>)) {
        if core::mem::take(&mut self.dirty) {
            write(0, Some(self.value.to_le_bytes().to_vec()));
        }
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        for (number, content) in pages {
            let content = content.unwrap_or(Bytes::from_static(&[0; 8]));
            let value = content.as_ref().try_into().map_err(|_| BadState)?;
            *self = Self {
                value: if number == 0 { u64::from_le_bytes(value) } else { return Err(BadState) },
                dirty: false,
            };
        }
        Ok(())
    }
}
