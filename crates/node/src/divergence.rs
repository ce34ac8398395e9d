//! What is kept when a replica finds that its state was not the one that others signed: one file for each time,
//! in the folder `divergence` of the replica's directory, so that the evidence survives the repair and restarts.
//!
//! | bound | |
//! |---|---|
//! | files | the newest [`RECORDS_MAX`]; older ones are deleted |
//! | bytes of a file | [`RECORD_BYTES_MAX`]; a record that is larger loses its pages |

use crate::backup::write_whole;
use crate::log::disk::{Disk, RealDisk, create_directory};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

/// Records that are kept.
pub const RECORDS_MAX: usize = 32;
/// Bytes of one record.
pub const RECORD_BYTES_MAX: usize = 4 << 20;
/// The part of a record that is not shown, only kept.
const PAGES: &str = "pages";

/// The folder, and what is in it but for the pages.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    summaries: Mutex<BTreeMap<u64, Value>>,
    /// Divergences that are being looked at, and will be records.
    announced: AtomicUsize,
}

impl Archive {
    /// The archive of a replica's directory. What cannot be read is passed over: it is evidence for people, nothing
    /// depends on it.
    pub fn open(directory: &Path) -> Self {
        let folder = directory.join("divergence");
        let mut summaries = BTreeMap::new();
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json")?.parse().ok());
            let is_small = fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= RECORD_BYTES_MAX as u64);
            let content = is_small.then(|| fs::read(&path).ok()).flatten();
            let record = content.and_then(|content| serde_json::from_slice::<Value>(&content).ok());
            if path.extension().is_some_and(|ending| ending == "new") {
                // Never finished.
                let _ = fs::remove_file(&path);
            }
            if let (Some(number), Some(record)) = (number, record) {
                summaries.insert(number, without_pages(record));
            }
        }
        Self { folder, summaries: Mutex::new(summaries), announced: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Value>> {
        self.summaries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every record without its pages, oldest first.
    pub fn summaries(&self) -> Vec<Value> {
        self.lock().values().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// A record will come.
    pub fn announce(&self) {
        self.announced.fetch_add(1, Ordering::SeqCst);
    }

    /// One that was announced is here, or will not come.
    pub fn settle(&self) {
        self.announced.fetch_sub(1, Ordering::SeqCst);
    }

    /// How many are still to come.
    pub fn announced(&self) -> usize {
        self.announced.load(Ordering::SeqCst)
    }

    /// Keeps a record, which is durable when this returns. It is shown even if it cannot be written.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn add(&self, record: Value) -> io::Result<()> {
        let mut text = format!("{record:#}\n");
        let summary = without_pages(record);
        if text.len() > RECORD_BYTES_MAX {
            text = format!("{summary:#}\n");
        }
        let mut summaries = self.lock();
        let number = summaries.last_key_value().map_or(1, |(last, _)| last + 1);
        summaries.insert(number, summary);
        let written = self.write(number, &text);
        while summaries.len() > RECORDS_MAX
            && let Some((oldest, _)) = summaries.pop_first()
        {
            // If it cannot be deleted now, nothing depends on it.
            let _ = fs::remove_file(self.folder.join(format!("{oldest}.json")));
        }
        written
    }

    fn write(&self, number: u64, text: &str) -> io::Result<()> {
        let path = self.folder.join(format!("{number}.json"));
        if path.exists() {
            fs::remove_file(&path)?;
        }
        create_directory(&self.folder)?;
        write_whole(&path, |file| file.write_all_at(text.as_bytes(), 0)).map_err(io::Error::other)?;
        // The folder may be new.
        self.folder.parent().map_or(Ok(()), |directory| RealDisk.sync_directory(directory))
    }
}

fn without_pages(mut record: Value) -> Value {
    if let Some(fields) = record.as_object_mut() {
        fields.remove(PAGES);
    }
    record
}

/// Microseconds since the Unix epoch as date and time.
pub fn utc(microseconds: u64) -> String {
    let seconds = microseconds / 1_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March, so that the odd day is their last; eras of 400 years are equally long.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (year, hour, minute, second) = (era * 400 + year + carry, rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn records_survive_and_are_bounded() {
        let directory = std::env::temp_dir().join(format!("bezant-divergence-{}", std::process::id()));
        let archive = Archive::open(&directory);
        assert_eq!(archive.count(), 0);
        for sequence in 0..RECORDS_MAX + 3 {
            archive.add(json!({ "sequence": sequence, "pages": ["00"] })).unwrap();
        }
        archive.add(json!({ "sequence": "large", "pages": ["0".repeat(RECORD_BYTES_MAX)] })).unwrap();
        fs::write(directory.join("divergence/99.json"), "{ torn").unwrap();
        let again = Archive::open(&directory);
        assert_eq!(again.summaries(), archive.summaries());
        assert_eq!(again.count(), RECORDS_MAX);
        assert_eq!(again.summaries()[0], json!({ "sequence": 4 }));
        assert_eq!(again.summaries()[RECORDS_MAX - 1], json!({ "sequence": "large" }));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_795_000_000, "2026-11-18T11:06:40Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds * 1_000_000), text);
        }
    }
}
