//! Transfers among honest and lying senders over a network with latency.

use super::*;
use crate::ids::{InstanceId, Sequence};
use crate::service::PAGE_BYTES_MAX;
use crate::wire::{Wire, WireError};
use alloc::vec;
use proptest::prelude::*;

const PATIENCE: Duration = Duration::from_millis(1_000);
const ME: ReplicaId = ReplicaId(0);
const MAX_OUTSTANDING: usize = 16;
const LATENCY: Duration = Duration::from_millis(10);

fn state(sequence: u64, tree: &Tree) -> Evidence {
    Evidence::reported(InstanceId(1), sequence, tree.root())
}

/// Pages here and there, each with its number and a version as content.
fn tree(numbers: impl IntoIterator<Item = u32>, version: u8) -> Tree {
    let mut tree = Tree::new();
    let content = |number: u32| [&number.to_le_bytes()[..], &[version]].concat();
    tree.load_pages(numbers.into_iter().map(|number| (number, content(number).into())));
    tree.seal();
    tree
}

/// What a sender makes of the honest answer to a request, and how long it takes.
type Behaviour = fn(TransferMessage) -> Option<(TransferMessage, Duration)>;

fn honest(answer: TransferMessage) -> Option<(TransferMessage, Duration)> {
    Some((answer, LATENCY))
}

fn silent(_: TransferMessage) -> Option<(TransferMessage, Duration)> {
    None
}

fn almost_too_slow(answer: TransferMessage) -> Option<(TransferMessage, Duration)> {
    Some((answer, Duration::from_millis(999)))
}

fn gone(answer: TransferMessage) -> Option<(TransferMessage, Duration)> {
    match answer {
        TransferMessage::Node { version, .. } | TransferMessage::Page { version, .. } => {
            honest(TransferMessage::Gone { version })
        }
        other => honest(other),
    }
}

fn with_page(answer: TransferMessage, content: Bytes) -> Option<(TransferMessage, Duration)> {
    match answer {
        TransferMessage::Page { version, number, .. } => honest(TransferMessage::Page { version, number, content }),
        other => honest(other),
    }
}

fn wrong_page(answer: TransferMessage) -> Option<(TransferMessage, Duration)> {
    with_page(answer, Bytes::from_static(b"lie"))
}

fn huge_page(answer: TransferMessage) -> Option<(TransferMessage, Duration)> {
    with_page(answer, Bytes::from(vec![0; PAGE_BYTES_MAX]))
}

fn another_page(answer: TransferMessage) -> Option<(TransferMessage, Duration)> {
    match answer {
        TransferMessage::Page { version, number, content } => {
            honest(TransferMessage::Page { version, number: number + 1, content })
        }
        other => honest(other),
    }
}

/// Every node has 64 children, all unknown: a tree that would never end.
fn endless_tree(answer: TransferMessage) -> Option<(TransferMessage, Duration)> {
    match answer {
        TransferMessage::Node { version, node, .. } => {
            let mut bytes = u64::MAX.to_bytes();
            bytes.extend((0..NODE_CHILDREN * 32).map(|i| i as u8 | 1));
            honest(TransferMessage::Node { version, node, content: NodeContent::from_bytes(bytes.into()).unwrap() })
        }
        other => honest(other),
    }
}

/// The right content under the name of a node of another level.
fn wrong_level(answer: TransferMessage) -> Option<(TransferMessage, Duration)> {
    match (answer, NodeId::ROOT.child(1)) {
        (TransferMessage::Node { version, content, node }, ChildId::Node(child)) => {
            let node = if node == NodeId::ROOT { child } else { NodeId::ROOT };
            honest(TransferMessage::Node { version, node, content })
        }
        (other, _) => honest(other),
    }
}

/// Replicas 1 to n − 1 with the versions that they hold, and messages under way.
struct Network {
    now: Instant,
    behaviours: Vec<Behaviour>,
    versions: BTreeMap<Digest, Tree>,
    under_way: BTreeMap<(Instant, u64), (ReplicaId, TransferMessage)>,
    sent: u64,
    asked: BTreeMap<ReplicaId, u64>,
    rejected: BTreeMap<ReplicaId, Vec<Rejection>>,
}

impl Network {
    fn new(behaviours: &[Behaviour]) -> Self {
        Self {
            now: Instant(1),
            behaviours: behaviours.to_vec(),
            versions: BTreeMap::new(),
            under_way: BTreeMap::new(),
            sent: 0,
            asked: BTreeMap::new(),
            rejected: BTreeMap::new(),
        }
    }

