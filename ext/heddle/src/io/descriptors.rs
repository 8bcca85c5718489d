//! Closing a descriptor while operations name its number.
//!
//! The kernel reuses a closed number for the next file that is opened. A queued operation, or one that Ruby starts for
//! the rest of a read or write, would then use that file. And Ruby frees an IO's read buffer when it closes the IO,
//! even if the kernel still writes to it. So `IO#close`, `close_read`, `close_write` and `reopen` call [`closing`]
//! first (`lib/heddle/patches/io_close.rb`), and the following holds in all schedulers of the process:
//!
//! 1. From then on no hook starts an operation on the number, but raises IOError ([`descriptor`]). The closing fiber
//!    alone may still write what is buffered.
//! 2. Operations that have not been submitted to the kernel are dropped. Operations in flight are cancelled.
//! 3. When the last of them has ended, Ruby closes the descriptor. A fiber whose operation had no result by then raises
//!    the same IOError as a thread does.
//!
//! ```text
//!              closing                  no operation names it              Ruby's close(2)
//!     open ──────────────▶ closing ─────────────────────────▶ unused ───────────────────────▶ closed
//!                             │                                  ▲
//!                             └── the owner does not respond ────┘
//!                                 (detached: see `end_other_threads_operations`)
//! ```
//!
//! The time to close a number depends on its own operations alone, and not on the number of fibers and operations: see
//! `descriptor_index.rs` of the core.

