//! `bezant status`: how every replica is, and who is at fault.

mod quarantine;
mod state;
#[cfg(test)]
mod tests;

use crate::failure::{Code, Failure, Result};
use crate::member::Member;
use crate::service::{Connection, Probe, Service};
use crate::{admin, output};
use bezant_core::digest::Digest;
use bezant_core::replicas::Replicas;
use serde_json::{Value, json};
use state::{Condition, State};
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

/// How long has to last what may pass by itself: view changes, transfers, votes that are on their way, a lag.
const LASTING: Duration = Duration::from_secs(3);
/// How often it is looked at again until then.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// Show how every replica is, and name those at fault
///
/// Asks the admin port of every replica, and reads a few times through the client library to see whose answers differ.
/// Ends within 20 s, whoever answers or does not.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  bezant status --cluster net/cluster.toml\n\n\
    Exit codes: 0 all replicas are up, in agreement and trusted · 1 one of them is not · \
    5 nothing can be written")]
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
    let overview = Overview::collect(service.members(), service.replicas(), &service.probe());
    output::line(overview.show(arguments.json).trim_end())?;
    match overview.obstacle {
        Some(_) => Err(Failure::answered(Code::Stuck)),
        None if overview.is_healthy() => Ok(()),
        None => Err(Failure::silent()),
    }
}

/// One replica's own account, or why there is none; and what was noticed about it.
struct Row {
    member: Member,
    account: std::result::Result<Value, String>,
    /// Whether its answers are not those of the others.
    lying: bool,
    /// How many answers to this client were not.
    differed: u64,
    /// Other replicas that hold something against it.
    suspected_by: BTreeSet<u8>,
    /// How far it is behind f + 1 others, in words, if that is far.
    lag: Option<String>,
}

/// Why nothing can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    /// Too few replicas agree on an answer.
    Silent,
    /// Too few take part.
    TooFew,
    /// A checkpoint that enough replicas have come to is not signed alike by enough: their states differ. The instance,
    /// and the batch of the last stable one. Writes go on for a window only, and may be undone.
    Checkpoint(u64, u64),
    /// It was closed, by the request at this position.
    Closed(u64),
}

/// All replicas at about one moment.
pub(crate) struct Overview {
    rows: Vec<Row>,
    /// How many there are, and how many of them may lie, as the cluster's file says.
    replicas: Replicas,
    /// Whether a read through the client library succeeded, if one was made.
    answering: Option<bool>,
    /// Why nothing can be written, if that lasts.
    obstacle: Option<Obstacle>,
}

impl Overview {
    /// Asks all replicas at the same time, and again for a while if nothing can be written or one is far behind.
    pub(crate) fn collect(members: &[Member], replicas: Replicas, probe: &Probe) -> Self {
        let start = Instant::now();
        let mut overview = Self::gather(members, replicas, probe);
        while overview.may_pass() && start.elapsed() < LASTING {
            thread::sleep(LOOK_AGAIN);
            overview = Self::gather(members, replicas, probe).lasting_since(&overview);
        }
        overview
    }

    /// Whether something is wrong now that may be right in a moment.
    fn may_pass(&self) -> bool {
        self.obstacle.is_some_and(|obstacle| !matches!(obstacle, Obstacle::Silent | Obstacle::Closed(_)))
            || self.rows.iter().any(|row| row.lag.is_some())
    }

    /// Without what was otherwise at an earlier look.
    fn lasting_since(mut self, earlier: &Self) -> Self {
        self.obstacle = self.obstacle.filter(|_| self.obstacle == earlier.obstacle);
        for (row, before) in self.rows.iter_mut().zip(&earlier.rows) {
            row.lag = row.lag.take().filter(|_| before.lag.is_some());
        }
        self
    }

