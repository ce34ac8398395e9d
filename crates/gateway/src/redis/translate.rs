//! Commands into operations: what needs no connection.

use super::command::Verb;
use super::expiry;
use super::form::Form;
use super::integer::parse_integer;
use super::parser::Arguments;
use super::reply::Reply;
use super::shape::{Shape, returning_old};
use bezant_core::services::kv::{Condition, KEY_BYTES_MAX, KvOperation, VALUE_BYTES_MAX};
use bytes::Bytes;

/// Most bytes of keys and values that one command writes: they must fit into one operation.
pub(crate) const WRITE_BYTES_MAX: usize = 768 << 10;

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
