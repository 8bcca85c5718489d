//! System calls that never block.
//!
//! A descriptor may be in blocking mode (STDIN, inherited ones, files), and finding out takes a system call of its own.
//! So each call asks for non-blocking behaviour by itself: `MSG_DONTWAIT` for sockets, `RWF_NOWAIT` for other files
//! that support it. For the rest (terminals, devices) poll(2) precedes a plain call.

use std::os::fd::RawFd;
use std::time::Duration;

use nix::errno::Errno;

use crate::io::raw_slice::{RawSlice, RawSliceMut};

/// How many bytes fit into any descriptor that poll(2) reports as writable (`_POSIX_PIPE_BUF`). More might block.
const ROOM_WHEN_WRITABLE: usize = 512;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryIo {
    /// The number of bytes; 0 from a read is the end of the file.
    Done(usize),
    /// The call would block until the descriptor is ready.
    WouldBlock,
    /// A read would block, and returns 0 bytes if the descriptor is not ready within this time. The descriptor is a
    /// terminal in raw mode whose VMIN is 0.
    EndsAfter(Duration),
    /// The descriptor is a file, always 'ready', whose data is not in the page cache. Only an operation of the backend
    /// can do this.
    NeedsOperation,
    /// The call failed.
    Failed(Errno),
}

/// The kind that a descriptor probably has. A wrong guess only costs another system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FdKind {
    /// A socket.
    Socket,
    /// A regular file.
    File,
    /// A pipe, a terminal, a device.
    Other,
}

/// Reads from the descriptor's own position.
pub fn read(fd: RawFd, buffer: RawSliceMut<'_>, kind: FdKind) -> TryIo {
    let (base, length) = (buffer.as_mut_ptr().cast(), buffer.len());
    // Unlike read(2), recv(2) of 0 bytes fails if there is no data, and takes a datagram.
    if kind == FdKind::Socket && length > 0 {
        // SAFETY: the buffer is valid for writes of `length` bytes.
        let result = retry(|| unsafe { libc::recv(fd, base, length, libc::MSG_DONTWAIT) });
        match result {
            Ok(count) => return TryIo::Done(count),
            Err(Errno::ENOTSOCK) => {}
            Err(errno) => return refused(errno, || false),
        }
    }
    match nowait::read(fd, buffer, None) {
        Ok(count) => TryIo::Done(count),
        Err(errno) if is_unavailable(errno) => {
            // SAFETY: the buffer is valid for writes of `length` bytes.
            let read = || unsafe { libc::read(fd, base, length) };
            match call_if_ready(fd, libc::POLLIN, read) {
                TryIo::WouldBlock => read_unready(fd, read),
                result => result,
            }
        }
        Err(errno) => refused(errno, || is_file(fd)),
    }
}

