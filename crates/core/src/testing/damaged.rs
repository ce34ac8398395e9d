//! A service that goes wrong at one replica.

use crate::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use crate::services::Counter;
use bytes::Bytes;

/// A counter that counts a thousand too many: once, as memory that is damaged does, or always, as another version of
/// the service would.
#[derive(Clone, Debug, Default)]
pub(crate) struct Damaged {
    counter: Counter,
    /// How many operations it is until the damage; 0: it never comes.
    until: u32,
    always: bool,
    /// How many operations it is until the damage is undone; 0: it never is.
    undone: u32,
}

impl Damaged {
    /// Damaged once, at the n-th operation from 1 on.
    pub(crate) fn at(operation: u32) -> Self {
        Self { until: operation, ..Self::default() }
    }

    /// Damaged once, where no answer shows it, and as by a miracle right again at a later operation.
    pub(crate) fn for_a_while(operation: u32, undone: u32) -> Self {
        Self { undone, ..Self::at(operation) }
    }

    /// Wrong at every operation.
    pub(crate) fn always() -> Self {
        Self { always: true, ..Self::default() }
    }
}

impl Service for Damaged {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        if self.always || self.until == 1 {
            self.counter.execute(&Counter::add(1_000), agreed);
        }
        if self.undone == 1 {
            self.counter.execute(&Counter::add(0_u64.wrapping_sub(1_000)), agreed);
        }
        self.until = self.until.saturating_sub(1);
        self.undone = self.undone.saturating_sub(1);
        let result = self.counter.execute(operation, agreed);
        let sum = <[u8; 8]>::try_from(&result[..]).map(u64::from_le_bytes);
        match sum {
            Ok(sum) if self.undone > 0 && self.until == 0 => {
                Bytes::copy_from_slice(&sum.wrapping_sub(1_000).to_le_bytes())
            }
            _ => result,
        }
    }
    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        self.counter.query(operation, asker)
    }
    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.counter.save(write);
    }
    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        self.counter.load(pages)
    }
}