    fn begin(&mut self, target: &Tree, base: Tree) -> Transfer {
        self.versions.insert(target.root(), target.clone());
        Transfer::new(state(1, target), base, ME, self.behaviours.len() + 1, PATIENCE)
    }

    fn request(&mut self, transfer: &mut Transfer) {
        for (to, request) in transfer.next_requests(self.now, MAX_OUTSTANDING) {
            self.sent += 1;
            *self.asked.entry(to).or_default() += 1;
            let request = TransferMessage::from_bytes(request.to_bytes().into()).unwrap();
            let answer = serve(&request, |version| self.versions.get(&version)).expect("it is there or gone");
            let answer = self.behaviours[to.0 as usize - 1](answer);
            if let Some((answer, latency)) = answer {
                let answer = TransferMessage::from_bytes(answer.to_bytes().into()).unwrap();
                self.under_way.insert((self.now + latency, self.sent), (to, answer));
            }
        }
        assert!(transfer.outstanding.len() <= MAX_OUTSTANDING);
    }

    /// One message or one time-out.
    fn step(&mut self, transfer: &mut Transfer) {
        self.request(transfer);
        let arrival = self.under_way.keys().next().copied();
        let wake = transfer.wake_at();
        match arrival {
            Some(at) if wake.is_none_or(|wake| at.0 <= wake) => {
                self.now = at.0;
                let (from, answer) = self.under_way.remove(&at).unwrap();
                if let Err(rejection) = transfer.on_message(from, answer) {
                    self.rejected.entry(from).or_default().push(rejection);
                }
            }
            _ => self.now = wake.expect("there is something to wait for"),
        }
    }

    fn run(&mut self, transfer: &mut Transfer) -> Tree {
        for _ in 0..100_000 {
            if let Some(tree) = transfer.finish() {
                return tree;
            }
            self.step(transfer);
        }
        panic!("the transfer does not end");
    }

    fn seconds(&self) -> u64 {
        self.now.0 / 1_000_000
    }
}

fn some_numbers() -> impl Iterator<Item = u32> {
    (0..300).chain((1 << 20..1 << 23).step_by(40_000))
}

/// Everybody but one sender, replica 3, behaves so: the transfer ends right all the same. Gives what was rejected.
fn survives(behaviour: Behaviour) -> (Network, BTreeSet<Rejection>) {
    let target = tree(some_numbers(), 1);
    let mut network = Network::new(&[behaviour, behaviour, honest, behaviour, behaviour, behaviour]);
    let mut transfer = network.begin(&target, tree(0..10, 0));
    assert_eq!(network.run(&mut transfer).root(), target.root());
    assert_eq!(network.rejected.get(&ReplicaId(3)), None);
    let rejections = network.rejected.values().flatten().copied().collect();
    (network, rejections)
}

#[test]
fn only_what_differs_is_fetched_and_senders_share_the_work() {
    let base = tree(some_numbers(), 1);
    let mut target = base.clone();
    target.set(7, Some(Bytes::from_static(b"new")));
    target.set(1 << 20, None);
    target.set((1 << 24) - 1, Some(Bytes::from_static(b"far")));
    for number in 100..200 {
        target.set(number, Some(Bytes::from(vec![1; 2000])));
    }
    target.seal();
    let mut network = Network::new(&[honest as Behaviour; 3]);
    let mut transfer = network.begin(&target, base.clone());
    let result = network.run(&mut transfer);
    assert_eq!(result.changed(&target), vec![]);
    assert_eq!(result.page_count(), target.page_count());
    // Of the page that is gone, nothing below the node that has lost a child.
    let (root, first_level, second_level, third_level) = (1, 3, 2, 5);
    assert_eq!(transfer.received(), 102 + root + first_level + second_level + third_level);
    assert!(network.asked.values().all(|&asked| asked.abs_diff(network.sent / 3) < 10), "{:?}", network.asked);
    assert!(network.rejected.is_empty());
}

#[test]
fn nothing_is_fetched_if_nothing_differs_and_everything_goes_if_nothing_is_left() {
    let base = tree(some_numbers(), 1);
    let mut network = Network::new(&[honest as Behaviour; 3]);
    let mut transfer = network.begin(&base, base.clone());
    assert_eq!(network.run(&mut transfer).root(), base.root());
    let mut transfer = network.begin(&Tree::new(), base);
    assert_eq!(network.run(&mut transfer).root(), Digest::ZERO);
    assert_eq!(network.sent, 0);
}

