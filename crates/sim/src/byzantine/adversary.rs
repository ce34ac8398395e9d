//! The ways to lie, by name: who lies, what there must be to lie about, and how a seed comes by it.

use bezant_core::schedule::{Order, Part, Protocol};
use std::fmt;

/// Where there are primaries, views and certificates of checkpoints.
const PBFT: &[Part] = &[Part::Backup(Order::Pbft), Part::Backup(Order::Aardvark)];
/// Where views are watched.
const AARDVARK: &[Part] = &[Part::Backup(Order::Aardvark)];
/// Where statements are made about instances of many layers.
const RITAS: &[Part] = &[Part::Backup(Order::Ritas)];
/// Where requests go from one replica to the next before anybody answers.
const HOPS: &[Part] = &[Part::Chain, Part::RingFast];
/// Where one replica tells the others an order that they log at once.
const ORDERS: &[Part] = &[Part::ZLight, Part::RingFast, Part::RingResilient];
/// Where all replicas tell each other what they have logged, so that logs can be cut.
const ANCHORS: &[Part] = &[Part::Quorum, Part::ZLight, Part::Chain, Part::RingFast];
/// Where every replica is an entry and an exit.
const RINGS: &[Part] = &[Part::RingFast, Part::RingResilient];
/// Where batches travel around a ring, and the ring is left if it is slow.
const FAST_RING: &[Part] = &[Part::RingFast];

/// What there must be for somebody to lie about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Replicas and clients.
    Nothing,
    /// Instances that end, and others after them.
    Instances,
    /// One of these parts of a composition.
    OneOf(&'static [Part]),
    /// Clients that nobody has named.
    Strangers,
    /// Instances that are measured by their Backups.
    Robust,
}

impl Needs {
    /// Whether there is that in this composition. One server alone is taken for PBFT with a single replica.
    pub fn are_met_by(self, protocol: Protocol) -> bool {
        match self {
            Self::Nothing => true,
            Self::Instances => protocol.hands_on(),
            Self::OneOf(parts) if protocol == Protocol::Unreplicated => parts.contains(&Part::Backup(Order::Pbft)),
            Self::OneOf(parts) => protocol.schedule().parts().iter().any(|part| parts.contains(part)),
            Self::Strangers => protocol.lets_clients_join(),
            Self::Robust => protocol.is_robust(),
        }
    }
}

/// Who lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Replicas,
    Client,
    Both,
    Network,
}

/// Where a seed draws it. A seed means the same run only as long as it draws from as many: so those that were there
/// when seeds were first saved are drawn in wider classes of compositions than [`Needs`] says. Where one finds nothing
/// to lie about, its replicas are honest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drawn {
    /// Against all compositions.
    Everywhere,
    /// Against those of several instances.
    WithInstances,
    /// Against those with a ring among them.
    WithRings,
    /// In some runs with strangers.
    AmongStrangers,
    /// It came later: it takes the place of another in so many of ten thousand runs, wherever its needs are met.
    InsteadOf(u64),
}

