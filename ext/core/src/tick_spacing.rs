//! How far apart ticks are: further and further while they find that all fibers yield by themselves.
//!
//! A tick costs an interrupt and two switches of threads. On a virtual machine that is some 50 µs of the fibers' time,
//! as each leaves the guest, and leaves the processor's caches and predictors cold. So on a server whose requests are
//! all short the ticks would cost more than the scheduler.

/// After how many ticks that find a short slice ticks come half as often.
const TICKS_PER_DOUBLING: u32 = 64;
/// How often that happens. A fiber that computes waits for less than a usual quantum of ten ticks until it is noticed.
const DOUBLINGS: u32 = 2;

/// For how long the running fiber has run when a tick comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceAge {
    /// Certainly for less than half of a usual period.
    Short,
    /// Nobody has read the clock since. It is the slice's first tick.
    Unknown,
    /// For longer: at this tick or at the next one it is to yield to a fiber that is due.
    Long,
}

/// How many ticks have found a short slice since one has found a long one.
#[derive(Debug, Clone, Copy, Default)]
pub struct TickSpacing {
    short: u32,
}

impl TickSpacing {
    /// A tick has come. A slice of unknown age changes nothing: it may contain a garbage collection, and its next tick
    /// tells.
    pub fn note(&mut self, age: SliceAge) {
        match age {
            SliceAge::Short => self.short = self.short.saturating_add(1),
            SliceAge::Unknown => {}
            SliceAge::Long => self.short = 0,
        }
    }

    /// After how many usual periods the next tick comes.
    pub fn periods(self) -> u32 {
        1 << (self.short / TICKS_PER_DOUBLING).min(DOUBLINGS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spacing_after(short_ticks: u32) -> TickSpacing {
        let mut spacing = TickSpacing::default();
        (0..short_ticks).for_each(|_| spacing.note(SliceAge::Short));
        spacing
    }

    #[test]
    fn ticks_come_at_their_usual_time_at_first() {
        assert_eq!(spacing_after(TICKS_PER_DOUBLING - 1).periods(), 1);
    }

    #[test]
    fn ticks_become_rarer_while_all_slices_are_short() {
        assert_eq!(spacing_after(TICKS_PER_DOUBLING).periods(), 2);
        assert_eq!(spacing_after(TICKS_PER_DOUBLING * 2).periods(), 4);
    }

    #[test]
    fn ticks_do_not_become_rarer_without_end() {
        assert_eq!(spacing_after(TICKS_PER_DOUBLING * 100).periods(), 4);
    }

    #[test]
    fn a_long_slice_ends_it_at_once() {
        let mut spacing = spacing_after(TICKS_PER_DOUBLING * 2);
        spacing.note(SliceAge::Long);
        assert_eq!(spacing.periods(), 1);
    }

    #[test]
    fn a_slice_of_unknown_age_does_not_end_it() {
        let mut spacing = spacing_after(TICKS_PER_DOUBLING);
        spacing.note(SliceAge::Unknown);
        assert_eq!(spacing.periods(), 2);
    }
}
