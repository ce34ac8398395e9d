//! The database file as pages in memory: what SQLite reads and writes, and what goes into checkpoints.
//!
//! Pages are shared with the versions of the state that checkpoints keep: a page is copied when SQLite writes it, and
//! never again. The file ends after its last page, so that there is no tail that a digest could cover (prac-F36).

use bezant_core::digest::{Digest, Domain};
use bezant_core::service::PageNumber;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4_096;

/// The most pages: 16 GiB. The service's other pages are for keys and values.
pub(crate) const PAGES_MAX: PageNumber = bezant_core::service::PAGES_MAX / 2;

/// The pages of the keys and values follow those of the tables.
pub(crate) const KV: PageNumber = PAGES_MAX;

/// What lies between the old end of a file and a write beyond it.
static ZERO: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// What a file operation asked for cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PagesError {
    /// Beyond [`PAGES_MAX`].
    TooLarge,
    /// A size that is no multiple of [`PAGE_BYTES`].
    Ragged,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Pages {
    table: Table,
    /// Written, cut off or added since they were taken last.
    dirty: BTreeSet<PageNumber>,
    effects: Effects,
    /// Pages that were written so far, each as often as it was.
    written: u64,
}

/// Pages by number, each of [`PAGE_BYTES`]. A copy shares all of them and costs little: whoever writes a page first
/// copies the part of the table that it is in.
#[derive(Clone, Debug, Default)]
struct Table {
    /// All but the last of [`PART_PAGES`].
    parts: Vec<Arc<Vec<Bytes>>>,
    count: usize,
}

/// Pages in a part of a table: few enough to copy a part for one of them, and a table of 16 GiB has 65,536 parts.
const PART_PAGES: usize = 64;

impl Table {
    fn get(&self, number: usize) -> Option<&Bytes> {
        self.parts.get(number / PART_PAGES)?.get(number % PART_PAGES)
    }

    fn get_mut(&mut self, number: usize) -> Option<&mut Bytes> {
        Arc::make_mut(self.parts.get_mut(number / PART_PAGES)?).get_mut(number % PART_PAGES)
    }

    fn push(&mut self, page: Bytes) {
        if self.count.is_multiple_of(PART_PAGES) {
            self.parts.push(Arc::default());
        }
        self.count += 1;
        Arc::make_mut(self.parts.last_mut().expect("there is room")).push(page);
    }

    fn truncate(&mut self, count: usize) {
        if count >= self.count {
            return;
        }
        self.count = count;
        self.parts.truncate(count.div_ceil(PART_PAGES));
        let rest = count % PART_PAGES;
        if let Some(last) = self.parts.last_mut().filter(|_| rest > 0) {
            Arc::make_mut(last).truncate(rest);
        }
    }
}

/// What changed since it was asked for, as a digest.
#[derive(Clone, Debug, Default)]
struct Effects {
    /// Of what was in `changes` before.
    digest: Digest,
    /// Each a place and what is there now, all of one size.
    changes: Vec<u8>,
}

impl Effects {
    /// Bytes that are digested if one of them is another than before: few enough for an insert to be cheap.
    const PIECE_BYTES: usize = 16;
    /// Bytes that are compared first.
    const BLOCK_BYTES: usize = 512;
    /// Bytes of changes that wait to be digested.
    const CHANGES_BYTES_MAX: usize = 64 << 10;

    /// A page is written.
    fn note(&mut self, number: PageNumber, before: &[u8], after: &[u8]) {
        let blocks = before.chunks_exact(Self::BLOCK_BYTES).zip(after.chunks_exact(Self::BLOCK_BYTES));
        for (block, (before, after)) in (0..).zip(blocks).filter(|(_, (before, after))| before != after) {
            let pieces = before.chunks_exact(Self::PIECE_BYTES).zip(after.chunks_exact(Self::PIECE_BYTES));
            for (piece, (_, after)) in (0..).zip(pieces).filter(|(_, (before, after))| before != after) {
                let at = block * Self::BLOCK_BYTES + piece * Self::PIECE_BYTES;
                self.push(number, at as u32, after);
            }
        }
    }

    /// The file gets another number of pages, but for those that are written.
    fn resize(&mut self, count: PageNumber) {
        self.push(count, u32::MAX, &[0; Self::PIECE_BYTES]);
    }

