//! Throughput over time: what a client sees while something happens.

use super::csv;
use super::fault::Fault;
use crate::spread::{Spread, ratios};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// How long one bucket of a timeline is.
pub const BUCKET: Duration = Duration::from_millis(100);

/// After a fault, throughput counts as back at this share of what it was before.
const BACK_SHARE: f64 = 0.5;
/// And only if it stays there for so many buckets; so does the fast path.
const BACK_BUCKETS: usize = 5;
/// How long a cluster may take to get used to a fault.
const SETTLES: Duration = Duration::from_secs(2);

/// So many clients send so many requests together; the next burst begins when the last of them is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Clients, each with one request under way.
    pub clients: usize,
    /// Requests of all of them.
    pub operations: u64,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something is wrong for a while, and the clients go on.
    Outage {
        /// What.
        fault: Fault,
        /// How many clients.
        clients: usize,
        /// How long all is well.
        before: Duration,
        /// How long the fault lasts.
        down: Duration,
        /// How long is looked on afterwards.
        after: Duration,
    },
    /// Clients come and go.
    Bursts(Vec<Burst>),
}

/// An experiment over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// What happens.
    pub event: Event,
    /// Faults that are tolerated.
    pub f: u8,
    /// Bytes of an operation; requests take these sizes in turn.
    pub request_bytes: Vec<usize>,
    /// Bytes of a result.
    pub reply_bytes: usize,
}

impl Course {
    /// The most clients at any time.
    pub fn clients(&self) -> usize {
        match &self.event {
            Event::Outage { clients, .. } => *clients,
            Event::Bursts(bursts) => bursts.iter().map(|burst| burst.clients).max().unwrap_or(0),
        }
    }

    /// The same, longer or shorter by a factor. What is before and after a fault never takes longer than it does.
    pub fn scaled(mut self, factor: f64) -> Self {
        match &mut self.event {
            Event::Outage { before, down, after, .. } => {
                *down = down.mul_f64(factor);
                [before, after].into_iter().for_each(|time| *time = time.mul_f64(factor.min(1.0)));
            }
            Event::Bursts(bursts) => {
                let scale = |burst: &mut Burst| burst.operations = (burst.operations as f64 * factor).ceil() as u64;
                bursts.iter_mut().for_each(scale);
            }
        }
        self
    }
}

/// What one protocol did in one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The protocol's name.
    pub protocol: String,
    /// Operations that ended in each [`BUCKET`].
    pub buckets: Vec<u64>,
    /// The instance that a replica which was up said to be in, at the bucket's end; the last known one if it said
    /// nothing just then.
    pub instances: Vec<u64>,
    /// Whether that instance is one of the fast ones, and no Backup and no resilient ring.
    pub fast: Vec<bool>,
    /// When something happened: a fault began and ended, or a burst ended.
    pub marks: Vec<Duration>,
    /// Until the last request was answered.
    pub total: Duration,
}

/// Operations per second in a span of buckets.
pub(super) fn rate(buckets: &[u64]) -> f64 {
    buckets.iter().sum::<u64>() as f64 / (buckets.len().max(1) as f64 * BUCKET.as_secs_f64())
}

impl Timeline {
    pub(super) fn bucket(at: Duration) -> usize {
        at.div_duration_f64(BUCKET) as usize
    }

    /// Every bucket as a line of comma-separated values that begins with these.
    pub(super) fn write_lines(&self, first: &str, text: &mut String) {
        let protocol = csv::cell(&self.protocol);
        for (number, ops) in self.buckets.iter().enumerate() {
            let from_ms = number * BUCKET.as_millis() as usize;
            let instance = self.instances.get(number).map_or_else(String::new, u64::to_string);
            let event = self.marks.iter().any(|at| Self::bucket(*at) == number);
            let _ = writeln!(text, "{first},{protocol},{from_ms},{ops},{instance},{}", u8::from(event));
        }
    }

