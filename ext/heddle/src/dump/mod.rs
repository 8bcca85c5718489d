//! What `Heddle.fibers`, `Heddle.dump` and `Heddle.dump_on` need of Rust. Not hooks: `lib/heddle/observability` calls
//! these private methods, on any thread, and in trap handlers.

mod signal;
mod snapshot;
mod threads;

use magnus::typed_data::Obj;
use magnus::{Error, Module, Object, RArray, RClass, Ruby, Value, function, method};

use crate::ruby::value::PinnedValue;
use crate::ruby::{error, fiber, thread};
use crate::scheduler::{Scheduler, registry};
use crate::ticker::signal_disposition;

/// Defines the methods.
pub fn define(class: RClass) -> Result<(), Error> {
    class.define_private_method("snapshot", method!(snapshot::snapshot, 0))?;
    class.define_private_method("owner", method!(owner, 0))?;
    class.define_singleton_method("open_schedulers", function!(open_schedulers, 0))?;
    class.define_singleton_method("fiber_address", function!(fiber_address, 1))?;
    class.define_singleton_method("holder_address", function!(holder_address, 1))?;
    class.define_singleton_method("signal_handler", function!(signal_disposition::handler_of, 1))?;
    class.define_singleton_method("watch_dump_signal", function!(signal::watch, 1))?;
    class.define_singleton_method("dump_begins", function!(signal::begin, 0))
}

/// All schedulers of this process that are open.
fn open_schedulers(ruby: &Ruby) -> Result<RArray, Error> {
    registry::objects(ruby)
}

/// The thread that the scheduler belongs to; nil before its first hook, and in a forked child that has not used it.
fn owner(_: &Ruby, scheduler: Obj<Scheduler>) -> Option<Value> {
    let used_here = !scheduler.is_inherited() || scheduler.is_owned_by(thread::current());
    scheduler.owner.thread.get().filter(|_| used_here).map(PinnedValue::get)
}

/// A number that [`holder_address`] returns for each Mutex that the fiber holds.
fn fiber_address(ruby: &Ruby, target: Value) -> Result<usize, Error> {
    error::expect_fiber(ruby, target)?;
    Ok(fiber::addresses(PinnedValue::assume_marked(target)).1)
}

/// See [`thread::holder_address`]; nil for an object that is no Mutex.
fn holder_address(ruby: &Ruby, mutex: Value) -> Result<Option<usize>, Error> {
    Ok(if thread::is_mutex(ruby, mutex)? { Some(thread::holder_address(mutex)) } else { None })
}
