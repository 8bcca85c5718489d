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
mod interrupt_proxy;
mod io_select;
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
use crate::ruby::value::{any_to_s, find_class};
use crate::ruby::{fork, insides, ractor, thread};
use crate::scheduler::options::Options;
use crate::scheduler::{self, Scheduler, registry};
use crate::ticker::{TickerChoice, signal_disposition};
use crate::{dump, preempt, tasks, trace};

/// Defines `Heddle::Scheduler` and its methods.
pub fn define(ruby: &Ruby, heddle: RModule) -> Result<(), Error> {
    let error = heddle.define_error("Error", ruby.exception_standard_error())?;
    heddle.define_error("BackendUnavailable", error)?;
    heddle.define_error("Stop", ruby.exception_exception())?;

    let class = heddle.define_class("Scheduler", ruby.class_object())?;
    magnus::Class::define_alloc_func::<Scheduler>(class);
    find_class::<Scheduler>(ruby);
    thread::find_mutex_class(ruby);
    ractor::safe(|| class.define_method("initialize", method!(initialize, -1)))?;
    class.define_private_method("initialize_copy", method!(initialize_copy, 1))?;
    class.define_method("backend", method!(backend, 0))?;
    class.define_method("inspect", method!(inspect, 0))?;
    class.define_private_method("raw_stats", method!(stats::raw_stats, 0))?;
    class.define_private_method("count_failure", method!(stats::count_failure, 0))?;
    class.define_private_method("name_fiber", method!(Scheduler::name_fiber, 2))?;

    class.define_method("fiber", method!(lifecycle::fiber, -1))?;
    class.define_private_method("start_yielding", method!(lifecycle::start_yielding, 3))?;
    let body = heddle.define_module("FiberBody")?;
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
    class.define_private_method("sleep_was_ended", method!(blocking::sleep_was_ended, 0))?;
    class.define_method("yield", method!(blocking::yield_now, 0))?;

    class.define_method("io_wait", method!(io_wait::io_wait, 3))?;
    class.define_method("io_read", method!(io_transfer::io_read, 4))?;
    class.define_method("io_write", method!(io_transfer::io_write, 4))?;
    class.define_method("io_pread", method!(io_transfer::io_pread, 5))?;
    class.define_method("io_pwrite", method!(io_transfer::io_pwrite, 5))?;
    class.define_private_method("write_at", method!(io_transfer::write_at, 3))?;
    class.define_method("io_select", method!(io_select::io_select, -1))?;
    class.define_method("io_close", method!(closing::io_close, 1))?;

    class.define_method("timeout_after", method!(timeout_after::timeout_after, 3))?;
    class.define_method("process_wait", method!(process_wait::process_wait, 2))?;
    class.define_method("address_resolve", method!(address_resolve::address_resolve, 1))?;
    class.define_private_method("look_up", method!(address_resolve::look_up, 4))?;
    class.define_singleton_method("resolution_error", function!(address_resolve::resolution_error, 3))?;
    #[cfg(any(not(ruby_gte_3_4), ruby_gte_4_0))]
    class.define_method("blocking_operation_wait", method!(blocking_operation_wait::blocking_operation_wait, 1))?;

    class.define_method("fiber_interrupt", method!(closing::fiber_interrupt, 2))?;
    scheduler::define(ruby, class)?;
    preempt::define(ruby, heddle, class)?;
    tasks::define(class)?;
    dump::define(class)?;
    trace::define(ruby, heddle, class)?;
    ractor::safe(|| {
        class.define_singleton_method("raising", function!(fiber_raise::raising, 0))?;
        class.define_singleton_method("killing", function!(fiber_raise::killing, 1))?;
        descriptors::define(ruby, heddle, class)
    })?;
    class.define_singleton_method("handles_interrupts?", function!(signal_handlers::handles_interrupts, 0))?;
    class.define_singleton_method("send_to_root", function!(signal_handlers::send_to_root, 1))?;
    class.define_singleton_method("record_interrupt", function!(signal_handlers::record_interrupt, 1))?;
    registry::define(ruby)?;
    class.define_singleton_method("insides", function!(insides::describe, 0))?;
    class.define_singleton_method("pinned?", function!(insides::is_pinned, 1))?;
    for name in INTERNALS {
        class.funcall::<_, _, Value>("private_class_method", (name,))?;
    }
    Ok(())
}

/// Private class methods: `lib/heddle` calls them, and a spec the last two.
const INTERNALS: [&str; 21] = [
    "handles_interrupts?",
    "send_to_root",
    "record_interrupt",
    "raising",
    "killing",
    "closing",
    "resuming",
    "transferring",
    "forked",
    "open_schedulers",
    "fiber_address",
    "holder_address",
    "signal_handler",
    "watch_dump_signal",
    "dump_begins",
    "tracing?",
    "reserve_trace",
    "generation",
    "state",
    "insides",
    "pinned?",
];

fn initialize(ruby: &Ruby, scheduler: Obj<Scheduler>, arguments: &[Value]) -> Result<(), Error> {
    ractor::expect_main(ruby, "Heddle::Scheduler")?;
    if scheduler.io.backend_name.get().is_some() {
        return Err(Error::new(ruby.exception_type_error(), "already initialized scheduler"));
    }
    let options = Options::parse(ruby, arguments)?;
    if options.ticker == TickerChoice::Signal {
        signal_disposition::expect_free(ruby, options.signal)?;
    }
    *scheduler.options.borrow_mut() = options;
    scheduler.owner.generation.set(fork::generation());
    scheduler.initialized.set(true);
    registry::register(scheduler)?;
    scheduler.open(ruby)
}

/// `dup` and `clone`. A copy would share neither the fibers nor the descriptors.
fn initialize_copy(ruby: &Ruby, scheduler: Obj<Scheduler>, _: Value) -> Result<Value, Error> {
    // SAFETY: the name is copied before Ruby is called again.
    let class = unsafe { scheduler.class().name().into_owned() };
    Err(Error::new(ruby.exception_type_error(), format!("can't copy {class}")))
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
