//! What `lib/heddle/observability/` and `lib/heddle/metrics/` need of the accounts: what fibers spend their time on.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::{Duration, Instant};

use heddle_core::observe::accounting::{Accounting, Statement, Times, WAIT_KINDS as WAIT_KIND_COUNT};
use heddle_core::observe::histogram::Histogram;
use magnus::typed_data::Obj;
use magnus::{Error, IntoValue, Object, RArray, RModule, RString, Ruby, Value, function};

use crate::ruby::outcome::Ignore;
use crate::ruby::value::same;
use crate::ruby::{fiber, ractor, thread};
use crate::scheduler::record::FiberKey;
use crate::scheduler::wait::COUNTED_WAITS;
use crate::scheduler::{Scheduler, registry};

/// Counts in all schedulers of the process that are open, for so many seconds from now on at least.
fn count_times(ruby: &Ruby, seconds: f64) -> Result<(), Error> {
    // Up to eleven days, which can be added to a time of any clock. NaN becomes zero.
    let seconds = Duration::try_from_secs_f64(seconds.clamp(0.0, 1e6)).ignored("NaN").unwrap_or_default();
    let until = Instant::now() + seconds;
    registry::each(ruby, |scheduler| {
        let here = scheduler.is_owned_by(thread::current(ruby));
        if scheduler.is_inherited() || !scheduler.state.borrow_mut().count_times(Some(until), here) {
            return Ok(());
        }
        let known: Vec<FiberKey> = scheduler.state.borrow().fibers.iter().map(|(key, _)| key).collect();
        for key in known {
            let fiber = scheduler.state.borrow().fibers.fiber(key);
            if let Some(name) = fiber.and_then(fiber::name)
                && let Some((accounting, account)) = scheduler.state.borrow_mut().accounting_of(key)
            {
                accounting.name(account, text(Some(&name)).as_deref(), Instant::now());
            }
        }
        Ok(())
    })
}

/// The fiber gets a name, or loses it. Callable in every Ractor; only the main one has schedulers.
fn name_account(ruby: &Ruby, fiber: Value, name: Option<RString>) {
    with_account(ruby, fiber, |accounting, account| {
        accounting.name(account, text(name.as_ref()).as_deref(), Instant::now());
    });
}

/// From now on the fiber says that it waits for this, or does not any more. Callable in every Ractor, too.
fn label_account(ruby: &Ruby, fiber: Value, label: Option<RString>) {
    with_account(ruby, fiber, |accounting, account| accounting.label(account, text(label.as_ref()).as_deref()));
}

/// What the fiber has spent its time on since it has its name; nil if that is not counted.
fn named_times(ruby: &Ruby, fiber: Value) -> Result<Option<RArray>, Error> {
    let found = with_account(ruby, fiber, |accounting, account| {
        Some((accounting.statement(account, Instant::now())?.1?, accounting.labels().to_vec()))
    });
    found.flatten().map(|(named, labels)| statement(ruby, &named, &labels)).transpose()
}

/// The caller must run no Ruby code while it uses the text, which that could change.
fn text(string: Option<&RString>) -> Option<Cow<'_, str>> {
    // SAFETY: nothing changes the text while it is used, as the callers in this file run no Ruby code.
    string.map(|string| String::from_utf8_lossy(unsafe { string.as_slice() }))
}

/// Calls `change`, which must not call Ruby, with the number of the fiber's account, if this thread's scheduler counts
/// and knows the fiber, or knows the fiber that has resumed it.
fn with_account<T>(ruby: &Ruby, fiber: Value, change: impl FnOnce(&mut Accounting, u64) -> T) -> Option<T> {
    let scheduler = Scheduler::in_use(ruby)?;
    let mut state = scheduler.state.borrow_mut();
    state.accounting()?;
    let resumer = || state.fibers.resumer().filter(|_| same(fiber, fiber::current(ruby)));
    let key = state.fibers.find(fiber).or_else(resumer)?;
    state.accounting_of(key).map(|(accounting, account)| change(accounting, account))
}

