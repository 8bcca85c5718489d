//! Ending the scheduler's wait from another thread.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::threads::sync::Mutex;
use crate::threads::sync::atomic::{AtomicU8, Ordering};
use crate::threads::sync::thread::{self, Thread};
use crate::threads::timer_slack::wait_on_time;

/// A backend's way to end its blocking wait: an eventfd's write, a poller's notification.
pub trait Notify: Send + Sync {
    /// Makes the backend's present wait, or else its next one, return.
    fn notify(&self);
}

/// Ends the wait of a scheduler's thread. Costs a system call only if there is a wait to end.
///
/// The scheduler's thread `arm`s it, checks once more for work, and only then waits. It waits in its backend or, if the
/// backend has no operations, in [`Waker::park`], which costs half as much. A thread that brings work first stores it
/// where the scheduler checks, and then calls `wake`. Both sides use sequential consistency, so at least one of them
/// sees the other.
#[derive(Clone)]
pub struct Waker {
    shared: Arc<WakerState>,
}

struct WakerState {
    /// One of the constants below.
    state: AtomicU8,
    /// The scheduler's thread, once it has parked.
    parked: Mutex<Option<Thread>>,
    notify: Box<dyn Notify>,
}

/// The scheduler's thread does not wait.
const AWAKE: u8 = 0;
/// The scheduler's thread waits in the backend, or is about to.
const WAITING: u8 = 1;
/// The scheduler's thread is parked, or is about to park.
const PARKED: u8 = 2;

impl Waker {
    /// A waker that ends the backend's wait by `notify`.
    pub fn new(notify: impl Notify + 'static) -> Self {
        let shared = WakerState { state: AtomicU8::new(AWAKE), parked: Mutex::default(), notify: Box::new(notify) };
        Waker { shared: Arc::new(shared) }
    }

    /// Announces that the scheduler's thread is about to wait in the backend.
    pub fn arm(&self) {
        self.announce(WAITING);
    }

    /// Announces that the calling thread, the scheduler's, is about to [park](Waker::park).
    pub fn arm_parking(&self) {
        {
            let mut parked = self.shared.parked.lock().unwrap_or_else(PoisonError::into_inner);
            let current = thread::current();
            if parked.as_ref().is_none_or(|parked| parked.id() != current.id()) {
                *parked = Some(current);
            }
        }
        self.announce(PARKED);
    }

    /// Stores a state. A swap reads what an earlier [`Waker::wake`] has written, so this thread sees all that was
    /// stored before that wake. Loom can check this, but not what rests on sequential consistency alone.
    fn announce(&self, state: u8) {
        self.shared.state.swap(state, Ordering::SeqCst);
    }

    /// Waits until another thread calls [`Waker::wake`], or `timeout` elapses. May return early.
    pub fn park(&self, timeout: Option<Duration>) {
        match timeout {
            Some(timeout) => wait_on_time(Some(timeout), || crate::threads::sync::park_timeout(timeout)),
            None => thread::park(),
        }
    }

    /// Announces that the scheduler's thread no longer waits.
    pub fn disarm(&self) {
        self.shared.state.store(AWAKE, Ordering::SeqCst);
    }

    /// Whether no other thread has called [`Waker::wake`] since the last announcement.
    pub fn is_armed(&self) -> bool {
        self.shared.state.load(Ordering::SeqCst) != AWAKE
    }

    /// Ends the wait, if there is one. Callable from any thread.
    pub fn wake(&self) {
        match self.shared.state.swap(AWAKE, Ordering::SeqCst) {
            WAITING => self.shared.notify.notify(),
            PARKED => {
                let parked = self.shared.parked.lock().unwrap_or_else(PoisonError::into_inner);
                parked.iter().for_each(Thread::unpark);
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
    fn a_thread_that_waits_in_the_backend_is_notified_once() {
        let count = Count::default();
        let waker = Waker::new(count.clone());
        waker.arm();
        assert!(waker.is_armed());
        waker.wake();
        waker.wake();
        assert!(!waker.is_armed());
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_thread_that_does_not_wait_is_not_notified() {
        let count = Count::default();
        let waker = Waker::new(count.clone());
        waker.arm();
        waker.disarm();
        waker.wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_parked_thread_is_unparked_without_a_notification() {
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
    fn parking_ends_with_its_timeout() {
        let waker = Waker::new(Count::default());
        waker.arm_parking();
        waker.park(Some(Duration::from_millis(1)));
        waker.disarm();
    }
}
