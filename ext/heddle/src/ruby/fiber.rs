//! Fibers: who runs, who is to run.

use std::os::raw::c_int;
use std::sync::OnceLock;

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Ruby, Value, prelude::*};
use rb_sys::VALUE;
use rb_sys::stable_api::StableApiDefinition;

use super::error::{expect_fiber, raise};
use super::hidden_variable::HiddenVariable;
use super::value::{PinnedValue, interned};

/// The fiber that is running.
pub fn current() -> PinnedValue {
    // SAFETY: called with the GVL. It allocates (and could raise) only where a thread's root fiber has no object yet,
    // and `ensure_current` has taken care of that before.
    unsafe { PinnedValue::from_raw(rb_sys::rb_fiber_current()) }
}

/// Like [`current`], for a thread that may never have asked for its root fiber.
pub fn ensure_current() -> Result<PinnedValue, Error> {
    // SAFETY: called with the GVL; an exception stops at `protect`.
    protect(|| unsafe { rb_sys::rb_fiber_current() }).map(|raw| unsafe { PinnedValue::from_raw(raw) })
}

/// Switches to `fiber`. Comes back when somebody switches to the current fiber again; or with what was raised into it
/// meanwhile.
#[inline]
pub fn transfer(fiber: PinnedValue) -> Result<(), Error> {
    // SAFETY: called with the GVL on a fiber; no arguments are read. The closure owns nothing, so leaving it by an
    // exception (which `protect` catches) skips no destructor.
    protect(|| unsafe { rb_sys::rb_fiber_transfer(fiber.raw(), 0, std::ptr::null()) }).map(|_| ())
}

/// Like [`transfer`] for one that has not begun: its code is given `arguments`, three at most. More than one cost an Array.
pub fn start(fiber: PinnedValue, arguments: &[Value]) -> Result<(), Error> {
    // SAFETY: as in `transfer`. A `Value` is a VALUE and nothing else. They lie on this stack, which stays as it is while
    // another fiber runs, and is scanned by the collector.
    protect(|| unsafe { rb_sys::rb_fiber_transfer(fiber.raw(), arguments.len() as c_int, arguments.as_ptr().cast()) })
        .map(|_| ())
}

/// The scheduler of the current thread, or nil.
pub fn scheduler() -> Value {
    // SAFETY: called with the GVL; a valid object.
    unsafe { Value::from_raw(rb_sys::rb_fiber_scheduler_get()) }
}

/// The scheduler of the current thread, if the fiber that is running is a non-blocking one.
pub fn current_scheduler() -> Option<Value> {
    // SAFETY: called with the GVL; neither allocates nor raises, and returns a valid object.
    let scheduler = unsafe { Value::from_raw(rb_sys::rb_fiber_scheduler_current()) };
    (!scheduler.is_nil()).then_some(scheduler)
}

/// `Fiber.yield`
pub fn yield_to_resumer() -> Result<(), Error> {
    // SAFETY: as in `transfer`; no arguments are read.
    protect(|| unsafe { rb_sys::rb_fiber_yield(0, std::ptr::null()) }).map(|_| ())
}

/// Has the fiber hold an object that Ruby code cannot see. It lives as long as the fiber.
pub fn attach(fiber: PinnedValue, object: Value) -> Result<(), Error> {
    ATTACHED.leave(fiber, object)
}

/// What [`attach`] has left, or nil.
pub fn attached(fiber: PinnedValue) -> Value {
    ATTACHED.of(fiber)
}

static ATTACHED: HiddenVariable = HiddenVariable::new("heddle_note");

/// `Fiber.set_scheduler(nil)`
pub fn unset_scheduler(ruby: &Ruby) -> Result<(), Error> {
    let class: magnus::RClass = ruby.class_object().const_get("Fiber")?;
    class.funcall::<_, _, Value>("set_scheduler", (ruby.qnil(),)).map(|_| ())
}

