//! PBFT (Castro and Liskov), as a total order.
//!
//! # What it is for
//! n ≥ 3f+1 replicas agree on one sequence of batches although up to f of them lie, crash or are taken over. It is
//! safe however slow the network is, and live as soon as messages between correct replicas arrive in bounded time.
//! It is the plain choice for a cluster, and the Backup that faster protocols fall back on.
//!
//! # Steps
//! Sequence numbers n lie in the window h < n ≤ h + L above the last stable checkpoint h. A *vote* is the triple of
//! view v, sequence number n and digest d.
//!
//! | step | who | does | then sends | before that, durable |
//! |---|---|---|---|---|
//! | PBFT 1 | anyone | gets a request; one that its client had to send again is passed on and watched | REQUEST | – |
//! | PBFT 2 | primary | makes a batch of all that waits, unless too many are in flight | PRE-PREPARE(v, n, batch) | the batch |
//! | PBFT 3 | backup | checks sender, view, window, bounds; one proposal per (v, n) | – | – |
//! | PBFT 4 | backup | has every body, every request is its client's, agreed values are acceptable | PREPARE(v, n, d) | the batch |
//! | PBFT 5 | all | proposal and 2f equal PREPAREs of backups: *prepared*; executes tentatively in sequence | COMMIT(v, n, d) | (v, n, d) |
//! | PBFT 6 | all | 2f+1 equal COMMITs: *committed*; executes for good in sequence | – (CHECKPOINT) | (n, d) |
//! | PBFT 7 | anyone | a watched request or batch waits too long, or f+1 others leave: leaves v | VIEW-CHANGE(v+1, h, C, P, Q) | the message |
//! | PBFT 8 | all | collects VIEW-CHANGEs; with 2f+1 of them, the new view has to begin in time | – | – |
//! | PBFT 9 | new primary | decides every position from the VIEW-CHANGEs (`decision.rs`), has every body | NEW-VIEW(v+1, V, X) | the message |
//! | PBFT 10 | backup | checks V, computes X again, accepts the chosen batches as in PBFT 4 | PREPARE … | NEW-VIEW, batches |
//!
//! P lists what prepared here, Q what was accepted here, each with the latest view. Whoever makes no progress says
//! what it has (STATUS), and the others send what it lacks: `status.rs`.
//!
//! # Why it is safe
//! * *Within a view*: two sets of 2f+1 replicas share a correct one, and a correct replica accepts one batch per
//!   (v, n); so at most one digest prepares there.
//! * *Across views*: if d committed at n in v, then f+1 correct replicas prepared it in v, so every 2f+1 VIEW-CHANGEs
//!   contain one that claims (n, d, v). Condition B (2f+1 claim nothing at n) then fails, and condition pbft-A1 fails
//!   for every other digest of a view ≤ v; by induction nothing else prepares at n in later views. So X keeps d.
//! * *Authentic*: condition pbft-A2 (f+1 accepted it) gives a correct replica that checked the batch, or that knows a
//!   view to have chosen it for which another had.
//! * *After a crash*: everything that a message promises is durable before the message leaves, and recovery says the
//!   same again or nothing.
//!
//! # Why it is live
//! Time-outs double with every view change without progress and fall back with progress; f+1 VIEW-CHANGEs pull a
//! replica along; nobody starts the timer of a new view before 2f+1 have left, so that nobody runs ahead; all leave
//! with their primary. The decision is total on the VIEW-CHANGEs of all correct replicas, once they know which view
//! was the last to begin (`decision.rs`). Who waits alone in a later view is brought back, because the primary begins
//! its view anew (`view_change.rs`). A request watches the primary only if a correct primary would have to order it
//! (pbft-F20); a batch with a request that one backup cannot authenticate is vouched for by f+1 PREPAREs; a replica
//! that the primary leaves out of its quorums learns decided batches from f+1 others (pbft-F21); a batch that prepared
//! at a correct replica, or that NEW-VIEW chose, is watched as requests are (`status.rs`), so that what one correct
//! replica commits all do, even if nobody asks again; a batch prepares only with its bodies in hand, and f+1 correct
//! replicas have them (pbft-F22).
//!
//! # Deviations from the paper
//! * VIEW-CHANGE and NEW-VIEW are signed, so acknowledgements are not needed; all else of the order has MACs. P and Q
//!   carry no certificates, as in the paper's MAC version; checkpoints are certified by 2f+1 signatures.
//! * Q is not the list of all that was ever accepted. How a view began refutes what it did not choose, so P and Q
//!   hold one batch for each position, and the new primary may choose from which 2f+1 VIEW-CHANGEs it decides. A
//!   primary that begins its view in several ways is found out (`begun.rs`).
//! * NEW-VIEW may go on with null batches to the end of the window, except where an INIT is awaited: nothing prepared
//!   there.
//! * Stable storage: the paper assumes memory that survives; here see the table and `docs/durability.md`.
//! * One STATUS message instead of several kinds of retransmission and of negative acknowledgements.
//! * The digest of a batch covers which requests stand in it and which it only refers to, and how long those are: one
//!   digest means one encoding, but for the clients' proofs. Were it otherwise, replicas could commit one digest and be
//!   left without a body that the others hold, and that nobody serves. A copy with spoilt proofs gives way to a better
//!   one, and whose a request is stands in the request alone: no label is believed.
//! * Bodies count against the bound of a batch as if they stood in it, so what a window of batches makes a replica
//!   fetch and keep is bounded before any of it comes.
//! * A batch orders at most one request per client and carries agreed time and seed (prac-F27, prac-F29), checked by
//!   backups when it is fresh and never when it is replayed.
//! * COMMITs of 2f+1 replicas decide a batch even for a replica that did not prepare it: f+1 correct ones did.
//! * A replica that lost its log abstains until its view and its stable checkpoint are past everything that it may
//!   have said before: PBFT 11 to 13, in `amnesia.rs`.
//! * n need not be 3f+1: 2f+1 reads ⌈(n+f+1)/2⌉ everywhere ([`crate::replicas::Replicas::strong`]). Where replicas have
//!   executed something otherwise, [`crate::dissent`] says what it reads.
//!
//! # Cost
//! Per batch of b requests at n replicas, without faults: n−1 PRE-PREPAREs, (n−1)² PREPAREs and n(n−1) COMMITs, one to
//! each receiver. In mac mode every replica, primary or backup, makes 2(n−1) + b MACs and checks as many; the clients
//! make n and check n per request. Per checkpoint, a replica makes one signature and checks 2f. Four message delays to
//! a reply with tentative execution, five without. `docs/protocols.md` has the tables, `tests/costs.rs` counts.

