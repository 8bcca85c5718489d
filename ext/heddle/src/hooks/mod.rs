//! The hooks that Ruby calls, one file per group.
//!
//! Unless its file says otherwise, a hook exists on every Ruby and means the same. `lib/heddle/scheduler.rb` documents
//! the hooks for users.

mod address_resolve;
mod blocking;
#[cfg(any(not(ruby_gte_3_4), ruby_gte_4_0))]
mod blocking_operation_wait;
mod closing;
mod fiber_raise;
mod io_transfer;
mod io_wait;
mod lifecycle;
mod process_wait;
mod signal_handlers;
mod stats;
mod timeout_after;

use magnus::typed_data::Obj;
use magnus::{Error, Module, Object, RModule, RString, Ruby, Symbol, Value, function, method, prelude::*};

use crate::io::descriptors;
use crate::ruby::error;
use crate::ruby::hook_interface::{self, TRANSFERS_ARE_SINGLE};
use crate::ruby::value::{self, any_to_s, find_class};
use crate::ruby::{fork, ractor, thread};
use crate::scheduler::options::Options;
use crate::scheduler::{self, Scheduler, registry};
use crate::ticker::{TickerChoice, signal_disposition};
use crate::{dump, preempt, tasks, trace};

/// Defines `Heddle::Scheduler`, whose methods are the hooks and what programs call, and `Heddle::Native`: all that
/// `lib/heddle` calls besides.
pub fn define(ruby: &Ruby, heddle: RModule) -> Result<(), Error> {
    let error = heddle.define_error("Error", ruby.exception_standard_error())?;
    heddle.define_error("BackendUnavailable", error)?;
    heddle.define_error("Stop", ruby.exception_exception())?;

    let native = heddle.define_module("Native")?;
    heddle.funcall::<_, _, Value>("private_constant", ("Native",))?;
    let class = heddle.define_class("Scheduler", ruby.class_object())?;
    magnus::Class::define_alloc_func::<Scheduler>(class);
    find_class::<Scheduler>(ruby);
    thread::find_mutex_class(ruby);
    thread::find_raise(ruby)?;
    ractor::safe(ruby, || class.define_method("initialize", method!(initialize, -1)))?;
    class.define_private_method("initialize_copy", method!(initialize_copy, 1))?;
    class.define_method("backend", method!(backend, 0))?;
    class.define_method("inspect", method!(inspect, 0))?;
    native.define_singleton_method("raw_stats", function!(stats::raw_stats, 1))?;
    native.define_singleton_method("count_failure", function!(stats::count_failure, 1))?;

    class.define_method("fiber", method!(lifecycle::fiber, -1))?;
    native.define_singleton_method("start_yielding", function!(lifecycle::start_yielding, 4))?;
    native.define_singleton_method("start_task", function!(lifecycle::start_task, 3))?;
    native.define_singleton_method("start_apart", function!(lifecycle::start_apart, 3))?;
    let body = heddle.define_module("FiberBody")?;
    body.define_singleton_method("assume_map_limit", function!(lifecycle::assume_map_limit, 1))?;
    body.define_singleton_method("begin_block", function!(lifecycle::begin_block, 1))?;
    body.define_module("BlockError")?.define_singleton_method("===", method!(lifecycle::is_block_error, 1))?;
    body.define_singleton_method("end_block", function!(lifecycle::end_block, 3))?;
    body.define_singleton_method("fail_block", function!(lifecycle::fail_block, 3))?;
    body.define_singleton_method("kill_block", function!(lifecycle::kill_block, 2))?;
    class.define_method("run", method!(lifecycle::run, 0))?;
    class.define_method("close", method!(lifecycle::close, 0))?;
    class.define_method("scheduler_close", method!(lifecycle::scheduler_close, 0))?;

    class.define_method("block", method!(blocking::block, -1))?;
    class.define_method("unblock", method!(blocking::unblock, 2))?;
    class.define_method("kernel_sleep", method!(blocking::kernel_sleep, -1))?;
    if hook_interface::has_time_slices(ruby)? {
        class.define_method("yield", method!(blocking::request_tick, 0))?;
    } else {
        class.define_method("yield", method!(blocking::yield_now, 0))?;
    }

    class.define_method("io_wait", method!(io_wait::io_wait, 3))?;
    class.define_method("io_read", method!(io_transfer::io_read::<TRANSFERS_ARE_SINGLE>, 4))?;
    class.define_method("io_write", method!(io_transfer::io_write::<TRANSFERS_ARE_SINGLE>, 4))?;
    class.define_method("io_pread", method!(io_transfer::io_pread::<TRANSFERS_ARE_SINGLE>, 5))?;
    class.define_method("io_pwrite", method!(io_transfer::io_pwrite::<TRANSFERS_ARE_SINGLE>, 5))?;
    // For tests, on every Ruby: these hooks as they are from version 4 of the interface on.
    native.define_singleton_method("read_once", function!(io_transfer::io_read::<true>, 5))?;
    native.define_singleton_method("write_once", function!(io_transfer::io_write::<true>, 5))?;
    native.define_singleton_method("pread_once", function!(io_transfer::io_pread::<true>, 6))?;
    native.define_singleton_method("pwrite_once", function!(io_transfer::io_pwrite::<true>, 6))?;
    native.define_singleton_method("write_at", function!(io_transfer::write_at, 4))?;
    native.define_singleton_method("offset", function!(value::to_long, 1))?;
    class.define_method("io_select", method!(io_wait::io_select, -1))?;
    class.define_method("io_close", method!(closing::io_close, 1))?;

    class.define_method("timeout_after", method!(timeout_after::timeout_after, -1))?;
    class.define_method("process_wait", method!(process_wait::process_wait, 2))?;
    class.define_method("address_resolve", method!(address_resolve::address_resolve, 1))?;
    native.define_singleton_method("look_up", function!(address_resolve::look_up, 5))?;
    native.define_singleton_method("address?", function!(address_resolve::is_address, 1))?;
    native.define_singleton_method("resolution_error", function!(address_resolve::resolution_error, 3))?;
    #[cfg(any(not(ruby_gte_3_4), ruby_gte_4_0))]
    class.define_method("blocking_operation_wait", method!(blocking_operation_wait::blocking_operation_wait, 1))?;

    class.define_method("fiber_interrupt", method!(closing::fiber_interrupt, 2))?;
    scheduler::define(ruby, native)?;
    preempt::define(ruby, heddle, native, class)?;
    tasks::define(ruby, native)?;
    dump::define(ruby, native)?;
    trace::define(ruby, heddle, native)?;
    ractor::safe(ruby, || {
        native.define_singleton_method("locked_again", function!(blocking::locked_again, 0))?;
        native.define_singleton_method("raising", function!(fiber_raise::raising, 0))?;
        native.define_singleton_method("killing", function!(fiber_raise::killing, 1))?;
        native.define_singleton_method("killed", function!(fiber_raise::killed, 1))?;
        native.define_singleton_method("stopping?", function!(fiber_raise::is_stopping, 1))?;
        native.define_singleton_method("being_killed?", function!(fiber_raise::is_being_killed, 0))?;
        native.define_singleton_method("raise_here", function!(fiber_raise::raise_here, 1))?;
        native.define_singleton_method("raised_here", function!(fiber_raise::raised_here, 1))?;
        native.define_singleton_method("gated_mask", function!(signal_handlers::gated_mask, 1))?;
        descriptors::define(ruby, heddle, native)
    })?;
    native.define_singleton_method("handles_interrupts?", function!(signal_handlers::handles_interrupts, 0))?;
    native.define_singleton_method("keep_wake_ups", function!(signal_handlers::keep_wake_ups, 0))?;
    native.define_singleton_method("take_sent", function!(signal_handlers::take_sent, 0))?;
    native.define_singleton_method("send_to_root", function!(signal_handlers::send_to_root, 1))?;
    native.define_singleton_method("record_interrupt", function!(signal_handlers::record_interrupt, 1))?;
    registry::define(ruby)
}

