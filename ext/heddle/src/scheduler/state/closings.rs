//! Closing descriptor numbers: which fibers wait until no operation uses a number any more, which fibers have to leave
//! it, and which numbers the scheduler itself closes then.

use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use heddle_core::locking::lock;
use heddle_core::process_fd::ProcessFd;

use super::{Operations, State};
use crate::scheduler::record::FiberKey;
use crate::scheduler::wait::Wait;

/// Tells another thread that operations have ended.
#[derive(Debug, Default)]
pub struct Signal {
    given: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// Waits for the signal, at most for `timeout`. Returns whether it was given.
    pub fn wait(&self, timeout: Duration) -> bool {
        let given = lock(&self.given);
        let (mut given, _) = match self.changed.wait_timeout_while(given, timeout, |given| !*given) {
            Ok(waited) => waited,
            Err(poisoned) => poisoned.into_inner(),
        };
        std::mem::take(&mut given)
    }

    fn give(&self) {
        *lock(&self.given) = true;
        self.changed.notify_one();
    }
}

/// The numbers that are being closed. A fiber that waits here is woken whenever operations or waits end, and a thread
/// whenever operations do.
#[derive(Default)]
pub struct Closings {
    waiters: Vec<CloseWaiter>,
    /// The fibers whose waits on a number end because it is being closed.
    leaving: Vec<Leaving>,
    /// See [`State::close_later`].
    later: Vec<(RawFd, Arc<ProcessFd>)>,
}

enum CloseWaiter {
    Fiber(FiberKey),
    Thread(Arc<Signal>),
}

/// A fiber that leaves its wait on a number.
#[derive(Debug, Clone, Copy)]
struct Leaving {
    fd: RawFd,
    fiber: FiberKey,
    /// How many times the fiber had begun to wait when the number was closed.
    waits: u32,
}

impl Closings {
    /// Removes all threads and numbers, and the fibers for which `stays` is false.
    pub fn retain(&mut self, stays: impl Fn(FiberKey) -> bool) {
        self.waiters.retain(|waiter| matches!(waiter, CloseWaiter::Fiber(_)));
        self.forget_fibers(|key| !stays(key));
        self.later.clear();
    }

    /// Removes the fibers for which `is_lost` is true.
    pub fn forget_fibers(&mut self, is_lost: impl Fn(FiberKey) -> bool) {
        self.waiters.retain(|waiter| !matches!(waiter, CloseWaiter::Fiber(key) if is_lost(*key)));
        self.leaving.retain(|leaving| !is_lost(leaving.fiber));
    }

    /// Operations have ended: closes the numbers that none of them names any more.
    #[inline]
    pub fn close_unnamed(&mut self, operations: &Operations) {
        if !self.later.is_empty() {
            self.later.retain(|(fd, _)| operations.names(*fd));
        }
    }
}

impl State {
    /// From now on the fiber is woken whenever operations or waits end.
    pub fn add_close_waiter(&mut self, key: FiberKey) {
        self.closings.waiters.push(CloseWaiter::Fiber(key));
    }

    /// The inverse of the last [`State::add_close_waiter`] for this fiber. It waits twice if a signal's handler closes
    /// an IO while the fiber closes another.
    pub fn remove_close_waiter(&mut self, key: FiberKey) {
        let is_its = |waiter: &CloseWaiter| matches!(waiter, CloseWaiter::Fiber(fiber) if *fiber == key);
        if let Some(index) = self.closings.waiters.iter().rposition(is_its) {
            self.closings.waiters.remove(index);
        }
    }

    /// From now on the signal is given whenever operations end.
    pub fn add_signal(&mut self, signal: Arc<Signal>) {
        self.closings.waiters.push(CloseWaiter::Thread(signal));
    }

    /// The inverse of [`State::add_signal`].
    pub fn remove_signal(&mut self, signal: &Arc<Signal>) {
        let is_given =
            |waiter: &CloseWaiter| matches!(waiter, CloseWaiter::Thread(other) if Arc::ptr_eq(other, signal));
        self.closings.waiters.retain(|waiter| !is_given(waiter));
    }

    /// Whether a fiber or a thread waits for the ends of operations or waits.
    #[inline]
    pub fn has_close_waiters(&self) -> bool {
        !self.closings.waiters.is_empty()
    }

    /// Whether a thread waits for the ends of operations.
    pub fn has_waiting_threads(&self) -> bool {
        self.closings.waiters.iter().any(|waiter| matches!(waiter, CloseWaiter::Thread(_)))
    }

    /// The number is being closed: its operations end. Returns whether any is under way, or has a result that its fiber
    /// has not taken.
    pub fn close_number(&mut self, fd: RawFd) -> bool {
        for fiber in self.operations.fibers_on(fd) {
            if let Some(waits) = self.fibers.get(fiber).map(|record| record.waits) {
                self.closings.leaving.push(Leaving { fd, fiber, waits });
            }
        }
        let under_way = self.operations.close(fd);
        under_way || self.closings.leaving.iter().any(|leaving| leaving.fd == fd)
    }

    /// Closes the number as soon as no operation of this scheduler names it. Its operations have been marked as closed,
    /// but the owner, which waits in the kernel, must cancel them itself. Several schedulers may share the descriptor.
    pub fn close_later(&mut self, fd: RawFd, descriptor: Arc<ProcessFd>) {
        self.closings.later.push((fd, descriptor));
    }

    /// Whether all fibers but the closer have left the number: they have ended their waits on it, and have returned to
    /// Ruby.
    pub fn have_left(&mut self, fd: RawFd, closer: FiberKey) -> bool {
        let fibers = &self.fibers;
        let is_there = |leaving: &Leaving| {
            let record = fibers.get(leaving.fiber).filter(|_| leaving.fiber != closer);
            record.is_some_and(|record| match record.waits.wrapping_sub(leaving.waits) {
                0 => record.wait.is_for_io(),
                // It may have been preempted before it has returned. When it is preempted again it has.
                1 => record.wait == Wait::Preempted,
                _ => false,
            })
        };
        let leaving = &mut self.closings.leaving;
        leaving.retain(|leaving| leaving.fd != fd || is_there(leaving));
        leaving.iter().all(|leaving| leaving.fd != fd)
    }

    /// The number has been closed: no fiber waits for others to leave it.
    pub fn forget_leaving(&mut self, fd: RawFd) {
        self.closings.leaving.retain(|leaving| leaving.fd != fd);
    }

    /// Wakes all close waiters: operations or waits have ended.
    #[cold]
    pub fn wake_close_waiters(&mut self) {
        for index in 0..self.closings.waiters.len() {
            match &self.closings.waiters[index] {
                CloseWaiter::Fiber(fiber) => self.wake(*fiber),
                CloseWaiter::Thread(signal) => signal.give(),
            }
        }
    }
}
