//! `SCAN` and `KEYS`: walks through the keys in their order.
//!
//! Redis cursors are numbers and clients treat them as such, but a position in an ordered map is a key. So the gateway
//! remembers, for a bounded number of scans, which key a cursor number stands for.

use super::glob;
use super::integer::parse_integer;
use super::parser::Arguments;
use super::reply::Reply;
use super::shape::{error_reply, unexpected};
use crate::store::Store;
use bezant_core::services::kv::{KvOperation, KvResult};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of keys that cursors stand for; the oldest are forgotten first.
const CURSOR_BYTES_MAX: usize = 16 << 20;
/// What a cursor costs besides its key.
const CURSOR_BYTES: usize = 64;
/// Most keys that one `SCAN` looks at, whatever its COUNT says.
const SCAN_KEYS_MAX: u32 = 1_000;
/// Keys that one step of `KEYS` asks for.
const KEYS_STEP: u32 = 4_096;
/// Most bytes of keys in the reply to `KEYS`.
const KEYS_BYTES_MAX: usize = 64 << 20;

/// Which key each open cursor stands for.
#[derive(Debug)]
pub(crate) struct Cursors(Mutex<Open>);

#[derive(Debug)]
struct Open {
    positions: BTreeMap<u64, Bytes>,
    bytes: usize,
    next: u64,
}

impl Cursors {
    pub(crate) fn new() -> Self {
        // Numbers that an earlier run of the gateway did not give out: its cursors are unknown, not wrong.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(Mutex::new(Open { positions: BTreeMap::new(), bytes: 0, next: now.as_micros() as u64 }))
    }

    fn remember(&self, position: Bytes) -> u64 {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cursor = open.next;
        open.next += 1;
        open.bytes += position.len() + CURSOR_BYTES;
        open.positions.insert(cursor, position);
        while open.bytes > CURSOR_BYTES_MAX
            && let Some((_, forgotten)) = open.positions.pop_first()
        {
            open.bytes -= forgotten.len() + CURSOR_BYTES;
        }
        cursor
    }

    /// The position of a cursor. It stays: a client may ask twice.
    fn position(&self, cursor: u64) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).positions.get(&cursor).cloned()
    }
}

/// `SCAN cursor [MATCH pattern] [COUNT count]`.
pub(crate) fn scan(store: &dyn Store, cursors: &Cursors, arguments: &Arguments) -> Reply {
    match try_scan(store, cursors, arguments) {
        Ok(reply) | Err(reply) => reply,
    }
}

fn try_scan(store: &dyn Store, cursors: &Cursors, arguments: &Arguments) -> Result<Reply, Reply> {
    let cursor = std::str::from_utf8(&arguments[1]).ok().and_then(|text| text.parse::<u64>().ok());
    let mut pattern = Bytes::from_static(b"*");
    let mut count = 10;
    let mut options = arguments[2..].iter();
    while let Some(option) = options.next() {
        match (option.to_ascii_uppercase().as_slice(), options.next()) {
            (b"MATCH", Some(wanted)) => pattern = wanted.clone(),
            (b"COUNT", Some(wanted)) => count = parse_integer(wanted)?,
            _ => return Err(Reply::error("syntax error")),
        }
    }
    if count < 1 {
        return Err(Reply::error("syntax error"));
    }
    let after = match cursor {
        Some(0) => None,
        Some(cursor) => Some(cursors.position(cursor).ok_or_else(|| Reply::error("invalid cursor"))?),
        None => return Err(Reply::error("invalid cursor")),
    };
    let limit = u32::try_from(count).unwrap_or(u32::MAX).min(SCAN_KEYS_MAX);
    let (keys, last) = step(store, after, &pattern, limit)?;
    let cursor = last.map_or(0, |position| cursors.remember(position));
    let keys = keys.into_iter().map(Reply::Bulk).collect();
    Ok(Reply::Array(vec![Reply::text(cursor.to_string()), Reply::Array(keys)]))
}

/// `KEYS pattern`. Not one moment's view: keys that come or go meanwhile may or may not be listed.
pub(crate) fn keys(store: &dyn Store, pattern: &Bytes) -> Reply {
    let mut found = Vec::new();
    let mut bytes = 0;
    let mut after = None;
    loop {
        let (keys, last) = match step(store, after, pattern, KEYS_STEP) {
            Ok(step) => step,
            Err(refusal) => return refusal,
        };
        for key in keys {
            bytes += key.len() + size_of::<Reply>();
            found.push(Reply::Bulk(key));
        }
        if bytes > KEYS_BYTES_MAX {
            return Reply::error("too many keys for one reply: use SCAN");
        }
        if last.is_none() {
            return Reply::Array(found);
        }
        after = last;
    }
}

/// Looks at the next `limit` keys after `after` (`None`: from the start): those that match, and the last one looked
/// at if there can be more.
fn step(
    store: &dyn Store,
    after: Option<Bytes>,
    pattern: &[u8],
    limit: u32,
) -> Result<(Vec<Bytes>, Option<Bytes>), Reply> {
    let prefix = glob::literal_prefix(pattern);
    let inclusive = after.is_none();
    let from = after.unwrap_or_else(|| Bytes::copy_from_slice(prefix));
    let range = KvOperation::Range { from, inclusive, limit, bytes: u32::MAX, keys_only: true };
    let (entries, more) = match store.call(&range) {
        Ok(KvResult::Range { entries, more }) => (entries, more),
        Ok(other) => return Err(unexpected(&other)),
        Err(error) => return Err(error_reply(&error)),
    };
    // Keys are in order: those with the prefix stand together.
    let last = entries.last().filter(|(key, _)| more && key.starts_with(prefix)).map(|(key, _)| key.clone());
    Ok((entries.into_iter().map(|(key, _)| key).filter(|key| glob::matches(pattern, key)).collect(), last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_cursors_are_forgotten_first() {
        let cursors = Cursors::new();
        let first = cursors.remember(Bytes::from_static(b"first"));
        assert_eq!(cursors.position(first).unwrap(), "first");
        let large = Bytes::from(vec![0; CURSOR_BYTES_MAX / 2]);
        let second = cursors.remember(large.clone());
        let third = cursors.remember(large);
        assert_eq!((cursors.position(first), cursors.position(second)), (None, None));
        assert!(cursors.position(third).is_some());
    }
}
