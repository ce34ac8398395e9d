//! Golden scripts: whole stories that can be read from top to bottom.
//!
//! A script is a sequence of blocks: commands, one a line, then `----`, then what happened, up to an
//! empty line. Lines beginning with `#` are for the reader. `BEZANT_REWRITE=1 cargo test -p bezant-core every_script`
//! writes what happens now; the difference is for review.
//!
//! | command | does |
//! |---|---|
//! | `cluster replicas=4 clients=1 auth=hybrid checkpoint=128` | begins; each word may be left out |
//! | `cluster protocol=aliph k=8 history=64` | … and these: composition, requests of a Backup, CHK |
//! | `request c0 add 1`, `request c0 read` | a client begins a call |
//! | `partial c0 add 1 for r0 r1` | a client sends a request to the primary whose MACs hold for these only, without a
//! signature
//! |
//! | `round` | delivers what is in flight: one message delay |
//! | `settle` | rounds until nothing is in flight |
//! | `deliver r0 -> r1 PREPARE` | delivers these only; `*` stands for anybody and anything |
//! | `drop r0 -> * PREPARE` | these are lost, in flight or to come |
//! | `heal` | from now on nothing is lost |
//! | `pass 3000ms` | time passes; timers fire |
//! | `restart r2`, `restart r2 lost-log` | a crash, and a start from the disk or without it |
//! | `status` | how each replica sees itself |
//!
//! In the trace, `1 |` is the first round. Not shown are STATUS and BEHIND, which come with every heartbeat, and
//! messages that their receiver has had before, which do not change anything.

extern crate std;

use super::net::{Event, Frame, INSTANCE, Net, c, cluster, kind, r};
use crate::auth::Tag;
use crate::client::Completion;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::ids::Principal;
use crate::notice::Notice;
use crate::registry::Message;
use crate::schedule::{Protocol, Quota};
use crate::services::Counter;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt::Write;
use std::{env, fs};

/// Plays every script of a folder, of which there are at least so many.
///
/// # Panics
/// If one of them goes otherwise than written.
pub(crate) fn play_all(folder: &str, least: usize) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= least);
    for path in paths {
        let written = fs::read_to_string(&path).unwrap();
        let played = play(&written);
        if env::var_os("BEZANT_REWRITE").is_some() {
            fs::write(&path, &played).unwrap();
        }
        let differs = played.lines().zip(written.lines()).find(|(now, before)| now != before);
        assert!(
            env::var_os("BEZANT_REWRITE").is_some() || played == written,
            "{}: {differs:#?}\nBEZANT_REWRITE=1 cargo test -p bezant-core every_script",
            path.display()
        );
    }
}

