//! The list of exceptions that other threads and signals have sent to this thread (`Thread#raise`, `Thread#kill`), and
//! that Ruby has not raised yet.
//!
//! `Thread.pending_interrupt?` tells whether there are any, too. But Ruby checks interrupts when that call ends. If the
//! thread's time slice is over, another thread runs then, and may call `Thread#kill`, which Ruby raises here. In a
//! postponed job Ruby swallows that kill and takes the thread for killed, and then nothing can end the thread any more.
//! So Heddle reads Ruby's own list. To find it, it sends an exception to the thread, and looks among the objects that
//! the thread marks for the Array that holds that exception. It finds the stack of [`super::masks`] in the same way.
//!
//! Ruby raises in whichever fiber of the thread runs. Before that it asks the masks of `Thread.handle_interrupt`, from
//! the last to the first. So Heddle adds a Hash as the first mask, whose default proc, the [`Gate`], decides whether
//! the current fiber is the one to be interrupted.

use std::os::raw::{c_long, c_void};

use magnus::error::{ErrorType, Tag};
use magnus::exception::Exception;
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{Error, RArray, Ruby, Value, block::Proc, prelude::*};
use rb_sys::VALUE;
use rustc_hash::FxHashSet;

use super::hidden_variable::HiddenVariable;
use super::masks::{self, Masks};
use super::outcome::RubyOutcome;
use super::value::{Identity, Registered, is_hidden, same};
use super::{error, interrupts, thread};

unsafe extern "C" {
    /// Exported by every Ruby, for its `objspace`, but not in its headers: calls the function with each object that the
    /// garbage collector would mark for this one. The function must not allocate.
    fn rb_objspace_reachable_objects_from(
        object: VALUE,
        function: unsafe extern "C" fn(VALUE, *mut c_void),
        data: *mut c_void,
    );
}

/// The list's entry for `Thread#kill`, which Ruby itself adds when a kill has ended a fiber, to end the thread, too.
fn killed(ruby: &Ruby) -> Value {
    ruby.integer_from_i64(Tag::Fatal as i64).as_value()
}

/// A thread's list, once it has been found.
static LIST: HiddenVariable = HiddenVariable::new("heddle_pending");

/// The message of the exception that identifies the list.
const SENT: &str = "sent by a thread to itself, to find what waits for it";

/// The message of the exception by which the [`Gate`] aborts a search.
const ABORTED: &str = "sent to the fiber that is running";

/// When Ruby may raise an entry of the list in the current fiber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaiseTiming {
    /// As earlier masks say.
    Unchanged,
    /// Where the thread may wait: before and after a native call, but not at the end of a method.
    OnBlocking,
    /// Not here. The entry stays on the list.
    Never,
}

/// Decides which fiber is interrupted, and when.
pub trait Gate {
    /// When Ruby may raise `entry`, an exception of this class or the number of a kill, in the current fiber. Ruby is
    /// reading the list, so this must neither raise nor handle an interrupt.
    fn timing(ruby: &Ruby, class: Value, entry: Value) -> RaiseTiming;
}

/// The mask that asks the [`Gate`].
static GATE: Registered = Registered::new();
/// The mask that [`find`] looks for: it defers the exception that `find` sends to its own thread. It is made for each
/// search, and its thread alone refers to it. An object that is registered with the collector is also in a list of the
/// collector's, which [`search`] may take for the stack of masks.
static SOUGHT: HiddenVariable = HiddenVariable::new("heddle_sought");

/// Makes `G` the gate of all threads for which [`find`] is called afterwards. Called once, before [`find`].
pub fn set_gate<G: Gate>(ruby: &Ruby) -> Result<(), Error> {
    let mask = ruby.hash_new();
    mask.funcall::<_, _, Value>("default_proc=", (ruby.proc_new(ask::<G>),))?;
    mask.freeze();
    GATE.get_or_register(mask.as_value());
    masks::set_gated(ruby, ruby.proc_new(ask_first::<G>))
}

