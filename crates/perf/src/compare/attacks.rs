//! What attacks cost: throughput before each and under it, once the cluster has had time to adapt, in the same run.

use super::course::{Course, Event, Timeline, rate};
use super::fault::{Culprit, Fault};
use crate::spread::{Spread, ratios};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a cluster runs before anything is measured, once it has left the Backup that it may begin with: from
/// Quorum, which comes next, it goes on to the instance that is meant.
const SETTLES: Duration = Duration::from_secs(1);
/// After so much of an attack no second may pass without an answer: what is wanted of robust protocols.
const GRACE: Duration = Duration::from_secs(5);
/// How long a cluster may adapt to a primary that lies: Aardvark judges it after some seconds, and may do so twice.
const ADAPTS_TO_PRIMARY: Duration = Duration::from_secs(8);
/// How long a composition may adapt to a client whose panics end each fast instance: each Backup is twice as long as
/// the one before it, and the fourth comes only after some six seconds.
const ADAPTS_TO_PANICS: Duration = Duration::from_secs(15);
/// How long without an answer is one second without an answer.
const SECOND: Duration = Duration::from_secs(1);

/// What is measured: each attack by itself, on a cluster of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Attacks {
    /// The attacks.
    pub attacks: Vec<Fault>,
    /// Faults that are tolerated.
    pub f: u8,
    /// Numbers of clients, each of which has one request under way: what a protocol does is its peak over them.
    pub clients: Vec<usize>,
    /// Bytes of an operation.
    pub request_bytes: usize,
    /// Bytes of a result.
    pub reply_bytes: usize,
    /// By which factor a cluster has more or less time to settle and to adapt than usual.
    pub scale: f64,
}

/// When a run is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// So long before the attack, and so long at its end.
    pub measured: Duration,
    /// From so much of the attack on, every second counts.
    pub grace: Duration,
}

impl Attacks {
    /// One of them over time, with so many clients, and so long a measurement before it and at its end.
    pub fn course(&self, attack: Fault, clients: usize, measured: Duration) -> Course {
        let adapts = match (attack, attack.culprit()) {
            (_, Culprit::First) => ADAPTS_TO_PRIMARY,
            (Fault::PartialMacs | Fault::PanicStorm, _) => ADAPTS_TO_PANICS,
            (_, Culprit::Machine | Culprit::Client | Culprit::Last) => GRACE,
        };
        let [settles, adapts] = [SETTLES, adapts].map(|time| time.mul_f64(self.scale) + measured);
        let event = Event::Outage { fault: attack, clients, before: settles, down: adapts, after: Duration::ZERO };
        Course { event, f: self.f, request_bytes: vec![self.request_bytes], reply_bytes: self.reply_bytes }
    }

    /// Every attack with every number of clients.
    pub fn places(&self) -> impl Iterator<Item = (Fault, usize)> {
        self.attacks.iter().flat_map(|attack| self.clients.iter().map(|clients| (*attack, *clients)))
    }

    /// Of each run with so long a measurement.
    pub fn spans(&self, measured: Duration) -> Spans {
        Spans { measured, grace: GRACE.mul_f64(self.scale) }
    }
}

/// What of a run is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Operations per second before the attack, at the peak.
    Before,
    /// Operations per second under it, at its end and at the peak.
    Under,
    /// The latter divided by the former.
    Kept,
    /// Seconds of the attack without an answer, after the first five: the most of any number of clients.
    Silent,
}

impl Quantity {
    /// All.
    pub const ALL: [Self; 4] = [Self::Before, Self::Under, Self::Kept, Self::Silent];

    /// With its unit.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Before => "op/s without the attack",
            Self::Under => "op/s under it, once adapted",
            Self::Kept => "the same, divided by op/s without it",
            Self::Silent => "seconds without an answer after the first 5 s of it",
        }
    }
}

/// One protocol under one attack with one number of clients in one round.
#[derive(Clone, Debug)]
pub struct Run {
    /// From 1.
    pub round: usize,
    /// Which attack.
    pub attack: Fault,
    /// How many clients.
    pub clients: usize,
    /// When it is looked at.
    pub spans: Spans,
    /// What was answered when; the attack is between its two marks.
    pub timeline: Timeline,
}

impl Run {
    /// Operations per second just before the attack; `None` if the run was too short to tell.
    fn before(&self) -> Option<f64> {
        self.rate(*self.timeline.marks.first()?)
    }

    /// And at its end.
    fn under(&self) -> Option<f64> {
        self.rate(*self.timeline.marks.get(1)?)
    }

