//! Compositions by their names in the cluster file.

use super::{Order, Part, Quota, Schedule};
use core::fmt;
use core::str::FromStr;

/// A composition by its name in the cluster file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// One Backup over PBFT that lasts for ever.
    #[default]
    Pbft,
    /// One Backup over Aardvark that lasts for ever.
    Aardvark,
    /// One Backup over RITAS that lasts for ever.
    Ritas,
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
    /// Aliph whose Backup is Aardvark, so that nothing is worth less than that for long.
    RAliph,
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
        Self::Aardvark,
        Self::Ritas,
        Self::Quorum,
        Self::ZLight,
        Self::Chain,
        Self::Azyzzyva,
        Self::Aliph,
        Self::RAliph,
        Self::Ring,
        Self::Unreplicated,
    ];

    /// Its name; `schedule` for one without.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pbft => "pbft",
            Self::Aardvark => "aardvark",
            Self::Ritas => "ritas",
            Self::Quorum => "quorum",
            Self::ZLight => "zlight",
            Self::Chain => "chain",
            Self::Azyzzyva => "azyzzyva",
            Self::Aliph => "aliph",
            Self::RAliph => "r-aliph",
            Self::Ring => "ring",
            Self::Schedule(_) => "schedule",
            Self::Unreplicated => "unreplicated",
        }
    }

    /// What its instances run.
    pub const fn schedule(self) -> Schedule {
        const BACKUP: Part = Part::Backup(Order::Pbft);
        match self {
            Self::Pbft => const { Schedule::of(&[BACKUP]) },
            Self::Aardvark => const { Schedule::of(&[Part::Backup(Order::Aardvark)]) },
            Self::Ritas => const { Schedule::of(&[Part::Backup(Order::Ritas)]) },
            Self::Quorum => const { Schedule::of(&[Part::Quorum, BACKUP]) },
            Self::ZLight | Self::Azyzzyva => const { Schedule::of(&[Part::ZLight, BACKUP]) },
            Self::Chain => const { Schedule::of(&[Part::Chain, BACKUP]) },
            Self::Aliph => const { Schedule::of(&[Part::Quorum, Part::Chain, BACKUP]) },
            // What a Backup does must be known before anything is measured by it.
            Self::RAliph => const { Schedule::of(&[Part::Backup(Order::Aardvark), Part::Quorum, Part::Chain]) },
            Self::Ring => const { Schedule::of(&[Part::RingFast, Part::RingResilient, BACKUP]) },
            Self::Schedule(schedule) => schedule,
            Self::Unreplicated => const { Schedule::of(&[Part::Unreplicated]) },
        }
    }

    /// Whether it is a total order that lasts for ever, and nothing besides.
    pub const fn is_one_order(self) -> bool {
        matches!(self, Self::Pbft | Self::Aardvark | Self::Ritas)
    }

    /// Whether its instances hand on to one another; else there is one, which lasts for ever.
    pub const fn hands_on(self) -> bool {
        match self {
            Self::Pbft | Self::Aardvark | Self::Ritas | Self::Unreplicated => false,
            Self::Quorum
            | Self::ZLight
            | Self::Chain
            | Self::Azyzzyva
            | Self::Aliph
            | Self::RAliph
            | Self::Ring
            | Self::Schedule(_) => true,
        }
    }

    /// Whether its instances are measured by its Backups, and left when they are worth less
    /// ([`crate::compositions::robust`]).
    pub fn is_robust(self) -> bool {
        self.hands_on() && self.has_aardvark()
    }

    /// Whether Aardvark is a part of it: replicas are to be fair to clients when they have no time to spare.
    pub fn has_aardvark(self) -> bool {
        self.schedule().parts().contains(&Part::Backup(Order::Aardvark))
    }

    /// How long its Backups last if nobody chooses: where others are measured by them, long enough to be measured.
    pub fn quota(self) -> Quota {
        if self.is_robust() { Quota::Exponential { minimum: 4_096 } } else { Quota::default() }
    }

    /// Whether clients that the cluster file does not name may join in it: see [`Part::lets_clients_join`].
    pub fn lets_clients_join(self) -> bool {
        self.schedule().parts().iter().all(|part| part.lets_clients_join())
    }

    /// Whether RITAS orders in it, alone or as a Backup: then somebody tosses coins ([`crate::cluster::Coin`]).
    pub fn has_ritas(self) -> bool {
        self.schedule().parts().contains(&Part::Backup(Order::Ritas))
    }

    /// Whether PBFT orders in it, watched or not, alone or as a Backup: then rulings can be ordered as well
    /// ([`crate::dissent`]).
    pub fn orders_by_pbft(self) -> bool {
        let by_pbft = |part: &Part| matches!(part, Part::Backup(Order::Pbft | Order::Aardvark));
        self.schedule().parts().iter().any(by_pbft)
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
