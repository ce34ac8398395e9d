//! How many instances are let in, and how long what is said about one may be: what a liar says is kept.

use super::atomic_broadcast::list_bytes_max;
use super::binary_consensus::VOTE_BYTES;
use super::message::{MESSAGE_BYTES_MAX, VALUE_BYTES_MAX};
use super::multi_valued_consensus::vect_bytes_max;
use super::path::{Layer, Path};
use super::scope::Scope;
use super::vector_consensus::share_bytes_max;

/// Instances without a parent that are let in, of each layer and of each owner of broadcasts, above those that are
/// [taken](super::stack::Stack::taken); and as many of the taken are kept for others.
pub(super) const ROOTS: u64 = 64;

/// The same of vectors, each of which is f + 1 multi-valued consensuses on values of [`VALUE_BYTES_MAX`].
const ROOTS_OF_VECTORS: u64 = 16;

/// The same of any layer.
pub(super) const fn roots_max(layer: Layer) -> u64 {
    match layer {
        Layer::Vector => ROOTS_OF_VECTORS,
        _ => ROOTS,
    }
}

/// Bytes of the longest value that a correct process says about an instance. Longer ones of liars would be kept for
/// each instance that is let in, and the application has no room for them.
pub(super) fn value_bytes_max(scope: &Scope<'_>, path: Path) -> usize {
    const DECISION_ALLOWANCE: usize = 8;
    let replicas = &scope.replicas;
    if path.number(Layer::Step).is_some() {
        VOTE_BYTES
    } else if path.number(Layer::Vect).is_some() && !scope.repeats {
        vect_bytes_max(replicas)
    } else if path.number(Layer::Round).is_some() && path.number(Layer::Vect).is_none() {
        list_bytes_max(replicas)
    } else if path.number(Layer::Value).is_some() {
        share_bytes_max(replicas.n())
    } else if [Layer::Reliable, Layer::Echo].contains(&path.of_root().last().layer()) {
        MESSAGE_BYTES_MAX
    } else if path.of_root().last().layer() == Layer::Multi && path.number(Layer::Vect).is_none() {
        // A decision is one or ⊥.
        MESSAGE_BYTES_MAX + DECISION_ALLOWANCE
    } else {
        VALUE_BYTES_MAX
    }
}
