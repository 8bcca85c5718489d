//! A histogram of durations whose buckets double in size.

use std::time::Duration;

/// The number of buckets. The last one begins at 2^38 ns, which is four and a half minutes.
pub const BUCKETS: usize = 40;

/// Counts durations in buckets: the first has 0 ns, and bucket n has those from 2^(n-1) ns to less than 2^n ns. The
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
    let bits = u64::BITS - nanoseconds.leading_zeros();
    (bits as usize).min(BUCKETS - 1)
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
    fn buckets_begin_at_powers_of_two() {
        assert_eq!(occupied(&filled(&[0, 1, 2, 3, 4, 1023, 1024])), [(0, 1), (1, 1), (2, 2), (3, 1), (10, 1), (11, 1)]);
    }

    #[test]
    fn the_last_bucket_has_what_is_longer() {
        let mut histogram = filled(&[1 << 38, u64::MAX]);
        histogram.record(Duration::MAX);
        assert_eq!(occupied(&histogram), [(BUCKETS - 1, 3)]);
        assert_eq!((histogram.sum(), histogram.max()), (Duration::MAX, Duration::MAX));
    }

    #[test]
    fn the_sum_and_the_longest_are_exact() {
        let histogram = filled(&[5, 7, 1]);
        assert_eq!((histogram.sum(), histogram.max()), (Duration::from_nanos(13), Duration::from_nanos(7)));
    }
}
