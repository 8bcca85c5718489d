//! How another thread ends the scheduler's wait.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::thread::{self, Thread};

/// What reaches into a blocking wait of one backend: an eventfd's write, a poller's notification.
pub trait Notify: Send + Sync {
    /// Makes the wait that is under way, or else the next one, return.
    fn notify(&self);
}

/// Ends the wait of a scheduler's thread. Costs a system call only if there is a wait to end.
///
/// The scheduler's thread `arm`s it, looks once more whether there is work, and only then waits: in its backend, or, if
/// that has nothing to wait for, in [`Waker::park`], which is what threads do that wait for each other, and costs half.
/// Who brings work first puts it where the scheduler looks and then calls `wake`. Both sides use sequential
/// consistency, so one of them sees the other.
#[derive(Clone)]
pub struct Waker {
    shared: Arc<Shared>,
}

struct Shared {
    /// One of the constants below.
    state: AtomicU8,
    /// The scheduler's thread, if it parks.
    sleeper: Mutex<Option<Thread>>,
    notify: Box<dyn Notify>,
}

/// The scheduler's thread does not wait.
const AWAKE: u8 = 0;
/// It waits in the backend, or is about to.
const WAITING: u8 = 1;
/// It is parked, or is about to.
const PARKED: u8 = 2;

impl Waker {
    /// A waker over a backend's own means.
    pub fn new(notify: impl Notify + 'static) -> Self {
        let shared = Shared { state: AtomicU8::new(AWAKE), sleeper: Mutex::default(), notify: Box::new(notify) };
        Waker { shared: Arc::new(shared) }
    }

    /// The scheduler's thread is about to wait in the backend.
    pub fn arm(&self) {
        self.announce(WAITING);
    }

    /// The scheduler's thread, which is the one that calls this, is about to [park](Waker::park).
    pub fn arm_parking(&self) {
        {
            let mut sleeper = self.shared.sleeper.lock().unwrap_or_else(PoisonError::into_inner);
            let current = thread::current();
            if sleeper.as_ref().is_none_or(|sleeper| sleeper.id() != current.id()) {
                *sleeper = Some(current);
            }
        }
        self.announce(PARKED);
    }

    /// A swap, not a store: the thread sees all that was brought before an earlier [`Waker::wake`], as it reads what that
    /// one has written. Loom can check this, but not what rests on sequential consistency alone.
    fn announce(&self, state: u8) {
        self.shared.state.swap(state, Ordering::SeqCst);
    }

    /// Waits until somebody wakes the thread, or the time is up; may return early.
    pub fn park(&self, timeout: Option<Duration>) {
        match timeout {
            Some(timeout) => crate::sync::park_timeout(timeout),
            None => thread::park(),
        }
    }

    /// The scheduler's thread no longer waits.
    pub fn disarm(&self) {
        self.shared.state.store(AWAKE, Ordering::SeqCst);
    }

    /// Ends the wait, if there is one. Callable from any thread.
    pub fn wake(&self) {
        match self.shared.state.swap(AWAKE, Ordering::SeqCst) {
            WAITING => self.shared.notify.notify(),
            PARKED => {
                let sleeper = self.shared.sleeper.lock().unwrap_or_else(PoisonError::into_inner);
                sleeper.iter().for_each(Thread::unpark);
            }
            _ => {}
        }
    }
}

#[cfg(all(test, not(heddle_models)))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Instant;

    use super::*;

    #[derive(Default, Clone)]
    struct Count(Arc<AtomicUsize>);

    impl Notify for Count {
        fn notify(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_waits_in_the_backend_is_notified_once() {
        let count = Count::default();
        let waker = Waker::new(count.clone());
        waker.arm();
        waker.wake();
        waker.wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn who_is_awake_is_left_alone() {
        let count = Count::default();
        let waker = Waker::new(count.clone());
        waker.arm();
        waker.disarm();
        waker.wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn who_is_parked_is_woken_and_the_backend_left_alone() {
        let count = Count::default();
        let waker = Waker::new(count.clone());
        let other = waker.clone();
        let begin = Instant::now();
        waker.arm_parking();
        let waking = thread::spawn(move || other.wake());
        while waker.shared.state.load(Ordering::SeqCst) == PARKED {
            waker.park(Some(LONG));
        }
        waking.join().expect("the waking thread");
        assert!(begin.elapsed() < LONG);
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_wake_before_parking_is_not_lost() {
        let waker = Waker::new(Count::default());
        let begin = Instant::now();
        waker.arm_parking();
        waker.wake();
        waker.park(Some(LONG));
        assert!(begin.elapsed() < LONG);
    }

    #[test]
    fn parking_ends_with_its_time() {
        let waker = Waker::new(Count::default());
        waker.arm_parking();
        waker.park(Some(Duration::from_millis(1)));
        waker.disarm();
    }
}
