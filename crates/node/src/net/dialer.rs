//! Keeps one link to one replica: dials, waits after a failure, dials again.
//!
//! Between replicas the higher number dials the lower, so that there is one link per pair and no race to settle.
//! Clients dial every replica.

use super::handshake::Peer;
use super::hub::Hub;
use super::link::{CloseReason, LinkId};
use bezant_core::cluster::ReplicaId;
use bezant_core::machine::{Duration, Instant};
use std::net::SocketAddr;

/// The first wait after a failure.
const BACKOFF: Duration = Duration::from_millis(20);
/// The longest wait.
const BACKOFF_MAX: Duration = Duration::from_millis(1000);

/// Whom to dial, and as whom.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
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
    next: Instant,
    last: Option<CloseReason>,
}

impl Dialer {
    /// Will dial at the first [`Dialer::tick`].
    pub const fn new(target: Target) -> Self {
        Self { target, link: None, up: false, failures: 0, next: Instant(0), last: None }
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
        let wait = BACKOFF.doubled(self.failures.min(16), BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        let mut random = [0; 2];
        // Without randomness the waits are equal, which costs no more than a little crowding.
        let _ = getrandom::fill(&mut random);
        let jitter = wait.0 * u64::from(u16::from_le_bytes(random)) / (2 * u64::from(u16::MAX));
        self.next = now + Duration(wait.0 / 2 + jitter);
    }

    /// Dials if it is time to. Returns when to call again, `None` if a link exists.
    pub fn tick(&mut self, hub: &mut Hub, now: Instant) -> Option<Instant> {
        if self.link.is_some() {
            return None;
        }
        if now >= self.next {
            match hub.dial(self.target.address, self.target.replica, self.target.who) {
                Ok(link) => {
                    self.link = Some(link);
                    return None;
                }
                Err(_) => self.on_down(CloseReason::Unreachable, now),
            }
        }
        Some(self.next)
    }
}
