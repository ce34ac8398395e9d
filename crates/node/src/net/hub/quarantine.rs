//! Keeps those in quarantine who send what is of no use: see [`super::rations`].

use super::super::handshake::Peer;
use super::super::link::{Frames, Link};
use super::super::worth::Worth;
use super::rations::{Cause, Change, Quarantine};
use super::{CLIENTS, Hub, RATIONED_CLIENTS, RATIONED_REPLICAS, REPLICAS, SHAKING, class, link_in};
use bezant_core::ids::{Principal, ReplicaId};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

impl Hub {
    /// Says what a frame of so many bytes was worth: the last one that [`Hub::next_event`] gave. Whoever sends too much
    /// that is of no use is read last, and little, for a while.
    pub fn judge(&mut self, from: Peer, bytes: usize, worth: Worth) {
        let begun = self.rations.judge(from, bytes, worth, self.now);
        if begun.iter().all(Option::is_none) {
            return;
        }
        begun.into_iter().flatten().for_each(|change| self.begin_quarantine(change));
        if let Some(visit) = self.visit.take_if(|visit| !visit.rationed) {
            // Wherever it belongs now.
            self.enqueue(visit.index);
        }
    }

    /// So many signatures had to be checked for that frame, of those that replicas do not make with each batch.
    pub fn note_signatures(&mut self, from: ReplicaId, signatures: u64) {
        if signatures > 0 {
            self.of_replicas.entry(from).or_default().signatures += signatures;
        }
    }

    /// All that are in quarantine.
    pub fn quarantined(&self) -> impl Iterator<Item = Quarantine> + '_ {
        self.rations.quarantined()
    }

    /// The queue that a link belongs to.
    pub(super) fn queue_of(&self, index: u32) -> usize {
        let Some(link) = self.links[index as usize].as_ref() else { return REPLICAS };
        let rationed = link.peer().is_some_and(|peer| self.rations.is_rationed(peer));
        match (link.is_client_class(), rationed) {
            (true, _) if link.peer().is_none() => SHAKING,
            (false, false) => REPLICAS,
            (true, false) => CLIENTS,
            (false, true) => RATIONED_REPLICAS,
            (true, true) => RATIONED_CLIENTS,
        }
    }

    fn peer_of(&self, index: u32) -> Option<Peer> {
        self.links[index as usize].as_ref()?.peer()
    }

    /// Bytes and frames that may be read now of a link in quarantine, if there are any left.
    pub(super) fn ration_of(&mut self, index: u32) -> Option<(usize, usize)> {
        self.rations.left(self.peer_of(index)?, self.now)
    }

    /// When there are more.
    pub(super) fn next_ration_of(&mut self, index: u32) -> Option<Instant> {
        let peer = self.peer_of(index)?;
        self.rations.is_rationed(peer).then(|| self.rations.next(peer)).flatten()
    }

    /// So much was read over a link in quarantine.
    pub(super) fn take_ration(&mut self, index: u32, bytes: usize, frames: usize) {
        if let Some(peer) = self.peer_of(index) {
            self.rations.take(peer, bytes, frames);
        }
    }

    /// How long it takes until there is a ration for a link that waits for one. All clients have one.
    pub(super) fn until_a_ration(&mut self, now: Instant) -> Option<Duration> {
        let waiting = self.queues[RATIONED_REPLICAS].iter().chain(self.queues[RATIONED_CLIENTS].front());
        let links = &self.links;
        let peers = waiting.map(|id| link_in(links, *id).and_then(Link::peer));
        // Without a peer it is a link that is gone: the next pass forgets it.
        peers.map(|peer| peer.map_or(Duration::ZERO, |peer| self.rations.wait(peer, now))).min()
    }

    /// Looks for floods, and for quarantines that are over.
    pub(super) fn look_at_quarantines(&mut self) {
        let (replicas, clients) = (&self.metrics.replicas, &self.metrics.clients);
        let all = replicas.frames_in + replicas.frames_out + clients.frames_in + clients.frames_out;
        let frames = all - std::mem::replace(&mut self.frames_before, all);
        let mut of_replicas = std::mem::take(&mut self.of_replicas);
        for link in self.links.iter_mut().flatten() {
            let its = std::mem::take(&mut link.frames);
            if let Some(Peer::Replica(replica)) = link.peer() {
                of_replicas.entry(replica).or_default().add(its);
            }
        }
        let all_signatures: u64 = of_replicas.values().map(|its| its.signatures).sum();
        let liars = self.keyring.keys().replicas.len().saturating_sub(1) / 3;
        for (&replica, Frames { came, went, signatures }) in &of_replicas {
            // What was sent to it is no measure: it may have asked for that.
            let others = frames.saturating_sub(came + went);
            let others = others.saturating_sub(accomplices_did(&of_replicas, replica, liars, |its| its.came));
            let signed = all_signatures - signatures;
            let signed = signed - accomplices_did(&of_replicas, replica, liars, |its| its.signatures);
            let compared = [
                self.rations.compare(replica, Cause::Flood, *came, others, self.now),
                self.rations.compare(replica, Cause::Signatures, *signatures, signed, self.now),
            ];
            compared.into_iter().flatten().for_each(|change| self.begin_quarantine(change));
        }
        for (party, cause) in self.rations.settle(self.now) {
            if let Some(who) = name(party) {
                tracing::info!(event = "quarantine-over", who, cause = cause.label(), "read like everybody else again");
            }
        }
        self.count_quarantined();
    }

    /// A link is gone. What came over it counts: a new one is soon made.
    pub(super) fn depart(&mut self, peer: Peer, link: &Link) {
        if let Peer::Replica(replica) = peer {
            self.of_replicas.entry(replica).or_default().add(link.frames);
        }
    }

    fn count_quarantined(&mut self) {
        let clients = self.rations.quarantined().filter(|quarantine| is_client(quarantine.party)).count();
        self.metrics.clients.quarantined = clients as u64;
        self.metrics.replicas.quarantined = (self.rations.quarantined().count() - clients) as u64;
    }

    fn begin_quarantine(&mut self, (party, cause): Change) {
        if let Some(who) = name(party) {
            tracing::warn!(event = "quarantine", who, cause = cause.label(), "read last, and little: {cause}");
        }
        class(&mut self.metrics, is_client(party)).quarantines += 1;
        self.count_quarantined();
    }
}

