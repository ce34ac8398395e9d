//! PBFT.

mod message;

pub use message::{
    Batch, Claim, Entry, NewView, PbftMessage, Position, PrePrepare, Q_PER_SEQUENCE_MAX, Reference, Status, ViewChange,
    Vote,
};

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
    /// Not needed before anything; saves asking others after a restart.
    Committed(Sequence),
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
    5 => Committed,
    6 => Stable,
    7 => Body,
    8 => Abstain,
});
