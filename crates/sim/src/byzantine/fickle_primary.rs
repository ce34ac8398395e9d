//! A primary that proposes something to some and something else, or nothing, to others, and leaves its view at once,
//! for the next one or to begin anew. Then what one replica has prepared others have accepted or never heard of; and
//! the next view begins without the word of one of them, where the liar leads it, with other batches at the same
//! positions. So views change, and what they have to agree on differs as much as it can. Some of these liars say
//! nothing in the view changes of others, which then have to go on without them.

use super::equivocate::other;
use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::auth::{Certificate, Claimed};
use bezant_core::batch::Batch;
use bezant_core::checkpoint::{Checkpoint, Evidence};
use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::{InstanceId, Principal, ReplicaId, Sequence, View};
use bezant_core::protocols::pbft::{Claim, Ordering, PbftMessage, PrePrepare, ViewChange};
use bezant_core::registry::{Incoming, Message};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest until some hear that it leaves, and until others do, in microseconds: before those have heard what these
/// say of the batch, and after.
const SOON: u64 = 3_000;
const LATE: u64 = 10_000;

#[derive(Debug)]
pub(super) struct FicklePrimary {
    /// Views that it leaves at a proposal, per mille.
    often: u64,
    /// Whether it leads a view until it may begin anew.
    waits: bool,
    /// Whether it keeps its word back when others leave.
    mute: bool,
    /// The view that it leads, and ticks since its first proposal there.
    led: (InstanceId, View),
    age: u64,
    /// The view that it leaves.
    left: Option<Left>,
    stable: Option<Claimed<Certificate<Checkpoint>>>,
}

/// A view that is left, as everybody is told about it.
#[derive(Debug)]
struct Left {
    at: (InstanceId, View, Sequence),
    wanted: View,
    /// What each hears at that position; nothing, where there is nothing.
    stories: BTreeMap<ReplicaId, Option<Arc<Batch>>>,
    /// Whose VIEW-CHANGE is not heard.
    forgotten: Option<ReplicaId>,
}

impl FicklePrimary {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let often = *rng.pick(&[100, 400, 900]);
        Self {
            often,
            waits: rng.per_mille(700),
            mute: rng.per_mille(700),
            led: Default::default(),
            age: 0,
            left: None,
            stable: None,
        }
    }

    /// Whether all leave with a primary that begins anew: not before two time-outs are over.
    fn may_begin_anew(&self, liar: &Liar<'_>) -> bool {
        let limits = &liar.cluster.limits;
        self.age > 2 * limits.view_timeout.0 / limits.status_interval.0 + 1
    }

    /// What it says as it leaves: nothing, or that something was prepared which nobody has.
    fn view_change(
        &self,
        rng: &mut Rng,
        instance: InstanceId,
        wanted: View,
        claims: Option<(Sequence, View)>,
    ) -> ViewChange {
        let known = self.stable.clone().filter(|stable| stable.claims().instance == instance);
        let stable = known.unwrap_or_else(|| Evidence::genesis(instance, Digest::ZERO).claim());
        let digest = Digest::of(Domain::Trace, &rng.next().to_le_bytes());
        let claim = |(sequence, view)| Claim { sequence, digest, view };
        let prepared: Vec<Claim> =
            claims.filter(|(sequence, _)| *sequence > stable.claims().sequence).map(claim).into_iter().collect();
        ViewChange { view: wanted, stable, pre_prepared: prepared.clone(), prepared }
    }

    /// Remembers the highest stable checkpoint that anybody proves in a view change.
    fn learn(&mut self, view_change: &ViewChange) {
        let key = |stable: &Claimed<Certificate<Checkpoint>>| (stable.claims().instance, stable.claims().sequence);
        if self.stable.as_ref().is_none_or(|known| key(known) < key(&view_change.stable)) {
            self.stable = Some(view_change.stable.clone());
        }
    }

    /// Leaves the view with this proposal, now and then: for the next one, most of all if it has begun this one anew.
    fn leave(&mut self, liar: &mut Liar<'_>, instance: InstanceId, proposal: &PrePrepare) {
        let PrePrepare { view, sequence, ref batch } = *proposal;
        if self.led != (instance, view) {
            (self.led, self.age) = ((instance, view), 0);
        }
        let last = self.left.as_ref().filter(|left| left.at.0 == instance);
        if last.is_some_and(|left| left.at.1 >= view) {
            return;
        }
        let goes_on = last.is_some_and(|left| left.wanted == view);
        let anew = self.may_begin_anew(liar);
        if self.waits && !goes_on && !anew || !liar.rng.per_mille(self.often) {
            return;
        }
        let wanted = View(view.0 + if anew { liar.cluster.replicas.n() as u64 } else { 1 });
        let mut others: Vec<ReplicaId> = liar.cluster.replicas.iter().filter(|id| *id != liar.me).collect();
        liar.rng.shuffle(&mut others);
        let scheme = if liar.rng.per_mille(700) { u64::from(goes_on) } else { 2 };
        let claims = liar.rng.per_mille(if goes_on { 800 } else { 200 });
        let view_change = self.view_change(liar.rng, instance, wanted, claims.then_some((sequence, view)));
        let mut stories = BTreeMap::new();
        for (number, id) in others.iter().enumerate() {
            let (story, late) = match scheme {
                0 => one_prepares(liar, batch, number),
                1 => nobody_prepares(liar, batch, number),
                _ => anything(liar, batch),
            };
            stories.insert(*id, story);
            let message = PbftMessage::ViewChange(Box::new(liar.keyring.sign(view_change.clone()).into()));
            let delay = 1 + liar.rng.below(late);
            liar.say_later(delay, Principal::Replica(*id), &Message::Ordering(Ordering { instance, message }));
        }
        let forgotten = others.first().copied().filter(|_| liar.rng.per_mille(800));
        self.left = Some(Left { at: (instance, view, sequence), wanted, stories, forgotten });
    }
}

