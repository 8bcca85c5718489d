//! What `Heddle.spin`, `suspend` and `schedule` are made of. No hooks of Ruby's: `lib/heddle/structured` calls them.

use magnus::error::ErrorType;
use magnus::typed_data::Obj;
use magnus::{
    Error, Module, Object, RClass, RHash, Ruby, Symbol, TryConvert, Value, block::Proc, function, method, prelude::*,
};

use super::lifecycle::run_to_end;
use crate::ruby::receiver::Receiver;
use crate::ruby::value::Held;
use crate::ruby::{error, fiber, fork, ractor};
use crate::scheduler::fibers::{FiberKey, State};
use crate::scheduler::options::Preempt;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::Outcome;
use crate::scheduler::{Scheduler, registry, unhandled};

/// Defines the methods.
pub fn define(class: RClass) -> Result<(), Error> {
    class.define_private_method("spawn", method!(spawn, 2))?;
    class.define_private_method("expose", method!(expose, 0))?;
    class.define_private_method("suspend", method!(suspend, 0))?;
    class.define_private_method("post", method!(post, 2))?;
    class.define_private_method("watch", method!(watch, 2))?;
    class.define_private_method("running", method!(running, 0))?;
    class.define_private_method("counts", method!(counts, 0))?;
    ractor::safe(|| class.define_singleton_method("state", function!(state, 1)))?;
    class.define_singleton_method("generation", function!(fork::generation, 0))?;
    Ok(())
}

/// A new fiber for the block. It begins when its turn comes; `watcher` is told if it can't.
fn spawn(ruby: &Ruby, scheduler: Obj<Scheduler>, block: Proc, watcher: Value) -> Result<Value, Error> {
    let _visit = scheduler.enter(ruby)?;
    let storage = ruby.qtrue().as_value();
    let child = fiber::spawn::<Spun>(scheduler.as_value(), storage)?;
    let preemptible = scheduler.options.borrow().preempt == Preempt::All;
    let key = scheduler.take_in_newborn(ruby, child, block, preemptible)?;
    {
        let mut turns = scheduler.turns.borrow_mut();
        if let Some(record) = turns.fibers.get_mut(key) {
            record.structure.watcher = Some(Held::new(watcher));
        }
        turns.enqueue(key);
    }
    Ok(child.get())
}

/// The code of a fiber that `spawn` makes. Unlike that of `Fiber.schedule` it is started by whichever fiber finds it in
/// the run queue, so its scheduler comes with the fiber.
struct Spun;

impl fiber::FiberBody for Spun {
    fn run(ruby: &Ruby, scheduler: Value, _: &[Value]) -> Result<Value, Error> {
        let scheduler = Receiver::<Scheduler>::try_convert(scheduler)?;
        let (key, block) = scheduler.expect_birth(ruby)?;
        // It has begun. The block knows by itself whom to tell of its end, and is not preempted, nor struck by what is
        // raised into the fiber, but where it says so: see `expose`.
        if let Some(record) = scheduler.turns.borrow_mut().fibers.get_mut(key) {
            record.structure.watcher = None;
            record.visits += 1;
        }
        // Since it was made a tick may have found nobody who needed more of them.
        scheduler.tick_for(key);
        run_to_end(ruby, &scheduler, key, block, None)
    }
}

/// Runs its block, the program's part of a fiber whose other parts must not be interrupted. There it may be preempted.
fn expose(ruby: &Ruby, scheduler: &Scheduler) -> Result<Value, Error> {
    let current = fiber::current();
    let shielded = {
        let turns = scheduler.turns.borrow();
        turns.fibers.find(current).filter(|key| turns.fibers.get(*key).is_some_and(|record| record.is_shielded()))
    };
    match shielded {
        Some(key) => scheduler.exposed(key, || ruby.yield_value(())),
        None => ruby.yield_value(()),
    }
}

/// Waits until somebody leaves a value for this fiber.
fn suspend(ruby: &Ruby, scheduler: &Scheduler) -> Result<Value, Error> {
    let visit = scheduler.enter(ruby)?;
    let outcome = scheduler.wait(ruby, visit.key, Wait::Suspended, None, |turns| {
        // A fiber that always has something to go on with must end all the same when it is told to. The value stays.
        let due = turns.due_exception(visit.key).is_some();
        turns.fibers.get_mut(visit.key).filter(|_| !due).and_then(|record| record.structure.inbox.pop_front())
    })?;
    match outcome {
        Outcome::Done(value) => Ok(value.get()),
        Outcome::TimedOut => Ok(ruby.qnil().as_value()),
    }
}

