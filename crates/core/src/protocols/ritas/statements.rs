//! What was said in a pass, in as few messages as it fits into.

use super::message::Said;
use crate::wire::{FRAME_BYTES_MAX, Reader, Sink, Wire, WireError, encode_list};
use alloc::vec::Vec;

/// Statements in one message.
const STATEMENTS_MAX: usize = 1 << 12;

/// Bytes of values from which on no more statements go into a message.
const MESSAGE_BYTES: usize = FRAME_BYTES_MAX / 8;

/// What was said in a pass, or a part of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statements(pub Vec<Said>);

impl Wire for Statements {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.0, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.list(STATEMENTS_MAX)?))
    }
}

/// Statements, in as few messages as they fit into.
pub(super) fn packed(said: Vec<Said>) -> Vec<Statements> {
    let (mut messages, mut bytes) = (Vec::new(), 0);
    for said in said {
        let length = said.statement.value_bytes();
        let is_full = |statements: &Statements| bytes + length > MESSAGE_BYTES || statements.0.len() >= STATEMENTS_MAX;
        if messages.last().is_none_or(is_full) {
            messages.push(Statements(Vec::new()));
            bytes = 0;
        }
        bytes += length;
        messages.last_mut().expect("there is one").0.push(said);
    }
    messages
}
