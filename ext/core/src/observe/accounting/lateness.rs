//! Which fibers were late, and which ones ran meanwhile, in the last seconds.

use std::collections::VecDeque;

use super::names::UNNAMED;

/// A fiber that waits for less than this after its wake-up is not late, in nanoseconds.
const LATE: u64 = 10_000_000;
/// For how long a late fiber is remembered.
const REMEMBERED: u64 = 10_000_000_000;
/// Slices of one name are one slice, if less than this is between them.
const SHORT: u64 = 100_000;
/// How many slices are kept.
const SLICES: usize = 2048;
/// How many late fibers are kept.
const LATE_FIBERS: usize = 64;
/// How many names a late fiber tells that ran meanwhile.
const CAUSES: usize = 3;

#[derive(Debug)]
struct MergedSlice {
    name: usize,
    begin: u64,
    end: u64,
    ran: u64,
}

/// A fiber that was late.
#[derive(Debug, Clone)]
pub struct Late {
    /// When it ran at last.
    pub at: u64,
    /// The number of its name.
    pub name: usize,
    /// How long it had been runnable.
    pub waited: u64,
    /// The numbers of the names that ran meanwhile, and how long; the longest first.
    pub causes: Vec<(usize, u64)>,
}

/// See the module. Times are in nanoseconds.
#[derive(Debug, Default)]
pub struct Lateness {
    slices: VecDeque<MergedSlice>,
    late: VecDeque<Late>,
}

impl Lateness {
    /// A fiber with this name has run.
    pub fn ran(&mut self, name: usize, begin: u64, end: u64) {
        let ran = end.saturating_sub(begin);
        if let Some(last) = self.slices.back_mut()
            && last.name == name
            && begin.saturating_sub(last.end) < SHORT
        {
            last.end = end;
            last.ran += ran;
            return;
        }
        if self.slices.len() == SLICES {
            self.slices.pop_front();
        }
        self.slices.push_back(MergedSlice { name, begin, end, ran });
    }

    /// A fiber that was woken runs, after it has waited for its turn. Of several that are late at the same time, the
    /// latest one counts.
    pub fn waited(&mut self, name: usize, since: u64, now: u64) {
        let waited = now.saturating_sub(since);
        if waited < LATE {
            return;
        }
        if let Some(last) = self.late.back()
            && now.saturating_sub(last.at) < LATE
        {
            if waited <= last.waited {
                return;
            }
            self.late.pop_back();
        }
        if self.late.len() == LATE_FIBERS {
            self.late.pop_front();
        }
        let causes = self.causes(since, now);
        self.late.push_back(Late { at: now, name, waited, causes });
    }

    /// The fiber that runs since then had no name, and has taken one. If it was late, it is told by that name: the fiber
    /// of a connection takes a request's name after it has read the request.
    pub fn named(&mut self, name: usize, began: u64) {
        if let Some(last) = self.late.back_mut()
            && last.at == began
            && last.name == UNNAMED
        {
            last.name = name;
        }
    }

    /// Those that were late in the last seconds, the last one first.
    pub fn late(&self, now: u64) -> impl Iterator<Item = &Late> {
        self.late.iter().rev().take_while(move |late| now.saturating_sub(late.at) < REMEMBERED)
    }

    fn causes(&self, since: u64, now: u64) -> Vec<(usize, u64)> {
        let mut causes: Vec<(usize, u64)> = Vec::new();
        for slice in self.slices.iter().rev().take_while(|slice| slice.end > since) {
            let inside = slice.end.min(now).saturating_sub(slice.begin.max(since)).min(slice.ran);
            match causes.iter_mut().find(|(name, _)| *name == slice.name) {
                Some((_, ran)) => *ran += inside,
                None => causes.push((slice.name, inside)),
            }
        }
        causes.retain(|(_, ran)| *ran > 0);
        causes.sort_by_key(|(_, ran)| std::cmp::Reverse(*ran));
        causes.truncate(CAUSES);
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn only(lateness: &Lateness, now: u64) -> Late {
        let late: Vec<Late> = lateness.late(now).cloned().collect();
        assert_eq!(late.len(), 1, "{late:?}");
        late[0].clone()
    }

    #[test]
    fn a_late_fiber_tells_which_names_ran_meanwhile() {
        let mut lateness = Lateness::default();
        lateness.ran(7, 0, 50 * MS);
        lateness.ran(8, 50 * MS, 60 * MS);
        lateness.ran(7, 60 * MS, 100 * MS);
        lateness.waited(9, 40 * MS, 100 * MS);
        let late = only(&lateness, 100 * MS);
        assert_eq!((late.name, late.waited), (9, 60 * MS));
        assert_eq!(late.causes, [(7, 50 * MS), (8, 10 * MS)], "only the part of its wait counts");
    }

    #[test]
    fn a_late_fiber_has_the_name_that_it_takes_before_others_run() {
        let mut lateness = Lateness::default();
        lateness.waited(UNNAMED, 0, 2 * LATE);
        lateness.named(5, 2 * LATE);
        assert_eq!(only(&lateness, 2 * LATE).name, 5);
    }

    #[test]
    fn a_name_that_another_fiber_takes_is_not_the_late_one_s() {
        let mut lateness = Lateness::default();
        lateness.waited(UNNAMED, 0, 2 * LATE);
        lateness.named(5, 2 * LATE + 1);
        assert_eq!(only(&lateness, 2 * LATE + 1).name, UNNAMED);
    }

    #[test]
    fn a_fiber_that_is_not_late_is_not_remembered() {
        let mut lateness = Lateness::default();
        lateness.waited(1, 0, LATE - 1);
        assert_eq!(lateness.late(LATE).count(), 0);
    }

    #[test]
    fn of_those_that_are_late_at_once_the_latest_is_remembered() {
        let mut lateness = Lateness::default();
        lateness.waited(1, 0, 2 * LATE);
        lateness.waited(2, LATE, 2 * LATE + 1);
        lateness.waited(3, 0, 2 * LATE + 2);
        assert_eq!(only(&lateness, 2 * LATE + 3).name, 3);
    }

    #[test]
    fn a_late_fiber_is_forgotten_after_some_seconds() {
        let mut lateness = Lateness::default();
        lateness.waited(1, 0, LATE);
        assert_eq!(lateness.late(LATE + REMEMBERED - 1).count(), 1);
        assert_eq!(lateness.late(LATE + REMEMBERED).count(), 0);
    }

    #[test]
    fn the_memory_for_slices_and_late_fibers_is_bounded() {
        let mut lateness = Lateness::default();
        for index in 0..10_000 {
            let begin = index * 20 * MS;
            lateness.ran(index as usize, begin, begin + 15 * MS);
            lateness.waited(1, begin, begin + 15 * MS);
        }
        assert_eq!((lateness.slices.len(), lateness.late.len()), (SLICES, LATE_FIBERS));
    }

    #[test]
    fn short_slices_add_up() {
        const US: u64 = 1_000;
        let mut lateness = Lateness::default();
        for index in 0..10_000 {
            lateness.ran(6, 2 * index * US, (2 * index + 1) * US);
        }
        for index in 0..1000 {
            lateness.ran(7 + index as usize % 2, 20 * MS + 10 * index * US, 20 * MS + 10 * (index + 1) * US);
        }
        assert_eq!(lateness.slices.len(), 1001);
        lateness.waited(9, 0, 30 * MS);
        assert_eq!(only(&lateness, 30 * MS).causes, [(6, 10 * MS), (8, 5 * MS), (7, 5 * MS)]);
    }
}