    /// Operations per second before, during and after the time between the two marks of an outage.
    fn thirds(&self) -> Option<[f64; 3]> {
        let [gone, back] = *self.marks.first_chunk()?;
        let (gone, back) = (Self::bucket(gone), Self::bucket(back));
        // The buckets in which the fault begins and ends belong to neither side.
        let (before, during) = (self.buckets.get(..gone)?, self.buckets.get(gone + 1..back)?);
        Some([before, during, self.buckets.get(back + 1..)?].map(rate))
    }

    /// Operations per second during the fault once a cluster is used to it; of shorter faults nothing can be said.
    fn settled(&self) -> Option<f64> {
        let [gone, back] = *self.marks.first_chunk()?;
        let settled = self.buckets.get(Self::bucket(gone + SETTLES) + 1..Self::bucket(back))?;
        (!settled.is_empty()).then(|| rate(settled))
    }

    /// Seconds from the beginning of the fault until another instance is seen, if one is before its end.
    fn seconds_until_switch(&self) -> Option<f64> {
        let [gone, back] = self.marks.first_chunk()?.map(Self::bucket);
        let of_fault = self.instances.get(gone..back.min(self.instances.len()))?;
        let waited = of_fault.iter().position(|instance| *instance != of_fault[0])?;
        Some(waited as f64 * BUCKET.as_secs_f64())
    }

    /// The fewest operations per second in half a second of the fault, divided by what it was before.
    fn depth(&self) -> Option<f64> {
        let [before, ..] = self.thirds()?;
        let [gone, back] = self.marks.first_chunk()?.map(Self::bucket);
        let lowest = self.buckets.get(gone + 1..back)?.windows(BACK_BUCKETS).map(rate).reduce(f64::min)?;
        Some(lowest / before)
    }

    /// Seconds from the end of the fault until throughput is back, if it ever is.
    fn seconds_until_back(&self) -> Option<f64> {
        let [before, ..] = self.thirds()?;
        self.seconds_until(&self.buckets, |ops| rate(&[*ops]) >= BACK_SHARE * before)
    }

    /// Seconds from the end of the fault until something holds and stays so for a while.
    fn seconds_until<T>(&self, buckets: &[T], holds: impl Fn(&T) -> bool) -> Option<f64> {
        let end = Self::bucket(*self.marks.get(1)?);
        let waited = buckets.get(end..)?.windows(BACK_BUCKETS).position(|window| window.iter().all(&holds))?;
        Some(waited as f64 * BUCKET.as_secs_f64())
    }

    /// The most operations per second over one second.
    fn peak(&self) -> f64 {
        let second = (1.0 / BUCKET.as_secs_f64()) as usize;
        self.buckets.windows(second.min(self.buckets.len().max(1))).map(rate).fold(0.0, f64::max)
    }
}

/// All timelines of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// In the order in which they were measured, each with its round, from 1.
    pub timelines: Vec<(usize, Timeline)>,
}

/// What of a timeline is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Operations per second before the fault.
    Before,
    /// Operations per second during the fault.
    During,
    /// The same, divided by what it was before.
    DuringShare,
    /// Operations per second during the fault, without its first two seconds.
    Settled,
    /// Seconds from the beginning of the fault until another instance runs.
    UntilSwitch,
    /// The least throughput over half a second of the fault, divided by what it was before.
    Depth,
    /// Seconds from the end of the fault until throughput is back at half of what it was before.
    UntilBack,
    /// Seconds from the end of the fault until a fast instance runs and goes on running.
    UntilFast,
    /// Seconds until everything is done.
    Total,
    /// The most operations per second over one second.
    Peak,
}

