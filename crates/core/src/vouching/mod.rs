//! How a replica comes to believe that a request is its client's, or the system's own ([`system`]).

mod system;

pub(crate) use system::ruling_after;

use crate::auth::{Keyring, Signature};
use crate::batch::Batch;
use crate::cluster::{ClientAuth, Cluster};
use crate::digest::Digest;
use crate::ids::{ClientId, Principal};
use crate::message::{REQUESTS_ROOT_KIND, Request, Vouched};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

impl Request {
    /// Checks the MAC at this place among those that the client made. Whether the request is vouched for now.
    pub(crate) fn vouch_by_mac_at(&mut self, keyring: &Keyring, place: usize) -> bool {
        if self.vouched == Vouched::No
            && let Some(tag) = self.authentication.tags.get(place)
            && self.is_from_client(keyring, &tag)
        {
            self.vouched = Vouched::Mac;
        }
        self.vouched != Vouched::No
    }

    /// Checks this replica's MAC among those for all, in the modes that have them; a request of the system itself, by
    /// what it carries. Whether the request is vouched for now.
    pub fn vouch_by_mac(&mut self, cluster: &Cluster, keyring: &Keyring) -> bool {
        if self.is_system() {
            return self.vouch_for_system(cluster, keyring);
        }
        match keyring.me() {
            Principal::Replica(me) if cluster.client_auth != ClientAuth::Signature => {
                self.vouch_by_mac_at(keyring, me.0.into())
            }
            _ => self.vouched != Vouched::No,
        }
    }

    /// Finds out whether the request is its client's, in the cheapest way: by MAC, or (where there is one) by
    /// signature, whatever the mode. The outcome is in [`Request::vouched`].
    pub fn vouch(&mut self, cluster: &Cluster, keyring: &Keyring) {
        let is_signed = self.authentication.signature.is_some();
        if !self.vouch_by_mac(cluster, keyring) && is_signed && !self.is_system() {
            Self::vouch_signatures(core::iter::once(self), cluster, keyring);
        }
    }

    /// Whether a request whose signature holds is all that it should be: a JOIN is backed by f+1 replicas (step
    /// Members 2 of [`crate::members`]).
    fn is_backed(&self, cluster: &Cluster, keyring: &Keyring) -> bool {
        let Some(credential) = self.credential().filter(|_| self.client.identity.is_joining()) else { return true };
        credential.joining() == self.client
            && self.join().is_some_and(|join| join.is_backed(cluster, keyring, &credential))
    }

    /// Checks the signatures of many requests at once, for those that are not vouched for by signature yet. A root that
    /// several of them share is checked once, and if it holds not again for a while.
    pub fn vouch_signatures<'a>(requests: impl Iterator<Item = &'a mut Self>, cluster: &Cluster, keyring: &Keyring) {
        let mut roots: BTreeMap<(Principal, Digest, Signature), usize> = BTreeMap::new();
        let mut open: Vec<(&mut Self, usize)> = Vec::new();
        for request in requests.filter(|request| request.vouched != Vouched::Signature) {
            let Some(signed) = &request.authentication.signature else { continue };
            // All sessions of an identity sign with its key.
            let signer = match request.signer() {
                Principal::Client(client) => Principal::Client(ClientId { session: 0, ..client }),
                signer => signer,
            };
            let root = (signer, signed.root(request.leaf()), signed.signature);
            let next = roots.len();
            let place = *roots.entry(root).or_insert(next);
            open.push((request, place));
        }
        let mut distinct: Vec<_> = roots.iter().collect();
        distinct.sort_unstable_by_key(|(_, place)| **place);
        let items: Vec<_> =
            distinct.iter().map(|((signer, root, signature), _)| (*signer, root.0.as_slice(), *signature)).collect();
        let valid = keyring.check_shared(REQUESTS_ROOT_KIND, &items);
        for (request, place) in open {
            if valid[place] && request.is_backed(cluster, keyring) {
                request.vouched = Vouched::Signature;
            }
        }
    }
}

