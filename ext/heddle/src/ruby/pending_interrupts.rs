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

use std::sync::{Mutex, OnceLock, PoisonError};

use magnus::error::{ErrorType, Tag};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{Error, RArray, Ruby, Value, block::Proc, prelude::*};
use rb_sys::VALUE;

use super::hidden_variable::HiddenVariable;
use super::masks::Masks;
use super::value::{PinnedValue, is_hidden, same};
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
fn killed() -> VALUE {
    // SAFETY: makes an Integer that is no object.
    unsafe { rb_sys::rb_int2inum(Tag::Fatal as isize) }
}

/// A thread's list, once it has been found.
static LIST: HiddenVariable = HiddenVariable::new("heddle_pending");

/// The message of the exception that identifies the list.
const SENT: &str = "sent by a thread to itself, to find what waits for it";

/// When Ruby may raise an entry of the list in the current fiber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
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
    fn timing(ruby: &Ruby, class: Value, entry: Value) -> Timing;
}

/// The mask that asks the [`Gate`].
static GATE: OnceLock<PinnedValue> = OnceLock::new();

/// Makes `G` the gate of all threads for which [`find`] is called afterwards. Only the first call has an effect.
pub fn register<G: Gate>(ruby: &Ruby) -> Result<(), Error> {
    let mask = ruby.hash_new();
    mask.funcall::<_, _, Value>("default_proc=", (ruby.proc_new(ask::<G>),))?;
    mask.freeze();
    GATE.get_or_init(|| PinnedValue::register(mask.as_value()));
    Ok(())
}

/// The gate's timing for a class. Nil leaves the decision to earlier masks, of which there are none.
///
/// This allocates nothing while an entry is [`Progress::Sent`]. With `GC.stress` each allocation collects garbage, for
/// longer than a tick. So a tick would come before this ends, have Ruby search the list again, and this be called again,
/// until the stack is full.
fn ask<G: Gate>(ruby: &Ruby, arguments: &[Value], _: Option<Proc>) -> Result<Value, Error> {
    let [_, class] = arguments else { return Ok(ruby.qnil().as_value()) };
    // Ruby asks for each entry in order, and stops at the first that it may raise. So this is the first of its class.
    let Some(entry) = list().and_then(|list| first_of_class(list, *class)) else { return Ok(ruby.qnil().as_value()) };
    match Sent::progress_of(entry) {
        // Aborts Ruby's search by an exception, so that Ruby searches the list again after the job.
        Some(Progress::Announced) => Err(Error::new(error::stop_class(ruby)?, "sent to the fiber that is running")),
        // Ruby checks interrupts at the end of this call, too, and asks once more, so the record must stay.
        Some(Progress::Sent) => Ok(ruby.sym_new("immediate").as_value()),
        None => Ok(match G::timing(ruby, *class, entry) {
            Timing::Unchanged => ruby.qnil().as_value(),
            Timing::OnBlocking => ruby.sym_new("on_blocking").as_value(),
            Timing::Never => ruby.sym_new("never").as_value(),
        }),
    }
}

fn first_of_class(list: RArray, class: Value) -> Option<Value> {
    (0..list.len())
        .find_map(|index| list.entry::<Value>(index as isize).ok().filter(|entry| is_of_class(*entry, class)))
}

/// Whether this is the object's own class, which may be a singleton class. Ruby asks masks for that class.
fn is_of_class(object: Value, class: Value) -> bool {
    let raw = object.as_raw();
    // SAFETY: called with the GVL on a valid object. What is no special constant begins with an RBasic.
    let own = unsafe {
        if rb_sys::SPECIAL_CONST_P(raw) { rb_sys::rb_obj_class(raw) } else { (*(raw as *const rb_sys::RBasic)).klass }
    };
    own == class.as_raw()
}

/// An entry that [`raise_next`] has added to a thread's list.
struct Sent {
    thread: VALUE,
    /// Alive as long as it is on the list, which marks it.
    entry: VALUE,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The job has yet to make Ruby search the list again.
    Announced,
    /// Ruby raises it as soon as the job ends.
    Sent,
}

static SENT_HERE: Mutex<Vec<Sent>> = Mutex::new(Vec::new());