impl Quantity {
    /// With its unit.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Before => "op/s before the fault",
            Self::During => "op/s during the fault",
            Self::DuringShare => "the same, divided by op/s before",
            Self::Settled => "op/s during the fault, after its first 2 s",
            Self::UntilSwitch => "s from its beginning until another instance runs",
            Self::Depth => "op/s in the worst half second of it, divided by op/s before",
            Self::UntilBack => "s from its end until half of that throughput is back",
            Self::UntilFast => "s from its end until a fast instance runs",
            Self::Total => "s until all requests are answered",
            Self::Peak => "op/s in the best second",
        }
    }

    /// What says something about a course.
    pub const fn of_event(event: &Event) -> &'static [Self] {
        match event {
            Event::Outage { .. } => &[
                Self::Before,
                Self::During,
                Self::DuringShare,
                Self::Settled,
                Self::UntilSwitch,
                Self::Depth,
                Self::UntilBack,
                Self::UntilFast,
            ],
            Event::Bursts(_) => &[Self::Total, Self::Peak],
        }
    }

    fn of(self, timeline: &Timeline) -> Option<f64> {
        match self {
            Self::Before => timeline.thirds().map(|[before, ..]| before),
            Self::During => timeline.thirds().map(|[_, during, _]| during),
            Self::DuringShare => timeline.thirds().map(|[before, during, _]| during / before),
            Self::Settled => timeline.settled(),
            Self::UntilSwitch => timeline.seconds_until_switch(),
            Self::Depth => timeline.depth(),
            Self::UntilBack => timeline.seconds_until_back(),
            Self::UntilFast => timeline.seconds_until(&timeline.fast, |fast| *fast),
            Self::Total => Some(timeline.total.as_secs_f64()),
            Self::Peak => Some(timeline.peak()),
        }
    }
}

impl Results {
    /// The value of each round that has one.
    pub(super) fn rounds(&self, protocol: &str, quantity: Quantity) -> BTreeMap<usize, f64> {
        let chosen = self.timelines.iter().filter(|(_, timeline)| timeline.protocol == protocol);
        chosen.filter_map(|(round, timeline)| Some((*round, quantity.of(timeline)?))).collect()
    }

    /// Of a quantity over the rounds.
    pub fn spread(&self, protocol: &str, quantity: Quantity) -> Option<Spread> {
        Spread::of(self.rounds(protocol, quantity).into_values())
    }

    /// What one protocol's quantity is, divided by another's of the same round.
    pub fn ratio(&self, subject: (&str, Quantity), base: (&str, Quantity)) -> Option<Spread> {
        Spread::of(ratios(&self.rounds(subject.0, subject.1), &self.rounds(base.0, base.1)))
    }

    /// A protocol's round that took the median time and, where all took the same, answered the median number.
    pub fn typical(&self, protocol: &str) -> Option<&Timeline> {
        let all = self.timelines.iter().map(|(_, timeline)| timeline);
        let mut timelines: Vec<_> = all.filter(|timeline| timeline.protocol == protocol).collect();
        timelines.sort_by_key(|timeline| (timeline.buckets.len(), timeline.buckets.iter().sum::<u64>()));
        timelines.get(timelines.len() / 2).copied()
    }

