//! `bezant diff`: where replicas' states differ or differed, down to the row.
//!
//! 1. A checkpoint is brought about, so that what is wrong now shows itself.
//! 2. What the replicas have there is compared: roots first, then node by node, then the rows of the tables concerned.
//! 3. A replica that finds itself in the minority repairs itself and keeps a record. All records are shown as well.

use crate::checkpoint::{Bar, Fresh, sources};
use crate::failure::{Code, Failure, Result};
use crate::{admin, evidence, output};
use bezant_core::auth::{Certificate, Claimed};
use bezant_core::checkpoint::Checkpoint;
use bezant_core::digest::Digest;
use bezant_node::config::ClusterConfig;
use bezant_node::divergence::utc;
use bezant_node::fetch::{self, Account, Source};
use bezant_node::keys::to_hex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a replica that is found wrong may take to repair itself before it is shown as it is.
const REPAIR_MAX: Duration = Duration::from_secs(5);
/// How often is looked.
const POLL: Duration = Duration::from_millis(100);
/// Differences and pages of one replica that are shown to people.
const SHOWN_MAX: usize = 10;

/// Show where replicas' states differ, or did: the page, the table, the row
///
/// Has a checkpoint taken and compares what every replica has there. A replica with another state than the others
/// repairs itself and keeps a record, which is shown as well, as that replica tells it.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant diff --cluster net/cluster.toml\n\n\
    Exit codes: 0 no difference, now or on record · 4 there is one · 1 it could not be found out")]
pub(crate) struct Arguments {
    /// The cluster's file
    #[arg(long, value_name = "FILE")]
    cluster: PathBuf,
    /// A client's secret key, to have a checkpoint taken [default: client.key beside the cluster's file]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Compare the last checkpoints as they are. Needs no key
    #[arg(long)]
    last: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let config = ClusterConfig::load(&arguments.cluster).map_err(Failure::usage)?;
    let key = arguments.key.clone().unwrap_or_else(|| arguments.cluster.with_file_name("client.key"));
    let difference = Report::collect(&config, (!arguments.last).then_some(&*key))?;
    output::line(difference.show(arguments.json).trim_end())?;
    if difference.is_any() { Err(Failure::answered(Code::Differs)) } else { Ok(()) }
}

/// What was found.
pub(crate) struct Report {
    /// The checkpoint at which states were compared; `None`: no two replicas showed the same one.
    compared: Option<Checkpoint>,
    /// The replicas that were compared, by the root that they have.
    groups: BTreeMap<Digest, Vec<u8>>,
    /// How the states of the minority differ, now.
    live: Vec<Value>,
    /// What is on record, and whose record it is.
    records: Vec<Value>,
    /// Who does not answer.
    silent: Vec<(u8, String)>,
}

impl Report {
    /// Compares. With a client's key a checkpoint is brought about first.
    pub(crate) fn collect(config: &ClusterConfig, key: Option<&Path>) -> Result<Self> {
        let sources = sources(config);
        let newest = match key {
            Some(key) => Some(Fresh::begin(config, key)?.wait(config, &sources)?),
            None => None,
        };
        let deadline = Instant::now() + REPAIR_MAX;
        loop {
            let (accounts, silent) = fetch::accounts(&sources);
            let all: Vec<_> = accounts.iter().flat_map(|account| &account.certain).collect();
            let found = compared(&accounts, newest);
            let agreed = found.as_ref().is_some_and(|(_, groups)| groups.len() == 1);
            let complete = found.as_ref().is_some_and(|(_, groups)| members(groups) == accounts.len());
            let settled = accounts.iter().all(|account| account.announced == 0);
            if (agreed && complete && settled) || Instant::now() > deadline || (key.is_none() && all.is_empty()) {
                let silent = silent.into_iter().map(|(replica, why)| (replica.0, why)).collect();
                return Ok(Self::of(&accounts, found, records(&sources), silent));
            }
            thread::sleep(POLL);
        }
    }

