//! Abandonment: a fiber that has not ended although it was asked to, and whose grace period is over, must not keep
//! other fibers from ending.
//!
//! The next fiber that parks starts a helper fiber. The helper writes a line that names the fiber and its position,
//! and has it killed or abandoned: see [`super::state::ending`].

use magnus::typed_data::Obj;
use magnus::{Error, Module, RClass, RModule, Ruby, Symbol, TryConvert, Value, method, prelude::*};

use super::Scheduler;
use super::fibers::FiberKey;
use super::state::ending::{Abandoned, EndAction};
use super::unhandled::propagates_to_thread;
use crate::ruby::constant::Constant;
use crate::ruby::value::PinnedValue;
use crate::ruby::{error, fiber, gc};

/// Defines the private method that `lib/heddle/reports/abandonment.rb` calls.
pub fn define(class: RClass) -> Result<(), Error> {
    class.define_private_method("abandon", method!(abandon, 1))
}

/// Starts a helper fiber that ends the fiber `overdue`. A fiber of its own does that, since writing a line may wait.
#[cold]
pub fn abandon_by_helper(ruby: &Ruby, scheduler: &Scheduler, overdue: FiberKey) -> Result<(), Error> {
    struct Helper;

    impl fiber::FiberBody for Helper {
        fn run(ruby: &Ruby, _: Value, arguments: &[Value]) -> Result<Value, Error> {
            let nil = ruby.qnil().as_value();
            let Some(overdue) = arguments.first() else { return Ok(nil) };
            match report_and_end(ruby, PinnedValue::assume_marked(*overdue)) {
                // Ruby would raise an error of the helper in the fiber that continues. Only what is meant for the
                // whole thread may propagate.
                Err(error) if error::exception_of(&error).is_none() || propagates_to_thread(ruby, &error) => Err(error),
                _ => Ok(nil),
            }
        }
    }

    let nil = ruby.qnil().as_value();
    let Some(fiber) = scheduler.state.borrow().fibers.get(overdue).map(|record| record.fiber) else { return Ok(()) };
    let start = |helper| fiber::start(helper, &[fiber.get()]);
    let started = fiber::spawn::<Helper>(nil, nil).and_then(start);
    match started {
        Err(error) if error::is_lack_of_stacks(ruby, &error) => {
            scheduler.state.borrow_mut().prolong_grace(overdue);
            Ok(())
        }
        other => other,
    }
}

fn report_and_end(ruby: &Ruby, fiber: PinnedValue) -> Result<(), Error> {
    let scheduler = Obj::<Scheduler>::try_convert(fiber::scheduler())?;
    let block = {
        let state = scheduler.state.borrow();
        let Some(record) = state.fibers.find(fiber).and_then(|key| state.fibers.get(key)) else { return Ok(()) };
        record.block
    };
    static ABANDONMENT: Constant = Constant::new(&["Heddle", "Abandonment"]);
    let grace = scheduler.options.borrow().grace.map(|grace| grace.as_secs_f64());
    ABANDONMENT
        .get::<RModule>(ruby)?
        .funcall::<_, _, Value>("abandon", (scheduler, fiber.get(), block.map(PinnedValue::get), grace))
        .map(|_| ())
}

/// Ends a fiber whose grace period is over. Returns `:killed` if the fiber ends when it runs next; `:abandoned` if it
/// never runs again; `:forgotten` if it survived being killed, and never runs again; nil if it has ended.
fn abandon(ruby: &Ruby, scheduler: &Scheduler, target: Value) -> Result<Option<Symbol>, Error> {
    let stop = PinnedValue::assume_marked(error::stop_class(ruby)?.as_value());
    let (outcome, abandoned) = {
        let mut state = scheduler.state.borrow_mut();
        let key = state.fibers.find(PinnedValue::assume_marked(target));
        let Some((key, action)) = key.and_then(|key| Some((key, state.end_action(key)?))) else { return Ok(None) };
        match action {
            EndAction::Kill => {
                state.kill(key, stop);
                ("killed", Abandoned::default())
            }
            EndAction::Abandon => ("abandoned", state.abandon(key)),
            EndAction::Forget => ("forgotten", state.abandon(key)),
        }
    };
    if let Some(reactor) = scheduler.io.reactor.borrow_mut().as_mut() {
        abandoned.operations.iter().for_each(|token| reactor.cancel(*token));
    }
    // The kernel may still write to buffers of these fibers, and Ruby's lists of waiters point into their stacks.
    abandoned.fibers.iter().for_each(|fiber| gc::keep_for_ever(*fiber));
    Ok(Some(ruby.to_symbol(outcome)))
}
