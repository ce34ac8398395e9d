//! The metrics: one table of names, types and meanings, and where each value comes from.
//!
//! Names are `bezant_<area>_<what>_<unit>`; counters end in `_total`, 0-or-1 values in `_flag`.

use super::Sample;
use crate::keys::to_hex;
use crate::replica::Stall;
use bezant_core::notice::Suspect;
use bezant_core::rejection::{Account, Rejection};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// What a value does over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Grows until the process ends.
    Counter,
    /// Goes up and down.
    Gauge,
}

impl MetricKind {
    /// As Prometheus writes it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// One row of the table.
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it does over time.
    pub kind: MetricKind,
    /// What it means.
    pub help: &'static str,
    read: fn(&Sample, &mut Series<'_>),
}

impl std::fmt::Debug for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Takes the values of one metric.
struct Series<'a> {
    name: &'static str,
    out: &'a mut String,
}

impl Series<'_> {
    fn put(&mut self, value: impl Display) {
        writeln!(self.out, "{} {value}", self.name).expect("writing to a string");
    }

    fn put_for(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> = labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text))).collect();
        writeln!(self.out, "{}{{{}}} {value}", self.name, labels.join(",")).expect("writing to a string");
    }

    /// One value for replicas, one for clients.
    fn put_both(&mut self, replicas: u64, clients: u64) {
        self.put_for(&[("peer", "replica")], replicas);
        self.put_for(&[("peer", "client")], clients);
    }
}

/// A label's value as Prometheus reads it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