    fn gather(members: &[Member], replicas: Replicas, probe: &Probe) -> Self {
        let accounts: Vec<_> = thread::scope(|scope| {
            let ask = |member: &Member| {
                let member = *member;
                scope.spawn(move || member.account())
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
            lying: probe.lying.contains(&member.replica),
            differed: probe.differed.get(&member.replica).copied().unwrap_or(0),
            suspected_by: suspicions.iter().filter(|(who, _)| *who == member.replica).map(|(_, by)| *by).collect(),
            lag: None,
        };
        let rows = members.iter().zip(accounts).map(row).collect();
        let mut overview = Self { rows, replicas, answering: probe.answering, obstacle: None };
        overview.obstacle = overview.find_obstacle();
        overview.find_lags();
        overview
    }

    /// Finds those that are far behind where f + 1 replicas say that they are: f of them may lie.
    fn find_lags(&mut self) {
        let Some(reached) = self.replicas.reached(self.rows.iter().filter_map(Row::place)) else { return };
        self.rows.iter_mut().for_each(|row| row.lag = row.behind(reached));
    }

    /// Why nothing can be written at this moment.
    fn find_obstacle(&self) -> Option<Obstacle> {
        if self.answering == Some(false) {
            return Some(Obstacle::Silent);
        }
        if self.rows.iter().filter(|row| row.may_take_part()).count() < self.replicas.strong() {
            return Some(Obstacle::TooFew);
        }
        let waiting: Vec<_> = self.rows.iter().filter_map(Row::waits_for_checkpoint).collect();
        // The newest: as soon as one more is stable this is no obstacle.
        let last = waiting.iter().max().filter(|_| waiting.len() >= self.replicas.strong());
        last.map(|last| Obstacle::Checkpoint(last.0, last.1)).or_else(|| self.closed().map(Obstacle::Closed))
    }

    /// The position of the request that closed the cluster, as f + 1 replicas say it: f of them may lie.
    fn closed(&self) -> Option<u64> {
        let said = |row: &Row| row.account.as_ref().ok()?["report"]["closed"].as_u64();
        let all: Vec<u64> = self.rows.iter().filter_map(said).collect();
        all.iter().copied().find(|at| all.iter().filter(|other| *other == at).count() >= self.replicas.weak())
    }

    /// What keeps everybody from writing, in a sentence.
    fn stuck(&self) -> Option<String> {
        let (n, needed) = (self.rows.len(), self.replicas.strong());
        Some(match self.obstacle? {
            Obstacle::Silent => format!("the service does not answer: no {needed} of {n} replicas agree on an answer"),
            Obstacle::TooFew => format!("fewer than {needed} of {n} replicas take part"),
            Obstacle::Checkpoint(_, stable) => format!(
                "{needed} of {n} replicas have come to a checkpoint after batch {stable}, and it does not become \
                 stable: their states differ, see `diff`"
            ),
            Obstacle::Closed(position) => format!(
                "the cluster is closed since request {position}, for good. Back it up and make its successor: \
                 docs/operations.md#a-changed-limit"
            ),
        })
    }

    /// How many requests were refused because the replicas executed them otherwise, and the position of the last of
    /// them: as many as f + 1 replicas know of.
    fn disputed(&self) -> Option<(u64, u64)> {
        let said = |row: &Row| {
            let report = &row.account.as_ref().ok()?["report"];
            Some((report["requests_disputed"].as_u64()?, report["last_disputed"].as_u64()?))
        };
        self.replicas.reached(self.rows.iter().filter_map(said)).filter(|(count, _)| *count > 0)
    }

    /// Replicas that give wrong answers, or that more than f others hold something against.
    fn at_fault(&self) -> impl Iterator<Item = &Row> {
        let weak = self.replicas.weak();
        self.rows.iter().filter(move |row| row.lying || row.suspected_by.len() >= weak)
    }

    /// Whether the service answers and every replica takes part and tells the truth. What one did earlier is shown,
    /// but does not count here: otherwise a cluster could never become healthy again.
    pub(crate) fn is_healthy(&self) -> bool {
        let well = |row: &Row| !row.lying && row.condition().state == State::Healthy;
        self.answering != Some(false) && self.obstacle.is_none() && self.rows.iter().all(well)
    }

    /// As a table, or as one line of JSON.
    pub(crate) fn show(&self, json: bool) -> String {
        if json { self.json().to_string() } else { self.table() }
    }

    fn json(&self) -> Value {
        let replicas: Vec<_> = self.rows.iter().map(Row::json).collect();
        let at_fault: Vec<_> = self.at_fault().map(|row| row.member.replica).collect();
        json!({ "healthy": self.is_healthy(), "answering": self.answering, "stuck": self.stuck(),
            "closed": self.closed(), "at_fault": at_fault, "replicas": replicas })
    }

    /// What more than f replicas say about the pace of a ring: f of them may lie.
    fn slow_ring(&self) -> String {
        let accounts = self.rows.iter().filter_map(|row| row.account.as_ref().ok());
        let alarms: Vec<_> =
            accounts.map(|account| &account["report"]["ring_alarm"]).filter(|alarm| alarm.is_object()).collect();
        if alarms.len() < self.replicas.weak() {
            return String::new();
        }
        let mut hops: Vec<_> = alarms.into_iter().map(slow_hop).collect();
        hops.sort();
        hops.dedup();
        format!("{}: {}.\n", output::alarming("the ring is slow"), hops.join("; "))
    }

    /// The report of the replica that has come furthest.
    fn newest(&self) -> Option<&Value> {
        let reports = self.rows.iter().filter_map(|row| Some(&row.account.as_ref().ok()?["report"]));
        reports.max_by_key(|report| report["instance"].as_u64())
    }

    fn table(&self) -> String {
        let composition = self.newest().filter(|report| report["part"] != json!(""));
        let columns = if composition.is_some() { INSTANCE_COLUMNS } else { BATCH_COLUMNS };
        let mut head = vec!["replica", "state"];
        head.extend(columns.iter().map(|(title, _)| *title).chain(["differed", "suspected by"]));
        let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
        rows.extend(self.rows.iter().map(|row| row.cells(columns)));
        let mut text = output::table(&rows);
        text += &composition.map_or_else(String::new, last_switch);
        text += &self.newest().map_or_else(String::new, members);
        text += &self.slow_ring();
        let (n, f) = (self.replicas.n(), self.replicas.faults());
        text += &format!("n = {n}: the answers stay right while at most {f} lie or crash.\n");
        for row in self.at_fault() {
            let fault = output::alarming(&format!("replica {} is at fault", row.member.replica));
            text += &match row.lying {
                true => format!("{fault}: its answers differ from those of the others. {}.\n", row.condition().advice),
                false => format!("{fault}: others caught it contradicting them, now or earlier.\n"),
            };
        }
        for row in &self.rows {
            let Condition { state, why, advice } = row.condition();
            // A liar is told of above.
            if !matches!(state, State::Healthy | State::Lying) {
                let who = output::alarming(&format!("replica {}, {}", row.member.replica, state.words()));
                text += &format!("{who}: {why}. {advice}.\n");
            }
        }
        for row in &self.rows {
            let divergences = row.account.as_ref().ok().and_then(|account| account["divergences"].as_u64());
            if let Some(count) = divergences.filter(|count| *count > 0) {
                let (replica, times) = (row.member.replica, if count == 1 { "once" } else { "several times" });
                text += &format!("Replica {replica} had another state than the others {times}: see `diff`.\n");
            }
        }
        for row in &self.rows {
            text += &row.account.as_ref().map_or_else(|_| String::new(), |it| quarantine::told(row.member.replica, it));
        }
        if let Some((count, last)) = self.disputed() {
            let requests = if count == 1 { "One request was".into() } else { format!("{count} requests were") };
            text += &format!(
                "{requests} refused because the replicas executed it otherwise, each in its own way; last at position \
                 {last}.\nThe service is not deterministic: find out what was asked there.\n"
            );
        }
        if let Some(why) = self.stuck() {
            text += &format!("{}: {why}.\n", output::alarming("nothing can be written"));
        }
        text
    }
}

/// Which hop of a ring stands out, as a replica reports it.
fn slow_hop(alarm: &Value) -> String {
    match (alarm["from"].as_u64(), alarm["to"].as_u64(), alarm["hop_us"].as_u64()) {
        (Some(from), Some(to), Some(hop)) => format!("from replica {from} to {to} it takes {:.1} ms", hop as f64 / 1e3),
        _ => "no hop is longer than the others".to_owned(),
    }
}

/// Whom a replica's account holds something against.
fn suspects(account: &std::result::Result<Value, String>) -> impl Iterator<Item = u8> + '_ {
    let list = account.as_ref().ok().and_then(|account| account["report"]["suspicions"].as_array());
    let replica = |entry: &Value| entry["replica"].as_u64().and_then(|number| u8::try_from(number).ok());
    list.into_iter().flatten().filter_map(replica)
}

/// What is shown of a replica's own report: its name there, and here.
const REPORTED: [(&str, &str); 24] = [
    ("protocol", "protocol"),
    ("instance", "instance"),
    ("part", "part"),
    ("position", "position"),
    ("members", "members"),
    ("switches", "switches"),
    ("switch_reason", "switch_reason"),
    ("switch_took_us", "switch_took_us"),
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
    ("state_differs_at", "state_differs_at"),
    ("requests_disputed", "requests_disputed"),
    ("last_disputed", "last_disputed"),
    ("closed", "closed"),
    ("ring_alarm", "ring_alarm"),
];

/// Titles, and the names in the report, where one protocol runs for ever.
const BATCH_COLUMNS: &[(&str, &str)] = &[
    ("view", "view"),
    ("executed", "executed"),
    ("stable", "stable"),
    ("stable root", "stable_root"),
    ("requests", "requests_executed"),
];

/// The same where instances follow one another.
const INSTANCE_COLUMNS: &[(&str, &str)] = &[
    ("instance", "instance"),
    ("runs", "part"),
    ("requests", "position"),
    ("history", "history"),
    ("waiting", "pending_requests"),
];

/// Hexadecimal digits of a digest that are shown to people.
const DIGEST_SHOWN: usize = 8;

/// Why the composition is where it is.
fn last_switch(report: &Value) -> String {
    let switches = report["switches"].as_u64().unwrap_or(0);
    if switches == 0 {
        return String::new();
    }
    let took = report["switch_took_us"].as_u64().unwrap_or(0) as f64 / 1e3;
    let reason = report["switch_reason"].as_str().unwrap_or("");
    format!("switches so far: {switches}; the last took {took:.1} ms, because: {reason}.\n")
}

/// How many clients have joined that the cluster file does not name, if any have.
fn members(report: &Value) -> String {
    match report["members"].as_u64() {
        None | Some(0) => String::new(),
        Some(members) => format!("clients that have joined: {members}\n"),
    }
}

impl Row {
    /// Whether it says that it takes full part. Whoever cannot be asked may do so, if its process runs.
    fn may_take_part(&self) -> bool {
        match &self.account {
            Ok(account) => account["ready"] == json!(true),
            Err(why) => why != admin::NOT_RUNNING,
        }
    }

