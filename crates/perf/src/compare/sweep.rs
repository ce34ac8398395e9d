//! Steady load at several points, each measured with every protocol in every round.

use super::csv;
use crate::figures::Figures;
use crate::network::Network;
use crate::spread::{Spread, ratios};
use crate::workload::Asked;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is the same for all protocols of one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Faults that are to be tolerated. The one server tolerates none; it is measured for comparison.
    pub f: u8,
    /// Clients, each with one request under way.
    pub clients: usize,
    /// Bytes of an operation.
    pub request_bytes: usize,
    /// Bytes of a result.
    pub reply_bytes: usize,
    /// What is switched on and off, if not everything is as usual.
    pub variant: Option<Variant>,
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { f, clients, request_bytes, reply_bytes, variant } = self;
        write!(out, "f = {f}, clients = {clients}, {request_bytes}/{reply_bytes} bytes")?;
        variant.map_or(Ok(()), |variant| write!(out, ", {variant}"))
    }
}

/// What may be switched on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Whether every operation counts as big: it goes from its client to all replicas, and only its digest is ordered.
    /// Otherwise none does.
    pub big: bool,
    /// Whether requests that wait are ordered together.
    pub batching: bool,
    /// `memory` or `sync`; `None` where it is the same everywhere.
    pub durability: Option<&'static str>,
}

impl fmt::Display for Variant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { big, batching, durability } = self;
        out.write_str(if *big { "big + " } else { "inline + " })?;
        match durability {
            Some(durability) => out.write_str(durability),
            None => out.write_str(if *batching { "batches" } else { "one by one" }),
        }
    }
}

/// What the horizontal axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Clients.
    Clients,
    /// Bytes of an operation; each value is the best over all numbers of clients.
    RequestBytes,
    /// Faults tolerated.
    Faults,
    /// Variants, in the order in which they are measured.
    Variants,
}

impl Axis {
    /// What to write on the axis.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::RequestBytes => "bytes of a request",
            Self::Faults => "f",
            Self::Variants => "requests",
        }
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Operations per second.
    Throughput,
    /// The median latency in µs.
    Latency,
    /// Processor time of all replicas per operation, in µs.
    ReplicaCpu,
    /// Bytes that the busiest replica sent per operation.
    BusiestBytes,
    /// Operations' bits per second, divided by what a link carries.
    RequestGoodput,
    /// Results' bits per second, divided by what a link carries.
    ReplyGoodput,
    /// Bytes that the busiest link among replicas carries in one direction per byte of the operations.
    LinkBytes,
    /// Bytes that a replica hands to TCP for other replicas per byte of the operations, on average.
    Data,
    /// The most processor time of a replica, divided by the mean.
    CpuBalance,
    /// The most bytes of a link among replicas in one direction, divided by the mean.
    LinkBalance,
}

impl Metric {
    /// With its unit.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Throughput => "op/s",
            Self::Latency => "p50 µs",
            Self::ReplicaCpu => "replica CPU µs/op",
            Self::BusiestBytes => "busiest replica B/op",
            Self::RequestGoodput => "request goodput / B",
            Self::ReplyGoodput => "reply goodput / B",
            Self::LinkBytes => "busiest replica link B/request B",
            Self::Data => "replica data B/request B",
            Self::CpuBalance => "replica CPU max/mean",
            Self::LinkBalance => "replica link bytes max/mean",
        }
    }

    /// Not a number where it was not measured.
    fn of(self, figures: &Figures) -> f64 {
        let network = |of: fn(&Network) -> Option<f64>| figures.network.as_ref().and_then(of).unwrap_or(f64::NAN);
        match self {
            Self::Throughput => figures.ops_per_s,
            Self::Latency => figures.p50_us as f64,
            Self::ReplicaCpu => figures.replica_cpu_us_per_op,
            Self::BusiestBytes => figures.busiest_replica_bytes_out_per_op,
            Self::RequestGoodput => network(|it| Some(it.request_goodput_per_link)),
            Self::ReplyGoodput => network(|it| Some(it.reply_goodput_per_link)),
            Self::LinkBytes => network(|it| it.busiest_link_per_request_byte(it.lan_of_replicas())),
            Self::Data => network(Network::data_per_request_byte),
            Self::CpuBalance => network(|it| it.max_per_mean(&["cpu"])),
            Self::LinkBalance => network(|it| {
                let lan = it.lan_of_replicas();
                it.max_per_mean(&[&format!("{lan}-in"), &format!("{lan}-out")])
            }),
        }
    }

    /// The one of two values that counts: the peak for throughput, the lowest for a cost, and the worst for what ought
    /// to have a bound.
    const fn better(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Throughput | Self::RequestGoodput | Self::ReplyGoodput => one.max(other),
            Self::LinkBytes | Self::Data | Self::CpuBalance | Self::LinkBalance => one.max(other),
            Self::Latency | Self::ReplicaCpu | Self::BusiestBytes => one.min(other),
        }
    }
}

