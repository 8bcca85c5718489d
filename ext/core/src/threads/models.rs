//! Model tests: loom runs each with every interleaving of its threads that the memory model allows. A lost wake-up is a
//! deadlock here, which loom reports. Run by `rake models`.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use crate::threads::mailbox::Mailbox;
use crate::threads::next_tick::NextTick;
use crate::threads::waker::{Notify, Waker};
use crate::threads::workers::WorkerPool;

/// A backend's wait, which ends once it has been notified.
#[derive(Default, Clone)]
struct Wait(Arc<(Mutex<usize>, Condvar)>);

impl Wait {
    fn wait(&self) {
        let (notified, condition) = &*self.0;
        let mut notified = notified.lock().expect("no panic under the lock");
        while *notified == 0 {
            notified = condition.wait(notified).expect("no panic under the lock");
        }
        *notified -= 1;
    }

    fn notifications(&self) -> usize {
        *self.0.0.lock().expect("no panic under the lock")
    }
}

impl Notify for Wait {
    fn notify(&self) {
        let (notified, condition) = &*self.0;
        *notified.lock().expect("no panic under the lock") += 1;
        condition.notify_one();
    }
}

/// Waits like the scheduler, until `done`.
fn wait_until(waker: &Waker, wait: &Wait, parks: bool, mut done: impl FnMut() -> bool) {
    loop {
        if parks {
            waker.arm_parking()
        } else {
            waker.arm()
        }
        if done() {
            break waker.disarm();
        }
        if parks {
            waker.park(None)
        } else {
            wait.wait()
        }
        waker.disarm();
    }
}

/// Runs a model with a bound on preemptions. Orders beyond it need more preemptions than any known bug.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

fn no_wake_is_lost(parks: bool) {
    model(3, move || {
        let wait = Wait::default();
        let waker = Waker::new(wait.clone());
        let work = Arc::new(AtomicUsize::new(0));
        // Not joined: loom has no unpark for a thread that waits for something else, and joins all threads by itself.
        for _ in 0..2 {
            let (waker, work) = (waker.clone(), Arc::clone(&work));
            thread::spawn(move || {
                work.fetch_add(1, Ordering::SeqCst);
                waker.wake();
            });
        }
        wait_until(&waker, &wait, parks, || work.load(Ordering::SeqCst) == 2);
    });
}

#[test]
fn a_wake_before_or_during_a_wait_in_the_backend_ends_it() {
    no_wake_is_lost(false);
}

#[test]
fn a_wake_before_or_during_a_park_ends_it() {
    no_wake_is_lost(true);
}

#[test]
fn a_disarmed_waker_leaves_at_most_the_notification_of_a_wake_under_way() {
    model(3, || {
        let wait = Wait::default();
        let waker = Waker::new(wait.clone());
        let other = waker.clone();
        let waking = thread::spawn(move || other.wake());
        waker.arm();
        waker.disarm();
        waking.join().expect("no panic");
        let before = wait.notifications();
        waker.wake();
        assert_eq!(wait.notifications(), before, "a waker that is not armed sends no notification");
    });
}

#[test]
fn every_posted_result_arrives() {
    model(3, || {
        let wait = Wait::default();
        let waker = Waker::new(wait.clone());
        let mailbox = Arc::new(Mailbox::new(waker.clone()));
        for result in 0..2 {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || mailbox.post(result));
        }
        let mut results = Vec::new();
        while results.len() < 2 {
            wait_until(&waker, &wait, false, || !mailbox.is_empty());
            mailbox.drain(&mut results);
        }
        results.sort_unstable();
        assert_eq!(results, [0, 1]);
        assert!(mailbox.is_empty());
    });
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::SeqCst);
}

fn until(counter: &AtomicUsize, value: usize) {
    while counter.load(Ordering::SeqCst) < value {
        thread::yield_now();
    }
}

/// The model ends once the pool's threads have ended. A thread that never ends is a deadlock.
fn every_job_runs(limit: usize, jobs: usize, preemptions: usize) {
    model(preemptions, move || {
        let pool = WorkerPool::new(limit);
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..jobs {
            let ran = Arc::clone(&ran);
            assert!(pool.submit(move || count(&ran)).is_ok());
        }
        drop(pool);
        until(&ran, jobs);
    });
}

#[test]
fn every_job_runs_on_one_thread_and_the_thread_ends_with_the_pool() {
    every_job_runs(1, 2, 2);
}

#[test]
fn every_job_runs_on_two_threads_and_the_threads_end_with_the_pool() {
    every_job_runs(2, 2, 2);
}

#[test]
fn jobs_of_two_threads_all_run() {
    model(2, || {
        let pool = Arc::new(WorkerPool::new(1));
        let ran = Arc::new(AtomicUsize::new(0));
        let submitting = {
            let (pool, ran) = (Arc::clone(&pool), Arc::clone(&ran));
            thread::spawn(move || assert!(pool.submit(move || count(&ran)).is_ok()))
        };
        let counted = Arc::clone(&ran);
        assert!(pool.submit(move || count(&counted)).is_ok());
        submitting.join().expect("no panic");
        drop(pool);
        until(&ran, 2);
    });
}

#[test]
fn the_result_of_a_job_arrives() {
    model(2, || {
        let wait = Wait::default();
        let waker = Waker::new(wait.clone());
        let mailbox = Arc::new(Mailbox::new(waker.clone()));
        let pool = WorkerPool::new(1);
        let reply = Arc::clone(&mailbox);
        assert!(pool.submit(move || reply.post(7)).is_ok());
        let mut results = Vec::new();
        wait_until(&waker, &wait, false, || !mailbox.is_empty());
        mailbox.drain(&mut results);
        assert_eq!(results, [7]);
    });
}

#[test]
fn an_expedited_tick_comes_at_the_usual_time() {
    const USUAL: usize = 10;
    const LATER: usize = 100;
    model(3, || {
        let next = Arc::new(NextTick::default());
        let timer = Arc::new(AtomicUsize::new(0));
        next.postpone(LATER as u64);
        let ticking = {
            let (next, timer) = (Arc::clone(&next), Arc::clone(&timer));
            let set = move |time: Option<_>| {
                let time = if time.is_none() { USUAL } else { LATER };
                timer.store(time, Ordering::SeqCst);
            };
            thread::spawn(move || next.may_tick(1, set))
        };
        if next.expedite() {
            timer.store(USUAL, Ordering::SeqCst);
        }
        let may_tick = ticking.join().expect("no panic");
        assert!(may_tick || timer.load(Ordering::SeqCst) == USUAL, "the timer stays at the later time");
    });
}
