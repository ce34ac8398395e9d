//! One identity with very many sessions, as a gateway has, or a liar: they ask, panic, and want to know how fast a ring
//! is, with small numbers and with the largest, of this instance, of the next and of some that will never be.

use super::ClientBehaviour;
use super::forge::{in_the_name_of, with_spoilt_mac};
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, InstanceId, ReplicaId, Timestamp};
use bezant_core::message::Request;
use bezant_core::protocols::ring_fast::{PaceMessage, RingPace};
use bezant_core::registry::Message;
use bezant_core::switching::{Panic, Switch, SwitchMessage};

/// Messages in a run: a flood may last, a run must end.
const MESSAGES_MAX: u64 = 10_000;

#[derive(Debug)]
pub(super) struct ManySessions {
    sessions: u64,
    burst: u64,
    /// Which kinds of messages, as bits.
    kinds: u64,
    /// Requests with a MAC that is bad, per mille.
    spoilt: u64,
    left: u64,
    next: u64,
}

impl ManySessions {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let sessions = *rng.pick(&[3, 12, 40, 400, 1 << 32]);
        let spoilt = *rng.pick(&[0, 100, 900]);
        Self {
            spoilt,
            sessions,
            burst: *rng.pick(&[2, 10, 60, 250]),
            kinds: rng.between(1, 15),
            left: MESSAGES_MAX,
            next: 0,
        }
    }

    fn message(&self, rng: &mut Rng, cluster: &Cluster, keyring: &Keyring, of: &Request, kind: u64) -> Message {
        let session = (self.next % self.sessions) as u32;
        let client = ClientId { session, ..of.client };
        let ahead = *rng.pick(&[0, 0, 0, 0, 1, 2, u64::MAX]);
        let instance = InstanceId(of.instance.0.saturating_add(ahead));
        let (small, large) = (3 + rng.below(40), u64::MAX - rng.below(3));
        let number = *rng.pick(&[1, 2, small, of.timestamp.0, of.timestamp.0 + 1, large]);
        let timestamp = Timestamp(number);
        match kind {
            0 | 1 => {
                // The liars' keys are its own: what it writes there is nobody's business.
                let mut request = in_the_name_of(of, instance, client, timestamp, (cluster, keyring));
                if rng.per_mille(self.spoilt) {
                    // One replica on the way finds that it cannot be its client's.
                    let macs = request.authentication.tags.iter().count().max(1) as u64;
                    request = with_spoilt_mac(request, rng.below(macs) as usize);
                }
                Message::Request(if kind == 0 { request } else { request.sign(keyring) })
            }
            2 => Message::Switch(Switch { instance, message: SwitchMessage::Panic(Panic { client, timestamp }) }),
            _ => Message::RingPace(RingPace { instance, message: PaceMessage::Ask(client) }),
        }
    }
}

impl ClientBehaviour for ManySessions {
    fn also(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        request: &Request,
    ) -> Vec<(ReplicaId, Message)> {
        let mut said = Vec::new();
        for _ in 0..self.burst {
            self.next += 1;
            let kind = rng.below(4);
            if self.kinds >> kind & 1 == 0 || self.left < cluster.replicas.n() as u64 {
                continue;
            }
            let message = self.message(rng, cluster, keyring, request, kind);
            let some = if rng.per_mille(100) { rng.next() } else { u64::MAX };
            let heard = cluster.replicas.iter().filter(|to| some >> to.0 & 1 == 1);
            said.extend(heard.map(|to| (to, message.clone())));
            self.left -= cluster.replicas.n() as u64;
        }
        said
    }
}
