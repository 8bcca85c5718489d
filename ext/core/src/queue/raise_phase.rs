//! The phases of an exception that was sent to a fiber, and is raised again if the fiber swallows it.
//!
//! A fiber that unwinds may wait in its `ensure` clauses, and must not be interrupted there by the exception that
//! unwinds it. Ruby's `$!` tells the two cases apart. While the exception is in flight, in `ensure` clauses and in the
//! body of a `rescue`, `$!` is that exception, or one that it caused. When a `rescue`, or a `return` in an `ensure`,
//! has swallowed it, `$!` is what it was before.
//!
//! ```text
//!            raised             the fiber waits, `$!` is something else
//!     Pending ───────────▶ InFlight ───────────────────────────────────────▶ Swallowed
//!                             ▲                                                  │
//!                             └──────────────────────────────────────────────────┘
//!                                  raised again, after a pause; found in flight
//! ```

use std::time::{Duration, Instant};

use crate::queue::timers::{TimerKey, Timers};

/// The longest pause before an exception is raised again. There is a pause because a fiber that swallows the exception
/// in a loop must not take the CPU from other fibers.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// An exception counts as swallowed when this many ticks in a row do not find it in flight. One tick is not enough:
/// Ruby hides an exception that passes through C functions from the code that runs at a tick. The `ensure` parts of C
/// functions are short.
const TICKS_UNTIL_SWALLOWED: u32 = 16;

/// What `$!` says about an exception that has been raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// It is in flight.
    InFlight,
    /// It is not in flight, and the fiber is about to wait.
    Absent,
    /// A tick has not found it in flight. Ruby may have hidden it from the tick.
    AbsentAtTick,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// It has not been raised.
    #[default]
    Pending,
    /// It has been raised, and unwinds the fiber.
    InFlight,
    /// The fiber has swallowed it. It is pending again when the timer expires.
    Swallowed(TimerKey),
}

/// See the module. By default of an exception that is to be raised.
#[derive(Debug, Default)]
pub struct RaisePhase {
    phase: Phase,
    times_raised: u32,
    /// How many ticks in a row have not found it in flight.
    ticks_absent: u32,
}

impl RaisePhase {
    /// Of an exception that is being raised for the first time.
    pub fn in_flight() -> Self {
        RaisePhase { phase: Phase::InFlight, times_raised: 1, ticks_absent: 0 }
    }

    /// Whether it is to be raised, for the first time or again.
    pub fn is_pending<A>(&self, timers: &Timers<A>) -> bool {
        match self.phase {
            Phase::Pending => true,
            Phase::InFlight => false,
            Phase::Swallowed(timer) => !timers.is_pending(timer),
        }
    }

    /// Whether it has been raised since it was sent.
    pub fn is_raised(&self) -> bool {
        self.phase != Phase::Pending
    }

    /// Whether it has never been raised.
    pub fn is_new(&self) -> bool {
        self.times_raised == 0
    }

    /// It is sent once more.
    pub fn send_again(&mut self) {
        self.phase = Phase::Pending;
    }

    /// It is being raised.
    pub fn raise(&mut self) {
        *self = RaisePhase { phase: Phase::InFlight, times_raised: self.times_raised + 1, ticks_absent: 0 };
    }

    /// `$!` was looked at. `action` is the action of the timer that ends the pause before the exception is raised
    /// again, and `now` the timers' time.
    pub fn observe<A>(&mut self, observed: Observation, (timers, now): (&mut Timers<A>, Instant), action: A) {
        self.ticks_absent = if observed == Observation::AbsentAtTick { self.ticks_absent.saturating_add(1) } else { 0 };
        let is_swallowed = observed == Observation::Absent || self.ticks_absent >= TICKS_UNTIL_SWALLOWED;
        match self.phase {
            Phase::InFlight if is_swallowed => {
                let again_at = now + pause_after(self.times_raised);
                self.phase = Phase::Swallowed(timers.insert(again_at, action));
            }
            Phase::Swallowed(timer) if observed == Observation::InFlight => {
                timers.cancel(timer);
                self.phase = Phase::InFlight;
            }
            _ => {}
        }
    }

    /// It is not raised any more.
    pub fn retract<A>(&self, timers: &mut Timers<A>) {
        if let Phase::Swallowed(timer) = self.phase {
            timers.cancel(timer);
        }
    }
}

