//! What goes wrong, as the user reads it: one or two plain sentences that say what to do, and an exit code.

use std::fmt;
use std::process::ExitCode;

/// Why a command did not end with 0. The numbers are documented in `docs/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The answer is no, or it did not work.
    Failed = 1,
    /// The command line, or a file that it names, is wrong.
    Usage = 2,
    /// A write may or may not have taken effect.
    Unknown = 3,
    /// Replicas' states differ, or did.
    Differs = 4,
    /// The cluster can write nothing.
    Stuck = 5,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Text for standard error, and the exit code.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    text: String,
}

/// What a command returns.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    /// It did not work.
    pub(crate) fn failed(text: impl fmt::Display) -> Self {
        Self { code: Code::Failed, text: text.to_string() }
    }

    /// The command line or a file is wrong.
    pub(crate) fn usage(text: impl fmt::Display) -> Self {
        Self { code: Code::Usage, text: text.to_string() }
    }

    /// Nobody knows whether it was done.
    pub(crate) fn unknown(text: impl fmt::Display) -> Self {
        Self { code: Code::Unknown, text: text.to_string() }
    }

    /// The answer is no: what is to be said was printed already.
    pub(crate) const fn silent() -> Self {
        Self { code: Code::Failed, text: String::new() }
    }

    /// The answer was printed, and is not the good one.
    pub(crate) const fn answered(code: Code) -> Self {
        Self { code, text: String::new() }
    }

    /// The same with nothing left to print.
    pub(crate) fn silenced(self) -> Self {
        Self { code: self.code, text: String::new() }
    }

    /// The same with more to say.
    pub(crate) fn with(mut self, text: &str) -> Self {
        self.text += text;
        self
    }

    /// Says so on standard error, if there is something to say.
    pub(crate) fn report(&self) {
        if !self.text.is_empty() {
            eprintln!("bezant: {self}");
        }
    }
}

impl From<bezant_node::Error> for Failure {
    fn from(error: bezant_node::Error) -> Self {
        match error {
            // Says how it is in its own sentences.
            bezant_node::Error::Config(error) => Self::usage(error),
            error if error.is_usage() => Self::usage(format!("{error}.")),
            error => Self::failed(format!("{error}.")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}
