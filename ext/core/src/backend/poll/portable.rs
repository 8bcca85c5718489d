//! Other systems: whatever the `polling` crate finds there, on macOS and the BSDs kqueue.
//!
//! Compiled on Linux, too, so that the tests that run there run it. What it cannot promise: kqueue knows no priority
//! data, so such a wait ends by being cancelled; epoll by way of `polling` reports it as readable; and kqueue cannot
//! tell that a number has been closed and given to another file while somebody waits.

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

/// Events taken by one wait; more of them come with the next.
const BATCH: NonZeroUsize = NonZeroUsize::new(256).unwrap();

pub struct Portable {
    poller: ManuallyDrop<Poller>,
    /// Only ever locked by the thread that waits.
    events: Mutex<Events>,
    abandoned: AtomicBool,
}

impl Portable {
    /// # Errors
    /// What the system says when there are too many descriptors.
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
        // are not plain descriptors. The kernel drops it by itself, or `modify` replaces it; an event of a file that
        // is gone is recognised by its key.
        unsafe { self.poller.add(fd, event(key, interest)) }.map_err(|error| errno(&error))
    }

    fn modify(&self, fd: RawFd, key: usize, interest: Interest) -> std::result::Result<(), Errno> {
        // SAFETY: the number is only handed on to the kernel, which answers EBADF if it is closed. It is not -1: the
        // backend turns away negative ones.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        self.poller.modify(fd, event(key, interest)).map_err(|error| errno(&error))
    }

    fn wait(&self, timeout: Option<Duration>, events: &mut Vec<Event>) -> Result<()> {
        // `polling` starts over after a signal. But its descriptor can itself be polled, and that does not.
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
            // Fails only if what it writes to is full, and then the wait ends anyway.
            let _ = self.poller.notify();
        }
    }

    fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Drop for Portable {
    fn drop(&mut self) {
        // Dropping a poller deletes its registrations: in a forked child with epoll, that would be the parent's. A
        // kqueue is not inherited, and its number may be another file's by now. So it is leaked there: two or three
        // descriptors once per fork.
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

/// kqueue's part of `polling` keeps its own books, and its errors have no errno.
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
            // Below a thousand million: fits whatever type the C library has for it.
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