impl Sent {
    fn all() -> std::sync::MutexGuard<'static, Vec<Sent>> {
        SENT_HERE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress_of(entry: Value) -> Option<Progress> {
        let thread = thread::current().raw();
        let all = Self::all();
        all.iter().find(|sent| sent.thread == thread && sent.entry == entry.as_raw()).map(|sent| sent.progress)
    }

    fn record(entry: Value, progress: Progress) {
        Self::forget();
        Self::all().push(Sent { thread: thread::current().raw(), entry: entry.as_raw(), progress });
    }

    /// Removes the current thread's record. A thread has one at most: see [`is_sent`].
    fn forget() {
        let thread = thread::current().raw();
        Self::all().retain(|sent| sent.thread != thread);
    }
}

/// Makes Ruby raise `entry` in the current fiber, ahead of the other entries of the list, as soon as the running
/// postponed job ends. The fiber's masks must let it through.
///
/// # Errors
/// Ruby would not raise it. It is then not on the list.
pub fn raise_next(ruby: &Ruby, entry: Value) -> Result<(), Error> {
    let Some(list) = list() else { return Err(Error::new(error::stop_class(ruby)?, "no list of interrupts")) };
    list.unshift(entry)?;
    Sent::record(entry, Progress::Announced);
    // Ruby does not search a list again that it has searched, until Ruby itself adds an entry, or the thread is about
    // to wait. This check starts such a search, and the gate aborts it before anything is raised.
    let Err(raised) = interrupts::check() else {
        Sent::forget();
        remove(list, entry)?;
        return Err(Error::new(error::stop_class(ruby)?, "masked"));
    };
    let is_first = || list.entry::<Value>(0).is_ok_and(|first| same(first, entry));
    if error::exception_of(&raised).is_some_and(|exception| same(exception, entry)) {
        // One of the fiber's own masks has let it through, without asking the gate.
        list.unshift(entry)?;
    } else if !is_first() {
        Sent::forget();
        return Err(raised);
    }
    Sent::record(entry, Progress::Sent);
    interrupts::request_check();
    Ok(())
}

/// Whether Ruby has yet to raise the entry that [`raise_next`] has added to the current thread's list. Until then the
/// job must not switch if it runs again, as Ruby would raise the entry in another fiber.
pub fn is_sent() -> bool {
    let thread = thread::current().raw();
    let entry = Sent::all().iter().find(|sent| sent.thread == thread).map(|sent| sent.entry);
    let Some(entry) = entry else { return false };
    let is_there = list().is_some_and(|list| {
        (0..list.len()).any(|index| list.entry::<Value>(index as isize).is_ok_and(|found| found.as_raw() == entry))
    });
    if !is_there {
        Sent::forget();
    }
    is_there
}

/// Keeps Ruby from raising at the end of the running hook what is pending for the current thread: takes it, and puts it
/// back on the list. Ruby looks there again when the thread next waits, or at the end of a native call that may wait.
/// Where Ruby handles no interrupts during the hook (3.4.9 and later), but at its end, the [`Gate`] must hold them back.
///
/// # Errors
/// No memory, or the list cannot be found.
#[cfg(not(ruby_gte_4_0))]
pub fn postpone(ruby: &Ruby) -> Result<(), Error> {
    let raised = ruby.ary_new();
    while let Err(error) = find(ruby).and_then(|()| interrupts::check()) {
        if let Some(exception) = error::exception_of(&error) {
            raised.push(exception)?;
        } else if is_killed(&error) {
            error::end_jump(ruby);
            // SAFETY: called with the GVL; the number is no object that must be marked.
            raised.push(unsafe { Value::from_raw(killed()) })?;
        } else {
            return Err(error);
        }
    }
    if raised.is_empty() {
        return Ok(());
    }
    match list() {
        Some(list) => list.concat(raised),
        None => Err(Error::new(error::stop_class(ruby)?, "no list of interrupts")),
    }
}

fn remove(list: RArray, entry: Value) -> Result<(), Error> {
    for index in 0..list.len() as isize {
        if same(list.entry(index)?, entry) {
            return list.delete_at::<Value>(index).map(|_| ());
        }
    }
    Ok(())
}

