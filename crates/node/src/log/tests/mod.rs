//! Tests of the log: what was reported durable is found again, what was not written is not, and damage is seen.

mod crash;
mod failure;
mod power;
mod support;

use super::*;
use bezant_core::wire::Wire;
use std::fmt;
use std::path::{Path, PathBuf};
use support::*;

#[test]
fn what_was_durable_is_found_again() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    append(&mut log, 1..=3);
    wait_durable(&log, 3);
    append(&mut log, 4..=5);
    log.close().unwrap();

    let recovered = directory.open().unwrap();
    assert_eq!(numbers(&recovered.records), [1, 2, 3, 4, 5]);
    assert!(recovered.snapshot.is_none() && !recovered.lost_log && recovered.notes.is_empty());

    // And goes on where it was.
    let mut log = recovered.log;
    append(&mut log, 6..=6);
    log.close().unwrap();
    assert_eq!(numbers(&directory.open().unwrap().records), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn large_records_come_back_as_they_were() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    let body = big_record(300_000);
    log.append(&Record::Log(body.clone()));
    log.close().unwrap();
    let records = directory.open().unwrap().records;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].to_bytes(), body.to_bytes());
}

/// More segments than one call writes, and a disk that takes a part of one at a time.
#[test]
fn long_operations_among_short_records_come_back_as_they_were() {
    let mut written = Vec::new();
    for number in 1..=100 {
        written.extend([record(number), big_record(1000 + 10 * number as usize)]);
    }
    for bytes_at_once in [0, 777] {
        let directory = Directory::initialised();
        let disk = Arc::new(FaultyDisk::default());
        disk.switches().write_bytes_max.store(bytes_at_once, Ordering::SeqCst);
        let mut log = directory.open_with(disk).unwrap().log;
        written.iter().for_each(|record| log.append(&Record::Log(record.clone())));
        log.close().unwrap();
        let records = directory.open().unwrap().records;
        assert_eq!(records.len(), written.len());
        for (read, written) in records.iter().zip(&written) {
            assert_eq!(read.to_bytes(), written.to_bytes());
        }
    }
    // And where nothing is in the way of the system's own vectored writes.
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    written.iter().for_each(|record| log.append(&Record::Log(record.clone())));
    log.close().unwrap();
    assert_eq!(numbers(&directory.open().unwrap().records), (1..=100).collect::<Vec<_>>());
}

#[test]
fn many_groups_in_a_hurry() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    for number in 1..=500 {
        append(&mut log, number..=number);
    }
    wait_durable(&log, 500);
    assert!(log.syncs() < 500, "groups form while a sync runs");
    drop(log);
    assert_eq!(numbers(&directory.open().unwrap().records), (1..=500).collect::<Vec<_>>());
}

#[test]
fn the_event_loop_is_woken() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    let (sender, receiver) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    log.set_wake(Arc::new(move || sender.lock().unwrap().send(()).unwrap()));
    append(&mut log, 1..=1);
    while log.durable() < 1 {
        receiver.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn a_snapshot_replaces_what_is_before_it() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    append(&mut log, 1..=10);
    log.append(&snapshot_record(8, 9..=10, false));
    append(&mut log, 11..=12);
    assert_eq!(log.position(), 12, "nobody waits for a snapshot of the replica's own");
    log.close().unwrap();

    assert_eq!(directory.names(), ["lock", "log-2.bin", "reserve", "snapshot-2.bin"]);
    let recovered = directory.open().unwrap();
    let snapshot = recovered.snapshot.unwrap();
    assert_eq!((snapshot.sequence().0, snapshot.is_consistent()), (8, true));
    assert!(snapshot.tree.iter().eq(tree(8).iter()));
    assert_eq!(numbers(&recovered.records), [9, 10, 11, 12]);
}

#[test]
fn a_transferred_snapshot_holds_back_what_follows() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    append(&mut log, 1..=1);
    wait_durable(&log, 1);
    disk.block_snapshots(true);
    log.append(&snapshot_record(7, 8..=8, true));
    append(&mut log, 9..=9);
    assert_eq!(log.position(), 3);
    wait_until(|| directory.names().contains(&"log-2.bin".to_owned()));
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert_eq!(log.durable(), 1, "neither the snapshot nor what comes after it");
    disk.block_snapshots(false);
    wait_durable(&log, 3);
    drop(log);
    let recovered = directory.open().unwrap();
    assert_eq!(recovered.snapshot.unwrap().sequence().0, 7);
    assert_eq!(numbers(&recovered.records), [8, 9]);
}

#[test]
fn the_newest_snapshot_counts_and_not_the_one_with_the_highest_sequence_number() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    append(&mut log, 1..=9);
    log.append(&snapshot_record(8, 9..=9, false));
    log.close().unwrap();
    let before = directory.copy(&[]);
    let mut log = directory.open().unwrap().log;
    // The next instance counts from the beginning.
    log.append(&snapshot_record(3, 4..=4, false));
    log.close().unwrap();
    assert_eq!(directory.names(), ["lock", "log-3.bin", "reserve", "snapshot-3.bin"]);
    // A crash before the old files were deleted.
    for name in ["log-2.bin", "snapshot-2.bin"] {
        directory.write(name, &before.read(name));
    }
    let recovered = directory.open().unwrap();
    assert_eq!(recovered.snapshot.unwrap().sequence().0, 3);
    assert_eq!(numbers(&recovered.records), [4]);
    assert_eq!(directory.names(), ["lock", "log-3.bin", "reserve", "snapshot-3.bin"]);
}

