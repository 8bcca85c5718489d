//! `fiber_interrupt` with a stand-in for the fiber.
//!
//! From version 5 of the interface on, Ruby passes an object that answers `alive?` and `raise` for as long as the
//! operation lasts which is to be interrupted, and does nothing afterwards. It does not tell which fiber it stands for.

use magnus::{Error, RArray, Ruby, Value, prelude::*};

use super::closing::closer_blocks_owner;
use crate::ruby::fiber;
use crate::ruby::value::Held;
use crate::scheduler::Scheduler;
use crate::scheduler::fibers::{Delivery, Scope};

/// Whether the object is no fiber, but can be interrupted like one.
pub fn is_proxy(value: Value) -> Result<bool, Error> {
    Ok(!fiber::is_fiber(value) && value.respond_to("alive?", false)? && value.respond_to("raise", false)?)
}

/// Has `exception` raised by the proxy, in a fiber of its own, as soon as the scheduler's thread looks for the next
/// fiber.
pub fn interrupt(ruby: &Ruby, scheduler: &Scheduler, proxy: Value, exception: Value) -> Result<(), Error> {
    let delivery = Delivery { exception: Held::new(exception), message: None, scope: Scope::Wait };
    scheduler.turns.borrow_mut().add_stray(Held::new(proxy), delivery);
    scheduler.wake_owner();
    if !closer_blocks_owner(scheduler)? {
        return Ok(());
    }
    // What follows is Ruby waiting natively for the operation to end, so this is the last chance for the fiber to leave.
    let proxies = match scheduler.leaving_proxies.get().and_then(|held| RArray::from_value(held.get())) {
        Some(proxies) => proxies,
        None => {
            let proxies = ruby.ary_new();
            scheduler.leaving_proxies.set(Some(Held::new(proxies.as_value())));
            proxies
        }
    };
    proxies.push(proxy)?;
    while scheduler.turns.borrow().has_strays() {
        scheduler.yield_turn(ruby)?;
    }
    Ok(())
}

/// Ruby has let go of the mutex that the interrupted fibers need to leave: lets them. See
/// [`super::closing::let_leavers_go`].
pub fn let_leave(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    if scheduler.leaving_proxies.get().is_none() || !closer_blocks_owner(scheduler)? {
        return Ok(());
    }
    let proxies = scheduler.leaving_proxies.take().and_then(|held| RArray::from_value(held.get()));
    let Some(proxies) = proxies else { return Ok(()) };
    while let Some(proxy) = proxies.pop::<Option<Value>>()? {
        while proxy.funcall::<_, _, bool>("alive?", ())? {
            scheduler.yield_turn(ruby)?;
        }
    }
    Ok(())
}
