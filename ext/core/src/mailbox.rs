//! Where native threads post the results of their work for the scheduler.

use crate::backend::Completion;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::waker::Waker;

/// Completions that other threads post and the scheduler's thread drains.
pub struct Mailbox {
    completions: Mutex<Vec<Completion>>,
    /// Lets the scheduler check for completions without taking the lock.
    occupied: AtomicBool,
    waker: Waker,
}

impl Mailbox {
    /// A mailbox that wakes its owner with `waker`.
    pub fn new(waker: Waker) -> Self {
        Mailbox { completions: Mutex::new(Vec::new()), occupied: AtomicBool::new(false), waker }
    }

    /// Adds a completion and ends the owner's wait. Callable from any thread.
    pub fn post(&self, completion: Completion) {
        let mut completions = self.completions.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        completions.push(completion);
        self.occupied.store(true, Ordering::SeqCst);
        drop(completions);
        self.waker.wake();
    }

    /// Whether there are no completions. Sequentially consistent with [`Waker::arm`].
    pub fn is_empty(&self) -> bool {
        !self.occupied.load(Ordering::SeqCst)
    }

    /// Moves all completions into `into`.
    pub fn drain(&self, into: &mut Vec<Completion>) {
        if self.is_empty() {
            return;
        }
        let mut completions = self.completions.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        into.append(&mut completions);
        self.occupied.store(false, Ordering::SeqCst);
    }
}