    /// What is measured up to then. The bucket in which the attack begins belongs to neither side.
    fn rate(&self, end: Duration) -> Option<f64> {
        let buckets = &self.timeline.buckets;
        let end = Timeline::bucket(end).min(buckets.len());
        let length = Timeline::bucket(self.spans.measured).max(1);
        buckets.get(end.checked_sub(length)?..end).map(rate)
    }

    /// Seconds of the attack without an answer, after its grace; `None` if it was over by then.
    fn silent(&self) -> Option<f64> {
        let Timeline { buckets, marks, .. } = &self.timeline;
        let [begins, ends] = *marks.first_chunk()?;
        let ends = Timeline::bucket(ends).min(buckets.len());
        let counted = buckets.get(Timeline::bucket(begins + self.spans.grace)..ends)?;
        let second = Timeline::bucket(SECOND);
        // Of less than a second nothing can be said.
        (counted.len() >= second)
            .then(|| counted.split(|ops| *ops > 0).map(|silence| silence.len() / second).sum::<usize>() as f64)
    }
}

/// Every run.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// In the order in which they were measured.
    pub runs: Vec<Run>,
}

impl Results {
    /// The value of each round that has one.
    pub(super) fn rounds(&self, protocol: &str, attack: Fault, quantity: Quantity) -> BTreeMap<usize, f64> {
        let rounds = |quantity| self.rounds(protocol, attack, quantity);
        let value = match quantity {
            Quantity::Before => Run::before,
            Quantity::Under => Run::under,
            Quantity::Silent => Run::silent,
            Quantity::Kept => {
                let (under, before) = (rounds(Quantity::Under), rounds(Quantity::Before));
                let kept = |(round, under): (usize, f64)| Some((round, under / before.get(&round)?));
                return under.into_iter().filter_map(kept).collect();
            }
        };
        let mut most = BTreeMap::new();
        for run in self.runs_of(protocol, attack) {
            let Some(value) = value(run) else { continue };
            most.entry(run.round).and_modify(|most: &mut f64| *most = most.max(value)).or_insert(value);
        }
        most
    }

