//! What `lib/heddle/observability/` and `lib/heddle/metrics/` need of the accounts: what fibers spend their time on.

use std::rc::Rc;
use std::time::{Duration, Instant};

use heddle_core::observe::accounting::{Report, Row, Statement, Subject, Title, subjects};
use magnus::typed_data::Obj;
use magnus::{Error, IntoValue, Object, RArray, RHash, RModule, RString, Ruby, Value, function};

use crate::ruby::outcome::Ignore;
use crate::ruby::value::same;
use crate::ruby::{fiber, ractor, thread};
use crate::scheduler::record::FiberKey;
use crate::scheduler::state::State;
use crate::scheduler::state::accounts::KINDS;
use crate::scheduler::{Scheduler, registry};

/// A window of so many seconds, up to eleven days, which can be added to a time of any clock. A negative number and NaN
/// mean zero.
fn window_of(seconds: f64) -> Duration {
    let positive = if seconds > 0.0 { seconds.min(1e6) } else { 0.0 };
    Duration::try_from_secs_f64(positive).ignored("never: within the limits").unwrap_or_default()
}

/// Counts in all schedulers of the process that are open, for so many seconds from now on at least.
fn count_times(ruby: &Ruby, seconds: f64) -> Result<(), Error> {
    let until = Instant::now() + window_of(seconds);
    registry::each(ruby, |scheduler| {
        let here = scheduler.is_owned_by(thread::current(ruby));
        if scheduler.is_inherited() || !scheduler.state.borrow_mut().count_times(Some(until), here) {
            return Ok(());
        }
        let known: Vec<FiberKey> = scheduler.state.borrow().fibers.iter().map(|(key, _)| key).collect();
        for key in known {
            let fiber = scheduler.state.borrow().fibers.fiber(key);
            if let Some(name) = fiber.and_then(fiber::name) {
                set_name(&mut scheduler.state.borrow_mut(), key, Some(name));
            }
        }
        Ok(())
    })
}

/// The fiber gets a name, or loses it. Callable in every Ractor; only the main one has schedulers.
fn name_account(ruby: &Ruby, fiber: Value, name: Option<RString>) {
    with_fiber(ruby, fiber, |state, key| set_name(state, key, name));
}

/// From now on the fiber says that it waits for this, or does not any more. Returns the text that it said before, for
/// the next call. Counting may end and begin again in between, and then numbers the texts anew.
fn label_account(ruby: &Ruby, fiber: Value, label: Option<RString>) -> Option<RString> {
    // SAFETY: nothing changes the text while it is used, as no Ruby code runs.
    let label = label.as_ref().map(|label| String::from_utf8_lossy(unsafe { label.as_slice() }));
    let before = with_fiber(ruby, fiber, |state, key| state.account_label(key, label.as_deref())).flatten();
    before.map(|before| ruby.str_new(&before))
}

/// What the fiber has spent its time on since it has its name; nil if that is not counted.
fn named_times(ruby: &Ruby, fiber: Value) -> Result<Option<RArray>, Error> {
    let found = with_fiber(ruby, fiber, |state, key| Some((state.statement(key, Instant::now())?.1?, state.labels())));
    found.flatten().map(|(named, labels)| statement(ruby, &named, &labels)).transpose()
}

fn set_name(state: &mut State, key: FiberKey, name: Option<RString>) {
    // SAFETY: nothing changes the text while it is used, as no Ruby code runs.
    let name = name.as_ref().map(|name| String::from_utf8_lossy(unsafe { name.as_slice() }));
    state.account_name(key, name.as_deref());
}

/// Calls `change`, which must not call Ruby, if this thread's scheduler knows the fiber, or knows the fiber that has
/// resumed it.
fn with_fiber<T>(ruby: &Ruby, fiber: Value, change: impl FnOnce(&mut State, FiberKey) -> T) -> Option<T> {
    let scheduler = Scheduler::in_use(ruby)?;
    let mut state = scheduler.state.borrow_mut();
    if !state.is_counting_times() {
        return None;
    }
    let resumer = || state.current().map(|(_, key)| key).filter(|key| state.is_current(*key));
    let key = state.fibers.find(fiber).or_else(|| resumer().filter(|_| same(fiber, fiber::current(ruby))))?;
    Some(change(&mut state, key))
}

/// An Array for each statement: seconds in all, ran, runnable, a Hash of what it waited for, and preemptions.
pub fn statement(ruby: &Ruby, statement: &Statement, labels: &[Rc<str>]) -> Result<RArray, Error> {
    let Statement { age, times } = statement;
    let waited = waited(ruby, subjects(&times.waited, labels))?;
    let array = ruby.ary_new_capa(5);
    array.push(seconds(*age))?;
    array.push(seconds(times.ran))?;
    array.push(seconds(times.runnable))?;
    array.push(waited)?;
    array.push(times.preemptions)?;
    Ok(array)
}

