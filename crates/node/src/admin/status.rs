//! The replica's report as JSON. Digests are hexadecimal, positions plain numbers, durations say their unit.

use super::{Sample, health};
use crate::keys::to_hex;
use crate::net::{CloseReason, Quarantine};
use crate::replica::Stall;
use bezant_core::ids::{Principal, ReplicaId};
use bezant_core::notice::{Alarm, Pace, Report};
use bezant_core::rejection::Account;
use serde_json::{Value, json};

/// What `/status` answers.
pub(super) fn render(sample: &Sample) -> Value {
    let info = &sample.info;
    let published = &sample.published;
    let checks = health::ready_checks(sample);
    let why: Vec<_> = checks
        .iter()
        .filter_map(|check| check.outcome.as_ref().err().map(|why| format!("{} {why}", check.name)))
        .collect();
    json!({
        "version": info.version,
        "cluster": info.cluster_name,
        "cluster_digest": to_hex(&info.cluster.0),
        "replica": info.replica.0,
        "service": info.service.to_string(),
        "n": info.n,
        "f": info.f,
        "checkpoint_interval": info.checkpoint_interval,
        "uptime_ms": sample.uptime.as_millis() as u64,
        "age_ms": sample.age.map(|age| age.as_millis() as u64),
        "ready": why.is_empty(),
        "not_ready": why,
        "connected": published.connected.iter().map(|replica| replica.0).collect::<Vec<_>>(),
        "refused": published.refused.iter().map(refused).collect::<Vec<_>>(),
        "quarantined": published.quarantined.iter().map(quarantined).collect::<Vec<_>>(),
        "divergences": sample.divergences,
        "log_full": matches!(published.log, Some(Stall::Full(_))),
        "log_failure": published.log.as_ref().map(ToString::to_string),
        "report": report(&published.report),
        "runtime": runtime(sample),
    })
}

/// Somebody who is read last and little. A liar could say so of anybody.
fn quarantined(quarantine: &Quarantine) -> Value {
    let Quarantine { party, since, cause } = quarantine;
    let (replica, client, key) = match party {
        Some(Principal::Replica(replica)) => (Some(replica.0), None, None),
        Some(Principal::Client(client)) => (None, Some(client.identity.0), None),
        Some(Principal::Key(key)) => (None, None, Some(to_hex(&key.0))),
        None => (None, None, None),
    };
    let for_ms = since.elapsed().as_millis() as u64;
    json!({ "replica": replica, "client": client, "key": key, "for_ms": for_ms, "cause": cause.label(),
        "text": cause.to_string() })
}

/// A link that one side does not want.
fn refused((replica, reason): &(ReplicaId, CloseReason)) -> Value {
    json!({ "replica": replica.0, "reason": reason.label(), "text": reason.to_string() })
}

fn report(report: &Report) -> Value {
    let rejections = report.rejections.iter().flat_map(|(sender, counts)| {
        let sender = sender_name(*sender);
        counts.iter().map(move |(reason, count)| json!({"sender": sender, "reason": reason.label(), "count": count}))
    });
    let suspicions = report
        .suspicions
        .iter()
        .map(|(replica, reason, count)| json!({"replica": replica.0, "reason": reason.label(), "count": count}));
    json!({
        "protocol": report.protocol,
        "instance": report.instance.0,
        "part": report.part,
        "position": report.position,
        "members": report.members,
        "switches": report.instance.0.saturating_sub(1),
        "switch_reason": report.switch_reason.words(),
        "switch_took_us": report.switch_took.0,
        "view": report.view.0,
        "primary": report.primary.0,
        "changing_view": report.changing_view,
        "abstaining": report.abstaining,
        "executed": report.executed.0,
        "stable": report.stable.0,
        "stable_root": to_hex(&report.stable_root.0),
        "history": to_hex(&report.history.0),
        "requests_executed": report.requests_executed,
        "pending_requests": report.pending_requests,
        "round": report.round,
        "slots": report.slots,
        "view_changes": report.view_changes,
        "transfer": report.transfer.map(|(target, received)| json!({"target": target.0, "received": received})),
        "state_differs_at": report.differs.map(|sequence| sequence.0),
        "requests_disputed": report.disputed.0,
        "last_disputed": report.disputed.1,
        "closed": report.closed,
        "ring_alarm": report.ring_alarm.as_ref().map(ring_alarm),
        "rejections": rejections.collect::<Vec<_>>(),
        "suspicions": suspicions.collect::<Vec<_>>(),
    })
}

/// A link is named if its hop is longer than the others.
fn ring_alarm(alarm: &Alarm) -> Value {
    json!({
        "beyond_doubt": alarm.pace == Pace::BeyondDoubt,
        "from": alarm.suspect.map(|suspect| suspect.from.0),
        "to": alarm.suspect.map(|suspect| suspect.to.0),
        "hop_us": alarm.suspect.map(|suspect| suspect.took.0),
    })
}

fn sender_name(sender: Account) -> String {
    match sender {
        Account::Replica(id) => format!("replica {}", id.0),
        Account::Clients(identity) => format!("client {}", identity.0),
        Account::Others => "dynamic clients".to_owned(),
    }
}

fn runtime(sample: &Sample) -> Value {
    let runtime = &sample.published.runtime;
    json!({
        "peer_bytes_in": runtime.peer_bytes_in,
        "peer_bytes_out": runtime.peer_bytes_out,
        "client_bytes_in": runtime.client_bytes_in,
        "client_bytes_out": runtime.client_bytes_out,
        "peer_frames_in": runtime.peer_frames_in,
        "peer_frames_out": runtime.peer_frames_out,
        "client_frames_in": runtime.client_frames_in,
        "client_frames_out": runtime.client_frames_out,
        "frames_dropped": runtime.frames_dropped,
        "reads": runtime.reads,
        "writes": runtime.writes,
        "connections_peers": runtime.connections_peers,
        "connections_clients": runtime.connections_clients,
        "connections_refused": runtime.connections_refused,
        "connections_turned_away": runtime.connections_turned_away,
        "quarantines_peers": runtime.quarantines_peers,
        "quarantines_clients": runtime.quarantines_clients,
        "client_level": runtime.client_level,
        "fsyncs": runtime.fsyncs,
        "log_bytes": runtime.log_bytes,
        "macs_made": runtime.macs_made,
        "macs_checked": runtime.macs_checked,
        "signatures_made": runtime.signatures_made,
        "signatures_checked": runtime.signatures_checked,
        "cpu_us": runtime.cpu_us,
    })
}
