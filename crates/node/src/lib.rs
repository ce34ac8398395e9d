//! Bezant's runtime: sockets, disks, threads and clocks around the machines of `bezant-core`.

pub mod client;
pub mod net;
pub mod replica;