/// Finds the current thread's list and its [`Masks`], unless they are known, and installs the [`Gate`]. Must be called
/// before they are used, and not in a postponed job.
///
/// # Errors
/// What was raised at this thread during the call; no memory.
pub fn find(ruby: &Ruby) -> Result<(), Error> {
    let masks_are_known = Masks::of_thread().is_some();
    if masks_are_known && list().is_some() {
        return Ok(());
    }
    let class = error::stop_class(ruby)?;
    let masks = ruby.hash_new();
    // Ruby pushes such a Hash on the stack itself, and not a copy of it.
    masks.funcall::<_, _, Value>("compare_by_identity", ())?;
    masks.aset(class, ruby.to_symbol("never"))?;
    masks.freeze();
    let mask = PinnedValue::assume_marked(masks.as_value());
    let look = ruby.proc_from_fn(move |ruby, _, _| {
        let thread = thread::current();
        if let Some((stack, _)) = search(thread, mask.get()) {
            install_gate(stack)?;
            Masks::remember(thread, stack);
        }
        let sent = error::stop_class(ruby)?.new_instance((SENT,))?.as_value();
        let raised = thread::raise_into(thread, sent);
        if let Some((list, index)) = search(thread, sent) {
            list.delete_at::<Value>(index)?;
            // Fails for a frozen thread, whose list then stays unknown.
            let _ = LIST.set(thread, list.as_value());
        }
        raised
    });
    let masked = ruby.class_thread().funcall_with_block::<_, _, Value>("handle_interrupt", (masks,), look);
    match masked {
        // The list was not found, so Ruby has raised the exception.
        Err(error) if error.is_kind_of(class) && error.to_string().contains(SENT) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Whether the thread's list has been found.
pub fn is_known(thread: PinnedValue) -> bool {
    !LIST.get(thread).is_nil()
}

/// Makes the gate the first mask. A thread inherits the masks of its creator, so the gate may be there already.
fn install_gate(stack: RArray) -> Result<(), Error> {
    let Some(gate) = GATE.get() else { return Ok(()) };
    let is_installed = stack.entry::<Value>(0).is_ok_and(|first| same(first, gate.get()));
    if is_installed { Ok(()) } else { stack.unshift(gate.get()) }
}

/// The length of the current thread's list. Zero before [`find`].
pub fn count() -> usize {
    list().map_or(0, |list| list.len())
}

/// Whether the current thread's list has an entry. False before [`find`].
pub fn is_any() -> bool {
    count() > 0
}

/// Whether `error`, which was just caught, is the jump that ends a thread (`Thread#kill`), and not a fiber
/// (`Fiber#kill`).
fn is_killed(error: &Error) -> bool {
    // SAFETY: called with the GVL; only reads `$!`, which for a jump is a number.
    matches!(error.error_type(), ErrorType::Jump(Tag::Fatal)) && unsafe { rb_sys::rb_errinfo() } == killed()
}

/// Makes Ruby kill the current thread again as soon as the running postponed job ends, if `error`, which was just
/// caught in the job, is the jump of a kill. Returns whether it is.
pub fn repeat_kill(error: &Error) -> bool {
    // SAFETY: called with the GVL; the number is no object that must be marked.
    let killed = unsafe { Value::from_raw(killed()) };
    let repeated = is_killed(error) && list().is_some_and(|list| list.unshift(killed).is_ok());
    if repeated {
        // Ruby has just removed the kill from the list, and so searches the list again in its next check.
        Sent::record(killed, Progress::Sent);
        interrupts::request_check();
    }
    repeated
}

/// The current thread's list, if it has been found.
fn list() -> Option<RArray> {
    RArray::from_value(LIST.get(thread::current()))
}

/// The thread's Array that holds `sent`, and the index there.
fn search(thread: PinnedValue, sent: Value) -> Option<(RArray, isize)> {
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
    unsafe { rb_objspace_reachable_objects_from(thread.raw(), look, (&raw mut search).cast()) };
    let (list, index) = search.found?;
    // SAFETY: a valid object, which the thread holds.
    RArray::from_value(unsafe { Value::from_raw(list) }).map(|list| (list, index as isize))
}
