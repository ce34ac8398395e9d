//! What the replicas of a RITAS order say to one another.

use super::super::message::Summary;
use super::super::statements::Statements;
use crate::auth::{Certificate, Claimed, Keyring};
use crate::checkpoint::Checkpoint;
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId, Principal, Sequence};
use crate::rejection::Rejection;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::time::Instant;
use crate::{wire_enum, wire_struct};
use alloc::boxed::Box;
use core::fmt;

/// PROGRESS: what a replica has come to. Whoever reads it says again what it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it has heard of the one that it writes to.
    pub summary: Summary,
    /// Its last stable checkpoint.
    pub stable: Sequence,
}
wire_struct!(Progress { summary, stable });

/// LOST, and ROUND, the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// The question's time, which no earlier answer carries.
    pub question: Instant,
    /// The round that its author is in.
    pub round: u64,
}
wire_struct!(Whereabouts { question, round });

/// PING, and PONG, the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lap {
    /// The round that follows the rest.
    pub round: u64,
    /// How often its author has asked before in this rest.
    pub number: u8,
}
wire_struct!(Lap { round, number });

/// Everything that RITAS says.
#[derive(Clone, Debug)]
pub enum RitasMessage {
    /// Statements of the layers.
    Said(Statements),
    /// What I have come to.
    Progress(Progress),
    /// A stable checkpoint with its proof.
    Stable(Box<Claimed<Certificate<Checkpoint>>>),
    /// I lost my log, and ask at this time: what may I have said?
    Lost(Whereabouts),
    /// Where its author is.
    Round(Whereabouts),
    /// Are you there?
    Ping(Lap),
    /// Its author is.
    Pong(Lap),
}
wire_enum!(RitasMessage {
    1 => Said,
    2 => Progress,
    3 => Stable,
    4 => Lost,
    5 => Round,
    6 => Ping,
    7 => Pong,
});

/// A message of the total order RITAS within an instance.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The instance that it belongs to (abs-D1).
    pub instance: InstanceId,
    /// What RITAS says.
    pub message: RitasMessage,
}
wire_struct!(Agreement { instance, message });

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            RitasMessage::Said(Statements(said)) => {
                f.write_str("SAID")?;
                said.iter().try_for_each(|said| write!(f, " {said}"))
            }
            RitasMessage::Progress(progress) => {
                let heard = progress.summary.heard.len();
                write!(f, "PROGRESS stable {} round {} heard {heard}", progress.stable, progress.summary.round)
            }
            RitasMessage::Stable(proof) => {
                write!(f, "STABLE {} {:?}", proof.claims().sequence, proof.claims().root)
            }
            RitasMessage::Lost(asked) => write!(f, "LOST at {}, in round {}", asked.question.0, asked.round),
            RitasMessage::Round(here) => write!(f, "ROUND {}", here.round),
            RitasMessage::Ping(lap) => write!(f, "PING {} before round {}", lap.number, lap.round),
            RitasMessage::Pong(lap) => write!(f, "PONG {} before round {}", lap.number, lap.round),
        }
    }
}

impl Spoken for Agreement {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    fn cover(&self) -> Cover {
        match &self.message {
            RitasMessage::Said(_) => Cover::Digest,
            RitasMessage::Progress(_)
            | RitasMessage::Stable(_)
            | RitasMessage::Lost(_)
            | RitasMessage::Round(_)
            | RitasMessage::Ping(_)
            | RitasMessage::Pong(_) => Cover::Whole,
        }
    }

    fn may_overtake(&self) -> bool {
        false
    }

    /// The requests in a message of an atomic broadcast are checked when it was delivered reliably (Order 3).
    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}
