//! `fiber`, `run`, `close`, `scheduler_close`: from a fiber's start to the last fiber's end.

use magnus::exception::Exception;
use magnus::scan_args::{get_kwargs, scan_args};
use magnus::typed_data::Obj;
use magnus::{Error, RArray, RHash, Ruby, TryConvert, Value, block::Proc, prelude::*};

use crate::ruby::outcome::RubyOutcome;
use crate::ruby::receiver::Receiver;
use crate::ruby::value::same;
use crate::ruby::{error, fiber};
use crate::scheduler::Scheduler;
use crate::scheduler::options::Preempt;
use crate::scheduler::start::{BlockEnd, Membership, NewFiber, start};

/// `Fiber.schedule`: runs the block in a new fiber immediately, until that fiber first waits. The calling fiber goes to
/// the end of the run queue.
pub fn fiber(ruby: &Ruby, scheduler: Receiver<Scheduler>, arguments: &[Value]) -> Result<Value, Error> {
    if !ruby.block_given() {
        return Err(error::of(ruby.exception_arg_error(), "tried to create a fiber without a block"));
    }
    let block = ruby.block_proc()?;
    let (mut storage, mut splat) = (None, None);
    if !arguments.is_empty() {
        let parsed = scan_args::<(), (), RArray, (), RHash, ()>(arguments)?;
        let keywords = get_kwargs::<_, (), (Option<Value>,), ()>(parsed.keywords, &[], &["storage"])?;
        storage = keywords.optional.0;
        splat = Some(parsed.splat);
    }

    let hook = scheduler.enter(ruby)?;
    let child = fiber::spawn_scheduled(ruby, storage)?;
    let preemptible = scheduler.options.borrow().preempt == Preempt::All;
    start(ruby, &scheduler, hook.key, NewFiber { fiber: child, block, preemptible }, Membership::ScopeOfStarter, splat)
}

/// Like [`fiber()`], for a fiber that has nothing to do with the one that starts it: it is in no scope of
/// `Heddle.run`.
pub fn start_apart(ruby: &Ruby, scheduler: Receiver<Scheduler>, storage: Value, block: Proc) -> Result<Value, Error> {
    let hook = scheduler.enter(ruby)?;
    let child = fiber::spawn_scheduled(ruby, Some(storage))?;
    let preemptible = scheduler.options.borrow().preempt == Preempt::All;
    start(ruby, &scheduler, hook.key, NewFiber { fiber: child, block, preemptible }, Membership::Scheduler, None)
}

/// Like [`fiber()`], for a task of Async, whose fiber the caller has made with the same code.
pub fn start_task(ruby: &Ruby, scheduler: Receiver<Scheduler>, child: Value, block: Proc) -> Result<Value, Error> {
    fiber::expect_fiber(ruby, child)?;
    let hook = scheduler.enter(ruby)?;
    let preemptible = scheduler.options.borrow().preempt == Preempt::All;
    start(ruby, &scheduler, hook.key, NewFiber { fiber: child, block, preemptible }, Membership::ScopeOfStarter, None)
}

/// `YieldingFiber.schedule`: like [`fiber()`], for a fiber of that class which the caller has made with the same code.
pub fn start_yielding(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    child: Value,
    arguments: RArray,
    block: Proc,
) -> Result<Value, Error> {
    fiber::expect_fiber(ruby, child)?;
    let hook = scheduler.enter(ruby)?;
    if scheduler.state.borrow().fibers.find(child).is_some() {
        return Err(error::fiber_error(ruby, "the fiber has been scheduled already"));
    }
    let preemptible = scheduler.options.borrow().preempt.preempts_yielding();
    let new_fiber = NewFiber { fiber: child, block, preemptible };
    start(ruby, &scheduler, hook.key, new_fiber, Membership::ScopeOfStarter, Some(arguments))
}

/// The block of the current fiber, which has just been started. `lib/heddle/fiber_body.rb` calls it, and one of the
/// three below when the block has ended.
pub fn begin_block(ruby: &Ruby, scheduler: Value) -> Result<Value, Error> {
    if scheduler.is_nil() {
        return Err(error::fiber_error(ruby, "only its scheduler can start this fiber"));
    }
    Receiver::<Scheduler>::try_convert(scheduler)?.begin_block(ruby)
}

/// Takes the number for the limit of memory maps, in place of the kernel's. For tests, as a process cannot lower that.
pub fn assume_map_limit(limit: usize) {
    heddle_core::observe::map_limit::assume(limit);
}

/// `FiberBody::BlockError === exception`: in the current fiber, the code's `rescue` asks whether it matches what the
/// block has raised. It always does.
///
/// Ruby checks interrupts at the end of this method, and has not called [`fail_block`] yet. What was raised in the
/// fiber there would leave the `rescue`, and end the fiber that continues. So the rest of the fiber's life counts as a
/// hook.
pub fn is_block_error(ruby: &Ruby, _: Value, _: Value) -> bool {
    if let Some(scheduler) = Scheduler::of_thread(ruby) {
        scheduler.shield_end(ruby);
    }
    true
}

/// The block has returned.
pub fn end_block(ruby: &Ruby, scheduler: Receiver<Scheduler>, block: Value, value: Value) -> Result<Value, Error> {
    scheduler.end_block(ruby, block, BlockEnd::Returned(value))
}

/// The block has raised an exception, or [`begin_block`] has.
pub fn fail_block(ruby: &Ruby, scheduler: Value, block: Value, error: Exception) -> Result<Value, Error> {
    if scheduler.is_nil() {
        return Err(error.into());
    }
    Receiver::<Scheduler>::try_convert(scheduler)?.end_block(ruby, block, BlockEnd::Failed(error))
}

/// The fiber is being killed, and has left the block.
pub fn kill_block(ruby: &Ruby, scheduler: Receiver<Scheduler>, block: Value) -> Result<Value, Error> {
    scheduler.end_block(ruby, block, BlockEnd::Killed)
}

/// Runs all fibers to their ends.
pub fn run(ruby: &Ruby, scheduler: Obj<Scheduler>) -> Result<(), Error> {
    scheduler.funcall::<_, _, Value>("expect_not_awaited", ("run",))?;
    let hook = scheduler.enter(ruby)?;
    scheduler.drain(ruby, hook.key)
}

/// Runs all fibers to their ends and releases the scheduler's resources. Further calls do nothing.
pub fn close(ruby: &Ruby, scheduler: Obj<Scheduler>) -> Result<(), Error> {
    scheduler.expect_owner(ruby)?;
    if !scheduler.closing.get() {
        scheduler.funcall::<_, _, Value>("expect_not_awaited", ("close",))?;
    }
    let result = scheduler.finish(ruby);
    if scheduler.state.borrow().fibers.is_draining() {
        // Another fiber waits for the ends of all others, including this one, and then releases the resources.
        return result;
    }
    result.and_ensure(|| scheduler.release(ruby)).and_ensure(|| {
        let is_set = !scheduler.closing.get() && same(fiber::scheduler(ruby), scheduler.as_value());
        if is_set { fiber::unset_scheduler(ruby) } else { Ok(()) }
    })
}

/// Called by Ruby when the scheduler is replaced, or its thread or the process ends. Calls `close`, which a subclass
/// may override.
pub fn scheduler_close(ruby: &Ruby, scheduler: Obj<Scheduler>) -> Result<(), Error> {
    scheduler.finish(ruby).and_ensure(|| {
        scheduler.closing.set(true);
        let closed = scheduler.funcall::<_, _, Value>("close", ()).map(|_| ());
        scheduler.closing.set(false);
        closed
    })
}
