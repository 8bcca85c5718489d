//! Methods for which a hook must act in another way than for most. Ruby does not tell a hook which method called it,
//! but that method's frame is on the stack.

use std::cell::RefCell;

use magnus::Ruby;
use magnus::gc::Marker;
use rustc_hash::FxHashMap;

use crate::ruby::frames::{self, Frame};

/// Methods, besides those of `Zlib`, whose work without the GVL takes long.
const LONG: [&str; 7] = [
    "IO::Buffer#copy",
    "Integer#/",
    "Integer#%",
    "Integer#div",
    "Integer#divmod",
    "Integer#modulo",
    "Integer#remainder",
];
/// Methods that wait without a scheduler, but raise EAGAIN if `io_read` or `io_write` returns that.
const WAITING: [&str; 2] = ["IO#sysread", "IO#syswrite"];
/// Methods that unlock a Mutex, sleep, and lock it again.
const LOCKING_AGAIN: [&str; 2] = ["Thread::Mutex#sleep", "Thread::ConditionVariable#wait"];
/// How many methods are cached. The cache keeps them alive, so it is cleared when it has reached this size.
const MAX_METHODS: usize = 256;
/// How many frames are looked at for the method that called an overridden hook.
const MAX_FRAMES: usize = 8;

/// What a hook must know of the method that called it.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallSiteTraits {
    /// Its work without the GVL takes long enough for another thread. For `blocking_operation_wait`, where that exists.
    #[cfg_attr(all(ruby_gte_3_4, not(ruby_gte_4_0)), expect(dead_code))]
    pub takes_long: bool,
    /// It raises EAGAIN instead of waiting, so the hook must wait.
    pub expects_to_wait: bool,
    /// It only sleeps, and does not wait for an event.
    pub is_plain_sleep: bool,
    /// It waits for a Mutex only to lock it again.
    pub locks_again: bool,
    /// It passes EAGAIN to its caller instead of waiting for the IO.
    pub never_waits: bool,
    /// It passes an `IO::Buffer` of the program to the hook.
    pub lends_own_buffer: bool,
    /// It is a method or a block of the program: of a subclass of `Heddle::Scheduler` that overrides the hook and
    /// calls `super`. The method that called the hook is further out.
    overrides_hook: bool,
}

/// A cache of the methods that have called hooks. It is marked with its scheduler, so that a garbage collection neither
/// frees nor moves a cached method, whose address another method could have then.
#[derive(Debug, Default)]
pub struct CallSites(FxHashMap<Frame, CallSiteTraits>);

impl CallSites {
    /// The traits of the method that called the current hook.
    pub fn traits(ruby: &Ruby, cell: &RefCell<CallSites>) -> CallSiteTraits {
        let Some(caller) = frames::caller(ruby) else { return CallSiteTraits::default() };
        let traits = CallSites::traits_of(caller, cell);
        if traits.overrides_hook { CallSites::traits_beyond_override(ruby, cell) } else { traits }
    }

    /// The traits of the method that called the outermost override of the current hook.
    #[cold]
    fn traits_beyond_override(ruby: &Ruby, cell: &RefCell<CallSites>) -> CallSiteTraits {
        let mut callers = frames::callers::<MAX_FRAMES>(ruby).map(|frame| CallSites::traits_of(frame, cell));
        callers.find(|traits| !traits.overrides_hook).unwrap_or_default()
    }

    #[inline(always)]
    fn traits_of(caller: Frame, cell: &RefCell<CallSites>) -> CallSiteTraits {
        let known = cell.borrow().0.get(&caller).copied();
        known.unwrap_or_else(|| CallSites::learn(caller, cell))
    }

    #[cold]
    #[inline(never)]
    fn learn(caller: Frame, cell: &RefCell<CallSites>) -> CallSiteTraits {
        let name = caller.method_name().unwrap_or_default();
        let traits = CallSiteTraits {
            takes_long: name.starts_with("Zlib") || LONG.contains(&name.as_str()),
            expects_to_wait: WAITING.contains(&name.as_str()),
            is_plain_sleep: matches!(name.as_str(), "Kernel#sleep" | "Kernel.sleep"),
            locks_again: LOCKING_AGAIN.contains(&name.as_str()),
            never_waits: name.contains("nonblock"),
            lends_own_buffer: name.starts_with("IO::Buffer#"),
            overrides_hook: caller.is_of_program(),
        };
        let known = &mut cell.borrow_mut().0;
        if known.len() >= MAX_METHODS {
            known.clear();
        }
        known.insert(caller, traits);
        traits
    }

    /// Tells the garbage collector which methods are cached.
    pub fn mark(&self, marker: &Marker) {
        self.0.keys().for_each(|method| method.mark(marker));
    }
}
