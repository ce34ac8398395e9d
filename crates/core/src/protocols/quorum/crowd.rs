//! Whether many clients ask at the same time, and go on doing so: Quorum 4 of the [module](super).

use crate::ids::ClientId;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeSet;

/// For how long clients are counted together.
pub(crate) const WINDOW: Duration = Duration::from_millis(20);

/// More clients than this in one window are a crowd.
pub(crate) const FEW: usize = 3;

/// A crowd in so many windows that follow one another is there to stay.
pub(crate) const WINDOWS: u32 = 5;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd {
    /// When the window began.
    since: Instant,
    /// Who asked in it; no more than make a crowd.
    clients: BTreeSet<ClientId>,
    /// How many windows with a crowd came directly before it.
    windows: u32,
}

impl Crowd {
    /// Somebody asks. Whether that is one too many.
    pub(super) fn is_too_much(&mut self, now: Instant, client: ClientId) -> bool {
        let age = now - self.since;
        if age.0 >= WINDOW.0 {
            // Nobody asked in a window in between, if there was one.
            let goes_on = self.clients.len() > FEW && age.0 < 2 * WINDOW.0;
            self.windows = if goes_on { self.windows + 1 } else { 0 };
            self.clients.clear();
            self.since = now;
        }
        if self.clients.len() <= FEW {
            self.clients.insert(client);
        }
        self.windows >= WINDOWS
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self) {
        assert!(self.clients.len() <= FEW + 1, "no more are counted than make a crowd");
        assert!(self.windows == 0 || self.since > Instant(0), "a window follows another one");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::IdentityId;

    /// When it was too much, if `clients` ask in turn, one every `pause` µs.
    fn too_much_after(clients: u32, pause: u64) -> Option<u64> {
        let mut crowd = Crowd::default();
        let asked = |number: u64| ClientId { identity: IdentityId(1), session: number as u32 % clients };
        let begin = 1_000_000;
        (0..1_000).find(|&number| crowd.is_too_much(Instant(begin + number * pause), asked(number))).map(|n| n * pause)
    }

    #[test]
    fn many_clients_are_too_much_after_five_windows() {
        assert_eq!(too_much_after(FEW as u32 + 1, 1_000), Some(100_000));
        assert_eq!(too_much_after(200, 1_000), Some(100_000));
    }

    #[test]
    fn few_clients_are_never_too_much_however_often_they_ask() {
        assert_eq!(too_much_after(FEW as u32, 50), None);
        assert_eq!(too_much_after(FEW as u32, 1_000), None);
    }

    #[test]
    fn many_clients_that_ask_now_and_then_are_not_too_much() {
        assert_eq!(too_much_after(200, 10_000), None, "two in each window");
        assert_eq!(too_much_after(200, 50_000), None);
    }

    #[test]
    fn a_crowd_that_leaves_in_between_begins_anew() {
        let mut crowd = Crowd::default();
        let mut burst = |at: u64| {
            let mut asked = (0..10).map(|session| ClientId { identity: IdentityId(1), session });
            asked.any(|client| crowd.is_too_much(Instant(at), client))
        };
        let window = WINDOW.0;
        assert!((100..104).all(|number| !burst(number * window)));
        assert!((105..110).all(|number| !burst(number * window)), "nobody asked in window 104");
        assert!(burst(110 * window));
    }
}
