//! A histogram of ages: fine enough for quantiles, small enough for one per name and time span.

use std::time::Duration;

/// Buckets for each power of two. A quantile is wrong by 9 % at most.
const STEPS: u64 = 4;
/// Ages below 2^10 ns share the first bucket.
const SMALLEST: u32 = 10;
/// The last bucket has all from 2^40 ns, which is 18 minutes.
const LARGEST: u32 = 40;
/// The number of buckets.
const BUCKETS: usize = (LARGEST - SMALLEST) as usize * STEPS as usize + 2;

/// Counts ages.
#[derive(Debug, Clone)]
pub struct Ages {
    counts: Box<[u32; BUCKETS]>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for Ages {
    fn default() -> Self {
        Ages { counts: Box::new([0; BUCKETS]), count: 0, sum: 0, max: 0 }
    }
}

impl Ages {
    /// Counts an age, in nanoseconds.
    pub fn record(&mut self, nanoseconds: u64) {
        let count = &mut self.counts[bucket(nanoseconds)];
        *count = count.saturating_add(1);
        self.count += 1;
        self.sum = self.sum.saturating_add(nanoseconds);
        self.max = self.max.max(nanoseconds);
    }

    /// Adds what the other one has counted.
    pub fn add(&mut self, other: &Ages) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count = count.saturating_add(*more);
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// How many ages it has counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }

    /// The highest; zero if there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// How many are at most as high as the end of the bucket, for each bucket that has any: the end in nanoseconds, and
    /// the number.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u32)> {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, count)| (end_of(index), *count))
    }

    /// The age that a `share` of all ages does not exceed: 0.99 of them, for instance. Zero if there is none.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut passed = 0;
        for (index, count) in self.counts.iter().enumerate() {
            passed += u64::from(*count);
            if passed >= rank {
                return Duration::from_nanos(middle_of(index).min(self.max));
            }
        }
        self.max()
    }
}

fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < 1 << SMALLEST {
        return 0;
    }
    let power = nanoseconds.ilog2();
    if power >= LARGEST {
        return BUCKETS - 1;
    }
    let step = (nanoseconds >> (power - STEPS.ilog2())) % STEPS;
    1 + (u64::from(power - SMALLEST) * STEPS + step) as usize
}

/// The lowest age beyond the bucket.
fn end_of(index: usize) -> u64 {
    if index + 1 == BUCKETS {
        return u64::MAX;
    }
    let (power, step) = ((index as u64) / STEPS, (index as u64) % STEPS);
    let base = 1 << (u64::from(SMALLEST) + power);
    base + step * (base / STEPS)
}

fn middle_of(index: usize) -> u64 {
    let begin = if index == 0 { 0 } else { end_of(index - 1) };
    if index + 1 == BUCKETS { u64::MAX } else { begin + (end_of(index) - begin) / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(milliseconds: impl IntoIterator<Item = u64>) -> Ages {
        let mut ages = Ages::default();
        milliseconds.into_iter().for_each(|time| ages.record(time * 1_000_000));
        ages
    }

    #[test]
    fn each_bucket_ends_where_the_next_one_begins() {
        for index in 0..BUCKETS - 1 {
            let end = end_of(index);
            assert_eq!((bucket(end - 1), bucket(end)), (index, index + 1), "the end of bucket {index}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_quantile_is_wrong_by_less_than_a_tenth() {
        let ages = filled(1..=1000);
        for (share, milliseconds) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = ages.quantile(share).as_secs_f64() * 1000.0;
            assert!((found / milliseconds - 1.0).abs() < 0.1, "{share}: {found} ms instead of {milliseconds} ms");
        }
    }

    #[test]
    fn a_quantile_is_never_more_than_the_highest_age() {
        let lowest_of_its_bucket = 1 << 20;
        let mut ages = Ages::default();
        ages.record(lowest_of_its_bucket);
        assert_eq!(ages.quantile(0.99), Duration::from_nanos(lowest_of_its_bucket));
        ages.record(u64::MAX);
        assert_eq!(ages.quantile(0.99), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn without_ages_all_is_zero() {
        let ages = Ages::default();
        assert_eq!((ages.quantile(0.5), ages.max(), ages.count()), (Duration::ZERO, Duration::ZERO, 0));
    }

    #[test]
    fn the_sum_of_two_has_the_ages_of_both() {
        let mut ages = filled([1, 2]);
        ages.add(&filled([100]));
        assert_eq!((ages.count(), ages.sum()), (3, Duration::from_millis(103)));
        assert_eq!(ages.max(), Duration::from_millis(100));
    }
}
