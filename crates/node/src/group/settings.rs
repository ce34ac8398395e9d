//! Who is in a group.

use crate::coin::{self, Bls};
use crate::net::Channel;
use bezant_core::auth::{CoinKey, CoinScheme, CommonCoin, Ed25519, Keyring, PublicKeys, SecretKey};
use bezant_core::cluster::{ClientAuth, Cluster, Coin, Limits};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{Principal, PublicKey, ReplicaId};
use bezant_core::protocols::ritas::group::{GroupMessage, HISTORY_BYTES_MAX, PROCESSES_MAX};
use bezant_core::replicas::{Replicas, ReplicasError};
use bezant_core::wire::Wire;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// What a process has to know about its group. The same at all of them, but for who it is, its secrets and its
/// listener.
#[derive(Debug)]
pub struct GroupSettings {
    /// Where each process listens, and its public key, by number.
    pub members: Vec<(SocketAddr, PublicKey)>,
    /// How many of them may be faulty.
    pub f: usize,
    /// Which of them this is.
    pub me: ReplicaId,
    /// Its key.
    pub secret: SecretKey,
    /// Where it listens.
    pub listener: TcpListener,
    /// The run: all processes of a run have the same, and no earlier run had it.
    pub epoch: u64,
    /// What all toss together where they do not agree. If nothing, each tosses a coin of its own.
    pub coin: Option<DealtCoin>,
    /// What links run over.
    pub channel: Channel,
    /// Whether messages of the atomic broadcast go together.
    pub bundles: bool,
    /// Whether long values are repeated instead of named, as in the thesis.
    pub repeats: bool,
    /// How often a process looks whether it has missed anything.
    pub interval: Duration,
    /// Bytes of messages that are kept for slow processes.
    pub history_bytes_max: usize,
    /// Somebody who sees what this process sends, and may change it.
    pub witness: Witness,
}

/// What a process tosses a common coin with. Somebody has dealt it to all of its group ([`coin::deal`]): who saw that
/// foresees every coin, and could make agreement slow or endless, but not wrong.
#[derive(Clone, Debug)]
pub struct DealtCoin {
    /// What only this process knows.
    pub secret: SecretKey,
    /// The public keys of all, by number.
    pub keys: Vec<CoinKey>,
}

impl DealtCoin {
    /// Whether the keys were dealt together, for as many processes and faults, and the secret to this one.
    pub fn belongs_to(&self, replicas: &Replicas, me: ReplicaId) -> bool {
        let mine = Bls.public(&self.secret);
        let is_mine = mine.is_some_and(|mine| self.keys.get(usize::from(me.0)) == Some(&mine));
        is_mine && coin::belong_together(replicas, &self.keys)
    }
}

/// What looks at each message that a process sends, for measurements; or makes a liar of it, for tests of others.
#[derive(Default)]
pub struct Witness(pub(super) Option<See>);

pub(super) type See = Box<dyn FnMut(&mut GroupMessage) + Send>;

impl Witness {
    /// Who sees each message once, whoever it goes to.
    pub fn new(see: impl FnMut(&mut GroupMessage) + Send + 'static) -> Self {
        Self(Some(Box::new(see)))
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_some() { "Witness" } else { "none" })
    }
}

/// Why there is no such group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// So many processes do not tolerate so many faults.
    Replicas(ReplicasError),
    /// More than [`PROCESSES_MAX`].
    TooMany(usize),
    /// There is no process of this number.
    NoMember(ReplicaId),
    /// The secret key is not that of the public key which the group knows, or a public key is none.
    Key(ReplicaId),
    /// The secret for common coins is not that of this process, or the keys were not dealt together for this group.
    Coin(ReplicaId),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicas(error) => error.fmt(out),
            Self::TooMany(n) => write!(out, "{n} processes are too many: at most {PROCESSES_MAX}"),
            Self::NoMember(id) => write!(out, "the group has no process {}", id.0),
            Self::Key(id) => {
                write!(
                    out,
                    "the secret key of process {} does not belong to its public key, or a public key is none",
                    id.0
                )
            }
            Self::Coin(id) => {
                write!(
                    out,
                    "the secret for common coins of process {} is not its own, or the keys were not dealt together",
                    id.0
                )
            }
        }
    }
}

impl std::error::Error for SettingsError {}

impl GroupSettings {
    /// With what suits most groups: TLS, everything on that saves messages, a look each tenth of a second.
    pub fn new(
        members: Vec<(SocketAddr, PublicKey)>,
        f: usize,
        me: ReplicaId,
        secret: SecretKey,
        listener: TcpListener,
    ) -> Self {
        Self {
            members,
            f,
            me,
            secret,
            listener,
            epoch: 0,
            coin: None,
            channel: Channel::Tls,
            bundles: true,
            repeats: false,
            interval: Duration::from_millis(100),
            history_bytes_max: HISTORY_BYTES_MAX,
            witness: Witness::default(),
        }
    }

    pub(super) fn replicas(&self) -> Result<Replicas, SettingsError> {
        let n = self.members.len();
        if n > PROCESSES_MAX {
            return Err(SettingsError::TooMany(n));
        }
        Replicas::new(n, self.f).map_err(SettingsError::Replicas)
    }

    /// The keys of this process in this run of the group: what is said in another one has no MAC that holds here.
    pub(super) fn keyring(&self) -> Result<Keyring, SettingsError> {
        let keys: Vec<PublicKey> = self.members.iter().map(|(_, key)| *key).collect();
        let coin_keys = self.coin.iter().flat_map(|coin| &coin.keys);
        let parts: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).chain(coin_keys.map(|key| &key.0[..])).collect();
        let members = Digest::of_parts(Domain::Group, &parts);
        let id = Digest::of(Domain::Group, &(members, (self.epoch, self.f as u64)).to_bytes());
        let id = *id.0.first_chunk().expect("a digest is longer");
        let cluster = Cluster::new(id, keys.len(), self.f, ClientAuth::Signature, Limits::default());
        let cluster = Cluster { coin: self.tossed(), ..cluster.map_err(SettingsError::Replicas)? };
        if usize::from(self.me.0) >= keys.len() {
            return Err(SettingsError::NoMember(self.me));
        }
        let keys = PublicKeys { replicas: keys, identities: BTreeMap::new() };
        let me = Principal::Replica(self.me);
        let keyring = Keyring::new(&Ed25519, &cluster, me, self.secret.clone(), keys);
        let keyring = keyring.ok_or(SettingsError::Key(self.me))?;
        let Some(coin) = &self.coin else { return Ok(keyring) };
        if !coin.belongs_to(&cluster.replicas, self.me) {
            return Err(SettingsError::Coin(self.me));
        }
        let keyring = keyring.with_coin(&Bls, coin.secret.clone(), coin.keys.clone());
        keyring.ok_or(SettingsError::Coin(self.me))
    }

    /// Whether all toss together.
    pub(super) const fn tossed(&self) -> Coin {
        if self.coin.is_some() { Coin::Common } else { Coin::Local }
    }

    /// The coins of this run: no other run and no cluster has coins of these names.
    pub(super) fn common_coin(&self, keyring: &Keyring) -> Option<CommonCoin> {
        keyring.common_coin(&[b"group", &self.epoch.to_bytes()[..]].concat())
    }
}
