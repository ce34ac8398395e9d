//! Liars. One file a behaviour: each wraps an honest machine with its own keys and changes, withholds or adds what it
//! says. A behaviour sees all that its replica receives and may sign with its replica's keys, never with others'.

mod abort_equivocation;
mod anatomy;
mod bogus_proof;
mod chain_substitute;
mod cross_instance;
mod crowd;
mod different_proofs;
mod echo;
mod equivocate;
mod exclude;
mod false_stop;
mod false_tail;
mod false_testimony;
mod fickle_primary;
mod flood;
mod forge;
mod join_flood;
mod liar;
mod lopsided_client;
mod lying_transfer;
mod many_sessions;
mod member_replay;
mod mind;
mod mutate;
mod nobodys_requests;
mod odd_client;
mod panic_storm;
mod partial_macs;
mod references;
mod replay;
mod ring_forger;
mod selective_checkpoint;
mod session_flood;
mod silent;
mod skewed_time;
mod slow;
mod slow_hop;
mod split_order;
mod spoilt_macs;
mod takeover;
mod tamper;
mod twins;
mod unasked_bodies;
mod view_change_liar;
mod withheld_body;
mod wrong_checkpoint;
mod wrong_reply;

pub use anatomy::{Anatomy, Shape, Span};
pub use crowd::Crowd;
pub use echo::Echo;
pub use forge::{Forge, signed};
pub use liar::{Liar, liar};
pub use mind::{Acts, Cast, ClientMind, Mind, add_acts};
pub use tamper::Tamper;
pub use twins::Sides;

use crate::rng::Rng;
use crate::size::Size;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::message::{Outcome, Request};
use bezant_core::registry::{Incoming, Message};
use bezant_core::schedule::{Part, Protocol};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

