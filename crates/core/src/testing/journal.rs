//! A service whose state is the history: every reply says all that was executed up to and including the operation.
//!
//! So clients see whole histories, and what a replica takes back or executes twice shows.

use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use alloc::vec::Vec;
use bytes::Bytes;

/// See the [module](self). An operation is its own name: a `u32`, little-endian.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// The names of all operations executed, in order.
    pub(crate) entries: Vec<u32>,
    dirty: bool,
}

/// The names in a reply, or in a page.
pub(crate) fn names(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|name| u32::from_le_bytes(name.try_into().unwrap())).collect()
}

impl Journal {
    fn bytes(&self) -> Vec<u8> {
        self.entries.iter().flat_map(|name| name.to_le_bytes()).collect()
    }
}

impl Service for Journal {
    fn execute(&mut self, operation: &[u8], _agreed: &Agreed) -> Bytes {
        self.entries.extend(names(operation));
        self.dirty = true;
        self.bytes().into()
    }

    fn query(&self, _operation: &[u8], _asker: &Asker) -> Result<Bytes, NotReadOnly> {
        Err(NotReadOnly)
    }

    /// A read is a line, too, so that its place shows.
    fn ordered_query(&mut self, operation: &[u8], agreed: &Agreed) -> Result<Bytes, NotReadOnly> {
        Ok(self.execute(operation, agreed))
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        if core::mem::take(&mut self.dirty) {
            write(0, Some(self.bytes().into()));
        }
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        for (_, page) in pages {
            self.entries = page.map_or_else(Vec::new, |page| names(&page));
            self.dirty = false;
        }
        Ok(())
    }
}
