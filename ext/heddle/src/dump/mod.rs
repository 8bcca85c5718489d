//! What `Heddle.fibers`, `Heddle.dump` and `Heddle.dump_on` need of Rust. Not hooks: `lib/heddle/observability` calls
//! these methods, on any thread, and in trap handlers. [`insides`] is for a spec.

pub mod accounts;
mod insides;
pub mod on_signal;
mod snapshot;
mod threads;

use magnus::typed_data::Obj;
use magnus::{Error, Object, RArray, RModule, Ruby, Value, function};

use crate::ruby::hidden_variable::HiddenVariable;
use crate::ruby::insides as ruby_insides;
use crate::ruby::value::PinnedValue;
use crate::ruby::{fiber, ractor, thread};
use crate::scheduler::{Scheduler, registry};
use crate::ticker::signal_disposition;

/// Defines the methods.
pub fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    accounts::define(ruby, native)?;
    native.define_singleton_method("snapshot", function!(snapshot::snapshot, 1))?;
    native.define_singleton_method("epoch_of", function!(snapshot::epoch_of, 2))?;
    native.define_singleton_method("owner", function!(owner, 1))?;
    native.define_singleton_method("open_schedulers", function!(open_schedulers, 0))?;
    native.define_singleton_method("fiber_address", function!(fiber_address, 1))?;
    native.define_singleton_method("fiber_serial", function!(fiber_serial, 1))?;
    native.define_singleton_method("holder_number", function!(holder_number, 1))?;
    native.define_singleton_method("queue_origin", function!(queue_origin, 1))?;
    // Queues of every Ractor do.
    ractor::safe(ruby, || native.define_singleton_method("note_queue_origin", function!(note_queue_origin, 2)))?;
    native.define_singleton_method("signal_handler", function!(signal_disposition::handler_of, 1))?;
    native.define_singleton_method("watch_dump_signal", function!(on_signal::watch, 1))?;
    native.define_singleton_method("dump_begins", function!(on_signal::begin, 0))?;
    native.define_singleton_method("insides", function!(insides::describe, 0))?;
    native.define_singleton_method("pinned?", function!(insides::is_pinned, 1))
}

/// All schedulers of this process that are open.
fn open_schedulers(ruby: &Ruby) -> Result<RArray, Error> {
    registry::objects(ruby)
}

/// What a Queue has noted of its origin.
static QUEUE_ORIGIN: HiddenVariable = HiddenVariable::new("__heddle_queue_origin__");

/// What [`note_queue_origin`] has noted; nil if it has not.
fn queue_origin(queue: Value) -> Value {
    QUEUE_ORIGIN.get(queue)
}

/// Lets the Queue keep it.
fn note_queue_origin(queue: Value, origin: Value) -> Result<(), Error> {
    QUEUE_ORIGIN.set(queue, origin)
}

/// The thread that the scheduler belongs to; nil before its first hook, and in a forked child that has not used it.
fn owner(ruby: &Ruby, scheduler: Obj<Scheduler>) -> Option<Value> {
    let used_here = !scheduler.is_inherited() || scheduler.is_owned_by(thread::current(ruby));
    scheduler.owner.thread.get().filter(|_| used_here).map(PinnedValue::get)
}

/// What [`holder_number`] returns for each Mutex that the fiber holds, on Ruby 3.3 and 3.4.
fn fiber_address(ruby: &Ruby, target: Value) -> Result<usize, Error> {
    fiber::expect_fiber(ruby, target)?;
    Ok(ruby_insides::fiber_address(target))
}

/// What [`holder_number`] returns for each Mutex that the fiber holds, on Ruby 4.0.
fn fiber_serial(ruby: &Ruby, target: Value) -> Result<Option<usize>, Error> {
    fiber::expect_fiber(ruby, target)?;
    Ok(ruby_insides::fiber_serial(target))
}

/// See [`ruby_insides::holder_number`]; nil for an object that is no Mutex.
fn holder_number(ruby: &Ruby, mutex: Value) -> Result<Option<usize>, Error> {
    Ok(if thread::is_mutex(ruby, mutex)? { Some(ruby_insides::holder_number(mutex)) } else { None })
}
