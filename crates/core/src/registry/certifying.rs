//! What a composition says and hears about instances whose replicas sign how far they have come
//! ([`crate::schedule::Part::certifies`]), also before it has opened one. The resilient ring is the only such protocol.

use super::message::Message;
use super::record::InstanceRecord;
use crate::auth::{Certificate, Claimed};
use crate::ids::InstanceId;
use crate::protocols::ring_resilient::{Resilient, ResilientMessage, ResilientRecord, Status};
use crate::switching::HistoryRecord;
use crate::switching::certificate::Stable;
use alloc::vec::Vec;

/// Asks how far the others have come, in the name of a replica that has not opened the instance.
pub(crate) fn question(instance: InstanceId) -> Message {
    Resilient { instance, message: ResilientMessage::Status(Status::default()) }.into()
}

/// The certified checkpoint that a message shows, if it does.
pub(crate) fn shown_by(message: &Message) -> Option<&Claimed<Certificate<Stable>>> {
    match message {
        Message::Resilient(Resilient { message: ResilientMessage::Stable(certificate), .. }) => Some(certificate),
        _ => None,
    }
}

/// With what a log begins in an instance of which this replica has the state at a certified checkpoint, and no more.
pub(crate) fn records_at(certificate: Certificate<Stable>) -> Vec<InstanceRecord> {
    let position = certificate.value().boundary.position;
    [
        HistoryRecord::Logged(Vec::new()).into(),
        ResilientRecord::Committed(position).into(),
        HistoryRecord::Stable(certificate.claim()).into(),
    ]
    .into()
}
