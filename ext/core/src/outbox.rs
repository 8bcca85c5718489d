//! What a native thread passes to a Ruby thread, which waits for it without the GVL.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The most items that are kept for a receiving thread that does not run.
const MAX_KEPT: usize = 64;

/// What the receiving thread learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received<T> {
    /// The next item.
    Item(T),
    /// The wait was interrupted.
    Interrupted,
    /// There are no items left, and none will come.
    Closed,
}

/// See the module.
#[derive(Debug)]
pub struct Outbox<T> {
    shared: Mutex<Shared<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Shared<T> {
    items: VecDeque<T>,
    interrupted: bool,
    closed: bool,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        let shared = Shared { items: VecDeque::new(), interrupted: false, closed: false };
        Outbox { shared: Mutex::new(shared), changed: Condvar::new() }
    }
}

impl<T> Outbox<T> {
    fn change(&self, change: impl FnOnce(&mut Shared<T>)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Shared<T>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item. If too many are kept already, it is lost.
    pub fn push(&self, item: T) {
        self.change(|shared| {
            if shared.items.len() < MAX_KEPT {
                shared.items.push_back(item);
            }
        });
    }

    /// Ends the receiving thread's wait, so that the thread can handle its interrupts.
    pub fn interrupt(&self) {
        self.change(|shared| shared.interrupted = true);
    }

    /// No item comes any more.
    pub fn close(&self) {
        self.change(|shared| shared.closed = true);
    }

    /// Waits for the next item. Called on the receiving thread, without the GVL.
    pub fn wait(&self) -> Received<T> {
        let mut shared = self.lock();
        loop {
            if std::mem::take(&mut shared.interrupted) {
                return Received::Interrupted;
            }
            if let Some(item) = shared.items.pop_front() {
                return Received::Item(item);
            }
            if shared.closed {
                return Received::Closed;
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn items_come_in_order_and_then_the_end() {
        let outbox = Outbox::default();
        (1..=2).for_each(|item| outbox.push(item));
        outbox.close();
        let received: Vec<Received<i32>> = (0..3).map(|_| outbox.wait()).collect();
        assert_eq!(received, [Received::Item(1), Received::Item(2), Received::Closed]);
    }

    #[test]
    fn a_waiting_thread_can_be_interrupted() {
        let outbox = Arc::new(Outbox::<()>::default());
        let waiting = Arc::clone(&outbox);
        let thread = thread::spawn(move || waiting.wait());
        outbox.interrupt();
        assert!(matches!(thread.join(), Ok(Received::Interrupted)));
    }

    #[test]
    fn a_bounded_number_of_items_is_kept() {
        let outbox = Outbox::default();
        (0..MAX_KEPT + 5).for_each(|item| outbox.push(item));
        outbox.close();
        let kept = std::iter::from_fn(|| Some(outbox.wait()).filter(|received| *received != Received::Closed)).count();
        assert_eq!(kept, MAX_KEPT);
    }
}
