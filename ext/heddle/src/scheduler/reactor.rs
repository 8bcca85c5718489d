//! A backend, which asks the kernel, and a mailbox for the results of worker threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heddle_core::io::backend::epoll::Epoll;
use heddle_core::io::backend::uring::Uring;
use heddle_core::io::busy_poll::{BUSY_POLL_TIME, BusyPoll};
use heddle_core::io::operations::Operations;
use heddle_core::threads::mailbox::Mailbox;
use heddle_core::threads::waker::Waker;
use heddle_core::threads::workers::WorkerPool;
use heddle_core::{Backend, Completion, Error};

use super::options::BackendChoice;
use crate::ruby::thread;

/// The scheduler's source of completions. Only the owner's thread uses it.
pub struct Reactor {
    /// Takes operations, and cancels them.
    pub backend: Box<dyn Backend>,
    mailbox: Arc<Mailbox<Completion>>,
    workers: Arc<WorkerPool>,
    waker: Waker,
    arrived: Vec<Completion>,
    busy_poll: BusyPoll,
}

impl Reactor {
    /// Sets up the backend that was chosen. `may_poll` permits busy polls.
    pub fn new(choice: BackendChoice, may_poll: bool, workers: Arc<WorkerPool>) -> Result<Self, Error> {
        let backend = open_backend(choice, &workers)?;
        let waker = backend.waker();
        let mailbox = Arc::new(Mailbox::new(waker.clone()));
        let busy_poll = if may_poll { BusyPoll::for_process() } else { BusyPoll::never() };
        Ok(Reactor { backend, mailbox, workers, waker, arrived: Vec::new(), busy_poll })
    }

    /// Ends a wait, from another thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Where worker threads put completions.
    pub fn mailbox(&self) -> Arc<Mailbox<Completion>> {
        Arc::clone(&self.mailbox)
    }

    /// Cancels the operations on closed numbers.
    #[inline]
    pub fn cancel_closed<F: Copy + PartialEq, M: Clone>(&mut self, operations: &mut Operations<F, M>) {
        while let Some(token) = operations.next_to_cancel() {
            self.backend.cancel(token);
        }
    }

    /// From here on `unblock` and the workers wake this thread. The state already has all that they did before.
    pub fn arm(&self) {
        if self.backend.is_idle() { self.waker.arm_parking() } else { self.waker.arm() }
    }

    /// The inverse of [`Reactor::arm`].
    pub fn disarm(&self) {
        self.waker.disarm();
    }

    /// Polls for completions without blocking.
    pub fn poll_now(&mut self) -> Result<(), Error> {
        // Spares each tick a system call that finds nothing.
        if self.backend.is_idle() { Ok(()) } else { self.backend.wait(Some(Duration::ZERO)) }
    }

    /// See [`Backend::wait`]; also ends when a worker has finished. Called between `arm` and `disarm`, without the
    /// GVL. Returns whether a busy poll has found an event, so that the thread did not sleep.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<bool, Error> {
        if !self.mailbox.is_empty() {
            return self.poll_now().map(|()| false);
        }
        if self.backend.is_idle() {
            self.waker.park(timeout);
            return Ok(false);
        }
        let mut timeout = timeout;
        if self.busy_poll.is_worthwhile(timeout) {
            let begun = Instant::now();
            if self.poll_repeatedly()? {
                return Ok(true);
            }
            // It has lasted longer than intended if the kernel let others run meanwhile, or the process was stopped.
            timeout = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
        }
        let begun = Instant::now();
        let waited = self.backend.wait(timeout);
        self.busy_poll.waited(begun.elapsed(), timeout);
        waited.map(|()| false)
    }

    /// Polls for [`BUSY_POLL_TIME`] at most. Returns whether an event has come.
    fn poll_repeatedly(&mut self) -> Result<bool, Error> {
        if self.poll_once()? {
            // The event had come before, so it says nothing about busy polling.
            return Ok(true);
        }
        let begun = Instant::now();
        let mut found = false;
        while !found && begun.elapsed() < BUSY_POLL_TIME {
            std::hint::spin_loop();
            found = self.poll_once()?;
        }
        self.busy_poll.ended(found);
        Ok(found)
    }

    /// Polls without blocking. Returns whether an event has come. Called between `arm` and `disarm`.
    pub fn poll_once(&mut self) -> Result<bool, Error> {
        self.poll_now()?;
        self.backend.completions(&mut self.arrived);
        Ok(!self.arrived.is_empty() || !self.waker.is_armed())
    }

    /// Takes all completions that have arrived.
    pub fn completions(&mut self) -> std::vec::Drain<'_, Completion> {
        self.backend.completions(&mut self.arrived);
        self.mailbox.drain(&mut self.arrived);
        self.arrived.drain(..)
    }

    /// Releases the backend and the workers. `inherited` says that they belong to the parent of this process.
    pub fn release(self, inherited: bool) {
        if inherited {
            self.backend.abandon();
            self.workers.abandon();
        }
    }
}

fn open_backend(choice: BackendChoice, workers: &Arc<WorkerPool>) -> Result<Box<dyn Backend>, Error> {
    let epoll = || Epoll::new(Arc::clone(workers)).map(|backend| Box::new(backend) as Box<dyn Backend>);
    match choice {
        BackendChoice::Epoll => epoll(),
        BackendChoice::Uring => uring(),
        BackendChoice::Auto => match uring() {
            // io_uring is missing in many containers, in old kernels, and where the limit of locked memory is reached.
            // epoll works everywhere.
            Err(Error::BackendUnavailable { .. }) => epoll(),
            result => result,
        },
    }
}

fn uring() -> Result<Box<dyn Backend>, Error> {
    Uring::new(!thread::may_migrate()).map(|backend| Box::new(backend) as Box<dyn Backend>)
}
