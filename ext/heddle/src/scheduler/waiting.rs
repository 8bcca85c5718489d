//! How a hook waits for something, and gets out of it whatever happens meanwhile.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heddle_core::mailbox::Mailbox;
use heddle_core::workers::WorkerPool;
use heddle_core::{Completion, Interest, Operation, Token};
use magnus::{Error, Ruby, Value};

use super::Scheduler;
use super::fibers::{Delivery, FiberKey, Limit, Scope};
use super::turns::{Alarm, Ended, Turns};
use super::wait::Wait;
use crate::ruby::error;
use crate::ruby::nogvl::without_gvl;
use crate::ruby::value::Held;

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<T> {
    /// What was waited for has come.
    Done(T),
    /// The time was up before.
    TimedOut,
}

/// How to do at once what an operation was to do.
pub struct AtHand<'a> {
    /// Whether that would succeed now.
    pub is_ready: &'a dyn Fn() -> bool,
    /// The number of bytes, if there still are any. Other fibers have run since the operation began, so this looks up the
    /// descriptor anew.
    pub transfer: &'a dyn Fn() -> Option<i32>,
}

/// A point in time that is further away than any clock goes.
pub const FOR_EVER: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 100);

/// How many names may be looked up at a time for each worker: a look-up only waits, for half a minute if no server
/// answers.
const NAME_LOOK_UPS_PER_WORKER: usize = 16;

/// The end of a wait of `timeout` that begins now.
pub fn deadline_after(timeout: Option<Duration>) -> Option<Instant> {
    timeout.filter(|timeout| *timeout < FOR_EVER).map(|timeout| Instant::now() + timeout)
}

