//! All open schedulers, for events that concern every scheduler: an IO is closed, or the program takes over a signal.

use heddle_core::threads::locking::lock;
use std::sync::{Mutex, MutexGuard};

use magnus::typed_data::Obj;
use magnus::{Error, Module, RArray, RClass, RModule, Ruby, TryConvert, Value, prelude::*};

use super::Scheduler;
use crate::ruby::gvl::{Guarded, HoldsGvl};
use crate::ruby::value::Registered;

static OPEN: Guarded<Mutex<Vec<*const Scheduler>>> = Guarded::new(Mutex::new(Vec::new()));

/// An `ObjectSpace::WeakMap` of the scheduler objects: Ruby's own way to tell which of them are alive. A scheduler
/// that is about to be collected must not be referenced again.
static ALIVE: Registered = Registered::new();

fn open(gvl: &impl HoldsGvl) -> MutexGuard<'static, Vec<*const Scheduler>> {
    lock(OPEN.get(gvl))
}

/// Creates the weak map. Called before all other functions.
pub fn define(ruby: &Ruby) -> Result<(), Error> {
    let alive: Value = ruby
        .class_object()
        .const_get::<_, RModule>("ObjectSpace")?
        .const_get::<_, RClass>("WeakMap")?
        .new_instance(())?;
    ALIVE.get_or_register(alive);
    Ok(())
}

/// Adds a new scheduler, which may be opened later.
pub fn add_alive(scheduler: Obj<Scheduler>) -> Result<(), Error> {
    ALIVE
        .get(&Ruby::get_with(scheduler))
        .map_or(Ok(()), |alive| alive.get().funcall::<_, _, Value>("[]=", (scheduler, true)).map(|_| ()))
}

/// Adds a scheduler that has been opened.
pub fn add_open(ruby: &Ruby, scheduler: &Scheduler) {
    let mut open = open(ruby);
    if !open.iter().any(|entry| std::ptr::eq(*entry, scheduler)) {
        open.push(scheduler);
    }
}

/// Removes a scheduler that has been closed, or is about to be freed.
pub fn remove_open(gvl: &impl HoldsGvl, scheduler: &Scheduler) {
    open(gvl).retain(|entry| !std::ptr::eq(*entry, scheduler));
}

/// Whether no scheduler is open.
pub fn is_empty(gvl: &impl HoldsGvl) -> bool {
    open(gvl).is_empty()
}

/// Calls `predicate`, which must not call Ruby, with each open scheduler. Returns whether it has returned true for
/// any.
pub fn any(gvl: &impl HoldsGvl, mut predicate: impl FnMut(&Scheduler) -> bool) -> bool {
    let mut any = false;
    for entry in open(gvl).iter() {
        // SAFETY: `Drop` removes the entry before the scheduler is freed, and that happens with the GVL. The GVL is
        // held here, and not released, as `predicate` calls no Ruby.
        any |= predicate(unsafe { &**entry });
    }
    any
}

/// The objects of all open schedulers.
pub fn objects(ruby: &Ruby) -> Result<RArray, Error> {
    let found = ruby.ary_new();
    let Some(alive) = ALIVE.get(ruby) else { return Ok(found) };
    let alive: RArray = alive.get().funcall("keys", ())?;
    for scheduler in alive {
        let object = Obj::<Scheduler>::try_convert(scheduler)?;
        if is_open(ruby, &object) {
            found.push(scheduler)?;
        }
    }
    Ok(found)
}

fn is_open(gvl: &impl HoldsGvl, scheduler: &Scheduler) -> bool {
    open(gvl).iter().any(|entry| std::ptr::eq(*entry, scheduler))
}

/// Calls `hook` with each open scheduler. It may call Ruby, switch fibers, and release the GVL.
pub fn each(ruby: &Ruby, mut hook: impl FnMut(&Scheduler) -> Result<(), Error>) -> Result<(), Error> {
    let Some(alive) = ALIVE.get(ruby) else { return Ok(()) };
    // The array stays on this stack, so the schedulers in it stay alive until the last call of `hook` has returned.
    let alive: RArray = alive.get().funcall("keys", ())?;
    let result = alive.into_iter().try_for_each(|scheduler| {
        let scheduler = Obj::<Scheduler>::try_convert(scheduler)?;
        if is_open(ruby, &scheduler) { hook(&scheduler) } else { Ok(()) }
    });
    std::hint::black_box(alive);
    result
}
