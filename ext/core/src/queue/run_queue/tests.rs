mod sleepers;
mod starters;

use super::*;

const QUANTUM: Duration = Duration::from_millis(10);
const TICK: Duration = Duration::from_millis(1);

fn queue() -> RunQueue<&'static str> {
    RunQueue::new(Policy { quantum: QUANTUM, tick: TICK })
}

fn pop(queue: &mut RunQueue<&'static str>) -> Option<&'static str> {
    queue.pop(|entry| Some(*entry))
}

fn pop_at(queue: &mut RunQueue<&'static str>, now: Instant) -> Option<&'static str> {
    queue.pop_with_clock(now, &mut |entry| Some(*entry))
}

/// Preempts a fiber that has computed since `began`.
fn preempt(queue: &mut RunQueue<&'static str>, entry: &'static str, began: Instant, now: Instant) {
    queue.slice = Some(Slice::start(began));
    queue.push_preempted(entry, now);
}

/// Whether a fiber that has computed since `began` should be preempted.
fn should_preempt(queue: &mut RunQueue<&'static str>, began: Instant, now: Instant) -> bool {
    queue.slice = Some(Slice::start(began));
    queue.should_preempt(now)
}

#[test]
fn woken_fibers_run_in_the_order_of_waking() {
    let mut queue = queue();
    queue.push_woken("first");
    queue.push_woken("second");
    assert_eq!((pop(&mut queue), pop(&mut queue), pop(&mut queue)), (Some("first"), Some("second"), None));
}

#[test]
fn the_upcoming_fibers_are_those_that_are_dequeued_next() {
    let mut queue = queue();
    queue.push_woken("second");
    queue.push_woken("third");
    queue.push_next("first");
    let upcoming: Vec<_> = (0..4).map(|index| queue.upcoming(index).copied()).collect();
    assert_eq!(upcoming, [Some("first"), Some("second"), Some("third"), None]);
}

#[test]
fn a_woken_fiber_runs_before_a_preempted_one() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "preempted", now, now);
    queue.push_woken("woken");
    assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("woken"), Some("preempted")));
}

#[test]
fn a_fiber_to_which_another_one_hands_off_runs_ahead_of_all_classes() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "preempted", now - QUANTUM, now);
    queue.push_starter("starter", || now);
    queue.push_woken("woken");
    queue.push_slept("sleeper", |_| false);
    queue.prefer_sleepers(|_| false);
    queue.push_first("first");
    assert_eq!((queue.len(), pop_at(&mut queue, now + QUANTUM)), (5, Some("first")));
    assert_eq!((queue.len(), pop_at(&mut queue, now + QUANTUM)), (4, Some("sleeper")));
}

#[test]
fn of_two_fibers_to_which_others_hand_off_the_last_one_runs_first() {
    let mut queue = queue();
    queue.push_woken("woken");
    queue.push_first("first");
    queue.push_first("second");
    assert_eq!([(); 3].map(|()| pop(&mut queue)), ["second", "first", "woken"].map(Some));
}

#[test]
fn a_fiber_preempted_within_its_quantum_returns_to_the_head_of_its_class() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "first", now, now);
    preempt(&mut queue, "second", now, now);
    assert_eq!(pop_at(&mut queue, now), Some("first"));
    queue.push_preempted("first", now);
    assert_eq!(pop_at(&mut queue, now), Some("first"));
}

#[test]
fn a_fiber_preempted_for_the_first_time_goes_to_the_end_of_the_fresh_class() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "first", now, now);
    preempt(&mut queue, "second", now, now);
    assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("first"), Some("second")));
}

#[test]
fn a_fresh_fiber_runs_before_a_spent_one() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "spent", now, now + QUANTUM);
    preempt(&mut queue, "fresh", now, now);
    assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("fresh"), Some("spent")));
}

#[test]
fn fresh_fibers_do_not_starve_spent_ones() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "spent", now, now + QUANTUM);
    preempt(&mut queue, "fresh", now, now);
    preempt(&mut queue, "another", now, now);
    assert_eq!(pop_at(&mut queue, now), Some("fresh"));
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("spent"));
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("another"));
}

#[test]
fn a_woken_fiber_runs_before_a_late_spent_one() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "spent", now, now + QUANTUM);
    queue.spent_waiting_since = Some(now);
    queue.push_woken("woken");
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("woken"));
}

#[test]
fn a_late_spent_fiber_has_a_whole_quantum_if_no_fiber_is_woken() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "spent", now, now + QUANTUM);
    preempt(&mut queue, "fresh", now, now);
    queue.spent_waiting_since = Some(now);
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("spent"));
    assert!(!queue.should_preempt(now + QUANTUM + QUANTUM / 2));
    assert!(queue.should_preempt(now + QUANTUM + QUANTUM));
}

