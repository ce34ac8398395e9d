//! Dissent: replicas that executed a request otherwise find it, and agree to refuse it.
//!
//! # What it is for
//! A service that is not deterministic after all gives one request another result, or another state, at each replica.
//! None of them lies, and no 2f+1 agree on anything from there on. The request must cost itself and not the cluster.
//!
//! # Steps
//! * Dissent 1. *Remember.* Each replica keeps the effects after each request since the last stable checkpoint: a chain
//!   over what was answered and [written](crate::service::Service::take_written), which replies contain.
//! * Dissent 2. *Doubt.* No root of a checkpoint can get 2f+1 votes any more; or a client asks again for what it was
//!   answered above the stable checkpoint. Then a replica says TESTIMONY: its effects after every [`BLOCK`]-th request,
//!   signed. Who gets one says its own. In a Backup that has no stable checkpoint yet they begin where its init history
//!   does: at the boundary from which whoever lacks that executes it.
//! * Dissent 3. *Find.* One looks along the testimonies of 2f+1 replicas or more. As long as f+1 of those who agreed so
//!   far agree on the next effects, and no other f+1 of them on something else, these lead on. In the block in which
//!   they end, replicas testify to the effects after each request. The request after which they end, for want of one
//!   value of f+1, is disputed.
//! * Dissent 4. *Rule.* The TESTIMONIES that show this are a RULING. It is its own proof, and is ordered like any
//!   request. The first valid one counts; others that follow the same ruling before it do not.
//! * Dissent 5. *Refuse.* When it is delivered at batch g, the replica goes back to its newest checkpoint before the
//!   disputed request, or to the stable one, or to before the init history, and executes again what follows. The
//!   disputed request is refused with [`Refusal::Disputed`](crate::message::Refusal::Disputed); what comes after it, up
//!   to batch g, with [`Refusal::Undone`](crate::message::Refusal::Undone): nobody can have been told a result of that,
//!   since replies contain the effects. Its clients ask for it again by themselves, as new requests. Where the service
//!   executes requests together, the disputed one may not be the culprit, and is at first undone as well
//!   ([`crate::estate`], runs).
//! * Dissent 6. *Compare.* Where no request is disputed, although not all have the same effects, and that stays so for
//!   a status interval, the TESTIMONIES are a RULING as well: states are to be compared. The batch of every ruling is a
//!   checkpoint. (2f+1 may have the same effects and a client be left without an answer: f of them are mute.)
//! * Dissent 7. *Repair.* If of 2f+1 votes for a checkpoint f+1 name one root, and no other f+1 another one, but no
//!   2f+1 agree although all have been asked again, these votes are a RULING: that state is right. Who has another one
//!   fetches it (Backup 7 of [`crate::protocols::backup`]). It is ordered because two halves could repair themselves
//!   with the state of the other half, and sign both. If no root has f+1 and no request is disputed, the votes are a
//!   RULING together with TESTIMONIES that reach that checkpoint: the first request after which no 2f+1 have the same
//!   effects is refused as in Dissent 5. (Older ones may end before the disputed request, and one that is good would
//!   be refused for it.)
//! * Dissent 8. Votes for checkpoints name the batch of the last ruling that they follow: only such as follow the same
//!   add up.
//!
//! # Why it is safe
//! Call a replica *true* that does not lie. *No good request is refused:* if all true replicas executed it identically,
//! f+1 of any 2f+1 testimonies are theirs, and the other f make no second value of f+1; the same holds for votes. *All
//! refuse the same:* the ruling, its place and what it says are ordered; what it refuses follows from them alone. *What
//! was answered stays:* a client has 2f+1 equal answers. As long as those who executed it otherwise and those who lie
//! are f at most, f+1 of any 2f+1 testimonies or votes are for it, and for nothing else. If they are more, liars may
//! have given the answer and testify against it: with 3f+1 replicas, of which f lie, f+1 true ones that did one thing
//! cannot be told from f that did another, by any protocol, for the two worlds differ only in what was said to a
//! client. This is the one case in which an answer may be taken back. It needs a service that is not deterministic and
//! liars who know when; or one that does otherwise, at more than f replicas, when it executes a request again: after a
//! restart, or after a batch was undone.
//!
//! # Why it is live
//! Where fewer than 2f+1 true replicas have the same effects, their TESTIMONIES meet: they are sent again as long as
//! the checkpoint is not stable or the client asks. Either a request is disputed, or there are votes for the checkpoint
//! of Dissent 6: f+1 equal ones, and the others get that state by Dissent 7, or none, and a request is refused by
//! Dissent 7. After each of these rulings there is one thing less between the true replicas. A ruling makes a
//! checkpoint, so the window moves on before the next one. The order has room for rulings in every window, however
//! many batches wait for the checkpoint: its last places are for them only ([`Cluster::window_of_requests`]). f liars
//! alone bring about TESTIMONIES, a few in each interval, and rulings by which states are compared; the interval
//! doubles with each of those, up to the longest time-out of a view.
//!
//! # Where n is more than 3f+1
//! Steps and arguments are for n = 3f+1. With more replicas, what is one number there comes apart
//! ([`crate::replicas`]).
//! * *A client has its answer, and a checkpoint is stable*, by `strong` = ⌈(n+f+1)/2⌉ equal words: that is
//!   the 2f+1 of the first argument, of "no 2f+1 agree" in Dissent 2, 6 and 7, and of the last sentence of Dissent 7.
//! * *One looks at testimonies and votes* of n − f replicas (`reachable`): the 2f+1 of "one looks along",
//!   "of 2f+1 votes" and "any 2f+1". So many come if f are down, and fewer would not do: with n = 6 and f = 1 an answer
//!   has 4 replicas, and 4 testimonies may hold 2 of theirs and 2 of the others', so nothing tells which it was.
//! * *A value has support* with n − strong + 1 (`blocking`), which is the f+1 of Dissent 3 and 7. Those
//!   without a part in an answer are n − strong, and with n = 6 these are f+1: two of six that executed a request in
//!   one other way had it refused after four had answered it, and where three and two had two states, both had f+1 and
//!   none was right, for ever.
//!
//! With these the arguments hold for every n. Of n − f at most f lie, so n − 2f ≥ n − strong + 1 testify identically if
//! all true replicas executed identically, and f < n − strong + 1 do not. If those who lie and those who executed
//! otherwise are n − strong at most, they have no support, and the answer has: n − f − (n − strong) = strong − f of its
//! replicas are among any n − f, and 2·strong ≥ n + f + 1. Who is right by n − strong + 1 > f votes has a true replica
//! to fetch the state from.
//!
//! # Where instances abort
//! Rulings are ordered in PBFT and in Backups. Other instances need not rule: they stop. A client of Quorum, ZLight or
//! Chain panics when no n replicas, or no 2f+1, have executed its request identically; Chain and the fast ring compare
//! effects on the way and stop by themselves; a resilient ring stops when a client goes on asking and no 2f+1 sign one
//! state. Their abort history holds the disputed request, since it is about what was logged. The next Backup begins
//! with it, finds it and refuses it there. Nobody was told a result of it or of what came after: in every instance an
//! answer needs 2f+1 replicas with the same effects, and those of an init history are compared before they are vouched
//! for.
//!
//! A Backup ends with a checkpoint that 2f+1 signed, so what follows begins with the same state everywhere. Until then
//! its order goes on for the sake of rulings. That is why `ring` has a Backup behind its two modes. A schedule without
//! one, such as `quorum, ring-resilient`, has no way out: it goes round without acknowledging anything.
//!
//! # Where it does not work
//! A service that leaves out [`take_written`](crate::service::Service::take_written) is helped only where its answers
//! differ. Who was given a state from the middle of an init history cannot go back to before that: the others refuse
//! the request without it, and it is given their state. If f others are down then, they are too few. Places for rulings
//! are a quarter of a checkpoint interval in each window, and eight at least. Many disputed requests in one window, and
//! a liar that has each of them ruled upon more than once, could use them up, and the cluster would stop. With two
//! places that happened: the simulator met it with intervals of four (false-testimony) and of three (a replica down,
//! and nobody who lied).
//!
//! # Cost
//! Without dissent 32 bytes of memory for each request above the stable checkpoint, and a hash of what is answered.
//! With it: one or two signed messages of at most 33 KB from each replica, a ruling of 2f+1 of them, and at most two
//! checkpoint intervals executed again.

