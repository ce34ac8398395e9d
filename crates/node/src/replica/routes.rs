//! Which link leads to whom.

use crate::config::{Place, Places};
use crate::net::{CloseReason, Dialer, Hub, LinkId, Peer, Target};
use bezant_core::ids::{ClientId, IdentityId, Principal, PublicKey, ReplicaId};
use bezant_core::time::Instant;
use std::collections::BTreeMap;

/// Links of one key that hear what is said to it: a client that takes over, and the one whose session it ends.
const LINKS_PER_KEY_MAX: usize = 2;

/// The way to one replica.
#[derive(Debug)]
struct Way {
    /// `None` for replicas with a higher number: they dial us.
    dialer: Option<Dialer>,
    link: Option<LinkId>,
    last: Option<CloseReason>,
}

/// The links of a replica.
#[derive(Debug)]
pub(crate) struct Routes {
    me: ReplicaId,
    replicas: Vec<Way>,
    /// By identity and first session: how many sessions, and where.
    clients: BTreeMap<(IdentityId, u32), (u32, LinkId)>,
    client_links: BTreeMap<LinkId, (IdentityId, u32)>,
    /// The links of those whom the cluster file does not name, oldest first, by their keys.
    strangers: BTreeMap<PublicKey, Vec<LinkId>>,
    stranger_links: BTreeMap<LinkId, PublicKey>,
}

impl Routes {
    pub(crate) fn new(me: ReplicaId, places: &Places) -> Self {
        let way = |(number, place): (usize, &Place)| {
            let replica = ReplicaId(number as u8);
            let target = Target { place: place.clone(), replica, who: Peer::Replica(me) };
            Way { dialer: (replica < me).then(|| Dialer::new(target, true)), link: None, last: None }
        };
        Self {
            me,
            replicas: places.iter().enumerate().map(way).collect(),
            clients: BTreeMap::new(),
            client_links: BTreeMap::new(),
            strangers: BTreeMap::new(),
            stranger_links: BTreeMap::new(),
        }
    }

    /// The link to a replica, up or on its way.
    pub(crate) fn replica(&self, id: ReplicaId) -> Option<LinkId> {
        self.replicas.get(id.0 as usize)?.link
    }

    /// Every other replica that has a link.
    pub(crate) fn linked_replicas(&self) -> impl Iterator<Item = ReplicaId> + '_ {
        let linked = |(number, way): (usize, &Way)| way.link.map(|_| ReplicaId(number as u8));
        self.replicas.iter().enumerate().filter_map(linked)
    }

    /// The link that carries a client's session.
    pub(crate) fn client(&self, id: ClientId) -> Option<LinkId> {
        let ((identity, first), (sessions, link)) = self.clients.range(..=(id.identity, id.session)).next_back()?;
        (*identity == id.identity && id.session - first < *sessions).then_some(*link)
    }

    /// The links of a client that the cluster file does not name.
    pub(crate) fn stranger(&self, key: &PublicKey) -> &[LinkId] {
        self.strangers.get(key).map_or(&[], Vec::as_slice)
    }

    /// A link is authenticated. The newest wins: the other side has forgotten the older one.
    pub(crate) fn on_up(&mut self, link: LinkId, peer: Peer, hub: &mut Hub) {
        let superseded = match peer {
            Peer::Replica(id) => {
                let Some(way) = self.replicas.get_mut(id.0 as usize) else { return };
                if let Some(dialer) = &mut way.dialer {
                    dialer.on_up();
                }
                way.link.replace(link).filter(|&old| old != link)
            }
            Peer::Client { identity, first, sessions } => {
                self.client_links.insert(link, (identity, first));
                let old = self.clients.insert((identity, first), (sessions, link)).map(|(_, old)| old);
                if let Some(old) = old {
                    self.client_links.remove(&old);
                }
                old
            }
            Peer::Stranger(key) => {
                let links = self.strangers.entry(key).or_default();
                links.push(link);
                self.stranger_links.insert(link, key);
                let old = (links.len() > LINKS_PER_KEY_MAX).then(|| links.remove(0));
                if let Some(old) = old {
                    self.stranger_links.remove(&old);
                }
                old
            }
        };
        if let Some(old) = superseded {
            hub.drop_link(old, CloseReason::Superseded);
        }
    }

    /// A link is gone. Returns whose it was.
    pub(crate) fn on_down(&mut self, link: LinkId, reason: CloseReason, now: Instant) -> Option<Principal> {
        if let Some(key) = self.client_links.remove(&link) {
            self.clients.remove(&key);
            return Some(Principal::Client(ClientId { identity: key.0, session: 0 }));
        }
        if let Some(key) = self.stranger_links.remove(&link) {
            if let Some(links) = self.strangers.get_mut(&key) {
                links.retain(|other| *other != link);
                if links.is_empty() {
                    self.strangers.remove(&key);
                }
            }
            return Some(Principal::Key(key));
        }
        let mut whose = None;
        for (number, way) in self.replicas.iter_mut().enumerate().filter(|(_, way)| way.link == Some(link)) {
            whose = Some(Principal::Replica(ReplicaId(number as u8)));
            way.link = None;
            way.last = Some(reason);
            if let Some(dialer) = &mut way.dialer {
                dialer.on_down(reason, now);
            }
        }
        whose
    }

    /// Dials whom it is time to dial. Returns when to call again.
    pub(crate) fn tick(&mut self, hub: &mut Hub, now: Instant) -> Option<Instant> {
        let mut next = None;
        for way in &mut self.replicas {
            let Some(dialer) = &mut way.dialer else { continue };
            let again = dialer.tick(hub, now);
            way.link = dialer.link();
            next = [next, again].into_iter().flatten().min();
        }
        next
    }

    /// Every other replica, whether its link is up, and why the last one ended.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (ReplicaId, bool, Option<CloseReason>)> + '_ {
        let peers = self.replicas.iter().enumerate().map(|(number, way)| {
            let up = way.dialer.as_ref().map_or(way.link.is_some(), Dialer::is_up);
            (ReplicaId(number as u8), up, way.last)
        });
        peers.filter(|(id, ..)| *id != self.me)
    }
}
