//! A replica's timers.

use crate::protocols::backup::TransferTimer;
use crate::protocols::pbft::PbftTimer;
use crate::protocols::ring_fast::RingTimer;
use crate::protocols::ring_resilient::ResilientTimer;
use crate::protocols::ritas::order::RitasTimer;
use crate::protocols::speculative::SpeculativeTimer;
use crate::switching::OpeningTimer;

/// A replica's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplicaTimer {
    /// Of the total order.
    Pbft(PbftTimer),
    /// State transfer: begin, or ask again.
    Transfer,
    /// An init history: ask again for what is missing.
    Opening,
    /// A lightweight checkpoint: say it again.
    Checkpoint,
    /// An abort report: say it again.
    Abort,
    /// Chain or Ring looks at the load.
    LowLoad,
    /// Ring stops for a client that panicked.
    Panic,
    /// Ring measures how fast it is.
    Pace,
    /// Which instance runs elsewhere?
    Heartbeat,
    /// A robust composition looks at what its instance is worth.
    Look,
    /// A robust composition looks whether its instance goes on without a replica that has stopped.
    Alone,
    /// Of the resilient ring.
    Resilient(ResilientTimer),
    /// Of RITAS.
    Ritas(RitasTimer),
}

impl ReplicaTimer {
    /// Those that mean nothing once their instance is over.
    pub(crate) const OF_INSTANCES: [Self; 14] = [
        Self::Pbft(PbftTimer::View),
        Self::Pbft(PbftTimer::Status),
        Self::Pbft(PbftTimer::Watch),
        Self::Transfer,
        Self::Opening,
        Self::Checkpoint,
        Self::Abort,
        Self::LowLoad,
        Self::Panic,
        Self::Pace,
        Self::Alone,
        Self::Resilient(ResilientTimer::Patience),
        Self::Resilient(ResilientTimer::Repeat),
        Self::Ritas(RitasTimer::Channel),
    ];
}

impl From<OpeningTimer> for ReplicaTimer {
    fn from(_: OpeningTimer) -> Self {
        Self::Opening
    }
}

impl From<SpeculativeTimer> for ReplicaTimer {
    fn from(timer: SpeculativeTimer) -> Self {
        match timer {
            SpeculativeTimer::Checkpoint => Self::Checkpoint,
            SpeculativeTimer::LowLoad => Self::LowLoad,
        }
    }
}

impl From<RingTimer> for ReplicaTimer {
    fn from(timer: RingTimer) -> Self {
        match timer {
            RingTimer::Speculative(timer) => timer.into(),
            RingTimer::Panic => Self::Panic,
            RingTimer::Pace => Self::Pace,
        }
    }
}

impl From<ResilientTimer> for ReplicaTimer {
    fn from(timer: ResilientTimer) -> Self {
        Self::Resilient(timer)
    }
}

impl From<PbftTimer> for ReplicaTimer {
    fn from(timer: PbftTimer) -> Self {
        Self::Pbft(timer)
    }
}

impl From<RitasTimer> for ReplicaTimer {
    fn from(timer: RitasTimer) -> Self {
        Self::Ritas(timer)
    }
}

impl From<TransferTimer> for ReplicaTimer {
    fn from(_: TransferTimer) -> Self {
        Self::Transfer
    }
}