use crate::auth::{Certificate, Claimed, Keyring, Signable, Signed};
use crate::checkpoint::Checkpoint;
use crate::cluster::Cluster;
use crate::digest::Digest;
use crate::ids::{ClientId, InstanceId, Principal, Sequence};
use crate::rejection::Rejection;
use crate::replicas::{REPLICAS_MAX, Replicas};
use crate::spoken::{Cover, Spoken, from_replica};
use crate::wire::{Reader, Sink, Wire, WireError, encode_list};
use crate::{wire_enum, wire_struct};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

/// Requests in a block, and blocks in an outline: what follows is not looked at before the stable checkpoint moves.
pub const BLOCK: usize = 1_024;

/// TESTIMONY: the effects that a replica's state had on its way from a stable checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Testimony {
    /// What it is about; only testimonies about the same can be compared.
    pub scope: Scope,
    /// An outline: at the end of each block. Otherwise: before the first request of the block, and after each of them.
    /// As far as the replica has executed for good. Zero where it does not remember them: its log begins later, at a
    /// place where all were known to agree.
    pub effects: Vec<Digest>,
}

/// What a [`Testimony`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// The stable checkpoint from which it counts.
    pub base: Checkpoint,
    /// Requests executed there, over all instances.
    pub position: u64,
    /// The batch of the last ruling that the state follows.
    pub ruled: Sequence,
    /// The block, or all of them in outline.
    pub block: Option<u32>,
}
wire_struct!(Scope { base, position, ruled, block });

