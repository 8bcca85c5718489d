//! The state of all fibers of a scheduler at one time.

use std::rc::Rc;
use std::time::Instant;

use heddle_core::observe::accounting::Statement;
use magnus::typed_data::Obj;
use magnus::{Error, IntoValue, RArray, Ruby, Value, prelude::*};
use rustc_hash::FxHashMap;

use super::accounts;
use crate::ruby::fiber;
use crate::ruby::value::{PinnedValue, is_hidden};
use crate::scheduler::Scheduler;
use crate::scheduler::record::{FiberKey, FiberState, Record};
use crate::scheduler::state::{State, TimerAction};
use crate::scheduler::wait::Wait;

/// What is known about a fiber, without a reference to its record.
struct Entry {
    fiber: PinnedValue,
    state: FiberState,
    wait: Wait,
    seconds: f64,
    seconds_left: Option<f64>,
    block: Option<PinnedValue>,
    resumed_by: Option<PinnedValue>,
    epoch: u64,
    statements: Option<(Statement, Option<Statement>)>,
}

/// An Array for each fiber: the fiber, its state, what it waits for (a Symbol, and an object or a number), for which
/// events, for how long it has been in that state, how long it waits at most, its block, the fiber that has resumed it,
/// its name, its [`epoch_of`], and what it has spent its time on, in all and under its name.
pub fn snapshot(ruby: &Ruby, scheduler: Obj<Scheduler>) -> Result<RArray, Error> {
    // In a forked child that has not used the scheduler yet, only the current fiber exists, and nothing was counted.
    let survivor = if scheduler.is_inherited() { Some(fiber::ensure_current(ruby)?) } else { None };
    let (mut entries, labels) = {
        let state = scheduler.state.borrow();
        (entries(&state), state.accounting().map_or_else(Vec::new, |accounting| accounting.labels().to_vec()))
    };
    if let Some(survivor) = survivor {
        entries.retain(|entry| entry.fiber == survivor);
        entries.iter_mut().for_each(|entry| entry.statements = None);
    }
    let array = ruby.ary_new_capa(entries.len());
    for entry in entries {
        // Making objects collects garbage, but lets no other fiber or thread run. So the records still exist, and the
        // collector finds in them what the entries refer to.
        array.push(entry.to_array(ruby, &labels)?)?;
    }
    Ok(array)
}

/// A number that changes whenever the fiber's state does; nil for a fiber that the scheduler does not know. A reader of
/// a snapshot that looks at the fiber later, at its backtrace for instance, learns by it whether both belong together.
pub fn epoch_of(scheduler: Obj<Scheduler>, fiber: Value) -> Option<u64> {
    let state = scheduler.state.borrow();
    state.fibers.find(fiber).and_then(|key| state.fibers.get(key)).map(Record::state_number)
}

fn entries(state: &State) -> Vec<Entry> {
    let now = state.clock.now();
    let (deadlines, counted) = (deadlines(state), Instant::now());
    let is_known = |record: &Record| record.state() != FiberState::Lost && !record.has_left_hooks();
    let known = state.fibers.iter().filter(|(_, record)| is_known(record));
    known
        .map(|(key, record)| {
            let statements = state.statement(key, counted);
            Entry { statements, ..Entry::of(state, record, now, deadlines.get(&key).copied()) }
        })
        .collect()
}

/// When the fibers whose waits have a time limit are woken.
fn deadlines(state: &State) -> FxHashMap<FiberKey, Instant> {
    let mut deadlines = FxHashMap::default();
    for (deadline, action) in state.timers.deadlines() {
        if let TimerAction::Wake(key) = action {
            deadlines.entry(*key).and_modify(|first: &mut Instant| *first = deadline.min(*first)).or_insert(deadline);
        }
    }
    deadlines
}

impl Entry {
    fn of(state: &State, record: &Record, now: Instant, deadline: Option<Instant>) -> Self {
        let resumer = record.resumed_by.and_then(|key| state.fibers.get(key));
        Entry {
            fiber: record.fiber,
            state: record.state(),
            wait: record.wait,
            seconds: now.saturating_duration_since(record.since()).as_secs_f64(),
            seconds_left: deadline.map(|deadline| deadline.saturating_duration_since(now).as_secs_f64()),
            block: record.block,
            resumed_by: resumer.map(|resumer| resumer.fiber),
            epoch: record.state_number(),
            statements: None,
        }
    }

    fn to_array(&self, ruby: &Ruby, labels: &[Rc<str>]) -> Result<RArray, Error> {
        let array = ruby.ary_new_capa(13);
        array.push(self.fiber.get())?;
        array.push(ruby.to_symbol(match self.state {
            FiberState::Runnable => "runnable",
            FiberState::Running | FiberState::Lost => "running",
            FiberState::Waiting => "waiting",
        }))?;
        array.push(ruby.to_symbol(self.wait.name()))?;
        let (subject, events) = subject(ruby, self.wait);
        array.push(subject)?;
        array.push(events)?;
        array.push(self.seconds)?;
        array.push(self.seconds_left)?;
        array.push(self.block.map(PinnedValue::get))?;
        array.push(self.resumed_by.map(PinnedValue::get))?;
        array.push(fiber::name(self.fiber.get()))?;
        array.push(self.epoch)?;
        let (times, named) =
            self.statements.as_ref().map_or((None, None), |(times, named)| (Some(times), named.as_ref()));
        for counted in [times, named] {
            let counted = counted.map(|counted| accounts::statement(ruby, counted, labels)).transpose()?;
            array.push(counted)?;
        }
        Ok(array)
    }
}

/// What the wait is for, and the events of a descriptor as IO::READABLE and the like.
fn subject(ruby: &Ruby, wait: Wait) -> (Value, Option<u8>) {
    match wait {
        // An object inside Ruby that programs must not see.
        Wait::Block(blocker) if is_hidden(blocker.get()) => (ruby.qnil().as_value(), None),
        Wait::Block(object) | Wait::Address(object) => (object.get(), None),
        Wait::Ready(fd, interest) | Wait::Transfer(fd, interest) => (fd.into_value_with(ruby), Some(interest.0)),
        Wait::Process(pid) => (pid.into_value_with(ruby), None),
        _ => (ruby.qnil().as_value(), None),
    }
}
