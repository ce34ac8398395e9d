//! The rule for the resilient ring: what 2f+1 reports certify, whatever f liars make of it (ring-F5, ring-A9).

use super::paths::Paths;
use super::*;
use crate::cluster::{ClientAuth, Limits};
use crate::digest::Domain;
use crate::ids::{Principal, ReplicaId};
use crate::replicas::ReplicaSet;
use crate::schedule::{Part, Protocol, Schedule};
use crate::testing::net::{cluster, keyring};
use alloc::sync::Arc;
use alloc::vec;

const INSTANCE: InstanceId = InstanceId(1);

/// f = 1, and every replica's keys.
struct Signers {
    cluster: Cluster,
    keyrings: Vec<Keyring>,
}

fn digest(entry: u8) -> Digest {
    Digest::of(Domain::Entry, &[entry])
}

fn boundary(log: &[u8], position: usize) -> Boundary {
    let history = log[..position].iter().fold(Digest::ZERO, |history, entry| history.chain(digest(*entry)));
    Boundary { position: position as u64, history, root: Digest::of(Domain::Result, &history.0) }
}

impl Signers {
    fn new() -> Self {
        let schedule = Schedule::new(&[Part::RingResilient]).unwrap();
        let cluster = cluster(4, ClientAuth::Hybrid, Limits::default()).with_protocol(Protocol::Schedule(schedule));
        let keyrings = (0..4).map(|id| keyring(&cluster, Principal::Replica(ReplicaId(id)))).collect();
        Self { cluster, keyrings }
    }

    fn certify<T: Signable + Copy + PartialEq>(&self, value: T, signers: &[usize]) -> Claimed<Certificate<T>> {
        Certificate::tally(signers.iter().map(|id| self.keyrings[*id].sign(value)), 1).into()
    }

    fn prepared(&self, log: &[u8], signers: &[usize]) -> Option<Claimed<Certificate<Prepared>>> {
        let Boundary { position, history, .. } = boundary(log, log.len());
        Some(self.certify(Prepared { instance: INSTANCE, position, history }, signers))
    }

    fn stable(&self, log: &[u8], signers: &[usize]) -> Option<Claimed<Certificate<Stable>>> {
        Some(self.certify(
            Stable { instance: INSTANCE, init: (0, Digest::ZERO), boundary: boundary(log, log.len()) },
            signers,
        ))
    }

    /// A report of this log above this anchor.
    fn report(&self, log: &[u8], anchor: usize) -> AbortReport {
        AbortReport {
            instance: INSTANCE,
            anchor: boundary(log, anchor),
            boundaries: Vec::new(),
            digests: log[anchor..].iter().map(|entry| digest(*entry)).collect(),
            low_load: false,
            silent: ReplicaSet::NOBODY,
            certificates: Certificates::default(),
        }
    }

    fn certified(&self, log: &[u8], anchor: usize) -> AbortReport {
        let mut report = self.report(log, anchor);
        report.certificates.prepared = self.prepared(log, &[0, 1, 2]);
        report
    }

    /// What reports of replicas 1, 2 and 3 prove, if they are accepted.
    fn proved(&self, reports: [&AbortReport; 3]) -> Option<AbortHistory> {
        let signed = (1..).zip(reports).map(|(id, report)| self.keyrings[id].sign(report.clone()).into());
        let proof = Arc::new(ClaimedProof { reports: signed.collect() });
        let what = self.cluster.specification(proof.instance());
        let checked = proof.check(&self.cluster, &self.keyrings[0], &what);
        checked.and_then(|proof| proof.abort_history(&what))
    }
}

fn end(history: &AbortHistory) -> (u64, Digest) {
    (history.position, history.history())
}

fn expected(log: &[u8]) -> (u64, Digest) {
    let Boundary { position, history, .. } = boundary(log, log.len());
    (position, history)
}

