//! Other systems: what the `polling` crate finds there, which is kqueue on macOS and the BSDs.
//!
//! Compiled on Linux, too, so that tests on Linux cover it. Its limits: kqueue has no event for priority data, so only
//! a cancel ends such a wait. Over epoll, `polling` reports priority data as readable. And kqueue does not tell that a
//! number was closed and reused for another file while an operation waits.

use std::mem::ManuallyDrop;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use polling::{Events, Poller};

use super::selector::{Event, Selector};
use crate::backend::Interest;
use crate::error::{Error, Result};

/// How many events one wait returns; the next wait returns the others.
const BATCH: NonZeroUsize = NonZeroUsize::new(256).unwrap();

pub struct Portable {
    poller: ManuallyDrop<Poller>,
    /// Locked by the waiting thread alone, so never contended.
    events: Mutex<Events>,
    abandoned: AtomicBool,
}

impl Portable {
    /// # Errors
    /// The system's error if there are too many descriptors.
    pub fn new() -> Result<Self> {
        let poller = Poller::new().map_err(|error| Error::io("kqueue", &error))?;
        Ok(Portable {
            poller: ManuallyDrop::new(poller),
            events: Mutex::new(Events::with_capacity(BATCH)),
            abandoned: AtomicBool::new(false),
        })
    }
}

impl Selector for Portable {
    fn add(&self, fd: RawFd, key: usize, interest: Interest) -> std::result::Result<(), Errno> {
        // SAFETY: the registration may outlive the descriptor, which `polling` forbids for the sake of sources that
        // are not plain descriptors. The kernel drops the registration by itself, or `modify` replaces it. The key
        // identifies events of a closed file.
        unsafe { self.poller.add(fd, event(key, interest)) }.map_err(|error| errno(&error))
    }

    fn modify(&self, fd: RawFd, key: usize, interest: Interest) -> std::result::Result<(), Errno> {
        // SAFETY: the number is only passed to the kernel, which returns EBADF if it is closed. It is not -1, as the
        // backend refuses negative numbers.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        self.poller.modify(fd, event(key, interest)).map_err(|error| errno(&error))
    }

    fn wait(&self, timeout: Option<Duration>, events: &mut Vec<Event>) -> Result<()> {
        // The wait of `polling` starts over after a signal. A poll(2) of its descriptor does not.
        match wait_until_readable(self.poller.as_raw_fd(), timeout) {
            Ok(true) => {}
            Ok(false) | Err(Errno::EINTR) => return Ok(()),
            Err(errno) => return Err(Error::os("poll", errno)),
        }
        let mut batch = self.events.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        batch.clear();
        self.poller.wait(&mut batch, Some(Duration::ZERO)).map_err(|error| Error::io("kevent", &error))?;
        events.extend(batch.iter().map(|event| Event { key: event.key, ready: ready(&event) }));
        Ok(())
    }

    fn notify(&self) {
        if !self.abandoned.load(Ordering::Relaxed) {
            // Fails only if an earlier notification has not been read, and that ends the wait, too.
            let _ = self.poller.notify();
        }
    }

    fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Drop for Portable {
    fn drop(&mut self) {
        // Dropping a poller deletes its registrations, and in a forked child over epoll those are the parent's. A child
        // does not inherit a kqueue, and the kqueue's number may name another file. So a child leaks the poller: two or
        // three descriptors once per fork.
        if !self.abandoned.load(Ordering::Relaxed) {
            // SAFETY: the poller is not used again: `self` is being dropped.
            unsafe { ManuallyDrop::drop(&mut self.poller) }
        }
    }
}

fn event(key: usize, interest: Interest) -> polling::Event {
    let (readable, writable) = (interest.intersects(Interest::READABLE), interest.intersects(Interest::WRITABLE));
    let mut event = polling::Event::new(key, readable, writable);
    event.set_priority(interest.intersects(Interest::PRIORITY));
    event
}

fn ready(event: &polling::Event) -> Interest {
    if event.is_interrupt() || event.is_err() == Some(true) {
        return Interest::ALL;
    }
    let mut ready = Interest::default();
    for (bit, set) in [
        (Interest::READABLE, event.readable),
        (Interest::PRIORITY, event.is_priority()),
        (Interest::WRITABLE, event.writable),
    ] {
        if set {
            ready = ready | bit;
        }
    }
    ready
}

/// The errno of an error. Over kqueue `polling` records the registrations itself, and those errors have none.
fn errno(error: &std::io::Error) -> Errno {
    match (error.raw_os_error(), error.kind()) {
        (Some(raw), _) => Errno::from_raw(raw),
        (None, std::io::ErrorKind::NotFound) => Errno::ENOENT,
        (None, std::io::ErrorKind::AlreadyExists) => Errno::EEXIST,
        (None, _) => Errno::EIO,
    }
}

/// False after `timeout`, which is rounded up to the millisecond where the system has no `ppoll`.
///
/// # Errors
/// EINTR after a signal.
fn wait_until_readable(fd: RawFd, timeout: Option<Duration>) -> std::result::Result<bool, Errno> {
    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    #[cfg(target_os = "linux")]
    let ready = {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            // Less than a thousand million, which fits into any C library's type.
            tv_nsec: timeout.subsec_nanos() as _,
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `polled` is one entry, and the timeout null or alive; a null mask leaves the signals alone.
        unsafe { libc::ppoll(&mut polled, 1, timeout, std::ptr::null()) }
    };
    #[cfg(not(target_os = "linux"))]
    let ready = {
        let rounded_up = |timeout: Duration| timeout.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(i32::MAX);
        // SAFETY: `polled` is one entry.
        unsafe { libc::poll(&mut polled, 1, timeout.map_or(-1, rounded_up)) }
    };
    Errno::result(ready).map(|ready| ready > 0)
}
