//! One version of all pages: a persistent radix tree with a digest at every node.
//!
//! Pages hang below four levels of 64-way nodes, so every page number below 2²⁴ has one place. Versions share
//! what they have in common: a clone costs nothing, a write copies the four nodes above the page, and
//! [`Tree::seal`] hashes again only what lies above a page that was written.
//!
//! | of | digest |
//! |---|---|
//! | a page | `H(Page, number as u32 LE ‖ content)` |
//! | a node | `H(Node, which children there are as u64 LE ‖ their digests)`: most nodes have few |
//! | no page at all | [`Digest::ZERO`] |
//!
//! A page's digest covers its number. So a digest belongs to one place in the tree, and equal digests at any level
//! mean that everything below is equal.

use crate::digest::{Digest, Domain};
use crate::service::{PAGE_BYTES_MAX, PageNumber};
use crate::wire::{Reader, Sink, Wire, WireError};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// Levels of nodes above the pages. The root is level 0; nodes of level 3 hold pages.
pub const LEVELS: u32 = 4;

/// Children of a node.
pub const NODE_CHILDREN: usize = 64;

/// Bits of a page number that one level decides.
const LEVEL_BITS: u32 = NODE_CHILDREN.trailing_zeros();

/// Page numbers that have a place.
const NUMBERS: u32 = 1 << (LEVEL_BITS * LEVELS);

/// How far a page number is shifted right to find its child in a node of this level.
const fn shift(level: u32) -> u32 {
    LEVEL_BITS * (LEVELS - 1 - level)
}

/// Which child of a node of this level leads to the page.
const fn slot(number: PageNumber, level: u32) -> u32 {
    (number >> shift(level)) % NODE_CHILDREN as u32
}

/// The set bits of a bitmap, lowest first.
fn slots(mut bitmap: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let lowest = bitmap.trailing_zeros();
        bitmap &= bitmap.wrapping_sub(1);
        (lowest < u64::BITS).then_some(lowest)
    })
}

/// The place of a node in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId {
    /// 0 is the root, below [`LEVELS`].
    level: u8,
    /// Its number among the 64^level nodes of its level.
    index: u32,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}.{}", self.level, self.index)
    }
}

/// What hangs below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildId {
    /// A node of the next level.
    Node(NodeId),
    /// A page, below a node of the last level.
    Page(PageNumber),
}

impl NodeId {
    /// The root.
    pub const ROOT: Self = Self { level: 0, index: 0 };

    /// The level: 0 is the root, [`LEVELS`] − 1 holds pages.
    pub const fn level(self) -> u32 {
        self.level as u32
    }

    /// The place of a child, `slot` below [`NODE_CHILDREN`].
    pub const fn child(self, slot: u32) -> ChildId {
        assert!(slot < NODE_CHILDREN as u32, "a node has 64 children");
        let index = (self.index << LEVEL_BITS) | slot;
        if self.level() + 1 == LEVELS {
            ChildId::Page(index)
        } else {
            ChildId::Node(Self { level: self.level + 1, index })
        }
    }

    /// The lowest page number below this node.
    const fn first(self) -> PageNumber {
        self.index << (LEVEL_BITS * (LEVELS - self.level()))
    }
}

impl Wire for NodeId {
    fn encode(&self, out: &mut impl Sink) {
        self.level.encode(out);
        self.index.encode(out);
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let node = Self { level: Wire::decode(reader)?, index: Wire::decode(reader)? };
        if node.level() >= LEVELS || u64::from(node.index) >> (LEVEL_BITS * node.level()) != 0 {
            return Err(WireError::NotCanonical);
        }
        Ok(node)
    }
}

/// The digests of a node's children: what a transfer sends of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeContent {
    /// Bit i is set if there is a child i.
    present: u64,
    /// The digests of those children, lowest first.
    children: Vec<Digest>,
}

impl NodeContent {
    /// The content of a node that is not there.
    pub const EMPTY: Self = Self { present: 0, children: Vec::new() };

    /// The digest of child `slot`, if there is such a child.
    pub fn child(&self, slot: u32) -> Option<Digest> {
        let below = self.present.checked_shr(slot)? & 1;
        (below == 1).then(|| self.children[position(self.present, slot)])
    }

    /// The digest that a node with these children has.
    pub fn digest(&self) -> Digest {
        Digest::of(Domain::Node, &self.to_bytes())
    }
}

