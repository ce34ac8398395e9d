//! Compares the SQL service with itself and with plain SQLite until the time is over: see `bezant_sim::sql_fuzz`.
//!
//! `sql-fuzz SECONDS [FIRST_SEED [COUNT]]`. Exit code 0 if nothing differed.

use bezant_sim::sql_fuzz::{Counts, run};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

fn main() -> ExitCode {
    let numbers: Option<Vec<u64>> = std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let Some((&seconds, rest)) = numbers.as_deref().and_then(<[u64]>::split_first) else {
        eprintln!("usage: sql-fuzz SECONDS [FIRST_SEED [COUNT]]");
        return ExitCode::from(2);
    };
    let fresh = || UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as u64);
    let first = rest.first().copied().unwrap_or_else(fresh);
    let count = rest.get(1).copied().unwrap_or(u64::MAX - first);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (next, totals, failure) = (AtomicU64::new(0), Mutex::new((0, Counts::default())), Mutex::new(None));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count || Instant::now() > end || failure.lock().is_ok_and(|failure| failure.is_some()) {
                return;
            }
            match run(first + number) {
                Ok(counts) => {
                    let mut totals = totals.lock().expect("nobody panics with it");
                    totals.0 += 1;
                    totals.1.merge(&counts);
                }
                Err(what) => *failure.lock().expect("nobody panics with it") = Some(what),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let (runs, Counts { done, failed, refused, rows, steps, bundles, spared }) =
        *totals.lock().expect("all threads have ended");
    println!(
        "{runs} seeds from {first}: {done} requests executed, {failed} failed, {refused} refused, {rows} rows, \
         {steps} steps rehearsed, {bundles} bundles with {spared} transactions less; {}",
        if failure.lock().expect("all threads have ended").is_some() { "a difference" } else { "no difference" }
    );
    match failure.into_inner().expect("all threads have ended") {
        None if runs > 0 => ExitCode::SUCCESS,
        None => ExitCode::from(2),
        Some(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}
