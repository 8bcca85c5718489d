//! Errors, and the one place where the core's become Ruby's.

use heddle_core::Error as CoreError;
use std::num::NonZero;
use std::os::raw::c_int;

use magnus::error::ErrorType;
use magnus::exception::Exception;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect, resume_error};
use magnus::{Error, ExceptionClass, RArray, RClass, RString, Ruby, TryConvert, Value, prelude::*};
use nix::errno::Errno;
use rb_sys::VALUE;

use super::constant::Constant;
use super::gvl::assert_stays_with_gvl;
use super::hidden_variable::HiddenVariable;
use super::insides;
use super::outcome::RubyOutcome;
use super::value::same;

/// Converts an error of the core: to SystemCallError's subclass for an errno, and to `Heddle::BackendUnavailable` for a
/// backend that is unavailable.
#[cold]
#[inline(never)]
pub fn from_core(ruby: &Ruby, error: CoreError) -> Error {
    match error {
        CoreError::Os { errno, call } => system_call(ruby, errno, call),
        CoreError::BackendUnavailable { .. } => {
            static UNAVAILABLE: Constant = Constant::new(&["Heddle", "BackendUnavailable"]);
            new(ruby, &UNAVAILABLE, error.to_string())
        }
    }
}

/// An exception of the class. It is made at once: `magnus::Error::new` makes it when it is raised, and panics if the
/// thread is killed at that moment.
pub fn of(class: ExceptionClass, message: impl AsRef<str>) -> Error {
    match class.new_instance((message.as_ref(),)) {
        Ok(exception) => exception.into(),
        Err(error) => error,
    }
}

/// `Errno::X`, with the name of the call in its message.
#[cold]
pub fn system_call(ruby: &Ruby, errno: Errno, call: &str) -> Error {
    let class = ruby.exception_system_call_error();
    match class.funcall::<_, _, Exception>("new", (call, errno as i32)) {
        Ok(exception) => exception.into(),
        Err(error) => error,
    }
}

/// The exception that `raise(exception)`, or `raise(exception, message)`, would raise.
pub fn make_exception(exception: Value, message: Option<Value>) -> Error {
    // On the stack, where the collector finds them, as nothing else may refer to them any more.
    let arguments = [exception.as_raw(), message.unwrap_or(exception).as_raw()];
    let count = 1 + i32::from(message.is_some());
    // SAFETY: `arguments` holds valid objects and outlives the call; a Ruby exception in it stops at `protect`.
    let made = protect(|| unsafe { rb_sys::rb_make_exception(count, arguments.as_ptr()) });
    match made {
        // SAFETY: it is an exception, or nil if there were no arguments.
        Ok(exception) => match Exception::try_convert(unsafe { Value::from_raw(exception) }) {
            Ok(exception) => exception.into(),
            Err(error) => error,
        },
        Err(error) => error,
    }
}

/// The exception that `Thread#raise` makes of its arguments, of which there is at least one.
///
/// # Errors
/// TypeError for what is no exception; what the program's method `exception` raises.
pub fn exception_from(arguments: RArray) -> Result<Value, Error> {
    // SAFETY: the Array is on the stack and not changed during the call; a Ruby exception stops at `protect`.
    let made = protect(|| unsafe {
        let array = arguments.as_raw();
        rb_sys::rb_make_exception(rb_sys::RARRAY_LEN(array) as c_int, rb_sys::RARRAY_CONST_PTR(array))
    });
    // SAFETY: an exception, by `rb_make_exception`.
    made.map(|raw| unsafe { Value::from_raw(raw) })
}

/// A handle to Ruby's API, of which an error is a proof: only a thread with the GVL has one, as it is not `Send`.
pub fn ruby_of(_: &Error) -> Ruby {
    // SAFETY: see above. Only functions that need the GVL return errors, and `without_gvl` lets none in.
    unsafe { Ruby::get_unchecked() }
}

/// `$!`: the current exception, if there is one.
pub fn current(_: &Ruby) -> Option<Error> {
    // Read by its name, as `rb_errinfo` does not return an exception whose `ensure` clause runs.
    // SAFETY: called with the GVL; the name ends with a zero; the result is an exception or nil.
    let error = unsafe { Value::from_raw(rb_sys::rb_gv_get(c"$!".as_ptr())) };
    Exception::from_value(error).map(Error::from)
}

/// Whether `exception` is one that `Timeout.timeout` makes for a single block: no class and no StandardError, and
/// `raise` raises this very object, whatever the message.
///
/// # Errors
/// What the program's method `exception` raises, or a signal meanwhile.
pub fn is_limit(ruby: &Ruby, exception: Value, message: Value) -> Result<bool, Error> {
    match Exception::from_value(exception) {
        Some(limit) if !limit.is_kind_of(ruby.exception_standard_error()) => {
            limit.funcall("exception", (message,)).map(|raised: Value| same(raised, exception))
        }
        _ => Ok(false),
    }
}

