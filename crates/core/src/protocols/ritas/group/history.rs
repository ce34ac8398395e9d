//! What a process of a group keeps of the atomic broadcast for others, and when it forgets it.
//!
//! A correct process may be slow for as long as the network likes, and needs what it has missed. So each says now and
//! then how far it has come (HERE), and what all have is forgotten. But one that has crashed never says so again: more
//! than [a bound of bytes](super::GroupOptions::history_bytes_max) or [`HISTORY_ROUNDS_MAX`] are not kept for the
//! slowest f. Whoever needs more than that is told by f + 1 others that it was left behind.
//!
//! It then counts as one of the f that the group does without. But liars may say that they have what they have not, and
//! go on for a while: so f correct processes may be left behind beside f liars, and nothing goes on when those stop.
//! Nobody can tell who is slow from who is gone; only a longer history helps.

use super::super::atomic_broadcast::Standing;
use super::message::Here;
use crate::ids::ReplicaId;
use crate::replicas::Replicas;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Rounds that are kept for them.
pub const HISTORY_ROUNDS_MAX: usize = 1 << 12;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct History {
    /// Where this process stood after each round that delivered something and is kept, and the bytes of it.
    rounds: VecDeque<(Standing, usize)>,
    bytes: usize,
    bytes_max: usize,
    /// The first round that is kept.
    kept: u64,
    /// What each process has said last.
    here: Vec<Here>,
}

impl History {
    pub(super) fn new(replicas: &Replicas, bytes_max: usize) -> Self {
        let here = vec![Here { round: 0, kept: 0 }; replicas.n()];
        Self { rounds: VecDeque::new(), bytes: 0, bytes_max, kept: 0, here }
    }

    /// A round has delivered so many bytes.
    pub(super) fn reached(&mut self, standing: Standing, bytes: usize) {
        self.bytes += bytes;
        self.rounds.push_back((standing, bytes));
    }

    /// The first round that is kept.
    pub(super) const fn kept(&self) -> u64 {
        self.kept
    }

    /// A process says how far it has come. It cannot go back.
    pub(super) fn hear(&mut self, from: ReplicaId, here: Here) {
        let known = &mut self.here[usize::from(from.0)];
        *known = Here { round: known.round.max(here.round), kept: known.kept.max(here.kept) };
    }

    /// What is no longer kept: all before that standing.
    pub(super) fn forget(&mut self, replicas: &Replicas, me: ReplicaId) -> Option<Standing> {
        let mut others: Vec<u64> =
            replicas.iter().filter(|of| *of != me).map(|of| self.here[usize::from(of.0)].round).collect();
        others.sort_unstable();
        // This process is one of the n − f that have it.
        let at = |place: usize| others.get(place).copied().unwrap_or(u64::MAX);
        let (all, most) = (at(0), at(replicas.faults()));
        let mut last = None;
        while let Some((standing, bytes)) = self.rounds.front() {
            let is_full = self.bytes > self.bytes_max || self.rounds.len() > HISTORY_ROUNDS_MAX;
            if standing.round > if is_full { most } else { all } {
                break;
            }
            (self.bytes, self.kept) = (self.bytes - bytes, standing.round);
            last = self.rounds.pop_front().map(|(standing, _)| standing);
        }
        last
    }

    /// Whether f + 1 others keep nothing any more of the round that this process is in.
    pub(super) fn is_left_behind(&self, replicas: &Replicas, round: u64) -> bool {
        self.here.iter().filter(|here| here.kept > round).count() >= replicas.weak()
    }
}