macro_rules! adversaries {
    ($($(#[$doc:meta])* $name:ident => $label:literal),* $(,)?) => {
        /// A named behaviour of the Byzantine replicas and clients of a run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Adversary { $($(#[$doc])* $name,)* }

        impl Adversary {
            /// Every behaviour.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name used by `--adversary`.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }
        }
    };
}

adversaries! {
    /// A primary that proposes different batches to different backups, and votes for each where it was proposed.
    Equivocate => "equivocate",
    /// A replica that says nothing, or nothing of some kinds, or nothing to some.
    Silent => "silent",
    /// A primary that waits just less than the view time-out before each proposal.
    Slow => "slow",
    /// A client whose MACs convince some replicas only (pbft-F20), and that makes two requests with one timestamp.
    PartialMacs => "partial-macs",
    /// A replica that answers clients with results of its own.
    WrongReply => "wrong-reply",
    /// A replica that signs other checkpoints than it has.
    WrongCheckpoint => "wrong-checkpoint",
    /// A replica that lies to those that fetch state from it.
    LyingTransfer => "lying-transfer",
    /// A client that gives a big request's body to a liar only, and a liar that orders it and keeps it (pbft-F22).
    WithheldBody => "withheld-body",
    /// A replica whose view changes claim what it never prepared, and hide what it did.
    ViewChangeLiar => "view-change-liar",
    /// A replica that says everything again later, across views and restarts, also what others said.
    Replay => "replay",
    /// A replica that speaks of views, batches and requests far in the future.
    Flood => "flood",
    /// A primary that leaves f correct replicas out of every quorum and is mute to clients (pbft-F21).
    Exclude => "exclude",
    /// A primary whose clock is far off, or stands still, or goes back (prac-F27).
    SkewedTime => "skewed-time",
    /// Two honest machines with one identity.
    Twins => "twins",
    /// Any part of any message changed, or replaced by another of its type, and authenticated again.
    Mutate => "mutate",
    /// The same digests for other encodings: in full or by reference, under other labels, with other proofs.
    Reword => "reword",
    /// A replica that sends bodies nobody asked for, and names in batches what nobody has.
    UnaskedBodies => "unasked-bodies",
    /// A client with very many sessions that ask, panic and speak of far instances.
    ManySessions => "many-sessions",
    /// A client whose requests differ in any field from receiver to receiver.
    OddClient => "odd-client",
    /// A network that delivers frames again, long after.
    Echo => "echo",
    /// A network that changes frames on their way: nobody has its keys.
    Tamper => "tamper",
    /// A replica whose abort reports differ from receiver to receiver, and claim what nobody had (abs-K6, abs-K20).
    AbortEquivocation => "abort-equivocation",
    /// A replica that gives different replicas different proofs of how an instance ended, all of them valid.
    DifferentProofs => "different-proofs",
    /// A place of a chain that forwards another history than it got (abs-K5, abs-S1).
    ChainSubstitute => "chain-substitute",
    /// A replica that tells some of its lightweight checkpoints, and others of what they want to hear (abs-K7).
    SelectiveCheckpoint => "selective-checkpoint",
    /// A primary of ZLight that tells two orders, and leaves gaps (abs-K17).
    SplitOrder => "split-order",
    /// A place of a chain that spoils the MACs that pass through it (abs-K18).
    SpoiltMacs => "spoilt-macs",
    /// A replica whose speculative answers are wrong, or late (abs-K19).
    FalseTail => "false-tail",
    /// A replica that says in one instance what was said in another (abs-K10, abs-K11).
    CrossInstance => "cross-instance",
    /// A replica that proves what did not happen (abs-K21).
    BogusProof => "bogus-proof",
    /// A replica that stops, or says so, without reason (abs-K23).
    FalseStop => "false-stop",
    /// A client that panics whenever it speaks (abs-K14).
    PanicStorm => "panic-storm",
    /// A client whose requests reach some replicas only, with odd MACs and two operations in one (abs-K2, abs-K12,
    /// abs-K16).
    LopsidedClient => "lopsided-client",
    /// A replica on a ring that forges numbers, histories and MACs, or keeps silent as an exit (ring-A1, ring-A3,
    /// ring-A5, ring-A8).
    RingForger => "ring-forger",
    /// A place of a ring that takes its time, and says so or not (ring-A12).
    SlowHop => "slow-hop",
    /// A client that joins with cookies that are too few, forged or another's, and asks in the name of others
    /// (prac-F23).
    JoinFlood => "join-flood",
    /// A replica that proposes and passes on old JOINs, LEAVEs and requests of members again (prac-F25).
    MemberReplay => "member-replay",
    /// A client with another's key, that joins again and again (prac-F28).
    Takeover => "takeover",
    /// A primary that proposes references, and a client that gives requests to it only.
    References => "references",
    /// A primary that leaves its view as it proposes one thing to some and another to others.
    FicklePrimary => "fickle-primary",
    /// An entry of a ring that passes on requests of identities that nobody has named.
    NobodysRequests => "nobodys-requests",
    /// A client that panics in the name of more sessions than anybody remembers.
    SessionFlood => "session-flood",
    /// A replica that testifies to effects that it had not, and rules upon that.
    FalseTestimony => "false-testimony",
}

/// Those that came after the first runs were saved, and in how many of ten thousand runs each takes the place of
/// another. A flood is long: few runs have one.
const LATER: &[(Adversary, u64)] = &[
    (Adversary::References, 600),
    (Adversary::FicklePrimary, 600),
    (Adversary::NobodysRequests, 100),
    (Adversary::SessionFlood, 80),
    (Adversary::FalseTestimony, 600),
];

impl Adversary {
    /// Whether replicas lie.
    pub const fn corrupts_replicas(self) -> bool {
        !matches!(
            self,
            Self::PartialMacs
                | Self::Tamper
                | Self::Echo
                | Self::ManySessions
                | Self::OddClient
                | Self::PanicStorm
                | Self::LopsidedClient
                | Self::JoinFlood
                | Self::Takeover
                | Self::SessionFlood
        )
    }

    /// Whether nothing lies but a client.
    pub const fn is_a_client(self) -> bool {
        self.corrupts_clients() && !self.corrupts_replicas()
    }

    /// Those that make sense against a protocol: a single instance cannot be lied to about others, and only a ring has
    /// positions.
    pub fn against(protocol: Protocol) -> &'static [Self] {
        let of_one = Self::ALL.iter().take_while(|adversary| **adversary != Self::AbortEquivocation).count();
        let of_rings = Self::ALL.iter().take_while(|adversary| !adversary.needs_strangers()).count();
        match protocol.schedule() {
            None => &Self::ALL[..of_one],
            Some(schedule) if schedule.parts().contains(&Part::RingFast) => &Self::ALL[..of_rings],
            Some(_) => &Self::ALL[..of_rings - 2],
        }
    }

    /// Those that came later and make sense against a protocol, each with the runs of ten thousand that it has.
    fn later(protocol: Protocol) -> impl Iterator<Item = (Self, u64)> {
        let schedule = protocol.schedule();
        let has_backup = schedule.as_ref().is_none_or(|schedule| schedule.parts().contains(&Part::Backup));
        let has_ring = schedule.as_ref().is_some_and(|schedule| schedule.parts().contains(&Part::RingFast));
        let may_end = schedule.is_some();
        LATER.iter().copied().filter(move |(adversary, _)| match adversary {
            Self::References | Self::FicklePrimary | Self::FalseTestimony => has_backup,
            Self::NobodysRequests => has_ring,
            _ => may_end,
        })
    }

    /// All that a run against a protocol may have.
    pub fn all_against(protocol: Protocol) -> Vec<Self> {
        Self::against(protocol).iter().copied().chain(Self::later(protocol).map(|(adversary, _)| adversary)).collect()
    }

    /// Whether it makes sense only where clients may join.
    pub const fn needs_strangers(self) -> bool {
        matches!(self, Self::JoinFlood | Self::MemberReplay | Self::Takeover)
    }

    /// Whether a client lies.
    pub const fn corrupts_clients(self) -> bool {
        matches!(
            self,
            Self::PartialMacs
                | Self::WithheldBody
                | Self::ManySessions
                | Self::OddClient
                | Self::PanicStorm
                | Self::LopsidedClient
                | Self::JoinFlood
                | Self::Takeover
                | Self::References
                | Self::SessionFlood
        )
    }
}

impl fmt::Display for Adversary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Which adversary a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Everybody is honest; machines and links still fail.
    Nobody,
    /// This one.
    Only(Adversary),
    /// One drawn from the seed, or nobody.
    #[default]
    All,
}

