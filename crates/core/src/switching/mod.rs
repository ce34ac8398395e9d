//! How one instance follows another (the composition protocol of `docs/papers/abstract.md`).
//!
//! # What it is for
//! An instance that may abort is simple, because it need not work when anything is wrong: it stops, and another one
//! goes on. What has to be right is the way from one to the next, and that is here, once for all of them.
//!
//! # Steps
//! * Switch 1. A client that is not served in time sends PANIC to all replicas, again and again until it is answered.
//! * Switch 2. A replica that gets a PANIC, finds evidence of a fault itself, or knows of f+1 others that have stopped,
//!   stops and sends its signed abort report to all others.
//! * Switch 3. 2f+1 reports (of a Backup: f+1 of one end) are a proof. Whoever has it opens the next instance and sends
//!   the proof to all others (INIT). [`report`] says which history the proof yields and why nothing committed is lost.
//!   Other reports may prove another history, so all but the head of the next instance wait for the head's proof
//!   first, for a moment.
//! * Switch 4. [`opening`] says how a replica comes to that history. Opening an instance freezes all before it, for
//!   good (abs-D13).
//! * Switch 5. Whoever speaks to an earlier instance is told which one is active: a replica gets the proof, a client
//!   the number. A client believes f+1 replicas, and asks again there with the same timestamp.
//! * Switch 6. A Backup agrees on the history with which it begins: INIT is ordered like a request, the first valid one
//!   counts, and requests that were ordered before it are held until then (abs-L3).
//!
//! # Why it is safe
//! A request that committed is in every abort history of its instance ([`report`]), so in every history with which the
//! next one begins, and so on: positions never change their content once somebody was told of it.
//!
//! The numbers here are those for n = 3f+1. With more replicas 2f+1 reads ⌈(n+f+1)/2⌉ everywhere, and f+1 stays f+1:
//! [`report`] says why. What all n must say stays so.
//!
//! # Why it is live
//! Whoever says that an instance runs has seen the proof. It may be the only one, and it may crash before the proof is
//! on its disk; the clients have moved on by then, and none of them says PANIC any more in the instance before. But f+1
//! of the 2f+1 reports are those of correct replicas, which have them on disk and repeat them (Switch 2). They stop
//! every other correct replica, once it is in that instance, and 2f+1 reports come together again. So Switch 2 must
//! hold in every state and not only when a report arrives: a replica may have got them all while it was still opening
//! the instance, and a report that it has already changes nothing when it is repeated. The end of a Backup is a
//! checkpoint that 2f+1 have signed: the order brings all others there as well, or they fetch the state.
//!
//! # Deviations from the paper
//! * There the client collects the reports, carries the history to the next instance, and every client does so for
//!   itself. Here replicas exchange the reports, as R-Aliph does: two hundred clients would otherwise fetch and carry
//!   the same proof two hundred times (abs-P11). A client needs f+1 equal words instead of a proof: one of them is a
//!   correct replica's, which has checked it.
//! * A report is signed once per instance and names no request (abs-P4).
//! * INIT is no request of a history, and costs none of k (abs-D14).

mod abortable;
mod amnesia;
pub mod certificate;
mod ledger;
mod message;
pub(crate) mod opening;
mod record;
pub mod report;
mod surroundings;

pub use abortable::{Abortable, Certainty, Heard, Steps};
pub(crate) use amnesia::Amnesia;
pub use certificate::{Certificates, Certified};
pub use ledger::Ledger;
pub use message::{Bodies, FETCH_MAX, Feedback, Fetch, Panic, Returned, Switch, SwitchMessage};
pub(crate) use opening::{Opening, settle};
pub use record::{
    BODIES_BYTES_MAX, Begun, HistoryRecord, LogRecord, RECORD_ALLOWANCE, Record, Recorded, SnapshotRecord,
};
pub use report::{AbortHistory, AbortReport, CheckedReport, ClaimedProof, Proof};
pub use surroundings::{OpeningTimer, Speaker, Surroundings};