/// Writes at the descriptor's own position.
pub fn write(fd: RawFd, buffer: RawSlice<'_>, kind: FdKind) -> TryIo {
    if kind == FdKind::Socket {
        // SAFETY: the buffer is valid for reads of its length.
        let send = || unsafe { libc::send(fd, buffer.as_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
        match retry(send) {
            Ok(count) => return TryIo::Done(count),
            Err(Errno::ENOTSOCK) => {}
            Err(errno) => return refused(errno, || false),
        }
    }
    // Most file systems do not support RWF_NOWAIT for writes, so trying it would waste a system call.
    if kind == FdKind::File && position(fd).is_some() {
        return TryIo::NeedsOperation;
    }
    match nowait::write(fd, buffer, None) {
        Ok(count) => TryIo::Done(count),
        Err(errno) if is_unavailable(errno) => {
            let buffer = buffer.truncated(ROOM_WHEN_WRITABLE);
            call_if_ready(fd, libc::POLLOUT, || plain_write(fd, buffer))
        }
        Err(errno) => refused(errno, || is_file(fd)),
    }
}

/// Reads at `offset`, which only files support.
pub fn read_at(fd: RawFd, buffer: RawSliceMut<'_>, offset: u64) -> TryIo {
    at_offset(nowait::read(fd, buffer, Some(offset)))
}

/// Writes at `offset`, which only files support.
pub fn write_at(fd: RawFd, buffer: RawSlice<'_>, offset: u64) -> TryIo {
    at_offset(nowait::write(fd, buffer, Some(offset)))
}

/// Writes to a regular file, at `offset` or at the descriptor's own position. This may block: see
/// [`crate::io::slow_file_backoff`].
pub fn write_file(fd: RawFd, buffer: RawSlice<'_>, offset: Option<u64>) -> TryIo {
    let written = match offset.map(libc::off_t::try_from) {
        None => retry(|| plain_write(fd, buffer)),
        // SAFETY: the buffer is valid for reads of its length.
        Some(Ok(offset)) => retry(|| unsafe { libc::pwrite(fd, buffer.as_ptr().cast(), buffer.len(), offset) }),
        Some(Err(_)) => Err(Errno::EINVAL),
    };
    written.map_or_else(TryIo::Failed, TryIo::Done)
}

fn plain_write(fd: RawFd, buffer: RawSlice<'_>) -> isize {
    // SAFETY: the buffer is valid for reads of its length.
    unsafe { libc::write(fd, buffer.as_ptr().cast(), buffer.len()) }
}

/// Which of `events` (poll(2)'s) the descriptor is ready for now. An error or a hang-up makes it ready for all of them.
pub fn poll_now(fd: RawFd, events: libc::c_short) -> Result<libc::c_short, Errno> {
    let mut descriptor = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one valid pollfd, and a timeout of zero.
    retry(|| unsafe { libc::poll(&mut descriptor, 1, 0) } as isize)?;
    match descriptor.revents {
        revents if revents & libc::POLLNVAL != 0 => Err(Errno::EBADF),
        revents if revents & (libc::POLLERR | libc::POLLHUP) != 0 => Ok(events),
        revents => Ok(revents & events),
    }
}

/// Whether the descriptor is a regular file or a block device, which are always 'ready' and may block.
pub fn is_file(fd: RawFd) -> bool {
    crate::io::files::kind(fd).is_some_and(|kind| kind == libc::S_IFREG || kind == libc::S_IFBLK)
}

/// Whether the descriptor is a listening socket. It never becomes ready for `recv`, which fails immediately.
pub fn is_listening(fd: RawFd) -> bool {
    let mut listens: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw mut listens).cast();
    // SAFETY: an int, and its length.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN, value, &mut length) };
    result == 0 && listens != 0
}

/// The descriptor's own position. `None` if it is not seekable: a pipe, a socket, a terminal. Costs a third of
/// fstat(2).
pub fn position(fd: RawFd) -> Option<u64> {
    // SAFETY: no memory is passed, and the position does not change.
    u64::try_from(unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) }).ok()
}

/// Whether writes go to the end of the file, wherever the position is (`O_APPEND`).
pub fn appends(fd: RawFd) -> bool {
    // SAFETY: takes no pointers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_APPEND != 0
}

/// Sets the descriptor's own position.
pub fn seek(fd: RawFd, position: u64) {
    if let Ok(position) = libc::off_t::try_from(position) {
        // SAFETY: no memory is passed.
        unsafe { libc::lseek(fd, position, libc::SEEK_SET) };
    }
}

/// Whether `preadv2` and `pwritev2` are unavailable: for this descriptor, in this kernel, or in this process, where a
/// seccomp filter that does not know them returns EPERM. Ruby's own calls, which the caller then uses, report errors of
/// the descriptor itself.
fn is_unavailable(errno: Errno) -> bool {
    matches!(errno, Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EPERM)
}

fn at_offset(result: Result<usize, Errno>) -> TryIo {
    match result {
        Ok(count) => TryIo::Done(count),
        Err(Errno::EAGAIN) => TryIo::NeedsOperation,
        Err(errno) if is_unavailable(errno) => TryIo::NeedsOperation,
        Err(errno) => TryIo::Failed(errno),
    }
}

fn refused(errno: Errno, is_file: impl FnOnce() -> bool) -> TryIo {
    match errno {
        Errno::EAGAIN if is_file() => TryIo::NeedsOperation,
        Errno::EAGAIN => TryIo::WouldBlock,
        errno => TryIo::Failed(errno),
    }
}

