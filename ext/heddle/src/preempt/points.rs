//! The schedules of `Heddle::Testing`: a test says at which points a fiber may be preempted, and an exploration of the
//! core decides whether it is.

use std::time::Duration;

use heddle_core::explore::exploration::{Decision, Exploration};
use heddle_core::explore::outside_wait::OutsideWait;
use heddle_core::explore::strategy::{Deviation, Strategy};
use magnus::{Error, Integer, Object, RArray, RClass, RModule, Ruby, Value, function, prelude::*};

use super::safe_points;
use crate::ruby::frames::{self, Frame};
use crate::ruby::line_events::{self, LineEvent};
use crate::ruby::receiver::Receiver;
use crate::ruby::{error, fiber, interrupts, postponed_job, thread};
use crate::scheduler::Scheduler;
use crate::scheduler::record::FiberKey;
use crate::scheduler::ticking::NextBranch;
use crate::scheduler::waiting::EXPLORED_RUN;

/// After so many points timers and I/O are polled, as ticks do it otherwise.
const POINTS_PER_POLL: u64 = 256;
/// How many points may come without a check of interrupts, as between an `ensure` and what it calls. After as many the
/// line is that of a loop, whose end has such a check and no event.
const MOST_UNCHECKED: u32 = 32;

/// Defines the methods that `lib/heddle/testing/` calls.
pub fn define(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("explore_recorded", function!(explore_recorded, 3))?;
    native.define_singleton_method("explore_random", function!(explore_random, 2))?;
    native.define_singleton_method("explore_priorities", function!(explore_priorities, 4))?;
    native.define_singleton_method("explore_limits", function!(explore_limits, 1))?;
    native.define_singleton_method("pass_point", function!(pass_point, 4))?;
    native.define_singleton_method("preempted_at_branch?", function!(preempted_at_branch, 1))?;
    native.define_singleton_method("end_line", function!(end_line, 1))?;
    native.define_singleton_method("with_branches", function!(with_branches, 0))?;
    native.define_singleton_method("switches", function!(switches, 1))?;
    native.define_singleton_method("explored", function!(explored, 1))?;
    native.define_singleton_method("stop_clock", function!(stop_clock, 4))?;
    native.define_singleton_method("jumps_over", function!(jumps_over, 1))?;
    native.define_singleton_method("virtual_time", function!(virtual_time, 1))
}

fn explore(ruby: &Ruby, scheduler: &Scheduler, strategy: Strategy, keeps_decisions: bool) -> Result<(), Error> {
    if scheduler.state.borrow().fibers.iter().next().is_some() {
        let message = "the scheduler has fibers already: a schedule is explored from the first one on";
        return Err(error::of(ruby.exception_runtime_error(), message));
    }
    let exploration = Exploration::new(strategy, keeps_decisions);
    scheduler.state.borrow_mut().explore(exploration);
    Ok(())
}

/// Takes deviations as Arrays of three numbers, and whether all decisions are to be kept.
fn explore_recorded(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    deviations: Vec<(u32, u32, u32)>,
    keeps_decisions: bool,
) -> Result<(), Error> {
    let deviations = deviations.into_iter().map(|(from, point, to)| Deviation { from, point, to });
    explore(ruby, &scheduler, Strategy::recorded(deviations), keeps_decisions)
}

fn explore_random(ruby: &Ruby, scheduler: Receiver<Scheduler>, seed: u64) -> Result<(), Error> {
    explore(ruby, &scheduler, Strategy::random(seed), false)
}

fn explore_priorities(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    seed: u64,
    depth: u32,
    steps: u64,
) -> Result<(), Error> {
    explore(ruby, &scheduler, Strategy::priorities(seed, depth, steps), false)
}

/// From now on the schedule also decides when limits elapse, by a virtual clock.
fn explore_limits(_: &Ruby, scheduler: Receiver<Scheduler>) {
    scheduler.state.borrow_mut().limits.explore();
}

/// The timers' clock stands still from now on while a fiber can run. It jumps to the next timer when no fiber can, and
/// no event has come from outside of the thread for `idle` nanoseconds, or for a multiple of that. `factor` is the one
/// that an earlier run has learned. A patient clock always waits for the longest multiple.
fn stop_clock(_: &Ruby, scheduler: Receiver<Scheduler>, idle: u64, factor: Option<u32>, is_patient: bool) {
    let idle = Duration::from_nanos(idle);
    let wait = if is_patient { OutsideWait::patient(idle) } else { OutsideWait::new(idle, factor) };
    scheduler.state.borrow_mut().stop_clock(wait);
}

/// The multiple of `idle` that the virtual clock has learned; how often it has jumped over waits for what comes from
/// outside, how many seconds the last of these jumps was, and after how many seconds of real time it came.
fn jumps_over(_: &Ruby, scheduler: Receiver<Scheduler>) -> Option<(u32, u32, f64, f64)> {
    let (factor, jumps) = scheduler.state.borrow().clock.jumps_over()?;
    let (count, length, waited) =
        jumps.map_or((0, Duration::ZERO, Duration::ZERO), |jumps| (jumps.count, jumps.length, jumps.waited));
    Some((factor, count, length.as_secs_f64(), waited.as_secs_f64()))
}

