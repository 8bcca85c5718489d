//! Methods for which a hook must act in another way than for most. Ruby does not tell a hook which method called it,
//! but that method's frame is on the stack.

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;

use crate::ruby::{frames, gc};

/// Methods, besides those of `Zlib`, whose work without the GVL takes long.
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
/// Methods that wait without a scheduler, but raise EAGAIN if `io_read` or `io_write` returns that.
const WAITING: [&str; 2] = ["IO#sysread", "IO#syswrite"];
/// How many methods are cached.
const MAX_METHODS: usize = 1024;

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
    /// It passes EAGAIN to its caller instead of waiting for the IO.
    pub never_waits: bool,
    /// It passes an `IO::Buffer` of the program to the hook.
    pub lends_own_buffer: bool,
}

/// A cache of the methods that have called hooks.
#[derive(Debug, Default)]
pub struct CallSites {
    known: FxHashMap<u64, CallSiteTraits>,
    /// The number of garbage collections when the cache was filled. After another one an id may name another method.
    collections: u64,
}

/// The method that called the current hook, looked up once at most.
pub struct CallSite<'a> {
    call_sites: &'a RefCell<CallSites>,
    traits: Cell<Option<CallSiteTraits>>,
}

impl<'a> CallSite<'a> {
    /// Looks nothing up yet.
    pub fn new(call_sites: &'a RefCell<CallSites>) -> Self {
        CallSite { call_sites, traits: Cell::new(None) }
    }

    /// The traits of the method.
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
    /// The traits of the method that called the current hook.
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
            is_plain_sleep: matches!(name.as_str(), "Kernel#sleep" | "Kernel.sleep"),
            never_waits: name.contains("nonblock"),
            lends_own_buffer: name.starts_with("IO::Buffer#"),
        };
        let mut call_sites = cell.borrow_mut();
        // Making the name, a new String, may have started a collection.
        if call_sites.known.len() < MAX_METHODS && call_sites.collections == gc::collections() {
            call_sites.known.insert(caller.id(), traits);
        }
        traits
    }
}
