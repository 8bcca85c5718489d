//! What signals and other threads want raised at this thread (`Thread#raise`, `Thread#kill`), as long as Ruby has not
//! done so.
//!
//! `Thread.pending_interrupt?` tells that, too. But when a call ends Ruby looks at interrupts. If the thread's time slice
//! is over another thread runs, whose `Thread#kill` Ruby then raises in here; and in a postponed job, where this is asked,
//! it swallows that, takes the thread for killed, and nothing can end it any more. So it is Ruby's own list that is looked
//! at. It is found among what the garbage collector would mark for the thread: the one with the exception just sent. The
//! stack of [`super::masks`] is found in the same way.
//!
//! Which fiber of a thread is interrupted Ruby leaves to chance: it raises in the one that runs. Before it does, it asks
//! the masks of `Thread.handle_interrupt`, the last one first. So the first one of all is a Hash of ours: its default
//! proc, the [`Gate`], is asked just then, and says whether the fiber that runs is the one to be interrupted.

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
    /// garbage collector would mark for this one. In there nothing may be allocated.
    fn rb_objspace_reachable_objects_from(
        object: VALUE,
        function: unsafe extern "C" fn(VALUE, *mut c_void),
        data: *mut c_void,
    );
}

/// What Ruby itself puts on the list when `Thread#kill` has ended a fiber, so that it goes on to end the thread.
fn killed() -> VALUE {
    // SAFETY: makes an Integer that is no object.
    unsafe { rb_sys::rb_int2inum(Tag::Fatal as isize) }
}

/// Left with each thread whose list has been found.
static LIST: HiddenVariable = HiddenVariable::new("heddle_pending");

/// The message of the exception by which the list is found.
const SENT: &str = "sent by a thread to itself, to find what waits for it";

/// Decides which fiber is interrupted.
pub trait Gate {
    /// Whether Ruby must not raise `entry`, an exception of this class or a number that means a kill, in the fiber that
    /// runs. It then stays on the list. Ruby is in the middle of reading the list: nothing may be raised or handled in here.
    fn holds_back(ruby: &Ruby, class: Value, entry: Value) -> bool;
}

/// The mask by which Ruby asks the [`Gate`].
static GATE: OnceLock<PinnedValue> = OnceLock::new();

/// Makes `G` the gate of all threads for which [`find`] is called from now on. There is one, so the first call counts.
pub fn register<G: Gate>(ruby: &Ruby) -> Result<(), Error> {
    let mask = ruby.hash_new();
    mask.funcall::<_, _, Value>("default_proc=", (ruby.proc_new(ask::<G>),))?;
    mask.freeze();
    if GATE.set(PinnedValue::new(mask.as_value())).is_ok() {
        ruby.gc_register_mark_object(mask);
    }
    Ok(())
}

/// What a mask says of a class: nil leaves it to the masks before this one, and there is none.
fn ask<G: Gate>(ruby: &Ruby, arguments: &[Value], _: Option<Proc>) -> Result<Value, Error> {
    let [_, class] = arguments else { return Ok(ruby.qnil().as_value()) };
    // Those before it have been asked for already, and Ruby goes on with the first that is let through.
    let Some(entry) = list().and_then(|list| first_of_class(list, *class)) else { return Ok(ruby.qnil().as_value()) };
    match Sent::progress_of(entry) {
        // Leaves Ruby's search, so that it looks at the list again after the job.
        Some(Progress::Announced) => Err(Error::new(error::stop_class(ruby)?, "sent to the fiber that is running")),
        // Ruby looks at interrupts at the end of this call, too, and asks once more: so the note stays.
        Some(Progress::Sent) => Ok(ruby.to_symbol("immediate").as_value()),
        None if G::holds_back(ruby, *class, entry) => Ok(ruby.to_symbol("never").as_value()),
        None => Ok(ruby.qnil().as_value()),
    }
}

fn first_of_class(list: RArray, class: Value) -> Option<Value> {
    (0..list.len())
        .find_map(|place| list.entry::<Value>(place as isize).ok().filter(|entry| is_of_class(*entry, class)))
}

