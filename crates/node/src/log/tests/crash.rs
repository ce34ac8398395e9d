//! Crashes at every byte and at every step, and rot.

use super::super::format::HEADER_BYTES;
use super::super::segment::Segment;
use super::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const SEGMENT: &str = "log-1.bin";
/// Bytes by which the segments of these tests grow.
const ALLOCATION: usize = 256;

/// A log in which 1 to 5 were reported durable and 6 to 9 were written but never synced. Also where the first of
/// these begins, and the end of the last.
fn with_unsynced_tail() -> (Directory, Vec<u8>, usize, usize) {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    append(&mut log, 1..=3);
    wait_durable(&log, 3);
    append(&mut log, 4..=5);
    wait_durable(&log, 5);
    // Header, the marks of the open and of two syncs, five records: all of it is in the file at some point.
    let read = || Segment::read(&directory.path().join(SEGMENT), &identity()).unwrap();
    wait_until(|| read().chain.next == 3 + 5);
    let start = read().end as usize;
    disk.switches().sync_fails.store(true, Ordering::SeqCst);
    append(&mut log, 6..=9);
    wait_until(|| log.stall().is_some());
    let stop = read().end as usize;
    drop(log);
    let bytes = directory.read(SEGMENT);
    (directory, bytes, start, stop)
}

fn recover(directory: &Directory, bytes: Vec<u8>) -> Result<Vec<u64>, OpenError> {
    let copy = directory.copy(&[(SEGMENT, bytes)]);
    let disk = FaultyDisk::without_syncs();
    let recovered = copy.open_with(disk.clone())?;
    let found = numbers(&recovered.records);
    // What recovery leaves behind can be recovered again, with more after it.
    let mut log = recovered.log;
    append(&mut log, 99..=99);
    log.close().unwrap();
    let again = numbers(&copy.open_with(disk).unwrap().records);
    assert_eq!(again, [found.as_slice(), &[99]].concat());
    Ok(found)
}

fn assert_prefix_with_all_durable(found: &[u64], what: &str) {
    let all: Vec<u64> = (1..=9).collect();
    assert!(found.len() >= 5 && all.starts_with(found), "{what}: {found:?}");
}

#[test]
fn a_write_cut_at_any_byte_loses_nothing_that_was_durable() {
    let (directory, bytes, start, stop) = with_unsynced_tail();
    for cut in start..=stop {
        // The file has a whole size before anything is written to it: a shorter one is no crash's.
        match recover(&directory, bytes[..cut].to_vec()) {
            Ok(found) => assert_prefix_with_all_durable(&found, &format!("cut at {cut}")),
            Err(OpenError::Damaged { .. }) => assert!(!cut.is_multiple_of(ALLOCATION), "cut at {cut}"),
            Err(error) => panic!("cut at {cut}: {error}"),
        }
        let mut zeroed = bytes.clone();
        zeroed[cut..].fill(0);
        let found = recover(&directory, zeroed).unwrap();
        assert_prefix_with_all_durable(&found, &format!("zeros from {cut}"));
    }
    assert_eq!(recover(&directory, bytes).unwrap().len(), 9, "written, though nobody was promised it");
}

/// A log with so many records, one after the other durable, of which each is somewhere in the first of its pieces.
fn with_records(allocation_bytes: u32, count: u64) -> (Directory, Vec<u8>) {
    let directory = Directory::empty();
    let options = Options { allocation_bytes, ..directory.options() };
    initialise(directory.path(), &identity(), &options).unwrap();
    let mut log = open(directory.path(), &identity(), &options).unwrap().log;
    for number in 1..=count {
        append(&mut log, number..=number);
        wait_durable(&log, number);
    }
    log.close().unwrap();
    let bytes = directory.read(SEGMENT);
    (directory, bytes)
}

