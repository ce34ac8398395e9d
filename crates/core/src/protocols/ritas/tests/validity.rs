//! Binary consensus, BC 4: the closed forms are what they stand for (model: `bc_valid_forms.py`).

use crate::protocols::ritas::binary_consensus::{Vote, is_valid_after};
use crate::replicas::Replicas;
use alloc::collections::BTreeSet;

/// Every choice of n − f among votes for 0, for 1 and for ⊥.
fn choices(counts: [usize; 3], q: usize) -> impl Iterator<Item = [usize; 3]> {
    let [zeros, ones, bottoms] = counts;
    (0..=zeros.min(q)).flat_map(move |c0| {
        (0..=ones.min(q - c0)).map(move |c1| [c0, c1, q - c0 - c1]).filter(move |[_, _, c2]| *c2 <= bottoms)
    })
}

/// What a correct process may vote after exactly these votes in a step.
fn votes_after(replicas: &Replicas, step: u64, [c0, c1, _]: [usize; 3]) -> Vec<Vote> {
    let (q, half) = (replicas.reachable(), replicas.n() / 2);
    match step % 3 {
        0 => vec![Some(c1 >= q.div_ceil(2))],
        1 if c1 > half => vec![Some(true)],
        1 if c0 > half => vec![Some(false)],
        1 => vec![None],
        _ if c1 >= replicas.weak() => vec![Some(true)],
        _ if c0 >= replicas.weak() => vec![Some(false)],
        _ => vec![Some(false), Some(true)],
    }
}

use alloc::vec;
use alloc::vec::Vec;

#[test]
fn a_vote_is_valid_if_some_n_minus_f_before_it_make_a_correct_process_cast_it() {
    for n in 4..=13 {
        let replicas = Replicas::of(n).unwrap();
        for step in 0..3 {
            for c0 in 0..=n {
                for c1 in 0..=n - c0 {
                    for bottoms in 0..=n - c0 - c1 {
                        // ⊥ is a vote in third steps only, and there is one bit there.
                        let possible = if step == 2 { c0.min(c1) == 0 } else { bottoms == 0 };
                        if !possible {
                            continue;
                        }
                        let counts = [c0, c1, bottoms];
                        let cast: BTreeSet<Vote> = choices(counts, replicas.reachable())
                            .flat_map(|choice| votes_after(&replicas, step, choice))
                            .collect();
                        for vote in [Some(false), Some(true), None] {
                            let valid = is_valid_after(&replicas, step + 1, vote, counts);
                            assert_eq!(valid, cast.contains(&vote), "n {n}, step {step}, {counts:?}, {vote:?}");
                        }
                    }
                }
            }
        }
    }
}
