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
pub struct CallSiteTraits {
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
pub struct CallSites {
    known: FxHashMap<u64, CallSiteTraits>,
    /// How many garbage collections there had been when it was found out: after one more, a number may mean another
    /// method.
    collections: u64,
}

/// The method that called the hook that is running, looked up once at most.
pub struct CallSite<'a> {
    call_sites: &'a RefCell<CallSites>,
    traits: Cell<Option<CallSiteTraits>>,
}

impl<'a> CallSite<'a> {
    /// Looks nothing up yet.
    pub fn new(call_sites: &'a RefCell<CallSites>) -> Self {
        CallSite { call_sites, traits: Cell::new(None) }
    }

    /// What is known of the method.
    #[inline]
    pub fn traits(&self) -> CallSiteTraits {
        self.traits.get().unwrap_or_else(|| {
            let traits = CallSites::traits(self.call_sites);
            self.traits.set(Some(traits));
            traits
        })
    }
}

impl CallSites {
    /// Of the method that called the hook that is running.
    pub fn traits(cell: &RefCell<CallSites>) -> CallSiteTraits {
        let Some(caller) = frames::caller() else { return CallSiteTraits::default() };
        {
            let mut call_sites = cell.borrow_mut();
            let collections = gc::collections();
            if call_sites.collections != collections {
                call_sites.collections = collections;
                call_sites.known.clear();
            }
            if let Some(traits) = call_sites.known.get(&caller.id()) {
                return *traits;
            }
        }
        let name = caller.method_name().unwrap_or_default();
        let traits = CallSiteTraits {
            takes_long: name.starts_with("Zlib") || LONG.contains(&name.as_str()),
            expects_to_wait: WAITING.contains(&name.as_str()),
            just_sleeps: matches!(name.as_str(), "Kernel#sleep" | "Kernel.sleep"),
            never_waits: name.contains("nonblock"),
            lends_own_buffer: name.starts_with("IO::Buffer#"),
        };
        let mut call_sites = cell.borrow_mut();
        // The name is a new String, so there may have been a collection.
        if call_sites.known.len() < MOST_METHODS && call_sites.collections == gc::collections() {
            call_sites.known.insert(caller.id(), traits);
        }
        traits
    }
}