impl Wire for NodeContent {
    fn encode(&self, out: &mut impl Sink) {
        self.present.encode(out);
        for child in &self.children {
            child.encode(out);
        }
    }
    fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let present = u64::decode(reader)?;
        let mut children = Vec::with_capacity(present.count_ones() as usize);
        for _ in 0..present.count_ones() {
            let child = Digest::decode(reader)?;
            if child == Digest::ZERO {
                return Err(WireError::NotCanonical);
            }
            children.push(child);
        }
        Ok(Self { present, children })
    }
}

/// The digest of a page. The content comes first, so that the hash works on many chunks of it side by side.
pub fn page_digest(number: PageNumber, content: &[u8]) -> Digest {
    Digest::of_parts(Domain::Page, &[content, &number.to_le_bytes()])
}

/// Where child `slot` stands among the children present.
const fn position(present: u64, slot: u32) -> usize {
    (present & ((1 << slot) - 1)).count_ones() as usize
}

/// A child, with its digest unless something below it was written since the last seal.
#[derive(Clone, Debug)]
enum Child {
    Node(Arc<Node>),
    Page { content: Bytes, digest: Option<Digest> },
}

/// An inner node. Never without children.
#[derive(Clone, Debug, Default)]
struct Node {
    digest: Option<Digest>,
    present: u64,
    children: Vec<Child>,
}

impl Node {
    fn child(&self, slot: u32) -> Option<&Child> {
        (self.present >> slot & 1 == 1).then(|| &self.children[position(self.present, slot)])
    }

    /// Writes a page below this node.
    fn set(&mut self, level: u32, number: PageNumber, content: Option<Bytes>) {
        self.digest = None;
        let slot = slot(number, level);
        let at = position(self.present, slot);
        let present = self.present >> slot & 1 == 1;
        if level + 1 < LEVELS {
            if !present {
                self.insert(slot, Child::Node(Arc::default()));
            }
            let Child::Node(node) = &mut self.children[at] else { unreachable!("pages are below the last level") };
            let node = Arc::make_mut(node);
            node.set(level + 1, number, content);
            if node.present == 0 {
                self.remove(slot);
            }
            return;
        }
        match content {
            Some(content) if present => self.children[at] = Child::Page { content, digest: None },
            Some(content) => self.insert(slot, Child::Page { content, digest: None }),
            None => self.remove(slot),
        }
    }

    fn insert(&mut self, slot: u32, child: Child) {
        assert!(self.present >> slot & 1 == 0, "a place holds one child");
        self.children.insert(position(self.present, slot), child);
        self.present |= 1 << slot;
    }

    fn remove(&mut self, slot: u32) {
        assert!(self.present >> slot & 1 == 1, "what is removed is there");
        self.children.remove(position(self.present, slot));
        self.present &= !(1 << slot);
    }

    /// Hashes what was written. `first` is the lowest page number below this node.
    fn seal(&mut self, level: u32, first: PageNumber) {
        if self.digest.is_some() {
            return;
        }
        for (slot, child) in slots(self.present).zip(&mut self.children) {
            let number = first | slot << shift(level);
            match child {
                Child::Node(node) if node.digest.is_none() => Arc::make_mut(node).seal(level + 1, number),
                Child::Page { content, digest: digest @ None } => *digest = Some(page_digest(number, content)),
                Child::Node(_) | Child::Page { .. } => {}
            }
        }
        debug_assert_eq!(self.present.count_ones() as usize, self.children.len(), "each child has its bit");
        self.digest = Some(self.content().digest());
    }

    /// The digests of the children, all of them sealed.
    fn content(&self) -> NodeContent {
        let children = self.children.iter().map(|child| child.digest().expect("the tree is sealed")).collect();
        NodeContent { present: self.present, children }
    }
}

impl Child {
    fn digest(&self) -> Option<Digest> {
        match self {
            Self::Node(node) => node.digest,
            Self::Page { digest, .. } => *digest,
        }
    }

    /// Whether both are known to be equal without looking below.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Node(mine), Self::Node(theirs)) => {
                Arc::ptr_eq(mine, theirs) || (mine.digest.is_some() && mine.digest == theirs.digest)
            }
            (Self::Page { digest: Some(mine), .. }, Self::Page { digest: Some(theirs), .. }) => mine == theirs,
            (Self::Page { content: mine, .. }, Self::Page { content: theirs, .. }) => mine == theirs,
            _ => false,
        }
    }
}

