//! `fiber`, `run`, `close`, `scheduler_close`: from a fiber's first turn to the last fiber's end.

use magnus::scan_args::{get_kwargs, scan_args};
use magnus::typed_data::Obj;
use magnus::{Error, RArray, RHash, Ruby, Value, block::Proc, prelude::*};

use super::spinning;
use crate::ruby::receiver::Receiver;
use crate::ruby::value::{Held, same};
use crate::ruby::{block, error, fiber, thread};
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::options::Preempt;
use crate::scheduler::wait::Wait;
use crate::scheduler::waiting::Outcome;
use crate::scheduler::{Scheduler, Visit, registry, unhandled};

/// `Fiber.schedule`: runs the block in a new fiber, at once, until it first waits. The fiber that called goes to the end
/// of the run queue.
pub fn fiber(ruby: &Ruby, scheduler: Receiver<'_, Scheduler>, arguments: &[Value]) -> Result<Value, Error> {
    if !ruby.block_given() {
        return Err(Error::new(ruby.exception_arg_error(), "tried to create a fiber without a block"));
    }
    let block = ruby.block_proc()?;
    let (mut storage, mut splat) = (None, None);
    if !arguments.is_empty() {
        let parsed = scan_args::<(), (), RArray, (), RHash, ()>(arguments)?;
        let keywords = get_kwargs::<_, (), (Option<Value>,), ()>(parsed.keywords, &[], &["storage"])?;
        storage = keywords.optional.0;
        splat = Some(parsed.splat);
    }

    let visit = scheduler.enter(ruby)?;
    let child = match storage {
        Some(storage) => fiber::spawn::<Scheduled>(ruby.qnil().as_value(), storage)?,
        None => SCHEDULED.spawn::<Scheduled>(ruby)?,
    };
    let preemptible = scheduler.options.borrow().preempt == Preempt::All;
    start(ruby, &scheduler, &visit, Newcomer { fiber: child, block, preemptible }, splat)
}

/// `YieldingFiber.schedule`: the same for a fiber that the caller has made, of its class. Its block calls
/// [`run_scheduled`] with what it is given.
pub fn start_yielding(
    ruby: &Ruby,
    scheduler: Receiver<'_, Scheduler>,
    child: Value,
    arguments: RArray,
    block: Proc,
) -> Result<Value, Error> {
    error::expect_fiber(ruby, child)?;
    let visit = scheduler.enter(ruby)?;
    if scheduler.turns.borrow().fibers.find(Held::new(child)).is_some() {
        return Err(error::fiber_error(ruby, "the fiber has been scheduled already"));
    }
    let preemptible = scheduler.options.borrow().preempt.takes_yielding();
    start(ruby, &scheduler, &visit, Newcomer { fiber: Held::new(child), block, preemptible }, Some(arguments))
}

/// A fiber that has not begun.
struct Newcomer {
    fiber: Held,
    block: Proc,
    preemptible: bool,
}

fn start(
    ruby: &Ruby,
    scheduler: &Receiver<'_, Scheduler>,
    visit: &Visit<'_>,
    newcomer: Newcomer,
    arguments: Option<RArray>,
) -> Result<Value, Error> {
    let Newcomer { fiber: child, block, preemptible } = newcomer;
    let child_key = scheduler.take_in_newborn(ruby, child, block, preemptible)?;
    let start = [scheduler.as_value(), arguments.map_or(ruby.qnil().as_value(), |arguments| arguments.as_value())];
    let start = if arguments.is_some() { &start[..] } else { &start[..1] };
    let begin = || {
        {
            let mut turns = scheduler.turns.borrow_mut();
            turns.enqueue(visit.key);
            turns.give_first_turn(child_key);
        }
        scheduler.park_after(ruby, visit.key, child, start)
    };
    let has_begun = || {
        let turns = scheduler.turns.borrow();
        turns.fibers.get(child_key).is_none_or(|record| record.wait != Wait::Birth)
    };
    let mut result = begin();
    if let Err(error) = &result
        && !has_begun()
        && error::is_lack_of_stacks(ruby, error)
        && scheduler.ended_stacks.collect(ruby)
    {
        result = begin();
    }
    if !has_begun() {
        // It could not even be started.
        scheduler.turns.borrow_mut().fibers.remove(child_key);
    }
    result.map(|()| child.get())
}