    fn runs_of(&self, protocol: &str, attack: Fault) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| run.timeline.protocol == protocol && run.attack == attack)
    }

    /// Of a quantity over the rounds.
    pub fn spread(&self, protocol: &str, attack: Fault, quantity: Quantity) -> Option<Spread> {
        Spread::of(self.rounds(protocol, attack, quantity).into_values())
    }

    /// What one protocol's quantity is, divided by another's of the same round and attack.
    pub fn ratio(&self, attack: Fault, subject: (&str, Quantity), base: (&str, Quantity)) -> Option<Spread> {
        Spread::of(ratios(&self.rounds(subject.0, attack, subject.1), &self.rounds(base.0, attack, base.1)))
    }

    /// The most seconds without an answer of a protocol's runs, whatever the attack, and how many runs it has.
    pub fn silence(&self, protocol: &str) -> Option<(f64, usize)> {
        let runs = self.runs.iter().filter(|run| run.timeline.protocol == protocol);
        let silent: Vec<_> = runs.filter_map(Run::silent).collect();
        Some((silent.iter().copied().reduce(f64::max)?, silent.len()))
    }

    /// Of the runs under an attack that are the peak of their round, that of median throughput at its end.
    pub fn typical(&self, protocol: &str, attack: Fault) -> Option<&Timeline> {
        let peaks = self.rounds(protocol, attack, Quantity::Under);
        let rate = |run: &Run| run.under().filter(|rate| peaks.get(&run.round) == Some(rate));
        let runs = self.runs_of(protocol, attack);
        let mut runs: Vec<_> = runs.filter_map(|run| Some((rate(run)?, run))).collect();
        runs.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        runs.get(runs.len() / 2).map(|(_, run)| &run.timeline)
    }

    /// Every bucket as a line of comma-separated values, and a head that names the columns.
    pub fn to_csv(&self) -> String {
        let mut text = "round,attack,clients,protocol,from_ms,ops,instance,event\n".to_owned();
        for Run { round, attack, clients, timeline, .. } in &self.runs {
            timeline.write_lines(&format!("{round},{},{clients}", attack.name()), &mut text);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::course::BUCKET;

    const SPANS: Spans = Spans { measured: Duration::from_millis(200), grace: Duration::from_millis(500) };

    /// Two buckets to settle, two before the attack, and what is answered under it.
    fn run(round: usize, protocol: &str, before: u64, under: &[u64]) -> Run {
        let buckets = [&[1, 1, before, before], under].concat();
        let marks = [4, buckets.len() as u32].map(|bucket| BUCKET * bucket).to_vec();
        let timeline = Timeline { protocol: protocol.to_owned(), buckets, marks, ..Timeline::default() };
        Run { round, attack: Fault::Malformed, clients: 1, spans: SPANS, timeline }
    }

    #[test]
    fn a_run_is_measured_just_before_the_attack_and_at_its_end() {
        let run = run(1, "a", 10, &[vec![0; 5], vec![7; 8], vec![4, 6]].concat());
        assert_eq!([run.before(), run.under(), run.silent()], [Some(100.0), Some(50.0), Some(0.0)]);
        let short = Run { timeline: Timeline::default(), ..run };
        assert_eq!([short.before(), short.under(), short.silent()], [None; 3]);
    }

    #[test]
    fn what_a_protocol_does_is_its_peak_over_all_numbers_of_clients() {
        let with = |clients, run| Run { clients, ..run };
        let few = [with(1, run(1, "a", 10, &[5; 15])), with(1, run(2, "a", 10, &[2; 15]))];
        let many = [with(9, run(1, "a", 8, &[4; 15])), with(9, run(2, "a", 20, &[12; 15]))];
        let results = Results { runs: [few, many].concat() };
        let rounds = |quantity| Vec::from_iter(results.rounds("a", Fault::Malformed, quantity).into_values());
        assert_eq!(rounds(Quantity::Before), [100.0, 200.0]);
        assert_eq!(rounds(Quantity::Under), [50.0, 120.0]);
        assert_eq!(rounds(Quantity::Kept), [0.5, 0.6]);
        let typical = results.typical("a", Fault::Malformed).map(|timeline| timeline.buckets[5]);
        assert_eq!(typical, Some(12), "of two it is the faster one, with its number of clients");
    }

    #[test]
    fn whole_seconds_without_an_answer_count_after_the_grace() {
        let silent = |under: &[u64]| run(1, "a", 10, under).silent();
        assert_eq!(silent(&[vec![0; 15], vec![1; 10], vec![0; 10]].concat()), Some(2.0));
        assert_eq!(silent(&[vec![0; 14], vec![1], vec![0; 9], vec![1]].concat()), Some(0.0));
        assert_eq!(silent(&[vec![1; 11], vec![0; 10], vec![1; 14]].concat()), Some(1.0), "whenever it begins");
        assert_eq!(silent(&[0; 14]), None, "that is less than a second after the grace");
    }

    #[test]
    fn the_worst_run_says_how_long_a_protocol_was_silent() {
        let silent = [vec![1; 5], vec![0; 10]].concat();
        let results =
            Results { runs: vec![run(1, "a", 10, &silent), run(2, "a", 10, &[1; 15]), run(1, "b", 1, &[1; 15])] };
        assert_eq!(results.silence("a"), Some((1.0, 2)));
        assert_eq!((results.silence("b"), results.silence("c")), (Some((0.0, 1)), None));
    }

    #[test]
    fn protocols_are_compared_under_the_same_attack() {
        let results = Results { runs: vec![run(1, "a", 10, &[5; 6]), run(1, "b", 20, &[19; 6])] };
        let ratio = |subject, base| results.ratio(Fault::Malformed, subject, base).map(|spread| spread.median);
        assert_eq!(ratio(("b", Quantity::Under), ("a", Quantity::Before)), Some(1.9));
        assert_eq!(results.ratio(Fault::Censor, ("b", Quantity::Under), ("a", Quantity::Before)), None);
        assert_eq!(results.typical("b", Fault::Malformed).map(|timeline| timeline.buckets.len()), Some(10));
        assert_eq!(results.to_csv().lines().last(), Some("1,malformed,1,b,900,19,,0"));
    }

    #[test]
    fn a_liar_that_is_primary_has_longer_to_be_left_and_backups_have_longer_to_grow() {
        let attacks = Attacks {
            attacks: vec![Fault::ProcessingDelay, Fault::PartialMacs, Fault::ClientFlood],
            f: 1,
            clients: vec![1],
            request_bytes: 8,
            reply_bytes: 8,
            scale: 0.5,
        };
        let lasts = |attack| match attacks.course(attack, 1, Duration::from_secs(1)).event {
            Event::Outage { before, down, .. } => [before, down].map(|time| time.as_millis()),
            Event::Bursts(_) => unreachable!("an attack is an outage"),
        };
        let all: Vec<_> = attacks.attacks.iter().map(|attack| lasts(*attack)).collect();
        assert_eq!(all, [[1_500, 5_000], [1_500, 8_500], [1_500, 3_500]]);
        assert_eq!(attacks.spans(SPANS.measured).grace, Duration::from_millis(2_500));
    }
}
