//! Attacks on a composition and flaws of the paper, each as a script: K by number, S and L where a flaw has no attack
//! of its own (`docs/papers/abstract.md`). `docs/attacks.md` has the whole table; `cargo test -p bezant-core k08_` runs
//! one.
//!
//! Every script ends in the checks of [`super::run`]: whatever the attack, the properties hold. What it may cost (an
//! instance that aborts) is asserted where it is known. For each rule that a script is about there is a mutant in
//! `crates/sim/mutants` without that rule, and the script fails there.

mod backup;
mod chain;
mod clients;
mod environment;
mod histories;
mod openings;
mod reports;
mod ring;
mod ring_resilient;
mod robust;
mod switches;

use crate::schedule::{Part, Protocol, Schedule};

/// Ring as in the thesis, with no Backup.
fn two_modes() -> Protocol {
    Protocol::Schedule(Schedule::new(&[Part::RingFast, Part::RingResilient]).unwrap())
}
