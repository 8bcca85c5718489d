//! Detects time slices that are too long while they last.
//!
//! The scheduler's thread notes the beginning and the end of each slice. A native thread waits until a slice has lasted
//! for the limit, or a long slice has ended. It also learns if no other thread has answered an announced slice in time.
//!
//! The watching thread needs no tick: it sleeps until the current slice would reach the limit, and then looks again. A
//! slice that began meanwhile cannot have reached the limit, so none is noticed late. While no slice is under way the
//! thread sleeps without a limit, and the next slice wakes it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most ends of slices that are kept for a watching thread that does not run.
const MAX_KEPT: usize = 64;
/// How long a slice may be unanswered. A Ruby thread that wants the GVL gets it after 0.1 s, unless C code keeps it.
const PATIENCE: Duration = Duration::from_millis(200);
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The slice with this number has reached the limit, and has lasted this long.
    Stalled(u64, Duration),
    /// The slice lasts, and was not answered: see [`StallWatch::answer`]. Comes again until it is.
    Unanswered(u64, Duration),
    /// A long slice has ended. It may not have been announced.
    Ended(EndedStall),
    /// Nothing is watched any more.
    Stopped,
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
    /// Whether the watching thread waits for the next slice.
    is_asleep: AtomicBool,
    /// What the fiber is called to which the current slice belongs.
    fiber_name: Mutex<Option<Arc<str>>>,
    shared: Mutex<Shared>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Shared {
    announced: u64,
    /// Until when the announced slice is to be answered; `None` if it was.
    answer_due: Option<Instant>,
    ended: VecDeque<EndedStall>,
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
            fiber_name: Mutex::default(),
            shared: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The length at which a slice is too long.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slice begins. Called on the scheduler's thread, and `number` is larger than all before.
    pub fn begin(&self, number: u64, now: Instant) {
        self.since.store(self.time(now), Ordering::Release);
        // Sequentially consistent, as the load below and those in `wait`: one of the two threads sees the other's
        // store.
        self.current.store(number, Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) {
            drop(self.lock());
            self.changed.notify_all();
        }
    }

    /// What the fiber is called that runs from now on. Called on the scheduler's thread, after [`StallWatch::begin`].
    pub fn set_fiber_name(&self, name: Option<Arc<str>>) {
        *self.fiber_name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }

    /// What the fiber is called that keeps the thread in this slice. `None` if it has no name, or the slice has ended.
    pub fn fiber_name(&self, slice: u64) -> Option<Arc<str>> {
        let name = self.fiber_name.lock().unwrap_or_else(PoisonError::into_inner).clone();
        name.filter(|_| self.is_current(slice))
    }

    /// The current slice, if there is one, ends.
    pub fn end(&self) {
        self.current.store(NONE, Ordering::SeqCst);
    }

    /// Tells the watching thread of the end of a long slice.
    pub fn post(&self, ended: EndedStall) {
        let mut shared = self.lock();
        if shared.ended.len() < MAX_KEPT {
            shared.ended.push_back(ended);
        }
        drop(shared);
        self.changed.notify_all();
    }

    /// Whether this slice is still under way.
    pub fn is_current(&self, slice: u64) -> bool {
        self.current.load(Ordering::SeqCst) == slice
    }

    /// The announced slice is taken care of: it is not announced as unanswered.
    pub fn answer(&self, slice: u64) {
        let mut shared = self.lock();
        if shared.announced == slice {
            shared.answer_due = None;
        }
    }

    /// Ends all watching.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits for the next event. Called on the watching thread.
    pub fn wait(&self) -> Event {
        let mut shared = self.lock();
        loop {
            if let Some(ended) = shared.ended.pop_front() {
                return Event::Ended(ended);
            }
            if shared.stopped {
                return Event::Stopped;
            }
            let (slice, age) = self.current();
            let is_long = slice != NONE && age >= self.limit;
            let left = if slice == NONE {
                None
            } else if !is_long {
                Some(self.limit.saturating_sub(age))
            } else if slice != shared.announced {
                shared.announced = slice;
                shared.answer_due = Some(Instant::now() + PATIENCE);
                return Event::Stalled(slice, age);
            } else {
                // Once answered, the slice wakes this thread by its end.
                shared.answer_due.map(|due| due.saturating_duration_since(Instant::now()))
            };
            if is_long && left.is_some_and(|left| left.is_zero()) {
                shared.answer_due = Some(Instant::now() + PATIENCE);
                return Event::Unanswered(slice, age);
            }
            shared = self.sleep(shared, slice, left);
        }
    }

    fn sleep<'a>(&self, shared: MutexGuard<'a, Shared>, slice: u64, time: Option<Duration>) -> MutexGuard<'a, Shared> {
        if let Some(time) = time {
            return self
                .changed
                .wait_timeout(shared, time)
                .map_or_else(|lost| lost.into_inner().0, |(shared, _)| shared);
        }
        self.is_asleep.store(true, Ordering::SeqCst);
        let shared = if self.is_current(slice) {
            self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner)
        } else {
            shared
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

    #[test]
    fn a_slice_that_reaches_the_limit_is_announced_once_and_then_its_end() {
        let watch = watch();
        watch.begin(1, Instant::now());
        assert!(matches!(watch.wait(), Event::Stalled(1, age) if age >= LIMIT));
        watch.answer(1);
        watch.end();
        watch.post(ended(1));
        assert_eq!(watch.wait(), Event::Ended(ended(1)));
    }

    #[test]
    fn a_slice_that_is_not_answered_is_announced_as_unanswered_until_it_is() {
        let watch = watch();
        watch.begin(1, Instant::now());
        assert!(matches!(watch.wait(), Event::Stalled(1, _)));
        (0..2).for_each(|_| assert!(matches!(watch.wait(), Event::Unanswered(1, age) if age >= PATIENCE)));
        watch.answer(1);
        watch.end();
        watch.post(ended(1));
        assert_eq!(watch.wait(), Event::Ended(ended(1)));
    }

    #[test]
    fn a_slice_wakes_a_watching_thread_that_waits_for_one() {
        let watch = watch();
        let watching = Arc::clone(&watch);
        let thread = thread::spawn(move || watching.wait());
        while !watch.is_asleep.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        watch.begin(7, Instant::now());
        assert!(matches!(thread.join(), Ok(Event::Stalled(7, _))));
    }

    #[test]
    fn slices_that_end_in_time_are_not_announced() {
        let watch = watch();
        for number in 1..=3 {
            watch.begin(number, Instant::now());
            watch.end();
        }
        watch.stop();
        assert_eq!(watch.wait(), Event::Stopped);
    }

    #[test]
    fn a_fiber_has_its_name_in_its_own_slice_only() {
        let watch = watch();
        watch.begin(1, Instant::now());
        watch.set_fiber_name(Some("clock".into()));
        assert_eq!(watch.fiber_name(1).as_deref(), Some("clock"));
        watch.begin(2, Instant::now());
        assert_eq!(watch.fiber_name(1), None);
    }

    #[test]
    fn a_bounded_number_of_ends_is_kept() {
        let watch = watch();
        (0..MAX_KEPT as u64 + 5).for_each(|number| watch.post(ended(number)));
        watch.stop();
        let kept = std::iter::from_fn(|| Some(watch.wait()).filter(|event| *event != Event::Stopped)).count();
        assert_eq!(kept, MAX_KEPT);
    }
}
