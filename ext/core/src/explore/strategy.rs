//! How an exploration chooses: as was recorded, at random, or by priorities.

use std::cmp::Reverse;
use std::collections::HashMap;

/// At its decision `point`, the fiber `from` was followed by `to`, which would not have been next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deviation {
    /// The fiber that ran.
    pub from: u32,
    /// The number of its decision, from 1.
    pub point: u32,
    /// The fiber that runs next.
    pub to: u32,
}

/// How the next fiber is chosen.
#[derive(Debug)]
pub enum Strategy {
    /// By these deviations, in any order, and as without an exploration elsewhere.
    Recorded(HashMap<(u32, u32), u32>),
    /// At random. A fiber is preempted at one point in so many.
    Random(Numbers, u64),
    /// By priorities: the probabilistic concurrency testing of Burckhardt and others (2010).
    Priorities(Priorities),
}

impl Strategy {
    /// A schedule that is known.
    pub fn recorded(deviations: impl IntoIterator<Item = Deviation>) -> Self {
        Strategy::Recorded(deviations.into_iter().map(|each| ((each.from, each.point), each.to)).collect())
    }

    /// A random schedule. The seed also decides how often fibers are preempted.
    pub fn random(seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let one_in = 2 << numbers.below(5);
        Strategy::Random(numbers, one_in)
    }

    /// Random priorities, and `depth - 1` changes of priorities at random among the first `steps` points. Which of the
    /// changes gives the lower priority is random, too: a defect may need that the fiber that was lowered later
    /// continues first.
    pub fn priorities(seed: u64, depth: u32, steps: u64) -> Self {
        let mut numbers = Numbers(seed);
        let changes =
            (1..depth).map(|rank| Change { step: 1 + numbers.below(steps.max(1)), priority: -i64::from(rank) });
        let mut changes: Vec<Change> = changes.collect();
        changes.sort_unstable_by_key(|change| Reverse(change.step));
        Strategy::Priorities(Priorities { numbers, changes, of: Vec::new(), lowest: -i64::from(depth) })
    }

    /// The fiber `from` is about to be followed by one of the `options`, after so many `steps`.
    pub(super) fn pass(&mut self, from: u32, is_preemption: bool, options: &[u32], steps: u64) {
        let Strategy::Priorities(priorities) = self else { return };
        if is_preemption {
            priorities.pass(from, steps);
        } else if options.contains(&from) {
            priorities.yielded(from);
        }
    }

    /// A limit has elapsed, as the clock was chosen.
    pub(super) fn limit_elapsed(&mut self, clock: u32) {
        if let Strategy::Priorities(priorities) = self
            && priorities.numbers.below(2) == 0
        {
            // Otherwise all limits would elapse after the first one.
            priorities.yielded(clock);
        }
    }

    /// Which of the `options`, of which there are at least two, follows at this decision of a fiber, which is named by
    /// the fiber's number and its own. The first one is the usual one. `is_limit` says that the other is a limit's end.
    pub(super) fn choose(&mut self, decision: (u32, u32), is_preemption: bool, is_limit: bool, options: &[u32]) -> u32 {
        let usual = options[0];
        match self {
            Strategy::Recorded(deviations) => {
                deviations.get(&decision).copied().filter(|to| options.contains(to)).unwrap_or(usual)
            }
            Strategy::Random(numbers, one_in) if is_preemption => {
                let one_in = if is_limit { *one_in * *one_in } else { *one_in };
                if numbers.below(one_in) == 0 { options[1 + numbers.index(options.len() - 1)] } else { usual }
            }
            Strategy::Random(numbers, _) => options[numbers.index(options.len())],
            Strategy::Priorities(priorities) => priorities.highest(options),
        }
    }
}

/// Pseudo-random numbers: SplitMix64, the same on each machine.
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// An index of a list of `count` elements.
    fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap_or(0)
    }
}

/// At this step the running fiber gets this priority.
#[derive(Debug)]
struct Change {
    step: u64,
    priority: i64,
}

/// The priorities of the fibers.
#[derive(Debug)]
pub struct Priorities {
    numbers: Numbers,
    /// The next one is the last.
    changes: Vec<Change>,
    /// By number of fiber. Initial priorities are positive, changed ones are negative.
    of: Vec<i64>,
    /// The priority of the fiber that has yielded last. Below those of all changes.
    lowest: i64,
}

impl Priorities {
    fn of(&mut self, fiber: u32) -> i64 {
        let index = fiber as usize;
        while self.of.len() <= index {
            let priority = i64::try_from(self.numbers.below(1 << 62)).unwrap_or(i64::MAX);
            self.of.push(1 + priority);
        }
        self.of[index]
    }

    fn set(&mut self, fiber: u32, priority: i64) {
        self.of(fiber);
        self.of[fiber as usize] = priority;
    }

    /// The fiber may be preempted at this step.
    fn pass(&mut self, fiber: u32, step: u64) {
        if let Some(change) = self.changes.pop_if(|change| change.step <= step) {
            self.set(fiber, change.priority);
        }
    }

    /// A fiber that yields lets the others run, whatever its priority.
    fn yielded(&mut self, fiber: u32) {
        self.lowest -= 1;
        self.set(fiber, self.lowest);
    }

    fn highest(&mut self, options: &[u32]) -> u32 {
        let (mut best, mut priority) = (options[0], self.of(options[0]));
        for option in &options[1..] {
            let other = self.of(*option);
            if other > priority {
                (best, priority) = (*option, other);
            }
        }
        best
    }
}