    /// Every bucket as a line of comma-separated values, and a head that names the columns.
    pub fn to_csv(&self) -> String {
        let mut text = "round,protocol,from_ms,ops,instance,event\n".to_owned();
        for (round, timeline) in &self.timelines {
            timeline.write_lines(&round.to_string(), &mut text);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(buckets: &[u64]) -> Timeline {
        let marks = [2, 4].map(|bucket| BUCKET * bucket).to_vec();
        Timeline { protocol: "pbft".into(), buckets: buckets.to_vec(), marks, ..Timeline::default() }
    }

    #[test]
    fn an_outage_is_measured_between_its_marks() {
        let timeline = outage(&[10, 10, 7, 1, 2, 4, 5, 5, 5, 5, 5, 5]);
        let [before, during, after] = timeline.thirds().unwrap();
        assert_eq!((before, during), (100.0, 10.0));
        assert!((after - 34.0 / 0.7).abs() < 1e-9, "{after}");
        // Bucket 6 is the first of five with at least half of 100 per second; the return was at 4.
        assert_eq!(timeline.seconds_until_back(), Some(0.2));
        assert_eq!(outage(&[10, 10, 7, 1, 2, 4, 4, 4, 4, 4]).seconds_until_back(), None);
        assert_eq!(Timeline::default().thirds(), None);
    }

    #[test]
    fn a_fault_has_two_seconds_to_settle() {
        let settled = |seconds: usize| {
            let marks = [1, 1 + 10 * seconds as u32].map(|bucket| BUCKET * bucket).to_vec();
            let buckets = [vec![9], vec![0; 21], vec![4; 10], vec![9; 20]].concat();
            Quantity::Settled.of(&Timeline { buckets, marks, ..Timeline::default() })
        };
        assert_eq!(settled(3), Some(40.0));
        assert_eq!((settled(2), settled(1)), (None, None));
    }

    #[test]
    fn a_switch_is_the_first_other_instance_of_the_fault() {
        let marks = [2, 9].map(|bucket| BUCKET * bucket).to_vec();
        let until = |instances: &[u64]| {
            let timeline = Timeline { instances: instances.to_vec(), marks: marks.clone(), ..Timeline::default() };
            Quantity::UntilSwitch.of(&timeline).map(|seconds| (seconds * 10.0).round())
        };
        assert_eq!(until(&[1, 2, 2, 2, 2, 3, 3, 3, 3, 3]), Some(3.0));
        assert_eq!(until(&[1, 2, 2, 2, 2, 2, 2, 2, 2, 3]), None, "that was after the fault");
        assert_eq!(until(&[]), None);
        let buckets = [vec![10; 3], vec![5, 1, 1, 1, 1, 1, 9]].concat();
        let depth = Quantity::Depth.of(&Timeline { buckets, marks, ..Timeline::default() });
        assert_eq!(depth, Some(0.1));
    }

    #[test]
    fn the_fast_path_is_back_when_it_stays() {
        let fast = [true, true, false, false, true, false, true, true, true, true, true];
        let until = |fast: &[bool]| Quantity::UntilFast.of(&Timeline { fast: fast.to_vec(), ..outage(&[1; 12]) });
        // The fault ended in bucket 4.
        assert_eq!(until(&fast), Some(0.2));
        assert_eq!(until(&fast[..10]), None);
        assert_eq!(until(&[]), None);
    }

    #[test]
    fn the_peak_is_that_of_a_whole_second() {
        let one_high_bucket = Timeline { buckets: [vec![1; 9], vec![91], vec![1; 9]].concat(), ..Timeline::default() };
        assert_eq!(one_high_bucket.peak(), 100.0);
        assert_eq!(Timeline::default().peak(), 0.0);
    }

    #[test]
    fn a_scaled_course_is_shorter_but_never_empty() {
        let bursts = Event::Bursts(vec![Burst { clients: 1, operations: 3 }]);
        let course = Course { event: bursts, f: 1, request_bytes: vec![8], reply_bytes: 8 };
        let Event::Bursts(bursts) = course.scaled(0.1).event else { unreachable!("scaling keeps the kind") };
        assert_eq!(bursts[0].operations, 1);
    }

    #[test]
    fn a_longer_outage_has_no_longer_time_around_it() {
        let spans = |factor: f64| {
            let [before, down, after] = [5, 20, 6].map(Duration::from_secs);
            let event = Event::Outage { fault: Fault::Kill, clients: 1, before, down, after };
            let course = Course { event, f: 1, request_bytes: vec![8], reply_bytes: 8 };
            let Event::Outage { before, down, after, .. } = course.scaled(factor).event else {
                unreachable!("as above")
            };
            [before, down, after].map(|time| time.as_secs_f64())
        };
        assert_eq!(spans(180.0), [5.0, 3600.0, 6.0]);
        assert_eq!(spans(0.5), [2.5, 10.0, 3.0]);
    }

    #[test]
    fn lines_tell_the_bucket_the_instance_and_whether_something_happened() {
        let timeline = Timeline { instances: vec![1, 1, 3], ..outage(&[10, 10, 7]) };
        let csv = Results { timelines: vec![(1, timeline)] }.to_csv();
        assert_eq!(csv.lines().last(), Some("1,pbft,200,7,3,1"));
    }
}
