//! Fibers that start others.

use super::*;

/// The starter starts a fiber at `now`, which runs, and then waits.
fn start(queue: &mut RunQueue<&'static str>, now: Instant) {
    queue.push_starter("starter", || now);
}

#[test]
fn a_starter_continues_ahead_of_woken_fibers() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_woken("woken");
    start(&mut queue, now);
    assert_eq!(pop_at(&mut queue, now), Some("starter"));
}

#[test]
fn a_starter_whose_fibers_have_run_for_a_tick_lets_woken_fibers_run() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_woken("woken");
    start(&mut queue, now);
    assert_eq!(pop_at(&mut queue, now + TICK / 2), Some("starter"));
    start(&mut queue, now + TICK / 2);
    assert_eq!(pop_at(&mut queue, now + TICK), Some("woken"));
}

#[test]
fn a_starter_comes_back_after_a_tick_however_many_fibers_are_woken() {
    let (mut queue, now) = (queue(), Instant::now());
    (0..100).for_each(|_| queue.push_woken("woken"));
    start(&mut queue, now);
    assert_eq!(pop_at(&mut queue, now + TICK), Some("woken"));
    assert_eq!(pop_at(&mut queue, now + TICK * 3 / 2), Some("woken"));
    assert_eq!(pop_at(&mut queue, now + TICK * 2), Some("starter"));
}

#[test]
fn a_starter_comes_back_when_all_woken_fibers_have_run_once() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_woken("one");
    queue.push_woken("other");
    start(&mut queue, now);
    assert_eq!(pop_at(&mut queue, now + TICK), Some("one"));
    queue.push_woken("one");
    assert_eq!((pop_at(&mut queue, now + TICK), pop_at(&mut queue, now + TICK)), (Some("other"), Some("starter")));
}

#[test]
fn a_fiber_that_yields_runs_behind_its_late_starter() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_woken("woken");
    start(&mut queue, now);
    queue.push_yielded("started");
    assert_eq!([(); 3].map(|()| pop_at(&mut queue, now + TICK).unwrap()), ["woken", "starter", "started"]);
}

#[test]
fn a_fiber_that_has_yielded_before_is_one_of_the_woken() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_yielded("started");
    queue.push_woken("woken");
    assert_eq!((pop_at(&mut queue, now), queue.len()), (Some("started"), 1));
    start(&mut queue, now);
    assert_eq!((pop_at(&mut queue, now + TICK), pop_at(&mut queue, now + TICK)), (Some("woken"), Some("starter")));
}

#[test]
fn a_woken_fiber_waits_for_a_tick_at_most_beside_many_starters() {
    let (mut queue, now) = (queue(), Instant::now());
    (0..10).for_each(|_| start(&mut queue, now));
    (0..10).for_each(|_| queue.push_woken("woken"));
    assert_eq!(pop_at(&mut queue, now + TICK), Some("woken"));
    assert_eq!(pop_at(&mut queue, now + TICK * 2), Some("starter"));
    assert_eq!(pop_at(&mut queue, now + TICK * 2), Some("woken"));
}

#[test]
fn a_late_starter_runs_at_once_if_no_fiber_is_woken() {
    let (mut queue, now) = (queue(), Instant::now());
    start(&mut queue, now);
    queue.push_woken("void");
    let next = queue.pop_by_class(now + TICK, &mut |entry| (*entry != "void").then_some(*entry));
    assert_eq!((next, queue.is_empty()), (Some("starter"), true));
}

#[test]
fn a_late_starter_begins_a_new_round() {
    let (mut queue, now) = (queue(), Instant::now());
    start(&mut queue, now);
    assert_eq!(pop_at(&mut queue, now + TICK), Some("starter"));
    queue.push_woken("woken");
    start(&mut queue, now + TICK);
    assert_eq!(pop_at(&mut queue, now + TICK), Some("starter"));
}

#[test]
fn a_fiber_that_a_started_fiber_starts_does_not_prolong_the_round() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_woken("woken");
    queue.push_starter("outer", || now);
    queue.push_starter("inner", || now + TICK / 2);
    assert_eq!(pop_at(&mut queue, now + TICK * 3 / 4), Some("inner"));
    queue.push_starter("inner", || now + TICK * 3 / 4);
    assert_eq!(pop_at(&mut queue, now + TICK), Some("woken"));
    assert_eq!((pop_at(&mut queue, now + TICK), pop_at(&mut queue, now + TICK)), (Some("inner"), Some("outer")));
}

#[test]
fn a_woken_fiber_runs_as_soon_as_a_started_fiber_was_preempted() {
    let (mut queue, now) = (queue(), Instant::now());
    queue.push_woken("woken");
    start(&mut queue, now);
    assert!(queue.should_preempt(now + TICK / 2));
    queue.push_preempted("started", now + TICK / 2);
    let order = [(); 3].map(|()| pop_at(&mut queue, now + TICK / 2));
    assert_eq!(order, [Some("woken"), Some("starter"), Some("started")]);
}

#[test]
fn a_started_fiber_is_preempted_within_a_tick_but_not_just_after_its_start() {
    let (mut queue, now) = (queue(), Instant::now());
    start(&mut queue, now);
    assert!(!queue.should_preempt(now + TICK / 4));
    assert_eq!(queue.protected_for(now + TICK / 4), Some(TICK / 4));
    assert!(queue.should_preempt(now + TICK / 2));
    assert_eq!(queue.protected_for(now + TICK / 2), None);
}

/// The current fiber computes for this time, and is preempted.
fn compute(queue: &mut RunQueue<&'static str>, now: &mut Instant, time: Duration) {
    *now += time;
    assert!(queue.should_preempt(*now));
    queue.push_preempted("started", *now);
}

/// A woken fiber waits for the first slice of a fiber that starts. Once in a quantum, it also waits for a slice of a
/// fiber that was preempted before, or these would starve.
#[test]
fn cpu_bound_fibers_that_start_at_once_delay_a_woken_fiber_by_a_tick_and_once_in_a_quantum_by_two() {
    let (mut queue, mut now) = (queue(), Instant::now());
    let (begun, mut late) = (now, 0);
    for _ in 0..64 {
        start(&mut queue, now);
        queue.push_woken("woken");
        compute(&mut queue, &mut now, TICK * 3 / 4);
        let mut next = pop_at(&mut queue, now);
        if next == Some("started") {
            late += 1;
            compute(&mut queue, &mut now, TICK);
            next = pop_at(&mut queue, now);
        }
        assert_eq!((next, pop_at(&mut queue, now)), (Some("woken"), Some("starter")));
    }
    assert!(late <= (now - begun).as_millis() / QUANTUM.as_millis());
}

#[test]
fn fibers_that_always_have_to_do_delay_the_start_of_others_by_a_tick() {
    let (mut queue, begun) = (queue(), Instant::now());
    let (mut now, mut started) = (begun, 0);
    queue.push_woken("starter");
    while started < 500 {
        // Each slice takes a 20th of a tick.
        match queue.pop_with_clock(now, &mut |entry| Some(*entry)) {
            Some("starter") => {
                started += 1;
                queue.push_starter("starter", || now);
                queue.push_woken("writer");
            }
            writer => queue.push_woken(writer.expect("the queue is never empty")),
        }
        now += TICK / 20;
    }
    assert!(now - begun < TICK * 100, "it took {:?}", now - begun);
}
