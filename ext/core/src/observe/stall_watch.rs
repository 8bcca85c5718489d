//! Detects time slices that are too long while they last.
//!
//! The scheduler's thread notes the beginning and the end of each slice. Another thread waits until a slice has lasted
//! for the limit, or a long slice has ended.
//!
//! The watching thread needs no tick: it sleeps until the current slice would reach the limit, and then looks again. A
//! slice that began meanwhile cannot have reached the limit, so none is noticed late. While no slice is under way the
//! thread sleeps without a limit, and the next slice wakes it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most ends of slices that are kept for a watching thread that does not run. The end of an announced slice is
/// always kept.
const MAX_KEPT: usize = 64;
/// No slice is under way.
const NONE: u64 = 0;

/// A long slice that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedStall {
    /// The slice's number.
    pub slice: u64,
    /// How long it was.
    pub length: Duration,
    /// How many fibers it has delayed.
    pub late: usize,
    /// By how much it has delayed the first of them.
    pub latest: Duration,
}

/// What the watching thread learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// See [`Noticed`].
    Noticed(Noticed),
    /// The wait was interrupted: see [`StallWatch::interrupt`].
    Interrupted,
    /// Nothing is watched any more.
    Stopped,
}

/// What has happened since the last wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noticed {
    /// The long slices that have ended, in their order. They may not have been announced.
    pub ended: Vec<EndedStall>,
    /// The slice that has reached the limit now, and how long it has lasted: it is announced. Later than the others.
    pub stalled: Option<(u64, Duration)>,
}

/// See the module.
#[derive(Debug)]
pub struct StallWatch {
    limit: Duration,
    origin: Instant,
    /// The number of the current slice, or [`NONE`].
    current: AtomicU64,
    /// When the current slice began, in nanoseconds since `origin`.
    since: AtomicU64,
    /// Whether the watching thread waits for the next beginning or end of a slice.
    is_asleep: AtomicBool,
    shared: Mutex<WatchState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WatchState {
    /// The last slice that was announced, or [`NONE`].
    announced: u64,
    ended: Vec<EndedStall>,
    interrupted: bool,
    stopped: bool,
}

impl StallWatch {
    /// Watches slices of `limit` and longer.
    pub fn new(limit: Duration) -> Self {
        StallWatch {
            limit,
            origin: Instant::now(),
            current: AtomicU64::new(NONE),
            since: AtomicU64::new(0),
            is_asleep: AtomicBool::new(false),
            shared: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The length at which a slice is too long.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slice begins. Called on the scheduler's thread, and `number` is larger than all before.
    pub fn begin(&self, number: u64, now: Instant) {
        self.since.store(self.time(now), Ordering::Release);
        self.set_current(number);
    }

    /// The current slice, if there is one, ends.
    pub fn end(&self) {
        self.set_current(NONE);
    }

    fn set_current(&self, slice: u64) {
        // Sequentially consistent, as the load below and those in `wait`: one of the two threads sees the other's
        // store.
        self.current.store(slice, Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) {
            drop(self.lock());
            self.changed.notify_all();
        }
    }

    /// Tells the watching thread of the end of a long slice.
    pub fn post(&self, ended: EndedStall) {
        let mut shared = self.lock();
        if shared.ended.len() < MAX_KEPT || ended.slice == shared.announced {
            shared.ended.push(ended);
        }
        drop(shared);
        self.changed.notify_all();
    }

    /// Whether this slice is still under way.
    pub fn is_current(&self, slice: u64) -> bool {
        self.current.load(Ordering::SeqCst) == slice
    }

    /// The slice that is under way, if it was announced.
    pub fn announced(&self) -> Option<u64> {
        let slice = self.lock().announced;
        (slice != NONE && self.is_current(slice)).then_some(slice)
    }

    /// Ends the watching thread's wait, so that the thread can handle its interrupts.
    pub fn interrupt(&self) {
        self.lock().interrupted = true;
        self.changed.notify_all();
    }

    /// Ends all watching.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits for the next event. Called on the watching thread.
    ///
    /// While a slice is under way that may become too long, the ends of others are kept until it ends or does so. To
    /// report them, the watching thread needs the GVL, which that slice may not release; it would not be announced.
    pub fn wait(&self) -> WatchEvent {
        let mut shared = self.lock();
        let mut at_first = None;
        loop {
            if std::mem::take(&mut shared.interrupted) {
                return WatchEvent::Interrupted;
            }
            let (slice, age) = self.current();
            let is_new = slice != NONE && slice != shared.announced;
            let stalled = (is_new && age >= self.limit).then_some((slice, age));
            if let Some((slice, _)) = stalled {
                shared.announced = slice;
            }
            let keeps_ends = *at_first.get_or_insert(slice) == slice && is_new;
            if stalled.is_some() || !shared.ended.is_empty() && !keeps_ends {
                return WatchEvent::Noticed(Noticed { ended: std::mem::take(&mut shared.ended), stalled });
            }
            if shared.stopped {
                return WatchEvent::Stopped;
            }
            shared = self.sleep(shared, slice, is_new.then(|| self.limit.saturating_sub(age)));
        }
    }

    /// Sleeps until something has changed, or for that time. As long as no end is kept, the ends of slices change
    /// nothing for it.
    fn sleep<'a>(
        &self,
        shared: MutexGuard<'a, WatchState>,
        slice: u64,
        time: Option<Duration>,
    ) -> MutexGuard<'a, WatchState> {
        let waits_for_change = time.is_none() || !shared.ended.is_empty();
        self.is_asleep.store(waits_for_change, Ordering::SeqCst);
        let shared = match time {
            _ if waits_for_change && !self.is_current(slice) => shared,
            Some(time) => {
                let waited = self.changed.wait_timeout(shared, time);
                waited.map_or_else(|lost| lost.into_inner().0, |(shared, _)| shared)
            }
            None => self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner),
        };
        self.is_asleep.store(false, Ordering::SeqCst);
        shared
    }