impl Choice {
    /// The adversary of a seed.
    pub fn resolve(self, seed: u64, size: Size, protocol: Protocol, strangers: bool, parts: bool) -> Option<Adversary> {
        if self == Self::All && size != Size::First {
            let mut drawn = Rng::stream(seed, "later adversary").below(10_000);
            for (adversary, runs) in Adversary::later(protocol) {
                if drawn < runs {
                    return Some(adversary);
                }
                drawn -= runs;
            }
        }
        // In half of the runs with strangers it is about them.
        let mut rng = Rng::stream(seed, "adversary of strangers");
        if self == Self::All && strangers && rng.coin() {
            return Some(*rng.pick(&[Adversary::JoinFlood, Adversary::MemberReplay, Adversary::Takeover]));
        }
        // In half of the runs in which replicas are to part, somebody sees to it.
        let mut rng = Rng::stream(seed, "adversary of partings");
        if self == Self::All && parts && protocol.schedule().is_some() && rng.coin() {
            return Some(*rng.pick(&[Adversary::DifferentProofs, Adversary::AbortEquivocation]));
        }
        match self {
            Self::Nobody => None,
            Self::Only(adversary) => Some(adversary),
            Self::All => {
                let fitting = Adversary::against(protocol);
                let drawn = Rng::stream(seed, "adversary").below(fitting.len() as u64 + 1);
                fitting.get(drawn as usize).copied()
            }
        }
    }

