//! Digests. One hash function (BLAKE3), one key per purpose, so that bytes hashed for one purpose never collide with
//! bytes hashed for another.

use crate::wire::{Reader, Sink, Wire, WireError};
use core::fmt;

/// What bytes are hashed for. The name is the hash's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// The parameters of a cluster.
    Cluster,
    /// A client's request.
    Request,
    /// A batch: agreed values and the digests of its requests.
    Batch,
    /// The agreed values of a history's entry.
    Agreed,
    /// An entry of a history: the digests of its agreed values and of its request.
    Entry,
    /// One step of the history's hash chain (abs-D3).
    History,
    /// The result of an operation, and what has been written until then.
    Result,
    /// What an operation wrote, and one step of the chain of that.
    Effects,
    /// Why an operation was not executed: no result, whatever it reads, passes for that.
    Refusal,
    /// A page of state.
    Page,
    /// An inner node of the Merkle tree over the pages.
    Node,
    /// Statements that are signed.
    Signature,
    /// A statement that is signed together with others: a leaf of their tree.
    Leaf,
    /// An inner node of that tree.
    Branch,
    /// A large frame whose MACs cover its digest.
    Frame,
    /// Coefficients of batch verification.
    Batching,
    /// How a view of PBFT began, as far as a replica knows.
    View,
    /// The random seed that a primary proposes.
    Seed,
    /// The identity of an operator's or a client's key, for display and for the handshake.
    Key,
    /// The names that joining clients get: session ids, and where their requests wait until they have one.
    Session,
    /// The value of a broadcast of RITAS.
    Broadcast,
    /// Which message of a round of RITAS comes when.
    Turn,
    /// Which side a coin of RITAS shows.
    Coin,
    /// Which group a process is in, and which run of it: for its keys.
    Group,
    /// Names of common coins.
    CommonCoin,
    /// State traces of the simulator and other internal uses.
    Trace,
    /// What services digest for their own ends.
    Service,
}

impl Domain {
    const fn key(self) -> &'static [u8; 32] {
        match self {
            Self::Cluster => b"bezant/cluster/v1...............",
            Self::Request => b"bezant/request/v1...............",
            Self::Batch => b"bezant/batch/v1.................",
            Self::Agreed => b"bezant/agreed/v1................",
            Self::Entry => b"bezant/entry/v2.................",
            Self::History => b"bezant/history/v1...............",
            Self::Result => b"bezant/result/v1................",
            Self::Effects => b"bezant/effects/v1...............",
            Self::Refusal => b"bezant/refusal/v1...............",
            Self::Page => b"bezant/page/v1..................",
            Self::Node => b"bezant/node/v1..................",
            Self::Signature => b"bezant/signature/v1.............",
            Self::Leaf => b"bezant/leaf/v1..................",
            Self::Branch => b"bezant/branch/v1................",
            Self::Frame => b"bezant/frame/v1.................",
            Self::Batching => b"bezant/batching/v1..............",
            Self::View => b"bezant/view/v1..................",
            Self::Seed => b"bezant/seed/v1..................",
            Self::Key => b"bezant/key/v1...................",
            Self::Session => b"bezant/session/v1...............",
            Self::Broadcast => b"bezant/broadcast/v1.............",
            Self::Turn => b"bezant/turn/v1..................",
            Self::Coin => b"bezant/coin/v1..................",
            Self::Group => b"bezant/group/v1.................",
            Self::CommonCoin => b"bezant/common-coin/v1...........",
            Self::Trace => b"bezant/trace/v1.................",
            Self::Service => b"bezant/service/v1...............",
        }
    }
}

/// 32 bytes of BLAKE3.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// What is at most so long is copied to one place and hashed there: a hasher that is fed in pieces costs as much as a
/// block more.
const SHORT_BYTES_MAX: usize = 256;

impl Digest {
    /// Its size.
    pub const BYTES: usize = 32;

    /// The digest of nothing yet: the history before its first request, a state without pages.
    pub const ZERO: Self = Self([0; 32]);

    /// The digest of `bytes` for one purpose.
    pub fn of(domain: Domain, bytes: &[u8]) -> Self {
        Self(*blake3::keyed_hash(domain.key(), bytes).as_bytes())
    }

    /// The digest of the concatenation of `parts` for one purpose. Callers make it unambiguous, by fixed sizes, and
    /// fast, by putting what is long first: BLAKE3 works on chunks of 1,024 bytes, on many at once where they lie whole
    /// in one part.
    pub fn of_parts(domain: Domain, parts: &[&[u8]]) -> Self {
        let mut whole = [0; SHORT_BYTES_MAX];
        let mut length = 0;
        for part in parts {
            let Some(place) = whole.get_mut(length..length + part.len()) else { return Self::of_long(domain, parts) };
            place.copy_from_slice(part);
            length += part.len();
        }
        Self::of(domain, &whole[..length])
    }

    fn of_long(domain: Domain, parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(domain.key());
        for part in parts {
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// The next link of a hash chain: `h' = H(h, d)`.
    #[must_use]
    pub fn chain(self, next: Self) -> Self {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.0);
        bytes[32..].copy_from_slice(&next.0);
        Self::of(Domain::History, &bytes)
    }
}

impl fmt::Debug for Digest {
    /// Eight hex digits: enough to tell digests apart in a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0[..4] {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl Wire for Digest {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.array()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_separate() {
        assert_ne!(Digest::of(Domain::Page, b"x"), Digest::of(Domain::Node, b"x"));
        assert_eq!(Digest::of(Domain::Page, b"xy"), Digest::of_parts(Domain::Page, &[b"x", b"y"]));
    }
}
