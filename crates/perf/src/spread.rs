//! The middle of repeated measurements, and how far they lie apart.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// A median, and how far it is to be trusted: its 95 % interval ([`median_interval`]) where there are six values or
/// more. Fewer do not give one; then it is the quartiles, between which half of the values lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The interval's lower end, or the lower quartile.
    pub low: f64,
    /// Half of the values are below.
    pub median: f64,
    /// The interval's upper end, or the upper quartile.
    pub high: f64,
}

impl Spread {
    /// Of finite values in any order; between two of them it is a straight line. `None` without values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values = in_order(values);
        let last = values.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let (below, rest) = (place.floor() as usize, place.fract());
            let above = values[(below + 1).min(last)];
            values[below] + (above - values[below]) * rest
        };
        let (low, high) = interval(&values).unwrap_or_else(|| (at(0.25), at(0.75)));
        Some(Self { low, median: at(0.5), high })
    }

    /// The same of values that were all changed alike, by a function that keeps their order.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { low: change(self.low), median: change(self.median), high: change(self.high) }
    }
}

/// Values by round, each divided by the other one of its round: that a machine is slower in one round than in another
/// does not show. A round that lacks either does not count.
pub(crate) fn ratios(subjects: &BTreeMap<usize, f64>, bases: &BTreeMap<usize, f64>) -> Vec<f64> {
    subjects.iter().filter_map(|(round, value)| Some(value / bases.get(round)?)).collect()
}

/// How sure an interval is.
const CONFIDENCE: f64 = 0.95;

/// Between which two of these values the median of all that could have been measured lies, with 95 % confidence and
/// whatever their distribution: so many of the lowest and the highest are left out that it would be beyond the rest as
/// seldom as in one of twenty cases. `None` with less than six values, which are not enough.
pub fn median_interval(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    interval(&in_order(values))
}

/// Those that are finite, the lowest first.
fn in_order(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// [`median_interval`] of values in order.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    // How likely it is that all values but `left_out` are above the median, each being above or below with one half.
    let mut likely = 0.5_f64.powi(i32::try_from(values.len()).ok()?);
    let (mut left_out, mut beyond) = (0, likely);
    while beyond <= (1.0 - CONFIDENCE) / 2.0 && left_out < values.len() / 2 {
        likely *= (values.len() - left_out) as f64 / (left_out + 1) as f64;
        left_out += 1;
        beyond += likely;
    }
    let lowest = left_out.checked_sub(1)?;
    Some((values[lowest], values[values.len() - 1 - lowest]))
}

/// `median [low, high]`, with the digits that `{:.1}` asks for.
impl fmt::Display for Spread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = out.precision().unwrap_or(2);
        write!(out, "{:.digits$} [{:.digits$}, {:.digits$}]", self.median, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_quartiles_and_six_an_interval() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN]), None);
        assert_eq!(Spread::of([7.0]), Some(Spread { low: 7.0, median: 7.0, high: 7.0 }));
        assert_eq!(Spread::of([5.0, 1.0, 2.0, 4.0, 3.0]), Some(Spread { low: 2.0, median: 3.0, high: 4.0 }));
        assert_eq!(Spread::of([0.0, 2.0]), Some(Spread { low: 0.5, median: 1.0, high: 1.5 }));
        let six = [6.0, 1.0, 2.0, 4.0, 3.0, 5.0];
        assert_eq!(Spread::of(six), Some(Spread { low: 1.0, median: 3.5, high: 6.0 }));
    }

    #[test]
    fn the_interval_leaves_out_as_many_as_the_binomial_distribution_allows() {
        let upto = |last: i32| median_interval((1..=last).map(f64::from));
        assert_eq!([upto(0), upto(5)], [None, None], "2 · 0.5⁵ is more than one of twenty");
        assert_eq!([upto(6), upto(8)], [Some((1.0, 6.0)), Some((1.0, 8.0))]);
        // As tables of the sign test have it: 2nd of 9, 6th of 20, 10th of 30.
        assert_eq!([upto(9), upto(20), upto(30)], [Some((2.0, 8.0)), Some((6.0, 15.0)), Some((10.0, 21.0))]);
        assert!(upto(1000).is_some_and(|(low, high)| low == 469.0 && high == 532.0), "{:?}", upto(1000));
    }

    #[test]
    fn it_is_shown_with_the_digits_asked_for() {
        let spread = Spread { low: 1.0, median: 1.25, high: 2.0 };
        assert_eq!(format!("{spread:.1}"), "1.2 [1.0, 2.0]");
        assert_eq!(spread.map(|value| value * 2.0).to_string(), "2.50 [2.00, 4.00]");
    }
}
