//! A principal's keys: its own secret, everybody's public keys, the pairwise MAC keys derived from them, and the
//! count of every operation done with them.

use super::coin::{CoinKey, CoinKeys, CoinScheme, CommonCoin};
use super::{Certificate, Claimed, MacKey, SecretKey, Signable, Signature, Signed, Signer, Suite, Tag};
use crate::cluster::Cluster;
use crate::digest::{Digest, Domain};
use crate::ids::{ClientId, IdentityId, Principal, PublicKey, ReplicaId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt;

/// The public keys that a cluster admits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKeys {
    /// One per replica, by number.
    pub replicas: Vec<PublicKey>,
    /// The identities that may send requests.
    pub identities: BTreeMap<IdentityId, PublicKey>,
}

impl PublicKeys {
    /// [`Keyring::verify`] for those who have no key of their own: whoever reads a checkpoint.
    pub fn verify<T: Signable>(
        &self,
        suite: &dyn Suite,
        cluster: &Cluster,
        claimed: Claimed<Signed<T>>,
    ) -> Option<Signed<T>> {
        let (signer, body) = (claimed.signer(), claimed.claims().to_bytes());
        self.has_signed::<T>(suite, &cluster.digest(), signer, &body, &claimed.signature()).then(|| claimed.accept())
    }

    /// [`Keyring::verify_certificate`] for those who have no key of their own: whoever reads a backup.
    pub fn verify_certificate<T: Signable>(
        &self,
        suite: &dyn Suite,
        cluster: &Cluster,
        claimed: Claimed<Certificate<T>>,
        threshold: usize,
    ) -> Option<Certificate<T>> {
        let (cluster, body) = (cluster.digest(), claimed.claims().to_bytes());
        let is_valid = |(signer, signature): &(ReplicaId, Signature)| {
            self.has_signed::<T>(suite, &cluster, *signer, &body, signature)
        };
        let holds = self.are_signers(&claimed, threshold) && claimed.signatures().iter().all(is_valid);
        holds.then(|| claimed.accept())
    }

    /// Whether so many distinct replicas are said to have signed it, and nobody else.
    fn are_signers<T>(&self, claimed: &Claimed<Certificate<T>>, threshold: usize) -> bool {
        let signatures = claimed.signatures();
        let exist = signatures.last().is_none_or(|(last, _)| usize::from(last.0) < self.replicas.len());
        exist && signatures.windows(2).all(|pair| pair[0].0 < pair[1].0) && signatures.len() >= threshold
    }

    fn has_signed<T: Signable>(
        &self,
        suite: &dyn Suite,
        cluster: &Digest,
        signer: ReplicaId,
        body: &[u8],
        signature: &Signature,
    ) -> bool {
        let statement = statement(T::KIND, cluster, Principal::Replica(signer), body);
        let public = self.replicas.get(usize::from(signer.0));
        public.is_some_and(|public| suite.verify(public, &statement.0, signature))
    }
}

/// What a signature is made over.
fn statement(kind: u8, cluster: &Digest, signer: Principal, body: &[u8]) -> Digest {
    Digest::of_parts(Domain::Signature, &[&[kind], &cluster.0, Party::of(signer).bytes(), body])
}

/// How many cryptographic operations a principal has done. The papers' cost formulas are tests on these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// MACs computed to send.
    pub macs_made: Cell<u64>,
    /// MACs computed to check.
    pub macs_checked: Cell<u64>,
    /// Signatures made.
    pub signatures_made: Cell<u64>,
    /// Signatures checked, alone or in a batch.
    pub signatures_checked: Cell<u64>,
    /// Those among them under what replicas sign [now and then](Signable::WITH_EACH_BATCH).
    pub occasional_signatures_checked: Cell<u64>,
}

fn bump(counter: &Cell<u64>) {
    add(counter, 1);
}

fn add(counter: &Cell<u64>, count: usize) {
    counter.set(counter.get() + count as u64);
}

/// Both directions between this principal and another.
#[derive(Clone, Debug)]
struct Pair {
    send: MacKey,
    receive: MacKey,
}

