//! A request to a fiber to end, and its grace period.

use std::time::{Duration, Instant};

use crate::queue::timers::TimerKey;

/// How long a fiber that was killed may run before it is abandoned.
pub const GRACE_AFTER_KILL: Duration = Duration::from_millis(100);

/// A timer that is seen so late tells that no fiber could run meanwhile: the process was stopped, or a C function has
/// kept the thread.
const STALLED: Duration = Duration::from_millis(20);

/// How far a request has come.
///
/// ```text
///             raised in the fiber             the period is over
///     Asked ─────────────────────▶ Raised(at) ──────────────────▶ Killed
///       │                                                           ▲
///       └───────────────────────────────────────────────────────────┘
/// ```
///
/// A fiber that has not ended when the period after a kill is over, too, is abandoned, and so is one that cannot be
/// killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The exception is to be raised in the fiber.
    Asked,
    /// The exception was raised in the fiber for the first time.
    Raised(Instant),
    /// The fiber was killed.
    Killed,
}

/// A request to a fiber to end.
#[derive(Debug)]
pub struct EndRequest {
    stage: Stage,
    /// Expires with the grace period.
    timer: TimerKey,
    /// When it expires.
    deadline: Instant,
    /// The period was prolonged once because the fiber could not run.
    had_chance: bool,
    /// How many times the fiber had begun to wait at the beginning of the grace period. If that is unchanged and the
    /// fiber is in the run queue, it has not run since.
    waits: u32,
}

impl EndRequest {
    /// The request to a fiber that has begun to wait so many times. The timer expires at `deadline`.
    pub fn new(timer: TimerKey, deadline: Instant, waits: u32) -> Self {
        EndRequest { stage: Stage::Asked, timer, deadline, had_chance: false, waits }
    }

    /// As [`EndRequest::new`], for a fiber that is killed now.
    pub fn kill(timer: TimerKey, waits: u32, now: Instant) -> Self {
        EndRequest { stage: Stage::Killed, ..EndRequest::new(timer, now + GRACE_AFTER_KILL, waits) }
    }

    /// Whether the fiber is being killed.
    pub fn is_killed(&self) -> bool {
        self.stage == Stage::Killed
    }

    /// Expires with the grace period.
    pub fn timer(&self) -> TimerKey {
        self.timer
    }

    /// The grace period lasts until this timer expires, at `deadline`.
    pub fn prolong(&mut self, timer: TimerKey, deadline: Instant) {
        (self.timer, self.deadline) = (timer, deadline);
    }

    /// The exception has been raised in the fiber.
    pub fn note_raised(&mut self, now: Instant) {
        if self.stage == Stage::Asked {
            self.stage = Stage::Raised(now);
        }
    }