macro_rules! adversaries {
    ($($(#[doc = $doc:literal])* $name:ident => $label:literal, $who:ident, $needs:expr, $drawn:expr;)*) => {
        /// A named behaviour of the Byzantine replicas and clients of a run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Adversary { $($(#[doc = $doc])* $name,)* }

        impl Adversary {
            /// Every behaviour.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name used by `--adversary`.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }

            /// What it does, in a sentence without a full stop.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),*).trim().trim_end_matches('.')),* }
            }

            /// What there must be for it to come into play.
            pub const fn needs(self) -> Needs {
                use Needs::*;
                match self { $(Self::$name => $needs),* }
            }

            const fn who(self) -> Who {
                match self { $(Self::$name => Who::$who),* }
            }

            const fn drawn(self) -> Drawn {
                use Drawn::*;
                match self { $(Self::$name => $drawn),* }
            }
        }
    };
}

// Who lies, what it needs, where it is drawn. A seed draws by the order: what is new comes last, as `InsteadOf`.
adversaries! {
    /// A primary that proposes different batches to different backups, and votes for each where it was proposed.
    Equivocate => "equivocate", Replicas, OneOf(PBFT), Everywhere;
    /// A replica that says nothing, or nothing of some kinds, or nothing to some.
    Silent => "silent", Replicas, Nothing, Everywhere;
    /// A primary that waits just less than the view time-out before each proposal.
    Slow => "slow", Replicas, Nothing, Everywhere;
    /// A client whose MACs convince some replicas only (pbft-F20), and that makes two requests with one timestamp.
    PartialMacs => "partial-macs", Client, Nothing, Everywhere;
    /// A replica that answers clients with results of its own.
    WrongReply => "wrong-reply", Replicas, Nothing, Everywhere;
    /// A replica that signs other checkpoints than it has.
    WrongCheckpoint => "wrong-checkpoint", Replicas, OneOf(PBFT), Everywhere;
    /// A replica that lies to those that fetch state from it.
    LyingSnapshot => "lying-snapshot", Replicas, Nothing, Everywhere;
    /// A client that gives a big request's body to a liar only, and a liar that orders it and keeps it (pbft-F22).
    WithholdBody => "withhold-body", Both, Nothing, Everywhere;
    /// A replica whose view changes claim what it never prepared, and hide what it did.
    ViewChangeLiar => "view-change-liar", Replicas, OneOf(PBFT), Everywhere;
    /// A replica that says everything again later, across views and restarts, also what others said.
    Replay => "replay", Replicas, Nothing, Everywhere;
    /// A replica that speaks of views, batches and requests far in the future.
    ReplicaFlood => "replica-flood", Replicas, Nothing, Everywhere;
    /// A primary that leaves f correct replicas out of every quorum and is mute to clients (pbft-F21).
    Exclude => "exclude", Replicas, Nothing, Everywhere;
    /// A primary whose clock is far off, or stands still, or goes back (prac-F27).
    SkewedTime => "skewed-time", Replicas, OneOf(PBFT), Everywhere;
    /// Two honest machines with one identity.
    Twins => "twins", Replicas, Nothing, Everywhere;
    /// Any part of any message changed, or replaced by another of its type, and authenticated again.
    Mutate => "mutate", Replicas, Nothing, Everywhere;
    /// The same digests for other encodings: in full or by reference, under other labels, with other proofs.
    Reword => "reword", Replicas, Nothing, Everywhere;
    /// A replica that sends bodies nobody asked for, and names in batches what nobody has.
    UnaskedBodies => "unasked-bodies", Replicas, Nothing, Everywhere;
    /// A client with very many sessions that ask, panic and speak of far instances.
    ManySessions => "many-sessions", Client, Nothing, Everywhere;
    /// A client whose requests differ in any field from receiver to receiver.
    OddClient => "odd-client", Client, Nothing, Everywhere;
    /// A network that delivers frames again, long after.
    Echo => "echo", Network, Nothing, Everywhere;
    /// A network that changes frames on their way: nobody has its keys.
    Tamper => "tamper", Network, Nothing, Everywhere;
    /// A replica whose abort reports differ from receiver to receiver, and claim what nobody had (abs-K6, abs-K20).
    AbortEquivocation => "abort-equivocation", Replicas, Instances, WithInstances;
    /// A replica that gives different replicas different proofs of how an instance ended, all of them valid.
    DifferentProofs => "different-proofs", Replicas, Instances, WithInstances;
    /// A place of a chain that forwards another history than it got (abs-K5, abs-S1).
    ChainSubstitute => "chain-substitute", Replicas, OneOf(HOPS), WithInstances;
    /// A replica that tells some of its lightweight checkpoints, and others of what they want to hear (abs-K7).
    SelectiveCheckpoint => "selective-checkpoint", Replicas, OneOf(ANCHORS), WithInstances;
    /// A primary of ZLight that tells two orders, and leaves gaps (abs-K17).
    SplitOrder => "split-order", Replicas, OneOf(ORDERS), WithInstances;
    /// A place of a chain that spoils the MACs that pass through it (abs-K18).
    SpoiltMacs => "spoilt-macs", Replicas, OneOf(HOPS), WithInstances;
    /// A replica whose speculative answers are wrong, or late (abs-K19).
    FalseTail => "false-tail", Replicas, Instances, WithInstances;
    /// A replica that says in one instance what was said in another (abs-K10, abs-K11).
    CrossInstance => "cross-instance", Replicas, Instances, WithInstances;
    /// A replica that proves what did not happen (abs-K21).
    BogusProof => "bogus-proof", Replicas, Instances, WithInstances;
    /// A replica that stops, or says so, without reason (abs-K23).
    LowLoadForgery => "low-load-forgery", Replicas, Instances, WithInstances;
    /// A client that panics whenever it speaks (abs-K14).
    PanicStorm => "panic-storm", Client, Instances, WithInstances;
    /// A client whose requests reach some replicas only, with odd MACs and two operations in one (abs-K2, abs-K12,
    /// abs-K16).
    LopsidedClient => "lopsided-client", Client, Instances, WithInstances;
    /// A replica on a ring that forges numbers, histories and MACs, or keeps silent as an exit (ring-A1, ring-A3,
    /// ring-A5, ring-A8).
    RingForger => "ring-forger", Replicas, OneOf(RINGS), WithRings;
    /// A place of a ring that takes its time, and says so or not (ring-A12).
    SlowHop => "slow-hop", Replicas, OneOf(FAST_RING), WithRings;
    /// A client that joins with cookies that are too few, forged or another's, and asks in the name of others
    /// (prac-F23).
    JoinFlood => "join-flood", Client, Strangers, AmongStrangers;
    /// A replica that proposes and passes on old JOINs, LEAVEs and requests of members again (prac-F25).
    MemberReplay => "member-replay", Replicas, Strangers, AmongStrangers;
    /// A client with another's key, that joins again and again (prac-F28).
    Takeover => "takeover", Client, Strangers, AmongStrangers;
    /// A primary that proposes references, and a client that gives requests to it only.
    References => "references", Both, OneOf(PBFT), InsteadOf(600);
    /// A primary that leaves its view as it proposes one thing to some and another to others.
    FicklePrimary => "fickle-primary", Replicas, OneOf(PBFT), InsteadOf(600);
    /// An entry of a ring that passes on requests of identities that nobody has named.
    NobodysRequests => "nobodys-requests", Replicas, OneOf(FAST_RING), InsteadOf(100);
    /// A client that panics in the name of more sessions than anybody remembers.
    SessionFlood => "session-flood", Client, Instances, InsteadOf(80);
    /// A replica that testifies to effects that it had not, and rules upon that.
    FalseTestimony => "false-testimony", Replicas, OneOf(PBFT), InsteadOf(600);
    /// A client that signs several requests together, and gives them wrong paths to their root.
    OddPaths => "odd-paths", Client, Nothing, InsteadOf(300);
    /// A replica that finds every view failed.
    Complainer => "complainer", Replicas, OneOf(AARDVARK), InsteadOf(600);
    /// A client that announces what it never asks for, and says of nothing that it was answered (abs-K22).
    FeedbackLies => "feedback-lies", Client, Robust, InsteadOf(600);
    /// A replica that takes a two-hundredth of a view's time-out longer for whatever comes, 10 ms as a rule (abs-K3).
    ProcessingDelay => "processing-delay", Replicas, Nothing, InsteadOf(200);
    /// A primary, head or entry that is slower and slower, until the others lose patience, and then half as slow.
    SlowByEpsilon => "slow-by-epsilon", Replicas, Nothing, InsteadOf(200);
    /// A replica that never hears some clients.
    Censor => "censor", Replicas, Nothing, InsteadOf(200);
    /// A client that asks in the name of very many sessions at once, and every request is good.
    ClientFlood => "client-flood", Client, Nothing, InsteadOf(100);
    /// A client that sends what is no message.
    Malformed => "malformed", Client, Nothing, InsteadOf(100);
    /// A replica that is there for some and not for others, calls anybody silent, and hears all whoever is missing.
    PresenceLies => "presence-lies", Replicas, Instances, InsteadOf(300);
    /// A replica whose statements in RITAS differ from receiver to receiver (ritas-A1, ritas-A4, ritas-A5).
    TwoFaced => "two-faced", Replicas, OneOf(RITAS), InsteadOf(1500);
    /// A replica whose statements in RITAS reach some and not others (ritas-A2, ritas-A3).
    LopsidedStatements => "lopsided-statements", Replicas, OneOf(RITAS), InsteadOf(1500);
    /// A replica that speaks in RITAS about what is not there, or not yet, or no more (ritas-A5, ritas-A7, ritas-A8).
    FarStatements => "far-statements", Replicas, OneOf(RITAS), InsteadOf(1000);
    /// A network that is slower than every timer, for good, and delays most whoever is ahead (ritas-A6).
    Asynchrony => "asynchrony", Network, OneOf(RITAS), InsteadOf(50);
    /// A replica that says numbers at an end of what there is, several in one message.
    ExtremeNumbers => "extreme-numbers", Replicas, Nothing, InsteadOf(200);
}

impl Adversary {
    /// Whether replicas lie.
    pub const fn corrupts_replicas(self) -> bool {
        matches!(self.who(), Who::Replicas | Who::Both)
    }

    /// Whether a client lies.
    pub const fn corrupts_clients(self) -> bool {
        matches!(self.who(), Who::Client | Who::Both)
    }

    /// Whether nothing lies but a client.
    pub const fn is_a_client(self) -> bool {
        matches!(self.who(), Who::Client)
    }

    /// Whether it makes sense only where clients may join.
    pub const fn needs_strangers(self) -> bool {
        matches!(self.needs(), Needs::Strangers)
    }

    /// Why nobody listens to its lies in a composition, as a sentence without a full stop; `None` if somebody does.
    pub fn is_idle_in(self, protocol: Protocol) -> Option<String> {
        let needed = match self.needs() {
            needs if needs.are_met_by(protocol) => return None,
            Needs::Nothing => return None,
            Needs::Instances => "instances that end, and others after them".to_owned(),
            Needs::OneOf(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                format!("one of these parts: {}", parts.join(", "))
            }
            Needs::Strangers => "clients that may join".to_owned(),
            Needs::Robust => "instances that are measured by robust Backups".to_owned(),
        };
        Some(format!("{self} needs {needed}, and {protocol} has none"))
    }

    /// All that come into play against a composition.
    pub fn against(protocol: Protocol) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|adversary| adversary.needs().are_met_by(protocol)).collect()
    }

    /// Those of which a seed draws one against a composition.
    pub(super) fn drawn_against(protocol: Protocol) -> Vec<Self> {
        let among = |adversary: &Self| match adversary.drawn() {
            Drawn::Everywhere => true,
            Drawn::WithInstances => Needs::Instances.are_met_by(protocol),
            Drawn::WithRings => Needs::OneOf(FAST_RING).are_met_by(protocol),
            Drawn::AmongStrangers | Drawn::InsteadOf(_) => false,
        };
        Self::ALL.iter().copied().filter(among).collect()
    }

    /// Those that came later and come into play against a composition, each with the runs of ten thousand that it has.
    pub(super) fn drawn_later(protocol: Protocol) -> impl Iterator<Item = (Self, u64)> {
        let of_ten_thousand = |adversary: Self| match adversary.drawn() {
            Drawn::InsteadOf(runs) => Some((adversary, runs)),
            _ => None,
        };
        Self::against(protocol).into_iter().filter_map(of_ten_thousand)
    }

    /// Those that are about strangers.
    pub(super) fn drawn_among_strangers() -> Vec<Self> {
        Self::ALL.iter().copied().filter(|adversary| adversary.drawn() == Drawn::AmongStrangers).collect()
    }
}

