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

use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heddle_core::Interest;
use heddle_core::signals::SignalsBlocked;
use magnus::gc::Marker;
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, Module, Object, RClass, RModule, Ruby, TypedData, Value, function, prelude::*};

use crate::ruby::io_buffer::Contents;
use crate::ruby::nogvl::without_gvl;
use crate::ruby::value::{PinnedValue, find_class, same};
use crate::ruby::{error, fiber, fork, interrupts, io, postponed_job, ractor, thread};
use crate::scheduler::fibers::FiberKey;
use crate::scheduler::state::{Signal, State};
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

/// A number that is being closed.
struct Closing {
    id: u64,
    fd: RawFd,
    interest: Interest,
    /// The closing IO. Marked, as collecting it would close its number, which this says is still open.
    io: PinnedValue,
    /// The fiber that closes the IO.
    closer: PinnedValue,
    generation: u64,
}

/// All numbers that are being closed.
static CLOSING: Mutex<Vec<Closing>> = Mutex::new(Vec::new());
/// The id of the next entry.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);
/// The number of entries, readable without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn all_closing() -> MutexGuard<'static, Vec<Closing>> {
    CLOSING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks the objects of [`CLOSING`]. There is one object of this class.
#[derive(TypedData)]
#[magnus(class = "Heddle::ClosingDescriptors", mark, free_immediately)]
struct ClosingDescriptors;

impl DataTypeFunctions for ClosingDescriptors {
    fn mark(&self, marker: &Marker) {
        for closing in all_closing().iter() {
            closing.io.mark(marker);
            closing.closer.mark(marker);
        }
    }
}

/// An entry of [`CLOSING`], which dropping this removes.
struct Announcement(u64);

impl Announcement {
    fn new(io: Value, fd: RawFd, interest: Interest, closer: PinnedValue) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let closing =
            Closing { id, fd, interest, io: PinnedValue::assume_marked(io), closer, generation: fork::generation() };
        // No Ruby object may be allocated under the lock, as the collector locks it, too.
        let mut all = all_closing();
        all.push(closing);
        COUNT.store(all.len(), Ordering::Relaxed);
        Announcement(id)
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        remove(self.0);
    }
}

fn remove(id: u64) {
    let mut all = all_closing();
    all.retain(|closing| closing.id != id);
    COUNT.store(all.len(), Ordering::Relaxed);
}

/// The descriptor of an IO, for an operation that starts immediately. The caller must look it up again whenever another
/// fiber or thread could have run.
///
/// # Errors
/// IOError if the IO is closed, or another fiber or thread is closing it; TypeError if it is no IO.
#[inline]
pub fn descriptor(ruby: &Ruby, io: Value, interest: Interest) -> Result<RawFd, Error> {
    let fd = io::descriptor(io)?;
    expect_open(ruby, fd, interest).map(|()| fd)
}

/// Like [`descriptor`], with the IO's timeout and the memory of `buffer`; see [`io::transfer_arguments`].
///
/// # Errors
/// Those of [`descriptor`], and as there.
#[inline]
pub fn transfer_arguments(
    ruby: &Ruby,
    io: Value,
    interest: Interest,
    (buffer, writable): (Value, bool),
) -> Result<(RawFd, Value, Contents), Error> {
    let arguments = io::transfer_arguments(io, buffer, writable)?;
    expect_open(ruby, arguments.0, interest).map(|()| arguments)
}

#[inline]
fn expect_open(ruby: &Ruby, fd: RawFd, interest: Interest) -> Result<(), Error> {
    if COUNT.load(Ordering::Relaxed) == 0 { Ok(()) } else { expect_not_closing(ruby, fd, interest) }
}

#[cold]
fn expect_not_closing(ruby: &Ruby, fd: RawFd, interest: Interest) -> Result<(), Error> {
    let current = fiber::current();
    loop {
        let found = all_closing().iter().find_map(|closing| {
            let matches = closing.fd == fd && closing.interest.intersects(interest) && closing.closer != current;
            (matches && closing.generation == fork::generation()).then_some((closing.id, closing.io))
        });
        let Some((id, io)) = found else { return Ok(()) };
        if io::descriptor(io.get()).is_ok_and(|still| still == fd) {
            return Err(error::stream_closed(ruby));
        }
        // Ruby has closed the number, but `close` has not returned, as when it waits for a child process.
        remove(id);
    }
}

