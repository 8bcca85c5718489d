//! Preempts foreign fibers: yielding fibers on threads that have another scheduler, by whose means they yield, or
//! none. Without a scheduler the program resumes them in a loop.

use std::time::{Duration, Instant};

use magnus::typed_data::Obj;
use magnus::{Error, Module, Object, RModule, Ruby, Value, function, method, prelude::*};

use super::safe_points;
use crate::ruby::outcome::RubyOutcome;
use crate::ruby::pending_interrupts::Deferred;
use crate::ruby::value::find_class;
use crate::ruby::{error, fiber, insides, interrupts, pending_interrupts, ractor};
use crate::scheduler::Scheduler;
use crate::ticker::foreign_ticker::{self, ForeignTicker, YieldState, yield_state_of};
use crate::ticker::throttle;

/// How long a fiber may run before it yields. Whether another fiber is runnable is unknown here.
const QUANTUM: Duration = Duration::from_millis(10);

/// Makes the current fiber a yielding one.
fn begin(ruby: &Ruby) -> Result<Obj<YieldState>, Error> {
    ractor::expect_main(ruby, "Heddle::YieldingFiber")?;
    let yield_state = ruby.obj_wrap(YieldState::default());
    fiber::attach(fiber::ensure_current(ruby)?, yield_state.as_value())?;
    if let Some(scheduler) = Scheduler::of_thread(ruby) {
        scheduler.expect_ticks(ruby)?;
        return Ok(yield_state);
    }
    Scheduler::install_patches(ruby)?;
    pending_interrupts::find(ruby)?;
    yield_state.acquire_ticker().map_err(|error| error::from_core(ruby, error))?;
    Ok(yield_state)
}

/// Called when the fiber has ended.
fn finish(yield_state: &YieldState) {
    yield_state.release_ticker();
}

/// Called in a forked child, in which only the current fiber exists.
pub fn after_fork(ruby: &Ruby) -> Result<(), Error> {
    foreign_ticker::after_fork(ruby).map_err(|error| error::from_core(ruby, error))
}

/// A tick has arrived on a thread without a Heddle scheduler.
pub fn tick(ruby: &Ruby) {
    let Some(current) = fiber::ensure_current(ruby).not_an_interrupt("no memory for the root fiber's object") else {
        return;
    };
    let Some(yield_state) = yield_state_of(current).filter(|yield_state| yield_state.shields.get() == 0) else {
        return;
    };
    let now = Instant::now();
    let since = yield_state.since.get().unwrap_or(now);
    yield_state.since.set(Some(since));
    if pending_interrupts::is_any_unmasked(ruby) {
        // Ruby raises it as soon as the job ends. After a switch it would raise it in the fiber that ran instead,
        // though this one may have sent it, by `Thread.current.raise`. Of several, Ruby raises the others only when it
        // is asked to, or when the thread waits.
        interrupts::request_check(ruby);
        return;
    }
    let is_used_up = now.duration_since(since) >= QUANTUM;
    if !is_used_up || !safe_points::may_switch_here(ruby) || interrupts::is_trap_pending(ruby) {
        return;
    }
    throttle::end();
    let yielded = if fiber::current_scheduler(ruby).is_some() {
        yield_to_scheduler(ruby, current)
    } else {
        ignore_refusal(fiber::yield_to_resumer(ruby))
    };
    yield_state.since.set(Some(Instant::now()));
    if let Err(raised) = yielded
        && !pending_interrupts::repeat_kill(ruby, &raised)
    {
        // `raised` was raised into the fiber meanwhile. A kill can only be passed on as an exception; see
        // `YieldingFiber`.
        if let Some(exception) = error::exception_or_stop(ruby, &raised) {
            // An exception that the fiber masks is lost, as Ruby loses whatever is raised in a postponed job.
            safe_points::raise_after_job(ruby, exception).deferred();
        }
    }
}

/// Yields by the means of another scheduler: Async's and io-event's own methods, or else the hooks that every
/// scheduler has.
fn yield_to_scheduler(ruby: &Ruby, current: Value) -> Result<(), Error> {
    let scheduler = fiber::scheduler(ruby);
    if scheduler.respond_to("push", false)? && scheduler.respond_to("transfer", false)? {
        scheduler.funcall::<_, _, Value>("push", (current,))?;
        scheduler.funcall::<_, _, Value>("transfer", ()).map(|_| ())
    } else if scheduler.respond_to("yield", false)? {
        scheduler.funcall::<_, _, Value>("yield", ()).map(|_| ())
    } else {
        scheduler.funcall::<_, _, Value>("kernel_sleep", (0,)).map(|_| ())
    }
}

/// Ignores Ruby's refusal: a fiber that was not resumed cannot yield, and continues.
fn ignore_refusal(yielded: Result<(), Error>) -> Result<(), Error> {
    match yielded {
        Err(error) if error::is_fiber_error_with(&error, insides::REFUSED_YIELD) => Ok(()),
        yielded => yielded,
    }
}

/// `Heddle.without_preemption`
fn without_preemption(ruby: &Ruby) -> Result<Value, Error> {
    if !ruby.block_given() {
        return Err(error::of(ruby.exception_arg_error(), "Heddle.without_preemption needs a block"));
    }
    if !ractor::is_main(ruby) {
        return ruby.yield_value(());
    }
    if let Some(scheduler) = Scheduler::of_thread(ruby).filter(|_| fiber::current_scheduler(ruby).is_some()) {
        return scheduler.without_preemption(ruby);
    }
    let Some(yield_state) = yield_state_of(fiber::ensure_current(ruby)?) else { return ruby.yield_value(()) };
    yield_state.shields.set(yield_state.shields.get() + 1);
    let result = ruby.yield_value(());
    yield_state.shields.set(yield_state.shields.get() - 1);
    result
}

/// Defines `Heddle::YieldState` and `Heddle.without_preemption`.
pub fn define(ruby: &Ruby, heddle: RModule) -> Result<(), Error> {
    let class = heddle.define_class("YieldState", ruby.class_object())?;
    class.undef_default_alloc_func();
    find_class::<YieldState>(ruby);
    ractor::safe(ruby, || class.define_singleton_method("begin", function!(begin, 0)))?;
    class.define_method("finish", method!(finish, 0))?;
    let ticker = heddle.define_class("ForeignTicker", ruby.class_object())?;
    ticker.undef_default_alloc_func();
    find_class::<ForeignTicker>(ruby);
    ruby.gc_register_mark_object(ruby.obj_wrap(ForeignTicker));
    heddle.funcall::<_, _, Value>("private_constant", ("ForeignTicker",))?;
    ractor::safe(ruby, || heddle.define_singleton_method("without_preemption", function!(without_preemption, 0)))
}
