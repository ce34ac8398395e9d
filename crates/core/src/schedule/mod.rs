//! Which protocol each instance of a composition runs, who leads it, and how long a Backup lasts.
//!
//! Everything here is a pure function of the instance's number, so every replica and every client computes the
//! same (abs-D11).

mod protocol;
mod specification;

pub use protocol::{Protocol, UnknownProtocol};
pub use specification::Specification;

use crate::ids::{InstanceId, ReplicaId};
use crate::replicas::Replicas;
use core::fmt;
use core::str::FromStr;

/// The most instances in one round of a schedule.
pub const PARTS_MAX: usize = 8;

/// One protocol of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// [`crate::protocols::quorum`].
    Quorum,
    /// [`crate::protocols::zlight`].
    ZLight,
    /// [`crate::protocols::chain`].
    Chain,
    /// [`crate::protocols::ring_fast`].
    RingFast,
    /// [`crate::protocols::ring_resilient`].
    RingResilient,
    /// [`crate::protocols::backup`] over a total order.
    Backup(Order),
    /// [`crate::protocols::unreplicated`].
    Unreplicated,
    /// [`crate::protocols::sample`].
    #[cfg(test)]
    Sample,
}

/// A total order, as a Backup wraps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// [`crate::protocols::pbft`].
    Pbft,
    /// PBFT, whose primaries are watched: [`crate::protocols::aardvark`].
    Aardvark,
    /// [`crate::protocols::ritas`].
    Ritas,
}

/// How an instance ends: which abort reports prove it, and which history the next one begins with
/// ([`crate::switching`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// f + 1 reports of one end: it comes to one that is the same everywhere, after a quota of requests.
    Agreed,
    /// 2f + 1 reports, and the longest prefix that f + 1 of them share.
    Shared,
    /// 2f + 1 reports, and the longest history that one of them certifies.
    Certified,
    /// It does not: nothing follows it.
    Never,
}