    fn of(
        accounts: &[Account],
        found: Option<(Checkpoint, BTreeMap<Digest, Vec<Source>>)>,
        records: Vec<Value>,
        silent: Vec<(u8, String)>,
    ) -> Self {
        let Some((checkpoint, groups)) = found else {
            return Self { compared: None, groups: BTreeMap::new(), live: Vec::new(), records, silent };
        };
        let certified = accounts.iter().flat_map(|account| &account.certain).map(Claimed::<Certificate<_>>::claims);
        let certified = certified
            .filter(|value| (value.instance, value.sequence) == (checkpoint.instance, checkpoint.sequence))
            .map(|value| value.root)
            .find(|root| groups.contains_key(root));
        // The largest group is the majority; what is certified is right however many have it.
        let largest = groups.iter().max_by_key(|(_, group)| group.len()).map(|(root, _)| *root);
        let majority = certified.or(largest).expect("there is a group");
        let live = groups
            .iter()
            .filter(|(root, _)| **root != majority)
            .flat_map(|(root, group)| group.iter().map(|source| (*root, *source)))
            .map(|(root, source)| live(checkpoint, (majority, groups[&majority][0]), (root, source)))
            .collect();
        let number = |group: &Vec<Source>| group.iter().map(|source| source.replica.0).collect();
        let groups = groups.iter().map(|(root, group)| (*root, number(group))).collect();
        Self { compared: Some(Checkpoint { root: majority, ..checkpoint }), groups, live, records, silent }
    }

    /// Whether any state differs, or did.
    pub(crate) fn is_any(&self) -> bool {
        !(self.live.is_empty() && self.records.is_empty())
    }

    /// As text, or as one line of JSON.
    pub(crate) fn show(&self, json: bool) -> String {
        if json { self.json().to_string() } else { self.text() }
    }

    fn json(&self) -> Value {
        let compared = self
            .compared
            .map(|at| json!({ "instance": at.instance.0, "sequence": at.sequence.0, "root": to_hex(&at.root.0) }));
        let groups = self.groups.iter().map(|(root, group)| json!({ "root": to_hex(&root.0), "replicas": group }));
        let silent = self.silent.iter().map(|(replica, why)| json!({ "replica": replica, "why": why }));
        json!({ "different": self.is_any(), "compared": compared, "groups": groups.collect::<Vec<_>>(),
            "live": self.live, "records": self.records, "silent": silent.collect::<Vec<_>>() })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for record in &self.records {
            text += &recorded(record);
        }
        for live in &self.live {
            text += &format!(
                "{} at checkpoint {} of instance {}: it is not repaired yet.\n{}",
                output::alarming(&format!("Replica {} differs now", live["replica"])),
                live["sequence"],
                live["instance"],
                places(live)
            );
        }
        match (self.compared, self.groups.len()) {
            (None, _) => text += "No two replicas show the same checkpoint, so that nothing could be compared.\n",
            (Some(at), 1) => {
                let who = self.groups.values().next().map(|group| list(group)).unwrap_or_default();
                text += &format!(
                    "Now replicas {who} have the same state at checkpoint {} of instance {}.\n",
                    at.sequence.0, at.instance.0
                );
            }
            (Some(_), _) => {
                for (root, group) in &self.groups {
                    text += &format!("Root {root}: replicas {}.\n", list(group));
                }
            }
        }
        for (replica, why) in &self.silent {
            text += &format!("Replica {replica}: {why}.\n");
        }
        text
    }
}

fn list(replicas: &[u8]) -> String {
    replicas.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
}

fn members(groups: &BTreeMap<Digest, Vec<Source>>) -> usize {
    groups.values().map(Vec::len).sum()
}

/// The newest checkpoint that most replicas show, not older than `from`, and who has which root there.
fn compared(accounts: &[Account], from: Option<Checkpoint>) -> Option<(Checkpoint, BTreeMap<Digest, Vec<Source>>)> {
    let mut shown: BTreeMap<_, BTreeMap<u8, (Source, Checkpoint)>> = BTreeMap::new();
    for account in accounts {
        // Oldest first: what a replica has now stands in place of what it had there before.
        for value in &account.own {
            let place = shown.entry((value.instance, value.sequence)).or_default();
            place.insert(account.source.replica.0, (account.source, *value));
        }
    }
    let least = from.map(|from| (from.instance, from.sequence));
    let candidates = shown.into_iter().filter(|(at, who)| who.len() > 1 && Some(*at) >= least);
    let (_, who) = candidates.max_by_key(|(at, who)| (who.len(), *at))?;
    let mut groups: BTreeMap<Digest, Vec<Source>> = BTreeMap::new();
    let at = who.values().next()?.1;
    for (source, value) in who.into_values() {
        groups.entry(value.root).or_default().push(source);
    }
    Some((at, groups))
}

