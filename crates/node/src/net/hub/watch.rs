//! Looks at links, asks those that are silent, and closes those that are dead: see [`super::super::watch`].

use super::super::link::Link;
use super::super::output::Lane;
use super::super::watch::{ANSWER, QUESTION, Verdict};
use super::Hub;
use std::time::{Duration, Instant};

/// How often links are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

impl Hub {
    /// Whether there is a link that has to be looked at.
    pub(super) const fn has_links(&self) -> bool {
        self.metrics.replicas.connections + self.metrics.clients.connections > 0
    }

    /// Looks at every link, if it is time to.
    pub(super) fn check_links(&mut self) {
        if self.now < self.look_at {
            return;
        }
        self.look_at = self.now + LOOK_INTERVAL;
        self.look_at_quarantines();
        self.look_at_level();
        for index in 0..self.links.len() as u32 {
            match self.links[index as usize].as_mut().map_or(Verdict::Well, |link| verdict(link, self.now)) {
                Verdict::Well => {}
                Verdict::Ask => self.say(index, QUESTION),
                Verdict::Dead(reason) => self.close(index, reason),
            }
        }
    }

    fn say(&mut self, index: u32, what: [u8; 1]) {
        let Some(link) = self.links[index as usize].as_mut() else { return };
        link.queue(Lane::Express, &what.to_vec().into(), &[]);
        self.mark_dirty(index);
    }

    /// The other side asks whether we hear, or says that it does, which was noted when its bytes came.
    pub(super) fn on_link_frame(&mut self, index: u32, frame: &[u8]) {
        let has_something_to_say = self.links[index as usize].as_ref().is_none_or(|link| link.pending() > 0);
        if frame == QUESTION && !has_something_to_say {
            self.say(index, ANSWER);
        }
    }
}

/// Handshakes have a time of their own.
fn verdict(link: &mut Link, now: Instant) -> Verdict {
    if link.peer().is_none() {
        return Verdict::Well;
    }
    let (unread, frame_under_way) = (link.is_unread() || link.queued, link.is_in_a_frame());
    link.watch.judge(now, unread, frame_under_way)
}