#[test]
fn survives_wrong_pages() {
    for behaviour in [wrong_page as Behaviour, huge_page] {
        let (network, rejections) = survives(behaviour);
        assert_eq!(rejections, BTreeSet::from([Rejection::BadPage]));
        let lies = network.rejected.values().map(Vec::len).max().unwrap();
        assert!(lies <= MAX_OUTSTANDING, "a liar is not asked again: {lies}");
    }
}

#[test]
fn survives_trees_without_end() {
    let (_, rejections) = survives(endless_tree);
    assert_eq!(rejections, BTreeSet::from([Rejection::BadPage]));
}

#[test]
fn survives_answers_about_something_else() {
    for behaviour in [another_page as Behaviour, wrong_level] {
        let (network, _) = survives(behaviour);
        assert!(network.seconds() < 10, "{}", network.seconds());
    }
}

#[test]
fn survives_silence_and_denial() {
    let (network, rejections) = survives(silent);
    assert_eq!(rejections, BTreeSet::new());
    assert!(network.seconds() < 5, "whoever was silent is not asked again: {}", network.seconds());
    let (network, _) = survives(gone);
    assert!(network.seconds() < 5, "{}", network.seconds());
}

#[test]
fn slow_senders_delay_their_share_only() {
    let target = tree(0..3000, 1);
    let mut network = Network::new(&[almost_too_slow, honest, honest]);
    let mut transfer = network.begin(&target, Tree::new());
    network.run(&mut transfer);
    // 3000 pages of which 10 are on the way to two senders at a time, 10 ms each: 3 s.
    assert!(network.seconds() < 6, "{}", network.seconds());
}

#[test]
fn all_being_cut_off_for_a_while_does_no_harm() {
    let target = tree(some_numbers(), 1);
    let mut network = Network::new(&[silent as Behaviour; 3]);
    let mut transfer = network.begin(&target, Tree::new());
    while network.seconds() < 60 {
        network.step(&mut transfer);
    }
    assert!(network.sent < 3_000, "nobody is flooded: {}", network.sent);
    network.behaviours = vec![honest; 3];
    assert_eq!(network.run(&mut transfer).root(), target.root());
    assert!(network.seconds() < 70);
}

#[test]
fn a_version_that_everybody_discards_is_left_for_a_newer_one_without_starting_again() {
    let mut target = tree(0..1000, 1);
    let mut network = Network::new(&[honest, honest, wrong_page]);
    let mut transfer = network.begin(&target, Tree::new());
    let mut roots = vec![Digest::ZERO, target.root()];
    for sequence in 2..12 {
        for _ in 0..90 {
            network.step(&mut transfer);
        }
        assert!(transfer.finish().is_none(), "the target moves before it is reached");
        // Senders keep two versions; meanwhile a few pages changed.
        for number in 0..5 {
            target.set(number * 190, Some(Bytes::from(vec![sequence as u8])));
        }
        target.seal();
        roots.push(target.root());
        network.versions.insert(target.root(), target.clone());
        network.versions.remove(&roots[sequence as usize - 2]);
        transfer.retarget(state(sequence, &target));
        transfer.retarget(state(1, &Tree::new()));
        assert_eq!(transfer.target().checkpoint().sequence, Sequence(sequence));
    }
    assert_eq!(network.run(&mut transfer).root(), target.root());
    assert!(transfer.received() < 1000 + 10 * 40, "little was fetched twice: {}", transfer.received());
    let blamed: Vec<_> = network.rejected.keys().copied().collect();
    assert_eq!(blamed, [ReplicaId(3)], "late answers of the honest are no lies");
}

#[test]
fn what_nobody_asked_for_is_rejected() {
    let target = tree(0..3, 1);
    let mut transfer = Transfer::new(state(1, &target), Tree::new(), ME, 4, PATIENCE);
    let root = serve(&TransferMessage::FetchNode { version: target.root(), node: NodeId::ROOT }, |_| Some(&target));
    let root = root.unwrap();
    assert_eq!(transfer.on_message(ReplicaId(1), root.clone()), Err(Rejection::Unsolicited));
    let requests = transfer.next_requests(Instant(1), MAX_OUTSTANDING);
    let [(asked, request)] = requests.as_slice() else { panic!("one request") };
    assert_eq!(transfer.on_message(ReplicaId(3), root.clone()), Err(Rejection::Unsolicited), "it was not asked");
    assert_eq!(transfer.on_message(*asked, request.clone()), Err(Rejection::Unsolicited), "that is no answer");
    assert_eq!(transfer.on_message(ReplicaId(77), root.clone()), Err(Rejection::Unsolicited));
    assert_eq!(transfer.on_message(*asked, root.clone()), Ok(Progress::Received));
    assert_eq!(transfer.on_message(*asked, root), Err(Rejection::Unsolicited), "one answer for one request");
}