/// What only the network laboratory measures.
pub const NETWORK: [Metric; 6] = [
    Metric::RequestGoodput,
    Metric::ReplyGoodput,
    Metric::LinkBytes,
    Metric::Data,
    Metric::CpuBalance,
    Metric::LinkBalance,
];
/// The column of what they are divided by.
const LINK_GOODPUT: &str = "B bits/s";

/// Points and the axis along which they are shown.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What is measured, in this order.
    pub points: Vec<Point>,
    /// What they are shown along.
    pub axis: Axis,
    /// What is shown of them; tables show the first.
    pub metrics: Vec<Metric>,
    /// What clients ask.
    pub asked: Asked,
    /// Over which metric latency is drawn besides; that is a point for each number of clients.
    pub response_over: Option<Metric>,
}

/// Some of the points: `None` means any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Faults tolerated.
    pub f: Option<u8>,
    /// Clients.
    pub clients: Option<usize>,
    /// Bytes of operation and result.
    pub bytes: Option<(usize, usize)>,
    /// What is switched on and off.
    pub variant: Option<Variant>,
}

impl Place {
    fn has(&self, point: &Point) -> bool {
        self.f.is_none_or(|f| f == point.f)
            && self.clients.is_none_or(|clients| clients == point.clients)
            && self.bytes.is_none_or(|bytes| bytes == (point.request_bytes, point.reply_bytes))
            && self.variant.is_none_or(|variant| Some(variant) == point.variant)
    }
}

impl Sweep {
    /// One curve: the places that belong together, by where they are on the axis, in order.
    pub fn places(&self, panel: &Panel) -> BTreeMap<usize, Place> {
        let at = |point: &Point| {
            let clients = (self.axis == Axis::Clients).then_some(point.clients);
            let bytes = Some((point.request_bytes, point.reply_bytes));
            (self.at(point), Place { f: Some(point.f), clients, bytes, variant: point.variant })
        };
        self.points.iter().filter(|point| panel.has(self.axis, point)).map(at).collect()
    }

    /// Where on the axis a point is.
    pub fn at(&self, point: &Point) -> usize {
        match self.axis {
            Axis::Clients => point.clients,
            Axis::RequestBytes => point.request_bytes,
            Axis::Faults => usize::from(point.f),
            Axis::Variants => {
                let variants = self.variants();
                variants.iter().position(|it| Some(*it) == point.variant).unwrap_or(variants.len())
            }
        }
    }

    /// Each variant once, in the order in which they are measured.
    pub fn variants(&self) -> Vec<Variant> {
        let mut variants = Vec::new();
        for variant in self.points.iter().filter_map(|point| point.variant) {
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
        variants
    }

    /// What stands at the axis instead of numbers; nothing if numbers do.
    pub fn names(&self) -> Vec<String> {
        match self.axis {
            Axis::Variants => self.variants().iter().map(ToString::to_string).collect(),
            Axis::Clients | Axis::RequestBytes | Axis::Faults => Vec::new(),
        }
    }

    /// The panels of this sweep's picture, and the tables of its page: what differs beside the axis.
    pub fn panels(&self) -> Vec<Panel> {
        let mut panels: Vec<Panel> = Vec::new();
        for point in &self.points {
            let request_bytes = (self.axis != Axis::RequestBytes).then_some(point.request_bytes);
            let f = (self.axis != Axis::Faults).then_some(point.f);
            let clients = (self.axis == Axis::Variants).then_some(point.clients);
            let panel = Panel { clients, f, request_bytes, reply_bytes: point.reply_bytes, asked: self.asked };
            if !panels.contains(&panel) {
                panels.push(panel);
            }
        }
        panels
    }
}

/// What all points of one panel share; `None` for what is its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Shown, but not looked at: `None` where there are several.
    clients: Option<usize>,
    asked: Asked,
    f: Option<u8>,
    request_bytes: Option<usize>,
    reply_bytes: usize,
}

impl Panel {
    fn has(&self, axis: Axis, point: &Point) -> bool {
        self.reply_bytes == point.reply_bytes
            && (axis == Axis::RequestBytes || self.request_bytes == Some(point.request_bytes))
            && (axis == Axis::Faults || self.f == Some(point.f))
    }
}

