//! Fibers: the current one, switching, and starting new ones.

use std::num::NonZero;
use std::os::raw::c_int;
use std::sync::OnceLock;

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::value::Fixnum;
use magnus::{Error, RClass, RHash, RString, Ruby, TryConvert, Value, prelude::*};
use rb_sys::VALUE;
use rb_sys::stable_api::StableApiDefinition;

use super::constant::Constant;
use super::error;
use super::error::{Raised, raise};
use super::hidden_variable::HiddenVariable;
use super::insides;
use super::outcome::{Ignore, RubyOutcome};
use super::value::interned;

/// The current fiber.
pub fn current(_: &Ruby) -> Value {
    // SAFETY: called with the GVL. It allocates (and could raise) only where a thread's root fiber has no object yet,
    // and an earlier `ensure_current` has made that object.
    unsafe { Value::from_raw(rb_sys::rb_fiber_current()) }
}

/// Like [`current`], for a thread whose root fiber may have no object yet.
pub fn ensure_current(_: &Ruby) -> Result<Value, Error> {
    // SAFETY: called with the GVL; an exception stops at `protect`.
    protect(|| unsafe { rb_sys::rb_fiber_current() }).map(|raw| unsafe { Value::from_raw(raw) })
}

/// Switches to `fiber`. Returns when another fiber switches back to the current one.
///
/// All that lies on the stack until then takes memory in each waiting fiber. So this calls `rb_protect` itself: magnus
/// would add a frame, and its own copy of the error.
///
/// # Errors
/// What was raised into the current fiber before that.
#[inline(always)]
pub fn transfer(fiber: Value) -> Result<(), Raised> {
    unsafe extern "C" fn switch(fiber: VALUE) -> VALUE {
        // SAFETY: called by `rb_protect` below, with a fiber; no arguments are read.
        unsafe { rb_sys::rb_fiber_transfer(fiber, 0, std::ptr::null()) }
    }
    // SAFETY: called with the GVL on a fiber. Between `switch` and `rb_protect`, which catches what is raised, is no
    // other frame, so no destructor is skipped. `$!` stays on this stack, where the collector finds it.
    let (tag, before) = unsafe {
        let mut tag = 0;
        let before = Value::from_raw(rb_sys::rb_errinfo());
        rb_sys::rb_protect(Some(switch), fiber.as_raw(), &raw mut tag);
        (tag, before)
    };
    // Rubies with the correction of Bug #21955 read the fiber after the switch, and some do not keep it alive until
    // then.
    std::hint::black_box(fiber);
    NonZero::new(tag).map_or(Ok(()), |tag| Err(Raised { tag, before }))
}

/// Like [`transfer`], for a fiber that has not started. Passes it `arguments`, three at most. For more than one Ruby
/// allocates an Array.
pub fn start(fiber: Value, arguments: &[Value]) -> Result<(), Error> {
    // SAFETY: as in `transfer`. A `Value` is a VALUE and nothing else. They lie on this stack, which stays as it is
    // while another fiber runs, and is scanned by the collector.
    protect(|| unsafe {
        rb_sys::rb_fiber_transfer(fiber.as_raw(), arguments.len() as c_int, arguments.as_ptr().cast())
    })
    .map(|_| ())
}

/// The scheduler of the current thread, or nil.
pub fn scheduler(_: &Ruby) -> Value {
    // SAFETY: called with the GVL; a valid object.
    unsafe { Value::from_raw(rb_sys::rb_fiber_scheduler_get()) }
}

/// The scheduler of the current thread, if the current fiber is a non-blocking one.
pub fn current_scheduler(_: &Ruby) -> Option<Value> {
    // SAFETY: called with the GVL; neither allocates nor raises, and returns a valid object.
    let scheduler = unsafe { Value::from_raw(rb_sys::rb_fiber_scheduler_current()) };
    (!scheduler.is_nil()).then_some(scheduler)
}

/// `Fiber.yield`
pub fn yield_to_resumer(_: &Ruby) -> Result<(), Error> {
    // SAFETY: as in `transfer`; no arguments are read.
    protect(|| unsafe { rb_sys::rb_fiber_yield(0, std::ptr::null()) }).map(|_| ())
}

/// Attaches an object to the fiber, where Ruby code cannot see it. It lives as long as the fiber.
pub fn attach(fiber: Value, object: Value) -> Result<(), Error> {
    ATTACHED.set(fiber, object)
}

/// The object that [`attach`] has attached, or nil.
pub fn attached(fiber: Value) -> Value {
    ATTACHED.get(fiber)
}

/// Whether the fiber runs a block with a time limit that a thread of Ruby's watches: see
/// `lib/heddle/patches/timeout.rb`.
pub fn is_time_limited(fiber: Value) -> bool {
    static TIME_LIMITED: HiddenVariable = HiddenVariable::new("@heddle_time_limited");
    TIME_LIMITED.get(fiber).to_bool()
}

