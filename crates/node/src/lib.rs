//! Bezant's runtime: everything that the machines of `bezant-core` must not know: sockets, clocks, threads, files.

pub mod config;
pub mod keys;
pub mod log;
pub mod snapshot;
