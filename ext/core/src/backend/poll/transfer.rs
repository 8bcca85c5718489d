//! A read or write of the poll backend.

use std::os::fd::RawFd;

use nix::errno::Errno;

use crate::backend::Interest;
use crate::files;
use crate::raw_slice::{RawSlice, RawSliceMut};
use crate::try_io::{self, FdKind, TryIo};

/// The largest transfer that Linux makes at once. Other systems refuse more than `INT_MAX` bytes.
const MAX_LENGTH: usize = 0x7fff_f000;

/// How a descriptor can be read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `recv` and `send` with `MSG_DONTWAIT` do not block.
    Socket,
    /// A pipe, a terminal or another file that reports readiness.
    Stream,
    /// A regular file, a directory or a block device: always "ready", but may block.
    Storage,
}

impl Kind {
    /// Costs one system call.
    ///
    /// # Errors
    /// EBADF.
    // Not inlined: what the kernel tells of a file is large, and a fiber's stack is small.
    #[inline(never)]
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

/// A pending read or write.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    direction: Direction,
    buffer: *mut u8,
    length: usize,
    offset: Option<u64>,
}

// SAFETY: by the contract of `Transfer::read` and `Transfer::write` nothing else uses the buffer until the transfer's
// last use, so any thread may do the transfer.
unsafe impl Send for Transfer {}

impl Transfer {
    /// # Safety
    /// `buffer` is valid for writes of `length` bytes, and nothing else uses it, until the last use of this transfer or
    /// a copy of it.
    pub unsafe fn read(buffer: *mut u8, length: usize, offset: Option<u64>) -> Self {
        Transfer { direction: Direction::Read, buffer, length: length.min(MAX_LENGTH), offset }
    }

    /// # Safety
    /// `buffer` is valid for reads of `length` bytes, and nothing writes to it, until the last use of this transfer or
    /// a copy of it.
    pub unsafe fn write(buffer: *const u8, length: usize, offset: Option<u64>) -> Self {
        Transfer { direction: Direction::Write, buffer: buffer.cast_mut(), length: length.min(MAX_LENGTH), offset }
    }

    /// The readiness that the transfer needs.
    pub fn interest(&self) -> Interest {
        match self.direction {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        }
    }

    /// Transfers without blocking, even if the descriptor is in blocking mode. Returns the number of bytes or a negated
    /// errno; None if the transfer would block.
    pub fn try_now(&self, fd: RawFd, kind: Kind) -> Option<i32> {
        let likely_kind = if kind == Kind::Socket { FdKind::Socket } else { FdKind::Other };
        // SAFETY: by the contract of `Transfer::read`, if this is a read.
        let into = || unsafe { RawSliceMut::new(self.buffer, self.length) };
        // SAFETY: by the contract of `Transfer::write`, if this is a write.
        let from = || unsafe { RawSlice::new(self.buffer, self.length) };
        let outcome = match (self.direction, self.offset) {
            (Direction::Read, None) => try_io::read(fd, into(), likely_kind),
            (Direction::Read, Some(offset)) => try_io::read_at(fd, into(), offset),
            (Direction::Write, None) => try_io::write(fd, from(), likely_kind),
            (Direction::Write, Some(offset)) => try_io::write_at(fd, from(), offset),
        };
        match outcome {
            TryIo::Done(count) => Some(completion(Ok(count))),
            TryIo::WouldBlock | TryIo::EndsAfter(_) => None,
            // A seekable device that reports readiness, and is ready.
            TryIo::NeedsOperation => Some(self.block(fd)),
            TryIo::Failed(errno) => Some(completion(Err(errno))),
        }
    }

    /// Transfers with a blocking call, on a worker thread.
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
    // The count is at most `MAX_LENGTH`, so it fits.
    outcome.map_or_else(|errno| -(errno as i32), |count| count as i32)
}
