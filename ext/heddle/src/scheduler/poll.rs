//! Polls timers and completions, and waits in the kernel.

use std::time::{Duration, Instant};

use magnus::{Error, Ruby};

use super::Scheduler;
use super::reactor::Reactor;
use super::record::FiberKey;
use crate::ruby::nogvl::without_gvl;
use crate::ruby::{error, interrupts};
use crate::ticker::throttle;

/// How long a wait without a timer lasts in a test: see [`Scheduler::expect_event`].
const UNTIL_EXPECTED: Duration = Duration::from_millis(50);

/// A thread that waits longer for the GVL has waited for another thread.
const LEAST_WAIT_FOR_GVL: Duration = Duration::from_micros(5);

/// The result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// Timers and completions have been handled.
    Done,
    /// They have been handled, and the thread has an interrupt to check.
    Interrupted,
}

impl Scheduler {
    /// Handles timers and completions, without waiting for them.
    pub fn poll(&self, ruby: &Ruby) -> Result<Polled, Error> {
        self.poll_for(ruby, None, false)
    }

    /// Like [`Scheduler::poll`], perhaps for the fiber `parking`, which has just parked. With `may_block`, it waits for
    /// the first timer or completion if no fiber is runnable.
    pub fn poll_for(&self, ruby: &Ruby, parking: Option<FiberKey>, may_block: bool) -> Result<Polled, Error> {
        let mut now = Instant::now();
        let began = now;
        let timeout = {
            let mut state = self.state.borrow_mut();
            state.note_poll(now, parking);
            let is_due = state.has_expired_timer(now);
            // Fibers that are not preempted have no ticks, which do the same.
            if state.budget.has_computed(now) {
                state.prefer_sleepers();
            }
            state.budget.polled(now);
            state.counters.polls += 1;
            if !may_block || is_due || !state.fibers.queue().is_empty() || state.has_deferred_raises() {
                Some(Duration::ZERO)
            } else {
                state.wait_before_jump(now).or_else(|| {
                    let until_deadline =
                        state.timers.next_deadline().map(|deadline| deadline.saturating_duration_since(now));
                    until_deadline.or_else(|| state.is_tested().then_some(UNTIL_EXPECTED))
                })
            }
        };
        let mut slot = self.io.reactor.borrow_mut();
        let Some(reactor) = slot.as_mut() else {
            drop(slot);
            return Err(error::scheduler_closed(ruby));
        };
        reactor.cancel_closed(&mut self.state.borrow_mut().operations);
        let mut interrupted = false;
        let polled = if timeout == Some(Duration::ZERO) {
            reactor.poll_now()
        } else {
            self.wait_in_kernel(ruby, reactor, timeout, &mut now).map(|waited| interrupted = !waited)
        };
        if let Err(error) = polled {
            // Ruby runs methods to make the error, and perhaps a signal's handler, which polls.
            drop(slot);
            return Err(error::from_core(ruby, error));
        }
        let mut state = self.state.borrow_mut();
        let has_waited = timeout != Some(Duration::ZERO);
        if has_waited {
            state.note_poll(now, None);
            // The fibers that it has woken begin now, not before the wait.
            state.budget.polled(now);
        }
        // Before the timers: what has come in time is no timeout, and what is under way ends before sleepers begin
        // further work. Otherwise fibers that sleep and then send, as for heartbeats, wait for each other's messages.
        state.complete(reactor.completions());
        state.expire(now);
        if has_waited {
            if !state.fibers.queue().is_empty() {
                state.clock.note_event(now);
            }
            interrupted |= self.owner.thread.get().is_some_and(|thread| interrupts::pending(thread.get()));
        }
        // A poll that has waited does not know what other threads do by now. What an interrupt brings, such as the end of
        // a child process, comes before the next timer.
        let may_jump = may_block && !has_waited && !interrupted;
        if may_jump && state.clock.is_virtual() && state.fibers.queue().is_empty() && !state.has_deferred_raises() {
            state.jump(now);
        }
        if let Some(trace) = state.trace() {
            trace.poll(began, has_waited, state.counters.completed);
        }
        Ok(if interrupted { Polled::Interrupted } else { Polled::Done })
    }

    /// Waits without the GVL, and sets `now` to the time after that. Returns false if an interrupt of the thread was
    /// pending already.
    ///
    /// Not inlined: a poll that does not wait is far more frequent, and needs less of a fiber's stack without this.
    #[inline(never)]
    fn wait_in_kernel(
        &self,
        ruby: &Ruby,
        reactor: &mut Reactor,
        timeout: Option<Duration>,
        now: &mut Instant,
    ) -> Result<bool, heddle_core::Error> {
        reactor.arm();
        let ticker_state = self.preemption.ticker_state.get();
        self.state.borrow_mut().counters.park(*now);
        ticker_state.inspect(|state| state.pause());
        throttle::leave();
        let waited = self.wait_without_gvl(ruby, reactor, timeout, *now);
        ticker_state.inspect(|state| state.resume());
        reactor.disarm();
        *now = Instant::now();
        self.state.borrow_mut().counters.unpark(*now, matches!(waited, Some(Ok(true))));
        waited.map_or(Ok(false), |result| result.map(|_busy_polled| true))
    }

    /// If other threads wanted the GVL at the end of the last wait, they run before this thread sleeps. What they do, such
    /// as to answer a fiber, may end the wait. A thread that sleeps wants the GVL only when something has arrived, and
    /// gets it after all threads that want it by then. Returns what [`Reactor::wait`] does; `None` as [`without_gvl`].
    fn wait_without_gvl(
        &self,
        ruby: &Ruby,
        reactor: &mut Reactor,
        timeout: Option<Duration>,
        begun: Instant,
    ) -> Option<Result<bool, heddle_core::Error>> {
        let waker = reactor.waker();
        let release = |wait: &mut (dyn FnMut() -> Result<bool, heddle_core::Error> + Send)| {
            let (waited, wants_gvl) = without_gvl(ruby, || (wait(), Instant::now()), &|| waker.wake())?;
            self.io.is_gvl_wanted.set(wants_gvl.elapsed() > LEAST_WAIT_FOR_GVL);
            Some(waited)
        };
        if self.io.is_gvl_wanted.get() {
            // What fibers send is submitted before the threads run that are to answer.
            let arrived = release(&mut || reactor.poll_once())?.and_then(|arrived| Ok(arrived || reactor.poll_once()?));
            if !matches!(arrived, Ok(false)) {
                // No busy poll has ended the wait.
                return Some(arrived.map(|_arrived| false));
            }
        }
        let timeout = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
        release(&mut || {
            #[cfg(heddle_disturbed)]
            heddle_core::disturbed::stall();
            reactor.wait(timeout)
        })
    }
}
