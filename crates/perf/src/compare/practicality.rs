//! Two experiments of "On the Practicality of 'Practical' Byzantine Fault Tolerance" (section 4): what PBFT's
//! optimisations are worth, and clients that join.
//!
//! Table 1 is a factorial: MACs or signatures, all requests big or none, batches or not, and clients that the cluster
//! file names or that joined. The paper leaves combinations out; ours has all that are possible, and `hybrid`, our
//! default, between MACs and signatures. Clients join with signed requests only. Figure 3 inserts votes into SQLite.

use super::claim::{Claim, Ours, Subject};
use super::sweep::{Axis, Metric, Place, Point, Sweep, Variant};
use super::terms::{ANYWHERE, THE_PAPER, claim, names};
use super::{Experiment, Kind};
use crate::sql::Mix;
use crate::workload::Asked;

/// The paper's, three on each of four machines.
const CLIENTS: usize = 12;
/// Of its null requests and results.
const BYTES: usize = 1024;

const MAC: &str = "pbft:auth=mac";
const HYBRID: &str = "pbft:auth=hybrid";
const SIGNATURE: &str = "pbft:auth=signature";
const HYBRID_JOINED: &str = "pbft:auth=hybrid:joined";
const SIGNATURE_JOINED: &str = "pbft:auth=signature:joined";

fn contenders() -> Vec<String> {
    names(&[MAC, HYBRID, SIGNATURE, HYBRID_JOINED, SIGNATURE_JOINED])
}

const fn at(variant: Variant) -> Place {
    Place { variant: Some(variant), ..ANYWHERE }
}

/// A variant of Table 1.
const fn switched(big: bool, batching: bool) -> Variant {
    Variant { big, batching, durability: None }
}

/// A variant of Figure 3, which has batching everywhere.
const fn stored(big: bool, durability: &'static str) -> Variant {
    Variant { big, batching: true, durability: Some(durability) }
}

const fn ratio(subject: Subject, base: Subject) -> Ours {
    Ours::Ratio(Metric::Throughput, subject, base)
}

const fn joined(metric: Metric, joined: &'static str, named: &'static str, variant: Variant) -> Ours {
    Ours::Difference(metric, (joined, at(variant)), (named, at(variant)))
}

fn sweep(variants: &[Variant], bytes: usize, asked: Asked) -> Kind {
    let point = |&variant: &Variant| Point {
        f: 1,
        clients: CLIENTS,
        request_bytes: bytes,
        reply_bytes: bytes,
        variant: Some(variant),
    };
    let metrics = vec![Metric::Throughput, Metric::ReplicaCpu];
    Kind::Sweep(Sweep {
        points: variants.iter().map(point).collect(),
        axis: Axis::Variants,
        metrics,
        asked,
        response_over: None,
    })
}

pub(super) fn table_1() -> Experiment {
    let best = (MAC, at(switched(true, true)));
    let beside_best = |auth, big, batching| ratio((auth, at(switched(big, batching))), best);
    Experiment {
        name: "practicality-table-1".into(),
        title: "On the Practicality of PBFT, Table 1: authentication, big requests, batches".into(),
        protocols: contenders(),
        kind: sweep(
            &[switched(true, true), switched(true, false), switched(false, true), switched(false, false)],
            BYTES,
            Asked::Alike,
        ),
        claims: table_1_claims(best, beside_best),
        source: THE_PAPER,
        differences: "`big`: an operation goes from its client to every replica and only its digest is ordered; \
            `inline`: the primary passes it on. `one by one`: no two requests share a batch, but they need not wait \
            for one another. `signature`: clients sign and every replica checks; replicas speak to one another with \
            MACs throughout (the paper does not tell). `hybrid`, our default, has no counterpart there: clients of \
            the file have both, so that one replica checks the signature and the others the MAC. Clients that joined \
            are vouched for by their signature alone."
            .into(),
    }
}