    /// The adversary of a seed whose run is calm: a client, or nobody. Very many sessions that ask and panic at once
    /// can stop a ring, whose entry works off what they asked first: nobody promises that they do not.
    pub fn resolve_calm(self, seed: u64, size: Size, protocol: Protocol, strangers: bool) -> Option<Adversary> {
        if self != Self::All {
            return self.resolve(seed, size, protocol, strangers, false).filter(|adversary| adversary.is_a_client());
        }
        let fitting = Adversary::against(protocol).iter().copied().filter(|adversary| adversary.is_a_client());
        let stops_rings = |who: &Adversary| *who == Adversary::ManySessions && protocol != Protocol::Pbft;
        let fitting: Vec<Adversary> = fitting.filter(|who| !stops_rings(who)).collect();
        let drawn = Rng::stream(seed, "adversary of a calm run").below(fitting.len() as u64 + 1);
        fitting.get(drawn as usize).copied()
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("none"),
            Self::Only(adversary) => adversary.fmt(f),
            Self::All => f.write_str("all"),
        }
    }
}

impl FromStr for Choice {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self::Nobody),
            "all" => Ok(Self::All),
            _ => Adversary::ALL.iter().copied().find(|a| a.label() == name).map(Self::Only).ok_or_else(|| {
                let known: Vec<_> = Adversary::ALL.iter().map(|a| a.label()).collect();
                format!("no adversary is called {name:?}; known: all, none, {}", known.join(", "))
            }),
        }
    }
}

/// A Byzantine replica's mind. By default it is honest.
pub trait Behaviour: fmt::Debug {
    /// Its honest machine asks to say this to one receiver.
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        liar.say(to, message);
    }

    /// Its honest machine is about to receive this. `false` keeps it away.
    fn receive(&mut self, _liar: &mut Liar<'_>, _incoming: &Incoming) -> bool {
        true
    }

    /// Time went by.
    fn tick(&mut self, _liar: &mut Liar<'_>) {}
}

/// A Byzantine client's mind: what it sends to each replica in place of an honest request.
pub trait ClientBehaviour: fmt::Debug {
    /// The request for one replica, or nothing; the honest one unless a behaviour knows better.
    fn request(
        &mut self,
        _rng: &mut Rng,
        _cluster: &Cluster,
        _keyring: &Keyring,
        _to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        Some(request.clone())
    }

    /// What it says besides, whenever it sends a request.
    fn also(
        &mut self,
        _rng: &mut Rng,
        _cluster: &Cluster,
        _keyring: &Keyring,
        _request: &Request,
    ) -> Vec<(ReplicaId, Message)> {
        Vec::new()
    }
}