/// See the [module](self).
#[derive(Clone)]
pub struct Keyring {
    suite: &'static dyn Suite,
    me: Principal,
    secret: SecretKey,
    signer: Arc<dyn Signer>,
    cluster: Digest,
    keys: PublicKeys,
    /// `None` at our own place.
    replicas: Vec<Option<Pair>>,
    identities: BTreeMap<IdentityId, Pair>,
    /// The MAC keys shared with clients that the cluster file does not name, as they come; `None` if it admits none.
    strangers: Option<RefCell<BTreeMap<PublicKey, Pair>>>,
    /// What this replica tosses common coins with, if the cluster has any.
    coin: Option<CoinKeys>,
    /// Statements that somebody signed for others, and the signatures, which held: the last ones, and those before
    /// them. See [`Self::check_shared`].
    shared: RefCell<[BTreeSet<(Digest, Signature)>; 2]>,
    counters: Counters,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("me", &self.me).finish_non_exhaustive()
    }
}

/// Strangers whose MAC keys are kept. They can be derived again, so when there are more all are forgotten.
const STRANGERS_MAX: usize = 8_192;

/// Shared signatures that are remembered, twice as many at most. They can be checked again, so when there are more the
/// earlier half is forgotten.
const SHARED_MAX: usize = 1_024;

/// The party that a MAC key belongs to: all sessions of an identity share one key, their statements name the session.
/// No party's bytes begin with another's.
struct Party([u8; 33], usize);