    /// The number and the age of the current slice.
    fn current(&self) -> (u64, Duration) {
        loop {
            let slice = self.current.load(Ordering::SeqCst);
            let since = self.since.load(Ordering::Acquire);
            if self.is_current(slice) {
                let age = self.time(Instant::now()).saturating_sub(since);
                return (slice, Duration::from_nanos(age));
            }
        }
    }

    fn time(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.origin).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(20);

    fn watch() -> Arc<StallWatch> {
        Arc::new(StallWatch::new(LIMIT))
    }

    fn ended(slice: u64) -> EndedStall {
        EndedStall { slice, length: LIMIT, late: 0, latest: Duration::ZERO }
    }

    fn noticed(watch: &StallWatch) -> (Vec<u64>, Option<u64>) {
        match watch.wait() {
            WatchEvent::Noticed(Noticed { ended, stalled }) => {
                (ended.iter().map(|ended| ended.slice).collect(), stalled.map(|(slice, _)| slice))
            }
            other => panic!("{other:?}"),
        }
    }

    fn end_long(watch: &StallWatch, number: u64) {
        watch.end();
        watch.post(ended(number));
    }

    #[test]
    fn a_slice_that_reaches_the_limit_is_announced_once_and_then_its_end() {
        let watch = watch();
        watch.begin(1, Instant::now());
        assert_eq!(watch.announced(), None);
        let WatchEvent::Noticed(Noticed { ended, stalled: Some((1, age)) }) = watch.wait() else {
            panic!("it is long")
        };
        assert!(ended.is_empty() && age >= LIMIT);
        assert_eq!(watch.announced(), Some(1));
        end_long(&watch, 1);
        assert_eq!((watch.announced(), noticed(&watch)), (None, (vec![1], None)));
    }

    #[test]
    fn a_slice_that_may_become_too_long_keeps_the_ends_of_others_until_it_is() {
        let watch = watch();
        (1..=2).for_each(|number| watch.post(ended(number)));
        watch.begin(3, Instant::now());
        assert_eq!(noticed(&watch), (vec![1, 2], Some(3)));
        end_long(&watch, 3);
        watch.begin(4, Instant::now());
        assert_eq!(noticed(&watch), (vec![3], Some(4)));
    }

    #[test]
    fn the_end_of_a_slice_wakes_a_watching_thread_that_keeps_the_ends_of_others() {
        let watch = Arc::new(StallWatch::new(Duration::from_secs(3600)));
        watch.post(ended(1));
        watch.begin(2, Instant::now());
        let watching = Arc::clone(&watch);
        let thread = thread::spawn(move || noticed(&watching));
        await_sleep(&watch);
        watch.end();
        assert_eq!(thread.join().unwrap(), (vec![1], None));
    }

    #[test]
    fn a_wait_can_be_interrupted() {
        let watch = watch();
        let watching = Arc::clone(&watch);
        let thread = thread::spawn(move || watching.wait());
        watch.interrupt();
        assert!(matches!(thread.join(), Ok(WatchEvent::Interrupted)));
    }

    #[test]
    fn a_slice_wakes_a_watching_thread_that_waits_for_one() {
        let watch = watch();
        let watching = Arc::clone(&watch);
        let thread = thread::spawn(move || noticed(&watching));
        await_sleep(&watch);
        watch.begin(7, Instant::now());
        assert_eq!(thread.join().unwrap(), (vec![], Some(7)));
    }

    fn await_sleep(watch: &StallWatch) {
        while !watch.is_asleep.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }

    #[test]
    fn slices_that_end_in_time_are_not_announced() {
        let watch = watch();
        for number in 1..=3 {
            watch.begin(number, Instant::now());
            watch.end();
        }
        watch.stop();
        assert_eq!(watch.wait(), WatchEvent::Stopped);
    }

    #[test]
    fn a_bounded_number_of_ends_is_kept_and_that_of_the_announced_slice() {
        let watch = watch();
        let announced = MAX_KEPT as u64 + 5;
        watch.begin(announced, Instant::now());
        assert_eq!(noticed(&watch), (vec![], Some(announced)));
        watch.end();
        (1..=announced).for_each(|number| watch.post(ended(number)));
        let kept: Vec<u64> = (1..=MAX_KEPT as u64).chain([announced]).collect();
        assert_eq!(noticed(&watch), (kept, None));
    }
}
