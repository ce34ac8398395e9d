//! Replicas that restart from their logs are the ones that crashed, also when the log has begun again with a snapshot.

use super::conformance::{protocols, trouble};
use super::run::Run;
use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::ids::InstanceId;
use crate::protocols::pbft::PbftRecord;
use crate::registry::{InstanceRecord, LogRecord, Record};
use crate::schedule::{Order, Part, Protocol, Quota, Schedule};
use crate::services::Counter;
use crate::switching::HistoryRecord;
use crate::testing::net::{Net, cluster, done};
use alloc::collections::BTreeSet;

/// Orders hold, everything is served, and who has reported reports the same for ever: across restarts, from logs that
/// begin again at every opportunity.
#[test]
fn who_restarts_from_a_short_log_has_forgotten_nothing() {
    let mut begun = BTreeSet::new();
    for protocol in protocols() {
        for seed in 0..4 {
            let mut run = Run::with_short_logs(protocol, 4, 3, 2_000 + seed, 600);
            trouble(&mut run, 60, |run| {
                if run.random.once_in(8) {
                    let id = run.random.below(4);
                    let first = run.net.hosts[id].log.first();
                    if let Some(LogRecord { instance, record: InstanceRecord::History(HistoryRecord::Begun(at)) }) =
                        first
                    {
                        begun.insert((*instance > InstanceId(1), at.proof.is_some()));
                    }
                    run.net.restart(id, false);
                }
            });
            run.finish();
            run.check();
        }
    }
    assert_eq!(begun, BTreeSet::from([(false, false), (true, true)]), "the first instance, and later ones");
}

/// A crash in the middle of a step, before any record: what was to follow it is neither written nor said. Then another
/// one, soon: before the first record that the restart itself writes, or one of the next.
#[test]
fn a_crash_before_any_record_and_again_after_the_restart_forgets_nothing() {
    let mut lost = BTreeSet::new();
    for protocol in protocols() {
        for (seed, log_bytes) in [(0, 600), (1, 600), (2, 600), (3, 1 << 20)] {
            let mut run = Run::with_short_logs(protocol, 4, 3, 7_000 + seed, log_bytes);
            trouble(&mut run, 60, |run| {
                if run.random.once_in(4) {
                    let (id, records) = (run.random.below(4), run.random.below(4));
                    run.net.fuses.entry(id).or_insert(records);
                }
                if run.random.once_in(16) {
                    let (id, records) = (run.random.below(4), run.random.below(2));
                    run.net.fuses.insert(id, records);
                    run.net.restart(id, false);
                }
            });
            run.net.fuses.clear();
            run.finish();
            run.check();
            lost.extend(run.net.lost.iter().map(|record| match record {
                Record::Snapshot(_) => "snapshot",
                Record::Log(LogRecord { record: InstanceRecord::History(HistoryRecord::Opened(_)), .. }) => "opened",
                Record::Log(LogRecord { record: InstanceRecord::History(HistoryRecord::Stopped(_)), .. }) => "stopped",
                Record::Log(_) => "other",
            }));
        }
    }
    assert_eq!(lost, BTreeSet::from(["opened", "other", "snapshot", "stopped"]), "nothing was left out");
}

/// A Backup that is the first instance of all has no proof to begin its log with: the snapshot says which it is.
#[test]
fn a_first_backup_is_recovered_from_its_own_snapshot_by_itself() {
    let limits = Limits { checkpoint_interval: 4, log_bytes_per_snapshot: 600, ..Limits::default() };
    let protocol = Protocol::Schedule(Schedule::new(&[Part::Backup(Order::Pbft), Part::Quorum]).unwrap());
    let cluster = Cluster { quota: Quota::Fixed(20), protocol, ..cluster(4, ClientAuth::Hybrid, limits) };
    let mut net = Net::of(cluster, 1, |_| Counter::default());
    for value in 1..=10 {
        assert_eq!(net.add(1), done(value));
    }
    net.pass(1_000_000);
    let before = net.hosts[0].replica.report();
    let is_first = |record: &LogRecord| match &record.record {
        InstanceRecord::Pbft(PbftRecord::Committed(at)) => at.sequence.0 == 1,
        _ => false,
    };
    assert!(!net.hosts[0].log.iter().any(is_first), "the log has begun again");
    net.lose(|_| true);
    net.restart(0, false);
    let after = net.hosts[0].replica.report();
    assert_eq!((after.instance, after.executed, after.history), (before.instance, before.executed, before.history));
    net.heal();
    for value in 11..=22 {
        net.add(1).unwrap_or_else(|| panic!("{value}"));
    }
    assert!(net.hosts[0].replica.report().instance > InstanceId(1), "and ends after k requests, as all do");
}
