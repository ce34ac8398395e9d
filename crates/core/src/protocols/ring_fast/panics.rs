//! What a replica does for clients that panic: steps R6 to R8 of the [module](super).

use crate::cluster::ClientId;
use crate::machine::{Duration, Instant};
use crate::message::Request;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A signed request, for which this replica has a timer.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    /// When it stops, unless it knows by then that every correct replica has executed the request.
    until: Instant,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Panics {
    /// At most one of each client.
    asked: BTreeMap<ClientId, Asked>,
    /// Every correct replica has executed everything up to this position, as this replica has.
    certain: u64,
    /// The number of the last probe, and when it was sent, if it is under way.
    probe: (u64, Option<Instant>),
}

impl Panics {
    /// A client asks. A timer that runs already goes on: who panics again and again must not put off its end (F17).
    /// Whether there was room.
    pub(super) fn ask(&mut self, request: Request, until: Instant, most: usize) -> bool {
        let client = request.client;
        if let Some(asked) = self.asked.get_mut(&client) {
            if asked.request.timestamp < request.timestamp {
                *asked = Asked { request, until };
            }
            return true;
        }
        let room = self.asked.len() < most;
        if room {
            self.asked.insert(client, Asked { request, until });
        }
        room
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.asked.values().map(|asked| asked.request.clone()).collect()
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        self.asked.remove(&client);
    }

    /// When the first timer comes due.
    pub(super) fn until(&self) -> Option<Instant> {
        self.asked.values().map(|asked| asked.until).min()
    }

    pub(super) const fn is_certain(&self, position: u64) -> bool {
        position <= self.certain
    }

    /// The number of a probe that is to be sent now, unless one is under way. One that takes too long is lost.
    pub(super) fn next_probe(&mut self, now: Instant, patience: Duration) -> Option<u64> {
        if self.probe.1.is_some_and(|since| now - since < patience) {
            return None;
        }
        self.probe = (self.probe.0 + 1, Some(now));
        Some(self.probe.0)
    }

    /// A probe has come back and says that all have come up to here. Whether it was the one that is under way.
    pub(super) fn came_back(&mut self, number: u64, position: u64) -> bool {
        let expected = self.probe.1.is_some() && self.probe.0 == number;
        if expected {
            self.probe.1 = None;
            self.certain = self.certain.max(position);
        }
        expected
    }
}