impl Party {
    fn of(principal: Principal) -> Self {
        let mut bytes = [0; 33];
        match principal {
            Principal::Replica(id) => bytes[1] = id.0,
            Principal::Client(id) => {
                bytes[0] = 1;
                bytes[1..5].copy_from_slice(&id.identity.0.to_le_bytes());
            }
            Principal::Key(key) => {
                bytes[0] = 2;
                bytes[1..].copy_from_slice(&key.0);
                return Self(bytes, 33);
            }
        }
        Self(bytes, 5)
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// The MAC keys, in both directions, of two parties with a shared secret.
fn derive(shared: &[u8; 32], cluster: &Digest, me: Principal, other: Principal) -> Pair {
    let direction = |from: Principal, to: Principal| {
        let mut context = Vec::with_capacity(72);
        context.extend_from_slice(&cluster.0);
        context.extend_from_slice(Party::of(from).bytes());
        context.extend_from_slice(Party::of(to).bytes());
        MacKey::derive(shared, &context)
    };
    Pair { send: direction(me, other), receive: direction(other, me) }
}

impl Keyring {
    /// Derives every pairwise key. `None` if a public key is not a proper point, or not that of `secret` at `me`.
    pub fn new(
        suite: &'static dyn Suite,
        cluster: &Cluster,
        me: Principal,
        secret: SecretKey,
        keys: PublicKeys,
    ) -> Option<Self> {
        let mine = match me {
            Principal::Replica(id) => keys.replicas.get(id.0 as usize).copied(),
            Principal::Client(id) => keys.identities.get(&id.identity).copied(),
            Principal::Key(key) => Some(key).filter(|_| cluster.dynamic_clients),
        };
        if mine != Some(suite.public(&secret)) || keys.replicas.len() != cluster.replicas.n() {
            return None;
        }
        let digest = cluster.digest();
        let pair =
            |other: Principal, public: &PublicKey| Some(derive(&suite.agree(&secret, public)?, &digest, me, other));
        let mut replicas = Vec::with_capacity(cluster.replicas.n());
        for (id, public) in cluster.replicas.iter().zip(&keys.replicas) {
            let other = Principal::Replica(id);
            replicas.push(if other == me { None } else { Some(pair(other, public)?) });
        }
        let mut identities = BTreeMap::new();
        if let Principal::Replica(_) = me {
            for (id, public) in &keys.identities {
                let other = Principal::Client(ClientId { identity: *id, session: 0 });
                identities.insert(*id, pair(other, public)?);
            }
        }
        let signer = suite.signer(&secret);
        let admits_strangers = cluster.dynamic_clients && matches!(me, Principal::Replica(_));
        Some(Self {
            suite,
            me,
            secret,
            signer,
            cluster: digest,
            keys,
            replicas,
            identities,
            strangers: admits_strangers.then(RefCell::default),
            coin: None,
            shared: RefCell::default(),
            counters: Counters::default(),
        })
    }

    /// The same keys with those of a replica's place among the tossers of common coins. `None` if the secret is not
    /// that of this replica, or if there is not one key for each replica.
    #[must_use]
    pub fn with_coin(self, scheme: &'static dyn CoinScheme, secret: SecretKey, keys: Vec<CoinKey>) -> Option<Self> {
        let Principal::Replica(me) = self.me else { return None };
        if keys.len() != self.keys.replicas.len() {
            return None;
        }
        Some(Self { coin: Some(CoinKeys::new(scheme, me, secret, keys)?), ..self })
    }

    /// The common coins of one instance of a protocol, if this replica has keys for them.
    pub fn common_coin(&self, instance: &[u8]) -> Option<CommonCoin> {
        let Principal::Replica(me) = self.me else { return None };
        Some(CommonCoin::new(me, self.coin.clone()?, &self.cluster, instance))
    }

    /// Whose keys these are.
    pub const fn me(&self) -> Principal {
        self.me
    }

    /// The digest of the cluster's parameters.
    pub const fn cluster(&self) -> Digest {
        self.cluster
    }

    /// The public keys.
    pub const fn keys(&self) -> &PublicKeys {
        &self.keys
    }

    /// The operations done so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether clients that the cluster file does not name may speak to this replica.
    pub const fn admits_strangers(&self) -> bool {
        self.strangers.is_some()
    }

    fn with_pair<T>(&self, other: Principal, act: impl FnOnce(&Pair) -> T) -> Option<T> {
        match other {
            Principal::Replica(id) => self.replicas.get(id.0 as usize)?.as_ref().map(act),
            Principal::Client(id) => self.identities.get(&id.identity).map(act),
            Principal::Key(key) => {
                let mut strangers = self.strangers.as_ref()?.borrow_mut();
                if !strangers.contains_key(&key) {
                    let shared = self.suite.agree(&self.secret, &key)?;
                    if strangers.len() >= STRANGERS_MAX {
                        strangers.clear();
                    }
                    strangers.insert(key, derive(&shared, &self.cluster, self.me, other));
                }
                strangers.get(&key).map(act)
            }
        }
    }

    /// The MAC over a statement for one receiver. An unknown receiver gets a tag that nobody accepts.
    pub fn tag(&self, to: Principal, statement: &[u8]) -> Tag {
        bump(&self.counters.macs_made);
        self.with_pair(to, |pair| pair.send.tag(statement)).unwrap_or(Tag::from_bytes([0; 16]))
    }

    /// Whether `from` made this MAC over this statement for us.
    #[must_use]
    pub fn check(&self, from: Principal, statement: &[u8], tag: &Tag) -> bool {
        bump(&self.counters.macs_checked);
        self.with_pair(from, |pair| pair.receive.verify(statement, tag)).unwrap_or(false)
    }

    fn statement(&self, kind: u8, signer: Principal, body: &[u8]) -> Digest {
        statement(kind, &self.cluster, signer, body)
    }

    /// Signs bytes of one kind as this principal.
    pub fn sign_bytes(&self, kind: u8, body: &[u8]) -> Signature {
        bump(&self.counters.signatures_made);
        self.signer.sign(&self.statement(kind, self.me, body).0)
    }

    fn public(&self, signer: Principal) -> Option<PublicKey> {
        match signer {
            Principal::Replica(id) => self.keys.replicas.get(id.0 as usize).copied(),
            Principal::Client(id) => self.keys.identities.get(&id.identity).copied(),
            Principal::Key(key) => Some(key),
        }
    }

    /// Whether `signer` signed these bytes of this kind.
    #[must_use]
    pub fn check_bytes(&self, kind: u8, signer: Principal, body: &[u8], signature: &Signature) -> bool {
        bump(&self.counters.signatures_checked);
        let statement = self.statement(kind, signer, body);
        self.public(signer).is_some_and(|public| self.suite.verify(&public, &statement.0, signature))
    }

    /// Which of these signatures of one kind are valid: as a batch first, one by one if the batch fails.
    #[must_use]
    pub fn check_batch(&self, kind: u8, items: &[(Principal, &[u8], Signature)]) -> Vec<bool> {
        let statements: Vec<Digest> =
            items.iter().map(|(signer, body, _)| self.statement(kind, *signer, body)).collect();
        let known: Option<Vec<_>> = items
            .iter()
            .zip(&statements)
            .map(|((signer, _, signature), s)| Some((self.public(*signer)?, s.0.as_slice(), *signature)))
            .collect();
        if items.len() > 1
            && let Some(known) = known
            && self.suite.verify_batch(&known)
        {
            add(&self.counters.signatures_checked, items.len());
            return alloc::vec![true; items.len()];
        }
        items.iter().map(|(signer, body, signature)| self.check_bytes(kind, *signer, body, signature)).collect()
    }

    /// The same for signatures that many statements share, as in [`TreeSignature`](super::TreeSignature): one that held
    /// lately is not checked again. When a view has failed, all that waits is asked for once more, and each request has
    /// to be believed for itself.
    #[must_use]
    pub fn check_shared(&self, kind: u8, items: &[(Principal, &[u8], Signature)]) -> Vec<bool> {
        let key = |(signer, body, signature): &(Principal, &[u8], Signature)| {
            (self.statement(kind, *signer, body), *signature)
        };
        let keys: Vec<_> = items.iter().map(key).collect();
        let mut shared = self.shared.borrow_mut();
        let mut holds: Vec<bool> = keys.iter().map(|key| shared.iter().any(|half| half.contains(key))).collect();
        let open: Vec<usize> = (0..items.len()).filter(|place| !holds[*place]).collect();
        let unknown: Vec<_> = open.iter().map(|place| items[*place]).collect();
        for (place, valid) in open.into_iter().zip(self.check_batch(kind, &unknown)) {
            holds[place] = valid;
            if valid {
                if shared[0].len() == SHARED_MAX {
                    shared[1] = core::mem::take(&mut shared[0]);
                }
                shared[0].insert(keys[place]);
            }
        }
        holds
    }

    /// Signs a statement as this replica.
    ///
    /// # Panics
    /// If these are a client's keys.
    pub fn sign<T: Signable>(&self, value: T) -> Signed<T> {
        let Principal::Replica(signer) = self.me else { panic!("only replicas sign protocol statements") };
        let signature = self.sign_bytes(T::KIND, &value.to_bytes());
        Signed::new(value, signer, signature)
    }

    /// The statement that somebody is said to have signed, if it did.
    pub fn verify<T: Signable>(&self, claimed: Claimed<Signed<T>>) -> Option<Signed<T>> {
        self.holds(&claimed).then(|| claimed.accept())
    }

    /// The same, where it is.
    pub fn verify_in_place<'a, T: Signable>(&self, claimed: &'a Claimed<Signed<T>>) -> Option<&'a Signed<T>> {
        self.holds(claimed).then(|| claimed.accepted())
    }

