//! Binary consensus with a common coin: what it promises, what it takes, and a scheduler that is against it.

use super::*;
use crate::auth::{CoinShare, CommonCoin};
use crate::rejection::Rejection;
use crate::wire::Wire;

const COMMON: Variant = Variant {
    repeats: false,
    vects: crate::cluster::Vects::Reliable,
    coin: Coin::Common,
    round_bytes_max: usize::MAX,
    rests: false,
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

/// A scheduler that holds back what it likes, and a liar: process 3, which says to each what suits it and sees a coin
/// as soon as one correct process has said its share.
struct Attack {
    group: Group,
    liar: CommonCoin,
}

impl Attack {
    fn new(seed: u64) -> Self {
        let liar = ReplicaId(3);
        let mut group = Group::new(4, COMMON, Network::Lossy(usize::MAX), seed);
        group.with(3, |_, _| ());
        Self { group, liar: PaperCoin::coin(4, seed, liar) }
    }

    /// What the liar says to one.
    fn lie(&mut self, to: usize, round: Path, statement: Statement) {
        self.group.hear(to, ReplicaId(3), Packet::Said(Said { path: round, statement }));
    }

    /// Delivers to one what these have said in a round that the scheduler lets through.
    fn deliver(&mut self, to: usize, from: &[usize], round: Path, lets: impl Fn(&Statement) -> bool) {
        let is_due = |(sender, receiver, packet): &(ReplicaId, ReplicaId, Packet)| match packet {
            Packet::Said(said) => {
                usize::from(receiver.0) == to
                    && from.contains(&usize::from(sender.0))
                    && said.path == round
                    && lets(&said.statement)
            }
            Packet::Summary(_) => false,
        };
        while let Some(at) = self.group.packets.iter().position(is_due) {
            let (sender, _, packet) = self.group.packets.remove(at);
            self.group.hear(to, sender, packet);
        }
    }

    fn said(&self, by: usize, round: Path) -> impl Iterator<Item = &Statement> {
        self.group.logs[by].iter().filter(move |said| said.path == round).map(|said| &said.statement)
    }

    /// Which side the coin of a round shows, once somebody has said its share.
    fn side(&self, round: Path) -> Option<bool> {
        if round.last().number() == 0 {
            return Some(true);
        }
        let mut shares = (0..3).flat_map(|by| self.said(by, round).map(move |said| (by, said)));
        let (by, share) = shares.find_map(|(by, said)| match said {
            Statement::Share(share) => Some((by, *share)),
            _ => None,
        })?;
        let own = self.liar.share(&round.to_bytes());
        Some(self.liar.side(&[(ReplicaId(by as u8), share), (ReplicaId(3), own)]))
    }

    /// One round in which x and y estimate `bit`, and z the other one: whether x and y come to estimate what the coin
    /// shows, and z what it does not show.
    fn round(&mut self, [x, y, z]: [usize; 3], bit: bool, round: Path) {
        let (all, other) = ([0, 1, 2], !bit);
        let est = |of: bool| move |said: &Statement| *said == Statement::Est(of);
        // x: the other bit is possible first, then this one.
        self.lie(x, round, Statement::Est(other));
        self.deliver(x, &[z], round, est(other));
        // y: this bit is.
        self.lie(y, round, Statement::Est(bit));
        self.deliver(y, &[x], round, est(bit));
        self.lie(x, round, Statement::Est(bit));
        self.deliver(x, &[y], round, est(bit));
        // x has AUX with both bits: if nothing else is asked of it, it lets the coin be seen.
        self.lie(x, round, Statement::Aux(other));
        self.deliver(x, &[y], round, |said| matches!(said, Statement::Aux(_)));
        // z knows nothing so far, and gets whatever the coin does not show, if that can be known.
        let wanted = !self.side(round).unwrap_or(!other);
        self.lie(z, round, Statement::Est(wanted));
        self.deliver(z, &[x, y], round, est(wanted));
        self.lie(z, round, Statement::Aux(wanted));
        self.deliver(z, &[x, y], round, |said| *said == Statement::Aux(wanted));
        // y gets both.
        self.lie(y, round, Statement::Est(other));
        self.deliver(y, &all, round, est(other));
        self.lie(y, round, Statement::Aux(other));
        self.deliver(y, &[x], round, |said| matches!(said, Statement::Aux(_)));
        // The coin is for everybody: each process needs one more share than its own.
        for to in all {
            let share = Statement::Share(self.liar.share(&round.to_bytes()));
            if round.last().number() > 0 {
                self.lie(to, round, share);
            }
        }
        // What is left arrives at last.
        for _ in 0..6 {
            all.into_iter().for_each(|to| self.deliver(to, &all, round, |_| true));
        }
    }

    /// How many rounds it keeps all correct processes from deciding, of 60.
    fn run(&mut self) -> u64 {
        // 0 and 1 estimate 1, and 2 estimates 0.
        for me in 0..3 {
            self.group.act(me, |stack, scope| stack.propose_bit(scope, root(), me < 2));
        }
        for number in 0..60 {
            let round = root().child(Layer::Toss, number);
            let estimate = |me: usize| {
                self.said(me, round).find_map(|said| match said {
                    Statement::Est(bit) => Some(*bit),
                    _ => None,
                })
            };
            let estimates = [0, 1, 2].map(estimate);
            let decided =
                |me: usize| self.group.logs[me].iter().any(|said| matches!(said.statement, Statement::Decide(_)));
            if (0..3).all(decided) {
                return number;
            }
            let one_of = |bit| (0..3).filter(move |me| estimates[*me] == Some(bit));
            let bit = one_of(true).count() >= 2;
            let most: Vec<usize> = one_of(bit).collect();
            match (&most[..], one_of(!bit).next()) {
                ([x, y], Some(z)) => self.round([*x, *y, z], bit, round),
                // All estimate one bit, or some have decided: nothing is left to be split.
                _ => (0..6).for_each(|_| (0..3).for_each(|to| self.deliver(to, &[0, 1, 2], round, |_| true))),
            }
            let decide = |said: &Statement| matches!(said, Statement::Decide(_));
            (0..3).for_each(|to| self.deliver(to, &[0, 1, 2], root(), decide));
        }
        60
    }
}

/// Cachin and Zanolini, arXiv:2005.08795: without CC 5's wait for CONF this keeps the estimates split for ever.
#[test]
fn a_scheduler_that_sees_the_coin_early_keeps_nobody_from_deciding() {
    let rounds: Vec<u64> = (0..200).map(|seed| Attack::new(seed).run()).collect();
    assert!(rounds.iter().all(|rounds| *rounds < 60), "{rounds:?}");
    let mean = rounds.iter().sum::<u64>() / 200;
    assert!(
        mean <= 6,
        "five and a half are expected: the first coin is known to all, two rounds to agree, two to decide"
    );
}

/// A share that is not its sender's is a fault of it; what follows of it is not looked at any more.
#[test]
fn a_share_that_is_not_the_senders_counts_for_nothing() {
    let mut group = Group::new(4, COMMON, Network::InOrder, 1);
    let round = root().child(Layer::Toss, 1);
    let coin = |of: u8| PaperCoin::coin(4, 1, ReplicaId(of));
    let mut heard = |from: u8, share: CoinShare| {
        let said = Said { path: round, statement: Statement::Share(share) };
        group.rejected.clear();
        group.hear(0, ReplicaId(from), Packet::Said(said));
        group.rejected.clone()
    };
    let of = |from: u8, reason| vec![(ReplicaId(from), reason)];
    assert_eq!(heard(1, CoinShare([7; CoinShare::BYTES])), of(1, Rejection::BadShare));
    assert_eq!(heard(1, coin(1).share(&round.to_bytes())), of(1, Rejection::Duplicate), "it had its chance");
    assert_eq!(heard(2, coin(3).share(&round.to_bytes())), of(2, Rejection::BadShare), "another one's");
    let earlier = coin(3).share(&root().child(Layer::Toss, 0).to_bytes());
    assert_eq!(heard(3, earlier), of(3, Rejection::BadShare), "of another round");
    let first = Said { path: root().child(Layer::Toss, 0), statement: Statement::Share(earlier) };
    group.rejected.clear();
    group.hear(0, ReplicaId(3), Packet::Said(first));
    assert_eq!(group.rejected, of(3, Rejection::Malformed), "the first coin has no shares");
}

/// CC 7, and ritas-F9: rounds that are far, and the other consensus' statements.
#[test]
fn nothing_is_made_for_far_rounds_nor_for_the_other_coin() {
    let mut group = Group::new(4, COMMON, Network::InOrder, 1);
    for (path, statement, reason) in [
        (root().child(Layer::Toss, 2), Statement::Est(true), Rejection::OutsideWindow),
        (root().child(Layer::Toss, 1 << 40), Statement::Est(true), Rejection::OutsideWindow),
        (root().child(Layer::Step, 0).by(ReplicaId(2)), Statement::Initial(value(1)), Rejection::Malformed),
        (root(), Statement::Est(true), Rejection::Malformed),
        (root().child(Layer::Toss, 0), Statement::Decide(value(1)), Rejection::Malformed),
    ] {
        group.rejected.clear();
        group.hear(0, ReplicaId(2), Packet::Said(Said { path, statement }));
        assert_eq!(group.rejected, [(ReplicaId(2), reason)], "{path:?}");
    }
    let mut local = Group::new(4, Variant::default(), Network::InOrder, 1);
    let said = Said { path: root().child(Layer::Toss, 0), statement: Statement::Est(true) };
    local.hear(0, ReplicaId(2), Packet::Said(said));
    assert_eq!(local.rejected, [(ReplicaId(2), Rejection::Malformed)]);
}

/// ritas-F3: whoever comes late to a round that others have decided, where no more than n − f are left, brings votes
/// that somebody still lacks.
#[test]
fn f3_a_round_that_is_decided_is_open_for_who_comes_late() {
    for coin in [Coin::Local, Coin::Common] {
        let mut group = Group::new(4, Variant { coin, ..COMMON }, Network::InOrder, 1);
        let root = Path::root(Layer::Atomic, 0);
        group.act(0, |stack, scope| stack.order(scope, root, value(7)).unwrap());
        // All but DECIDE arrives: nobody knows that nobody needs the round any more.
        while let Some((from, to, packet)) = group.packets.get(group.next).cloned() {
            group.next += 1;
            if !matches!(&packet, Packet::Said(Said { statement: Statement::Decide(_), .. })) {
                group.hear(to.0.into(), from, packet);
            }
        }
        assert_eq!(group.stacks[0].standing(root).unwrap().round, 1);
        let binary = root.child(Layer::Round, 0).child(Layer::Multi, 0).child(Layer::Binary, 0);
        let (path, statement) = match coin {
            Coin::Local => (
                binary.child(Layer::Step, 5).by(ReplicaId(3)),
                Statement::Initial(super::super::binary_consensus::value_of(Some(true))),
            ),
            Coin::Common => (binary.child(Layer::Toss, 1), Statement::Est(true)),
        };
        group.rejected.clear();
        group.hear(0, ReplicaId(3), Packet::Said(Said { path, statement }));
        assert_eq!(group.rejected, [], "{coin:?}");
    }
}
