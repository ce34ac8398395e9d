//! JOIN flood (prac-A19, prac-F23): JOINs with cookies of f replicas, of one replica twice, with other times, of other
//! nonces, and requests of members that name another session or another number than their own. All of it is signed with
//! the liar's own key, which it holds.

use super::ClientBehaviour;
use crate::rng::Rng;
use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, IdentityId, ReplicaId, Timestamp};
use bezant_core::joining::{Join, SessionId};
use bezant_core::message::Request;
use bezant_core::registry::Message;
use bezant_core::time::Duration;
use bezant_core::wire::Wire;

/// Lies for each request.
const LIES: u64 = 4;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct JoinFlood {
    /// An honest JOIN of its own, with cookies to play with.
    join: Option<Request>,
}

impl JoinFlood {
    /// The same JOIN, with cookies that should not convince.
    fn forged(&self, rng: &mut Rng, cluster: &Cluster, keyring: &Keyring) -> Option<Request> {
        let model = self.join.as_ref()?;
        let (mut join, mut credential) = (model.join()?, model.credential()?);
        match rng.below(6) {
            0 => drop(join.stamps.pop()),
            1 => join.stamps.truncate(1),
            2 => {
                let first = *join.stamps.first()?;
                join.stamps.iter_mut().for_each(|stamp| *stamp = first);
            }
            3 => {
                for (stamp, replica) in join.stamps.iter_mut().zip(cluster.replicas.iter()) {
                    stamp.replica = replica;
                    stamp.time += Duration(rng.below(1 << 40));
                }
            }
            4 => {
                for (stamp, replica) in join.stamps.iter_mut().zip(cluster.replicas.iter()) {
                    stamp.replica = replica;
                    stamp.signature = keyring.sign_bytes(6, &stamp.time.0.to_le_bytes());
                }
            }
            _ => {}
        }
        // Cookies are for one attempt: with another nonce they are nobody's.
        credential.session = SessionId(std::array::from_fn(|_| rng.below(256) as u8));
        let client = credential.joining();
        let timestamp = Timestamp(model.timestamp.0.saturating_add(rng.below(1 << 30)));
        let operation = Join { ..join }.to_bytes().into();
        let request = Request::of_stranger(model.instance, client, credential, timestamp, false, operation);
        Some(request.authenticate(cluster, keyring))
    }

    /// A request of this member in the name of another number, session or client.
    fn spoofed(rng: &mut Rng, cluster: &Cluster, keyring: &Keyring, request: &Request) -> Option<Request> {
        let mut credential = request.credential()?;
        let mut client = request.client;
        match rng.below(3) {
            0 => client.identity = IdentityId(IdentityId::MEMBERS.0 + rng.below(8) as u32),
            1 => credential.session = SessionId(std::array::from_fn(|_| rng.below(256) as u8)),
            _ => client = ClientId { session: rng.below(2) as u32, ..credential.joining() },
        }
        let Request { instance, timestamp, operation, .. } = request.clone();
        let request = Request::of_stranger(instance, client, credential, timestamp, rng.coin(), operation);
        Some(request.authenticate(cluster, keyring))
    }
}

impl ClientBehaviour for JoinFlood {
    fn request(
        &mut self,
        _rng: &mut Rng,
        _cluster: &Cluster,
        _keyring: &Keyring,
        _to: ReplicaId,
        request: &Request,
    ) -> Option<Request> {
        if request.client.identity.is_joining() {
            self.join = Some(request.clone());
        }
        Some(request.clone())
    }

    fn also(
        &mut self,
        rng: &mut Rng,
        cluster: &Cluster,
        keyring: &Keyring,
        request: &Request,
    ) -> Vec<(ReplicaId, Message)> {
        let mut lies = Vec::new();
        for _ in 0..LIES {
            let lie = match rng.coin() {
                true => self.forged(rng, cluster, keyring),
                false => Self::spoofed(rng, cluster, keyring, request),
            };
            let Some(lie) = lie else { continue };
            lies.extend(cluster.replicas.iter().map(|to| (to, Message::Request(lie.clone()))));
        }
        lies
    }
}
