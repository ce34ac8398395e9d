//! Snapshot files: one stable version of the state, page by page. `docs/durability.md` has the bytes.
//!
//! Each page has its own checksum, so that damage can be named. What the state *is* rests on none of them: the pages
//! must have the Merkle root that the certificate names, and the certificate is signed by 2f+1 replicas.

use crate::log::disk::DiskFile;
use crate::log::format::{Identity, array_at, u32_at};
use bezant_core::auth::{Certificate, Claimed};
use bezant_core::checkpoint::{Checkpoint, ClaimedSnapshot, LEVELS, NODE_CHILDREN, Tree};
use bezant_core::digest::Digest;
use bezant_core::ids::ReplicaId;
use bezant_core::service::PAGE_BYTES_MAX;
use bezant_core::wire::Wire;
use bytes::Bytes;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// First bytes of every snapshot.
const MAGIC: [u8; 8] = *b"bezantsn";
/// The version of this format.
const VERSION: u32 = 2;
/// Magic, version, replica and padding, cluster digest, segment, certificate's length, checksum.
const HEADER_BYTES: usize = 8 + 4 + 4 + 32 + 8 + 4 + 4;
/// Number, length, checksum of one page.
const PAGE_HEADER_BYTES: usize = 12;
/// Page numbers are below this.
const PAGE_NUMBERS: u32 = (NODE_CHILDREN as u32).pow(LEVELS);
/// Stands in place of a page's number in the footer.
const FOOTER: u32 = u32::MAX;
/// A certificate has at most one signature of each replica.
const CERTIFICATE_BYTES_MAX: usize = 1 << 16;
/// How much is gathered before it is written.
const CHUNK_BYTES: usize = 1 << 20;
/// How much is written before it is synced: the log's own syncs, which somebody waits for, come in between.
const SYNC_BYTES: u64 = 8 << 20;

/// What a snapshot says of itself, besides its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Whose state it is.
    pub identity: Identity,
    /// The log segment that goes on where the snapshot ends.
    pub segment: u64,
}

/// Why a snapshot cannot be used.
#[derive(Debug)]
pub enum SnapshotError {
    /// The file cannot be read.
    Io(io::Error),
    /// It is not what was written.
    Damaged {
        /// The first byte of what is wrong.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// It belongs to another replica or cluster.
    Foreign(Identity),
    /// It was written by another version of this program.
    Version(u32),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Damaged { offset, what } => write!(f, "is damaged at byte {offset}: {what}"),
            Self::Foreign(_) => f.write_str("belongs to another replica or another cluster"),
            Self::Version(version) => write!(f, "has format version {version}, this program knows {VERSION}"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Gathers bytes and writes them in chunks.
struct Output<'a> {
    file: &'a mut dyn DiskFile,
    buffer: Vec<u8>,
    offset: u64,
}

impl Output<'_> {
    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.offset)?;
        let end = self.offset + self.buffer.len() as u64;
        if self.offset / SYNC_BYTES != end / SYNC_BYTES {
            sync(self.file)?;
        }
        self.offset = end;
        self.buffer.clear();
        Ok(())
    }

    /// Appends a part with its number and checksum. The checksum goes on from the part before, so that parts
    /// cannot change places.
    fn part(&mut self, number: u32, content: &[u8], previous: u32) -> u32 {
        let length = content.len() as u32;
        self.buffer.extend_from_slice(&number.to_le_bytes());
        self.buffer.extend_from_slice(&length.to_le_bytes());
        let crc = part_checksum(number, content, previous);
        self.buffer.extend_from_slice(&crc.to_le_bytes());
        self.buffer.extend_from_slice(content);
        crc
    }
}

/// Makes a file durable. Whatever the error, it is final, so that even "no space" must not look like one to wait out.
fn sync(file: &mut dyn DiskFile) -> io::Result<()> {
    file.sync().map_err(|error| io::Error::other(format!("fsync: {error}")))
}

