//! The `bezant` command: replicas, clients and tools in one binary. `docs/cli.md` is its manual.

mod admin;
mod checkpoint;
mod commands;
mod database;
mod endpoint;
mod evidence;
mod failure;
mod few;
mod files;
mod given;
mod interrupt;
mod intruder;
mod liar;
mod logging;
mod member;
mod output;
mod postgres;
mod prompt;
mod quit;
mod served;
mod service;
mod shell;
mod snapshot;
mod typist;
mod words;

use clap::{CommandFactory, Parser, Subcommand};
use commands::{
    attack, backup, bench, client_key, close, config, demo, diff, export, gateway, kv, replica, sim, sql, status,
    testnet, version,
};
use failure::Result;
use std::process::ExitCode;

/// Byzantine-fault-tolerant replication: a service that stays correct while some of its replicas lie or crash.
#[derive(Parser)]
#[command(name = "bezant", version, max_term_width = 100)]
#[command(after_help = "Start here:\n  bezant demo\n\nExit codes: 0 done · 1 failed, or the answer is no · \
                        2 wrong arguments or files · 3 outcome unknown · 4 states differ")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Testnet(testnet::Arguments),
    Replica(replica::Arguments),
    Sql(sql::Arguments),
    Kv(kv::Arguments),
    Status(status::Arguments),
    Gateway(gateway::Arguments),
    Close(close::Arguments),
    Backup(backup::Arguments),
    Export(export::Arguments),
    Diff(diff::Arguments),
    Sim(sim::Arguments),
    Bench(bench::Arguments),
    Attack(attack::Arguments),
    Config(config::Arguments),
    #[command(alias = "key")]
    ClientKey(client_key::Arguments),
    Version(version::Arguments),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  bezant completions bash > ~/.local/share/bash-completion/completions/bezant")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Testnet(arguments) => testnet::run(arguments),
        Command::Replica(arguments) => replica::run(arguments),
        Command::Sql(arguments) => sql::run(arguments),
        Command::Kv(arguments) => kv::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Gateway(arguments) => gateway::run(arguments),
        Command::Close(arguments) => close::run(arguments),
        Command::Backup(arguments) => backup::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Attack(arguments) => attack::run(arguments),
        Command::Sim(arguments) => return Ok(sim::run(arguments)),
        Command::Config(arguments) => config::run(arguments),
        Command::ClientKey(arguments) => client_key::run(arguments),
        Command::Version(arguments) => version::run(arguments),
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Cli::command(), "bezant", &mut std::io::stdout());
            Ok(())
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(code) => code,
        Err(failure) => {
            failure.report();
            failure.code.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
