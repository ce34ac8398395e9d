//! The workload's operations as the key-value service takes them.

use crate::workload::{Action, Answer, Key, padding_of};
use bezant_core::services::kv::{Condition, KvOperation, KvResult};
use bezant_core::wire::Wire;
use bytes::Bytes;

/// What the simulated replicas run.
pub use bezant_core::services::kv::Kv as Store;

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

/// The operation's bytes.
pub fn encode(key: Key, action: Action) -> Bytes {
    let key = Bytes::copy_from_slice(&[key]);
    let operation = match action {
        Action::Get => KvOperation::Get { key },
        Action::Set(value) => KvOperation::Set { key, value: register(value), condition: Condition::Always },
        Action::Delete => KvOperation::Delete { keys: vec![key] },
        Action::CompareAndSet(expected, value) => {
            KvOperation::CompareAndSet { key, expected: expected.map(register), value: Some(register(value)) }
        }
        Action::Increment => KvOperation::Increment { key, by: 1 },
    };
    operation.to_bytes().into()
}

/// What a result says.
pub fn decode(action: Action, result: &Bytes) -> Answer {
    match (action, KvResult::from_bytes(result.clone())) {
        (Action::Get, Ok(KvResult::Value(None))) => Answer::Value(None),
        (Action::Get, Ok(KvResult::Value(Some(value)))) => {
            number(&value).map_or(Answer::Nonsense, |value| Answer::Value(Some(value)))
        }
        (Action::Set(..), Ok(KvResult::Done)) => Answer::Done,
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
    use bezant_core::service::{Agreed, Service};

    #[test]
    fn the_service_and_the_model_agree() {
        let mut store = Store::new();
        let mut model: Option<u64> = None;
        let mut rng = crate::rng::Rng::stream(1, "store");
        for step in 1..500 {
            let action = match rng.below(4) {
                0 => Action::Get,
                1 => Action::Set(step),
                2 => Action::Delete,
                _ => Action::CompareAndSet(model, step),
            };
            let result = store.execute(&encode(7, action), &Agreed::default());
            let (answer, next) = action.apply(model);
            assert_eq!(decode(action, &result), answer);
            model = next;
        }
        let sum = store.execute(&encode(8, Action::Increment), &Agreed::default());
        assert_eq!(decode(Action::Increment, &sum), Answer::Sum(1));
    }
}
