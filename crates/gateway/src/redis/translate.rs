//! Commands into operations, and results into replies: what needs no connection.

use super::command::Verb;
use super::parser::Arguments;
use super::reply::Reply;
use crate::store::StoreError;
use bezant_core::services::kv::{Condition, KEY_BYTES_MAX, KvOperation, KvResult, VALUE_BYTES_MAX};
use bytes::Bytes;

/// Most bytes in the reply to one command.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Most bytes of keys and values that one command writes: they must fit into one operation.
pub(crate) const WRITE_BYTES_MAX: usize = 768 << 10;

/// How the results of a command become its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// The reply to the only result.
    Single,
    /// All of them.
    List,
}

/// A decimal number as Redis takes it.
pub(crate) fn parse_integer(text: &[u8]) -> Result<i64, Reply> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(not_an_integer)
}

fn not_an_integer() -> Reply {
    Reply::error("value is not an integer or out of range")
}

/// The operations of a command, and how their results become its reply.
pub(crate) fn translate(verb: Verb, arguments: &Arguments) -> Result<(Vec<KvOperation>, Shape), Reply> {
    let single = |operation| Ok((vec![operation], Shape::Single));
    let gets = || arguments[1..].iter().map(|key| KvOperation::Get { key: key.clone() }).collect();
    let increment = |by| single(KvOperation::Increment { key: arguments[1].clone(), by });
    match verb {
        Verb::Get => Ok((gets(), Shape::Single)),
        Verb::MGet => Ok((gets(), Shape::List)),
        Verb::Exists => single(KvOperation::Exists { keys: arguments[1..].to_vec() }),
        Verb::Set => single(set(arguments)?),
        Verb::MSet => {
            let entries = arguments[1..].chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            single(KvOperation::MultiSet { entries: entries.collect() })
        }
        Verb::Del => single(KvOperation::Delete { keys: arguments[1..].to_vec() }),
        Verb::Incr => increment(1),
        Verb::Decr => increment(-1),
        Verb::IncrBy => increment(parse_integer(&arguments[2])?),
        Verb::DecrBy => match parse_integer(&arguments[2])?.checked_neg() {
            Some(by) => increment(by),
            None => Err(Reply::error("decrement would overflow")),
        },
        _ => single(KvOperation::Count),
    }
}

/// Refuses keys and values that the service does not take, and writes that would not fit into one operation.
pub(crate) fn check_sizes(operations: &[KvOperation], bytes: usize) -> Result<(), Reply> {
    let is_key = |key: &Bytes| key.len() <= KEY_BYTES_MAX;
    let is_value = |value: &Bytes| value.len() <= VALUE_BYTES_MAX;
    for operation in operations {
        let (keys_fit, values_fit) = match operation {
            KvOperation::Get { key } | KvOperation::Increment { key, .. } => (is_key(key), true),
            KvOperation::Set { key, value, .. } => (is_key(key), is_value(value)),
            KvOperation::Delete { keys } | KvOperation::Exists { keys } => (keys.iter().all(is_key), true),
            KvOperation::MultiSet { entries } => {
                (entries.iter().all(|(key, _)| is_key(key)), entries.iter().all(|(_, value)| is_value(value)))
            }
            _ => (true, true),
        };
        if !keys_fit {
            return Err(Reply::error(format!("a key is longer than {KEY_BYTES_MAX} bytes")));
        }
        if !values_fit {
            return Err(Reply::error(format!("a value is longer than {VALUE_BYTES_MAX} bytes")));
        }
        if !operation.is_read_only() && bytes > WRITE_BYTES_MAX {
            return Err(Reply::error(format!("one command may write at most {WRITE_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}

/// `SET key value [NX | XX]`.
fn set(arguments: &Arguments) -> Result<KvOperation, Reply> {
    let mut condition = Condition::Always;
    for option in &arguments[3..] {
        let option = option.to_ascii_uppercase();
        condition = match (option.as_slice(), condition) {
            (b"NX", Condition::Always) => Condition::Absent,
            (b"XX", Condition::Always) => Condition::Present,
            (b"EX" | b"PX" | b"EXAT" | b"PXAT" | b"KEEPTTL" | b"GET", _) => {
                let option = String::from_utf8_lossy(&option);
                return Err(Reply::error(format!("SET option {option} is not supported here: only NX and XX are")));
            }
            _ => return Err(Reply::error("syntax error")),
        };
    }
    Ok(KvOperation::Set { key: arguments[1].clone(), value: arguments[2].clone(), condition })
}

impl Shape {
    /// The reply to a command out of the results of its operations.
    pub(crate) fn reply(self, results: impl Iterator<Item = Result<KvResult, StoreError>>) -> Reply {
        let mut replies = Vec::new();
        let mut error = None;
        let mut bytes = 0;
        for reply in results.map(reply_to_one) {
            bytes += if let Reply::Bulk(value) = &reply { value.len() } else { 0 };
            match reply {
                // What went wrong with one key went wrong with the command. The other results are taken all the same.
                Reply::Error(_) => error = error.or(Some(reply)),
                _ if bytes <= REPLY_BYTES_MAX => replies.push(reply),
                _ => error = error.or_else(|| Some(Reply::error("the reply is too large: ask for fewer keys"))),
            }
        }
        if let Some(error) = error {
            return error;
        }
        match self {
            Self::Single => replies.pop().expect("a command of this shape has one operation"),
            Self::List => Reply::Array(replies),
        }
    }
}

fn reply_to_one(result: Result<KvResult, StoreError>) -> Reply {
    match result {
        Ok(KvResult::Done) => Reply::OK,
        Ok(KvResult::NotDone) => Reply::Null,
        Ok(KvResult::Value(value)) => value.map_or(Reply::Null, Reply::Bulk),
        Ok(KvResult::Integer(number)) => Reply::Integer(number),
        Ok(KvResult::Count(count)) => Reply::Integer(count as i64),
        Ok(KvResult::NotAnInteger) => not_an_integer(),
        Ok(KvResult::Overflow) => Reply::error("increment or decrement would overflow"),
        Ok(KvResult::TooLarge) => Reply::error("the reply is too large: ask for less at once"),
        Ok(KvResult::Full) => Reply::Error("OOM the service has no room for this key and value".into()),
        Ok(other) => unexpected(&other),
        Err(error) => error_reply(&error),
    }
}

pub(crate) fn unexpected(result: &KvResult) -> Reply {
    Reply::error(format!("the service answered {result:?}"))
}

/// An unknown outcome has a code of its own: the client must not take it for a failure.
pub(crate) fn error_reply(error: &StoreError) -> Reply {
    match error {
        StoreError::Refused(_) => Reply::error(error.to_string()),
        StoreError::Unknown(_) => Reply::Error(format!("TRYAGAIN {error}")),
    }
}