/// Whether this is the object's own class, a singleton class perhaps: that is what Ruby asks masks for.
fn is_of_class(object: Value, class: Value) -> bool {
    let raw = object.as_raw();
    // SAFETY: called with the GVL on a valid object. What is no special constant begins with an RBasic.
    let own = unsafe {
        if rb_sys::SPECIAL_CONST_P(raw) { rb_sys::rb_obj_class(raw) } else { (*(raw as *const rb_sys::RBasic)).klass }
    };
    own == class.as_raw()
}

/// What [`raise_next`] has put on a thread's list.
struct Sent {
    thread: VALUE,
    /// Marked by being on the list.
    entry: VALUE,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The job has yet to make Ruby look at the list again.
    Announced,
    /// Ruby raises it as soon as the job is over.
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

    fn note(entry: Value, progress: Progress) {
        Self::forget();
        Self::all().push(Sent { thread: thread::current().raw(), entry: entry.as_raw(), progress });
    }

    /// There is one for a thread at most: see [`is_sent`].
    fn forget() {
        let thread = thread::current().raw();
        Self::all().retain(|sent| sent.thread != thread);
    }
}

/// Has Ruby raise `entry`, which its own masks must let through, in the fiber that runs, before anything else that is on
/// the list, as soon as the postponed job that runs is over.
///
/// # Errors
/// Ruby would not. Then it is not on the list.
pub fn raise_next(ruby: &Ruby, entry: Value) -> Result<(), Error> {
    let Some(list) = list() else { return Err(Error::new(error::stop_class(ruby)?, "no list of interrupts")) };
    list.unshift(entry)?;
    Sent::note(entry, Progress::Announced);
    // Of a list that it has looked through Ruby takes no notice until something is added by its own means, or the thread
    // is about to wait. This is what it does then; the gate ends it before anything is raised.
    let Err(looked) = interrupts::check() else {
        Sent::forget();
        withdraw(list, entry)?;
        return Err(Error::new(error::stop_class(ruby)?, "masked"));
    };
    let is_first = || list.entry::<Value>(0).is_ok_and(|first| same(first, entry));
    if error::exception_of(&looked).is_some_and(|raised| same(raised, entry)) {
        // A mask of the fiber's own lets it through, and the gate was not asked.
        list.unshift(entry)?;
    } else if !is_first() {
        Sent::forget();
        return Err(looked);
    }
    Sent::note(entry, Progress::Sent);
    interrupts::look_again();
    Ok(())
}

/// Whether Ruby is about to raise what [`raise_next`] has put on the current thread's list. Until then the job, which may run
/// again before, must do nothing: it would strike another fiber.
pub fn is_sent() -> bool {
    let thread = thread::current().raw();
    let entry = Sent::all().iter().find(|sent| sent.thread == thread).map(|sent| sent.entry);
    let Some(entry) = entry else { return false };
    let is_there = list().is_some_and(|list| {
        (0..list.len()).any(|place| list.entry::<Value>(place as isize).is_ok_and(|there| there.as_raw() == entry))
    });
    if !is_there {
        Sent::forget();
    }
    is_there
}

/// What was raised at the current thread, and Ruby has not looked at, is not to be raised, where `is_meant` says so.
#[cfg(not(ruby_gte_4_0))]
pub fn remove_if(is_meant: impl Fn(Value) -> bool) -> Result<(), Error> {
    let Some(list) = list() else { return Ok(()) };
    for place in (0..list.len() as isize).rev() {
        if is_meant(list.entry(place)?) {
            list.delete_at::<Value>(place)?;
        }
    }
    Ok(())
}

fn withdraw(list: RArray, entry: Value) -> Result<(), Error> {
    for place in 0..list.len() as isize {
        if same(list.entry(place)?, entry) {
            return list.delete_at::<Value>(place).map(|_| ());
        }
    }
    Ok(())
}