/// The script with what really happens.
fn play(script: &str) -> String {
    let mut stage = Stage::new("");
    let mut lines = script.lines();
    let mut out = String::new();
    while let Some(line) = lines.next() {
        let _ = writeln!(out, "{line}");
        if line == "----" {
            out.push_str(&core::mem::take(&mut stage.trace));
            let rest = lines.by_ref().skip_while(|line| !line.is_empty());
            // What was expected ends with an empty line, or with the script.
            if { rest }.next().is_some() {
                out.push('\n');
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            stage.command(line);
        }
    }
    out
}

/// Sender, receiver and kind of a message; `*` matches all.
#[derive(Clone, Debug)]
struct Pattern(String, String, String);

impl Pattern {
    fn parse(words: &[&str]) -> Self {
        let [from, "->", to, rest @ ..] = words else { panic!("FROM -> TO [KIND], not {words:?}") };
        Self((*from).into(), (*to).into(), rest.first().unwrap_or(&"*").to_string())
    }

    fn matches(&self, frame: &Frame) -> bool {
        let fits = |pattern: &str, word: &str| pattern == "*" || pattern == word;
        fits(&self.0, &name(frame.from)) && fits(&self.1, &name(frame.to)) && fits(&self.2, &kind(&frame.message))
    }
}

fn name(party: Principal) -> String {
    match party {
        Principal::Replica(id) => format!("r{}", id.0),
        Principal::Client(id) => format!("c{}", id.session),
        Principal::Key(key) => format!("k{:02x}", key.0[0]),
    }
}

fn number<T: core::str::FromStr>(word: &str) -> T {
    let digits = word.trim_start_matches(|c: char| !c.is_ascii_digit()).trim_end_matches("ms");
    digits.parse().unwrap_or_else(|_| panic!("a number, not {word}"))
}

/// A cluster on stage and what the audience has seen.
struct Stage {
    net: Net,
    lost: Rc<RefCell<Vec<Pattern>>>,
    /// What everybody has had so far: sender, receiver, message.
    had: BTreeSet<(String, String, String)>,
    trace: String,
}

impl Stage {
    fn new(options: &str) -> Self {
        let (mut replicas, mut clients, mut auth, mut limits) = (4, 1, ClientAuth::Hybrid, Limits::default());
        let (mut protocol, mut quota) = (Protocol::default(), Quota::default());
        for option in options.split_whitespace() {
            match option.split_once('=') {
                Some(("replicas", value)) => replicas = number(value),
                Some(("clients", value)) => clients = number(value),
                Some(("auth", "mac")) => auth = ClientAuth::Mac,
                Some(("auth", "hybrid")) => auth = ClientAuth::Hybrid,
                Some(("checkpoint", value)) => limits.checkpoint_interval = number(value),
                Some(("history", value)) => limits.history_interval = number(value),
                Some(("protocol", value)) => protocol = value.parse().unwrap(),
                Some(("k", value)) => quota = Quota::Fixed(number(value)),
                _ => panic!("unknown option {option}"),
            }
        }
        let cluster = Cluster { quota, ..cluster(replicas, auth, limits) }.with_protocol(protocol);
        let mut net = Net::of(cluster, clients, |_| Counter::default());
        let lost: Rc<RefCell<Vec<Pattern>>> = Rc::default();
        let rules = lost.clone();
        net.lose(move |frame| rules.borrow().iter().any(|rule| rule.matches(frame)));
        Self { net, lost, had: BTreeSet::new(), trace: String::new() }
    }

    fn command(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["cluster", ..] => *self = Self::new(line.trim_start_matches("cluster")),
            ["request", client, "add", amount] => {
                self.net.submit(number(client), &Counter::add(number(amount)), false);
            }
            ["request", client, "read"] => self.net.submit(number(client), Counter::READ, true),
            ["partial", client, "add", amount, "for", ref replicas @ ..] => {
                self.partial(number(client), number(amount), replicas);
            }
            ["round"] => {
                self.net.round();
                self.show(1);
            }
            ["settle"] => self.settle(),
            ["deliver", ref words @ ..] => self.deliver(&Pattern::parse(words)),
            ["drop", ref words @ ..] => {
                let pattern = Pattern::parse(words);
                self.net.in_flight.retain(|frame| !pattern.matches(frame));
                self.lost.borrow_mut().push(pattern);
            }
            ["heal"] => self.lost.borrow_mut().clear(),
            ["pass", span] => self.pass(number(span)),
            ["restart", replica] => self.restart(replica, false),
            ["restart", replica, "lost-log"] => self.restart(replica, true),
            ["status"] => self.status(),
            _ => panic!("unknown command: {line}"),
        }
    }

    fn partial(&mut self, session: u32, amount: u64, replicas: &[&str]) {
        self.net.now.0 += 10;
        let mut request = self.net.request(INSTANCE, session, self.net.now.0, &Counter::add(amount));
        let spoilt = Tag::from_bytes([0xee; 16]);
        let valid = |id: usize| replicas.contains(&name(r(id as u8)).as_str());
        let tags = request.authentication.tags.iter().enumerate();
        request.authentication.tags = tags.map(|(id, tag)| if valid(id) { tag } else { spoilt }).collect();
        request.authentication.signature = None;
        self.net.forge(c(session), r(0), Message::Request(request));
    }

    fn restart(&mut self, replica: &str, lost_log: bool) {
        self.net.restart(number(replica), lost_log);
        self.had.retain(|(_, to, _)| to != replica);
    }

    fn deliver(&mut self, pattern: &Pattern) {
        let flight = core::mem::take(&mut self.net.in_flight);
        let (now, later): (Vec<_>, Vec<_>) = flight.into_iter().partition(|frame| pattern.matches(frame));
        self.net.in_flight = later;
        self.net.deliver_all(now);
        self.show(1);
    }

    fn settle(&mut self) {
        let mut round = 1;
        while self.net.round() > 0 {
            self.show(round);
            round += 1;
        }
    }

    fn pass(&mut self, milliseconds: u64) {
        let start = self.net.now;
        let end = Instant(start.0 + milliseconds * 1_000);
        let mut shown = start;
        while self.net.fire_before(end) {
            let before = core::mem::take(&mut self.trace);
            self.show(0);
            self.settle();
            let happened = core::mem::replace(&mut self.trace, before);
            if !happened.is_empty() && shown != self.net.now {
                shown = self.net.now;
                let _ = writeln!(self.trace, "+{} ms", (shown.0 - start.0) / 1_000);
            }
            self.trace.push_str(&happened);
        }
        self.net.now = end;
    }

    /// Writes what happened since the last time: deliveries with the same sender and content in one line, then what
    /// they led to.
    fn show(&mut self, round: usize) {
        let mut deliveries: Vec<(String, String, String)> = Vec::new();
        let mut notes = Vec::new();
        for event in self.net.events.drain(..) {
            match event {
                Event::Delivered(frame) => {
                    let (from, to, text) = (name(frame.from), name(frame.to), frame.message.to_string());
                    let heartbeat = text.starts_with("STATUS") || text.starts_with("BEHIND");
                    if heartbeat || !self.had.insert((from.clone(), to.clone(), text.clone())) {
                        continue;
                    }
                    match deliveries.iter_mut().find(|known| known.0 == from && known.2 == text) {
                        Some(known) => known.1 = format!("{} {to}", known.1),
                        None => deliveries.push((from, to, text)),
                    }
                }
                Event::Noticed(id, notice) => notes.push(format!("r{}: {}", id.0, described(&notice))),
                // The script says so itself.
                Event::Forgot(_) => {}
                Event::Completed(completed) => {
                    let client = name(Principal::Client(completed.client));
                    notes.push(format!("{client}: {} at {}", outcome(&completed.result), completed.sequence));
                }
            }
        }
        for (from, to, text) in deliveries {
            let _ = writeln!(self.trace, "{round} | {from} -> {to}: {text}");
        }
        for note in notes {
            let _ = writeln!(self.trace, "{round} | {note}");
        }
    }

    fn status(&mut self) {
        for (id, host) in self.net.hosts.iter().enumerate() {
            let report = host.replica.report();
            let abstaining = if report.abstaining { ", abstains" } else { "" };
            if !report.part.is_empty() {
                let (instance, part, position, history) =
                    (report.instance, &report.part, report.position, report.history);
                let _ = writeln!(
                    self.trace,
                    "r{id}: runs {part} as {instance}, at p{position}, history {history:?}{abstaining}"
                );
                continue;
            }
            let changing = if report.changing_view { " (changing)" } else { "" };
            let _ = writeln!(
                self.trace,
                "r{id}: {}{changing}, executed {}, stable {}, {} pending, history {:?}{abstaining}",
                report.view, report.executed, report.stable, report.pending_requests, report.history
            );
        }
    }
}

