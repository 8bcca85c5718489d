//! Preempts foreign fibers: yielding fibers on threads that have another scheduler, by whose means they yield, or
//! none. Without a scheduler the program resumes them in a loop.

use std::time::{Duration, Instant};

use magnus::typed_data::Obj;
use magnus::{Error, Module, Object, RModule, Ruby, Value, function, method, prelude::*};

use super::safe_points;
use crate::ruby::value::{PinnedValue, find_class};
use crate::ruby::{async_raise, error, fiber, insides, interrupts, pending_interrupts, ractor};
use crate::scheduler::Scheduler;
use crate::ticker::foreign_fibers::{self, YieldState, yield_state_of};
use crate::ticker::interrupt_phase::InterruptPhase;
use crate::ticker::throttle;

/// How long a fiber may run before it yields. Whether another fiber is due is unknown here.
const QUANTUM: Duration = Duration::from_millis(10);

/// Makes the current fiber a yielding one.
fn begin(ruby: &Ruby) -> Result<Obj<YieldState>, Error> {
    ractor::expect_main(ruby, "Heddle::YieldingFiber")?;
    let yield_state = ruby.obj_wrap(YieldState::default());
    fiber::attach(fiber::ensure_current()?, yield_state.as_value())?;
    if let Some(scheduler) = Scheduler::of_thread() {
        scheduler.expect_ticks(ruby)?;
        return Ok(yield_state);
    }
    pending_interrupts::find(ruby)?;
    yield_state.register().map_err(|error| error::from_core(ruby, error))?;
    Ok(yield_state)
}

/// Called when the fiber has ended.
fn finish(yield_state: &YieldState) {
    yield_state.unregister();
}

/// Called in a forked child, in which only the current fiber exists.
pub fn after_fork(ruby: &Ruby) -> Result<(), Error> {
    foreign_fibers::after_fork().map_err(|error| error::from_core(ruby, error))
}

/// A tick has arrived on a thread without a Heddle scheduler.
pub fn tick(ruby: &Ruby) {
    let Ok(current) = fiber::ensure_current() else { return };
    let Some(yield_state) = yield_state_of(current).filter(|yield_state| yield_state.shields.get() == 0) else {
        return;
    };
    let now = Instant::now();
    let since = yield_state.since.get().unwrap_or(now);
    yield_state.since.set(Some(since));
    let is_due =
        InterruptPhase::at_tick(&yield_state.interrupt_phase).lets_switch() && now.duration_since(since) >= QUANTUM;
    if !is_due || !safe_points::may_switch_here() || interrupts::is_trap_due() {
        return;
    }
    throttle::end();
    let yielded = if fiber::current_scheduler().is_some() {
        yield_to_scheduler(current)
    } else {
        ignore_refusal(ruby, fiber::yield_to_resumer())
    };
    yield_state.since.set(Some(Instant::now()));
    if let Err(raised) = yielded
        && !pending_interrupts::repeat_kill(&raised)
    {
        // `raised` was raised into the fiber meanwhile. A kill can only be passed on as an exception; see
        // `YieldingFiber`.
        if let Some(exception) = error::exception_or_stop(ruby, &raised) {
            // An exception that the fiber masks is lost, as Ruby loses whatever is raised in a postponed job.
            let _ = async_raise::raise_after_job(ruby, exception);
        }
    }
}

/// Yields by the means of another scheduler: Async's and io-event's own methods, or else the hooks that every
/// scheduler has.
fn yield_to_scheduler(current: PinnedValue) -> Result<(), Error> {
    let scheduler = fiber::scheduler();
    if scheduler.respond_to("push", false)? && scheduler.respond_to("transfer", false)? {
        scheduler.funcall::<_, _, Value>("push", (current.get(),))?;
        scheduler.funcall::<_, _, Value>("transfer", ()).map(|_| ())
    } else if scheduler.respond_to("yield", false)? {
        scheduler.funcall::<_, _, Value>("yield", ()).map(|_| ())
    } else {
        scheduler.funcall::<_, _, Value>("kernel_sleep", (0,)).map(|_| ())
    }
}

/// Ignores Ruby's refusal: a fiber that was not resumed cannot yield, and continues.
fn ignore_refusal(ruby: &Ruby, yielded: Result<(), Error>) -> Result<(), Error> {
    yielded.or_else(
        |error| if error::is_fiber_error_with(ruby, &error, insides::REFUSED_YIELD) { Ok(()) } else { Err(error) },
    )
}

/// `Heddle.without_preemption`
fn without_preemption(ruby: &Ruby) -> Result<Value, Error> {
    if !ruby.block_given() {
        return Err(Error::new(ruby.exception_arg_error(), "Heddle.without_preemption needs a block"));
    }
    if !ractor::is_main() {
        return ruby.yield_value(());
    }
    if let Some(scheduler) = Scheduler::of_thread().filter(|_| fiber::current_scheduler().is_some()) {
        return scheduler.without_preemption(ruby);
    }
    let Some(yield_state) = yield_state_of(fiber::ensure_current()?) else { return ruby.yield_value(()) };
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
    ractor::safe(|| class.define_singleton_method("begin", function!(begin, 0)))?;
    class.define_singleton_method("stop", function!(foreign_fibers::stop, 0))?;
    class.define_method("finish", method!(finish, 0))?;
    ractor::safe(|| heddle.define_singleton_method("without_preemption", function!(without_preemption, 0)))
}
