//! Atomic broadcast (Correia, Neves, Veríssimo): all correct processes deliver the same messages in the same order.
//!
//! # Steps
//! * AB 1. A message gets its sender's next number, and is broadcast reliably. Sender and number are its id.
//! * AB 2. A process *lists* what was delivered to it that way, once the layer above vouches for it.
//! * AB 3. Round a begins at a process if it lists anything that is not ordered yet, and does not rest (after AB 5), or
//!   if f + 1 proposals of this round were delivered to it. It broadcasts, reliably, what it lists: ids, with the names
//!   of their messages.
//! * AB 4. After n − f proposals of the round: W are the ids that f + 1 of them have. Propose W to the round's
//!   multi-valued consensus.
//! * AB 5. If that decides a W, what of it was not delivered before is delivered, as soon as it is all here, in the
//!   order of a digest of round and id, up to a bound of bytes; what is beyond stays listed. Then, and after ⊥, the
//!   next round may begin. Where the layer above says when a process has rested ([`Variant::rests`]), it rests after
//!   each round that delivered anything.
//!
//! # Why it is safe
//! W is decided by agreement, and W was proposed by a correct process, to which f + 1 said every id of it: one of these
//! is correct, so the message exists, is the only one with its id, and reaches all by reliable broadcast. What was
//! delivered follows from the decisions of the rounds so far, which all correct processes know in the same order.
//! Nothing is listed twice (ritas-F7): delivered ids are remembered, by sender, as all below B and some above. So W has
//! nothing that was delivered: a correct process listed it in this very round, and had come to all rounds before. With
//! the number of the next round that is all that a process has to know to go on: its [`Standing`].
//!
//! # Why it ends
//! Of each sender only the L numbers from its B on are listed (ritas-F8: a window that moves; the thesis' is absolute,
//! and closes for good). While nothing is delivered B stays; there are n·L ids at most; by reliable broadcast all
//! correct processes come to list the same ones; then all correct W hold these, and a liar can only add ids that some
//! correct process lists. It has L of them for each lying sender, each good for one ⊥ (ritas-F10). So L is small. A
//! round needs a reason, so that who has nothing to say is silent. What is delivered before its turn, beyond its
//! sender's window, is none (ritas-F7): a liar who never sends what comes before it would have empty rounds follow one
//! another for ever.
//!
//! # Deviations
//! * *Names* of messages in proposals: who has the decision can fetch the message from anybody. They are digests also
//!   where broadcasts repeat values, for the thesis lists ids alone.
//! * *Order in a round* by digest: by sender, low ids would come first for ever (ritas-F10).
//! * *No DECIDE of its own*: the decision of a round is that of its consensus, which has one.
//!
//! # Cost
//! One reliable broadcast for each message; n of them and a multi-valued consensus for each round, whatever the
//! number of messages in it.

use super::message::{Value, Word};
use super::path::Id;
use super::variant::Variant;
use super::window::Window;
use crate::digest::{Digest, Domain};
use crate::ids::ReplicaId;
use crate::rejection::Rejection;
use crate::replicas::{REPLICAS_MAX, Replicas};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::wire_struct;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// L: how many messages of one sender are on their way at most.
pub const WINDOW: u64 = 16;

/// How many messages of one sender are heard, from the first on that was not delivered here. It may have delivered a
/// round that this process has not, and send L more: what would be dropped is said again only on the channel's timer.
pub const HEARD: u64 = 2 * WINDOW;

/// Rounds that a process lets in before it comes to them.
pub const ROUNDS_AHEAD: u64 = 2;

/// Rounds that are decided here and that others may still need: with so many nothing new is proposed. A round ends as
/// soon as 2f + 1 have decided it, and all correct processes come to that.
pub const ROUNDS_OPEN_MAX: usize = 4;

/// Rounds, from the first that a process needs, of which it is told again what it lacks: all that it lets in, and more,
/// so that it learns that others are further.
pub const ROUNDS_TOLD: u64 = ROUNDS_OPEN_MAX as u64 + ROUNDS_AHEAD + 2;

/// An id with the name of its message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    id: Id,
    word: Word,
}
wire_struct!(Listed { id, word });

/// Where a process stands between two rounds: the same at all that have come there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The next round.
    pub round: u64,
    /// What was delivered, by sender: B is the first that was not.
    pub(super) delivered: Vec<Window>,
}

impl Wire for Standing {
    fn encode(&self, out: &mut impl Sink) {
        self.round.encode(out);
        encode_list(&self.delivered, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { round: Wire::decode(reader)?, delivered: reader.list(REPLICAS_MAX)? })
    }
}