/// ring-S5, ring-S12: one correct replica of three holds a certificate, and the others have not seen anything. The rule
/// of the thesis, a value that f+1 reports share, loses what committed; the certificate does not.
#[test]
fn s5_one_certificate_is_enough_where_equal_reports_are_not() {
    let signers = Signers::new();
    let (has, has_not) = (signers.certified(b"a", 0), signers.report(b"", 0));
    for reports in [[&has, &has_not, &has_not], [&has_not, &has, &has_not], [&has_not, &has_not, &has]] {
        assert_eq!(signers.proved(reports).as_ref().map(end), Some(expected(b"a")));
    }
    let signed: Vec<_> =
        [&has, &has_not, &has_not].map(|report| signers.keyrings[1].sign(report.clone()).into()).into();
    let proof = Arc::new(ClaimedProof { reports: signed }).recalled();
    let shared = proof.shared_history(signers.cluster.replicas, &Paths::of(&proof)).unwrap();
    assert_eq!(end(&shared), expected(b""), "the published rule forgets it");
}

/// Of two certified histories the longer counts, and uncertified ones count for nothing.
#[test]
fn the_longest_certified_history_wins() {
    let signers = Signers::new();
    let (short, long) = (signers.certified(b"ab", 0), signers.certified(b"abcd", 0));
    let made_up = signers.report(b"xyzxyz", 0);
    assert_eq!(signers.proved([&short, &made_up, &long]).as_ref().map(end), Some(expected(b"abcd")));
    assert_eq!(signers.proved([&made_up, &made_up, &short]).as_ref().map(end), Some(expected(b"ab")));
}

/// ring-A9: a certificate that too few signed, that somebody signed twice, of another instance or for another list,
/// makes its report and every proof with it worthless.
#[test]
fn a9_a_false_certificate_is_refused() {
    let signers = Signers::new();
    let good = signers.certified(b"ab", 0);
    let mut lies = vec![good.clone(); 6];
    lies[0].certificates.prepared = signers.prepared(b"ab", &[0, 1]);
    let twice = lies[1].certificates.prepared.as_mut().unwrap().signatures_mut();
    twice[2] = twice[1];
    lies[2].certificates.prepared = signers.prepared(b"ax", &[0, 1, 2]);
    lies[3].digests.push(digest(b'c'));
    let moved = Prepared { instance: InstanceId(2), ..*good.certificates.prepared.as_ref().unwrap().claims() };
    lies[4].certificates.prepared = Some(signers.certify(moved, &[0, 1, 2]));
    lies[5].certificates.stable = signers.stable(b"a", &[0, 1, 2]);
    for lie in &lies {
        assert_eq!(signers.proved([&good, lie, &good]), None, "{lie:?}");
    }
    let quorum = signers.cluster.clone().with_protocol(Protocol::Quorum).specification(INSTANCE);
    assert!(good.check(&signers.cluster, &signers.keyrings[0], &quorum).is_none(), "no other part makes certificates");
    let ring = signers.cluster.specification(INSTANCE);
    assert!(good.check(&signers.cluster, &signers.keyrings[0], &ring).is_some());
}

/// ring-A9: a liar shows a certificate that nobody else has, and nothing of what leads to it: the next one counts. A
/// correct replica that begins as high is completed by another one's list.
#[test]
fn a9_a_history_has_a_beginning() {
    let signers = Signers::new();
    let mut liar = signers.certified(b"abcdef", 6);
    liar.anchor.root = digest(0);
    let (one, other) = (signers.certified(b"abc", 0), signers.report(b"ab", 0));
    assert_eq!(signers.proved([&liar, &one, &other]).as_ref().map(end), Some(expected(b"abc")));
    let high = signers.certified(b"abcdef", 2);
    let found = signers.proved([&high, &one, &other]).unwrap();
    assert_eq!((end(&found), found.anchor.position), (expected(b"abcdef"), 0));
    assert_eq!(found.digests.len(), 6);
    assert_eq!(found.history_at(3), Some(boundary(b"abc", 3).history));
}

/// Resilient 6 of [`crate::protocols::ring_resilient`]: a certified checkpoint is where everybody may begin, whoever
/// else has it; and it is certified to its end.
#[test]
fn a_certified_anchor_is_certain() {
    let signers = Signers::new();
    let mut ahead = signers.certified(b"abcdef", 4);
    ahead.certificates.stable = signers.stable(b"abcd", &[0, 2, 3]);
    let behind = signers.report(b"ab", 0);
    let found = signers.proved([&behind, &ahead, &behind]).unwrap();
    assert_eq!((end(&found), found.anchor), (expected(b"abcdef"), boundary(b"abcd", 4)));
    assert!(found.certificate.map(Claimed::from) == ahead.certificates.stable && found.boundaries == [found.anchor]);
    assert_eq!(found.holders, [0, 1, 2].map(ReplicaId), "who signed it, and who reports it");
    let mut done = signers.report(b"abcd", 4);
    done.certificates.stable = signers.stable(b"abcd", &[0, 2, 3]);
    assert_eq!(signers.proved([&behind, &done, &behind]).as_ref().map(end), Some(expected(b"abcd")));
}

