//! Silence: towards everybody, towards some, about some things, or towards clients only.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::ids::Principal;
use bezant_core::protocols::pbft::{Ordering, PbftMessage};
use bezant_core::registry::Message;

/// About what or towards whom it is silent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Silent {
    Everything,
    Clients,
    Proposals,
    Votes,
    NewViews,
    /// Bit per replica.
    Towards(u64),
    /// Bit per replica for this long: silent in the gaps between microseconds of true time only.
    Sometimes(u64),
}

impl Silent {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        match rng.below(7) {
            0 => Self::Everything,
            1 => Self::Clients,
            2 => Self::Proposals,
            3 => Self::Votes,
            4 => Self::NewViews,
            5 => Self::Towards(rng.next()),
            _ => Self::Sometimes(rng.between(100, 900)),
        }
    }
}

impl Behaviour for Silent {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let ordering = if let Message::Ordering(Ordering { message, .. }) = message { Some(message) } else { None };
        let silent = match *self {
            Self::Everything => true,
            Self::Clients => to.is_client(),
            Self::Proposals => matches!(ordering, Some(PbftMessage::PrePrepare(_))),
            Self::Votes => matches!(ordering, Some(PbftMessage::Prepare(_) | PbftMessage::Commit(_))),
            Self::NewViews => matches!(ordering, Some(PbftMessage::NewView(_))),
            Self::Towards(set) => matches!(to, Principal::Replica(id) if set >> id.0 & 1 == 1),
            Self::Sometimes(parts) => liar.rng.per_mille(parts),
        };
        if !silent {
            liar.say(to, message);
        }
    }
}