impl Part {
    /// What a schedule may name.
    const ALL: [Self; 8] = [
        Self::Quorum,
        Self::ZLight,
        Self::Chain,
        Self::RingFast,
        Self::RingResilient,
        Self::Backup(Order::Pbft),
        Self::Backup(Order::Aardvark),
        Self::Backup(Order::Ritas),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quorum => "quorum",
            Self::ZLight => "zlight",
            Self::Chain => "chain",
            Self::RingFast => "ring-fast",
            Self::RingResilient => "ring-resilient",
            Self::Backup(Order::Pbft) => "backup(pbft)",
            Self::Backup(Order::Aardvark) => "backup(aardvark)",
            Self::Backup(Order::Ritas) => "backup(ritas)",
            Self::Unreplicated => "unreplicated",
            #[cfg(test)]
            Self::Sample => "sample",
        }
    }

    /// How it ends.
    pub const fn ending(self) -> Ending {
        match self {
            Self::Backup(_) => Ending::Agreed,
            Self::Unreplicated => Ending::Never,
            Self::RingResilient => Ending::Certified,
            Self::Quorum | Self::ZLight | Self::Chain | Self::RingFast => Ending::Shared,
            #[cfg(test)]
            Self::Sample => Ending::Shared,
        }
    }

    /// Whether it serves clients while up to f replicas are down or lie.
    pub const fn is_resilient(self) -> bool {
        match self.ending() {
            Ending::Agreed | Ending::Certified | Ending::Never => true,
            Ending::Shared => false,
        }
    }

    /// Whether it is a Backup: it agrees by itself on the history that it begins with, and its replicas execute only
    /// what their order has decided.
    pub const fn is_backup(self) -> bool {
        match self {
            Self::Backup(_) => true,
            Self::Quorum | Self::ZLight | Self::Chain | Self::RingFast | Self::RingResilient | Self::Unreplicated => {
                false
            }
            #[cfg(test)]
            Self::Sample => false,
        }
    }

    /// Whether 2f + 1 of its replicas sign how far it has come, so that one that is behind can go on from there.
    pub const fn certifies(self) -> bool {
        matches!(self.ending(), Ending::Certified)
    }

    /// Whether clients that the cluster file does not name may join in it and ask ([`crate::members`]). Where requests
    /// are executed before they are certain, who is a member is not certain either; one server has nobody to vouch for
    /// a cookie; and in RITAS a request has to convince every replica alike, which a JOIN does not: its cookies have
    /// MACs.
    pub const fn lets_clients_join(self) -> bool {
        matches!(self, Self::Backup(Order::Pbft | Order::Aardvark))
    }

    /// Why it does not run among these replicas, in words. None needs n = 3f + 1: what each asks of sets of replicas is
    /// a threshold of [`Replicas`], and its module says why that is enough.
    pub const fn objection(self, replicas: Replicas) -> Option<&'static str> {
        match self {
            Self::RingFast if replicas.n() < 4 => Some("a ring has at least four replicas"),
            Self::Unreplicated if replicas.n() != 1 => Some("unreplicated runs on exactly one replica"),
            Self::Quorum
            | Self::ZLight
            | Self::Chain
            | Self::RingFast
            | Self::RingResilient
            | Self::Backup(_)
            | Self::Unreplicated => None,
            #[cfg(test)]
            Self::Sample => None,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A cyclic schedule of instances, at least one of them resilient: a Backup or a resilient ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Schedule {
    parts: [Part; PARTS_MAX],
    length: u8,
}

/// Why a schedule cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// No parts.
    Empty,
    /// More than [`PARTS_MAX`] parts.
    TooLong,
    /// A part that is none.
    UnknownPart,
    /// Neither a Backup nor a resilient ring: nothing would ever commit while a replica is down, and two aborting
    /// instances could follow each other for ever.
    NoBackup,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a schedule needs at least one part, e.g. \"chain\", \"backup(pbft)\""),
            Self::TooLong => write!(f, "a schedule has at most {PARTS_MAX} parts"),
            Self::UnknownPart => {
                f.write_str("unknown part of a schedule; there are")?;
                Part::ALL.iter().try_for_each(|part| write!(f, " {part}"))
            }
            Self::NoBackup => f.write_str(
                "a schedule needs a backup(pbft) or a ring-resilient: without one nothing commits while a replica is \
                 down or slow",
            ),
        }
    }
}

impl core::error::Error for ScheduleError {}

impl Schedule {
    /// A schedule that is known to be sound.
    pub(crate) const fn of(known: &[Part]) -> Self {
        assert!(!known.is_empty() && known.len() <= PARTS_MAX, "a schedule has 1 to PARTS_MAX parts");
        let mut parts = [Part::Unreplicated; PARTS_MAX];
        let mut at = 0;
        while at < known.len() {
            parts[at] = known[at];
            at += 1;
        }
        Self { parts, length: known.len() as u8 }
    }

    /// A schedule.
    ///
    /// # Errors
    /// [`ScheduleError`] unless it has 1 to [`PARTS_MAX`] parts, one of them resilient.
    pub fn new(parts: &[Part]) -> Result<Self, ScheduleError> {
        match parts.len() {
            0 => Err(ScheduleError::Empty),
            length if length > PARTS_MAX => Err(ScheduleError::TooLong),
            _ if !parts.iter().any(|part| part.is_resilient()) => Err(ScheduleError::NoBackup),
            _ => Ok(Self::of(parts)),
        }
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts[..usize::from(self.length)]
    }

    /// The most instances in a row that may end without an anchor that everybody takes over: those between two
    /// Backups. A resilient ring ends with one if it comes to its end; where there is no Backup, one that does not is
    /// allowed for.
    pub fn speculative_in_a_row(&self) -> u64 {
        if !self.parts().iter().any(|part| part.is_backup()) {
            return 2 * u64::from(self.length);
        }
        let twice = self.parts().iter().chain(self.parts());
        let longest = twice.scan(0, |run, part| {
            *run = if part.is_backup() { 0 } else { *run + 1 };
            Some(*run)
        });
        longest.max().unwrap_or(0)
    }