    fn note_occasional<T: Signable>(&self, count: usize) {
        if !T::WITH_EACH_BATCH {
            add(&self.counters.occasional_signatures_checked, count);
        }
    }

    fn holds<T: Signable>(&self, claimed: &Claimed<Signed<T>>) -> bool {
        self.note_occasional::<T>(1);
        let signer = Principal::Replica(claimed.signer());
        self.check_bytes(T::KIND, signer, &claimed.claims().to_bytes(), &claimed.signature())
    }

    /// The certificate that somebody shows, if at least `threshold` distinct replicas validly signed its value, and
    /// nobody else is in it.
    pub fn verify_certificate<T: Signable>(
        &self,
        claimed: Claimed<Certificate<T>>,
        threshold: usize,
    ) -> Option<Certificate<T>> {
        if !self.keys.are_signers(&claimed, threshold) {
            return None;
        }
        let body = claimed.claims().to_bytes();
        let items: Vec<_> = claimed
            .signatures()
            .iter()
            .map(|(signer, signature)| (Principal::Replica(*signer), body.as_slice(), *signature))
            .collect();
        self.note_occasional::<T>(items.len());
        let holds = self.check_batch(T::KIND, &items).into_iter().all(|valid| valid);
        holds.then(|| claimed.accept())
    }

    /// A secret, reproducible seed for the random value that a primary proposes with a batch (prac-F29: nobody can
    /// check that it was not chosen; it is unpredictable to clients, no more).
    pub fn seed(&self, position: &[u8]) -> Digest {
        Digest::of_parts(Domain::Seed, &[&self.secret.0, &self.cluster.0, position])
    }
}
