//! What a scheduler needs for I/O: the backend, and pools of threads.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use heddle_core::slow_file_backoff::SlowFileBackoff;
use heddle_core::waker::Waker;
use heddle_core::workers::WorkerPool;
use magnus::{Error, Ruby};

use super::fibers::FiberKey;
use super::options::StatsLevel;
use super::reactor::Reactor;
use super::{Scheduler, registry};
use crate::ruby::call_sites::CallSites;
use crate::ruby::value::PinnedValue;
use crate::ruby::{error, thread};

/// See the module.
#[derive(Default)]
pub struct Io {
    /// The backend. Borrowed while the owner waits in the kernel. Created by the first hook, released by `close`,
    /// created again in a forked child.
    pub reactor: RefCell<Option<Reactor>>,
    /// Ends the owner's wait in the kernel.
    pub waker: RefCell<Option<Waker>>,
    /// The threads that read and write files for the poll backend.
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
    pub slow_file_backoff: RefCell<SlowFileBackoff>,
    pub call_sites: RefCell<CallSites>,
    /// Whether Ruby is about to close a file that another machine or another process serves.
    pub closes_remote: Cell<bool>,
    /// Fibers whose wait on an IO was ended because a blocking fiber of their thread closes the IO.
    pub leaving_fibers: RefCell<Vec<FiberKey>>,
    /// An Array of proxies of such fibers; see `hooks/interrupt_proxy.rs`.
    pub leaving_proxies: Cell<Option<PinnedValue>>,
}

impl Io {
    /// Removes and returns the pools.
    pub fn take_pools(&self) -> impl Iterator<Item = Arc<WorkerPool>> {
        [self.workers.take(), self.names.take()].into_iter().flatten()
    }

    /// Ends the borrows that a forked child has inherited: those of a thread that waited in the kernel, and does not
    /// exist in the child.
    pub fn end_borrows(&mut self) {
        self.reactor = RefCell::new(self.reactor.get_mut().take());
    }
}

impl Scheduler {
    /// Sets up the backend and the workers, unless they exist.
    pub fn open(&self, ruby: &Ruby) -> Result<(), Error> {
        if self.io.reactor.borrow().is_some() {
            return Ok(());
        }
        if !self.initialized.get() {
            return Err(Error::new(
                ruby.exception_type_error(),
                "uninitialized Heddle::Scheduler: call `super` in initialize",
            ));
        }
        let options = *self.options.borrow();
        {
            let mut state = self.state.borrow_mut();
            state.queue.set_policy(options.policy);
            state.grace = options.grace;
            if options.stats == StatsLevel::Detailed {
                state.time_slices(None);
            }
        }
        let workers =
            Arc::clone(self.io.workers.borrow_mut().get_or_insert_with(|| Arc::new(WorkerPool::new(options.workers))));
        let reactor = Reactor::new(options.backend, workers).map_err(|error| error::from_core(ruby, error))?;
        self.io.backend_name.set(Some(reactor.backend_name()));
        self.io.batches.set(reactor.is_batching());
        *self.io.waker.borrow_mut() = Some(reactor.waker());
        *self.io.reactor.borrow_mut() = Some(reactor);
        self.io.opened_by.set(Some(thread::current()));
        self.state.borrow_mut().counters.open();
        registry::add(self);
        self.join_trace(None)
    }

    /// Ends the owner's wait in the kernel, or makes the owner check soon which fibers are due. Any thread may call
    /// it.
    pub fn wake_owner(&self) {
        self.allow_ticks();
        if let Some(waker) = self.io.waker.borrow().as_ref() {
            waker.wake();
        }
    }
}
