//! What abort histories keep, whatever f liars report: abs-D8, abs-S2, abs-S3, abs-S10, abs-K6, abs-K20.

use super::*;
use crate::auth::{Claimed, Signature};
use crate::cluster::Limits;
use crate::digest::Domain;
use crate::ids::ReplicaId;
use crate::replicas::{ReplicaSet, Replicas};
use crate::schedule::{Protocol, Quota};
use crate::testing::net::cluster;
use alloc::sync::Arc;
use alloc::vec;
use proptest::prelude::*;

/// Positions between two checkpoints of these tests.
const CHK: usize = 2;

const SIGNATURE: Signature = Signature([0; 64]);

/// The cluster of f liars among 3f+1 replicas that most tests here mean.
fn of(f: usize) -> Cluster {
    cluster(3 * f + 1, crate::cluster::ClientAuth::Mac, Limits::default())
}

fn digest(entry: u8) -> Digest {
    Digest::of(Domain::Entry, &[entry])
}

/// The digest of a whole history.
fn history(log: &[u8]) -> Digest {
    log.iter().fold(Digest::ZERO, |history, entry| history.chain(digest(*entry)))
}

/// A log up to a position as a checkpoint says it, with the root of the true state there.
fn boundary(log: &[u8], position: usize) -> Boundary {
    let history = history(&log[..position]);
    Boundary { position: position as u64, history, root: Digest::of(Domain::Result, &history.0) }
}

/// What a correct replica reports of this log, above this anchor.
fn report(log: &[u8], anchor: usize) -> AbortReport {
    AbortReport {
        instance: InstanceId(1),
        anchor: boundary(log, anchor),
        boundaries: (anchor + 1..=log.len()).filter(|p| p.is_multiple_of(CHK)).map(|p| boundary(log, p)).collect(),
        digests: log[anchor..].iter().map(|entry| digest(*entry)).collect(),
        low_load: false,
        silent: ReplicaSet::NOBODY,
        certificates: Certificates::default(),
    }
}

/// The history that these reports prove, in a cluster of f liars.
fn extract(f: usize, reports: impl IntoIterator<Item = AbortReport>) -> Option<AbortHistory> {
    prove(&of(f), reports)
}

/// The history that these reports prove.
fn prove(cluster: &Cluster, reports: impl IntoIterator<Item = AbortReport>) -> Option<AbortHistory> {
    let signed = (0..).zip(reports).map(|(id, value)| Claimed::signed(value, ReplicaId(id), SIGNATURE));
    let schedule = Protocol::Quorum.schedule();
    let what = Specification::new(&schedule, Some(Quota::default()), cluster.replicas, InstanceId(1));
    Arc::new(ClaimedProof { reports: signed.collect() }).recalled().abort_history(&what)
}

/// A history by position and digest: what must not depend on the order of the reports.
fn end(history: &AbortHistory) -> (u64, Digest) {
    (history.position, history.history())
}

/// abs-S2: three logs that differ after the committed p, each behind a checkpoint of its own that is not certain.
#[test]
fn a_tentative_checkpoint_hides_nothing_that_committed() {
    for liar in [report(b"", 0), report(b"pa", 2), report(b"pb", 2), report(b"zz", 0)] {
        for pair in [[b"pa", b"pb"], [b"pa", b"px"], [b"pb", b"px"]] {
            let found = extract(1, [report(pair[0], 0), liar.clone(), report(pair[1], 0)]).unwrap();
            assert!(found.position >= 1);
            assert_eq!(found.history_at(1), Some(history(b"p")), "{pair:?}");
        }
    }
}

/// abs-S3: equal logs, anchors up to three checkpoints apart, every set of reports and every kind of liar.
#[test]
fn anchors_far_apart_lose_nothing() {
    for length in 0..=3 * CHK {
        let log = &b"abcdefgh"[..length];
        let anchors: Vec<usize> = (0..=length).filter(|p| p.is_multiple_of(CHK)).collect();
        for (first, second) in anchors.iter().flat_map(|first| anchors.iter().map(move |second| (*first, *second))) {
            for liar in [report(b"", 0), report(b"zz", 0), report(&[log, b"zz"].concat(), length)] {
                let found = extract(1, [report(log, first), liar, report(log, second)]).unwrap();
                assert_eq!(end(&found), (length as u64, history(log)), "anchors {first} and {second}");
                let bases = [first, second].map(|anchor| anchor as u64);
                assert!(bases.iter().any(|anchor| found.boundaries.iter().any(|known| known.position >= *anchor)));
            }
        }
    }
}

