//! io_uring: operations are queued in memory, and one system call submits them as a batch and waits for completions.

mod ring;
mod set_up;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

use self::ring::Ring;
use self::set_up::{SUBMISSION_ENTRIES, Setup, check_features, set_up, unavailable};
use super::{Backend, Completion, Interest, Operation, Token};
use crate::error::{Error, Result};
use crate::io::process_fd::ProcessFd;
use crate::threads::waker::{Notify, Waker};

/// The file offset that means 'the descriptor's own position' (`IORING_FEAT_RW_CUR_POS`).
const CURRENT_POSITION: u64 = u64::MAX;
/// How long to wait before another submission when the kernel has no memory for it.
const OUT_OF_MEMORY_PAUSE: Duration = Duration::from_millis(1);

/// `IORING_RECVSEND_POLL_FIRST`: a receive waits for data before it tries. A fiber that reads from a socket has usually
/// read all that had arrived, and waits for an answer.
const POLL_FIRST: u16 = 1;

/// The user data of the operation that reads the waker's eventfd.
const WAKE: u64 = u64::MAX;
/// The user data of requests to cancel, whose own results are ignored.
const CANCEL: u64 = u64::MAX - 1;

/// The io_uring backend.
pub struct Uring {
    /// `None` only after `abandon`.
    ring: Option<Ring>,
    /// Entries that have not been submitted. Only `wait` moves them into the ring, as an operation in the queue can
    /// still be dropped.
    queue: Vec<squeue::Entry>,
    /// The sequence number of the first entry of `queue`. Entries that have left the queue have lower ones. The kernel
    /// has taken them, unless it lacked memory: then the last of them are in the ring still.
    first_queued: u64,
    /// The number of operations whose completion has not been returned, without the waker's.
    in_flight: usize,
    /// By token. Tokens are slab indices, so this stays small.
    operations: Vec<Option<InFlight>>,
    /// Completions of dropped operations that have not been returned.
    dropped: Vec<Completion>,
    waker: Waker,
    event: Arc<WakeFd>,
    /// Where the kernel writes the eventfd's counter. On the heap, as this struct may move during the read.
    wake_counter: Box<u64>,
    /// Whether a read of the eventfd is in flight.
    listening: bool,
    /// [`POLL_FIRST`], if the kernel knows it.
    receive_flags: u16,
}

/// An operation whose completion has not arrived.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    /// What the operation waits for; empty for a transfer.
    interest: Interest,
    /// The sequence number of its entry in the queue.
    sequence: u64,
}

/// The eventfd that ends a wait. Wakers share it with the backend, and may outlive the backend.
struct WakeFd(ProcessFd);

impl Notify for Arc<WakeFd> {
    fn notify(&self) {
        let one = 1u64.to_ne_bytes();
        // Otherwise fails only if the counter is full, and then the reader has been woken; and in a forked child, which
        // has no eventfd. SAFETY: `one` has the eight bytes that an eventfd takes.
        let write = || unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        while Errno::result(write()) == Err(Errno::EINTR) {}
    }
}

