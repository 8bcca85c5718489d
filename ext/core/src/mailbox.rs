//! Where native threads leave the results of what they did for the scheduler.

use crate::backend::Completion;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::waker::Waker;

/// Completions that come from other threads. The scheduler's thread takes them out.
pub struct Mailbox {
    letters: Mutex<Vec<Completion>>,
    /// Lets the scheduler look without taking the lock.
    occupied: AtomicBool,
    waker: Waker,
}

impl Mailbox {
    /// A mailbox whose owner is woken by `waker`.
    pub fn new(waker: Waker) -> Self {
        Mailbox { letters: Mutex::new(Vec::new()), occupied: AtomicBool::new(false), waker }
    }

    /// Leaves a completion and ends the owner's wait. Callable from any thread.
    pub fn post(&self, completion: Completion) {
        let mut letters = self.letters.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        letters.push(completion);
        self.occupied.store(true, Ordering::SeqCst);
        drop(letters);
        self.waker.wake();
    }

    /// Whether there is nothing to take. Sequentially consistent with [`Waker::arm`].
    pub fn is_empty(&self) -> bool {
        !self.occupied.load(Ordering::SeqCst)
    }

    /// Moves everything into `into`.
    pub fn drain(&self, into: &mut Vec<Completion>) {
        if self.is_empty() {
            return;
        }
        let mut letters = self.letters.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        into.append(&mut letters);
        self.occupied.store(false, Ordering::SeqCst);
    }
}
