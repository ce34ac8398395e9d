//! Compositions: schedules of abortable instances over one estate (design.md section 1).
//!
//! A replicated state machine is an abortable instance that never aborts, so that every configuration, plain PBFT
//! included, is a schedule:
//!
//! | name | schedule |
//! |---|---|
//! | `pbft` | `backup(pbft)` without end |
//! | `quorum`, `zlight`, `chain` | that protocol, `backup(pbft)` |
//! | `azyzzyva` | `zlight`, `backup(pbft)` |
//! | `aliph` | `quorum`, `chain`, `backup(pbft)` |
//! | `ring` | `ring-fast`, `ring-resilient`, `backup(pbft)` |
//! | a list of the operator's own | as written, e.g. `zlight, chain, backup(pbft)` or `quorum, ring-resilient` |
//! | `unreplicated` | one server without any protocol, the yardstick of every benchmark |

mod amnesia;
mod composite;
mod early;
mod jump;
mod recovery;
mod schedule;
mod switch;
#[cfg(test)]
mod tests;
mod unreplicated;

pub(crate) use amnesia::Amnesia;
pub(crate) use composite::{Composite, Running};
pub use schedule::{PARTS_MAX, Part, Quota, Schedule, ScheduleError};
pub use unreplicated::Unreplicated;

use crate::cluster::{ClientAuth, Cluster};
use crate::message::FRAME_BYTES_MAX;
use crate::protocols::pbft::{NewView, PrePrepare};
use crate::switching::AbortReport;
use crate::switching::report::ENTRIES_MAX;
use core::fmt;
use core::str::FromStr;

/// The most that a message which must be sent may need, by an estimate.
const LONG: usize = FRAME_BYTES_MAX - FRAME_BYTES_MAX / 16;

/// A composition by its name in the cluster file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// `backup(pbft, k = ∞)`.
    #[default]
    Pbft,
    /// Quorum, and Backup where it aborts.
    Quorum,
    /// ZLight, and Backup where it aborts.
    ZLight,
    /// Chain, and Backup where it aborts.
    Chain,
    /// The paper's name for ZLight and Backup.
    Azyzzyva,
    /// Quorum, Chain, Backup.
    Aliph,
    /// Ring's two modes in turns, and Backup, which settles what they executed otherwise.
    Ring,
    /// The operator's own.
    Schedule(Schedule),
    /// One server: executes on arrival, tolerates nothing.
    Unreplicated,
}

impl Protocol {
    /// Every composition that has a name.
    pub const ALL: &'static [Self] = &[
        Self::Pbft,
        Self::Quorum,
        Self::ZLight,
        Self::Chain,
        Self::Azyzzyva,
        Self::Aliph,
        Self::Ring,
        Self::Unreplicated,
    ];

    /// Its name; `schedule` for one without.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pbft => "pbft",
            Self::Quorum => "quorum",
            Self::ZLight => "zlight",
            Self::Chain => "chain",
            Self::Azyzzyva => "azyzzyva",
            Self::Aliph => "aliph",
            Self::Ring => "ring",
            Self::Schedule(_) => "schedule",
            Self::Unreplicated => "unreplicated",
        }
    }

    /// The schedule, of those that have several instances.
    pub const fn schedule(self) -> Option<Schedule> {
        match self {
            Self::Pbft | Self::Unreplicated => None,
            Self::Quorum => Some(const { Schedule::of(&[Part::Quorum, Part::Backup]) }),
            Self::ZLight | Self::Azyzzyva => Some(const { Schedule::of(&[Part::ZLight, Part::Backup]) }),
            Self::Chain => Some(const { Schedule::of(&[Part::Chain, Part::Backup]) }),
            Self::Aliph => Some(const { Schedule::of(&[Part::Quorum, Part::Chain, Part::Backup]) }),
            Self::Ring => Some(const { Schedule::of(&[Part::RingFast, Part::RingResilient, Part::Backup]) }),
            Self::Schedule(schedule) => Some(schedule),
        }
    }

    /// Whether PBFT orders in it, alone or as a Backup: then rulings can be ordered as well ([`crate::dissent`]).
    pub fn orders_by_pbft(self) -> bool {
        let of_schedule = |schedule: Schedule| schedule.parts().contains(&Part::Backup);
        self == Self::Pbft || self.schedule().is_some_and(of_schedule)
    }

    /// Why this protocol cannot run on this cluster, in words.
    pub fn objection(self, cluster: &Cluster) -> Option<&'static str> {
        match self {
            Self::Unreplicated if cluster.n != 1 => Some("unreplicated runs on exactly one replica"),
            _ if cluster.dynamic_clients && self != Self::Pbft => Some(
                "dynamic_clients goes with protocol = \"pbft\" only: the other protocols cannot let clients join yet",
            ),
            _ if cluster.dynamic_clients && cluster.client_auth == ClientAuth::Mac => {
                Some("dynamic_clients needs requests that are signed: client_auth = \"hybrid\" or \"signature\"")
            }
            _ if self.schedule().is_some() && cluster.n != 3 * cluster.f + 1 => {
                Some("protocols that abort run on exactly 3f+1 replicas")
            }
            _ if cluster.n == 1
                && self.schedule().is_some_and(|schedule| schedule.parts().contains(&Part::RingFast)) =>
            {
                Some("a ring has at least four replicas")
            }
            // What such a replica inherits at last is one bound more.
            _ if AbortReport::entries_max(cluster) + cluster.history_bound() > ENTRIES_MAX as u64 => {
                Some("histories grow too long: set a lower history_interval, or fewer parts between two Backups")
            }
            _ if self.schedule().is_some() && AbortReport::proof_bytes_max(cluster) > LONG as u64 => {
                Some("a proof that an instance has ended is longer than a message may be: set a lower history_interval")
            }
            _ if self.orders_by_pbft() && !NewView::fits(cluster, LONG) => {
                Some("a view change is longer than a message may be: set a lower checkpoint_interval")
            }
            _ if self.orders_by_pbft() && PrePrepare::bytes_max(cluster) > LONG as u64 => {
                Some("a batch is longer than a message may be: set a lower batch_requests_max or batch_bytes_max")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule(schedule) => schedule.fmt(f),
            named => f.write_str(named.name()),
        }
    }
}

/// There is no composition of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProtocol;

impl fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown protocol; there are")?;
        for protocol in Protocol::ALL {
            write!(f, " {protocol}")?;
        }
        f.write_str(", and lists of parts such as \"zlight, chain, backup(pbft)\"")
    }
}

impl core::error::Error for UnknownProtocol {}

impl FromStr for Protocol {
    type Err = UnknownProtocol;
    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        let named = Self::ALL.iter().copied().find(|protocol| protocol.name() == name);
        named.or_else(|| name.parse().ok().map(Self::Schedule)).ok_or(UnknownProtocol)
    }
}
