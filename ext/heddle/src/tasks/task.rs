//! The parts of `Heddle.spin`, and of core_ext's `suspend` and `schedule`. Not hooks: `lib/heddle/structured` and
//! `lib/heddle/core_ext.rb` call them.

use magnus::{Error, Object, RHash, RModule, Ruby, Symbol, Value, block::Proc, function, prelude::*};

use crate::ruby::receiver::Receiver;
use crate::ruby::value::same;
use crate::ruby::{fiber, fork, ractor};
use crate::scheduler::options::Preempt;
use crate::scheduler::record::{FiberState, Record};
use crate::scheduler::start::NewFiber;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::Outcome;
use crate::scheduler::{Scheduler, registry};

/// Defines the methods.
pub fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("spawn", function!(spawn, 4))?;
    native.define_singleton_method("enter_user_block", function!(enter_user_block, 1))?;
    native.define_singleton_method("leave_user_block", function!(leave_user_block, 3))?;
    native.define_singleton_method("suspend", function!(suspend, 1))?;
    native.define_singleton_method("post", function!(post, 3))?;
    native.define_singleton_method("run_next", function!(run_next, 2))?;
    native.define_singleton_method("observe_exit", function!(observe_exit, 3))?;
    native.define_singleton_method("current_fiber", function!(current_fiber, 1))?;
    native.define_singleton_method("waits_for_all_others?", function!(waits_for_all_others, 2))?;
    native.define_singleton_method("counts", function!(counts, 1))?;
    ractor::safe(ruby, || {
        native.define_singleton_method("state", function!(fiber_state, 1))?;
        native.define_singleton_method("generation", function!(fork::generation, 0))
    })
}

/// Puts `child` at the end of the run queue, a new fiber which runs the block. Notifies `exit_observer` if the fiber
/// cannot start. Any fiber that finds it in the run queue starts it, so its code knows the scheduler.
fn spawn(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    block: Proc,
    exit_observer: Value,
    child: Value,
) -> Result<(), Error> {
    fiber::expect_fiber(ruby, child)?;
    let hook = scheduler.enter(ruby)?;
    let preemptible = scheduler.options.borrow().preempt == Preempt::All;
    let key = scheduler.register_unstarted(ruby, &NewFiber { fiber: child, block, preemptible })?;
    {
        let mut state = scheduler.state.borrow_mut();
        if let Some(record) = state.fibers.get_mut(key) {
            record.task.observe_exit(exit_observer);
        }
        state.inherit_scope(hook.key, key, false);
        state.enqueue(key);
    }
    Ok(())
}

/// The program's part of a fiber whose other parts must not be interrupted begins: the fiber may be preempted from now
/// on. Returns what [`leave_user_block`] takes.
fn enter_user_block(ruby: &Ruby, scheduler: Receiver<Scheduler>) -> bool {
    let current = fiber::current(ruby);
    let shielded = {
        let state = scheduler.state.borrow();
        state.fibers.find(current).filter(|key| state.fibers.get(*key).is_some_and(|record| record.is_shielded()))
    };
    if let Some(key) = shielded {
        scheduler.adjust_user_block_depth(key, 1);
    }
    shielded.is_some()
}

/// The program's part has ended. `entered` is nil if it has not begun.
fn leave_user_block(ruby: &Ruby, scheduler: Receiver<Scheduler>, entered: Option<bool>, is_last: bool) {
    if is_last {
        scheduler.drop_own(ruby);
    }
    if entered == Some(true) {
        let key = scheduler.state.borrow().fibers.find(fiber::current(ruby));
        if let Some(key) = key {
            scheduler.adjust_user_block_depth(key, -1);
        }
    }
}

/// Waits until a value is posted to this fiber.
fn suspend(ruby: &Ruby, scheduler: &Scheduler) -> Result<Value, Error> {
    let hook = scheduler.enter(ruby)?;
    let outcome = scheduler.wait(ruby, hook.key, Wait::Suspended, None, |state| {
        // A fiber that always finds a value must end all the same when it is asked to. The value stays in the inbox.
        let has_raise = state.pending_exception(hook.key).is_some();
        state.fibers.get_mut(hook.key).filter(|_| !has_raise).and_then(|record| record.task.take_posted())
    })?;
    match outcome {
        Outcome::Done(value) => Ok(value),
        Outcome::TimedOut => Ok(ruby.qnil().as_value()),
    }
}