/// Whether `exception` unwinds the current fiber: whether it, or an instance of it if it is a class, is `$!`, or a
/// cause of that.
pub fn is_in_flight(exception: Value) -> bool {
    // SAFETY: called with the GVL; the name ends with a zero; both results are an exception, a number or nil. The first
    // is an exception whose `rescue` or `ensure` clause runs, the second one that unwinds functions written in C.
    let errors = unsafe { [rb_sys::rb_gv_get(c"$!".as_ptr()), rb_sys::rb_errinfo()] };
    // SAFETY: see above.
    errors.into_iter().any(|error| caused_by(unsafe { Value::from_raw(error) }, exception))
}

/// The class of an exception that is to be raised, or that class itself. Calls no method.
pub fn class_of(exception: Value) -> RClass {
    RClass::from_value(exception).unwrap_or_else(|| exception.class())
}

fn caused_by(error: Value, exception: Value) -> bool {
    /// Where Ruby keeps an exception's cause. The method `cause` would check interrupts.
    static CAUSE: HiddenVariable = HiddenVariable::new("cause");
    /// Ruby lets no exception be its own cause.
    const MAX_CAUSES: usize = 1000;
    let class = RClass::from_value(exception);
    let mut error = error;
    for _ in 0..MAX_CAUSES {
        let Some(found) = Exception::from_value(error) else { return false };
        let is_same = class.map_or_else(|| same(found, exception), |class| found.is_kind_of(class));
        if is_same {
            return true;
        }
        error = CAUSE.get(found.as_value());
    }
    false
}

/// The exception itself. `None` for a jump: `throw`, or the kill of a fiber or thread.
pub fn exception_of(error: &Error) -> Option<Value> {
    match error.error_type() {
        ErrorType::Exception(exception) => Some(exception.as_value()),
        ErrorType::Error(class, message) => match class.new_instance((message.as_ref(),)) {
            Ok(made) => Some(made.as_value()),
            // A signal's exception, for instance, takes its place, as in Ruby.
            Err(raised) => exception_of(&raised),
        },
        ErrorType::Jump(_) => None,
    }
}

/// Ends the propagation of the jump that was caught last. It must not be raised again afterwards: Ruby reads the jump's
/// target from the value that this clears, and would crash.
pub fn end_jump(ruby: &Ruby) {
    // SAFETY: called with the GVL; nil is what is there where nothing is under way.
    unsafe { rb_sys::rb_set_errinfo(ruby.qnil().as_value().as_raw()) };
}

/// Like [`exception_of`], but ends a jump and returns `Heddle::Stop` for it, as only an exception can be sent to a
/// fiber.
pub fn exception_or_stop(ruby: &Ruby, error: &Error) -> Option<Value> {
    exception_of(error).or_else(|| {
        end_jump(ruby);
        stop_class(ruby).not_an_interrupt("never: Heddle defines the class").map(|stop| stop.as_value())
    })
}

/// What `rb_protect` has just caught. It is smaller than the error, and has to be converted at once.
pub struct Raised {
    /// Ruby's number of the kind of jump.
    pub tag: NonZero<c_int>,
    /// What `rb_errinfo` returned before: `$!` is put back to it, as by a `rescue`.
    pub before: Value,
}

assert_stays_with_gvl!(Raised);

impl Raised {
    /// The error.
    #[cold]
    #[inline(never)]
    pub fn into_error(self) -> Error {
        // SAFETY: called with the GVL. Ruby repeats the jump, which stops at `protect`. The closure owns nothing.
        let repeated = protect(|| unsafe { rb_sys::rb_jump_tag(self.tag.get()) });
        // It is no exception if a function written in C is being left meanwhile, by a kill or a
        // `throw`. That function puts it back itself.
        let before = self.before;
        let restores = before.is_nil() || Exception::from_value(before).is_some();
        match repeated {
            Err(error) if restores && matches!(error.error_type(), ErrorType::Exception(_)) => {
                // SAFETY: called with the GVL; it raises nothing, as `before` is nil or an exception.
                unsafe { rb_sys::rb_set_errinfo(before.as_raw()) };
                error
            }
            Err(error) => error,
            Ok(_) => of(Ruby::get_with(before).exception_fatal(), "a jump has returned"),
        }
    }
}

/// Leaves Rust by raising `error`.
///
/// # Safety
/// The caller is the outermost Rust frame, called by Ruby itself, and owns nothing that must be dropped.
pub unsafe fn raise(error: Error) -> ! {
    // SAFETY: by this function's contract.
    unsafe { resume_error(error) }
}

/// `Heddle::Stop`: ends a fiber, running its `ensure`. Private to Heddle, and no StandardError.
pub fn stop_class(ruby: &Ruby) -> Result<ExceptionClass, Error> {
    static STOP: Constant = Constant::new(&["Heddle", "Stop"]);
    STOP.get(ruby)
}

/// Whether `error` is a [`Heddle::Stop`](stop_class).
pub fn is_stop(error: &Error) -> bool {
    let stop = stop_class(&ruby_of(error)).not_an_interrupt("never: Heddle defines the class");
    stop.is_some_and(|stop| error.is_kind_of(stop))
}

