//! Plain SQLite on this machine's disk, with nothing around it: what one process can insert durably.

use crate::figures::{Figures, Settings};
use crate::histogram::Histogram;
use crate::load::Measured;
use crate::sql;
use bezant_node::replica::CpuTime;
use rusqlite::{Connection, params_from_iter};
use std::path::Path;
use std::time::{Duration, Instant};

/// Inserts rows for so long, `rows` of them in each transaction of one connection, each transaction on the disk before
/// the next begins (a write-ahead log with `synchronous = full`, SQLite's fastest durable setting).
///
/// # Errors
/// What SQLite says, as text.
pub fn measure(directory: &Path, rows: usize, seconds: Duration) -> Result<Figures, String> {
    insert(directory, rows, seconds).map_err(|error| format!("plain SQLite: {error}"))
}

fn insert(directory: &Path, rows: usize, seconds: Duration) -> rusqlite::Result<Figures> {
    let mut connection = Connection::open(directory.join("plain.sqlite"))?;
    connection.query_row("pragma journal_mode = wal", [], |_| Ok(()))?;
    connection.execute_batch("pragma synchronous = full")?;
    connection.execute_batch(sql::CREATE)?;
    let (mut latencies, mut id) = (Histogram::default(), 0);
    let (start, cpu) = (Instant::now(), CpuTime::now().process);
    while start.elapsed() < seconds {
        let began = Instant::now();
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(sql::INSERT)?;
            for _ in 0..rows {
                insert.execute(params_from_iter(sql::row(id)))?;
                id += 1;
            }
        }
        transaction.commit()?;
        let took = began.elapsed().as_micros() as u64;
        (0..rows).for_each(|_| latencies.record(took));
    }
    let measured = Measured {
        elapsed: start.elapsed(),
        latencies,
        client_cpu: CpuTime::now().process.saturating_sub(cpu),
        ..Measured::default()
    };
    let settings = Settings {
        protocol: if rows == 1 { "sqlite-each" } else { "sqlite-group" },
        workload: sql::Mix::Insert.name(),
        n: 1,
        f: 0,
        clients: 1,
        outstanding: rows,
        request_bytes: 0,
        reply_bytes: 0,
        durability: "sync",
        channel: "none",
        auth: "none",
        joined: false,
        coin: "none",
    };
    Ok(Figures::new(settings, &measured, &[], &[]))
}
