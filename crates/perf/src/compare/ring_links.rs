//! Ring's thesis, chapter 7: where links decide, Ring carries n/(n−1) times what one link can.
//!
//! All are made for the network laboratory, most of them at 10 Mbit/s, where the processors of one machine are idle;
//! each says at which rate. A figure of the thesis with throughput and the one after it, the curve of response times,
//! are of the same measurements, and so one experiment. Its Zyzzyva is our `zlight`, without what comes after a fault.

use super::claim::{Bound, Claim, Ours};
use super::sweep::{Axis, Metric, Place, Point, Sweep};
use super::terms::{ANYWHERE, BIG, BIG_REPLIES, BIG_REQUESTS, NOTHING, SMALL, claim, names, point};
use super::{Experiment, Kind};
use crate::workload::{Asked, MIXED_BYTES};

/// Ring as it is measured.
const RING: &str = "ring";
const THE_THESIS: &str = "the thesis, or wanted";
/// Where goodput is what counts and batches are not.
const HUGE: usize = 16_384;

fn contenders() -> Vec<String> {
    names(&[RING, "chain", "zlight", "pbft"])
}

/// Every experiment of this chapter, in its order.
pub(super) fn all() -> Vec<Experiment> {
    vec![
        balance(),
        big_requests(),
        big_replies(),
        big_both(),
        nothing(),
        mixed(),
        sizes(),
        many_clients(),
        faults(),
        one_lan(),
        fast_links(),
    ]
}

const fn at(f: u8, bytes: (usize, usize)) -> Place {
    Place { f: Some(f), bytes: Some(bytes), ..ANYWHERE }
}