impl Batch {
    /// Checks which inline requests are their clients': by this replica's MAC entries, and whatever they leave open
    /// by signature, all at once.
    pub fn vouch(&mut self, cluster: &Cluster, keyring: &Keyring) {
        let open = self.inline_mut().filter_map(|request| (!request.vouch_by_mac(cluster, keyring)).then_some(request));
        let open: Vec<&mut Request> = open.collect();
        if !open.is_empty() {
            Request::vouch_signatures(open.into_iter(), cluster, keyring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::TreeSignature;
    use crate::cluster::Limits;
    use crate::ids::{IdentityId, Timestamp};
    use crate::joining::{Credential, SessionId};
    use crate::testing::net::{INSTANCE, c, cluster, keyring, r};
    use crate::wire::Wire;
    use bytes::Bytes;

    struct Given {
        cluster: Cluster,
        client: Keyring,
        replica: Keyring,
    }

    fn given() -> Given {
        let cluster = cluster(4, ClientAuth::Signature, Limits::default());
        let (client, replica) = (keyring(&cluster, c(0)), keyring(&cluster, r(0)));
        Given { cluster, client, replica }
    }

    fn request(session: u32) -> Request {
        let Principal::Client(client) = c(session) else { unreachable!() };
        Request::new(INSTANCE, client, Timestamp(1), false, Bytes::from_static(b"x"))
    }

    impl Given {
        /// What so many sessions ask for in one pass.
        fn pass(&self, sessions: u32) -> Vec<Request> {
            let mut requests: Vec<Request> = (0..sessions).map(request).collect();
            Request::sign_all(requests.iter_mut(), &self.client);
            requests
        }

        /// Who is believed of these, and how many signatures that takes.
        fn believed(&self, requests: &mut [Request]) -> (Vec<bool>, u64) {
            let before = self.replica.counters().signatures_checked.get();
            Request::vouch_signatures(requests.iter_mut(), &self.cluster, &self.replica);
            let believed = requests.iter().map(|request| request.vouched == Vouched::Signature).collect();
            (believed, self.replica.counters().signatures_checked.get() - before)
        }
    }

    #[test]
    fn what_one_pass_signed_together_is_checked_together() {
        for (sessions, signatures) in [(1, 1), (2, 1), (64, 1), (100, 2), (256, 4)] {
            let given = given();
            let mut requests = given.pass(sessions);
            assert_eq!(given.believed(&mut requests), (alloc::vec![true; sessions as usize], signatures));
            assert_eq!(given.believed(&mut requests).1, 0, "nothing is left to be checked");
        }
    }

    /// Each goes its own way: it is ordered, passed on and judged without the others. But a signature is as good as
    /// before.
    #[test]
    fn each_request_of_a_pass_convinces_alone() {
        let given = given();
        for (number, request) in given.pass(5).into_iter().enumerate() {
            let copy = || Request::from_bytes(request.to_bytes().into()).unwrap();
            assert_eq!(given.believed(&mut [copy()]), (alloc::vec![true], u64::from(number == 0)));
            let mut other = copy();
            other.authentication.signature.as_mut().unwrap().signature.0[5] ^= 1;
            assert_eq!(
                given.believed(&mut [other]),
                (alloc::vec![false], 1),
                "what does not hold is checked each time"
            );
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_costs_nobody_else_anything() {
        let given = given();
        let mut requests = given.pass(5);
        requests[1].authentication.signature = requests[2].authentication.signature.clone();
        requests[3].authentication.signature.as_mut().unwrap().path[0].0[0] ^= 1;
        for _ in 0..2 {
            let (believed, _) = given.believed(&mut requests);
            assert_eq!(believed, [true, false, true, false, true], "however often it is said");
        }
    }

    /// The root of others is no root of a request that is not below it, wherever it stands among them.
    #[test]
    fn a_root_is_lent_to_no_request_that_is_not_below_it() {
        let given = given();
        for place in 0..3 {
            let mut requests = given.pass(3);
            let proof = requests[place].authentication.clone();
            requests[place] = request(7);
            requests[place].authentication = proof;
            let (believed, _) = given.believed(&mut requests);
            assert_eq!(believed, [0, 1, 2].map(|it| it != place));
        }
    }

    #[test]
    fn a_root_that_is_known_does_not_excuse_another_signature() {
        let given = given();
        let mut requests = given.pass(3);
        requests[1].authentication.signature.as_mut().unwrap().signature.0[5] ^= 1;
        assert_eq!(given.believed(&mut requests).0, [true, false, true]);
    }

    /// A client may put what it likes below a root: its signature speaks for itself.
    #[test]
    fn nobody_signs_for_another() {
        let given = given();
        let credential = Credential { key: given.replica.keys().replicas[2], session: SessionId::default() };
        let client = ClientId { identity: IdentityId::MEMBERS, session: 0 };
        let operation = Bytes::from_static(b"x");
        let theirs = Request::of_stranger(INSTANCE, client, credential, Timestamp(1), false, operation);
        let mut requests = [request(0), theirs, request(1)];
        Request::sign_all(requests.iter_mut(), &given.client);
        assert_eq!(given.believed(&mut requests).0, [true, false, true]);
    }

    #[test]
    fn a_request_without_a_signature_costs_nothing() {
        let given = given();
        let mut requests = given.pass(2);
        requests[0].authentication.signature = None;
        assert_eq!(given.believed(&mut requests), (alloc::vec![false, true], 1));
    }

    #[test]
    fn a_client_that_signs_for_itself_has_no_path() {
        let given = given();
        let request = request(0).authenticate(&given.cluster, &given.client);
        let TreeSignature { sides, path, .. } = request.authentication.signature.unwrap();
        assert_eq!((sides, path.len()), (0, 0));
    }
}
