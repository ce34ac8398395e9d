//! Results into replies.

use super::form::Form;
use super::integer::not_an_integer;
use super::parser::Arguments;
use super::reply::Reply;
use crate::store::StoreError;
use bezant_core::services::kv::{KvOperation, KvResult};
use bytes::Bytes;

/// Most bytes in the reply to one command.
const REPLY_BYTES_MAX: usize = 64 << 20;

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

/// A write with a read of the same key before it.
pub(crate) fn returning_old(arguments: &Arguments, write: KvOperation) -> Vec<KvOperation> {
    vec![KvOperation::Get { key: arguments[1].clone() }, write]
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