impl Scope {
    /// Requests executed before those that the testimony is about.
    pub fn first(&self) -> u64 {
        self.position.saturating_add(u64::from(self.block.unwrap_or(0)) * BLOCK as u64)
    }

    /// The request that stands there in it, counting from 1, over all instances. `None` where there is no such number:
    /// a scope that nobody has signed says what it likes.
    fn place(&self, in_block: usize) -> Option<u64> {
        self.first().checked_add(in_block as u64)
    }
}

impl Testimony {
    /// Whether it tells of all requests up to this position, or of a whole block that ends before.
    pub fn reaches(&self, position: u64) -> bool {
        let last = self.scope.first().saturating_add((self.effects.len() as u64).saturating_sub(1));
        self.effects.len() > BLOCK || last >= position
    }
}

impl Wire for Testimony {
    fn encode(&self, out: &mut impl Sink) {
        self.scope.encode(out);
        encode_list(&self.effects, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        Ok(Self { scope: Wire::decode(reader)?, effects: reader.list(BLOCK + 1)? })
    }
}

impl Signable for Testimony {
    const KIND: u8 = 19;
}

/// What replicas agree to do about a difference. It is its own proof: 2f+1 replicas or more, in their order, have
/// signed what it follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Dissent 4: a request is disputed, as these testimonies about one block show.
    Disputed(List<Testimony>),
    /// Dissent 6: these have not all the same effects, but no request is disputed. So there is to be a checkpoint.
    Unsettled(List<Testimony>),
    /// Dissent 7: one state at a checkpoint is right, as these votes show.
    Right(List<Checkpoint>),
    /// Dissent 7: no state is.
    Hopeless(Hopeless),
}
wire_enum!(Ruling {
    1 => Disputed,
    2 => Unsettled,
    3 => Right,
    4 => Hopeless,
});

/// That no state at a checkpoint is right, and which request is refused for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hopeless {
    /// Of 2f+1 replicas, with no root that alone has f+1.
    pub votes: List<Checkpoint>,
    /// Where they part.
    pub testimonies: List<Testimony>,
}
wire_struct!(Hopeless { votes, testimonies });

