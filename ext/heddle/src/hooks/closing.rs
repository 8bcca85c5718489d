//! `io_close`, `fiber_interrupt`: the hooks that Ruby 4.0 and later call when they close an IO. On every Ruby,
//! [`crate::io::descriptors`] ends the IO's operations before that.

use std::os::fd::RawFd;

use magnus::{Error, Ruby, Value, prelude::*};

use crate::io::descriptors;
#[cfg(not(ruby_gte_4_0))]
use crate::ruby::pending_interrupts;
use crate::ruby::value::{PinnedValue, same};
use crate::ruby::{fiber, thread};
use crate::scheduler::Scheduler;
use crate::scheduler::raise::{PendingRaise, RaiseScope};
use crate::scheduler::record::{FiberKey, Record};
use crate::scheduler::state::Interrupted;
use crate::scheduler::wait::Wait;

/// Ends the operations that use the number. False, so that Ruby closes the descriptor: without the GVL, as closing a
/// socket with SO_LINGER can take seconds, and with its own errors. True if the number is closed later, since a thread
/// that waits in the kernel may still use it.
///
/// Ruby also calls this for an IO that the garbage collector frees, so it neither waits nor raises.
pub fn io_close(ruby: &Ruby, scheduler: &Scheduler, fd: RawFd) -> bool {
    // Ruby has ended the operations of the closed IO, but another IO may have the same number.
    if !descriptors::detach_operations(ruby, fd) {
        return true;
    }
    // Closing a remote file may write its data to the server, and block. Ruby calls `blocking_operation_wait` before it
    // closes the file itself.
    if scheduler.io.slow_file_backoff.borrow_mut().is_remote(fd) {
        scheduler.io.closes_remote.set(true);
    }
    false
}

/// Raises `exception` in a fiber that waits on an IO which is being closed. The closing fiber calls this, on any
/// thread.
pub fn fiber_interrupt(ruby: &Ruby, scheduler: &Scheduler, fiber: Value, exception: Value) -> Result<(), Error> {
    // Ruby 4.0 passes false for a root fiber that has no object yet.
    let is_root_without_object = same(fiber, ruby.qfalse().as_value());
    if !is_root_without_object {
        if is_proxy(fiber)? {
            return interrupt_by_proxy(ruby, scheduler, fiber, exception);
        }
        fiber::expect_fiber(ruby, fiber)?;
    }
    if is_root_without_object || fiber::is_blocking(fiber)? {
        // The fiber waits in a native call, which only an exception to its thread can end.
        return match scheduler.owner.thread.get().or(scheduler.io.opened_by.get()) {
            Some(owner) => thread::raise_into(owner.get(), exception),
            None => Ok(()),
        };
    }
    // Ruby passes the same frozen exception for each fiber, so it could not hold each fiber's backtrace.
    let message: Value = exception.funcall("message", ())?;
    let class = exception.class().as_value();
    let pending_raise = PendingRaise::new(class, Some(message), RaiseScope::Wait);
    let waiter = scheduler.state.borrow().fibers.find(fiber);
    let waiter = match waiter {
        Some(waiter) if !has_left_io(ruby, scheduler, waiter)? => Some(waiter),
        _ => None,
    };
    if let Some(waiter) = waiter {
        scheduler.state.borrow_mut().send_raise(waiter, pending_raise);
    }
    scheduler.wake_owner();
    match waiter {
        Some(waiter) if closer_blocks_owner(ruby, scheduler)? => {
            scheduler.state.borrow_mut().closings.interrupt(Interrupted::Fiber(waiter));
            wait_until_left(ruby, scheduler, waiter)
        }
        _ => Ok(()),
    }
}

/// Whether a fiber has left its wait for the IO, although not yet the IO. It may have been preempted in between, or
/// wait for the mutex that Ruby takes there. An exception there would keep it from leaving, and Ruby's close would wait
/// for ever.
fn has_left_io(ruby: &Ruby, scheduler: &Scheduler, waiter: FiberKey) -> Result<bool, Error> {
    let wait = {
        let state = scheduler.state.borrow();
        state.fibers.get(waiter).filter(|record| record.is_parked()).map(|record| record.wait)
    };
    match wait {
        Some(Wait::Block(blocker)) => thread::is_mutex(ruby, blocker.get()),
        Some(wait) => Ok(wait == Wait::Preempted),
        None => Ok(false),
    }
}