/// A protocol's value and whether it is within a bound.
fn within(what: &'static str, said: &'static str, metric: Metric, who: (&'static str, Place), bound: Bound) -> Claim {
    claim(what, said, Ours::Bounded(metric, who, bound))
}

/// The others cannot have more than one link carries.
fn others(place: Place) -> Vec<Claim> {
    let one = |what, name| within(what, "at most 1", Metric::RequestGoodput, (name, place), Bound::AtMost(1.0));
    vec![one("Chain's", "chain"), one("ZLight's", "zlight"), one("PBFT's", "pbft")]
}

fn experiment(
    name: &str,
    title: &str,
    (points, axis, asked): (Vec<Point>, Axis, Asked),
    metrics: &[Metric],
    claims: Vec<Claim>,
) -> Experiment {
    let response_over = metrics.first().copied().filter(|_| metrics.contains(&Metric::Latency));
    Experiment {
        name: name.to_owned(),
        title: title.to_owned(),
        protocols: contenders(),
        kind: Kind::Sweep(Sweep { points, axis, metrics: metrics.to_vec(), asked, response_over }),
        claims,
        source: THE_THESIS,
        differences: String::new(),
    }
}

/// At some numbers of clients.
fn clients(counts: &[usize], bytes: &[(usize, usize)]) -> (Vec<Point>, Axis, Asked) {
    let points = bytes.iter().flat_map(|bytes| counts.iter().map(|count| point(1, *count, *bytes))).collect();
    (points, Axis::Clients, Asked::Alike)
}

const GOODPUT: [Metric; 4] = [Metric::RequestGoodput, Metric::Latency, Metric::LinkBytes, Metric::Data];
const REPLIES: [Metric; 2] = [Metric::ReplyGoodput, Metric::Latency];
const OPERATIONS: [Metric; 2] = [Metric::Throughput, Metric::Latency];

fn balance() -> Experiment {
    let of_ring =
        |what, said, metric, most| within(what, said, metric, (RING, at(1, (HUGE, SMALL))), Bound::AtMost(most));
    let mut experiment = experiment(
        "ring-7-3",
        "Ring, Figures 7.3 and 7.4: processors and links of replicas",
        ([HUGE, BIG, 1024].map(|bytes| point(1, 120, (bytes, SMALL))).to_vec(), Axis::RequestBytes, Asked::Alike),
        &[
            Metric::CpuBalance,
            Metric::LinkBalance,
            Metric::LinkBytes,
            Metric::Data,
            Metric::RequestGoodput,
            Metric::ReplicaCpu,
        ],
        vec![
            of_ring("Ring's CPU, most beside mean, 16 KiB", "at most 1.05", Metric::CpuBalance, 1.05),
            of_ring("Ring's links, most beside mean, 16 KiB", "at most 1.05", Metric::LinkBalance, 1.05),
            of_ring("Ring's data on replica links, per request byte, 16 KiB", "at most 0.765", Metric::Data, 0.765),
            within("the same, 1 KiB", "0.78", Metric::Data, (RING, at(1, (1024, SMALL))), Bound::Between(0.75, 0.81)),
        ],
    );
    experiment.differences = "Bytes of a link are those of Ethernet with all headers, 1,514 for 1,448 of data and an \
        acknowledgement for every second packet: 0.75 bytes of data are 0.80 on a link. Data is what replicas hand to \
        TCP, on average."
        .into();
    experiment
}

fn big_requests() -> Experiment {
    let goodput = |what, said, bytes: usize, least| {
        within(what, said, Metric::RequestGoodput, (RING, at(1, (bytes, SMALL))), Bound::AtLeast(least))
    };
    let mut claims = vec![
        goodput("Ring's peak of request goodput / B, 16 KiB", "0.97 · 4/3 = 1.293", HUGE, 0.97 * 4.0 / 3.0),
        goodput("the same, 4 KiB", "0.97 · 4/3 = 1.293; the thesis 1.23", BIG, 0.97 * 4.0 / 3.0),
    ];
    claims.extend(others(at(1, BIG_REQUESTS)));
    claims.push(claim("Ring has more than Zyzzyva from", "60 clients", Ours::Overtakes(RING, "zlight", BIG_REQUESTS)));
    experiment(
        "ring-7-5",
        "Ring, Figures 7.5 and 7.6: 4/0",
        clients(&[10, 60, 200], &[BIG_REQUESTS, (HUGE, SMALL)]),
        &GOODPUT,
        claims,
    )
}

fn big_replies() -> Experiment {
    let replies = |what, said, name, low, high| {
        within(what, said, Metric::ReplyGoodput, (name, at(1, BIG_REPLIES)), Bound::Between(low, high))
    };
    experiment(
        "ring-7-7",
        "Ring, Figures 7.7 and 7.8: 0/4",
        clients(&[10, 40, 120], &[BIG_REPLIES]),
        &REPLIES,
        vec![
            replies("Ring's peak of reply goodput / B", "3.8 to 4.0", RING, 3.8, 4.0),
            replies("Chain's", "0.95 to 1.0", "chain", 0.95, 1.0),
            claim("Ring has more than Zyzzyva from", "27 clients", Ours::Overtakes(RING, "zlight", BIG_REPLIES)),
        ],
    )
}

fn big_both() -> Experiment {
    let bytes = (BIG, BIG);
    let mut claims =
        vec![claim("Ring has more than Zyzzyva from", "40 clients", Ours::Overtakes(RING, "zlight", bytes))];
    claims.extend(others(at(1, bytes)));
    experiment(
        "ring-7-9",
        "Ring, Figures 7.9 and 7.10: 4/4",
        clients(&[10, 40, 120], &[bytes]),
        &[Metric::RequestGoodput, Metric::ReplyGoodput, Metric::Latency],
        claims,
    )
}

fn nothing() -> Experiment {
    let beside = |what, said, metric, other| {
        claim(what, said, Ours::Ratio(metric, (RING, at(1, NOTHING)), (other, at(1, NOTHING))))
    };
    let mut experiment = experiment(
        "ring-7-11",
        "Ring, Figures 7.11 and 7.12: 0/0",
        clients(&[10, 60, 200], &[NOTHING]),
        &[Metric::Throughput, Metric::ReplicaCpu, Metric::CpuBalance, Metric::Latency],
        vec![
            beside("Ring's replica CPU per operation, beside Chain's", "–", Metric::ReplicaCpu, "chain"),
            beside("beside Zyzzyva's", "–", Metric::ReplicaCpu, "zlight"),
            beside("beside PBFT's", "–", Metric::ReplicaCpu, "pbft"),
            beside("Ring's peak beside Chain's", "0.70", Metric::Throughput, "chain"),
            beside("beside Zyzzyva's", "0.78", Metric::Throughput, "zlight"),
        ],
    );
    experiment.differences = "Processors decide here, and all replicas and clients share those of one machine: read \
        the processor time per operation, not operations per second."
        .into();
    experiment
}

fn mixed() -> Experiment {
    let bytes = (MIXED_BYTES, SMALL);
    let place = at(1, bytes);
    experiment(
        "ring-7-13",
        "Ring, Figures 7.13 and 7.14: requests of 8, 512, 2,048, 256 and 4,096 bytes in turn",
        (clients(&[10, 60, 150], &[bytes]).0, Axis::Clients, Asked::Mixed),
        &OPERATIONS,
        vec![
            claim(
                "Ring's peak beside Zyzzyva's",
                "1.06; its queueing model, solved anew, 1.25",
                Ours::Ratio(Metric::Throughput, (RING, place), ("zlight", place)),
            ),
            claim("Ring has more than Zyzzyva from", "150 clients", Ours::Overtakes(RING, "zlight", bytes)),
        ],
    )
}

fn sizes() -> Experiment {
    let place = at(1, (HUGE, SMALL));
    experiment(
        "ring-7-15",
        "Ring, Figure 7.15: sizes of requests",
        (
            [64, 256, 1024, BIG, HUGE].map(|bytes| point(1, 120, (bytes, SMALL))).to_vec(),
            Axis::RequestBytes,
            Asked::Alike,
        ),
        &[Metric::RequestGoodput, Metric::Data, Metric::ReplicaCpu],
        vec![claim(
            "Ring's peak beside Zyzzyva's, 16 KiB",
            "1.27",
            Ours::Ratio(Metric::RequestGoodput, (RING, place), ("zlight", place)),
        )],
    )
}

fn many_clients() -> Experiment {
    let with = |count| Place { clients: Some(count), ..at(1, BIG_REQUESTS) };
    let peak = Ours::Ratio(Metric::Throughput, (RING, with(2000)), (RING, with(200)));
    let mut experiment = experiment(
        "ring-7-16",
        "Ring, Figures 7.16 and 7.17: 1 to 2,000 clients, 4/0",
        clients(&[1, 20, 200, 2000], &[BIG_REQUESTS]),
        &[Metric::RequestGoodput, Metric::Latency],
        vec![claim("Ring with 2,000 clients beside 200", "no collapse", peak)],
    );
    experiment.differences = "To be measured at 100 Mbit/s: at 10, 2,000 requests take seven seconds.".into();
    experiment
}

fn faults() -> Experiment {
    let goodput = |what, said, f: u8, least: f64| {
        within(what, said, Metric::RequestGoodput, (RING, at(f, (HUGE, SMALL))), Bound::AtLeast(least))
    };
    experiment(
        "ring-7-18",
        "Ring, Figure 7.18: f = 1 to 3",
        ((1..=3).map(|f| point(f, 120, (HUGE, SMALL))).collect(), Axis::Faults, Asked::Alike),
        &[Metric::RequestGoodput, Metric::Data, Metric::LinkBalance, Metric::ReplicaCpu],
        vec![
            goodput("Ring's request goodput / B, n = 4", "0.97 · 4/3 = 1.293", 1, 0.97 * 4.0 / 3.0),
            goodput("n = 7", "0.96 · 7/6 = 1.120", 2, 0.96 * 7.0 / 6.0),
            goodput("n = 10", "(10/9 = 1.111 is the bound)", 3, 0.95 * 10.0 / 9.0),
        ],
    )
}

fn one_lan() -> Experiment {
    let place = at(1, (HUGE, SMALL));
    let mut experiment = experiment(
        "ring-one-lan",
        "Ring on one LAN",
        clients(&[60, 200], &[(HUGE, SMALL)]),
        &[Metric::RequestGoodput, Metric::Latency, Metric::LinkBytes, Metric::LinkBalance],
        vec![claim(
            "Ring's peak beside Chain's, 16 KiB",
            "about 1: the advantage vanishes",
            Ours::Ratio(Metric::RequestGoodput, (RING, place), ("chain", place)),
        )],
    );
    experiment.differences =
        "To be measured with `--lans 1`. Each link of a replica then carries requests of clients, \
        1/n, beside those of its predecessor, (n−1)/n: as much as a link of Chain's."
            .into();
    experiment
}

fn fast_links() -> Experiment {
    let goodput = |what, bytes: usize| {
        let bound = Bound::AtLeast(0.97 * 4.0 / 3.0);
        within(what, "0.97 · 4/3 = 1.293", Metric::RequestGoodput, (RING, at(1, (bytes, SMALL))), bound)
    };
    let mut experiment = experiment(
        "ring-fast-links",
        "Ring, 4/0 on links of 100 Mbit/s",
        clients(&[60, 200], &[BIG_REQUESTS, (HUGE, SMALL)]),
        &[Metric::RequestGoodput, Metric::Latency, Metric::Data, Metric::ReplicaCpu],
        vec![goodput("Ring's peak of request goodput / B, 16 KiB", HUGE), goodput("the same, 4 KiB", BIG)],
    );
    experiment.differences = "To be measured with `--rate 100mbit`.".into();
    experiment
}
