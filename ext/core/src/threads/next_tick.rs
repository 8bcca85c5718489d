//! Before which time a ticker does not tick: one value, which the owner of the ticker writes and the ticker's thread
//! reads. To postpone a tick, the owner only stores a time. It sets no timer.

use std::time::Duration;

use super::sync::atomic::{AtomicU64, Ordering};

/// The next tick comes at the usual time.
const NOW: u64 = 0;
/// There is no further tick.
const NEVER: u64 = u64::MAX;
/// Part of a time, in nanoseconds, once the timer is set to it, and no longer to the usual time.
const IS_SET: u64 = 1 << 63;

/// See the module. `now`, and the time to which a tick is postponed, are of one clock, and below 2⁶³.
#[derive(Debug, Default)]
pub struct NextTick(AtomicU64);

impl NextTick {
    /// There is no tick before `until`.
    pub fn postpone(&self, until: u64) {
        let postponed = |value| Some((until & !IS_SET) | (value & IS_SET));
        let _always = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, postponed);
    }

    /// As [`NextTick::postpone`], if the caller sets the timer, too.
    pub fn postpone_and_set(&self, until: u64) {
        self.0.store(until | IS_SET, Ordering::SeqCst);
    }

    /// The next tick comes at the usual time. True if the timer is set to a later one, so the caller must set it.
    pub fn expedite(&self) -> bool {
        self.0.swap(NOW, Ordering::SeqCst) & IS_SET != 0
    }

    /// There is no further tick.
    pub fn stop(&self) {
        self.0.store(NEVER, Ordering::SeqCst);
    }

    /// Whether there is no further tick.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst) == NEVER
    }

    /// Called by the ticker's thread when the timer has expired: whether a tick comes. If it is postponed, `set` sets
    /// the timer to that time from now, or with `None` to the usual period.
    pub fn may_tick(&self, now: u64, set: impl Fn(Option<Duration>)) -> bool {
        let next = |value| match value {
            NEVER => None,
            _ if value & !IS_SET > now => Some(value | IS_SET),
            _ => Some(NOW),
        };
        let Ok(before) = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next) else { return false };
        let until = before & !IS_SET;
        if until <= now {
            return true;
        }
        set(Some(Duration::from_nanos(until - now)));
        // The owner may have called `expedite` since, and have set the timer before the line above. This writes what it
        // reads, and so reads the last value.
        if self.0.fetch_or(0, Ordering::SeqCst) != until | IS_SET {
            set(None);
        }
        false
    }
}

#[cfg(all(test, not(heddle_models)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    const PERIOD: u64 = 10;
    /// How long all sequences of steps are that the tests run.
    const STEPS: u32 = 6;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Postpone(u64),
        PostponeAndSet(u64),
        Expedite,
        Expire,
    }

    const ALL: [Step; 6] = [
        Step::Postpone(PERIOD * 2),
        Step::Postpone(PERIOD * 5),
        Step::PostponeAndSet(PERIOD * 3),
        Step::Expedite,
        Step::Expire,
        Step::Expire,
    ];

    /// A ticker, and what is expected of it.
    struct Ticker {
        next: NextTick,
        now: u64,
        /// When the timer expires.
        timer: Cell<u64>,
        /// Before when no tick is expected.
        not_before: u64,
    }

    impl Ticker {
        fn set(&self, time: Option<Duration>) {
            let time = time.map_or(PERIOD, |time| time.as_nanos().try_into().expect("a short time"));
            self.timer.set(self.now + time);
        }

        /// Does the step. Returns whether a tick has come, if the timer has expired.
        fn take(&mut self, step: Step) -> Option<bool> {
            match step {
                Step::Postpone(time) => {
                    self.not_before = self.now + time;
                    self.next.postpone(self.not_before);
                }
                Step::PostponeAndSet(time) => {
                    self.not_before = self.now + time;
                    self.next.postpone_and_set(self.not_before);
                    self.timer.set(self.not_before);
                }
                Step::Expedite => {
                    self.not_before = 0;
                    if self.next.expedite() {
                        self.set(None);
                    }
                }
                Step::Expire => {
                    self.now = self.timer.get();
                    let may_tick = self.next.may_tick(self.now, |time| self.set(time));
                    if may_tick {
                        self.set(None);
                    }
                    return Some(may_tick);
                }
            }
            None
        }
    }

    /// Runs all sequences of steps, with `check` after each step.
    fn run_all(check: impl Fn(&Ticker, Option<bool>)) {
        for sequence in 0..ALL.len().pow(STEPS) {
            let mut ticker = Ticker { next: NextTick::default(), now: 1, timer: Cell::new(PERIOD), not_before: 0 };
            for step in (0..STEPS).map(|step| ALL[sequence / ALL.len().pow(step) % ALL.len()]) {
                let ticked = ticker.take(step);
                check(&ticker, ticked);
            }
        }
    }

    #[test]
    fn a_tick_comes_exactly_if_it_is_not_postponed() {
        run_all(|ticker, ticked| {
            assert!(ticked.is_none_or(|ticked| ticked == (ticker.not_before <= ticker.now)));
        });
    }

    #[test]
    fn a_tick_that_is_not_postponed_comes_within_a_period() {
        run_all(|ticker, _| assert!(ticker.not_before != 0 || ticker.timer.get() <= ticker.now + PERIOD));
    }

    #[test]
    fn an_expired_timer_is_set_to_the_time_of_the_postponed_tick() {
        run_all(|ticker, ticked| assert!(ticked != Some(false) || ticker.timer.get() == ticker.not_before));
    }

    #[test]
    fn an_expedited_tick_whose_timer_was_not_set_needs_no_other_timer() {
        let next = NextTick::default();
        next.postpone(PERIOD * 2);
        assert!(!next.expedite());
    }

    #[test]
    fn no_tick_comes_after_the_end() {
        let next = NextTick::default();
        next.stop();
        assert!(next.is_stopped());
        assert!(!next.may_tick(PERIOD, |_| panic!("the timer is set")));
        assert!(next.is_stopped());
    }
}
