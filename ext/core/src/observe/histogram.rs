//! A histogram of durations: four buckets for each power of two, so that the end of a bucket is at most a quarter more
//! than what is in it.

use std::time::Duration;

/// Buckets for each power of two.
const STEPS: usize = 4;
/// The number of buckets. The last one begins at 2^40 ns, which is 18 minutes.
pub const BUCKETS: usize = 39 * STEPS + 1;

/// Counts durations in buckets: up to 7 ns each has its own, and then each power of two has four of the same size. The
/// last bucket has all that are longer.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    sum: Duration,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: [0; BUCKETS], sum: Duration::ZERO, max: Duration::ZERO }
    }
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&mut self, duration: Duration) {
        self.counts[bucket(duration)] += 1;
        self.sum = self.sum.saturating_add(duration);
        self.max = self.max.max(duration);
    }

    /// Counts all durations of another one.
    pub fn add(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, added)| *count += added);
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// How many durations each bucket has.
    pub fn counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// The sum of all durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The longest duration; zero if there is none.
    pub fn max(&self) -> Duration {
        self.max
    }
}

fn bucket(duration: Duration) -> usize {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    // How many bits follow the first one and the two that tell the four buckets apart.
    let rest = nanoseconds.checked_ilog2().unwrap_or(0).saturating_sub(STEPS.ilog2());
    let bucket = rest as usize * STEPS + (nanoseconds >> rest) as usize;
    bucket.min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(nanoseconds: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        nanoseconds.iter().for_each(|time| histogram.record(Duration::from_nanos(*time)));
        histogram
    }

    fn occupied(histogram: &Histogram) -> Vec<(usize, u64)> {
        histogram.counts().iter().copied().enumerate().filter(|(_, count)| *count > 0).collect()
    }

    #[test]
    fn a_power_of_two_has_four_buckets() {
        let filled = filled(&[0, 1, 7, 8, 9, 10, 1023, 1024, 1279, 1280]);
        assert_eq!(occupied(&filled), [(0, 1), (1, 1), (7, 1), (8, 2), (9, 1), (35, 1), (36, 2), (37, 1)]);
    }

    #[test]
    fn the_bucket_before_the_last_one_ends_where_that_begins() {
        assert_eq!(occupied(&filled(&[(1 << 40) - 1])), [(BUCKETS - 2, 1)]);
    }

    #[test]
    fn the_last_bucket_has_what_is_longer() {
        let mut histogram = filled(&[1 << 40, u64::MAX]);
        histogram.record(Duration::MAX);
        assert_eq!(occupied(&histogram), [(BUCKETS - 1, 3)]);
        assert_eq!((histogram.sum(), histogram.max()), (Duration::MAX, Duration::MAX));
    }

    #[test]
    fn two_can_be_added() {
        let mut histogram = filled(&[5, 7]);
        histogram.add(&filled(&[7, 1]));
        assert_eq!(occupied(&histogram), [(1, 1), (5, 1), (7, 2)]);
        assert_eq!((histogram.sum(), histogram.max()), (Duration::from_nanos(20), Duration::from_nanos(7)));
    }

    #[test]
    fn the_sum_and_the_longest_are_exact() {
        let histogram = filled(&[5, 7, 1]);
        assert_eq!((histogram.sum(), histogram.max()), (Duration::from_nanos(13), Duration::from_nanos(7)));
    }
}
