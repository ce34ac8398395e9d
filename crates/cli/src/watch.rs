//! What an operator has to hear of a running replica, as log lines: a link that is refused, a disk that is full.
//! Each once for each occurrence, whatever others do.

use bezant_node::net::CloseReason;
use bezant_node::replica::{PeerStatus, Stall, Status};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// For how long there must have been space before a full disk counts as another occurrence: one that is nearly full
/// takes a record now and then.
const FULL_OVER_AFTER: Duration = Duration::from_secs(10);

/// Remembers what has been told.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Links refused, by replica and kind of reason: a liar could give ever another build of its service.
    links: BTreeSet<(u8, &'static str)>,
    disk: FullDisk,
}

impl Watch {
    /// Looks at what the replica published last, and tells what is new.
    pub(crate) fn look(&mut self, status: &Status) {
        self.tell_links(&status.peers);
        match self.disk.change(status.stall.as_ref(), Instant::now()) {
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
