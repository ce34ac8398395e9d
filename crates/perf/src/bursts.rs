//! Load that comes in bursts: so many requests of so many clients, and then the next.

use crate::compare::course::Burst;
use std::collections::VecDeque;

/// Lets requests go burst after burst.
#[derive(Debug)]
pub(crate) struct Bursts {
    /// The first one is under way.
    pub(crate) coming: VecDeque<Burst>,
    sent: u64,
    answered: u64,
    /// Requests under way of each thread.
    under_way: Vec<usize>,
}

impl Bursts {
    pub(crate) fn new(bursts: &[Burst], threads: usize) -> Self {
        let coming = bursts.iter().filter(|burst| burst.clients > 0 && burst.operations > 0).copied().collect();
        Self { coming, sent: 0, answered: 0, under_way: vec![0; threads] }
    }

    /// Whether this thread may send one more; then it counts as sent. Each has its share of a burst's clients.
    pub(crate) fn admit(&mut self, thread: usize) -> bool {
        let Some(burst) = self.coming.front() else { return false };
        let clients = share(burst.clients, thread, self.under_way.len());
        let admitted = self.sent < burst.operations && self.under_way[thread] < clients;
        self.sent += u64::from(admitted);
        self.under_way[thread] += usize::from(admitted);
        admitted
    }

    /// One was answered. Whether that was the last one of its burst.
    pub(crate) fn on_answer(&mut self, thread: usize) -> bool {
        self.answered += 1;
        self.under_way[thread] -= 1;
        let ended = self.coming.front().is_some_and(|burst| self.answered == burst.operations);
        if ended {
            self.coming.pop_front();
            (self.sent, self.answered) = (0, 0);
        }
        ended
    }
}

/// What one of several threads gets of something that is divided as evenly as possible.
pub(crate) const fn share(whole: usize, thread: usize, threads: usize) -> usize {
    whole / threads + (thread < whole % threads) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_has_its_clients_and_its_operations_and_then_the_next_begins() {
        let burst = |clients, operations| Burst { clients, operations };
        let mut bursts = Bursts::new(&[burst(2, 3), burst(0, 5), burst(1, 1)], 1);
        assert_eq!([bursts.admit(0), bursts.admit(0), bursts.admit(0)], [true, true, false]);
        assert!(!bursts.on_answer(0));
        assert_eq!([bursts.admit(0), bursts.admit(0)], [true, false]);
        assert_eq!([bursts.on_answer(0), bursts.on_answer(0)], [false, true]);
        assert_eq!([bursts.admit(0), bursts.admit(0)], [true, false]);
        assert!(bursts.on_answer(0));
        assert!(!bursts.admit(0) && bursts.coming.is_empty());
    }

    #[test]
    fn threads_share_the_clients_of_a_burst() {
        let mut bursts = Bursts::new(&[Burst { clients: 3, operations: 4 }], 2);
        assert_eq!([bursts.admit(0), bursts.admit(0), bursts.admit(0)], [true, true, false]);
        assert_eq!([bursts.admit(1), bursts.admit(1)], [true, false]);
        assert!(!bursts.on_answer(1));
        assert_eq!([bursts.admit(0), bursts.admit(1), bursts.admit(1)], [false, true, false]);
        assert_eq!([0, 0, 1].map(|thread| bursts.on_answer(thread)), [false, false, true]);
        assert_eq!((0..4).map(|thread| share(10, thread, 4)).collect::<Vec<_>>(), [3, 3, 2, 2]);
    }
}
