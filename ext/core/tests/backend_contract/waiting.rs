//! How a wait ends.

use std::io::{Write, pipe};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use heddle_core::Interest;
use nix::sys::pthread::pthread_kill;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::rig::{Rig, TEST_TIMEOUT, check, file, is_ready, over_every_backend};

over_every_backend!(
    a_wait_never_ends_before_its_timeout,
    a_wait_with_a_timeout_of_zero_does_not_block,
    a_wait_does_not_block_while_there_are_completions,
    a_wait_ends_with_the_first_completion,
    another_thread_ends_a_wait,
    a_wake_before_the_wait_is_not_lost,
    each_wake_ends_one_wait,
    a_wake_completes_no_operation,
    a_wake_of_a_disarmed_waker_ends_no_wait,
    a_signal_ends_a_wait,
);

fn a_wait_never_ends_before_its_timeout(mut rig: Rig) {
    for timeout in [1_000, 300_000, 1_000_001, 5_999_999].map(Duration::from_nanos) {
        let start = Instant::now();
        rig.backend.wait(Some(timeout)).expect("wait");
        assert!(start.elapsed() >= timeout, "{:?} instead of {timeout:?}", start.elapsed());
    }
}

fn a_wait_with_a_timeout_of_zero_does_not_block(mut rig: Rig) {
    let (reader, _writer) = pipe().expect("pipe");
    rig.ready(1, &reader, Interest::READABLE);
    let start = Instant::now();
    rig.backend.wait(Some(Duration::ZERO)).expect("wait");
    assert!(start.elapsed() < TEST_TIMEOUT);
}

fn a_wait_does_not_block_while_there_are_completions(mut rig: Rig) {
    let file = file(b"");
    rig.ready(1, &file, Interest::READABLE);
    for _ in 0..2 {
        let start = Instant::now();
        rig.backend.wait(Some(TEST_TIMEOUT)).expect("wait");
        assert!(start.elapsed() < TEST_TIMEOUT);
    }
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
}

fn a_wait_ends_with_the_first_completion(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    let (other, _other_writer) = pipe().expect("pipe");
    rig.ready(1, &reader, Interest::READABLE);
    rig.ready(2, &other, Interest::READABLE);
    let writing = thread::spawn(move || writer.write_all(b"x").map(|()| writer));
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
    writing.join().expect("thread").expect("write");
}

fn another_thread_ends_a_wait(mut rig: Rig) {
    let waker = rig.backend.waker();
    waker.arm();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| waker.wake());
        rig.backend.wait(None).expect("wait");
    });
    waker.disarm();
    assert!(start.elapsed() < TEST_TIMEOUT);
}

fn a_wake_before_the_wait_is_not_lost(mut rig: Rig) {
    let waker = rig.backend.waker();
    waker.arm();
    waker.wake();
    let start = Instant::now();
    rig.backend.wait(Some(TEST_TIMEOUT)).expect("wait");
    assert!(start.elapsed() < TEST_TIMEOUT);
}

fn each_wake_ends_one_wait(mut rig: Rig) {
    let waker = rig.backend.waker();
    for _ in 0..5 {
        waker.arm();
        waker.wake();
        let start = Instant::now();
        rig.backend.wait(Some(TEST_TIMEOUT)).expect("wait");
        rig.backend.completions(&mut Vec::new());
        assert!(start.elapsed() < TEST_TIMEOUT);
    }
    let start = Instant::now();
    let timeout = Duration::from_millis(5);
    rig.backend.wait(Some(timeout)).expect("wait");
    assert!(start.elapsed() >= timeout, "no wake is left over");
}

fn a_wake_completes_no_operation(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    let waker = rig.backend.waker();
    rig.ready(1, &reader, Interest::READABLE);
    waker.arm();
    waker.wake();
    rig.nothing_completes();
    assert!(!rig.backend.is_idle());
    writer.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
    assert!(rig.backend.is_idle());
}

fn a_wake_of_a_disarmed_waker_ends_no_wait(mut rig: Rig) {
    let waker = rig.backend.waker();
    waker.arm();
    waker.disarm();
    waker.wake();
    let (start, timeout) = (Instant::now(), Duration::from_millis(5));
    rig.backend.wait(Some(timeout)).expect("wait");
    assert!(start.elapsed() >= timeout);
}

extern "C" fn ignore(_: libc::c_int) {}

fn a_signal_ends_a_wait(rig: Rig) {
    static WAITED: AtomicBool = AtomicBool::new(false);
    WAITED.store(false, Ordering::SeqCst);
    let make = rig.make;
    let action = SigAction::new(SigHandler::Handler(ignore), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing at all.
    unsafe { sigaction(Signal::SIGUSR1, &action) }.expect("sigaction");
    // On a thread of its own, which receives the signals.
    let waiting = thread::spawn(move || {
        check(make, |mut rig| rig.backend.wait(Some(TEST_TIMEOUT)).expect("a signal is no error"));
        WAITED.store(true, Ordering::SeqCst);
    });
    // The standard library gives a number for it, and musl has a pointer.
    #[allow(clippy::unnecessary_cast)]
    let receiver = waiting.as_pthread_t() as libc::pthread_t;
    let start = Instant::now();
    // Sent repeatedly, as this thread cannot tell when the other one has begun to wait.
    while !WAITED.load(Ordering::SeqCst) {
        assert!(start.elapsed() < TEST_TIMEOUT, "the wait ends");
        pthread_kill(receiver, Signal::SIGUSR1).expect("the thread is there until it is joined");
        thread::sleep(Duration::from_millis(1));
    }
    waiting.join().expect("thread");
}
