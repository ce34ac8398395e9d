//! A service of one's own beside the key-value store: see [`crate::trial`].

use super::pages::DISSENT_PAGE;
use crate::rng::Rng;
use crate::trial::{Author, Checked, execute, execute_many};
use bezant_core::digest::Digest;
use bezant_core::service::{Agreed, Asker, BadState, NotReadOnly, Operation, PageNumber, Proposal, Service};
use bezant_core::services::kv::{BUCKETS, Kv};
use bytes::Bytes;

/// The first page of the key-value store; those before are the author's.
const KV: PageNumber = DISSENT_PAGE - BUCKETS;
/// The longest run that the author's service is given: there is room for all results, with what the store says.
const RUN_MAX: usize = 64;

/// Both.
#[derive(Debug)]
pub(super) struct Own {
    kv: Kv,
    own: Box<dyn Checked>,
}

/// Puts what is for the key-value store, or from it, before the author's.
fn joined(kv: &[u8], own: &[u8]) -> Bytes {
    let length = u32::try_from(kv.len()).expect("an operation is not that long");
    [&length.to_le_bytes(), kv, own].concat().into()
}

/// The way back; `None`: it is not of this form, a liar made it.
pub(super) fn parted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// An operation for the key-value store with the author's that this seed draws.
pub(super) fn with_operation(author: &Author, seed: u64, kv: &[u8]) -> Bytes {
    joined(kv, &author.draw(&mut Rng::stream(seed, "own operation")))
}

impl Own {
    pub(super) fn new(author: &Author) -> Self {
        Self { kv: Kv::new(), own: (author.make)() }
    }
}

impl Service for Own {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        let Some((kv, own)) = parted(operation) else { return Bytes::new() };
        let own = execute(&mut *self.own, own, agreed).unwrap_or_else(|what| panic!("the service: {what}"));
        joined(&self.kv.execute(kv, agreed), &own)
    }

    fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
        let own = |Operation { bytes, agreed }: &Operation| {
            let (_, own) = parted(bytes)?;
            Some(Operation { bytes: bytes.slice_ref(own), agreed: *agreed })
        };
        let own: Vec<Operation> = operations.iter().filter_map(own).collect();
        let replies = execute_many(&mut *self.own, &own).unwrap_or_else(|what| panic!("the service: {what}"));
        let mut replies = replies.into_iter();
        let both = |Operation { bytes, agreed }: &Operation| {
            let Some((kv, _)) = parted(bytes) else { return Some(Bytes::new()) };
            // Where there was no room for one more, neither executes it.
            let own = replies.next()?;
            Some(joined(&self.kv.execute(kv, agreed), &own))
        };
        operations.iter().map_while(both).collect()
    }

    fn run_max(&self) -> usize {
        self.own.run_max().min(RUN_MAX)
    }

    fn take_written(&mut self) -> Digest {
        let own = self.own.take_written();
        let kv = self.kv.take_written();
        if own == Digest::ZERO { kv } else { kv.chain(own) }
    }

    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        let (kv, own) = parted(operation).ok_or(NotReadOnly)?;
        let kv = self.kv.query(kv, asker)?;
        // The workload asks such questions only as can be answered; what was drawn for the author is any operation.
        Ok(joined(&kv, &self.own.query(own, asker).unwrap_or_default()))
    }

    fn ordered_query(&mut self, operation: &[u8], agreed: &Agreed) -> Result<Bytes, NotReadOnly> {
        let (kv, own) = parted(operation).ok_or(NotReadOnly)?;
        let kv = self.kv.ordered_query(kv, agreed)?;
        Ok(joined(&kv, &self.own.ordered_query(own, agreed).unwrap_or_default()))
    }

    fn validate(&self, proposal: &Proposal, operation: &[u8]) -> bool {
        parted(operation).is_none_or(|(_, own)| self.own.validate(proposal, own))
    }

    fn authorize(&mut self, identification: &[u8], agreed: &Agreed) -> bool {
        self.own.authorize(identification, agreed)
    }

    fn may_close(&self, asker: &Asker) -> bool {
        self.own.may_close(asker)
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.own.save(&mut |number, page| {
            assert!(number < KV, "the simulator has room for pages below {KV}");
            write(number, page);
        });
        self.kv.save(&mut |number, page| write(KV + number, page));
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        let (own, kv): (Vec<_>, Vec<_>) = pages.partition(|(number, _)| *number < KV);
        self.own.load(&mut own.into_iter())?;
        self.kv.load(&mut kv.into_iter().map(|(number, page)| (number - KV, page)))?;
        self.own.invariant().unwrap_or_else(|what| panic!("the service, after `load`: {what}"));
        Ok(())
    }
}
