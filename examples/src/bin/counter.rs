//! A replicated counter as a program of its own: what to write around a service, in full.

use bezant_core::services::Counter;
use bezant_examples::{demo, log_to_stderr, number};
use bezant_node::config::{Testnet, testnet};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
counter new DIR [PORT]      write the files of four replicas, from this port on
counter demo DIR [PORT]     the same, and run all four in this process
counter replica DIR         run one of them; DIR is the folder of that replica
counter add CLUSTER AMOUNT  add to the number; CLUSTER is the file cluster.toml
counter read CLUSTER        read it";

/// After so long an outcome that is not known counts as unknown.
const DEADLINE: Duration = Duration::from_secs(30);

fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    match arguments {
        ["new", dir] => return run(&["new", dir, "4100"]),
        ["new", dir, port] => {
            let service = "counter".to_owned();
            testnet(dir.as_ref(), &Testnet { service, base_port: port.parse()?, ..Testnet::default() })?;
        }
        ["demo", dir] => return run(&["demo", dir, "4100"]),
        ["demo", dir, port] => {
            run(&["new", dir, port])?;
            log_to_stderr();
            demo::<Counter>(dir.as_ref(), "counter")?;
        }
        ["replica", dir] => {
            log_to_stderr();
            bezant_node::host(dir.as_ref(), "counter", 1, Counter::default())?.until_asked_to_end()?;
        }
        ["add", cluster, amount] => {
            let operation = Counter::add(amount.parse()?).to_vec();
            let sum = bezant_node::client(cluster.as_ref())?.execute(operation.into(), DEADLINE).wait()?;
            println!("{}", number(&sum)?);
        }
        ["read", cluster] => {
            let sum = bezant_node::client(cluster.as_ref())?.query(Counter::READ.into(), DEADLINE).wait()?;
            println!("{}", number(&sum)?);
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    bezant_examples::program(run)
}