/// Ends the operations that name `io`'s number, and then runs the block, which closes `io`, or the sides of it that
/// `events` names.
fn closing(ruby: &Ruby, io: Value, events: u8) -> Result<Value, Error> {
    if !ractor::is_main() || registry::is_empty() {
        return ruby.yield_value(());
    }
    // No operation uses an IO that is closed already, or was never opened.
    let Ok(fd) = io::descriptor(io) else { return ruby.yield_value(()) };
    let interest = Interest(events);
    let closer = fiber::ensure_current()?;
    let write_io = io::write_io(io)?;
    if same(write_io, io) {
        let _announced = Announcement::new(io, fd, interest, closer);
        let ended = end_operations(ruby, io, fd, interest);
        // An exception that was raised in the wait propagates only after the close, which an `ensure` clause may have
        // called.
        return ruby.yield_value(()).and_then(|closed: Value| ended.map(|()| closed));
    }
    // The IO has a descriptor for each direction.
    let read_fd = interest.intersects(Interest::READABLE).then_some(fd);
    let write_fd = io::descriptor(write_io).ok().filter(|_| interest.intersects(Interest::WRITABLE));
    let announce = |io: Value, fd: Option<RawFd>| fd.map(|fd| Announcement::new(io, fd, Interest::ALL, closer));
    let _announced = (announce(io, read_fd), announce(write_io, write_fd));
    let end = |io: Value, fd: Option<RawFd>| fd.map_or(Ok(()), |fd| end_operations(ruby, io, fd, Interest::ALL));
    let ended = end(io, read_fd).and(end(write_io, write_fd));
    ruby.yield_value(()).and_then(|closed: Value| ended.map(|()| closed))
}

/// Ends the operations that name `fd`, in all schedulers of the process.
///
/// # Errors
/// What was raised into the fiber or thread in the wait. The operations have ended even then.
fn end_operations(ruby: &Ruby, io: Value, fd: RawFd, interest: Interest) -> Result<(), Error> {
    if !registry::any(|scheduler| scheduler.close_number(fd, interest)) {
        return Ok(());
    }
    let mut result = Ok(());
    let visited = registry::each(|scheduler| {
        let ended = if !scheduler.has_operations_on(fd, interest) {
            Ok(())
        } else if scheduler.is_owned_by(thread::current()) {
            end_own_operations(ruby, scheduler, fd, interest)
        } else {
            end_other_threads_operations(scheduler, io, fd, interest)
        };
        let left = if cfg!(ruby_gte_4_0) && scheduler.is_in_use() {
            scheduler.let_waiters_leave(ruby, fd)
        } else {
            scheduler.state.borrow_mut().forget_leaving(fd);
            Ok(())
        };
        for outcome in [ended, left] {
            if outcome.is_err() {
                result = outcome;
            }
        }
        Ok(())
    });
    result.and(visited)
}