/// Finds the current thread's list, and its [`Masks`], unless they are known, and puts up the [`Gate`]. To be called before
/// they are looked at, and in no postponed job.
///
/// # Errors
/// What was raised at this thread meanwhile; no memory.
pub fn find(ruby: &Ruby) -> Result<(), Error> {
    if list().is_some() {
        return Ok(());
    }
    let class = error::stop_class(ruby)?;
    let masks = ruby.hash_new();
    // Such a Hash Ruby puts on its stack as it is, and no copy.
    masks.funcall::<_, _, Value>("compare_by_identity", ())?;
    masks.aset(class, ruby.to_symbol("never"))?;
    masks.freeze();
    let mask = PinnedValue::new(masks.as_value());
    let look = ruby.proc_from_fn(move |ruby, _, _| {
        let thread = thread::current();
        if let Some((stack, _)) = search(thread, mask.get()) {
            put_up_gate(stack)?;
            Masks::remember(thread, stack);
        }
        let sent = error::stop_class(ruby)?.new_instance((SENT,))?.as_value();
        let raised = thread::raise_into(thread, sent);
        if let Some((list, place)) = search(thread, sent) {
            list.delete_at::<Value>(place)?;
            // A thread that is frozen takes no note.
            let _ = LIST.leave(thread, list.as_value());
        }
        raised
    });
    let masked = ruby.class_thread().funcall_with_block::<_, _, Value>("handle_interrupt", (masks,), look);
    match masked {
        // The list was not found, and Ruby has taken it from there.
        Err(error) if error.is_kind_of(class) && error.to_string().contains(SENT) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Whether the thread's list has been found.
pub fn is_known(thread: PinnedValue) -> bool {
    !LIST.of(thread).is_nil()
}

/// A thread inherits the masks of the one that has made it, so the gate may be there already.
fn put_up_gate(stack: RArray) -> Result<(), Error> {
    let Some(gate) = GATE.get() else { return Ok(()) };
    let is_there = stack.entry::<Value>(0).is_ok_and(|first| same(first, gate.get()));
    if is_there { Ok(()) } else { stack.unshift(gate.get()) }
}

/// How much waits to be raised at the current thread. Nothing, as far as is known, before [`find`].
pub fn count() -> usize {
    list().map_or(0, |list| list.len())
}

/// Whether something does.
pub fn is_any() -> bool {
    count() > 0
}

/// Whether `error`, just caught, is the jump by which Ruby ends a thread (`Thread#kill`), and no fiber (`Fiber#kill`), and
/// it can be repeated.
fn is_kill(error: &Error) -> bool {
    // SAFETY: called with the GVL; only reads `$!`, which for a jump is a number.
    let is_kill =
        matches!(error.error_type(), ErrorType::Jump(Tag::Fatal)) && unsafe { rb_sys::rb_errinfo() } == killed();
    is_kill && list().is_some()
}

/// Has Ruby kill the current thread once more as soon as the postponed job that runs is over, if `error`, just caught in
/// there, was that. Returns whether it was.
pub fn repeat_kill(error: &Error) -> bool {
    // SAFETY: called with the GVL; the number is no object that would have to be marked.
    let killed = unsafe { Value::from_raw(killed()) };
    let repeated = is_kill(error) && list().is_some_and(|list| list.unshift(killed).is_ok());
    if repeated {
        // Ruby has just taken it from there, so it looks at the list again without further ado.
        Sent::note(killed, Progress::Sent);
        interrupts::look_again();
    }
    repeated
}

/// The current thread's list, if it has been found.
fn list() -> Option<RArray> {
    RArray::from_value(LIST.of(thread::current()))
}

/// Which list of the thread's holds `sent`, and where.
fn search(thread: PinnedValue, sent: Value) -> Option<(RArray, isize)> {
    struct Search {
        sent: VALUE,
        found: Option<(VALUE, c_long)>,
    }

    unsafe extern "C" fn look(object: VALUE, search: *mut c_void) {
        // SAFETY: what is passed below, which lives until the call is over; nobody else uses it meanwhile. The object is a
        // valid one, and its elements are read where there are any.
        unsafe {
            let search = &mut *search.cast::<Search>();
            if !is_hidden(Value::from_raw(object)) || !rb_sys::RB_TYPE_P(object, rb_sys::ruby_value_type::RUBY_T_ARRAY)
            {
                return;
            }
            let place =
                (0..rb_sys::RARRAY_LEN(object)).find(|&place| rb_sys::rb_ary_entry(object, place) == search.sent);
            search.found = search.found.or(place.map(|place| (object, place)));
        }
    }

    let mut search = Search { sent: sent.as_raw(), found: None };
    // SAFETY: called with the GVL, on a valid object, and not by the collector; `look` neither allocates nor raises.
    unsafe { rb_objspace_reachable_objects_from(thread.raw(), look, (&raw mut search).cast()) };
    let (list, place) = search.found?;
    // SAFETY: a valid object, which the thread holds.
    RArray::from_value(unsafe { Value::from_raw(list) }).map(|list| (list, place as isize))
}
