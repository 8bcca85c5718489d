//! Jobs for the pool of threads that look up host names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use heddle_core::Completion;
use heddle_core::io::operations::Ticket;
use heddle_core::threads::mailbox::Mailbox;
use heddle_core::threads::workers::WorkerPool;
use magnus::{Error, Ruby};

use crate::ruby::nogvl::without_gvl;
use crate::scheduler::Scheduler;
use crate::scheduler::record::FiberKey;
use crate::scheduler::wait::Wait;

/// How many concurrent look-ups there may be for each worker. A look-up only waits, for half a minute if no server
/// responds.
const NAME_LOOK_UPS_PER_WORKER: usize = 16;

/// Posts the end of a job when it is dropped.
struct Done {
    mailbox: Arc<Mailbox<Completion>>,
    ticket: Ticket,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.mailbox.post(Completion { token: self.ticket.token(), result: 0 });
    }
}

impl Scheduler {
    /// Runs `job` on a thread of the pool, and waits for its end. An exception that is raised into the fiber ends the
    /// wait and abandons the job. So the job must own all that it uses, and does not start if it had not.
    pub fn look_up_in_thread(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        let Some((ticket, done)) = self.begin_work(key) else { return Ok(()) };
        let abandoned = Arc::new(AtomicBool::new(false));
        let is_abandoned = Arc::clone(&abandoned);
        let job = move || {
            // Posts the end of the job, even if the job panics.
            let _done = done;
            if !is_abandoned.load(Ordering::Relaxed) {
                job();
            }
        };
        self.submit_to_names(ruby, job);
        let result = self.wait(ruby, key, wait, None, |state| state.operations.take_result(ticket));
        result.map(|_| ()).inspect_err(|_raised| {
            abandoned.store(true, Ordering::Relaxed);
            self.state.borrow_mut().operations.abandon(ticket);
        })
    }

    fn begin_work(&self, key: FiberKey) -> Option<(Ticket, Done)> {
        let mailbox = self.io.reactor.borrow().as_ref()?.mailbox();
        let ticket = self.state.borrow_mut().begin_operation(key, None);
        Some((ticket, Done { mailbox, ticket }))
    }

    /// Runs `job` on a thread of the pool.
    pub fn submit_to_names(&self, ruby: &Ruby, job: impl FnOnce() + Send + 'static) {
        let names = Arc::clone(self.io.names.borrow_mut().get_or_insert_with(|| {
            Arc::new(WorkerPool::new(self.options.borrow().workers.saturating_mul(NAME_LOOK_UPS_PER_WORKER)))
        }));
        if let Err(job) = names.submit(job) {
            // No thread can be started, so the current one runs the job, and its other fibers wait.
            let mut job = Some(job);
            let mut run = || job.take().into_iter().for_each(|job| job());
            without_gvl(ruby, &mut run, &|| {});
            run();
        }
    }
}
