//! `INFO`: what the gateway says about itself, in the form that Redis clients parse.

use super::reply::Reply;
use super::shared::Shared;
use bezant_core::services::kv::{KvOperation, KvResult};
use bytes::Bytes;
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// The version of Redis whose behaviour the supported commands follow. Clients choose features by it.
pub const REDIS_VERSION: &str = "7.2.0";

/// `INFO [section …]`.
pub(crate) fn info(shared: &Shared, sections: &[Bytes]) -> Reply {
    let wanted = |name: &str| {
        let asked = |section: &Bytes| {
            let section = section.to_ascii_lowercase();
            section == name.as_bytes() || matches!(section.as_slice(), b"all" | b"default" | b"everything")
        };
        sections.is_empty() || sections.iter().any(asked)
    };
    let statistics = &shared.statistics;
    let mut text = String::new();
    let mut section = |title: &str, fields: &[(&str, String)]| {
        if !wanted(&title.to_ascii_lowercase()) {
            return;
        }
        let gap = if text.is_empty() { "" } else { "\r\n" };
        let _ = write!(text, "{gap}# {title}\r\n");
        for (name, value) in fields {
            let _ = write!(text, "{name}:{value}\r\n");
        }
    };
    let server = [
        ("redis_version", REDIS_VERSION.into()),
        ("redis_mode", "standalone".into()),
        ("bezant_version", env!("CARGO_PKG_VERSION").into()),
        ("process_id", std::process::id().to_string()),
        ("uptime_in_seconds", statistics.started.elapsed().as_secs().to_string()),
    ];
    section("Server", &server);
    section("Clients", &[("connected_clients", statistics.connected.load(Ordering::Relaxed).to_string())]);
    let counters = [
        ("total_connections_received", statistics.connections.load(Ordering::Relaxed).to_string()),
        ("total_commands_processed", statistics.commands.load(Ordering::Relaxed).to_string()),
        ("rejected_connections", statistics.refused.load(Ordering::Relaxed).to_string()),
        ("closed_http_connections", statistics.http.load(Ordering::Relaxed).to_string()),
        ("acl_access_denied_auth", statistics.wrong_passwords.load(Ordering::Relaxed).to_string()),
    ];
    section("Stats", &counters);
    section("Replication", &[("role", "master".into()), ("connected_slaves", "0".into())]);
    if wanted("keyspace") {
        // The only section that asks the service: left empty, as for an empty database, when that fails.
        let operations = vec![KvOperation::Count, KvOperation::CountDeadlines];
        let counts = match shared.store.call(&KvOperation::Transaction { conditions: Vec::new(), operations }) {
            Ok(KvResult::Transaction(counts)) => counts,
            _ => Vec::new(),
        };
        let keys = match counts.as_slice() {
            [KvResult::Count(keys @ 1..), KvResult::Count(expires)] => {
                vec![("db0", format!("keys={keys},expires={expires},avg_ttl=0"))]
            }
            _ => Vec::new(),
        };
        section("Keyspace", &keys);
    }
    Reply::Text(text)
}
