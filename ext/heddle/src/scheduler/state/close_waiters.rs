//! Close waiters: fibers, and other threads, that close a descriptor. They wait until no operation uses its number any
//! more.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::State;
use crate::scheduler::fibers::FiberKey;

/// Tells another thread that operations have ended.
#[derive(Debug, Default)]
pub struct Signal {
    given: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// Waits for the signal, at most for `timeout`. Returns whether it was given.
    pub fn wait(&self, timeout: Duration) -> bool {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut given, _) =
            self.changed.wait_timeout_while(given, timeout, |given| !*given).unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut given)
    }

    fn give(&self) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

/// The fibers that wait for the end of operations or waits, and the threads that wait for the end of operations.
#[derive(Default)]
pub struct CloseWaiters {
    fibers: Vec<FiberKey>,
    threads: Vec<Arc<Signal>>,
}

impl CloseWaiters {
    /// Removes all threads, and the fibers for which `stays` is false.
    pub fn retain(&mut self, stays: impl Fn(FiberKey) -> bool) {
        self.forget_fibers(|key| !stays(key));
        self.threads.clear();
    }

    /// Removes the fibers for which `is_lost` is true.
    pub fn forget_fibers(&mut self, is_lost: impl Fn(FiberKey) -> bool) {
        self.fibers.retain(|key| !is_lost(*key));
    }
}

impl State {
    /// From now on the fiber is woken whenever operations or waits end.
    pub fn add_close_waiter(&mut self, key: FiberKey) {
        self.close_waiters.fibers.push(key);
    }

    /// The inverse of [`State::add_close_waiter`].
    pub fn remove_close_waiter(&mut self, key: FiberKey) {
        self.close_waiters.fibers.retain(|waiter| *waiter != key);
    }

    /// From now on the signal is given whenever operations end.
    pub fn add_signal(&mut self, signal: Arc<Signal>) {
        self.close_waiters.threads.push(signal);
    }

    /// The inverse of [`State::add_signal`].
    pub fn remove_signal(&mut self, signal: &Arc<Signal>) {
        self.close_waiters.threads.retain(|waiter| !Arc::ptr_eq(waiter, signal));
    }

    /// Whether a fiber or a thread waits for the ends of operations or waits.
    #[inline]
    pub fn has_close_waiters(&self) -> bool {
        !(self.close_waiters.fibers.is_empty() && self.close_waiters.threads.is_empty())
    }

    /// Whether a thread waits for the ends of operations.
    pub fn has_waiting_threads(&self) -> bool {
        !self.close_waiters.threads.is_empty()
    }

    /// Wakes all close waiters: operations or waits have ended.
    #[cold]
    pub fn wake_close_waiters(&mut self) {
        for index in 0..self.close_waiters.fibers.len() {
            self.wake(self.close_waiters.fibers[index]);
        }
        self.close_waiters.threads.iter().for_each(|signal| signal.give());
    }
}
