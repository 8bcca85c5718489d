//! An epoll instance, and an eventfd to end its wait.
//!
//! The `polling` crate uses epoll, too, but does not fit for three reasons. Its wait starts over after a signal. It
//! takes five system calls instead of one. And it always asks for priority data together with readable data, so
//! out-of-band data would make a fiber that waits to read spin.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::io::backend::Interest;
use crate::io::process_fd::ProcessFd;
use crate::threads::timer_slack::wait_on_time;

/// The eventfd's key. No descriptor's key has all bits set, since no descriptor is negative.
const NOTIFICATION: u64 = u64::MAX;

/// How many events one wait returns; the next wait returns the others.
const BATCH: usize = 256;

/// A descriptor has become ready for what it was armed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The key of the registration. An outdated key is that of a file that had this number before.
    pub key: usize,
    /// The readiness; all bits after an error or a hang-up.
    pub ready: Interest,
}

/// A set of descriptors, each reported once per `add` or `modify`.
///
/// `wait` is called on one thread at a time; `notify` on any.
pub struct EpollInstance {
    epoll: ProcessFd,
    /// Registered edge-triggered, so each write is an event without any read.
    eventfd: ProcessFd,
    /// Whether timeouts have nanosecond precision. They are rounded up to the millisecond before Linux 5.11, and where
    /// a seccomp filter does not know `epoll_pwait2`.
    precise: AtomicBool,
    /// For the events of one wait. Not on the stack: any fiber may wait, and each would keep another page of memory.
    /// Locked by the waiting thread alone, so never contended.
    batch: Mutex<Box<[MaybeUninit<libc::epoll_event>]>>,
}

impl EpollInstance {
    /// # Errors
    /// EMFILE, ENFILE or ENOMEM of `epoll_create1`, `eventfd` or `epoll_ctl`.
    pub fn new() -> Result<Self> {
        // SAFETY: takes no pointers.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }, "epoll_create1")?;
        // SAFETY: takes no pointers.
        let eventfd = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }, "eventfd")?;
        let flags = libc::EPOLLIN | libc::EPOLLET;
        control(&epoll, libc::EPOLL_CTL_ADD, eventfd.as_raw_fd(), NOTIFICATION, flags)
            .map_err(|errno| Error::os("epoll_ctl", errno))?;
        let batch = Mutex::new(Box::new_uninit_slice(BATCH));
        Ok(EpollInstance { epoll, eventfd, precise: AtomicBool::new(true), batch })
    }

    /// `epoll_pwait2`, or else `epoll_wait`. Returns how many of `events` were written.
    fn wait_into(
        &self,
        events: &mut [MaybeUninit<libc::epoll_event>],
        timeout: Option<Duration>,
    ) -> nix::Result<usize> {
        if self.precise.load(Ordering::Relaxed) {
            match pwait2(&self.epoll, events, timeout) {
                // An old seccomp filter returns EPERM for a system call that it does not know.
                Err(Errno::ENOSYS | Errno::EPERM) => self.precise.store(false, Ordering::Relaxed),
                other => return other,
            }
        }
        let timeout = timeout.map_or(-1, milliseconds);
        // SAFETY: the kernel writes at most as many events as `events` has places.
        let count = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr().cast(), events.len() as i32, timeout)
        };
        Errno::result(count).map(|count| count as usize)
    }

    /// Registers a descriptor for one event.
    ///
    /// # Errors
    /// EEXIST if the descriptor is registered already, EPERM if such a file is always ready, EBADF, ENOMEM, ENOSPC.
    pub fn add(&self, fd: RawFd, key: usize, interest: Interest) -> std::result::Result<(), Errno> {
        control(&self.epoll, libc::EPOLL_CTL_ADD, fd, key as u64, once(interest))
    }

    /// Arms a registered descriptor for one more event, replacing its earlier interest.
    ///
    /// # Errors
    /// ENOENT if the number now names a file that is not registered, EPERM if that file is always ready, EBADF.
    pub fn modify(&self, fd: RawFd, key: usize, interest: Interest) -> std::result::Result<(), Errno> {
        control(&self.epoll, libc::EPOLL_CTL_MOD, fd, key as u64, once(interest))
    }

    /// Waits for events, a notification, a signal or the end of `timeout`, and appends the events. Never returns
    /// before the end of `timeout` because of rounding.
    ///
    /// # Errors
    /// Those of the system call, except EINTR.
    pub fn wait(&self, timeout: Option<Duration>, events: &mut Vec<Event>) -> Result<()> {
        let mut batch = self.batch.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let waited = match wait_on_time(timeout, || self.wait_into(&mut batch, timeout)) {
            // The process may have been stopped: see `Backend::wait`.
            Err(Errno::EINTR) => self.wait_into(&mut batch, Some(Duration::ZERO)),
            other => other,
        };
        let count = match waited {
            Err(Errno::EINTR) => 0,
            other => other.map_err(|errno| Error::os("epoll_wait", errno))?,
        };
        for event in &batch[..count] {
            // SAFETY: the kernel has written the first `count` events.
            let libc::epoll_event { events: flags, u64: key } = unsafe { event.assume_init() };
            if key != NOTIFICATION {
                events.push(Event { key: key as usize, ready: ready(flags as i32) });
            }
        }
        Ok(())
    }

    /// Ends the present wait, or else the next one.
    pub fn notify(&self) {
        let one = 1u64.to_ne_bytes();
        // Otherwise fails only after 2^64 notifications, and in a forked child, which has no eventfd.
        // SAFETY: `one` has the eight bytes that an eventfd takes.
        let write = || unsafe { libc::write(self.eventfd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        while Errno::result(write()) == Err(Errno::EINTR) {}
    }
}

fn once(interest: Interest) -> i32 {
    let mut flags = libc::EPOLLONESHOT;
    for (bit, flag) in [
        (Interest::READABLE, libc::EPOLLIN),
        (Interest::PRIORITY, libc::EPOLLPRI),
        (Interest::WRITABLE, libc::EPOLLOUT),
    ] {
        if interest.intersects(bit) {
            flags |= flag;
        }
    }
    flags
}

fn ready(flags: i32) -> Interest {
    if flags & (libc::EPOLLERR | libc::EPOLLHUP) != 0 {
        return Interest::ALL;
    }
    let mut ready = Interest::default();
    for (bit, flag) in [
        (Interest::READABLE, libc::EPOLLIN),
        (Interest::PRIORITY, libc::EPOLLPRI),
        (Interest::WRITABLE, libc::EPOLLOUT),
    ] {
        if flags & flag != 0 {
            ready = ready | bit;
        }
    }
    ready
}

fn control(epoll: &ProcessFd, what: i32, fd: RawFd, key: u64, flags: i32) -> std::result::Result<(), Errno> {
    let mut event = libc::epoll_event { events: flags as u32, u64: key };
    // SAFETY: `event` lives for the call, and the kernel only reads it.
    Errno::result(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), what, fd, &mut event) }).map(drop)
}

