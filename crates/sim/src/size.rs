//! How big a run is, and how small its bounds are.
//!
//! Nine of ten runs are short: few calls, a first phase of a few time-outs, every other fault. What a rule is about
//! happens within a dozen calls or needs many runs anyway, and each costs a fourth. One in ten is as long as all once
//! were.
//!
//! No run lives on waiting. What members wait for (a place that comes free, cookies that grow old) takes a few
//! time-outs of a view; by the defaults it took twenty seconds, in which nothing happened but STATUS.
//!
//! *Small limits* put every bound that an operator may set to a few: sessions of an identity, entries between
//! checkpoints, batches in a window, requests and bytes that wait, bytes of an operation, of a batch and of the log.
//! Then tables are full, sessions evicted, floors raised, logs cut and reports as long as they may be within a few
//! dozen calls. `--json` says in how many runs that was so.

use crate::disk::DiskProfile;
use crate::feature::Feature;
use crate::network::Profile;
use crate::rng::Rng;
use crate::schedule::Fault;
use crate::store::ServiceKind;
use crate::workload::Plan;
use bezant_core::cluster::Limits;
use bezant_core::schedule::{Part, Protocol};
use bezant_core::time::Duration;
use clap::ValueEnum;
use std::fmt;

/// How big a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// A few calls, a few time-outs, a few faults.
    Short,
    /// As many calls and as long a first phase as at first.
    Long,
    /// As runs were drawn before there were sizes, waits, small limits and calm ones included: what saved seeds mean
    First,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "short",
            Self::Long => "long",
            Self::First => "first",
        })
    }
}

/// One run in so many is long, if none is asked for.
const LONG: u64 = 10;
/// How much shorter the others are.
const SHORTER: u64 = 5;
/// One run in so many is calm where that says something: where the check `needless` looks, at the parts of a ring.
const CALM: u64 = 8;

/// What a calm run does without.
const NOISE: &[Feature] = &[
    Feature::Dissent,
    Feature::PowerCut,
    Feature::LostDisk,
    Feature::Crashes,
    Feature::Partitions,
    Feature::Loss,
    Feature::Reordering,
    Feature::Rate,
    Feature::Clocks,
    Feature::Outsiders,
    Feature::Rot,
    Feature::FailedSyncs,
    Feature::OldDisk,
    Feature::Blackouts,
    Feature::Unrest,
    Feature::Ambushes,
    Feature::Partings,
    // A client with many sessions can keep pools of a few places full: nobody promises that this stops no ring.
    Feature::SmallLimits,
];

impl Feature {
    /// Whether a calm run does without it.
    pub fn is_noise(self) -> bool {
        NOISE.contains(&self)
    }

    /// Whether it came after the first runs were saved.
    pub const fn is_later(self) -> bool {
        matches!(
            self,
            Self::SmallLimits
                | Self::Blackouts
                | Self::Unrest
                | Self::Ambushes
                | Self::Watchers
                | Self::Partings
                | Self::Dissent
                | Self::Expiry
                | Self::Closing
                | Self::Bundles
                | Self::SharedSignatures
        )
    }
}

impl Size {
    /// The size of a seed.
    pub fn of(seed: u64) -> Self {
        if Rng::stream(seed, "size").below(LONG) == 0 { Self::Long } else { Self::Short }
    }

    /// Whether the run is to be one in which nothing but clients may be wrong.
    pub fn is_calm(self, seed: u64, protocol: Protocol) -> bool {
        let rings = [Part::RingFast, Part::RingResilient];
        let has_ring = protocol.schedule().parts().iter().any(|part| rings.contains(part));
        let is_watched = protocol.is_one_order() || protocol.is_robust();
        self != Self::First && (has_ring || is_watched) && Rng::stream(seed, "calm").below(CALM) == 0
    }

    /// The length of the first phase, in time-outs of a view, of one that was drawn.
    pub const fn spans(self, drawn: u64) -> u64 {
        match self {
            Self::Short => drawn / SHORTER,
            Self::Long | Self::First => drawn,
        }
    }

    /// The faults of one that was drawn: half of those that come in numbers. Who loses a disk may soon lose it again.
    #[must_use]
    pub fn faults(self, seed: u64, patience: u64, mut faults: Vec<(u64, Fault)>) -> Vec<(u64, Fault)> {
        let mut rng = Rng::stream(seed, "fewer faults");
        if self == Self::Short {
            faults.retain(|(_, fault)| !fault.is_one_of_many() || rng.coin());
        }
        let mut rng = Rng::stream(seed, "lost again");
        if self != Self::First && rng.coin() {
            let lost = faults.iter().filter(|(_, fault)| fault.loses_a_disk());
            let again: Vec<_> =
                lost.map(|(at, fault)| (at + patience * rng.between(1, 8) / 2, fault.clone())).collect();
            faults.extend(again);
        }
        faults
    }

