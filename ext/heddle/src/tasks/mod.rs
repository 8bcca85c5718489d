//! What structured concurrency needs from Rust. Not hooks: `lib/heddle/structured` calls these private methods.

mod raising;
mod scope;
mod task;

use magnus::{Error, RClass};

/// Defines the methods.
pub fn define(class: RClass) -> Result<(), Error> {
    task::define(class)?;
    raising::define(class)?;
    scope::define(class)
}
