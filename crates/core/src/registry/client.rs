//! The client's halves of all protocols, and what they remember from one request to the next.

use super::message::Message;
use crate::auth::Keyring;
use crate::cluster::Cluster;
use crate::ids::{ReplicaId, Timestamp};
use crate::protocols::backup::client::{BackupClient, First, turn};
use crate::protocols::chain::client::{self as chain, ChainClient};
use crate::protocols::quorum::client::QuorumClient;
use crate::protocols::ring_fast::client::{self as ring_fast, RingFastClient};
use crate::protocols::ring_fast::{Delay, Fairness, PaceMessage, Path, RingPace};
use crate::protocols::ring_resilient::client::RingResilientClient;
use crate::protocols::speculative::{Asking, ClientHalf, PassedOver, Settled, designated};
use crate::protocols::zlight::client::ZLightClient;
use crate::replicas::Replicas;
use crate::schedule::{Order, Part};
use crate::time::Duration;

/// The half of a part; of a single server, that of a Backup.
pub(crate) fn half_of(part: Part) -> &'static dyn ClientHalf {
    match part {
        Part::Quorum => &QuorumClient,
        Part::ZLight => &ZLightClient,
        Part::Chain => &ChainClient,
        Part::RingFast => &RingFastClient,
        Part::RingResilient => &RingResilientClient,
        Part::Backup(Order::Aardvark) => &BackupClient { first: First::All },
        Part::Backup(Order::Ritas) => &BackupClient { first: First::Turn },
        Part::Backup(Order::Pbft) | Part::Unreplicated => &BackupClient { first: First::Primary },
        #[cfg(test)]
        Part::Sample => &crate::protocols::sample::SampleClient,
    }
}

/// Which request a protocol's own answer settles, and how; `None` if it is none of the part that is asked, or does not
/// convince.
pub(crate) fn settled(
    part: Part,
    at: &Asking,
    keyring: &Keyring,
    waits_for: Timestamp,
    message: Message,
) -> Option<Settled> {
    let asked = (at.client, at.instance, waits_for);
    match (part, message) {
        (Part::Chain, Message::ChainReply(reply)) if (reply.client, reply.instance, reply.timestamp) == asked => {
            chain::settles(at, keyring, reply)
        }
        (Part::RingFast, Message::RingReply(reply)) if (reply.client, reply.instance, reply.timestamp) == asked => {
            ring_fast::settles(at, keyring, reply)
        }
        _ => None,
    }
}

/// What a client remembers for the protocols that it asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientMemory {
    ring: Fairness,
    /// Whose turn it is to send a result in full, and who was late with the last ones (Client 12).
    whole: PassedOver,
    /// Whose turn it is to be asked first where there is no primary, and who did not see to the last requests in time
    /// (Client 4).
    turns: PassedOver,
}

impl ClientMemory {
    /// What is true between steps.
    pub(crate) fn check_invariants(&self, cluster: &Cluster) {
        self.ring.check_invariants(cluster);
        self.whole.check_invariants(cluster);
        self.turns.check_invariants(cluster);
    }

    /// A protocol's bound for how long to wait, if it has one.
    pub(crate) fn patience(&self, part: Part, replicas: Replicas) -> Option<Duration> {
        self.ring.patience(replicas).filter(|_| part == Part::RingFast)
    }

    /// The next timestamp by which nobody is asked who is passed over: as an entry of a ring, as the first one, or for
    /// a result in full. If each is one of somebody who is, rather the result comes late than the request.
    pub(crate) fn fair_timestamp(&mut self, part: Part, at: &Asking, first: Timestamp) -> Timestamp {
        self.whole.begin();
        self.turns.begin();
        let candidates = || (0..at.replicas.n() as u64).map(|later| Timestamp(first.0 + later));
        let passes_over = |timestamp: &Timestamp| {
            let whole = self.whole.contains(designated(at.replicas, at.client, *timestamp));
            match part {
                Part::RingFast => (self.ring.passes_over(entry(at, *timestamp)), false),
                Part::Backup(Order::Ritas) => (self.turns.contains(turn(at, *timestamp)), whole),
                _ => (false, whole),
            }
        };
        // Nearly always the first one will do.
        let nobodys = candidates().find(|timestamp| passes_over(timestamp) == (false, false));
        nobodys.or_else(|| candidates().min_by_key(passes_over)).unwrap_or(first)
    }

    /// A result came in full from whose turn that was, or is asked of all now, because it came too late (Client 12).
    pub(crate) fn end_whole(&mut self, at: &Asking, timestamp: Timestamp, in_time: bool) {
        self.whole.end(at.replicas, designated(at.replicas, at.client, timestamp), in_time);
    }

    /// Another request begins. What everybody is asked besides, now and then.
    pub(crate) fn begin(&mut self, part: Part, at: &Asking) -> Option<Message> {
        let asks = part == Part::RingFast && self.ring.begin();
        let question = RingPace { instance: at.instance, message: PaceMessage::Ask(at.client) };
        asks.then_some(Message::RingPace(question))
    }

    /// What a replica says besides answers.
    pub(crate) fn hear(&mut self, at: &Asking, from: ReplicaId, message: &Message) {
        if let Message::RingPace(RingPace { instance, message: PaceMessage::Delay(delay) }) = message {
            let Delay { client, microseconds } = *delay;
            if (*instance, client) == (at.instance, at.client) {
                self.ring.note_delay(from, Duration(microseconds));
            }
        }
    }

    /// A request is done, and whether in time, if that is known.
    pub(crate) fn end(&mut self, part: Part, at: &Asking, timestamp: Timestamp, in_time: Option<bool>) {
        if let (Part::RingFast, Some(in_time)) = (part, in_time) {
            self.ring.end(at.replicas, entry(at, timestamp), in_time);
        }
    }

    /// Whoever alone was asked first has seen to a request in time, or has not (Client 4).
    pub(crate) fn end_turn(&mut self, part: Part, at: &Asking, timestamp: Timestamp, in_time: bool) {
        if part == Part::Backup(Order::Ritas) {
            self.turns.end(at.replicas, turn(at, timestamp), in_time);
        }
    }
}

/// The entry of a ring that is asked first.
fn entry(at: &Asking, timestamp: Timestamp) -> ReplicaId {
    Path::entry_for(at.replicas, at.client, timestamp, 0)
}
