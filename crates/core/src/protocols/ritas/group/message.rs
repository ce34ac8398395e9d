//! What the processes of a group say to one another.

use super::super::message::Summary;
use super::super::statements::Statements;
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;

/// HERE: how far its author has come in the atomic broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here {
    /// The first round that it still needs.
    pub round: u64,
    /// The first round that it could still tell somebody about.
    pub kept: u64,
}
wire_struct!(Here { round, kept });

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Statements of the layers.
    Said(Statements),
    /// What the author has heard of the one that it writes to.
    Summary(Box<Summary>),
    /// How far it has come.
    Here(Here),
}
wire_enum!(Speech {
    1 => Said,
    2 => Summary,
    3 => Here,
});

/// A message of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMessage {
    /// The run that it belongs to.
    pub epoch: u64,
    /// What is said.
    pub speech: Speech,
}
wire_struct!(GroupMessage { epoch, speech });

pub use super::super::message::MESSAGE_BYTES_MAX;

/// Messages of the application that one message of the atomic broadcast carries, at most.
pub(super) const BUNDLE_MESSAGES_MAX: usize = 1 << 14;

/// What one process had to say when it could: messages of the application, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bundle(pub(super) Vec<Part>);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part(pub(super) Bytes);

impl Wire for Part {
    fn encode(&self, out: &mut impl Sink) {
        crate::wire::encode_shared(&self.0, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.payload(MESSAGE_BYTES_MAX)?))
    }
}

impl Wire for Bundle {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.0, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.list(BUNDLE_MESSAGES_MAX)?))
    }
}
