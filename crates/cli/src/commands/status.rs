//! `bezant status`: how every replica is, and who is at fault.

use crate::admin;
use crate::failure::{Failure, Result};
use crate::output;
use crate::service::{Connection, Service};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::thread;

/// Show how every replica is, and name those at fault
///
/// Asks the admin port of every replica, and reads once through the client library to see whose answers differ.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant status --cluster net/cluster.toml\n\n\
    Exit codes: 0 all replicas are up, in agreement and trusted · 1 one of them is not")]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let service = Service::connect(&arguments.connection)?;
    let answering = service.probe();
    let overview = Overview::collect(service.members(), &service.differed(), answering);
    println!("{}", overview.show(arguments.json).trim_end());
    if overview.is_healthy() { Ok(()) } else { Err(Failure::silent()) }
}

/// A replica, and where to ask how it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) replica: u8,
    pub(crate) admin: SocketAddr,
}

/// One replica's own account, or why there is none; and what was noticed about it.
struct Row {
    member: Member,
    account: std::result::Result<Value, String>,
    /// Answers to this client that were not those of the others.
    differed: u64,
    /// Other replicas that hold something against it.
    suspected_by: BTreeSet<u8>,
}

/// All replicas at about one moment.
pub(crate) struct Overview {
    rows: Vec<Row>,
    /// Whether a read through the client library succeeded.
    answering: bool,
}

impl Overview {
    /// Asks all replicas at the same time.
    pub(crate) fn collect(members: &[Member], differed: &BTreeMap<u8, u64>, answering: bool) -> Self {
        let accounts: Vec<_> = thread::scope(|scope| {
            let ask = |member: &Member| {
                let admin = member.admin;
                scope.spawn(move || admin::get_json(admin, "/status"))
            };
            let asked: Vec<_> = members.iter().map(ask).collect();
            asked.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("no answer".to_owned()))).collect()
        });
        let suspicions: Vec<_> = members
            .iter()
            .zip(&accounts)
            .flat_map(|(member, account)| suspects(account).map(|suspect| (suspect, member.replica)))
            .collect();
        let row = |(member, account): (&Member, _)| Row {
            member: *member,
            account,
            differed: differed.get(&member.replica).copied().unwrap_or(0),
            suspected_by: suspicions.iter().filter(|(who, _)| *who == member.replica).map(|(_, by)| *by).collect(),
        };
        Self { rows: members.iter().zip(accounts).map(row).collect(), answering }
    }

    /// Replicas that gave wrong answers, or that more than f others hold something against.
    fn at_fault(&self) -> Vec<u8> {
        let weak = self.rows.len().saturating_sub(1) / 3 + 1;
        let guilty = |row: &&Row| row.differed > 0 || row.suspected_by.len() >= weak;
        self.rows.iter().filter(guilty).map(|row| row.member.replica).collect()
    }

    /// Whether the service answers, and every replica is up and trusted.
    pub(crate) fn is_healthy(&self) -> bool {
        let ready = |row: &Row| row.account.as_ref().is_ok_and(|account| account["ready"] == json!(true));
        self.answering && self.at_fault().is_empty() && self.rows.iter().all(ready)
    }

    /// As a table, or as one line of JSON.
    pub(crate) fn show(&self, json: bool) -> String {
        if json { self.json().to_string() } else { self.table() }
    }

    fn json(&self) -> Value {
        let replicas: Vec<_> = self.rows.iter().map(Row::json).collect();
        json!({ "healthy": self.is_healthy(), "answering": self.answering, "at_fault": self.at_fault(),
            "replicas": replicas })
    }

    fn table(&self) -> String {
        let head =
            ["replica", "state", "view", "executed", "stable", "stable root", "requests", "differed", "suspected by"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.rows.iter().map(Row::cells));
        let mut text = output::table(&rows);
        let (n, f) = (self.rows.len(), self.rows.len().saturating_sub(1) / 3);
        text += &format!("n = {n}: the answers stay right while at most {f} lie or crash.\n");
        for replica in self.at_fault() {
            let fault = format!("replica {replica} is at fault");
            let row = &self.rows[usize::from(replica)];
            let differed = row.differed;
            text += &match differed {
                0 => format!("{}: others caught it contradicting them.\n", output::alarming(&fault)),
                _ => format!("{}: {differed} of its answers differ from the agreed ones.\n", output::alarming(&fault)),
            };
        }
        if !self.answering {
            text += &format!("{}\n", output::alarming("the service does not answer"));
        }
        text
    }
}

