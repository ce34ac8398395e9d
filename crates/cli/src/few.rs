//! Who goes on with a transaction that a client builds step by step: f + 1 of those who have vouched for all of it, and
//! others in each transaction. Why so few are enough is said where the gateway builds transactions.
//!
//! One of them may lie, or be silent until the client has lost its patience. That proves nothing of either, and costs
//! that the transaction is rehearsed from its beginning by all. So that it does not cost this each time, all replicas
//! are asked for a while after that.

use bezant_core::ids::ReplicaId;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many steps are asked of all replicas after one on which few did not agree.
const DOUBTED: usize = 1_024;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Few {
    /// f + 1.
    enough: usize,
    /// Whose turn it is.
    turn: AtomicUsize,
    /// Steps that are still asked of all.
    doubted: AtomicUsize,
}

impl Few {
    /// So many that one of them is correct.
    pub(crate) const fn new(enough: usize) -> Self {
        Self { enough, turn: AtomicUsize::new(0), doubted: AtomicUsize::new(0) }
    }

    /// Who is asked, of those who hold a transaction. `None`: everybody.
    pub(crate) fn of(&self, holders: &[u8]) -> Option<Vec<ReplicaId>> {
        let is_doubted = || {
            let less = |left: usize| left.checked_sub(1);
            self.doubted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
        };
        // When only so many hold it, the others have nothing to say.
        if holders.len() < self.enough || holders.len() > self.enough && is_doubted() {
            return None;
        }
        let first = match holders.len() - self.enough {
            0 => 0,
            _ => self.turn.fetch_add(1, Ordering::Relaxed) % holders.len(),
        };
        let in_turn = holders.iter().cycle().skip(first).take(self.enough);
        Some(in_turn.copied().map(ReplicaId).collect())
    }

    /// They did not agree, or did not answer.
    pub(crate) fn doubt(&self) {
        self.doubted.store(DOUBTED, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(few: &Few, holders: &[u8]) -> Option<Vec<u8>> {
        few.of(holders).map(|ids| ids.iter().map(|id| id.0).collect())
    }

    #[test]
    fn each_transaction_goes_on_at_others() {
        let few = Few::new(2);
        let asked: Vec<_> = (0..4).filter_map(|_| ids(&few, &[0, 2, 3])).collect();
        assert_eq!(asked, [[0, 2], [2, 3], [3, 0], [0, 2]]);
        assert_eq!(ids(&few, &[3, 2]), Some(vec![3, 2]), "nobody else holds it");
        assert_eq!(ids(&few, &[3]), None, "the word of one is not enough");
    }

    #[test]
    fn all_are_asked_for_a_while_after_few_did_not_agree() {
        let few = Few::new(2);
        few.doubt();
        assert!((0..DOUBTED).all(|_| few.of(&[0, 1, 2]).is_none()));
        assert_eq!(ids(&few, &[0, 1, 2]), Some(vec![0, 1]));
        few.doubt();
        assert_eq!(ids(&few, &[1, 2]), Some(vec![1, 2]), "what few have begun they end");
    }
}
