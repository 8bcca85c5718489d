//! Closing descriptor numbers, in one scheduler: `io/descriptors.rs` describes the protocol.

use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use heddle_core::io::process_fd::ProcessFd;
use heddle_core::threads::locking::lock;
use magnus::gc::Marker;

use super::{Operations, State};
use crate::ruby::value::PinnedValue;
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

/// The closes in progress: the fibers and threads that wait for operations to end, the interrupted fibers that must
/// leave their waits, and the numbers that this scheduler closes itself.
#[derive(Default)]
pub struct Closings {
    waiters: Vec<Waiter>,
    interrupted: Vec<Interrupted>,
    /// See [`Closings::close_later`].
    later: Vec<(RawFd, Arc<ProcessFd>)>,
}

/// Waits for operations to end. A fiber is woken whenever operations or waits end, and a thread whenever operations do.
enum Waiter {
    Fiber(FiberKey),
    Thread(Arc<Signal>),
}

/// Whose wait on an IO was ended, since a blocking fiber of the owner's thread closes the IO.
#[derive(Clone, Copy)]
pub enum Interrupted {
    Fiber(FiberKey),
    /// See `hooks/closing.rs`.
    Proxy(PinnedValue),
}

/// A fiber that uses a number.
pub struct User {
    pub fiber: FiberKey,
    /// How many times it had begun to wait when the number was closed.
    waits: u32,
}

impl Closings {
    /// From now on the fiber is woken whenever operations or waits end.
    pub fn add_fiber(&mut self, key: FiberKey) {
        self.waiters.push(Waiter::Fiber(key));
    }

    /// The inverse of the last [`Closings::add_fiber`] for this fiber. It waits twice if a signal's handler closes an
    /// IO while the fiber closes another.
    pub fn remove_fiber(&mut self, key: FiberKey) {
        let is_its = |waiter: &Waiter| matches!(waiter, Waiter::Fiber(fiber) if *fiber == key);
        if let Some(index) = self.waiters.iter().rposition(is_its) {
            self.waiters.remove(index);
        }
    }

    /// From now on the signal is given whenever operations end.
    pub fn add_thread(&mut self, signal: Arc<Signal>) {
        self.waiters.push(Waiter::Thread(signal));
    }

    /// The inverse of [`Closings::add_thread`].
    pub fn remove_thread(&mut self, signal: &Arc<Signal>) {
        self.waiters.retain(|waiter| !matches!(waiter, Waiter::Thread(other) if Arc::ptr_eq(other, signal)));
    }

    /// Whether a fiber or a thread waits for operations to end.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Whether a thread waits for operations to end.
    pub fn has_threads(&self) -> bool {
        self.waiters.iter().any(|waiter| matches!(waiter, Waiter::Thread(_)))
    }

    /// The close waits until this fiber has left its wait.
    pub fn interrupt(&mut self, interrupted: Interrupted) {
        self.interrupted.push(interrupted);
    }

    /// Whether [`Closings::interrupt`] was called since the last close.
    #[inline]
    pub fn has_interrupted(&self) -> bool {
        !self.interrupted.is_empty()
    }

    /// One of the interrupted. It is the caller's to wait for.
    pub fn next_interrupted(&mut self) -> Option<Interrupted> {
        self.interrupted.pop()
    }

    /// The close waits for none of them any more.
    pub fn forget_interrupted(&mut self) {
        self.interrupted.clear();
    }

    /// Closes the number as soon as no operation of this scheduler names it. Its operations have been marked as closed,
    /// but the owner, which waits in the kernel, must cancel them itself. Several schedulers may share the descriptor.
    pub fn close_later(&mut self, fd: RawFd, descriptor: Arc<ProcessFd>) {
        self.later.push((fd, descriptor));
    }

    /// Operations have ended: closes the numbers that none of them names any more.
    #[inline]
    pub fn close_unnamed(&mut self, operations: &Operations) {
        if !self.later.is_empty() {
            self.later.retain(|(fd, _)| operations.names(*fd));
        }
    }

    /// Removes all threads, proxies and numbers, and the fibers for which `stays` is false.
    pub fn retain(&mut self, stays: impl Fn(FiberKey) -> bool) {
        self.waiters.retain(|waiter| matches!(waiter, Waiter::Fiber(_)));
        self.interrupted.retain(|interrupted| matches!(interrupted, Interrupted::Fiber(_)));
        self.forget_fibers(|key| !stays(key));
        self.later.clear();
    }

    /// Removes the fibers for which `is_lost` is true.
    pub fn forget_fibers(&mut self, is_lost: impl Fn(FiberKey) -> bool) {
        self.waiters.retain(|waiter| !matches!(waiter, Waiter::Fiber(key) if is_lost(*key)));
        self.interrupted.retain(|interrupted| !matches!(interrupted, Interrupted::Fiber(key) if is_lost(*key)));
    }

    /// Marks the proxies.
    pub fn mark(&self, marker: &Marker) {
        for interrupted in &self.interrupted {
            if let Interrupted::Proxy(proxy) = interrupted {
                proxy.mark(marker);
            }
        }
    }
}

impl State {
    /// The fibers whose operations on the number are under way, or have results that they have not taken.
    pub fn users_of(&self, fd: RawFd) -> Vec<User> {
        let user = |fiber| self.fibers.get(fiber).map(|record| User { fiber, waits: record.waits });
        self.operations.fibers_on(fd).into_iter().filter_map(user).collect()
    }

    /// Whether the fiber has ended its wait on the number, and has returned to Ruby.
    pub fn has_left(&self, user: &User) -> bool {
        self.fibers.get(user.fiber).is_none_or(|record| match record.waits.wrapping_sub(user.waits) {
            0 => !record.wait.is_for_io(),
            // It may have been preempted before it has returned. When it is preempted again it has.
            1 => record.wait != Wait::Preempted,
            _ => true,
        })
    }

    /// Operations or waits have ended.
    #[cold]
    pub fn wake_close_waiters(&mut self) {
        for index in 0..self.closings.waiters.len() {
            match &self.closings.waiters[index] {
                Waiter::Fiber(fiber) => self.wake(*fiber),
                Waiter::Thread(signal) => signal.give(),
            }
        }
    }
}