impl fmt::Display for Adversary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str) -> (usize, usize) {
        let protocol = name.parse().unwrap();
        (Adversary::drawn_against(protocol).len(), Adversary::drawn_later(protocol).count())
    }

    /// A seed draws by these numbers: whoever changes them changes what all seeds mean.
    #[test]
    fn a_seed_draws_from_as_many_as_ever() {
        assert_eq!(count("pbft"), (21, 10));
        assert_eq!(count("unreplicated"), (21, 10));
        for name in ["quorum", "zlight", "chain", "azyzzyva", "aliph"] {
            assert_eq!(count(name), (33, 12), "{name}");
        }
        assert_eq!(count("ring"), (35, 13));
        assert_eq!(count("quorum, ring-resilient"), (33, 9));
        let strangers = Adversary::drawn_among_strangers();
        assert_eq!(strangers, [Adversary::JoinFlood, Adversary::MemberReplay, Adversary::Takeover]);
    }

    #[test]
    fn nobody_is_sent_where_there_is_nothing_to_lie_about() {
        let meets = |adversary: Adversary, name: &str| Adversary::against(name.parse().unwrap()).contains(&adversary);
        assert!(meets(Adversary::ChainSubstitute, "aliph") && !meets(Adversary::ChainSubstitute, "quorum"));
        assert!(meets(Adversary::SplitOrder, "azyzzyva") && !meets(Adversary::SplitOrder, "chain"));
        assert!(meets(Adversary::Equivocate, "pbft") && !meets(Adversary::Equivocate, "quorum, ring-resilient"));
        assert!(meets(Adversary::JoinFlood, "pbft") && !meets(Adversary::JoinFlood, "ring"));
        assert!(meets(Adversary::SlowHop, "ring") && !meets(Adversary::SlowHop, "pbft"));
        assert!(!meets(Adversary::BogusProof, "pbft"));
    }
}
