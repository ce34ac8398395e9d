//! What a paper says in numbers or words, or what we want, and the same of our measurements.

use super::attacks;
use super::course::{self, Quantity};
use super::fault::Fault;
use super::groups;
use super::sweep::{self, Metric, Place};
use super::switching::{self, Moment};
use crate::spread::{Spread, median_interval};
use std::borrow::Cow;

/// What was measured, of any kind of experiment.
#[derive(Clone, Debug)]
pub enum Measured {
    /// Steady loads.
    Sweep(sweep::Results),
    /// Timelines.
    Course(course::Results),
    /// Switches.
    Switching(switching::Results),
    /// Runs under attacks.
    Attacks(attacks::Results),
    /// Groups at work.
    Groups(groups::Results),
}

/// One statement.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What it is about.
    pub what: Cow<'static, str>,
    /// The number, or the words.
    pub said: &'static str,
    /// How we get ours.
    pub ours: Ours,
}

/// What a value should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// From the first to the second.
    Between(f64, f64),
}

impl Bound {
    /// Whether all of an interval is that, or nothing of it is, or neither can be said.
    fn verdict(self, spread: Spread) -> &'static str {
        let outside = match self {
            Self::AtLeast(_) => !self.holds(spread.high),
            Self::AtMost(_) => !self.holds(spread.low),
            Self::Between(least, most) => {
                !Self::AtLeast(least).holds(spread.high) || !Self::AtMost(most).holds(spread.low)
            }
        };
        match (self.holds(spread.low) && self.holds(spread.high), outside) {
            (true, _) => "yes",
            (_, true) => "**no**",
            _ => "not shown",
        }
    }

    /// Whether a value is that, to three digits behind the point.
    fn holds(self, value: f64) -> bool {
        const ROUNDING: f64 = 0.0005;
        match self {
            Self::AtLeast(least) => value >= least - ROUNDING,
            Self::AtMost(most) => value <= most + ROUNDING,
            Self::Between(least, most) => Self::AtLeast(least).holds(value) && Self::AtMost(most).holds(value),
        }
    }
}

