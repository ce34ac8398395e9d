//! The clients that are open, by number: a number of one that was closed, or of none, is an error and not a crash, and
//! a client that one thread closes lives on until the calls of others have ended.

use crate::outcome::{Code, Problem};
use bezant_node::client::{Client, ClientOptions, connect, key_beside};
use bezant_node::config::ClusterConfig;
use std::collections::BTreeMap;
use std::path::Path;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Clients that one process may have open: each is a thread and a connection to every replica.
const CLIENTS_MAX: usize = 1_024;
/// Calls of one client that may be under way: more of them wait.
const SESSIONS: usize = 256;

#[derive(Debug)]
struct Open {
    client: Client,
    /// The process that opened it. Its thread does not live in one that was forked from that.
    process: u32,
}

#[derive(Debug, Default)]
struct Clients {
    /// The last number that was given.
    last: u64,
    open: BTreeMap<u64, Open>,
}

static CLIENTS: Mutex<Clients> = Mutex::new(Clients { last: 0, open: BTreeMap::new() });

fn lock() -> MutexGuard<'static, Clients> {
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connected(cluster: &Path, key: Option<&Path>) -> Result<Client, Problem> {
    let refused = |error: &dyn std::error::Error| Problem::new(Code::Open, error.to_string());
    let config = ClusterConfig::load(cluster).map_err(|error| refused(&error))?;
    let key = key.map_or_else(|| key_beside(cluster), Path::to_owned);
    let options = ClientOptions::of(&config, &key, 1, SESSIONS).map_err(|error| refused(&error))?;
    connect(options).map_err(|error| refused(&error))
}

/// Connects with what the files say. The number is never 0, and never given twice.
pub(crate) fn open(cluster: &Path, key: Option<&Path>) -> Result<u64, Problem> {
    if lock().open.len() >= CLIENTS_MAX {
        return Err(Problem::invalid("too many clients are open"));
    }
    let open = Open { client: connected(cluster, key)?, process: process::id() };
    let mut clients = lock();
    clients.last += 1;
    let number = clients.last;
    clients.open.insert(number, open);
    Ok(number)
}

/// One that is open.
pub(crate) fn get(number: u64) -> Result<Client, Problem> {
    let clients = lock();
    let open = clients.open.get(&number).ok_or_else(|| Problem::new(Code::Closed, "the client is closed"))?;
    if open.process != process::id() {
        return Err(Problem::invalid("the client was opened before this process was forked: open another one here"));
    }
    Ok(open.client.clone())
}

/// Forgets a client, and ends it when nobody uses it any more.
pub(crate) fn close(number: u64) {
    let open = lock().open.remove(&number);
    // Ending it waits for its thread, which others need not wait for.
    match open {
        Some(open) if open.process != process::id() => std::mem::forget(open),
        open => drop(open),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_never_given_is_closed() {
        for number in [0, u64::MAX] {
            assert!(get(number).is_err());
            close(number);
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let problem = open(Path::new("no/cluster.toml"), None).expect_err("there is none");
        assert!(format!("{problem:?}").contains("no/cluster.toml: cannot be read"), "{problem:?}");
    }
}
