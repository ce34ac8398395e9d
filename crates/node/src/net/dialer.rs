//! Keeps one link to one replica: dials, waits after a failure, dials again.
//!
//! Between replicas the higher number dials the lower, so that there is one link per pair and no race to settle.
//! Clients dial every replica.

use super::close_reason::CloseReason;
use super::handshake::Peer;
use super::hub::Hub;
use super::link::LinkId;
use crate::config::Place;
use bezant_core::ids::ReplicaId;
use bezant_core::time::{Duration, Instant};

/// The first wait after a failure.
const BACKOFF: Duration = Duration::from_millis(20);
/// The longest wait of the one that is to find out when a replica is back. Until then every request may have to wait.
const PROBE_MAX: Duration = Duration::from_millis(100);
/// The longest wait of the others, who are told: a client may have thousands of connections.
const BACKOFF_MAX: Duration = Duration::from_millis(1000);

/// Whom to dial, and as whom.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it listens.
    pub place: Place,
    /// Who must answer there.
    pub replica: ReplicaId,
    /// Who we say that we are.
    pub who: Peer,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Dialer {
    target: Target,
    link: Option<LinkId>,
    up: bool,
    failures: u32,
    wait_max: Duration,
    next: Instant,
    last: Option<CloseReason>,
}

impl Dialer {
    /// Will dial at the first [`Dialer::tick`]. One of those who have the same target is to find out when it is back,
    /// and tries more often.
    pub const fn new(target: Target, finds_out: bool) -> Self {
        let wait_max = if finds_out { PROBE_MAX } else { BACKOFF_MAX };
        Self { target, link: None, up: false, failures: 0, wait_max, next: Instant(0), last: None }
    }

    /// Another one has reached the target: it is worth trying.
    pub fn hurry(&mut self, now: Instant) {
        if self.link.is_none() {
            self.failures = 0;
            self.next = self.next.min(now + jittered(BACKOFF));
        }
    }

    /// The link, up or on its way.
    pub const fn link(&self) -> Option<LinkId> {
        self.link
    }

    /// Whether the link is up.
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Why the last link ended, `None` if none has.
    pub const fn last(&self) -> Option<CloseReason> {
        self.last
    }

    /// The link is authenticated.
    pub const fn on_up(&mut self) {
        self.up = true;
        self.failures = 0;
    }

    /// The link is gone. The wait before the next attempt doubles with each failure and varies by half, so that
    /// many clients of one replica do not come back all at once.
    pub fn on_down(&mut self, reason: CloseReason, now: Instant) {
        self.link = None;
        self.up = false;
        self.last = Some(reason);
        let wait = BACKOFF.doubled(self.failures.min(16), self.wait_max);
        self.failures = self.failures.saturating_add(1);
        self.next = now + jittered(wait);
    }

    /// Dials if it is time to. Returns when to call again, `None` if a link exists.
    pub fn tick(&mut self, hub: &mut Hub, now: Instant) -> Option<Instant> {
        if self.link.is_some() {
            return None;
        }
        if now >= self.next {
            let Target { place, replica, who } = &self.target;
            match place.get().map(|address| hub.dial(address, *replica, *who)) {
                Some(Ok(link)) => {
                    self.link = Some(link);
                    return None;
                }
                Some(Err(_)) => self.on_down(CloseReason::Unreachable, now),
                None => self.on_down(CloseReason::Unresolved, now),
            }
        }
        Some(self.next)
    }
}

/// A random wait of at least half of this one, and at most all of it.
fn jittered(wait: Duration) -> Duration {
    let mut random = [0; 2];
    // Without randomness the waits are equal, which costs no more than a little crowding.
    let _ = getrandom::fill(&mut random);
    let jitter = wait.0 * u64::from(u16::from_le_bytes(random)) / (2 * u64::from(u16::MAX));
    Duration(wait.0 / 2 + jitter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::ids::IdentityId;
    use std::net::SocketAddr;

    fn dialer(finds_out: bool) -> Dialer {
        let who = Peer::Client { identity: IdentityId(1), first: 0, sessions: 1 };
        let target = Target { place: SocketAddr::from(([127, 0, 0, 1], 1)).into(), replica: ReplicaId(0), who };
        Dialer::new(target, finds_out)
    }

    fn wait_after(failures: u32, dialer: &mut Dialer) -> Duration {
        let now = Instant(1_000_000);
        (0..failures).for_each(|_| dialer.on_down(CloseReason::Unreachable, now));
        dialer.next - now
    }

    #[test]
    fn waits_grow_to_a_bound_that_is_short_for_the_one_that_finds_out() {
        for (finds_out, most) in [(true, PROBE_MAX), (false, BACKOFF_MAX)] {
            let first = wait_after(1, &mut dialer(finds_out));
            assert!(first <= BACKOFF && first.0 >= BACKOFF.0 / 2, "{first:?}");
            let last = wait_after(100, &mut dialer(finds_out));
            assert!(last <= most && last.0 >= most.0 / 2, "{last:?}");
        }
    }

    #[test]
    fn who_is_told_tries_at_once_unless_it_is_connected() {
        let mut dialer = dialer(false);
        let now = Instant(1_000_000);
        assert!(wait_after(100, &mut dialer).0 > BACKOFF.0);
        dialer.hurry(now);
        assert!(dialer.next - now <= BACKOFF);
        dialer.hurry(now + BACKOFF_MAX);
        assert!(dialer.next - now <= BACKOFF, "being told twice makes it no later");
    }
}