    /// The timer has expired. Returns until when the grace period, which lasts `grace`, or [`GRACE_AFTER_KILL`] after a
    /// kill, is prolonged. `None` if the period is over. It is prolonged
    ///
    /// - while a shield holds back the end;
    /// - if the exception was raised later;
    /// - if the fiber, which has begun to wait so many times, is in the run queue and has not run since;
    /// - once, by [`GRACE_AFTER_KILL`], if the fiber may not have been able to end what it has begun: it was preempted
    ///   and is still in the run queue, or no fiber could run. No clock tells the second: none stands still while the
    ///   process is stopped (SIGSTOP) and goes on while its fibers wait.
    pub fn prolonged_until(
        &mut self,
        now: Instant,
        grace: Duration,
        is_shielded: bool,
        (is_queued, waits): (bool, u32),
    ) -> Option<Instant> {
        let period = if self.is_killed() { GRACE_AFTER_KILL } else { grace };
        let could_not_run = is_queued || now.saturating_duration_since(self.deadline) >= STALLED;
        match self.stage {
            _ if is_shielded => Some(now + period),
            Stage::Raised(at) if at + period > now => Some(at + period),
            Stage::Asked | Stage::Killed if is_queued && self.waits == waits => Some(now + period),
            _ if could_not_run && !self.had_chance => {
                self.had_chance = true;
                Some(now + GRACE_AFTER_KILL)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::timers::Timers;

    const GRACE: Duration = Duration::from_secs(5);
    const IN_QUEUE: (bool, u32) = (true, 1);
    const WAITS: (bool, u32) = (false, 2);

    /// A request that was raised at `now` in a fiber that waits for the first time then.
    fn raised(now: Instant) -> EndRequest {
        let mut request = EndRequest::new(Timers::new().insert(now + GRACE, ()), now + GRACE, 1);
        request.note_raised(now);
        request
    }

    #[test]
    fn a_fiber_that_was_preempted_gets_one_more_chance() {
        let end = Instant::now() + GRACE;
        let mut request = raised(end - GRACE);
        assert_eq!(request.prolonged_until(end, GRACE, false, IN_QUEUE), Some(end + GRACE_AFTER_KILL));
        assert_eq!(request.prolonged_until(end + GRACE_AFTER_KILL, GRACE, false, IN_QUEUE), None);
    }

    #[test]
    fn a_fiber_of_a_process_that_was_stopped_gets_one_more_chance() {
        let late = Instant::now() + GRACE * 2;
        assert_eq!(raised(late - GRACE * 2).prolonged_until(late, GRACE, false, WAITS), Some(late + GRACE_AFTER_KILL));
    }

    /// What is known of a fiber whose timer has expired.
    #[derive(Debug, Clone, Copy)]
    struct Facts {
        is_raised: bool,
        is_killed: bool,
        /// The grace period since the exception was raised is over.
        is_over: bool,
        had_chance: bool,
        is_shielded: bool,
        is_queued: bool,
        /// The fiber has begun to wait since the request.
        has_waited: bool,
        /// The timer is seen late.
        is_late: bool,
    }

    impl Facts {
        fn all() -> impl Iterator<Item = Facts> {
            (0..256).map(|bits| {
                let has = |bit: u32| bits & (1 << bit) != 0;
                Facts {
                    is_raised: has(0),
                    is_killed: has(1),
                    is_over: has(2),
                    had_chance: has(3),
                    is_shielded: has(4),
                    is_queued: has(5),
                    has_waited: has(6),
                    is_late: has(7),
                }
            })
        }

        fn period(self) -> Duration {
            if self.is_killed { GRACE_AFTER_KILL } else { GRACE }
        }

        /// By how much the period is prolonged.
        fn prolonged_by(self) -> Option<Duration> {
            let begun = Instant::now();
            let late = if self.is_late { STALLED } else { Duration::ZERO };
            let deadline = begun + self.period();
            let timer = Timers::new().insert(deadline, ());
            let mut request =
                if self.is_killed { EndRequest::kill(timer, 1, begun) } else { EndRequest::new(timer, deadline, 1) };
            if self.had_chance {
                let elsewhere = (true, 2);
                assert!(request.prolonged_until(deadline + late, GRACE, false, elsewhere).is_some());
                request.prolong(timer, deadline);
            }
            if self.is_raised {
                request.note_raised(if self.is_over { begun } else { begun + late + GRACE / 2 });
            }
            let now = deadline + late;
            let waits = if self.has_waited { 2 } else { 1 };
            let until = request.prolonged_until(now, GRACE, self.is_shielded, (self.is_queued, waits))?;
            Some(until - now)
        }

        /// Whether the exception was raised, and so the period counts from then.
        fn counts_from_raise(self) -> bool {
            self.is_raised && !self.is_killed
        }

        /// Whether the fiber has yet to run for the first time since the request.
        fn has_yet_to_run(self) -> bool {
            !self.counts_from_raise() && self.is_queued && !self.has_waited
        }
    }

    #[test]
    fn the_period_of_a_shielded_fiber_begins_again() {
        for facts in Facts::all().filter(|facts| facts.is_shielded) {
            assert_eq!(facts.prolonged_by(), Some(facts.period()), "{facts:?}");
        }
    }

    #[test]
    fn the_period_counts_from_the_raise() {
        for facts in Facts::all().filter(|facts| !facts.is_shielded && facts.counts_from_raise() && !facts.is_over) {
            assert_eq!(facts.prolonged_by(), Some(GRACE / 2), "{facts:?}");
        }
    }

    #[test]
    fn the_period_of_a_fiber_that_has_yet_to_run_begins_again() {
        for facts in Facts::all().filter(|facts| !facts.is_shielded && facts.has_yet_to_run()) {
            assert_eq!(facts.prolonged_by(), Some(facts.period()), "{facts:?}");
        }
    }

    #[test]
    fn in_all_other_cases_the_period_is_over_or_prolonged_once_if_the_fiber_could_not_run() {
        let is_other = |facts: &Facts| {
            !facts.is_shielded && !facts.has_yet_to_run() && (facts.is_over || !facts.counts_from_raise())
        };
        for facts in Facts::all().filter(is_other) {
            let could_run = !facts.is_queued && !facts.is_late;
            let expected = if could_run || facts.had_chance { None } else { Some(GRACE_AFTER_KILL) };
            assert_eq!(facts.prolonged_by(), expected, "{facts:?}");
        }
    }
}
