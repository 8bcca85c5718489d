//! What a scheduler needs for I/O: the backend, and pools of threads.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use heddle_core::error::Exhausted;
use heddle_core::io::slow_file_backoff::SlowFileBackoff;
use heddle_core::threads::waker::Waker;
use heddle_core::threads::workers::WorkerPool;
use magnus::{Error, RModule, Ruby, Value, prelude::*};

use super::options::{Options, StatsLevel};
use super::owner::ForkCell;
use super::reactor::Reactor;
use super::{Scheduler, registry};
use crate::ruby::call_sites::CallSites;
use crate::ruby::constant::Constant;
use crate::ruby::nogvl::without_gvl;
use crate::ruby::value::PinnedValue;
use crate::ruby::{error, fiber, interrupts, thread};

/// See the module.
#[derive(Default)]
pub struct Io {
    /// The backend. Borrowed while the owner waits in the kernel. Created by the first hook, released by `close`,
    /// created again in a forked child.
    pub reactor: ForkCell<Reactor>,
    /// Ends the owner's wait in the kernel.
    pub waker: RefCell<Option<Waker>>,
    /// The threads that read and write files for the epoll backend.
    pub workers: RefCell<Option<Arc<WorkerPool>>>,
    /// The threads that look up host names, created with the first look-up. A separate pool, since a dead resolver can
    /// block all of them for half a minute.
    pub names: RefCell<Option<Arc<WorkerPool>>>,
    /// The name of the backend that was set up last. Other threads may read it while the owner waits in the kernel.
    pub backend_name: Cell<Option<&'static str>>,
    /// See [`heddle_core::Backend::is_batching`].
    pub batches: Cell<bool>,
    /// The thread that set up the backend. Only that thread can use an io_uring.
    pub opened_by: Cell<Option<PinnedValue>>,
    /// Whether other threads wanted the GVL at the end of the last wait.
    pub is_gvl_wanted: Cell<bool>,
    pub slow_file_backoff: RefCell<SlowFileBackoff>,
    pub call_sites: RefCell<CallSites>,
    /// Whether Ruby is about to close a file that another machine or another process serves.
    pub closes_remote: Cell<bool>,
}

impl Io {
    /// Removes and returns the pools.
    pub fn take_pools(&self) -> impl Iterator<Item = Arc<WorkerPool>> {
        [self.workers.take(), self.names.take()].into_iter().flatten()
    }
}

/// Opens the backend. If descriptors or memory are used up, it tries again: after a collection, as Ruby does for files,
/// since the program may have lost other schedulers; and then for as long as the kernel may need to free their rings.
fn open_reactor(ruby: &Ruby, options: Options, workers: &Arc<WorkerPool>) -> Result<Reactor, Error> {
    const ATTEMPTS: u32 = 100;
    const PAUSE: Duration = Duration::from_millis(10);
    let mut attempts = 0;
    loop {
        let error = match Reactor::new(options.backend, options.busy_poll, Arc::clone(workers)) {
            Ok(reactor) => return Ok(reactor),
            Err(error) => error,
        };
        match error.exhausted() {
            Some(_) if attempts == 0 => ruby.gc_start(),
            Some(Exhausted::Memory) if attempts < ATTEMPTS => {
                if without_gvl(ruby, || std::thread::sleep(PAUSE), &|| {}).is_none() {
                    interrupts::check(ruby)?;
                }
            }
            _ => return Err(error::from_core(ruby, error)),
        }
        attempts += 1;
    }
}

impl Scheduler {
    /// Changes Ruby's own classes, unless that has been done; see `lib/heddle/patches.rb`.
    pub fn install_patches(ruby: &Ruby) -> Result<(), Error> {
        static PATCHES: Constant = Constant::new(&["Heddle", "Patches"]);
        PATCHES.get::<RModule>(ruby)?.funcall::<_, _, Value>("install", ()).map(|_| ())
    }

    /// Sets up the backend and the workers, unless they exist.
    pub fn open(&self, ruby: &Ruby) -> Result<(), Error> {
        if self.io.reactor.borrow().is_some() {
            return Ok(());
        }
        if !self.initialized.get() {
            return Err(error::of(
                ruby.exception_type_error(),
                "uninitialized Heddle::Scheduler: call `super` in initialize",
            ));
        }
        Self::install_patches(ruby)?;
        let options = *self.options.borrow();
        let is_detailed = options.stats == StatsLevel::Detailed;
        let vm_stack_size = fiber::vm_stack_size(ruby);
        {
            let mut state = self.state.borrow_mut();
            state.fibers.set_policy(options.policy);
            state.endings.set_grace(options.grace);
            state.look_ahead.set_vm_stack_size(vm_stack_size);
            if is_detailed {
                state.time_slices(None);
                state.count_times(None, true);
            }
        }
        if is_detailed {
            static ACCOUNTING: Constant = Constant::new(&["Heddle", "Accounting"]);
            ACCOUNTING.get::<RModule>(ruby)?.funcall::<_, _, Value>("begin", ())?;
        }
        let workers =
            Arc::clone(self.io.workers.borrow_mut().get_or_insert_with(|| Arc::new(WorkerPool::new(options.workers))));
        let reactor = open_reactor(ruby, options, &workers)?;
        // A signal's handler may have called a hook meanwhile, and have set up a backend, by which its fibers wait.
        if self.io.reactor.borrow().is_some() {
            return Ok(());
        }
        self.io.backend_name.set(Some(reactor.backend.name()));
        self.io.batches.set(reactor.backend.is_batching());
        *self.io.waker.borrow_mut() = Some(reactor.waker());
        *self.io.reactor.borrow_mut() = Some(reactor);
        // SAFETY: `Scheduler::mark` marks it.
        self.io.opened_by.set(Some(unsafe { PinnedValue::assume_marked(thread::current(ruby)) }));
        self.state.borrow_mut().counters.open();
        registry::add_open(ruby, self);
        self.join_trace(ruby, None)
    }

    /// Ends the owner's wait in the kernel, or makes the owner check soon which fibers are runnable. Any thread may call
    /// it.
    pub fn wake_owner(&self) {
        self.allow_ticks();
        if let Some(waker) = self.io.waker.borrow().as_ref() {
            waker.wake();
        }
    }
}
