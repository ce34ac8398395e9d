//! PBFT.

mod decision;
mod message;
mod normal;
#[cfg(test)]
mod paper_test;
mod pool;
mod recovery;
mod replica;
mod slot;
mod status;
mod view_change;

pub use message::{Claim, NewView, PbftMessage, Position, PrePrepare, Q_PER_SEQUENCE_MAX, Status, ViewChange, Vote};
pub use replica::Pbft;

use crate::auth::{Certificate, Signed};
use crate::checkpoint::Checkpoint;
use crate::cluster::{Sequence, View};
use crate::wire_enum;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// What PBFT must have on disk before it speaks (notes/reliability.md section 5.3).
#[derive(Clone, Debug)]
pub enum PbftRecord {
    /// Before PRE-PREPARE and PREPARE: the proposal that this replica accepted, with its bodies.
    Accepted(PrePrepare),
    /// Before COMMIT and a tentative REPLY.
    Prepared(Vote),
    /// Before VIEW-CHANGE: the view is left; the message itself, so that it is never said differently.
    ViewChange(Box<Signed<ViewChange>>),
    /// Before NEW-VIEW and before acting in it.
    NewView(Arc<Signed<NewView>>),
    /// A stable checkpoint.
    Stable(Box<Certificate<Checkpoint>>),
    /// The body of a big request that an accepted batch refers to.
    Body(crate::message::Request),
    /// This replica lost its log: it abstains until it is past both marks.
    Abstain((View, Sequence)),
}
wire_enum!(PbftRecord {
    1 => Accepted,
    2 => Prepared,
    3 => ViewChange,
    4 => NewView,
    5 => Stable,
    6 => Body,
    7 => Abstain,
});

/// PBFT's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PbftTimer {
    /// The oldest watched request, or the new view, is late.
    View,
    /// Time to see whether there is progress.
    Status,
}
