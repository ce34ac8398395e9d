//! Why a link ended.

use super::handshake::{LinkRefusal, ServiceBuild};
use std::fmt;

/// Why a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CloseReason {
    /// The name of its host has no address.
    Unresolved,
    /// Nobody listens there, or the connection could not be made.
    Unreachable,
    /// The other side closed it.
    Ended,
    /// The system reported an error.
    Failed,
    /// What came is not TLS, or TLS does not accept it.
    TlsFailed,
    /// We refused the other side.
    Refused(LinkRefusal),
    /// The other side refused us.
    RefusedByPeer(LinkRefusal),
    /// A replica that runs another service than ours, or another build of it.
    OtherService {
        /// What we run.
        ours: ServiceBuild,
        /// What it runs.
        theirs: ServiceBuild,
    },
    /// Not authenticated in time, or pushed out by newer connections.
    NotAuthenticated,
    /// A frame longer than the sender may send.
    Oversized,
    /// It does not read what it is sent.
    NeverReads,
    /// It was spoken to and asked, and nothing came, although the connection stands.
    Silent,
    /// A frame had begun and did not go on.
    Stalled,
    /// All client buffers together are full, no client holds more than this one, and none of its connections more than
    /// this.
    Overload,
    /// Replaced by a newer link: of the same peer, or of a client that had fewer when all places were taken.
    Superseded,
    /// Closed by its owner.
    Stopped,
}

impl CloseReason {
    /// Whether one side did not want the other.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::RefusedByPeer(_) | Self::OtherService { .. })
    }

    /// The same without what the other side said, of which it could say ever something else: for counting.
    pub const fn without_details(self) -> Self {
        match self {
            Self::OtherService { .. } => Self::OtherService { ours: ServiceBuild::NONE, theirs: ServiceBuild::NONE },
            other => other,
        }
    }

    /// A stable name in snake case.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::Ended => "ended",
            Self::Failed => "failed",
            Self::TlsFailed => "tls_failed",
            Self::Refused(reason) | Self::RefusedByPeer(reason) => reason.label(),
            Self::OtherService { .. } => LinkRefusal::OtherService.label(),
            Self::NotAuthenticated => "not_authenticated",
            Self::Oversized => "oversized",
            Self::NeverReads => "never_reads",
            Self::Silent => "silent",
            Self::Stalled => "stalled",
            Self::Overload => "overload",
            Self::Superseded => "superseded",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolved => f.write_str("its address does not resolve"),
            Self::Unreachable => f.write_str("nobody answers at its address"),
            Self::Ended => f.write_str("it closed the connection"),
            Self::Failed => f.write_str("the connection failed"),
            Self::TlsFailed => f.write_str("TLS failed; is `channel` the same on both sides?"),
            Self::Refused(reason) => write!(f, "we refused it: {reason}"),
            Self::RefusedByPeer(reason) => write!(f, "it refused us: {reason}"),
            Self::OtherService { ours, theirs } => {
                write!(f, "it runs the service `{theirs}` and this replica `{ours}`: all must run the same build")
            }
            Self::NotAuthenticated => f.write_str("it did not prove who it is in time"),
            Self::Oversized => f.write_str("it sent a frame that is too long"),
            Self::NeverReads => f.write_str("it does not read what it is sent"),
            Self::Silent => f.write_str("it does not answer, though the connection stands"),
            Self::Stalled => f.write_str("a frame that it had begun did not go on"),
            Self::Overload => f.write_str("all client buffers are full"),
            Self::Superseded => f.write_str("a newer connection replaced it"),
            Self::Stopped => f.write_str("we closed the connection"),
        }
    }
}