fn part_checksum(number: u32, content: &[u8], previous: u32) -> u32 {
    let crc = crc32c::crc32c_append(previous, &number.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &(content.len() as u32).to_le_bytes());
    crc32c::crc32c_append(crc, content)
}

/// Writes a snapshot to an empty file; it is durable, but for its name, when this returns.
///
/// # Errors
/// Those of the file, and [`io::ErrorKind::Interrupted`] once `is_abandoned` says so.
pub fn write(
    file: &mut dyn DiskFile,
    descriptor: &Descriptor,
    certificate: &Claimed<Certificate<Checkpoint>>,
    tree: &Tree,
    is_abandoned: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut out = Output { file, buffer: Vec::with_capacity(CHUNK_BYTES), offset: 0 };
    let certificate = certificate.to_bytes();
    let header = header(descriptor, certificate.len() as u32);
    let mut crc = u32_at(&header, HEADER_BYTES - 4);
    out.buffer.extend_from_slice(&header);
    crc = crc32c::crc32c_append(crc, &certificate);
    out.buffer.extend_from_slice(&certificate);
    out.buffer.extend_from_slice(&crc.to_le_bytes());
    for (number, content) in tree.iter() {
        crc = out.part(number, content, crc);
        if out.buffer.len() >= CHUNK_BYTES {
            if is_abandoned() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            out.flush()?;
        }
    }
    out.part(FOOTER, &tree.page_count().to_le_bytes(), crc);
    out.flush()?;
    sync(out.file)
}

fn header(descriptor: &Descriptor, certificate: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12] = descriptor.identity.replica.0;
    bytes[16..48].copy_from_slice(&descriptor.identity.cluster.0);
    bytes[48..56].copy_from_slice(&descriptor.segment.to_le_bytes());
    bytes[56..60].copy_from_slice(&certificate.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// What stands before the pages: descriptor, certificate, and the checksum so far.
type Head = (Descriptor, Claimed<Certificate<Checkpoint>>, u32);

/// Reads a file from front to back and knows where it is.
struct Input {
    file: BufReader<File>,
    offset: u64,
}

impl Input {
    fn damaged(&self, what: &'static str) -> SnapshotError {
        SnapshotError::Damaged { offset: self.offset, what }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        match self.file.read_exact(bytes) {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.damaged("the file ends here")),
            Err(error) => Err(error.into()),
        }
    }

    /// Descriptor, certificate, and the checksum so far.
    fn head(&mut self) -> Result<Head, SnapshotError> {
        let mut head = [0; HEADER_BYTES];
        self.fill(&mut head)?;
        let descriptor = Descriptor {
            identity: Identity { cluster: Digest(array_at(&head, 16)), replica: ReplicaId(head[12]) },
            segment: u64::from_le_bytes(array_at(&head, 48)),
        };
        let length = u32_at(&head, 56);
        let version = u32_at(&head, 8);
        if head[..8] == MAGIC && version != VERSION && crc32c::crc32c(&head[..60]) == u32_at(&head, 60) {
            return Err(SnapshotError::Version(version));
        }
        if head != header(&descriptor, length) || length as usize > CERTIFICATE_BYTES_MAX {
            return Err(SnapshotError::Damaged { offset: 0, what: "the header does not have its checksum" });
        }
        let mut certificate = vec![0; length as usize];
        self.fill(&mut certificate)?;
        let crc = crc32c::crc32c_append(u32_at(&head, 60), &certificate);
        let mut expected = [0; 4];
        self.fill(&mut expected)?;
        let certificate = Claimed::from_bytes(Bytes::from(certificate))
            .ok()
            .filter(|_| crc == u32::from_le_bytes(expected))
            .ok_or_else(|| self.damaged("the certificate does not have its checksum"))?;
        Ok((descriptor, certificate, crc))
    }

    /// One part: number and content.
    fn part(&mut self, crc: &mut u32) -> Result<(u32, Bytes), SnapshotError> {
        let start = self.offset;
        let damaged = |what| SnapshotError::Damaged { offset: start, what };
        let mut head = [0; PAGE_HEADER_BYTES];
        self.fill(&mut head)?;
        let (number, length) = (u32_at(&head, 0), u32_at(&head, 4) as usize);
        if length > PAGE_BYTES_MAX {
            return Err(damaged("a page's length exceeds its bound"));
        }
        let mut content = vec![0; length];
        self.fill(&mut content)?;
        *crc = part_checksum(number, &content, *crc);
        if *crc != u32_at(&head, 8) {
            return Err(damaged("a page does not have its checksum"));
        }
        Ok((number, Bytes::from(content)))
    }

    /// All pages, each handed to `take`, and the footer.
    fn pages(&mut self, mut crc: u32, mut take: impl FnMut(u32, Bytes)) -> Result<(), SnapshotError> {
        let mut count = 0u32;
        let mut last = None;
        loop {
            let (number, content) = self.part(&mut crc)?;
            if number == FOOTER {
                let complete = content == count.to_le_bytes()[..] && self.file.read(&mut [0])? == 0;
                return if complete { Ok(()) } else { Err(self.damaged("the footer does not fit the pages")) };
            }
            if last >= Some(number) || number >= PAGE_NUMBERS {
                return Err(self.damaged("the page has no place here"));
            }
            last = Some(number);
            count += 1;
            take(number, content);
        }
    }
}