/// The gate's timing for a class. Nil leaves the decision to earlier masks, of which there are none.
///
/// This allocates nothing while an entry is [`Progress::Sent`]. With `GC.stress` each allocation collects garbage, for
/// longer than a tick. So a tick would come before this ends, have Ruby search the list again, and this be called
/// again, until the stack is full.
fn ask<G: Gate>(ruby: &Ruby, arguments: &[Value], _: Option<Proc>) -> Result<Value, Error> {
    let [_, class] = arguments else { return Ok(ruby.qnil().as_value()) };
    // Ruby asks for each entry in order, and stops at the first that it may raise. So this is the first of its class.
    let Some(entry) = list(ruby).and_then(|list| entries(list).find(|entry| same(entry.class(), *class))) else {
        return Ok(ruby.qnil().as_value());
    };
    match Sent::progress_of(ruby, entry) {
        // Aborts Ruby's search by an exception, so that Ruby searches the list again after the job.
        Some(Progress::Announced) => Err(error::of(error::stop_class(ruby)?, ABORTED)),
        // Ruby checks interrupts at the end of this call, too, and asks once more, so the record must stay.
        Some(Progress::Sent) => Ok(ruby.sym_new("immediate").as_value()),
        None => Ok(match G::timing(ruby, *class, entry) {
            RaiseTiming::Unchanged => ruby.qnil().as_value(),
            RaiseTiming::OnBlocking => ruby.sym_new("on_blocking").as_value(),
            RaiseTiming::Never => ruby.sym_new("never").as_value(),
        }),
    }
}

/// The gate's timing, or else what the program's mask says. Ruby asks for the class of the entry, and then for each
/// class that it inherits from.
fn ask_first<G: Gate>(ruby: &Ruby, arguments: &[Value], block: Option<Proc>) -> Result<Value, Error> {
    let timing = ask::<G>(ruby, arguments, block)?;
    match arguments {
        [gated, class] if timing.is_nil() => Ok(masks::programs_timing(*gated, *class).unwrap_or(timing)),
        _ => Ok(timing),
    }
}

/// What an Array has now.
fn entries(array: RArray) -> impl Iterator<Item = Value> {
    (0..array.len())
        .map_while(move |index| array.entry(index as isize).not_an_interrupt("never: every object is a Value"))
}

/// How far the current thread's entry of [`raise_next`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The job has yet to make Ruby search the list again.
    Announced,
    /// Ruby raises it as soon as the job ends.
    Sent,
}

/// The entry that [`raise_next`] has added to the thread's list, or nil. A thread has one at most: see [`is_sent`].
/// The thread refers to it, so compaction updates the reference when it moves the entry.
static SENT_ENTRY: HiddenVariable = HiddenVariable::new("heddle_sent");
/// Whether that entry is [`Progress::Sent`].
static IS_SENT: HiddenVariable = HiddenVariable::new("heddle_is_sent");

/// These allocate nothing but [`Sent::record`], whose first call for a thread may.
struct Sent;

impl Sent {
    fn progress_of(ruby: &Ruby, entry: Value) -> Option<Progress> {
        let thread = thread::current(ruby);
        if entry.is_nil() || !same(SENT_ENTRY.get(thread), entry) {
            return None;
        }
        let is_sent = same(IS_SENT.get(thread), ruby.qtrue().as_value());
        Some(if is_sent { Progress::Sent } else { Progress::Announced })
    }

    fn record(ruby: &Ruby, entry: Value, progress: Progress) -> Result<(), Error> {
        let thread = thread::current(ruby);
        let is_sent = if progress == Progress::Sent { ruby.qtrue().as_value() } else { ruby.qnil().as_value() };
        IS_SENT.set(thread, is_sent)?;
        SENT_ENTRY.set(thread, entry)
    }

    /// The current thread's entry, or nil.
    fn entry(ruby: &Ruby) -> Value {
        SENT_ENTRY.get(thread::current(ruby))
    }

    fn forget(ruby: &Ruby) {
        SENT_ENTRY
            .set(thread::current(ruby), ruby.qnil().as_value())
            .not_an_interrupt("a frozen thread, which has no entry");
    }
}

