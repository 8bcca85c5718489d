//! What a tick does to the fiber that runs, or to the next tick.
//!
//! Some answers cost a walk over the fiber's frames, so they are asked for only if they matter.

use std::time::Duration;

/// When the running fiber has to yield to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeToYield {
    /// Another fiber is to run.
    Now,
    /// After this time, if it still computes.
    In(Duration),
    /// A later tick will tell.
    Unknown,
}

/// What a tick finds in a fiber that may be preempted.
pub trait Finding {
    /// When the fiber has to yield.
    fn time_to_yield(&self) -> TimeToYield;
    /// Whether an exception is pending in it, such as that of a time limit, and no mask holds it back.
    fn is_raise_pending(&self) -> bool;
    /// Whether it has used up its quantum.
    fn is_used_up(&self) -> bool;
    /// Whether an exception may be raised where it runs.
    fn may_raise(&self) -> bool;
    /// Whether it may be left where it runs.
    fn may_switch(&self) -> bool;
}

/// What is done to the fiber, or to the next tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The exception is raised. If the fiber has to yield, too, the next tick comes soon.
    Raise {
        /// Whether it has to yield.
        yields_next: bool,
    },
    /// The fiber yields.
    Preempt,
    /// What has to be done cannot be done here: the next tick comes soon.
    TryAgain,
    /// The next tick comes after this time.
    ComeIn(Duration),
    /// Nothing has to be done: the next ticks may come later.
    Suppress,
}

/// What the tick does. A fiber whose time limits are over again and again yields first, and receives the exception after
/// that: otherwise no other fiber would run.
pub fn decide(found: &impl Finding) -> Action {
    let (time_to_yield, is_raise_pending) = (found.time_to_yield(), found.is_raise_pending());
    let yields = time_to_yield == TimeToYield::Now;
    if is_raise_pending && !(yields && found.is_used_up()) && found.may_raise() {
        return Action::Raise { yields_next: yields };
    }
    match time_to_yield {
        TimeToYield::Now if found.may_switch() => Action::Preempt,
        TimeToYield::Now => Action::TryAgain,
        _ if is_raise_pending => Action::TryAgain,
        TimeToYield::In(time) => Action::ComeIn(time),
        TimeToYield::Unknown => Action::Suppress,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const TIME: Duration = Duration::from_millis(3);

    struct Facts {
        time_to_yield: TimeToYield,
        is_raise_pending: bool,
        is_used_up: bool,
        may_raise: bool,
        may_switch: bool,
        /// How often the fiber's frames were looked at.
        looks: Cell<u32>,
    }

    impl Facts {
        fn look(&self, found: bool) -> bool {
            self.looks.set(self.looks.get() + 1);
            found
        }
    }

    impl Finding for Facts {
        fn time_to_yield(&self) -> TimeToYield {
            self.time_to_yield
        }
        fn is_raise_pending(&self) -> bool {
            self.is_raise_pending
        }
        fn is_used_up(&self) -> bool {
            self.is_used_up
        }
        fn may_raise(&self) -> bool {
            self.look(self.may_raise)
        }
        fn may_switch(&self) -> bool {
            self.look(self.may_switch)
        }
    }

    /// All that a tick can find.
    fn all() -> impl Iterator<Item = Facts> {
        let times = [TimeToYield::Now, TimeToYield::In(TIME), TimeToYield::Unknown];
        times.into_iter().flat_map(|time_to_yield| {
            (0..16).map(move |bits| Facts {
                time_to_yield,
                is_raise_pending: bits & 1 != 0,
                is_used_up: bits & 2 != 0,
                may_raise: bits & 4 != 0,
                may_switch: bits & 8 != 0,
                looks: Cell::new(0),
            })
        })
    }

    #[test]
    fn raises_what_is_pending_where_it_may_unless_the_fiber_has_used_up_its_quantum_before_others() {
        for found in all() {
            let raises = matches!(decide(&found), Action::Raise { .. });
            let yields_first = found.time_to_yield == TimeToYield::Now && found.is_used_up;
            assert_eq!(raises, found.is_raise_pending && found.may_raise && !yields_first);
        }
    }

    #[test]
    fn comes_again_soon_after_a_raise_if_the_fiber_has_to_yield() {
        for found in all() {
            if let Action::Raise { yields_next } = decide(&found) {
                assert_eq!(yields_next, found.time_to_yield == TimeToYield::Now);
            }
        }
    }

    #[test]
    fn preempts_a_fiber_only_if_another_is_to_run_and_where_it_may() {
        for found in all() {
            if decide(&found) == Action::Preempt {
                assert!(found.time_to_yield == TimeToYield::Now && found.may_switch);
            }
        }
    }

    #[test]
    fn tries_again_exactly_if_something_is_to_be_done_and_nothing_can_be_done() {
        for found in all() {
            let has_to_act = found.time_to_yield == TimeToYield::Now || found.is_raise_pending;
            let is_done = matches!(decide(&found), Action::Raise { .. } | Action::Preempt);
            assert_eq!(decide(&found) == Action::TryAgain, has_to_act && !is_done);
        }
    }

    #[test]
    fn does_something_in_a_fiber_that_may_be_left_and_raised_into_if_anything_is_to_be_done() {
        for found in all().filter(|found| found.may_raise && found.may_switch) {
            let has_to_act = found.time_to_yield == TimeToYield::Now || found.is_raise_pending;
            assert_eq!(matches!(decide(&found), Action::Raise { .. } | Action::Preempt), has_to_act);
        }
    }

    #[test]
    fn sets_the_next_tick_by_when_the_fiber_has_to_yield() {
        for found in all().filter(|found| !found.is_raise_pending) {
            assert_eq!(decide(&found) == Action::ComeIn(TIME), found.time_to_yield == TimeToYield::In(TIME));
        }
    }

    #[test]
    fn suppresses_ticks_only_if_nothing_is_to_be_done_now_or_later() {
        for found in all() {
            let is_idle = found.time_to_yield == TimeToYield::Unknown && !found.is_raise_pending;
            assert_eq!(decide(&found) == Action::Suppress, is_idle);
        }
    }

    #[test]
    fn looks_at_no_frames_while_nothing_is_to_be_done() {
        for found in all().filter(|found| found.time_to_yield != TimeToYield::Now && !found.is_raise_pending) {
            decide(&found);
            assert_eq!(found.looks.get(), 0);
        }
    }
}