use std::os::fd::{FromRawFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heddle_core::Interest;
use heddle_core::io::process_fd::ProcessFd;
use magnus::{Error, Object, RModule, Ruby, Value, function, prelude::*};

use crate::ruby::io_buffer::Contents;
use crate::ruby::nogvl::without_gvl;
use crate::ruby::outcome::{Ignore, RubyOutcome};
use crate::ruby::pending_interrupts::Deferred;
use crate::ruby::value::{cast, same};
use crate::ruby::{error, fiber, interrupts, io, postponed_job, ractor, thread};
use crate::scheduler::closing_numbers::{self, Announcement};
use crate::scheduler::record::FiberKey;
use crate::scheduler::state::{Signal, State, User};
use crate::scheduler::wait::Wait;
use crate::scheduler::{Scheduler, registry};

/// How many polls without a wait look for the ends of cancelled operations. Most have ended by the second poll.
const POLLS: u32 = 4;
/// How long to wait for another scheduler's thread to end its operations before interrupting it once more.
const INTERRUPT_INTERVAL: Duration = Duration::from_micros(500);
/// How many interrupts there are between two checks whether that thread is stopped.
const INTERRUPTS_PER_CHECK: u32 = 20;
/// How many checks in a row may find it stopped before its operations are detached.
const MAX_CHECKS: u32 = 10;
/// How many times a fiber that is being killed tries to let the others run. Each time, some of them do.
const MAX_KILLED_TRIES: u32 = 1000;

/// The descriptor of an IO, for an operation that starts immediately. The caller must look it up again whenever another
/// fiber or thread could have run.
///
/// # Errors
/// IOError if the IO is closed, or another fiber or thread is closing it; TypeError if it is no IO.
#[inline]
pub fn descriptor(ruby: &Ruby, io: Value) -> Result<RawFd, Error> {
    let fd = io::descriptor(io)?;
    expect_open(ruby, fd).map(|()| fd)
}

/// [`descriptor`] without an exception, which would run Ruby's code: `None` if the IO is closed, or is being closed.
pub fn open_descriptor(ruby: &Ruby, io: Value) -> Option<RawFd> {
    let fd = io::open_descriptor(io)?;
    (closing_numbers::is_empty() || !is_closing(ruby, fd)).then_some(fd)
}

/// Like [`descriptor`], with the IO's timeout and the memory of `buffer`; see [`io::transfer_arguments`].
///
/// # Errors
/// Those of [`descriptor`], and as there.
#[inline]
pub fn transfer_arguments(
    ruby: &Ruby,
    io: Value,
    (buffer, writable): (Value, bool),
) -> Result<(RawFd, Value, Contents), Error> {
    let arguments = io::transfer_arguments(io, buffer, writable)?;
    expect_open(ruby, arguments.0).map(|()| arguments)
}

#[inline]
fn expect_open(ruby: &Ruby, fd: RawFd) -> Result<(), Error> {
    if closing_numbers::is_empty() || !is_closing(ruby, fd) { Ok(()) } else { Err(error::stream_closed(ruby)) }
}

#[cold]
fn is_closing(ruby: &Ruby, fd: RawFd) -> bool {
    let current = fiber::current(ruby);
    while let Some(closing) = closing_numbers::find(ruby, fd, current) {
        if io::open_descriptor(closing.io.get()) == Some(fd) {
            return true;
        }
        // Ruby has closed the number, but `close` has not returned, as when it waits for a child process.
        closing_numbers::remove(ruby, closing.id);
    }
    false
}

/// Ends the operations that name `io`'s number, and then runs the block, which closes `io`, or the sides of it that
/// `events` names. If the number stays open, only the block runs.
fn closing(ruby: &Ruby, io: Value, events: u8) -> Result<Value, Error> {
    if !ractor::is_main(ruby) || registry::is_empty(ruby) {
        return ruby.yield_value(());
    }
    // No operation uses an IO that is closed already, or was never opened.
    let Some(fd) = io::open_descriptor(io) else { return ruby.yield_value(()) };
    let interest = Interest(events);
    let closer = fiber::ensure_current(ruby)?;
    let write_io = io::write_io(io)?;
    if same(write_io, io) {
        if !io::gives_number_back(io, fd, interest)? {
            return ruby.yield_value(());
        }
        let _announced = Announcement::new(io, fd, closer);
        return close(ruby, end_operations(ruby, io, fd));
    }
    // The IO has a descriptor for each direction.
    let read_fd = interest.intersects(Interest::READABLE).then_some(fd);
    let write_fd = io::open_descriptor(write_io).filter(|_| interest.intersects(Interest::WRITABLE));
    let announce = |io: Value, fd: Option<RawFd>| fd.map(|fd| Announcement::new(io, fd, closer));
    let _announced = (announce(io, read_fd), announce(write_io, write_fd));
    let end = |io: Value, fd: Option<RawFd>| fd.map_or(Ok(()), |fd| end_operations(ruby, io, fd));
    close(ruby, end(io, read_fd).and_ensure(|| end(write_io, write_fd)))
}

/// Runs the block, which closes the IO. An exception that was raised in the wait, `ended`, propagates only after the
/// close, which an `ensure` clause may have called.
fn close(ruby: &Ruby, ended: Result<(), Error>) -> Result<Value, Error> {
    let mut closed = ruby.qnil().as_value();
    ended.and_ensure(|| ruby.yield_value(()).map(|value| closed = value)).map(|()| closed)
}

/// Ends the operations that name `fd`, in all schedulers of the process.
///
/// # Errors
/// What was raised into the fiber or thread in the wait. The operations have ended even then.
fn end_operations(ruby: &Ruby, io: Value, fd: RawFd) -> Result<(), Error> {
    let own = Scheduler::in_use(ruby).filter(|_| cfg!(ruby_gte_4_0));
    let users = own.as_ref().map_or(Vec::new(), |scheduler| scheduler.state.borrow().users_of(fd));
    let mut result = Ok(());
    let mut keep = |outcome: Result<(), Error>| {
        if let Err(raised) = outcome {
            result = Err(raised);
        }
    };
    if registry::any(ruby, |scheduler| scheduler.close_number(fd)) {
        let visited = registry::each(ruby, |scheduler| {
            keep(if !scheduler.has_operations_on(fd) {
                Ok(())
            } else if scheduler.is_owned_by(thread::current(ruby)) {
                end_own_operations(ruby, scheduler, fd)
            } else {
                end_other_threads_operations(ruby, scheduler, io, fd)
            });
            Ok(())
        });
        keep(visited);
    }
    if let Some(scheduler) = own.filter(|_| !users.is_empty()) {
        keep(scheduler.let_leave(ruby, users));
    }
    result
}

/// Ends operations of this thread's scheduler.
fn end_own_operations(ruby: &Ruby, scheduler: &Scheduler, fd: RawFd) -> Result<(), Error> {
    for _ in 0..POLLS {
        scheduler.poll(ruby)?;
        if !scheduler.has_operations_on(fd) {
            return Ok(());
        }
    }
    // Threads of the kernel or of Heddle read and write files, and a read from a disk cannot be cancelled.
    let wait = || {
        let hook = scheduler.enter(ruby)?;
        wait_for_ends(ruby, scheduler, hook.key, |state| !state.operations.names(fd))
    };
    let mut waited = wait();
    while matches!(&waited, Err(_kept)) && scheduler.has_operations_on(fd) {
        let begun = Instant::now();
        // What is raised ends the close when the operations have ended. The last exception takes the place of others.
        if let Err(error) = wait() {
            waited = Err(error);
        }
        if begun.elapsed() < INTERRUPT_INTERVAL
            && let Err(error) = scheduler.rest_without_switching(ruby)
        {
            waited = Err(error);
        }
    }
    waited
}

/// Lets other fibers run until `have_ended`, which is checked each time that operations or other fibers' waits end.
///
/// # Errors
/// What was raised into the fiber.
pub fn wait_for_ends(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    mut have_ended: impl FnMut(&mut State) -> bool,
) -> Result<(), Error> {
    scheduler.state.borrow_mut().closings.add_fiber(key);
    let waited = scheduler.wait(ruby, key, Wait::Yielded, None, |state| have_ended(state).then_some(()));
    scheduler.state.borrow_mut().closings.remove_fiber(key);
    waited.map(|_| ())
}

/// Ends operations of another thread's scheduler. If that thread waits in its backend, it is woken; if it runs Ruby, it
/// ends the operations at its next safe point.
///
/// But that thread may be stopped in another wait, perhaps for this thread (`Thread#join`), and not respond. Then the
/// operations are detached: queued ones have been dropped, and those in flight hold a reference to their file and get
/// the IO's read buffer. So the number can be closed. The file stays open until that thread's scheduler collects the
/// results.
fn end_other_threads_operations(ruby: &Ruby, scheduler: &Scheduler, io: Value, fd: RawFd) -> Result<(), Error> {
    let signal = Arc::new(Signal::default());
    scheduler.state.borrow_mut().closings.add_thread(Arc::clone(&signal));
    let mut checks = 0;
    let mut raised = Ok(());
    loop {
        let is_in_backend = !scheduler.cancel_closed();
        if !scheduler.has_operations_on(fd) {
            break;
        }
        let owner = scheduler.owner.thread.get().filter(|_| !is_in_backend);
        match owner.map_or(Ok(false), |owner| thread::is_stopped(owner.get())) {
            Ok(is_stopped) => checks = if is_stopped { checks + 1 } else { 0 },
            // Raised into this thread, and not by the question.
            Err(error) => raised = Err(error),
        }
        if checks >= MAX_CHECKS {
            let memory = io::take_read_buffer(io).map(Rc::new);
            scheduler.state.borrow_mut().operations.detach(fd, memory.as_ref());
            break;
        }
        scheduler.wake_owner();
        let interrupt_until_ended = || {
            (0..INTERRUPTS_PER_CHECK).any(|_| {
                let has_ended = signal.wait(INTERRUPT_INTERVAL);
                if !has_ended {
                    postponed_job::trigger_elsewhere();
                }
                has_ended
            })
        };
        if without_gvl(ruby, interrupt_until_ended, &|| {}).is_none()
            && let Err(error) = interrupts::check(ruby)
        {
            raised = Err(error);
        }
    }
    scheduler.state.borrow_mut().closings.remove_thread(&signal);
    raised
}

/// Detaches the operations that name a number, for a caller that closes the number and cannot wait. Queued operations
/// are dropped. Those in flight are cancelled, and hold a reference to their file.
///
/// Returns false if the caller must not close the number: a thread that waits in the kernel may use the number until it
/// has woken. That thread's scheduler closes the number then.
pub fn detach_operations(ruby: &Ruby, fd: RawFd) -> bool {
    let mut number = None;
    let is_named = registry::any(ruby, |scheduler| {
        let is_named = scheduler.close_number(fd);
        if is_named {
            let is_cancelled = scheduler.cancel_closed();
            let mut state = scheduler.state.borrow_mut();
            if is_cancelled {
                state.operations.detach(fd, None);
            } else {
                // SAFETY: Ruby has passed the ownership of the number to the caller, which leaves it to the schedulers.
                let number = number.get_or_insert_with(|| Arc::new(unsafe { ProcessFd::from_raw_fd(fd) }));
                state.closings.close_later(fd, Arc::clone(number));
            }
            drop(state);
            scheduler.wake_owner();
        }
        is_named
    });
    if is_named && let Some(scheduler) = cast::<Scheduler>(fiber::scheduler(ruby)) {
        // The first poll submits the cancels, and the second one takes their completions. Until then the kernel keeps
        // the file, and the peer would not see the end.
        for _ in 0..2 {
            scheduler.poll(ruby).deferred();
        }
    }
    number.is_none()
}

impl Scheduler {
    /// Notes that a number is being closed. Returns whether operations name it.
    fn close_number(&self, fd: RawFd) -> bool {
        !self.is_inherited() && self.state.borrow_mut().operations.close(fd)
    }

    fn has_operations_on(&self, fd: RawFd) -> bool {
        !self.is_inherited() && self.state.borrow().operations.names(fd)
    }

    /// Cancels the operations of closed numbers, and collects the results that have arrived, without a system call.
    /// False if the owner's thread waits in the kernel, and must do so itself.
    fn cancel_closed(&self) -> bool {
        let Some(mut reactor) = self.io.reactor.try_borrow_mut().ignored("the owner waits") else { return false };
        if let Some(reactor) = reactor.as_mut() {
            let mut state = self.state.borrow_mut();
            reactor.cancel_closed(&mut state.operations);
            state.complete(reactor.completions());
        }
        true
    }

    /// Lets the fibers leave that used a number, and whose operations on it have ended.
    ///
    /// From Ruby 4.0 on, `IO#close` itself interrupts the fibers that use the IO, and waits until they have left. A
    /// fiber that is being killed cannot wait, since Ruby raises the kill again at each switch: its `close` would close
    /// nothing. And an exception of Ruby's for a fiber that has just left its wait would be raised elsewhere. So Ruby
    /// finds none of them.
    ///
    /// # Errors
    /// What was raised into the current fiber meanwhile.
    fn let_leave(&self, ruby: &Ruby, mut users: Vec<User>) -> Result<(), Error> {
        let hook = self.enter(ruby)?;
        let mut have_left = |state: &mut State| {
            users.retain(|user| user.fiber != hook.key && !state.has_left(user));
            users.is_empty()
        };
        let mut result = Ok(());
        for _ in 0..MAX_KILLED_TRIES {
            if have_left(&mut self.state.borrow_mut()) {
                break;
            }
            if let Err(error) = wait_for_ends(ruby, self, hook.key, &mut have_left) {
                result = Err(error);
            }
        }
        result
    }

    /// Polls at a safe point of the owner's thread, if another thread waits for the ends of operations.
    pub fn poll_for_closers(&self, ruby: &Ruby) {
        for _ in 0..POLLS {
            if !self.state.borrow().closings.has_threads() || self.poll(ruby).deferred().is_none() {
                return;
            }
        }
    }
}

/// Defines `Heddle::Native.closing`, which `lib/heddle/patches/io_close.rb` calls.
pub fn define(ruby: &Ruby, heddle: RModule, native: RModule) -> Result<(), Error> {
    closing_numbers::define(ruby, heddle)?;
    native.define_singleton_method("closing", function!(closing, 2))
}
