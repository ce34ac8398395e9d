//! ritas-F10: how many rounds local coins take against a network that schedules by what it sees. It shows each process
//! n − f votes that suit it, and the others later; liars vote whatever keeps the estimates apart.

use super::Lots;
use crate::ids::ReplicaId;
use crate::protocols::ritas::binary_consensus::{BinaryConsensus, Output, STEPS, Vote, value_of};
use crate::replicas::Replicas;
use alloc::vec;
use alloc::vec::Vec;

/// The order in which process `me` gets the votes of a step: its own, and then those that suit.
fn order(step: u64, me: usize, votes: &[Vote]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..votes.len()).filter(|of| *of != me).collect();
    let mut order = vec![me];
    // First steps: most of what it has is one bit here and the other there. Second ones: no bit is most.
    let mut wanted = Some(me.is_multiple_of(2));
    while !left.is_empty() {
        if step % STEPS == 1 {
            let ones = order.iter().filter(|of| votes[**of] == Some(true)).count();
            wanted = Some(2 * ones < order.len());
        }
        let at = left.iter().position(|of| votes[*of] == wanted).unwrap_or_default();
        order.push(left.remove(at));
    }
    order
}

/// What the liars vote: the bit that fewer of the correct processes vote for; ⊥ where these do.
fn lie(votes: &[Vote]) -> Vote {
    let with = |bit| votes.iter().filter(|vote| **vote == Some(bit)).count();
    if votes.contains(&None) { None } else { Some(with(true) < with(false)) }
}

/// The round, counted from 1, in which the first correct process decides.
fn rounds(n: usize, lots: &mut Lots) -> u64 {
    let replicas = Replicas::of(n).unwrap();
    let (correct, seeds) = (replicas.reachable(), (0..n).map(|_| lots.draw()).collect::<Vec<_>>());
    let toss = |me: usize| {
        let seed = seeds[me];
        move |round: u64| Lots(seed ^ round.wrapping_mul(0x9e37)).draw() & 1 == 1
    };
    let mut processes: Vec<BinaryConsensus> = (0..correct).map(|_| BinaryConsensus::new()).collect();
    let mut votes: Vec<Vote> = (0..correct).map(|me| Some(me.is_multiple_of(2))).collect();
    for (me, process) in processes.iter_mut().enumerate() {
        process.propose(&replicas, me.is_multiple_of(2), &toss(me));
    }
    for step in 0.. {
        votes.resize(n, lie(&votes));
        let mut next = vec![None; correct];
        for (me, process) in processes.iter_mut().enumerate() {
            for of in order(step, me, &votes) {
                let vote = (step, ReplicaId(of as u8));
                for output in process.deliver(&replicas, vote, &value_of(votes[of]), &toss(me)).unwrap() {
                    match output {
                        Output::Cast(_, vote) => next[me] = vote,
                        Output::Decided(_) => return step / STEPS + 1,
                    }
                }
            }
        }
        votes = next;
    }
    unreachable!("somebody decides")
}

#[test]
fn f10_local_coins_take_one_and_2_to_the_n_minus_f_minus_1_rounds_against_who_sees_the_votes() {
    for (n, expected) in [(4, 5.0), (7, 17.0)] {
        let (runs, mut lots) = (400, Lots(n as u64));
        let mean = (0..runs).map(|_| rounds(n, &mut lots)).sum::<u64>() as f64 / f64::from(runs);
        assert!((mean / expected - 1.0).abs() < 0.2, "n {n}: {mean} rounds, {expected} expected");
    }
}