    /// The instance and the last stable batch of a replica that has executed as much as lies between two checkpoints
    /// since: it has come to the next one, and that is not stable.
    fn waits_for_checkpoint(&self) -> Option<(u64, u64)> {
        let account = self.account.as_ref().ok()?;
        let report = &account["report"];
        let (executed, stable) = (report["executed"].as_u64()?, report["stable"].as_u64()?);
        let interval = account["checkpoint_interval"].as_u64()?;
        (executed.saturating_sub(stable) >= interval).then_some((report["instance"].as_u64()?, stable))
    }

    /// The instance that it is in, and the last batch there that it has executed.
    fn place(&self) -> Option<(u64, u64)> {
        let report = &self.account.as_ref().ok()?["report"];
        Some((report["instance"].as_u64()?, report["executed"].as_u64()?))
    }

    /// How far it is behind this place, in words: an instance, or more than all that a replica can accept above its
    /// stable checkpoint, so that only the help of others brings it back. Less is a matter of the moment in which each
    /// was asked. Where instances follow one another, positions in them do not count batches.
    fn behind(&self, (instance, executed): (u64, u64)) -> Option<String> {
        let (mine, place) = self.place()?;
        let account = self.account.as_ref().ok()?;
        let window = account["checkpoint_interval"].as_u64()?.saturating_mul(2);
        if mine != instance {
            let instances = instance.checked_sub(mine)?;
            return Some(if instances == 1 { "an instance".to_owned() } else { format!("{instances} instances") });
        }
        let batches = executed.saturating_sub(place);
        let counts = matches!(account["report"]["part"].as_str(), None | Some(""));
        (counts && batches > window).then(|| format!("{batches} batches"))
    }

