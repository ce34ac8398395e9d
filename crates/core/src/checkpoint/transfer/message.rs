//! What replicas say to one another in a transfer, and how to answer.

use crate::checkpoint::{NodeContent, NodeId, Tree};
use crate::cluster::Sequence;
use crate::service::{PAGE_BYTES_MAX, PageNumber};
use crate::wire::{Reader, Wire, WireError, encode_payload};
use alloc::vec::Vec;
use bytes::Bytes;

/// A request or an answer. All name the checkpoint whose version of the state is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferMessage {
    /// Which children does this node have?
    FetchNode {
        /// The version.
        sequence: Sequence,
        /// The node.
        node: NodeId,
    },
    /// These.
    Node {
        /// The version.
        sequence: Sequence,
        /// The node.
        node: NodeId,
        /// The digests of its children.
        content: NodeContent,
    },
    /// What is on this page?
    FetchPage {
        /// The version.
        sequence: Sequence,
        /// The page.
        number: PageNumber,
    },
    /// This.
    Page {
        /// The version.
        sequence: Sequence,
        /// The page.
        number: PageNumber,
        /// What is on it, at most [`PAGE_BYTES_MAX`].
        content: Bytes,
    },
    /// The answer to either request of a replica that does not have the version, or not any more.
    Gone {
        /// The version.
        sequence: Sequence,
    },
}

impl Wire for TransferMessage {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::FetchNode { sequence, node } => {
                out.push(1);
                sequence.encode(out);
                node.encode(out);
            }
            Self::Node { sequence, node, content } => {
                out.push(2);
                sequence.encode(out);
                node.encode(out);
                content.encode(out);
            }
            Self::FetchPage { sequence, number } => {
                out.push(3);
                sequence.encode(out);
                number.encode(out);
            }
            Self::Page { sequence, number, content } => {
                out.push(4);
                sequence.encode(out);
                number.encode(out);
                encode_payload(content, out);
            }
            Self::Gone { sequence } => {
                out.push(5);
                sequence.encode(out);
            }
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let tag = reader.tag()?;
        let sequence = Wire::decode(reader)?;
        match tag {
            1 => Ok(Self::FetchNode { sequence, node: Wire::decode(reader)? }),
            2 => Ok(Self::Node { sequence, node: Wire::decode(reader)?, content: Wire::decode(reader)? }),
            3 => Ok(Self::FetchPage { sequence, number: Wire::decode(reader)? }),
            4 => Ok(Self::Page { sequence, number: Wire::decode(reader)?, content: reader.payload(PAGE_BYTES_MAX)? }),
            5 => Ok(Self::Gone { sequence }),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// The answer to a request, from the versions that `lookup` finds, sealed. `None` if the message is no request, or
/// asks for what the version does not have, which nobody who fetches it would.
pub fn serve<'a>(
    message: &TransferMessage,
    lookup: impl FnOnce(Sequence) -> Option<&'a Tree>,
) -> Option<TransferMessage> {
    let (TransferMessage::FetchNode { sequence, .. } | TransferMessage::FetchPage { sequence, .. }) = *message else {
        return None;
    };
    let Some(tree) = lookup(sequence) else { return Some(TransferMessage::Gone { sequence }) };
    match *message {
        TransferMessage::FetchNode { node, .. } => {
            tree.node(node).map(|content| TransferMessage::Node { sequence, node, content })
        }
        TransferMessage::FetchPage { number, .. } => {
            tree.get(number).cloned().map(|content| TransferMessage::Page { sequence, number, content })
        }
        _ => None,
    }
}
