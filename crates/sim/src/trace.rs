//! What happened, as one number and, when asked for, as text or as a sequence diagram.

use crate::network::ProcessId;
use crate::rng::mix;
use bezant_core::machine::Step;
use bezant_core::registry::Message;
use bezant_core::wire::{Reader, Wire};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Messages in a diagram: more cannot be read.
const DIAGRAM_LINES_MAX: usize = 400;

/// One line of a readable trace.
#[derive(Clone, Debug)]
struct Line {
    at: u64,
    /// Who sent it, if it is a message.
    from: Option<String>,
    /// Who got it, or what it is about.
    who: (ProcessId, String),
    text: String,
    /// The numbered steps that followed at once.
    steps: Vec<Step>,
}

impl Line {
    fn new(at: u64, from: Option<&str>, who: (ProcessId, &str), text: String) -> Self {
        let from = from.map(str::to_owned);
        Self { at, from, who: (who.0, who.1.to_owned()), text, steps: Vec::new() }
    }

    /// What happened, and in brackets the steps.
    fn words(&self) -> String {
        if self.steps.is_empty() { self.text.clone() } else { format!("{} [{}]", self.text, self.steps.join(", ")) }
    }
}

/// The trace of a run.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    lines: Option<Vec<Line>>,
}

/// A fast hash of bytes; nobody attacks it.
fn fold(hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(hash ^ bytes.len() as u64, |hash, word| mix(hash ^ u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| mix(hash ^ u64::from(*byte)))
}

impl Trace {
    /// A trace that keeps its lines only if asked to.
    pub fn new(readable: bool) -> Self {
        Self { hash: 0, lines: readable.then(Vec::new) }
    }

    /// The run as a number: equal runs have equal ones.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// A frame arrived.
    pub fn arrived(&mut self, at: u64, from: &str, to: (ProcessId, &str), frame: &Bytes) {
        self.hash = fold(mix(self.hash ^ at) ^ to.0 as u64, frame);
        if let Some(lines) = &mut self.lines {
            let text = match Message::decode(&mut Reader::new(frame.clone())) {
                Ok(message) => message.to_string(),
                Err(error) => format!("{} bytes: {error}", frame.len()),
            };
            lines.push(Line::new(at, Some(from), to, text));
        }
    }

    /// Something else happened at a process; the text is made only if somebody will read it.
    pub fn note(&mut self, at: u64, who: (ProcessId, &str), kind: u64, text: impl FnOnce() -> String) {
        self.hash = mix(mix(self.hash ^ at) ^ ((who.0 as u64) << 32 | kind));
        if let Some(lines) = &mut self.lines {
            lines.push(Line::new(at, None, who, text()));
        }
    }

    /// Whether somebody will read it.
    pub const fn is_readable(&self) -> bool {
        self.lines.is_some()
    }

    /// A process has taken steps. They are shown with what made it do so, and are no part of the hash: without
    /// somebody who reads it nobody knows them.
    pub fn stepped(&mut self, at: u64, who: (ProcessId, &str), steps: Vec<Step>) {
        let Some(lines) = self.lines.as_mut().filter(|_| !steps.is_empty()) else { return };
        let begins = lines.iter().rposition(|line| line.at != at || line.who.0 != who.0).map_or(0, |before| before + 1);
        if begins == lines.len() {
            lines.push(Line::new(at, None, who, "goes on".into()));
        }
        // What it has written and noted since is no reason for what it does at the end of the pass.
        let cause = lines[begins..].iter().rposition(|line| line.from.is_some()).unwrap_or(0);
        let shown = &mut lines[begins + cause].steps;
        shown.extend(steps);
        // A step for each request of a batch is said once.
        shown.dedup();
    }

    /// Every step that somebody has taken.
    pub fn steps(&self) -> BTreeSet<Step> {
        self.lines.iter().flatten().flat_map(|line| &line.steps).copied().collect()
    }

    /// One line per event, with the time in milliseconds.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in self.lines.iter().flatten() {
            let (who, words) = (&line.who.1, line.words());
            let what = match &line.from {
                Some(from) => format!("{from:>5} → {who:<5} {words}"),
                None => format!("{who:>5}   {words}"),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{:>10.3} {what}", line.at as f64 / 1000.0);
        }
        out
    }

    /// The last messages and notes as a Mermaid sequence diagram, without timers and STATUS: they are most of a run
    /// and explain least.
    pub fn diagram(&self) -> String {
        let telling = |line: &&Line| match line.from {
            Some(_) => !line.text.starts_with("STATUS"),
            None => !line.text.ends_with("is due"),
        };
        let lines: Vec<&Line> = self.lines.iter().flatten().filter(telling).collect();
        let shown = &lines[lines.len().saturating_sub(DIAGRAM_LINES_MAX)..];
        let mut out = String::from("sequenceDiagram\n");
        let names: BTreeSet<&String> = shown.iter().flat_map(|line| line.from.iter().chain([&line.who.1])).collect();
        for name in names {
            let _ = writeln!(out, "    participant {name}");
        }
        for line in shown {
            // A semicolon ends a statement in Mermaid.
            let (who, words) = (&line.who.1, line.words().replace(';', ","));
            let _ = match &line.from {
                Some(from) => writeln!(out, "    {from}->>{who}: {words}"),
                None => writeln!(out, "    Note over {who}: {words}"),
            };
        }
        out
    }
}
