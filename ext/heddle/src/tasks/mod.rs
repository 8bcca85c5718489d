//! What structured concurrency needs of Rust. No hooks of Ruby's: `lib/heddle/structured` calls these private methods.

mod raising;
mod task;

use magnus::{Error, RClass};

/// Defines the methods.
pub fn define(class: RClass) -> Result<(), Error> {
    task::define(class)?;
    raising::define(class)
}
