//! A ring, and its entries as the kernel will see them.

use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use io_uring::{IoUring, squeue};
use nix::errno::Errno;

use super::set_up::unavailable;
use crate::error::Result;
use crate::io::process_fd::Registration;

/// Where the kernel maps the entries (`IORING_OFF_SQES`).
const ENTRIES_OFFSET: libc::off_t = 0x1000_0000;

/// A ring whose descriptor a forked child closes inside fork(2).
///
/// The kernel may lack memory to take an entry that is in the ring. Until it takes it, the entry can be replaced: its
/// file may be closed meanwhile, and the number may name another one. The library offers no way to do that, so this maps
/// the entries once more.
pub struct Ring {
    ring: ManuallyDrop<IoUring>,
    entries: NonNull<squeue::Entry>,
    /// How many entries there are: a power of two.
    count: u32,
    number: Registration,
}

// SAFETY: the mapping belongs to the ring alone, and is written to with `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// # Errors
    /// [`crate::error::Error::BackendUnavailable`] if the kernel has no memory for another mapping.
    pub fn new(ring: IoUring) -> Result<Self> {
        let count = ring.params().sq_entries();
        // SAFETY: a new mapping of the ring's entries, at an address that the kernel chooses.
        let entries = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length(count),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                ring.as_raw_fd(),
                ENTRIES_OFFSET,
            )
        };
        let refused = |errno| unavailable(format!("mmap answers {errno}"), Some(errno as i32));
        if entries == libc::MAP_FAILED {
            return Err(refused(Errno::last()));
        }
        // SAFETY: the mapping was made above. Linux knows this advice since 2.6.16, and it cannot fail for a mapping.
        unsafe { libc::madvise(entries, length(count), libc::MADV_DONTFORK) };
        let entries = NonNull::new(entries.cast()).ok_or_else(|| refused(Errno::ENOMEM))?;
        let number = Registration::new(ring.as_raw_fd());
        Ok(Ring { ring: ManuallyDrop::new(ring), entries, count, number })
    }

    /// The ring.
    pub fn get(&mut self) -> &mut IoUring {
        &mut self.ring
    }

    /// Replaces an entry that is in the ring. False if the kernel has taken it, or in a forked child, whose parent has
    /// the ring. `number` says how many entries were moved into the ring before it, and `since` how many since then,
    /// with itself.
    pub fn replace(&mut self, number: u64, since: u64, entry: squeue::Entry) -> bool {
        // The parent submits meanwhile: even a look at the queue writes to what both have mapped.
        if !self.number.is_valid() {
            return false;
        }
        let untaken = self.ring.submission().len() as u64;
        if untaken < since {
            return false;
        }
        let slot = (number % u64::from(self.count)) as usize;
        // SAFETY: there are more slots. The kernel reads entries only while this thread submits, as it polls no ring
        // that was set up without that.
        unsafe { self.entries.add(slot).write_volatile(entry) };
        true
    }
}

fn length(count: u32) -> usize {
    count as usize * size_of::<squeue::Entry>()
}

impl Drop for Ring {
    fn drop(&mut self) {
        // In a forked child the number is closed, and may name another file. The ring's memory is leaked there.
        if self.number.withdraw() {
            // SAFETY: the ring and the mapping are not used afterwards.
            unsafe {
                libc::munmap(self.entries.as_ptr().cast(), length(self.count));
                ManuallyDrop::drop(&mut self.ring);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use io_uring::opcode;

    use super::*;

    /// Results by user data, in the order of the completions.
    fn completions(ring: &mut Ring) -> Vec<u64> {
        ring.get().submit().unwrap();
        ring.get().completion().map(|completion| completion.user_data()).collect()
    }

    fn push(ring: &mut Ring, number: u64) {
        let entry = opcode::Nop::new().build().user_data(number);
        // SAFETY: a no-op points to nothing.
        unsafe { ring.get().submission().push(&entry).unwrap() };
    }

    #[test]
    fn replaces_what_the_kernel_has_not_taken_round_after_round() {
        let Ok(ring) = IoUring::new(4) else { return };
        let mut ring = Ring::new(ring).unwrap();
        for round in 0..5u64 {
            let first = round * 3;
            (first..first + 3).for_each(|number| push(&mut ring, number));
            assert!(ring.replace(first + 1, 2, opcode::Nop::new().build().user_data(1000)));
            assert_eq!(completions(&mut ring), [first, 1000, first + 2]);
            assert!(!ring.replace(first + 1, 2, opcode::Nop::new().build()));
        }
    }
}