/// The most that others did who may flood together with a replica: among so many liars none excuses another.
fn accomplices_did(
    all: &BTreeMap<ReplicaId, Frames>,
    replica: ReplicaId,
    liars: usize,
    what: fn(&Frames) -> u64,
) -> u64 {
    let mut others: Vec<u64> = all.iter().filter(|(id, _)| **id != replica).map(|(_, its)| what(its)).collect();
    others.sort_unstable();
    others.iter().rev().take(liars.saturating_sub(1)).sum()
}

fn is_client(party: Option<Principal>) -> bool {
    party.is_none_or(Principal::is_client)
}

/// As logs say it. Strangers, who may be any number, have no lines of their own.
fn name(party: Option<Principal>) -> Option<String> {
    match party {
        Some(Principal::Replica(replica)) => Some(format!("replica {}", replica.0)),
        Some(Principal::Client(client)) => Some(format!("client {}", client.identity.0)),
        Some(Principal::Key(_)) => None,
        None => Some("clients that nobody knows".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liars_do_not_excuse_one_another() {
        let of = |(id, signatures): (u8, u64)| (ReplicaId(id), Frames { came: 1, went: 0, signatures });
        let all = [(0, 3), (1, 900), (2, 5), (3, 4), (4, 1_000), (5, 2), (6, 6)].map(of).into();
        let did = |replica, liars| accomplices_did(&all, ReplicaId(replica), liars, |its| its.signatures);
        assert_eq!([did(4, 2), did(1, 2), did(4, 1), did(4, 3), did(4, 20)], [900, 1_000, 0, 906, 920]);
        assert_eq!(accomplices_did(&BTreeMap::new(), ReplicaId(1), 2, |its| its.came), 0);
    }
}
