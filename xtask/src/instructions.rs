//! How many instructions the core takes for an operation, by who takes them: the same to a few in every run, where
//! seconds on a shared machine differ by half.
//!
//! `crates/core/examples/instructions.rs` runs replicas and clients on one thread; callgrind counts. Each party has its
//! turns in a function of its own, so what was spent is the inclusive cost of the calls of that function. There are no
//! sockets, no disk and no kernel in it.
//!
//! The table of `docs/benchmarks.md` is a ratchet: the gate fails when an operation has become more expensive than it
//! says there. Whoever makes one cheaper writes the table anew, with `--write`.

use crate::failure::{Failure, Result, ensure};
use crate::options::Options;
use crate::process::{self, cargo, program};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;

/// What is measured unless something is named.
const PROTOCOLS: [&str; 6] = ["pbft", "zlight", "quorum", "chain", "ring", "unreplicated"];

/// Where the table is, and how it begins.
const PAGE: &str = "docs/benchmarks.md";
const HEAD: &str = "| protocol | first replica | each other replica | all clients | in all |\n|---|---|---|---|---|\n";

/// By how much an operation may be more expensive than the table says: what counts vary by, and more.
const SLACK: f64 = 1.02;

/// Below this part of what the table says, it is to be written anew: what was won is not to be lost unseen.
const PROGRESS: f64 = 0.9;

/// Instructions for an operation, by party.
type Costs = BTreeMap<String, f64>;

/// A load, as the example takes it.
struct Load<'a> {
    protocol: &'a str,
    auth: &'a str,
    f: u64,
    sessions: u64,
    bytes: u64,
    operations: u64,
}

/// `cargo xtask instructions`.
pub(crate) fn run(arguments: &[String]) -> Result {
    let (arguments, writes) = match arguments {
        [only] if only == "--write" => (&[][..], true),
        all => (all, false),
    };
    let known = ["--protocol", "--auth", "--f", "--sessions", "--bytes", "--operations"];
    let options = Options::parse(arguments, &known)?;
    let auth = options.text("--auth").unwrap_or("mac");
    let (f, bytes) = (options.number("--f", 1)?, options.number("--bytes", 8)?);
    let (sessions, operations) = (options.number("--sessions", 200)?, options.number("--operations", 4_000)?);
    let named = options.all("--protocol");
    let protocols = if named.is_empty() { PROTOCOLS.to_vec() } else { named };
    build()?;
    println!("n = {}, f = {f}, {sessions} sessions, {bytes} bytes, {auth}: instructions for an operation\n", 3 * f + 1);
    print!("{HEAD}");
    let mut table = String::new();
    for protocol in protocols {
        // A single server tolerates nobody.
        let f = if protocol == "unreplicated" { 0 } else { f };
        let row = row(protocol, &count(&Load { protocol, auth, f, sessions, bytes, operations })?)?;
        println!("{row}");
        table = table + &row + "\n";
    }
    if writes {
        let page = fs::read_to_string(PAGE)?;
        let (before, old) = page.split_once(HEAD).ok_or_else(|| Failure::new(format!("{PAGE} has no table")))?;
        let after = old.find("\n\n").map_or("", |end| &old[end + 1..]);
        fs::write(PAGE, format!("{before}{HEAD}{table}{after}"))?;
    }
    Ok(())
}

/// Whether an operation costs no more than the table says.
pub(crate) fn check() -> Result<String> {
    let page = fs::read_to_string(PAGE)?;
    build()?;
    let mut said = Vec::new();
    for protocol in PROTOCOLS {
        let f = u64::from(protocol != "unreplicated");
        let costs = count(&Load { protocol, auth: "mac", f, sessions: 200, bytes: 8, operations: 4_000 })?;
        let now = judged(protocol, &costs, 3 * f + 1)?;
        let missing = || format!("{PAGE} has no row for {protocol}: `cargo xtask instructions --write`");
        let recorded = in_table(&page, protocol).ok_or_else(|| Failure::new(missing()))?;
        ensure(now <= recorded * SLACK, || {
            format!(
                "an operation of {protocol} takes {now:.0} instructions, and {recorded:.0} by {PAGE}. If it is \
                 worth that, say so in the commit, after `cargo xtask instructions --write`"
            )
        })?;
        ensure(now >= recorded * PROGRESS, || {
            format!(
                "an operation of {protocol} takes {now:.0} instructions: `cargo xtask instructions --write` keeps that"
            )
        })?;
        said.push(format!("{protocol} {:.2}", now / recorded));
    }
    Ok(format!("instructions for an operation, by those of the table: {}", said.join(", ")))
}

/// What an operation costs all together, if everybody was counted: each of so many replicas, and the clients.
fn judged(protocol: &str, costs: &Costs, replicas: u64) -> Result<f64> {
    let parties = (0..replicas).map(|replica| replica.to_string()).chain(["clients".to_owned()]);
    for party in parties {
        let is_counted = costs.get(&party).is_some_and(|cost| *cost > 0.0);
        ensure(is_counted, || format!("{protocol}: nothing was counted of {party}"))?;
    }
    Ok(costs.values().sum())
}

/// The last column of a protocol's row.
fn in_table(page: &str, protocol: &str) -> Option<f64> {
    let (_, table) = page.split_once(HEAD)?;
    let begins = |row: &&str| row.starts_with(&format!("| `{protocol}`"));
    let row = table.lines().take_while(|row| row.starts_with('|')).find(begins)?;
    row.trim_end_matches(" |").rsplit_once("| ")?.1.parse().ok()
}

