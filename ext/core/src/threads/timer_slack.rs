//! Waits that end on time.
//!
//! The kernel may end a thread's wait late by the thread's timer slack, so that one interrupt ends several waits. That is
//! 50 µs by default: a quarter of a sleep of 0.2 ms. A thread passes its slack on to the threads and processes that it
//! starts. So the slack is reduced only while the scheduler's thread waits.
//!
//! `io_uring_enter` has no slack, so only other waits need this.

use std::time::Duration;

use libc::{c_int, c_ulong};

/// The slack of a thread for which nothing else was chosen, in nanoseconds.
const DEFAULT: c_ulong = 50_000;
/// The least slack, in nanoseconds. 0 means the default.
const LEAST: c_ulong = 1;
/// The longest wait that has to end on time. In a longer one the default is less than a thousandth, which `epoll_wait`
/// is late by in any case.
const LONGEST: Duration = Duration::from_millis(50);

/// Calls `wait`, which waits in the kernel on this thread for `timeout` at most, with little timer slack if the wait is
/// short. Costs three system calls, 0.7 µs together.
pub fn wait_on_time<T>(timeout: Option<Duration>, wait: impl FnOnce() -> T) -> T {
    let is_short = timeout.is_some_and(|timeout| !timeout.is_zero() && timeout <= LONGEST);
    // A slack that the program or its user has chosen stays. A negative answer is that of a seccomp filter.
    if !is_short || slack() != DEFAULT as c_int {
        return wait();
    }
    set_slack(LEAST);
    let waited = wait();
    set_slack(DEFAULT);
    waited
}

fn slack() -> c_int {
    // SAFETY: takes no pointers.
    unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }
}

/// Does nothing where a seccomp filter forbids it.
fn set_slack(nanoseconds: c_ulong) {
    // SAFETY: takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slack before, during and after a wait.
    fn slacks(before: c_ulong, timeout: Option<Duration>) -> [c_int; 3] {
        set_slack(before);
        [slack(), wait_on_time(timeout, slack), slack()]
    }

    #[test]
    fn a_short_wait_has_the_least_slack() {
        let reduced = [DEFAULT as c_int, LEAST as c_int, DEFAULT as c_int];
        assert_eq!(slacks(DEFAULT, Some(Duration::from_micros(200))), reduced);
        assert_eq!(slacks(DEFAULT, Some(LONGEST)), reduced);
    }

    #[test]
    fn other_waits_keep_the_slack() {
        for timeout in [None, Some(Duration::ZERO), Some(LONGEST + Duration::from_nanos(1))] {
            assert_eq!(slacks(DEFAULT, timeout), [DEFAULT as c_int; 3]);
        }
    }

    #[test]
    fn a_chosen_slack_is_kept() {
        for chosen in [20, 20_000, 1_000_000] {
            assert_eq!(slacks(chosen, Some(Duration::from_millis(1))), [chosen as c_int; 3]);
        }
    }
}