impl Uring {
    /// Sets up a ring for the calling native thread.
    ///
    /// `stays_on_thread` promises that no other native thread uses this ring, which saves the kernel interrupts and
    /// locks.
    ///
    /// # Errors
    /// [`Error::BackendUnavailable`] if the kernel refuses (seccomp, sysctl, memory limit) or is too old.
    pub fn new(stays_on_thread: bool) -> Result<Self> {
        let (ring, setup) = set_up(stays_on_thread)?;
        check_features(&ring)?;
        let eventfd = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC)
            .map_err(|errno| unavailable(format!("eventfd answers {errno}"), Some(errno as i32)))?;
        let event = Arc::new(WakeFd(OwnedFd::from(eventfd).into()));
        Ok(Uring {
            ring: Some(Ring::new(ring)?),
            queue: Vec::with_capacity(SUBMISSION_ENTRIES as usize),
            first_queued: 0,
            in_flight: 0,
            operations: Vec::new(),
            dropped: Vec::new(),
            waker: Waker::new(Arc::clone(&event)),
            event,
            wake_counter: Box::new(0),
            listening: false,
            // Only deferred task work (Linux 6.1) can be probed, and it is newer than POLL_FIRST (5.19).
            receive_flags: if setup == Setup::Deferred { POLL_FIRST } else { 0 },
        })
    }

    fn ring(&mut self) -> &mut IoUring {
        self.ring.as_mut().expect("an abandoned ring is used no more").get()
    }

    /// Queues an entry and returns its sequence number.
    fn push(&mut self, entry: squeue::Entry) -> u64 {
        self.queue.push(entry);
        self.first_queued + self.queue.len() as u64 - 1
    }

    /// Moves the queue into the ring, and submits early if the ring is full. False if the kernel makes no room, for
    /// lack of memory or because too many completions wait. The next `wait` tries again.
    fn flush(&mut self) -> bool {
        let Some(ring) = self.ring.as_mut().map(Ring::get) else { return false };
        let mut moved = 0;
        while moved < self.queue.len() {
            let mut submissions = ring.submission();
            let room = submissions.capacity() - submissions.len();
            let count = room.min(self.queue.len() - moved);
            // SAFETY: what the entries point to stays valid until their completions: the buffers by the contract of
            // `submit`; the wake counter, because it is dropped after the ring has been drained. Cancel requests point
            // to nothing.
            let pushed = unsafe { submissions.push_multiple(&self.queue[moved..moved + count]).is_ok() };
            drop(submissions);
            if pushed && count > 0 {
                moved += count;
            } else if !matches!(ring.submit(), Ok(taken) if taken > 0) {
                break;
            }
        }
        self.first_queued += moved as u64;
        self.queue.drain(..moved);
        self.queue.is_empty()
    }

    /// Replaces the entry with this sequence number by a no-op, so that the others keep their numbers. False if the
    /// kernel has taken it.
    fn withdraw(&mut self, sequence: u64) -> bool {
        let no_op = opcode::Nop::new().build().user_data(CANCEL);
        if let Some(queued) = sequence.checked_sub(self.first_queued) {
            self.queue[queued as usize] = no_op;
            return true;
        }
        let before_queue = self.first_queued - sequence;
        self.ring.as_mut().is_some_and(|ring| ring.replace(sequence, before_queue, no_op))
    }

    fn listen_for_wakes(&mut self) {
        if !self.listening {
            self.listening = true;
            let counter: *mut u64 = &mut *self.wake_counter;
            let fd = Fd(self.event.0.as_raw_fd());
            self.push(opcode::Read::new(fd, counter.cast(), size_of::<u64>() as u32).build().user_data(WAKE));
        }
    }

    fn enter(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        match timeout {
            Some(Duration::ZERO) => {
                let ring = self.ring();
                let submissions = ring.submission();
                let nothing_to_do = submissions.is_empty() && !submissions.taskrun() && !submissions.cq_overflow();
                drop(submissions);
                if nothing_to_do { Ok(0) } else { ring.submit() }
            }
            Some(timeout) => {
                let timespec = Timespec::from(timeout);
                self.ring().submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timespec))
            }
            None => self.ring().submit_and_wait(1),
        }
    }

    /// Ends all operations and waits for their completions, so that the kernel uses no buffer any more.
    fn drain(&mut self) {
        if self.in_flight == 0 && !self.listening {
            return;
        }
        // One by one, as a single request that cancels all needs Linux 5.19.
        for token in 0..self.operations.len() {
            if self.operations[token].is_some() {
                self.cancel(token);
            }
        }
        if self.listening {
            self.event.notify();
        }
        let mut completions = Vec::new();
        while self.in_flight > 0 || self.listening {
            self.completions(&mut completions);
            completions.clear();
            if self.in_flight == 0 && !self.listening {
                return;
            }
            self.flush();
            match self.ring().submit_and_wait(1).map_err(|error| errno_of(&error)) {
                Ok(_) | Err(Errno::EINTR) => {}
                // This is not the ring's thread. Mostly that thread has ended, and the kernel has ended its
                // operations. If a program has called hooks of a scheduler that no thread has set, the thread may
                // live, and only it can wait for completions. Closing the ring cancels the operations. A read or
                // write of a pipe or socket takes place in the ring's thread alone, which enters this ring no more.
                Err(Errno::EEXIST | Errno::EBADFD) => return,
                // The kernel may still write to the buffers, so try again.
                Err(_) => std::thread::sleep(OUT_OF_MEMORY_PAUSE),
            }
        }
    }
}

impl Backend for Uring {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn is_batching(&self) -> bool {
        true
    }