#[test]
fn a_damaged_snapshot_is_replaced_by_the_one_before_while_its_segments_are_there() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    append(&mut log, 1..=4);
    log.append(&snapshot_record(3, 4..=4, false));
    log.close().unwrap();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    disk.block_snapshots(true);
    append(&mut log, 5..=9);
    log.append(&snapshot_record(8, 9..=9, false));
    append(&mut log, 10..=10);
    wait_durable(&log, 6);
    drop(log);
    let before = directory.copy(&[]);

    let mut log = directory.open().unwrap().log;
    log.append(&snapshot_record(8, 9..=10, false));
    log.close().unwrap();
    let damaged = flipped(&directory.read("snapshot-4.bin"), 2_000);
    directory.write("snapshot-4.bin", &damaged);
    assert!(matches!(directory.open(), Err(OpenError::Damaged { .. })), "what it superseded is gone");

    before.write("snapshot-4.bin", &damaged);
    let recovered = before.open().unwrap();
    assert_eq!(recovered.snapshot.unwrap().sequence().0, 3);
    assert_eq!(numbers(&recovered.records), [4, 5, 6, 7, 8, 9, 9, 10]);
    assert!(recovered.notes[0].contains("snapshot-4.bin is damaged at byte"), "{:?}", recovered.notes);
}

#[test]
fn every_flipped_bit_of_a_snapshot_is_seen() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    log.append(&snapshot_record(3, 4..=4, false));
    log.close().unwrap();
    let good = directory.read("snapshot-2.bin");
    let path = directory.path().join("snapshot-2.bin");
    for bit in (0..good.len() * 8).step_by(7) {
        directory.write("snapshot-2.bin", &flipped(&good, bit));
        assert!(crate::snapshot::read(&path, &identity()).is_err(), "bit {bit}");
    }
    for length in (0..good.len()).step_by(11) {
        directory.write("snapshot-2.bin", &good[..length]);
        assert!(crate::snapshot::read(&path, &identity()).is_err(), "{length} bytes");
    }
}

#[test]
fn two_processes_do_not_share_a_directory() {
    let directory = Directory::initialised();
    let first = directory.open().unwrap();
    assert!(matches!(directory.open(), Err(OpenError::InUse { .. })));
    drop(first);
    directory.open().unwrap();
}

#[test]
fn a_wiped_directory_is_a_lost_log() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    append(&mut log, 1..=1);
    log.close().unwrap();
    for name in directory.names() {
        std::fs::remove_file(directory.path().join(name)).unwrap();
    }
    let error = directory.open().unwrap_err();
    assert!(matches!(error, OpenError::LogLost { .. }) && error.is_recoverable_as_learner());
    assert!(error.to_string().contains("--recover-lost-log"));
}

/// What a crash leaves that came after the files were set aside and before the new log, or whoever copied only that.
#[test]
fn a_directory_where_a_log_was_lost_gets_no_voting_one() {
    let directory = Directory::empty();
    std::fs::create_dir_all(directory.path().join("lost-1")).unwrap();
    let initialised = initialise(directory.path(), &identity(), &directory.options());
    assert!(matches!(initialised, Err(OpenError::LogLost { .. })), "{initialised:?}");
    assert!(replace_lost(directory.path(), &identity(), &directory.options()).unwrap());
    assert!(directory.open().unwrap().lost_log);
}

#[test]
fn a_replaced_log_remembers_until_the_replica_abstains() {
    let directory = Directory::initialised();
    let replace = || replace_lost(directory.path(), &identity(), &directory.options());
    assert!(!replace().unwrap(), "a log that is whole is kept");
    assert!(!directory.open().unwrap().lost_log);
    directory.write("log-1.bin", &flipped(&directory.read("log-1.bin"), 300));
    assert!(replace().unwrap());
    assert!(directory.names().contains(&"lost-1".to_owned()), "what was there is kept");
    assert!(!replace().unwrap(), "once is enough");
    for _ in 0..2 {
        let recovered = directory.open().unwrap();
        assert!(recovered.lost_log);
        let mut log = recovered.log;
        append(&mut log, 1..=1);
        log.append(&snapshot_record(1, 2..=2, true));
        log.close().unwrap();
    }
    let mut log = directory.open().unwrap().log;
    log.append(&Record::Log(abstain_record()));
    log.close().unwrap();
    let mut recovered = directory.open().unwrap();
    assert!(!recovered.lost_log);
    recovered.log.append(&snapshot_record(5, 6..=6, false));
    recovered.log.close().unwrap();
    assert!(!directory.open().unwrap().lost_log, "not even after the record is gone");
}

#[test]
fn a_log_is_not_made_twice_nor_read_by_a_stranger() {
    let directory = Directory::initialised();
    let options = directory.options();
    assert!(matches!(initialise(directory.path(), &identity(), &options), Err(OpenError::Exists { .. })));
    let stranger = Identity { replica: bezant_core::ids::ReplicaId(3), ..identity() };
    let error = open(directory.path(), &stranger, &options).unwrap_err();
    assert!(error.to_string().contains("belongs to replica"), "{error}");
    let other = Identity { cluster: bezant_core::digest::Digest([9; 32]), ..identity() };
    let error = open(directory.path(), &other, &options).unwrap_err();
    assert!(error.to_string().contains("another cluster.toml"), "{error}");
}

#[test]
fn files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    log.append(&snapshot_record(3, 4..=4, false));
    log.close().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(directory.path()), 0o700);
    for name in directory.names() {
        assert_eq!(mode(&directory.path().join(&name)), 0o600, "{name}");
    }
}