/// Called by its number, as glibc has a wrapper only since 2.35.
fn pwait2(
    epoll: &ProcessFd,
    events: &mut [MaybeUninit<libc::epoll_event>],
    timeout: Option<Duration>,
) -> nix::Result<usize> {
    /// The kernel's own layout, the same whatever the C library's `time_t` is.
    #[repr(C)]
    struct KernelTimespec {
        seconds: i64,
        nanoseconds: i64,
    }
    let timeout = timeout.map(|timeout| KernelTimespec {
        seconds: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        nanoseconds: timeout.subsec_nanos().into(),
    });
    // SAFETY: the kernel writes at most as many events as `events` has places, and reads `timeout`, both during the
    // call; a null timeout is none, and a null mask leaves the signals alone.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            events.len() as i32,
            timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            std::ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    Errno::result(count).map(|count| count as usize)
}

/// Rounds up, as after a wait that ends early the scheduler would wait again immediately.
fn milliseconds(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

fn owned(fd: RawFd, call: &'static str) -> Result<ProcessFd> {
    let fd = Errno::result(fd).map_err(|errno| Error::os(call, errno))?;
    // SAFETY: the kernel has just opened the descriptor, and nothing else owns it.
    Ok(unsafe { ProcessFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_timeout_is_rounded_up_to_the_millisecond() {
        assert_eq!(milliseconds(Duration::ZERO), 0);
        assert_eq!(milliseconds(Duration::from_nanos(1)), 1);
        assert_eq!(milliseconds(Duration::from_millis(2)), 2);
        assert_eq!(milliseconds(Duration::from_micros(2001)), 3);
        assert_eq!(milliseconds(Duration::MAX), i32::MAX);
    }

    #[test]
    fn an_old_kernel_still_waits_until_the_timeout() {
        let epoll = EpollInstance::new().expect("epoll");
        epoll.precise.store(false, Ordering::Relaxed);
        let start = Instant::now();
        epoll.wait(Some(Duration::from_micros(1500)), &mut Vec::new()).expect("wait");
        assert!(start.elapsed() >= Duration::from_micros(1500));
    }

    #[test]
    fn an_endless_timeout_is_accepted() {
        let epoll = EpollInstance::new().expect("epoll");
        epoll.notify();
        epoll.wait(Some(Duration::MAX), &mut Vec::new()).expect("wait");
    }

    #[test]
    fn each_notification_ends_one_wait() {
        let epoll = EpollInstance::new().expect("epoll");
        for _ in 0..3 {
            epoll.notify();
            epoll.wait(None, &mut Vec::new()).expect("wait");
        }
        let start = Instant::now();
        epoll.wait(Some(Duration::from_millis(5)), &mut Vec::new()).expect("wait");
        assert!(start.elapsed() >= Duration::from_millis(5), "no notification is left over");
    }
}
