//! Commands into operations, and results into replies: what needs no connection.

use super::command::Verb;
use super::expiry::{self, Form};
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
    /// Whether it was done: 1 or 0.
    Flag,
    /// How long the value is.
    Length,
    /// The value from here to there, both inclusive; negative: from its end.
    Part(i64, i64),
    /// What kind of value the key has.
    Type,
    /// The value that was read before the write: two results, with nothing in between.
    Old,
    /// How long the key lives.
    Life(Form),
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
    let life = |form| Ok((vec![KvOperation::Deadline { key: arguments[1].clone() }], Shape::Life(form)));
    let increment = |by| single(KvOperation::Increment { key: arguments[1].clone(), by });
    match verb {
        Verb::Get => Ok((gets(), Shape::Single)),
        Verb::MGet => Ok((gets(), Shape::List)),
        Verb::StrLen => Ok((gets(), Shape::Length)),
        Verb::GetRange => {
            let (from, to) = (parse_integer(&arguments[2])?, parse_integer(&arguments[3])?);
            let key = arguments[1].clone();
            Ok((vec![KvOperation::Get { key }], Shape::Part(from, to)))
        }
        Verb::Type => Ok((vec![KvOperation::Exists { keys: arguments[1..].to_vec() }], Shape::Type)),
        Verb::Exists => single(KvOperation::Exists { keys: arguments[1..].to_vec() }),
        Verb::Set => expiry::set(arguments),
        Verb::SetEx => expiry::set_for(arguments, Form::EX),
        Verb::PSetEx => expiry::set_for(arguments, Form::PX),
        Verb::GetEx => expiry::get_and_expire(arguments),
        Verb::Expire => expiry::expire(arguments, Form::EX),
        Verb::PExpire => expiry::expire(arguments, Form::PX),
        Verb::ExpireAt => expiry::expire(arguments, Form::EXAT),
        Verb::PExpireAt => expiry::expire(arguments, Form::PXAT),
        Verb::Persist => Ok((vec![KvOperation::Persist { key: arguments[1].clone() }], Shape::Flag)),
        Verb::Ttl => life(Form::EX),
        Verb::PTtl => life(Form::PX),
        Verb::ExpireTime => life(Form::EXAT),
        Verb::PExpireTime => life(Form::PXAT),
        Verb::SetNx => Ok((vec![write(arguments, Condition::Absent)], Shape::Flag)),
        Verb::GetSet => Ok((returning_old(arguments, write(arguments, Condition::Always)), Shape::Old)),
        Verb::GetDel => {
            let delete = KvOperation::Delete { keys: arguments[1..].to_vec() };
            Ok((returning_old(arguments, delete), Shape::Old))
        }
        Verb::Append => single(splice(arguments, None)),
        Verb::SetRange => single(splice(arguments, Some(offset(&arguments[2])?))),
        Verb::MSet => single(KvOperation::MultiSet { entries: pairs(arguments) }),
        Verb::MSetNx => {
            let entries = pairs(arguments);
            let conditions = entries.iter().map(|(key, _)| (key.clone(), None)).collect();
            let operations = vec![KvOperation::MultiSet { entries }];
            Ok((vec![KvOperation::Transaction { conditions, operations }], Shape::Flag))
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

fn pairs(arguments: &Arguments) -> Vec<(Bytes, Bytes)> {
    arguments[1..].chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

fn write(arguments: &Arguments, condition: Condition) -> KvOperation {
    KvOperation::Set { key: arguments[1].clone(), value: arguments[2].clone(), condition }
}

/// A write with a read of the same key before it.
pub(crate) fn returning_old(arguments: &Arguments, write: KvOperation) -> Vec<KvOperation> {
    vec![KvOperation::Get { key: arguments[1].clone() }, write]
}

/// `APPEND key bytes`, or `SETRANGE key offset bytes`.
fn splice(arguments: &Arguments, offset: Option<u32>) -> KvOperation {
    KvOperation::Splice { key: arguments[1].clone(), offset, bytes: arguments[arguments.len() - 1].clone() }
}

fn offset(text: &[u8]) -> Result<u32, Reply> {
    let offset = parse_integer(text)?;
    u32::try_from(offset).map_err(|_| match offset {
        ..0 => Reply::error("offset is out of range"),
        _ => value_too_long(),
    })
}

fn value_too_long() -> Reply {
    Reply::error(format!("a value is longer than {VALUE_BYTES_MAX} bytes"))
}

/// Refuses keys and values that the service does not take, and writes that would not fit into one operation.
pub(crate) fn check_sizes(operations: &[KvOperation], bytes: usize) -> Result<(), Reply> {
    let is_key = |key: &Bytes| key.len() <= KEY_BYTES_MAX;
    let is_value = |value: &Bytes| value.len() <= VALUE_BYTES_MAX;
    for operation in operations {
        let (keys_fit, values_fit) = match operation {
            KvOperation::Get { key }
            | KvOperation::Increment { key, .. }
            | KvOperation::Expire { key, .. }
            | KvOperation::Persist { key }
            | KvOperation::Deadline { key } => (is_key(key), true),
            KvOperation::Set { key, value, .. } | KvOperation::SetUntil { key, value, .. } => {
                (is_key(key), is_value(value))
            }
            KvOperation::Delete { keys } | KvOperation::Exists { keys } => (keys.iter().all(is_key), true),
            KvOperation::Splice { key, bytes, .. } => (is_key(key), is_value(bytes)),
            KvOperation::Transaction { operations, .. } => return check_sizes(operations, bytes),
            KvOperation::MultiSet { entries } => {
                (entries.iter().all(|(key, _)| is_key(key)), entries.iter().all(|(_, value)| is_value(value)))
            }
            _ => (true, true),
        };
        if !keys_fit {
            return Err(Reply::error(format!("a key is longer than {KEY_BYTES_MAX} bytes")));
        }
        if !values_fit {
            return Err(value_too_long());
        }
        if !operation.is_read_only() && bytes > WRITE_BYTES_MAX {
            return Err(Reply::error(format!("one command may write at most {WRITE_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}

impl Shape {
    /// Whether nothing may come between the operations of the command.
    pub(crate) const fn is_atomic(self) -> bool {
        matches!(self, Self::Old)
    }

    /// The reply to a command out of the results of its operations.
    pub(crate) fn reply(self, results: impl Iterator<Item = Result<KvResult, StoreError>>) -> Reply {
        let mut replies = Vec::new();
        let mut error = None;
        let mut bytes = 0;
        for reply in results.map(|result| self.reply_to_one(result)) {
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
        if matches!(self, Self::List) {
            return Reply::Array(replies);
        }
        if matches!(self, Self::Old) {
            replies.pop();
        }
        let reply = replies.pop().expect("a command of this shape has one operation, or two if it is atomic");
        self.single(reply)
    }

    fn reply_to_one(self, result: Result<KvResult, StoreError>) -> Reply {
        match (self, result) {
            (Self::Life(form), Ok(KvResult::Deadline { now_ms, deadline_ms })) => form.show(now_ms, deadline_ms),
            (Self::Life(_), Ok(KvResult::NotDone)) => Reply::Integer(-2),
            (_, result) => reply_to_one(result),
        }
    }

    fn single(self, reply: Reply) -> Reply {
        match (self, reply) {
            (Self::Flag, Reply::Simple(_)) => Reply::Integer(1),
            (Self::Flag | Self::Length, Reply::Null) => Reply::Integer(0),
            (Self::Length, Reply::Bulk(value)) => Reply::Integer(value.len() as i64),
            (Self::Part(..), Reply::Null) => Reply::Bulk(Bytes::new()),
            (Self::Part(from, to), Reply::Bulk(value)) => Reply::Bulk(part(&value, from, to)),
            (Self::Type, Reply::Integer(count)) => Reply::Simple(if count == 0 { "none" } else { "string" }),
            (_, reply) => reply,
        }
    }
}

/// From here to there, both inclusive; negative: from the end.
fn part(value: &Bytes, from: i64, to: i64) -> Bytes {
    let length = value.len() as i64;
    let place = |index: i64| if index < 0 { index.saturating_add(length).max(0) } else { index };
    // Redis gives nothing here, although both would be moved to the first byte.
    let reversed = from < 0 && to < 0 && from > to;
    let (from, to) = (place(from), place(to).min(length - 1));
    if reversed || from > to { Bytes::new() } else { value.slice(from as usize..=to as usize) }
}

fn reply_to_one(result: Result<KvResult, StoreError>) -> Reply {
    match result {
        Ok(KvResult::Done) => Reply::OK,
        Ok(KvResult::NotDone) => Reply::Null,
        Ok(KvResult::Value(value)) => value.map_or(Reply::Null, Reply::Bulk),
        Ok(KvResult::Integer(number)) => Reply::Integer(number),
        Ok(KvResult::Count(count)) => Reply::Integer(count as i64),
        // Of MSETNX: the only part.
        Ok(KvResult::Transaction(results)) if results == [KvResult::Done] => Reply::OK,
        Ok(KvResult::Transaction(results)) if results == [KvResult::Full] => reply_to_one(Ok(KvResult::Full)),
        Ok(KvResult::NotAnInteger) => not_an_integer(),
        Ok(KvResult::Overflow) => Reply::error("increment or decrement would overflow"),
        Ok(KvResult::TooLarge) => Reply::error("the reply or the value is too large"),
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