#[test]
fn a_slice_ends_with_its_quantum_if_another_fiber_was_preempted() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "other", now, now + QUANTUM);
    queue.slice = Some(Slice::start(now));
    assert_eq!(queue.slice_ends_at(now + QUANTUM / 4), now + QUANTUM);
}

#[test]
fn the_quantum_of_the_only_cpu_bound_fiber_starts_over() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.slice = Some(Slice::start(now));
    assert_eq!(queue.slice_ends_at(now + QUANTUM / 4), now + QUANTUM / 4 + QUANTUM);
}

#[test]
fn a_fiber_that_has_used_its_quantum_goes_to_the_end() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "other", now, now + QUANTUM);
    preempt(&mut queue, "done", now, now + QUANTUM);
    assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("other"), Some("done")));
}

#[test]
fn the_slices_of_a_quantum_add_up() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "one", now, now + QUANTUM * 3 / 4);
    preempt(&mut queue, "other", now, now + QUANTUM);
    assert_eq!(pop(&mut queue), Some("one"));
    assert!(queue.should_preempt(Instant::now() + QUANTUM / 2));
}

#[test]
fn a_woken_fiber_preempts_the_current_one_immediately() {
    let (mut queue, now) = (queue(), Instant::now());
    assert!(!should_preempt(&mut queue, now, now));
    queue.push_woken("woken");
    assert!(should_preempt(&mut queue, now, now));
}

#[test]
fn a_preempted_fiber_preempts_the_current_one_after_its_quantum() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "other", now, now);
    assert!(!should_preempt(&mut queue, now, now + QUANTUM - TICK));
    assert!(should_preempt(&mut queue, now, now + QUANTUM));
}

#[test]
fn the_only_cpu_bound_fiber_is_not_preempted() {
    let now = Instant::now();
    assert!(!should_preempt(&mut queue(), now, now + QUANTUM * 100));
}

#[test]
fn a_steady_stream_of_woken_fibers_does_not_starve_a_preempted_one() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "preempted", now, now);
    queue.push_woken("woken");
    queue.push_woken("woken");
    let later = now + QUANTUM;
    assert_eq!(pop_at(&mut queue, now), Some("woken"));
    assert_eq!(pop_at(&mut queue, later), Some("preempted"));
    assert!(!queue.should_preempt(later));
    assert!(queue.should_preempt(later + TICK));
}

#[test]
fn void_entries_are_dropped() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "void", now, now + QUANTUM);
    preempt(&mut queue, "valid", now, now + QUANTUM);
    queue.push_woken("void");
    assert_eq!(queue.pop(|entry| (*entry == "valid").then_some(*entry)), Some("valid"));
    assert!(queue.is_empty());
}

#[test]
fn a_fresh_fiber_that_has_waited_for_a_quantum_alternates_with_woken_ones_by_ticks() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "fresh", now, now);
    for _ in 0..4 {
        queue.push_woken("woken");
    }
    assert_eq!(pop_at(&mut queue, now), Some("woken"));
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("fresh"));
    queue.push_preempted("fresh", now + QUANTUM);
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("woken"));
    assert_eq!(pop_at(&mut queue, now + QUANTUM + TICK), Some("fresh"));
}

#[test]
fn a_spent_fiber_does_not_alternate_with_woken_ones_by_ticks() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "spent", now, now + QUANTUM);
    for _ in 0..4 {
        queue.push_woken("woken");
    }
    assert_eq!(pop_at(&mut queue, now), Some("woken"));
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("spent"));
    queue.push_preempted("spent", now + QUANTUM);
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("woken"));
    assert_eq!(pop_at(&mut queue, now + QUANTUM + TICK), Some("woken"));
}

#[test]
fn the_first_tick_after_a_fiber_was_woken_does_not_preempt_it() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_woken("running");
    queue.push_woken("woken");
    assert_eq!(pop(&mut queue), Some("running"));
    assert!(!queue.should_preempt(now));
    assert!(queue.should_preempt(now + TICK));
}

#[test]
fn the_first_tick_preempts_a_fiber_that_was_preempted_before() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "running", now, now);
    assert_eq!(pop(&mut queue), Some("running"));
    queue.push_woken("woken");
    assert!(queue.should_preempt(now));
}

#[test]
fn an_entry_that_is_moved_to_the_head_is_dequeued_first() {
    let mut queue = queue();
    ["first", "second", "third"].into_iter().for_each(|entry| queue.push_woken(entry));
    queue.move_to_head(2);
    assert_eq!([pop(&mut queue), pop(&mut queue), pop(&mut queue)], [Some("third"), Some("first"), Some("second")]);
}

#[test]
fn void_entries_can_be_dropped_before_they_are_dequeued() {
    let mut queue = queue();
    ["first", "second", "third"].into_iter().for_each(|entry| queue.push_woken(entry));
    queue.drop_void(|entry| *entry == "second");
    assert!(queue.woken().eq(&["first", "third"]));
}