/// Leaves a value for a fiber. False if this scheduler doesn't know the fiber.
fn post(_: &Ruby, scheduler: &Scheduler, target: Value, value: Value) -> bool {
    let mut turns = scheduler.turns.borrow_mut();
    let Some(key) = turns.fibers.find(Held::new(target)) else { return false };
    let Some(record) = turns.fibers.get_mut(key) else { return false };
    record.structure.post(Held::new(value));
    if record.wait == Wait::Suspended {
        turns.wake(key);
    }
    true
}

/// Has `watcher` told of the end of a fiber of `Fiber.schedule`. False if it is none, or not this scheduler's.
fn watch(_: &Ruby, scheduler: &Scheduler, target: Value, watcher: Value) -> bool {
    let mut turns = scheduler.turns.borrow_mut();
    let key = turns.fibers.find(Held::new(target));
    let record = key.and_then(|key| turns.fibers.get_mut(key)).filter(|record| record.ours);
    let found = record.is_some();
    if let Some(record) = record {
        record.structure.watcher = Some(Held::new(watcher));
    }
    found
}

/// Tells who watches a fiber that it comes to its end, and with what. An error of the watcher's takes the place of the
/// fiber's result.
pub fn tell_watcher(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    result: Result<Value, Error>,
) -> Result<Value, Error> {
    let watcher = scheduler.turns.borrow().fibers.get(key).and_then(|record| record.structure.watcher);
    let Some(watcher) = watcher else { return result };
    let nil = ruby.qnil().as_value();
    let told: Result<Value, Error> = match &result {
        Ok(value) => watcher.get().funcall("returned", (*value,)),
        Err(error) if error::stop_class(ruby).is_ok_and(|stop| error.is_kind_of(stop)) => {
            watcher.get().funcall("returned", (nil,))
        }
        Err(error) => match error.error_type() {
            ErrorType::Exception(exception) if !unhandled::concerns_thread(ruby, error) => {
                watcher.get().funcall("failed", (*exception,))
            }
            // On its way to the root; or a kill, on its way through: nothing may be raised meanwhile, or Ruby forgets it.
            _ => watcher.get().funcall("killed", ()),
        },
    };
    told.and(result)
}

/// The fiber that was given the turn last, or nil.
fn running(_: &Ruby, scheduler: &Scheduler) -> Option<Value> {
    scheduler.turns.borrow().running().map(|(fiber, _)| fiber.get())
}

/// `:running`, `:runnable`, `:waiting` or `:dead`.
fn state(ruby: &Ruby, target: Value) -> Result<Symbol, Error> {
    error::expect_fiber(ruby, target)?;
    let held = Held::new(target);
    if held == fiber::ensure_current()? {
        return Ok(ruby.to_symbol("running"));
    }
    if !fiber::is_alive(held) {
        return Ok(ruby.to_symbol("dead"));
    }
    let mut found = None;
    // In another Ractor no fiber is a scheduler's.
    if ractor::is_main() {
        registry::any(|scheduler| {
            let turns = scheduler.turns.borrow();
            let record = turns.fibers.find(held).and_then(|key| turns.fibers.get(key));
            found = found.or(record.map(|record| record.state()));
            found.is_some()
        });
    }
    Ok(ruby.to_symbol(match found {
        Some(State::Running) => "running",
        Some(State::Runnable) => "runnable",
        Some(State::Lost) => "dead",
        Some(State::Waiting) | None => "waiting",
    }))
}

/// What the books hold at this moment; nothing but the fibers that are there must be left when all have ended.
fn counts(ruby: &Ruby, scheduler: &Scheduler) -> Result<RHash, Error> {
    let turns = scheduler.turns.borrow();
    let counts = [
        ("fibers", turns.fibers.iter().count()),
        ("timers", turns.timers.len()),
        ("operations", turns.operations.len()),
        ("deliveries", turns.fibers.iter().map(|(_, record)| record.deliveries.unraised()).sum()),
    ];
    drop(turns);
    let hash = ruby.hash_new();
    for (name, count) in counts {
        hash.aset(ruby.to_symbol(name), count)?;
    }
    Ok(hash)
}
