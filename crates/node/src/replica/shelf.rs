//! The checkpoints that a replica shows to whoever asks at its admin port.
//!
//! The replica's loop puts them here; a version shares its pages with the state, so that one here costs the pages
//! written since. A version that is being read stays for a while, so that a slow reader comes to an end.

use bezant_core::checkpoint::transfer::{TransferMessage, serve};
use bezant_core::checkpoint::{Checkpoint, Evidence, Snapshot, Tree};
use bezant_core::digest::Digest;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Checkpoints of each kind that are kept.
const KEPT: usize = 4;
/// Those that are kept besides, because they are being read.
const PINNED_MAX: usize = 2;
/// How long after it was last read a version counts as being read.
const PIN_TIME: Duration = Duration::from_secs(10);

/// A checkpoint without its pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What it is, and why: with the signatures that this replica has for it, unless the replica merely has it.
    pub evidence: Evidence,
    /// How many pages.
    pub pages: u32,
    /// Bytes of the pages together.
    pub bytes: u64,
}

impl From<&Snapshot> for Shown {
    fn from(Snapshot { evidence, tree }: &Snapshot) -> Self {
        Self { evidence: evidence.clone(), pages: tree.page_count(), bytes: tree.bytes() }
    }
}

#[derive(Debug)]
struct Place {
    snapshot: Snapshot,
    read: Option<Instant>,
}

impl Place {
    fn is_being_read(&self) -> bool {
        self.read.is_some_and(|at| at.elapsed() < PIN_TIME)
    }
}

/// Oldest first.
#[derive(Debug, Default)]
struct Row(VecDeque<Place>);

impl Row {
    fn put(&mut self, snapshot: Snapshot) {
        self.0.push_back(Place { snapshot, read: None });
        let old = |row: &Self| row.0.len().saturating_sub(KEPT);
        while let Some(idle) = self.0.range(..old(self)).position(|place| !place.is_being_read()) {
            self.0.remove(idle);
        }
        while old(self) > PINNED_MAX {
            self.0.pop_front();
        }
    }

    fn shown(&self) -> Vec<Shown> {
        self.0.iter().map(|place| Shown::from(&place.snapshot)).collect()
    }
}

#[derive(Debug, Default)]
struct Rows {
    certain: Row,
    own: Row,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Shelf(Mutex<Rows>);

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a checkpoint that is certain.
    pub fn put_certain(&self, snapshot: Snapshot) {
        self.lock().certain.put(snapshot);
    }

    /// Takes what the replica has at its newest checkpoint, unless it is here.
    pub fn put_own(&self, snapshot: Snapshot) {
        let mut rows = self.lock();
        let newest = rows.own.0.back().map(|place| place.snapshot.evidence.checkpoint());
        if newest != Some(snapshot.evidence.checkpoint()) {
            rows.own.put(snapshot);
        }
    }

    /// The newest checkpoint that is certain.
    pub fn newest_certain(&self) -> Option<Checkpoint> {
        self.lock().certain.0.back().map(|place| *place.snapshot.evidence.checkpoint())
    }

    /// The checkpoints that are certain, oldest first.
    pub fn certain(&self) -> Vec<Shown> {
        self.lock().certain.shown()
    }

    /// What the replica had at its last checkpoints, oldest first, certain or not.
    pub fn own(&self) -> Vec<Shown> {
        self.lock().own.shown()
    }

    /// The answer to a request for a piece of a version; `None` if it is no request, or asks for what is not in it.
    pub fn serve(&self, message: &TransferMessage) -> Option<TransferMessage> {
        let mut tree = None;
        if let TransferMessage::FetchNode { version, .. } | TransferMessage::FetchPage { version, .. } = message {
            tree = self.tree(*version);
        }
        serve(message, |_| tree.as_ref())
    }

    fn tree(&self, root: Digest) -> Option<Tree> {
        let mut rows = self.lock();
        let Rows { certain, own } = &mut *rows;
        let place =
            certain.0.iter_mut().chain(&mut own.0).find(|place| place.snapshot.evidence.checkpoint().root == root)?;
        place.read = Some(Instant::now());
        Some(place.snapshot.tree.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bezant_core::checkpoint::NodeId;
    use bezant_core::ids::{InstanceId, Sequence};
    use bytes::Bytes;

    fn snapshot(sequence: u64) -> Snapshot {
        let mut tree = Tree::new();
        tree.set(0, Some(Bytes::from(sequence.to_le_bytes().to_vec())));
        tree.seal();
        let (instance, ruled, root) = (InstanceId(1), Sequence(0), tree.root());
        let checkpoint = Checkpoint { instance, sequence: Sequence(sequence), ruled, root };
        Snapshot { evidence: Evidence::Own(checkpoint), tree }
    }

    fn ask(shelf: &Shelf, sequence: u64) -> bool {
        let version = snapshot(sequence).tree.root();
        let answer = shelf.serve(&TransferMessage::FetchNode { version, node: NodeId::ROOT });
        matches!(answer, Some(TransferMessage::Node { .. }))
    }

    #[test]
    fn what_is_read_stays_but_not_without_bound() {
        let shelf = Shelf::default();
        for sequence in 1..=3 {
            shelf.put_certain(snapshot(sequence));
        }
        assert!((1..=3).all(|sequence| ask(&shelf, sequence)));
        for sequence in 4..=20 {
            shelf.put_certain(snapshot(sequence));
        }
        assert_eq!(shelf.certain().len(), KEPT + PINNED_MAX);
        assert!(!ask(&shelf, 1), "the oldest had to go");
        assert!(ask(&shelf, 2) && ask(&shelf, 3) && ask(&shelf, 17) && ask(&shelf, 20));
        assert!(!ask(&shelf, 16));
        shelf.put_own(snapshot(20));
        shelf.put_own(snapshot(20));
        assert_eq!(shelf.own().len(), 1);
    }
}
