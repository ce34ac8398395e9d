//! How the last view began of which a replica knows that.
//!
//! A NEW-VIEW for view u that follows from its VIEW-CHANGEs proves that nothing but what it chose was committed before
//! u. A primary that lies can sign several for its view, from other VIEW-CHANGEs each, and show another one to each
//! replica. All of them are true. So whoever knows several claims of the views before u only what all of them chose,
//! and vouches for nothing else. What was accepted or prepared in u itself is not touched: at most one batch prepares
//! there.
//!
//! Were that not so, one lie would stop the service for good. One replica goes on claiming what it had prepared, since
//! the NEW-VIEW that it knows chose it; and whoever had accepted it as well has forgotten that, since the one that it
//! knows did not choose it. Then pbft-A2 is never met for that batch, and B neither.
//!
//! *All correct replicas come to know the same*: STATUS says what its author knows, and whoever knows otherwise shows
//! its ways, one each time. Only what takes something from the choice is taken in, so this ends; and a liar that
//! keeps back another way, until a view begins or does not, spoils one choice with each position of the window.

use super::decision::Decision;
use super::message::{NewView, positions};
use crate::auth::Signed;
use crate::cluster::Cluster;
use crate::digest::{Digest, Domain};
use crate::ids::{Sequence, View};
use crate::wire::Wire;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Begun {
    view: View,
    /// One, unless the primary lies, and each takes something from `chosen`: no more than the positions of a window,
    /// and one. None for the view with which all begin.
    ways: Vec<Signed<NewView>>,
    /// The highest checkpoint that one of them proves.
    low: Sequence,
    /// What all of them chose above that.
    chosen: BTreeMap<Sequence, Digest>,
}

impl Begun {
    /// The view with which all begin.
    pub(super) fn by_itself(view: View) -> Self {
        Self { view, ..Self::default() }
    }

    /// Which view.
    pub(super) const fn view(&self) -> View {
        self.view
    }

    /// The NEW-VIEWs for it.
    pub(super) fn ways(&self) -> &[Signed<NewView>] {
        &self.ways
    }

    /// The highest checkpoint that one of them proves.
    pub(super) const fn low(&self) -> Sequence {
        self.low
    }

    /// What all of them chose at a position.
    pub(super) fn chosen(&self, sequence: Sequence) -> Option<Digest> {
        self.chosen.get(&sequence).copied()
    }

    /// The same of all positions above this one.
    pub(super) fn chosen_above(&self, low: Sequence) -> impl Iterator<Item = (Sequence, Digest)> {
        self.chosen.range(low.next()..).map(|(sequence, digest)| (*sequence, *digest))
    }

    /// Equal at all replicas that know the same.
    pub(super) fn digest(&self) -> Digest {
        let mut bytes = Vec::with_capacity(40 * self.chosen.len());
        for (sequence, digest) in &self.chosen {
            sequence.encode(&mut bytes);
            digest.encode(&mut bytes);
        }
        Digest::of(Domain::View, &bytes)
    }

    /// Whether there is nothing to learn from this NEW-VIEW, as far as can be told without checking it.
    pub(super) fn knows(&self, new_view: &NewView) -> bool {
        let is_last = new_view.view == self.view;
        new_view.view < self.view
            || is_last && (self.ways.is_empty() || self.ways.iter().any(|known| known.value() == new_view))
    }

    /// Whether a NEW-VIEW that was checked, for this view or a later one, tells more than is known.
    pub(super) fn is_news(&self, signed: &Signed<NewView>, decision: &Decision) -> bool {
        signed.value().view > self.view || self.chosen.iter().any(|(at, digest)| !chooses(decision, *at, *digest))
    }

    /// What is true between steps.
    pub(super) fn check_invariants(&self, cluster: &Cluster) {
        let window = cluster.window();
        assert!(self.chosen.len() as u64 <= window, "no more is chosen than fits into the window");
        assert!(self.ways.len() as u64 <= window + 1, "each way takes something from what was chosen");
        assert!(self.ways.iter().all(|way| way.value().view == self.view), "all ways lead into this view");
        let signers = self.ways.iter().all(|way| way.signer() == cluster.replicas.primary(self.view));
        assert!(signers, "its primary begins a view");
        assert!(!self.ways.is_empty() || self.chosen.is_empty(), "the view with which all begin chooses nothing");
        assert!(self.chosen.keys().all(|sequence| *sequence > self.low), "what is stable needs no choice");
    }

    /// Takes in a NEW-VIEW that [is news](Self::is_news).
    pub(super) fn learn(&mut self, signed: Signed<NewView>, decision: &Decision) {
        let low = decision.low();
        if signed.value().view > self.view {
            let chosen = positions(low, &decision.chosen).collect();
            *self = Self { view: signed.value().view, ways: alloc::vec![signed], low, chosen };
        } else if self.is_news(&signed, decision) {
            self.low = self.low.max(low);
            self.chosen.retain(|at, digest| chooses(decision, *at, *digest));
            self.ways.push(signed);
        }
    }
}

/// Whether it chose this batch there.
fn chooses(decision: &Decision, at: Sequence, digest: Digest) -> bool {
    let index = at.0.checked_sub(decision.low().0 + 1).and_then(|index| usize::try_from(index).ok());
    index.and_then(|index| decision.chosen.get(index)) == Some(&digest)
}
