//! `MULTI`, `EXEC` and `WATCH`: commands wait here until `EXEC` sends them as one operation.
//!
//! `WATCH` reads, and `EXEC` has the service compare what is there with what was read. So a transaction is carried out
//! if a watched key has the value that it had, even if it had another one in between.

use super::command::Verb;
use super::integer::parse_integer;
use super::parser::Arguments;
use super::reply::Reply;
use super::shape::{Shape, error_reply, unexpected};
use super::translate::{self, WRITE_BYTES_MAX};
use crate::store::{Store, StoreError};
use bezant_core::services::kv::{KEY_BYTES_MAX, KvOperation, KvResult, LIST_MAX};
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Most commands that wait for `EXEC`, most operations that they become, and most keys that are watched.
pub const TRANSACTION_COMMANDS_MAX: usize = LIST_MAX;
/// Most bytes of them all together, keys and values and what was read: they become one operation.
pub const TRANSACTION_BYTES_MAX: usize = WRITE_BYTES_MAX;
/// What a watched key, or a command that becomes no operation, counts besides its bytes.
const ENTRY_BYTES: usize = 16;

/// How the reply to a command that waits is made.
#[derive(Debug)]
pub(crate) enum Item {
    /// Without the service.
    Ready(Reply),
    /// Out of the results of this many operations.
    Results(usize, Shape),
}

/// A connection's transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// Between `MULTI` and its end.
    open: bool,
    /// A command was refused, or a key is not watched that should be: `EXEC` must do nothing.
    broken: bool,
    watched: BTreeMap<Bytes, Option<Bytes>>,
    operations: Vec<KvOperation>,
    items: Vec<Item>,
    /// Of all that waits or is watched.
    bytes: usize,
}

/// What `EXEC` has to do.
pub(crate) enum Exec {
    /// Nothing: this is the reply.
    Ready(Reply),
    /// An operation of so many bytes, and the replies to make out of its results.
    Call(KvOperation, usize, Vec<Item>),
}

impl Transaction {
    /// Whether commands wait instead of being carried out.
    pub(crate) const fn is_open(&self) -> bool {
        self.open
    }

    /// `MULTI`.
    pub(crate) fn multi(&mut self) -> Reply {
        if self.open {
            return Reply::error("MULTI calls can not be nested");
        }
        self.open = true;
        Reply::OK
    }

    /// `DISCARD`.
    pub(crate) fn discard(&mut self) -> Reply {
        if !self.open {
            return Reply::error("DISCARD without MULTI");
        }
        *self = Self::default();
        Reply::OK
    }

    /// `UNWATCH` outside of a transaction.
    pub(crate) fn unwatch(&mut self) -> Reply {
        *self = Self::default();
        Reply::OK
    }

    /// `WATCH key …`, after all commands that came before it have been carried out.
    pub(crate) fn watch(&mut self, store: &dyn Store, keys: &[Bytes]) -> Reply {
        if self.open {
            return Reply::error("WATCH inside MULTI is not allowed");
        }
        let reply = self.read_watched(store, keys);
        // A client that does not look at this reply must not write as if the keys were watched.
        self.broken |= matches!(reply, Reply::Error(_));
        reply
    }

    fn read_watched(&mut self, store: &dyn Store, keys: &[Bytes]) -> Reply {
        if keys.iter().any(|key| key.len() > KEY_BYTES_MAX) {
            return Reply::error(format!("a key is longer than {KEY_BYTES_MAX} bytes"));
        }
        // What was read first counts: it is what a client may have decided by.
        let new: Vec<_> = keys.iter().filter(|&key| !self.watched.contains_key(key)).cloned().collect();
        if new.is_empty() {
            return Reply::OK;
        }
        if new.len() > LIST_MAX {
            return too_long();
        }
        let values = match store.call(&KvOperation::MultiGet { keys: new.clone() }) {
            Ok(KvResult::Values(values)) if values.len() == new.len() => values,
            Ok(KvResult::TooLarge) => return too_long(),
            Ok(other) => return unexpected(&other),
            Err(error) => return error_reply(&error),
        };
        for (key, value) in new.iter().zip(values) {
            self.bytes += ENTRY_BYTES + key.len() + value.as_ref().map_or(0, Bytes::len);
            if self.bytes > TRANSACTION_BYTES_MAX || self.watched.len() == TRANSACTION_COMMANDS_MAX {
                return too_long();
            }
            // Copies: as slices of what they came in they would keep all of it in memory.
            let value = value.map(|value| Bytes::copy_from_slice(&value));
            self.watched.insert(Bytes::copy_from_slice(key), value);
        }
        Reply::OK
    }

