//! What structured concurrency needs from Rust. Not hooks: `lib/heddle/structured` calls these private methods.

mod raising;
mod scope;
mod task;

use magnus::{Error, RModule, Ruby};

/// Defines the methods.
pub fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    task::define(ruby, native)?;
    raising::define(native)?;
    scope::define(native)
}
