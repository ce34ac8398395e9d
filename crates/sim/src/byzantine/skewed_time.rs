//! Agreed time (prac-A20): a primary that proposes times that are a little off, far off, or always the same.

use super::{Behaviour, Liar};
use crate::rng::Rng;
use bezant_core::batch::Batch;
use bezant_core::ids::{Principal, Sequence, View};
use bezant_core::protocols::pbft::{Ordering, PbftMessage, PrePrepare};
use bezant_core::registry::Message;
use bezant_core::time::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct SkewedTime {
    skew: Skew,
    /// What it proposed, so that every receiver hears the same.
    proposed: BTreeMap<(View, Sequence), Arc<Batch>>,
}

/// Microseconds, and besides so many thousandths of what is accepted.
type Span = (u64, u64);

#[derive(Clone, Copy, Debug)]
enum Skew {
    Ahead(Span),
    Behind(Span),
    Always(u64),
}

impl SkewedTime {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let span = *rng.pick(&[(1_000, 0), (0, 100), (0, 990), (0, 1_100), (1 << 50, 0)]);
        let skew = match rng.below(3) {
            0 => Skew::Ahead(span),
            1 => Skew::Behind(span),
            _ => Skew::Always(*rng.pick(&[0, crate::clock::EPOCH, u64::MAX])),
        };
        Self { skew, proposed: BTreeMap::new() }
    }
}

impl Behaviour for SkewedTime {
    fn send(&mut self, liar: &mut Liar<'_>, to: Principal, message: &Message) {
        let Message::Ordering(Ordering { instance, message: said }) = message else { return liar.say(to, message) };
        let accepted = liar.cluster.limits.clock_skew_max.0;
        let length = |(micros, parts): Span| micros + accepted * parts / 1_000;
        let lie = match said {
            PbftMessage::PrePrepare(proposal) if !proposal.batch.is_null() => {
                let PrePrepare { view, sequence, batch } = proposal;
                let batch = self.proposed.entry((*view, *sequence)).or_insert_with(|| {
                    let mut skewed = batch.proposal().clone();
                    let time = skewed.time.0;
                    skewed.time = Instant(match self.skew {
                        Skew::Ahead(span) => time.saturating_add(length(span)),
                        Skew::Behind(span) => time.saturating_sub(length(span)),
                        Skew::Always(time) => time,
                    });
                    Arc::new(Batch::new(skewed, batch.entries().to_vec()))
                });
                PbftMessage::PrePrepare(PrePrepare { view: *view, sequence: *sequence, batch: batch.clone() })
            }
            PbftMessage::Commit(vote) => {
                let batch = self.proposed.get(&(vote.view, vote.sequence));
                let mut vote = *vote;
                vote.digest = batch.map_or(vote.digest, |batch| batch.digest());
                PbftMessage::Commit(vote)
            }
            other => other.clone(),
        };
        liar.order(to, *instance, lie);
    }

    /// Its own machine believes in the honest batch; votes for the skewed one are answered in its place.
    fn receive(&mut self, liar: &mut Liar<'_>, incoming: &bezant_core::registry::Incoming) -> bool {
        if let Message::Ordering(Ordering { instance, message: PbftMessage::Prepare(vote) }) = &*incoming.message
            && self.proposed.get(&(vote.view, vote.sequence)).is_some_and(|batch| batch.digest() == vote.digest)
        {
            for to in liar.others() {
                liar.order(to, *instance, PbftMessage::Commit(*vote));
            }
        }
        true
    }
}
