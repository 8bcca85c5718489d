//! The internals of Ruby on which Heddle depends although Ruby may change them: the wording of errors, names, and
//! structures.
//!
//! `docs/internals/ruby-insides.md` lists all of them, with the consequences on a Ruby that differs.
//! `spec/project/ruby_insides_spec.rb` fails on such a Ruby, as it compares the result of `Heddle::Native.insides` with
//! Ruby.

use std::sync::OnceLock;

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Ruby, Value, prelude::*};
use rb_sys::stable_api::StableApiDefinition;
use rustc_hash::FxHashSet;

use super::value::Registered;

/// In the FiberError for a switch to a fiber that has resumed another one, or has yielded.
pub const REFUSED_TRANSFER: &str = "attempt to transfer to a ";

/// In the FiberError for `Fiber.yield` in a fiber that no other fiber has resumed.
pub const REFUSED_YIELD: &str = "yield";

/// In the FiberErrors for a fiber's stack that cannot be allocated. The last is Ruby 4.1's.
pub const NO_STACK: [&str; 3] = ["can't alloc machine stack", "can't set a guard page", "can't allocate fiber stack"];

/// The message of the FiberError for a fiber that was allocated and not initialized.
pub const UNINITIALIZED: &str = "uninitialized fiber";

/// The message of the IOError in a thread that waits on an IO which another thread closes.
pub const CLOSED: &str = "stream closed in another thread";

/// The message of `IO::TimeoutError`.
pub const TIMED_OUT: &str = "Blocking operation timed out!";

/// What `rb_profile_frame_absolute_path` and `rb_profile_frame_path` return for a method written in C.
pub const NATIVE_PATH: &str = "<cfunc>";

/// How the path begins of a method that is part of Ruby and written in Ruby.
pub const OWN_PATHS: &str = "<internal:";

/// How any TracePoint's description begins in a fiber where a hook of `TracePoint.new(:raise)` runs.
pub const RAISE_HOOK: &str = "#<TracePoint:raise ";

/// What a Mutex has that a fiber holds on Ruby 3.3 and 3.4: the address of Ruby's record of the fiber. Not to be read
/// from.
pub fn fiber_address(fiber: Value) -> usize {
    data(fiber).addr()
}

/// What a Mutex has that a fiber holds on Ruby 4.0: the number that Ruby has given to the fiber, if it is found. The
/// record has its own address, then the thread's, and then this number. On another Ruby this is some other word of the
/// record.
pub fn fiber_serial(fiber: Value) -> Option<usize> {
    /// How much of the record is looked at. It has several buffers of registers, and so is longer by far.
    const WORDS: usize = 32;
    let record = data(fiber);
    if record.is_null() {
        return None;
    }
    // SAFETY: the record has so many words, as said above; any word is a number.
    let word = |index: usize| unsafe { record.add(index).read_volatile() };
    let own = (0..WORDS - 2).find(|index| word(*index) == record.addr())?;
    Some(word(own + 2))
}

/// What tells which fiber holds the Mutex: on Ruby 3.3 and 3.4 [`fiber_address`], and on Ruby 4.0 [`fiber_serial`].
/// Another Ruby may store something else: only what a known fiber has means anything.
pub fn holder_number(mutex: Value) -> usize {
    let record = data(mutex);
    // SAFETY: a Mutex's data has several words. The first is read and not followed.
    if record.is_null() { 0 } else { unsafe { record.read() } }
}

/// The data of an object that Ruby defines with data: a fiber or a Mutex.
fn data(object: Value) -> *mut usize {
    // SAFETY: the callers pass such objects.
    unsafe { rb_sys::stable_api::get_default().rtypeddata_get_data(object.as_raw()) }.cast()
}

/// How Ruby stores Mutexes: the first word of a Mutex's data tells the holder; one links it to the next Mutex that the
/// same thread holds; two are the ring of its waiters, whose other links are on the waiters' stacks.
#[derive(Debug, Clone, Copy)]
pub struct Mutexes {
    /// What the first word is for a fiber.
    number_of: fn(Value) -> Option<usize>,
    /// Which word is the link.
    next: usize,
    /// Which word is the first of the ring.
    waiters: usize,
}

static MUTEXES: OnceLock<Option<Mutexes>> = OnceLock::new();
/// A Mutex that [`Mutexes::abandon`] alone locks.
static PROBE: Registered = Registered::new();

impl Mutexes {
    /// The layout, if it has been found.
    pub fn layout(_: &Ruby) -> Option<Self> {
        MUTEXES.get().copied().flatten()
    }

    /// Finds the layout by trying, at the first call, when Heddle is loaded. `holder` is a suspended fiber that holds
    /// `held`; `current` is the current fiber.
    ///
    /// # Errors
    /// NoMemoryError.
    pub fn find(current: Value, holder: Value, held: Value) -> Result<(), Error> {
        if MUTEXES.get().is_some() {
            return Ok(());
        }
        let probe = new_mutex()?;
        PROBE.get_or_register(probe);
        let found = Self::look(current, holder, held, [probe, new_mutex()?]);
        MUTEXES.get_or_init(|| found.filter(|layout| layout.is_right(holder, held)));
        Ok(())
    }

