//! What Quorum, ZLight, Chain and Ring share: a replica that logs, executes and answers before anything is agreed,
//! takes lightweight checkpoints, and stops for good when it is told to.
//!
//! # Steps
//! * Speculation 1. *Log.* A request that is newer than its client's last one gets the next position, as long as the
//!   log above the anchor is within its bound, and neither stopped nor suspended. What is logged is durable before
//!   anything is said about it. Whether it may be executed is decided when it is executed, where all replicas have the
//!   same state: what comes before it may have evicted its session since. Then it keeps its position and does nothing.
//!   Nobody is blamed for logging it; only for logging what the log has already, which whoever has the same log knows.
//! * Speculation 2. *Answer again.* A request that is in the history already is answered from the client table, with
//!   the history's digest at its position, or at the end of the init history if it lies in there (abs-D5).
//! * Speculation 3. *Lightweight checkpoint (LCS).* After every CHK-th position, and right after an init history, the
//!   replica tells all others the digests of history and state. When all n said the same, that position is certain and
//!   becomes the anchor. Until then the message is repeated; if it takes too long the replica logs nothing more.
//!   Several checkpoints may be under way (abs-S3).
//! * Speculation 4. *Stop.* On a client's PANIC, on f+1 abort reports of others, or on evidence of its own, the replica
//!   stops: nothing is logged, executed, answered or said for this instance again, but for one signed abort report.
//!
//! # Why it is safe
//! The log only grows, and ends before the report is signed, so whatever this replica said about a position is in
//! its report. See [`crate::switching`] for what is made of the reports.

mod ahead;
mod answers;
mod asking;
mod checkpoints;
mod invariants;
mod lightweight;
mod load;
mod passed_over;
mod queue;
mod response;
mod speaker;
mod speculation;

pub(crate) use ahead::{AHEAD_BYTES_MAX, AHEAD_MAX, Ahead, weight};
pub(crate) use answers::{abridged, designated};
pub(crate) use asking::{Asking, ClientHalf, Complaint, Settled, Verdict, all_equal, enough_equal};
#[cfg(test)]
pub(crate) use load::LOW_LOAD;
pub(crate) use load::Load;
pub(crate) use passed_over::PassedOver;
pub(crate) use queue::{BATCH_MAX, Queue};
pub use response::{Certain, Response};
pub use speaker::{Speaker, SpeculativeTimer};
pub(crate) use speculation::{Speculation, Standing, as_its_speculation};
