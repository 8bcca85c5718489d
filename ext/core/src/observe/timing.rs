//! How long fibers wait in the run queue, and how long they run.
//!
//! Both need a read of the clock for each wake-up and each switch, which is a considerable part of a switch's cost. So
//! a run queue has a [`SliceTiming`] only on demand.

use std::collections::VecDeque;
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
    /// When each entry of woken fibers was enqueued, in the same order.
    enqueued: VecDeque<Instant>,
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
    long: Option<LongSlice>,
}

impl Watched {
    fn begin(&mut self, now: Instant) {
        if let Some(watch) = &self.watch {
            self.number += 1;
            self.since = Some(now);
            watch.begin(self.number, now);
        }
    }

    fn end(&mut self, now: Instant, enqueued: &VecDeque<Instant>) {
        let Some(watch) = &self.watch else { return };
        watch.end();
        let length = self.since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        if length >= watch.limit() {
            let ended = EndedStall { slice: self.number, length, late: 0, latest: Duration::ZERO };
            let mut long = LongSlice { at: now, ended };
            enqueued.iter().for_each(|since| long.delayed(*since));
            self.long = Some(long);
        }
    }
}

impl SliceTiming {
    /// For a queue that has `queued` entries of woken fibers.
    pub fn new(queued: usize) -> Self {
        SliceTiming { enqueued: VecDeque::from(vec![Instant::now(); queued]), ..SliceTiming::default() }
    }

    /// Reports long slices to `watch` from now on.
    pub fn watch(&mut self, watch: Option<Arc<StallWatch>>) {
        self.watched = Watched { watch, number: self.watched.number, ..Watched::default() };
    }

    /// An entry was enqueued as the last.
    #[cold]
    pub fn pushed_last(&mut self) {
        self.enqueued.push_back(Instant::now());
    }

    /// An entry was enqueued as the first.
    #[cold]
    pub fn pushed_first(&mut self) {
        self.enqueued.push_front(Instant::now());
    }

    /// The entry at `index` was removed. Returns when it was enqueued.
    pub fn removed(&mut self, index: usize) -> Option<Instant> {
        self.enqueued.remove(index)
    }

    /// The first entry was dequeued. Returns when it was enqueued.
    pub fn popped(&mut self) -> Option<Instant> {
        self.enqueued.pop_front()
    }

    /// When the last entry was enqueued.
    pub fn last_enqueued(&self) -> Option<Instant> {
        self.enqueued.back().copied()
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

    /// The current fiber stops running, if one runs.
    pub fn end_slice(&mut self, now: Instant) {
        let Some(since) = self.running_since.take() else { return };
        self.slices.record(now.saturating_duration_since(since));
        self.watched.end(now, &self.enqueued);
    }

    /// The current fiber would have been preempted now if another one had been runnable. So it does not keep the
    /// thread.
    pub fn could_preempt(&mut self, now: Instant) {
        if self.running_since.is_some() {
            self.watched.end(now, &self.enqueued);
            self.watched.begin(now);
        }
    }

    /// The last long slice, once.
    pub fn take_long_slice(&mut self) -> Option<LongSlice> {
        self.watched.long.take()
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
        timing.pushed_last();
        timing.end_slice(begin + Duration::from_secs(9));
        let mut long = timing.take_long_slice().expect("it is long");
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
        timing.could_preempt(begin + LIMIT / 2);
        timing.end_slice(begin + LIMIT);
        assert_eq!(timing.take_long_slice(), None);
        assert_eq!(timing.slices.max(), LIMIT);
    }
}
