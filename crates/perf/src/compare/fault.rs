//! What may be wrong for a while, and whose fault it is.

use bezant_core::schedule::Protocol;

/// What is wrong for a while: with a replica, its links, or a client beside those that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The last replica's process stands still, and then goes on.
    Stop,
    /// It is killed, and started again.
    Kill,
    /// Its links carry nothing.
    Cut,
    /// Its links have half of their rate.
    Slow,
    /// A client sends good requests and panics at each at once.
    Panics,
    /// A client sends requests whose MACs hold for some replicas and not for others, and panics.
    PartialMacs,
    /// A client floods all replicas with requests of 9 kB.
    ClientFlood,
    /// A client sends frames that are no messages.
    Malformed,
    /// The first replica, which is primary and head, takes longer for whatever comes.
    ProcessingDelay,
    /// The first replica serves some clients and never hears others.
    Censor,
    /// The last replica floods the others.
    ReplicaFlood,
    /// A client panics whenever it speaks.
    PanicStorm,
    /// The first replica is slower and slower, until the others lose patience.
    SlowByEpsilon,
    /// The first replica proposes different batches to different replicas.
    Equivocate,
    /// A client gives the bodies of big requests to the first replica only, which keeps them back.
    WithholdBody,
    /// A client joins with cookies that prove nothing.
    JoinFlood,
    /// A client announces what it never asks for.
    FeedbackLies,
    /// The last replica stops instances without reason.
    LowLoadForgery,
}

/// Whose fault something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// The last replica's machine or links, and nobody lies.
    Machine,
    /// A client beside those that are measured.
    Client,
    /// The first replica: the first primary, head and sequencer.
    First,
    /// The last replica.
    Last,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 18] = [
        Self::Stop,
        Self::Kill,
        Self::Cut,
        Self::Slow,
        Self::Panics,
        Self::PartialMacs,
        Self::ClientFlood,
        Self::Malformed,
        Self::ProcessingDelay,
        Self::Censor,
        Self::ReplicaFlood,
        Self::PanicStorm,
        Self::SlowByEpsilon,
        Self::Equivocate,
        Self::WithholdBody,
        Self::JoinFlood,
        Self::FeedbackLies,
        Self::LowLoadForgery,
    ];

    /// As the command line has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Kill => "kill",
            Self::Cut => "cut",
            Self::Slow => "slow",
            Self::Panics => "panics",
            Self::PartialMacs => "partial-macs",
            Self::ClientFlood => "client-flood",
            Self::Malformed => "malformed",
            Self::ProcessingDelay => "processing-delay",
            Self::Censor => "censor",
            Self::ReplicaFlood => "replica-flood",
            Self::PanicStorm => "panic-storm",
            Self::SlowByEpsilon => "slow-by-epsilon",
            Self::Equivocate => "equivocate",
            Self::WithholdBody => "withhold-body",
            Self::JoinFlood => "join-flood",
            Self::FeedbackLies => "feedback-lies",
            Self::LowLoadForgery => "low-load-forgery",
        }
    }

    /// What happens, as a sentence.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Stop => "the last replica stands still",
            Self::Kill => "the last replica is killed, and started again",
            Self::Cut => "the last replica's links carry nothing",
            Self::Slow => "the last replica's links have half of their rate",
            Self::Panics => "a client panics all the time",
            Self::PartialMacs => "a client's MACs hold for some replicas only, and it panics all the time",
            Self::ClientFlood => "a client floods all replicas with requests of 9 kB",
            Self::Malformed => "a client sends frames that are no messages",
            Self::ProcessingDelay => "replica 0 takes 10 ms longer for whatever comes",
            Self::Censor => "replica 0 never hears some clients",
            Self::ReplicaFlood => "the last replica floods the others",
            Self::PanicStorm => "a client panics whenever it speaks",
            Self::SlowByEpsilon => "replica 0 is slower and slower, until the others lose patience",
            Self::Equivocate => "replica 0 proposes different batches to different replicas",
            Self::WithholdBody => "a client gives the bodies of big requests to replica 0 only, which keeps them back",
            Self::JoinFlood => "a client joins with cookies that prove nothing",
            Self::FeedbackLies => "a client announces what it never asks for",
            Self::LowLoadForgery => "the last replica stops instances without reason",
        }
    }

    /// Whether there is something for it to spoil: a primary's proposals, or joining, where there is but one order.
    pub const fn concerns(self, protocol: Protocol) -> bool {
        match self {
            Self::Equivocate | Self::JoinFlood => protocol.is_one_order(),
            _ => true,
        }
    }

    /// Whose fault it is.
    pub const fn culprit(self) -> Culprit {
        match self {
            Self::Stop | Self::Kill | Self::Cut | Self::Slow => Culprit::Machine,
            Self::Panics | Self::PartialMacs | Self::ClientFlood | Self::Malformed => Culprit::Client,
            Self::PanicStorm | Self::WithholdBody | Self::JoinFlood | Self::FeedbackLies => Culprit::Client,
            Self::ProcessingDelay | Self::Censor | Self::SlowByEpsilon | Self::Equivocate => Culprit::First,
            Self::ReplicaFlood | Self::LowLoadForgery => Culprit::Last,
        }
    }
}