/// Lets all fibers run to their end.
pub fn run(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    let visit = scheduler.enter(ruby)?;
    drain(ruby, scheduler, visit.key)
}

/// Lets all fibers run to their end and gives back what the scheduler holds. Further calls do nothing.
pub fn close(ruby: &Ruby, scheduler: Obj<Scheduler>) -> Result<(), Error> {
    scheduler.expect_owner(ruby)?;
    if !scheduler.closing.get() {
        scheduler.funcall::<_, _, Value>("expect_not_awaited", ())?;
    }
    let result = finish(ruby, &scheduler);
    if scheduler.turns.borrow().fibers.is_draining() {
        // Another fiber waits for the end of all others, this one included, and closes then.
        return result;
    }
    scheduler.shut();
    if !scheduler.closing.get() && same(fiber::scheduler(), scheduler.as_value()) {
        fiber::unset_scheduler(ruby)?;
    }
    result
}

/// What Ruby calls when the scheduler is replaced, or its thread or the process ends. Calls `close`, which a subclass
/// may have overridden.
pub fn scheduler_close(ruby: &Ruby, scheduler: Obj<Scheduler>) -> Result<(), Error> {
    let finished = finish(ruby, &scheduler);
    scheduler.closing.set(true);
    let closed = scheduler.funcall::<_, _, Value>("close", ()).map(|_| ());
    scheduler.closing.set(false);
    finished.and(closed)
}

/// The code of every fiber that `fiber` makes.
struct Scheduled;

static SCHEDULED: fiber::Code = fiber::Code::new();

impl fiber::FiberBody for Scheduled {
    fn run(ruby: &Ruby, _: Value, start: &[Value]) -> Result<Value, Error> {
        let Some((scheduler, arguments)) = start.split_first() else {
            return Err(error::fiber_error(ruby, "this fiber is started by its scheduler alone"));
        };
        let scheduler = Receiver::<Scheduler>::try_convert(*scheduler)?;
        let (key, block) = scheduler.expect_birth(ruby)?;
        let arguments = arguments.first().map(|arguments| RArray::try_convert(*arguments)).transpose()?;
        run_to_end(ruby, &scheduler, key, block, arguments)
    }
}

/// What every fiber of ours does: its block, which is given `arguments` if there are any, and then it leaves the books.
pub fn run_to_end(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    block: Proc,
    arguments: Option<RArray>,
) -> Result<Value, Error> {
    if let Some(record) = scheduler.turns.borrow_mut().fibers.get_mut(key) {
        record.wait = Wait::Nothing;
        record.whereabouts.begin();
    }
    let result = match arguments {
        Some(arguments) => block.call::<_, Value>(arguments),
        None => block::call(block),
    };
    // An exception that came while others are told would leave them waiting for ever.
    if let Some(record) = scheduler.turns.borrow_mut().fibers.get_mut(key) {
        record.visits += 1;
    }
    scheduler.turns.borrow_mut().end_block(key);
    let result = spinning::tell_watcher(ruby, scheduler, key, result);
    let result = result.or_else(|error| unhandled::settle(ruby, block, error));
    scheduler.ended_stacks.add(ruby);
    // Ruby decides who goes on; see `State`.
    scheduler.turns.borrow_mut().end_fiber(key);
    result
}

/// What a fiber of [`start_yielding`] runs.
pub fn run_scheduled(ruby: &Ruby, scheduler: Value, arguments: Value) -> Result<Value, Error> {
    <Scheduled as fiber::FiberBody>::run(ruby, ruby.qnil().as_value(), &[scheduler, arguments])
}

/// Waits for the end of all other fibers, or has them end.
fn finish(ruby: &Ruby, scheduler: &Scheduler) -> Result<(), Error> {
    scheduler.expect_owner(ruby)?;
    if scheduler.reactor.borrow().is_none() {
        return Ok(());
    }
    let visit = scheduler.enter(ruby)?;
    if thread::is_aborting(ruby)? || is_interrupted(ruby, scheduler) {
        return cancel(ruby, scheduler, visit.key);
    }
    match drain(ruby, scheduler, visit.key) {
        Ok(()) => Ok(()),
        Err(error) => cancel(ruby, scheduler, visit.key).and(Err(error)),
    }
}