/// How many nanoseconds the virtual clock has come since it was stopped.
fn virtual_time(ruby: &Ruby, scheduler: Receiver<Scheduler>) -> Result<Option<Integer>, Error> {
    let time = scheduler.state.borrow().clock.virtual_time();
    let Some(time) = time else { return Ok(None) };
    let whole = time.as_secs().checked_mul(1_000_000_000);
    if let Some(nanoseconds) = whole.and_then(|whole| whole.checked_add(u64::from(time.subsec_nanos()))) {
        return Ok(Some(ruby.integer_from_u64(nanoseconds)));
    }
    // More than 584 years.
    let whole: Integer = ruby.integer_from_u64(time.as_secs()).funcall("*", (1_000_000_000,))?;
    whole.funcall("+", (time.subsec_nanos(),)).map(Some)
}

/// The running fiber passes a point. Within a line (where it begins, and after a method written in C has returned to
/// it) the next branch of the line is a point, too. A fiber that yields lets others run first. Ruby checks interrupts
/// where a method or a block returns, and not where a line or a method begins: there nothing that is pending is raised.
/// Returns how many points there were; nil without an exploration.
fn pass_point(
    ruby: &Ruby,
    scheduler: Receiver<Scheduler>,
    within_line: bool,
    yields: bool,
    is_check: bool,
) -> Result<Option<u64>, Error> {
    let steps = scheduler.state.borrow_mut().exploration.as_mut().map(|exploration| exploration.step());
    if let Some(steps) = steps {
        let passed = scheduler.pass_point(ruby, steps, yields, is_check)?;
        let next = passed.filter(|_| within_line).map_or(NextBranch::NoPoint, NextBranch::WithinLine);
        scheduler.preemption.next_branch.set(next);
    }
    Ok(steps)
}

/// Whether a fiber was preempted at a branch since the last call.
fn preempted_at_branch(_: &Ruby, scheduler: Receiver<Scheduler>) -> bool {
    scheduler.preemption.preempted_at_branch.take()
}

/// Nothing within the line that has begun is a point any more.
fn end_line(_: &Ruby, scheduler: Receiver<Scheduler>) {
    scheduler.preemption.next_branch.set(NextBranch::NoPoint);
}

/// While the block runs, branches within the lines of this thread are points: the first one that a line takes after it
/// has begun, and after each return of a method written in C. A TracePoint that is enabled within the block is called
/// before this notices the event.
fn with_branches(ruby: &Ruby) -> Result<Value, Error> {
    line_events::watch(ruby, notice, || ruby.yield_value(()))?
}

/// A line begins, or a method written in C has returned to it. TracePoint has no event for branches, but Ruby checks
/// interrupts at each that it takes, and runs the postponed job. The job cannot trigger itself again for the branch
/// after that, as Ruby would run it at once.
fn notice(ruby: &Ruby, event: LineEvent) {
    let Some(scheduler) = Scheduler::of_thread(ruby) else { return };
    let next = match (scheduler.preemption.next_branch.get(), event) {
        (NextBranch::WithinLine(fiber), _) => frames::innermost(ruby).map(|frame| NextBranch::Point(fiber, frame)),
        (NextBranch::Point(fiber, frame) | NextBranch::Passed(fiber, frame), LineEvent::Returned) => {
            (frames::innermost(ruby) == Some(frame)).then_some(NextBranch::Point(fiber, frame))
        }
        (
            NextBranch::NoPoint | NextBranch::Point(..) | NextBranch::Passed(..),
            LineEvent::Begins | LineEvent::Returned,
        ) => None,
    };
    if let Some(point) = next {
        scheduler.preemption.next_branch.set(point);
        postponed_job::trigger();
    }
}

/// How many times until now another fiber was next than usually.
fn switches(_: &Ruby, scheduler: Receiver<Scheduler>) -> usize {
    scheduler.state.borrow().exploration.as_ref().map_or(0, |exploration| exploration.switches())
}

/// What was explored: the number of points, the deviations as Arrays of three numbers, and all decisions if they were
/// kept, as `[from, point, is_preemption, options, to]`.
fn explored(ruby: &Ruby, scheduler: Receiver<Scheduler>) -> Result<Option<RArray>, Error> {
    let copied = {
        let state = scheduler.state.borrow();
        state.exploration.as_ref().map(|each| (each.steps(), each.deviations().to_vec(), each.decisions().to_vec()))
    };
    let Some((steps, deviations, decisions)) = copied else { return Ok(None) };
    let explored = ruby.ary_new();
    explored.push(steps)?;
    let list = ruby.ary_new();
    for Deviation { from, point, to } in deviations {
        list.push((from, point, to))?;
    }
    explored.push(list)?;
    let list = ruby.ary_new();
    for Decision { from, point, is_preemption, options, to } in decisions {
        list.push((from, point, is_preemption, options, to))?;
    }
    explored.push(list)?;
    Ok(Some(explored))
}

