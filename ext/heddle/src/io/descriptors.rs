//! Closing a descriptor while operations name its number.
//!
//! A number outlives its file: the next file that is opened may get it. An operation that is queued, or that Ruby begins
//! again for the rest of a read or write, would then go to that file. And Ruby frees an IO's read buffer when it closes
//! the IO, whether or not the kernel still writes to it. So `IO#close`, `close_read`, `close_write` and `reopen` call
//! [`closing`] first (`lib/heddle/patches/io_close.rb`), and the following holds in all schedulers of the process:
//!
//! 1. From here on no hook begins anything on the number: it raises IOError ([`descriptor`]). The fiber that closes may
//!    still write what is buffered.
//! 2. Operations that the kernel has not been told of are dropped. Those under way are cancelled.
//! 3. When the last of them has ended, Ruby closes the descriptor. A fiber whose operation had no result by then raises
//!    the IOError that a thread raises.
//!
//! ```text
//!              closing                  no operation names it            Ruby's close(2)
//!     open ──────────────▶ closing ─────────────────────────▶ quiet ───────────────────────▶ given back
//!                             │                                 ▲
//!                             └── the owner does not answer ────┘
//!                                 (detached: see `end_elsewhere`)
//! ```
//!
//! To close a number takes as long as its own operations need, however many other fibers and operations there are: see
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

use crate::ruby::nogvl::without_gvl;
use crate::ruby::value::{PinnedValue, same};
use crate::ruby::{error, fiber, fork, interrupts, io, postponed_job, ractor, thread};
use crate::scheduler::state::Signal;
use crate::scheduler::wait::Wait;
use crate::scheduler::{Scheduler, registry};

/// How often the kernel is asked at once whether cancelled operations have ended. Most have by the second time.
const LOOKS: u32 = 4;
/// How long the thread of another scheduler has to end its operations on a number before it is asked again.
const REMINDER: Duration = Duration::from_micros(500);
/// How often it is asked before a look whether it waits elsewhere.
const REMINDERS: u32 = 20;
/// How many times it may be found to do so.
const MOST_UNANSWERED: u32 = 10;

/// A number that is being closed.
struct Closing {
    id: u64,
    fd: RawFd,
    interest: Interest,
    /// The IO that is closed. PinnedValue, so that it cannot be collected, and its number closed, while this says that it is open.
    io: PinnedValue,
    /// The fiber that closes it.
    closer: PinnedValue,
    generation: u64,
}

/// All numbers that are being closed.
static CLOSING: Mutex<Vec<Closing>> = Mutex::new(Vec::new());
/// Of the next one.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn all_closing() -> MutexGuard<'static, Vec<Closing>> {
    CLOSING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks what [`CLOSING`] holds. There is one object of this class.
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

/// Says that a number is being closed, as long as it lives.
struct Announcement(u64);

impl Announcement {
    fn new(io: Value, fd: RawFd, interest: Interest, closer: PinnedValue) -> Self {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let closing = Closing { id, fd, interest, io: PinnedValue::new(io), closer, generation: fork::generation() };
        // Nothing may be allocated while this is locked: the collector locks it, too.
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

/// The descriptor of an IO, for an operation that begins at once. It has to be asked for again whenever another fiber or
/// thread could have run.
///
/// # Errors
/// IOError if the IO is closed, or another fiber or thread is closing it; TypeError if it is no IO.
#[inline]
pub fn descriptor(ruby: &Ruby, io: Value, interest: Interest) -> Result<RawFd, Error> {
    let fd = io::descriptor(io)?;
    expect_open(ruby, fd, interest).map(|()| fd)
}

/// What [`descriptor`] says, and the IO's timeout.
///
/// # Errors
/// As there.
#[inline]
pub fn descriptor_and_timeout(ruby: &Ruby, io: Value, interest: Interest) -> Result<(RawFd, Value), Error> {
    let (fd, timeout) = io::descriptor_and_timeout(io)?;
    expect_open(ruby, fd, interest).map(|()| (fd, timeout))
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
            let concerned = closing.fd == fd && closing.interest.intersects(interest) && closing.closer != current;
            (concerned && closing.generation == fork::generation()).then_some((closing.id, closing.io))
        });
        let Some((id, io)) = found else { return Ok(()) };
        if io::descriptor(io.get()).is_ok_and(|still| still == fd) {
            return Err(error::stream_closed(ruby));
        }
        // Ruby has closed it, and the fiber has more to do before `close` returns, as waiting for a child process.
        remove(id);
    }
}