impl Standing {
    /// Before the first round.
    pub(super) fn new(replicas: &Replicas) -> Self {
        Self { round: 0, delivered: vec![Window::default(); replicas.n()] }
    }

    /// Whether this message was delivered.
    pub(super) fn has(&self, id: Id) -> bool {
        self.window(id.sender).is_finished(id.number)
    }

    /// The first message of a sender that was not delivered.
    pub fn first_of(&self, sender: ReplicaId) -> u64 {
        self.window(sender).first()
    }

    /// What was delivered of one sender.
    pub(super) fn window(&self, sender: ReplicaId) -> &Window {
        &self.delivered[usize::from(sender.0)]
    }
}

/// What the layer above does not want for now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// It takes whatever comes.
    #[default]
    Nothing,
    /// AB 3: no round begins here. What others decide is delivered.
    Rounds,
    /// AB 5: nothing is delivered either.
    Deliveries,
}

/// What it wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// AB 3: broadcast this proposal in this round, reliably.
    Proposal(u64, Value),
    /// AB 4: propose this to the multi-valued consensus of this round.
    Propose(u64, Value),
    /// AB 5.
    Deliver(Id, Value),
    /// AB 5: all of a round that delivered something, which leads here.
    Reached(Standing),
}

/// A round.
#[derive(Clone, Debug, Default)]
struct Round {
    /// AB 3: this process has proposed.
    proposed: bool,
    /// AB 4: and W.
    agreed: bool,
    /// What each process lists, in the order of arrival.
    proposals: Vec<Vec<Listed>>,
    /// AB 5.
    decided: Option<Option<Vec<Listed>>>,
}

/// An instance.
#[derive(Clone, Debug)]
pub(super) struct AtomicBroadcast {
    standing: Standing,
    /// What reliable broadcast delivered, and is not delivered in order yet.
    messages: BTreeMap<Id, (Word, Value)>,
    /// AB 2: of these, what the layer above vouches for.
    vouched: BTreeSet<Id>,
    /// The next number of this process.
    next: u64,
    /// The round that this process is in, and those after it.
    rounds: BTreeMap<u64, Round>,
    /// Rounds before it that others may still need.
    open: BTreeSet<u64>,
    hold: Hold,
    /// AB 3: whether this process begins no round by itself for now.
    rests: bool,
    /// AB 5: whether it does not after a round that delivered anything.
    may_rest: bool,
    /// AB 5: bytes of values that one round delivers, if it delivers more than one.
    round_bytes_max: usize,
}

impl AtomicBroadcast {
    pub(super) fn new(replicas: &Replicas, variant: Variant) -> Self {
        Self {
            standing: Standing::new(replicas),
            messages: BTreeMap::new(),
            vouched: BTreeSet::new(),
            next: 0,
            rounds: BTreeMap::new(),
            open: BTreeSet::new(),
            hold: Hold::Nothing,
            rests: false,
            may_rest: variant.rests,
            round_bytes_max: variant.round_bytes_max,
        }
    }

    /// Where this process stands.
    pub(super) const fn standing(&self) -> &Standing {
        &self.standing
    }

    /// This process stands where others have come to, who delivered what led there; or it has been there before a
    /// crash.
    pub(super) fn resume_at(&mut self, standing: Standing) {
        assert!(standing.round >= self.standing.round, "nobody goes back");
        self.rounds = self.rounds.split_off(&standing.round);
        self.messages.retain(|id, _| !standing.has(*id));
        self.vouched.retain(|id| !standing.has(*id));
        self.standing = standing;
        self.rests = false;
    }

    /// AB 3 and 5. What the layer above does not want from now on.
    pub(super) const fn hold(&mut self, hold: Hold) {
        self.hold = hold;
    }

    /// AB 3. Lets this process begin no round by itself, or lets it do so again.
    pub(super) const fn rest(&mut self, rests: bool) {
        self.rests = rests;
    }

    /// AB 3. Whether this process begins no round by itself.
    pub(super) const fn rests(&self) -> bool {
        self.rests
    }

    /// Messages of this process that are on their way.
    pub(super) fn on_their_way(&self, me: ReplicaId) -> u64 {
        let window = self.standing.window(me);
        self.next.max(window.end()) - window.first()
    }

    /// Whether a message of this sender with this number may be on its way, as far as this process has come.
    fn admits_message(&self, id: Id) -> bool {
        self.standing.window(id.sender).admits(id.number, WINDOW)
    }

    /// Whether anything about such a message is heard.
    pub(super) fn hears_message(&self, id: Id) -> bool {
        self.standing.window(id.sender).admits(id.number, HEARD)
    }