fn described(notice: &Notice) -> String {
    match notice {
        Notice::Executed { sequence, digest, requests, .. } => {
            format!("{sequence} {digest:?} is final, {requests} requests")
        }
        Notice::RolledBack { to } => format!("rolls back to {to}"),
        Notice::Stable { sequence, root, .. } => format!("{sequence} is stable, root {root:?}"),
        Notice::Diverged { sequence, .. } => format!("diverged at {sequence}"),
        Notice::Repaired(divergence) => format!("is repaired since {}", divergence.sequence),
        Notice::ViewEntered { view } => format!("enters {view}"),
        Notice::ViewMissed { view } => format!("learns how {view} began"),
        Notice::ViewChangeStarted { view, reason } => format!("leaves for {view}: {reason}"),
        Notice::Transfer { sequence, received, done } => {
            let state = if *done { "has" } else { "fetches" };
            format!("{state} the state at {sequence}, {received} items")
        }
        Notice::Paced { instance, alarm: Some(alarm) } => format!("finds {instance} {alarm}"),
        Notice::Paced { instance, alarm: None } => format!("finds {instance} fast again"),
        Notice::Suspicion { replica, reason } => format!("suspects {replica}: {reason}"),
        Notice::Logged { first, entries, .. } => {
            let places = (*first..).zip(entries).map(|(position, (_, history))| format!("p{position} {history:?}"));
            format!("logs {}", places.collect::<Vec<_>>().join(", "))
        }
        Notice::Anchored { position, root, .. } => format!("p{position} is certain, root {root:?}"),
        Notice::Stopped { instance, reason } => format!("stops in {instance}: {reason}"),
        Notice::Switched { instance, part, reason, .. } => format!("runs {part} as {instance}: {reason}"),
        Notice::Ruled { position, batch, back, .. } => {
            format!("refuses p{position} as ruled at {batch}, back to {back}")
        }
        Notice::Begun { instance, position, history } => format!("begins {instance} with p{position} {history:?}"),
    }
}

fn outcome(completion: &Completion) -> String {
    match completion {
        Completion::Done(result) => match result.as_ref().try_into() {
            Ok(value) => format!("{}", u64::from_le_bytes(value)),
            Err(_) => format!("{} bytes", result.len()),
        },
        Completion::Refused(refusal) => format!("refused, {refusal:?}"),
        Completion::TooLate(reason) => format!("too late, {reason:?}"),
        Completion::Ended(reason) => format!("ended, {reason:?}"),
        Completion::Unknown => "unknown".into(),
    }
}
