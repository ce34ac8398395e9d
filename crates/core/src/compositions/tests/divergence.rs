//! A replica of a composition whose state goes wrong repairs itself, whichever instance notices.

use crate::cluster::{ClientAuth, Cluster, Limits};
use crate::notice::Notice;
use crate::schedule::{Protocol, Quota};
use crate::service::{Asker, Service};
use crate::services::Counter;
use crate::testing::Random;
use crate::testing::damaged::Damaged;
use crate::testing::net::{Net, cluster, done};

/// Two checkpoints fit into a Backup, or none.
#[test]
fn a_damaged_state_is_repaired_in_a_backup_or_behind_it() {
    for protocol in [Protocol::Quorum, Protocol::ZLight, Protocol::Chain, Protocol::Aliph] {
        for (quota, checkpoint_interval) in [(9, 4), (3, 1_000)] {
            let limits = Limits { history_interval: 4, checkpoint_interval, ..Limits::default() };
            let cluster = cluster(4, ClientAuth::Hybrid, limits);
            let cluster = Cluster { quota: Quota::Fixed(quota), protocol, ..cluster };
            let make = |id| if id == 2 { Damaged::at(3) } else { Damaged::default() };
            let mut net = Net::of(cluster, 1, make);
            for value in 1..=40 {
                assert_eq!(net.add_within(1_000, 0, 1), done(value), "{protocol} {quota}");
            }
            let found = |notice: &Notice| match notice {
                Notice::Repaired(found) => found.mine.changed(&found.agreed).iter().any(|(number, _)| *number == 0),
                _ => false,
            };
            assert!(net.noticed(2, found), "{protocol} {quota}");
            let mut states =
                net.hosts.iter().map(|host| host.replica.service().query(Counter::READ, &Asker::default()));
            let first = states.next();
            assert!(states.all(|state| Some(state) == first), "{protocol} {quota}: the state is right again");
            for id in [0, 1, 3] {
                assert!(!net.noticed(id, |notice| matches!(notice, Notice::Repaired(_))), "{protocol}: r{id}");
            }
        }
    }
}

/// With f+1 right ones, so that nobody ever certifies a checkpoint against the wrong one.
#[test]
fn a_damaged_state_is_repaired_in_a_backup_with_one_replica_down() {
    for protocol in [Protocol::Quorum, Protocol::Chain, Protocol::Aliph] {
        let limits = Limits { history_interval: 4, checkpoint_interval: 4, ..Limits::default() };
        let cluster = cluster(4, ClientAuth::Hybrid, limits);
        let cluster = Cluster { quota: Quota::Fixed(20), protocol, ..cluster };
        let make = |id| if id == 2 { Damaged::at(15) } else { Damaged::default() };
        let mut net = Net::of(cluster, 1, make);
        for value in 1..=60 {
            if value == 10 {
                net.isolate(&[1]);
            }
            assert_eq!(net.add_within(1_000, 0, 1), done(value), "{protocol}: {value}");
        }
        assert!(net.noticed(2, |notice| matches!(notice, Notice::Repaired(_))), "{protocol}");
        assert_eq!([0, 2, 3].map(|id| net.hosts[id].replica.report().differs), [None; 3], "{protocol}");
    }
}

/// Whoever repairs itself crashes before any of the records that it writes meanwhile, and its service goes wrong again
/// after each restart.
#[test]
fn a_repair_that_crashes_is_done_again() {
    for protocol in [Protocol::Pbft, Protocol::Quorum, Protocol::Chain, Protocol::Aliph] {
        for seed in 0..3 {
            let limits = Limits { checkpoint_interval: 4, history_interval: 4, ..Limits::default() };
            let cluster = cluster(4, ClientAuth::Hybrid, Limits { log_bytes_per_snapshot: 2_000, ..limits });
            let cluster = Cluster { quota: Quota::Fixed(9), protocol, ..cluster };
            let make = |id| if id == 2 { Damaged::at(3) } else { Damaged::default() };
            let mut net = Net::of(cluster, 1, make);
            let mut random = Random::new(seed);
            for value in 1..=60 {
                if value <= 30 && random.once_in(3) {
                    net.fuses.entry(2).or_insert_with(|| random.below(8));
                } else if value > 30 {
                    net.fuses.clear();
                }
                net.submit(0, &Counter::add(1), false);
                let rounds = (0..1_000).take_while(|_| {
                    net.pass(100_000);
                    net.completed.is_empty()
                });
                assert!(rounds.count() < 1_000, "{protocol} {seed}: {value}");
                let result = net.completed.pop().map(|completed| completed.result);
                assert_eq!(result, done(value), "{protocol} {seed}");
            }
            net.pass(2_000_000);
            assert!(!net.lost.is_empty() && net.noticed(2, |notice| matches!(notice, Notice::Repaired(_))));
            let mut states =
                net.hosts.iter().map(|host| host.replica.service().query(Counter::READ, &Asker::default()));
            let first = states.next();
            assert!(states.all(|state| Some(state) == first), "{protocol} {seed}: the state is right again");
        }
    }
}
