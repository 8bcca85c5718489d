//! Abandonment: a fiber that has not ended although it was asked to, and whose grace period is over, must not keep
//! other fibers from ending.
//!
//! The next fiber that parks starts a helper fiber. The helper writes a line that names the fiber and its position,
//! and has it killed or abandoned: see [`super::state::ending`].

use magnus::typed_data::Obj;
use magnus::{Error, Object, RModule, Ruby, Symbol, TryConvert, Value, function, prelude::*};

use super::record::FiberKey;
use super::start::propagates_to_thread;
use super::state::ending::EndAction;
use super::{Scheduler, closing_numbers};
use crate::ruby::constant::Constant;
use crate::ruby::value::{PinnedValue, keep_for_ever};
use crate::ruby::{error, fiber};

/// Defines the method that `lib/heddle/reports.rb` calls.
pub fn define(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("abandon", function!(abandon, 2))
}

/// Starts a helper fiber that ends the fiber `overdue`. A fiber of its own does that, since writing a line may wait.
#[cold]
pub fn abandon_by_helper(ruby: &Ruby, scheduler: &Scheduler, overdue: FiberKey) -> Result<(), Error> {
    struct Helper;

    impl fiber::FiberBody for Helper {
        fn run(ruby: &Ruby, _: Value, arguments: &[Value]) -> Result<Value, Error> {
            let nil = ruby.qnil().as_value();
            let Some(overdue) = arguments.first() else { return Ok(nil) };
            match report_and_end(ruby, *overdue) {
                // Ruby would raise an error of the helper in the fiber that continues. Only what is meant for the
                // whole thread may propagate.
                Err(error) if error::exception_of(&error).is_none() || propagates_to_thread(ruby, &error) => Err(error),
                _ => Ok(nil),
            }
        }
    }

    let nil = ruby.qnil().as_value();
    let Some(fiber) = scheduler.state.borrow().fibers.fiber(overdue) else { return Ok(()) };
    let start = |helper| fiber::start(helper, &[fiber]);
    let started = fiber::spawn::<Helper>(nil, nil).and_then(start);
    match started {
        Err(error) if error::is_lack_of_stacks(ruby, &error) => {
            scheduler.state.borrow_mut().prolong_grace(overdue);
            Ok(())
        }
        other => other,
    }
}

fn report_and_end(ruby: &Ruby, fiber: Value) -> Result<(), Error> {
    let scheduler = Obj::<Scheduler>::try_convert(fiber::scheduler(ruby))?;
    let block = {
        let state = scheduler.state.borrow();
        let Some(record) = state.fibers.find(fiber).and_then(|key| state.fibers.get(key)) else { return Ok(()) };
        record.block
    };
    static REPORTS: Constant = Constant::new(&["Heddle", "Reports"]);
    let grace = scheduler.options.borrow().grace.map(|grace| grace.as_secs_f64());
    REPORTS
        .get::<RModule>(ruby)?
        .funcall::<_, _, Value>("abandon", (scheduler, fiber, block.map(PinnedValue::get), grace))
        .map(|_| ())
}

/// Ends a fiber whose grace period is over. Returns `:killed` if the fiber ends when it runs next; `:abandoned` if it
/// never runs again; `:forgotten` if it survived being killed, and never runs again; nil if it has ended.
fn abandon(ruby: &Ruby, scheduler: &Scheduler, target: Value) -> Result<Option<Symbol>, Error> {
    let stop = error::stop_class(ruby)?.as_value();
    let found = {
        let state = scheduler.state.borrow();
        state.fibers.find(target).and_then(|key| Some((key, state.end_action(key)?)))
    };
    let Some((key, action)) = found else { return Ok(None) };
    let outcome = match action {
        EndAction::Kill => {
            scheduler.state.borrow_mut().kill(key, stop);
            "killed"
        }
        EndAction::Abandon => {
            forget(ruby, scheduler, key);
            "abandoned"
        }
        EndAction::Forget => {
            forget(ruby, scheduler, key);
            "forgotten"
        }
    };
    Ok(Some(ruby.to_symbol(outcome)))
}

/// Forgets a fiber that has not ended, and the fibers that it has resumed.
fn forget(ruby: &Ruby, scheduler: &Scheduler, key: FiberKey) {
    let lost = scheduler.state.borrow().with_resumed(key);
    // The kernel may still write to buffers of these fibers, and Ruby's lists of waiters point into their stacks. So
    // they are never freed.
    for key in &lost {
        let fiber = scheduler.state.borrow().fibers.fiber(*key);
        if let Some(fiber) = fiber {
            keep_for_ever(fiber);
        }
    }
    let operations = {
        let mut state = scheduler.state.borrow_mut();
        let is_lost = |closer: PinnedValue| state.fibers.find(closer).is_some_and(|key| lost.contains(&key));
        closing_numbers::forget_closers(ruby, is_lost);
        state.abandon(&lost)
    };
    if let Some(reactor) = scheduler.io.reactor.borrow_mut().as_mut() {
        operations.iter().for_each(|token| reactor.backend.cancel(*token));
    }
}
