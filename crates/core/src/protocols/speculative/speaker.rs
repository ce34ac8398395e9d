//! What instances that speculate say and wait for.

use super::response::Response;
use crate::switching;

/// A machine that an instance which speculates may be a part of.
pub trait Speaker: switching::Speaker<Outgoing: From<Response>, Timer: From<SpeculativeTimer>> {}

impl<M: switching::Speaker<Outgoing: From<Response>, Timer: From<SpeculativeTimer>>> Speaker for M {}

/// The timers of instances that speculate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpeculativeTimer {
    /// A lightweight checkpoint: say it again.
    Checkpoint,
    /// Chain or Ring looks at the load.
    LowLoad,
}
