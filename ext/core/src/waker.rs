//! How another thread ends the scheduler's wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What reaches into a blocking wait of one backend: an eventfd's write, a poller's notification.
pub trait Notify: Send + Sync {
    /// Makes the wait that is under way, or else the next one, return.
    fn notify(&self);
}

/// Ends a backend's wait. Costs a system call only if there is a wait to end.
///
/// The scheduler's thread `arm`s it, looks once more whether there is work, and only then waits. Who brings work first
/// puts it where the scheduler looks and then calls `wake`. Both sides use sequential consistency, so one of them sees
/// the other.
#[derive(Clone)]
pub struct Waker {
    shared: Arc<Shared>,
}

struct Shared {
    /// Whether the scheduler's thread waits, or is about to.
    armed: AtomicBool,
    notify: Box<dyn Notify>,
}

impl Waker {
    /// A waker over a backend's own means.
    pub fn new(notify: impl Notify + 'static) -> Self {
        Waker { shared: Arc::new(Shared { armed: AtomicBool::new(false), notify: Box::new(notify) }) }
    }

    /// The scheduler's thread is about to wait.
    pub fn arm(&self) {
        self.shared.armed.store(true, Ordering::SeqCst);
    }

    /// The scheduler's thread no longer waits.
    pub fn disarm(&self) {
        self.shared.armed.store(false, Ordering::SeqCst);
    }

    /// Ends the wait, if there is one. Callable from any thread.
    pub fn wake(&self) {
        if self.shared.armed.swap(false, Ordering::SeqCst) {
            self.shared.notify.notify();
        }
    }
}