/// Posts a value to a fiber. False if this scheduler does not know the fiber.
fn post(_: &Ruby, scheduler: &Scheduler, target: Value, value: Value) -> bool {
    let mut state = scheduler.state.borrow_mut();
    let Some(key) = state.fibers.find(target) else { return false };
    let Some(record) = state.fibers.get_mut(key) else { return false };
    record.task.post(value);
    if record.wait == Wait::Suspended {
        state.wake(key);
    }
    true
}

/// Has a fiber run next that was woken, ahead of all others. False if none was woken.
fn run_next(_: &Ruby, scheduler: &Scheduler, target: Value) -> bool {
    let mut state = scheduler.state.borrow_mut();
    let key = state.fibers.find(target);
    key.is_some_and(|key| state.fibers.hand_off(key))
}

/// Makes `exit_observer` the exit observer of a managed fiber. False if the fiber is not managed by this scheduler.
fn observe_exit(_: &Ruby, scheduler: &Scheduler, target: Value, exit_observer: Value) -> bool {
    let mut state = scheduler.state.borrow_mut();
    let key = state.fibers.find(target);
    let record = key.and_then(|key| state.fibers.get_mut(key)).filter(|record| record.managed);
    let found = record.is_some();
    if let Some(record) = record {
        record.task.observe_exit(exit_observer);
    }
    found
}

/// The fiber that the scheduler switched to last, or nil.
fn current_fiber(_: &Ruby, scheduler: &Scheduler) -> Option<Value> {
    scheduler.state.borrow().fibers.current().map(|(fiber, _)| fiber.get())
}

/// Whether the fiber waits, in the scheduler's `close` or `run`, until all others have ended.
fn waits_for_all_others(_: &Ruby, scheduler: &Scheduler, target: Value) -> bool {
    let state = scheduler.state.borrow();
    let record = state.fibers.find(target).and_then(|key| state.fibers.get(key));
    record.is_some_and(Record::is_draining)
}

/// `:running`, `:runnable`, `:waiting` or `:dead`.
fn fiber_state(ruby: &Ruby, target: Value) -> Result<Symbol, Error> {
    fiber::expect_fiber(ruby, target)?;
    if same(target, fiber::ensure_current(ruby)?) {
        return Ok(ruby.to_symbol("running"));
    }
    if !fiber::is_alive(target) {
        return Ok(ruby.to_symbol("dead"));
    }
    let mut found = None;
    // In another Ractor no fiber belongs to a scheduler.
    if ractor::is_main(ruby) {
        registry::any(ruby, |scheduler| {
            let state = scheduler.state.borrow();
            let record = state.fibers.find(target).and_then(|key| state.fibers.get(key));
            found = found.or(record.map(|record| record.state()));
            found.is_some()
        });
    }
    Ok(ruby.to_symbol(match found {
        Some(FiberState::Running) => "running",
        Some(FiberState::Runnable) => "runnable",
        Some(FiberState::Lost) => "dead",
        Some(FiberState::Waiting) | None => "waiting",
    }))
}

/// The number of fibers, timers, operations and exceptions in the state. For specs, which check that nothing is left
/// when all fibers have ended.
fn counts(ruby: &Ruby, scheduler: &Scheduler) -> Result<RHash, Error> {
    let state = scheduler.state.borrow();
    let counts = [
        ("fibers", state.fibers.iter().count()),
        ("timers", state.timers.len()),
        ("operations", state.operations.len()),
        ("deliveries", state.fibers.iter().map(|(_, record)| record.pending_raises.unraised()).sum()),
    ];
    drop(state);
    let hash = ruby.hash_new();
    for (name, count) in counts {
        hash.aset(ruby.to_symbol(name), count)?;
    }
    Ok(hash)
}
