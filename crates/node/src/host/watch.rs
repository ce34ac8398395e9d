//! What an operator has to hear of a running replica, as log lines: a link that is refused, strangers at its ports, a
//! disk that is full. Whatever others do, they write no more lines than is said here.

use crate::net::{CloseReason, LinkRefusal, Port, Refusals, Refused};
use crate::replica::{PeerStatus, Stall, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// For how long there must have been space before a full disk counts as another occurrence: one that is nearly full
/// takes a record now and then.
const FULL_OVER_AFTER: Duration = Duration::from_secs(10);

/// For how long nothing is said again of connections refused from one address.
const REFUSED_REPEAT_AFTER: Duration = Duration::from_secs(60);
/// Lines about refused connections in so much time, over all addresses: whoever has a network has many.
const REFUSED_LINES_MAX: usize = 16;

/// Remembers what has been told.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Links refused, by replica and kind of reason: a liar could give ever another build of its service.
    links: BTreeSet<(u8, &'static str)>,
    disk: FullDisk,
    strangers: Strangers,
}

impl Watch {
    /// Looks at what the replica published last, and tells what is new.
    pub(super) fn observe(&mut self, status: &Status) {
        let now = Instant::now();
        self.tell_links(&status.peers);
        for (from, Refused { count, reason, port, .. }) in self.strangers.due(&status.net.refused_from, now) {
            let (port, reason_label, what_to_do) = (port_name(port), reason.label(), remedy(reason));
            tracing::warn!(
                event = "connection-refused",
                %from,
                port,
                connections = count,
                reason = reason_label,
                "refused: {reason}; {what_to_do}"
            );
        }
        match self.disk.change(status.stall.as_ref(), now) {
            Some(Change::Full(why)) => {
                let told = "the disk of the log is full: this replica says nothing until there is space again; make \
                            room, it goes on by itself";
                tracing::warn!(event = "log-full", disk = why, "{told}");
            }
            Some(Change::Over) => tracing::info!(event = "log-goes-on", "the disk of the log has space again"),
            None => {}
        }
    }

    /// Says which replica is refused, or refuses us, and why: the operator has to do something about it.
    fn tell_links(&mut self, peers: &[PeerStatus]) {
        for peer in peers.iter().filter(|peer| !peer.connected) {
            let Some(reason) = peer.last_end.filter(CloseReason::is_refusal) else { continue };
            if self.links.insert((peer.replica.0, reason.label())) {
                tracing::warn!(event = "link-refused", replica = peer.replica.0, "no link: {reason}");
            }
        }
    }
}

/// Addresses from which connections were refused, and what has been told of them.
#[derive(Debug, Default)]
struct Strangers {
    /// When each was last told of, and how many of its connections had been refused by then. At most as many as the
    /// replica remembers, and those told of lately.
    told: BTreeMap<IpAddr, (Instant, u64)>,
}

impl Strangers {
    /// Of whom a line is due, with how many connections were refused since the line before.
    fn due(&mut self, refusals: &Refusals, now: Instant) -> Vec<(IpAddr, Refused)> {
        let is_recent = |at: Instant| now.saturating_duration_since(at) < REFUSED_REPEAT_AFTER;
        self.told.retain(|address, (at, _)| is_recent(*at) || refusals.of(*address).is_some());
        let mut lines_left =
            REFUSED_LINES_MAX.saturating_sub(self.told.values().filter(|(at, _)| is_recent(*at)).count());
        let mut due = Vec::new();
        for (address, refused) in refusals.iter() {
            let told = self.told.get(&address);
            // The replica may have forgotten the address meanwhile, and begun to count anew.
            let before = told.map_or(0, |(_, count)| *count).min(refused.count);
            let fresh = refused.count - before;
            if lines_left > 0 && fresh > 0 && told.is_none_or(|(at, _)| !is_recent(*at)) {
                lines_left -= 1;
                self.told.insert(address, (now, refused.count));
                let mut since = refused;
                since.count = fresh;
                due.push((address, since));
            }
        }
        due
    }
}

/// Who should come to a port.
const fn port_name(port: Port) -> &'static str {
    match port {
        Port::Replicas => "replicas",
        Port::Peer(_) => "one replica",
        Port::Clients => "clients",
    }
}

