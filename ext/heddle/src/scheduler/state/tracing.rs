//! What the scheduler records while a trace runs.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use heddle_core::observe::timing::LongSlice;
use heddle_core::observe::trace::{Subject, Track, WakeSource};
use heddle_core::{Completion, Token};

use super::State;
use crate::ruby::value::class_of;
use crate::scheduler::record::{FiberKey, FiberState, Record};
use crate::scheduler::trace_session::Session;
use crate::scheduler::wait::{RESUMED, WOKEN, Wait};

/// `kind` is an index in [`WAIT_KINDS`](crate::scheduler::wait::WAIT_KINDS).
fn plain(kind: usize) -> Subject {
    Subject { what: kind as u8, ..Subject::default() }
}

/// A scheduler's part in a trace.
pub struct Tracing {
    track: Track,
    session: Rc<Session>,
    /// How many operations had completed at the last poll.
    completed: Cell<u64>,
}

impl Tracing {
    /// A part with a track of its own.
    pub fn new(track: Track, session: Rc<Session>) -> Self {
        Tracing { track, session, completed: Cell::new(0) }
    }

    /// The trace.
    pub fn session(&self) -> &Rc<Session> {
        &self.session
    }

    /// The number of the scheduler's track.
    pub fn number(&self) -> u32 {
        self.track.number()
    }

    /// The fiber becomes runnable.
    #[cold]
    pub fn wake(&self, key: FiberKey) {
        self.track.wake(key.number());
    }

    /// The fiber's record goes.
    #[cold]
    pub(super) fn end(&mut self, key: FiberKey) {
        if let Some(identity) = self.session.forget_fiber(self.track.number(), key) {
            self.track.end(key.number(), identity);
        }
    }

    #[cold]
    fn set_source(&mut self, source: Option<WakeSource>) {
        self.track.set_source(source);
    }

    /// A stall has ended in the current fiber.
    #[cold]
    pub fn stall(&self, long: &LongSlice) {
        self.track.stall(long.at(), long.length(), long.late());
    }

    /// A poll has ended; so many operations have completed until now.
    #[cold]
    pub fn poll(&self, began: Instant, waited: bool, completed: u64) {
        let found = completed.saturating_sub(self.completed.replace(completed));
        self.track.poll(began, waited, found);
    }

    /// An operation of this kind begins; see [`super::operations::OPERATION_KINDS`].
    #[cold]
    pub fn operation_begin(&self, key: FiberKey, kind: usize, fd: i32, token: Token) {
        self.track.operation_begin(key.number(), kind as u8, fd, token as u64);
    }

    /// An operation has ended, for which this fiber waits.
    #[cold]
    pub fn operation_end(&self, completion: &Completion, fiber: Option<FiberKey>) {
        self.track.operation_end(completion.token as u64, completion.result, fiber.map(FiberKey::number));
    }

    /// The fiber has read, or written, without waiting.
    pub fn attempt(&self, key: FiberKey, writes: bool, fd: i32, result: i32) {
        self.track.attempt(key.number(), u8::from(writes), fd, result);
    }

    /// The fiber gets the name with this number.
    pub fn name(&self, key: FiberKey, name: u64) {
        self.track.name(key.number(), name);
    }

    /// Whether this fiber has a slice.
    pub(super) fn runs(&self, key: FiberKey) -> bool {
        self.track.runs(key.number())
    }

    /// `next` runs in place of the fiber `left`.
    pub(super) fn switch(&mut self, left: Option<&Record>, next: FiberKey) {
        let left = left.map_or_else(Subject::default, |record| self.subject(record));
        self.track.switch(next.number(), left);
    }

    /// No fiber runs until the next one is dequeued.
    pub(super) fn leave(&mut self, left: &Record) {
        let subject = self.subject(left);
        self.track.leave(left.key.number(), subject);
    }

    /// What the fiber waits for.
    fn subject(&self, record: &Record) -> Subject {
        let (value, detail) = match record.wait {
            // It has resumed another fiber, or has started one.
            Wait::Nothing if record.state() == FiberState::Running => return plain(RESUMED),
            Wait::Block(blocker) => (0, self.session.number_of_class(class_of(blocker.get()))),
            Wait::Ready(fd, interest) | Wait::Transfer(fd, interest) => (fd, interest.0.into()),
            Wait::Process(pid) => (pid, 0),
            _ => (0, 0),
        };
        Subject { value, detail, ..plain(record.wait.kind()) }
    }
}

impl State {
    /// Records everything from now on. `here` says whether the scheduler's thread is the current one.
    pub fn begin_trace(&mut self, mut trace: Tracing, here: bool) {
        trace.completed.set(self.counters.completed);
        // So many records would leave no room for what happens.
        if self.fibers.len() <= trace.session.capacity() / 4 {
            for (key, record) in self.fibers.iter().filter(|(_, record)| record.is_parked()) {
                let woken = record.state() == FiberState::Runnable && record.is_waiting();
                let subject = if woken { plain(WOKEN) } else { trace.subject(record) };
                trace.track.waiting(key.number(), subject);
            }
        }
        if let Some((_, key)) = self.fibers.current()
            && self.fibers.is_current(key)
        {
            trace.track.running(key.number(), here);
        }
        self.observers_mut().trace = Some(trace);
    }

    fn trace_mut(&mut self) -> Option<&mut Tracing> {
        self.observers.as_mut()?.trace.as_mut()
    }

    /// Records nothing from now on.
    pub fn end_trace(&mut self) {
        if let Some(observers) = &mut self.observers {
            observers.trace = None;
        }
        self.release_observers();
    }

    /// The scheduler is closed, and records nothing until it is opened again.
    pub fn close_trace(&mut self) {
        if let Some(trace) = self.trace_mut() {
            trace.track.close();
        }
        self.end_trace();
    }

    /// What wakes fibers from now on; `None` for the running fiber.
    #[inline]
    pub(super) fn trace_source(&mut self, source: Option<WakeSource>) {
        if let Some(trace) = self.trace_mut() {
            trace.set_source(source);
        }
    }
}
