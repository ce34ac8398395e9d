//! A file that may be a snapshot. Checksums and Merkle root can be set right, so that what lies behind them is reached.

use crate::four;
use bezant_core::auth::{Certificate, Claimed};
use bezant_core::checkpoint::{Checkpoint, Tree};
use bezant_core::ids::ReplicaId;
use bezant_core::wire::Wire;
use bezant_node::log::Identity;
use bezant_node::log::disk::DiskFile;
use bezant_node::snapshot::{self, SnapshotError};
use bytes::Bytes;
use std::io;
use std::path::Path;

/// Where the header says how long the certificate is; its own checksum follows.
const CERTIFICATE_LENGTH_AT: usize = 56;
/// The header's bytes; the certificate follows.
const HEADER_BYTES: usize = 64;
/// A page's number, length and checksum; its content follows.
const PAGE_HEADER_BYTES: usize = 12;
/// Page numbers are below this.
const PAGE_NUMBERS: u32 = 1 << 24;

/// Whose snapshots are read.
pub fn identity() -> Identity {
    Identity { cluster: four().digest(), replica: ReplicaId(0) }
}

fn number_at(file: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?))
}

/// Where the certificate ends, if it is in the file.
fn certificate_end(file: &[u8]) -> Option<usize> {
    let end = HEADER_BYTES.checked_add(number_at(file, CERTIFICATE_LENGTH_AT)? as usize)?;
    (end + 4 <= file.len()).then_some(end)
}

/// Number, place and length of every page that is wholly in the file, the footer among them.
fn pages(file: &[u8]) -> Vec<(u32, usize, usize)> {
    let mut found = Vec::new();
    let mut at = certificate_end(file).map_or(file.len(), |end| end + 4);
    while let (Some(number), Some(length)) = (number_at(file, at), number_at(file, at + 4)) {
        let content = at + PAGE_HEADER_BYTES;
        let Some(end) = content.checked_add(length as usize).filter(|end| *end <= file.len()) else { break };
        found.push((number, content, length as usize));
        at = end;
    }
    found
}

/// Gives the certificate the root that the pages have, if they can have one.
pub fn set_root(file: &mut [u8]) {
    let Some(end) = certificate_end(file) else { return };
    let bytes = Bytes::copy_from_slice(&file[HEADER_BYTES..end]);
    let Ok(mut certificate) = Claimed::<Certificate<Checkpoint>>::from_bytes(bytes) else { return };
    let pages = pages(file);
    let pages = pages.iter().filter(|(number, ..)| *number < PAGE_NUMBERS);
    let mut tree = Tree::new();
    for (number, at, length) in pages {
        tree.set(*number, Some(Bytes::copy_from_slice(&file[*at..at + length])));
    }
    tree.seal();
    certificate.claims_mut().root = tree.root();
    file[HEADER_BYTES..end].copy_from_slice(&certificate.to_bytes());
}

/// Sets every checksum that the file has a place for.
pub fn set_checksums(file: &mut [u8]) {
    let Some(end) = certificate_end(file) else { return };
    let mut crc = crc32c::crc32c(&file[..HEADER_BYTES - 4]);
    file[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    crc = crc32c::crc32c_append(crc, &file[HEADER_BYTES..end]);
    file[end..end + 4].copy_from_slice(&crc.to_le_bytes());
    for (_, at, length) in pages(file) {
        let checksum = at - 4;
        crc = crc32c::crc32c_append(crc, &file[at - PAGE_HEADER_BYTES..checksum]);
        crc = crc32c::crc32c_append(crc, &file[at..at + length]);
        file[checksum..at].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Reads the file as a start does. What is taken for a snapshot has one encoding: this file.
///
/// # Errors
/// Why it is none.
///
/// # Panics
/// If it has two encodings, or checking it says otherwise than reading it.
pub fn read(path: &Path, file: &[u8]) -> Result<(), SnapshotError> {
    std::fs::write(path, file)?;
    let (verified, found) = (snapshot::verify(path, &identity()), snapshot::read(path, &identity()));
    std::fs::remove_file(path)?;
    let (descriptor, snapshot) = found?;
    verified?;
    let mut again = Memory::default();
    snapshot::write(&mut again, &descriptor, &snapshot.certificate, &snapshot.tree, &|| false)?;
    assert_eq!(again.0, file, "two encodings of one snapshot");
    Ok(())
}

/// A file in memory.
#[derive(Debug, Default)]
struct Memory(Vec<u8>);

impl DiskFile for Memory {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let end = offset as usize + bytes.len();
        self.0.resize(self.0.len().max(end), 0);
        self.0[offset as usize..end].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn allocate(&mut self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.0.truncate(bytes as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::auth::Signature;
    use bezant_core::ids::{InstanceId, Sequence};
    use bezant_node::snapshot::Descriptor;

    /// The file of a small state.
    fn example() -> Vec<u8> {
        let mut tree = Tree::new();
        for (number, length) in [(0, 10), (1, 0), (70, 33), (5000, 7)] {
            tree.set(number, Some(Bytes::from(vec![number as u8; length])));
        }
        tree.seal();
        let root = tree.root();
        let value = Checkpoint { instance: InstanceId(1), sequence: Sequence(128), ruled: Sequence(0), root };
        let signatures = (0..3).map(|id| (ReplicaId(id), Signature([id; 64]))).collect();
        let certificate = Claimed::certified(value, signatures);
        let mut file = Memory::default();
        let descriptor = Descriptor { identity: identity(), segment: 2 };
        snapshot::write(&mut file, &descriptor, &certificate, &tree, &|| false).unwrap();
        file.0
    }

    fn check(name: &str, file: &[u8]) -> Result<(), SnapshotError> {
        read(&std::env::temp_dir().join(format!("bezant-fuzz-test-{}-{name}", std::process::id())), file)
    }

    /// What sets checksums and root right is of use only if a changed file then passes.
    #[test]
    fn a_changed_page_passes_once_root_and_checksums_are_set_right() {
        let good = example();
        check("good", &good).unwrap();
        let mut changed = good.clone();
        let (_, at, _) = pages(&good)[2];
        changed[at] ^= 1;
        assert!(matches!(check("checksum", &changed), Err(SnapshotError::Damaged { .. })));
        set_checksums(&mut changed);
        assert!(matches!(check("root", &changed), Err(SnapshotError::Damaged { offset: 0, .. })));
        set_root(&mut changed);
        set_checksums(&mut changed);
        check("right", &changed).unwrap();
    }

    /// `BEZANT_REWRITE=1` writes the input.
    #[test]
    fn the_input_under_seeds_is_of_this_format() {
        const SET_BOTH_RIGHT: u8 = 3;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/snapshot_file/whole");
        let input = [&[SET_BOTH_RIGHT][..], &example()].concat();
        if std::env::var_os("BEZANT_REWRITE").is_some() {
            std::fs::write(&path, &input).unwrap();
        }
        assert_eq!(std::fs::read(path).unwrap(), input);
    }
}
