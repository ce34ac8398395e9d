//! Who gives way when the clients' places or buffers are full: whoever has the most, never whoever comes.
//!
//! A party is whoever holds one key, over however many connections. So nobody is cut off who has less than an equal
//! share of all parties that are here, and a hoarder loses to itself. Those whom the cluster file does not name may
//! have as many keys as they like: together they have half of everything, and whoever has the most *of them* gives way
//! for it.
//!
//! What a connection holds up to [`CLIENT_FAIR_BYTES`] is not counted: the number of connections bounds that.

use super::super::CLIENT_FAIR_BYTES;
use super::super::handshake::Peer;
use super::super::link::{CloseReason, Link};
use super::Hub;
use bezant_core::ids::Principal;
use std::collections::BTreeMap;

/// What somebody has.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    connections: usize,
    /// In the buffers of those connections, beyond what each may always hold.
    bytes: usize,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Shares {
    parties: BTreeMap<Principal, Share>,
    /// Of all clients that the cluster file does not name.
    strangers: Share,
    /// Of all clients.
    all: Share,
}

const fn is_stranger(party: &Principal) -> bool {
    matches!(party, Principal::Key(_))
}

impl Shares {
    fn change(&mut self, party: Principal, change: impl Fn(&mut Share)) {
        change(&mut self.all);
        if is_stranger(&party) {
            change(&mut self.strangers);
        }
        let share = self.parties.entry(party).or_default();
        change(share);
        if share.connections == 0 {
            self.parties.remove(&party);
        }
    }

    /// A client has one more connection.
    pub(super) fn enter(&mut self, peer: Peer) {
        self.change(peer.principal(), |share| share.connections += 1);
    }

    /// A connection on which so much was counted is gone.
    pub(super) fn leave(&mut self, peer: Peer, bytes: usize) {
        if peer.is_client() {
            self.change(peer.principal(), |share| {
                share.connections -= 1;
                share.bytes -= bytes;
            });
        }
    }

    #[cfg(test)]
    pub(super) const fn all_bytes(&self) -> usize {
        self.all.bytes
    }

    #[cfg(test)]
    pub(super) const fn strangers_bytes(&self) -> usize {
        self.strangers.bytes
    }

    /// Who has the most connections, and how many; of strangers only, if it is so.
    fn most_connected(&self, strangers: bool) -> Option<(Principal, usize)> {
        let rivals = self.parties.iter().filter(|(party, _)| !strangers || is_stranger(party));
        rivals.map(|(party, share)| (*party, share.connections)).max_by_key(|(_, connections)| *connections)
    }

    /// Who has to give way if there may be so many bytes.
    fn hoarder(&self, bytes_max: usize) -> Option<Principal> {
        let crowded = self.strangers.bytes > bytes_max / 2;
        if !crowded && self.all.bytes <= bytes_max {
            return None;
        }
        let rivals = self.parties.iter().filter(|(party, _)| !crowded || is_stranger(party));
        rivals.max_by_key(|(_, share)| share.bytes).map(|(party, _)| *party)
    }
}

impl Hub {
    /// Counts what a client's connection holds, and keeps the sum of all within its bound.
    pub(super) fn account(&mut self, index: u32) {
        let Some(link) = self.links[index as usize].as_mut() else { return };
        // Who is not known yet holds no more than a frame of the handshake, and does not wait for long.
        let Some(peer) = link.peer().filter(|peer| peer.is_client()) else { return };
        let held = link.buffered().saturating_sub(CLIENT_FAIR_BYTES);
        let before = std::mem::replace(&mut link.accounted, held);
        if before == held {
            return;
        }
        self.shares.change(peer.principal(), |share| share.bytes = share.bytes - before + held);
        while let Some(hoarder) = self.shares.hoarder(self.bounds.buffers_bytes_max)
            && let Some(largest) = self.link_of(hoarder, |link| link.accounted)
        {
            self.close(largest, CloseReason::Overload);
        }
    }

    /// The link of a party that has the most of something.
    fn link_of(&self, party: Principal, measure: impl Fn(&Link) -> usize) -> Option<u32> {
        let links = self.links.iter().zip(0..).filter_map(|(link, index)| Some((link.as_ref()?, index)));
        let its = links.filter(|(link, _)| link.peer().is_some_and(|peer| peer.principal() == party));
        its.max_by_key(|(link, _)| measure(link)).map(|(_, index)| index)
    }

    /// Whether a client may have one more connection. If all places are taken, whoever has the most gives one up to
    /// somebody who has fewer, so that no client can keep the others out.
    pub(super) fn has_place(&mut self, peer: Peer) -> bool {
        let party = peer.principal();
        let full = self.shares.all.connections >= self.bounds.connections_max;
        let crowded = is_stranger(&party) && self.shares.strangers.connections >= self.bounds.connections_max / 2;
        if !full && !crowded {
            return true;
        }
        let mine = self.shares.parties.get(&party).map_or(0, |share| share.connections);
        let Some((richest, connections)) = self.shares.most_connected(is_stranger(&party)) else { return false };
        let Some(index) = self.link_of(richest, |link| link.accounted).filter(|_| connections > mine + 1) else {
            return false;
        };
        self.close(index, CloseReason::Superseded);
        true
    }
}
