//! Benchmarks: closed-loop load on a cluster, and what an operation costs there.
//!
//! | question | module |
//! |---|---|
//! | how are requests sent and latencies taken? | [`load`] |
//! | what is asked? | [`workload`] |
//! | how are latencies kept? | [`histogram`] |
//! | what did it cost per operation, and how is it shown? | [`figures`] |
//! | how long does a switch from one instance to the next take? | [`switching`] |
//! | what does a group do without a service? | [`groups`] |
//! | who says anything to anybody? | [`raw`] |
//! | which settings does the published table have? | [`suite`] |
//! | how do protocols compare, and what did the papers find? | [`compare`] |
//! | how far apart are repeated measurements? | [`spread`] |
//! | what is built and counted in the network laboratory? | [`laboratory`] |
//! | how often did each process have to wait for its share of a core? | [`shares`] |
//! | what went over each link, and how evenly is the work shared? | [`network`] |
//! | how is a curve drawn? | [`chart`] |
//!
//! Starting a cluster and asking its replicas for their counters is the caller's: `bezant bench`. The figures, and how
//! to read them, are in `docs/benchmarks.md`.

mod bursts;
pub mod chart;
pub mod compare;
pub mod figures;
pub mod groups;
pub mod histogram;
pub mod laboratory;
pub mod load;
pub mod network;
pub mod plain;
pub mod raw;
pub mod recorded;
mod rounding;
pub mod shares;
pub mod spread;
pub mod sql;
pub mod suite;
pub mod switching;
pub mod workload;