/// One version of all pages. See the module's description.
#[derive(Clone, Default)]
pub struct Tree {
    /// `None` if there is no page.
    root: Option<Arc<Node>>,
    pages: u32,
    bytes: u64,
}

/// Its size stands for its pages.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { root: _, pages, bytes } = self;
        f.debug_struct("Tree").field("pages", pages).field("bytes", bytes).finish_non_exhaustive()
    }
}

impl Tree {
    /// A tree without pages.
    pub fn new() -> Self {
        Self::default()
    }

    /// The content of a page.
    pub fn get(&self, number: PageNumber) -> Option<&Bytes> {
        let mut node = self.root.as_ref().filter(|_| number < NUMBERS)?;
        for level in 0..LEVELS {
            match node.child(slot(number, level))? {
                Child::Node(below) => node = below,
                Child::Page { content, .. } => return Some(content),
            }
        }
        None
    }

    /// Writes a page, or removes it. Writing what is there already changes nothing.
    ///
    /// # Panics
    /// If the number is not below 2²⁴ or the content larger than [`PAGE_BYTES_MAX`]: services may save neither.
    pub fn set(&mut self, number: PageNumber, content: Option<Bytes>) {
        assert!(number < NUMBERS, "page number {number} has no place");
        let old = self.get(number);
        if old == content.as_ref() {
            return;
        }
        if let Some(old_bytes) = old.map(Bytes::len) {
            self.pages -= 1;
            self.bytes -= old_bytes as u64;
        }
        if let Some(content) = &content {
            assert!(content.len() <= PAGE_BYTES_MAX, "page {number} has {} bytes", content.len());
            self.pages += 1;
            self.bytes += content.len() as u64;
        }
        let root = Arc::make_mut(self.root.get_or_insert_default());
        root.set(0, number, content);
        if root.present == 0 {
            self.root = None;
        }
        assert_eq!(self.root.is_some(), self.pages > 0, "there are nodes where there are pages");
        assert!(self.bytes <= u64::from(self.pages) * PAGE_BYTES_MAX as u64, "each page keeps to its bound");
    }

    /// Writes many pages.
    pub fn load_pages(&mut self, pages: impl IntoIterator<Item = (PageNumber, Bytes)>) {
        for (number, content) in pages {
            self.set(number, Some(content));
        }
    }

    /// Brings the digests up to date. Costs one hash for each page written since the last time and for each node
    /// above one.
    pub fn seal(&mut self) {
        if let Some(root) = &mut self.root
            && root.digest.is_none()
        {
            Arc::make_mut(root).seal(0, 0);
        }
    }

    /// The digest of everything; [`Digest::ZERO`] if there is no page.
    ///
    /// # Panics
    /// If something was written since the last [`Tree::seal`].
    pub fn root(&self) -> Digest {
        self.root.as_ref().map_or(Digest::ZERO, |root| root.digest.expect("the tree is sealed"))
    }

    fn find(&self, id: NodeId) -> Option<&Node> {
        let mut node = self.root.as_deref()?;
        for level in 0..id.level() {
            let Child::Node(below) = node.child(slot(id.first(), level))? else { return None };
            node = below;
        }
        Some(node)
    }

    /// The children's digests of a node, `None` if there is no page below it.
    ///
    /// # Panics
    /// If something below it was written since the last [`Tree::seal`].
    pub fn node(&self, id: NodeId) -> Option<NodeContent> {
        self.find(id).map(Node::content)
    }

    /// Every page, in the order of the numbers.
    pub fn iter(&self) -> Pages<'_> {
        self.below(NodeId::ROOT)
    }

    /// Every page below a node, in the order of the numbers.
    pub fn below(&self, id: NodeId) -> Pages<'_> {
        Pages { stack: self.find(id).map(|node| Place { node, id, next: 0 }).into_iter().collect() }
    }

    /// Pages.
    pub const fn page_count(&self) -> u32 {
        self.pages
    }

    /// Bytes of all pages together.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The pages in which this version differs from an older one, in the order of their numbers, with the content
    /// that they have here (`None`: there only). What both versions share is not looked at.
    pub fn changed(&self, older: &Self) -> Vec<(PageNumber, Option<Bytes>)> {
        let mut changes = Vec::new();
        let root = |tree: &Self| tree.root.clone().map(Child::Node);
        compare(root(self).as_ref(), root(older).as_ref(), ChildId::Node(NodeId::ROOT), &mut changes);
        changes
    }
}

