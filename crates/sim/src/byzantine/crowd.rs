//! What a lying client says besides in a calm run, unasked and again and again: two requests of one session that cross,
//! the one signed and handed on by replicas that need not be asked, the other where that one arrives. To PBFT it also
//! says, with these, requests in the names of many sessions, more than are served at once, old and new, with proofs
//! that do not hold for everybody.

use super::forge::{in_the_name_of, with_spoilt_mac};
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, ReplicaId, Timestamp};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::schedule::Protocol;

/// Requests in a run: a flood may last, a run must end.
const REQUESTS_MAX: u64 = 160;

/// A signed request is a client's third attempt on a ring: as many numbers later, one that is not signed has its entry.
const SIGNED_ATTEMPT: u64 = 2;

/// See the [module](self).
#[derive(Debug)]
pub struct Crowd {
    rng: Rng,
    left: u64,
    /// Most requests at a time.
    burst: u64,
    /// How many of these groups there are in a time-out of a view.
    groups: u64,
    sessions: u64,
    /// Requests with a MAC that is bad, per mille.
    spoilt: u64,
    /// Requests that go to everybody, per mille.
    to_all: u64,
}

impl Crowd {
    /// Draws how busy it is.
    pub fn new(mut rng: Rng, protocol: Protocol) -> Self {
        let (burst, spoilt) = (*rng.pick(&[4, 8, 16]), *rng.pick(&[0, 500, 1_000]));
        let floods = protocol.is_one_order();
        Self {
            left: REQUESTS_MAX,
            burst: if floods { burst } else { 1 },
            groups: *rng.pick(&[2, 6, 20]),
            sessions: *rng.pick(&[2, 8, 40, 1 << 20]),
            spoilt: if floods { spoilt } else { 0 },
            to_all: *rng.pick(&[0, 500, 1_000]),
            rng,
        }
    }

    /// Microseconds until it speaks again; `None` if it has said everything.
    pub fn pause(&self, cluster: &Cluster) -> Option<u64> {
        (self.left > 0).then(|| cluster.limits.view_timeout.0 / self.groups)
    }

    /// A group of requests, at this time of the client, for the operation of an honest request of its own.
    pub fn speak(&mut self, now: u64, cluster: &Cluster, keyring: &Keyring, of: &Request) -> Vec<(ReplicaId, Message)> {
        let n = cluster.replicas.n() as u64;
        let session = self.rng.below(self.sessions);
        let age = if self.rng.coin() { 0 } else { self.rng.below(cluster.limits.view_timeout.0) };
        let number = now.saturating_sub(age);
        let request = |session: u64, number: u64| {
            let client = ClientId { session: session as u32, ..of.client };
            in_the_name_of(of, of.instance, client, Timestamp(number), (cluster, keyring))
        };
        let mut said = Vec::new();
        let others = self.rng.below(self.burst).min(self.left.saturating_sub(2));
        self.left -= (others + 2).min(self.left);
        let entry = ReplicaId(((session + number + SIGNED_ATTEMPT) % n) as u8);
        // Those of other sessions have the same entry; the last one is of this session.
        for other in (0..=others).rev() {
            let newer = request(session + n * other, number + SIGNED_ATTEMPT);
            // The last of those that look at a MAC finds that it cannot be its client's.
            let last = newer.authentication.tags.iter().count().saturating_sub(1);
            let newer = if self.rng.per_mille(self.spoilt) { with_spoilt_mac(newer, last) } else { newer };
            let to_all = self.rng.per_mille(self.to_all);
            let heard = cluster.replicas.iter().filter(|to| to_all || *to == entry);
            said.extend(heard.map(|to| (to, Message::Request(newer.clone()))));
        }
        let signed = request(session, number).sign(keyring);
        let some = self.rng.next();
        let heard = cluster.replicas.iter().filter(|to| *to != entry && some >> to.0 & 1 == 1);
        said.extend(heard.map(|to| (to, Message::Request(signed.clone()))));
        said
    }
}
