//! A client's request at the door: which MACs it carries, by the part that is asked, and who may send it.

use super::client::half_of;
use crate::auth::Keyring;
use crate::cluster::{ClientAuth, Cluster};
use crate::ids::{ClientId, InstanceId, Principal, ReplicaId, View};
use crate::joining::{CONTROL_SESSION, MEMBER_SESSIONS_MAX};
use crate::message::{Request, Vouched};
use crate::protocols::speculative::Asking;
use crate::rejection::Rejection;
use crate::schedule::Part;
use crate::spoken::{Cover, Spoken};
use alloc::vec::Vec;

impl Spoken for Request {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    /// Anyone may pass it on: its client's proof is inside.
    fn cover(&self) -> Cover {
        Cover::Inside
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn admit(&mut self, from: Principal, cluster: &Cluster, keyring: &Keyring) -> Result<(), Rejection> {
        verify_request(self, from, cluster, keyring)
    }
}

impl Request {
    /// The replicas that a client's MACs are for, in their order.
    fn receivers(&self, cluster: &Cluster) -> Vec<ReplicaId> {
        let Self { instance, client, timestamp, .. } = *self;
        let what = cluster.specification(instance);
        let at = Asking { replicas: what.replicas, client, instance, head: what.head, view: View(0) };
        half_of(what.part).receivers(&at, timestamp)
    }

    /// Adds the client's proof as the cluster's mode and the instance ask for it. Instances that may abort at any
    /// time never have to convince a third party: MACs are all that they need.
    #[must_use]
    pub fn authenticate(self, cluster: &Cluster, keyring: &Keyring) -> Self {
        let request = self.authenticate_unsigned(cluster, keyring);
        if request.lacks_signature(cluster) { request.sign(keyring) } else { request }
    }

    /// The same without the signature, for whoever signs several together.
    #[must_use]
    pub fn authenticate_unsigned(mut self, cluster: &Cluster, keyring: &Keyring) -> Self {
        if self.credential().is_some() {
            return self;
        }
        if cluster.part(self.instance).is_resilient() {
            let has_tags = cluster.client_auth != ClientAuth::Signature;
            return if has_tags { self.authenticate_for_all(cluster, keyring) } else { self };
        }
        let (statement, receivers) = (self.statement(), self.receivers(cluster).into_iter());
        self.authentication.tags = receivers.map(|id| keyring.tag(Principal::Replica(id), &statement)).collect();
        self
    }

    /// Whether the cluster's mode and the instance ask for a signature that it does not bear yet.
    pub fn lacks_signature(&self, cluster: &Cluster) -> bool {
        let is_signed = match cluster.client_auth {
            _ if self.credential().is_some() => true,
            _ if !cluster.part(self.instance).is_resilient() => false,
            ClientAuth::Signature => true,
            // Read-only requests are never ordered: nobody needs to convince a third party of them.
            ClientAuth::Hybrid => !self.read_only,
            ClientAuth::Mac => false,
        };
        is_signed && self.authentication.signature.is_none()
    }

    /// Where this replica's MAC stands, in an instance that may abort at any time: among those for all, or for the
    /// receivers alone.
    fn place_of(&self, cluster: &Cluster, me: ReplicaId) -> Option<usize> {
        if self.authentication.tags.iter().len() == cluster.replicas.n() {
            return Some(me.0.into());
        }
        self.receivers(cluster).iter().position(|id| *id == me)
    }
}

/// Finds out whether a request is its client's, by what the instance that it asks goes by.
fn vouch_in_its_instance(request: &mut Request, cluster: &Cluster, keyring: &Keyring) -> Result<(), Rejection> {
    match (cluster.part(request.instance), keyring.me()) {
        (part, Principal::Replica(me)) if !part.is_resilient() => {
            let place = request.place_of(cluster, me);
            let is_vouched = place.is_some_and(|place| request.vouch_by_mac_at(keyring, place));
            // Who panics in a ring signs, whatever the mode.
            let counts = cluster.client_auth != ClientAuth::Mac || part == Part::RingFast;
            if !is_vouched && counts && request.authentication.signature.is_some() {
                Request::vouch_signatures(core::iter::once(&mut *request), cluster, keyring);
            }
        }
        _ => request.vouch(cluster, keyring),
    }
    if request.vouched == Vouched::No { Err(Rejection::UnauthenticRequest) } else { Ok(()) }
}

/// A client may send its own requests only; a replica may pass on anybody's.
fn verify_request(
    request: &mut Request,
    from: Principal,
    cluster: &Cluster,
    keyring: &Keyring,
) -> Result<(), Rejection> {
    let own = match from {
        Principal::Client(client) => client.identity == request.client.identity,
        Principal::Key(key) => request.credential().is_some_and(|credential| credential.key == key),
        Principal::Replica(_) => true,
    };
    if !own {
        return Err(Rejection::WrongSender);
    }
    if request.is_system() {
        // Checked when it is ordered and when it is executed; a replica sends it once.
        return match from {
            Principal::Replica(_) if request.vouch_by_mac(cluster, keyring) => Ok(()),
            _ => Err(Rejection::UnauthenticRequest),
        };
    }
    if request.operation.len() > cluster.limits.operation_bytes_max {
        return Err(Rejection::TooLarge);
    }
    // A batch of such requests would be longer than it may be.
    if request.authentication.tags.iter().len() > cluster.replicas.n() {
        return Err(Rejection::UnauthenticRequest);
    }
    if request.credential().is_some() {
        return verify_strangers(request, from, cluster, keyring);
    }
    if !keyring.keys().identities.contains_key(&request.client.identity) {
        return Err(Rejection::UnknownIdentity);
    }
    let speculative = !cluster.part(request.instance).is_resilient();
    if !speculative && cluster.client_auth == ClientAuth::Signature && matches!(from, Principal::Client(_)) {
        // The link is the client's own: enough to let it wait. The signature is checked before it is ordered, together
        // with those of the other requests in its batch.
        request.vouched = Vouched::Mac;
    }
    vouch_in_its_instance(request, cluster, keyring)
}

/// A client that the cluster file does not name. A member's request that comes over its own link may wait: the look-up
/// of the key comes before the work for its signature, which is checked before the request is ordered. A JOIN must be
/// all right at once: one that never could be ordered would wait in the place of others.
fn verify_strangers(
    request: &mut Request,
    from: Principal,
    cluster: &Cluster,
    keyring: &Keyring,
) -> Result<(), Rejection> {
    if !cluster.dynamic_clients {
        return Err(Rejection::UnknownIdentity);
    }
    let (client, is_joining) = (request.client, request.client.identity.is_joining());
    if !is_joining && client.session != CONTROL_SESSION && client.session >= MEMBER_SESSIONS_MAX as u32 {
        return Err(Rejection::WrongSender);
    }
    if is_joining && request.credential().map(|credential| credential.joining()) != Some(request.client) {
        return Err(Rejection::WrongSender);
    }
    if from.is_client() && !request.read_only && !is_joining {
        request.vouched = Vouched::Mac;
        return Ok(());
    }
    vouch_in_its_instance(request, cluster, keyring)
}