/// Makes a plain call once poll(2) says that it will not block, for descriptors without a non-blocking call.
fn call_if_ready(fd: RawFd, events: libc::c_short, call: impl FnMut() -> isize) -> TryIo {
    if is_file(fd) {
        return TryIo::NeedsOperation;
    }
    match poll_now(fd, events) {
        Ok(0) => TryIo::WouldBlock,
        Ok(_) => match retry(call) {
            Ok(count) => TryIo::Done(count),
            Err(errno) => refused(errno, || false),
        },
        Err(errno) => TryIo::Failed(errno),
    }
}

/// Reads from a descriptor that poll(2) reports as not readable. A read does not block nevertheless on a FIFO in
/// non-blocking mode without a writer, and on a terminal whose VMIN and VTIME are 0.
fn read_unready(fd: RawFd, read: impl FnMut() -> isize) -> TryIo {
    // SAFETY: takes no pointers.
    let is_nonblocking = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK != 0;
    match terminal_time(fd) {
        Some(time) if !time.is_zero() && !is_nonblocking => return TryIo::EndsAfter(time),
        None if !is_nonblocking => return TryIo::WouldBlock,
        _ => {}
    }
    retry(read).map_or_else(|errno| refused(errno, || false), TryIo::Done)
}

/// How long a read from a terminal in raw mode waits for the first byte (VTIME). `None` if it waits without limit.
fn terminal_time(fd: RawFd) -> Option<Duration> {
    let mut settings = std::mem::MaybeUninit::<libc::termios>::uninit();
    // SAFETY: tcgetattr fills the whole struct if it succeeds, and only then it is read.
    let settings = unsafe {
        if libc::tcgetattr(fd, settings.as_mut_ptr()) != 0 {
            return None;
        }
        settings.assume_init()
    };
    let waits_for_ever = settings.c_lflag & libc::ICANON != 0 || settings.c_cc[libc::VMIN] != 0;
    (!waits_for_ever).then(|| Duration::from_millis(100) * u32::from(settings.c_cc[libc::VTIME]))
}

fn retry(mut call: impl FnMut() -> isize) -> Result<usize, Errno> {
    loop {
        match Errno::result(call()) {
            Ok(count) => return Ok(count as usize),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

mod nowait {
    //! `RWF_NOWAIT`: Linux 4.14 and later, for pipes and sockets as well as for files.

    use super::{Errno, RawFd, RawSlice, RawSliceMut, retry};

    /// The offset that means 'the descriptor's own position'.
    const CURRENT_POSITION: i64 = -1;

    pub fn read(fd: RawFd, buffer: RawSliceMut<'_>, offset: Option<u64>) -> Result<usize, Errno> {
        #[cfg(heddle_disturbed)]
        if crate::disturbed::is_file_cold() && super::is_file(fd) {
            return Err(Errno::EAGAIN);
        }
        let vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: one vector, of memory that is valid for writes.
        retry(|| unsafe { call(libc::SYS_preadv2, fd, &vector, offset) })
    }

    pub fn write(fd: RawFd, buffer: RawSlice<'_>, offset: Option<u64>) -> Result<usize, Errno> {
        let vector = libc::iovec { iov_base: buffer.as_ptr().cast_mut().cast(), iov_len: buffer.len() };
        // SAFETY: one vector, of memory that is valid for reads.
        retry(|| unsafe { call(libc::SYS_pwritev2, fd, &vector, offset) })
    }

    /// By its number, as musl has the functions since 1.2.5 only, and a library that names them is not loaded before.
    ///
    /// # Safety
    /// The vector's memory is valid for what the call does with it.
    unsafe fn call(number: libc::c_long, fd: RawFd, vector: &libc::iovec, offset: Option<u64>) -> isize {
        let position = offset.map_or(CURRENT_POSITION, |offset| i64::try_from(offset).unwrap_or(i64::MAX));
        // The kernel takes the position in two halves. It does not look at the upper one where a long has 64 bits.
        let halves = (position as libc::c_long, (position >> 32) as libc::c_long);
        // SAFETY: both calls take these arguments, and this function's contract covers the memory.
        let result = unsafe {
            libc::syscall(
                number,
                fd,
                std::ptr::from_ref(vector),
                1 as libc::c_long,
                halves.0,
                halves.1,
                libc::RWF_NOWAIT,
            )
        };
        result as isize
    }
}
