//! What a run may have at all: each seed decides which, and the shrinker takes them away.

use std::fmt;
use std::str::FromStr;

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident => $label:literal),* $(,)?) => {
        /// What a run may have and the shrinker may take away.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Feature { $($(#[$doc])* $name,)* }

        impl Feature {
            /// Every feature, in the order in which the shrinker tries to do without it.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name used by `--without`.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }
        }
    };
}

features! {
    /// All replicas lose power at once.
    PowerCut => "power-cut",
    /// A replica comes back without its disk.
    LostDisk => "lost-disk",
    /// Replicas crash and restart.
    Crashes => "crashes",
    /// Links are cut for a while.
    Partitions => "partitions",
    /// Frames get lost.
    Loss => "loss",
    /// Frames arrive twice.
    Duplication => "duplication",
    /// Frames overtake one another.
    Reordering => "reordering",
    /// Links carry a bounded number of bytes a second.
    Rate => "rate",
    /// Clocks are off and drift.
    Clocks => "clocks",
    /// A sync of the disk takes as long as a few messages.
    SlowDisk => "slow-disk",
    /// A replica handles several inputs before it is told that the pass is over.
    Passes => "passes",
    /// Operations above `inline_bytes_max`.
    BigRequests => "big-requests",
    /// Read-only queries.
    Reads => "reads",
    /// Client calls with deadlines.
    Deadlines => "deadlines",
    /// In the second phase, correct replicas beyond n−f stay dead.
    Outsiders => "outsiders",
    /// A durable record of a replica becomes unreadable: its log is refused, and it comes back as one that lost it.
    Rot => "rot",
    /// A sync fails: the replica stops speaking and restarts from what is durable.
    FailedSyncs => "failed-syncs",
    /// A disk is put back to an earlier copy of itself, as a whole. Its replica counts as Byzantine.
    OldDisk => "old-disk",
    /// Clients that nobody has named join and leave.
    DynamicClients => "dynamic-clients",
    /// Bounds of a few: see [`crate::size`].
    SmallLimits => "small-limits",
    /// A long spell without a network.
    Blackouts => "blackouts",
    /// Short cuts around one replica, one after the other.
    Unrest => "unrest",
    /// A fault at the moment when replicas answer.
    Ambushes => "ambushes",
    /// A client that does nothing but read the same again and again.
    Watchers => "watchers",
    /// Everybody hears others, as something is logged and as instances end: see [`crate::schedule::draw_ambushes`].
    Partings => "partings",
    /// Replicas execute some requests otherwise, each in its own way.
    Dissent => "dissent",
    /// Keys that do not live for ever.
    Expiry => "expiry",
    /// A client closes the cluster in the second phase.
    Closing => "closing",
    /// Clients ask for several operations at once.
    Bundles => "bundles",
    /// What clients of one identity ask for at about the same time they sign together.
    SharedSignatures => "shared-signatures",
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl FromStr for Feature {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|feature| feature.label() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|feature| feature.label()).collect();
            format!("no feature is called {name:?}; known: {}", known.join(", "))
        })
    }
}