/// Lets interrupted fibers leave their waits while a blocking fiber closes their IO.
///
/// Ruby's close holds a mutex while it calls `fiber_interrupt`, and a fiber needs that mutex to leave its wait.
/// `unblock` calls this once Ruby has unlocked the mutex. Next, Ruby waits natively for those fibers, and during a
/// native wait of a blocking fiber no other fiber of the thread runs. So they must leave now.
pub fn let_interrupted_leave(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    if !scheduler.state.borrow().closings.has_interrupted() || !closer_blocks_owner(ruby, scheduler)? {
        return Ok(());
    }
    let next = || scheduler.state.borrow_mut().closings.next_interrupted();
    let left = std::iter::from_fn(next).try_for_each(|interrupted| match interrupted {
        Interrupted::Fiber(waiter) => wait_until_left(ruby, scheduler, waiter),
        Interrupted::Proxy(proxy) => {
            let proxy = proxy.get();
            while proxy.funcall::<_, _, bool>("alive?", ())? {
                scheduler.yield_now(ruby)?;
            }
            Ok(())
        }
    });
    scheduler.state.borrow_mut().closings.forget_interrupted();
    left
}

/// Defers what is pending for the current thread, on Ruby 3.3 and 3.4, as it would leave the closing fiber deadlocked.
///
/// Another thread's fiber closes an IO that the current fiber or thread uses in a native call (`recv`, `accept`, a
/// write). Ruby raises IOError at this thread. At the end of the native call it locks a lock and calls `unblock` to
/// wake the closing fiber. Then it raises the IOError as soon as that hook returns, without unlocking the lock, which
/// the closing fiber needs next. So it must be raised at the end of the native call.
#[cfg(not(ruby_gte_4_0))]
pub fn defer_close_error(ruby: &Ruby, scheduler: &Scheduler, blocker: Value) -> Result<(), Error> {
    if !scheduler.is_owned_by(blocker) || same(blocker, thread::current(ruby)) {
        return Ok(());
    }
    pending_interrupts::postpone(ruby)
}

/// Whether the current fiber is a blocking one of the owner's thread. While it waits natively, as in Ruby's close, no
/// other fiber runs.
fn closer_blocks_owner(ruby: &Ruby, scheduler: &Scheduler) -> Result<bool, Error> {
    Ok(scheduler.is_owned_by(thread::current(ruby)) && fiber::is_blocking(fiber::ensure_current(ruby)?)?)
}

/// Lets other fibers run until the present wait of `waiter` has ended.
fn wait_until_left(ruby: &Ruby, scheduler: &Scheduler, waiter: FiberKey) -> Result<(), Error> {
    let hook = scheduler.enter(ruby)?;
    let before = scheduler.state.borrow().fibers.get(waiter).map(|record| record.waits);
    let Some(before) = before.filter(|_| waiter != hook.key) else { return Ok(()) };
    descriptors::wait_for_ends(ruby, scheduler, hook.key, |state| {
        let has_ended = |record: &Record| record.waits != before || record.wait == Wait::Nothing;
        state.is_lost(waiter) || state.fibers.get(waiter).is_none_or(has_ended)
    })
}

/// Whether the object is a proxy for a fiber: no fiber, but with the methods to interrupt one.
///
/// From version 5 of the interface on, Ruby passes `fiber_interrupt` an object with `alive?` and `raise` instead of the
/// fiber. It is alive as long as the operation that is to be interrupted, and its `raise` does nothing afterwards. It
/// does not name the fiber.
fn is_proxy(value: Value) -> Result<bool, Error> {
    Ok(!fiber::is_fiber(value) && value.respond_to("alive?", false)? && value.respond_to("raise", false)?)
}

/// Calls the proxy's `raise` in a new fiber, the next time that the scheduler's thread picks a fiber.
fn interrupt_by_proxy(ruby: &Ruby, scheduler: &Scheduler, proxy: Value, exception: Value) -> Result<(), Error> {
    let pending_raise = PendingRaise::new(exception, None, RaiseScope::Wait);
    scheduler.state.borrow_mut().raises.defer(proxy, pending_raise);
    scheduler.wake_owner();
    if !closer_blocks_owner(ruby, scheduler)? {
        return Ok(());
    }
    // Next, Ruby waits natively for the operation to end, so the fiber must leave its wait now.
    // SAFETY: `Closings::mark` marks it.
    let interrupted = Interrupted::Proxy(unsafe { PinnedValue::assume_marked(proxy) });
    scheduler.state.borrow_mut().closings.interrupt(interrupted);
    while scheduler.state.borrow().has_deferred_raises() {
        scheduler.yield_now(ruby)?;
    }
    Ok(())
}
