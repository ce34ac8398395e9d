//! A broken rule: where, and what.

use crate::failure::{Failure, Result};
use std::fmt;

/// One broken rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    what: String,
}

impl Finding {
    /// What is wrong, where, and (if it is not plain) what to do instead. Lines count from 1.
    pub(crate) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_string(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Prints the findings and fails if there are any.
pub(crate) fn report(mut findings: Vec<Finding>) -> Result {
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} places break a rule of docs/style.md, listed above"))),
    }
}
