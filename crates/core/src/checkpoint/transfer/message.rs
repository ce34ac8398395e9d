//! What replicas say to one another in a transfer, and how to answer.

use crate::auth::Keyring;
use crate::checkpoint::{NodeContent, NodeId, Tree};
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal};
use crate::rejection::Rejection;
use crate::service::{PAGE_BYTES_MAX, PageNumber};
use crate::spoken::{Cover, Spoken, from_replica};
use crate::wire::{Reader, Sink, Wire, WireError, encode_part, encode_shared};
use bytes::Bytes;
use core::fmt;

/// A request or an answer. All name the version of the state that is meant by its root: whatever instance counts
/// batches from wherever, that is unambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferMessage {
    /// Which children does this node have?
    FetchNode {
        /// The version.
        version: Digest,
        /// The node.
        node: NodeId,
    },
    /// These.
    Node {
        /// The version.
        version: Digest,
        /// The node.
        node: NodeId,
        /// The digests of its children.
        content: NodeContent,
    },
    /// What is on this page?
    FetchPage {
        /// The version.
        version: Digest,
        /// The page.
        number: PageNumber,
    },
    /// This.
    Page {
        /// The version.
        version: Digest,
        /// The page.
        number: PageNumber,
        /// What is on it, at most [`PAGE_BYTES_MAX`].
        content: Bytes,
    },
    /// The answer to either request of a replica that does not have the version, or not any more.
    Gone {
        /// The version.
        version: Digest,
    },
}

impl TransferMessage {
    /// The root of the version that is meant.
    pub const fn version(&self) -> Digest {
        match self {
            Self::FetchNode { version, .. }
            | Self::Node { version, .. }
            | Self::FetchPage { version, .. }
            | Self::Page { version, .. }
            | Self::Gone { version } => *version,
        }
    }
}

impl Wire for TransferMessage {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::FetchNode { version, node } => {
                out.push(1);
                version.encode(out);
                encode_part(node, out);
            }
            Self::Node { version, node, content } => {
                out.push(2);
                version.encode(out);
                encode_part(node, out);
                encode_part(content, out);
            }
            Self::FetchPage { version, number } => {
                out.push(3);
                version.encode(out);
                number.encode(out);
            }
            Self::Page { version, number, content } => {
                out.push(4);
                version.encode(out);
                number.encode(out);
                encode_shared(content, out);
            }
            Self::Gone { version } => {
                out.push(5);
                version.encode(out);
            }
        }
    }

    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let tag = reader.tag()?;
        let version = Wire::decode(reader)?;
        match tag {
            1 => Ok(Self::FetchNode { version, node: Wire::decode(reader)? }),
            2 => Ok(Self::Node { version, node: Wire::decode(reader)?, content: Wire::decode(reader)? }),
            3 => Ok(Self::FetchPage { version, number: Wire::decode(reader)? }),
            4 => Ok(Self::Page { version, number: Wire::decode(reader)?, content: reader.payload(PAGE_BYTES_MAX)? }),
            5 => Ok(Self::Gone { version }),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// The answer to a request, from the versions that `lookup` finds, sealed. `None` if the message is no request, or
/// asks for what the version does not have, which nobody who fetches it would.
pub fn serve<'a>(
    message: &TransferMessage,
    lookup: impl FnOnce(Digest) -> Option<&'a Tree>,
) -> Option<TransferMessage> {
    let (TransferMessage::FetchNode { version, .. } | TransferMessage::FetchPage { version, .. }) = *message else {
        return None;
    };
    let Some(tree) = lookup(version) else { return Some(TransferMessage::Gone { version }) };
    match *message {
        TransferMessage::FetchNode { node, .. } => {
            tree.node(node).map(|content| TransferMessage::Node { version, node, content })
        }
        TransferMessage::FetchPage { number, .. } => {
            tree.get(number).cloned().map(|content| TransferMessage::Page { version, number, content })
        }
        _ => None,
    }
}

impl fmt::Display for TransferMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FetchNode { version, node } => write!(f, "FETCH-NODE {version:?} {node}"),
            Self::Node { version, node, .. } => write!(f, "NODE {version:?} {node}"),
            Self::FetchPage { version, number } => write!(f, "FETCH-PAGE {version:?} page {number}"),
            Self::Page { version, number, content } => {
                write!(f, "PAGE {version:?} page {number} {} bytes", content.len())
            }
            Self::Gone { version } => write!(f, "GONE {version:?}"),
        }
    }
}

impl Spoken for TransferMessage {
    fn instance(&self) -> Option<InstanceId> {
        None
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    fn cover(&self) -> Cover {
        Cover::Whole
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}
