//! A common coin: one toss that all see alike, and that nobody sees before a correct process lets it be seen.
//!
//! # What it is
//! A unique threshold signature, f + 1 of n. Whoever dealt the keys chose a polynomial of degree f; each replica has
//! the secret of its own place, and everybody has the public keys of all places. A replica's *share* is its signature
//! over the coin's name. Any f + 1 shares make the one signature that there is for this name, whoever's they are, and
//! the coin is a bit of its digest. f shares say nothing about it.
//!
//! # Whom it trusts
//! The dealer. Who knows the polynomial foresees every toss, and can schedule against them: agreement may take longer,
//! as with local coins, or for ever. It stays agreement: no argument for safety rests on the coin.
//!
//! # The seam
//! The core knows the [`CoinScheme`] only. The one that ships is in the runtime, because its library is not one for a
//! machine (`docs/decisions/0027-common-coin.md`); the simulator brings a cheap one.

use super::SecretKey;
use crate::digest::{Digest, Domain};
use crate::ids::ReplicaId;
use crate::wire::{Reader, Sink, Wire, WireError};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// The public key of a replica's place: 96 bytes, in the encoding of the scheme.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CoinKey(pub [u8; Self::BYTES]);

impl CoinKey {
    /// Its size.
    pub const BYTES: usize = 96;
}

impl fmt::Debug for CoinKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "coin-key:{:02x}{:02x}", self.0[0], self.0[1])
    }
}

/// A replica's part in one toss: 48 bytes, in the encoding of the scheme.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CoinShare(pub [u8; Self::BYTES]);

impl CoinShare {
    /// Its size.
    pub const BYTES: usize = 48;
}

impl fmt::Debug for CoinShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "share:{:02x}{:02x}", self.0[0], self.0[1])
    }
}

impl Wire for CoinShare {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self(reader.array()?))
    }
}

/// A unique threshold signature.
pub trait CoinScheme: fmt::Debug + Send + Sync {
    /// The public key of a place, or nothing if this is no secret of one.
    fn public(&self, secret: &SecretKey) -> Option<CoinKey>;
    /// This place's share. The same every time: there is one share of a name, and no other is valid.
    fn share(&self, secret: &SecretKey, name: &Digest) -> CoinShare;
    /// Whether it is the share of the place with this key.
    fn verify(&self, key: &CoinKey, name: &Digest, share: &CoinShare) -> bool;
    /// What f + 1 valid shares of distinct replicas make of one name: the same, whichever they are.
    fn combine(&self, shares: &[(ReplicaId, CoinShare)]) -> Digest;
}

/// What a replica tosses with. Never printed.
#[derive(Clone)]
pub(super) struct CoinKeys {
    scheme: &'static dyn CoinScheme,
    secret: SecretKey,
    keys: Arc<Vec<CoinKey>>,
}

impl CoinKeys {
    /// `None` if the secret is not that of this place.
    pub(super) fn new(
        scheme: &'static dyn CoinScheme,
        me: ReplicaId,
        secret: SecretKey,
        keys: Vec<CoinKey>,
    ) -> Option<Self> {
        let mine = scheme.public(&secret).filter(|public| keys.get(usize::from(me.0)) == Some(public));
        mine.map(|_| Self { scheme, secret, keys: Arc::new(keys) })
    }
}

/// The coins of one instance of a protocol, at one replica.
#[derive(Clone)]
pub struct CommonCoin {
    me: ReplicaId,
    /// The cluster and the instance: nowhere else are there coins of the same names.
    context: Digest,
    keys: CoinKeys,
}

impl fmt::Debug for CommonCoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommonCoin").field("me", &self.me).finish_non_exhaustive()
    }
}

impl CommonCoin {
    pub(super) fn new(me: ReplicaId, keys: CoinKeys, cluster: &Digest, instance: &[u8]) -> Self {
        Self { me, context: Digest::of_parts(Domain::CommonCoin, &[&cluster.0, instance]), keys }
    }

    /// The coins of a process alone, for tests. `None` as in [`super::Keyring::with_coin`].
    #[cfg(test)]
    pub(crate) fn of(
        scheme: &'static dyn CoinScheme,
        me: ReplicaId,
        secret: SecretKey,
        keys: Vec<CoinKey>,
    ) -> Option<Self> {
        Some(Self::new(me, CoinKeys::new(scheme, me, secret, keys)?, &Digest::ZERO, &[]))
    }

    fn name(&self, of: &[u8]) -> Digest {
        Digest::of_parts(Domain::CommonCoin, &[&self.context.0, of])
    }

    /// This replica's share of a toss. Whoever has f + 1 of them knows the toss.
    pub fn share(&self, of: &[u8]) -> CoinShare {
        self.keys.scheme.share(&self.keys.secret, &self.name(of))
    }

    /// Whether this is that replica's share of a toss.
    #[must_use]
    pub fn verify(&self, from: ReplicaId, of: &[u8], share: &CoinShare) -> bool {
        let key = self.keys.keys.get(usize::from(from.0));
        key.is_some_and(|key| self.keys.scheme.verify(key, &self.name(of), share))
    }

    /// Which side f + 1 valid shares of distinct replicas show.
    pub fn side(&self, shares: &[(ReplicaId, CoinShare)]) -> bool {
        let toss = self.keys.scheme.combine(shares);
        Digest::of_parts(Domain::Coin, &[&toss.0]).0[0] & 1 == 1
    }
}
