//! Reads clients at a level while there is no processor time to spare: see [`super::level`].

use super::super::link::Link;
use super::Hub;

impl Hub {
    /// So much was read over a client's link.
    pub(super) fn charge(&mut self, index: u32, cost: u64) {
        let Some(level) = &mut self.level else { return };
        let Some(link) = self.links[index as usize].as_mut() else { return };
        link.cost += cost;
        if let Some(peer) = link.peer() {
            level.take(peer, cost);
        }
    }

    /// A client's link over which something has come is left alone for a while if the client has had what the level
    /// allows. Whether it is.
    pub(super) fn rest_at_level(&mut self, index: u32) -> bool {
        let Some(level) = self.level.as_mut().filter(|level| level.get().is_some()) else { return false };
        let link = self.links[index as usize].as_ref().filter(|link| link.is_unread());
        let client = link.and_then(Link::peer).filter(|peer| peer.is_client());
        let until = client.and_then(|peer| level.wait(peer, self.now));
        until.is_some_and(|until| self.leave_alone(index, until))
    }

    /// What was read over a link that is gone was read all the same.
    pub(super) fn keep_cost(&mut self, link: &Link) {
        if let Some(peer) = link.peer().filter(|peer| self.level.is_some() && peer.is_client() && link.cost > 0) {
            *self.cost_of_gone.entry(peer.principal()).or_default() += link.cost;
        }
    }

    /// Looks at what was read of each client since the last look.
    pub(super) fn look_at_level(&mut self) {
        let elapsed = self.now.saturating_duration_since(std::mem::replace(&mut self.looked_at, self.now));
        let Some(level) = &mut self.level else { return };
        let mut read = std::mem::take(&mut self.cost_of_gone);
        for link in self.links.iter_mut().flatten() {
            let cost = std::mem::take(&mut link.cost);
            if let Some(peer) = link.peer().filter(|peer| peer.is_client() && cost > 0) {
                *read.entry(peer.principal()).or_default() += cost;
            }
        }
        let before = level.get();
        level.look(&read, self.processor.look(elapsed), elapsed, self.now);
        match (before, level.get()) {
            (None, Some(bytes)) => tracing::info!(
                event = "crowding",
                bytes,
                "no processor time to spare: no client is read at more than so many bytes a second"
            ),
            (Some(_), None) => tracing::info!(event = "crowding-over", "clients are read as they come again"),
            _ => {}
        }
        self.metrics.client_level = level.get().unwrap_or_default();
    }
}
