//! `fiber_interrupt` with a proxy for the fiber.
//!
//! From version 5 of the interface on, Ruby passes an object with `alive?` and `raise` instead of the fiber. It is
//! alive as long as the operation that is to be interrupted, and its `raise` does nothing afterwards. It does not name
//! the fiber.

use magnus::{Error, RArray, Ruby, Value, prelude::*};

use super::closing::closer_blocks_owner;
use crate::ruby::fiber;
use crate::ruby::value::PinnedValue;
use crate::scheduler::Scheduler;
use crate::scheduler::raise::{PendingRaise, RaiseScope};

/// Whether the object is no fiber, but has the methods to interrupt one.
pub fn is_proxy(value: Value) -> Result<bool, Error> {
    Ok(!fiber::is_fiber(value) && value.respond_to("alive?", false)? && value.respond_to("raise", false)?)
}

/// Calls the proxy's `raise` in a new fiber, the next time that the scheduler's thread picks a fiber.
pub fn interrupt(ruby: &Ruby, scheduler: &Scheduler, proxy: Value, exception: Value) -> Result<(), Error> {
    let pending_raise =
        PendingRaise { exception: PinnedValue::assume_marked(exception), message: None, scope: RaiseScope::Wait };
    scheduler.state.borrow_mut().defer_raise(PinnedValue::assume_marked(proxy), pending_raise);
    scheduler.wake_owner();
    if !closer_blocks_owner(scheduler)? {
        return Ok(());
    }
    // Next, Ruby waits natively for the operation to end, so the fiber must leave its wait now.
    let proxies = match scheduler.io.leaving_proxies.get().and_then(|proxies| RArray::from_value(proxies.get())) {
        Some(proxies) => proxies,
        None => {
            let proxies = ruby.ary_new();
            scheduler.io.leaving_proxies.set(Some(PinnedValue::assume_marked(proxies.as_value())));
            proxies
        }
    };
    proxies.push(proxy)?;
    while scheduler.state.borrow().has_deferred_raises() {
        scheduler.yield_now(ruby)?;
    }
    Ok(())
}

/// Lets the fibers of interrupted proxies leave their waits; see [`super::closing::finish_leaving_fibers`].
pub fn finish_leaving_fibers(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    if scheduler.io.leaving_proxies.get().is_none() || !closer_blocks_owner(scheduler)? {
        return Ok(());
    }
    let proxies = scheduler.io.leaving_proxies.take().and_then(|proxies| RArray::from_value(proxies.get()));
    let Some(proxies) = proxies else { return Ok(()) };
    while let Some(proxy) = proxies.pop::<Option<Value>>()? {
        while proxy.funcall::<_, _, bool>("alive?", ())? {
            scheduler.yield_now(ruby)?;
        }
    }
    Ok(())
}
