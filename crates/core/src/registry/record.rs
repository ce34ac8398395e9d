//! What a replica must find again after a crash, whatever runs: see the table in `docs/durability.md`.

use crate::protocols::pbft::PbftRecord;
use crate::protocols::ring_resilient::ResilientRecord;
use crate::protocols::ritas::order::RitasRecord;
use crate::switching::{self, HistoryRecord, Recorded};
use crate::wire::{Reader, Sink, Wire, WireError};
use core::fmt;

/// What an instance must not forget.
#[derive(Clone)]
pub enum InstanceRecord {
    /// Of its history.
    History(HistoryRecord),
    /// Of PBFT.
    Pbft(PbftRecord),
    /// Of RITAS.
    Ritas(RitasRecord),
    /// Of the resilient ring.
    Resilient(ResilientRecord),
}

/// One thing to make durable.
pub type Record = switching::Record<InstanceRecord>;
/// An entry of the log.
pub type LogRecord = switching::LogRecord<InstanceRecord>;
/// A snapshot with everything above it that is still needed.
pub type SnapshotRecord = switching::SnapshotRecord<InstanceRecord>;

/// The tag of what PBFT must not forget.
const PBFT: u8 = 1;
/// The tag of what RITAS must not forget.
const RITAS: u8 = 15;

impl Wire for InstanceRecord {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::History(record) => record.encode(out),
            Self::Pbft(record) => {
                out.push(PBFT);
                record.encode(out);
            }
            Self::Ritas(record) => {
                out.push(RITAS);
                record.encode(out);
            }
            Self::Resilient(record) => record.encode(out),
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        match reader.tag()? {
            PBFT => Ok(Self::Pbft(Wire::decode(reader)?)),
            RITAS => Ok(Self::Ritas(Wire::decode(reader)?)),
            tag @ (ResilientRecord::PREPARED | ResilientRecord::COMMITTED) => {
                Ok(Self::Resilient(ResilientRecord::decode_tagged(tag, reader)?))
            }
            tag => Ok(Self::History(HistoryRecord::decode_tagged(tag, reader)?)),
        }
    }
}

/// As the record itself shows.
impl fmt::Debug for InstanceRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::History(record) => record.fmt(f),
            Self::Pbft(record) => f.debug_tuple("Pbft").field(record).finish(),
            Self::Ritas(record) => f.debug_tuple("Ritas").field(record).finish(),
            Self::Resilient(record) => record.fmt(f),
        }
    }
}

impl From<HistoryRecord> for InstanceRecord {
    fn from(record: HistoryRecord) -> Self {
        Self::History(record)
    }
}

impl From<PbftRecord> for InstanceRecord {
    fn from(record: PbftRecord) -> Self {
        Self::Pbft(record)
    }
}

impl From<RitasRecord> for InstanceRecord {
    fn from(record: RitasRecord) -> Self {
        Self::Ritas(record)
    }
}

impl From<ResilientRecord> for InstanceRecord {
    fn from(record: ResilientRecord) -> Self {
        Self::Resilient(record)
    }
}

impl Recorded for InstanceRecord {
    fn log_bytes(&self) -> usize {
        match self {
            Self::History(record) => record.log_bytes(),
            Self::Pbft(record) => record.log_bytes(),
            Self::Ritas(record) => record.log_bytes(),
            Self::Resilient(record) => record.log_bytes(),
        }
    }
}

impl InstanceRecord {
    /// Whether it says that its replica lost an earlier log. From then on the log itself remembers that.
    pub const fn abstains(&self) -> bool {
        matches!(
            self,
            Self::Pbft(PbftRecord::Abstain(_))
                | Self::Ritas(RitasRecord::Abstain(_))
                | Self::History(HistoryRecord::Abstain(_))
        )
    }
}
