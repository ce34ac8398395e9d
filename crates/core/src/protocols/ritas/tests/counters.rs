//! Messages, to the unit: the oracle of the notes on RITAS, section 1.1, and Tables of the thesis.

use super::*;
use crate::cluster::{Coin, Vects};

const SIZES: [usize; 3] = [4, 7, 10];
const THESIS: Variant =
    Variant { repeats: true, vects: Vects::Echo, coin: Coin::Local, round_bytes_max: usize::MAX, rests: false };

fn group(n: usize, variant: Variant) -> Group {
    Group::new(n, variant, Network::InOrder, 1)
}

fn total(group: &Group) -> usize {
    group.sent.iter().filter(|(layer, _)| layer.is_some()).map(|(_, count)| count).sum()
}

fn decides(group: &Group) -> usize {
    group.sent.get(&None).copied().unwrap_or_default()
}

/// What one broadcast takes that all deliver.
fn broadcast(layer: Layer) -> [usize; 3] {
    SIZES.map(|n| {
        let mut group = group(n, Variant::default());
        group.act(0, |stack, scope| stack.broadcast(scope, Path::root(layer, 0), value(7)));
        group.drain();
        (0..n).for_each(|me| assert_eq!(group.results(me).len(), 1));
        total(&group)
    })
}

#[test]
fn a_reliable_broadcast_takes_27_90_189_messages() {
    assert_eq!(broadcast(Layer::Reliable), [27, 90, 189]);
}

#[test]
fn an_echo_broadcast_takes_15_48_99_messages() {
    assert_eq!(broadcast(Layer::Echo), [15, 48, 99]);
}

/// 3n reliable broadcasts, and DECIDE of all to all.
#[test]
fn a_round_of_binary_consensus_takes_324_1890_5670_messages() {
    let counted = SIZES.map(|n| {
        let mut group = group(n, Variant::default());
        let root = Path::root(Layer::Binary, 0);
        (0..n).for_each(|me| group.act(me, |stack, scope| stack.propose_bit(scope, root, true)));
        group.drain();
        (0..n).for_each(|me| assert_eq!(group.results(me), [Outcome::Bit(root, true)]));
        assert_eq!(decides(&group), n * (n - 1));
        total(&group)
    });
    assert_eq!(counted, [324, 1890, 5670]);
}

/// One message, whose reliable broadcast is not counted, and the round that orders it.
fn agreement(n: usize, variant: Variant) -> (usize, usize) {
    let mut group = group(n, variant);
    let root = Path::root(Layer::Atomic, 0);
    group.act(0, |stack, scope| stack.order(scope, root, value(7)).unwrap());
    group.drain();
    (0..n).for_each(|me| assert_eq!(group.ordered(me).len(), 1));
    (total(&group) - group.sent[&Some(Layer::Message)], decides(&group))
}

#[test]
fn an_agreement_of_atomic_broadcast_takes_600_3486_10440_messages_in_the_thesis() {
    assert_eq!(SIZES.map(|n| agreement(n, THESIS)), [(600, 24), (3486, 84), (10440, 180)]);
}

/// VECT by reliable broadcast: n·(RB − EB) messages more (ritas-F5).
#[test]
fn ours_takes_648_3780_11340() {
    assert_eq!(SIZES.map(|n| agreement(n, Variant::default())), [(648, 24), (3780, 84), (11340, 180)]);
}

const COMMON: Variant =
    Variant { repeats: false, vects: Vects::Reliable, coin: Coin::Common, round_bytes_max: usize::MAX, rests: false };

/// What a binary consensus takes where all propose one bit, and how many rounds: beside it DECIDE, of all to all.
fn with_a_common_coin(n: usize, bit: bool, seed: u64) -> (usize, u64) {
    let mut group = Group::new(n, COMMON, Network::InOrder, seed);
    let root = Path::root(Layer::Binary, 0);
    (0..n).for_each(|me| group.act(me, |stack, scope| stack.propose_bit(scope, root, bit)));
    group.drain();
    (0..n).for_each(|me| assert_eq!(group.results(me), [Outcome::Bit(root, bit)]));
    assert_eq!(decides(&group), n * (n - 1));
    let rounds = group.logs[0].iter().filter_map(|said| said.path.number(Layer::Toss)).max().unwrap();
    (total(&group), rounds + 1)
}

/// EST and AUX in the first round, whose coin is known; with CONF and SHARE in those that follow.
#[test]
fn a_round_with_a_common_coin_takes_24_84_180_messages_and_then_48_168_360() {
    assert_eq!(SIZES.map(|n| with_a_common_coin(n, true, 1)), [(24, 1), (84, 1), (180, 1)]);
    for (n, seed) in SIZES.into_iter().flat_map(|n| (0..20).map(move |seed| (n, seed))) {
        let (messages, rounds) = with_a_common_coin(n, false, seed);
        assert!(rounds > 1, "the first coin shows 1");
        assert_eq!(messages, (2 + 4 * (rounds as usize - 1)) * n * (n - 1), "n {n}, seed {seed}");
    }
}

/// 300, 1,806 and 5,490 less than with local coins: 2 exchanges in the place of 3n reliable broadcasts.
#[test]
fn an_agreement_with_a_common_coin_takes_348_1974_5850() {
    assert_eq!(SIZES.map(|n| agreement(n, COMMON)), [(348, 24), (1974, 84), (5850, 180)]);
}
