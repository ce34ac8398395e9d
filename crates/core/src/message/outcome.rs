//! What comes of a request.

use crate::digest::{Digest, Domain};
use crate::wire::{FRAME_BYTES_MAX, Reader, Sink, Wire, WireError, encode_shared};
use bytes::Bytes;
use core::fmt;

/// Why a request is not executed: a deterministic answer, the same from every correct replica with this history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Not newer than this session's last executed request, or than what its identity was made to forget. It must not
    /// be executed any more, whether or not it was before.
    StaleTimestamp,
    /// Longer than `operation_bytes_max`.
    TooLarge,
    /// Asked as a query, but it could change the state: ask again as an ordinary request.
    NotReadOnly,
    /// Its client has no session: it never joined, has left, or its place was given to another ([`crate::members`]).
    NoSession,
    /// Its session ended because somebody with the same key joined.
    TakenOver,
    /// A JOIN, while all places are taken by clients that use them.
    Full,
    /// A JOIN, too soon after the last one of the same key.
    TooSoon,
    /// A JOIN or a CLOSE that the service does not agree to.
    Unauthorized,
    /// A JOIN with old cookies. What it may have led to long ago is forgotten.
    Expired,
    /// The replicas executed it otherwise, each in its own way: it has no effect ([`crate::dissent`]).
    Disputed,
    /// It was executed after a disputed request, and undone with it: ask again, with a new request.
    Undone,
    /// The cluster was closed before it: nothing is written here any more ([`crate::estate`]).
    Closed,
    /// One operation of a bundle: the results of those before it leave no room for its own. Ask again, with a new
    /// request ([`super::bundle`]).
    NoRoom,
}

impl Refusal {
    /// Whether it says that a session is over. Then the request may have been executed before that.
    pub const fn ends_session(self) -> bool {
        matches!(self, Self::NoSession | Self::TakenOver)
    }

    /// Whether it says only that the request must not be executed from now on: it may have been before.
    pub const fn is_about_the_future(self) -> bool {
        self.ends_session() || matches!(self, Self::StaleTimestamp | Self::Expired)
    }
}

impl Wire for Refusal {
    fn encode(&self, out: &mut impl Sink) {
        out.push(match self {
            Self::StaleTimestamp => 0,
            Self::TooLarge => 1,
            Self::NotReadOnly => 2,
            Self::NoSession => 3,
            Self::TakenOver => 4,
            Self::Full => 5,
            Self::TooSoon => 6,
            Self::Unauthorized => 7,
            Self::Expired => 8,
            Self::Disputed => 9,
            Self::Undone => 10,
            Self::Closed => 11,
            Self::NoRoom => 12,
        });
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => Ok(Self::StaleTimestamp),
            1 => Ok(Self::TooLarge),
            2 => Ok(Self::NotReadOnly),
            3 => Ok(Self::NoSession),
            4 => Ok(Self::TakenOver),
            5 => Ok(Self::Full),
            6 => Ok(Self::TooSoon),
            7 => Ok(Self::Unauthorized),
            8 => Ok(Self::Expired),
            9 => Ok(Self::Disputed),
            10 => Ok(Self::Undone),
            11 => Ok(Self::Closed),
            12 => Ok(Self::NoRoom),
            _ => Err(WireError::UnknownTag),
        }
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was executed.
    Done {
        /// The result.
        result: Bytes,
        /// What all requests have answered and written until then, chained
        /// ([`crate::service::Service::take_written`]): equal answers mean equal states.
        effects: Digest,
    },
    /// It was executed: the digest of the result and the effects, which another replica sends in full.
    DoneDigest(Digest),
    /// It is not executed, and why. Whether it was before: [`Refusal::is_about_the_future`].
    Refused(Refusal),
}

impl Outcome {
    /// A result of a state without effects.
    pub const fn read(result: Bytes) -> Self {
        Self::Done { result, effects: Digest::ZERO }
    }

    /// Bytes of the result, if it is here.
    pub const fn result_bytes(&self) -> usize {
        match self {
            Self::Done { result, .. } => result.len(),
            Self::DoneDigest(_) | Self::Refused(_) => 0,
        }
    }

    /// What must be equal between replies: the same for a result and for its digest, and for nothing else. Whoever
    /// passes an outcome on under the MACs of others can say nothing else that they have vouched for.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Done { result, effects } => Digest::of_parts(Domain::Result, &[result, &effects.0]),
            Self::DoneDigest(digest) => *digest,
            Self::Refused(refusal) => Digest::of(Domain::Refusal, &refusal.to_bytes()),
        }
    }

    /// Whether both say the same: their digests are equal. Two results are compared as they are.
    pub fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Done { .. }, Self::Done { .. })
            | (Self::DoneDigest(_), Self::DoneDigest(_))
            | (Self::Refused(_), Self::Refused(_)) => self == other,
            (Self::Done { .. } | Self::DoneDigest(_) | Self::Refused(_), _) => self.digest() == other.digest(),
        }
    }

    /// Whether it says what came of the request, and not only the digest of that: whoever takes a digest for an answer
    /// has none, and asks nobody else.
    pub const fn is_whole(&self) -> bool {
        !matches!(self, Self::DoneDigest(_))
    }
}

impl Wire for Outcome {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Done { result, effects } => {
                out.push(0);
                encode_shared(result, out);
                effects.encode(out);
            }
            Self::DoneDigest(digest) => {
                out.push(1);
                digest.encode(out);
            }
            Self::Refused(refusal) => {
                out.push(2);
                refusal.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            0 => {
                let length = reader.length(FRAME_BYTES_MAX, 1)?;
                // The client needs only one of the equal ones for long.
                Ok(Self::Done { result: reader.slice(length)?, effects: Wire::decode(reader)? })
            }
            1 => Ok(Self::DoneDigest(Wire::decode(reader)?)),
            2 => Ok(Self::Refused(Wire::decode(reader)?)),
            _ => Err(WireError::UnknownTag),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { result, .. } => write!(f, "{} bytes", result.len()),
            Self::DoneDigest(digest) => write!(f, "digest {digest:?}"),
            Self::Refused(refusal) => write!(f, "refused {refusal:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Reader, Wire};
    use alloc::vec::Vec;

    /// abs-K19: whoever passes an answer on makes no refusal of a result.
    #[test]
    fn k19_no_result_has_the_digest_of_a_refusal() {
        let refusals =
            (0..=u8::MAX).filter_map(|byte| Refusal::decode(&mut Reader::new(Bytes::copy_from_slice(&[byte]))).ok());
        let refusals: Vec<Refusal> = refusals.collect();
        assert_eq!(refusals.len(), 13);
        for refusal in refusals {
            let refused = Outcome::Refused(refusal);
            let result = Outcome::Done { result: refusal.to_bytes().into(), effects: Digest::ZERO };
            assert_ne!(refused.digest(), result.digest());
            assert!(!refused.agrees_with(&result) && !refused.agrees_with(&Outcome::DoneDigest(result.digest())));
        }
    }

    /// A result and its digest say the same, whichever came first.
    #[test]
    fn a_result_agrees_with_its_digest_alone() {
        let result =
            |effects| Outcome::Done { result: Bytes::from_static(b"a result"), effects: Digest([effects; 32]) };
        let digest = Outcome::DoneDigest(result(1).digest());
        assert!(result(1).agrees_with(&digest) && digest.agrees_with(&result(1)) && result(1).agrees_with(&result(1)));
        assert!(
            !result(2).agrees_with(&digest) && !digest.agrees_with(&result(2)) && !result(1).agrees_with(&result(2))
        );
    }
}