fn build() -> Result {
    ensure(process::is_installed("valgrind"), || "valgrind is not installed: it counts the instructions".into())?;
    let build = ["build", "--release", "--locked", "--quiet", "-p", "bezant-core", "--features", "std", "--example"];
    let built = cargo(&[&build[..], &["instructions"]].concat()).status()?;
    ensure(built.success(), || "the load does not build; see above".into())
}

/// Runs one load under callgrind. What it wrote stays in the target folder, for `callgrind_annotate`.
fn count(load: &Load<'_>) -> Result<Costs> {
    let folder = process::target().join("instructions");
    fs::create_dir_all(&folder)?;
    let name: String = load.protocol.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let out = folder.join(format!("{name}.out"));
    // What an earlier run has counted is not counted again.
    fs::remove_file(&out).or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    let example = process::target().join("release/examples/instructions");
    let mut command = program("valgrind", &["--quiet", "--tool=callgrind", "--collect-atstart=no"]);
    command.arg("--toggle-collect=*counted_*").arg(format!("--callgrind-out-file={}", out.display())).arg(example);
    command.args([load.protocol, load.auth]);
    command.args([load.f, load.sessions, load.bytes, load.operations].map(|number| number.to_string()));
    process::output_of(&mut command)?;
    let costs = inclusive(&fs::read_to_string(&out)?);
    Ok(costs.into_iter().map(|(party, cost)| (party, cost as f64 / load.operations as f64)).collect())
}

/// What the calls of each `counted_…` cost, with all that they called, in callgrind's own format: a line `cfn=` names
/// the function that is called, by a number once it has been named, and the line after `calls=` ends with the cost.
fn inclusive(profile: &str) -> BTreeMap<String, u64> {
    let (mut names, mut costs) = (BTreeMap::new(), BTreeMap::new());
    let (mut called, mut is_cost) = (None, false);
    for line in profile.lines() {
        if std::mem::take(&mut is_cost) {
            let cost = line.split(' ').next_back().and_then(|cost| cost.parse::<u64>().ok());
            let party = called.and_then(|number| names.get(number)).and_then(|name: &&str| name.split_once("counted_"));
            if let (Some((_, party)), Some(cost)) = (party, cost) {
                *costs.entry(party.to_owned()).or_default() += cost;
            }
        } else if let Some((what @ ("fn" | "cfn"), of)) = line.split_once('=') {
            let (number, name) = of.split_once(' ').unwrap_or((of, ""));
            if !name.is_empty() {
                names.insert(number, name);
            }
            if what == "cfn" {
                called = Some(number);
            }
        } else {
            is_cost = line.starts_with("calls=");
        }
    }
    costs
}

/// A line of the table.
fn row(protocol: &str, costs: &Costs) -> Result<String> {
    let clients = costs.get("clients").ok_or_else(|| Failure::new(format!("{protocol}: nothing was counted")))?;
    let all: f64 = costs.values().sum();
    let first = costs.get("0").copied().unwrap_or_default();
    let others = costs.keys().filter(|party| !["0", "clients"].contains(&party.as_str())).count();
    let each = match others {
        0 => String::new(),
        _ => format!("{:.0} ", (all - first - clients) / others as f64),
    };
    Ok(format!("| `{protocol}` | {first:.0} | {each}| {clients:.0} | {all:.0} |"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_party_is_that_of_all_calls_of_its_function() {
        let profile = "events: Ir\n\nfn=(1) load::main\n12 40\ncfn=(2) load::counted_0\ncalls=3 7\n14 900\n15 2\n\
                       cfn=(3) load::counted_clients\ncalls=1 9\n16 50\n\nfn=(2)\n7 100\ncfn=(4) core::step\n\
                       calls=9 1\n+2 800\n\nfn=(5) load::other\ncfn=(2)\ncalls=1 7\n20 300\n";
        let expected = [("0".to_owned(), 1_200), ("clients".to_owned(), 50)];
        assert_eq!(inclusive(profile), BTreeMap::from(expected));
    }

    #[test]
    fn everybody_must_be_counted() {
        let all = [("0", 4.0), ("1", 5.0), ("clients", 6.0)].map(|(who, cost)| (who.to_owned(), cost));
        assert_eq!(judged("pbft", &Costs::from(all.clone()), 2).ok(), Some(15.0));
        assert!(judged("pbft", &Costs::new(), 2).is_err());
        for who in ["0", "1", "clients"] {
            let mut costs = Costs::from(all.clone());
            costs.insert(who.to_owned(), 0.0);
            assert!(judged("pbft", &costs, 2).is_err());
            costs.remove(who);
            assert!(judged("pbft", &costs, 2).is_err());
        }
    }

    #[test]
    fn the_table_is_read_by_protocol() {
        let page =
            format!("text\n{HEAD}| `ring` | 1 | 2 | 3 | 44 |\n| `pbft`, n = 1 | 5 | | 7 | 88 |\n\n| `x` | 9 |\n");
        assert_eq!(["ring", "pbft", "x"].map(|name| in_table(&page, name)), [Some(44.0), Some(88.0), None]);
    }

    #[test]
    fn a_row_has_the_mean_of_the_other_replicas() {
        let costs = [("0", 10.0), ("1", 4.0), ("2", 6.0), ("clients", 30.0)].map(|(who, cost)| (who.to_owned(), cost));
        assert_eq!(row("pbft", &Costs::from(costs)).expect("counted"), "| `pbft` | 10 | 5 | 30 | 50 |");
        assert!(row("pbft", &Costs::new()).is_err());
    }
}
