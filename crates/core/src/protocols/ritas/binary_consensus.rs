//! Binary consensus (Bracha): all correct processes decide the same bit, and one that a correct process has proposed.
//!
//! # Steps
//! Rounds of three steps. In each step every process broadcasts a vote, reliably, and waits for n − f *valid* votes of
//! others and of its own. Votes are 0, 1, and in third steps ⊥ as well.
//! * BC 1. First step: its estimate; in the first round what it proposes. The next vote is 1 if at least half of n − f
//!   say 1, and 0 otherwise.
//! * BC 2. Second step: that. The next vote is the bit that more than half of *all n* say, and ⊥ if there is none
//!   (ritas-F2: more than half of those received is unsafe, without any fault).
//! * BC 3. Third step: that. 2f + 1 votes for a bit decide it. f + 1 make it the next estimate. Otherwise a coin does.
//! * BC 4. A vote is valid if some n − f valid votes of the step before would have made a correct process cast it.
//!   That is asked again whenever a vote arrives (ritas-F4): what is not valid yet may become so.
//! * BC 5. Who has decided takes part in the next round if it sees anybody there, and in none after that.
//!
//! # Why it is safe
//! *Reliable broadcast* leaves a liar one vote in each step, the same for all, and BC 4 leaves it none that a correct
//! process could not have cast. *Third steps have one bit*: two bits that more than half of n said in the second step
//! would share a process. *A decision is the only one*: 2f + 1 votes for a bit leave f + 1 among any n − f, so that it
//! is the estimate of all who come to the next round; then all votes there are for it, and all who take part decide it.
//! (2f + 1 reads [`strong`](crate::replicas::Replicas::strong), which is no less, and no more than the n − f.)
//! *It was proposed*: if all correct processes propose one bit, no vote for the other is valid.
//!
//! # Why it ends
//! With probability 1 the coins agree with the bit of third steps, or with one another. After that it takes one more
//! round. An undecided process needs n − f that take part with it. By BC 5 those who have decided do: it speaks first
//! in the next round, they see that, and all decide there. So nobody begins the round after.
//!
//! # Validity in closed form
//! With c₀, c₁, c⊥ the valid votes of the step before, T their sum, q = n − f, h = ⌊n / 2⌋, m = ⌈q / 2⌉. Each is
//! monotone in what has arrived, and equal to trying all sets of n − f (a test does that).
//!
//! | step | vote | is valid if T ≥ q and |
//! |---|---|---|
//! | first, first round | any bit | at once |
//! | second | 1 | c₁ ≥ m |
//! | second | 0 | c₀ ≥ q − m + 1 |
//! | third | a bit | c of it > h |
//! | third | ⊥ | min(c₀, h) + min(c₁, h) ≥ q |
//! | first, later rounds | a bit | c of it ≥ f + 1, or min(c₀, f) + min(c₁, f) + c⊥ ≥ q: by the coin |
//!
//! # The coin
//! Each process tosses its own: a keyed function of a secret and of the instance's path and round, so that nobody can
//! foresee it, and a process that comes back from a crash sees the same side.
//!
//! # Cost
//! 3n reliable broadcasts in a round. One round if all correct processes propose the same bit. Against a network that
//! schedules by what it sees, local coins take about 2ⁿ⁻ᶠ⁻¹ rounds (ritas-F10).

use super::message::Value;
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use crate::replicas::{ReplicaSet, Replicas};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// Steps of a round.
pub const STEPS: u64 = 3;

/// A vote: a bit, or ⊥.
pub type Vote = Option<bool>;

/// Bytes of a vote.
pub(super) const VOTE_BYTES: usize = 1;

/// The vote as a value to be broadcast.
pub(super) const fn value_of(vote: Vote) -> Value {
    Value(Bytes::from_static(match vote {
        Some(false) => &[0],
        Some(true) => &[1],
        None => &[2],
    }))
}

/// The vote that a value stands for.
pub(super) fn vote_of(value: &Value) -> Option<Vote> {
    match *value.0 {
        [0] => Some(Some(false)),
        [1] => Some(Some(true)),
        [2] => Some(None),
        _ => None,
    }
}

/// What it wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Cast this vote in this step, counted from 0: broadcast it reliably.
    Cast(u64, Vote),
    /// BC 3: decided.
    Decided(bool),
}

/// The votes of one step.
#[derive(Clone, Debug)]
struct Votes {
    of: Vec<Option<Vote>>,
    valid: ReplicaSet,
    /// Valid votes for 0, for 1, and for ⊥.
    counts: [usize; 3],
}

impl Votes {
    fn new(n: usize) -> Self {
        Self { of: vec![None; n], valid: ReplicaSet::NOBODY, counts: [0; 3] }
    }

    fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    const fn bit(&self, bit: bool) -> usize {
        self.counts[bit as usize]
    }

    const fn bottom(&self) -> usize {
        self.counts[2]
    }
}

/// BC 4: whether a vote in a step, counted from 0, is valid after these votes in the step before.
fn is_valid(replicas: &Replicas, step: u64, vote: Vote, before: &Votes) -> bool {
    let (q, f, half) = (replicas.reachable(), replicas.faults(), replicas.n() / 2);
    if before.total() < q {
        return false;
    }
    let capped = |max: usize| before.bit(false).min(max) + before.bit(true).min(max);
    let most = q.div_ceil(2);
    match (step % STEPS, vote) {
        (1, Some(true)) => before.bit(true) >= most,
        (1, Some(false)) => before.bit(false) > q - most,
        (2, Some(bit)) => before.bit(bit) > half,
        (2, None) => capped(half) >= q,
        (0, Some(bit)) => before.bit(bit) >= replicas.weak() || capped(f) + before.bottom() >= q,
        _ => false,
    }
}

