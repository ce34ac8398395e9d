//! A process of a group, before it communicates and after that.

use crate::outcome::{Code, Failure};
use bezant_core::auth::{CoinKey, Ed25519, SecretKey, Suite};
use bezant_core::ids::{PublicKey, ReplicaId};
use bezant_core::replicas::Replicas;
use bezant_node::coin;
use bezant_node::group::{DealtCoin, GroupHandle, GroupSettings};
use bezant_node::net::Channel;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Context {
    replicas: Replicas,
    me: ReplicaId,
    /// The port that it listens to.
    pub(crate) port: u16,
    /// The process that made it. Its thread does not live in one that was forked from that.
    pub(crate) process: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Before(Setup),
    Running(Arc<GroupHandle>),
    Closed,
}

/// What is known before communication begins.
#[derive(Debug)]
pub(crate) struct Setup {
    members: Vec<Option<(SocketAddr, PublicKey)>>,
    secret: SecretKey,
    listener: TcpListener,
    pub(crate) epoch: u64,
    pub(crate) channel: Channel,
    coin: Option<DealtCoin>,
    patience: Option<Duration>,
}

/// A new key pair, from the system's randomness.
pub(crate) fn key_pair() -> Result<(SecretKey, PublicKey), Failure> {
    let mut secret = SecretKey([0; 32]);
    getrandom::fill(&mut secret.0).map_err(|error| Failure::new(Code::System, error.to_string()))?;
    let public = Ed25519.public(&secret);
    Ok((secret, public))
}

fn replicas(n: usize, f: usize) -> Result<Replicas, Failure> {
    Replicas::new(n, f).map_err(|error| Failure::invalid(&error.to_string()))
}

/// New keys for common coins, from the system's randomness: by process, its secret and its public key.
pub(crate) fn dealt(n: usize, f: usize) -> Result<Vec<(SecretKey, CoinKey)>, Failure> {
    coin::deal(&replicas(n, f)?).map_err(|error| Failure::new(Code::System, error.to_string()))
}

/// Listens on all addresses of the machine, of both versions if it has both.
fn listen(port: u16) -> Result<(TcpListener, u16), Failure> {
    let refused = |error: std::io::Error| Failure::new(Code::System, format!("cannot listen to port {port}: {error}"));
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port));
    let listener = both.or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))).map_err(refused)?;
    let port = listener.local_addr().map_err(refused)?.port();
    Ok((listener, port))
}

impl Context {
    pub(crate) fn new(me: usize, n: usize, f: usize, port: u16, secret: SecretKey) -> Result<Self, Failure> {
        let replicas = replicas(n, f)?;
        let me = u8::try_from(me).ok().filter(|me| usize::from(*me) < n).map(ReplicaId);
        let me = me.ok_or_else(|| Failure::new(Code::NoMember, "the group has no process of this number"))?;
        let (listener, port) = listen(port)?;
        let (members, channel) = (vec![None; n], Channel::Tls);
        let setup = Setup { members, secret, listener, epoch: 0, channel, coin: None, patience: None };
        Ok(Self { replicas, me, port, process: process::id(), state: Mutex::new(State::Before(setup)) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what must not change any more once communication has begun.
    pub(crate) fn set(&self, change: impl FnOnce(&mut Setup)) -> Result<(), Failure> {
        match &mut *self.lock() {
            State::Before(setup) => {
                change(setup);
                Ok(())
            }
            State::Running(_) => Err(Failure::new(Code::Begun, "communication has begun: it is too late for this")),
            State::Closed => Err(Failure::closed()),
        }
    }

    pub(crate) fn add(&self, id: usize, ip: IpAddr, port: u16, key: PublicKey) -> Result<(), Failure> {
        let is_me = id == usize::from(self.me.0);
        let mut added = Ok(());
        self.set(|setup| {
            added = match setup.members.get_mut(id) {
                None => Err(Failure::new(Code::NoMember, "the group has no process of this number")),
                Some(Some(_)) => Err(Failure::invalid("this process was added before")),
                Some(_) if port == 0 => Err(Failure::invalid("port 0 is none")),
                Some(_) if is_me && Ed25519.public(&setup.secret) != key => {
                    Err(Failure::invalid("this process's own public key does not belong to its secret key"))
                }
                Some(member) => {
                    *member = Some((SocketAddr::new(ip, port), key));
                    Ok(())
                }
            }
        })?;
        added
    }

    /// What it tosses with all others: its secret, and the keys of all, one after the other.
    pub(crate) fn set_coin(&self, secret: SecretKey, keys: &[u8]) -> Result<(), Failure> {
        let (keys, rest) = keys.as_chunks();
        let coin = DealtCoin { secret, keys: keys.iter().copied().map(CoinKey).collect() };
        if !rest.is_empty() || !coin.belongs_to(&self.replicas, self.me) {
            return Err(Failure::invalid("the secret is not this process's own, or the keys were not dealt together"));
        }
        self.set(|setup| setup.coin = Some(coin))
    }

    /// How long calls may take from now on.
    pub(crate) fn set_patience(&self, patience: Option<Duration>) -> Result<(), Failure> {
        match &mut *self.lock() {
            State::Before(setup) => setup.patience = patience,
            State::Running(group) => group.set_patience(patience),
            State::Closed => return Err(Failure::closed()),
        }
        Ok(())
    }

    /// The group; with the first call, communication begins.
    pub(crate) fn group(&self) -> Result<Arc<GroupHandle>, Failure> {
        let mut state = self.lock();
        let setup = match &*state {
            State::Before(setup) => setup,
            State::Running(group) => return Ok(group.clone()),
            State::Closed => return Err(Failure::closed()),
        };
        let group = Arc::new(self.joined(setup)?);
        *state = State::Running(group.clone());
        Ok(group)
    }

    fn joined(&self, setup: &Setup) -> Result<GroupHandle, Failure> {
        let missing = setup.members.iter().position(Option::is_none);
        if let Some(missing) = missing {
            return Err(Failure::new(Code::Incomplete, format!("process {missing} was not added")));
        }
        let system = |error: std::io::Error| Failure::new(Code::System, error.to_string());
        let members = setup.members.iter().flatten().copied().collect();
        let listener = setup.listener.try_clone().map_err(system)?;
        let f = self.replicas.faults();
        let settings = GroupSettings::new(members, f, self.me, setup.secret.clone(), listener);
        let coin = setup.coin.clone();
        let settings = GroupSettings { epoch: setup.epoch, channel: setup.channel, coin, ..settings };
        let group = GroupHandle::start(settings).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidInput => Failure::invalid("one of the public keys is none"),
            _ => system(error),
        })?;
        group.set_patience(setup.patience);
        Ok(group)
    }

    /// Leaves the group. Calls that wait end.
    pub(crate) fn close(&self) {
        let state = std::mem::replace(&mut *self.lock(), State::Closed);
        if let State::Running(group) = state {
            group.leave();
        }
    }
}
