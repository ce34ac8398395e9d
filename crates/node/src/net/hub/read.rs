//! Visits: each readable link in turn, up to its share, one frame at a time.

use super::super::close_reason::CloseReason;
use super::super::handshake::{Handshake, LinkRefusal, Peer, Progress};
use super::super::link::{LinkId, ReadOutcome, State};
use super::super::watch::is_for_the_link;
use super::super::worth::Worth;
use super::super::{
    CLIENT_PASS_BYTES_MAX, CLIENT_VISIT_MS_MAX, PASS_BYTES_MAX, PASS_FRAMES_MAX, PASS_MS_MAX, SHAKING_PASS_MS_MAX,
};
use super::level::FRAME_BYTES;
use super::{CLIENTS, Event, Hub, QUEUES, RATIONED_CLIENTS, RATIONED_REPLICAS, REPLICAS, SHAKING, Visit, class};
use bytes::Bytes;
use std::time::{Duration, Instant};

impl Hub {
    /// The next thing that happened in this pass.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let visit = match self.visit {
                Some(visit) => visit,
                None => self.begin_visit()?,
            };
            if let Some(event) = self.advance(visit) {
                return Some(event);
            }
        }
    }

    fn begin_visit(&mut self) -> Option<Visit> {
        for queue in 0..QUEUES {
            while self.has_left(queue) {
                self.visits_left[queue] = self.visits_left[queue].saturating_sub(1);
                let Some(id) = self.queues[queue].pop_front() else { break };
                // Its place may be another link's by now, which is queued for itself.
                let Some(link) = self.link(id).filter(|link| link.queued) else { continue };
                link.queued = false;
                let index = id.index;
                // A quarantine has begun or ended since it was queued: the next pass reads it in its place.
                let visit = (self.queue_of(index) == queue).then(|| self.visit_of(queue, index)).flatten();
                if visit.is_none() {
                    self.enqueue(index);
                    self.rest_until_a_ration(index);
                    continue;
                }
                self.visit = visit;
                return visit;
            }
        }
        None
    }

    /// Whether another link of this queue may be visited in this pass. If clients have nothing left of what is for all
    /// of them, none is looked at: there may be thousands. Those in quarantine take turns until all of their ration is
    /// gone: a pass for each frame of it would cost everybody more than the frames do.
    fn has_left(&mut self, queue: usize) -> bool {
        match queue {
            SHAKING => self.visits_left[queue] > 0 && self.shaking_until.is_none_or(|until| Instant::now() < until),
            CLIENTS => self.visits_left[queue] > 0 && self.client_bytes_left > 0 && self.client_frames_left > 0,
            RATIONED_CLIENTS => self.rations.has_left_for_clients(self.now),
            _ => self.visits_left[queue] > 0,
        }
    }

    /// A visit of a link that is in this queue. `None`: there is nothing left for it.
    fn visit_of(&mut self, queue: usize, index: u32) -> Option<Visit> {
        let rationed = queue == RATIONED_REPLICAS || queue == RATIONED_CLIENTS;
        let (bytes_left, frames_left) = match queue {
            REPLICAS => (PASS_BYTES_MAX, PASS_FRAMES_MAX),
            // Whoever is known after it has its turn among its own.
            SHAKING => (CLIENT_PASS_BYTES_MAX, 1),
            CLIENTS => (self.client_bytes_left.min(CLIENT_PASS_BYTES_MAX), self.client_frames_left),
            _ => self.ration_of(index)?,
        };
        let end = |ms| Instant::now() + Duration::from_millis(ms);
        let until = match queue {
            SHAKING => *self.shaking_until.get_or_insert_with(|| end(SHAKING_PASS_MS_MAX)),
            CLIENTS => {
                let of_all = *self.clients_until.get_or_insert_with(|| end(PASS_MS_MAX));
                of_all.min(end(CLIENT_VISIT_MS_MAX))
            }
            _ => end(PASS_MS_MAX),
        };
        // Each in turn: the ration is that of all such clients.
        let frames_left = if queue == RATIONED_CLIENTS { 1 } else { frames_left };
        Some(Visit { index, bytes_left, frames_left, until, rationed })
    }

    /// One frame or one read of the visited link.
    fn advance(&mut self, mut visit: Visit) -> Option<Event> {
        if !visit.rationed && self.rest_at_level(visit.index) {
            self.visit = None;
            self.account(visit.index);
            return None;
        }
        let Some(Some(link)) = self.links.get_mut(visit.index as usize) else {
            self.visit = None;
            return None;
        };
        let client = link.is_client_class();
        let frame = link.input.next(link.frame_bytes_max());
        match frame {
            Ok(Some(frame)) => {
                visit.frames_left -= 1;
                link.frames.came += 1;
                let id = LinkId { index: visit.index, generation: link.generation };
                let peer = link.peer();
                let now = Instant::now();
                if now >= visit.until {
                    visit.frames_left = 0;
                }
                if visit.rationed {
                    self.take_ration(visit.index, 0, 1);
                } else if client {
                    let is_over = self.clients_until.is_some_and(|until| now >= until);
                    self.client_frames_left = if is_over { 0 } else { self.client_frames_left.saturating_sub(1) };
                }
                self.visit = (visit.frames_left > 0).then_some(visit);
                if self.visit.is_none() {
                    self.enqueue(visit.index);
                    if visit.rationed {
                        self.rest_until_a_ration(visit.index);
                    }
                }
                return match peer {
                    Some(_) if is_for_the_link(&frame) => {
                        self.on_link_frame(visit.index, &frame);
                        None
                    }
                    Some(peer) => {
                        class(&mut self.metrics, client).frames_in += 1;
                        if client {
                            self.charge(visit.index, FRAME_BYTES);
                        }
                        Some(Event::Frame(id, peer, frame))
                    }
                    None => {
                        self.shake(id, frame);
                        None
                    }
                };
            }
            Ok(None) => self.read_more(visit, client),
            Err(_) if let Some(peer) = link.peer() => {
                self.judge(peer, 0, Worth::Failed);
                self.close(visit.index, CloseReason::Oversized);
            }
            Err(_) => self.refuse(visit.index, LinkRefusal::NotBezant, &Handshake::refuse(LinkRefusal::NotBezant)),
        }
        None
    }

    fn read_more(&mut self, mut visit: Visit, client: bool) {
        let Some(link) = self.links[visit.index as usize].as_mut() else { return };
        if !link.readable || visit.bytes_left == 0 {
            self.visit = None;
            if link.readable {
                self.enqueue(visit.index);
            }
            if visit.rationed {
                self.rest_until_a_ration(visit.index);
            }
            self.account(visit.index);
            return;
        }
        self.metrics.reads += 1;
        match link.read(&mut self.gulp, &mut self.sealed) {
            ReadOutcome::Some(count) => {
                visit.bytes_left = visit.bytes_left.saturating_sub(count);
                link.watch.heard(count);
                if visit.rationed {
                    self.take_ration(visit.index, count, 0);
                } else if client {
                    self.charge(visit.index, count as u64);
                    self.client_bytes_left = self.client_bytes_left.saturating_sub(count);
                }
                self.rest_if_slow(visit.index, count);
                class(&mut self.metrics, client).bytes_in += count as u64;
                self.visit = Some(visit);
                self.mark_dirty(visit.index);
            }
            ReadOutcome::TlsFailed => self.close(visit.index, CloseReason::TlsFailed),
            ReadOutcome::Nothing => self.visit = Some(visit),
            ReadOutcome::Ended => self.close(visit.index, CloseReason::Ended),
            ReadOutcome::Failed => self.close(visit.index, CloseReason::Failed),
        }
    }

    fn shake(&mut self, id: LinkId, frame: Bytes) {
        let Some(Some(link)) = self.links.get_mut(id.index as usize) else { return };
        let State::Shaking(handshake) = &mut link.state else { return };
        match handshake.receive(frame, &self.keyring) {
            Progress::Reply(reply) => link.queue_handshake(reply),
            Progress::Done(peer, reply) => return self.admit(id, peer, reply),
            Progress::Refused(reason, reply) => return self.refuse(id.index, reason, &reply),
            Progress::OtherService(theirs) => {
                return self.close(id.index, CloseReason::OtherService { ours: self.service, theirs });
            }
            Progress::RefusedByPeer(reason) => return self.close(id.index, CloseReason::RefusedByPeer(reason)),
        }
        self.mark_dirty(id.index);
    }

    /// The other side has proved who it is. It is let in unless all places are taken.
    fn admit(&mut self, id: LinkId, peer: Peer, reply: Option<Vec<u8>>) {
        let from = self.link(id).and_then(|link| link.from);
        if self.is_at_wrong_door(peer, from) {
            let reason = LinkRefusal::WrongParty;
            return self.refuse(id.index, reason, &Handshake::refuse(reason));
        }
        if peer.is_client() {
            if !self.has_place(peer) {
                let reason = LinkRefusal::TooMany;
                return self.refuse(id.index, reason, &Handshake::refuse(reason));
            }
            self.shares.enter(peer);
        }
        let Some(Some(link)) = self.links.get_mut(id.index as usize) else { return };
        if let Some(reply) = reply {
            link.queue_handshake(reply);
        }
        link.up(peer, self.now);
        if let Some((_, from)) = link.from {
            self.debts.proved(peer, from, self.now);
        }
        class(&mut self.metrics, link.is_client_class()).connections += 1;
        self.events.push_back(Event::Up(id, peer));
        self.mark_dirty(id.index);
    }

    fn refuse(&mut self, index: u32, reason: LinkRefusal, reply: &[u8]) {
        let Some(link) = self.links[index as usize].as_mut() else { return };
        link.queue_handshake(reply.to_vec());
        // Best effort: whoever does not take these few bytes at once never learns why.
        let _ = link.write();
        let theirs = match &link.state {
            State::Shaking(handshake) if reason == LinkRefusal::OtherService => handshake.other_service(),
            _ => None,
        };
        *self.metrics.refused.entry(reason).or_default() += 1;
        if let Some((port, from)) = link.from {
            self.metrics.refused_from.add(from, port, reason);
        }
        self.close(
            index,
            match theirs {
                Some(theirs) => CloseReason::OtherService { ours: self.service, theirs },
                None => CloseReason::Refused(reason),
            },
        );
    }
}
