//! The ledger in the simulator: crashes, lost frames, disks that forget and replicas that lie, as seeds decide.
//! `cargo run -p bezant-examples --example simulate-ledger -- --help` says what there is to choose.

use bezant_examples::ledger::{ISSUED, Ledger, Operation};
use bezant_sim::author::{Author, Trial};
use bezant_sim::rng::Rng;
use bytes::Bytes;
use std::process::ExitCode;

struct LedgerTrial;

impl Trial for LedgerTrial {
    type Service = Ledger;
    const NAME: &'static str = "ledger";
    const COMMAND: &'static str = "cargo run -p bezant-examples --example simulate-ledger --";

    fn operation(rng: &mut Rng) -> Bytes {
        let (from, to) = (rng.below(4) as u16, rng.below(4) as u16);
        let operation = match rng.below(8) {
            0 | 1 => Operation::Open(from),
            2 => Operation::Balance(from),
            // More than there is, now and then.
            _ => Operation::Transfer { from, to, amount: rng.below(ISSUED + ISSUED / 8) },
        };
        operation.to_bytes()
    }

    fn invariant(ledger: &Ledger) -> Result<(), String> {
        ledger.invariant()
    }
}

fn main() -> ExitCode {
    Author::of::<LedgerTrial>().main()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::schedule::Protocol;
    use bezant_core::service::{Asker, Service};
    use bezant_examples::ledger::Answer;

    #[test]
    fn the_sum_never_changes_and_the_rules_hold() {
        for seed in 0..100 {
            Author::of::<LedgerTrial>().examine(seed, 300).unwrap_or_else(|objection| panic!("{objection}"));
        }
    }

    #[test]
    fn the_sum_never_changes_whoever_lies_or_crashes() {
        for protocol in [Protocol::Pbft, Protocol::Aliph] {
            Author::of::<LedgerTrial>().assert_holds(protocol, 0..60);
        }
    }

    /// The ledger, of which it is said that one account may not get everything.
    struct Envious;

    impl Trial for Envious {
        type Service = Ledger;
        const NAME: &'static str = "envious";
        const COMMAND: &'static str = "envious";

        fn operation(rng: &mut Rng) -> Bytes {
            LedgerTrial::operation(rng)
        }

        fn invariant(ledger: &Ledger) -> Result<(), String> {
            let mut rich = (0..4).map(|number| ledger.query(&Operation::Balance(number).to_bytes(), &Asker::default()));
            let everything = Answer::Balance(ISSUED);
            let found = rich.any(|answer| answer.is_ok_and(|answer| Answer::of(&answer) == Some(everything)));
            if found { Err("one account has everything".to_owned()) } else { Ok(()) }
        }
    }

    #[test]
    fn a_broken_invariant_would_be_noticed() {
        let author = Author::of::<Envious>();
        assert!(author.examine(0, 300).is_err_and(|objection| objection.what == "one account has everything"));
        let failures = author.run(Protocol::Pbft, 0..20).failures;
        let (options, verdict) = &failures[0];
        assert!(verdict.violations[0].what.contains("one account has everything"), "{verdict:?}");
        assert!(options.to_string().starts_with("envious --protocol pbft"), "{options}");
    }
}
