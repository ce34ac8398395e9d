//! Backups: a certified checkpoint as one file that anybody can check who knows the cluster's keys.
//!
//! The file is a snapshot as replicas write them (`docs/durability.md` has the bytes): the certificate, the pages, a
//! checksum over everything. So whatever was said about snapshots holds here, and a replica's own snapshot can be
//! checked like a backup.

use crate::config::ClusterConfig;
use crate::fetch::certain;
use crate::log::Identity;
use crate::log::disk::{Disk, DiskFile, RealDisk};
use crate::snapshot::{self, Descriptor, SnapshotError};
use bezant_core::checkpoint::{ClaimedSnapshot, Evidence, Snapshot, Tree};
use bezant_core::ids::{InstanceId, ReplicaId};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Why a file cannot be used, or written.
#[derive(Debug)]
pub enum BackupError {
    /// There is a file of this name.
    Exists(PathBuf),
    /// The file system says no. Nothing is left behind.
    Io(PathBuf, io::Error),
    /// It is not what was written.
    Unusable(PathBuf, SnapshotError),
    /// Not even its first bytes are those of a backup.
    NoBackup(PathBuf),
    /// It is of another cluster, or of this one with other parameters.
    Foreign(PathBuf),
    /// The state with which the cluster begins is missing or damaged.
    NoGenesis(PathBuf, SnapshotError),
    /// It is whole, but too few replicas of this cluster signed it.
    NotCertain(PathBuf),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(path) => write!(f, "{} exists: choose another name", path.display()),
            Self::Io(path, error) => write!(f, "{} cannot be written, nothing is left of it: {error}", path.display()),
            Self::Unusable(path, error) => write!(f, "{} {error}", path.display()),
            Self::NoBackup(path) => write!(
                f,
                "{} is neither a backup nor a replica's snapshot: its first bytes are not those of one. `bezant backup \
                 create` makes one",
                path.display()
            ),
            Self::Foreign(path) => {
                let path = path.display();
                write!(f, "{path} is of another cluster, or was made when this one had other parameters")
            }
            Self::NoGenesis(path, error) => write!(
                f,
                "{} {error}. The cluster began with that state: copy the file from another replica's folder, where it \
                 is the same",
                path.display()
            ),
            Self::NotCertain(path) => {
                write!(f, "{} is not signed by enough replicas of this cluster: do not trust it", path.display())
            }
        }
    }
}

impl std::error::Error for BackupError {}

/// Writes a file under a name that nothing has, by renaming one at the end: whatever happens, there is a whole file or
/// none. It is for its owner only, and durable when this returns.
///
/// # Errors
/// [`BackupError::Exists`] or [`BackupError::Io`].
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn DiskFile) -> io::Result<()>) -> Result<(), BackupError> {
    write_whole_on(&RealDisk, path, write)
}

fn write_whole_on(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn DiskFile) -> io::Result<()>,
) -> Result<(), BackupError> {
    if path.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(path.to_owned()));
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(OsString::from(format!(".{}.new", std::process::id())));
    let temporary = PathBuf::from(temporary);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = || {
        let mut file = disk.create(&temporary)?;
        write(&mut *file)?;
        file.sync()?;
        disk.rename(&temporary, path)?;
        // It has its name, and may lose it again. Who is told that there is nothing may try once more.
        disk.sync_directory(folder).inspect_err(|_| drop(disk.remove(path)))
    };
    written().map_err(|error| {
        // It may not even have been created.
        let _ = disk.remove(&temporary);
        BackupError::Io(path.to_owned(), error)
    })
}

/// Writes a checkpoint that was fetched from `replica`.
///
/// # Errors
/// [`BackupError::Exists`] or [`BackupError::Io`].
pub fn write(path: &Path, config: &ClusterConfig, replica: ReplicaId, snapshot: &Snapshot) -> Result<(), BackupError> {
    let identity = Identity { cluster: config.to_cluster().digest(), replica };
    let descriptor = Descriptor { identity, segment: 0 };
    write_whole(path, |file| snapshot::write(file, &descriptor, &snapshot.evidence.claim(), &snapshot.tree, &|| false))
}

/// Reads a backup, or a replica's snapshot, and checks everything: checksums, root, signatures.
///
/// # Errors
/// [`BackupError`]: what is wrong with it.
pub fn read(path: &Path, config: &ClusterConfig) -> Result<Snapshot, BackupError> {
    let read = snapshot::read_of_cluster(path, config.to_cluster().digest());
    let (_, ClaimedSnapshot { certificate, tree }) = read.map_err(|error| match error {
        SnapshotError::Foreign(_) => BackupError::Foreign(path.to_owned()),
        SnapshotError::Damaged { .. } if matches!(snapshot::begins_as_one(path), Ok(false)) => {
            BackupError::NoBackup(path.to_owned())
        }
        other => BackupError::Unusable(path.to_owned(), other),
    })?;
    let certificate = certain(config, certificate).ok_or_else(|| BackupError::NotCertain(path.to_owned()))?;
    Ok(Snapshot { evidence: Evidence::Certified(certificate), tree })
}

/// The state with which a cluster begins, in each replica's folder.
const GENESIS: &str = "genesis.bin";

/// Writes the state with which a replica's cluster begins to its folder.
///
/// # Errors
/// [`BackupError::Exists`] or [`BackupError::Io`].
pub fn write_genesis(directory: &Path, identity: &Identity, tree: &Tree) -> Result<(), BackupError> {
    let evidence = Evidence::genesis(InstanceId(1), tree.root()).claim();
    let descriptor = Descriptor { identity: *identity, segment: 0 };
    write_whole(&directory.join(GENESIS), |file| snapshot::write(file, &descriptor, &evidence, tree, &|| false))
}

/// The state with which the cluster begins, from a replica's folder; `None` if it is an empty one. Nobody signed it:
/// its root is one of the cluster's parameters.
///
/// # Errors
/// [`BackupError`]: it is missing, damaged or another one. The file of any other replica is as good.
pub fn read_genesis(directory: &Path, config: &ClusterConfig) -> Result<Option<Tree>, BackupError> {
    let Some(root) = config.genesis_root else { return Ok(None) };
    let path = directory.join(GENESIS);
    match snapshot::read_of_cluster(&path, config.to_cluster().digest()) {
        Ok((_, snapshot)) if snapshot.tree.root() == root => Ok(Some(snapshot.tree)),
        Ok(_) | Err(SnapshotError::Foreign(_)) => Err(BackupError::Foreign(path)),
        Err(error) => Err(BackupError::NoGenesis(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::disk::create_directory;

    /// A disk whose directories cannot be synced.
    #[derive(Debug)]
    struct Unsynced;

    impl Disk for Unsynced {
        fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
            RealDisk.create(path)
        }

        fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
            RealDisk.open(path)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            RealDisk.rename(from, to)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            RealDisk.remove(path)
        }

        fn sync_directory(&self, _path: &Path) -> io::Result<()> {
            Err(io::ErrorKind::Other.into())
        }
    }

    #[test]
    fn a_file_whose_name_is_not_durable_is_none() {
        let folder = std::env::temp_dir().join(format!("bezant-whole-{}", std::process::id()));
        create_directory(&folder).unwrap();
        let path = folder.join("a.backup");
        let write = |disk: &dyn Disk| write_whole_on(disk, &path, |file| file.write_all_at(b"all of it", 0));
        assert!(matches!(write(&Unsynced), Err(BackupError::Io(..))));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "nothing is left of it");
        write(&RealDisk).unwrap();
        assert!(matches!(write(&RealDisk), Err(BackupError::Exists(_))));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
