//! The numbers that `lib/heddle/metrics/stats.rb` makes `Scheduler#stats` of. Callable on every thread, and after a
//! fork or `close`.

use std::collections::BTreeMap;

use heddle_core::observe::histogram::Histogram;
use heddle_core::threads::workers::{Load, WorkerPool};
use magnus::{Error, IntoValue, RHash, Ruby};

use crate::dump::accounts::histogram;
use crate::ruby::outcome::Ignore;
use crate::scheduler::Scheduler;
use crate::scheduler::record::FiberState;
use crate::scheduler::state::State;
use crate::scheduler::state::operations::OPERATION_KINDS;

/// Builds a Hash with Symbol keys.
struct Numbers<'a> {
    ruby: &'a Ruby,
    hash: RHash,
}

impl<'a> Numbers<'a> {
    fn new(ruby: &'a Ruby) -> Self {
        Numbers { ruby, hash: ruby.hash_new() }
    }

    fn with(self, name: &str, value: impl IntoValue) -> Result<Self, Error> {
        self.hash.aset(self.ruby.to_symbol(name), value)?;
        Ok(self)
    }
}

/// Why a pool's numbers are unknown.
const BORROWED: &str = "the pool is being made";

/// A scheduler's numbers, in nested Hashes. Those of a scheduler that this process has inherited, and not used, are
/// zero.
pub fn raw_stats(ruby: &Ruby, scheduler: &Scheduler) -> Result<RHash, Error> {
    let inherited = scheduler.is_inherited();
    let workers = Numbers::new(ruby)
        .with("files", load(ruby, scheduler.io.workers.try_borrow().ignored(BORROWED).as_deref(), inherited)?)?
        .with("names", load(ruby, scheduler.io.names.try_borrow().ignored(BORROWED).as_deref(), inherited)?)?;
    let preemptions = if inherited { 0 } else { scheduler.preemption.preemptions.get() };
    let unused = State::default();
    // Everything is copied out of the state first: Ruby, which allocates the Hashes, may collect garbage, and then
    // marks the state.
    let numbers = if inherited { Snapshot::of(&unused) } else { Snapshot::of(&scheduler.state.borrow()) };
    let numbers = numbers.to_hash(ruby, preemptions)?;
    numbers.aset(ruby.to_symbol("workers"), workers.hash)?;
    Ok(numbers)
}

/// Counts an error that has ended a task.
pub fn count_failure(scheduler: &Scheduler) {
    if !scheduler.is_inherited() {
        scheduler.state.borrow_mut().counters.failed += 1;
    }
}

fn load(ruby: &Ruby, pool: Option<&Option<std::sync::Arc<WorkerPool>>>, inherited: bool) -> Result<RHash, Error> {
    // The lock of an inherited pool may be held by a thread that does not exist in this process.
    let pool = pool.and_then(Option::as_ref).filter(|_| !inherited);
    let Load { limit, threads, idle, queued } = pool.map_or_else(Load::default, |pool| pool.load());
    let numbers = Numbers::new(ruby).with("limit", limit)?.with("threads", threads)?;
    Ok(numbers.with("idle", idle)?.with("queue_depth", queued)?.hash)
}

struct Snapshot {
    elapsed: f64,
    parked: f64,
    fibers: [u64; 6],
    waiting: BTreeMap<&'static str, usize>,
    queue: [u64; 3],
    polls: [u64; 3],
    operations: [u64; OPERATION_KINDS.len()],
    transfers: [u64; 5],
    timers: [u64; 2],
    histograms: Option<[Histogram; 2]>,
}

impl Snapshot {
    fn of(state: &State) -> Self {
        let counters = &state.counters;
        let counted = |fiber_state| state.count_in(fiber_state) as u64;
        let (pending, batches) = (state.operations.len() as u64, counters.batches);
        Snapshot {
            elapsed: counters.elapsed().as_secs_f64(),
            parked: counters.park_time().as_secs_f64(),
            fibers: [
                counted(FiberState::Running),
                counted(FiberState::Runnable),
                counted(FiberState::Waiting),
                counters.spawned,
                counters.ended,
                counters.failed,
            ],
            waiting: state.waiting_by_kind(),
            queue: [state.fibers.queue().len() as u64, state.budget.slices(), state.budget.exhausted()],
            polls: [counters.polls, counters.parks, counters.busy_polls],
            operations: state.operations.begun(),
            transfers: [state.budget.tried(), pending, counters.completed, batches, counters.max_batch],
            timers: [state.timers.len() as u64, counters.expired],
            histograms: state.timing().map(|timing| [timing.scheduled.clone(), timing.slices.clone()]),
        }
    }

    fn to_hash(&self, ruby: &Ruby, preemptions: u64) -> Result<RHash, Error> {
        let [running, runnable, waiting, spawned, ended, failed] = self.fibers;
        let fibers = Numbers::new(ruby)
            .with("running", running)?
            .with("runnable", runnable)?
            .with("waiting", waiting)?
            .with("waiting_for", self.waiting_for(ruby)?)?
            .with("spawned_count", spawned)?
            .with("ended_count", ended)?
            .with("failed_count", failed)?;
        let [depth, switches, exhausted] = self.queue;
        let [scheduled, slices] = match &self.histograms {
            Some([scheduled, slices]) => [histogram(ruby, scheduled), histogram(ruby, slices)],
            None => [(); 2].map(|()| ruby.qnil().into_value_with(ruby)),
        };
        let queue = Numbers::new(ruby)
            .with("depth", depth)?
            .with("switches_count", switches)?
            .with("budget_forced_yield_count", exhausted)?
            .with("preemptions_count", preemptions)?
            .with("scheduled_duration", scheduled)?
            .with("slice_duration", slices)?;
        let [polls, parks, busy_polls] = self.polls;
        let kernel = Numbers::new(ruby)
            .with("polls_count", polls)?
            .with("park_count", parks)?
            .with("busy_poll_count", busy_polls)?
            .with("park_duration", self.parked)?;
        let [tried, pending, completed, batches, max_batch] = self.transfers;
        let mut operations = Numbers::new(ruby).with("pending", pending)?.with("tried_count", tried)?;
        for (name, count) in OPERATION_KINDS.iter().zip(self.operations) {
            operations = operations.with(&format!("{name}_count"), count)?;
        }
        let operations = operations
            .with("completed_count", completed)?
            .with("batches_count", batches)?
            .with("max_batch_size", max_batch)?;
        let [timers, expired] = self.timers;
        let timers = Numbers::new(ruby).with("pending", timers)?.with("expired_count", expired)?;
        Ok(Numbers::new(ruby)
            .with("elapsed", self.elapsed)?
            .with("fibers", fibers.hash)?
            .with("run_queue", queue.hash)?
            .with("kernel", kernel.hash)?
            .with("operations", operations.hash)?
            .with("timers", timers.hash)?
            .hash)
    }

    fn waiting_for(&self, ruby: &Ruby) -> Result<RHash, Error> {
        let numbers = Numbers::new(ruby);
        self.waiting
            .iter()
            .try_fold(numbers, |numbers, (kind, count)| numbers.with(kind, *count))
            .map(|kinds| kinds.hash)
    }
}
