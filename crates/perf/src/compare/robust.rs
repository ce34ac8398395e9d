//! The experiments of section 6 of "The Next 700 BFT Protocols": what attacks cost Aliph, and what they cost protocols
//! that are robust. The attacks are those of [`super::fault`]. The paper's malformed requests are `partial-macs` here;
//! `malformed` is frames that are no messages.

use super::attacks::{Attacks, Quantity as Under};
use super::claim::{Bound, Claim, Ours};
use super::course::{Course, Event, Quantity};
use super::fault::Fault;
use super::sweep::{Axis, Metric, Place, Sweep};
use super::switching::{self, Moment, Switching};
use super::terms::{ANYWHERE, BIG_REQUESTS, NOTHING, SMALL, THE_PAPER, claim, names, point};
use super::{Experiment, Kind};
use crate::workload::Asked;
use bezant_core::schedule::Protocol;
use std::time::Duration;

/// Robust protocols need clients that sign.
const AARDVARK: &str = "aardvark:auth=hybrid";
const R_ALIPH: &str = "r-aliph:auth=hybrid";
/// As R-Aliph, with another fast instance. The Backup is the first, so that there is something to measure by.
const ROBUST_RING: &str = "[backup(aardvark), ring-fast]:auth=hybrid";
const ROBUST_CHAIN: &str = "[backup(aardvark), chain]:auth=hybrid";
/// Histories are filled in Quorum, where a client decides who has what. Chain may not follow: it would as soon as
/// somebody floods.
const TO_BACKUP: &str = "[quorum, backup(aardvark)]:auth=hybrid";

const THE_PAPER_OR_WANTED: &str = "the paper, or wanted";

/// The paper's, as in its Figure 18.
const CLIENTS: usize = 100;
/// Where each protocol has its peak, or comes close. With few clients it is latency that a slow replica costs: a batch
/// of Ring meets it twice, and waits for up to 20 ms each time.
const PEAKS: [usize; 2] = [400, 800];

/// The paper's four, and frames that are no messages.
const ATTACKS: [Fault; 5] =
    [Fault::ClientFlood, Fault::PartialMacs, Fault::Malformed, Fault::ProcessingDelay, Fault::ReplicaFlood];

/// The attacks of ours that are in none of the paper's tables. `lying-snapshot` is not among them: it lies only to
/// those that fetch state, and here nobody does.
const OTHER_ATTACKS: [Fault; 8] = [
    Fault::Censor,
    Fault::SlowByEpsilon,
    Fault::Equivocate,
    Fault::LowLoadForgery,
    Fault::PanicStorm,
    Fault::FeedbackLies,
    Fault::WithholdBody,
    Fault::JoinFlood,
];

/// Every experiment of this section, in its order, and the other attacks.
pub(super) fn all() -> [Experiment; 6] {
    [table_3(), table_4(), table_5(), figure_17(), figure_18(), other_attacks()]
}

fn attacks(attacks: &[Fault]) -> Kind {
    Kind::Attacks(Attacks {
        attacks: attacks.to_vec(),
        f: 1,
        clients: PEAKS.to_vec(),
        request_bytes: SMALL,
        reply_bytes: SMALL,
        scale: 1.0,
    })
}

fn table_3() -> Experiment {
    let kept = |protocol, attack: Fault, said| {
        let what = format!("`{protocol}` under `{}`, divided by the same without", attack.name());
        claim(what, said, Ours::Attacked(Under::Kept, protocol, attack))
    };
    let claims = vec![
        kept("aliph", Fault::ClientFlood, "0.55"),
        kept("aliph", Fault::PartialMacs, "0"),
        kept("aliph", Fault::Malformed, "–"),
        kept("aliph", Fault::ProcessingDelay, "0.05"),
        kept("aliph", Fault::ReplicaFlood, "0"),
        claim("Seconds without an answer, `aliph`", "all; 0 would be good", Ours::Silence("aliph")),
        claim("the same, `pbft`", "all; 0 would be good", Ours::Silence("pbft")),
    ];
    Experiment {
        name: "table-3".into(),
        title: "Table III: Aliph under attacks, 0/0".into(),
        protocols: names(&["aliph", "pbft"]),
        kind: attacks(&ATTACKS),
        claims,
        source: THE_PAPER,
        differences: WITH_ATTACKS.into(),
    }
}

/// How the runs under attacks differ from the paper's.
const WITH_ATTACKS: &str = "Each attack begins in the middle of a run, so that with and without it are a second apart; \
    it is measured at its end. The paper's peaks are over all numbers of clients, ours over those that are named; and \
    each of its replicas has a machine and a link to each other one, where here attackers take processor time from \
    those they attack. Its malformed requests are `partial-macs`, in which the client panics as well; `malformed` is \
    frames that are no messages. Who floods and is no client is the last replica, and it goes on with what it should \
    do.";

