//! One outstanding request and the replies to it.

use super::{Answer, Completion, Read};
use crate::digest::Digest;
use crate::ids::{ReplicaId, Sequence, View};
use crate::message::{Firmness, Outcome, RESULT_BYTES_FULL_MAX, Refusal, Reply, Request};
use crate::protocols::speculative::Response;
use crate::replicas::Replicas;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What replies must have in common to add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) sequence: Sequence,
    pub(super) gist: Gist,
}

/// An outcome in a form that is quick to compare. Every correct replica sends a short result in full, so it need
/// not be hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gist {
    /// A result of so many bytes, followed by zeros, and the effects.
    Short(u8, [u8; RESULT_BYTES_FULL_MAX], Digest),
    /// Anything else by its digest.
    Digest(Digest),
}

impl Gist {
    pub(super) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done { result, effects } if result.len() <= RESULT_BYTES_FULL_MAX => {
                let mut bytes = [0; RESULT_BYTES_FULL_MAX];
                bytes[..result.len()].copy_from_slice(result);
                Self::Short(result.len() as u8, bytes, *effects)
            }
            outcome => Self::Digest(outcome.digest()),
        }
    }
}

/// What the replies so far amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// More are needed.
    Open,
    /// Enough agree, on a result that nobody has sent in full.
    Owed,
    /// Enough agree, and the full result is there.
    Accepted(Key),
    /// A read that too few can agree on now.
    Hopeless,
}

#[derive(Clone, Debug)]
struct Said {
    from: ReplicaId,
    key: Key,
    firmness: Firmness,
    view: View,
    outcome: Outcome,
}

impl Said {
    /// Client 10.
    fn is_too_late(&self) -> bool {
        self.key.sequence == Sequence(0) && self.outcome == Outcome::Refused(Refusal::StaleTimestamp)
    }

    /// How many have to say the same, where so many have to agree on a result.
    fn needed(&self, replicas: Replicas, agree: usize) -> usize {
        if self.is_too_late() { replicas.weak() } else { agree }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) request: Request,
    pub(super) submitted: Instant,
    pub(super) deadline: Option<Instant>,
    pub(super) retry_at: Instant,
    pub(super) attempts: u32,
    /// The latest reply of each replica.
    said: Vec<Said>,
    /// The latest speculative answer of each replica.
    pub(super) responses: BTreeMap<ReplicaId, Response>,
    /// What each replica of a ring says that every correct one has executed.
    pub(super) certain: BTreeMap<ReplicaId, Response>,
    /// Whose word counts.
    pub(super) read: Read,
    /// Whether it has panicked since it was last asked or waited in vain.
    pub(super) panicked: bool,
    /// When it was asked in the present instance.
    pub(super) asked: Instant,
    /// For how long it waits, from then on, before everybody is asked.
    pub(super) patience: Duration,
    /// Whether it waits for the result in full, and nothing else (Client 12).
    pub(super) is_owed: bool,
}

impl Call {
    pub(super) fn new(request: Request, now: Instant, deadline: Option<Instant>, patience: Duration) -> Self {
        Self {
            request,
            submitted: now,
            deadline,
            retry_at: now + patience,
            attempts: 0,
            said: Vec::new(),
            responses: BTreeMap::new(),
            certain: BTreeMap::new(),
            read: Read::Quorum,
            panicked: false,
            asked: now,
            patience,
            is_owed: false,
        }
    }

    /// Goes on with an ordinary request for the same operation.
    pub(super) fn order_instead(&mut self, request: Request, now: Instant) {
        self.request = request;
        self.read = Read::Quorum;
        self.said.clear();
        self.responses.clear();
        self.certain.clear();
        self.panicked = false;
        self.is_owed = false;
        self.retry_at = now + self.patience;
    }

    pub(super) fn add(&mut self, from: ReplicaId, reply: Reply) {
        if reply.firmness.is_ordered() == self.request.read_only || !self.asks(from) {
            return;
        }
        let Reply { firmness, view, mut outcome, mut sequence, .. } = reply;
        if matches!(self.read, Read::Few(_)) {
            // Wherever each of them stands, and whatever was executed up to there.
            sequence = Sequence(0);
            if let Outcome::Done { effects, .. } = &mut outcome {
                *effects = Digest::ZERO;
            }
        }
        let key = Key { sequence, gist: Gist::of(&outcome) };
        let said = Said { from, key, firmness, view, outcome };
        match self.said.iter_mut().find(|said| said.from == from) {
            Some(earlier) => *earlier = said,
            None => self.said.push(said),
        }
    }

    /// How many replies support this one: equal result and position, and final or tentative in its view. A final
    /// reply has no view of its own: it supports, and is supported by, tentative ones of any single view.
    fn support(&self, of: &Said) -> usize {
        self.said
            .iter()
            .filter(|said| said.key == of.key && (said.firmness != Firmness::Tentative || said.view == of.view))
            .count()
    }