/// Whether the scheduler is closed because of Ctrl-C, another signal, or what another thread has raised here.
fn is_interrupted(ruby: &Ruby, scheduler: &Scheduler) -> bool {
    error::current(ruby)
        .is_some_and(|error| error.is_kind_of(ruby.exception_signal()) || scheduler.is_interrupted_by(&error))
}

/// Waits until all others have ended. An `exit` in one of them waits for the rest; everything else that is raised here
/// (Ctrl-C, `Thread#raise`, an `exit` in a signal handler) ends the waiting.
fn drain(ruby: &Ruby, scheduler: &Scheduler, key: FiberKey) -> Result<(), Error> {
    let mut exit = Ok(());
    loop {
        let waited = scheduler
            .wait(ruby, key, Wait::Drain, None, |turns| (turns.fibers.awaited_by(key) == 0).then_some(()))
            .map(|_: Outcome<()>| ());
        match waited {
            Ok(()) => return exit,
            Err(error) if error.is_kind_of(ruby.exception_system_exit()) && !scheduler.is_interrupted_by(&error) => {
                exit = Err(error);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Ends all other fibers, running their `ensure`, and waits for that.
fn cancel(ruby: &Ruby, scheduler: &Scheduler, key: FiberKey) -> Result<(), Error> {
    let stop = error::stop_class(ruby)?;
    scheduler.turns.borrow_mut().stop_all(Held::new(stop.as_value()));
    scheduler.tick_in_any_case(ruby);
    let result = drain(ruby, scheduler, key);
    scheduler.turns.borrow_mut().end_stopping();
    if result.is_err() {
        // Told a second time, while some `ensure` does not end. That was the last word.
        scheduler.shut();
    }
    result
}

impl Scheduler {
    /// The key and the block of the fiber that is running, which has just begun.
    ///
    /// # Errors
    /// FiberError if it is not one of this scheduler's that was to begin.
    pub fn expect_birth(&self, ruby: &Ruby) -> Result<(FiberKey, Proc), Error> {
        let newborn = {
            let turns = self.turns.borrow();
            let found = turns.fibers.find(fiber::current());
            let record = found.and_then(|key| Some((key, turns.fibers.get(key)?)));
            record.filter(|(_, record)| record.wait == Wait::Birth).and_then(|(key, record)| Some((key, record.block?)))
        };
        match newborn {
            Some((key, block)) => Ok((key, Proc::try_convert(block.get())?)),
            None => Err(error::fiber_error(ruby, "this fiber has been started already, or is not its scheduler's")),
        }
    }

    /// Takes a new fiber of ours into the books, which is to run `block`.
    pub fn take_in_newborn(&self, ruby: &Ruby, child: Held, block: Proc, preemptible: bool) -> Result<FiberKey, Error> {
        if preemptible {
            self.expect_ticks(ruby)?;
        }
        let mut turns = self.turns.borrow_mut();
        let key = turns.fibers.insert(child, true, false, Some(Held::new(block.as_value())));
        if let Some(record) = turns.fibers.get_mut(key) {
            record.wait = Wait::Birth;
            record.preemptible = preemptible;
        }
        Ok(key)
    }

    /// Gives back the backend and the workers. A later hook gets new ones.
    fn shut(&self) {
        registry::remove(self);
        self.release_ticker(false);
        self.unguard_signals();
        // What is still under way in the kernel is ended with the backend, before its fibers are forgotten.
        let reactor = self.reactor.borrow_mut().take();
        if let Some(reactor) = reactor {
            reactor.release(false);
        }
        *self.waker.borrow_mut() = None;
        *self.workers.borrow_mut() = None;
        *self.names.borrow_mut() = None;
        let mut turns = self.turns.borrow_mut();
        let survivor = turns.fibers.find(fiber::current());
        turns.forget_siblings(survivor);
        // So that a later hook takes the long way, which sets up a backend. Any thread may be its first one's.
        turns.drop_turn();
        self.owner.set(None);
    }
}
