//! The masks of `Thread.handle_interrupt`, for each fiber.
//!
//! Ruby keeps all masks of a thread on one stack, without regard to fibers. A fiber that waits within such a block
//! would mask other fibers' exceptions, too, and the first block to end would pop another fiber's mask. So each fiber's
//! masks are removed from the stack when the fiber is switched away from, and restored when it runs again. The root's
//! masks stay, as a scheduler's fibers run within the root's blocks.

use magnus::gc::Marker;
use magnus::r_hash::ForEach;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RArray, RHash, Ruby, Value, block::Proc, prelude::*};

use super::gvl::assert_stays_with_gvl;
use super::hidden_variable::HiddenVariable;
use super::outcome::RubyOutcome;
use super::value::{PinnedValue, Registered, same};
use super::{error, thread};

const NO_MEMORY: &str = "no memory";

static STACK: HiddenVariable = HiddenVariable::new("heddle_masks");
/// The program's own mask that a [`gated`] one stands for.
static PROGRAMS: HiddenVariable = HiddenVariable::new("heddle_programs_mask");
/// What the gated masks are copies of.
static GATED: Registered = Registered::new();
/// What stands for frozen masks, by these: they are constants of programs, which use them again and again.
static KNOWN: Registered = Registered::new();

/// The mask stack of a thread, which must be marked as long as this lives.
#[derive(Debug, Clone, Copy)]
pub struct Masks(PinnedValue);

assert_stays_with_gvl!(Masks);

/// A suspended fiber's masks. Must be kept on the fiber's machine stack, where the garbage collector finds them.
#[derive(Debug)]
pub struct SavedMasks(RArray);

impl Masks {
    /// The current thread's, if [`pending_interrupts::find`](super::pending_interrupts::find) has found it.
    pub fn of_thread(ruby: &Ruby) -> Option<Self> {
        RArray::from_value(STACK.get(thread::current(ruby)))
            // SAFETY: on the stack, or stored in `Preemption::masks`, which the scheduler marks by `Masks::mark`.
            .map(|stack| Masks(unsafe { PinnedValue::assume_marked(stack) }))
    }

    /// Attaches the stack to its thread, for [`Masks::of_thread`].
    pub fn remember(thread: Value, stack: RArray) {
        STACK.set(thread, stack.as_value()).not_an_interrupt("a frozen thread, whose stack then stays unknown");
    }

    /// Puts gated masks in the place of those that are on the stack.
    ///
    /// # Errors
    /// No memory.
    pub fn gate(self, ruby: &Ruby) -> Result<(), Error> {
        let Some(stack) = self.stack() else { return Ok(()) };
        for index in 1..self.len() {
            let mask: Value = stack.entry(index as isize)?;
            if !same(programs(mask), mask) {
                continue;
            }
            stack.store(index as isize, gated(ruby, mask)?)?;
        }
        Ok(())
    }

    /// Tells the garbage collector that the stack is in use.
    pub fn mark(self, marker: &Marker) {
        self.0.mark(marker);
    }

    /// The number of masks.
    #[inline]
    pub fn len(self) -> usize {
        // SAFETY: an Array, by `of_thread`.
        unsafe { rb_sys::RARRAY_LEN(self.0.get().as_raw()) as usize }
    }

    /// Removes all masks above the lowest `keep`. `None` if there are fewer, or there is no memory to save them.
    #[cold]
    pub fn save(self, ruby: &Ruby, keep: usize) -> Option<SavedMasks> {
        let stack = self.stack()?;
        let count = self.len().checked_sub(keep)?;
        let saved = ruby.ary_new_capa(count);
        for index in keep..self.len() {
            saved.push(mask_at(stack, index)?).not_an_interrupt(NO_MEMORY)?;
        }
        for _ in 0..count {
            stack.pop::<Value>().not_an_interrupt(NO_MEMORY)?;
        }
        Some(SavedMasks(saved))
    }

    /// Puts saved masks back on the stack.
    #[cold]
    pub fn restore(self, saved: SavedMasks) {
        if let Some(stack) = self.stack() {
            stack.concat(saved.0).not_an_interrupt("never: the Array had room for them before");
        }
    }

    /// Calls the function, which neither adds a mask nor switches, while Ruby asks `mask` before all others.
    ///
    /// # Errors
    /// Those of the function; no memory.
    pub fn with_first<T>(self, mask: Value, function: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let Some(stack) = self.stack() else { return function() };
        stack.push(mask)?;
        function().and_ensure(|| stack.pop::<Value>().map(|_| ()))
    }

    /// Whether Ruby would defer an exception, or one of this class, if it were raised at the thread now.
    pub fn defer(self, ruby: &Ruby, exception: Value) -> bool {
        let immediate = ruby.to_symbol("immediate").as_value();
        self.timing(exception).is_some_and(|timing| !same(timing, immediate))
    }

