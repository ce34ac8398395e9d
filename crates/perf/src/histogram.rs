//! A log-linear histogram: every power of two is cut into [`STEPS`] equal steps, so that a value is known to 1/64 of
//! itself, at any size, in 30 KB.

const STEP_BITS: u32 = 6;
/// Steps per power of two.
pub const STEPS: u64 = 1 << STEP_BITS;
const BUCKETS: usize = ((u64::BITS - STEP_BITS + 1) as usize) << STEP_BITS;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], count: 0, sum: 0 }
    }
}

/// Values below [`STEPS`] have a bucket each; of the others, the leading bit and the six after it say which.
const fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    (((shift as u64) << STEP_BITS) + (value >> shift)) as usize
}

/// The largest value of a bucket.
const fn highest(bucket: usize) -> u64 {
    let (shift, step) = ((bucket as u64) >> STEP_BITS, (bucket as u64) & (STEPS - 1));
    if shift == 0 {
        return step;
    }
    let lowest = (STEPS + step) << (shift - 1);
    lowest + ((1 << (shift - 1)) - 1)
}

impl Histogram {
    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
    }

    /// Counts what another one has counted.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(ours, theirs)| *ours += theirs);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// A value that at least this share (0 to 1) of all values do not exceed; 0 without values.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return highest(bucket);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_without_gaps_and_narrow() {
        for bucket_number in 0..BUCKETS - 1 {
            let value = highest(bucket_number);
            assert_eq!(bucket(value), bucket_number);
            assert_eq!(bucket(value + 1), bucket_number + 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert!(highest(bucket(1_000_000)) < 1_000_000 + 1_000_000 / STEPS);
    }

    #[test]
    fn quantiles_and_mean_of_a_known_series() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.mean()), (0, 0.0));
        (1..=100).for_each(|value| histogram.record(value));
        assert_eq!(histogram.mean(), 50.5);
        assert_eq!(histogram.quantile(0.5), 50);
        assert_eq!(histogram.quantile(0.99), 99);
        assert_eq!(histogram.count(), 100);
    }

    #[test]
    fn the_sum_of_two_is_as_if_one_had_counted_everything() {
        let of = |values: std::ops::RangeInclusive<u64>| {
            let mut histogram = Histogram::default();
            values.for_each(|value| histogram.record(value));
            histogram
        };
        let mut sum = of(1..=40);
        sum.add(&of(41..=100));
        assert_eq!((sum.count(), sum.mean(), sum.quantile(0.5)), (100, 50.5, 50));
    }
}
