//! How a hook waits for something, and gets out of it whatever happens meanwhile.

use std::time::{Duration, Instant};

use magnus::{Error, Ruby, Value};

use super::Scheduler;
use super::fibers::{FiberKey, Limit};
use super::state::{State, TimerAction};
use super::wait::Wait;

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<T> {
    /// What was waited for has come.
    Done(T),
    /// The time was up before.
    TimedOut,
}

/// A point in time that is further away than any clock goes.
pub const FOR_EVER: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 100);

/// The end of a wait of `timeout` that begins now.
pub fn deadline_after(timeout: Option<Duration>) -> Option<Instant> {
    timeout.filter(|timeout| *timeout < FOR_EVER).map(|timeout| Instant::now() + timeout)
}

impl Scheduler {
    /// Waits until `done` gives a value. It is asked before each time that the turn is given away, and must not call
    /// Ruby.
    ///
    /// # Errors
    /// What was raised into the fiber. What has come is checked at first: a wake-up that Ruby has passed to this fiber
    /// alone (a mutex, an element of a queue) must not get lost because a timeout came right after it.
    pub fn wait<T>(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        wait: Wait,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Outcome<T>, Error> {
        let (outer, timer) = {
            let mut state = self.state.borrow_mut();
            let outer = state.begin_wait(key, wait);
            (outer, deadline.map(|deadline| state.timers.insert(deadline, TimerAction::Wake(key))))
        };
        self.detect_swallowed(key);
        let result = loop {
            let checked = {
                let mut state = self.state.borrow_mut();
                if let Some(value) = done(&mut state) {
                    break Ok(Outcome::Done(value));
                }
                match state.take_pending_raise(key) {
                    Some(pending_raise) => Err(pending_raise),
                    None if timer.is_some_and(|timer| !state.timers.is_pending(timer)) => break Ok(Outcome::TimedOut),
                    None => {
                        state.set_waiting(key);
                        Ok(self.pick_next(&mut state, key))
                    }
                }
            };
            let parked = match checked {
                Ok(next) => self.park_with(ruby, key, next),
                Err(pending_raise) => Err(pending_raise.to_error()),
            };
            if let Err(error) = parked {
                break Err(error);
            }
        };
        let mut state = self.state.borrow_mut();
        if let Some(timer) = timer {
            state.timers.cancel(timer);
        }
        state.end_wait(key, outer);
        result
    }

    /// Raises what has been sent to the fiber, if anything has.
    #[inline]
    pub fn raise_due(&self, key: FiberKey) -> Result<(), Error> {
        self.detect_swallowed(key);
        let pending_raise = self.state.borrow_mut().take_pending_raise(key);
        pending_raise.map_or(Ok(()), |pending_raise| Err(pending_raise.to_error()))
    }

    /// Runs a block of the program's, with `argument`. If it is not over at `at`, what `limit` says is raised in the
    /// fiber, wherever it is then. Never after the block has ended.
    pub fn run_until(
        &self,
        ruby: &Ruby,
        key: FiberKey,
        at: Instant,
        limit: Limit,
        argument: Value,
    ) -> Result<Value, Error> {
        let (timer, scope) = self.state.borrow_mut().set_deadline(at, key, limit);
        let result = self.run_user_block(key, || ruby.yield_value(argument));
        let mut state = self.state.borrow_mut();
        state.timers.cancel(timer);
        state.retract(key, scope);
        result
    }
}