/// What is wanted of a composition under any attack, as a share of what Aardvark does without one.
const ROBUST_SHARE: f64 = 0.95;
/// The same of Aardvark itself.
const AARDVARK_SHARE: f64 = 0.9;

/// Aardvark, and what is robust because of it.
const ROBUST: [&str; 4] = [AARDVARK, R_ALIPH, ROBUST_RING, ROBUST_CHAIN];

/// Attacks on instances that end, of which Aardvark has none: it runs under them as a yardstick.
const OF_INSTANCES: [Fault; 3] = [Fault::PanicStorm, Fault::FeedbackLies, Fault::LowLoadForgery];

/// What is wanted of [`ROBUST`] under attacks; of Aardvark with what the paper says besides.
fn robust_claims(attacks: &[Fault], of_aardvark: impl Fn(Fault) -> &'static str) -> Vec<Claim> {
    let kept = |attack: &Fault| {
        let what = format!("`aardvark` under `{}`, divided by the same without", attack.name());
        let ours = Ours::Attacked(Under::Kept, AARDVARK, *attack);
        claim(what, of_aardvark(*attack), Ours::Surely(Box::new(ours), Bound::AtLeast(AARDVARK_SHARE)))
    };
    let compositions = [("r-aliph", R_ALIPH), ("robust ring", ROBUST_RING), ("robust chain", ROBUST_CHAIN)];
    let beside = |(name, protocol): (&str, &'static str), attack: &Fault| {
        let what = format!("{name} under `{}`, divided by `aardvark` without", attack.name());
        let ours = Ours::AttackedTimes(*attack, (protocol, Under::Under), (AARDVARK, Under::Before));
        claim(what, "at least 0.95", Ours::Surely(Box::new(ours), Bound::AtLeast(ROBUST_SHARE)))
    };
    let silent = |(name, protocol): (&str, &'static str)| {
        let what = format!("Seconds without an answer after the first 5 s of an attack, {name}");
        claim(what, "0", Ours::Silence(protocol))
    };
    let mut claims: Vec<_> = attacks.iter().filter(|attack| !OF_INSTANCES.contains(attack)).map(kept).collect();
    for one in compositions {
        let concerned = attacks.iter().filter(|attack| attack.concerns(Protocol::RAliph));
        claims.extend(concerned.map(|attack| beside(one, attack)));
    }
    claims.push(silent(("aardvark", AARDVARK)));
    claims.extend(compositions.map(silent));
    claims
}

fn table_4() -> Experiment {
    let paper = |attack| match attack {
        Fault::ClientFlood => "at least 0.90; the paper 0.96",
        Fault::PartialMacs => "at least 0.90; the paper 0.99",
        Fault::ProcessingDelay => "at least 0.90; the paper 0.83",
        Fault::ReplicaFlood => "at least 0.90; the paper 0.91",
        _ => "at least 0.90",
    };
    Experiment {
        name: "table-4".into(),
        title: "Table IV: robust protocols under attacks, 0/0".into(),
        protocols: names(&ROBUST),
        kind: attacks(&ATTACKS),
        claims: robust_claims(&ATTACKS, paper),
        source: THE_PAPER_OR_WANTED,
        differences: format!("Spinning and Prime are not among our protocols. {WITH_ATTACKS}"),
    }
}

fn other_attacks() -> Experiment {
    Experiment {
        name: "other-attacks".into(),
        title: "Robust protocols under attacks that are in none of the paper's tables, 0/0".into(),
        protocols: names(&ROBUST),
        kind: attacks(&OTHER_ATTACKS),
        claims: robust_claims(&OTHER_ATTACKS, |_| "at least 0.90"),
        source: "wanted",
        differences:
            "Each attack begins in the middle of a run, so that with and without it are a second apart; it is \
            measured at its end. Attackers take processor time from those they attack. `equivocate` and `join-flood` \
            are on Aardvark alone: the head of a composition's fast part has nothing to propose differently to \
            different replicas, and nobody joins. `low-load-forgery`, `panic-storm` and `feedback-lies` are about \
            instances that end, of which Aardvark alone has none: there it only reads and drops them. \
            `lying-snapshot` is not among them: it lies only to those that fetch state."
                .into(),
    }
}

/// The paper's bound on histories, which is full on half of the replicas and empty on the other half.
const HISTORY: usize = 384;
/// So many milliseconds, at most, are wanted.
const SWITCH_MS: f64 = 20.0;
/// And under one so many times that.
const SWITCH_TIMES: f64 = 1.1;