/// An instance.
#[derive(Clone, Debug)]
pub(super) struct BinaryConsensus {
    /// By step, from the first round's first.
    steps: Vec<Votes>,
    /// What this process has voted, by step: a step without a vote is one that it has not come to.
    cast: Vec<Vote>,
    /// The round in which this process decided, and what.
    decided: Option<(u64, bool)>,
    /// The last step in which anybody was seen.
    seen: u64,
}

impl BinaryConsensus {
    pub(super) const fn new() -> Self {
        Self { steps: Vec::new(), cast: Vec::new(), decided: None, seen: 0 }
    }

    /// Steps that a process may be seen in, by somebody who is no further than this one: more than a correct process
    /// is ahead, because it needs n − f votes in each, of which this one's or a later one's is asked for again anyway.
    pub(super) fn steps_max(&self) -> u64 {
        self.cast.len() as u64 + 2 * STEPS
    }

    /// BC 1. Whoever has proposed before, as its log knows, does not do so again.
    pub(super) fn propose(&mut self, replicas: &Replicas, bit: bool, toss: &dyn Fn(u64) -> bool) -> Vec<Output> {
        if !self.cast.is_empty() {
            return Vec::new();
        }
        self.cast.push(Some(bit));
        let mut out = vec![Output::Cast(0, Some(bit))];
        out.extend(self.advance(replicas, toss));
        out
    }

    /// Somebody is in this step.
    pub(super) fn see(&mut self, replicas: &Replicas, step: u64, toss: &dyn Fn(u64) -> bool) -> Vec<Output> {
        if step <= self.seen {
            return Vec::new();
        }
        self.seen = step;
        self.advance(replicas, toss)
    }

    /// A vote was delivered.
    ///
    /// # Errors
    /// [`Rejection::Malformed`] if it is none.
    pub(super) fn deliver(
        &mut self,
        replicas: &Replicas,
        (step, owner): (u64, ReplicaId),
        value: &Value,
        toss: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<Output>, Rejection> {
        let vote = vote_of(value).ok_or(Rejection::Malformed)?;
        if vote.is_none() && step % STEPS != 2 {
            return Err(Rejection::Malformed);
        }
        assert!(step < self.steps_max(), "no vote of a later step was let in");
        let length = self.steps.len().max(step as usize + 1);
        self.steps.resize_with(length, || Votes::new(replicas.n()));
        self.steps[step as usize].of[usize::from(owner.0)] = Some(vote);
        self.validate(replicas, step as usize);
        Ok(self.advance(replicas, toss))
    }

    /// BC 4, from this step on.
    fn validate(&mut self, replicas: &Replicas, first: usize) {
        for step in first..self.steps.len() {
            let (before, rest) = self.steps.split_at_mut(step);
            let votes = &mut rest[0];
            for replica in replicas.iter() {
                let Some(vote) = votes.of[usize::from(replica.0)] else { continue };
                let after = before.last();
                let is_valid = || after.is_none_or(|before| is_valid(replicas, step as u64, vote, before));
                if !votes.valid.contains(replica) && is_valid() {
                    votes.valid.insert(replica);
                    votes.counts[vote.map_or(2, usize::from)] += 1;
                }
            }
        }
    }

    /// BC 1 to 3 and 5: as far as the votes go.
    fn advance(&mut self, replicas: &Replicas, toss: &dyn Fn(u64) -> bool) -> Vec<Output> {
        let mut out = Vec::new();
        while let Some(step) = self.cast.len().checked_sub(1) {
            let Some(votes) = self.steps.get(step).filter(|votes| votes.total() >= replicas.reachable()) else { break };
            let (round, next) = (step as u64 / STEPS, step as u64 + 1);
            let of_both = |enough: usize| [false, true].into_iter().find(|bit| votes.bit(*bit) >= enough);
            let vote = match step as u64 % STEPS {
                0 => Some(votes.bit(true) >= replicas.reachable().div_ceil(2)),
                1 => of_both(replicas.n() / 2 + 1),
                _ => {
                    let decided = of_both(replicas.strong());
                    if let (None, Some(bit)) = (self.decided, decided) {
                        self.decided = Some((round, bit));
                        out.push(Output::Decided(bit));
                    }
                    Some(of_both(replicas.weak()).unwrap_or_else(|| toss(round)))
                }
            };
            // BC 5.
            let is_needed = |(decided, _): (u64, bool)| next / STEPS <= decided + 1 && self.seen >= next - next % STEPS;
            if self.decided.is_some_and(|decided| !is_needed(decided)) {
                break;
            }
            self.cast.push(vote);
            out.push(Output::Cast(next, vote));
        }
        out
    }

    /// This process has voted so before it crashed: the votes come back in the order of the steps.
    pub(super) fn replay(&mut self, step: u64, value: &Value) {
        let vote = vote_of(value).expect("this process votes");
        match self.cast.get(step as usize) {
            // A log that begins anew says it again.
            Some(known) => assert_eq!(*known, vote, "a process votes once"),
            None => {
                assert_eq!(step, self.cast.len() as u64, "votes are cast in order");
                self.cast.push(vote);
            }
        }
    }
}

/// BC 4, for tests: whether a vote is valid after so many votes for 0, for 1 and for ⊥ in the step before.
#[cfg(test)]
pub(super) fn is_valid_after(replicas: &Replicas, step: u64, vote: Vote, counts: [usize; 3]) -> bool {
    is_valid(replicas, step, vote, &Votes { counts, ..Votes::new(0) })
}
