//! What replicas say to each other about the ring's pace.

use crate::auth::{Claimed, Keyring, Signable, Signed};
use crate::cluster::Cluster;
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId};
use crate::machine::Step;
use crate::notice::Pace;
use crate::rejection::Rejection;
use crate::replicas::REPLICAS_MAX;
use crate::spoken::{Cover, Spoken, from_replica};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::{wire_enum, wire_struct};
use alloc::vec::Vec;
use core::fmt;

/// A round of somebody: the originator, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Round {
    /// Whose.
    pub originator: ReplicaId,
    /// Which: intervals on the originator's clock, so that they grow across restarts.
    pub number: u64,
}
wire_struct!(Round { originator, number });

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.number, self.originator)
    }
}

/// Pace 2: how long a replica's PING to its successor took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The instance.
    pub instance: InstanceId,
    /// For this round only.
    pub round: Round,
    /// Half the way there and back, in microseconds.
    pub microseconds: u64,
}
wire_struct!(Hop { instance, round, microseconds });

impl Signable for Hop {
    const KIND: u8 = 9;
}

/// Pace 4: what a replica makes of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// The instance.
    pub instance: InstanceId,
    /// The round.
    pub round: Round,
    /// Whether batches need longer than they should.
    pub pace: Pace,
}
wire_struct!(Vote { instance, round, pace });

impl Signable for Vote {
    const KIND: u8 = 10;
}

/// CHECK and REPORT: hops of the replicas from the originator on, as far as it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hops {
    /// The round.
    pub round: Round,
    /// In the order of the ring.
    pub hops: Vec<Claimed<Signed<Hop>>>,
}

impl Wire for Hops {
    fn encode(&self, out: &mut impl Sink) {
        self.round.encode(out);
        encode_list(&self.hops, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { round: Wire::decode(reader)?, hops: reader.list(REPLICAS_MAX)? })
    }
}

/// What replicas say to each other about the ring's pace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaceMessage {
    /// Pace 1, with a number that PONG repeats.
    Ping(u64),
    /// Pace 1.
    Pong(u64),
    /// Pace 2.
    Check(Hops),
    /// Pace 3.
    Report(Hops),
    /// Pace 4.
    Vote(Claimed<Signed<Vote>>),
    /// A client wants to know how long requests take.
    Ask(ClientId),
    /// How long those of one entry take.
    Delay(Delay),
}

impl PaceMessage {
    /// The step with which it is sent.
    pub(crate) const fn step(&self) -> Step {
        match self {
            Self::Ping(_) | Self::Pong(_) => "Pace 1",
            Self::Check(_) => "Pace 2",
            Self::Report(_) => "Pace 3",
            Self::Vote(_) => "Pace 4",
            Self::Ask(_) | Self::Delay(_) => "Fairness 1",
        }
    }
}

wire_enum!(PaceMessage { 0 => Ping, 1 => Pong, 2 => Check, 3 => Report, 4 => Vote, 5 => Ask, 6 => Delay });

/// What a client is told of the requests of the entry that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Who asked.
    pub client: ClientId,
    /// On average, from there to the answer.
    pub microseconds: u64,
}
wire_struct!(Delay { client, microseconds });

/// The same, of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingPace {
    /// The instance.
    pub instance: InstanceId,
    /// What is said.
    pub message: PaceMessage,
}
wire_struct!(RingPace { instance, message });

impl fmt::Display for RingPace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, message } = self;
        match message {
            PaceMessage::Ping(number) => write!(f, "PACE-PING {instance} n{number}"),
            PaceMessage::Pong(number) => write!(f, "PACE-PONG {instance} n{number}"),
            PaceMessage::Check(hops) => {
                write!(f, "PACE-CHECK {instance} {} with {} hops", hops.round, hops.hops.len())
            }
            PaceMessage::Report(hops) => write!(f, "PACE-REPORT {instance} {}", hops.round),
            PaceMessage::Ask(client) => write!(f, "PACE-ASK {instance} {client}"),
            PaceMessage::Delay(delay) => write!(f, "PACE-DELAY {instance} to {}", delay.client),
            PaceMessage::Vote(vote) => {
                write!(f, "PACE-VOTE {instance} {} {:?}", vote.claims().round, vote.claims().pace)
            }
        }
    }
}

impl Spoken for RingPace {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        match self.message {
            PaceMessage::Delay(Delay { client, .. }) => Some(client),
            PaceMessage::Ping(_)
            | PaceMessage::Pong(_)
            | PaceMessage::Check(_)
            | PaceMessage::Report(_)
            | PaceMessage::Vote(_)
            | PaceMessage::Ask(_) => None,
        }
    }

    fn cover(&self) -> Cover {
        Cover::Whole
    }

    fn may_overtake(&self) -> bool {
        false
    }

    /// A client asks for delays, in its own name; all else replicas say.
    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        match (&self.message, from) {
            (PaceMessage::Ask(asks), Principal::Client(client)) if asks.identity == client.identity => Ok(()),
            (_, from) => from_replica(from),
        }
    }
}
