//! How long fibers wait for their turn, and how long they run.
//!
//! Both need a read of the clock for each wake-up and each switch, which is a considerable part of a switch's cost. So
//! a scheduler has a [`SliceTiming`] only on demand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::observe::histogram::Histogram;
use crate::observe::stall_watch::{EndedStall, StallWatch};

/// A fiber that waits for less than this is not late.
const LATE: Duration = Duration::from_millis(1);

/// A stall that has ended, and what it has delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongSlice {
    at: Instant,
    ended: EndedStall,
}

impl LongSlice {
    /// When it ended.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// How long it was.
    pub fn length(&self) -> Duration {
        self.ended.length
    }

    /// How many fibers it has delayed.
    pub fn late(&self) -> usize {
        self.ended.late
    }

    /// Counts a fiber that has been runnable since this time, if that makes it late.
    pub fn delayed(&mut self, since: Instant) {
        let delay = self.at.saturating_duration_since(since).min(self.ended.length);
        if delay >= LATE {
            self.ended.late += 1;
            self.ended.latest = self.ended.latest.max(delay);
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct SliceTiming {
    /// Since when the current fiber runs. `None` while no fiber runs.
    running_since: Option<Instant>,
    /// From the wake-up to the run.
    pub scheduled: Histogram,
    /// The lengths of time slices.
    pub slices: Histogram,
    watched: Watched,
}

/// What a [`StallWatch`] watches: a slice, or the part of it after the last moment at which the fiber would have been
/// preempted if another one had been runnable.
#[derive(Debug, Default)]
struct Watched {
    watch: Option<Arc<StallWatch>>,
    number: u64,
    since: Option<Instant>,
}

impl Watched {
    fn begin(&mut self, now: Instant) {
        if let Some(watch) = &self.watch {
            self.number += 1;
            self.since = Some(now);
            watch.begin(self.number, now);
        }
    }

    fn end(&mut self, now: Instant) -> Option<LongSlice> {
        let watch = self.watch.as_ref()?;
        watch.end();
        let length = self.since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let ended = EndedStall { slice: self.number, length, late: 0, latest: Duration::ZERO };
        (length >= watch.limit()).then_some(LongSlice { at: now, ended })
    }
}

impl SliceTiming {
    /// Reports long slices to `watch` from now on.
    pub fn watch(&mut self, watch: Option<Arc<StallWatch>>) {
        self.watched = Watched { watch, number: self.watched.number, ..Watched::default() };
    }

    /// When the current fiber began to run, if one runs.
    pub fn slice_began(&self) -> Option<Instant> {
        self.running_since
    }

    /// A fiber starts to run, after the previous slice has ended.
    pub fn begin_slice(&mut self, now: Instant) {
        self.running_since = Some(now);
        self.watched.begin(now);
    }

    /// A fiber, which has been runnable since that time, runs.
    pub fn waited(&mut self, since: Instant, now: Instant) {
        self.scheduled.record(now.saturating_duration_since(since));
    }

    /// The current fiber stops running, if one runs. Returns its slice, if that was too long.
    pub fn end_slice(&mut self, now: Instant) -> Option<LongSlice> {
        let since = self.running_since.take()?;
        self.slices.record(now.saturating_duration_since(since));
        self.watched.end(now)
    }

    /// The current fiber would have been preempted now if another one had been runnable. So it does not keep the thread.
    /// Returns its slice until now, if that was too long.
    pub fn could_preempt(&mut self, now: Instant) -> Option<LongSlice> {
        self.running_since?;
        let long = self.watched.end(now);
        self.watched.begin(now);
        long
    }

    /// Tells the watching thread that a long slice has ended.
    pub fn post(&self, long: LongSlice) {
        self.watched.watch.iter().for_each(|watch| watch.post(long.ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::stall_watch::{Noticed, WatchEvent};

    const LIMIT: Duration = Duration::from_millis(10);

    fn watched() -> (SliceTiming, Arc<StallWatch>) {
        let (mut timing, watch) = (SliceTiming::default(), Arc::new(StallWatch::new(LIMIT)));
        timing.watch(Some(Arc::clone(&watch)));
        (timing, watch)
    }

    #[test]
    fn a_long_slice_tells_how_many_fibers_it_has_delayed_and_by_how_much_at_most() {
        let (mut timing, watch) = watched();
        let begin = Instant::now();
        timing.begin_slice(begin);
        let mut long = timing.end_slice(begin + Duration::from_secs(9)).expect("it is long");
        long.delayed(begin);
        long.delayed(begin - LIMIT);
        long.delayed(long.at());
        timing.post(long);
        let WatchEvent::Noticed(Noticed { ended, .. }) = watch.wait() else { panic!("it has ended") };
        let ended = ended[0];
        assert_eq!((ended.slice, ended.length, ended.late), (1, Duration::from_secs(9), 2));
        assert_eq!(ended.latest, ended.length, "not more than the slice, although a fiber was runnable before");
    }

    #[test]
    fn a_slice_that_could_be_preempted_in_time_is_not_long() {
        let (mut timing, _) = watched();
        let begin = Instant::now();
        timing.begin_slice(begin);
        assert_eq!(timing.could_preempt(begin + LIMIT / 2), None);
        assert_eq!(timing.end_slice(begin + LIMIT), None);
        assert_eq!(timing.slices.max(), LIMIT);
    }
}
