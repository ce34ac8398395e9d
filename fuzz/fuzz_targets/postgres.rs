//! Bytes from a PostgreSQL client, up to what they do in a database: never a panic, and never an endless answer. The
//! first byte says whether the rest is taken as it is, or as messages whose lengths are put right, so that more of them
//! come through.
#![no_main]

use bezant_fuzz::postgres::{Local, Talk, framed};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

/// Bytes of answers that an input can bring about, with a margin: a few statements over no data.
const ANSWERS_MAX: usize = 64 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, data)) = data.split_first() else { return };
    let said = if kind % 4 == 0 { data.to_vec() } else { framed(data) };
    let mut talk = Talk::new(&said);
    bezant_postgres::serve(&mut talk, Arc::new(Local::default())).expect("a stream in memory does not fail");
    assert!(talk.heard < ANSWERS_MAX, "{} bytes for {}", talk.heard, said.len());
});
