//! Fibers whose sleep ends while another fiber computes.

use super::*;

/// A tick finds the current fiber computing.
fn tick(queue: &mut RunQueue<&'static str>) {
    queue.prefer_sleepers(|_| false);
}

/// Enqueues fibers, of which those that are called sleepers have slept.
fn push<const COUNT: usize>(queue: &mut RunQueue<&'static str>, entries: [&'static str; COUNT]) {
    entries.into_iter().for_each(|entry| match entry {
        sleeper if sleeper.starts_with("sleeper") => queue.push_slept(sleeper, |_| false),
        woken => queue.push_woken(woken),
    });
}

#[test]
fn a_sleeper_runs_before_woken_fibers_if_a_fiber_computes() {
    let mut queue = queue();
    (0..64).for_each(|_| queue.push_woken("computes"));
    assert_eq!(pop(&mut queue), Some("computes"));
    push(&mut queue, ["sleeper"]);
    tick(&mut queue);
    assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("sleeper"), Some("computes")));
}

#[test]
fn sleepers_keep_their_order() {
    let mut queue = queue();
    push(&mut queue, ["woken", "sleeper 1", "another", "sleeper 2"]);
    tick(&mut queue);
    assert_eq!([(); 4].map(|()| pop(&mut queue).unwrap()), ["sleeper 1", "sleeper 2", "woken", "another"]);
}

#[test]
fn a_sleeper_that_has_run_already_is_not_preferred() {
    let mut queue = queue();
    push(&mut queue, ["sleeper 1", "woken", "sleeper 2"]);
    assert_eq!(pop(&mut queue), Some("sleeper 1"));
    queue.push_woken("sleeper 1");
    queue.prefer_sleepers(|entry| *entry == "sleeper 1");
    assert_eq!([(); 3].map(|()| pop(&mut queue).unwrap()), ["sleeper 2", "woken", "sleeper 1"]);
}

#[test]
fn a_sleeper_that_was_moved_ahead_keeps_its_place_and_holds_up_no_other() {
    let mut queue = queue();
    push(&mut queue, ["woken", "sleeper 1", "sleeper 2"]);
    queue.move_to_head(2);
    tick(&mut queue);
    assert_eq!([(); 3].map(|()| pop(&mut queue).unwrap()), ["sleeper 1", "sleeper 2", "woken"]);
}

#[test]
fn sleepers_that_have_run_are_forgotten() {
    let mut queue = queue();
    for _ in 0..3 {
        queue.push_slept("sleeper", |_| true);
    }
    assert_eq!(queue.sleepers.noted(), 1);
}

#[test]
fn a_sleeper_waits_its_turn_if_no_fiber_computes() {
    let mut queue = queue();
    queue.push_woken("woken");
    push(&mut queue, ["sleeper"]);
    assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("woken"), Some("sleeper")));
}

#[test]
fn sleepers_that_compute_let_another_fiber_run_each_time() {
    let mut queue = queue();
    push(&mut queue, ["one", "other", "sleeper 1"]);
    tick(&mut queue);
    assert_eq!(pop(&mut queue), Some("sleeper 1"));
    push(&mut queue, ["sleeper 2"]);
    tick(&mut queue);
    assert_eq!(pop(&mut queue), Some("one"));
    tick(&mut queue);
    assert_eq!((pop(&mut queue), pop(&mut queue)), (Some("sleeper 2"), Some("other")));
}

#[test]
fn a_sleeper_has_its_turn_before_a_late_preempted_one() {
    let (mut queue, now) = (queue(), Instant::now());
    preempt(&mut queue, "preempted", now, now);
    queue.push_woken("woken");
    assert_eq!(pop_at(&mut queue, now), Some("woken"));
    push(&mut queue, ["sleeper"]);
    queue.push_woken("woken");
    tick(&mut queue);
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("sleeper"));
    assert_eq!(pop_at(&mut queue, now + QUANTUM), Some("preempted"));
}

#[test]
fn a_woken_fiber_that_computes_is_preempted_half_a_tick_after_its_first_tick_if_another_waits() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_woken("running");
    queue.push_woken("waiting");
    assert_eq!(pop(&mut queue), Some("running"));
    assert!(!queue.should_preempt(now));
    assert_eq!(queue.protected_for(now), Some(TICK / 2));
    assert!(queue.should_preempt(now + TICK / 2));
}

#[test]
fn a_fiber_that_was_not_dequeued_has_a_slice_of_its_own() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_woken("running");
    queue.push_woken("waiting");
    assert_eq!(pop(&mut queue), Some("running"));
    assert!(!queue.should_preempt(now));
    queue.forget_slice();
    assert!(!queue.should_preempt(now + TICK / 2));
    // It is the only one: fibers that continue each other without the queue have one slice together.
    queue.forget_slice();
    assert!(queue.should_preempt(now + TICK));
}
