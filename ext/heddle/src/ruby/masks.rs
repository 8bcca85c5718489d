//! The masks of `Thread.handle_interrupt`, for each fiber.
//!
//! Ruby keeps all masks of a thread on one stack, without regard to fibers. A fiber that waits within such a block
//! would mask other fibers' exceptions, too, and the first block to end would pop another fiber's mask. So each fiber's
//! masks are removed from the stack when the fiber is switched away from, and restored when it runs again. The root's
//! masks stay, as a scheduler's fibers run within the root's blocks.

use magnus::gc::Marker;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RClass, RHash, Ruby, Value, prelude::*};

use super::gvl::assert_stays_with_gvl;
use super::hidden_variable::HiddenVariable;
use super::outcome::RubyOutcome;
use super::thread;
use super::value::{PinnedValue, same};

const NO_MEMORY: &str = "no memory";

static STACK: HiddenVariable = HiddenVariable::new("heddle_masks");

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
        let class = RClass::from_value(exception).unwrap_or_else(|| exception.class());
        let ancestors = class.ancestors();
        let stack = self.stack()?;
        (0..self.len()).rev().find_map(|index| {
            let mask = mask_at(stack, index)?;
            let for_class = |masks: RHash| ancestors.into_iter().find_map(|ancestor| masks.get(ancestor));
            // A mask for all exceptions is the timing itself, without a Hash.
            RHash::from_value(mask).map_or(Some(mask), for_class)
        })
    }

    fn stack(self) -> Option<RArray> {
        RArray::from_value(self.0.get())
    }
}

fn mask_at(stack: RArray, index: usize) -> Option<Value> {
    stack.entry(index as isize).not_an_interrupt("never: every object is a Value")
}