    unsafe fn submit(&mut self, token: Token, operation: Operation) {
        let (entry, interest) = match operation {
            Operation::Ready { fd, interest } => {
                (opcode::PollAdd::new(Fd(fd), poll_events(interest)).build(), interest)
            }
            Operation::Read { fd, buffer, length, offset, may_block } => {
                let read = opcode::Read::new(Fd(fd), buffer, clamp(length));
                let entry = read.offset(offset.unwrap_or(CURRENT_POSITION)).build();
                (entry.flags(start(may_block)), Interest::default())
            }
            Operation::Write { fd, buffer, length, offset, may_block } => {
                let write = opcode::Write::new(Fd(fd), buffer, clamp(length));
                let entry = write.offset(offset.unwrap_or(CURRENT_POSITION)).build();
                (entry.flags(start(may_block)), Interest::default())
            }
            Operation::Receive { fd, buffer, length } => {
                let receive = opcode::Recv::new(Fd(fd), buffer, clamp(length)).ioprio(self.receive_flags);
                (receive.build(), Interest::default())
            }
            Operation::Send { fd, buffer, length } => {
                (opcode::Send::new(Fd(fd), buffer, clamp(length)).build(), Interest::default())
            }
        };
        if token >= self.operations.len() {
            self.operations.resize(token + 1, None);
        }
        self.in_flight += 1;
        let sequence = self.push(entry.user_data(token as u64));
        self.operations[token] = Some(InFlight { interest, sequence });
    }

    fn cancel(&mut self, token: Token) {
        let Some(InFlight { sequence, .. }) = self.operations.get(token).copied().flatten() else { return };
        if self.withdraw(sequence) {
            self.operations[token] = None;
            self.dropped.push(Completion { token, result: -libc::ECANCELED });
        } else {
            self.push(opcode::AsyncCancel::new(token as u64).build().user_data(CANCEL));
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<()> {
        if timeout != Some(Duration::ZERO) {
            self.listen_for_wakes();
        }
        let flushed = self.flush();
        let has_completions = !self.dropped.is_empty() || !self.ring().completion().is_empty();
        let timeout = if has_completions || !flushed { Some(Duration::ZERO) } else { timeout };
        match self.enter(timeout) {
            Ok(_) => {}
            Err(error) => match errno_of(&error) {
                Errno::ETIME | Errno::EINTR => {}
                // The kernel lacks memory for requests, or the completions must be consumed first. Neither lasts.
                Errno::EAGAIN | Errno::EBUSY | Errno::ENOMEM => {
                    if self.ring().completion().is_empty() {
                        std::thread::sleep(OUT_OF_MEMORY_PAUSE);
                    }
                }
                errno => return Err(Error::os("io_uring_enter", errno)),
            },
        }
        // The process may have been stopped: see the trait.
        if timeout != Some(Duration::ZERO) && self.ring().completion().is_empty() {
            return self.wait(Some(Duration::ZERO));
        }
        Ok(())
    }

    fn completions(&mut self, into: &mut Vec<Completion>) {
        let (mut ended, mut woken) = (self.dropped.len(), false);
        into.append(&mut self.dropped);
        if let Some(ring) = self.ring.as_mut().map(Ring::get) {
            for entry in ring.completion() {
                match entry.user_data() {
                    CANCEL => {}
                    WAKE => woken = true,
                    token => {
                        ended += 1;
                        let token = token as Token;
                        let interest =
                            self.operations[token].take().map(|operation| operation.interest).unwrap_or_default();
                        into.push(Completion { token, result: result(&entry, interest) });
                    }
                }
            }
        }
        self.in_flight -= ended;
        if woken {
            self.listening = false;
        }
    }

    fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn abandon(mut self: Box<Self>) {
        // Cancelling would affect the parent's ring.
        self.ring = None;
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        if self.ring.is_some() {
            self.drain();
        }
    }
}

/// Whether a thread of the kernel starts the operation, or `io_uring_enter`.
fn start(may_block: bool) -> squeue::Flags {
    if may_block { squeue::Flags::ASYNC } else { squeue::Flags::empty() }
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

fn result(entry: &cqueue::Entry, interest: Interest) -> i32 {
    match entry.result() {
        events if events >= 0 && interest != Interest::default() => i32::from(ready(events, interest).0),
        result => result,
    }
}

/// The poll(2) events for an interest. POLLIN, POLLPRI and POLLOUT have the values of Ruby's constants.
fn poll_events(interest: Interest) -> u32 {
    let mut events = u32::from(interest.0);
    if interest.intersects(Interest::PRIORITY) {
        // io_uring's wake-up function ignores POLLPRI alone.
        events |= libc::POLLRDBAND as u32;
    }
    events
}

/// The part of `interest` that a mask of poll(2) events satisfies.
fn ready(events: i32, interest: Interest) -> Interest {
    let failed = i32::from(libc::POLLERR | libc::POLLHUP | libc::POLLNVAL);
    if events & failed != 0 { interest } else { Interest(events as u8) & interest }
}

/// The length that one operation transfers at most, as the kernel's field has 32 bits. The caller transfers the rest
/// next.
fn clamp(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(i32::MAX as u32)
}
