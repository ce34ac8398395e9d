//! `bezant kv`: one operation on the key-value service, or a shell.

use crate::failure::{Code, Failure, Result};
use crate::output;
use crate::prompt::{self, Line, Prompt};
use crate::service::{Connection, Service};
use bezant_core::services::kv::{Condition, KvOperation, KvResult, Until};
use bezant_gateway::{Store, StoreError};
use bytes::Bytes;
use clap::{Parser, Subcommand};
use serde_json::{Value, json};

/// Read and write the replicated key-value service
///
/// One operation if there is one on the command line, otherwise one a line from a prompt or from standard input.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bezant kv --cluster net/cluster.toml set color blue\n  \
    bezant kv --cluster net/cluster.toml get color\n  bezant kv --cluster net/cluster.toml < operations.txt\n\n\
    Exit codes: 0 done · 1 no such key, condition not met, or refused · 3 a write whose outcome is unknown")]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Print one JSON object a result
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    operation: Option<Operation>,
}

/// What can be asked of the service.
#[derive(Debug, Subcommand)]
pub(crate) enum Operation {
    /// Print the value of a key
    Get {
        /// The key
        #[arg(allow_negative_numbers = true)]
        key: String,
    },
    /// Set the value of a key
    Set {
        /// The key
        #[arg(allow_negative_numbers = true)]
        key: String,
        /// Its new value
        #[arg(allow_negative_numbers = true)]
        value: String,
        /// Only if the key has no value yet
        #[arg(long, conflicts_with = "if_present")]
        if_absent: bool,
        /// Only if the key has a value already
        #[arg(long)]
        if_present: bool,
        /// Remove the key after so many seconds
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
        ttl: Option<u32>,
    },
    /// Print how many seconds a key has left
    Ttl {
        /// The key
        #[arg(allow_negative_numbers = true)]
        key: String,
    },
    /// Delete keys and print how many there were
    Del {
        /// The keys
        #[arg(required = true, allow_negative_numbers = true)]
        keys: Vec<String>,
    },
    /// Set the value of a key if it still is the expected one
    Cas {
        /// The key
        #[arg(allow_negative_numbers = true)]
        key: String,
        /// The value that it should have
        #[arg(allow_negative_numbers = true)]
        expected: String,
        /// Its new value
        #[arg(allow_negative_numbers = true)]
        value: String,
    },
    /// Add to the number at a key and print the sum
    Incr {
        /// The key
        #[arg(allow_negative_numbers = true)]
        key: String,
        /// How much to add
        #[arg(default_value_t = 1, allow_negative_numbers = true)]
        by: i64,
    },
    /// Print keys and values in order, one pair a line
    Range {
        /// The first key of interest
        #[arg(default_value = "", allow_negative_numbers = true)]
        from: String,
        /// The most pairs to print
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Print the number of keys
    Count,
}

/// One line of the shell.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true, name = "")]
struct ShellLine {
    #[command(subcommand)]
    command: ShellCommand,
}

#[derive(Subcommand)]
enum ShellCommand {
    #[command(flatten)]
    Operation(Operation),
    /// Leave the shell
    #[command(alias = "exit")]
    Quit,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let service = Service::connect_to_ours(&arguments.connection)?;
    service.interrupts.listen()?;
    match &arguments.operation {
        Some(operation) => {
            let answer = operation.carry_out(&service)?;
            if answer.yes || arguments.json || !matches!(operation, Operation::Get { .. }) {
                output::line(answer.show(arguments.json))?;
            }
            if answer.yes { Ok(()) } else { Err(Failure::silent()) }
        }
        None => shell(&service, arguments.json),
    }
}

/// One operation a line until the end of input. What went wrong with any line is the exit code.
fn shell(service: &Service, json: bool) -> Result {
    let mut prompt = Prompt::new("kv> ")?;
    let mut worst = Ok(());
    if prompt.is_terminal() {
        service.interrupts.forget();
    }
    while let Some(line) = prompt.next()? {
        let outcome = match prompt::parse::<ShellLine>(&line) {
            Line::Nothing => Ok(()),
            Line::Help(text) => output::line(text),
            Line::Command(ShellLine { command: ShellCommand::Quit }) => break,
            Line::Command(ShellLine { command: ShellCommand::Operation(operation) }) => {
                operation.carry_out(service).and_then(|answer| output::line(answer.show(json)))
            }
            Line::Wrong(failure) => Err(failure),
        };
        if let Err(failure) = outcome {
            failure.report();
            worst = match worst {
                Err(Failure { code: Code::Unknown, .. }) => worst,
                _ => Err(failure.silenced()),
            };
        }
        match prompt.is_terminal() {
            true => service.interrupts.forget(),
            false if service.interrupts.was_raised() => break,
            false => {}
        }
    }
    worst
}

/// What came of an operation, in both forms.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    text: String,
    json: Value,
    /// Whether what was asked for was done, or was there.
    pub(crate) yes: bool,
}