    /// What state it is in, and why.
    fn condition(&self) -> Condition {
        Condition::of(&self.account, self.lying, self.lag.as_deref())
    }

    fn json(&self) -> Value {
        let Condition { state, why, advice } = self.condition();
        let told = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
        let mut fields = json!({ "id": self.member.replica, "up": self.account.is_ok(), "differed": self.differed,
            "suspected_by": self.suspected_by, "state": state.label(), "why": told(&why), "advice": told(advice) });
        match &self.account {
            Ok(account) => {
                for (name, shown) in REPORTED {
                    fields[shown] = account["report"][name].clone();
                }
                fields["divergences"] = account["divergences"].clone();
                fields["quarantined"] = account["quarantined"].clone();
                fields["ready"] = account["ready"].clone();
                fields["not_ready"] = account["not_ready"].clone();
            }
            Err(why) => fields["error"] = json!(why),
        }
        fields
    }

    fn cells(&self, columns: &[(&str, &str)]) -> Vec<String> {
        let suspected_by: Vec<_> = self.suspected_by.iter().map(u8::to_string).collect();
        let mut cells = vec![self.member.replica.to_string(), self.condition().state.words().to_owned()];
        let report = self.account.as_ref().ok().map(|account| &account["report"]);
        cells.extend(columns.iter().map(|(_, name)| report.map_or_else(String::new, |report| show(&report[*name]))));
        cells.extend([self.differed.to_string(), suspected_by.join(" ")]);
        cells
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(digest) if digest.len() == 2 * size_of::<Digest>() => digest.chars().take(DIGEST_SHOWN).collect(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