static ATTACHED: HiddenVariable = HiddenVariable::new("heddle_note");

/// `Fiber.set_scheduler(nil)`
pub fn unset_scheduler(ruby: &Ruby) -> Result<(), Error> {
    FIBER.get::<RClass>(ruby)?.funcall::<_, _, Value>("set_scheduler", (ruby.qnil(),)).map(|_| ())
}

static FIBER: Constant = Constant::new(&["Fiber"]);

/// The fiber's `object_id`.
///
/// # Errors
/// NoMemoryError.
pub fn id(fiber: Value) -> Result<u64, Error> {
    // SAFETY: called with the GVL on a valid object; an exception stops at `protect`.
    let id = protect(|| unsafe { rb_sys::rb_obj_id(fiber.as_raw()) })?;
    // SAFETY: what Ruby has just returned is a valid object.
    u64::try_convert(unsafe { Value::from_raw(id) })
}

/// The name that `lib/heddle/observability/names.rb` has given the fiber.
pub fn name(fiber: Value) -> Option<RString> {
    // SAFETY: called with the GVL on a valid object; neither allocates nor raises.
    let name =
        unsafe { Value::from_raw(rb_sys::rb_ivar_get(fiber.as_raw(), variable_of_name(&Ruby::get_with(fiber)))) };
    RString::from_value(name)
}

