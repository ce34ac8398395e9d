//! Power failures: a disk that remembers what was synced, and every state that a failure could leave behind.
//!
//! What was not synced may be on the disk or not, file by file and name by name. Each step is tried with both
//! extremes of both: contents as last synced or as last written, names as last synced or as last given.

use super::super::disk::{Disk, DiskFile};
use super::*;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

/// Nothing live above a snapshot.
const NOTHING: std::ops::RangeInclusive<u64> = std::ops::RangeInclusive::new(1, 0);

type Names = BTreeMap<PathBuf, usize>;

/// A disk in memory, mirrored to a real directory because the log reads from there.
#[derive(Debug, Default)]
struct State {
    written: Vec<Vec<u8>>,
    synced: Vec<Vec<u8>>,
    names: Names,
    synced_names: Names,
}

/// What the disk may hold after a failure, and how much had been reported durable.
struct Image {
    files: BTreeMap<PathBuf, Vec<u8>>,
    durable: u64,
}

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    images: Mutex<Vec<Image>>,
    shared: OnceLock<Arc<Shared>>,
}

impl Inner {
    /// Takes an image of everything that a failure now could leave behind.
    fn step(&self) {
        let Some(shared) = self.shared.get() else { return };
        let durable = shared.durable();
        let state = self.state.lock().unwrap();
        for names in [&state.synced_names, &state.names] {
            for contents in [&state.synced, &state.written] {
                let files = names.iter().map(|(name, id)| (name.clone(), contents[*id].clone())).collect();
                self.images.lock().unwrap().push(Image { files, durable });
            }
        }
    }
}

#[derive(Clone, Default)]
struct PowerDisk(Arc<Inner>);

impl fmt::Debug for PowerDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PowerDisk")
    }
}

struct PowerFile {
    inner: Arc<Inner>,
    id: usize,
    real: Box<dyn DiskFile>,
}

impl fmt::Debug for PowerFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PowerFile")
    }
}

impl PowerDisk {
    fn file(&self, path: &Path, content: Vec<u8>, real: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let mut state = self.0.state.lock().unwrap();
        let id = state.written.len();
        state.synced.push(content.clone());
        state.written.push(content);
        state.names.insert(path.to_owned(), id);
        Box::new(PowerFile { inner: Arc::clone(&self.0), id, real })
    }
}

impl Disk for PowerDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.0.step();
        Ok(self.file(path, Vec::new(), RealDisk.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(path, std::fs::read(path)?, RealDisk.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.step();
        let mut state = self.0.state.lock().unwrap();
        let id = state.names.remove(from).unwrap();
        state.names.insert(to.to_owned(), id);
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.step();
        self.0.state.lock().unwrap().names.remove(path);
        RealDisk.remove(path)
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        self.0.step();
        let mut state = self.0.state.lock().unwrap();
        state.synced_names = state.names.clone();
        drop(state);
        self.0.step();
        Ok(())
    }
}

impl DiskFile for PowerFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.step();
        let mut state = self.inner.state.lock().unwrap();
        let content = &mut state.written[self.id];
        let end = offset as usize + bytes.len();
        content.resize(content.len().max(end), 0);
        content[offset as usize..end].copy_from_slice(bytes);
        self.real.write_at(bytes, offset)
    }

    fn allocate(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut state = self.inner.state.lock().unwrap();
        let content = &mut state.written[self.id];
        content.resize(content.len().max((offset + bytes) as usize), 0);
        self.real.allocate(offset, bytes)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.inner.state.lock().unwrap().written[self.id].truncate(bytes as usize);
        self.real.truncate(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.inner.step();
        let mut state = self.inner.state.lock().unwrap();
        state.synced[self.id] = state.written[self.id].clone();
        drop(state);
        self.inner.step();
        Ok(())
    }
}

/// Plays a story on such a disk and recovers from every image that it left.
///
/// In the story, record number k is at position k, so that whatever was reported durable must be in the snapshot or
/// in the log.
fn survives(story: impl FnOnce(&mut Log)) {
    let directory = Directory::initialised();
    let disk = PowerDisk::default();
    let mut log = directory.open_with(Arc::new(disk.clone())).unwrap().log;
    disk.0.shared.set(Arc::clone(&log.shared)).unwrap();
    story(&mut log);
    let last = log.position();
    log.close().unwrap();
    disk.0.step();

    let images = std::mem::take(&mut *disk.0.images.lock().unwrap());
    assert!(images.len() > 50 && images.last().unwrap().durable == last);
    let quick = Options { disk: FaultyDisk::without_syncs(), reserve_bytes: 0, ..directory.options() };
    for (number, image) in images.iter().enumerate() {
        let after = Directory::empty();
        std::fs::create_dir(after.path()).unwrap();
        for (path, content) in &image.files {
            after.write(path.file_name().unwrap().to_str().unwrap(), content);
        }
        let recovered = open(after.path(), &identity(), &quick);
        let recovered = recovered.unwrap_or_else(|error| panic!("image {number}: {error}, {:?}", after.names()));
        let snapshot = recovered.snapshot.map_or(0, |snapshot| snapshot.sequence().0);
        let found = numbers(&recovered.records);
        for wanted in snapshot + 1..=image.durable {
            assert!(found.contains(&wanted), "image {number}: {wanted} is lost; snapshot {snapshot}, {found:?}");
        }
    }
}

