//! Benchmarks: closed-loop load on a cluster, and what an operation costs there.
//!
//! | question | module |
//! |---|---|
//! | how are requests sent and latencies taken? | [`load`] |
//! | how are latencies kept? | [`histogram`] |
//! | what did it cost per operation, and how is it shown? | [`figures`] |
//! | which settings does the published table have? | [`suite`] |
//!
//! Starting a cluster and asking its replicas for their counters is the caller's: `bezant bench`. The figures, and how
//! to read them, are in `docs/benchmarks.md`.

pub mod figures;
pub mod histogram;
pub mod load;
pub mod suite;