impl Answer {
    /// For people, or as one line of JSON.
    pub(crate) fn show(&self, json: bool) -> String {
        if json { self.json.to_string() } else { self.text.clone() }
    }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

impl Operation {
    /// The operation of the service.
    fn operation(&self) -> KvOperation {
        match self {
            Self::Get { key } => KvOperation::Get { key: bytes(key) },
            Self::Set { key, value, if_absent, if_present, ttl } => {
                let condition = match (if_absent, if_present) {
                    (true, _) => Condition::Absent,
                    (_, true) => Condition::Present,
                    _ => Condition::Always,
                };
                let (key, value) = (bytes(key), bytes(value));
                match ttl {
                    Some(seconds) => {
                        let until = Some(Until::In(i64::from(*seconds) * 1_000));
                        KvOperation::SetUntil { key, value, condition, until }
                    }
                    None => KvOperation::Set { key, value, condition },
                }
            }
            Self::Ttl { key } => KvOperation::Deadline { key: bytes(key) },
            Self::Del { keys } => KvOperation::Delete { keys: keys.iter().map(|key| bytes(key)).collect() },
            Self::Cas { key, expected, value } => KvOperation::CompareAndSet {
                key: bytes(key),
                expected: Some(bytes(expected)),
                value: Some(bytes(value)),
            },
            Self::Incr { key, by } => KvOperation::Increment { key: bytes(key), by: *by },
            Self::Range { from, limit } => KvOperation::Range {
                from: bytes(from),
                inclusive: true,
                limit: *limit,
                bytes: u32::MAX,
                keys_only: false,
            },
            Self::Count => KvOperation::Count,
        }
    }

    /// Asks the service and waits for the answer.
    pub(crate) fn carry_out(&self, store: &dyn Store) -> Result<Answer> {
        let operation = self.operation();
        match store.call(&operation) {
            Ok(KvResult::NotDone) if matches!(self, Self::Ttl { .. }) => answer(KvResult::Value(None)),
            Ok(result) => answer(result),
            Err(error @ StoreError::Refused(_)) => Err(Failure::failed(format!("{error}."))),
            Err(StoreError::Unknown(why)) if operation.is_read_only() => Err(Failure::failed(format!("{why}."))),
            Err(error @ StoreError::Unknown(_)) => {
                Err(Failure::unknown(format!("{error}. It may still take effect: read before you write again.")))
            }
        }
    }
}

/// A result of the service as the user sees it.
fn answer(result: KvResult) -> Result<Answer> {
    let (text, json, yes) = match result {
        KvResult::Done => ("ok".to_owned(), json!({ "done": true }), true),
        KvResult::NotDone => ("not done: the condition does not hold".to_owned(), json!({ "done": false }), false),
        KvResult::Value(Some(value)) => {
            let value = output::printable(&value);
            (value.clone(), json!({ "value": value }), true)
        }
        KvResult::Value(None) => ("(no value)".to_owned(), json!({ "value": null }), false),
        KvResult::Count(count) => (count.to_string(), json!({ "count": count }), true),
        KvResult::Integer(number) => (number.to_string(), json!({ "value": number }), true),
        KvResult::Deadline { deadline_ms: None, .. } => ("(no deadline)".to_owned(), json!({ "left_ms": null }), true),
        KvResult::Deadline { now_ms, deadline_ms: Some(deadline_ms) } => {
            let left_ms = deadline_ms.saturating_sub(now_ms);
            (format!("{}.{:03}", left_ms / 1_000, left_ms % 1_000), json!({ "left_ms": left_ms }), true)
        }
        KvResult::Range { entries, more } => {
            let entries: Vec<_> =
                entries.iter().map(|(key, value)| (output::printable(key), output::printable(value))).collect();
            let mut lines: Vec<_> = entries.iter().map(|(key, value)| format!("{key}\t{value}")).collect();
            if more {
                lines.push("(there are more)".to_owned());
            }
            (lines.join("\n"), json!({ "entries": entries, "more": more }), true)
        }
        KvResult::NotAnInteger => return Err(Failure::failed("the value is not an integer, so nothing was added.")),
        KvResult::Overflow => return Err(Failure::failed("the sum does not fit into 64 bits, so nothing was added.")),
        KvResult::Full => return Err(Failure::failed("the service has no room for this. Delete keys first.")),
        KvResult::TooLarge => return Err(Failure::failed("the answer is too large. Ask for less.")),
        other => return Err(Failure::failed(format!("the service answered {other:?}."))),
    };
    Ok(Answer { text, json, yes })
}