/// abs-S10: a vote per position would find a, b, a: the liar's last entry meets the third of another log.
#[test]
fn no_history_is_pieced_together_from_several_logs() {
    let liar = AbortReport { digests: vec![digest(b'a')], ..report(b"ab", 2) };
    let found = extract(1, [report(b"ab", 0), liar, report(b"cba", 0)]).unwrap();
    assert_eq!(end(&found), (2, history(b"ab")));
}

/// abs-K20: positions as high as numbers go cost nobody time, and count for nothing.
#[test]
fn an_inflated_report_is_outvoted() {
    for position in [1 << 60, u64::MAX - 1, u64::MAX] {
        let mut liar = report(b"abc", 0);
        liar.anchor.position = position;
        let found = extract(1, [report(b"abc", 0), liar, report(b"abd", 0)]).unwrap();
        assert_eq!(end(&found), (2, history(b"ab")));
    }
}

/// abs-P8: f flags are not enough to say that load is low, f+1 are.
#[test]
fn load_is_low_when_one_correct_replica_says_so() {
    for f in 1..=3 {
        for flags in 0..=2 * f + 1 {
            let reports = (0..2 * f + 1).map(|id| AbortReport { low_load: id < flags, ..report(b"a", 0) });
            assert_eq!(extract(f, reports).unwrap().low_load, flags > f, "f = {f}, {flags} flags");
        }
    }
}

/// What a liar makes of a correct replica's log.
#[derive(Clone, Debug)]
enum Lie {
    /// Nothing logged.
    Empty,
    /// A part of it, from any position on, with false roots.
    Part(usize, usize),
    /// All of it and more.
    Longer(Vec<u8>),
    /// Its digests at other positions.
    Moved(u64),
    /// Anything.
    Garbage(u8, Vec<u8>),
}

impl Lie {
    fn report(&self, log: &[u8]) -> AbortReport {
        match self {
            Self::Empty => report(b"", 0),
            Self::Part(from, to) => {
                let to = *to % (log.len() + 1);
                let mut report = report(&log[..to], *from % (to + 1));
                report.anchor.root = digest(0);
                report.boundaries.iter_mut().for_each(|boundary| boundary.root = digest(0));
                report
            }
            Self::Longer(more) => report(&[log, more].concat(), 0),
            Self::Moved(by) => {
                let mut report = report(log, 0);
                report.anchor.position = report.anchor.position.wrapping_add(*by);
                report
            }
            Self::Garbage(base, digests) => {
                let anchor = Boundary { position: (*base).into(), history: digest(*base), root: digest(*base) };
                let digests = digests.iter().map(|entry| digest(*entry)).collect();
                AbortReport { anchor, digests, ..report(b"", 0) }
            }
        }
    }
}

fn entries(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(b'a'..=b'd', 0..=most)
}

fn lies() -> impl Strategy<Value = Lie> {
    prop_oneof![
        Just(Lie::Empty),
        (0..12usize, 0..12usize).prop_map(|(from, to)| Lie::Part(from, to)),
        entries(6).prop_map(Lie::Longer),
        prop_oneof![0..6u64, Just(u64::MAX), Just(1 << 60)].prop_map(Lie::Moved),
        (any::<u8>(), entries(6)).prop_map(|(base, digests)| Lie::Garbage(base, digests)),
    ]
}

/// An instance that aborted: as many reports of it as make a proof, at most f of them lies.
#[derive(Clone, Debug)]
struct Case {
    f: usize,
    cluster: Cluster,
    committed: Vec<u8>,
    /// Log and anchor of each correct replica that reports; the anchor is a checkpoint of what committed.
    correct: Vec<(Vec<u8>, usize)>,
    lies: Vec<Lie>,
}

fn cases() -> impl Strategy<Value = Case> {
    (0..=4usize).prop_flat_map(cases_with)
}

