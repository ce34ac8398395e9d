//! Reads clients at a level while there is no processor time to spare: see [`super::level`].

use super::super::link::Link;
use super::Hub;
use super::level::Fairness;

impl Hub {
    /// So much was read over a client's link.
    pub(super) fn charge(&mut self, index: u32, cost: u64) {
        let Some(fairness) = &mut self.fairness else { return };
        if let Some(peer) = self.links[index as usize].as_ref().and_then(Link::peer) {
            *fairness.read.entry(peer.principal()).or_default() += cost;
            fairness.level.take(peer, cost);
        }
    }

    /// A client's link over which something has come is left alone for a while if the client has had what the level
    /// allows. Whether it is.
    pub(super) fn rest_at_level(&mut self, index: u32) -> bool {
        let fairness = self.fairness.as_mut().filter(|fairness| fairness.level.get().is_some());
        let Some(Fairness { level, .. }) = fairness else { return false };
        let link = self.links[index as usize].as_ref().filter(|link| link.is_unread());
        let client = link.and_then(Link::peer).filter(|peer| peer.is_client());
        let until = client.and_then(|peer| level.wait(peer, self.now));
        until.is_some_and(|until| self.leave_alone(index, until))
    }

    /// Looks at what was read of each client since the last look.
    pub(super) fn look_at_level(&mut self) {
        let Some(Fairness { level, processor, read, looked_at }) = &mut self.fairness else { return };
        let elapsed = self.now.saturating_duration_since(std::mem::replace(looked_at, self.now));
        let before = level.get();
        level.look(&std::mem::take(read), processor.look(elapsed), elapsed, self.now);
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
