//! What the hooks that read, write and wait share.

pub mod descriptors;