#[test]
fn appending() {
    survives(|log| {
        for number in 1..=6 {
            append(log, number..=number);
            wait_durable(log, number);
        }
    });
}

#[test]
fn snapshots_of_its_own() {
    survives(|log| {
        append(log, 1..=4);
        wait_durable(log, 4);
        log.append(&snapshot_record(3, 4..=4, false));
        append(log, 5..=6);
        append(log, 7..=8);
        wait_durable(log, 8);
        log.append(&snapshot_record(8, NOTHING, false));
        append(log, 9..=9);
    });
}

#[test]
fn snapshots_of_others() {
    survives(|log| {
        append(log, 1..=2);
        wait_durable(log, 2);
        // The snapshot takes position 3, and contains what this replica never had.
        log.append(&snapshot_record(3, NOTHING, true));
        append(log, 4..=5);
        wait_durable(log, 5);
        log.append(&snapshot_record(6, NOTHING, true));
        append(log, 7..=8);
    });
}

/// One change of a name that a failure may undo.
#[derive(Clone)]
enum Change {
    Give(PathBuf, Vec<u8>),
    Move(PathBuf, PathBuf),
    Take(PathBuf),
}

/// A disk that keeps each change of a name by itself until the directory is synced: any of them may be lost.
#[derive(Default)]
struct Renames {
    synced: BTreeMap<PathBuf, Vec<u8>>,
    since: Vec<Change>,
    images: Vec<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Renames {
    fn after(&self, is_kept: impl Fn(usize) -> bool) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = self.synced.clone();
        for (_, change) in self.since.iter().enumerate().filter(|(number, _)| is_kept(*number)) {
            match change.clone() {
                Change::Give(path, content) => drop(files.insert(path, content)),
                Change::Move(from, to) => drop(files.remove(&from).map(|content| files.insert(to, content))),
                Change::Take(path) => drop(files.remove(&path)),
            }
        }
        files
    }

    fn change(&mut self, change: Change) {
        self.since.push(change);
        for kept in 0..1u32 << self.since.len() {
            self.images.push(self.after(|number| kept >> number & 1 == 1));
        }
    }
}

#[derive(Clone, Default)]
struct RenamingDisk(Arc<Mutex<Renames>>);

impl fmt::Debug for RenamingDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RenamingDisk")
    }
}

impl Disk for RenamingDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)?;
        let is_new = from.extension().is_some_and(|ending| ending == "new");
        let change = match is_new {
            true => Change::Give(to.to_owned(), std::fs::read(to)?),
            false => Change::Move(from.to_owned(), to.to_owned()),
        };
        self.0.lock().unwrap().change(change);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.lock().unwrap().change(Change::Take(path.to_owned()));
        RealDisk.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut renames = self.0.lock().unwrap();
        // Files that were created under their own names; their content was synced before.
        for entry in std::fs::read_dir(path)? {
            let path = entry?.path();
            if path.is_file() && !renames.after(|_| true).contains_key(&path) {
                let content = std::fs::read(&path)?;
                renames.change(Change::Give(path, content));
            }
        }
        renames.synced = renames.after(|_| true);
        renames.since.clear();
        Ok(())
    }
}

/// Of three segments the last one is damaged. The first two alone would be a log that is whole, and has forgotten.
#[test]
fn a_lost_log_is_replaced_for_good_or_is_still_lost() {
    let directory = Directory::initialised();
    let disk = Arc::new(FaultyDisk::default());
    disk.block_snapshots(true);
    let mut log = directory.open_with(disk).unwrap().log;
    for number in 1..=2 {
        append(&mut log, number..=number);
        log.append(&snapshot_record(number, number..=number, false));
    }
    append(&mut log, 9..=9);
    wait_durable(&log, 3);
    drop(log);
    directory.write("log-3.bin", &flipped(&directory.read("log-3.bin"), 20 * 8));

    let disk = RenamingDisk::default();
    disk.sync_directory(directory.path()).unwrap();
    disk.0.lock().unwrap().images.clear();
    let options = Options { disk: Arc::new(disk.clone()), ..directory.options() };
    assert!(replace_lost(directory.path(), &identity(), &options).unwrap());
    let images = std::mem::take(&mut disk.0.lock().unwrap().images);
    assert!(images.len() > 10, "{}", images.len());
    for (number, image) in images.iter().enumerate() {
        let after = Directory::empty();
        std::fs::create_dir(after.path()).unwrap();
        for (path, content) in image {
            let copy = after.path().join(path.strip_prefix(directory.path()).unwrap());
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::write(copy, content).unwrap();
        }
        match after.open() {
            Ok(recovered) => assert!(recovered.lost_log, "image {number} votes: {:?}", after.names()),
            Err(error) => assert!(error.is_recoverable_as_learner(), "image {number}: {error}"),
        }
        assert!(initialise(after.path(), &identity(), &after.options()).is_err(), "image {number}");
        replace_lost(after.path(), &identity(), &after.options()).unwrap();
        assert!(after.open().unwrap().lost_log, "image {number}");
    }
}
