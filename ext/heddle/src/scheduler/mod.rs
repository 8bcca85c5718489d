//! `Heddle::Scheduler`: the object whose hooks Ruby calls.
//!
//! There is no loop fiber. A fiber that waits takes the next fiber off the run queue and switches straight to it.
//!
//! * [`state`]: fibers, run queue, timers and operations. Pure Rust, never calls Ruby.
//! * [`fibers`]: all fibers. [`record`]: what is known about one, and the states of its life.
//! * [`enter`]: the beginning and the end of a hook.
//! * [`park`]: the only place that switches fibers. [`pick`]: to which. [`poll`]: the wait in the kernel.
//! * [`waiting`]: a wait for an event.
//! * [`start`]: a fiber's first and last steps. [`shutdown`]: from `close` to the last fiber's end.
//! * [`owner`]: the thread and the process that the scheduler belongs to.
//! * [`io`], [`reactor`]: the backend and the thread pools.
//! * [`ticking`]: when the ticker ticks. [`masks`]: masks of `Thread.handle_interrupt`, one stack for each fiber.
//! * [`root_interrupts`]: signals and `Thread#raise` reach the root fiber.
//! * [`pending_raises`], [`abandonment`]: exceptions for other fibers, and fibers that do not end.
//! * [`stalls`]: fibers that keep the thread for too long.
//! * [`tracing`]: the schedulers' parts in a trace. [`trace_session`]: the trace.
//! * [`lock_handoff`]: fairness among fibers that never have to wait.

mod abandonment;
pub mod closing_numbers;
mod ended_stacks;
pub mod enter;
mod fiber_key;
mod io;
mod lock_handoff;
pub mod options;
pub mod owner;
mod park;
mod pending_raises;
mod pick;
mod poll;
pub mod raise;
pub mod reactor;
pub mod record;
pub mod registry;
pub mod root_interrupts;
pub mod shutdown;
pub mod stalls;
pub mod start;
pub mod state;
mod task_data;
pub mod ticking;
pub mod trace_session;
pub mod tracing;
pub mod wait;
pub mod waiting;

use std::cell::{Cell, RefCell};

use magnus::gc::Marker;
use magnus::{DataTypeFunctions, Error, Module, RModule, Ruby, TypedData};

use self::ended_stacks::EndedStacks;
use self::io::Io;
use self::options::Options;
use self::owner::Owner;
use self::root_interrupts::{RootGate, RootInterrupts};
use self::stalls::Stalls;
use self::state::State;
use self::ticking::Preemption;
use crate::ruby::gvl::Collecting;
use crate::ruby::pending_interrupts;

pub use self::enter::HookGuard;

/// A scheduler. It belongs to the thread that calls its first hook.
///
/// Other threads may call `unblock`, `fiber_interrupt`, `inspect` and the garbage collector whenever the owner is
/// without the GVL. They use `state`, `io.waker` and `preemption.ticker` only. The GVL guards all cells, and no borrow
/// of `state` lives across a call into Ruby.
#[derive(TypedData, Default)]
#[magnus(class = "Heddle::Scheduler", mark, free_immediately)]
pub struct Scheduler {
    pub options: RefCell<Options>,
    /// Whether `initialize` has been called.
    pub initialized: Cell<bool>,
    /// Whether `close` is under way.
    pub closing: Cell<bool>,
    pub state: RefCell<State>,
    pub owner: Owner,
    pub io: Io,
    pub preemption: Preemption,
    pub root: RootInterrupts,
    pub ended_stacks: EndedStacks,
    pub stalls: Stalls,
}

// SAFETY: magnus asks for this because the garbage collector may free the object on any thread. All access, including
// that, happens with the GVL, so never from two threads at once. When the object is freed, the backend needs its own
// thread no more, or is abandoned (see `Reactor::release`).
unsafe impl Send for Scheduler {}

impl DataTypeFunctions for Scheduler {
    fn mark(&self, marker: &Marker) {
        self.state.borrow().mark(marker);
        self.root.mark(marker);
        self.io.call_sites.borrow().mark(marker);
        self.preemption.masks.get().inspect(|masks| masks.mark(marker));
        self.stalls.mark(marker);
        let threads = [self.owner.thread.get(), self.owner.fall_back.get(), self.io.opened_by.get()];
        threads.into_iter().flatten().for_each(|value| value.mark(marker));
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        // SAFETY: the collector drops this, with the GVL.
        registry::remove_open(&unsafe { Collecting::assume() }, self);
        self.release_resources(self.is_inherited());
    }
}

/// Sets the gate of the root's interrupts, and defines what `lib/heddle/reports.rb` and `stalls/` call.
pub fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    pending_interrupts::set_gate::<RootGate>(ruby)?;
    abandonment::define(native)?;
    stalls::define(ruby, ruby.class_object().const_get("Heddle")?)
}
