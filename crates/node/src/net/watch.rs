//! Links that are dead although nobody has closed them, and frames that never end.
//!
//! What ends TCP on the way (a balancer, a sidecar, a tunnel) may go silent and keep both connections open: it
//! acknowledges what it gets, and nothing below us notices. So whoever was spoken to and says nothing for
//! [`SILENT_MS_MAX`] is asked whether it still hears, and answers at once, whether or not it has anything to say. If
//! nothing at all comes within [`ANSWER_MS_MAX`], the link is closed, and whoever dialled it dials again.
//!
//! As long as what waits here leaves bit by bit, time does not count: a slow link is not a silent one. An idle link is
//! never asked. Who is asked while something of its own waits to be
//! written says nothing more: what waits is an answer. So questions cost one small frame for each that was heard, and
//! whoever does not answer loses its own link. Both sides ask, since each direction may die alone.
//!
//! A frame that has begun has to go on, too: [`FRAME_WINDOW_BYTES`] in every [`FRAME_WINDOW_SECONDS`]. Nothing is held
//! against the other side while bytes of it wait to be read: then we are the ones who are slow.

use super::close_reason::CloseReason;
use super::{ANSWER_MS_MAX, FRAME_WINDOW_BYTES, FRAME_WINDOW_SECONDS, SILENT_MS_MAX};
use std::time::{Duration, Instant};

/// Do you hear me? Frames of one byte are for the link: no message is so short.
pub(super) const QUESTION: [u8; 1] = *b"?";
/// I do.
pub(super) const ANSWER: [u8; 1] = *b"!";

/// Whether a frame is about the link itself.
pub(super) fn is_for_the_link(frame: &[u8]) -> bool {
    frame == QUESTION || frame == ANSWER
}

/// What to do about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Well,
    Ask,
    Dead(CloseReason),
}

/// What is known about one link.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// When something was sent after which nothing has been heard.
    unanswered: Option<Instant>,
    /// When the other side was asked whether it hears.
    asked: Option<Instant>,
    /// Bytes that were heard.
    heard: u64,
    /// Whether a part of what waits has left since the last look, and not all of it.
    goes_on: bool,
    /// While a frame is under way: since when it is watched, and how much had been heard then.
    frame: Option<(Instant, u64)>,
}

impl Watch {
    /// Something was sent that the other side will not leave without an answer, or a sign of life.
    pub(super) fn said(&mut self, now: Instant) {
        self.unanswered.get_or_insert(now);
    }

    /// So many bytes came.
    pub(super) const fn heard(&mut self, bytes: usize) {
        self.heard += bytes as u64;
        self.unanswered = None;
        self.asked = None;
    }

    /// So many bytes left, and so many still wait.
    pub(super) const fn wrote(&mut self, bytes: u64, waiting: usize) {
        self.goes_on |= bytes > 0 && waiting > 0;
    }

    /// The other side has to have time to be heard, or to hear us, from now on.
    fn begin_again(&mut self, now: Instant) {
        self.unanswered = self.unanswered.map(|_| now);
        self.asked = self.asked.map(|_| now);
    }

    /// What to do about the link. With `unread` bytes we are the ones who are slow.
    pub(super) fn judge(&mut self, now: Instant, unread: bool, frame_under_way: bool) -> Verdict {
        let goes_on = std::mem::take(&mut self.goes_on);
        if unread || goes_on {
            self.begin_again(now);
        }
        if unread {
            self.frame = None;
        }
        self.check(now, frame_under_way)
    }

    fn check(&mut self, now: Instant, frame_under_way: bool) -> Verdict {
        if !frame_under_way {
            self.frame = None;
        } else if let Some((since, before)) = self.frame {
            if now - since >= Duration::from_secs(FRAME_WINDOW_SECONDS) {
                if self.heard - before < FRAME_WINDOW_BYTES {
                    return Verdict::Dead(CloseReason::Stalled);
                }
                self.frame = Some((now, self.heard));
            }
        } else {
            self.frame = Some((now, self.heard));
        }
        match (self.unanswered, self.asked) {
            (_, Some(asked)) if now - asked >= Duration::from_millis(ANSWER_MS_MAX) => {
                Verdict::Dead(CloseReason::Silent)
            }
            (Some(since), None) if now - since >= Duration::from_millis(SILENT_MS_MAX) => {
                self.asked = Some(now);
                Verdict::Ask
            }
            _ => Verdict::Well,
        }
    }
}
