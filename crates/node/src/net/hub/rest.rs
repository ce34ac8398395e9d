//! Links that rest: see [`super::super::pace`].

use super::super::RESTING_MAX;
use super::super::close_reason::CloseReason;
use super::super::link::{INTEREST, LinkId};
use super::Hub;
use mio::Token;

impl Hub {
    /// So many bytes came over a link. If that emptied it in the middle of a frame that comes slowly, it rests.
    pub(super) fn rest_if_slow(&mut self, index: u32, count: usize) {
        let Some(link) = self.links[index as usize].as_mut() else { return };
        let Some(rest) = link.pace.rest(self.now, count, !link.readable, link.input.missing()) else { return };
        if self.resting.len() < RESTING_MAX && self.poll.registry().deregister(&mut link.socket).is_ok() {
            self.resting.push((self.now + rest, LinkId { index, generation: link.generation }));
        }
    }

    /// Those whose time has come are listened to again: what has come meanwhile is told at once.
    pub(super) fn listen_again(&mut self) {
        let mut place = 0;
        while let Some(&(until, id)) = self.resting.get(place) {
            if until > self.now {
                place += 1;
                continue;
            }
            self.resting.swap_remove(place);
            let registry = self.poll.registry();
            let Some(link) = self.links[id.index as usize].as_mut().filter(|it| it.generation == id.generation) else {
                continue;
            };
            if registry.register(&mut link.socket, Token(id.index as usize), INTEREST).is_err() {
                self.close(id.index, CloseReason::Failed);
            }
        }
    }
}