/// Appends to `changes` every page at or below `id` that is not the same in both versions.
fn compare(new: Option<&Child>, old: Option<&Child>, id: ChildId, changes: &mut Vec<(PageNumber, Option<Bytes>)>) {
    if let (Some(new), Some(old)) = (new, old)
        && new.is_same(old)
    {
        return;
    }
    match id {
        ChildId::Page(number) => {
            let content = new.and_then(|child| match child {
                Child::Page { content, .. } => Some(content.clone()),
                Child::Node(_) => None,
            });
            changes.push((number, content));
        }
        ChildId::Node(id) => {
            let node = |child: Option<&Child>| match child {
                Some(Child::Node(node)) => node.clone(),
                _ => Arc::default(),
            };
            let (new, old) = (node(new), node(old));
            for slot in slots(new.present | old.present) {
                compare(new.child(slot), old.child(slot), id.child(slot), changes);
            }
        }
    }
}

impl<'a> IntoIterator for &'a Tree {
    type Item = (PageNumber, &'a Bytes);
    type IntoIter = Pages<'a>;
    fn into_iter(self) -> Pages<'a> {
        self.iter()
    }
}

/// Walks over pages in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Pages<'a> {
    /// The nodes above the next page, the root first.
    stack: Vec<Place<'a>>,
}

/// A node that is being walked over, and the child that comes next.
#[derive(Clone, Debug)]
struct Place<'a> {
    node: &'a Node,
    id: NodeId,
    next: u32,
}

