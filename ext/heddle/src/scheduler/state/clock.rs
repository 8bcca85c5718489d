//! The clock of the scheduler's timers: the monotonic one, or a virtual one for tests.
//!
//! A virtual clock stands still while a fiber can run, and jumps to the next timer when none can. What comes from
//! outside of the thread takes real time. So the clock does not jump while a thread of the test runs. Where I/O, or a
//! thread that waits itself, may wake a fiber, it jumps after some real time without an event: see [`OutsideWait`].

use std::time::{Duration, Instant};

use heddle_core::queue::outside_wait::OutsideWait;

use super::State;
use crate::scheduler::record::FiberKey;

/// How much virtual time passes where a fiber that is being killed would wait.
const WAIT_OF_KILLED_FIBER: Duration = Duration::from_millis(1);

/// How often it looks whether a thread still runs.
const WHILE_HELD: Duration = Duration::from_millis(20);

/// What other threads may do while all fibers wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// None may wake a fiber.
    Asleep,
    /// One waits, and may wake a fiber afterwards; or one runs that is none of the test's.
    Waiting,
    /// One of the test's runs.
    Running,
}

/// Jumps of the clock while something from outside might still have come.
#[derive(Debug, Clone, Copy)]
pub struct JumpsOver {
    /// How many there were.
    pub count: u32,
    /// How far the last one was.
    pub length: Duration,
    /// How long the clock has waited before that, in real time.
    pub waited: Duration,
}

/// A virtual clock.
#[derive(Debug)]
pub struct VirtualClock {
    began: Instant,
    now: Instant,
    /// How long it waits, in real time, for an event from outside of the thread before it jumps.
    pub wait: OutsideWait,
    /// Since when, in real time, no fiber has been able to run. `None` until a poll finds that.
    idle_since: Option<Instant>,
    pub others: Others,
    pub jumps_over: Option<JumpsOver>,
}

impl State {
    /// The time of the timers.
    #[inline]
    pub fn now(&self) -> Instant {
        self.clock.as_ref().map_or_else(Instant::now, |clock| clock.now)
    }

    /// The time of the timers, at the real time `now`.
    #[inline]
    pub(super) fn time_at(&self, now: Instant) -> Instant {
        self.clock.as_ref().map_or(now, |clock| clock.now)
    }

    /// Timers and I/O are polled at the real time `now`. The states of fibers begin at the timers' time.
    #[inline]
    pub fn note_poll(&mut self, now: Instant, parking: Option<FiberKey>) {
        self.fibers.polled(self.time_at(now), parking);
    }

    /// From now on the clock is a virtual one.
    pub fn stop_clock(&mut self, wait: OutsideWait) {
        let now = Instant::now();
        self.clock = Some(Box::new(VirtualClock {
            began: now,
            now,
            wait,
            idle_since: None,
            others: Others::Asleep,
            jumps_over: None,
        }));
        self.note_observers();
    }

    /// Whether a test chooses the schedule, or commands the clock.
    pub fn is_tested(&self) -> bool {
        self.clock.is_some() || self.queue.exploration().is_some()
    }

    /// How far the virtual clock has come since it was stopped.
    pub fn virtual_time(&self) -> Option<Duration> {
        self.clock.as_ref().map(|clock| clock.now.saturating_duration_since(clock.began))
    }

    /// A fiber that is being killed would wait, and yields instead. Virtual time passes meanwhile: otherwise a fiber
    /// that survives its kill in a loop would never be abandoned, as it is always runnable.
    #[cold]
    pub fn pass_killed_wait(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.now += WAIT_OF_KILLED_FIBER;
        }
    }

    /// A fiber runs. The virtual clock's idle time begins anew when no fiber can run.
    pub fn end_idle_time(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.idle_since = None;
        }
    }

    /// How long to wait in real time before the next jump, at the real time `now`. `None` if the clock is real, or has
    /// no timer to jump to. Wake-ups that make no fiber runnable, as by a signal, do not prolong the wait.
    pub fn wait_before_jump(&mut self, now: Instant) -> Option<Duration> {
        let expects_event = self.expects_event();
        let clock = self.clock.as_mut()?;
        self.timers.next_deadline()?;
        if clock.others == Others::Running {
            clock.idle_since = None;
            return Some(WHILE_HELD);
        }
        let idle_for = now.saturating_duration_since(*clock.idle_since.get_or_insert(now));
        Some(if expects_event { clock.wait.length().saturating_sub(idle_for) } else { Duration::ZERO })
    }

    /// Whether I/O, or a thread that waits itself, may still wake a fiber.
    fn expects_event(&self) -> bool {
        let others = self.clock.as_ref().map(|clock| clock.others);
        !self.operations.is_empty() || others == Some(Others::Waiting)
    }

    /// A wait in the kernel has ended at the real time `now`. If a fiber can run now, an event has come from outside.
    pub fn note_event(&mut self, now: Instant) {
        let is_event = self.queued() > 0;
        if let Some(clock) = self.clock.as_mut().filter(|_| is_event)
            && let Some(since) = clock.idle_since
        {
            clock.wait.was_worth(now.saturating_duration_since(since));
        }
    }

    /// No fiber is runnable: the virtual clock jumps to the next timer, unless an event may still come at the real time
    /// `now`.
    #[cold]
    pub fn jump(&mut self, now: Instant) {
        if self.wait_before_jump(now) != Some(Duration::ZERO) {
            return;
        }
        let Some(deadline) = self.timers.next_deadline() else { return };
        let expects_event = self.expects_event();
        if let Some(clock) = &mut self.clock {
            if expects_event {
                clock.jump_over(deadline);
            }
            clock.now = clock.now.max(deadline);
        }
        self.note_poll(now, None);
        self.expire(now);
    }
}

impl VirtualClock {
    fn jump_over(&mut self, deadline: Instant) {
        self.jumps_over = Some(JumpsOver {
            count: self.jumps_over.map_or(0, |jumps| jumps.count) + 1,
            length: deadline.saturating_duration_since(self.now),
            waited: self.wait.length(),
        });
        self.wait.was_in_vain();
    }
}