impl fmt::Display for Panel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.asked, self.request_bytes) {
            (Asked::Sql(mix), _) => out.write_str(mix.name())?,
            (Asked::Mixed, _) => write!(out, "mixed/{} bytes", self.reply_bytes)?,
            (Asked::Given, _) => out.write_str(self.asked.name())?,
            (Asked::Alike | Asked::AlmostAlike, Some(bytes)) => write!(out, "{bytes}/{} bytes", self.reply_bytes)?,
            (Asked::Alike | Asked::AlmostAlike, None) => write!(out, "results of {} bytes", self.reply_bytes)?,
        }
        if let (Some(clients), Some(f)) = (self.clients, self.f) {
            write!(out, ", {clients} clients, n = {}", 3 * usize::from(f) + 1)?;
        }
        self.f.map_or(Ok(()), |f| write!(out, ", f = {f}"))
    }
}

/// One protocol at one point in one round.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// From 1.
    pub round: usize,
    /// The protocol's name.
    pub protocol: String,
    /// Where.
    pub point: Point,
    /// What came of it.
    pub figures: Figures,
}

/// Everything that was measured in a sweep.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// In the order in which it was measured.
    pub measurements: Vec<Measurement>,
}

impl Results {
    /// The best value of each round.
    pub(super) fn rounds(&self, protocol: &str, place: Place, metric: Metric) -> BTreeMap<usize, f64> {
        let mut best = BTreeMap::new();
        let chosen = self.measurements.iter().filter(|it| it.protocol == protocol && place.has(&it.point));
        for Measurement { round, figures, .. } in chosen {
            let value = metric.of(figures);
            best.entry(*round).and_modify(|best| *best = metric.better(*best, value)).or_insert(value);
        }
        best
    }

    /// Of a protocol's value over the rounds; the best one where a place has several points.
    pub fn spread(&self, protocol: &str, place: Place, metric: Metric) -> Option<Spread> {
        Spread::of(self.rounds(protocol, place, metric).into_values())
    }

    /// What one protocol's value is, divided by another's of the same round.
    pub fn ratio(&self, subject: (&str, Place), base: (&str, Place), metric: Metric) -> Option<Spread> {
        Spread::of(self.ratios(subject, base, metric))
    }

    /// The same of every round that has both.
    pub(super) fn ratios(&self, subject: (&str, Place), base: (&str, Place), metric: Metric) -> Vec<f64> {
        ratios(&self.rounds(subject.0, subject.1, metric), &self.rounds(base.0, base.1, metric))
    }

    /// The least number of clients from which on the subject's throughput is more than the base's, if there is one,
    /// and the most clients that both were measured with. `None` if that never happened.
    pub fn overtaking(&self, subject: &str, base: &str, bytes: (usize, usize)) -> Option<(Option<usize>, usize)> {
        let counts: BTreeSet<_> = self.measurements.iter().map(|it| it.point.clients).collect();
        let ratio = |clients: usize| {
            let place = Place { clients: Some(clients), bytes: Some(bytes), ..Place::default() };
            Some((clients, self.ratio((subject, place), (base, place), Metric::Throughput)?.median))
        };
        let ratios: Vec<_> = counts.into_iter().filter_map(ratio).collect();
        let most = ratios.last()?.0;
        let from = ratios.iter().rev().take_while(|(_, ratio)| *ratio > 1.0).last();
        Some((from.map(|(clients, _)| *clients), most))
    }

