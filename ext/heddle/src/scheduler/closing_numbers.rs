//! The descriptor numbers that are being closed, in all schedulers of the process.
//!
//! An entry exists from the moment at which a fiber begins to close an IO until its `close` has returned. The fiber may
//! never return: its scheduler abandons it or is closed, or the fiber is not in a forked child. Then its entries are
//! removed, and the IO stays open.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use heddle_core::threads::locking::lock;
use magnus::gc::Marker;
use magnus::{DataTypeFunctions, Error, Module, RModule, Ruby, TypedData, Value, prelude::*};

use crate::ruby::gvl::{Guarded, HoldsGvl};
use crate::ruby::value::{PinnedValue, find_class};

/// A number that is being closed.
#[derive(Clone, Copy)]
pub struct Closing {
    /// Names the entry.
    pub id: u64,
    fd: RawFd,
    /// The closing IO. Marked, as collecting it would close its number, which this says is still open.
    pub io: PinnedValue,
    /// The fiber that closes the IO.
    closer: PinnedValue,
}

/// All numbers that are being closed.
static CLOSING: Guarded<Mutex<Vec<Closing>>> = Guarded::new(Mutex::new(Vec::new()));
/// The id of the next entry.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);
/// The number of entries, readable without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn all_closing(gvl: &impl HoldsGvl) -> MutexGuard<'static, Vec<Closing>> {
    lock(CLOSING.get(gvl))
}

/// Marks the objects of [`CLOSING`]. There is one object of this class.
#[derive(TypedData)]
#[magnus(class = "Heddle::ClosingDescriptors", mark, free_immediately)]
struct ClosingDescriptors;

impl DataTypeFunctions for ClosingDescriptors {
    fn mark(&self, marker: &Marker) {
        for closing in all_closing(marker).iter() {
            closing.io.mark(marker);
            closing.closer.mark(marker);
        }
    }
}

/// An entry, which dropping this removes.
pub struct Announcement(u64, Ruby);

impl Announcement {
    /// From now on [`find`] finds the number, for all fibers but the closer.
    pub fn new(io: Value, fd: RawFd, closer: Value) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let ruby = Ruby::get_with(io);
        // SAFETY: `ClosingDescriptors::mark` marks both.
        let [io, closer] = [io, closer].map(|value| unsafe { PinnedValue::assume_marked(value) });
        let closing = Closing { id, fd, io, closer };
        // No Ruby object may be allocated under the lock, as the collector locks it, too.
        let mut all = all_closing(&ruby);
        all.push(closing);
        COUNT.store(all.len(), Ordering::Relaxed);
        drop(all);
        Announcement(id, ruby)
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        remove(&self.1, self.0);
    }
}

/// Whether no number is being closed.
#[inline]
pub fn is_empty() -> bool {
    COUNT.load(Ordering::Relaxed) == 0
}

/// A close of the number by another fiber than `current`.
pub fn find(ruby: &Ruby, fd: RawFd, current: Value) -> Option<Closing> {
    all_closing(ruby).iter().find(|closing| closing.fd == fd && closing.closer != current).copied()
}

/// Removes an entry, if it still exists.
pub fn remove(ruby: &Ruby, id: u64) {
    retain(ruby, |closing| closing.id != id);
}

/// Removes the entries of fibers that will never run again.
pub fn forget_closers(ruby: &Ruby, is_lost: impl Fn(PinnedValue) -> bool) {
    if !is_empty() {
        retain(ruby, |closing| !is_lost(closing.closer));
    }
}

fn retain(ruby: &Ruby, stays: impl Fn(&Closing) -> bool) {
    let mut all = all_closing(ruby);
    all.retain(stays);
    COUNT.store(all.len(), Ordering::Relaxed);
}

/// Makes the collector know the table.
pub fn define(ruby: &Ruby, heddle: RModule) -> Result<(), Error> {
    let holder = heddle.define_class("ClosingDescriptors", ruby.class_object())?;
    holder.undef_default_alloc_func();
    find_class::<ClosingDescriptors>(ruby);
    ruby.gc_register_mark_object(ruby.obj_wrap(ClosingDescriptors));
    Ok(())
}
