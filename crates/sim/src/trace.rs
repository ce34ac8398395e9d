//! What happened, as one number and, when asked for, as text or as a sequence diagram.

use crate::network::ProcessId;
use crate::rng::mix;
use bezant_core::registry::Message;
use bezant_core::wire::{Reader, Wire};
use bytes::Bytes;
use std::fmt::Write;

/// Messages in a diagram: more cannot be read.
const DIAGRAM_LINES_MAX: usize = 400;

/// One line of a readable trace.
#[derive(Clone, Debug)]
enum Line {
    Message { at: u64, from: String, to: String, text: String },
    Note { at: u64, who: String, text: String },
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
            lines.push(Line::Message { at, from: from.to_owned(), to: to.1.to_owned(), text });
        }
    }

    /// Something else happened at a process; the text is made only if somebody will read it.
    pub fn note(&mut self, at: u64, who: (ProcessId, &str), kind: u64, text: impl FnOnce() -> String) {
        self.hash = mix(mix(self.hash ^ at) ^ ((who.0 as u64) << 32 | kind));
        if let Some(lines) = &mut self.lines {
            lines.push(Line::Note { at, who: who.1.to_owned(), text: text() });
        }
    }

    /// One line per event, with the time in milliseconds.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in self.lines.iter().flatten() {
            let (at, what) = match line {
                Line::Message { at, from, to, text } => (at, format!("{from:>5} → {to:<5} {text}")),
                Line::Note { at, who, text } => (at, format!("{who:>5}   {text}")),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{:>10.3} {what}", *at as f64 / 1000.0);
        }
        out
    }

    /// The last messages and notes as a Mermaid sequence diagram, without timers and STATUS: they are most of a run
    /// and explain least.
    pub fn diagram(&self) -> String {
        let telling = |line: &&Line| match line {
            Line::Message { text, .. } => !text.starts_with("STATUS"),
            Line::Note { text, .. } => !text.ends_with("is due"),
        };
        let lines: Vec<&Line> = self.lines.iter().flatten().filter(telling).collect();
        let shown = &lines[lines.len().saturating_sub(DIAGRAM_LINES_MAX)..];
        let mut out = String::from("sequenceDiagram\n");
        let mut names: Vec<&str> = Vec::new();
        for line in shown {
            let seen: &[&str] = match line {
                Line::Message { from, to, .. } => &[from, to],
                Line::Note { who, .. } => &[who],
            };
            names.extend(seen);
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            let _ = writeln!(out, "    participant {name}");
        }
        for line in shown {
            // A semicolon ends a statement in Mermaid.
            let _ = match line {
                Line::Message { from, to, text, .. } => writeln!(out, "    {from}->>{to}: {}", text.replace(';', ",")),
                Line::Note { who, text, .. } => writeln!(out, "    Note over {who}: {}", text.replace(';', ",")),
            };
        }
        out
    }
}
