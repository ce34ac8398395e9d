//! What leaves: queued in a pass, and written at its end.

use super::super::close_reason::CloseReason;
use super::super::link::{Link, LinkId, State};
use super::super::output::Lane;
use super::super::{CLIENT_PASS_BYTES_MAX, CLIENT_QUEUE_BYTES_MAX, REPLICA_QUEUE_BYTES_MAX};
use super::{Hub, class, link_in};
use bezant_core::wire::Rope;

impl Hub {
    /// Queues one frame made of `body` and `tail`, and says whether it did. It leaves with [`Hub::flush`], or when the
    /// link is up. A frame for a link that is gone or full is dropped and counted.
    pub fn send(&mut self, id: LinkId, lane: Lane, body: &Rope, tail: &[u8]) -> bool {
        let Some(Some(link)) = self.links.get_mut(id.index as usize) else { return false };
        if link.generation != id.generation {
            return false;
        }
        let client = matches!(link.state, State::Up(peer) if peer.is_client());
        let full = link.pending() > if client { CLIENT_QUEUE_BYTES_MAX } else { REPLICA_QUEUE_BYTES_MAX };
        let queued = match link.state {
            State::Up(_) if full => false,
            State::Up(_) => {
                link.queue(lane, body, tail);
                link.watch.said(self.now);
                link.frames.went += 1;
                true
            }
            State::Shaking(_) => link.queue_early(body, tail),
        };
        let traffic = class(&mut self.metrics, client);
        if queued {
            // Of what is stuck nothing will be written in this pass, and much is not to wait until it is over.
            let counts = !link.writable || link.pending() > CLIENT_PASS_BYTES_MAX;
            traffic.frames_out += 1;
            self.mark_dirty(id.index);
            if client && counts {
                self.account(id.index);
            }
        } else {
            traffic.frames_dropped += 1;
            if client {
                self.close(id.index, CloseReason::NeverReads);
            }
        }
        queued
    }

    /// Whether a link has not sent what it was given before this pass.
    pub fn is_behind(&self, id: LinkId) -> bool {
        link_in(&self.links, id).is_some_and(|link| !link.writable)
    }

    /// Writes to every link for which something was queued.
    pub fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            let Some(Some(link)) = self.links.get_mut(index as usize) else { continue };
            link.dirty = false;
            let client = link.is_client_class();
            match link.write() {
                Ok((bytes, calls)) => {
                    link.watch.wrote(bytes, link.pending());
                    self.metrics.writes += calls;
                    class(&mut self.metrics, client).bytes_out += bytes;
                    self.account(index);
                }
                Err(_) => self.close(index, CloseReason::Failed),
            }
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    /// Bytes queued on all links and not written.
    pub fn pending(&self) -> usize {
        self.links.iter().flatten().map(Link::pending).sum()
    }
}
