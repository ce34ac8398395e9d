//! Disks that are full, fail, or take little at a time.

use super::*;
use std::sync::atomic::Ordering;

#[test]
fn a_full_disk_is_reported_and_survived() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    append(&mut log, 1..=2);
    wait_durable(&log, 2);
    disk.switches().full.store(true, Ordering::SeqCst);
    append(&mut log, 3..=40);
    wait_until(|| matches!(log.stall(), Some(Stall::Full(_))));
    let told = log.stall().unwrap().to_string();
    assert!(told.starts_with(&format!("{}: ", directory.path().display())), "{told}");
    append(&mut log, 41..=42);
    assert_eq!(log.durable(), 2);
    disk.switches().full.store(false, Ordering::SeqCst);
    wait_durable(&log, 42);
    assert_eq!(log.stall(), None, "it came back by itself");
    drop(log);
    assert_eq!(numbers(&directory.open().unwrap().records), (1..=42).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_at_shutdown_gives_up_the_reserve() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    disk.switches().full.store(true, Ordering::SeqCst);
    append(&mut log, 1..=40);
    wait_until(|| log.stall().is_some());
    log.close().unwrap();
    assert!(!directory.names().contains(&"reserve".to_owned()));
    assert_eq!(directory.open().unwrap().records.len(), 40);
    assert!(directory.names().contains(&"reserve".to_owned()), "kept back again");
}

#[test]
fn a_full_disk_delays_a_new_segment_and_a_snapshot() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    disk.switches().full.store(true, Ordering::SeqCst);
    log.append(&snapshot_record(4, 5..=6, true));
    append(&mut log, 7..=7);
    wait_until(|| log.stall().is_some());
    assert_eq!(log.durable(), 0);
    disk.switches().full.store(false, Ordering::SeqCst);
    wait_durable(&log, 2);
    log.close().unwrap();
    let recovered = directory.open().unwrap();
    assert_eq!(recovered.snapshot.unwrap().sequence().0, 4);
    assert_eq!(numbers(&recovered.records), [5, 6, 7]);
}

/// The log has space of its own reserved: for a while only snapshots find none.
#[test]
fn a_disk_too_full_for_a_snapshot_is_full_although_records_still_fit() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    disk.block_snapshots(true);
    log.append(&snapshot_record(4, 5..=6, false));
    append(&mut log, 7..=7);
    wait_until(|| matches!(log.stall(), Some(Stall::Full(_))));
    for number in 8..=12 {
        append(&mut log, number..=number);
        wait_durable(&log, log.position());
        assert!(matches!(log.stall(), Some(Stall::Full(_))), "a record that fits says nothing about snapshots");
    }
    disk.block_snapshots(false);
    wait_until(|| log.stall().is_none());
}

#[test]
fn a_failed_fsync_is_final() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    append(&mut log, 1..=2);
    wait_durable(&log, 2);
    disk.switches().sync_fails.store(true, Ordering::SeqCst);
    append(&mut log, 3..=3);
    wait_until(|| matches!(log.stall(), Some(Stall::Broken(_))));
    disk.switches().sync_fails.store(false, Ordering::SeqCst);
    append(&mut log, 4..=4);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(log.durable(), 2, "a second fsync would claim success");
    assert!(matches!(log.close(), Err(Stall::Broken(_))));
    let found = numbers(&directory.open().unwrap().records);
    assert!(found.starts_with(&[1, 2]) && found.len() <= 3, "{found:?}");
}

#[test]
fn a_failed_write_is_final() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    disk.switches().write_fails.store(true, Ordering::SeqCst);
    append(&mut log, 1..=1);
    wait_until(|| matches!(log.stall(), Some(Stall::Broken(_))));
    assert_eq!(log.durable(), 0);
}

/// What a failed sync left in the kernel's memory may be marked as clean: a sync alone would not write it.
#[test]
fn what_is_read_at_the_start_is_written_again() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    disk.switches().sync_fails.store(true, Ordering::SeqCst);
    append(&mut log, 1..=20);
    wait_until(|| matches!(log.stall(), Some(Stall::Broken(_))));
    drop(log);
    let disk = Arc::new(FaultyDisk::default());
    let recovered = directory.open_with(disk.clone()).unwrap();
    assert_eq!(numbers(&recovered.records), (1..=20).collect::<Vec<_>>());
    let least = recovered.records.iter().map(|record| record.to_bytes().len()).sum::<usize>();
    assert!(disk.switches().written.load(Ordering::SeqCst) >= least);
}

#[test]
fn short_writes_make_no_difference() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    disk.switches().write_bytes_max.store(5, Ordering::SeqCst);
    let mut log = directory.open_with(disk).unwrap().log;
    append(&mut log, 1..=20);
    log.append(&snapshot_record(18, 19..=20, false));
    append(&mut log, 21..=22);
    log.close().unwrap();
    let recovered = directory.open().unwrap();
    assert_eq!(recovered.snapshot.unwrap().sequence().0, 18);
    assert_eq!(numbers(&recovered.records), [19, 20, 21, 22]);
}