/// What to do about a connection that was refused.
const fn remedy(reason: LinkRefusal) -> &'static str {
    match reason {
        LinkRefusal::NotBezant => "find out what runs there, and point it elsewhere",
        LinkRefusal::Version => "run the same version of bezant there as here",
        LinkRefusal::ForeignCluster => {
            "give it this cluster's cluster.toml: id, n, f, protocol, client_auth and limits must be the same"
        }
        LinkRefusal::UnknownIdentity => "use a key that cluster.toml names, or let clients join",
        LinkRefusal::WrongParty => {
            "check the addresses in its cluster.toml, and `replica` and [[peer]] in its node.toml"
        }
        LinkRefusal::BadProof => "check its key: the public half must be the one in cluster.toml here",
        LinkRefusal::TooMany => "end clients that do nothing, or connect through a gateway",
        LinkRefusal::OtherService => "run the same build, and the same `service` in node.toml, at all replicas",
    }
}

/// Whether the disk is full, and since when it is not.
#[derive(Debug, Default)]
struct FullDisk {
    /// When it was last seen full, if that has been told and its end has not.
    told: Option<Instant>,
}

/// What is to be told of a disk.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// It is full; where, and what the system says.
    Full(String),
    /// It has space again.
    Over,
}

impl FullDisk {
    fn change(&mut self, stall: Option<&Stall>, now: Instant) -> Option<Change> {
        match (stall, self.told) {
            (Some(Stall::Full(why)), told) => {
                self.told = Some(now);
                told.is_none().then(|| Change::Full(why.clone()))
            }
            // Whoever ends for a broken log says so.
            (Some(Stall::Broken(_)), _) => None,
            (None, Some(seen)) if now.saturating_duration_since(seen) >= FULL_OVER_AFTER => {
                self.told = None;
                Some(Change::Over)
            }
            (None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn an_address_is_told_once_in_a_while_with_how_many_came() {
        let (mut strangers, mut refusals, start) = (Strangers::default(), Refusals::default(), Instant::now());
        let second = Duration::from_secs(1);
        refusals.add(address(1), Port::Replicas, LinkRefusal::Version);
        let told = strangers.due(&refusals, start);
        assert_eq!((told[0].0, told[0].1.count, told[0].1.reason), (address(1), 1, LinkRefusal::Version));
        (0..5).for_each(|_| refusals.add(address(1), Port::Replicas, LinkRefusal::ForeignCluster));
        assert_eq!(strangers.due(&refusals, start + 59 * second), []);
        let told = strangers.due(&refusals, start + 60 * second);
        assert_eq!((told[0].1.count, told[0].1.reason), (5, LinkRefusal::ForeignCluster));
        assert_eq!(strangers.due(&refusals, start + 600 * second), [], "nobody came");
    }

    #[test]
    fn many_addresses_write_no_more_lines_and_take_no_more_memory() {
        let (mut strangers, start) = (Strangers::default(), Instant::now());
        for minute in 0..10 {
            let mut lines = 0;
            for number in 0..1_000 {
                // Of each ever others are remembered.
                let mut refusals = Refusals::default();
                refusals.add(address(minute * 1_000 + number), Port::Clients, LinkRefusal::NotBezant);
                lines += strangers.due(&refusals, start + u32::from(minute as u16) * REFUSED_REPEAT_AFTER).len();
            }
            assert_eq!(lines, REFUSED_LINES_MAX);
            assert!(strangers.told.len() <= 2 * REFUSED_LINES_MAX, "{}", strangers.told.len());
        }
    }

    #[test]
    fn a_full_disk_is_told_once_for_each_occurrence() {
        let full = Stall::Full("/a: no space left".to_owned());
        let start = Instant::now();
        let mut disk = FullDisk::default();
        let mut at = |ms: u64, stall: Option<&Stall>| disk.change(stall, start + Duration::from_millis(ms));
        assert_eq!(at(0, None), None);
        assert_eq!(at(100, Some(&full)), Some(Change::Full("/a: no space left".to_owned())));
        assert_eq!(at(200, Some(&full)), None);
        assert_eq!(at(300, None), None, "it may be full again in a moment");
        assert_eq!(at(5_000, Some(&full)), None);
        assert_eq!(at(14_999, None), None);
        assert_eq!(at(15_000, None), Some(Change::Over));
        assert_eq!(at(16_000, None), None);
        assert!(matches!(at(17_000, Some(&full)), Some(Change::Full(_))), "another occurrence");
        assert_eq!(at(18_000, Some(&Stall::Broken("fsync".to_owned()))), None);
    }
}