/// Runs the block, which closes `io`, or the sides of it that `events` names, when no operation names its number any more.
fn closing(ruby: &Ruby, io: Value, events: u8) -> Result<Value, Error> {
    if !ractor::is_main() || registry::is_empty() {
        return ruby.yield_value(());
    }
    // One that is closed already, or never was open, concerns no operation.
    let Ok(fd) = io::descriptor(io) else { return ruby.yield_value(()) };
    let interest = Interest(events);
    let closer = fiber::ensure_current()?;
    let write_io = io::write_io(io)?;
    if same(write_io, io) {
        let _announced = Announcement::new(io, fd, interest, closer);
        let ended = end_operations(ruby, io, fd, interest);
        // What has been raised here meanwhile goes on when the descriptor is closed: an `ensure` may have called.
        return ruby.yield_value(()).and_then(|closed: Value| ended.map(|()| closed));
    }
    // It has a descriptor for each direction.
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
/// What was raised in the fiber or thread meanwhile. Nevertheless they have ended.
fn end_operations(ruby: &Ruby, io: Value, fd: RawFd, interest: Interest) -> Result<(), Error> {
    if !registry::any(|scheduler| scheduler.close_number(fd, interest)) {
        return Ok(());
    }
    let mut result = Ok(());
    let visited = registry::each(|scheduler| {
        let ended = if !scheduler.has_operations_on(fd, interest) {
            Ok(())
        } else if scheduler.is_owned_by(thread::current()) {
            end_here(ruby, scheduler, fd, interest)
        } else {
            end_elsewhere(scheduler, io, fd, interest)
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
fn end_here(ruby: &Ruby, scheduler: &Scheduler, fd: RawFd, interest: Interest) -> Result<(), Error> {
    for _ in 0..LOOKS {
        scheduler.poll(ruby, false)?;
        if !scheduler.has_operations_on(fd, interest) {
            return Ok(());
        }
    }
    // Files are read and written on other threads of the kernel's or of ours, and a read from a disk ends when it ends.
    let waited = let_end(ruby, scheduler, fd, interest);
    while waited.is_err() && scheduler.has_operations_on(fd, interest) {
        // A fiber that is being killed cannot let others run: Ruby raises the kill again at each switch.
        without_gvl(|| std::thread::sleep(REMINDER), &|| {});
        scheduler.poll(ruby, false)?;
    }
    waited
}

/// Lets other fibers run until the operations have ended.
fn let_end(ruby: &Ruby, scheduler: &Scheduler, fd: RawFd, interest: Interest) -> Result<(), Error> {
    let hook = scheduler.enter(ruby)?;
    scheduler.state.borrow_mut().add_close_waiter(hook.key);
    let waited = scheduler
        .wait(ruby, hook.key, Wait::Yielded, None, |state| (!state.operations.names(fd, interest)).then_some(()));
    scheduler.state.borrow_mut().remove_close_waiter(hook.key);
    waited.map(|_| ())
}

/// Ends operations of another thread's scheduler. That thread waits in its backend, and is woken; or it runs Ruby, and
/// does it at the next safe point.
///
/// But it may wait elsewhere, perhaps for the thread that is here (`Thread#join`), and not answer. Then the operations are
/// detached. Those that it had queued have been dropped, and those that are in the kernel's hands own their file, and are
/// given the IO's read buffer. Thus the number can be given back; the file stays open until that thread comes back.
fn end_elsewhere(scheduler: &Scheduler, io: Value, fd: RawFd, interest: Interest) -> Result<(), Error> {
    let signal = Arc::new(Signal::default());
    scheduler.state.borrow_mut().add_signal(Arc::clone(&signal));
    let mut unanswered = 0;
    let mut raised = Ok(());
    loop {
        let is_in_backend = !scheduler.cancel_closed();
        if !scheduler.has_operations_on(fd, interest) {
            break;
        }
        let owner = scheduler.owner.thread.get().filter(|_| !is_in_backend);
        let is_elsewhere = owner.is_some_and(|owner| thread::is_stopped(owner).unwrap_or(true));
        unanswered = if is_elsewhere { unanswered + 1 } else { 0 };
        if unanswered >= MOST_UNANSWERED {
            let memory = io::take_read_buffer(io).map(Rc::new);
            scheduler.state.borrow_mut().operations.detach(fd, interest, memory.as_ref());
            break;
        }
        scheduler.wake_owner();
        let remind = || {
            (0..REMINDERS).any(|_| {
                let answered = signal.wait(REMINDER);
                if !answered {
                    interrupt_running_thread();
                }
                answered
            })
        };
        if without_gvl(remind, &|| {}).is_none()
            && let Err(error) = interrupts::check()
        {
            raised = Err(error);
        }
    }
    scheduler.state.borrow_mut().remove_signal(&signal);
    raised
}

/// Has the thread that has the GVL run the job, and so [`Scheduler::attend_to_closing`] if it is the one that is waited
/// for. A Ruby thread that triggers the job runs it itself; a native thread does not.
fn interrupt_running_thread() {
    let _blocked = SignalsBlocked::new();
    let name = "heddle closing".to_owned();
    // Without a thread to be had the other one is not interrupted, and answers when it waits next.
    if let Ok(native) = std::thread::Builder::new().name(name).spawn(postponed_job::trigger) {
        let _ = native.join();
    }
}

/// The number is closed at once, by a caller that cannot wait. Operations on it that the kernel has not been told of are
/// dropped, those under way are cancelled, and own their file.
pub fn give_up(ruby: &Ruby, fd: RawFd) {
    let concerned = registry::any(|scheduler| {
        let concerned = scheduler.close_number(fd, Interest::ALL);
        if concerned {
            scheduler.cancel_closed();
            let mut state = scheduler.state.borrow_mut();
            state.operations.detach(fd, Interest::ALL, None);
            state.forget_leaving(fd);
            drop(state);
            scheduler.wake_owner();
        }
        concerned
    });
    if concerned && let Ok(scheduler) = Obj::<Scheduler>::try_convert(fiber::scheduler()) {
        // So that the other side sees the end now. An error is told to the fiber that waits next.
        let _ = scheduler.poll(ruby, false);
    }
}

impl Scheduler {
    /// The number is being closed. Returns whether operations name it.
    fn close_number(&self, fd: RawFd, interest: Interest) -> bool {
        !self.is_inherited() && self.state.borrow_mut().close_number(fd, interest)
    }

    fn has_operations_on(&self, fd: RawFd, interest: Interest) -> bool {
        !self.is_inherited() && self.state.borrow().operations.names(fd, interest)
    }

    /// Cancels the operations of closed numbers, and takes the results that are there, without a system call. False if the
    /// owner's thread is waiting in the kernel, and has to do it itself.
    fn cancel_closed(&self) -> bool {
        let Ok(mut reactor) = self.io.reactor.try_borrow_mut() else { return false };
        if let Some(reactor) = reactor.as_mut() {
            let mut state = self.state.borrow_mut();
            state.cancel_closed(reactor);
            state.complete(reactor.completions());
        }
        true
    }

    /// At a safe point of the owner's thread: another thread may be waiting for operations to end.
    pub fn attend_to_closing(&self, ruby: &Ruby) {
        for _ in 0..LOOKS {
            // An error is told to the fiber that waits next.
            if !self.state.borrow().has_waiting_threads() || self.poll(ruby, false).is_err() {
                return;
            }
        }
    }
}

/// Defines `Heddle::Scheduler.closing`, which `lib/heddle/patches/io_close.rb` calls.
pub fn define(ruby: &Ruby, heddle: RModule, class: RClass) -> Result<(), Error> {
    let holder = heddle.define_class("ClosingDescriptors", ruby.class_object())?;
    holder.undef_default_alloc_func();
    ruby.gc_register_mark_object(ruby.obj_wrap(ClosingDescriptors));
    class.define_singleton_method("closing", function!(closing, 2))
}