    fn look(current: Value, holder: Value, held: Value, [first, second]: [Value; 2]) -> Option<Self> {
        // SAFETY: the data of a Mutex has four words on Ruby 3.3, and more on later ones. The words that only later
        // ones have are read if those before are not what was looked for.
        let word = |mutex: Value, index: usize| unsafe { data(mutex).add(index).read_volatile() };
        let own = |mutex: Value, index: usize| data(mutex).wrapping_add(index).addr();
        let is_ring = |index: usize| (0..2).all(|link| word(first, index + link) == own(first, index));
        let waiters = (1..=3).find(|index| is_ring(*index))?;
        let was_free = word(first, 0) == 0;
        if !try_lock(first) {
            return None;
        }
        let next = if try_lock(second) {
            let link = (1..waiters).find(|index| word(second, *index) == data(first).addr());
            unlock(second);
            link
        } else {
            None
        };
        let numbers: [fn(Value) -> Option<usize>; 2] = [|fiber| Some(fiber_address(fiber)), fiber_serial];
        let tells = |number: &fn(Value) -> Option<usize>| {
            number(current) == Some(word(first, 0)) && number(holder) == Some(word(held, 0))
        };
        let number_of = numbers.into_iter().find(tells);
        unlock(first);
        let is_free = word(first, 0) == 0 && next.is_some_and(|next| word(second, next) == 0);
        Some(Mutexes { number_of: number_of.filter(|_| was_free && is_free)?, next: next?, waiters })
    }

    /// Whether the fiber's Mutex is free after [`Mutexes::abandon`], and can be locked.
    fn is_right(self, holder: Value, held: Value) -> bool {
        let Some(number) = self.number_of(holder) else { return false };
        self.abandon(&FxHashSet::from_iter([number]), &Ruby::get_with(held));
        let is_free = try_lock(held);
        if is_free {
            unlock(held);
        }
        is_free
    }

    /// What tells that this fiber holds a Mutex.
    pub fn number_of(self, fiber: Value) -> Option<usize> {
        (self.number_of)(fiber)
    }

    /// Frees the Mutexes that the current thread holds by fibers with these numbers, as Ruby frees those of threads
    /// that a fork has ended. All its Mutexes lose their waiters, which are fibers and threads of the parent of this
    /// process. Neither raises nor allocates.
    pub fn abandon(self, lost: &FxHashSet<usize>, ruby: &Ruby) {
        let Some(probe) = PROBE.get(ruby).map(|probe| probe.get()).filter(|probe| try_lock(*probe)) else { return };
        let mut before = data(probe);
        // SAFETY: the link leads to the Mutex that the thread had locked before, if there is one: the thread's list has
        // no Mutex that has been freed. `look` and `is_right` have found which word is which.
        unsafe {
            while let mutex = before.add(self.next).read() as *mut usize
                && !mutex.is_null()
            {
                self.forget_waiters_at(mutex);
                if lost.contains(&mutex.read()) {
                    before.add(self.next).write(mutex.add(self.next).read());
                    mutex.add(self.next).write(0);
                    mutex.write(0);
                } else {
                    before = mutex;
                }
            }
        }
        unlock(probe);
    }

    /// `blocker` was what a fiber of the parent of this process waits for. If it is a Mutex, it loses its waiters.
    pub fn forget_waiters(self, blocker: Value, ruby: &Ruby) {
        let Some(probe) = PROBE.get(ruby) else { return };
        if has_type_of(blocker, probe.get()) && !data(blocker).is_null() {
            // SAFETY: it is a Mutex, with Ruby's data for one.
            unsafe { self.forget_waiters_at(data(blocker)) };
        }
    }

    /// # Safety
    /// It is the data of a Mutex.
    unsafe fn forget_waiters_at(self, mutex: *mut usize) {
        // SAFETY: the ring's two words, which lead to itself if it is empty.
        unsafe {
            let ring = mutex.add(self.waiters);
            ring.write(ring.addr());
            ring.add(1).write(ring.addr());
        }
    }
}

fn new_mutex() -> Result<Value, Error> {
    // SAFETY: called with the GVL; what it raises stops at `protect`; a valid object.
    protect(|| unsafe { rb_sys::rb_mutex_new() }).map(|mutex| unsafe { Value::from_raw(mutex) })
}

fn try_lock(mutex: Value) -> bool {
    // SAFETY: called with the GVL on a Mutex; neither raises nor waits.
    unsafe { Value::from_raw(rb_sys::rb_mutex_trylock(mutex.as_raw())) }.to_bool()
}

/// The current fiber holds the Mutex, and no other fiber waits for it.
fn unlock(mutex: Value) {
    // SAFETY: called with the GVL; raises only where the current fiber does not hold the Mutex.
    unsafe { rb_sys::rb_mutex_unlock(mutex.as_raw()) };
}

/// Whether an object has data of the same type as `other`, which has data.
fn has_type_of(object: Value, other: Value) -> bool {
    let (ruby, object, other) = (rb_sys::stable_api::get_default(), object.as_raw(), other.as_raw());
    // SAFETY: called with the GVL on valid objects, and each check runs only if the one before it is true, as Ruby's
    // own macros require.
    unsafe {
        ruby.type_p(object, rb_sys::ruby_value_type::RUBY_T_DATA)
            && ruby.rtypeddata_p(object)
            && ruby.rtypeddata_type(object) == ruby.rtypeddata_type(other)
    }
}