/// Makes Ruby raise `entry` in the current fiber, ahead of the other entries of the list, as soon as the running
/// postponed job ends. It may be on the list already, which Ruby may have searched without raising it. Returns false if
/// Ruby would not raise it, as the fiber masks it, or the list is not known. It is then not on the list.
///
/// # Errors
/// What was raised instead, by a signal or another thread. `entry` is then not on the list.
pub fn raise_next(ruby: &Ruby, entry: Value) -> Result<bool, Error> {
    let (Some(list), Some(masks), Some(gate)) = (list(ruby), Masks::of_thread(ruby), GATE.get(ruby)) else {
        return Ok(false);
    };
    remove(list, entry)?;
    if masks.defer(ruby, entry) {
        return Ok(false);
    }
    Sent::record(ruby, entry, Progress::Announced)?;
    if let Err(error) = list.unshift(entry) {
        Sent::forget(ruby);
        return Err(error);
    }
    // Ruby does not search a list again that it has searched, until Ruby itself adds an entry, or the thread is about
    // to wait. This check starts such a search, and the gate, asked before the fiber's own masks, aborts it before
    // anything is raised.
    let Err(raised) = masks.with_first(gate.get(), || interrupts::check(ruby)) else {
        Sent::forget(ruby);
        return remove(list, entry).map(|()| false);
    };
    if !(error::is_stop(&raised) && error::has_message(&raised, ABORTED)) {
        // A signal's handler has raised it, for instance.
        Sent::forget(ruby);
        return Err(raised).and_ensure(|| remove(list, entry));
    }
    interrupts::request_check(ruby);
    Sent::record(ruby, entry, Progress::Sent).map(|()| true)
}

/// Whether Ruby has yet to raise the entry that [`raise_next`] has added to the current thread's list. Until then the
/// job must not switch if it runs again, as Ruby would raise the entry in another fiber.
pub fn is_sent(ruby: &Ruby) -> bool {
    let entry = Sent::entry(ruby);
    if entry.is_nil() {
        return false;
    }
    let is_there = has(ruby, entry);
    if !is_there {
        Sent::forget(ruby);
    }
    is_there
}

/// Takes back the exception that [`raise_next`] has added to the current thread's list, if Ruby has yet to raise it.
///
/// # Errors
/// No memory.
pub fn take_sent(ruby: &Ruby) -> Result<Option<Value>, Error> {
    let entry = Sent::entry(ruby);
    match list(ruby) {
        Some(list) if is_sent(ruby) && Exception::from_value(entry).is_some() => {
            Sent::forget(ruby);
            remove(list, entry).map(|()| Some(entry))
        }
        _ => Ok(None),
    }
}

/// Keeps Ruby from raising at the end of the running hook what is pending for the current thread: takes it, and puts it
/// back on the list. Ruby looks there again when the thread next waits, or at the end of a native call that may wait.
/// Where Ruby handles no interrupts during the hook (3.4.9 and later), but at its end, the [`Gate`] must hold them
/// back.
///
/// # Errors
/// No memory, or the list cannot be found.
#[cfg(not(ruby_gte_4_0))]
pub fn postpone(ruby: &Ruby) -> Result<(), Error> {
    let raised = ruby.ary_new();
    while let Err(error) = find(ruby).and_then(|()| interrupts::check(ruby)) {
        match entry_of(ruby, &error) {
            Some(entry) => raised.push(entry)?,
            None => return Err(error),
        }
    }
    if raised.is_empty() {
        return Ok(());
    }
    match list(ruby) {
        Some(list) => list.concat(raised),
        None => Err(error::of(error::stop_class(ruby)?, "no list of interrupts")),
    }
}

/// Puts `error`, which was just caught and cannot be raised here, on the current thread's list. The root raises it soon
/// (see [`Gate`]), or Ruby when the thread next waits. What ends a single fiber is dropped: a `Fiber#kill` is repeated
/// at the fiber's next switch.
pub fn defer(ruby: &Ruby, error: &Error) {
    match (entry_of(ruby, error), list(ruby)) {
        (Some(entry), Some(list)) => {
            list.push(entry).not_an_interrupt("no memory");
            interrupts::request_check(ruby);
        }
        (Some(entry), None) => {
            // The thread is frozen, or has never had a scheduler. So Ruby raises it at once, or when the thread waits.
            thread::raise_into(thread::current(ruby), entry).not_an_interrupt("`entry` again");
        }
        (None, _) => error::end_jump(ruby),
    }
}