/// How the state of a replica differs from that of the majority, now.
fn live(at: Checkpoint, (majority, from): (Digest, Source), (root, source): (Digest, Source)) -> Value {
    let mut fields = json!({
        "replica": source.replica.0,
        "instance": at.instance.0,
        "sequence": at.sequence.0,
        "mine": to_hex(&root.0),
        "agreed": to_hex(&majority.0),
    });
    let trees = fetch::fetch_tree(from, majority, &mut Bar::new().taking("reading")).and_then(|agreed| {
        let mine = fetch::fetch_difference(source, root, &agreed, &mut |_| ())?;
        Ok((mine, agreed))
    });
    match trees {
        Ok((mine, agreed)) => evidence::describe_states(&mine, &agreed, &mut fields),
        Err(why) => fields["error"] = json!(why),
    }
    fields
}

/// The records of all replicas, oldest first. Whose record it is says the port, not the record.
fn records(sources: &[Source]) -> Vec<Value> {
    let mut records = Vec::new();
    for source in sources {
        let Ok(Value::Array(told)) = admin::get_json(source.admin, "/divergences") else { continue };
        for mut record in told.into_iter().filter(Value::is_object) {
            record["replica"] = json!(source.replica.0);
            records.push(record);
        }
    }
    records.sort_by_key(|record| record["time_us"].as_u64());
    records
}

/// One record as text.
fn recorded(record: &Value) -> String {
    let number = |name: &str| record[name].as_u64().unwrap_or(0);
    let (replica, sequence, since) = (number("replica"), number("sequence"), record["since"].as_u64());
    let batches = format!("batches {} to {sequence}", since.map_or(1, |since| since.saturating_add(1)));
    let why = match record["cause"].as_str().unwrap_or_default() {
        "beside the requests" => {
            "The requests since give the state of the others: it was changed beside them.".to_owned()
        }
        "a request, always" => format!("The requests since give its state again: it executes {batches} otherwise."),
        "a request, at random" => format!("The requests since give a third state: {batches} are not deterministic."),
        _ if since.is_some() => format!("The first difference is in {batches}."),
        _ => "What led to it is not kept.".to_owned(),
    };
    let later = match number("repaired_at") {
        at if at == sequence => String::new(),
        at => format!("\n  Compared with checkpoint {at}, which has what was written since."),
    };
    let before = since.map_or_else(
        || "When it was right last is not known.".to_owned(),
        |since| format!("Equal before: checkpoint {since}."),
    );
    let who = output::alarming(&format!("Replica {replica} had another state than the others"));
    format!(
        "{who} at checkpoint {sequence} of instance {} and repaired it ({}).\n{}  \
         {before} {why}{later}\n",
        record["instance"],
        utc(number("time_us")),
        places(record)
    )
}

/// Where two states differ.
fn places(fields: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("nothing").to_owned();
    let mut out = String::new();
    let differences = fields["differences"].as_array().map_or(&[][..], Vec::as_slice);
    for difference in differences.iter().take(SHOWN_MAX) {
        let place = match (&difference["table"], &difference["column"], &difference["key"]) {
            (Value::String(table), Value::String(column), _) => {
                format!("table {table}, row {}, column {column}", text(&difference["row"]))
            }
            (Value::String(table), ..) => format!("table {table}, row {}", text(&difference["row"])),
            (_, _, Value::String(key)) => format!("key {key}"),
            _ => "its state".to_owned(),
        };
        let (mine, agreed) = (text(&difference["mine"]), text(&difference["agreed"]));
        out += &format!("  {place}: it had {mine}, the others {agreed}\n");
    }
    if differences.len() > SHOWN_MAX || fields["more"] == json!(true) {
        out += "  and more: --json shows up to 100\n";
    }
    let list = fields["places"].as_array().map_or(&[][..], Vec::as_slice);
    let pages: Vec<_> =
        list.iter().take(SHOWN_MAX).map(|place| format!("{} ({})", place["number"], text(&place["holds"]))).collect();
    let rest = fields["pages_different"].as_u64().unwrap_or(0).saturating_sub(pages.len() as u64);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    if let Some(why) = fields["error"].as_str() {
        out += &format!("  its pages cannot be read: {why}\n");
    }
    if !pages.is_empty() {
        out += &format!("  Pages: {}{rest}\n", pages.join(", "));
    }
    out
}