const fn counter(name: &'static str, help: &'static str, read: fn(&Sample, &mut Series<'_>)) -> Metric {
    Metric { name, kind: MetricKind::Counter, help, read }
}

const fn gauge(name: &'static str, help: &'static str, read: fn(&Sample, &mut Series<'_>)) -> Metric {
    Metric { name, kind: MetricKind::Gauge, help, read }
}

/// Every metric, in the order in which they are shown.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    gauge("bezant_process_info", "Always 1; the labels say who this is.", info),
    gauge("bezant_process_uptime_seconds", "How long the process runs.",
        |s, out| out.put(s.uptime.as_secs_f64())),
    gauge("bezant_process_report_age_seconds", "How long ago the replica's loop published its figures.",
        |s, out| out.put(s.age.unwrap_or(s.uptime).as_secs_f64())),
    counter("bezant_process_cpu_seconds_total", "Processor time of the process.",
        |s, out| out.put(s.published.runtime.cpu_us as f64 / 1e6)),
    gauge("bezant_replica_instance_number", "The running instance of the composition.",
        |s, out| out.put(s.published.report.instance.0)),
    gauge("bezant_replica_instance_info",
        "Always 1; the labels say what the instance runs, and why the one before was left.", instance),
    counter("bezant_replica_switches_total", "Instances of the composition that ended before this one.",
        |s, out| out.put(s.published.report.instance.0.saturating_sub(1))),
    gauge("bezant_replica_switch_seconds", "How long the last switch from one instance to the next took.",
        |s, out| out.put(s.published.report.switch_took.0 as f64 / 1e6)),
    gauge("bezant_replica_position_requests", "Requests executed over all instances; the last may still be undone.",
        |s, out| out.put(s.published.report.position)),
    gauge("bezant_replica_view_number", "The view that the replica is in, or wants.",
        |s, out| out.put(s.published.report.view.0)),
    gauge("bezant_replica_primary_number", "The replica that is primary of that view.",
        |s, out| out.put(s.published.report.primary.0)),
    gauge("bezant_replica_changing_view_flag", "1 while the replica waits for a new view.",
        |s, out| out.put(u8::from(s.published.report.changing_view))),
    gauge("bezant_replica_abstaining_flag", "1 while the replica does not vote, because it lost its log.",
        |s, out| out.put(u8::from(s.published.report.abstaining))),
    gauge("bezant_replica_executed_batches", "The last batch that was executed for good.",
        |s, out| out.put(s.published.report.executed.0)),
    gauge("bezant_replica_stable_batches", "The last batch at which 2f+1 replicas signed the same state.",
        |s, out| out.put(s.published.report.stable.0)),
    gauge("bezant_replica_window_batches", "Batches between the stable checkpoint and the highest known.",
        |s, out| out.put(s.published.report.slots)),
    counter("bezant_replica_executed_requests_total", "Requests executed for good.",
        |s, out| out.put(s.published.report.requests_executed)),
    gauge("bezant_replica_pending_requests", "Requests waiting to be ordered.",
        |s, out| out.put(s.published.report.pending_requests)),
    counter("bezant_replica_view_changes_total", "View changes started.",
        |s, out| out.put(s.published.report.view_changes)),
    gauge("bezant_replica_transfer_flag", "1 while the replica fetches state from others.",
        |s, out| out.put(u8::from(s.published.report.transfer.is_some()))),
    gauge("bezant_replica_transfer_items", "Pages and nodes that the running state transfer has received.",
        |s, out| out.put(s.published.report.transfer.map_or(0, |(_, received)| received))),
    counter("bezant_replica_rejections_total", "Messages not accepted, by sender (clients together) and reason.",
        rejections),
    counter("bezant_replica_suspicions_total", "Evidence or strong hints that a replica is faulty, by reason.",
        suspicions),
    gauge("bezant_replica_slow_ring_flag",
        "1 while the ring is slow; the labels name the link that stands out, if one does.", slow_ring),
    gauge("bezant_replica_state_differs_flag",
        "1 while f+1 others agree on another state than the replica's, until it is repaired.",
        |s, out| out.put(u8::from(s.published.report.differs.is_some()))),
    counter("bezant_replica_disputed_requests_total",
        "Requests of the history that were refused because the replicas executed them otherwise, each in its own way.",
        |s, out| out.put(s.published.report.disputed.0)),
    gauge("bezant_replica_divergences_recorded", "Divergences on record: times when the replica's state was wrong.",
        |s, out| out.put(s.divergences)),
    counter("bezant_net_received_bytes_total", "Bytes received, by kind of peer.",
        |s, out| out.put_both(s.published.runtime.peer_bytes_in, s.published.runtime.client_bytes_in)),
    counter("bezant_net_sent_bytes_total", "Bytes sent, by kind of peer.",
        |s, out| out.put_both(s.published.runtime.peer_bytes_out, s.published.runtime.client_bytes_out)),
    counter("bezant_net_received_frames_total", "Messages received, by kind of peer.",
        |s, out| out.put_both(s.published.runtime.peer_frames_in, s.published.runtime.client_frames_in)),
    counter("bezant_net_sent_frames_total", "Messages sent, by kind of peer.",
        |s, out| out.put_both(s.published.runtime.peer_frames_out, s.published.runtime.client_frames_out)),
    counter("bezant_net_dropped_frames_total", "Messages not sent: a full queue, or nobody connected.",
        |s, out| out.put(s.published.runtime.frames_dropped)),
    gauge("bezant_net_open_connections", "Connections, by kind of peer.",
        |s, out| out.put_both(s.published.runtime.connections_peers, s.published.runtime.connections_clients)),
    counter("bezant_net_refused_connections_total", "Connections refused.",
        |s, out| out.put(s.published.runtime.connections_refused)),
    counter("bezant_net_turned_away_connections_total",
        "Connections for which no handshake was begun: closed already, or from where too many handshakes had failed.",
        |s, out| out.put(s.published.runtime.connections_turned_away)),
    gauge("bezant_net_quarantined_peers", "Peers that are read last and little, by kind of peer.",
        |s, out| out.put_both(s.published.runtime.quarantined_peers, s.published.runtime.quarantined_clients)),
    counter("bezant_net_quarantines_total", "Quarantines that have begun, by kind of peer.",
        |s, out| out.put_both(s.published.runtime.quarantines_peers, s.published.runtime.quarantines_clients)),
    gauge("bezant_net_client_level_bytes",
        "Bytes a second that are read of a client at most while there is no processor time to spare; 0: as they come.",
        |s, out| out.put(s.published.runtime.client_level)),
    counter("bezant_admin_foreign_requests_total",
        "Requests to the admin port that were refused because they named another host.",
        |s, out| out.put(s.foreign_hosts)),
    counter("bezant_net_read_calls_total", "Calls of read on sockets.", |s, out| out.put(s.published.runtime.reads)),
    counter("bezant_net_write_calls_total", "Calls of write on sockets.", |s, out| out.put(s.published.runtime.writes)),
    counter("bezant_log_sync_calls_total", "Calls of fdatasync on the log.",
        |s, out| out.put(s.published.runtime.fsyncs)),
    counter("bezant_log_written_bytes_total", "Bytes of records written to the log.",
        |s, out| out.put(s.published.runtime.log_bytes)),
    gauge("bezant_log_full_flag", "1 while the log waits for space on its disk.",
        |s, out| out.put(u8::from(matches!(s.published.log, Some(Stall::Full(_)))))),
    gauge("bezant_log_broken_flag", "1 once a write or an fsync of the log has failed: restart the replica.",
        |s, out| out.put(u8::from(matches!(s.published.log, Some(Stall::Broken(_)))))),
    counter("bezant_auth_made_macs_total", "MACs computed to send.", |s, out| out.put(s.published.runtime.macs_made)),
    counter("bezant_auth_checked_macs_total", "MACs computed to check.",
        |s, out| out.put(s.published.runtime.macs_checked)),
    counter("bezant_auth_made_signatures_total", "Signatures made.",
        |s, out| out.put(s.published.runtime.signatures_made)),
    counter("bezant_auth_checked_signatures_total", "Signatures checked.",
        |s, out| out.put(s.published.runtime.signatures_checked)),
];

fn info(sample: &Sample, out: &mut Series<'_>) {
    let info = &sample.info;
    let labels = [
        ("version", info.version),
        ("cluster", &info.cluster_name),
        ("cluster_digest", &to_hex(&info.cluster.0)),
        ("replica", &info.replica.0.to_string()),
        ("protocol", &sample.published.report.protocol),
    ];
    out.put_for(&labels, 1);
}

fn instance(sample: &Sample, out: &mut Series<'_>) {
    let report = &sample.published.report;
    out.put_for(&[("part", &report.part), ("reason", report.switch_reason.words())], 1);
}

fn slow_ring(sample: &Sample, out: &mut Series<'_>) {
    let alarm = sample.published.report.ring_alarm;
    let Some(Suspect { from, to, .. }) = alarm.and_then(|alarm| alarm.suspect) else {
        return out.put(u8::from(alarm.is_some()));
    };
    out.put_for(&[("from", &from.0.to_string()), ("to", &to.0.to_string())], 1);
}

fn rejections(sample: &Sample, out: &mut Series<'_>) {
    let mut counts: BTreeMap<(String, Rejection), u64> = BTreeMap::new();
    for (sender, reasons) in &sample.published.report.rejections {
        for (reason, count) in reasons.iter() {
            *counts.entry((sender_label(*sender), reason)).or_default() += count;
        }
    }
    for ((sender, reason), count) in counts {
        out.put_for(&[("sender", &sender), ("reason", reason.label())], count);
    }
}

/// Replicas one by one; clients together, because there may be any number of them.
fn sender_label(sender: Account) -> String {
    match sender {
        Account::Replica(id) => format!("replica-{}", id.0),
        Account::Clients(_) | Account::Others => "client".to_owned(),
    }
}

fn suspicions(sample: &Sample, out: &mut Series<'_>) {
    for (replica, reason, count) in &sample.published.report.suspicions {
        out.put_for(&[("replica", &replica.0.to_string()), ("reason", reason.label())], count);
    }
}

/// All metrics in the Prometheus text format, version 0.0.4.
pub(super) fn render(sample: &Sample) -> String {
    let mut out = String::with_capacity(8 * 1024);
    for metric in METRICS {
        let Metric { name, kind, help, read } = metric;
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} {}", kind.label()).expect("writing to a string");
        read(sample, &mut Series { name, out: &mut out });
    }
    out
}
