//! One read or write, done where it does not block the scheduler.

use std::os::fd::RawFd;

use nix::errno::Errno;

use crate::backend::Interest;
use crate::files;
use crate::try_io::{self, FdKind, TryIo};

/// The most that Linux transfers at once; other systems refuse more than an `int` can say.
const MOST: usize = 0x7fff_f000;

/// How a descriptor can be read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Has calls of its own that do not block.
    Socket,
    /// Pipes, terminals, and whatever else tells when it is ready.
    Stream,
    /// Regular files, directories and block devices: always "ready", and yet they block.
    Storage,
}

impl Kind {
    /// Costs one system call.
    ///
    /// # Errors
    /// EBADF.
    pub fn of(fd: RawFd) -> Result<Kind, Errno> {
        Ok(match files::kind(fd).ok_or(Errno::EBADF)? {
            libc::S_IFSOCK => Kind::Socket,
            libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => Kind::Storage,
            _ => Kind::Stream,
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// A read or write that has not happened yet.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    direction: Direction,
    buffer: *mut u8,
    length: usize,
    offset: Option<u64>,
}

// SAFETY: whoever made it promised that the buffer belongs to the transfer alone until its result is there; so it may
// be made on any thread.
unsafe impl Send for Transfer {}

impl Transfer {
    /// # Safety
    /// `buffer` has `length` bytes, stays alive, and is left alone until the last use of this transfer or a copy of it.
    pub unsafe fn read(buffer: *mut u8, length: usize, offset: Option<u64>) -> Self {
        Transfer { direction: Direction::Read, buffer, length: length.min(MOST), offset }
    }

    /// # Safety
    /// As for [`Transfer::read`].
    pub unsafe fn write(buffer: *const u8, length: usize, offset: Option<u64>) -> Self {
        Transfer { direction: Direction::Write, buffer: buffer.cast_mut(), length: length.min(MOST), offset }
    }

    /// What a descriptor must be ready for.
    pub fn interest(&self) -> Interest {
        match self.direction {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        }
    }

    /// Transfers what can be transferred now, whatever mode the descriptor is in: the number of bytes or a negated
    /// errno, or None if nothing can.
    pub fn attempt(&self, fd: RawFd, kind: Kind) -> Option<i32> {
        let likely = if kind == Kind::Socket { FdKind::Socket } else { FdKind::Other };
        // SAFETY: the buffer has `length` bytes, and they are the transfer's.
        let attempt = unsafe {
            match (self.direction, self.offset) {
                (Direction::Read, None) => try_io::read(fd, self.buffer, self.length, likely),
                (Direction::Read, Some(offset)) => try_io::read_at(fd, self.buffer, self.length, offset),
                (Direction::Write, None) => try_io::write(fd, self.buffer, self.length, likely),
                (Direction::Write, Some(offset)) => try_io::write_at(fd, self.buffer, self.length, offset),
            }
        };
        match attempt {
            TryIo::Done(count) => Some(completion(Ok(count))),
            TryIo::WouldBlock | TryIo::EndsAfter(_) => None,
            // A device that has positions, tells when it is ready, and is ready.
            TryIo::NeedsOperation => Some(self.block(fd)),
            TryIo::Failed(errno) => Some(completion(Err(errno))),
        }
    }

    /// Transfers for as long as it takes. For the worker threads.
    pub fn block(&self, fd: RawFd) -> i32 {
        let Ok(offset) = self.offset.map(libc::off_t::try_from).transpose() else {
            return completion(Err(Errno::EINVAL));
        };
        loop {
            // SAFETY: the buffer has `length` bytes, and they are the transfer's.
            let transferred = unsafe {
                match (self.direction, offset) {
                    (Direction::Read, None) => libc::read(fd, self.buffer.cast(), self.length),
                    (Direction::Read, Some(offset)) => libc::pread(fd, self.buffer.cast(), self.length, offset),
                    (Direction::Write, None) => libc::write(fd, self.buffer.cast(), self.length),
                    (Direction::Write, Some(offset)) => libc::pwrite(fd, self.buffer.cast(), self.length, offset),
                }
            };
            match Errno::result(transferred) {
                Err(Errno::EINTR) => {}
                other => return completion(other.map(|count| count as usize)),
            }
        }
    }
}

fn completion(outcome: Result<usize, Errno>) -> i32 {
    // At most `MOST`, so it fits.
    outcome.map_or_else(|errno| -(errno as i32), |count| count as i32)
}
