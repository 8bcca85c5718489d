//! Counts stalls by their places, and limits how often each place is reported.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

/// The time between two reports of the same place.
const INTERVAL: Duration = Duration::from_secs(10);
/// How many places are known. The one that was first seen is forgotten first.
const MAX_KNOWN: usize = 1_000;

/// See the module.
#[derive(Debug, Default)]
pub struct StallCauses {
    places: FxHashMap<String, Seen>,
    order: VecDeque<String>,
}

#[derive(Debug)]
struct Seen {
    count: u64,
    reported_at: Instant,
}

impl StallCauses {
    /// Counts a stall. Returns how many there have been at this place, and whether this one is to be reported.
    pub fn count(&mut self, place: &str, now: Instant) -> (u64, bool) {
        if let Some(seen) = self.places.get_mut(place) {
            seen.count += 1;
            let is_due = now.saturating_duration_since(seen.reported_at) >= INTERVAL;
            if is_due {
                seen.reported_at = now;
            }
            return (seen.count, is_due);
        }
        if self.order.len() >= MAX_KNOWN
            && let Some(first) = self.order.pop_front()
        {
            self.places.remove(&first);
        }
        self.order.push_back(place.to_owned());
        self.places.insert(place.to_owned(), Seen { count: 1, reported_at: now });
        (1, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_reported_once_per_interval_and_counted_each_time() {
        let (mut causes, now) = (StallCauses::default(), Instant::now());
        assert_eq!(causes.count("a.rb:1", now), (1, true));
        assert_eq!(causes.count("a.rb:1", now + INTERVAL / 2), (2, false));
        assert_eq!(causes.count("b.rb:1", now + INTERVAL / 2), (1, true));
        assert_eq!(causes.count("a.rb:1", now + INTERVAL), (3, true));
        assert_eq!(causes.count("a.rb:1", now + INTERVAL), (4, false));
    }

    #[test]
    fn the_place_that_was_first_seen_is_forgotten_if_there_are_too_many() {
        let (mut causes, now) = (StallCauses::default(), Instant::now());
        (0..=MAX_KNOWN).for_each(|place| assert_eq!(causes.count(&place.to_string(), now), (1, true)));
        assert_eq!(causes.count("1", now), (2, false));
        assert_eq!(causes.count("0", now), (1, true));
    }
}
