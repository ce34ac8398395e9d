//! Who gives way when the clients' places or buffers are full: whoever has the most, never whoever comes.
//!
//! A party is whoever holds one key, over however many connections. So nobody is cut off who has less than an equal
//! share of all parties that are here, and a hoarder loses to itself. Those whom the cluster file does not name may
//! have as many keys as they like: together they have half of everything, and whoever has the most *of them* gives way
//! for it.
//!
//! What a connection holds up to [`CLIENT_FAIR_BYTES`](super::super::CLIENT_FAIR_BYTES) is not counted: the number of
//! connections bounds that.

use super::super::handshake::Peer;
use bezant_core::ids::Principal;
use std::collections::BTreeMap;

/// What somebody has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub(super) connections: usize,
    /// In the buffers of those connections, beyond what each may always hold.
    pub(super) bytes: usize,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Shares {
    pub(super) parties: BTreeMap<Principal, Share>,
    /// Of all clients that the cluster file does not name.
    pub(super) strangers: Share,
    /// Of all clients.
    pub(super) all: Share,
}

pub(super) const fn is_stranger(party: &Principal) -> bool {
    matches!(party, Principal::Key(_))
}

impl Shares {
    pub(super) fn change(&mut self, party: Principal, change: impl Fn(&mut Share)) {
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
    pub(super) fn most_connected(&self, strangers: bool) -> Option<(Principal, usize)> {
        let rivals = self.parties.iter().filter(|(party, _)| !strangers || is_stranger(party));
        rivals.map(|(party, share)| (*party, share.connections)).max_by_key(|(_, connections)| *connections)
    }

    /// Who has to give way if there may be so many bytes.
    pub(super) fn hoarder(&self, bytes_max: usize) -> Option<Principal> {
        let crowded = self.strangers.bytes > bytes_max / 2;
        if !crowded && self.all.bytes <= bytes_max {
            return None;
        }
        let rivals = self.parties.iter().filter(|(party, _)| !crowded || is_stranger(party));
        rivals.max_by_key(|(_, share)| share.bytes).map(|(party, _)| *party)
    }
}