    fn push(&mut self, number: PageNumber, at: u32, piece: &[u8]) {
        self.changes.extend_from_slice(&number.to_le_bytes());
        self.changes.extend_from_slice(&at.to_le_bytes());
        self.changes.extend_from_slice(piece);
        if self.changes.len() > Self::CHANGES_BYTES_MAX {
            self.digest();
        }
    }

    fn digest(&mut self) {
        if !self.changes.is_empty() {
            self.digest = Digest::of_parts(Domain::Effects, &[&self.changes, &self.digest.0]);
            self.changes.clear();
        }
    }

    fn take(&mut self) -> Digest {
        self.digest();
        std::mem::replace(&mut self.digest, Digest::ZERO)
    }
}

impl Pages {
    /// The same file for somebody else, from which nothing comes back.
    pub(crate) fn copy(&self) -> Self {
        Self { table: self.table.clone(), ..Self::default() }
    }

    /// How many pages were written so far, each as often as it was: so many old ones a copy may keep in memory that was
    /// made before the first of them.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// The file's size, in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        (self.table.count * PAGE_BYTES) as u64
    }

    /// Reads from an offset on as many bytes as there are, fills the rest of `into` with zeros, and says how many
    /// there were.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let within = (at % PAGE_BYTES as u64) as usize;
            let Some(page) = usize::try_from(at / PAGE_BYTES as u64).ok().and_then(|page| self.table.get(page)) else {
                break;
            };
            let length = (PAGE_BYTES - within).min(into.len() - done);
            into[done..done + length].copy_from_slice(&page[within..within + length]);
            done += length;
        }
        into[done..].fill(0);
        done
    }

    /// Writes; the file grows as far as needed, with zeros between its old end and the offset.
    pub(crate) fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), PagesError> {
        let mut done = 0;
        while done < from.len() {
            let at = offset + done as u64;
            let (number, within) = ((at / PAGE_BYTES as u64), (at % PAGE_BYTES as u64) as usize);
            if number >= u64::from(PAGES_MAX) {
                return Err(PagesError::TooLarge);
            }
            let length = (PAGE_BYTES - within).min(from.len() - done);
            self.grow(number as usize + 1);
            self.dirty.insert(number as PageNumber);
            self.written += 1;
            let page = self.table.get_mut(number as usize).expect("the file is long enough");
            let piece = &from[done..done + length];
            let before = page.clone();
            if length == PAGE_BYTES {
                *page = Bytes::copy_from_slice(piece);
            } else {
                let mut whole = page.to_vec();
                whole[within..within + length].copy_from_slice(piece);
                *page = whole.into();
            }
            self.effects.note(number as PageNumber, &before, page);
            done += length;
        }
        Ok(())
    }

    fn grow(&mut self, count: usize) {
        while self.table.count < count {
            self.dirty.insert(self.table.count as PageNumber);
            self.table.push(Bytes::from_static(&ZERO));
        }
    }

    /// Cuts the file, or makes it longer with zeros.
    pub(crate) fn truncate(&mut self, bytes: u64) -> Result<(), PagesError> {
        if !bytes.is_multiple_of(PAGE_BYTES as u64) {
            return Err(PagesError::Ragged);
        }
        let count = bytes / PAGE_BYTES as u64;
        if count > u64::from(PAGES_MAX) {
            return Err(PagesError::TooLarge);
        }
        if count != self.table.count as u64 {
            self.effects.resize(count as PageNumber);
        }
        self.grow(count as usize);
        self.dirty.extend(count as PageNumber..self.table.count as PageNumber);
        self.written += self.table.count as u64 - count;
        self.table.truncate(count as usize);
        Ok(())
    }

    /// Hands over every page that changed since the last time; `None`: it was cut off.
    pub(crate) fn take_dirty(&mut self, mut write: impl FnMut(PageNumber, Option<Bytes>)) {
        for number in std::mem::take(&mut self.dirty) {
            write(number, self.table.get(number as usize).cloned());
        }
    }

    /// A digest of all changes since the last time; zero if there was none.
    pub(crate) fn take_effects(&mut self) -> Digest {
        self.effects.take()
    }

    /// Replaces pages, as others had them. Says whether the result is a file: no holes, no odd sizes.
    pub(crate) fn install(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> bool {
        assert!(self.dirty.is_empty(), "everything is saved before pages are loaded");
        let (mut added, mut removed) = (BTreeMap::new(), BTreeSet::new());
        for (number, page) in pages {
            match page {
                Some(page) if page.len() == PAGE_BYTES && number < PAGES_MAX => {
                    match self.table.get_mut(number as usize) {
                        Some(place) => *place = page,
                        None => _ = added.insert(number, page),
                    }
                }
                Some(_) => return false,
                None => _ = removed.insert(number),
            }
        }
        for (number, page) in added {
            if number as usize != self.table.count {
                return false;
            }
            self.table.push(page);
        }
        let keep = removed.first().map_or(self.table.count, |&first| first as usize);
        let cut = keep..self.table.count;
        let whole = removed.iter().map(|&number| number as usize).eq(cut);
        self.table.truncate(keep);
        whole
    }

    /// Whether there is no page.
    pub(crate) const fn is_empty(&self) -> bool {
        self.table.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Pages {
        fn all(&self) -> Vec<Bytes> {
            (0..self.table.count).map(|number| self.table.get(number).unwrap().clone()).collect()
        }
    }

    fn dirty(pages: &mut Pages) -> Vec<(PageNumber, Option<u8>)> {
        let mut all = Vec::new();
        pages.take_dirty(|number, page| all.push((number, page.map(|page| page[0]))));
        all
    }

    #[test]
    fn what_is_written_is_read_and_reported_once() {
        let mut pages = Pages::default();
        pages.write(0, &[1; PAGE_BYTES]).unwrap();
        pages.write(2 * PAGE_BYTES as u64, &[3; PAGE_BYTES]).unwrap();
        assert_eq!(pages.bytes(), 3 * PAGE_BYTES as u64);
        assert_eq!(dirty(&mut pages), [(0, Some(1)), (1, Some(0)), (2, Some(3))]);
        assert_eq!(dirty(&mut pages), []);
        pages.write(PAGE_BYTES as u64 - 1, &[7, 8]).unwrap();
        let mut four = [0; 4];
        assert_eq!(pages.read(PAGE_BYTES as u64 - 2, &mut four), 4);
        assert_eq!(four, [1, 7, 8, 0]);
        assert_eq!(dirty(&mut pages), [(0, Some(1)), (1, Some(8))]);
    }

    /// prac-F36: what is cut off is gone, and zeros come back in its place.
    #[test]
    fn f36_a_tail_that_was_cut_off_leaves_nothing_behind() {
        let mut pages = Pages::default();
        pages.write(0, &[9; 3 * PAGE_BYTES]).unwrap();
        _ = dirty(&mut pages);
        pages.truncate(PAGE_BYTES as u64).unwrap();
        assert_eq!(pages.bytes(), PAGE_BYTES as u64);
        assert_eq!(dirty(&mut pages), [(1, None), (2, None)]);
        let mut read = [5; 8];
        assert_eq!(pages.read(PAGE_BYTES as u64, &mut read), 0);
        assert_eq!(read, [0; 8]);
        pages.truncate(2 * PAGE_BYTES as u64).unwrap();
        assert_eq!(dirty(&mut pages), [(1, Some(0))]);
        assert_eq!(pages.truncate(5), Err(PagesError::Ragged));
        assert_eq!(pages.write(u64::from(PAGES_MAX) * PAGE_BYTES as u64, &[1]), Err(PagesError::TooLarge));
    }

    /// Neither sees what the other one writes or cuts off, within a part of the table and beyond.
    #[test]
    fn a_copy_shares_pages_and_no_changes() {
        let count = 2 * PART_PAGES + 3;
        let mut pages = Pages::default();
        pages.truncate((count * PAGE_BYTES) as u64).unwrap();
        let mut copy = pages.copy();
        let before = pages.all();
        for number in [0, PART_PAGES - 1, PART_PAGES, count - 1, count] {
            pages.write((number * PAGE_BYTES) as u64, &[1]).unwrap();
        }
        assert_eq!(copy.all(), before);
        let after = pages.all();
        for cut in [count - 1, 2 * PART_PAGES, PART_PAGES + 1, 0] {
            copy.truncate((cut * PAGE_BYTES) as u64).unwrap();
            assert_eq!((copy.all(), pages.all() == after), (before[..cut].to_vec(), true));
        }
        copy.write(0, &[2]).unwrap();
        assert_eq!((pages.all() == after, pages.written(), copy.written()), (true, 5, count as u64 + 1));
    }

    #[test]
    fn only_files_are_installed() {
        let page = |byte: u8| Some(Bytes::from(vec![byte; PAGE_BYTES]));
        let mut pages = Pages::default();
        assert!(pages.install(&mut [(1, page(2)), (0, page(1))].into_iter()));
        assert!(pages.install(&mut [(1, None)].into_iter()));
        assert_eq!(pages.bytes(), PAGE_BYTES as u64);
        assert!(!pages.copy().install(&mut [(5, page(1))].into_iter()), "a hole");
        assert!(!pages.copy().install(&mut [(0, Some(Bytes::from_static(b"short")))].into_iter()), "a short page");
        assert!(pages.install(&mut [(1, page(2)), (2, page(3))].into_iter()));
        assert!(!pages.copy().install(&mut [(1, None)].into_iter()), "a hole in the middle");
    }

    /// Numbers that look random and are the same every time (xorshift).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % bound as u64) as usize
        }
    }

    /// Against a file that is one vector, with whatever offsets and lengths. What was reported as changed is enough to
    /// bring a copy that was taken at any earlier moment to the present state.
    #[test]
    fn any_writes_and_cuts_are_those_of_a_plain_file_and_a_copy_can_follow() {
        for seed in 1..=60 {
            let mut random = Random(seed);
            let (mut pages, mut copy, mut plain) = (Pages::default(), Pages::default(), Vec::new());
            for step in 0..60 {
                let at = random.below(6 * PAGE_BYTES);
                match random.below(5) {
                    0 => {
                        let count = random.below(6);
                        pages.truncate((count * PAGE_BYTES) as u64).unwrap();
                        plain.resize(count * PAGE_BYTES, 0);
                    }
                    1 => {
                        let mut read = vec![9; random.below(3 * PAGE_BYTES)];
                        let there = plain.get(at..).unwrap_or_default();
                        let there = &there[..there.len().min(read.len())];
                        assert_eq!(pages.read(at as u64, &mut read), there.len());
                        assert!(read.starts_with(there) && read[there.len()..].iter().all(|byte| *byte == 0));
                    }
                    2 => {
                        let mut changes = Vec::new();
                        pages.take_dirty(|number, page| changes.push((number, page)));
                        // What came and went is no difference between two versions.
                        changes.retain(|(number, page)| page.is_some() || (*number as usize) < copy.table.count);
                        assert!(copy.install(&mut changes.into_iter()), "seed {seed}, step {step}");
                        assert_eq!(copy.all(), pages.all());
                    }
                    _ => {
                        let written = vec![random.below(256) as u8; random.below(3 * PAGE_BYTES)];
                        pages.write(at as u64, &written).unwrap();
                        if !written.is_empty() {
                            let end = (at + written.len()).max(plain.len());
                            plain.resize(end.next_multiple_of(PAGE_BYTES), 0);
                            plain[at..at + written.len()].copy_from_slice(&written);
                        }
                    }
                }
                assert_eq!(pages.bytes(), plain.len() as u64, "seed {seed}, step {step}");
            }
        }
    }

    /// Whatever pages come from others: either the result is a file as they say, or they are refused, and nothing else.
    #[test]
    fn whatever_is_installed_is_a_file_or_refused() {
        for seed in 1..=2_000 {
            let mut random = Random(seed);
            let mut pages = Pages::default();
            pages.truncate((random.below(5) * PAGE_BYTES) as u64).unwrap();
            pages.take_dirty(|_, _| ());
            let mut expected: BTreeMap<PageNumber, Bytes> = (0..).zip(pages.all()).collect();
            let mut changes = BTreeMap::new();
            for _ in 0..random.below(6) {
                let number = if random.below(20) == 0 { PageNumber::MAX } else { random.below(8) as PageNumber };
                let page = match random.below(8) {
                    0 => Some(Bytes::from_static(b"short")),
                    1..=3 => None,
                    _ => Some(Bytes::from(vec![seed as u8; PAGE_BYTES])),
                };
                changes.insert(number, page);
            }
            let mut sound = true;
            for (number, page) in &changes {
                match page {
                    Some(page) => {
                        sound &= page.len() == PAGE_BYTES && *number < PAGES_MAX;
                        expected.insert(*number, page.clone());
                    }
                    // Nobody says that a page is gone that was not there.
                    None => sound &= expected.remove(number).is_some(),
                }
            }
            sound &= expected.keys().copied().eq(0..expected.len() as PageNumber);
            assert_eq!(pages.install(&mut changes.into_iter()), sound, "seed {seed}");
            if sound {
                assert!(pages.all().iter().eq(expected.values()), "seed {seed}");
            }
        }
    }
}