/// A protocol, and where.
pub type Subject = (&'static str, Place);

/// How a number of ours is made that can stand beside the paper's.
#[derive(Clone, Debug)]
pub enum Ours {
    /// By how many percent the subject's value differs from the base's.
    Change(Metric, Subject, Subject),
    /// By how many percent the subject's value differs from the base's, between which bounds that surely is, and
    /// whether it is a difference at all.
    Difference(Metric, Subject, Subject),
    /// How many times the base's value the subject's is.
    Ratio(Metric, Subject, Subject),
    /// The subject's value.
    Value(Metric, Subject),
    /// The subject's value, and whether it is as wanted.
    Bounded(Metric, Subject, Bound),
    /// From how many clients on the subject has more throughput than the base, at these sizes.
    Overtakes(&'static str, &'static str, (usize, usize)),
    /// A protocol's quantity.
    Quantity(Quantity, &'static str),
    /// How many times the second protocol's quantity the first one's is.
    Times((&'static str, Quantity), (&'static str, Quantity)),
    /// The milliseconds of a protocol's switch.
    Switch(Moment, &'static str, switching::Place),
    /// A protocol's switch in the first place, divided by that in the second.
    Switches(Moment, &'static str, switching::Place, switching::Place),
    /// A protocol's quantity under an attack.
    Attacked(attacks::Quantity, &'static str, Fault),
    /// The first protocol's quantity, divided by the second's under the same attack.
    AttackedTimes(Fault, (&'static str, attacks::Quantity), (&'static str, attacks::Quantity)),
    /// A group's quantity, by name and place; divided by another one's, if there is one.
    Groups(groups::Quantity, (&'static str, usize), Option<(&'static str, usize)>),
    /// The most seconds without an answer of any of a protocol's runs, of which there should be none.
    Silence(&'static str),
    /// The same as another one, and whether all of its interval is as wanted.
    Surely(Box<Self>, Bound),
}

impl Ours {
    /// In words; `None` if it was not measured.
    pub fn describe(&self, measured: &Measured) -> Option<String> {
        match (self, measured) {
            (Self::Change(metric, subject, base), Measured::Sweep(results)) => {
                let percent = results.ratio(*subject, *base, *metric)?.map(|ratio| (ratio - 1.0) * 100.0);
                let text = format!("{:+.1} % [{:+.1}, {:+.1}]", percent.median, percent.low, percent.high);
                Some(text.replace('-', "−"))
            }
            (Self::Difference(metric, subject, base), Measured::Sweep(results)) => {
                difference(&results.ratios(*subject, *base, *metric))
            }
            (Self::Value(metric, (protocol, place)), Measured::Sweep(results)) => {
                let value = results.spread(protocol, *place, *metric)?;
                Some(if value.median < 10.0 { format!("{value:.3}") } else { format!("{value:.0}") })
            }
            (Self::Bounded(metric, (protocol, place), bound), Measured::Sweep(results)) => {
                let value = results.spread(protocol, *place, *metric).filter(|value| !value.median.is_nan())?;
                Some(format!("{value:.3}: {}", if bound.holds(value.median) { "yes" } else { "**no**" }))
            }
            (Self::Overtakes(subject, base, bytes), Measured::Sweep(results)) => {
                results.overtaking(subject, base, *bytes).map(|overtaking| match overtaking {
                    (Some(1), _) => "1 client".to_owned(),
                    (Some(clients), _) => format!("{clients} clients"),
                    (None, most) => format!("not with up to {most} clients"),
                })
            }
            (Self::Silence(protocol), Measured::Attacks(results)) => {
                let (most, runs) = results.silence(protocol)?;
                let verdict = if Bound::AtMost(0.0).holds(most) { "yes" } else { "**no**" };
                Some(format!("{most:.0} in the worst run of {runs}: {verdict}"))
            }
            (Self::Surely(ours, bound), _) => {
                let spread = ours.spread(measured)?;
                let value = if spread.median < 100.0 { format!("{spread:.3}") } else { format!("{spread:.0}") };
                Some(format!("{value}: {}", bound.verdict(spread)))
            }
            _ => self.spread(measured).map(|spread| spread.to_string()),
        }
    }

    /// A number with its interval, where it has one and nothing else is to be said; `None` if it was not measured.
    fn spread(&self, measured: &Measured) -> Option<Spread> {
        match (self, measured) {
            (Self::Ratio(metric, subject, base), Measured::Sweep(results)) => results.ratio(*subject, *base, *metric),
            (Self::Quantity(quantity, protocol), Measured::Course(results)) => results.spread(protocol, *quantity),
            (Self::Times(subject, base), Measured::Course(results)) => results.ratio(*subject, *base),
            (Self::Switch(moment, protocol, place), Measured::Switching(results)) => {
                results.spread(protocol, *place, *moment)
            }
            (Self::Switches(moment, protocol, subject, base), Measured::Switching(results)) => {
                results.ratio(*moment, (protocol, *subject), (protocol, *base))
            }
            (Self::Attacked(quantity, protocol, attack), Measured::Attacks(results)) => {
                results.spread(protocol, *attack, *quantity)
            }
            (Self::AttackedTimes(attack, subject, base), Measured::Attacks(results)) => {
                results.ratio(*attack, *subject, *base)
            }
            (Self::Groups(quantity, subject, None), Measured::Groups(results)) => {
                results.spread(subject.0, subject.1, *quantity)
            }
            (Self::Groups(quantity, subject, Some(base)), Measured::Groups(results)) => {
                results.ratio(*quantity, *subject, *base)
            }
            _ => None,
        }
    }
}

/// The median of ratios as a change, its interval, and the verdict.
fn difference(ratios: &[f64]) -> Option<String> {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let median = percent(Spread::of(ratios.iter().copied())?.median);
    let text = match median_interval(ratios.iter().copied()) {
        None => format!("{median:+.1} %, of too few rounds for an interval"),
        Some((low, high)) => {
            let verdict = match (low > 1.0, high < 1.0) {
                (true, _) => "more",
                (_, true) => "less",
                _ => "no difference shown",
            };
            format!("{median:+.1} %, 95 % interval [{:+.1}, {:+.1}]: {verdict}", percent(low), percent(high))
        }
    };
    Some(text.replace('-', "−"))
}

#[cfg(test)]
mod tests {
    use super::{Bound, difference};
    use crate::spread::Spread;

    #[test]
    fn a_value_is_as_wanted_if_three_digits_of_it_are() {
        assert!(Bound::AtLeast(1.293).holds(1.2928) && !Bound::AtLeast(1.293).holds(1.292));
        assert!(Bound::AtMost(0.765).holds(0.7654) && !Bound::AtMost(0.765).holds(0.766));
        assert!([3.8, 4.0].iter().all(|value| Bound::Between(3.8, 4.0).holds(*value)));
        assert!(!Bound::Between(3.8, 4.0).holds(4.01) && !Bound::Between(3.8, 4.0).holds(3.79));
    }

    #[test]
    fn a_bound_is_kept_if_the_whole_interval_keeps_it() {
        let of = |low, high| Spread { low, median: f64::midpoint(low, high), high };
        let verdicts =
            |bound: Bound| [(0.95, 1.0), (0.9, 1.0), (0.8, 0.9)].map(|(low, high)| bound.verdict(of(low, high)));
        assert_eq!(verdicts(Bound::AtLeast(0.94)), ["yes", "not shown", "**no**"]);
        assert_eq!(verdicts(Bound::AtMost(0.92)), ["**no**", "not shown", "yes"]);
        assert_eq!(verdicts(Bound::Between(0.85, 1.0)), ["yes", "yes", "not shown"]);
        assert_eq!(Bound::Between(0.1, 0.2).verdict(of(0.3, 0.4)), "**no**");
    }

    #[test]
    fn a_difference_is_one_if_its_interval_is_on_one_side() {
        let told = |ratios: &[f64]| difference(ratios).unwrap();
        assert_eq!(difference(&[]), None);
        assert_eq!(told(&[0.9; 3]), "−10.0 %, of too few rounds for an interval");
        assert_eq!(told(&[0.9; 6]), "−10.0 %, 95 % interval [−10.0, −10.0]: less");
        assert_eq!(told(&[1.1; 6]), "+10.0 %, 95 % interval [+10.0, +10.0]: more");
        let both = [0.9, 0.95, 0.97, 0.98, 0.99, 1.01];
        assert_eq!(told(&both), "−2.5 %, 95 % interval [−10.0, +1.0]: no difference shown");
    }
}