    /// A workload to match. Clients think as long as before.
    #[must_use]
    pub fn plan(self, plan: Plan) -> Plan {
        match self {
            Self::Long | Self::First => plan,
            Self::Short => Plan {
                clients: plan.clients.min(3),
                identities: plan.identities.min(3),
                keys: plan.keys.min(3),
                requests: plan.requests.div_ceil(SHORTER),
                more: plan.more.div_ceil(SHORTER),
                strangers: plan.strangers.min(2),
                ..plan
            },
        }
    }

    /// Clocks that members wait for only a little. The difference between two clocks fits into `clock_skew_max`.
    #[must_use]
    pub const fn clocks(self, limits: Limits) -> Limits {
        match self {
            Self::First => limits,
            Self::Short | Self::Long => Limits { clock_skew_max: Duration(100_000 + limits.view_timeout.0), ..limits },
        }
    }

    /// Times of members, as short as those of everybody else.
    #[must_use]
    pub fn members(self, seed: u64, limits: Limits) -> Limits {
        if self == Self::First {
            return limits;
        }
        let mut rng = Rng::stream(seed, "short waits");
        let patience = limits.view_timeout.0;
        Limits {
            session_stale_after: Duration(patience * rng.between(1, 4)),
            takeover_interval: Duration(limits.clock_skew_max.0 + limits.client_retry.0 * rng.between(0, 4)),
            ..limits
        }
    }
}

/// See the [module](self). Each bound is small in half of these runs. The service's operations fit.
#[must_use]
pub fn small_limits(seed: u64, service: ServiceKind, limits: Limits) -> Limits {
    let mut rng = Rng::stream(seed, "small limits");
    let mut pick = |low, high, or: u64| {
        let drawn = rng.between(low, high);
        if rng.coin() { drawn } else { or }
    };
    let operation_bytes_max = match service {
        ServiceKind::Kv => pick(1, 64, 4_096) as usize + 2 * (limits.inline_bytes_max + VALUE_BYTES),
        ServiceKind::Sql | ServiceKind::Own(_) => limits.operation_bytes_max,
    };
    Limits {
        checkpoint_interval: pick(1, 3, limits.checkpoint_interval),
        history_interval: pick(1, 3, limits.history_interval),
        sessions_per_identity_max: pick(1, 3, limits.sessions_per_identity_max as u64) as usize,
        pending_requests_max: pick(IDENTITIES, IDENTITIES + 4, limits.pending_requests_max as u64) as usize,
        pending_bytes_max: IDENTITIES as usize * operation_bytes_max + pick(0, 512, 1 << 20) as usize,
        pending_reads_max: pick(1, 3, limits.pending_reads_max as u64) as usize,
        batch_bytes_max: pick(1, 256, limits.batch_bytes_max as u64) as usize,
        log_bytes_per_snapshot: pick(1, 600, limits.log_bytes_per_snapshot),
        operation_bytes_max,
        ..limits
    }
}

/// A place in the pools for each identity that asks, those of liars and strangers among them, and for the longest
/// operation. Where there are fewer places than identities, whoever came first keeps theirs under a silent primary, and
/// nobody watches what was sent once.
const IDENTITIES: u64 = 8;

/// What a value of the workload takes beyond `inline_bytes_max`, at most: padding, and the number before it. An
/// operation has no more than two, the expected and the new one.
const VALUE_BYTES: usize = 240;

/// Bounds of a calm run. Clients are patient.
///
/// Of PBFT: what may wait at once can be ordered in a fraction of a time-out of a view, so that whoever fills a pool is
/// no reason to suspect a primary. A batch is only a part of what may wait, so that there is always something that can
/// give way. Only a client with very many sessions has one evicted.
#[must_use]
pub fn calm_limits(
    (seed, protocol): (u64, Protocol),
    (n, f): (usize, usize),
    network: &Profile,
    disk: &DiskProfile,
    pass: u64,
    limits: Limits,
) -> Limits {
    let client_retry = patient_clients(n, f, network, disk, pass, limits.client_retry.0);
    let limits = Limits { client_retry, ..limits };
    if !protocol.is_one_order() {
        return limits;
    }
    let mut rng = Rng::stream(seed, "calm limits");
    Limits {
        sessions_per_identity_max: rng.between(5, 10) as usize,
        pending_requests_max: rng.between(12, 14) as usize,
        batch_requests_max: 4,
        batches_in_flight_max: 1,
        view_timeout: Duration(2 * limits.view_timeout.0),
        view_timeout_max: Duration(2 * limits.view_timeout_max.0),
        ..limits
    }
}

/// The time after which clients repeat themselves in a calm run: 4n + f hops take no longer than twice that.
fn patient_clients(n: usize, f: usize, network: &Profile, disk: &DiskProfile, pass: u64, drawn: u64) -> Duration {
    let hop = network.delay_min + network.jitter + disk.sync_max + pass;
    Duration(drawn.max(((4 * n + f) as u64 * hop).div_ceil(2)))
}
