//! Binary consensus with a common coin: what it promises, what it takes, and a scheduler that is against it.

use super::*;

const COMMON: Variant = Variant {
    repeats: false,
    vects: super::super::variant::Vects::Reliable,
    coin: Coin::Common,
    round_bytes_max: usize::MAX,
};

fn root() -> Path {
    Path::root(Layer::Binary, 0)
}

/// The bits that the correct ones of n processes decide, of which some say nothing, and which propose bits as a seed
/// says. Whether each of them is restarted on the way, too.
fn run(n: usize, seed: u64, crashes: bool) -> (Vec<bool>, bool) {
    let network = if seed.is_multiple_of(3) { Network::Lossy(1_000_000) } else { Network::Lossy(20) };
    let mut group = Group::new(n, COMMON, network, seed);
    let silent = group.lots.below(group.replicas.faults() + 1);
    group.silent = (0..silent).map(|i| ReplicaId(((seed as usize + i) % n) as u8)).collect();
    let correct: Vec<usize> = (0..n).filter(|me| !group.silent.contains(&ReplicaId(*me as u8))).collect();
    let bit = |me: usize| match seed % 4 {
        0 => true,
        1 => false,
        _ => (me as u64 ^ seed) & 1 == 1,
    };
    for me in &correct {
        group.act(*me, |stack, scope| stack.propose_bit(scope, root(), bit(*me)));
    }
    if crashes {
        for _ in 0..3 {
            for _ in 0..group.lots.below(40 * n).min(group.packets.len()) {
                let at = group.lots.below(group.packets.len());
                let (from, to, packet) = group.packets.swap_remove(at);
                group.hear(to.0.into(), from, packet);
                if group.packets.is_empty() {
                    break;
                }
            }
            let down = correct[group.lots.below(correct.len())];
            group.restart(down, seed);
        }
    }
    group.settle();
    let proposed: Vec<bool> = correct.iter().map(|me| bit(*me)).collect();
    let decided = correct.iter().map(|me| match group.results(*me)[..] {
        [Outcome::Bit(_, bit)] => bit,
        ref other => panic!("{other:?}, n {n}, seed {seed}"),
    });
    for log in &group.logs {
        for (at, one) in log.iter().enumerate() {
            let differs = |other: &Said| match (&one.statement, &other.statement) {
                (Statement::Est(one), Statement::Est(other)) => one == other,
                (one, other) => core::mem::discriminant(one) == core::mem::discriminant(other),
            };
            let again = log[at + 1..].iter().find(|other| other.path == one.path && differs(other));
            assert_eq!(again, None, "n {n}, seed {seed}: {one} is said once");
        }
    }
    let decided: Vec<bool> = decided.collect();
    assert!(proposed.contains(&decided[0]), "n {n}, seed {seed}");
    let tossed = group.logs.iter().flatten().any(|said| matches!(said.statement, Statement::Share(_)));
    (decided, tossed)
}

/// Agreement, validity and an end, off 3f + 1, too.
#[test]
fn i2_with_a_common_coin_one_bit_is_decided_and_somebody_has_proposed_it() {
    for (n, seeds) in [(4, 200), (5, 60), (6, 60), (7, 60), (8, 30), (10, 30)] {
        let mut tossed = 0;
        for seed in 0..seeds {
            let (decided, has_tossed) = run(n, seed, false);
            assert!(decided.iter().all(|bit| *bit == decided[0]), "n {n}, seed {seed}");
            tossed += usize::from(has_tossed);
        }
        assert!(tossed > 0, "n {n}: no coin was tossed");
    }
}

/// ritas-F11: what was said before a crash stays said.
#[test]
fn f11_with_a_common_coin_who_was_down_says_nothing_different() {
    for seed in 0..150 {
        let (decided, _) = run(4, seed, true);
        assert!(decided.iter().all(|bit| *bit == decided[0]), "seed {seed}");
    }
}

/// The layers above do not see which coin it is.
#[test]
fn i3_with_a_common_coin_all_deliver_the_same() {
    let root = Path::root(Layer::Atomic, 0);
    for n in [4, 5, 7] {
        for seed in 0..12 {
            let mut group = Group::new(n, COMMON, Network::Lossy(20), seed);
            for me in 0..n {
                group.act(me, |stack, scope| stack.order(scope, root, value(me as u8)).unwrap());
            }
            if seed.is_multiple_of(2) {
                for _ in 0..group.lots.below(400).min(group.packets.len()) {
                    let at = group.lots.below(group.packets.len());
                    let (from, to, packet) = group.packets.swap_remove(at);
                    group.hear(to.0.into(), from, packet);
                }
                let down = group.lots.below(n);
                group.restart(down, seed);
            }
            group.settle();
            let ordered = group.ordered(0);
            assert_eq!(ordered.len(), n, "n {n}, seed {seed}");
            (0..n).for_each(|me| assert_eq!(group.ordered(me), ordered, "n {n}, seed {seed}"));
        }
    }
}