    /// What an instance runs.
    pub fn part(&self, instance: InstanceId) -> Part {
        self.parts[self.place(instance)]
    }

    fn place(&self, instance: InstanceId) -> usize {
        ((instance.0.max(1) - 1) % u64::from(self.length)) as usize
    }

    /// How many instances before this one run a part that `counts`.
    fn earlier(&self, instance: InstanceId, counts: impl Fn(Part) -> bool) -> u64 {
        let rounds = (instance.0.max(1) - 1) / u64::from(self.length);
        let in_round = |parts: &[Part]| parts.iter().filter(|part| counts(**part)).count() as u64;
        rounds * in_round(self.parts()) + in_round(&self.parts[..self.place(instance)])
    }

    /// The head of Chain, the primary of ZLight and the sequencer of a ring: the next replica for each such instance
    /// (abs-P1), so a faulty one costs one instance and not all. A fast ring and the resilient one that follows it
    /// are a pair with one sequencer.
    pub fn head(&self, replicas: Replicas, instance: InstanceId) -> ReplicaId {
        let leads = |at: usize| match self.parts()[at] {
            Part::Chain | Part::ZLight | Part::RingResilient => true,
            Part::RingFast => self.parts()[(at + 1) % self.parts().len()] != Part::RingResilient,
            Part::Quorum | Part::Backup(_) | Part::Unreplicated => false,
            #[cfg(test)]
            Part::Sample => true,
        };
        let rounds = (instance.0.max(1) - 1) / u64::from(self.length);
        let in_round = |length: usize| (0..length).filter(|at| leads(*at)).count() as u64;
        let led = rounds * in_round(usize::from(self.length)) + in_round(self.place(instance));
        assert!(led <= instance.0, "each instance has one head at most before it");
        ReplicaId((led % replicas.n() as u64) as u8)
    }

    /// How many instances of the same part came before this one: m of a resilient ring.
    pub fn same_before(&self, instance: InstanceId) -> u64 {
        let own = self.part(instance);
        self.earlier(instance, |part| part == own)
    }

    /// How many Backups came before this instance: m.
    pub fn backups_before(&self, instance: InstanceId) -> u64 {
        self.earlier(instance, Part::is_backup)
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts().iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{part}")?;
        }
        Ok(())
    }
}

impl FromStr for Part {
    type Err = ScheduleError;
    fn from_str(name: &str) -> Result<Self, ScheduleError> {
        let name = name.trim();
        Self::ALL.iter().copied().find(|part| part.name() == name).ok_or(ScheduleError::UnknownPart)
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;
    /// Parts with commas between them.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let mut parts = alloc::vec::Vec::new();
        for name in text.split(',').filter(|name| !name.trim().is_empty()) {
            parts.push(name.parse()?);
        }
        Self::new(&parts)
    }
}

/// How many requests a Backup or a resilient ring commits before it hands on: k(i), the same at every replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quota {
    /// Always the same.
    Fixed(u64),
    /// The minimum, doubled for each Backup since the last reset; resets come further and further apart, so the
    /// maxima grow without bound (abs-L5).
    Exponential {
        /// K_min, for the first Backup after a reset.
        minimum: u64,
    },
    /// As `Exponential`, but the first `patience` Backups after a reset have the minimum: a fault that lasts a moment
    /// costs short Backups only.
    Flattened {
        /// K_min.
        minimum: u64,
        /// Backups after a reset before k begins to double.
        patience: u32,
    },
}

impl Default for Quota {
    fn default() -> Self {
        Self::Exponential { minimum: 256 }
    }
}

/// The exponent of the m-th Backup when the r-th reset comes after r + [`FIRST_RESET`] Backups.
fn exponent(m: u64) -> u32 {
    let (mut left, mut length) = (m, FIRST_RESET);
    while left >= length {
        left -= length;
        length += 1;
    }
    assert!(left < length && left <= m, "each reset comes after all Backups since the one before");
    left as u32
}