/// An Array: seconds in all, ran, runnable, a Hash of what it waited for, and preemptions.
pub fn statement(ruby: &Ruby, statement: &Statement, labels: &[Rc<str>]) -> Result<RArray, Error> {
    let array = ruby.ary_new_capa(5);
    array.push(seconds(statement.age))?;
    push_times(ruby, array, &statement.times, labels)?;
    Ok(array)
}

fn push_times(ruby: &Ruby, array: RArray, times: &Times, labels: &[Rc<str>]) -> Result<(), Error> {
    let waited = ruby.hash_new();
    for (index, time) in times.waited.iter().enumerate().filter(|(_, time)| **time > 0) {
        match index.checked_sub(WAIT_KIND_COUNT).and_then(|index| labels.get(index)) {
            Some(label) => waited.aset(&**label, seconds(*time))?,
            None => {
                waited.aset(ruby.to_symbol(COUNTED_WAITS.get(index).copied().unwrap_or("other")), seconds(*time))?
            }
        }
    }
    array.push(seconds(times.ran))?;
    array.push(seconds(times.runnable))?;
    array.push(waited)?;
    array.push(times.preemptions)
}

/// What the scheduler has counted by name, nil if it does not count: for how many seconds; whether it always counts; an
/// Array for each name; and one for each fiber that was late.
fn name_totals(ruby: &Ruby, scheduler: Obj<Scheduler>) -> Result<Option<RArray>, Error> {
    if scheduler.is_inherited() {
        return Ok(None);
    }
    let now = Instant::now();
    let state = scheduler.state.borrow();
    let Some(accounting) = state.accounting() else { return Ok(None) };
    let (totals, labels) = (accounting.totals(now), accounting.labels().to_vec());
    let late: Vec<_> = accounting.late(now).map(|(late, ago)| (late.clone(), ago)).collect();
    let (elapsed, always) = (accounting.elapsed(now).as_secs_f64(), state.always_counts_times());
    drop(state);
    let name_of = |number: usize| totals[number].0.text.as_deref();
    let names = ruby.ary_new_capa(totals.len());
    for (name, present) in &totals {
        let array = ruby.ary_new_capa(8);
        array.push(name.text.as_deref())?;
        array.push(seconds(name.begun))?;
        push_times(ruby, array, &name.times, &labels)?;
        array.push(histogram(ruby, &name.ages))?;
        array.push(histogram(ruby, present))?;
        names.push(array)?;
    }
    let lates = ruby.ary_new_capa(late.len());
    for (late, ago) in late {
        let causes = ruby.ary_new();
        for (number, ran) in late.causes {
            causes.push((name_of(number), seconds(ran)))?;
        }
        lates.push((seconds(ago), name_of(late.name), seconds(late.waited), causes))?;
    }
    let array = ruby.ary_new_capa(4);
    array.push(elapsed)?;
    array.push(always)?;
    array.push(names)?;
    array.push(lates)?;
    Ok(Some(array))
}

/// `[counts of the buckets, sum, max]`, in seconds.
pub fn histogram(ruby: &Ruby, histogram: &Histogram) -> Value {
    let counts: RArray = ruby.ary_from_iter(histogram.counts().iter().copied());
    let times = (histogram.sum().as_secs_f64(), histogram.max().as_secs_f64());
    (counts, times.0, times.1).into_value_with(ruby)
}

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

/// Defines the methods.
pub fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("name_totals", function!(name_totals, 1))?;
    native.define_singleton_method("count_times", function!(count_times, 1))?;
    native.define_singleton_method("named_times", function!(named_times, 1))?;
    ractor::safe(ruby, || {
        native.define_singleton_method("name_account", function!(name_account, 2))?;
        native.define_singleton_method("label_account", function!(label_account, 2))
    })
}
