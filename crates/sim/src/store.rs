//! What the simulated replicas run: the key-value or the SQL service, with an eye on the agreed time (prac-F27), and
//! the workload's operations as it takes them.

mod own;
mod pages;
mod registers;

use crate::rng::Rng;
use crate::trial::Author;
use crate::workload::{Action, Answer, Key, LIARS_IDENTITY, padding_of};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::ReplicaId;
use bezant_core::service::{Agreed, Asker, BadState, NotReadOnly, Operation, PageNumber, Service};
use bezant_core::services::kv::{Condition, Kv, KvOperation, KvResult, Until};
use bezant_core::time::Instant;
use bezant_core::wire::Wire;
use bytes::Bytes;
use clap::ValueEnum;
use pages::{DISSENT_PAGE, TIME_PAGE};
use std::fmt;

/// One request in so many is executed otherwise, where there is dissent.
const DISSENT_IN: u8 = 16;

/// What is replicated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ServiceKind {
    /// Keys and values
    #[default]
    Kv,
    /// SQLite: a table of registers, with everything in it that could make replicas differ
    Sql,
    /// A service of somebody else's, beside keys and values
    #[value(skip)]
    Own(Author),
}

/// The service. It panics, which counts as a violation, when agreed time goes back.
pub struct Store {
    service: Box<dyn Service>,
    time: Instant,
    /// The time was not saved yet.
    dirty: bool,
    dissent: Option<Dissent>,
    /// What all requests wrote otherwise, those since that was last asked, and whether it was not saved yet.
    odd: (Digest, Digest, bool),
}

/// How a replica executes some requests otherwise than the others. It does the same when it executes them again: what
/// 2f+1 did alike they might all do otherwise then.
#[derive(Clone, Debug)]
pub struct Dissent {
    replica: ReplicaId,
    way: Way,
}

/// See [`Dissent`].
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Each replica in a way of its own.
    Each,
    /// Half of the replicas in one way, the others in another.
    Halves,
    /// Each replica in one of two ways.
    Coin,
}

impl Dissent {
    /// That of a replica in the run of this seed; the same way for all.
    pub fn draw(seed: u64, replica: ReplicaId) -> Self {
        let way = match Rng::stream(seed, "way of dissent").below(4) {
            0 => Way::Halves,
            1 => Way::Coin,
            _ => Way::Each,
        };
        Self { replica, way }
    }

    /// What it does with a request of this digest.
    fn act(&self, request: Digest) -> u64 {
        match self.way {
            Way::Each => u64::from(self.replica.0),
            Way::Halves => u64::from(self.replica.0 % 2),
            Way::Coin => u64::from(request.0[1 + self.replica.0 as usize] % 2),
        }
    }
}

/// What the service holds is the service's own.
impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("time", &self.time).finish_non_exhaustive()
    }
}

impl Store {
    /// A service before its first operation.
    pub fn new(kind: ServiceKind) -> Self {
        let service: Box<dyn Service> = match kind {
            ServiceKind::Kv => Box::new(Kv::new()),
            ServiceKind::Sql => Box::new(registers::new()),
            ServiceKind::Own(author) => Box::new(own::Own::new(&author)),
        };
        let odd = (Digest::ZERO, Digest::ZERO, false);
        Self { service, time: Instant(0), dirty: false, dissent: None, odd }
    }

    /// The same, executing some requests otherwise than others do.
    #[must_use]
    pub fn with(mut self, dissent: Option<Dissent>) -> Self {
        self.dissent = dissent;
        self
    }

    fn advance(&mut self, agreed: &Agreed) {
        assert!(agreed.time >= self.time, "agreed time went back from {:?} to {:?}", self.time, agreed.time);
        self.time = agreed.time;
        self.dirty = true;
    }

    /// Writes what the others do not, if it is time.
    fn dissent(&mut self, operation: &[u8], agreed: &Agreed) {
        let Some(dissent) = &self.dissent else { return };
        let request = Digest::of_parts(Domain::Trace, &[operation, &agreed.seed.digest().0]);
        if request.0[0].is_multiple_of(DISSENT_IN) {
            let written = Digest::of(Domain::Trace, &dissent.act(request).to_le_bytes());
            self.odd = (self.odd.0.chain(written), self.odd.1.chain(written), true);
        }
    }
}

impl Service for Store {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        self.advance(agreed);
        self.dissent(operation, agreed);
        self.service.execute(operation, agreed)
    }

    fn execute_many(&mut self, operations: &[Operation]) -> Vec<Bytes> {
        for Operation { bytes, agreed } in operations {
            self.advance(agreed);
            self.dissent(bytes, agreed);
        }
        self.service.execute_many(operations)
    }

    fn run_max(&self) -> usize {
        self.service.run_max()
    }

    fn take_written(&mut self) -> Digest {
        let odd = std::mem::take(&mut self.odd.1);
        let written = self.service.take_written();
        if odd == Digest::ZERO { written } else { written.chain(odd) }
    }

    fn query(&self, operation: &[u8], asker: &Asker) -> Result<Bytes, NotReadOnly> {
        self.service.query(operation, asker)
    }

    fn ordered_query(&mut self, operation: &[u8], agreed: &Agreed) -> Result<Bytes, NotReadOnly> {
        self.service.ordered_query(operation, agreed)
    }

    /// Not those who lie: what is left of a run would say little.
    fn may_close(&self, asker: &Asker) -> bool {
        asker.client.identity != LIARS_IDENTITY && self.service.may_close(asker)
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        self.service.save(write);
        if std::mem::take(&mut self.dirty) {
            write(TIME_PAGE, Some(Bytes::copy_from_slice(&self.time.0.to_le_bytes())));
        }
        if std::mem::take(&mut self.odd.2) {
            write(DISSENT_PAGE, Some(Bytes::copy_from_slice(&self.odd.0.0)));
        }
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        let (mut time, mut odd) = (self.time, self.odd.0);
        let mut others = pages.filter(|(page, content)| {
            if *page == TIME_PAGE {
                let bytes = content.as_deref().and_then(|content| content.try_into().ok());
                time = Instant(bytes.map_or(0, u64::from_le_bytes));
            }
            if *page == DISSENT_PAGE {
                let bytes = content.as_deref().and_then(|content| content.try_into().ok());
                odd = bytes.map_or(Digest::ZERO, Digest);
            }
            !matches!(*page, TIME_PAGE | DISSENT_PAGE)
        });
        self.service.load(&mut others)?;
        (self.time, self.dirty, self.odd) = (time, false, (odd, Digest::ZERO, false));
        Ok(())
    }
}