fn initialize(ruby: &Ruby, scheduler: Obj<Scheduler>, arguments: &[Value]) -> Result<(), Error> {
    ractor::expect_main(ruby, "Heddle::Scheduler")?;
    if scheduler.io.backend_name.get().is_some() {
        return Err(error::of(ruby.exception_type_error(), "already initialized scheduler"));
    }
    let (options, cooperative) = Options::parse(ruby, arguments)?;
    if options.ticker == TickerChoice::Signal {
        signal_disposition::expect_free(ruby, options.signal)?;
    }
    *scheduler.options.borrow_mut() = options;
    scheduler.spare_cooperative_code(ruby, cooperative)?;
    scheduler.owner.generation.set(fork::generation());
    scheduler.initialized.set(true);
    registry::add_alive(scheduler)?;
    scheduler.open(ruby)
}

/// `dup` and `clone`. A copy would share neither the fibers nor the descriptors.
fn initialize_copy(ruby: &Ruby, scheduler: Obj<Scheduler>, _: Value) -> Result<Value, Error> {
    // SAFETY: the name is copied before Ruby is called again.
    let class = unsafe { scheduler.class().name().into_owned() };
    Err(error::of(ruby.exception_type_error(), format!("can't copy {class}")))
}

fn backend(ruby: &Ruby, scheduler: &Scheduler) -> Result<Option<Symbol>, Error> {
    if scheduler.io.backend_name.get().is_none() {
        scheduler.open(ruby)?;
    }
    Ok(scheduler.io.backend_name.get().map(|name| ruby.to_symbol(name)))
}

fn inspect(_: &Ruby, scheduler: Obj<Scheduler>) -> Result<String, Error> {
    let backend = scheduler.io.backend_name.get().unwrap_or("none");
    let summary = scheduler.state.borrow().summary();
    let name =
        RString::from_value(any_to_s(scheduler.as_value())?).map_or(Ok(String::new()), |name| name.to_string())?;
    Ok(format!("{} backend={backend} {summary}>", name.trim_end_matches('>')))
}
