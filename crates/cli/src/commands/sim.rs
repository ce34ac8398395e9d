//! `bezant sim`: the simulator.

use std::process::ExitCode;

/// Run seeded simulations of a cluster with faults and liars, and check every one of them
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bezant sim --seeds 0..1000\n  bezant sim --adversary each --seeds 0..100 --json\n  \
    bezant sim --seed 7 --trace\n\nExit codes: 0 no violation · 1 a violation, with the command that replays it, or \
    an\n  adversary that was named and did nothing"
)]
// Its group would have the name of the flattened one.
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    arguments: bezant_sim::arguments::Arguments,
}

/// Runs the command, which prints its own results.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    arguments.arguments.clone().run()
}