#[test]
fn a_segment_that_was_cut_is_not_taken_for_a_torn_one() {
    let (directory, bytes) = with_records(1 << 12, 25);
    let end = Segment::read(&directory.path().join(SEGMENT), &identity()).unwrap().end as usize;
    assert!(bytes.len() == 1 << 12 && end > 2_000 && end + 4 < bytes.len());
    let all: Vec<u64> = (1..=25).collect();
    let copy = directory.copy(&[]);
    for cut in HEADER_BYTES..bytes.len() {
        copy.write(SEGMENT, &bytes[..cut]);
        match inspect(copy.path(), &identity()).map(|inspected| numbers(&inspected.records)) {
            Ok(found) => assert!(cut >= end + 4 && found == all, "cut at {cut}: {found:?}"),
            Err(OpenError::Damaged { offset, .. }) => assert!(cut < end + 4 && offset == cut as u64, "cut at {cut}"),
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
}

/// A crash while the file grows leaves zeros, and any size: with or without a piece more, it goes on from there.
#[test]
fn a_crash_while_a_segment_grows_is_no_damage() {
    let (directory, bytes) = with_records(ALLOCATION as u32, 5);
    assert!(bytes.len().is_multiple_of(ALLOCATION));
    for more in (0..=2 * ALLOCATION).step_by(3) {
        let grown = [&bytes[..], &vec![0; more]].concat();
        assert_eq!(recover(&directory, grown).unwrap(), [1, 2, 3, 4, 5], "{more} bytes more");
    }
    let copy = directory.copy(&[(SEGMENT, [&bytes[..], &[0; 5]].concat())]);
    drop(copy.open().unwrap());
    assert!(copy.read(SEGMENT).len().is_multiple_of(ALLOCATION), "whole again before anything is written");
}

/// Cleared, and not cut off: a crash in the middle of that would look like a log that was cut.
#[test]
fn a_torn_tail_is_cleared_and_the_size_stays_whole() {
    let (directory, bytes, start, stop) = with_unsynced_tail();
    for torn in (start + 1..stop).step_by(3) {
        let mut torn_there = bytes.clone();
        torn_there[torn..].fill(0);
        let copy = directory.copy(&[(SEGMENT, torn_there)]);
        let found = numbers(&copy.open().unwrap().records).len();
        let after = copy.read(SEGMENT);
        assert_eq!(after.len(), bytes.len());
        let segment = Segment::read(&copy.path().join(SEGMENT), &identity()).unwrap();
        assert!(!segment.torn && segment.records.len() == found, "torn at {torn}");
    }
}

#[test]
fn blocks_of_one_write_may_arrive_in_any_order() {
    let (directory, bytes, start, stop) = with_unsynced_tail();
    for hole in start..stop {
        let mut torn = bytes.clone();
        torn[hole..(hole + 16).min(stop)].fill(0);
        let found = recover(&directory, torn).unwrap();
        assert_prefix_with_all_durable(&found, &format!("hole at {hole}"));
    }
}

#[test]
fn every_flipped_bit_is_seen_or_hits_only_what_nobody_was_promised() {
    let (directory, bytes, start, stop) = with_unsynced_tail();
    let last_mark = start - 37;
    for bit in 0..stop * 8 {
        match recover(&directory, flipped(&bytes, bit)) {
            Ok(found) => {
                assert!(bit >= last_mark * 8, "bit {bit} is in front of a mark");
                assert_prefix_with_all_durable(&found, &format!("bit {bit}"));
            }
            Err(OpenError::Damaged { .. }) => {}
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
}

#[test]
fn rot_in_the_last_group_is_told_from_a_torn_write_by_its_mark() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    append(&mut log, 1..=4);
    log.close().unwrap();
    let bytes = directory.read(SEGMENT);
    for bit in 0..bytes.len() * 8 {
        match recover(&directory, flipped(&bytes, bit)) {
            Ok(found) => assert_eq!(found, [1, 2, 3, 4], "bit {bit}"),
            Err(OpenError::Damaged { .. }) => {}
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
    let error = recover(&directory, flipped(&bytes, (HEADER_BYTES + 60) * 8)).unwrap_err();
    assert!(error.to_string().contains("--recover-lost-log"), "{error}");
}

#[test]
fn any_damage_is_survived_and_invents_nothing() {
    let (directory, bytes, _, stop) = with_unsynced_tail();
    let all: Vec<u64> = (1..=9).collect();
    let mut random = Random(7);
    for round in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..=random.below(4) {
            let (start, length) = (random.below(stop), 1 + random.below(40));
            let end = damaged.len().min(start + length);
            let target = random.below(damaged.len() - (end - start));
            match random.below(4) {
                0 => damaged[start..end].fill(random.below(256) as u8),
                1 => damaged[start..end].iter_mut().for_each(|byte| *byte = random.below(256) as u8),
                2 => damaged.copy_within(start..end, target),
                _ => damaged.truncate(start.max(1)),
            }
            if damaged.len() < stop {
                break;
            }
        }
        match recover(&directory, damaged) {
            Ok(found) => assert!(all.starts_with(&found), "round {round}: {found:?}"),
            Err(OpenError::Damaged { .. } | OpenError::Version { .. } | OpenError::Foreign { .. }) => {}
            Err(error) => panic!("round {round}: {error}"),
        }
    }
}

#[test]
fn records_are_valid_in_their_place_only() {
    let directory = Directory::initialised();
    let mut log = directory.open().unwrap().log;
    append(&mut log, 1..=4);
    log.close().unwrap();
    let bytes = directory.read(SEGMENT);
    let (mark, record) = (37, 9 + record(1).to_bytes().len());
    let place = |number: usize| HEADER_BYTES + mark + number * record..HEADER_BYTES + mark + (number + 1) * record;
    for (from, to) in [(0, 1), (2, 1), (3, 0)] {
        let mut moved = bytes.clone();
        moved.copy_within(place(from), place(to).start);
        assert!(matches!(recover(&directory, moved), Err(OpenError::Damaged { .. })), "{from} in the place of {to}");
    }
    // A whole segment of another log, of the same replica and the same length.
    let other = Directory::initialised();
    let mut log = other.open().unwrap().log;
    append(&mut log, 1..=4);
    log.close().unwrap();
    let mut mixed = bytes;
    mixed[HEADER_BYTES..].copy_from_slice(&other.read(SEGMENT)[HEADER_BYTES..]);
    assert!(recover(&directory, mixed).unwrap().is_empty(), "nothing of it is valid here, nor are its marks");
}

#[test]
fn a_missing_segment_is_damage() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    disk.block_snapshots(true);
    let mut log = directory.open_with(disk).unwrap().log;
    for number in 1..=3 {
        append(&mut log, number..=number);
        log.append(&snapshot_record(number, number..=number, false));
    }
    append(&mut log, 9..=9);
    wait_durable(&log, 4);
    drop(log);
    assert_eq!(numbers(&directory.copy(&[]).open().unwrap().records), [1, 1, 2, 2, 3, 3, 9]);
    for missing in ["log-1.bin", "log-2.bin", "log-3.bin"] {
        let copy = directory.copy(&[]);
        std::fs::remove_file(copy.path().join(missing)).unwrap();
        assert!(matches!(copy.open(), Err(OpenError::Damaged { .. })), "{missing}");
        let copy = directory.copy(&[(missing, directory.read(missing)[..HEADER_BYTES + 3].to_vec())]);
        assert!(matches!(copy.open(), Err(OpenError::Damaged { .. })), "{missing} cut");
    }
}

/// A copy of the directory before every change that the log makes to it, with what was durable then.
#[test]
fn a_crash_at_any_step_of_a_rotation_loses_nothing() {
    let directory = Directory::initialised();
    let crashes = Directory::empty();
    let disk = Arc::new(FaultyDisk::default());
    let shared: Arc<OnceLock<Arc<Shared>>> = Arc::default();
    let steps = Arc::new(AtomicUsize::new(0));
    let durable = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut log = directory.open_with(disk.clone()).unwrap().log;
    shared.set(Arc::clone(&log.shared)).unwrap();
    let hook = {
        let (from, to) = (directory.path().to_owned(), crashes.path().to_owned());
        let (steps, durable) = (Arc::clone(&steps), Arc::clone(&durable));
        move || {
            let step = steps.fetch_add(1, Ordering::SeqCst);
            durable.lock().unwrap().push(shared.get().unwrap().durable());
            copy_directory(&from, &to.join(step.to_string()));
        }
    };
    *disk.switches().before.lock().unwrap() = Some(Box::new(hook));
    // Numbers are positions: each append is one, and no snapshot is transferred.
    append(&mut log, 1..=6);
    wait_durable(&log, 6);
    log.append(&snapshot_record(4, 5..=6, false));
    append(&mut log, 7..=9);
    wait_durable(&log, 9);
    log.append(&snapshot_record(8, 9..=9, false));
    append(&mut log, 10..=11);
    log.close().unwrap();
    *disk.switches().before.lock().unwrap() = None;

    let durable = durable.lock().unwrap().clone();
    assert!(durable.len() > 20, "{} steps", durable.len());
    for (step, durable) in durable.iter().enumerate() {
        let crash = open(&crashes.path().join(step.to_string()), &identity(), &directory.options());
        let recovered = crash.unwrap_or_else(|error| panic!("step {step}: {error}"));
        let snapshot = recovered.snapshot.map_or(0, |snapshot| snapshot.sequence().0);
        let found = numbers(&recovered.records);
        for number in snapshot + 1..=*durable {
            assert!(found.contains(&number), "step {step}: {number} is lost; snapshot {snapshot}, {found:?}");
        }
        assert!(found.iter().all(|number| (1..=11).contains(number)), "step {step}: {found:?}");
    }
}