/// What replicas have signed, one each, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(pub Vec<Claimed<Signed<T>>>);

impl<T: Signable> Wire for List<T> {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(&self.0, out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let list: Vec<Claimed<Signed<T>>> = reader.list(REPLICAS_MAX)?;
        if list.windows(2).any(|pair| pair[0].signer() >= pair[1].signer()) {
            return Err(WireError::NotCanonical);
        }
        Ok(Self(list))
    }
}

impl<T: Signable> List<T> {
    /// What others are told of them.
    pub fn of(signed: Vec<Signed<T>>) -> Self {
        Self(signed.into_iter().map(Claimed::from).collect())
    }

    /// The statements, if all of them were signed.
    pub(crate) fn verify(&self, keyring: &Keyring) -> Option<Vec<&Signed<T>>> {
        self.0.iter().map(|signed| keyring.verify_in_place(signed)).collect()
    }
}

impl List<Testimony> {
    /// What all of them are about: one block of an instance.
    fn scope(&self, instance: InstanceId) -> Option<Scope> {
        let scope = self.0.first()?.claims().scope;
        let about_one = self.0.iter().all(|signed| signed.claims().scope == scope);
        (about_one && scope.block.is_some() && scope.base.instance == instance).then_some(scope)
    }

    fn effects(&self) -> impl Iterator<Item = &[Digest]> + Clone {
        self.0.iter().map(|signed| &*signed.claims().effects)
    }
}

/// What a ruling says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This request is disputed: requests executed with it, over all instances.
    Refused(u64),
    /// States are to be compared at the batch with the ruling.
    Compared,
    /// This state is right, as f+1 replicas or more have signed.
    Right(Certificate<Checkpoint>),
}

impl Ruling {
    /// What it says, if it is one of this instance, and the batch of the ruling that it follows.
    pub fn verdict(&self, cluster: &Cluster, keyring: &Keyring, instance: InstanceId) -> Option<(Sequence, Verdict)> {
        let replicas = cluster.replicas_of(instance);
        match self {
            Self::Disputed(list) => {
                let scope = list.scope(instance)?;
                let disputed = scope.place(disputed(replicas, list.effects())?)?;
                list.verify(keyring).map(|_| (scope.ruled, Verdict::Refused(disputed)))
            }
            Self::Unsettled(list) => {
                let scope = list.scope(instance)?;
                let holds = is_unsettled(replicas, list.effects()) && list.verify(keyring).is_some();
                holds.then_some((scope.ruled, Verdict::Compared))
            }
            Self::Hopeless(Hopeless { votes, testimonies }) => {
                let scope = testimonies.scope(instance)?;
                let is_hopeless = votes.0.len() >= replicas.reachable()
                    && votes
                        .0
                        .iter()
                        .all(|vote| vote.claims().ruled == scope.ruled && vote.claims().instance == instance)
                    && votes.0.windows(2).all(|pair| pair[0].claims().sequence == pair[1].claims().sequence)
                    && only_supported(replicas, votes.0.iter().map(|vote| vote.claims().root)).is_none();
                let contested = contested(replicas, testimonies.effects()).filter(|_| is_hopeless)?;
                let contested = scope.place(contested)?;
                let holds = votes.verify(keyring).is_some() && testimonies.verify(keyring).is_some();
                holds.then_some((scope.ruled, Verdict::Refused(contested)))
            }
            Self::Right(votes) => {
                let value = right(replicas, votes.0.iter().map(Claimed::<Signed<_>>::claims))?;
                let is_here = value.instance == instance && value.is_plausible(cluster);
                let votes = is_here.then(|| votes.verify(keyring)).flatten()?;
                let equal = votes.into_iter().filter(|vote| *vote.value() == value);
                let certificate = Certificate::tally(equal.cloned(), replicas.blocking());
                Some((value.ruled, Verdict::Right(certificate)))
            }
        }
    }
}

