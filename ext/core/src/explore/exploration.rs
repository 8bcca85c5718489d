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

use std::collections::HashMap;
use std::iter;

use super::strategy::{Deviation, Strategy};

/// After so many points without a wait, a fiber yields if another one is runnable. So a loop that spins until another
/// fiber has done something ends under every strategy.
const POINTS_OF_A_TURN: u32 = 1_000;
/// After so many starts the fiber that starts others goes to the end of the queue. A clock decides otherwise.
const STARTS_OF_A_ROUND: u32 = 16;

/// The key of the clock. No fiber has it.
const CLOCK: u64 = u64::MAX;

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
    /// How many fibers were started in this round.
    starts: u32,
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
            starts: 0,
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

    /// The current fiber starts another one. Returns whether it continues ahead of the queue.
    pub fn continues_after_start(&mut self) -> bool {
        self.starts = (self.starts + 1) % STARTS_OF_A_ROUND;
        self.starts != 0
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
        self.strategy.limit_elapsed(clock);
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
        self.strategy.pass(from, is_preemption, &options, self.steps);
        if options.len() == 1 {
            return usual;
        }
        // A limit elapses once, and should also do so late in a long block.
        let is_limit = options.last() == self.numbers.get(&CLOCK);
        let to = self.strategy.choose((from, point), is_preemption, is_limit, &options);
        if to != usual {
            self.deviations.push(Deviation { from, point, to });
        }
        if let Some(decisions) = &mut self.decisions {
            decisions.push(Decision { from, point, is_preemption, options, to });
        }
        to
    }
}

#[cfg(test)]
mod tests;