impl Scheduler {
    /// Preempts the running fiber if it may be preempted and the exploration decides so. If it may, raises what is
    /// pending in it: the caller is a method of Ruby's, so no safe point is needed for that. Returns the fiber's
    /// number, if it may be preempted.
    fn pass_point(&self, ruby: &Ruby, steps: u64, yields: bool, is_check: bool) -> Result<Option<u64>, Error> {
        if self.is_inherited() || !self.is_owned_by(thread::current(ruby)) || interrupts::is_trap_pending(ruby) {
            return Ok(None);
        }
        let current = fiber::ensure_current(ruby)?;
        let Some(running) = self.preemptible_at_point(ruby, current) else { return Ok(None) };
        if self.is_in_cooperative_code(ruby) {
            return Ok(None);
        }
        if yields || steps.is_multiple_of(POINTS_PER_POLL) {
            self.poll(ruby)?;
        }
        let number = running.map_or(0, FiberKey::number);
        if is_check {
            self.preemption.unchecked_points.set((number, 0));
        }
        let may_raise = is_check || self.has_passed_unchecked(number);
        if may_raise {
            self.let_limit_elapse(ruby, number)?;
        }
        if let Some(running) = running.filter(|_| may_raise) {
            self.raise_unmasked(ruby, running)?;
        }
        if self.state.borrow_mut().is_preempted_at_point(number, yields) {
            let hook = self.enter(ruby)?.keep_wake_ups();
            // What another fiber raises into a preempted one is raised there. What is pending may have been so for long.
            self.yield_masked(ruby, current, hook.key)?;
            if may_raise {
                self.raise_unmasked(ruby, hook.key)?;
            }
        }
        Ok(Some(number))
    }

    /// Lets time pass in the fiber until a limit has elapsed, if limits are explored and the exploration decides so.
    fn let_limit_elapse(&self, ruby: &Ruby, running: u64) -> Result<(), Error> {
        let elapsed = self.state.borrow_mut().let_limit_elapse(running);
        let Some(number) = elapsed else { return Ok(()) };
        EXPLORED_RUN.get::<RClass>(ruby)?.funcall("pass_limit", (number,)).map(|_: Value| ())
    }

    /// Whether so many points of the fiber have come without a check of interrupts that one has no event.
    fn has_passed_unchecked(&self, fiber: u64) -> bool {
        let count = match self.preemption.unchecked_points.get() {
            (last, count) if last == fiber => count + 1,
            _ => 1,
        };
        self.preemption.unchecked_points.set((fiber, count));
        count > MOST_UNCHECKED
    }

    /// Ruby checks interrupts for the first time since the job was triggered within a line, in this frame of this fiber.
    /// Called from that job.
    pub(super) fn pass_branch(&self, ruby: &Ruby, current: Value, (fiber, frame): (u64, Frame)) {
        if frames::innermost(ruby) != Some(frame) || interrupts::is_trap_pending(ruby) {
            return;
        }
        let Some(running) = self.preemptible_at_point(ruby, current) else { return };
        if running.map_or(0, FiberKey::number) != fiber || self.is_in_cooperative_code(ruby) {
            return;
        }
        let (points, is_preempted) = {
            let mut state = self.state.borrow_mut();
            let points = state.exploration.as_mut().map_or(0, |exploration| exploration.step());
            (points, state.is_preempted_at_point(fiber, false))
        };
        if is_preempted {
            self.preemption.preempted_at_branch.set(true);
            self.preempt_current(ruby, current, false);
        } else if points.is_multiple_of(POINTS_PER_POLL) {
            self.tell_test(ruby, current, points);
        }
    }

    /// A tick has come in an explored schedule. Ticks decide nothing there, as they come at another place each time. But
    /// a line that only branches, such as `nil while true`, has no points. So the test looks where the fiber is if it has
    /// passed none since the last tick, and makes it pass one. Called from the tick's job.
    pub(super) fn pass_tick(&self, ruby: &Ruby, current: Value) {
        let points = self.state.borrow().exploration.as_ref().map_or(0, |exploration| exploration.steps());
        if self.preemption.points_at_tick.replace(points) != points || interrupts::is_trap_pending(ruby) {
            return;
        }
        if self.preemptible_at_point(ruby, current).is_some() && safe_points::may_switch_here(ruby) {
            self.tell_test(ruby, current, points);
        }
    }

    /// Has the test see that the fiber computes, after so many points. Called from the tick's job.
    #[cold]
    fn tell_test(&self, ruby: &Ruby, current: Value, points: u64) {
        let told = EXPLORED_RUN.get::<RClass>(ruby).and_then(|run| run.funcall::<_, _, Value>("pass_tick", (points,)));
        if let Err(raised) = told {
            self.raise_or_keep(ruby, current, &raised, false);
        }
    }

    /// [`Scheduler::preemptible_current`] at a point. Points take the place of ticks, and the end of a critical section
    /// is followed by one.
    fn preemptible_at_point(&self, ruby: &Ruby, current: Value) -> Option<Option<FiberKey>> {
        let preemptible = self.preemptible_current(ruby, current);
        self.preemption.missed_tick.set(false);
        preemptible
    }
}