    /// Like [`Masks::defer`], if the thread waited.
    pub fn defer_in_wait(self, ruby: &Ruby, exception: Value) -> bool {
        let never = ruby.to_symbol("never").as_value();
        self.timing(exception).is_some_and(|timing| same(timing, never))
    }

    fn timing(self, exception: Value) -> Option<Value> {
        if self.len() == 0 {
            return None;
        }
        let ancestors = error::class_of(exception).ancestors();
        let stack = self.stack()?;
        (0..self.len()).rev().find_map(|index| {
            let mask = programs(mask_at(stack, index)?);
            let for_class = |masks: RHash| ancestors.into_iter().find_map(|ancestor| masks.get(ancestor));
            // A mask for all exceptions is the timing itself, without a Hash.
            RHash::from_value(mask).map_or(Some(mask), for_class)
        })
    }

    fn stack(self) -> Option<RArray> {
        RArray::from_value(self.0.get())
    }
}

/// Makes a Hash whose default proc is this one the model of all gated masks.
///
/// # Errors
/// No memory.
pub fn set_gated(ruby: &Ruby, ask: Proc) -> Result<(), Error> {
    let model = ruby.hash_new();
    model.funcall::<_, _, Value>("compare_by_identity", ())?;
    model.funcall::<_, _, Value>("default_proc=", (ask,))?;
    GATED.get_or_register(model.as_value());
    let known = ruby.hash_new();
    known.funcall::<_, _, Value>("compare_by_identity", ())?;
    KNOWN.get_or_register(known.as_value());
    Ok(())
}

/// Whether the mask holds everything back, and says no more. Calls no method.
pub fn masks_all(ruby: &Ruby, masks: RHash) -> bool {
    let timing: Option<Value> = if masks.len() == 1 { masks.get(ruby.class_object()) } else { None };
    timing.is_some_and(|timing| same(timing, ruby.sym_new("never").as_value()))
}

/// A mask that asks the gate before the program's. Ruby asks the innermost mask first, so one of the program's that
/// lets an exception through would let all of its class through, also those that are meant for other fibers.
///
/// # Errors
/// No memory.
pub fn gated(ruby: &Ruby, mask: Value) -> Result<Value, Error> {
    /// A program that makes frozen masks anew has no use for any of them twice.
    const MOST_KNOWN: usize = 100;
    let known = KNOWN.get(ruby).filter(|_| mask.is_frozen()).and_then(|known| RHash::from_value(known.get()));
    let Some(known) = known else { return make_gated(ruby, mask) };
    if let Some(gated) = known.get(mask) {
        return Ok(gated);
    }
    let gated = make_gated(ruby, mask)?;
    if known.len() < MOST_KNOWN {
        known.aset(mask, gated)?;
    }
    Ok(gated)
}

fn make_gated(ruby: &Ruby, mask: Value) -> Result<Value, Error> {
    let is_one_of = |timing: Value, names: &[&str]| names.iter().any(|name| same(timing, ruby.sym_new(*name)));
    let is_let_through = |timing| is_one_of(timing, &["immediate", "on_blocking"]);
    let Some(model) = GATED.get(ruby) else { return Ok(mask) };
    let Some(masks) = RHash::from_value(mask) else {
        return if is_let_through(mask) { wrap(model.get(), mask) } else { Ok(mask) };
    };
    let (mut lets_through, mut is_valid) = (false, true);
    masks.foreach(|_: Value, timing: Value| {
        lets_through |= is_let_through(timing);
        is_valid &= is_let_through(timing) || is_one_of(timing, &["never"]);
        Ok(ForEach::Continue)
    })?;
    if !(lets_through && is_valid) {
        return Ok(mask);
    }
    let kept = if mask.is_frozen() { mask } else { dup(mask)? };
    wrap(model.get(), kept)
}

fn wrap(model: Value, mask: Value) -> Result<Value, Error> {
    let wrapper = dup(model)?;
    PROGRAMS.set(wrapper, mask)?;
    wrapper.freeze();
    Ok(wrapper)
}

fn dup(hash: Value) -> Result<Value, Error> {
    // SAFETY: called with the GVL on a Hash; an exception stops at `protect`.
    let copy = protect(|| unsafe { rb_sys::rb_hash_dup(hash.as_raw()) })?;
    // SAFETY: Ruby has just returned it.
    Ok(unsafe { Value::from_raw(copy) })
}

/// What the program's mask says of this class alone, for a gated one.
pub fn programs_timing(gated: Value, class: Value) -> Option<Value> {
    let mask = PROGRAMS.get(gated);
    match RHash::from_value(mask) {
        Some(masks) => masks.get(class),
        // For all exceptions.
        None if mask.is_nil() || same(class, Ruby::get_with(class).class_integer().as_value()) => None,
        None => Some(mask),
    }
}

/// The program's own mask.
fn programs(mask: Value) -> Value {
    let own = PROGRAMS.get(mask);
    if own.is_nil() { mask } else { own }
}

fn mask_at(stack: RArray, index: usize) -> Option<Value> {
    stack.entry(index as isize).not_an_interrupt("never: every object is a Value")
}