/// Backups before the first reset.
const FIRST_RESET: u64 = 12;

impl Quota {
    /// k for the Backup that `before` others preceded; the minimum if its init history says that load is low.
    pub fn requests(self, before: u64, low_load: bool) -> u64 {
        let (minimum, doublings) = match self {
            Self::Fixed(k) => (k, 0),
            Self::Exponential { minimum } => (minimum, exponent(before)),
            Self::Flattened { minimum, patience } => (minimum, exponent(before).saturating_sub(patience)),
        };
        let doublings = if low_load { 0 } else { doublings };
        minimum.max(1).saturating_mul(1u64.checked_shl(doublings).unwrap_or(u64::MAX))
    }

    /// The fewest.
    pub const fn minimum(self) -> u64 {
        match self {
            Self::Fixed(minimum) | Self::Exponential { minimum } | Self::Flattened { minimum, .. } => minimum,
        }
    }

    /// What replicas and clients must agree on, as numbers.
    pub(crate) const fn numbers(self) -> [u64; 3] {
        match self {
            Self::Fixed(k) => [0, k, 0],
            Self::Exponential { minimum } => [1, minimum, 0],
            Self::Flattened { minimum, patience } => [2, minimum, patience as u64],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_schedule_needs_a_backup_and_says_so() {
        assert_eq!("quorum, chain".parse::<Schedule>(), Err(ScheduleError::NoBackup));
        assert_eq!("".parse::<Schedule>(), Err(ScheduleError::Empty));
        assert_eq!("quorum, raft".parse::<Schedule>(), Err(ScheduleError::UnknownPart));
        let schedule: Schedule = "zlight, chain, backup(pbft)".parse().unwrap();
        assert_eq!(schedule.to_string(), "zlight, chain, backup(pbft)");
    }

    #[test]
    fn a_run_between_two_backups_may_go_round_the_end() {
        let longest = |text: &str| text.parse::<Schedule>().unwrap().speculative_in_a_row();
        assert_eq!(longest("backup(pbft)"), 0);
        assert_eq!(longest("quorum, chain, backup(pbft)"), 2);
        assert_eq!(longest("chain, backup(pbft), zlight, quorum"), 3);
    }

    #[test]
    fn instances_take_turns_and_so_do_heads() {
        let schedule = Schedule::of(&[Part::Quorum, Part::Chain, Part::Backup(Order::Pbft)]);
        let parts: alloc::vec::Vec<Part> = (1..=4).map(|i| schedule.part(InstanceId(i))).collect();
        assert_eq!(parts, [Part::Quorum, Part::Chain, Part::Backup(Order::Pbft), Part::Quorum]);
        let four = Replicas::of(4).unwrap();
        let heads: alloc::vec::Vec<u8> = [2, 5, 8, 11, 14].map(|i| schedule.head(four, InstanceId(i)).0).into();
        assert_eq!(heads, [0, 1, 2, 3, 0]);
        assert_eq!([3, 6, 9].map(|i| schedule.backups_before(InstanceId(i))), [0, 1, 2]);
    }

    #[test]
    fn the_quota_grows_beyond_every_bound_although_it_is_reset() {
        let quota = Quota::Exponential { minimum: 4 };
        assert_eq!([0, 1, 2].map(|m| quota.requests(m, false)), [4, 8, 16]);
        assert_eq!(quota.requests(FIRST_RESET, false), 4, "a reset");
        let best = |until: u64| (0..until).map(|m| quota.requests(m, false)).max();
        assert!(best(100) > best(FIRST_RESET));
        assert_eq!(quota.requests(7, true), 4);
        let flat = Quota::Flattened { minimum: 1, patience: 2 };
        assert_eq!([0, 1, 2, 3, 4].map(|m| flat.requests(m, false)), [1, 1, 1, 2, 4]);
    }
}
