//! Keys and values, SQL, and operations of a service of one's own.

use crate::outcome::{Code, Outcome, Problem};
use bezant_core::message::Refusal;
use bezant_core::services::kv::{Condition, KEY_BYTES_MAX, KvOperation, KvResult, VALUE_BYTES_MAX};
use bezant_core::wire::Wire;
use bezant_node::client::{CallError, Client};
use bezant_sql::{Batch, Request, Response, SQL_BYTES_MAX, Statement, Value};
use bytes::Bytes;
use std::time::{Duration, Instant};

const FOREIGN: &str = "the replicas agree on an answer that is none of this service's: do they run another one?";

/// Has an operation of any service ordered and executed.
pub(crate) fn execute(client: &Client, operation: Bytes, timeout: Duration) -> Result<Outcome, Problem> {
    let answer = client.execute(operation, timeout).wait().map_err(|error| Problem::of(&error, false))?;
    Ok(Outcome::one(Value::Blob(answer)))
}

/// Asks an operation of any service that only reads.
pub(crate) fn query(client: &Client, operation: Bytes, timeout: Duration) -> Result<Outcome, Problem> {
    let answer = client.query(operation, timeout).wait().map_err(|error| Problem::of(&error, true))?;
    Ok(Outcome::one(Value::Blob(answer)))
}

/// The value of a key, or null.
pub(crate) fn get(client: &Client, key: Bytes, timeout: Duration) -> Result<Outcome, Problem> {
    match key_value(client, &KvOperation::Get { key }, timeout)? {
        KvResult::Value(value) => Ok(Outcome::one(value.map_or(Value::Null, Value::Blob))),
        other => Err(unexpected(&other)),
    }
}

/// Gives a key a value.
pub(crate) fn set(client: &Client, key: Bytes, value: Bytes, timeout: Duration) -> Result<Outcome, Problem> {
    match key_value(client, &KvOperation::Set { key, value, condition: Condition::Always }, timeout)? {
        KvResult::Done => Ok(Outcome::default()),
        other => Err(unexpected(&other)),
    }
}

/// Removes a key: 1 if it had a value, 0 if not.
pub(crate) fn delete(client: &Client, key: Bytes, timeout: Duration) -> Result<Outcome, Problem> {
    match key_value(client, &KvOperation::Delete { keys: vec![key] }, timeout)? {
        KvResult::Count(count) => Ok(Outcome::one(Value::Integer(i64::from(count > 0)))),
        other => Err(unexpected(&other)),
    }
}

/// Gives a key a value if it has the expected one: 1 if so, 0 if not.
pub(crate) fn compare_and_set(
    client: &Client,
    key: Bytes,
    expected: Option<Bytes>,
    value: Option<Bytes>,
    timeout: Duration,
) -> Result<Outcome, Problem> {
    match key_value(client, &KvOperation::CompareAndSet { key, expected, value }, timeout)? {
        KvResult::Done => Ok(Outcome::one(Value::Integer(1))),
        KvResult::NotDone => Ok(Outcome::one(Value::Integer(0))),
        other => Err(unexpected(&other)),
    }
}

/// Keys and values longer than the service takes are not sent: it would call them nonsense.
fn fits(operation: &KvOperation) -> bool {
    let value = |value: &Bytes| value.len() <= VALUE_BYTES_MAX;
    let (key, values) = match operation {
        KvOperation::Get { key } => (key, true),
        KvOperation::Set { key, value: new, .. } => (key, value(new)),
        KvOperation::Delete { keys } => return keys.iter().all(|key| key.len() <= KEY_BYTES_MAX),
        KvOperation::CompareAndSet { key, expected, value: new } => {
            (key, expected.as_ref().is_none_or(value) && new.as_ref().is_none_or(value))
        }
        _ => return true,
    };
    values && key.len() <= KEY_BYTES_MAX
}

fn key_value(client: &Client, operation: &KvOperation, timeout: Duration) -> Result<KvResult, Problem> {
    if !fits(operation) {
        return Err(Problem::invalid("a key has at most 4 KiB, and a value 512 KiB"));
    }
    let reads_only = operation.is_read_only();
    let bytes = operation.to_bytes().into();
    let call = if reads_only { client.query(bytes, timeout) } else { client.execute(bytes, timeout) };
    let answer = call.wait().map_err(|error| Problem::of(&error, reads_only))?;
    KvResult::from_bytes(answer).map_err(|_| Problem::new(Code::Foreign, FOREIGN))
}

/// Why a result is not the one that is wanted.
fn unexpected(result: &KvResult) -> Problem {
    let why = match result {
        KvResult::Full => "there is no room",
        KvResult::TooLarge => "the answer would be too large",
        KvResult::Denied => "the client's role does not allow it",
        _ => return Problem::new(Code::Foreign, FOREIGN),
    };
    Problem::new(Code::Service, why)
}

/// Carries out statements, all or none. What seems to be a read is asked as a query first, and ordered if the replicas
/// say that it is none.
pub(crate) fn sql(client: &Client, statements: Vec<Statement>, timeout: Duration) -> Result<Outcome, Problem> {
    if statements.iter().any(|statement| statement.sql.len() > SQL_BYTES_MAX || statement.sql.contains('\0')) {
        return Err(Problem::invalid("a statement has at most 512 KiB, and no zero byte"));
    }
    let request = Request::Run(Batch { statements, ..Batch::default() });
    let operation = Bytes::from(request.to_bytes());
    let start = Instant::now();
    let ordered = || client.execute(operation.clone(), timeout.saturating_sub(start.elapsed())).wait();
    let answer = match request.seems_read_only() {
        true => match client.query(operation.clone(), timeout).wait() {
            Err(CallError::Rejected(Refusal::NotReadOnly)) => ordered(),
            other => other,
        },
        false => ordered(),
    };
    let answer = answer.map_err(|error| Problem::of(&error, request.is_read_only()))?;
    match Response::from_bytes(answer) {
        Ok(Response::Done(tables)) => Ok(Outcome { tables, ..Outcome::default() }),
        Ok(Response::Failed(failure)) => Err(Problem::sql(failure)),
        _ => Err(Problem::new(Code::Foreign, FOREIGN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_not_sent() {
        let (long, short) = (Bytes::from(vec![0; VALUE_BYTES_MAX + 1]), Bytes::from_static(b"k"));
        let set = |key: &Bytes, value: &Bytes| {
            let (key, value) = (key.clone(), value.clone());
            fits(&KvOperation::Set { key, value, condition: Condition::Always })
        };
        assert!(set(&short, &long.slice(1..)) && !set(&short, &long));
        assert!(set(&long.slice(..KEY_BYTES_MAX), &short) && !set(&long.slice(..=KEY_BYTES_MAX), &short));
        let swap = |value: Option<Bytes>| {
            fits(&KvOperation::CompareAndSet { key: short.clone(), expected: value.clone(), value })
        };
        assert!(swap(None) && swap(Some(short.clone())) && !swap(Some(long.clone())));
    }
}