/// With so many replicas more than 3f+1.
fn cases_with(spare: usize) -> impl Strategy<Value = Case> {
    (1..=3usize, entries(7)).prop_flat_map(move |(f, committed)| {
        let cluster = Cluster { replicas: Replicas::new(3 * f + 1 + spare, f).unwrap(), ..of(f) };
        let strong = cluster.replicas.strong();
        let length = committed.len();
        let log = (entries(4), 0..=length);
        let correct = proptest::collection::vec(log, strong);
        (correct, proptest::collection::vec(lies(), 0..=f)).prop_map(move |(mut correct, lies)| {
            correct.truncate(strong - lies.len());
            let correct =
                correct.into_iter().map(|(more, anchor)| ([&committed[..], &more].concat(), anchor / CHK * CHK));
            Case { f, cluster: cluster.clone(), committed: committed.clone(), correct: correct.collect(), lies }
        })
    })
}

impl Case {
    fn reports(&self) -> Vec<AbortReport> {
        let correct = self.correct.iter().map(|(log, anchor)| report(log, *anchor));
        let lies = self.lies.iter().zip(self.correct.iter().cycle()).map(|(lie, (log, _))| lie.report(log));
        correct.chain(lies).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Abort order: every commit is in the history, at its position; and nothing that f+1 correct replicas share is
    /// lost to a lie.
    #[test]
    fn the_history_extends_what_committed(case in cases()) {
        let found = prove(&case.cluster, case.reports()).expect("correct replicas have a history in common");
        let length = case.committed.len() as u64;
        prop_assert!(found.position >= length);
        prop_assert_eq!(found.history_at(length), Some(history(&case.committed)));
        let logs = || case.correct.iter().map(|(log, _)| log);
        let shared = |prefix: &&[u8]| logs().filter(|log| log.starts_with(prefix)).count() > case.f;
        let prefixes = logs().flat_map(|log| (0..=log.len()).map(|end| &log[..end]));
        let longest = prefixes.filter(shared).map(<[u8]>::len).max();
        prop_assert!(found.position >= longest.unwrap_or_default() as u64);
    }

    /// Validity: it is what some correct replica really logged, digest by digest, from a certain position on.
    #[test]
    fn the_history_is_a_prefix_of_a_correct_log(case in cases()) {
        let found = prove(&case.cluster, case.reports()).unwrap();
        let position = found.position as usize;
        let is_real = |log: &[u8]| log.len() >= position && history(&log[..position]) == found.history();
        let real = case.correct.iter().find(|(log, _)| is_real(log));
        let (log, _) = real.expect("a correct replica logged it");
        let anchor = found.anchor.position as usize;
        prop_assert!(anchor <= case.committed.len(), "the anchor is certain");
        prop_assert_eq!(found.anchor.history, history(&log[..anchor]));
        let digests: Vec<Digest> = log[anchor..position].iter().map(|entry| digest(*entry)).collect();
        prop_assert_eq!(&found.digests, &digests);
        for known in &found.boundaries {
            prop_assert_eq!(*known, boundary(log, known.position as usize), "a true state");
        }
    }

    /// Uniqueness: no order of the same reports leads elsewhere. With more than 2f+1 of them two groups of f+1 may
    /// share nothing but what committed; then their order decides, which is that of the signers.
    #[test]
    fn the_history_does_not_depend_on_the_order_of_the_reports(case in cases_with(0), turn in 0..7usize) {
        let mut reports = case.reports();
        let found = prove(&case.cluster, reports.clone()).unwrap();
        let turn = turn % reports.len();
        reports.rotate_left(turn);
        prop_assert_eq!(end(&prove(&case.cluster, reports.clone()).unwrap()), end(&found));
        reports.reverse();
        prop_assert_eq!(end(&prove(&case.cluster, reports).unwrap()), end(&found));
    }

    /// abs-D9: what has to be fetched is above the anchor of a correct replica that reports, which therefore has it.
    #[test]
    fn nobody_has_to_fetch_what_correct_replicas_dropped(case in cases()) {
        let found = prove(&case.cluster, case.reports()).unwrap();
        let lowest = case.correct.iter().map(|(_, anchor)| *anchor as u64).min().unwrap();
        prop_assert!(found.anchor.position >= lowest);
        let lowest = found.anchor.position;
        let has = |id: &ReplicaId| case.correct.get(id.0 as usize).is_some_and(|(_, anchor)| *anchor as u64 <= lowest);
        prop_assert!(found.digests.is_empty() || found.holders.iter().any(has), "{:?}", found.holders);
        let needed = found.boundaries.iter().any(|known| known.position >= found.anchor.position);
        prop_assert!(needed, "a state from which to go on, for those who lack the anchor");
    }
}