/// Ends operations of this thread's scheduler.
fn end_own_operations(ruby: &Ruby, scheduler: &Scheduler, fd: RawFd, interest: Interest) -> Result<(), Error> {
    for _ in 0..POLLS {
        scheduler.poll(ruby)?;
        if !scheduler.has_operations_on(fd, interest) {
            return Ok(());
        }
    }
    // Threads of the kernel or of Heddle read and write files, and a read from a disk cannot be cancelled.
    let waited = scheduler
        .enter(ruby)
        .and_then(|hook| wait_for_ends(ruby, scheduler, hook.key, |state| !state.operations.names(fd, interest)));
    while waited.is_err() && scheduler.has_operations_on(fd, interest) {
        // A fiber that is being killed cannot let other fibers run, as Ruby raises the kill again at each switch.
        without_gvl(|| std::thread::sleep(INTERRUPT_INTERVAL), &|| {});
        scheduler.poll(ruby)?;
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
    scheduler.state.borrow_mut().add_close_waiter(key);
    let waited = scheduler.wait(ruby, key, Wait::Yielded, None, |state| have_ended(state).then_some(()));
    scheduler.state.borrow_mut().remove_close_waiter(key);
    waited.map(|_| ())
}

/// Ends operations of another thread's scheduler. If that thread waits in its backend, it is woken; if it runs Ruby, it
/// ends the operations at its next safe point.
///
/// But that thread may be stopped in another wait, perhaps for this thread (`Thread#join`), and not respond. Then the
/// operations are detached: queued ones have been dropped, and those in flight hold a reference to their file and get
/// the IO's read buffer. So the number can be closed. The file stays open until that thread's scheduler collects the
/// results.
fn end_other_threads_operations(scheduler: &Scheduler, io: Value, fd: RawFd, interest: Interest) -> Result<(), Error> {
    let signal = Arc::new(Signal::default());
    scheduler.state.borrow_mut().add_signal(Arc::clone(&signal));
    let mut checks = 0;
    let mut raised = Ok(());
    loop {
        let is_in_backend = !scheduler.cancel_closed();
        if !scheduler.has_operations_on(fd, interest) {
            break;
        }
        let owner = scheduler.owner.thread.get().filter(|_| !is_in_backend);
        let is_stopped = owner.is_some_and(|owner| thread::is_stopped(owner).unwrap_or(true));
        checks = if is_stopped { checks + 1 } else { 0 };
        if checks >= MAX_CHECKS {
            let memory = io::take_read_buffer(io).map(Rc::new);
            scheduler.state.borrow_mut().operations.detach(fd, interest, memory.as_ref());
            break;
        }
        scheduler.wake_owner();
        let interrupt_until_ended = || {
            (0..INTERRUPTS_PER_CHECK).any(|_| {
                let has_ended = signal.wait(INTERRUPT_INTERVAL);
                if !has_ended {
                    interrupt_running_thread();
                }
                has_ended
            })
        };
        if without_gvl(interrupt_until_ended, &|| {}).is_none()
            && let Err(error) = interrupts::check()
        {
            raised = Err(error);
        }
    }
    scheduler.state.borrow_mut().remove_signal(&signal);
    raised
}

/// Makes the thread that holds the GVL run the postponed job, which calls [`Scheduler::attend_to_closing`] on the
/// thread that is waited for. If this thread triggered the job, it would run the job itself, so a native thread
/// triggers it.
fn interrupt_running_thread() {
    let _blocked = SignalsBlocked::new();
    let name = "heddle closing".to_owned();
    // If no thread can be started, the other thread is not interrupted, and ends the operations in its next wait.
    if let Ok(native) = std::thread::Builder::new().name(name).spawn(postponed_job::trigger) {
        let _ = native.join();
    }
}

/// Detaches the operations that name a number, for a caller that closes the number and cannot wait. Queued operations
/// are dropped. Those in flight are cancelled, and hold a reference to their file.
pub fn detach_operations(ruby: &Ruby, fd: RawFd) {
    let is_named = registry::any(|scheduler| {
        let is_named = scheduler.close_number(fd, Interest::ALL);
        if is_named {
            scheduler.cancel_closed();
            let mut state = scheduler.state.borrow_mut();
            state.operations.detach(fd, Interest::ALL, None);
            state.forget_leaving(fd);
            drop(state);
            scheduler.wake_owner();
        }
        is_named
    });
    if is_named && let Ok(scheduler) = Obj::<Scheduler>::try_convert(fiber::scheduler()) {
        // Submits the cancels, so that the peer sees the end now. The next fiber that waits gets the same error.
        let _ = scheduler.poll(ruby);
    }
}

impl Scheduler {
    /// Notes that a number is being closed. Returns whether operations name it.
    fn close_number(&self, fd: RawFd, interest: Interest) -> bool {
        !self.is_inherited() && self.state.borrow_mut().close_number(fd, interest)
    }

    fn has_operations_on(&self, fd: RawFd, interest: Interest) -> bool {
        !self.is_inherited() && self.state.borrow().operations.names(fd, interest)
    }

    /// Cancels the operations of closed numbers, and collects the results that have arrived, without a system call.
    /// False if the owner's thread waits in the kernel, and must do so itself.
    fn cancel_closed(&self) -> bool {
        let Ok(mut reactor) = self.io.reactor.try_borrow_mut() else { return false };
        if let Some(reactor) = reactor.as_mut() {
            let mut state = self.state.borrow_mut();
            state.cancel_closed(reactor);
            state.complete(reactor.completions());
        }
        true
    }

    /// Polls at a safe point of the owner's thread, if another thread waits for the ends of operations.
    pub fn attend_to_closing(&self, ruby: &Ruby) {
        for _ in 0..POLLS {
            // The next fiber that waits gets the same error.
            if !self.state.borrow().has_waiting_threads() || self.poll(ruby).is_err() {
                return;
            }
        }
    }
}

/// Defines `Heddle::Scheduler.closing`, which `lib/heddle/patches/io_close.rb` calls.
pub fn define(ruby: &Ruby, heddle: RModule, class: RClass) -> Result<(), Error> {
    let holder = heddle.define_class("ClosingDescriptors", ruby.class_object())?;
    holder.undef_default_alloc_func();
    find_class::<ClosingDescriptors>(ruby);
    ruby.gc_register_mark_object(ruby.obj_wrap(ClosingDescriptors));
    class.define_singleton_method("closing", function!(closing, 2))
}
