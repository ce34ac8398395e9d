//! The services that this program serves, by the names that `node.toml` has for them.

use crate::failure::Failure;
use crate::member::Member;
use bezant_node::Error;
use bezant_node::host::Home;
use bezant_node::net::ServiceBuild;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// What is replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// SQL tables, and keys and values.
    Sql,
    /// Keys and values only.
    Kv,
    /// Requests and replies of chosen sizes, no state.
    Null,
    /// The example of the documentation.
    Counter,
}

/// How long what follows may take. Who has not told by then does not count: admin ports may be out of reach.
const TELLING_MAX: Duration = Duration::from_secs(1);

/// The service of somebody's own that more than f replicas say they serve: what our operations mean to that, nobody
/// knows. `weak` is f + 1.
pub(crate) fn anothers(members: &[Member], weak: usize) -> Option<String> {
    let (tell, told) = mpsc::channel();
    for member in members.iter().copied() {
        let tell = tell.clone();
        // It ends by itself soon after.
        thread::spawn(move || {
            let service = member.account().ok().and_then(|status| Some(status["service"].as_str()?.to_owned()));
            // Nobody may wait for it any more.
            _ = service.map(|service| tell.send(service));
        });
    }
    drop(tell);
    let deadline = Instant::now() + TELLING_MAX;
    let mut counted = BTreeMap::new();
    while let Ok(service) = told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        let count = counted.entry(service.clone()).or_insert(0);
        *count += 1;
        if *count >= weak {
            return Some(service).filter(|service| !is_ours(service));
        }
    }
    None
}

/// Refuses a cluster of which more than f replicas say that they serve a service of somebody's own, which would take
/// our operations for others. `weak` is f + 1.
pub(crate) fn expect_ours(members: &[Member], weak: usize) -> Result<(), Failure> {
    let Some(service) = anothers(members, weak) else { return Ok(()) };
    Err(Failure::usage(format!(
        "the replicas serve {service:?}, a service of somebody's own, which would take what is sent from here for \
         something else: use its own program."
    )))
}

/// Whether replicas of this program say so of their service, be it another version of it.
fn is_ours(build: &str) -> bool {
    let name = build.split(' ').next().unwrap_or_default();
    // What the SQL service tells is the build of SQLite.
    name == "SQLite" || Served::ALL.iter().any(|served| served.name() == name)
}

impl Served {
    const ALL: [Self; 4] = [Self::Sql, Self::Kv, Self::Null, Self::Counter];

    /// The service that a replica is for.
    pub(crate) fn of(home: &Home) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|served| served.name() == home.node.service);
        let names: Vec<_> = Self::ALL.iter().map(|served| format!("{:?}", served.name())).collect();
        found.ok_or_else(|| home.other_service(&names.join(", ")))
    }

    /// As `node.toml` has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::Kv => "kv",
            Self::Null => "null",
            Self::Counter => "counter",
        }
    }

    /// What all replicas must run alike.
    pub(crate) fn build(self, home: &Home) -> Result<ServiceBuild, Error> {
        match self {
            Self::Sql => Ok(ServiceBuild::new(&bezant_sql::build())),
            other => home.serving(other.name(), 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_services_are_known_by_their_builds() {
        assert!(is_ours(&ServiceBuild::new(&bezant_sql::build()).to_string()));
        assert!(is_ours("kv 1") && is_ours("null 2"));
        assert!(!is_ours("ledger 1") && !is_ours("kvs 1") && !is_ours(""));
    }
}
