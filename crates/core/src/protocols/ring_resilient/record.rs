//! What a resilient ring must not forget besides its history.

use crate::auth::{Certificate, Claimed};
use crate::switching::RECORD_ALLOWANCE;
use crate::switching::certificate::Prepared;
use crate::wire::{Reader, Sink, Wire, WireError};

/// See the [module](self).
#[derive(Clone, Debug)]
pub enum ResilientRecord {
    /// This replica holds this certificate for what it has logged.
    Prepared(Claimed<Certificate<Prepared>>),
    /// Everything up to this position is committed. Nothing waits for it.
    Committed(u64),
}

impl ResilientRecord {
    pub(crate) const PREPARED: u8 = 11;
    pub(crate) const COMMITTED: u8 = 13;

    /// The record behind a tag that was read.
    pub(crate) fn decode_tagged(tag: u8, reader: &mut Reader) -> Result<Self, WireError> {
        match tag {
            Self::PREPARED => Ok(Self::Prepared(Wire::decode(reader)?)),
            Self::COMMITTED => Ok(Self::Committed(Wire::decode(reader)?)),
            _ => Err(WireError::UnknownTag),
        }
    }

    /// About how many bytes it takes in the log: see [`crate::switching::Recorded::log_bytes`].
    pub const fn log_bytes(&self) -> usize {
        match self {
            Self::Prepared(_) | Self::Committed(_) => RECORD_ALLOWANCE,
        }
    }
}

impl Wire for ResilientRecord {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Prepared(certificate) => {
                out.push(Self::PREPARED);
                certificate.encode(out);
            }
            Self::Committed(position) => {
                out.push(Self::COMMITTED);
                position.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let tag = reader.tag()?;
        Self::decode_tagged(tag, reader)
    }
}
