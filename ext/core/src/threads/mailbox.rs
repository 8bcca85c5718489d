//! Where native threads post the results of their work for the scheduler.

use crate::threads::sync::Mutex;
use crate::threads::sync::atomic::{AtomicBool, Ordering};
use crate::threads::waker::Waker;

/// What other threads post and the scheduler's thread drains.
pub struct Mailbox<T> {
    posted: Mutex<Vec<T>>,
    /// Lets the scheduler check for results without taking the lock.
    occupied: AtomicBool,
    waker: Waker,
}

impl<T> Mailbox<T> {
    /// A mailbox that wakes its owner with `waker`.
    pub fn new(waker: Waker) -> Self {
        Mailbox { posted: Mutex::new(Vec::new()), occupied: AtomicBool::new(false), waker }
    }

    /// Adds a result and ends the owner's wait. Callable from any thread.
    pub fn post(&self, result: T) {
        let mut posted = self.posted.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        posted.push(result);
        self.occupied.store(true, Ordering::SeqCst);
        drop(posted);
        self.waker.wake();
    }

    /// Whether nothing was posted. Sequentially consistent with [`Waker::arm`].
    pub fn is_empty(&self) -> bool {
        !self.occupied.load(Ordering::SeqCst)
    }

    /// Moves all of it into `into`.
    pub fn drain(&self, into: &mut Vec<T>) {
        if self.is_empty() {
            return;
        }
        let mut posted = self.posted.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        into.append(&mut posted);
        self.occupied.store(false, Ordering::SeqCst);
    }
}