/// IO::TimeoutError, as Ruby raises it.
pub fn io_timeout(ruby: &Ruby) -> Error {
    static TIMEOUT: Constant = Constant::new(&["IO", "TimeoutError"]);
    new(ruby, &TIMEOUT, insides::TIMED_OUT)
}

/// The IOError of a fiber or thread whose IO another fiber or thread closes.
#[cold]
pub fn stream_closed(ruby: &Ruby) -> Error {
    of(ruby.exception_io_error(), insides::CLOSED)
}

/// Where Ruby keeps an exception's message.
static MESSAGE: HiddenVariable = HiddenVariable::new("mesg");

/// Whether the error's message contains `words`. Calls no method: Ruby checks interrupts at the end of each, and
/// magnus's own conversion drops what they raise.
pub fn has_message(error: &Error, words: &str) -> bool {
    match error.error_type() {
        ErrorType::Exception(exception) => {
            let message = RString::from_value(MESSAGE.get(exception.as_value()));
            // SAFETY: copied before Ruby runs again.
            message.is_some_and(|message| String::from_utf8_lossy(unsafe { message.as_slice() }).contains(words))
        }
        ErrorType::Error(_, message) => message.contains(words),
        ErrorType::Jump(_) => false,
    }
}

/// Whether Ruby made `exception` for a thread whose native call uses an IO that is being closed. Calls no method.
pub fn is_close(ruby: &Ruby, exception: Value) -> bool {
    let message = Exception::from_value(exception)
        .filter(|exception| exception.is_kind_of(ruby.exception_io_error()))
        .and_then(|exception| RString::from_value(MESSAGE.get(exception.as_value())));
    // SAFETY: compared at once, and nothing else runs meanwhile.
    message.is_some_and(|message| unsafe { message.as_slice() } == insides::CLOSED.as_bytes())
}

/// The IOError of a fiber that tries to wait after its scheduler has been closed.
#[cold]
pub fn scheduler_closed(ruby: &Ruby) -> Error {
    of(ruby.exception_io_error(), "this fiber's scheduler has been closed; it cannot wait any more")
}

/// FiberError, with a message.
pub fn fiber_error(ruby: &Ruby, message: &'static str) -> Error {
    new(ruby, &FIBER_ERROR, message)
}

/// FiberError has no constant in Ruby's C interface.
static FIBER_ERROR: Constant = Constant::new(&["FiberError"]);

fn new(ruby: &Ruby, class: &Constant, message: impl AsRef<str>) -> Error {
    match class.get::<ExceptionClass>(ruby) {
        Ok(class) => of(class, message),
        Err(error) => error,
    }
}

/// Whether `error` is a FiberError.
pub fn is_fiber_error(error: &Error) -> bool {
    let class = FIBER_ERROR.get::<ExceptionClass>(&ruby_of(error)).not_an_interrupt("never: Ruby defines the class");
    class.is_some_and(|class| error.is_kind_of(class))
}

/// Whether `error` is a FiberError whose message contains `words`, one of the texts in [`insides`]. Only the message
/// tells these errors apart.
pub fn is_fiber_error_with(error: &Error, words: &str) -> bool {
    is_fiber_error(error) && has_message(error, words)
}

/// Whether Ruby could not allocate a fiber's stack, for lack of memory or of memory mappings.
pub fn is_lack_of_stacks(_: &Ruby, error: &Error) -> bool {
    insides::NO_STACK.into_iter().any(|words| is_fiber_error_with(error, words))
}

/// Whether the class is one that `Timeout.timeout` raises at a thread by default. Calls no method.
pub fn is_of_timeout(ruby: &Ruby, class: Value) -> bool {
    let class = RClass::from_value(class);
    let timeout = constant(ruby.class_object().as_value(), c"Timeout");
    class.zip(timeout).is_some_and(|(class, timeout)| {
        let raised = [c"ExitException", c"Error"].into_iter().filter_map(|name| constant(timeout, name));
        raised.filter_map(RClass::from_value).any(|raised| class.is_inherited(raised))
    })
}

/// The value of a constant of a class or module, if it is defined and has been loaded.
fn constant(module: Value, name: &std::ffi::CStr) -> Option<Value> {
    // SAFETY: called with the GVL on a class or module; the name ends with a zero; an exception stops at `protect`.
    let found = protect(|| unsafe {
        let id = rb_sys::rb_intern(name.as_ptr());
        let is_loaded = rb_sys::rb_autoload_p(module.as_raw(), id) == rb_sys::Qnil as VALUE;
        let is_there = is_loaded && rb_sys::rb_const_defined_at(module.as_raw(), id) != 0;
        if is_there { rb_sys::rb_const_get_at(module.as_raw(), id) } else { rb_sys::Qundef as rb_sys::VALUE }
    });
    let found = found.not_an_interrupt("never: no constant is loaded here");
    // SAFETY: a constant's value is a valid object.
    found.filter(|found| *found != rb_sys::Qundef as rb_sys::VALUE).map(|found| unsafe { Value::from_raw(found) })
}
