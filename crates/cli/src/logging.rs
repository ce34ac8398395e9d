//! Logs: text on a terminal, JSON otherwise. An idle cluster writes nothing at the default level.

use crate::output;
use bezant_node::config::LogFormat;
use clap::ValueEnum;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text if standard error is a terminal, JSON otherwise
    #[default]
    Auto,
    /// Text for people
    Text,
    /// One JSON object a line
    Json,
}

impl From<LogFormat> for Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Auto => Self::Auto,
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

/// Starts logging to standard error, from `level` on. `BEZANT_LOG` overrides it, with a level such as `debug` or a
/// list such as `warn,bezant_node=debug`.
pub(crate) fn start(format: Format, level: &str) {
    let filter = EnvFilter::try_from_env("BEZANT_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let is_terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if format == Format::Json || (format == Format::Auto && !is_terminal) {
        builder.json().flatten_event(true).init();
    } else {
        builder.with_ansi(output::is_colourful(is_terminal)).init();
    }
}