/// How long to wait before an exception that has been raised `times_raised` times is raised again.
fn pause_after(times_raised: u32) -> Duration {
    Duration::from_millis(1 << times_raised.saturating_sub(1).min(6)).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Observation::{Absent, AbsentAtTick, InFlight};

    /// What happens to an exception.
    #[derive(Debug, Clone, Copy)]
    enum Event {
        SentAgain,
        Raised,
        Observed(Observation),
        /// So many ticks in a row do not find it in flight.
        AbsentAtTicks(u32),
        /// The pause before it is raised again is over.
        PauseOver,
    }
    use Event::{AbsentAtTicks, Observed, PauseOver, Raised, SentAgain};

    const MANY: Event = AbsentAtTicks(16);
    const TOO_FEW: Event = AbsentAtTicks(15);

    /// What a fiber can tell of the phase.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Seen {
        Pending,
        InFlight,
        /// It was swallowed, and a timer ends the pause.
        Pausing,
        /// The pause is over.
        PendingAgain,
    }

    struct Exception {
        phase: RaisePhase,
        timers: Timers<()>,
        now: Instant,
    }

    impl Exception {
        fn new() -> Self {
            Exception { phase: RaisePhase::default(), timers: Timers::new(), now: Instant::now() }
        }

        fn after(events: &[Event]) -> Self {
            let mut exception = Self::new();
            events.iter().for_each(|event| exception.handle(*event));
            exception
        }

        fn handle(&mut self, event: Event) {
            match event {
                SentAgain => self.phase.send_again(),
                Raised => self.phase.raise(),
                Observed(observed) => self.phase.observe(observed, (&mut self.timers, self.now), ()),
                AbsentAtTicks(count) => (0..count).for_each(|_| self.handle(Observed(AbsentAtTick))),
                PauseOver => {
                    self.now += MAX_PAUSE;
                    while self.timers.pop_expired(self.now).is_some() {}
                }
            }
        }

        fn seen(&self) -> Seen {
            match (self.phase.is_raised(), self.phase.is_pending(&self.timers), self.timers.is_empty()) {
                (false, true, _) => Seen::Pending,
                (true, false, true) => Seen::InFlight,
                (true, false, false) => Seen::Pausing,
                (true, true, true) => Seen::PendingAgain,
                other => panic!("no phase: {other:?}"),
            }
        }
    }

    #[test]
    fn each_event_leads_from_each_phase_to_the_next() {
        let pending: &[Event] = &[];
        let in_flight = &[Raised];
        let pausing = &[Raised, Observed(Absent)];
        let again = &[Raised, Observed(Absent), PauseOver];
        let rows = [
            (pending, Raised, Seen::InFlight),
            (pending, Observed(InFlight), Seen::Pending),
            (pending, Observed(Absent), Seen::Pending),
            (pending, MANY, Seen::Pending),
            (in_flight, SentAgain, Seen::Pending),
            (in_flight, Observed(InFlight), Seen::InFlight),
            (in_flight, Observed(Absent), Seen::Pausing),
            (in_flight, TOO_FEW, Seen::InFlight),
            (in_flight, MANY, Seen::Pausing),
            (pausing, SentAgain, Seen::Pending),
            (pausing, Observed(InFlight), Seen::InFlight),
            (pausing, Observed(Absent), Seen::Pausing),
            (pausing, MANY, Seen::Pausing),
            (pausing, PauseOver, Seen::PendingAgain),
            (again, SentAgain, Seen::Pending),
            (again, Raised, Seen::InFlight),
            (again, Observed(InFlight), Seen::InFlight),
            (again, Observed(Absent), Seen::PendingAgain),
            (again, MANY, Seen::PendingAgain),
        ];
        for (before, event, expected) in rows {
            let mut exception = Exception::after(before);
            exception.handle(event);
            assert_eq!(exception.seen(), expected, "{before:?}, then {event:?}");
        }
    }

    #[test]
    fn ticks_count_anew_after_each_sight_of_it_and_after_each_raise() {
        for event in [Observed(InFlight), Raised] {
            assert_eq!(Exception::after(&[Raised, TOO_FEW, event, TOO_FEW]).seen(), Seen::InFlight, "{event:?}");
        }
    }

    #[test]
    fn what_was_raised_by_other_means_is_in_flight_and_not_new() {
        let exception = Exception { phase: RaisePhase::in_flight(), ..Exception::new() };
        assert_eq!((exception.seen(), exception.phase.is_new()), (Seen::InFlight, false));
        assert!(Exception::new().phase.is_new());
        assert!(!Exception::after(&[Raised, SentAgain]).phase.is_new());
    }

    #[test]
    fn the_pause_doubles_each_time_up_to_its_bound() {
        let mut exception = Exception::new();
        let pauses = [1, 2, 4, 8, 16, 32, 50, 50].map(Duration::from_millis);
        for expected in pauses {
            [Raised, Observed(Absent)].into_iter().for_each(|event| exception.handle(event));
            assert_eq!(exception.timers.next_deadline(), Some(exception.now + expected));
            exception.handle(PauseOver);
        }
    }

    #[test]
    fn no_timer_is_left_of_what_is_retracted() {
        for events in [&[Raised][..], &[Raised, Observed(Absent)], &[Raised, Observed(Absent), PauseOver]] {
            let mut exception = Exception::after(events);
            exception.phase.retract(&mut exception.timers);
            assert!(exception.timers.is_empty(), "{events:?}");
        }
    }
}