/// Dissent 3: the block in which these outlines end.
pub fn last_block<'a>(replicas: Replicas, outlines: impl Iterator<Item = &'a [Digest]>) -> usize {
    compare(replicas, outlines).0
}

/// Dissent 6: whether 2f+1 of these do not all testify to the same effects, and no request is disputed.
pub fn is_unsettled<'a>(replicas: Replicas, testimonies: impl Iterator<Item = &'a [Digest]>) -> bool {
    let all: Vec<&[Digest]> = testimonies.collect();
    let (end, disputed) = compare(replicas, all.iter().copied());
    let differ = |index: usize| tally(known(&all, index)).len() > 1;
    !disputed && (0..end).any(differ)
}

/// Dissent 7: the first request of a block after which no 2f+1 of these have the same effects, counting from 1; none if
/// one is disputed.
pub fn contested<'a>(replicas: Replicas, testimonies: impl Iterator<Item = &'a [Digest]>) -> Option<usize> {
    let all: Vec<&[Digest]> = testimonies.collect();
    let (end, disputed) = compare(replicas, all.iter().copied());
    let is_contested = |index: &usize| {
        let is_remembered = known(&all, *index).count() >= replicas.reachable();
        is_remembered && tally(known(&all, *index)).into_values().all(|count| count < replicas.strong())
    };
    (0..end).find(is_contested).filter(|index| *index > 0 && !disputed)
}

/// Dissent 3: which request of a block is disputed, counting from 1, if these testimonies show that one is.
pub fn disputed<'a>(replicas: Replicas, testimonies: impl Iterator<Item = &'a [Digest]>) -> Option<usize> {
    let (index, disputed) = compare(replicas, testimonies);
    (disputed && index > 0).then_some(index)
}

/// How far f+1 agree, of those who agreed so far, and no other f+1 of them on something else; and whether they end
/// there because that is no longer so. Nothing is said about what fewer than 2f+1 have come to, nor about places that
/// fewer remember. (Where n is more than 3f+1, they are n − strong + 1 and n − f, here and below.)
fn compare<'a>(replicas: Replicas, lists: impl Iterator<Item = &'a [Digest]>) -> (usize, bool) {
    let all: Vec<&[Digest]> = lists.collect();
    let mut agreed = all.clone();
    for index in 0.. {
        if all.iter().filter(|list| list.len() > index).count() < replicas.reachable() {
            return (index, false);
        }
        agreed.retain(|list| list.len() > index);
        if known(&all, index).count() < replicas.reachable() {
            continue;
        }
        let Some(value) = only_supported(replicas, known(&agreed, index)) else {
            return (index, true);
        };
        agreed.retain(|list| [value, Digest::ZERO].contains(&list[index]));
    }
    unreachable!("lists end")
}

/// What is remembered of a place.
fn known(lists: &[&[Digest]], index: usize) -> impl Iterator<Item = Digest> {
    lists.iter().filter_map(move |list| list.get(index).copied().filter(|effects| *effects != Digest::ZERO))
}

/// Dissent 7: the root that f+1 of these votes name, if 2f+1 replicas have voted about one checkpoint under one ruling,
/// and no other root has f+1.
pub fn right<'a>(replicas: Replicas, votes: impl Iterator<Item = &'a Checkpoint> + Clone) -> Option<Checkpoint> {
    let first = *votes.clone().next()?;
    let about_one = |vote: &Checkpoint| Checkpoint { root: first.root, ..*vote } == first;
    if votes.clone().count() < replicas.reachable() || !votes.clone().all(about_one) {
        return None;
    }
    only_supported(replicas, votes.copied())
}

/// Dissent 7: of votes that name two roots with f+1 each, as many as are right about one of them. That may be all that
/// there will ever be, if a liar has voted for a root and testifies to something else.
pub fn right_without_some(replicas: Replicas, votes: &[Signed<Checkpoint>]) -> Option<Vec<Signed<Checkpoint>>> {
    let roots = tally(votes.iter().map(|vote| vote.value().root));
    let (root, _) = roots.into_iter().max_by_key(|(_, count)| *count)?;
    let mut others = BTreeMap::new();
    let mut some = votes.to_vec();
    some.retain(|vote| {
        let count: &mut usize = others.entry(vote.value().root).or_default();
        *count += 1;
        vote.value().root == root || *count < replicas.blocking()
    });
    right(replicas, some.iter().map(Signed::value)).is_some().then_some(some)
}

