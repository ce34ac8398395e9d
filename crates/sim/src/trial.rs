//! A service of one's own, as the simulator carries it about: what it is asked for, and what must be true of it.

use crate::rng::Rng;
use bezant_core::digest::Digest;
use bezant_core::service::{Agreed, Asker, BadState, NotReadOnly, Operation, PageNumber, Proposal, Service};
use bytes::Bytes;
use std::fmt;

/// The most bytes of an operation that [`Trial::operation`] draws, and of a reply to one.
pub const OPERATION_BYTES_MAX: usize = 1_024;
/// One operation in so many is spoiled.
const SPOILED_IN: u64 = 8;
/// What is to be tried: a service, what it is asked for, and what must be true of it.
pub trait Trial: 'static {
    /// The service; its default is what it is before its first operation.
    type Service: Service + Default + 'static;
    /// What the service is called. Two of one name count as the same.
    const NAME: &'static str;
    /// The command that calls [`Author::main`], as reports say it.
    const COMMAND: &'static str;

    /// Draws an operation, a function of what it draws alone: reads and writes, also such as the service refuses. At
    /// most [`OPERATION_BYTES_MAX`] bytes, and so many in its reply.
    fn operation(rng: &mut Rng) -> Bytes;

    /// What must be true after every operation and every load.
    ///
    /// # Errors
    /// What is not, in words.
    fn invariant(_service: &Self::Service) -> Result<(), String> {
        Ok(())
    }
}

/// A service that knows what must be true of it.
pub(crate) trait Checked: Service {
    fn invariant(&self) -> Result<(), String>;
}

/// The service of a trial.
struct Tried<T: Trial>(T::Service);

impl<T: Trial> fmt::Debug for Tried<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Trial> Checked for Tried<T> {
    fn invariant(&self) -> Result<(), String> {
        T::invariant(&self.0)
    }
}

impl<T: Trial> Service for Tried<T> {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        self.0.execute(operation, agreed)
    }

    fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
        self.0.execute_many(operations)
    }

    fn run_max(&self) -> usize {
        self.0.run_max()
    }

    fn take_written(&mut self) -> Digest {
        self.0.take_written()
    }

    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        self.0.query(operation, asker)
    }

    fn ordered_query(&mut self, operation: &[u8], agreed: &Agreed) -> Result<Bytes, NotReadOnly> {
        self.0.ordered_query(operation, agreed)
    }

    fn validate(&self, proposal: &Proposal, operation: &[u8]) -> bool {
        self.0.validate(proposal, operation)
    }

    fn authorize(&mut self, identification: &[u8], agreed: &Agreed) -> bool {
        self.0.authorize(identification, agreed)
    }

    fn may_close(&self, asker: &Asker) -> bool {
        self.0.may_close(asker)
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.0.save(write);
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        self.0.load(pages)
    }
}

/// A [`Trial`], as the simulator carries it about.
#[derive(Clone, Copy, Debug)]
pub struct Author {
    pub(crate) name: &'static str,
    pub(crate) command: &'static str,
    pub(crate) make: fn() -> Box<dyn Checked>,
    operation: fn(&mut Rng) -> Bytes,
}

impl PartialEq for Author {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Author {}

impl Author {
    /// The author of this trial.
    pub fn of<T: Trial>() -> Self {
        let make = || Box::new(Tried::<T>(T::Service::default())) as Box<dyn Checked>;
        Self { name: T::NAME, command: T::COMMAND, make, operation: T::operation }
    }

    /// An operation that the author drew, or now and then what became of it on the way.
    ///
    /// # Panics
    /// If it has more than [`OPERATION_BYTES_MAX`] bytes.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Bytes {
        let operation = (self.operation)(rng);
        assert!(operation.len() <= OPERATION_BYTES_MAX, "`operation` drew {} bytes", operation.len());
        let mut bytes = operation.to_vec();
        match rng.below(2 * SPOILED_IN) {
            0 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
            1 if !bytes.is_empty() => {
                let place = rng.below(bytes.len() as u64) as usize;
                bytes[place] ^= 1 << rng.below(8);
            }
            _ => {}
        }
        bytes.into()
    }
}

/// Executes, and compares with what a query says.
///
/// # Errors
/// If the two differ, or the invariant does not hold, in words.
pub(crate) fn execute(service: &mut dyn Checked, operation: &[u8], agreed: &Agreed) -> Result<Bytes, String> {
    let asked = service.query(operation, &agreed.asker);
    let reply = service.execute(operation, agreed);
    judge(operation, asked, &reply)?;
    service.invariant().map(|()| reply)
}

/// The same of several at once, up to the first for which there was no more room. Of the first one it is known what a
/// query says.
///
/// # Errors
/// As [`execute`], or if there are more results than operations, or none.
pub(crate) fn execute_many(service: &mut dyn Checked, operations: &[Operation]) -> Result<Vec<Bytes>, String> {
    let Some(Operation { bytes: first, agreed }) = operations.first() else { return Ok(Vec::new()) };
    let asked = service.query(first, &agreed.asker);
    let replies = service.execute_many(operations);
    if !(1..=operations.len()).contains(&replies.len()) {
        return Err(format!("`execute_many` of {} operations gives {} results", operations.len(), replies.len()));
    }
    judge(first, asked, &replies[0])?;
    replies.iter().try_for_each(is_short)?;
    service.invariant().map(|()| replies)
}

/// Whether a reply is what a query said just before, if it said anything.
fn judge(operation: &[u8], asked: Result<Bytes, NotReadOnly>, reply: &Bytes) -> Result<(), String> {
    match asked {
        Ok(asked) if asked != reply => {
            Err(format!("a query for {operation:?} answers {asked:?}, and `execute` {reply:?}"))
        }
        _ => is_short(reply),
    }
}

fn is_short(reply: &Bytes) -> Result<(), String> {
    if reply.len() > OPERATION_BYTES_MAX {
        return Err(format!("a reply of {} bytes is more than the simulator takes", reply.len()));
    }
    Ok(())
}
