//! How a replica comes to believe that a request is its client's, or the system's own ([`system`]).

mod system;

pub(crate) use system::ruling_after;

use crate::auth::{Keyring, Signature};
use crate::batch::Batch;
use crate::cluster::{ClientAuth, Cluster};
use crate::ids::Principal;
use crate::message::{REQUEST_SIGNATURE_KIND, Request, Vouched};
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

    /// Finds out whether the request is its client's, in the cheapest way that the mode allows: by MAC, or (where there
    /// is one) by signature. The outcome is in [`Request::vouched`].
    pub fn vouch(&mut self, cluster: &Cluster, keyring: &Keyring) {
        let is_signed = cluster.client_auth != ClientAuth::Mac && self.authentication.signature.is_some();
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

    /// Checks the signatures of many requests at once, for those that are not vouched for by signature yet.
    pub fn vouch_signatures<'a>(requests: impl Iterator<Item = &'a mut Self>, cluster: &Cluster, keyring: &Keyring) {
        let mut open: Vec<&mut Self> = requests.filter(|request| request.vouched != Vouched::Signature).collect();
        let statements: Vec<[u8; 41]> = open.iter().map(|request| request.statement()).collect();
        let items: Vec<_> = open
            .iter()
            .zip(&statements)
            .map(|(request, statement)| {
                let missing = Signature([0; 64]);
                let signature = request.authentication.signature.unwrap_or(missing);
                (request.signer(), statement.as_slice(), signature)
            })
            .collect();
        let valid = keyring.check_batch(REQUEST_SIGNATURE_KIND, &items);
        for (request, valid) in open.iter_mut().zip(valid) {
            if valid && request.is_backed(cluster, keyring) {
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
        if cluster.client_auth != ClientAuth::Mac && !open.is_empty() {
            Request::vouch_signatures(open.into_iter(), cluster, keyring);
        }
    }
}