/// What pads a value, so that requests and state are as big as they should be.
const PADDING: u8 = b'.';

fn register(value: u64) -> Bytes {
    let mut text = value.to_string().into_bytes();
    text.resize(text.len() + padding_of(value), PADDING);
    text.into()
}

/// The number in a register or a counter.
fn number(value: &[u8]) -> Option<u64> {
    let digits = value.split(|byte| *byte == PADDING).next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The operation's bytes; `drawn` decides what a service of somebody else's is asked for besides.
pub fn encode(service: ServiceKind, key: Key, action: Action, drawn: u64) -> Bytes {
    match service {
        ServiceKind::Kv => kv_operation(key, action).into(),
        ServiceKind::Sql => registers::encode(key, action),
        ServiceKind::Own(author) => own::with_operation(&author, drawn, &kv_operation(key, action)),
    }
}

fn kv_operation(key: Key, action: Action) -> Vec<u8> {
    let key = Bytes::copy_from_slice(&[key]);
    let operation = match action {
        Action::Get => KvOperation::Get { key },
        Action::Set(value) => KvOperation::Set { key, value: register(value), condition: Condition::Always },
        Action::Delete => KvOperation::Delete { keys: vec![key] },
        Action::CompareAndSet(expected, value) => {
            KvOperation::CompareAndSet { key, expected: expected.map(register), value: Some(register(value)) }
        }
        Action::Increment => KvOperation::Increment { key, by: 1 },
        Action::SetFor(value, span) => KvOperation::SetUntil {
            key,
            value: register(value),
            condition: Condition::Always,
            until: Some(Until::In(span as i64)),
        },
        Action::Life => KvOperation::Deadline { key },
    };
    operation.to_bytes()
}

/// What a result says.
pub fn decode(service: ServiceKind, action: Action, result: &Bytes) -> Answer {
    let result = match service {
        ServiceKind::Sql => return registers::decode(action, result),
        ServiceKind::Kv => result.clone(),
        ServiceKind::Own(_) => match own::parted(result) {
            Some((kv, _)) => result.slice_ref(kv),
            None => return Answer::Nonsense,
        },
    };
    match (action, KvResult::from_bytes(result)) {
        (Action::Get, Ok(KvResult::Value(None))) => Answer::Value(None),
        (Action::Get, Ok(KvResult::Value(Some(value)))) => {
            number(&value).map_or(Answer::Nonsense, |value| Answer::Value(Some(value)))
        }
        (Action::Set(..) | Action::SetFor(..), Ok(KvResult::Done)) => Answer::Done,
        (Action::Life, Ok(KvResult::NotDone)) => Answer::Life(None),
        (Action::Life, Ok(KvResult::Deadline { deadline_ms: None, .. })) => Answer::Life(Some(false)),
        (Action::Life, Ok(KvResult::Deadline { now_ms, deadline_ms: Some(deadline) })) if now_ms < deadline => {
            Answer::Life(Some(true))
        }
        (Action::Delete, Ok(KvResult::Count(count @ 0..=1))) => Answer::Changed(count == 1),
        (Action::CompareAndSet(..), Ok(KvResult::Done)) => Answer::Changed(true),
        (Action::CompareAndSet(..), Ok(KvResult::NotDone)) => Answer::Changed(false),
        (Action::Increment, Ok(KvResult::Integer(sum))) => u64::try_from(sum).map_or(Answer::Nonsense, Answer::Sum),
        _ => Answer::Nonsense,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Held;

    #[test]
    fn the_services_and_the_model_agree() {
        for kind in [ServiceKind::Kv, ServiceKind::Sql] {
            let mut store = Store::new(kind);
            let mut model: Option<Held> = None;
            let mut rng = Rng::stream(1, "store");
            for step in 1..500 {
                let action = match rng.below(if kind == ServiceKind::Kv { 6 } else { 4 }) {
                    0 => Action::Get,
                    1 => Action::Set(step),
                    2 => Action::Delete,
                    3 => Action::CompareAndSet(model.map(|held| held.value), step),
                    4 => Action::SetFor(step, 1),
                    _ => Action::Life,
                };
                let result = store.execute(&encode(kind, 7, action, step), &Agreed::default());
                let (answer, next) = action.apply(model);
                assert_eq!(decode(kind, action, &result), answer);
                model = next;
            }
            let sum = store.execute(&encode(kind, 8, Action::Increment, 0), &Agreed::default());
            assert_eq!(decode(kind, Action::Increment, &sum), Answer::Sum(1));
        }
    }
}