#[test]
fn a_late_answer_is_used() {
    let target = tree([0], 1);
    let mut transfer = Transfer::new(state(1, &target), Tree::new(), ME, 4, PATIENCE);
    let (slow, request) = transfer.next_requests(Instant(1), 1).remove(0);
    let later = Instant(1) + PATIENCE;
    assert_eq!(transfer.wake_at(), Some(later));
    let (other, again) = transfer.next_requests(later, 1).remove(0);
    assert_ne!(slow, other);
    assert_eq!(request, again);
    let answer = serve(&request, |_| Some(&target)).unwrap();
    assert_eq!(transfer.on_message(slow, answer.clone()), Ok(Progress::Received));
    assert_eq!(transfer.on_message(other, answer), Ok(Progress::None), "no harm in a second answer");
}

#[test]
fn requests_are_answered_from_the_version_asked_for() {
    let target = tree([5], 1);
    let ask = |message: TransferMessage| serve(&message, |version| (version == target.root()).then_some(&target));
    let (version, number) = (target.root(), 5);
    let content = target.get(5).unwrap().clone();
    assert_eq!(
        ask(TransferMessage::FetchPage { version, number }),
        Some(TransferMessage::Page { version, number, content })
    );
    let gone = TransferMessage::Gone { version: Digest::ZERO };
    assert_eq!(ask(TransferMessage::FetchPage { version: Digest::ZERO, number }), Some(gone.clone()));
    assert_eq!(ask(TransferMessage::FetchPage { version, number: 6 }), None);
    assert_eq!(ask(TransferMessage::FetchPage { version, number: u32::MAX }), None);
    assert_eq!(ask(gone), None);
}

#[test]
fn encodings_read_back_and_are_bounded() {
    let target = tree([5], 1);
    let (version, node, number) = (target.root(), NodeId::ROOT, 5);
    let content = target.node(node).unwrap();
    let messages = [
        TransferMessage::FetchNode { version, node },
        TransferMessage::Node { version, node, content },
        TransferMessage::FetchPage { version, number },
        TransferMessage::Page { version, number, content: Bytes::from(vec![1; PAGE_BYTES_MAX]) },
        TransferMessage::Gone { version },
    ];
    for (tag, message) in (1..).zip(messages) {
        assert_eq!(message.to_bytes()[0], tag);
        assert_eq!(TransferMessage::from_bytes(message.to_bytes().into()), Ok(message));
    }
    let content = Bytes::from(vec![1; PAGE_BYTES_MAX + 1]);
    let huge = TransferMessage::Page { version, number, content }.to_bytes();
    assert_eq!(TransferMessage::from_bytes(huge.into()), Err(WireError::TooLong));
    let mut child_without_digest = TransferMessage::FetchNode { version, node }.to_bytes();
    child_without_digest[0] = 2;
    child_without_digest.extend(1u64.to_bytes());
    child_without_digest.extend(Digest::ZERO.to_bytes());
    assert_eq!(TransferMessage::from_bytes(child_without_digest.into()), Err(WireError::NotCanonical));
}

proptest! {
    #[test]
    fn any_state_becomes_any_other(
        base in proptest::collection::btree_map(0u32..5000, 0u8..2, 0..200),
        target in proptest::collection::btree_map(0u32..5000, 0u8..2, 0..200),
    ) {
        let build = |pages: &BTreeMap<u32, u8>| {
            let mut tree = Tree::new();
            tree.load_pages(pages.iter().map(|(&number, &version)| (number, vec![version].into())));
            tree.seal();
            tree
        };
        let (base, target) = (build(&base), build(&target));
        let mut network = Network::new(&[wrong_page, honest, honest]);
        let mut transfer = network.begin(&target, base);
        let result = network.run(&mut transfer);
        prop_assert_eq!(result.root(), target.root());
        prop_assert_eq!(result.bytes(), target.bytes());
    }
}
