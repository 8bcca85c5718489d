//! Chooses the schedule of a test: which runnable fiber is next, and where a fiber that computes is preempted.
//!
//! A fiber passes *points*: the test's Ruby code says where they are. At a point the fiber continues or is preempted in
//! favour of another runnable fiber. When a fiber waits, yields or ends, a runnable fiber is next. Without an
//! exploration a fiber continues at each point, and the first fiber in the queue is next. A schedule is a list of the
//! [`Deviation`]s from that.
//!
//! Fibers have numbers, in the order in which they appear, and each counts its own decisions. So a deviation names the
//! same place whatever other fibers do meanwhile, and a schedule can be shortened.
//!
//! Where limits are explored, too, the clock has a number like a fiber: at a point the fiber continues, or a limit
//! elapses.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::iter;

/// After so many points without a wait, a fiber yields if another one is runnable. So a loop that spins until another
/// fiber has done something ends under every strategy.
const POINTS_OF_A_TURN: u32 = 1_000;

/// The key of the clock. No fiber has it.
const CLOCK: u64 = u64::MAX;

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

/// A decision that had more than one possible outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The fiber that ran.
    pub from: u32,
    /// The number of its decision, from 1.
    pub point: u32,
    /// Whether the fiber could have continued, so that any other outcome is a preemption.
    pub is_preemption: bool,
    /// The fibers that could be next. The first one is next without an exploration.
    pub options: Vec<u32>,
    /// The fiber that was next.
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

/// An exploration of one run.
#[derive(Debug)]
pub struct Exploration {
    strategy: Strategy,
    /// The number of each fiber, by the scheduler's key for it.
    numbers: HashMap<u64, u32>,
    /// How many decisions each fiber has had, by its number.
    points: Vec<u32>,
    /// The fiber that ran last.
    current: u32,
    /// Which fiber is next, as it was decided at a point.
    decided: Option<u32>,
    /// How many points the running fiber has passed since it was chosen.
    turn: u32,
    steps: u64,
    deviations: Vec<Deviation>,
    /// How many of the deviations are limits that have elapsed.
    elapsed: usize,
    /// All decisions, if they are wanted.
    decisions: Option<Vec<Decision>>,
}

impl Exploration {
    /// Begins. `keeps_decisions` says whether all decisions are wanted, and not only the deviations.
    pub fn new(strategy: Strategy, keeps_decisions: bool) -> Self {
        Exploration {
            strategy,
            numbers: HashMap::new(),
            points: Vec::new(),
            current: 0,
            decided: None,
            turn: 0,
            steps: 0,
            deviations: Vec::new(),
            elapsed: 0,
            decisions: keeps_decisions.then(Vec::new),
        }
    }

    /// Counts a point, whether or not the fiber may be preempted there. Returns how many there were.
    pub fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }

    /// How many points there were.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// How the schedule differs from the usual one.
    pub fn deviations(&self) -> &[Deviation] {
        &self.deviations
    }

    /// How many times another fiber was next than usually.
    pub fn switches(&self) -> usize {
        self.deviations.len() - self.elapsed
    }

    /// All decisions; empty if they are not kept.
    pub fn decisions(&self) -> &[Decision] {
        self.decisions.as_deref().unwrap_or_default()
    }

    /// The fiber with this key passes a point, and those with the keys `queued` are runnable. Returns whether it is
    /// preempted. Then [`Exploration::next_index`] returns the fiber that was chosen. A fiber that `yields` is the last
    /// of the choices, and not the first.
    pub fn is_preempted(&mut self, running: u64, yields: bool, queued: impl Iterator<Item = u64>) -> bool {
        let from = self.number(running);
        self.current = from;
        self.turn += 1;
        let yields = yields || self.turn > POINTS_OF_A_TURN;
        let mut options = Vec::new();
        if !yields {
            options.push(from);
        }
        self.add_options(&mut options, queued);
        if yields {
            self.turn = 0;
            self.add_options(&mut options, iter::once(running));
        }
        let to = self.decide(!yields, options);
        self.decided = (to != from).then_some(to);
        to != from
    }

    /// The fiber with this key passes a point while a limit is pending. Returns whether the limit elapses there.
    pub fn lets_limit_elapse(&mut self, running: u64) -> bool {
        let from = self.number(running);
        let clock = self.number(CLOCK);
        self.current = from;
        if self.decide(true, vec![from, clock]) != clock {
            return false;
        }
        self.elapsed += 1;
        if let Strategy::Priorities(priorities) = &mut self.strategy
            && priorities.numbers.below(2) == 0
        {
            // Otherwise all limits would elapse after the first one.
            priorities.yielded(clock);
        }
        true
    }

    /// Which of the `queued` fibers is next. There is at least one.
    pub fn next_index(&mut self, queued: impl Iterator<Item = u64> + Clone) -> usize {
        let mut options = Vec::new();
        self.add_options(&mut options, queued.clone());
        let to = match self.decided.take().filter(|decided| options.contains(decided)) {
            Some(decided) => decided,
            None => self.decide(false, options),
        };
        self.current = to;
        self.turn = 0;
        queued.into_iter().position(|key| self.number(key) == to).unwrap_or(0)
    }

    fn add_options(&mut self, options: &mut Vec<u32>, keys: impl Iterator<Item = u64>) {
        for key in keys {
            let number = self.number(key);
            if !options.contains(&number) {
                options.push(number);
            }
        }
    }

    fn number(&mut self, key: u64) -> u32 {
        let new = u32::try_from(self.points.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(key).or_insert(new);
        if number == new {
            self.points.push(0);
        }
        number
    }

    fn decide(&mut self, is_preemption: bool, options: Vec<u32>) -> u32 {
        let (from, usual) = (self.current, options[0]);
        let point = self.points.get_mut(from as usize).map_or(0, |points| {
            *points += 1;
            *points
        });
        if let Strategy::Priorities(priorities) = &mut self.strategy {
            if is_preemption {
                priorities.pass(from, self.steps);
            } else if options.contains(&from) {
                priorities.yielded(from);
            }
        }
        if options.len() == 1 {
            return usual;
        }
        let to = match &mut self.strategy {
            Strategy::Recorded(deviations) => {
                deviations.get(&(from, point)).copied().filter(|to| options.contains(to)).unwrap_or(usual)
            }
            Strategy::Random(numbers, one_in) if is_preemption => {
                // A limit elapses once, and should also do so late in a long block.
                let is_limit = options.last() == self.numbers.get(&CLOCK);
                let one_in = if is_limit { *one_in * *one_in } else { *one_in };
                if numbers.below(one_in) == 0 { options[1 + pick(numbers, options.len() - 1)] } else { usual }
            }
            Strategy::Random(numbers, _) => options[pick(numbers, options.len())],
            Strategy::Priorities(priorities) => priorities.highest(&options),
        };
        if to != usual {
            self.deviations.push(Deviation { from, point, to });
        }
        if let Some(decisions) = &mut self.decisions {
            decisions.push(Decision { from, point, is_preemption, options, to });
        }
        to
    }
}

fn pick(numbers: &mut Numbers, count: usize) -> usize {
    usize::try_from(numbers.below(count as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