fn table_5() -> Experiment {
    let place = |attack| switching::Place { history: HISTORY, missing_percent: 100, attack };
    let under = [
        (Fault::ClientFlood, "at most 1.1; the paper 1.035"),
        (Fault::Censor, "at most 1.1; the paper 1.003"),
        (Fault::ProcessingDelay, "at most 1.1; the paper 1.059"),
        (Fault::ReplicaFlood, "at most 1.1; the paper 1.048"),
    ];
    let takes =
        |attack| Ours::Surely(Box::new(Ours::Switch(Moment::All, TO_BACKUP, place(attack))), Bound::AtMost(SWITCH_MS));
    let alone = |(attack, _): (Fault, _)| {
        let what = format!("the same under `{}`, in ms", attack.name());
        claim(what, "at most 20", takes(Some(attack)))
    };
    let beside = |(attack, said): (Fault, _)| {
        let ours = Ours::Switches(Moment::All, TO_BACKUP, place(Some(attack)), place(None));
        let what = format!("the same under `{}`, divided by that", attack.name());
        claim(what, said, Ours::Surely(Box::new(ours), Bound::AtMost(SWITCH_TIMES)))
    };
    let first = claim("Until all replicas go on, in ms", "at most 20; the paper 60.36", takes(None));
    let claims = [first].into_iter().chain(under.map(alone)).chain(under.map(beside)).collect();
    Experiment {
        name: "table-5".into(),
        title: "Table V: the longest switch, in ms, with histories of 384 × 10 kB on half of the replicas".into(),
        protocols: names(&[TO_BACKUP]),
        kind: Kind::Switching(Switching {
            f: 1,
            histories: vec![HISTORY],
            missing_percents: vec![100],
            lacking: 2,
            request_bytes: 10_000,
            history_interval: Some(HISTORY as u64 / 3),
            attacks: [None].into_iter().chain(under.map(|(attack, _)| Some(attack))).collect(),
        }),
        claims,
        source: THE_PAPER_OR_WANTED,
        differences: "The paper's replicas switch by themselves from Chain to a Backup; here a client panics in \
            Quorum, where it can decide who has what, and a Backup is next as well. It panics at those two first that \
            have a full history, so that theirs are among the first three reports, and all of it is handed on. An \
            attack begins half a second before, when the history is there. A replica that lies has none, and is not \
            waited for; who is unfair in the paper is `censor`."
            .into(),
    }
}

/// The least that is wanted of R-Aliph's throughput, as a share of Aliph's.
const OVERHEAD_SHARE: f64 = 0.94;

fn figure_17() -> Experiment {
    const ALIPH: &str = "aliph:auth=hybrid";
    let clients = [1, 10, 40, 100, 200];
    let sizes = [(NOTHING, "0 kB", "at least 0.94"), (BIG_REQUESTS, "4 kB", "at least 0.94; the paper 0.97")];
    let mut claims: Vec<Claim> = Vec::new();
    let mut points = Vec::new();
    for (bytes, kilobytes, said) in sizes {
        for clients in clients {
            points.push(point(1, clients, bytes));
            let place = Place { clients: Some(clients), bytes: Some(bytes), ..ANYWHERE };
            let ratio = Ours::Ratio(Metric::Throughput, (R_ALIPH, place), (ALIPH, place));
            let what = format!("R-Aliph's throughput, divided by Aliph's, {kilobytes}, clients: {clients}");
            claims.push(claim(what, said, Ours::Surely(Box::new(ratio), Bound::AtLeast(OVERHEAD_SHARE))));
        }
    }
    Experiment {
        name: "figure-17".into(),
        title: "Figure 17: R-Aliph beside Aliph without attacks".into(),
        protocols: names(&[ALIPH, R_ALIPH]),
        kind: Kind::Sweep(Sweep {
            points,
            axis: Axis::Clients,
            metrics: vec![Metric::Throughput, Metric::ReplicaCpu],
            asked: Asked::AlmostAlike,
            response_over: None,
        }),
        claims,
        source: THE_PAPER_OR_WANTED,
        differences: "The paper shows sizes from 0 to 10 kB at the peak. Clients of both sign, as R-Aliph's have to. \
                      One operation in fifty has 512 bytes where the others have 4 kB, so that it does not depend on \
                      what came before who acknowledges a frame."
            .into(),
    }
}