/// The mind of a lying replica; `None` where the honest machine does it (twins).
pub fn behaviour(adversary: Adversary, rng: &mut Rng) -> Option<Box<dyn Behaviour>> {
    Some(match adversary {
        Adversary::Equivocate => Box::new(equivocate::Equivocate::new(rng)),
        Adversary::Silent => Box::new(silent::Silent::new(rng)),
        Adversary::Slow => Box::new(slow::Slow::new(rng)),
        Adversary::WrongReply => Box::new(wrong_reply::WrongReply::new(rng)),
        Adversary::WrongCheckpoint => Box::new(wrong_checkpoint::WrongCheckpoint),
        Adversary::LyingTransfer => Box::new(lying_transfer::LyingTransfer),
        Adversary::WithheldBody => Box::new(withheld_body::WithheldBody),
        Adversary::ViewChangeLiar => Box::new(view_change_liar::ViewChangeLiar::new(rng)),
        Adversary::Replay => Box::new(replay::Replay::default()),
        Adversary::Flood => Box::new(flood::Flood),
        Adversary::Exclude => Box::new(exclude::Exclude::default()),
        Adversary::SkewedTime => Box::new(skewed_time::SkewedTime::new(rng)),
        Adversary::Mutate => Box::new(mutate::Mutate::new(rng)),
        Adversary::Reword => Box::new(mutate::Mutate::rewording(rng)),
        Adversary::UnaskedBodies => Box::new(unasked_bodies::UnaskedBodies::new(rng)),
        Adversary::DifferentProofs => Box::new(different_proofs::DifferentProofs::new(rng)),
        Adversary::AbortEquivocation => Box::new(abort_equivocation::AbortEquivocation::new(rng)),
        Adversary::ChainSubstitute => Box::new(chain_substitute::ChainSubstitute::new(rng)),
        Adversary::SelectiveCheckpoint => Box::new(selective_checkpoint::SelectiveCheckpoint::new(rng)),
        Adversary::SplitOrder => Box::new(split_order::SplitOrder::new(rng)),
        Adversary::SpoiltMacs => Box::new(spoilt_macs::SpoiltMacs::new(rng)),
        Adversary::FalseTail => Box::new(false_tail::FalseTail::new(rng)),
        Adversary::CrossInstance => Box::new(cross_instance::CrossInstance::default()),
        Adversary::BogusProof => Box::new(bogus_proof::BogusProof::default()),
        Adversary::FalseStop => Box::new(false_stop::FalseStop::new(rng)),
        Adversary::RingForger => Box::new(ring_forger::RingForger::new(rng)),
        Adversary::SlowHop => Box::new(slow_hop::SlowHop::new(rng)),
        Adversary::MemberReplay => Box::new(member_replay::MemberReplay::default()),
        Adversary::References => Box::new(references::References::new(rng)),
        Adversary::FicklePrimary => Box::new(fickle_primary::FicklePrimary::new(rng)),
        Adversary::NobodysRequests => Box::new(nobodys_requests::NobodysRequests::new(rng)),
        Adversary::FalseTestimony => Box::new(false_testimony::FalseTestimony::default()),
        Adversary::Twins
        | Adversary::PartialMacs
        | Adversary::Tamper
        | Adversary::Echo
        | Adversary::ManySessions
        | Adversary::OddClient
        | Adversary::PanicStorm
        | Adversary::LopsidedClient
        | Adversary::JoinFlood
        | Adversary::Takeover
        | Adversary::SessionFlood => return None,
    })
}

/// The mind of a lying client.
pub fn client_behaviour(
    adversary: Adversary,
    rng: &mut Rng,
    liars: &BTreeSet<ReplicaId>,
) -> Option<Box<dyn ClientBehaviour>> {
    match adversary {
        Adversary::PartialMacs => Some(Box::new(partial_macs::PartialMacs::new(rng))),
        Adversary::WithheldBody => Some(Box::new(withheld_body::ToLiarsOnly::new(liars))),
        Adversary::ManySessions => Some(Box::new(many_sessions::ManySessions::new(rng))),
        Adversary::OddClient => Some(Box::new(odd_client::OddClient::new(rng))),
        Adversary::PanicStorm => Some(Box::new(panic_storm::PanicStorm)),
        Adversary::LopsidedClient => Some(Box::new(lopsided_client::LopsidedClient::new(rng))),
        Adversary::JoinFlood => Some(Box::new(join_flood::JoinFlood::default())),
        Adversary::Takeover => Some(Box::new(takeover::Takeover)),
        Adversary::References => Some(Box::new(references::ForReferences::new(rng, liars))),
        Adversary::SessionFlood => Some(Box::new(session_flood::SessionFlood::new(rng))),
        _ => None,
    }
}

/// Another result of a request, with the effects that it had: whatever else differs, a lie must not be told by those.
fn with_result(outcome: &Outcome, result: Bytes) -> Outcome {
    match outcome {
        Outcome::Done { effects, .. } => Outcome::Done { result, effects: *effects },
        Outcome::DoneDigest(_) | Outcome::Refused(_) => Outcome::read(result),
    }
}
