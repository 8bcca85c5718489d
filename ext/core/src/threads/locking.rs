//! Locks whose data is consistent even if a thread has panicked with the lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the Mutex, poisoned or not.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
