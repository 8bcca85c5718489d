//! Bounds that keep a fiber which never has to wait from starving other fibers, timers and I/O.
//!
//! A fiber whose operations always finish at once never switches, and a scheduler whose run queue is never empty never
//! polls. Each has a bound here. The first is the budget of tokio's cooperative scheduling, the second the count of
//! switches after which Go's and Polyphony's schedulers poll the network.

use std::time::{Duration, Instant};

/// How many operations may succeed immediately within one time slice.
pub const OPERATIONS_PER_SLICE: u32 = 32;
/// How many switches there are between two reads of the clock: few enough for [`MAX_POLL_INTERVAL`], enough to make the
/// reads' cost negligible.
const SWITCHES_PER_CLOCK_CHECK: u32 = 16;
/// The longest time between two polls of timers and I/O.
const MAX_POLL_INTERVAL: Duration = Duration::from_micros(200);
/// The time between two polls after which the fibers that have run since then count as computing.
const COMPUTING: Duration = Duration::from_millis(1);
/// The least number of switches between two polls within that time, so that polling does not become the main work.
const SWITCHES_PER_POLL: u32 = 256;

/// The same while an operation waits for its submission to the kernel.
const SWITCHES_PER_SUBMISSION: u32 = 16;

/// How many slices there are between two reads of the clock that date them.
const SLICES_PER_DATE: u32 = 4;

/// What is left of each bound.
pub struct Budget {
    operations_left: u32,
    /// The fiber was scheduled early, to finish an operation of its last time slice.
    is_boosted: bool,
    switches_since_poll: u32,
    last_poll: Instant,
    /// An operation waits for its submission to the kernel.
    has_submissions: bool,
    /// Whether slices are dated: see [`Budget::date_slices`].
    dates_slices: bool,
    /// A time at which the current slice had not begun.
    before_slice: Instant,
    /// How many slices had started at the last poll.
    slices_until_poll: u64,
    /// How many operations have been tried at once.
    tried: u64,
    /// How many times a fiber had used up its budget.
    exhausted: u64,
}

impl Default for Budget {
    fn default() -> Self {
        let now = Instant::now();
        Budget {
            operations_left: OPERATIONS_PER_SLICE,
            is_boosted: false,
            switches_since_poll: 0,
            last_poll: now,
            has_submissions: false,
            dates_slices: false,
            before_slice: now,
            slices_until_poll: 0,
            tried: 0,
            exhausted: 0,
        }
    }
}

impl Budget {
    /// Accounts for an operation that is about to be tried. False if the current fiber has used up its budget and must
    /// yield first.
    pub fn consume(&mut self) -> bool {
        let allowed = self.operations_left > 0;
        self.tried += 1;
        self.exhausted += u64::from(!allowed);
        self.operations_left = self.operations_left.saturating_sub(1);
        allowed
    }

    /// Marks the current fiber as scheduled early. It may finish the operation that it has begun, and yields before the
    /// next one.
    pub fn boost(&mut self) {
        self.operations_left = 0;
        self.is_boosted = true;
    }

    /// Whether the current fiber was scheduled early; see [`Budget::boost`].
    pub fn is_boosted(&self) -> bool {
        self.is_boosted
    }

    /// Starts a fiber's time slice. True if timers and I/O must be polled first, although the run queue, which has
    /// `queued()` entries, is not empty.
    #[inline]
    pub fn start_slice(&mut self, queued: impl FnOnce() -> usize) -> bool {
        self.renew();
        self.switches_since_poll += 1;
        self.should_poll(queued)
    }

    /// Starts the time slice of a fiber that runs without having been picked.
    #[inline]
    pub fn renew(&mut self) {
        self.operations_left = OPERATIONS_PER_SLICE;
        self.is_boosted = false;
    }

    /// What [`Budget::start_slice`] has returned for this slice.
    #[inline]
    pub fn should_poll(&self, queued: impl FnOnce() -> usize) -> bool {
        if !self.switches_since_poll.is_multiple_of(SWITCHES_PER_CLOCK_CHECK) {
            return false;
        }
        let min_switches = if self.has_submissions { SWITCHES_PER_SUBMISSION } else { SWITCHES_PER_POLL };
        let whole_round = u32::try_from(queued()).unwrap_or(u32::MAX).max(min_switches);
        self.switches_since_poll >= whole_round || self.last_poll.elapsed() >= MAX_POLL_INTERVAL
    }