fn open(path: &Path, is_expected: impl FnOnce(&Identity) -> bool) -> Result<(Input, Head), SnapshotError> {
    let mut input = Input { file: BufReader::with_capacity(CHUNK_BYTES, File::open(path)?), offset: 0 };
    let head = input.head()?;
    if !is_expected(&head.0.identity) {
        return Err(SnapshotError::Foreign(head.0.identity));
    }
    Ok((input, head))
}

/// Checks every checksum of a file, without keeping the pages.
///
/// # Errors
/// [`SnapshotError`]: why it cannot be used.
pub fn verify(path: &Path, identity: &Identity) -> Result<(), SnapshotError> {
    let (mut input, (_, _, crc)) = open(path, |found| found == identity)?;
    input.pages(crc, |_, _| {})
}

/// Whether a file begins as every snapshot does. One that ends before that could be a piece of one.
///
/// # Errors
/// Those of the file.
pub fn begins_as_one(path: &Path) -> io::Result<bool> {
    let mut beginning = Vec::with_capacity(MAGIC.len());
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut beginning)?;
    Ok(MAGIC.starts_with(&beginning))
}

/// Reads a snapshot and checks its pages against the root in its certificate.
///
/// # Errors
/// [`SnapshotError`]: why it cannot be used.
pub fn read(path: &Path, identity: &Identity) -> Result<(Descriptor, ClaimedSnapshot), SnapshotError> {
    read_if(path, |found| found == identity)
}

/// The same for a snapshot of whichever replica of a cluster.
///
/// # Errors
/// [`SnapshotError`]: why it cannot be used.
pub fn read_of_cluster(path: &Path, cluster: Digest) -> Result<(Descriptor, ClaimedSnapshot), SnapshotError> {
    read_if(path, |found| found.cluster == cluster)
}

fn read_if(
    path: &Path,
    is_expected: impl FnOnce(&Identity) -> bool,
) -> Result<(Descriptor, ClaimedSnapshot), SnapshotError> {
    let (mut input, (descriptor, certificate, crc)) = open(path, is_expected)?;
    let mut tree = Tree::new();
    input.pages(crc, |number, content| tree.load_pages([(number, content)]))?;
    tree.seal();
    let snapshot = ClaimedSnapshot { certificate, tree };
    if snapshot.is_consistent() {
        Ok((descriptor, snapshot))
    } else {
        Err(SnapshotError::Damaged { offset: 0, what: "the pages do not have the root that the certificate names" })
    }
}