    /// Whether anything about this round may be heard: also of one that is decided here, as long as others may need
    /// it. Who comes late to it has broadcasts of its own, and who has not decided needs further steps of all.
    pub(super) fn admits_round(&self, round: u64) -> bool {
        match round.checked_sub(self.standing.round) {
            Some(ahead) => ahead <= ROUNDS_AHEAD,
            None => self.open.contains(&round),
        }
    }

    /// The first round of which anything is of use here. A round may be decided before the one that this process is
    /// in.
    pub(super) fn needs_from(&self) -> u64 {
        self.open.first().map_or(self.standing.round, |open| self.standing.round.min(*open))
    }

    /// Whether anything is on its way here.
    pub(super) fn waits(&self) -> bool {
        !self.vouched.is_empty() || !self.open.is_empty() || !self.rounds.is_empty()
    }

    /// AB 1. The number of this process's next message; none while L are on their way.
    pub(super) fn number(&mut self, me: ReplicaId) -> Option<u64> {
        self.next = self.next.max(self.standing.window(me).end());
        let id = Id { sender: me, number: self.next };
        let free = self.admits_message(id);
        self.next += u64::from(free);
        free.then_some(id.number)
    }

    /// AB 2. Reliable broadcast has delivered this. Whether it is not ordered yet.
    pub(super) fn on_message(&mut self, id: Id, value: Value) -> bool {
        let is_new = !self.standing.has(id);
        if is_new {
            self.messages.insert(id, (Word::of(&value, false), value));
        }
        is_new
    }

    /// AB 2. The layer above vouches for it.
    pub(super) fn vouch(&mut self, id: Id) {
        if self.messages.contains_key(&id) {
            self.vouched.insert(id);
        }
    }

    /// AB 3 and 4.
    ///
    /// # Errors
    /// [`Rejection::Malformed`] if it is no list of ids in order that may be on their way.
    pub(super) fn on_proposal(
        &mut self,
        replicas: &Replicas,
        round: u64,
        value: &Value,
    ) -> Result<Vec<Output>, Rejection> {
        let listed = read(replicas, value).ok_or(Rejection::Malformed)?;
        if round >= self.standing.round {
            self.rounds.entry(round).or_default().proposals.push(listed);
        }
        Ok(self.advance(replicas))
    }

    /// AB 5.
    pub(super) fn on_decided(&mut self, replicas: &Replicas, round: u64, value: Option<Value>) -> Vec<Output> {
        self.open.insert(round);
        if round >= self.standing.round {
            let decided = value.map(|value| read(replicas, &value).unwrap_or_default());
            self.rounds.entry(round).or_default().decided = Some(decided);
        }
        self.advance(replicas)
    }

    /// Nobody needs this round any more.
    pub(super) fn on_over(&mut self, replicas: &Replicas, round: u64) -> Vec<Output> {
        self.open.remove(&round);
        self.advance(replicas)
    }

    /// Nobody needs the rounds before this one any more.
    pub(super) fn close_before(&mut self, replicas: &Replicas, round: u64) -> Vec<Output> {
        self.open = self.open.split_off(&round);
        self.advance(replicas)
    }

    /// AB 3 to 5: what follows from what is known.
    pub(super) fn advance(&mut self, replicas: &Replicas) -> Vec<Output> {
        let mut out = Vec::new();
        loop {
            let number = self.standing.round;
            if self.may_propose(replicas) {
                self.rounds.entry(number).or_default().proposed = true;
                out.push(Output::Proposal(number, self.list()));
            }
            let Some(round) = self.rounds.get_mut(&number) else { break };
            if round.proposed && !round.agreed && round.proposals.len() >= replicas.reachable() {
                round.agreed = true;
                let common = common(replicas, &round.proposals);
                out.push(Output::Propose(number, written(&common)));
            }
            let decided = self.rounds.get(&number).and_then(|round| round.decided.as_ref());
            let is_here = decided.is_some_and(|listed| listed.iter().flatten().all(|listed| self.has(listed)));
            if !is_here || self.hold == Hold::Deliveries {
                break;
            }
            let decided = self.rounds.remove(&number).and_then(|round| round.decided).flatten();
            self.deliver(number, decided.unwrap_or_default(), &mut out);
        }
        out
    }

    /// AB 3.
    fn may_propose(&self, replicas: &Replicas) -> bool {
        let round = self.rounds.get(&self.standing.round);
        let is_begun = round.is_some_and(|r| r.proposals.len() >= replicas.weak());
        let has_reason = is_begun || !self.rests && self.listed().next().is_some();
        let may_begin = self.hold == Hold::Nothing && self.open.len() < ROUNDS_OPEN_MAX;
        has_reason && may_begin && round.is_none_or(|r| !r.proposed && r.decided.is_none())
    }