impl Scheduler {
    /// Waits until `done` gives a value. It is asked before each time that the turn is given away, and must not call
    /// Ruby.
    ///
    /// # Errors
    /// What was raised into the fiber. What has come is looked at first: a wake-up that Ruby has passed to this fiber
    /// alone (a mutex, an element of a queue) must not get lost because a timeout came right after it.
    pub fn wait<T>(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut Turns) -> Option<T>,
    ) -> Result<Outcome<T>, Error> {
        let (outer, timer) = {
            let mut turns = self.turns.borrow_mut();
            let outer = turns.prepare_wait(key, wait);
            (outer, deadline.map(|deadline| turns.timers.insert(deadline, Alarm::Wake(key))))
        };
        self.look_for_swallowed(key);
        let result = loop {
            let looked = {
                let mut turns = self.turns.borrow_mut();
                if let Some(value) = done(&mut turns) {
                    break Ok(Outcome::Done(value));
                }
                match turns.take_delivery(key) {
                    Some(delivery) => Err(delivery),
                    None if timer.is_some_and(|timer| !turns.timers.is_pending(timer)) => break Ok(Outcome::TimedOut),
                    None => {
                        turns.begin_wait(key);
                        Ok(self.glance(&mut turns, key))
                    }
                }
            };
            let parked = match looked {
                Ok(glance) => self.park_after_glance(ruby, key, glance),
                Err(delivery) => Err(delivery.to_error()),
            };
            if let Err(error) = parked {
                break Err(error);
            }
        };
        let mut turns = self.turns.borrow_mut();
        if let Some(timer) = timer {
            turns.timers.cancel(timer);
        }
        turns.leave_wait(key, outer);
        result
    }

    /// Gives the turn away until it comes again. `enqueue` puts the fiber on the run queue, and returns what it waited
    /// for until then. Returns whether an exception may be due in it.
    #[inline]
    pub(super) fn pass_turn(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        enqueue: impl FnOnce(&mut Turns) -> Option<Wait>,
    ) -> Result<bool, Error> {
        let (outer, glance) = {
            let mut turns = self.turns.borrow_mut();
            (enqueue(&mut turns), self.glance(&mut turns, key))
        };
        let result = self.park_after_glance(ruby, key, glance);
        let may_be_due = self.turns.borrow_mut().end_wait(key, outer);
        result.map(|()| may_be_due)
    }

    /// Raises what has been sent to the fiber, if anything has.
    #[inline]
    pub(super) fn raise_due(&self, key: FiberKey) -> Result<(), Error> {
        self.look_for_swallowed(key);
        let delivery = self.turns.borrow_mut().take_delivery(key);
        delivery.map_or(Ok(()), |delivery| Err(delivery.to_error()))
    }

    /// Runs a block of the program's, with `argument`. If it is not over at `at`, what `limit` says is raised in the
    /// fiber, wherever it is then. Never after the block has ended.
    pub(super) fn run_until(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        at: Instant,
        limit: Limit,
        argument: Value,
    ) -> Result<Value, Error> {
        let (timer, scope) = self.turns.borrow_mut().set_deadline(at, key, limit);
        let result = self.exposed(key, || ruby.yield_value(argument));
        let mut turns = self.turns.borrow_mut();
        turns.timers.cancel(timer);
        turns.retract(key, scope);
        result
    }

    /// Waits until a descriptor is ready. The [`Interest`](heddle_core::Interest) bits, or a negated errno; `None` says
    /// that the time was up before.
    ///
    /// # Errors
    /// What was raised into the fiber; IOError if the descriptor was closed meanwhile.
    pub(super) fn await_readiness(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        (fd, interest): (RawFd, Interest),
        deadline: Option<Instant>,
    ) -> Result<Option<i32>, Error> {
        // SAFETY: waiting for readiness needs no memory.
        let token = unsafe { self.begin(ruby, key, Operation::Ready { fd, interest })? };
        match self.wait(ruby, key, wait, deadline, |turns| turns.operations.take_result(token)) {
            Ok(Outcome::Done(Ended::Result(result))) => Ok(Some(result)),
            Ok(Outcome::Done(Ended::Closed)) => Err(error::stream_closed(ruby)),
            outcome => {
                self.cancel_readiness(token);
                outcome.map(|_| None)
            }
        }
    }

    /// Has the backend read or write and waits for the end of it: the number of bytes, or a negated errno.
    ///
    /// An exception ends it early, but never before the kernel has given the memory back. Bytes that have come or gone by
    /// then are not lost: the fiber goes on with them, and the exception is due when it waits next. What is at hand when the
    /// exception comes goes before it, too, and not what comes later: that is the next one's.
    ///
    /// # Errors
    /// What was raised into the fiber; IOError if the descriptor was closed before the operation came to a result.
    ///
    /// # Safety
    /// The operation's memory is valid for as long as this call lasts.
    pub(super) unsafe fn operate(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        operation: Operation,
        at_hand: Option<&AtHand<'_>>,
    ) -> Result<i32, Error> {
        enum Heard {
            Ended(Ended),
            Exception(Delivery),
        }
        // Put off once is enough, or it would never strike who reads what never ends.
        self.raise_due(key)?;
        // SAFETY: by this function's contract, and as it waits for the completion.
        let token = unsafe { self.begin(ruby, key, operation)? };
        let heard = self.wait(ruby, key, wait, None, |turns| {
            let ended = turns.operations.take_result(token).map(Heard::Ended);
            ended.or_else(|| turns.take_delivery(key).map(Heard::Exception))
        });
        match heard {
            Ok(Outcome::Done(Heard::Ended(Ended::Result(result)))) => return Ok(result),
            Ok(Outcome::Done(Heard::Ended(Ended::Closed))) => return Err(error::stream_closed(ruby)),
            _ => {}
        }
        let at_hand = at_hand.filter(|at_hand| (at_hand.is_ready)());
        let (mut result, left) = self.end_early(ruby, key, wait, token);
        let delivery = match (left, heard) {
            (Ok(()), Ok(Outcome::Done(Heard::Exception(delivery)))) => delivery,
            // The later one tells that the fiber is to end, or what it is to do instead, as when an `ensure` raises.
            (Err(error), _) | (Ok(()), Err(error)) => match error::exception_of(&error) {
                Some(exception) => Delivery { exception: Held::new(exception), message: None, scope: Scope::Fiber },
                None => return Err(error),
            },
            _ => return Ok(result),
        };
        if result == -libc::ECANCELED {
            result = at_hand.and_then(|at_hand| (at_hand.transfer)()).unwrap_or(result);
        }
        if result < 0 {
            return Err(delivery.to_error());
        }
        self.turns.borrow_mut().put_back(key, delivery);
        Ok(result)
    }

    /// Submits an operation. Its descriptor's number was looked up after the last time that another fiber or thread could
    /// run: see [`crate::io::descriptors`].
    ///
    /// # Errors
    /// IOError if the scheduler has been closed: there is no backend that could be asked.
    ///
    /// # Safety
    /// The operation's memory is valid until [`Operations::take_result`](super::turns::Operations::take_result) has told
    /// how it ended.
    pub(super) unsafe fn begin(&self, ruby: &Ruby, key: FiberKey, operation: Operation) -> Result<Token, Error> {
        let mut reactor = self.reactor.borrow_mut();
        let Some(reactor) = reactor.as_mut() else { return Err(error::scheduler_closed(ruby)) };
        let token = {
            let mut turns = self.turns.borrow_mut();
            turns.fairness.submitted();
            turns.operations.begin(key, Some(&operation))
        };
        // SAFETY: by this function's contract.
        unsafe { reactor.submit(token, operation) };
        Ok(token)
    }

    /// Cancels a wait for readiness. No memory belongs to it, so no fiber has to wait for its end. Returns how it ended,
    /// if it has.
    pub(super) fn cancel_readiness(&self, token: Token) -> Option<Ended> {
        let ended = self.turns.borrow_mut().operations.abandon(token);
        if ended.is_none()
            && let Some(reactor) = self.reactor.borrow_mut().as_mut()
        {
            reactor.cancel(token);
        }
        ended
    }

    /// Cancels an operation and waits for its end, which comes soon. Returns its result, and what was raised into the
    /// fiber meanwhile: nothing may go on before the kernel is done.
    pub(super) fn end_early(&self, ruby: &Ruby, key: FiberKey, wait: Wait, token: Token) -> (i32, Result<(), Error>) {
        self.turns.borrow_mut().fairness.submitted();
        if let Some(reactor) = self.reactor.borrow_mut().as_mut() {
            reactor.cancel(token);
        }
        let result = self.wait_unconditionally(ruby, key, wait, token);
        let ended = self.turns.borrow_mut().operations.take_result(token);
        (ended.map_or(-libc::ECANCELED, Ended::result), result)
    }

    /// Waits for the end of an operation that cannot be cancelled, or has been. What is raised into the fiber meanwhile
    /// is returned when it is over; the last of several.
    pub(super) fn wait_unconditionally(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        token: Token,
    ) -> Result<(), Error> {
        let mut raised = Ok(());
        let outer = self.turns.borrow_mut().prolong_wait(key, wait);
        loop {
            {
                let mut turns = self.turns.borrow_mut();
                if turns.operations.is_finished(token) {
                    break;
                }
                turns.begin_wait(key);
            }
            if let Err(error) = self.park(ruby, key) {
                raised = Err(error);
            }
        }
        self.turns.borrow_mut().end_wait(key, outer);
        raised
    }

    /// Has a thread for names do `job` and waits for its end. What is raised into the fiber meanwhile goes on at once; the
    /// job is then left to itself, so it owns all that it works on. If it has not begun by then, it never does.
    pub(super) fn work(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        let Some((token, done)) = self.begin_work(key) else { return Ok(()) };
        let abandoned = Arc::new(AtomicBool::new(false));
        let is_abandoned = Arc::clone(&abandoned);
        let job = move || {
            // Sent when the job is over, even if it panics.
            let _done = done;
            if !is_abandoned.load(Ordering::Relaxed) {
                job();
            }
        };
        self.submit_work(job);
        let result = self.wait(ruby, key, wait, None, |turns| turns.operations.take_result(token));
        if result.is_err() {
            abandoned.store(true, Ordering::Relaxed);
            self.turns.borrow_mut().operations.abandon(token);
        }
        result.map(|_| ())
    }

    fn begin_work(&self, key: FiberKey) -> Option<(Token, Done)> {
        let mailbox = self.reactor.borrow().as_ref()?.mailbox();
        let token = self.turns.borrow_mut().operations.begin(key, None);
        Some((token, Done { mailbox, token }))
    }

    /// Has a thread for names do `job`.
    pub(super) fn submit_work(&self, job: impl FnOnce() + Send + 'static) {
        let names = Arc::clone(self.names.borrow_mut().get_or_insert_with(|| {
            Arc::new(WorkerPool::new(self.options.borrow().workers.saturating_mul(NAME_LOOK_UPS_PER_WORKER)))
        }));
        let refused = names.submit(job).err();
        if let Some(job) = refused {
            // No thread is to be had. Then this one does it; the fiber's result is the same, the others wait.
            let mut job = Some(job);
            let mut run = || job.take().into_iter().for_each(|job| job());
            without_gvl(&mut run, &|| {});
            run();
        }
    }
}

/// Posts the end of a job when it is dropped.
struct Done {
    mailbox: Arc<Mailbox>,
    token: Token,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.mailbox.post(Completion { token: self.token, result: 0 });
    }
}
