//! Detecting that this process is a forked child.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of forks between the process that loaded Heddle and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// A number that changes in a forked child, and only there. Costs a load from memory.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// What a child does first.
static RESET: OnceLock<fn()> = OnceLock::new();

/// Starts counting forks. `reset` is called in each child, and may use atomics and async-signal-safe functions alone,
/// which are safe in a child of a threaded process.
pub fn watch(reset: fn()) {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        RESET.get().inspect(|reset| reset());
    }

    let is_first = RESET.get().is_none();
    RESET.get_or_init(|| reset);
    if is_first {
        // SAFETY: the handler does only what a forked child may, by this function's contract. Ruby never unloads an
        // extension, so the handler's code stays loaded.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}
