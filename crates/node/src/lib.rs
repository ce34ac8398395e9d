//! Bezant's runtime: sockets, disks, threads and clocks around the machines of `bezant-core`.

pub mod admin;
pub mod backup;
pub mod client;
pub mod config;
pub mod divergence;
pub mod fetch;
pub mod keys;
pub mod log;
pub mod net;
pub mod replica;
pub mod snapshot;
