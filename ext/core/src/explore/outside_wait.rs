//! How long a virtual clock waits, in real time, for what may come from outside of the thread, before it jumps.
//!
//! Many tests wait for I/O that never comes, such as a limit's; others for a server, which takes its time. The clock
//! cannot know which of them this is, so it learns. It begins with a multiple of the least wait. Each wait in vain
//! halves the next one, down to the least. An event that comes later than after the least wait restores the multiple.
//! A patient clock learns nothing: it always waits the longest time.

use std::time::Duration;

/// The longest wait, in multiples of the least one.
const MOST: u32 = 16;

/// The waits of one virtual clock.
#[derive(Debug)]
pub struct OutsideWait {
    least: Duration,
    factor: u32,
    is_patient: bool,
}

impl OutsideWait {
    /// `factor` is what [`OutsideWait::factor`] was after an earlier run; without one it is the highest.
    pub fn new(least: Duration, factor: Option<u32>) -> Self {
        OutsideWait { least, factor: factor.unwrap_or(MOST).clamp(1, MOST), is_patient: false }
    }

    /// Those of a clock that always waits the longest time.
    pub fn patient(least: Duration) -> Self {
        OutsideWait { is_patient: true, ..OutsideWait::new(least, None) }
    }

    /// How long the clock waits now.
    pub fn length(&self) -> Duration {
        self.least.saturating_mul(self.factor)
    }

    /// How many times the least wait that is.
    pub fn factor(&self) -> u32 {
        self.factor
    }

    /// No event has come for that long.
    pub fn was_in_vain(&mut self) {
        if !self.is_patient {
            self.factor = (self.factor / 2).max(1);
        }
    }

    /// An event has come after this time.
    pub fn was_worth(&mut self, time: Duration) {
        if time > self.least {
            self.factor = MOST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(50);

    #[test]
    fn waits_in_vain_become_shorter_until_the_least() {
        let mut wait = OutsideWait::new(LEAST, None);
        let lengths: Vec<u128> = (0..6)
            .map(|_| {
                let length = wait.length();
                wait.was_in_vain();
                length.as_millis()
            })
            .collect();
        assert_eq!(lengths, [800, 400, 200, 100, 50, 50]);
    }

    #[test]
    fn an_event_after_the_least_wait_restores_the_longest_wait() {
        let mut wait = OutsideWait::new(LEAST, Some(1));
        wait.was_worth(LEAST * 2);
        assert_eq!(wait.length(), LEAST * MOST);
    }

    #[test]
    fn a_patient_clock_always_waits_the_longest_time() {
        let mut wait = OutsideWait::patient(LEAST);
        wait.was_in_vain();
        assert_eq!(wait.length(), LEAST * MOST);
    }

    #[test]
    fn an_event_within_the_least_wait_tells_nothing() {
        let mut wait = OutsideWait::new(LEAST, Some(2));
        wait.was_worth(LEAST);
        assert_eq!(wait.length(), LEAST * 2);
    }

    #[test]
    fn there_is_no_wait_where_the_least_is_none() {
        assert_eq!(OutsideWait::new(Duration::ZERO, None).length(), Duration::ZERO);
    }
}
