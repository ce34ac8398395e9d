//! What the layers promise, in a network that delivers in any order and loses some, and with up to f processes that
//! say nothing.

use super::*;
use crate::protocols::ritas::atomic_broadcast::HEARD;
use crate::protocols::ritas::bounds::ROOTS;
use crate::protocols::ritas::message::Word;
use crate::protocols::ritas::path::NUMBER_MAX;
use crate::protocols::ritas::vector_consensus::Vector;
use crate::wire::Wire;

/// Off 3f + 1, too: ritas-F1 and ritas-F2 show there.
const SIZES: [usize; 6] = [4, 5, 6, 7, 8, 10];

fn run(n: usize, seed: u64, begin: impl Fn(&mut Group, usize)) -> Group {
    let network = if seed.is_multiple_of(3) { Network::Lossy(1_000_000) } else { Network::Lossy(20) };
    let mut group = Group::new(n, Variant::default(), network, seed);
    let silent = group.lots.below(group.replicas.faults() + 1);
    group.silent = (0..silent).map(|i| ReplicaId(((seed as usize + i) % n) as u8)).collect();
    for me in 0..n {
        if !group.silent.contains(&ReplicaId(me as u8)) {
            begin(&mut group, me);
        }
    }
    group.settle();
    group
}

fn correct(group: &Group) -> Vec<usize> {
    (0..group.stacks.len()).filter(|me| !group.silent.contains(&ReplicaId(*me as u8))).collect()
}

fn each(mut check: impl FnMut(usize, u64)) {
    for n in SIZES {
        (0..if n > 7 { 6 } else { 24 }).for_each(|seed| check(n, seed));
    }
}

#[test]
fn i1_all_deliver_what_one_delivers() {
    let root = Path::root(Layer::Reliable, 3);
    each(|n, seed| {
        let group = run(n, seed, |group, me| {
            group.act(me, |stack, scope| stack.broadcast(scope, root, value(me as u8)));
        });
        for me in correct(&group) {
            let mut delivered = group.results(me);
            delivered.sort_by_key(|outcome| match outcome {
                Outcome::Delivered(path, _) => *path,
                other => panic!("{other:?}"),
            });
            let expected =
                correct(&group).into_iter().map(|of| Outcome::Delivered(root.by(ReplicaId(of as u8)), value(of as u8)));
            assert_eq!(delivered, expected.collect::<Vec<_>>(), "n {n}, seed {seed}");
        }
    });
}

#[test]
fn i2_one_bit_is_decided_and_somebody_has_proposed_it() {
    let root = Path::root(Layer::Binary, 0);
    each(|n, seed| {
        let bit = |me: usize| match seed % 3 {
            0 => true,
            1 => false,
            _ => (me as u64 ^ seed) & 1 == 1,
        };
        let group = run(n, seed, |group, me| group.act(me, |stack, scope| stack.propose_bit(scope, root, bit(me))));
        let correct = correct(&group);
        let decided = group.results(correct[0]);
        let [Outcome::Bit(_, decision)] = decided[..] else { panic!("{decided:?}, n {n}, seed {seed}") };
        assert!(correct.iter().any(|me| bit(*me) == decision), "n {n}, seed {seed}");
        for me in correct {
            assert_eq!(group.results(me), decided, "n {n}, seed {seed}");
        }
    });
}

#[test]
fn i3_one_value_is_decided_or_none() {
    let root = Path::root(Layer::Multi, 0);
    let mut bottoms = 0;
    each(|n, seed| {
        let proposed = |me: usize| value(if seed.is_multiple_of(2) { 7 } else { (me % 2) as u8 });
        let group = run(n, seed, |group, me| group.act(me, |stack, scope| stack.propose(scope, root, proposed(me))));
        let correct = correct(&group);
        let decided = group.results(correct[0]);
        let [Outcome::Agreed(_, decision)] = &decided[..] else { panic!("{decided:?}, n {n}, seed {seed}") };
        bottoms += usize::from(decision.is_none());
        if seed.is_multiple_of(2) {
            assert_eq!(*decision, Some(value(7)), "n {n}, seed {seed}: all have proposed it");
        }
        if let Some(decision) = decision {
            assert!(correct.iter().any(|me| proposed(*me) == *decision), "n {n}, seed {seed}");
        }
        for me in correct {
            assert_eq!(group.results(me), decided, "n {n}, seed {seed}");
        }
    });
    assert!(bottoms > 0, "⊥ is decided, too");
}

#[test]
fn i3_a_vector_has_what_n_minus_f_have_proposed() {
    let root = Path::root(Layer::Vector, 0);
    each(|n, seed| {
        let propose = |group: &mut Group, me: usize| {
            group.act(me, |stack, scope| stack.propose(scope, root, value(me as u8)));
        };
        let group = run(n, seed, propose);
        let correct = correct(&group);
        let decided = group.results(correct[0]);
        let [Outcome::Vector(_, vector)] = &decided[..] else { panic!("{decided:?}, n {n}, seed {seed}") };
        let vector = Vector::from_bytes(vector.0.clone()).unwrap().0;
        assert!(vector.iter().flatten().count() >= group.replicas.reachable(), "n {n}, seed {seed}");
        for (of, proposed) in vector.iter().enumerate() {
            assert!(proposed.as_ref().is_none_or(|proposed| *proposed == value(of as u8)), "n {n}, seed {seed}");
        }
        for me in correct {
            assert_eq!(group.results(me), decided, "n {n}, seed {seed}");
        }
    });
}

