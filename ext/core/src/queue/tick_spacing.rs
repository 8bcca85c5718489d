//! How far apart ticks are: further and further while they find that all fibers yield by themselves.
//!
//! A tick costs an interrupt and two switches of threads. On a virtual machine that is some 50 µs of the fibers' time,
//! as each leaves the guest, and leaves the processor's caches and predictors cold. So on a server whose requests are
//! all short the ticks would cost more than the scheduler.

/// After how many ticks that find a short slice ticks come half as often.
const TICKS_PER_DOUBLING: u32 = 64;
/// How often that happens. A fiber that computes waits for less than a usual quantum of ten ticks until it is noticed.
const DOUBLINGS: u32 = 2;
/// How many short slices one of unknown age outweighs. With so few, ticks also become rarer on a server that collects
/// garbage for a tenth of its time.
const PER_UNKNOWN: u32 = 8;

/// For how long the running fiber has run when a tick comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceAge {
    /// For less than half of a usual period. It is the slice's first tick.
    New,
    /// For less than half of a usual period.
    Short,
    /// It is the slice's first tick, and no slice was dated within that time.
    Unknown,
    /// For longer: at this tick or at the next one it is to yield to a fiber that is runnable.
    Long,
}

/// How many ticks have found a short slice since one has found a long one. Those that found one of unknown age are
/// subtracted.
#[derive(Debug, Clone, Copy, Default)]
pub struct TickSpacing {
    short: u32,
}

impl TickSpacing {
    /// A tick has come. A slice of unknown age may contain a garbage collection; but if many are of unknown age, fibers
    /// compute.
    pub fn note(&mut self, age: SliceAge) {
        match age {
            SliceAge::New | SliceAge::Short => self.short = (self.short + 1).min(TICKS_PER_DOUBLING * DOUBLINGS),
            SliceAge::Unknown => self.short = self.short.saturating_sub(PER_UNKNOWN),
            SliceAge::Long => self.short = 0,
        }
    }

    /// After how many usual periods the next tick comes.
    pub fn periods(self) -> u32 {
        1 << (self.short / TICKS_PER_DOUBLING)
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
        let mut spacing = spacing_after(TICKS_PER_DOUBLING * 2);
        spacing.note(SliceAge::Unknown);
        assert_eq!(spacing.periods(), 2);
    }

    #[test]
    fn some_slices_of_unknown_age_end_it() {
        let mut spacing = spacing_after(TICKS_PER_DOUBLING * 2);
        (0..TICKS_PER_DOUBLING * 2 / PER_UNKNOWN).for_each(|_| spacing.note(SliceAge::Unknown));
        assert_eq!(spacing.periods(), 1);
    }

    #[test]
    fn ticks_become_rarer_though_one_of_ten_finds_a_slice_of_unknown_age() {
        let mut spacing = TickSpacing::default();
        for tick in 1..TICKS_PER_DOUBLING * 20 {
            spacing.note(if tick % 10 == 0 { SliceAge::Unknown } else { SliceAge::Short });
        }
        assert!(spacing.periods() > 1);
    }
}
