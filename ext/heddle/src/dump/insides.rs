//! What a program can check of the internals of Ruby on which Heddle depends: see [`insides`].

use magnus::{Error, RArray, RHash, Ruby, Value};

use crate::ruby::masks::Masks;
use crate::ruby::{frames, insides, io_buffer, pending_interrupts, thread};

/// Those internals that a program can check. Only a spec calls this, as `Heddle::Native.insides`.
pub fn describe(ruby: &Ruby) -> Result<RHash, Error> {
    let innermost = frames::innermost(ruby);
    let is_native = innermost.is_some_and(frames::Frame::is_native);
    let name = frames::innermost(ruby).and_then(frames::Frame::method_name);
    pending_interrupts::find(ruby)?;
    let current = thread::current(ruby);
    let texts: [(&str, RArray); 7] = [
        ("refused_transfer", ruby.ary_from_iter([insides::REFUSED_TRANSFER])),
        ("refused_yield", ruby.ary_from_iter([insides::REFUSED_YIELD])),
        ("no_stack", ruby.ary_from_iter(insides::NO_STACK)),
        ("uninitialized", ruby.ary_from_iter([insides::UNINITIALIZED])),
        ("closed", ruby.ary_from_iter([insides::CLOSED])),
        ("timed_out", ruby.ary_from_iter([insides::TIMED_OUT])),
        ("raise_hook", ruby.ary_from_iter([insides::RAISE_HOOK])),
    ];
    let hash = ruby.hash_new();
    for (name, texts) in texts {
        hash.aset(ruby.to_symbol(name), texts)?;
    }
    hash.aset(ruby.to_symbol("native_frame"), is_native)?;
    hash.aset(ruby.to_symbol("frame_name"), name)?;
    hash.aset(ruby.to_symbol("pending_list"), pending_interrupts::is_known(current))?;
    hash.aset(ruby.to_symbol("mask_stack"), Masks::of_thread(ruby).is_some())?;
    Ok(hash)
}

/// Whether Heddle assumes that the buffer, which Ruby has passed to a hook, stays in place until the hook ends.
pub fn is_pinned(buffer: Value) -> Result<bool, Error> {
    io_buffer::contents(buffer, false).map(|contents| contents.looks_pinned)
}
