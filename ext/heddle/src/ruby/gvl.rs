//! Proofs that the current thread holds the GVL.
//!
//! A native thread of Heddle, a signal handler, and what runs without the GVL (see [`nogvl`](super::nogvl)) must not
//! call Ruby. So each function of this folder that needs the GVL takes an argument which only a thread with the GVL
//! has:
//!
//! | argument | where it is made |
//! |---|---|
//! | `&Ruby` | magnus makes it for each method that Ruby calls, and this folder for what else Ruby calls: the postponed job, a fiber's body |
//! | an object: `Value`, `PinnedValue`, `Error`, `Obj` and its like | by functions that take one of these |
//! | [`Collecting`], `&Marker` | within the garbage collector |
//!
//! None of them is `Send` or `Sync`, so no native thread gets one, and no closure that runs without the GVL captures
//! one. `assert_stays_with_gvl` below has the compiler check that. All are of size zero, or are needed anyway, so the
//! proof costs nothing.

use std::marker::PhantomData;

use magnus::Ruby;
use magnus::gc::Marker;

/// A proof that the current thread holds the GVL, and perhaps nothing more: the garbage collector may be at work, so no
/// object may be made, and no Ruby code called.
///
/// # Safety
/// Only a thread that holds the GVL has a value of the type, which is neither `Send` nor `Sync`.
pub unsafe trait HoldsGvl {}

// SAFETY: magnus makes one for code that Ruby calls. It is neither `Send` nor `Sync`.
unsafe impl HoldsGvl for Ruby {}
// SAFETY: the collector, which runs with the GVL, lends it to `mark`. It is neither `Send` nor `Sync`.
unsafe impl HoldsGvl for Marker {}

/// The current thread holds the GVL, in a function that the garbage collector calls.
pub struct Collecting(PhantomData<*mut ()>);

// SAFETY: by the contract of `Collecting::assume`. The pointer makes it neither `Send` nor `Sync`.
unsafe impl HoldsGvl for Collecting {}

impl Collecting {
    /// For what the collector calls: an event's handler, or the `Drop` of an object's data.
    ///
    /// # Safety
    /// The thread holds the GVL for as long as this exists.
    pub unsafe fn assume() -> Self {
        Collecting(PhantomData)
    }
}

/// A value that the GVL guards. For statics. Its contents need not be `Send`, as other threads see them only while they
/// hold the GVL themselves.
///
/// The main Ractor's code alone uses it: each Ractor has a GVL of its own.
pub struct Guarded<T>(T);

// SAFETY: only a thread with the main Ractor's GVL gets a reference to the contents, and a thread cannot pass on a
// reference to what is not `Sync`.
unsafe impl<T> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// For a static.
    pub const fn new(value: T) -> Self {
        Guarded(value)
    }

    /// The value.
    pub fn get(&self, _: &impl HoldsGvl) -> &T {
        &self.0
    }
}

// Does not compile for a type that is `Send` or `Sync`: such a type implements the trait more than once, so `_` is
// ambiguous.
macro_rules! assert_stays_with_gvl {
    ($($type:ty),+) => { $(const _: () = {
        trait Ambiguous<A> {
            const IS_PROOF: () = ();
        }
        impl<T: ?Sized> Ambiguous<()> for T {}
        impl<T: ?Sized + Send> Ambiguous<u8> for T {}
        impl<T: ?Sized + Sync> Ambiguous<u16> for T {}
        <$type as Ambiguous<_>>::IS_PROOF
    };)+ };
}

assert_stays_with_gvl!(Ruby, Marker, Collecting, magnus::Value, magnus::Error, magnus::RArray);
pub(super) use assert_stays_with_gvl;
