//! A client that says to each replica what it is told to say, and hears what it is answered: for measuring one step of
//! a protocol, and for misbehaving.

use bezant_core::auth::Keyring;
use bezant_core::cluster::Cluster;
use bezant_core::ids::{ClientId, Principal, ReplicaId};
use bezant_core::registry::{Incoming, Message};
use bezant_core::time::Instant;
use bezant_node::client::ClientOptions;
use bezant_node::config::Place;
use bezant_node::net::{Clock, Dialer, Event, Hub, HubOptions, Lane, LinkId, Peer, Target};
use std::collections::BTreeMap;
use std::{io, time};

/// How long it takes at most until something else than readiness is looked at.
const POLL_MAX: time::Duration = time::Duration::from_millis(10);

/// See the [module](self).
#[derive(Debug)]
pub struct RawClient {
    hub: Hub,
    clock: Clock,
    cluster: Cluster,
    keyring: Keyring,
    /// The first of its sessions, if the cluster file names it.
    first: ClientId,
    dialers: Vec<Dialer>,
    links: BTreeMap<LinkId, ReplicaId>,
}

impl RawClient {
    /// One connection to each replica, with all sessions of the options on it, or of somebody whom the cluster file
    /// does not name. It is made while one listens.
    ///
    /// # Errors
    /// If its keys are another's, nobody may join, or the system gives no readiness queue.
    pub fn new(options: &ClientOptions) -> io::Result<Self> {
        let keyring = options.keyring()?;
        let sessions = (options.connections * options.sessions_per_connection) as u32;
        let (first, who) = match (options.identity, keyring.me()) {
            (Some(identity), _) => {
                let first = ClientId { identity, session: options.first_session()? };
                (first, Peer::Client { identity, first: first.session, sessions })
            }
            (None, Principal::Key(key)) => (ClientId::default(), Peer::Stranger(key)),
            (None, _) => return Err(io::Error::other("who has no identity is known by its key")),
        };
        let target = |(replica, place): (_, &Place)| Target { place: place.clone(), replica, who };
        let targets = options.cluster.replicas.iter().zip(&options.replicas).map(target);
        Ok(Self {
            hub: Hub::new(HubOptions::new(keyring.clone(), options.channel))?,
            clock: Clock::start(),
            cluster: options.cluster.clone(),
            keyring,
            first,
            dialers: targets.map(|target| Dialer::new(target, true)).collect(),
            links: BTreeMap::new(),
        })
    }

    /// The parameters that all agree on.
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Its keys.
    pub const fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// One of its sessions, by number from 0.
    pub const fn session(&self, number: u32) -> ClientId {
        ClientId { session: self.first.session + number, ..self.first }
    }

    /// The time, as timestamps have it.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// How many replicas it is connected to.
    pub fn links_up(&self) -> usize {
        self.dialers.iter().filter(|dialer| dialer.is_up()).count()
    }

    /// Whether there is a link to this replica.
    pub fn reaches(&self, replica: ReplicaId) -> bool {
        self.dialers.get(usize::from(replica.0)).is_some_and(Dialer::is_up)
    }

    /// Says something to one replica; it leaves with the next [`RawClient::listen`]. `false` if there is no link, or no
    /// room on it: then nothing does.
    pub fn say(&mut self, to: ReplicaId, message: &Message) -> bool {
        self.send(to, message.sealed(&self.keyring, Principal::Replica(to)))
    }

    /// Sends a frame to one replica, whatever it is, like [`RawClient::say`].
    pub fn send(&mut self, to: ReplicaId, frame: Vec<u8>) -> bool {
        let link = self.dialers.get(to.0 as usize).and_then(Dialer::link);
        link.is_some_and(|link| self.hub.send(link, Lane::Usual, &frame.into(), &[]))
    }

    /// What came within some milliseconds, or came first.
    ///
    /// # Errors
    /// If the system's readiness queue fails.
    pub fn listen(&mut self) -> io::Result<Vec<(ReplicaId, Message)>> {
        let said = |incoming: Incoming| match incoming.from {
            Principal::Replica(from) => Some((from, incoming.message.into_inner())),
            _ => None,
        };
        Ok(self.hear()?.into_iter().filter_map(said).collect())
    }

    /// The same, as a client's machine takes it.
    ///
    /// # Errors
    /// If the system's readiness queue fails.
    pub fn hear(&mut self) -> io::Result<Vec<Incoming>> {
        let now = self.clock.now();
        for (replica, dialer) in self.dialers.iter_mut().enumerate() {
            dialer.tick(&mut self.hub, now);
            if let Some(link) = dialer.link() {
                self.links.insert(link, ReplicaId(replica as u8));
            }
        }
        self.hub.flush();
        self.hub.poll(Some(POLL_MAX))?;
        let mut heard = Vec::new();
        while let Some(event) = self.hub.next_event() {
            match event {
                Event::Frame(_, Peer::Replica(from), frame) => {
                    let opened = Message::open(frame, Principal::Replica(from), &self.cluster, &self.keyring);
                    heard.extend(opened.ok());
                }
                Event::Frame(..) => {}
                Event::Up(link, _) => {
                    if let Some(replica) = self.links.get(&link) {
                        self.dialers[replica.0 as usize].on_up();
                    }
                }
                Event::Down(link, reason) => {
                    if let Some(replica) = self.links.remove(&link) {
                        self.dialers[replica.0 as usize].on_down(reason, now);
                    }
                }
            }
        }
        self.hub.flush();
        Ok(heard)
    }
}