fn table_1_claims(best: Subject, beside_best: impl Fn(&'static str, bool, bool) -> Ours) -> Vec<Claim> {
    let within = |auth, subject: (bool, bool), base: (bool, bool)| {
        ratio((auth, at(switched(subject.0, subject.1))), (auth, at(switched(base.0, base.1))))
    };
    let (both, plain, batches) = ((true, true), switched(false, false), switched(false, true));
    vec![
        claim("op/s with everything on: MACs, big, batches", "17,014", Ours::Value(Metric::Throughput, best)),
        claim("beside that: MACs, big, one by one", "0.06", beside_best(MAC, true, false)),
        claim("MACs, inline, batches", "0.18", beside_best(MAC, false, true)),
        claim("MACs, inline, one by one", "0.07", beside_best(MAC, false, false)),
        claim("signatures, big, batches", "0.08", beside_best(SIGNATURE, true, true)),
        claim("signatures, big, one by one", "0.07", beside_best(SIGNATURE, true, false)),
        claim("signatures, inline, batches", "0.06", beside_best(SIGNATURE, false, true)),
        claim("signatures, inline, one by one", "0.07", beside_best(SIGNATURE, false, false)),
        claim("Batches gain, with MACs and big", "16.19 ×", within(MAC, both, (true, false))),
        claim("the same, signatures and inline", "0.84 ×", within(SIGNATURE, (false, true), (false, false))),
        claim("Big requests gain, with MACs and batches", "5.62 ×", within(MAC, both, (false, true))),
        claim(
            "op/s of clients that joined beside others, signatures, inline, batches",
            "−0.4 % (told as 0.5 %)",
            joined(Metric::Throughput, SIGNATURE_JOINED, SIGNATURE, batches),
        ),
        claim("the same, one by one", "+1.6 %", joined(Metric::Throughput, SIGNATURE_JOINED, SIGNATURE, plain)),
        claim("the same, hybrid, batches", "–", joined(Metric::Throughput, HYBRID_JOINED, HYBRID, batches)),
        claim(
            "Replica CPU per operation of clients that joined beside others, signatures, inline, batches",
            "–",
            joined(Metric::ReplicaCpu, SIGNATURE_JOINED, SIGNATURE, batches),
        ),
        claim("the same, hybrid", "–", joined(Metric::ReplicaCpu, HYBRID_JOINED, HYBRID, batches)),
    ]
}

pub(super) fn figure_3() -> Experiment {
    let subject = |auth, big, durability| (auth, at(stored(big, durability)));
    let robust = |durability| subject(SIGNATURE_JOINED, false, durability);
    let rate = |subject| Ours::Value(Metric::Throughput, subject);
    let differs = |metric| joined(metric, SIGNATURE_JOINED, SIGNATURE, stored(false, "sync"));
    Experiment {
        name: "practicality-figure-3".into(),
        title: "On the Practicality of PBFT, Figure 3: votes inserted into SQLite".into(),
        protocols: contenders(),
        kind: sweep(
            &[stored(true, "sync"), stored(false, "sync"), stored(true, "memory"), stored(false, "memory")],
            0,
            Asked::Sql(Mix::Vote),
        ),
        claims: vec![
            claim("Inserts/s: signatures, inline, joined clients, on the disk", "534", rate(robust("sync"))),
            claim("the same without the disk", "1,155", rate(robust("memory"))),
            claim("The latter beside the former", "2.16", ratio(robust("memory"), robust("sync"))),
            claim(
                "Signatures, inline, joined clients beside MACs, inline, clients of the file, on the disk",
                "0.43",
                ratio(robust("sync"), subject(MAC, false, "sync")),
            ),
            claim(
                "Big beside inline, MACs, on the disk",
                "no gain",
                Ours::Difference(Metric::Throughput, subject(MAC, true, "sync"), subject(MAC, false, "sync")),
            ),
            claim(
                "Clients that joined beside others, signatures, inline, on the disk",
                "–",
                differs(Metric::Throughput),
            ),
            claim("the same, replica CPU per operation", "–", differs(Metric::ReplicaCpu)),
        ],
        source: THE_PAPER,
        differences: "A vote has a key, a text, the agreed time and an agreed random number. The paper's SQLite syncs \
            its journal and its file for every insert; ours is rebuilt from the replica's log, which is synced once \
            for all that waits. Batches everywhere; all replicas share one disk."
            .into(),
    }
}
