//! Links that rest: those over which frames come slowly, see [`super::super::pace`], those in quarantine until their
//! next ration, and those of clients that have had what the level allows ([`super::level`]). Or whoever sends many
//! packets would wake this hub for each, and every pass that it begins ends a batch of everybody else.

use super::super::RESTING_MAX;
use super::super::close_reason::CloseReason;
use super::super::link::{INTEREST, LinkId};
use super::Hub;
use mio::Token;
use std::cmp::Reverse;
use std::time::Instant;

impl Hub {
    /// So many bytes came over a link. If that emptied it in the middle of a frame that comes slowly, it rests.
    pub(super) fn rest_if_slow(&mut self, index: u32, count: usize) {
        let Some(link) = self.links[index as usize].as_mut() else { return };
        let Some(rest) = link.pace.rest(self.now, count, !link.readable, link.input.missing()) else { return };
        self.leave_alone(index, self.now + rest);
    }

    /// A link in quarantine has had what there is for it now.
    pub(super) fn rest_until_a_ration(&mut self, index: u32) {
        if let Some(until) = self.next_ration_of(index) {
            self.leave_alone(index, until);
        }
    }

    /// Whether it rests now: there is a bound to how many do.
    pub(super) fn leave_alone(&mut self, index: u32, until: Instant) -> bool {
        let Some(link) = self.links[index as usize].as_mut() else { return false };
        if !link.rests && self.resting.len() < RESTING_MAX && self.poll.registry().deregister(&mut link.socket).is_ok()
        {
            link.rests = true;
            self.resting.push(Reverse((until, LinkId { index, generation: link.generation })));
        }
        link.rests
    }

    /// Those whose time has come are listened to again, before it is asked what is ready: what has come meanwhile is
    /// told at once, and that there is room to write.
    pub(super) fn listen_again(&mut self, now: Instant) {
        while let Some(&Reverse((until, id))) = self.resting.peek()
            && until <= now
        {
            self.resting.pop();
            let registry = self.poll.registry();
            let Some(link) = self.links[id.index as usize].as_mut().filter(|it| it.generation == id.generation) else {
                continue;
            };
            link.rests = false;
            if registry.register(&mut link.socket, Token(id.index as usize), INTEREST).is_err() {
                self.close(id.index, CloseReason::Failed);
            } else if link.is_unread() {
                self.enqueue(id.index);
            }
        }
    }
}