    /// Every measurement as a line of comma-separated values, and a head that names the columns.
    pub fn to_csv(&self) -> String {
        let has_network = self.measurements.iter().any(|it| it.figures.network.is_some());
        let columns: &[Metric] = if has_network { &NETWORK } else { &[] };
        let head = Figures::FIELDS.into_iter().chain(columns.iter().map(|metric| metric.label()));
        let head = head.chain(has_network.then_some(LINK_GOODPUT)).collect::<Vec<_>>();
        let mut text = format!("round,for_f,variant,{}\n", head.join(","));
        for Measurement { round, protocol, point, figures } in &self.measurements {
            let variant = point.variant.map_or_else(String::new, |variant| variant.to_string());
            // The figures' own first value does not tell two schedules apart.
            let mut others = figures.values().split_off(1);
            others.extend(columns.iter().map(|metric| metric.of(figures).to_string()));
            others.extend(figures.network.as_ref().map(|network| network.link_goodput_bits_per_s.to_string()));
            text += &format!("{round},{},{variant},{},{}\n", point.f, csv::cell(protocol), others.join(","));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::results;
    use crate::sql::Mix;

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was half as fast in the second round, which no ratio shows.
        let results = results(&[(1, "a", 1, 100.0), (1, "b", 1, 150.0), (2, "a", 1, 50.0), (2, "b", 1, 75.0)]);
        let ratio = results.ratio(("b", Place::default()), ("a", Place::default()), Metric::Throughput);
        assert_eq!(ratio, Some(Spread { low: 1.5, median: 1.5, high: 1.5 }));
        assert_eq!(results.ratio(("b", Place::default()), ("c", Place::default()), Metric::Throughput), None);
    }

    #[test]
    fn a_place_with_several_points_counts_with_its_best_one() {
        let results = results(&[(1, "a", 1, 100.0), (1, "a", 10, 300.0), (1, "a", 40, 200.0)]);
        let at = |clients| results.spread("a", Place { clients, ..Place::default() }, Metric::Throughput);
        assert_eq!(at(None).map(|spread| spread.median), Some(300.0));
        assert_eq!(at(Some(40)).map(|spread| spread.median), Some(200.0));
        assert_eq!(at(Some(5)), None);
    }

    #[test]
    fn overtaking_is_for_good() {
        let measured = |b: [f64; 3]| {
            let one = |(clients, ops): (usize, f64)| [(1, "a", clients, 100.0), (1, "b", clients, ops)];
            results(&[1, 10, 40].into_iter().zip(b).flat_map(one).collect::<Vec<_>>())
        };
        let overtaking = |b| measured(b).overtaking("b", "a", (8, 8));
        assert_eq!(overtaking([50.0, 110.0, 120.0]), Some((Some(10), 40)));
        assert_eq!(overtaking([110.0, 90.0, 120.0]), Some((Some(40), 40)));
        assert_eq!(overtaking([110.0, 110.0, 90.0]), Some((None, 40)));
        assert_eq!(measured([1.0; 3]).overtaking("b", "c", (8, 8)), None);
    }

    #[test]
    fn panels_split_what_is_not_on_the_axis() {
        let point = |f, clients, request_bytes| Point { f, clients, request_bytes, reply_bytes: 8, variant: None };
        let points = vec![point(1, 1, 8), point(1, 10, 8), point(2, 1, 8), point(1, 1, 4096)];
        let sweep = |axis| Sweep {
            points: points.clone(),
            axis,
            metrics: vec![Metric::Throughput],
            asked: Asked::Alike,
            response_over: None,
        };
        let texts = |sweep: &Sweep| sweep.panels().iter().map(ToString::to_string).collect::<Vec<_>>();
        let by_clients = sweep(Axis::Clients);
        assert_eq!(texts(&by_clients), ["8/8 bytes, f = 1", "8/8 bytes, f = 2", "4096/8 bytes, f = 1"]);
        assert_eq!(by_clients.places(&by_clients.panels()[0]).into_keys().collect::<Vec<_>>(), [1, 10]);
        assert_eq!(texts(&sweep(Axis::RequestBytes)), ["results of 8 bytes, f = 1", "results of 8 bytes, f = 2"]);
        assert_eq!(texts(&sweep(Axis::Faults)), ["8/8 bytes", "4096/8 bytes"]);
    }

    #[test]
    fn variants_have_their_names_and_places_in_the_order_in_which_they_are_measured() {
        let variant = |big, batching| Some(Variant { big, batching, durability: None });
        let point = |variant| Point { f: 1, clients: 12, request_bytes: 8, reply_bytes: 8, variant };
        let points = [variant(true, true), variant(false, true), variant(false, false)].map(point).to_vec();
        let sweep = Sweep {
            points: points.clone(),
            axis: Axis::Variants,
            metrics: Vec::new(),
            asked: Asked::Sql(Mix::Vote),
            response_over: None,
        };
        assert_eq!(sweep.names(), ["big + batches", "inline + batches", "inline + one by one"]);
        let panels = sweep.panels();
        assert_eq!(panels.iter().map(ToString::to_string).collect::<Vec<_>>(), ["sql-vote, 12 clients, n = 4, f = 1"]);
        let places = sweep.places(&panels[0]);
        assert_eq!(places.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
        let holds = |at: usize| points.iter().filter(|point| places[&at].has(point)).copied().collect::<Vec<_>>();
        assert_eq!([holds(0), holds(2)], [vec![points[0]], vec![points[2]]]);
    }

    #[test]
    fn a_schedule_is_one_cell() {
        let mut results = results(&[(1, "schedule", 1, 100.0)]);
        results.measurements[0].protocol = "[chain, backup(pbft)]".into();
        assert!(results.to_csv().contains("\n1,1,,\"[chain, backup(pbft)]\",4,1,1,"));
    }

    #[test]
    fn a_line_has_as_many_cells_as_the_head() {
        let csv = results(&[(1, "a", 1, 100.0)]).to_csv();
        let cells: Vec<_> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(cells, [Figures::FIELDS.len() + 3; 2]);
        assert!(
            csv.lines().nth(1).is_some_and(|line| line.starts_with("1,1,,a,4,1,1,1,8,8,memory,plain,mac,")),
            "{csv}"
        );
    }
}