    pub(super) fn verdict(&self, replicas: Replicas) -> Verdict {
        if self.read == Read::One {
            let whole = self.said.iter().find(|said| self.full(&said.key).is_some());
            return whole.map_or(Verdict::Open, |said| Verdict::Accepted(said.key));
        }
        let (asked, strong) = self.quorum(replicas);
        let (mut best, mut is_owed) = (0, false);
        for said in &self.said {
            let support = self.support(said);
            best = best.max(support);
            if support >= said.needed(replicas, strong) {
                match self.full(&said.key) {
                    Some(_) => return Verdict::Accepted(said.key),
                    None => is_owed = true,
                }
            }
        }
        if is_owed {
            return Verdict::Owed;
        }
        assert!(self.said.len() <= asked, "only who was asked replies");
        let missing = asked - self.said.len();
        let hopeless = self.request.read_only && best + missing < strong;
        if hopeless { Verdict::Hopeless } else { Verdict::Open }
    }

    /// The verdict where every answer is final.
    pub(super) fn final_verdict(&self, replicas: Replicas) -> Verdict {
        let mut agreed = self.said.iter().filter(|of| {
            let finals = self.said.iter().filter(|said| said.key == of.key && said.firmness == Firmness::Final);
            finals.count() >= of.needed(replicas, replicas.strong())
        });
        match agreed.clone().find(|of| self.full(&of.key).is_some()) {
            Some(of) => Verdict::Accepted(of.key),
            None => agreed.next().map_or(Verdict::Open, |_| Verdict::Owed),
        }
    }

    /// What is true between steps, among these replicas.
    pub(super) fn check_invariants(&self, replicas: Replicas) {
        assert!(self.said.len() <= replicas.n(), "the latest reply of each replica is kept");
        for (place, said) in self.said.iter().enumerate() {
            assert!(replicas.contains(said.from), "replicas reply");
            assert!(self.asks(said.from), "only who was asked replies");
            let others = self.said[..place].iter().all(|other| other.from != said.from);
            assert!(others, "nobody counts twice");
            assert_eq!(said.firmness == Firmness::Read, self.request.read_only, "replies are about this request");
            assert!(!matches!(self.read, Read::Few(_)) || said.key.sequence == Sequence(0), "a few stand anywhere");
        }
        let Request { instance, client, timestamp, .. } = self.request;
        let is_of_it = |of: &Response| (of.instance, of.client, of.timestamp) == (instance, client, timestamp);
        assert!(self.responses.values().all(is_of_it), "answers are to this request");
        assert!(self.certain.values().all(is_of_it), "so are those that are certain");
        let answer = || self.responses.keys().chain(self.certain.keys());
        assert!(answer().all(|id| replicas.contains(*id)), "replicas answer");
        assert!(self.read == Read::Quorum || self.request.read_only, "the word of a few is taken on reads only");
        assert!(self.asked >= self.submitted, "it is asked after it was submitted");
        assert!(!self.panicked || self.attempts > 0, "who panics has asked everybody before");
    }

    fn full(&self, key: &Key) -> Option<&Outcome> {
        self.said.iter().filter(|said| said.key == *key).map(|said| &said.outcome).find(|outcome| outcome.is_whole())
    }

    pub(super) fn result(&self, key: &Key) -> Completion {
        self.full(key).map_or(Completion::Unknown, Completion::of)
    }

    /// The view that most of those who agree name.
    pub(super) fn view_of(&self, key: &Key) -> Option<View> {
        let views = || self.said.iter().filter(|said| said.key == *key).map(|said| said.view);
        views().max_by_key(|view| views().filter(|other| other == view).count())
    }

    /// Those who said this: bit i stands for replica i.
    pub(super) fn vouchers(&self, key: &Key) -> u64 {
        self.said.iter().filter(|said| said.key == *key).fold(0, |bits, said| bits | 1 << said.from.0)
    }

    pub(super) fn anybody_differs(&self, key: &Key) -> bool {
        self.said.iter().any(|said| said.key != *key)
    }

    /// What each replica said, measured against what was accepted.
    pub(super) fn answers(&self, replicas: Replicas, accepted: Option<&Key>) -> Vec<(ReplicaId, Answer)> {
        replicas
            .iter()
            .map(|replica| {
                let said = self.said.iter().find(|said| said.from == replica);
                let answer = match (said, accepted) {
                    (None, _) => Answer::Silent,
                    (Some(said), Some(key)) if said.key == *key => Answer::Agreed,
                    (Some(said), Some(key)) if said.key.sequence == key.sequence => Answer::Differed,
                    (Some(_), _) => Answer::Waiting,
                };
                (replica, answer)
            })
            .collect()
    }
}