    /// Whether the last poll of timers and I/O was so long ago that a computing fiber must poll.
    pub fn is_poll_late(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last_poll) >= MAX_POLL_INTERVAL
    }

    /// Whether the fibers that have run since the last poll of timers and I/O compute.
    pub fn has_computed(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last_poll) >= COMPUTING
    }

    /// From now on [`Budget::is_brief`] knows how old a slice can be. This costs a read of the clock for every
    /// [`SLICES_PER_DATE`] slices.
    pub fn date_slices(&mut self) {
        self.dates_slices = true;
    }

    /// The fiber of the slice that was started is picked, after the poll if there was one.
    #[inline(always)]
    pub fn date_slice(&mut self) {
        if !self.dates_slices {
            return;
        }
        // The first one after a poll that a tick has made is dated, too.
        if self.switches_since_poll == 0 {
            self.before_slice = self.last_poll;
        } else if self.switches_since_poll % SLICES_PER_DATE == 1 {
            self.before_slice = Instant::now();
        }
    }

    /// Whether the current slice is certainly shorter than `time`. If slices are not dated, or few of them have begun
    /// in that time, this is unknown, and false.
    pub fn is_brief(&self, now: Instant, time: Duration) -> bool {
        now.saturating_duration_since(self.before_slice) < time
    }

    /// Notes that the backend has an operation, which it submits to the kernel with the next poll.
    pub fn submitted(&mut self) {
        self.has_submissions = true;
    }

    /// Notes that timers and I/O have just been polled.
    pub fn polled(&mut self, now: Instant) {
        self.has_submissions = false;
        self.slices_until_poll += u64::from(self.switches_since_poll);
        self.switches_since_poll = 0;
        self.last_poll = now;
    }

    /// How many time slices have started.
    pub fn slices(&self) -> u64 {
        self.slices_until_poll + u64::from(self.switches_since_poll)
    }

    /// How many operations have been tried at once.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// How many times a fiber had used up its budget, and yielded.
    pub fn exhausted(&self) -> u64 {
        self.exhausted
    }

    /// All counts start at zero again.
    pub fn reset_counts(&mut self) {
        (self.slices_until_poll, self.switches_since_poll, self.tried, self.exhausted) = (0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_operations_are_counted_across_polls() {
        let mut budget = Budget::default();
        for _ in 0..3 {
            budget.start_slice(|| 0);
            budget.consume();
            budget.polled(Instant::now());
        }
        budget.start_slice(|| 0);
        assert_eq!((budget.slices(), budget.tried(), budget.exhausted()), (4, 3, 0));
        budget.boost();
        budget.consume();
        assert_eq!(budget.exhausted(), 1);
        budget.reset_counts();
        assert_eq!((budget.slices(), budget.tried(), budget.exhausted()), (0, 0, 0));
    }

    #[test]
    fn a_slice_allows_a_bounded_number_of_operations() {
        let mut budget = Budget::default();
        let allowed = (0..1000).filter(|_| budget.consume()).count();
        assert_eq!(allowed, OPERATIONS_PER_SLICE as usize);
    }

    #[test]
    fn a_new_slice_renews_the_budget() {
        let mut budget = Budget::default();
        while budget.consume() {}
        budget.start_slice(|| 1);
        assert!(budget.consume());
    }

    #[test]
    fn a_boosted_fiber_starts_no_further_operation() {
        let mut budget = Budget::default();
        budget.start_slice(|| 1);
        budget.boost();
        assert!(!budget.consume());
        budget.start_slice(|| 1);
        assert!(budget.consume() && !budget.is_boosted());
    }

    #[test]
    fn a_run_queue_that_is_never_empty_does_not_starve_io() {
        let mut budget = Budget::default();
        let switches = (1..).find(|_| budget.start_slice(|| 2)).unwrap();
        assert!(switches <= SWITCHES_PER_POLL);
    }

    #[test]
    fn a_submission_makes_the_next_poll_earlier() {
        let mut budget = Budget::default();
        budget.submitted();
        let switches = (1..).find(|_| budget.start_slice(|| 2)).unwrap();
        assert_eq!(switches, SWITCHES_PER_SUBMISSION);
        budget.polled(Instant::now() + Duration::from_secs(3600));
        let switches = (1..).find(|_| budget.start_slice(|| 2)).unwrap();
        assert_eq!(switches, SWITCHES_PER_POLL);
    }

    #[test]
    fn a_poll_is_late_after_the_longest_time_between_two_polls() {
        let (mut budget, now) = (Budget::default(), Instant::now());
        budget.polled(now);
        assert!(!budget.is_poll_late(now + MAX_POLL_INTERVAL / 2));
        assert!(budget.is_poll_late(now + MAX_POLL_INTERVAL));
    }

    #[test]
    fn fibers_have_computed_if_the_last_poll_was_a_tick_ago() {
        let (mut budget, now) = (Budget::default(), Instant::now());
        budget.polled(now);
        assert!(!budget.has_computed(now + COMPUTING / 2));
        assert!(budget.has_computed(now + COMPUTING));
    }

    #[test]
    fn a_slice_is_brief_if_one_of_the_last_few_has_begun_just_before() {
        let (mut budget, time) = (Budget::default(), Duration::from_secs(3600));
        budget.before_slice -= time;
        budget.date_slices();
        assert!(!budget.is_brief(Instant::now(), time));
        for _ in 0..SLICES_PER_DATE {
            budget.start_slice(|| 2);
            budget.date_slice();
        }
        assert!(budget.is_brief(Instant::now(), time));
        assert!(!budget.is_brief(Instant::now() + time, time));
    }

    #[test]
    fn a_slice_that_follows_a_poll_begins_after_it() {
        let (mut budget, now) = (Budget::default(), Instant::now() + Duration::from_secs(3600));
        budget.date_slices();
        budget.start_slice(|| 0);
        budget.polled(now);
        budget.date_slice();
        assert!(budget.is_brief(now, Duration::from_nanos(1)));
    }

    #[test]
    fn a_poll_in_the_middle_of_a_slice_does_not_make_it_brief() {
        let (mut budget, time) = (Budget::default(), Duration::from_secs(3600));
        budget.date_slices();
        budget.start_slice(|| 0);
        budget.date_slice();
        let now = budget.before_slice + time;
        budget.polled(now);
        assert!(!budget.is_brief(now, time));
    }

    #[test]
    fn a_poll_resets_the_count() {
        let mut budget = Budget::default();
        while !budget.start_slice(|| 2) {}
        budget.polled(Instant::now() + Duration::from_secs(1));
        assert!(!budget.start_slice(|| 2));
    }
}
