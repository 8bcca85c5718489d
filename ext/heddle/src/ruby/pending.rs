//! What other threads want raised at this one (`Thread#raise`, `Thread#kill`), as long as Ruby has not done so.
//!
//! `Thread.pending_interrupt?` tells that, too. But when a call ends Ruby looks at interrupts. If the thread's time slice
//! is over another thread runs, whose `Thread#kill` Ruby then raises in here; and in a postponed job, where this is asked,
//! it swallows that, takes the thread for killed, and nothing can end it any more. So it is Ruby's own list that is looked
//! at. It is found among what the garbage collector would mark for the thread: the one with the exception just sent. The
//! stack of [`super::masks`] is found in the same way.

use std::os::raw::{c_long, c_void};

use magnus::error::{ErrorType, Tag};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{Error, RArray, Ruby, Value, prelude::*};
use rb_sys::VALUE;

use super::masks::Masks;
use super::note::Note;
use super::value::{Held, is_hidden};
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
static LIST: Note = Note::new("heddle_pending");

/// The message of the exception by which the list is found.
const SENT: &str = "sent by a thread to itself, to find what waits for it";

/// Finds the current thread's list, and its [`Masks`], unless they are known. To be called before they are looked at, and
/// in no postponed job.
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
    let mask = Held::new(masks.as_value());
    let look = ruby.proc_from_fn(move |ruby, _, _| {
        let thread = thread::current();
        if let Some((stack, _)) = search(thread, mask.get()) {
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
pub fn is_known(thread: Held) -> bool {
    !LIST.of(thread).is_nil()
}

/// Whether something waits to be raised at the current thread. Nothing, as far as is known, before [`find`].
pub fn is_any() -> bool {
    list().is_some_and(|list| !list.is_empty())
}

/// Whether `error`, just caught, is the jump by which Ruby ends a thread (`Thread#kill`), and no fiber (`Fiber#kill`), and
/// [`kill_again`] can repeat it.
pub fn is_kill(error: &Error) -> bool {
    // SAFETY: called with the GVL; only reads `$!`, which for a jump is a number.
    let is_kill =
        matches!(error.error_type(), ErrorType::Jump(Tag::Fatal)) && unsafe { rb_sys::rb_errinfo() } == killed();
    is_kill && list().is_some()
}

/// Repeats what has been caught, if it [`is_kill`]. Returns whether it was.
pub fn repeat_kill(error: &Error) -> bool {
    is_kill(error) && kill_again()
}

/// Has Ruby kill the current thread once more, as soon as it looks at interrupts where that may be: what it swallows in
/// a postponed job is not lost then. False if the list is not known.
pub fn kill_again() -> bool {
    // SAFETY: called with the GVL; the number is no object that would have to be marked.
    let killed = unsafe { Value::from_raw(killed()) };
    let noted = list().is_some_and(|list| list.push(killed).is_ok());
    if noted {
        interrupts::look_again();
    }
    noted
}

/// The current thread's list, if it has been found.
fn list() -> Option<RArray> {
    RArray::from_value(LIST.of(thread::current()))
}

/// Which list of the thread's holds `sent`, and where.
fn search(thread: Held, sent: Value) -> Option<(RArray, isize)> {
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
