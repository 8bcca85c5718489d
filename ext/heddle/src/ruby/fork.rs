//! Detecting that this process is a forked child.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ticker::throttle;

/// The number of forks between the process that loaded Heddle and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// A number that changes in a forked child, and only there. Costs a load from memory.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Starts counting forks.
pub fn watch() {
    static ONCE: Once = Once::new();

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        throttle::reset();
    }

    ONCE.call_once(|| {
        // SAFETY: the handler uses atomics alone, which are safe in a child of a threaded process. Ruby never unloads
        // an extension, so the handler's code stays loaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