/// For the results of Ruby calls in code that cannot raise, such as a postponed job.
pub trait Deferred<T> {
    /// The value. An error is raised again as if another thread raised it: in the thread's root fiber, and soon. See
    /// [`defer`].
    fn deferred(self) -> Option<T>;
}

impl<T> Deferred<T> for Result<T, Error> {
    fn deferred(self) -> Option<T> {
        match self {
            Ok(value) => Some(value),
            Err(error) => {
                defer(&error::ruby_of(&error), &error);
                None
            }
        }
    }
}

/// What represents `error`, which was just caught, on the list. Ends the jump of a `Thread#kill`. `None` for a jump
/// that belongs to a single fiber.
fn entry_of(ruby: &Ruby, error: &Error) -> Option<Value> {
    if is_kill(ruby, error) {
        error::end_jump(ruby);
        return Some(killed(ruby));
    }
    error::exception_of(error)
}

fn remove(list: RArray, entry: Value) -> Result<(), Error> {
    match entries(list).position(|found| same(found, entry)) {
        Some(index) => list.delete_at::<Value>(index as isize).map(|_| ()),
        None => Ok(()),
    }
}

/// Finds the current thread's list and its [`Masks`], unless they are known, and installs the [`Gate`]. Must be called
/// before they are used, and not in a postponed job.
///
/// # Errors
/// What was raised at this thread during the call; no memory.
pub fn find(ruby: &Ruby) -> Result<(), Error> {
    let masks_are_known = Masks::of_thread(ruby).is_some();
    if masks_are_known && list(ruby).is_some() {
        return Ok(());
    }
    let thread = thread::current(ruby);
    let sought = ruby.hash_new();
    // Ruby pushes such a Hash on the stack itself, and not a copy of it.
    sought.funcall::<_, _, Value>("compare_by_identity", ())?;
    sought.aset(error::stop_class(ruby)?, ruby.to_symbol("never"))?;
    sought.freeze();
    if SOUGHT.set(thread, sought.as_value()).not_an_interrupt("a frozen thread, whose list stays unknown").is_none() {
        return Ok(());
    }
    // The block is a plain function: see docs/internals/magnus.md.
    let look = ruby.proc_new(|ruby, _, _| look(ruby));
    let masked = ruby.class_thread().funcall_with_block::<_, _, Value>("handle_interrupt", (sought,), look);
    SOUGHT.set(thread, ruby.qnil().as_value()).not_an_interrupt("the thread is not frozen");
    match masked {
        // The list was not found, so Ruby has raised the exception.
        Err(error) if error::is_stop(&error) && error::has_message(&error, SENT) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Looks for the thread's list and its masks, while [`SOUGHT`] is one of these.
fn look(ruby: &Ruby) -> Result<(), Error> {
    let thread = thread::current(ruby);
    if let Some((stack, _)) = search(thread, SOUGHT.get(thread)) {
        install_gate(ruby, stack)?;
        Masks::remember(thread, stack);
    }
    let sent = error::stop_class(ruby)?.new_instance((SENT,))?.as_value();
    let raised = thread::raise_into(thread, sent);
    if let Some((list, index)) = search(thread, sent) {
        list.delete_at::<Value>(index)?;
        LIST.set(thread, list.as_value()).not_an_interrupt("a frozen thread, whose list then stays unknown");
    }
    raised
}

/// Whether the thread's list has been found.
pub fn is_known(thread: Value) -> bool {
    !LIST.get(thread).is_nil()
}

/// Makes the gate the first mask. A thread inherits the masks of its creator, so the gate may be there already.
fn install_gate(ruby: &Ruby, stack: RArray) -> Result<(), Error> {
    let Some(gate) = GATE.get(ruby) else { return Ok(()) };
    let is_installed = entries(stack).next().is_some_and(|first| same(first, gate.get()));
    if is_installed { Ok(()) } else { stack.unshift(gate.get()) }
}

/// The length of the current thread's list. Zero before [`find`].
pub fn count(ruby: &Ruby) -> usize {
    list(ruby).map_or(0, |list| list.len())
}

/// Whether the current thread's list has an entry. False before [`find`].
pub fn is_any(ruby: &Ruby) -> bool {
    count(ruby) > 0
}

/// Whether Ruby raises an entry of the current thread's list in its next check, since no mask defers it.
pub fn is_any_unmasked(ruby: &Ruby) -> bool {
    let is_unmasked = |entry| Masks::of_thread(ruby).is_none_or(|masks| !masks.defer(ruby, entry));
    list(ruby).is_some_and(|list| entries(list).any(is_unmasked))
}

/// Whether `entry` is on the current thread's list. False before [`find`].
pub fn has(ruby: &Ruby, entry: Value) -> bool {
    list(ruby).is_some_and(|list| entries(list).any(|found| same(found, entry)))
}

/// What the current thread's list has. Nothing before [`find`].
pub fn listed(ruby: &Ruby) -> FxHashSet<Identity> {
    list(ruby).into_iter().flat_map(entries).map(Identity::from).collect()
}

/// Takes `entry` off the current thread's list, if it is there.
pub fn withdraw(ruby: &Ruby, entry: Value) {
    if let Some(list) = list(ruby) {
        remove(list, entry).not_an_interrupt("a frozen list, which Ruby has not");
    }
}

/// Whether `error`, which was just caught, is the jump that ends a thread (`Thread#kill`), and not a fiber
/// (`Fiber#kill`).
pub fn is_kill(ruby: &Ruby, error: &Error) -> bool {
    // SAFETY: called with the GVL; only reads `$!`, which for a jump is a number.
    matches!(error.error_type(), ErrorType::Jump(Tag::Fatal))
        && unsafe { rb_sys::rb_errinfo() } == killed(ruby).as_raw()
}

/// Makes Ruby kill the current thread again as soon as the running postponed job ends, if `error`, which was just
/// caught in the job, is the jump of a kill. Returns whether it is.
pub fn repeat_kill(ruby: &Ruby, error: &Error) -> bool {
    let killed = killed(ruby);
    let unshift = |list: RArray| list.unshift(killed).not_an_interrupt("no memory").is_some();
    let repeated = is_kill(ruby, error) && list(ruby).is_some_and(unshift);
    if repeated {
        // Ruby has just removed the kill from the list, and so searches the list again in its next check. Without a
        // record, which takes memory, the job might switch before that.
        Sent::record(ruby, killed, Progress::Sent).not_an_interrupt("no memory");
        interrupts::request_check(ruby);
    }
    repeated
}

/// The current thread's list, if it has been found.
fn list(ruby: &Ruby) -> Option<RArray> {
    RArray::from_value(LIST.get(thread::current(ruby)))
}

/// The thread's Array that holds `sent`, and the index there.
fn search(thread: Value, sent: Value) -> Option<(RArray, isize)> {
    struct Search {
        sent: VALUE,
        found: Option<(VALUE, c_long)>,
    }

    unsafe extern "C" fn look(object: VALUE, search: *mut c_void) {
        // SAFETY: `search` is the `Search` below, which outlives the call and has no other user during it. The object
        // is valid, and only indices below its length are read.
        unsafe {
            let search = &mut *search.cast::<Search>();
            if !is_hidden(Value::from_raw(object)) || !rb_sys::RB_TYPE_P(object, rb_sys::ruby_value_type::RUBY_T_ARRAY)
            {
                return;
            }
            let index =
                (0..rb_sys::RARRAY_LEN(object)).find(|&index| rb_sys::rb_ary_entry(object, index) == search.sent);
            search.found = search.found.or(index.map(|index| (object, index)));
        }
    }

    let mut search = Search { sent: sent.as_raw(), found: None };
    // SAFETY: called with the GVL, on a valid object, and not by the collector; `look` neither allocates nor raises.
    unsafe { rb_objspace_reachable_objects_from(thread.as_raw(), look, (&raw mut search).cast()) };
    let (list, index) = search.found?;
    // SAFETY: a valid object, which the thread holds.
    RArray::from_value(unsafe { Value::from_raw(list) }).map(|list| (list, index as isize))
}