fn figure_18() -> Experiment {
    let [before, down, after] = [4, 10, 12].map(Duration::from_secs);
    let event = Event::Outage { fault: Fault::ProcessingDelay, clients: CLIENTS, before, down, after };
    let of_r_aliph = |quantity| Ours::Quantity(quantity, R_ALIPH);
    let during = Ours::Times((R_ALIPH, Quantity::During), (AARDVARK, Quantity::Before));
    Experiment {
        name: "figure-18".into(),
        title: "Figure 18: R-Aliph while its head is slow on purpose".into(),
        protocols: names(&[AARDVARK, R_ALIPH]),
        kind: Kind::Course(Course { event, f: 1, request_bytes: vec![SMALL], reply_bytes: SMALL }),
        claims: vec![
            claim("R-Aliph leaves the slow instance after, in s", "0.07", of_r_aliph(Quantity::UntilSwitch)),
            claim("Its worst half second, divided by its throughput before", "–", of_r_aliph(Quantity::Depth)),
            claim(
                "Its throughput during the attack, divided by `aardvark` without",
                "at least 0.79, what the paper's Backup keeps",
                Ours::Surely(Box::new(during), Bound::AtLeast(0.79)),
            ),
            claim(
                "Half of its throughput is back after, in s",
                "at most 1",
                Ours::Surely(Box::new(of_r_aliph(Quantity::UntilBack)), Bound::AtMost(1.0)),
            ),
            claim("It is in a fast instance again after, in s", "–", of_r_aliph(Quantity::UntilFast)),
        ],
        source: THE_PAPER_OR_WANTED,
        differences: "The first Backup is over before, and the attack ends, which the paper's does not, so that the \
            way back is seen. Which instance runs is looked at ten times a second, at a replica that is honest. From a \
            Backup R-Aliph goes on to Quorum and Chain, and leaves them again while the attack lasts."
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::attacks::{Results, Run};
    use crate::compare::claim::Measured;
    use crate::compare::course::{BUCKET, Timeline};

    /// A run with so much in each bucket before the attack, and so much under it.
    fn run(round: usize, protocol: &str, attack: Fault, before: u64, under: u64) -> Run {
        let Kind::Attacks(attacks) = attacks(&ATTACKS) else { unreachable!("see above") };
        let buckets = [[before; 60], [under; 60]].concat();
        let marks = [60, 120].map(|bucket| BUCKET * bucket).to_vec();
        let timeline = Timeline { protocol: protocol.to_owned(), buckets, marks, ..Timeline::default() };
        Run { round, attack, clients: 1, spans: attacks.spans(Duration::from_secs(1)), timeline }
    }

    #[test]
    fn compositions_are_judged_by_what_aardvark_does_without_an_attack() {
        let both = |round| {
            let attack = Fault::ProcessingDelay;
            [
                run(round, AARDVARK, attack, 100, 92),
                run(round, R_ALIPH, attack, 300, 94),
                run(round, ROBUST_RING, attack, 300, 0),
            ]
        };
        let measured = Measured::Attacks(Results { runs: (1..=6).flat_map(both).collect() });
        let told: Vec<_> = table_4().claims.iter().filter_map(|it| it.ours.describe(&measured)).collect();
        let wanted = [
            "0.920 [0.920, 0.920]: yes",
            "0.940 [0.940, 0.940]: **no**",
            "0.000 [0.000, 0.000]: **no**",
            "0 in the worst run of 6: yes",
            "0 in the worst run of 6: yes",
            "1 in the worst run of 6: **no**",
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn every_attack_has_its_claims() {
        let about = |experiment: &Experiment, attack: Fault| {
            let name = format!("`{}`", attack.name());
            experiment.claims.iter().filter(|claim| claim.what.contains(&name)).count()
        };
        for attack in ATTACKS {
            assert_eq!([about(&table_3(), attack), about(&table_4(), attack)], [1, 4], "{attack:?}");
        }
        for attack in OTHER_ATTACKS {
            let claims = match attack {
                Fault::Equivocate | Fault::JoinFlood => 1,
                attack if OF_INSTANCES.contains(&attack) => 3,
                _ => 4,
            };
            assert_eq!((about(&other_attacks(), attack), ATTACKS.contains(&attack)), (claims, false), "{attack:?}");
        }
        let Kind::Switching(switching) = table_5().kind else { panic!("it is about switches") };
        for attack in switching.attacks.into_iter().flatten() {
            assert_eq!(about(&table_5(), attack), 2, "{attack:?}");
        }
    }

    #[test]
    fn the_history_is_as_long_as_the_bound_allows() {
        let Kind::Switching(switching) = table_5().kind else { panic!("it is about switches") };
        let bound = 3 * switching.history_interval.unwrap() as usize;
        assert_eq!(switching.histories, [bound]);
        assert_eq!(2 * switching.lacking, table_5().replicas_max());
    }
}
