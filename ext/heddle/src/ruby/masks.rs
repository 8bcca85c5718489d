//! What the fiber that runs masks by `Thread.handle_interrupt`.
//!
//! Ruby keeps the masks of a thread on one stack, whichever fiber has put them there. Who waits within such a block would
//! mask the others' exceptions, too, and the first block to end would take off the mask of another one. So each fiber
//! takes its own masks along when it gives its turn away. Those of the root stay, since all that is run by a scheduler
//! runs within what the root does.

use magnus::{RArray, RClass, RHash, Ruby, Value, prelude::*};

use super::hidden_variable::HiddenVariable;
use super::thread;
use super::value::{PinnedValue, same};

static STACK: HiddenVariable = HiddenVariable::new("heddle_masks");

/// The stack of a thread. Valid as long as it is marked.
#[derive(Debug, Clone, Copy)]
pub struct Masks(PinnedValue);

/// Those that a fiber has taken along. To be kept on the stack, where the garbage collector finds them.
#[derive(Debug)]
pub struct PutAway(RArray);

impl Masks {
    /// The current thread's, if [`pending_interrupts::find`](super::pending_interrupts::find) has found it.
    pub fn of_thread() -> Option<Self> {
        RArray::from_value(STACK.of(thread::current())).map(|stack| Masks(PinnedValue::new(stack.as_value())))
    }

    /// Leaves the stack with its thread, so that it is known as long as the thread lives.
    pub fn remember(thread: PinnedValue, stack: RArray) {
        // A thread that is frozen takes no note.
        let _ = STACK.leave(thread, stack.as_value());
    }

    /// The stack itself, to be marked.
    pub fn held(self) -> PinnedValue {
        self.0
    }

    /// How many there are.
    #[inline]
    pub fn len(self) -> usize {
        // SAFETY: an Array, by `of_thread`.
        unsafe { rb_sys::RARRAY_LEN(self.0.raw()) as usize }
    }

    /// Takes off all but the first `stay`. `None` if there are not so many, or there is no memory to note them.
    #[cold]
    pub fn put_away(self, ruby: &Ruby, stay: usize) -> Option<PutAway> {
        let stack = self.stack()?;
        let count = self.len().checked_sub(stay)?;
        let away = ruby.ary_new_capa(count);
        for place in stay..self.len() {
            away.push(stack.entry::<Value>(place as isize).ok()?).ok()?;
        }
        for _ in 0..count {
            stack.pop::<Value>().ok()?;
        }
        Some(PutAway(away))
    }

    /// Puts them on again.
    #[cold]
    pub fn put_back(self, away: PutAway) {
        if let Some(stack) = self.stack() {
            // There was room for them before.
            let _ = stack.concat(away.0);
        }
    }

    /// Whether Ruby would put off an exception, or one of a class, that is raised at the thread now.
    pub fn defer(self, ruby: &Ruby, exception: Value) -> bool {
        if self.len() == 0 {
            return false;
        }
        let class = RClass::from_value(exception).unwrap_or_else(|| exception.class());
        let ancestors = class.ancestors();
        let Some(stack) = self.stack() else { return false };
        let timing = (0..self.len()).rev().find_map(|place| {
            let mask = stack.entry::<Value>(place as isize).ok()?;
            let for_class = |masks: RHash| ancestors.into_iter().find_map(|ancestor| masks.get(ancestor));
            // A mask for all exceptions is noted without the class.
            RHash::from_value(mask).map_or(Some(mask), for_class)
        });
        let immediate = ruby.to_symbol("immediate").as_value();
        timing.is_some_and(|timing| !same(timing, immediate))
    }

    fn stack(self) -> Option<RArray> {
        RArray::from_value(self.0.get())
    }
}
