//! Methods that want something else of a hook than the others do. Ruby does not tell a hook what it is called for, but
//! the method that called it can be seen on the stack.

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;

use crate::ruby::{frames, gc};

/// Methods of others than `Zlib` whose work without the GVL takes long.
const LONG: [&str; 10] = [
    "IO::Buffer#copy",
    "IO#fsync",
    "IO#fdatasync",
    "File#flock",
    "Integer#/",
    "Integer#%",
    "Integer#div",
    "Integer#divmod",
    "Integer#modulo",
    "Integer#remainder",
];
/// Methods that raise EAGAIN if `io_read` and `io_write` answer that, although without a scheduler they wait.
const WAITING: [&str; 2] = ["IO#sysread", "IO#syswrite"];
/// What is known is remembered by method, but not without end.
const MOST_METHODS: usize = 1024;

/// What is known of a method.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traits {
    /// Its work without the GVL is worth another thread. Of use to `blocking_operation_wait`, where that exists.
    #[cfg_attr(all(ruby_gte_3_4, not(ruby_gte_4_0)), expect(dead_code))]
    pub takes_long: bool,
    /// It takes EAGAIN for an error.
    pub expects_to_wait: bool,
    /// It sleeps for its own sake, and not as a part of waiting for something.
    pub just_sleeps: bool,
    /// It hands EAGAIN to its caller instead of waiting for the IO next.
    pub never_waits: bool,
    /// It reads into, or writes from, an `IO::Buffer` of the program's.
    pub lends_own_buffer: bool,
}

/// What is known of the methods that have called.
#[derive(Debug, Default)]
pub struct Callers {
    known: FxHashMap<u64, Traits>,
    /// How many garbage collections there had been when it was found out: after one more, a number may mean another
    /// method.
    collections: u64,
}

/// The method that called the hook that is running, looked up once at most.
pub struct CallSite<'a> {
    callers: &'a RefCell<Callers>,
    traits: Cell<Option<Traits>>,
}

impl<'a> CallSite<'a> {
    /// Looks nothing up yet.
    pub fn new(callers: &'a RefCell<Callers>) -> Self {
        CallSite { callers, traits: Cell::new(None) }
    }

    /// What is known of the method.
    #[inline]
    pub fn traits(&self) -> Traits {
        self.traits.get().unwrap_or_else(|| {
            let traits = Callers::traits(self.callers);
            self.traits.set(Some(traits));
            traits
        })
    }
}

impl Callers {
    /// Of the method that called the hook that is running.
    pub fn traits(cell: &RefCell<Callers>) -> Traits {
        let Some(caller) = frames::caller() else { return Traits::default() };
        {
            let mut callers = cell.borrow_mut();
            let collections = gc::collections();
            if callers.collections != collections {
                callers.collections = collections;
                callers.known.clear();
            }
            if let Some(traits) = callers.known.get(&caller.id()) {
                return *traits;
            }
        }
        let name = caller.method_name().unwrap_or_default();
        let traits = Traits {
            takes_long: name.starts_with("Zlib") || LONG.contains(&name.as_str()),
            expects_to_wait: WAITING.contains(&name.as_str()),
            just_sleeps: matches!(name.as_str(), "Kernel#sleep" | "Kernel.sleep"),
            never_waits: name.contains("nonblock"),
            lends_own_buffer: name.starts_with("IO::Buffer#"),
        };
        let mut callers = cell.borrow_mut();
        // The name is a new String, so there may have been a collection.
        if callers.known.len() < MOST_METHODS && callers.collections == gc::collections() {
            callers.known.insert(caller.id(), traits);
        }
        traits
    }
}
