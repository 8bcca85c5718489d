//! The clock of the scheduler's timers: the monotonic one, or a virtual one for tests.
//!
//! A virtual clock stands still while a fiber can run, and jumps to the next timer when none can. What comes from
//! outside of the thread takes real time. So the clock does not jump while a thread of the test runs. Where I/O, or a
//! thread that waits itself, may wake a fiber, it jumps after some real time without an event: see [`OutsideWait`].

use std::time::{Duration, Instant};

use heddle_core::explore::outside_wait::OutsideWait;

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

/// The clock of a scheduler's timers: `None` is the real one.
#[derive(Debug, Default)]
pub struct Clock(Option<Box<VirtualClock>>);

#[derive(Debug)]
struct VirtualClock {
    began: Instant,
    now: Instant,
    /// How long it waits, in real time, for an event from outside of the thread before it jumps.
    wait: OutsideWait,
    /// Since when, in real time, no fiber has been able to run. `None` until a poll finds that.
    idle_since: Option<Instant>,
    others: Others,
    jumps_over: Option<JumpsOver>,
}

impl Clock {
    /// The time of the timers.
    #[inline]
    pub fn now(&self) -> Instant {
        self.0.as_ref().map_or_else(Instant::now, |clock| clock.now)
    }

    /// The time of the timers, at the real time `now`.
    #[inline]
    pub fn at(&self, now: Instant) -> Instant {
        self.0.as_ref().map_or(now, |clock| clock.now)
    }

    /// From now on the clock is a virtual one.
    pub fn stop(&mut self, wait: OutsideWait) {
        let now = Instant::now();
        self.0 = Some(Box::new(VirtualClock {
            began: now,
            now,
            wait,
            idle_since: None,
            others: Others::Asleep,
            jumps_over: None,
        }));
    }

    /// Whether a test commands the clock.
    pub fn is_virtual(&self) -> bool {
        self.0.is_some()
    }

    /// How far the virtual clock has come since it was stopped.
    pub fn virtual_time(&self) -> Option<Duration> {
        self.0.as_ref().map(|clock| clock.now.saturating_duration_since(clock.began))
    }

    /// The factor that the virtual clock has learned, and its jumps.
    pub fn jumps_over(&self) -> Option<(u32, Option<JumpsOver>)> {
        self.0.as_ref().map(|clock| (clock.wait.factor(), clock.jumps_over))
    }

    /// What other threads do now.
    pub fn set_others(&mut self, others: Others) {
        if let Some(clock) = &mut self.0 {
            clock.others = others;
        }
    }

    /// A fiber that is being killed would wait, and yields instead. Virtual time passes meanwhile: otherwise a fiber
    /// that survives its kill in a loop would never be abandoned, as it is always runnable.
    #[cold]
    pub fn pass_killed_wait(&mut self) {
        if let Some(clock) = &mut self.0 {
            clock.now += WAIT_OF_KILLED_FIBER;
        }
    }

    /// Virtual time passes while a fiber computes.
    #[cold]
    pub fn pass_until(&mut self, at: Instant) {
        if let Some(clock) = &mut self.0 {
            clock.now = clock.now.max(at);
        }
    }

    /// A fiber runs. The virtual clock's idle time begins anew when no fiber can run.
    pub fn end_idle_time(&mut self) {
        if let Some(clock) = &mut self.0 {
            clock.idle_since = None;
        }
    }

    /// How long a virtual clock waits in real time before its next jump, at the real time `now`. `awaits_io` says that
    /// operations may wake fibers. Wake-ups that make no fiber runnable, as by a signal, do not prolong the wait.
    pub fn wait_before_jump(&mut self, now: Instant, awaits_io: bool) -> Option<Duration> {
        let clock = self.0.as_mut()?;
        if clock.others == Others::Running {
            clock.idle_since = None;
            return Some(WHILE_HELD);
        }
        let idle_for = now.saturating_duration_since(*clock.idle_since.get_or_insert(now));
        let expects_event = clock.expects_event(awaits_io);
        Some(if expects_event { clock.wait.length().saturating_sub(idle_for) } else { Duration::ZERO })
    }

    /// A wait in the kernel has ended at the real time `now`, with an event from outside: a fiber can run now.
    pub fn note_event(&mut self, now: Instant) {
        if let Some(clock) = &mut self.0
            && let Some(since) = clock.idle_since
        {
            clock.wait.was_worth(now.saturating_duration_since(since));
        }
    }

    /// A virtual clock jumps to this deadline.
    pub fn jump_to(&mut self, deadline: Instant, awaits_io: bool) {
        if let Some(clock) = &mut self.0 {
            if clock.expects_event(awaits_io) {
                clock.jump_over(deadline);
            }
            clock.now = clock.now.max(deadline);
        }
    }
}

impl VirtualClock {
    /// Whether I/O, or a thread that waits itself, may still wake a fiber.
    fn expects_event(&self, awaits_io: bool) -> bool {
        awaits_io || self.others == Others::Waiting
    }

    fn jump_over(&mut self, deadline: Instant) {
        self.jumps_over = Some(JumpsOver {
            count: self.jumps_over.map_or(0, |jumps| jumps.count) + 1,
            length: deadline.saturating_duration_since(self.now),
            waited: self.wait.length(),
        });
        self.wait.was_in_vain();
    }
}