mod amnesia;
mod begun;
mod careful;
mod check;
mod decision;
mod fetch;
mod invariants;
mod message;
mod normal;
#[cfg(test)]
mod paper_test;
mod progress;
mod recovery;
mod replica;
mod slot;
mod status;
#[cfg(test)]
mod tests;
mod view_change;
mod watched;

pub use message::{Claim, Here, NewView, Ordering, PbftMessage, Position, PrePrepare, Status, ViewChange, Vote};
pub use replica::Pbft;

use crate::auth::{Certificate, Claimed, Signed};
use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::ids::{Sequence, View};
use crate::switching::RECORD_ALLOWANCE;
use crate::wire_enum;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// What PBFT must have on disk before it speaks (`docs/durability.md`).
#[derive(Clone, Debug)]
pub enum PbftRecord {
    /// Before PRE-PREPARE and PREPARE: the proposal that this replica accepted, with its bodies.
    Accepted(PrePrepare),
    /// Before COMMIT and a tentative REPLY.
    Prepared(Vote),
    /// Before VIEW-CHANGE: the view is left; the message itself, so that it is never said differently.
    ViewChange(Box<Claimed<Signed<ViewChange>>>),
    /// Before NEW-VIEW and before acting in it.
    NewView(Arc<Claimed<Signed<NewView>>>),
    /// Before CHECKPOINT: what was executed for good, so that whoever vouched for a state can rebuild it alone.
    Committed(Position),
    /// With it, if the batch was never accepted here: it was fetched.
    Fetched((Sequence, Arc<Batch>)),
    /// A stable checkpoint that this replica had.
    Stable(Box<Claimed<Certificate<Checkpoint>>>),
    /// The body of a big request that an accepted batch refers to.
    Body(Box<crate::message::Request>),
    /// This replica lost its log: it abstains until it is past both marks, which it may not know yet.
    Abstain(Option<(View, Sequence)>),
}
wire_enum!(PbftRecord {
    1 => Accepted,
    2 => Prepared,
    3 => ViewChange,
    4 => NewView,
    5 => Committed,
    6 => Fetched,
    7 => Stable,
    8 => Body,
    9 => Abstain,
});

impl PbftRecord {
    /// About how many bytes it takes in the log: see [`crate::switching::Recorded::log_bytes`].
    pub fn log_bytes(&self) -> usize {
        let of_batch = |batch: &Batch| RECORD_ALLOWANCE * (1 + batch.entries().len()) + batch.inline_bytes();
        match self {
            Self::Accepted(pre_prepare) => of_batch(&pre_prepare.batch),
            Self::Fetched((_, batch)) => of_batch(batch),
            Self::Body(request) => RECORD_ALLOWANCE + request.operation.len(),
            Self::Prepared(_)
            | Self::ViewChange(_)
            | Self::NewView(_)
            | Self::Committed(_)
            | Self::Stable(_)
            | Self::Abstain(_) => RECORD_ALLOWANCE,
        }
    }
}

/// PBFT's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PbftTimer {
    /// The oldest watched request, or the new view, is late.
    View,
    /// Time to see whether there is progress.
    Status,
    /// A turn of a watched view is over ([`super::aardvark`]).
    Watch,
}