/// What was certified in an earlier instance says where everybody may begin, and nothing about what committed since.
#[test]
fn what_an_earlier_instance_certified_ends_no_history() {
    let signers = Signers::new();
    let boundary = boundary(b"ab", 2);
    let of = |instance: u64, at: Boundary| {
        let value = Stable { instance: InstanceId(instance), init: (0, Digest::ZERO), boundary: at };
        Some(signers.certify(value, &[0, 2, 3]))
    };
    let later = |log: &[u8], anchor: usize| AbortReport { instance: InstanceId(2), ..signers.report(log, anchor) };
    let mut old = later(b"ab", 2);
    old.certificates.stable = of(1, boundary);
    let (one, other) = (later(b"abcd", 0), later(b"abce", 0));
    let found = signers.proved([&one, &old, &other]).unwrap();
    assert_eq!((end(&found), found.anchor), (expected(b"abc"), boundary));
    assert_eq!(found.certificate.as_ref().map(Certificate::claim), old.certificates.stable);
    assert_eq!(found.base(), Some(boundary), "nobody else attests it");
    old.certificates.stable = of(3, boundary);
    assert_eq!(signers.proved([&one, &old, &other]), None, "of a later instance");
}

/// The same where certificates decide nothing, in a ring's fast mode after it.
#[test]
fn a_certified_anchor_is_where_a_later_history_begins() {
    let mut signers = Signers::new();
    let modes = Schedule::new(&[Part::RingFast, Part::RingResilient]).unwrap();
    signers.cluster = signers.cluster.with_protocol(Protocol::Schedule(modes));
    let anchor = boundary(b"ab", 2);
    let value = Stable { instance: InstanceId(2), init: (0, Digest::ZERO), boundary: anchor };
    let later = |log: &[u8], anchor: usize| AbortReport { instance: InstanceId(3), ..signers.report(log, anchor) };
    let (mut has, has_not, liar) = (later(b"abcd", 2), later(b"abcd", 0), later(b"abcd", 1));
    has.certificates.stable = Some(signers.certify(value, &[0, 1, 3]));
    let sign = |(id, report): (usize, &AbortReport)| signers.keyrings[id].sign(report.clone()).into();
    let proof = Arc::new(ClaimedProof { reports: (1..).zip([&liar, &has_not, &has]).map(sign).collect() });
    let fast = signers.cluster.specification(InstanceId(3));
    let proof = proof.check(&signers.cluster, &signers.keyrings[0], &fast).unwrap();
    let found = proof.abort_history(&fast).unwrap();
    assert_eq!((found.anchor, found.base(), end(&found)), (anchor, Some(anchor), expected(b"abcd")));
    let mut prepared = has.clone();
    prepared.certificates.prepared = signers.prepared(b"abcd", &[0, 1, 2]);
    assert!(prepared.check(&signers.cluster, &signers.keyrings[0], &fast).is_none());
    has.certificates.stable = Some(signers.certify(Stable { instance: InstanceId(1), ..value }, &[0, 1, 3]));
    let checked = has.check(&signers.cluster, &signers.keyrings[0], &fast);
    assert!(checked.is_none(), "its first instance is no such ring");
}

/// Before anything is certified, what f+1 list is what committed in earlier instances.
#[test]
fn without_certificates_the_shared_prefix_counts() {
    let signers = Signers::new();
    let (one, other) = (signers.report(b"abc", 0), signers.report(b"abd", 0));
    assert_eq!(signers.proved([&one, &other, &other]).as_ref().map(end), Some(expected(b"abd")));
    assert_eq!(signers.proved([&one, &other, &signers.report(b"", 0)]).as_ref().map(end), Some(expected(b"ab")));
}