/// The addresses of the object and of Ruby's record of the fiber. Not to be read from.
pub fn addresses(fiber: PinnedValue) -> (usize, usize) {
    // SAFETY: a fiber is an object with data of Ruby's.
    let record = unsafe { rb_sys::stable_api::get_default().rtypeddata_get_data(fiber.raw()) };
    (fiber.raw() as usize, record.addr())
}

/// Whether the object is a fiber.
pub fn is_fiber(value: Value) -> bool {
    // SAFETY: called with the GVL on a valid object; does not raise.
    unsafe { rb_sys::rb_obj_is_fiber(value.as_raw()) == rb_sys::Qtrue as VALUE }
}

/// Whether Ruby has made its record of the fiber, which it does in `Fiber#initialize`.
pub fn is_initialized(fiber: Value) -> bool {
    // SAFETY: a fiber is an object with data of Ruby's; the pointer is not followed.
    !unsafe { rb_sys::stable_api::get_default().rtypeddata_get_data(fiber.as_raw()) }.is_null()
}

/// Whether the fiber has not ended. It must be an initialized one: see [`expect_fiber`].
pub fn is_alive(fiber: PinnedValue) -> bool {
    // SAFETY: called with the GVL on a fiber; does not raise.
    unsafe { rb_sys::rb_fiber_alive_p(fiber.raw()) != rb_sys::Qfalse as VALUE }
}

/// Whether the fiber is a blocking one (`Fiber#blocking?`), as a thread's root fiber is.
pub fn is_blocking(fiber: PinnedValue) -> Result<bool, Error> {
    fiber.get().funcall("blocking?", ())
}

/// The same of the fiber that is running.
pub fn is_current_blocking() -> Result<bool, Error> {
    // Without a method call: a thread's scheduler does not apply while a blocking fiber runs.
    if scheduler().is_nil() { is_blocking(current()) } else { Ok(current_scheduler().is_none()) }
}

/// Raises into a fiber that is suspended outside of the scheduler (`Fiber#raise`).
pub fn raise_into(fiber: Value, arguments: &[Value]) -> Result<(), Error> {
    fiber.funcall_public::<_, _, Value>("raise", arguments).map(|_| ())
}

/// `Fiber#kill` of the fiber that is running: the jump that ends it. `None` if it has been killed before, and swallowed
/// that.
pub fn kill_current() -> Option<Error> {
    current().get().funcall_public::<_, _, Value>("kill", ()).err()
}

/// Creates a non-blocking fiber that has not started yet and runs `BODY`. `storage` is what `Fiber.new(storage:)`
/// takes; `true` inherits a copy of the current fiber's.
pub fn spawn<B: FiberBody>(callback: Value, storage: Value) -> Result<PinnedValue, Error> {
    // SAFETY: `main` has the signature of a block function; an exception (no memory) stops at `protect`.
    protect(|| unsafe { rb_sys::rb_fiber_new_storage(Some(main::<B>), callback.as_raw(), storage.as_raw()) })
        // SAFETY: a fiber, just made.
        .map(|raw| unsafe { PinnedValue::from_raw(raw) })
}

/// The code of many fibers. To make it takes longer than to make a fiber of it.
#[derive(Debug)]
pub struct Code(OnceLock<(PinnedValue, PinnedValue)>);

impl Code {
    /// To be a static.
    pub const fn new() -> Self {
        Code(OnceLock::new())
    }