    /// AB 2: whether this process lists a message: all correct ones come to, and a round to deliver it.
    pub(super) fn lists(&self, id: Id) -> bool {
        self.vouched.contains(&id) && self.admits_message(id)
    }

    /// AB 3: what this process lists.
    fn list(&self) -> Value {
        let listed = |id: &Id| Listed { id: *id, word: self.messages[id].0.clone() };
        written(&self.listed().map(listed).collect::<Vec<_>>())
    }

    fn listed(&self) -> impl Iterator<Item = &Id> {
        self.vouched.iter().filter(|id| self.admits_message(**id))
    }

    /// AB 5: whether a message that is to be delivered is here.
    fn has(&self, listed: &Listed) -> bool {
        self.messages.get(&listed.id).is_some_and(|(word, _)| *word == listed.word)
    }

    /// AB 5.
    fn deliver(&mut self, round: u64, listed: Vec<Listed>, out: &mut Vec<Output>) {
        let mut ids: Vec<Id> = listed.into_iter().map(|listed| listed.id).collect();
        ids.sort_by_cached_key(|id| Digest::of(Domain::Turn, &(round, *id).to_bytes()));
        let (before, mut bytes) = (out.len(), 0);
        for id in ids {
            bytes += self.messages[&id].1.0.len();
            if out.len() > before && bytes > self.round_bytes_max {
                break;
            }
            let (_, value) = self.messages.remove(&id).expect("all are here");
            self.vouched.remove(&id);
            self.standing.delivered[usize::from(id.sender.0)].finish(id.number);
            out.push(Output::Deliver(id, value));
        }
        self.standing.round = round + 1;
        if out.len() > before {
            self.rests = self.may_rest;
            out.push(Output::Reached(self.standing.clone()));
        }
    }

    /// This process has broadcast a message with this number before it crashed.
    pub(super) fn replay_message(&mut self, number: u64) {
        self.next = self.next.max(number + 1);
    }

    /// This process has proposed in this round before it crashed.
    pub(super) fn replay_proposal(&mut self, round: u64) {
        if round >= self.standing.round {
            self.rounds.entry(round).or_default().proposed = true;
        }
    }

    /// This process has proposed W in this round before it crashed.
    pub(super) fn replay_agreed(&mut self, round: u64) {
        if round >= self.standing.round {
            self.rounds.entry(round).or_default().agreed = true;
        }
    }
}

/// AB 4: W.
fn common(replicas: &Replicas, proposals: &[Vec<Listed>]) -> Vec<Listed> {
    let mut counts: BTreeMap<&Listed, usize> = BTreeMap::new();
    for listed in proposals.iter().flatten() {
        *counts.entry(listed).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count >= replicas.weak()).map(|(listed, _)| listed.clone()).collect()
}

/// Bytes of the longest list, and of a decision that it is.
pub(super) fn list_bytes_max(replicas: &Replicas) -> usize {
    const AROUND: usize = 16;
    AROUND + replicas.n() * WINDOW as usize * (Id::BYTES + Word::BYTES_MAX)
}

fn written(listed: &[Listed]) -> Value {
    let mut bytes = Vec::new();
    encode_list(listed, &mut bytes);
    Value(Bytes::from(bytes))
}

/// A list of ids in order, each once, of processes that exist.
fn read(replicas: &Replicas, value: &Value) -> Option<Vec<Listed>> {
    let mut reader = Reader::new(value.0.clone());
    let listed: Vec<Listed> = reader.list(replicas.n() * WINDOW as usize).ok()?;
    reader.finish().ok()?;
    let in_order = listed.windows(2).all(|pair| pair[0].id < pair[1].id);
    (in_order && listed.iter().all(|listed| replicas.contains(listed.id.sender))).then_some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_list_has_its_place() {
        let replicas = Replicas::of(4).unwrap();
        let listed = |at: u64| {
            let id = Id { sender: ReplicaId((at / WINDOW) as u8), number: u64::MAX - WINDOW + at % WINDOW };
            Listed { id, word: Word::of(&Value(vec![7; Digest::BYTES].into()), false) }
        };
        let list = written(&(0..4 * WINDOW).map(listed).collect::<Vec<_>>());
        assert!(read(&replicas, &list).is_some());
        let decision = Some(list).to_bytes();
        assert!(decision.len() <= list_bytes_max(&replicas));
        assert!(decision.len() + 16 > list_bytes_max(&replicas), "not much more");
    }
}