#[test]
fn i3_all_deliver_the_same_messages_in_the_same_order_and_come_to_rest() {
    let root = Path::root(Layer::Atomic, 0);
    each(|n, seed| {
        let group = run(n, seed, |group, me| {
            for number in 0..3 {
                let message = value((10 * me + number) as u8);
                group.act(me, |stack, scope| stack.order(scope, root, message).unwrap());
            }
        });
        let correct = correct(&group);
        let ordered = group.ordered(correct[0]);
        assert_eq!(ordered.len(), 3 * correct.len(), "n {n}, seed {seed}");
        for me in correct {
            assert_eq!(group.ordered(me), ordered, "n {n}, seed {seed}");
        }
    });
}

/// ritas-F8: more messages than fit in the window.
#[test]
fn f8_the_window_moves() {
    let root = Path::root(Layer::Atomic, 0);
    let mut group = Group::new(4, Variant::default(), Network::Lossy(20), 5);
    for batch in 0..6 {
        for number in 0..16 {
            group.act(1, |stack, scope| stack.order(scope, root, value(16 * batch + number)).unwrap());
        }
        let full = group.with(1, |stack, scope| stack.order(scope, root, value(255)));
        assert_eq!(full, Err(value(255)), "L are on their way");
        group.settle();
    }
    assert_eq!(group.ordered(3).len(), 96);
}

/// ritas-F11: whoever comes back says what it has said before, and gets what it missed.
#[test]
fn f11_who_was_down_says_nothing_different() {
    let root = Path::root(Layer::Atomic, 0);
    for seed in 0..40 {
        let mut group = Group::new(4, Variant::default(), Network::Lossy(30), seed);
        for me in 0..4 {
            group.act(me, |stack, scope| stack.order(scope, root, value(me as u8)).unwrap());
        }
        for _ in 0..group.lots.below(400) {
            if group.packets.is_empty() {
                break;
            }
            let at = group.lots.below(group.packets.len());
            let (from, to, packet) = group.packets.swap_remove(at);
            group.hear(to.0.into(), from, packet);
        }
        let down = group.lots.below(4);
        group.restart(down, seed);
        group.settle();
        let ordered = group.ordered(0);
        assert_eq!(ordered.len(), 4, "seed {seed}");
        for me in 0..4 {
            assert_eq!(group.ordered(me), ordered, "seed {seed}");
            for one in &group.logs[me] {
                let again = group.logs[me].iter().filter(|other| {
                    other.path == one.path
                        && core::mem::discriminant(&other.statement) == core::mem::discriminant(&one.statement)
                });
                assert_eq!(again.count(), 1, "seed {seed}: {one:?} is said once");
            }
        }
    }
}

/// ritas-F9: far rounds, far numbers, far steps, and what is over.
#[test]
fn f9_nothing_is_made_for_what_is_far() {
    let mut group = Group::new(4, Variant::default(), Network::InOrder, 1);
    let root = Path::root(Layer::Atomic, 0);
    group.act(0, |stack, scope| stack.order(scope, root, value(1)).unwrap());
    group.drain();
    let (before, round) = (group.stacks[1].len(), root.child(Layer::Round, 1));
    let steps = round.child(Layer::Multi, 0).child(Layer::Binary, 0);
    for far in [6, 100, 1 << 16, 1 << 32, NUMBER_MAX - ROOTS] {
        for path in [
            root.child(Layer::Message, far + HEARD),
            root.child(Layer::Round, far).child(Layer::Proposal, 0),
            steps.child(Layer::Step, far),
            Path::root(Layer::Reliable, far + ROOTS),
        ] {
            let path = path.by(ReplicaId(2));
            let said = Said { path, statement: Statement::Initial(value(2)) };
            group.act(1, |stack, scope| stack.hear(scope, ReplicaId(2), said));
        }
    }
    assert_eq!(group.stacks[1].len(), before);
}

/// ritas-F11: it may have come further before the crash than the replay has so far, be it because rounds that decide ⊥
/// leave no trace in the order, or because the log begins with what was said.
#[test]
fn f11_what_was_said_far_ahead_is_not_forgotten() {
    let root = Path::root(Layer::Atomic, 0);
    let far = root.child(Layer::Round, 9);
    let step = far.child(Layer::Multi, 0).child(Layer::Binary, 0).child(Layer::Step, 12);
    let paths = [
        far.child(Layer::Proposal, 0).by(ReplicaId(1)),
        step.by(ReplicaId(2)),
        root.child(Layer::Message, 40).by(ReplicaId(2)),
    ];
    let mut group = Group::new(4, Variant::default(), Network::InOrder, 1);
    for path in paths {
        let said = Said { path, statement: Statement::Echo(Word::Whole(value(1))) };
        group.with(0, |stack, scope| stack.replay(scope, said));
    }
    group.act(0, Stack::resume);
    let own: Vec<Path> = group.stacks[0].own_statements(ReplicaId(0)).into_iter().map(|said| said.path).collect();
    assert!(paths.iter().all(|path| own.contains(path)), "{own:?}");
}

/// AB 5: and nothing is lost of what is beyond it.
#[test]
fn a_round_delivers_no_more_than_its_bound() {
    let variant = Variant { round_bytes_max: 250, ..Variant::default() };
    let mut group = Group::new(4, variant, Network::InOrder, 1);
    let root = Path::root(Layer::Atomic, 0);
    for byte in 0..10 {
        group.act(byte % 4, |stack, scope| stack.order(scope, root, value(byte as u8)).unwrap());
    }
    group.settle();
    for me in 0..4 {
        assert_eq!(group.ordered(me).len(), 10);
        let rounds = group.outcomes[me].split(|outcome| matches!(outcome, Outcome::Reached(..)));
        let of_rounds = rounds.map(|of| of.iter().filter(|outcome| matches!(outcome, Outcome::Ordered(..))).count());
        assert!(of_rounds.max().unwrap() <= 2, "values have 100 bytes");
    }
}
