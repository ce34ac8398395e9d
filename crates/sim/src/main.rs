//! The simulator as a command of its own; `bezant sim` is the same.

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "bezant-sim", about = "Runs seeded simulations of a Bezant cluster and checks every one of them")]
struct Command {
    #[command(flatten)]
    arguments: bezant_sim::arguments::Arguments,
}

fn main() -> ExitCode {
    Command::parse().arguments.run()
}