/// The last `window` seconds of all schedulers by name: for how many seconds it was counted; an Array for each name;
/// for each span of time; and for each fiber that was late.
fn name_report(ruby: &Ruby, window: f64) -> Result<RArray, Error> {
    let mut report = Report::new(window_of(window));
    registry::any(ruby, |scheduler| {
        if !scheduler.is_inherited() {
            scheduler.state.borrow_mut().add_to(&mut report);
        }
        false
    });
    let rows = ruby.ary_new();
    for (title, row) in &report.rows {
        rows.push(row_of(ruby, title, row)?)?;
    }
    let spans = ruby.ary_new();
    for (number, (ago, rows)) in &report.spans {
        let parts = ruby.ary_new();
        for (title, row) in rows {
            let waited: u64 = row.waited.values().sum();
            let times = (seconds(row.ran), seconds(row.runnable), seconds(waited));
            parts.push((name_of(ruby, title), row.finished, times.0, times.1, times.2))?;
        }
        spans.push((*number, seconds(*ago), parts))?;
    }
    let late = ruby.ary_new();
    for fiber in &report.late {
        let causes = ruby.ary_new();
        for (title, ran) in &fiber.causes {
            causes.push((name_of(ruby, title), seconds(*ran)))?;
        }
        late.push((seconds(fiber.ago), name_of(ruby, &fiber.title), seconds(fiber.waited), causes))?;
    }
    let array = ruby.ary_new_capa(4);
    array.push(seconds(report.counted))?;
    array.push(rows)?;
    array.push(spans)?;
    array.push(late)?;
    Ok(array)
}

/// An Array for each name of the scheduler, of all that was counted, with the ends and the counts of the buckets of the
/// ages.
fn name_totals(ruby: &Ruby, scheduler: Obj<Scheduler>) -> Result<RArray, Error> {
    let mut report = Report::new(Duration::ZERO);
    if !scheduler.is_inherited() {
        scheduler.state.borrow_mut().add_to(&mut report);
    }
    let totals = ruby.ary_new();
    for (title, row) in &report.totals {
        let buckets = ruby.ary_new();
        for (end, count) in row.ages.buckets() {
            buckets.push((seconds(end), count))?;
        }
        let array = row_of(ruby, title, row)?;
        array.push(row.ages.sum().as_secs_f64())?;
        array.push(buckets)?;
        totals.push(array)?;
    }
    Ok(totals)
}

fn row_of(ruby: &Ruby, title: &Title, row: &Row) -> Result<RArray, Error> {
    let waited = waited(ruby, row.waited.iter().map(|(subject, time)| (subject.clone(), *time)))?;
    let array = ruby.ary_new_capa(12);
    array.push(name_of(ruby, title))?;
    array.push(row.running)?;
    array.push(row.finished)?;
    for share in [0.5, 0.99] {
        array.push(row.ages.quantile(share).as_secs_f64())?;
    }
    array.push(row.ages.max().as_secs_f64())?;
    array.push(seconds(row.ran))?;
    array.push(seconds(row.runnable))?;
    array.push(waited)?;
    array.push(row.preemptions)?;
    Ok(array)
}

/// Nil for fibers without a name, `:other` for all names beyond the limit.
fn name_of(ruby: &Ruby, title: &Title) -> Value {
    match title {
        Title::Unnamed => ruby.qnil().into_value_with(ruby),
        Title::Other => ruby.to_symbol("other").into_value_with(ruby),
        Title::Named(text) => (&**text).into_value_with(ruby),
    }
}

fn waited(ruby: &Ruby, times: impl Iterator<Item = (Subject, u64)>) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    for (subject, time) in times {
        match subject {
            Subject::Kind(kind) => {
                let kind = KINDS.get(kind).copied().unwrap_or("other");
                hash.aset(ruby.to_symbol(kind), seconds(time))?;
            }
            Subject::Label(label) => hash.aset(&*label, seconds(time))?,
        }
    }
    Ok(hash)
}

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

/// Defines the methods.
pub fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("name_totals", function!(name_totals, 1))?;
    native.define_singleton_method("count_times", function!(count_times, 1))?;
    native.define_singleton_method("named_times", function!(named_times, 1))?;
    native.define_singleton_method("name_report", function!(name_report, 1))?;
    ractor::safe(ruby, || {
        native.define_singleton_method("name_account", function!(name_account, 2))?;
        native.define_singleton_method("label_account", function!(label_account, 2))
    })
}
