//! Why a chore failed: one line that a person can act on.

use std::fmt;

/// One clear line. Longer output belongs in the log that the line names.
#[derive(Debug)]
pub(crate) struct Failure(String);

/// What every chore returns.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with this reason.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// The same with what was being done in front.
    pub(crate) fn during(self, what: &str) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Fails with the reason unless the condition holds.
pub(crate) fn ensure(condition: bool, reason: impl FnOnce() -> String) -> Result {
    if condition { Ok(()) } else { Err(Failure(reason())) }
}
