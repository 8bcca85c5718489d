//! Descriptors that a forked child closes inside fork(2).
//!
//! A child inherits all descriptors. It cannot close them later by their numbers: the program may have closed all
//! numbers itself, as daemons do, and a number may name a file of the program by then. So a handler of
//! pthread_atfork(3) closes them before fork(2) returns in the child ([`close_inherited`]), and in the child a
//! [`ProcessFd`] of the parent names no descriptor any more.

use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// An entry without a number.
const FREE: u64 = u64::MAX;

/// An entry of the table of all numbers. Entries are never freed, but used again.
struct Entry {
    /// An owner's id in the upper half and its number in the lower, or [`FREE`].
    owner_and_number: AtomicU64,
    next: Option<&'static Entry>,
}

/// The first entry of the table. Readable in a forked child, whatever another thread did at the fork.
static FIRST: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());
static NEXT_OWNER: AtomicU32 = AtomicU32::new(0);

fn first() -> Option<&'static Entry> {
    // SAFETY: null, or an entry, which is leaked and changed only by its atomic.
    unsafe { FIRST.load(Ordering::Acquire).as_ref() }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    std::iter::successors(first(), |entry| entry.next)
}

/// A number that a forked child closes inside fork(2). Its descriptor has another owner, which withdraws the number
/// before it closes the descriptor.
pub struct Registration {
    entry: &'static Entry,
    owner_and_number: u64,
}

impl Registration {
    /// Adds the number to the table.
    pub fn new(fd: RawFd) -> Self {
        let owner = NEXT_OWNER.fetch_add(1, Ordering::Relaxed);
        // A number is not negative, so this is not `FREE`.
        let owner_and_number = u64::from(owner) << 32 | u64::from(fd as u32);
        let take = |entry: &&Entry| {
            let taken =
                entry.owner_and_number.compare_exchange(FREE, owner_and_number, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        };
        let entry = entries().find(take).unwrap_or_else(|| add(owner_and_number));
        Registration { entry, owner_and_number }
    }

    /// The number. -1 in a forked child of the process that added it to the table, where the number is closed.
    pub fn number(&self) -> RawFd {
        if self.is_valid() { self.owner_and_number as u32 as RawFd } else { -1 }
    }

    /// Whether this process has added the number to the table. A forked child has not.
    pub fn is_valid(&self) -> bool {
        self.entry.owner_and_number.load(Ordering::Relaxed) == self.owner_and_number
    }

    /// Removes the number from the table. False if this process is a forked child, which has closed the number.
    pub fn withdraw(&mut self) -> bool {
        let entry = &self.entry.owner_and_number;
        entry.compare_exchange(self.owner_and_number, FREE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.withdraw();
    }
}

fn add(owner_and_number: u64) -> &'static Entry {
    let mut entry = Box::new(Entry { owner_and_number: AtomicU64::new(owner_and_number), next: None });
    loop {
        entry.next = first();
        let next = entry.next.map_or(std::ptr::null_mut(), |next| std::ptr::from_ref(next).cast_mut());
        let new = Box::into_raw(entry);
        match FIRST.compare_exchange(next, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: allocated above, and never freed from here on.
            Ok(_) => return unsafe { &*new },
            // SAFETY: allocated above, and no other thread knows it.
            Err(_) => entry = unsafe { Box::from_raw(new) },
        }
    }
}

/// Closes all numbers of the table. For the handler of pthread_atfork(3) in a forked child: it takes no lock and
/// allocates nothing.
pub fn close_inherited() {
    for entry in entries() {
        let owner_and_number = entry.owner_and_number.swap(FREE, Ordering::AcqRel);
        if owner_and_number != FREE {
            // SAFETY: the parent's owner of the descriptor finds its entry changed, and uses the number no more.
            unsafe { libc::close(owner_and_number as u32 as RawFd) };
        }
    }
}

/// An owned descriptor that a forked child closes inside fork(2).
pub struct ProcessFd(Registration);

impl AsRawFd for ProcessFd {
    /// The number. -1 in a forked child of the process that opened it.
    fn as_raw_fd(&self) -> RawFd {
        self.0.number()
    }
}

impl From<OwnedFd> for ProcessFd {
    fn from(fd: OwnedFd) -> Self {
        ProcessFd(Registration::new(fd.into_raw_fd()))
    }
}

impl FromRawFd for ProcessFd {
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        ProcessFd(Registration::new(fd))
    }
}

impl Drop for ProcessFd {
    fn drop(&mut self) {
        let fd = self.0.number();
        // First withdrawn, as a fork in between must not close a number that is open for another owner by then.
        if self.0.withdraw() {
            // SAFETY: this is the descriptor's owner.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}