/// The first prepares the batch, by the PREPAREs of some who have left when they hear its own. What it hears, and the
/// longest until it hears that the primary leaves.
fn one_prepares(liar: &mut Liar<'_>, batch: &Arc<Batch>, number: usize) -> (Option<Arc<Batch>>, u64) {
    match number {
        0 => (Some(batch.clone()), LATE),
        number if number + 1 < liar.cluster.replicas.strong() => (Some(batch.clone()), SOON),
        _ => (None, SOON),
    }
}

/// All but the first accept something, half of them something else than the others.
fn nobody_prepares(liar: &mut Liar<'_>, batch: &Arc<Batch>, number: usize) -> (Option<Arc<Batch>>, u64) {
    let story = match number {
        0 => None,
        number if number % 2 == 0 => Some(Arc::new(other(liar.rng, batch))),
        _ => Some(batch.clone()),
    };
    (story, LATE)
}

fn anything(liar: &mut Liar<'_>, batch: &Arc<Batch>) -> (Option<Arc<Batch>>, u64) {
    let story = match liar.rng.below(4) {
        0 | 1 => Some(batch.clone()),
        2 => Some(Arc::new(other(liar.rng, batch))),
        _ => None,
    };
    (story, *liar.rng.pick(&[10, SOON, LATE]))
}

impl Behaviour for FicklePrimary {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let (Principal::Replica(id), Message::Ordering(Ordering { instance, message: said })) = (to, message) else {
            return liar.say(to, message);
        };
        match said {
            PbftMessage::PrePrepare(proposal) => {
                self.leave(liar, *instance, proposal);
                let at = (*instance, proposal.view, proposal.sequence);
                let story = self.left.as_ref().filter(|left| left.at == at).and_then(|left| left.stories.get(&id));
                match story {
                    Some(None) => {}
                    Some(Some(batch)) => {
                        let lie = PrePrepare { batch: batch.clone(), ..*proposal };
                        liar.order(to, *instance, PbftMessage::PrePrepare(lie));
                    }
                    None => liar.say(to, message),
                }
            }
            PbftMessage::ViewChange(signed) => {
                self.learn(signed.claims());
                if !self.mute || signed.signer() != liar.me {
                    liar.say(to, message);
                }
            }
            // It begins the views that it has left others for, and those of its turn only if it is not mute.
            PbftMessage::NewView(signed) if self.mute && signed.signer() == liar.me => {
                if self.left.as_ref().is_none_or(|left| left.wanted == signed.claims().view) {
                    liar.say(to, message);
                }
            }
            _ => liar.say(to, message),
        }
    }

    /// In the view that it leaves its replica prepares nothing, so that it has nothing to say of it.
    fn receive(&mut self, _liar: &mut Liar<'_>, incoming: &Incoming) -> bool {
        let Message::Ordering(Ordering { instance, message }) = &*incoming.message else { return true };
        if let PbftMessage::ViewChange(signed) = message {
            self.learn(signed.claims());
        }
        let Some(left) = &self.left else { return true };
        let (of, view, _) = left.at;
        *instance != of
            || match message {
                PbftMessage::Prepare(vote) | PbftMessage::Commit(vote) => vote.view != view,
                PbftMessage::ViewChange(signed) => {
                    signed.claims().view != left.wanted || Some(signed.signer()) != left.forgotten
                }
                _ => true,
            }
    }

    fn tick(&mut self, _liar: &mut Liar<'_>) {
        self.age += 1;
    }
}
