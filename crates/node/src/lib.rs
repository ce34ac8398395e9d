//! Bezant's runtime: sockets, disks, threads and clocks around the machines of `bezant-core`.
//!
//! Who has a service of his own needs two functions: [`host`](host()) runs a replica of it, [`client`](client()) calls
//! it. `docs/service.md` leads there.

pub mod admin;
pub mod backup;
pub mod client;
pub mod coin;
pub mod config;
pub mod divergence;
mod error;
pub mod fetch;
pub mod group;
pub mod host;
pub mod keys;
pub mod log;
pub mod net;
pub mod replica;
pub mod snapshot;

pub use client::open as client;
pub use error::Error;
pub use host::host;
