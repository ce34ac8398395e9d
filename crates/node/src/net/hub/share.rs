//! Lets those give way who have the most: see [`super::shares`].

use super::super::CLIENT_FAIR_BYTES;
use super::super::close_reason::CloseReason;
use super::super::handshake::Peer;
use super::super::link::Link;
use super::Hub;
use super::shares::is_stranger;
use bezant_core::ids::Principal;

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