    /// Like [`spawn`], for fibers that inherit a copy of the current one's storage, and learn from [`start`] alone what
    /// they are to do: their `callback` is nil.
    pub fn spawn<B: FiberBody>(&self, ruby: &Ruby) -> Result<PinnedValue, Error> {
        let (class, code) = match self.0.get() {
            Some(made) => *made,
            None => {
                let class: magnus::RClass = ruby.class_object().const_get("Fiber")?;
                // SAFETY: as in `spawn`.
                let code = protect(|| unsafe { rb_sys::rb_proc_new(Some(main::<B>), rb_sys::Qnil as VALUE) })?;
                // SAFETY: a Proc, just made.
                let code = unsafe { PinnedValue::from_raw(code) };
                ruby.gc_register_mark_object(code.get());
                *self.0.get_or_init(|| (PinnedValue::new(class.as_value()), code))
            }
        };
        // SAFETY: called with the GVL on a class and a Proc that are never collected; an exception stops at `protect`.
        let made = protect(|| unsafe {
            rb_sys::rb_funcall_with_block(class.raw(), new_name(), 0, std::ptr::null(), code.raw())
        })?;
        // SAFETY: what a method has returned is a valid object.
        let made = unsafe { PinnedValue::from_raw(made) };
        // The program may have put a method of its own in the place of Ruby's.
        expect_fiber(ruby, made.get()).map(|()| made)
    }
}

fn new_name() -> rb_sys::ID {
    static NAME: OnceLock<rb_sys::ID> = OnceLock::new();
    interned(&NAME, "new")
}

/// The code of a fiber.
pub trait FiberBody {
    /// Runs in the new fiber. `callback` is what [`spawn`] was given, `arguments` those of the first transfer; none of
    /// them is collected before the fiber ends. An error leaves the fiber, and Ruby raises it in whichever fiber it picks to go on.
    fn run(ruby: &Ruby, callback: Value, arguments: &[Value]) -> Result<Value, Error>;
}

unsafe extern "C" fn main<B: FiberBody>(_: VALUE, callback: VALUE, argc: c_int, argv: *const VALUE, _: VALUE) -> VALUE {
    let result = std::panic::catch_unwind(|| {
        // SAFETY: Ruby calls this, so its thread is here and holds the GVL.
        let ruby = unsafe { Ruby::get_unchecked() };
        /// Nobody starts a fiber with more.
        const MOST: usize = 3;
        let mut arguments = [ruby.qnil().as_value(); MOST];
        let count = (argc as usize).min(MOST);
        for (index, argument) in arguments[..count].iter_mut().enumerate() {
            // SAFETY: Ruby passes `argc` valid objects. They are copied here, where the collector sees them, as the Array
            // that they come from may be gone soon.
            *argument = unsafe { Value::from_raw(*argv.add(index)) };
        }
        // SAFETY: the object that `spawn` was given.
        let callback = unsafe { Value::from_raw(callback) };
        let result = B::run(&ruby, callback, &arguments[..count]);
        // Until here they are on this stack: what the body has borrowed from them lives as long as the fiber.
        std::hint::black_box((callback, &arguments));
        result
    });
    match result {
        Ok(Ok(value)) => value.as_raw(),
        // SAFETY: this is the outermost Rust frame of the fiber, and all that it owned is gone with the closure.
        Ok(Err(error)) => unsafe { raise(error) },
        // SAFETY: as above.
        Err(panic) => unsafe { raise(from_panic(panic)) },
    }
}

fn from_panic(panic: Box<dyn std::any::Any + Send>) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .map(|message| (*message).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic".to_owned());
    // SAFETY: called from `main`, on a Ruby thread with the GVL.
    let ruby = unsafe { Ruby::get_unchecked() };
    Error::new(ruby.exception_fatal(), message)
}

/// A fiber that ends as soon as it is switched to, whereupon Ruby goes on with the fiber that it falls back to: the
/// root, or the innermost one that the root has resumed. There is no other way to find out which one that is.
///
/// Making it handles interrupts, so it has to be at hand before there is one.
pub fn fall_back_fiber() -> Result<PinnedValue, Error> {
    struct Nothing;
    impl FiberBody for Nothing {
        fn run(ruby: &Ruby, _: Value, _: &[Value]) -> Result<Value, Error> {
            Ok(ruby.qnil().as_value())
        }
    }
    // SAFETY: called with the GVL.
    let nil = unsafe { Ruby::get_unchecked() }.qnil().as_value();
    spawn::<Nothing>(nil, nil)
}