/// Whom a replica's account holds something against.
fn suspects(account: &std::result::Result<Value, String>) -> impl Iterator<Item = u8> + '_ {
    let list = account.as_ref().ok().and_then(|account| account["report"]["suspicions"].as_array());
    let replica = |entry: &Value| entry["replica"].as_u64().and_then(|number| u8::try_from(number).ok());
    list.into_iter().flatten().filter_map(replica)
}

/// What is shown of a replica's own report: its name there, and here.
const REPORTED: [(&str, &str); 12] = [
    ("protocol", "protocol"),
    ("view", "view"),
    ("primary", "primary"),
    ("changing_view", "changing_view"),
    ("abstaining", "abstaining"),
    ("executed", "executed"),
    ("stable", "stable"),
    ("stable_root", "root"),
    ("history", "history"),
    ("requests_executed", "requests_executed"),
    ("pending_requests", "pending_requests"),
    ("transfer", "transfer"),
];

impl Row {
    fn json(&self) -> Value {
        let mut fields = json!({ "id": self.member.replica, "up": self.account.is_ok(), "differed": self.differed,
            "suspected_by": self.suspected_by });
        match &self.account {
            Ok(account) => {
                for (name, shown) in REPORTED {
                    fields[shown] = account["report"][name].clone();
                }
                fields["ready"] = account["ready"].clone();
                fields["not_ready"] = account["not_ready"].clone();
            }
            Err(why) => fields["error"] = json!(why),
        }
        fields
    }

    fn cells(&self) -> Vec<String> {
        let suspected_by: Vec<_> = self.suspected_by.iter().map(u8::to_string).collect();
        let mut cells = vec![self.member.replica.to_string()];
        match &self.account {
            Ok(account) => {
                let report = &account["report"];
                cells.push(state(report).to_owned());
                cells.extend(["view", "executed", "stable"].map(|name| show(&report[name])));
                cells.push(report["stable_root"].as_str().unwrap_or("").chars().take(8).collect());
                cells.push(show(&report["requests_executed"]));
            }
            Err(why) => {
                cells.push(why.clone());
                cells.extend(std::iter::repeat_n(String::new(), 5));
            }
        }
        cells.extend([self.differed.to_string(), suspected_by.join(" ")]);
        cells
    }
}

/// A replica's state in a word or two.
fn state(report: &Value) -> &'static str {
    let is = |name: &str| report[name] == json!(true);
    if is("abstaining") {
        "abstaining"
    } else if !report["transfer"].is_null() {
        "catching up"
    } else if is("changing_view") {
        "changing view"
    } else {
        "up"
    }
}

fn show(value: &Value) -> String {
    if value.is_null() { String::new() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview(differed: u64, suspicions: &[u8]) -> Overview {
        let member = |replica| Member { replica, admin: ([127, 0, 0, 1], 1).into() };
        let row = |replica| Row {
            member: member(replica),
            account: Ok(json!({ "report": { "view": 2, "stable_root": "0123456789abcdef" }, "ready": true })),
            differed: if replica == 3 { differed } else { 0 },
            suspected_by: if replica == 2 { suspicions.iter().copied().collect() } else { BTreeSet::new() },
        };
        Overview { rows: (0..4).map(row).collect(), answering: true }
    }

    #[test]
    fn a_liar_is_named() {
        assert!(overview(0, &[]).is_healthy());
        let lied = overview(7, &[]);
        assert_eq!((lied.at_fault(), lied.is_healthy()), (vec![3], false));
        assert!(lied.show(false).contains("replica 3 is at fault: 7 of its answers differ"));
        assert!(lied.show(true).contains("\"at_fault\":[3]"));
    }

    #[test]
    fn one_replica_alone_cannot_have_another_condemned() {
        assert_eq!(overview(0, &[0]).at_fault(), [0; 0]);
        assert_eq!(overview(0, &[0, 1]).at_fault(), [2]);
    }
}