/// The only value that f+1 give, if there is exactly one.
fn only_supported<T: Ord + Copy>(replicas: Replicas, values: impl Iterator<Item = T>) -> Option<T> {
    let mut supported = tally(values).into_iter().filter(|(_, count)| *count >= replicas.blocking());
    let (value, _) = supported.next()?;
    supported.next().is_none().then_some(value)
}

/// How often each value is given.
pub(crate) fn tally<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

impl fmt::Display for Claimed<Signed<Testimony>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Testimony { scope, effects } = &self.claims();
        let block = scope.block.map_or(-1, i64::from);
        write!(f, "TESTIMONY {} r{} b{block} {}", scope.base.sequence, scope.ruled.0, effects.len())
    }
}

impl Spoken for Claimed<Signed<Testimony>> {
    fn instance(&self) -> Option<InstanceId> {
        Some(self.claims().scope.base.instance)
    }

    fn addressee(&self) -> Option<ClientId> {
        None
    }

    fn cover(&self) -> Cover {
        Cover::Whole
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn admit(&mut self, from: Principal, _cluster: &Cluster, _keyring: &Keyring) -> Result<(), Rejection> {
        from_replica(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Signature;
    use crate::cluster::{ClientAuth, Limits};
    use crate::ids::ReplicaId;
    use crate::services::Counter;
    use crate::testing::net::{INSTANCE, Net, r};
    use alloc::vec;

    fn judge(n: usize, testimonies: &[&str]) -> Option<usize> {
        let cluster = crate::testing::net::cluster(n, ClientAuth::Hybrid, Limits::default());
        // A letter stands for what a request did; effects are a chain. Up to a capital they are not remembered.
        let chained = |text: &&str| {
            let steps = text.bytes().map(|letter| Digest([letter.to_ascii_lowercase(); 32]));
            let mut effects = vec![Digest([1; 32])];
            steps.for_each(|step| effects.push(effects[effects.len() - 1].chain(step)));
            let forgotten = text.rfind(|letter: char| letter.is_ascii_uppercase()).map_or(0, |last| last + 1);
            effects[..forgotten].fill(Digest::ZERO);
            effects
        };
        let testimonies: Vec<Vec<Digest>> = testimonies.iter().map(chained).collect();
        disputed(cluster.replicas, testimonies.iter().map(Vec::as_slice))
    }

    #[test]
    fn the_first_request_that_is_not_agreed_on_is_found() {
        for (n, testimonies, found) in [
            // All equal, or one that differs, or one that has not come so far: nothing.
            (4, &["aaa", "aaa", "aaa", "aaa"][..], None),
            (4, &["aaa", "aaa", "aab", "aaa"], None),
            (4, &["aaa", "aaa", "a", "aaa"], None),
            // Some begin later.
            (4, &["aab", "Aac", "AAd"], Some(3)),
            (4, &["aaab", "aaac", "AAad", "AAae"], Some(4)),
            (4, &["aaa", "AAa", "AAA", "aaa"], None),
            (4, &["aba", "aca", "AAa"], Some(2)),
            // Too few to tell.
            (4, &["ab", "ac"], None),
            (4, &["a", "ab", "ac"], None),
            // No two equal; and those who follow had no chance.
            (4, &["aab", "aac", "aad"], Some(3)),
            (4, &["abx", "acx", "adx", "aex"], Some(2)),
            // Exactly one value has f+1: who differs can have it.
            (4, &["aab", "aab", "aac"], None),
            (4, &["aab", "aab", "aac", "aad"], None),
            // Two have.
            (4, &["aab", "aab", "aac", "aac"], Some(3)),
            // One is wrong from the beginning, and three others do not agree later.
            (4, &["xaa", "abb", "abc", "abd"], Some(3)),
            // The first may be what 2f+1 did: it is looked further among those who did it.
            (4, &["xab", "aab", "aac"], Some(3)),
            (4, &["aab", "aac", "abb", "acb"], Some(3)),
            (4, &["aab", "aac", "ab"], None),
            // Of six, four have answered: neither the two others nor a choice of four have it refused.
            (6, &["aab", "aab", "aab", "aab", "aac", "aac"], None),
            (6, &["aab", "aab", "aac", "aac"], None),
            (6, &["aab", "aab", "aab", "aac", "aac"], None),
            // Nobody can have: no four are left that did one thing.
            (6, &["aab", "aab", "aac", "aac", "aad"], Some(3)),
            (6, &["aab", "aab", "aab", "aac", "aac", "aac"], Some(3)),
            (5, &["aab", "aab", "aac", "aac"], Some(3)),
            (5, &["aab", "aab", "aab", "aac"], None),
            (7, &["a", "a", "b", "b", "c"], Some(1)),
            (7, &["a", "a", "a", "b", "b", "c"], None),
            (7, &["a", "a", "a", "b", "b", "b"], Some(1)),
        ] {
            assert_eq!(judge(n, testimonies), found, "{n}: {testimonies:?}");
        }
    }

    /// f liars say what they like; the true ones all did the same.
    #[test]
    fn liars_have_no_good_request_refused() {
        for liars in ["b", "c", "a", ""] {
            for true_ones in 2..=3 {
                let mut testimonies = vec!["aaaa"; true_ones];
                testimonies.push(liars);
                assert_eq!(judge(4, &testimonies), None);
            }
        }
        assert_eq!(judge(7, &["aa", "aa", "aa", "b", "b"]), None);
    }

    #[test]
    fn an_outline_leads_to_the_block() {
        let cluster = crate::testing::net::cluster(4, ClientAuth::Hybrid, Limits::default());
        let outline = |bytes: &[u8]| bytes.iter().map(|byte| Digest([*byte; 32])).collect::<Vec<_>>();
        let all = [outline(&[1, 2, 3]), outline(&[1, 2, 4]), outline(&[1, 2]), outline(&[9, 9, 9])];
        assert_eq!(last_block(cluster.replicas, all.iter().map(Vec::as_slice)), 2);
        assert_eq!(last_block(cluster.replicas, all[1..].iter().map(Vec::as_slice)), 2);
        assert_eq!(last_block(cluster.replicas, all[..2].iter().map(Vec::as_slice)), 0);
    }

    /// What nobody has signed may be about requests beyond the last number.
    #[test]
    fn a_ruling_about_no_number_says_nothing() {
        let net = Net::<Counter>::new(4, Limits::default());
        let base = Checkpoint { instance: INSTANCE, sequence: Sequence(4), ruled: Sequence(0), root: Digest([7; 32]) };
        let scope = Scope { base, position: u64::MAX, ruled: Sequence(0), block: Some(0) };
        let (of, nothing) = (|id: u8| ReplicaId(id), Signature([0; 64]));
        let testimony = |id: u8| {
            let effects = vec![Digest([9; 32]), Digest([id; 32])];
            Claimed::signed(Testimony { scope, effects }, of(id), nothing)
        };
        let vote = |id: u8| Claimed::signed(Checkpoint { root: Digest([id; 32]), ..base }, of(id), nothing);
        let testimonies = || List((1..4).map(testimony).collect());
        assert_eq!(disputed(net.cluster.replicas, testimonies().effects()), Some(1), "but for its number");
        let hopeless = Hopeless { votes: List((1..4).map(vote).collect()), testimonies: testimonies() };
        for ruling in [Ruling::Disputed(testimonies()), Ruling::Hopeless(hopeless)] {
            assert_eq!(ruling.verdict(&net.cluster, net.keyring(r(0)), INSTANCE), None);
        }
    }
}
