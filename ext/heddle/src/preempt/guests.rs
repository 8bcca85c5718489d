//! Yielding fibers whose thread has another scheduler, or none: somebody resumes them in a loop. They yield by the means
//! of that scheduler.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use magnus::typed_data::Obj;
use magnus::{
    DataTypeFunctions, Error, Module, Object, RModule, Ruby, TryConvert, TypedData, Value, function, method, prelude::*,
};

use super::pace;
use super::pulse::Pulse;
use super::safe_points;
use super::timerfd::TimerfdTicker;
use super::unraised::Unraised;
use crate::ruby::value::Held;
use crate::ruby::{aside, error, fiber, fork, insides, interrupts, pending, ractor};
use crate::scheduler::Scheduler;

/// How long one may compute. Nobody knows here whether somebody else is due.
const QUANTUM: Duration = Duration::from_millis(10);
/// How often that is looked at.
const TICK: Duration = Duration::from_micros(2500);

/// One ticker for all of them: it is the same to the job on which thread it runs.
struct Guests {
    ticker: Option<(TimerfdTicker, u64)>,
    alive: usize,
}

static GUESTS: Mutex<Guests> = Mutex::new(Guests { ticker: None, alive: 0 });

fn guests() -> std::sync::MutexGuard<'static, Guests> {
    GUESTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A yielding fiber that has begun and not ended. Attached to it, so that it is gone with a fiber that was given up.
#[derive(TypedData, Default)]
#[magnus(class = "Heddle::Presence", free_immediately)]
pub struct Presence {
    /// Since when it has computed, as far as is known.
    since: Cell<Option<Instant>>,
    /// Of the last tick that found it computing.
    unraised: Cell<Unraised>,
    /// How many critical sections it is in.
    shields: Cell<u32>,
    /// Whether it is one of [`Guests::alive`].
    counted: Cell<bool>,
}

// SAFETY: magnus asks for this because the collector may free the object on any thread; that happens with the GVL, as
// all access does.
unsafe impl Send for Presence {}

impl DataTypeFunctions for Presence {}

impl Drop for Presence {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Presence {
    fn leave(&self) {
        if !self.counted.replace(false) {
            return;
        }
        let mut guests = guests();
        guests.alive = guests.alive.saturating_sub(1);
        if guests.alive == 0
            && let Some((ticker, _)) = &guests.ticker
        {
            ticker.end();
        }
    }
}

/// What is known of a fiber, if it is a yielding one that has begun by itself.
pub fn presence_of(fiber: Held) -> Option<Obj<Presence>> {
    let note = fiber::note(fiber);
    if note.is_nil() { None } else { Obj::try_convert(note).ok() }
}

/// The fiber that is running is a yielding one from now on.
fn begin(ruby: &Ruby) -> Result<Obj<Presence>, Error> {
    ractor::expect_main(ruby, "Heddle::YieldingFiber")?;
    let presence = ruby.obj_wrap(Presence::default());
    fiber::attach(fiber::ensure_current()?, presence.as_value())?;
    if let Some(scheduler) = Scheduler::of_thread() {
        scheduler.expect_ticks(ruby)?;
        return Ok(presence);
    }
    pending::find(ruby)?;
    // No lock may be held while Ruby runs: its collector may drop another presence.
    let begun = join();
    begun.map_err(|error| error::from_core(ruby, error))?;
    presence.counted.set(true);
    Ok(presence)
}

fn join() -> Result<(), heddle_core::Error> {
    let mut guests = guests();
    begin_ticking(&mut guests)?;
    guests.alive += 1;
    Ok(())
}

/// It has ended.
fn finish(presence: &Presence) {
    presence.leave();
}

fn begin_ticking(guests: &mut Guests) -> Result<(), heddle_core::Error> {
    if guests.ticker.as_ref().is_some_and(|(_, generation)| *generation != fork::generation()) {
        guests.alive = 0;
        if let Some((inherited, _)) = guests.ticker.take() {
            inherited.abandon();
        }
    }
    if guests.ticker.is_none() {
        guests.ticker = Some((TimerfdTicker::start(TICK, Pulse::obtain())?, fork::generation()));
    }
    match &guests.ticker {
        Some((ticker, _)) => ticker.begin(),
        None => Ok(()),
    }
}

/// This process is a forked child, and the fiber that runs all that is left.
pub fn after_fork(ruby: &Ruby) -> Result<(), Error> {
    let Some(presence) = presence_of(fiber::current()).filter(|presence| presence.counted.get()) else { return Ok(()) };
    presence.counted.set(false);
    join().map_err(|error| error::from_core(ruby, error))?;
    presence.counted.set(true);
    Ok(())
}

/// Before Ruby takes itself apart.
fn stop() {
    let ticker = guests().ticker.take();
    match ticker {
        // Its thread is the parent's: to wait for its end would mean to wait for ever.
        Some((inherited, generation)) if generation != fork::generation() => inherited.abandon(),
        ticker => drop(ticker),
    }
}

/// A tick has come while a fiber runs that no scheduler of ours knows.
pub fn tick(ruby: &Ruby) {
    let Ok(current) = fiber::ensure_current() else { return };
    let Some(presence) = presence_of(current).filter(|presence| presence.shields.get() == 0) else { return };
    let now = Instant::now();
    let since = presence.since.get().unwrap_or(now);
    presence.since.set(Some(since));
    let is_due = Unraised::at_tick(&presence.unraised).lets_switch() && now.duration_since(since) >= QUANTUM;
    if !is_due || !safe_points::is_here() || interrupts::is_trap_due() {
        return;
    }
    pace::end();
    let yielded = if fiber::current_scheduler().is_some() {
        give_way(current)
    } else {
        ignore_refusal(ruby, fiber::yield_to_resumer())
    };
    presence.since.set(Some(Instant::now()));
    if let Err(raised) = yielded
        && !pending::repeat_kill(&raised)
    {
        // What was raised into it meanwhile. A kill can only be told by an exception; see `YieldingFiber`.
        if let Some(exception) = error::exception_or_stop(ruby, &raised) {
            // What the fiber masks is lost, as Ruby loses whatever is raised in a postponed job.
            let _ = aside::raise_after_job(ruby, exception);
        }
    }
}

/// By the means of somebody else's scheduler: those of Async and io-event, or else those that every scheduler has.
fn give_way(current: Held) -> Result<(), Error> {
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

/// A fiber that nobody has resumed cannot yield; it goes on.
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
    let Some(presence) = presence_of(fiber::ensure_current()?) else { return ruby.yield_value(()) };
    presence.shields.set(presence.shields.get() + 1);
    let result = ruby.yield_value(());
    presence.shields.set(presence.shields.get() - 1);
    result
}

/// Defines `Heddle::Presence` and `Heddle.without_preemption`.
pub fn define(ruby: &Ruby, heddle: RModule) -> Result<(), Error> {
    let class = heddle.define_class("Presence", ruby.class_object())?;
    class.undef_default_alloc_func();
    ractor::safe(|| class.define_singleton_method("begin", function!(begin, 0)))?;
    class.define_singleton_method("stop", function!(stop, 0))?;
    class.define_method("finish", method!(finish, 0))?;
    ractor::safe(|| heddle.define_singleton_method("without_preemption", function!(without_preemption, 0)))
}
