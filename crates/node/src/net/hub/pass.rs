//! The beginning of a pass: what is ready, and whose turn it is.

use super::super::close_reason::CloseReason;
use super::super::{HANDSHAKE_SECONDS_MAX, PASS_BYTES_MAX, PASS_FRAMES_MAX};
use super::{CLIENTS, FIRST_LISTENER, Hub, REPLICAS, SHAKING, WAKER, prepare};
use mio::{Events, Token};
use std::cmp::Reverse;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

impl Hub {
    /// Waits until something happens, at most `timeout`, and begins a pass.
    ///
    /// # Errors
    /// If the system's readiness queue fails; there is no going on.
    pub fn poll(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let now = Instant::now();
        self.listen_again(now);
        let timeout = self.shortest(timeout, now);
        self.metrics.polls += 1;
        match self.poll.poll(&mut self.ready, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => self.ready.clear(),
            other => other?,
        }
        let ready = std::mem::replace(&mut self.ready, Events::with_capacity(0));
        for event in &ready {
            match event.token() {
                WAKER => {}
                Token(token) if token >= FIRST_LISTENER => self.listeners[token - FIRST_LISTENER].acceptable = true,
                Token(index) => self.on_ready(index as u32, event),
            }
        }
        self.ready = ready;
        self.now = Instant::now();
        self.expire(self.now);
        self.check_links();
        for listener in 0..self.listeners.len() {
            self.accept(listener);
        }
        self.visits_left = std::array::from_fn(|queue| self.queues[queue].len());
        self.client_bytes_left = PASS_BYTES_MAX;
        self.client_frames_left = PASS_FRAMES_MAX;
        (self.clients_until, self.shaking_until) = (None, None);
        Ok(())
    }

    fn shortest(&mut self, timeout: Option<Duration>, now: Instant) -> Option<Duration> {
        let busy =
            !self.events.is_empty() || [REPLICAS, SHAKING, CLIENTS].iter().any(|queue| !self.queues[*queue].is_empty());
        if busy || self.listeners.iter().any(|listener| listener.acceptable && listener.rest_until.is_none()) {
            return Some(Duration::ZERO);
        }
        let rests = self.listeners.iter().filter_map(|listener| listener.rest_until);
        let shaking = self.listeners.iter().map(|listener| &listener.shaking).chain([&self.dialling]);
        let oldest = shaking.filter_map(|queue| {
            let link = self.links.get(queue.front()?.index as usize)?.as_ref()?;
            Some(link.opened + Duration::from_secs(HANDSHAKE_SECONDS_MAX))
        });
        let look = self.has_links().then_some(self.look_at);
        let wait = rests
            .chain(oldest)
            .chain(look)
            .min()
            .map(|at| at.saturating_duration_since(now) + Duration::from_millis(1));
        let rested = self.resting.peek().map(|Reverse((until, _))| until.saturating_duration_since(now));
        let wait = wait.into_iter().chain(rested).chain(self.until_a_ration(now)).min();
        match (timeout, wait) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn on_ready(&mut self, index: u32, event: &mio::event::Event) {
        let Some(Some(link)) = self.links.get_mut(index as usize) else { return };
        if event.is_writable() {
            link.writable = true;
            if !link.connected && !self.on_connected(index) {
                return;
            }
            self.mark_dirty(index);
        }
        let Some(link) = self.links[index as usize].as_mut() else { return };
        if event.is_read_closed() || event.is_error() {
            link.ending = true;
        }
        if event.is_readable() || link.ending {
            link.readable = true;
            self.enqueue(index);
        }
    }

    /// The call to connect has ended. False if the link is gone.
    fn on_connected(&mut self, index: u32) -> bool {
        let Some(link) = self.links[index as usize].as_mut() else { return false };
        let failed = !matches!(link.socket.take_error(), Ok(None));
        match link.socket.peer_addr() {
            Ok(_) if !failed => {}
            Err(error) if !failed && error.kind() == ErrorKind::NotConnected => {
                link.writable = false;
                return true;
            }
            _ => {
                self.close(index, CloseReason::Unreachable);
                return false;
            }
        }
        prepare(&link.socket);
        link.connected();
        true
    }
}
