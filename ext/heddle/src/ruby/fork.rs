//! Noticing that this process is a forked child.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ticker::throttle;

/// How many forks lie between the process that loaded Heddle and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Changes in a forked child, and only there. Costs a load from memory.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Starts counting.
pub fn watch() {
    static ONCE: Once = Once::new();

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        throttle::forget();
    }

    ONCE.call_once(|| {
        // SAFETY: the handler touches atomics alone, which is all that a child of a threaded process may do. Ruby
        // never unloads an extension, so the handler stays where it is.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
