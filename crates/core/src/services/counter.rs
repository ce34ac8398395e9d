//! A counter: the smallest service that is complete. `docs/service.md` walks through it.

use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use bytes::Bytes;

/// A number that clients add to and read. A reply is the number after the operation, `u64` little-endian; an empty
/// reply means that the operation was neither of the two.
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

    fn query(&self, operation: &[u8], _asker: &Asker) -> Result<Bytes, NotReadOnly> {
        if operation == Self::READ { Ok(self.reply()) } else { Err(NotReadOnly) }
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        if core::mem::take(&mut self.dirty) {
            write(0, Some(Bytes::copy_from_slice(&self.value.to_le_bytes())));
        }
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        for (number, page) in pages {
            self.value = match (number, page) {
                (0, Some(page)) => u64::from_le_bytes(page.as_ref().try_into().map_err(|_| BadState)?),
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
    use alloc::vec::Vec;

    #[test]
    fn counts_saves_and_goes_back() {
        let (mut counter, agreed) = (Counter::default(), Agreed::default());
        assert_eq!(counter.execute(&Counter::add(2), &agreed).as_ref(), 2u64.to_le_bytes());
        let mut pages = Vec::new();
        counter.save(&mut |number, page| pages.push((number, page)));
        counter.save(&mut |_, _| panic!("nothing changed"));
        assert_eq!(counter.execute(&Counter::add(3), &agreed).as_ref(), 5u64.to_le_bytes());
        assert_eq!(counter.query(Counter::READ, &Asker::default()).as_deref(), Ok(&5u64.to_le_bytes()[..]));
        assert_eq!(counter.query(&Counter::add(1), &Asker::default()), Err(NotReadOnly));
        assert!(counter.execute(b"nonsense!", &agreed).is_empty());
        counter.load(&mut pages.into_iter()).unwrap();
        assert_eq!(counter.execute(Counter::READ, &agreed).as_ref(), 2u64.to_le_bytes());
        counter.load(&mut [(0, None)].into_iter()).unwrap();
        assert_eq!(counter, Counter::default());
        assert_eq!(counter.load(&mut [(1, None)].into_iter()), Err(BadState));
        assert_eq!(counter.load(&mut [(0, Some(Bytes::from_static(b"short")))].into_iter()), Err(BadState));
    }

    /// Every block of code in `docs/service.md` before "Running it" stands in this file, word for word. The others are
    /// those of `examples`, whose tests compare them.
    #[test]
    fn the_walk_through_shows_this_file() {
        let (text, file) = (include_str!("../../../../docs/service.md"), include_str!("counter.rs"));
        let (text, _) = text.split_once("\n## Running it\n").unwrap();
        let blocks: Vec<_> = text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(blocks.len() > 4);
        for block in blocks {
            assert!(file.contains(block), "{block}");
        }
    }
}
