//! Named checks behind `/livez` and `/readyz`.

use super::Sample;
use crate::replica::Stall;
use bezant_core::replicas::Replicas;
use std::fmt::Write;
use std::time::Duration;

/// A replica that has not published anything for so long hangs.
const REPORT_AGE_MAX: Duration = Duration::from_secs(10);

/// One check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Stable name.
    pub name: &'static str,
    /// `Err`: why it fails.
    pub outcome: Result<(), String>,
}

fn check(name: &'static str, failure: Option<String>) -> Check {
    Check { name, outcome: failure.map_or(Ok(()), Err) }
}

fn event_loop(sample: &Sample) -> Check {
    let failure = match sample.age {
        Some(age) if age <= REPORT_AGE_MAX => None,
        Some(age) => Some(format!("has not reported for {} s", age.as_secs())),
        None if sample.uptime <= REPORT_AGE_MAX => Some("starting".to_owned()),
        None => Some(format!("has not reported since the start, {} s ago", sample.uptime.as_secs())),
    };
    check("loop", failure)
}

/// What only a restart can repair.
pub fn live_checks(sample: &Sample) -> Vec<Check> {
    let mut event_loop = event_loop(sample);
    if sample.age.is_none() && sample.uptime <= REPORT_AGE_MAX {
        // Reading a long log takes its time: that is no reason to be restarted.
        event_loop.outcome = Ok(());
    }
    let broken = match &sample.published.log {
        Some(Stall::Broken(error)) => Some(format!("broken: {error}")),
        _ => None,
    };
    vec![event_loop, check("log", broken)]
}

/// What keeps the replica from taking full part.
pub fn ready_checks(sample: &Sample) -> Vec<Check> {
    let published = &sample.published;
    let report = &published.report;
    let log = published.log.as_ref().map(|failure| match failure {
        Stall::Full(error) => format!("full, waiting for space: {error}"),
        Stall::Broken(error) => format!("broken: {error}"),
    });
    let view = report.changing_view.then(|| format!("changing to view {}", report.view.0));
    let transfer = report
        .transfer
        .map(|(target, received)| format!("running towards batch {}: {received} pages and nodes received", target.0));
    let state = report.differs.map(|at| format!("differs from that of f+1 others at {}, not repaired yet", at.0));
    let votes = report.abstaining.then(|| "abstaining after a lost log".to_owned());
    vec![
        event_loop(sample),
        check("log", log),
        check("peers", peers(sample)),
        check("view", view),
        check("transfer", transfer),
        check("votes", votes),
        check("state", state),
    ]
}

/// Whether this replica and those that it is connected with can decide.
fn peers(sample: &Sample) -> Option<String> {
    let info = &sample.info;
    let replicas = Replicas::new(info.n, info.f).ok()?;
    let (connected, needed) = (sample.published.connected.len(), replicas.strong() - 1);
    (connected < needed).then(|| format!("connected with {connected} of {}, {needed} are needed", info.n - 1))
}

/// Whether all is well, and one line for each check: `[+]log ok`, `[-]view changing to view 7`.
pub(super) fn render(checks: &[Check]) -> (bool, String) {
    let mut text = String::new();
    for check in checks {
        match &check.outcome {
            Ok(()) => writeln!(text, "[+]{} ok", check.name),
            Err(why) => writeln!(text, "[-]{} {why}", check.name),
        }
        .expect("writing to a string");
    }
    (checks.iter().all(|check| check.outcome.is_ok()), text)
}