fn variable_of_name(ruby: &Ruby) -> rb_sys::ID {
    static NAME: OnceLock<rb_sys::ID> = OnceLock::new();
    interned(ruby, &NAME, "@heddle_name")
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

/// The size of the stack on which Ruby keeps the methods of a fiber, in bytes; 0 if this Ruby does not tell.
pub fn vm_stack_size(ruby: &Ruby) -> usize {
    static PARAMETERS: Constant = Constant::new(&["RubyVM", "DEFAULT_PARAMS"]);
    let parameters = PARAMETERS.get::<RHash>(ruby).not_an_interrupt("another Ruby: CRuby defines it");
    let size = parameters.and_then(|parameters| parameters.get(ruby.to_symbol("fiber_vm_stack_size")));
    let bytes = size.and_then(Fixnum::from_value).map(Fixnum::to_i64);
    bytes.and_then(|bytes| usize::try_from(bytes).ignored("a negative size")).unwrap_or(0)
}

/// TypeError if the object is no fiber, FiberError if it is a fiber of `Fiber.allocate` that was not initialized.
/// Ruby's C functions would raise for both.
pub fn expect_fiber(ruby: &Ruby, value: Value) -> Result<(), Error> {
    if is_fiber(value) {
        let initialized = is_initialized(value);
        return if initialized { Ok(()) } else { Err(error::fiber_error(ruby, insides::UNINITIALIZED)) };
    }
    Err(error::of(ruby.exception_type_error(), format!("{} is not a Fiber", value.inspect())))
}

/// Whether the fiber has not ended. The fiber must be initialized: see [`expect_fiber`].
pub fn is_alive(fiber: Value) -> bool {
    // SAFETY: called with the GVL on a fiber; does not raise.
    unsafe { rb_sys::rb_fiber_alive_p(fiber.as_raw()) != rb_sys::Qfalse as VALUE }
}

/// Whether the fiber is a blocking one (`Fiber#blocking?`), as a thread's root fiber is.
pub fn is_blocking(fiber: Value) -> Result<bool, Error> {
    fiber.funcall("blocking?", ())
}

/// Whether the current fiber is a blocking one.
pub fn is_current_blocking(ruby: &Ruby) -> Result<bool, Error> {
    // Avoids a method call: a thread has no current scheduler while a blocking fiber runs.
    if scheduler(ruby).is_nil() { is_blocking(current(ruby)) } else { Ok(current_scheduler(ruby).is_none()) }
}

/// Raises into a fiber that is suspended outside of the scheduler (`Fiber#raise`).
pub fn raise_into(fiber: Value, arguments: &[Value]) -> Result<(), Error> {
    fiber.funcall_public::<_, _, Value>("raise", arguments).map(|_| ())
}

/// `Fiber#kill` of the current fiber: the jump that ends it. `None` if the fiber was killed before and has swallowed
/// that.
pub fn kill_current(ruby: &Ruby) -> Option<Error> {
    current(ruby).funcall_public::<_, _, Value>("kill", ()).err()
}

/// Creates a non-blocking fiber that has not started yet and runs `BODY`. `storage` is what `Fiber.new(storage:)`
/// takes; `true` inherits a copy of the current fiber's.
pub fn spawn<B: FiberBody>(callback: Value, storage: Value) -> Result<Value, Error> {
    // SAFETY: `main` has the signature of a block function; an exception (no memory) stops at `protect`.
    protect(|| unsafe { rb_sys::rb_fiber_new_storage(Some(main::<B>), callback.as_raw(), storage.as_raw()) })
        // SAFETY: a fiber, just made.
        .map(|raw| unsafe { Value::from_raw(raw) })
}

/// The code of each fiber of `Fiber.schedule`: see `lib/heddle/fiber_body.rb`.
static CODE: Constant = Constant::new(&["Heddle", "FiberBody", "CODE"]);

/// Creates a non-blocking fiber that has not started yet, and runs that code. `storage` is what `Fiber.new(storage:)`
/// takes; without it, the fiber inherits a copy of the current one's.
pub fn spawn_scheduled(ruby: &Ruby, storage: Option<Value>) -> Result<Value, Error> {
    let code = CODE.get(ruby)?;
    match storage {
        None => spawn_with(ruby, code, &[]),
        Some(storage) => {
            let keywords = ruby.hash_new();
            keywords.aset(ruby.to_symbol("storage"), storage)?;
            spawn_with(ruby, code, &[keywords.as_value()])
        }
    }
}

/// `Fiber.new(**keywords, &code)`. `keywords` is empty, or a Hash.
fn spawn_with(ruby: &Ruby, code: Value, keywords: &[Value]) -> Result<Value, Error> {
    let class: RClass = FIBER.get(ruby)?;
    let has_keywords = c_int::from(!keywords.is_empty());
    // SAFETY: called with the GVL on a class that is never collected, and on a Proc; a `Value` is a VALUE and nothing
    // else; an exception stops at `protect`.
    let made = protect(|| unsafe {
        let (class, arguments) = (class.as_raw(), keywords.as_ptr().cast());
        rb_sys::rb_funcall_with_block_kw(class, new_name(ruby), has_keywords, arguments, code.as_raw(), has_keywords)
    })?;
    // SAFETY: what a method has returned is a valid object.
    let made = unsafe { Value::from_raw(made) };
    // The program may have replaced `Fiber.new`.
    expect_fiber(ruby, made).map(|()| made)
}

fn new_name(ruby: &Ruby) -> rb_sys::ID {
    static NAME: OnceLock<rb_sys::ID> = OnceLock::new();
    interned(ruby, &NAME, "new")
}

/// The code of a fiber.
pub trait FiberBody {
    /// Runs in the new fiber. `callback` is the object passed to [`spawn`], `arguments` those of the first transfer.
    /// None of them is collected before the fiber ends. An error ends the fiber, and Ruby raises it in the fiber to
    /// which it switches next.
    fn run(ruby: &Ruby, callback: Value, arguments: &[Value]) -> Result<Value, Error>;
}

unsafe extern "C" fn main<B: FiberBody>(_: VALUE, callback: VALUE, argc: c_int, argv: *const VALUE, _: VALUE) -> VALUE {
    // SAFETY: Ruby calls this, so its thread is here and holds the GVL.
    let ruby = unsafe { Ruby::get_unchecked() };
    let result = std::panic::catch_unwind(|| {
        /// The limit of [`start`].
        const MAX_ARGUMENTS: usize = 3;
        let mut arguments = [ruby.qnil().as_value(); MAX_ARGUMENTS];
        let count = (argc as usize).min(MAX_ARGUMENTS);
        for (index, argument) in arguments[..count].iter_mut().enumerate() {
            // SAFETY: Ruby passes `argc` valid objects. They are copied to this stack, where the collector finds
            // them, as their Array may be collected.
            *argument = unsafe { Value::from_raw(*argv.add(index)) };
        }
        // SAFETY: the object that `spawn` was given.
        let callback = unsafe { Value::from_raw(callback) };
        let result = B::run(&ruby, callback, &arguments[..count]);
        // This use keeps them on the stack until here, so they live as long as the body.
        std::hint::black_box((callback, &arguments));
        result
    });
    match result {
        Ok(Ok(value)) => value.as_raw(),
        // SAFETY: this is the outermost Rust frame of the fiber, and all that it owned was dropped with the closure.
        Ok(Err(error)) => unsafe { raise(error) },
        // SAFETY: as above.
        Err(panic) => unsafe { raise(from_panic(&ruby, panic)) },
    }
}

fn from_panic(ruby: &Ruby, panic: Box<dyn std::any::Any + Send>) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .map(|message| (*message).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic".to_owned());
    error::of(ruby.exception_fatal(), message)
}

/// A fiber that ends immediately. A switch to it makes Ruby switch to the fiber that runs whenever a fiber ends: the
/// root, or the innermost fiber that the root has resumed. Ruby does not tell in another way which fiber that is.
///
/// Making a fiber handles interrupts, so it must be made before an interrupt needs it.
pub fn fall_back_fiber(ruby: &Ruby) -> Result<Value, Error> {
    struct Nothing;
    impl FiberBody for Nothing {
        fn run(ruby: &Ruby, _: Value, _: &[Value]) -> Result<Value, Error> {
            Ok(ruby.qnil().as_value())
        }
    }
    let nil = ruby.qnil().as_value();
    spawn::<Nothing>(nil, nil)
}
