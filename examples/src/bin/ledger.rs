//! The replicated ledger as a program of its own. See `bezant_examples::ledger`.

use bezant_examples::ledger::{Answer, Ledger, Operation};
use bezant_examples::{demo, log_to_stderr};
use bezant_node::config::{Testnet, testnet};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
ledger new DIR [PORT]                      write the files of four replicas, from this port on
ledger demo DIR [PORT]                     the same, and run all four in this process
ledger replica DIR                         run one of them; DIR is the folder of that replica
ledger open CLUSTER ACCOUNT                open an account; CLUSTER is the file cluster.toml, ACCOUNT a number
ledger balance CLUSTER ACCOUNT             what is in it
ledger transfer CLUSTER FROM TO AMOUNT     move so much from account to account";

/// After so long an outcome that is not known counts as unknown.
const DEADLINE: Duration = Duration::from_secs(30);

/// Asks, and says what an answer means.
fn ask(cluster: &str, operation: Operation) -> Result<(), Box<dyn Error>> {
    let client = bezant_node::client(cluster.as_ref())?;
    let call = match operation {
        Operation::Balance(_) => client.query(operation.to_bytes(), DEADLINE),
        Operation::Open(_) | Operation::Transfer { .. } => client.execute(operation.to_bytes(), DEADLINE),
    };
    match Answer::of(&call.wait()?) {
        Some(Answer::Balance(balance)) => println!("{balance}"),
        Some(Answer::Overdraft(balance)) => return Err(format!("refused: there are only {balance}").into()),
        Some(Answer::NoAccount) => return Err("refused: there is no such account".into()),
        Some(Answer::NotYours) => return Err("refused: it is the account of another key".into()),
        Some(Answer::Taken) => return Err("refused: there is such an account already".into()),
        Some(Answer::Nonsense) | None => return Err("the replicas run another ledger than this one".into()),
    }
    Ok(())
}

fn run(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    match arguments {
        ["new", dir] => run(&["new", dir, "4100"]),
        ["new", dir, port] => {
            let service = "ledger".to_owned();
            testnet(dir.as_ref(), &Testnet { service, base_port: port.parse()?, ..Testnet::default() })?;
            Ok(())
        }
        ["demo", dir] => run(&["demo", dir, "4100"]),
        ["demo", dir, port] => {
            run(&["new", dir, port])?;
            log_to_stderr();
            Ok(demo::<Ledger>(dir.as_ref(), "ledger")?)
        }
        ["replica", dir] => {
            log_to_stderr();
            Ok(bezant_node::host(dir.as_ref(), "ledger", 1, Ledger::default())?.until_asked_to_end()?)
        }
        ["open", cluster, account] => ask(cluster, Operation::Open(account.parse()?)),
        ["balance", cluster, account] => ask(cluster, Operation::Balance(account.parse()?)),
        ["transfer", cluster, from, to, amount] => {
            ask(cluster, Operation::Transfer { from: from.parse()?, to: to.parse()?, amount: amount.parse()? })
        }
        _ => Err(USAGE.into()),
    }
}

fn main() -> ExitCode {
    bezant_examples::program(run)
}