    /// Notes that a command was refused: `EXEC` will refuse all, and nothing needs to be kept.
    pub(crate) fn break_off(&mut self) {
        if self.open {
            *self = Self { open: true, broken: true, ..Self::default() };
        }
    }

    /// Takes a command of an open transaction.
    pub(crate) fn queue(&mut self, verb: Verb, arguments: &Arguments) -> Reply {
        match self.try_queue(verb, arguments) {
            Ok(()) => Reply::Simple("QUEUED"),
            Err(refusal) => {
                self.break_off();
                refusal
            }
        }
    }

    fn try_queue(&mut self, verb: Verb, arguments: &Arguments) -> Result<(), Reply> {
        let given = arguments.iter().map(Bytes::len).sum();
        let (item, operations) = match verb {
            Verb::Ping | Verb::Echo | Verb::Select | Verb::Unwatch => (Item::Ready(immediate(verb, arguments)), vec![]),
            Verb::Auth
            | Verb::Client
            | Verb::Command
            | Verb::Hello
            | Verb::Info
            | Verb::Keys
            | Verb::MSetNx
            | Verb::Scan => {
                let name = String::from_utf8_lossy(&arguments[0]).to_lowercase();
                return Err(Reply::error(format!("'{name}' is not possible in a transaction here")));
            }
            _ => match translate::translate(verb, arguments) {
                Ok((operations, shape)) => {
                    translate::check_sizes(&operations, given)?;
                    (Item::Results(operations.len(), shape), operations)
                }
                // As in Redis, where arguments are read when the command is carried out.
                Err(refusal) => (Item::Ready(refusal), vec![]),
            },
        };
        if self.broken {
            return Ok(());
        }
        let encoded: usize = operations.iter().map(Wire::length).sum();
        let bytes = self.bytes + encoded.max(ENTRY_BYTES + given);
        let full = self.items.len() == TRANSACTION_COMMANDS_MAX
            || self.operations.len() + operations.len() > TRANSACTION_COMMANDS_MAX;
        if full || bytes > TRANSACTION_BYTES_MAX {
            return Err(too_long());
        }
        self.bytes = bytes;
        self.items.push(item);
        self.operations.extend(operations);
        Ok(())
    }

    /// `EXEC`: whatever comes of it, the transaction is over and nothing is watched.
    pub(crate) fn exec(&mut self) -> Exec {
        if !self.open {
            return Exec::Ready(Reply::error("EXEC without MULTI"));
        }
        let Self { broken, watched, operations, items, bytes, .. } = std::mem::take(self);
        if broken {
            let why = "EXECABORT Transaction discarded because of previous errors.";
            return Exec::Ready(Reply::Error(why.into()));
        }
        if operations.is_empty() && watched.is_empty() {
            return Exec::Ready(collect(items, Vec::new()));
        }
        let conditions = watched.into_iter().collect();
        Exec::Call(KvOperation::Transaction { conditions, operations }, bytes, items)
    }
}

/// The reply to `EXEC`.
pub(crate) fn reply(items: Vec<Item>, result: Result<KvResult, StoreError>) -> Reply {
    let wanted: usize = items.iter().map(|item| if let Item::Results(count, _) = item { *count } else { 0 }).sum();
    match result {
        Ok(KvResult::Transaction(results)) if results.len() == wanted => collect(items, results),
        Ok(KvResult::NotDone) => Reply::NullArray,
        Ok(other) => unexpected(&other),
        Err(error) => error_reply(&error),
    }
}

/// The replies of all items, for which there are as many results as they need.
fn collect(items: Vec<Item>, results: Vec<KvResult>) -> Reply {
    let mut results = results.into_iter();
    let replies = items.into_iter().map(|item| match item {
        Item::Ready(reply) => reply,
        Item::Results(count, shape) => shape.reply(results.by_ref().take(count).map(Ok)),
    });
    Reply::Array(replies.collect())
}

/// The reply to a command that asks nobody.
pub(crate) fn immediate(verb: Verb, arguments: &Arguments) -> Reply {
    match verb {
        Verb::Ping if arguments.len() == 1 => Reply::Simple("PONG"),
        Verb::Ping | Verb::Echo => Reply::Bulk(arguments[1].clone()),
        Verb::Select => match parse_integer(&arguments[1]) {
            Ok(0) => Reply::OK,
            Ok(_) => Reply::error("DB index is out of range"),
            Err(refusal) => refusal,
        },
        _ => Reply::OK,
    }
}

fn too_long() -> Reply {
    let (commands, bytes) = (TRANSACTION_COMMANDS_MAX, TRANSACTION_BYTES_MAX);
    Reply::error(format!("a transaction has at most {commands} commands, and {bytes} bytes with what is watched"))
}
