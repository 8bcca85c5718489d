//! `io_close`, `fiber_interrupt`: Ruby closes an IO. From 4.0 on it calls them; see [`crate::io::descriptors`] for what
//! comes before, on every Ruby.

use std::os::fd::RawFd;

use magnus::{Error, Ruby, Value, prelude::*};
use nix::errno::Errno;

use super::interrupt_proxy;
use crate::io::descriptors;
#[cfg(not(ruby_gte_4_0))]
use crate::ruby::pending_interrupts;
use crate::ruby::value::{PinnedValue, same};
use crate::ruby::{error, fiber, thread};
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::{FiberKey, PendingRaise, RaiseScope};
use crate::scheduler::wait::Wait;

/// Closes the descriptor, before it returns: the other side must not see the end late. False if it was no descriptor,
/// so that Ruby's own close reports that; also if Ruby is to close it by itself.
///
/// Also called for an IO that the garbage collector found, so it neither waits nor raises.
pub fn io_close(ruby: &Ruby, scheduler: &Scheduler, fd: RawFd) -> bool {
    // Ruby has seen to operations of the IO that is closed; another IO may have the same number.
    descriptors::give_up(ruby, fd);
    // What is kept elsewhere may be written there only now, which takes as long as it takes. Ruby asks
    // `blocking_operation_wait` before it closes by itself.
    if scheduler.io.slow_file_backoff.borrow_mut().is_remote(fd) {
        scheduler.io.closes_remote.set(true);
        return false;
    }
    // SAFETY: no memory is passed. Ruby owns the descriptor and gives it up with this call.
    let result = Errno::result(unsafe { libc::close(fd) });
    result != Err(Errno::EBADF)
}

/// Raises `exception` in a fiber that waits on an IO which is being closed. Called by whoever closes it, on any thread.
pub fn fiber_interrupt(ruby: &Ruby, scheduler: &Scheduler, fiber: Value, exception: Value) -> Result<(), Error> {
    // Ruby 4.0 names a root fiber that has no object yet 'false'.
    let nameless_root = same(fiber, ruby.qfalse().as_value());
    if !nameless_root {
        if interrupt_proxy::is_proxy(fiber)? {
            return interrupt_proxy::interrupt(ruby, scheduler, fiber, exception);
        }
        error::expect_fiber(ruby, fiber)?;
    }
    let target = PinnedValue::new(fiber);
    if nameless_root || fiber::is_blocking(target)? {
        // It waits natively, where no scheduler can reach it.
        return match scheduler.owner.thread.get().or(scheduler.io.opened_by.get()) {
            Some(owner) => thread::raise_into(owner, exception),
            None => Ok(()),
        };
    }
    // Ruby's exception is one for all, and frozen: it could not tell where each of them waits.
    let message: Value = exception.funcall("message", ())?;
    let class = PinnedValue::new(exception.class().as_value());
    let pending_raise =
        PendingRaise { exception: class, message: Some(PinnedValue::new(message)), scope: RaiseScope::Wait };
    let waiter = {
        let mut state = scheduler.state.borrow_mut();
        let waiter = state.fibers.find(target);
        let waiter = waiter.filter(|waiter| state.fibers.get(*waiter).is_some_and(|record| record.uses_io()));
        if let Some(waiter) = waiter {
            state.send_raise(waiter, pending_raise);
        }
        waiter
    };
    scheduler.wake_owner();
    match waiter {
        Some(waiter) if closer_blocks_owner(scheduler)? => {
            scheduler.io.leaving_fibers.borrow_mut().push(waiter);
            let_leave(ruby, scheduler, &[waiter])
        }
        _ => Ok(()),
    }
}

/// Ruby's close holds a mutex while it calls `fiber_interrupt`, and who leaves the wait needs that mutex. When it has let
/// go of it (this is called by `unblock`), those can leave. Then is the last chance to let them: what follows is Ruby
/// waiting for them natively, which in a blocking fiber is the end of all switching.
pub fn release_leaving_fibers(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    interrupt_proxy::let_leave(ruby, scheduler)?;
    if scheduler.io.leaving_fibers.borrow().is_empty() || !closer_blocks_owner(scheduler)? {
        return Ok(());
    }
    let leaving_fibers = std::mem::take(&mut *scheduler.io.leaving_fibers.borrow_mut());
    let_leave(ruby, scheduler, &leaving_fibers)
}

/// Ruby 3.3 and 3.4: another thread's fiber closes an IO that the fiber which runs here uses in a native call (`recv`,
/// `accept`). Ruby raises IOError at this thread, and has the native call's end tell the closer, by `unblock`, under a lock.
/// It raises as soon as that hook is over, and then never releases the lock, which the closer wants next.
///
/// So the IOError is taken back. The fiber raises it in its next hook, as the number is being closed.
#[cfg(not(ruby_gte_4_0))]
pub fn release_closer(ruby: &Ruby, scheduler: &Scheduler, blocker: Value) -> Result<(), Error> {
    let closer = PinnedValue::new(blocker);
    if closer == thread::current() || !scheduler.is_owned_by(closer) || fiber::current_scheduler().is_none() {
        return Ok(());
    }
    pending_interrupts::take_back(|entry| error::is_close(ruby, entry))
}

/// Whether the fiber that is running is a blocking one of the owner's thread: while that waits natively, as Ruby's close
/// does, no other fiber ever runs.
pub(super) fn closer_blocks_owner(scheduler: &Scheduler) -> Result<bool, Error> {
    Ok(scheduler.owner.thread.get() == Some(thread::current()) && fiber::is_blocking(fiber::ensure_current()?)?)
}

/// Lets the others run until the waits that are under way in `waiters` have ended.
fn let_leave(ruby: &Ruby, scheduler: &Scheduler, waiters: &[FiberKey]) -> Result<(), Error> {
    let hook = scheduler.enter(ruby)?;
    let waits: Vec<(FiberKey, u32)> = {
        let state = scheduler.state.borrow();
        waiters
            .iter()
            .filter(|waiter| **waiter != hook.key)
            .filter_map(|waiter| state.fibers.get(*waiter).map(|record| (*waiter, record.waits)))
            .collect()
    };
    scheduler.state.borrow_mut().add_close_waiter(hook.key);
    let result = scheduler.wait(ruby, hook.key, Wait::Yielded, None, |state| {
        let left = |(waiter, before): &(FiberKey, u32)| {
            state.is_lost(*waiter)
                || state
                    .fibers
                    .get(*waiter)
                    .is_none_or(|record| record.waits != *before || record.wait == Wait::Nothing)
        };
        waits.iter().all(left).then_some(())
    });
    scheduler.state.borrow_mut().remove_close_waiter(hook.key);
    result.map(|_| ())
}