impl<'a> Iterator for Pages<'a> {
    type Item = (PageNumber, &'a Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let place = self.stack.last_mut()?;
            let rest = place.node.present & u64::MAX.checked_shl(place.next).unwrap_or(0);
            let Some(slot) = slots(rest).next() else {
                self.stack.pop();
                continue;
            };
            place.next = slot + 1;
            match (place.node.child(slot)?, place.id.child(slot)) {
                (Child::Page { content, .. }, ChildId::Page(number)) => return Some((number, content)),
                (Child::Node(node), ChildId::Node(id)) => self.stack.push(Place { node, id, next: 0 }),
                _ => unreachable!("pages are below the last level, and only there"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::string::ToString;
    use alloc::vec;
    use proptest::prelude::*;

    type Model = BTreeMap<PageNumber, Bytes>;

    /// The root by the definition, with nothing incremental about it.
    fn naive(pages: &Model) -> Digest {
        let mut level: BTreeMap<u32, Digest> =
            pages.iter().map(|(&number, content)| (number, page_digest(number, content))).collect();
        for _ in 0..LEVELS {
            let mut above: BTreeMap<u32, (u64, Vec<u8>)> = BTreeMap::new();
            for (number, digest) in level {
                let (present, digests) = above.entry(number / 64).or_default();
                *present |= 1 << (number % 64);
                digests.extend(digest.0);
            }
            let digest = |(present, digests): (u64, Vec<u8>)| {
                Digest::of_parts(Domain::Node, &[&present.to_le_bytes(), &digests])
            };
            level = above.into_iter().map(|(index, node)| (index, digest(node))).collect();
        }
        level.get(&0).copied().unwrap_or(Digest::ZERO)
    }

    fn differences(new: &Model, old: &Model) -> Vec<(PageNumber, Option<Bytes>)> {
        let numbers: alloc::collections::BTreeSet<_> = new.keys().chain(old.keys()).copied().collect();
        let differ = numbers.into_iter().filter(|number| new.get(number) != old.get(number));
        differ.map(|number| (number, new.get(&number).cloned())).collect()
    }

    fn page_number() -> impl Strategy<Value = PageNumber> {
        // Near one another, so that nodes fill and empty; and anywhere.
        prop_oneof![0u32..8, 60u32..70, 4090u32..4100, 0..NUMBERS, Just(NUMBERS - 1)]
    }

    fn write() -> impl Strategy<Value = (PageNumber, Option<Bytes>)> {
        let content = proptest::option::weighted(0.7, proptest::collection::vec(0u8..3, 0..4).prop_map(Bytes::from));
        (page_number(), content)
    }

    proptest! {
        #[test]
        fn behaves_like_a_map_and_hashes_as_defined(
            rounds in proptest::collection::vec(proptest::collection::vec(write(), 0..20), 1..6)
        ) {
            let (mut tree, mut model) = (Tree::new(), Model::new());
            let mut versions = vec![(tree.clone(), model.clone())];
            for writes in rounds {
                for (number, content) in writes {
                    tree.set(number, content.clone());
                    match content {
                        Some(content) => model.insert(number, content),
                        None => model.remove(&number),
                    };
                    prop_assert_eq!(tree.get(number), model.get(&number));
                }
                tree.seal();
                versions.push((tree.clone(), model.clone()));
            }
            for (tree, model) in &versions {
                prop_assert_eq!(tree.root(), naive(model));
                prop_assert_eq!(tree.page_count() as usize, model.len());
                prop_assert_eq!(tree.bytes(), model.values().map(|content| content.len() as u64).sum::<u64>());
                prop_assert!(tree.iter().eq(model.iter().map(|(&number, content)| (number, content))));
                for (older, older_model) in &versions {
                    prop_assert_eq!(tree.changed(older), differences(model, older_model));
                }
                let mut rebuilt = Tree::new();
                rebuilt.load_pages(model.clone());
                prop_assert_eq!(rebuilt.changed(tree), vec![], "differences are found without digests too");
                rebuilt.seal();
                prop_assert_eq!(rebuilt.root(), tree.root());
            }
        }

        #[test]
        fn nodes_travel(number in page_number()) {
            let mut tree = Tree::new();
            tree.set(number, Some(Bytes::from_static(b"x")));
            tree.seal();
            let (mut id, mut expected) = (NodeId::ROOT, tree.root());
            loop {
                prop_assert_eq!(NodeId::from_bytes(id.to_bytes().into()), Ok(id));
                let content = tree.node(id).unwrap();
                prop_assert_eq!(NodeContent::from_bytes(content.to_bytes().into()), Ok(content.clone()));
                prop_assert_eq!(content.digest(), expected);
                let slot = slot(number, id.level());
                expected = content.child(slot).unwrap();
                match id.child(slot) {
                    ChildId::Node(below) => id = below,
                    ChildId::Page(found) => {
                        prop_assert_eq!(found, number);
                        prop_assert_eq!(expected, page_digest(number, b"x"));
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn the_root_of_known_pages_never_changes() {
        let mut tree = Tree::new();
        tree.load_pages([
            (0, Bytes::from_static(b"zero")),
            (65, Bytes::new()),
            (NUMBERS - 1, Bytes::from_static(b"z")),
        ]);
        tree.seal();
        assert_eq!(tree.root().to_string(), "f162b9723d4f7dbd153d7e4e50f2276b4183bc43d7879f4b0599c4d21e96f7e3");
    }

    #[test]
    fn a_write_copies_one_path_and_shares_the_rest() {
        let mut tree = Tree::new();
        tree.load_pages((0..NUMBERS).step_by(4096).map(|number| (number, Bytes::from_static(b"page"))));
        tree.seal();
        let older = tree.clone();
        assert!(Arc::ptr_eq(tree.root.as_ref().unwrap(), older.root.as_ref().unwrap()), "a clone shares all");
        tree.set(5, Some(Bytes::from_static(b"new")));
        tree.set(4096, Some(Bytes::from_static(b"page")));
        tree.set(7, None);
        let children = |tree: &Tree| tree.root.as_ref().unwrap().children.clone();
        let shared = children(&tree).iter().zip(&children(&older)).filter(|(new, old)| new.is_same(old)).count();
        assert_eq!(shared, 63, "writing what is there, or removing what is not, copies nothing");
        assert_eq!(older.get(5), None);
    }

    #[test]
    fn a_node_id_outside_the_tree_is_refused() {
        for (level, index) in [(0, 1), (1, 64), (3, 1 << 18), (4, 0), (255, 0)] {
            let bytes = NodeId { level, index }.to_bytes();
            assert_eq!(NodeId::from_bytes(bytes.into()), Err(WireError::NotCanonical), "{level} {index}");
        }
    }

    #[test]
    #[should_panic(expected = "the tree is sealed")]
    fn an_unsealed_tree_has_no_root() {
        let mut tree = Tree::new();
        tree.set(1, Some(Bytes::new()));
        let _ = tree.root();
    }
}
