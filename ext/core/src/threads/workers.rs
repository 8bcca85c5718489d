//! Native threads for calls that block: reading files, looking up names.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::threads::signals::SignalsBlocked;
use crate::threads::sync::{Condvar, Mutex, MutexGuard, thread};

/// How long a thread without work stays alive.
pub const IDLE_TIME: Duration = Duration::from_secs(10);

/// A thread's stack in bytes, which are reserved and not committed. glibc's resolver and its modules need much.
const STACK_SIZE: usize = 2 << 20;

/// Work for a thread of the pool.
pub type Job = Box<dyn FnOnce() + Send + 'static>;

/// A bounded pool of native threads that do not call Ruby.
///
/// A job starts a thread if none is idle, and a thread ends after [`IDLE_TIME`] without a job. All signals are blocked
/// in these threads, as Ruby's handlers must run on Ruby's threads. A panic ends neither the thread nor the pool.
///
/// Dropping the pool does not wait. Queued jobs still run, and then the threads end. A fiber may wait for a job's
/// result, or for the buffer that the job owns, so dropping a job would make that wait endless.
///
/// In a forked child the threads do not exist, and one of them may have held the pool's lock at the fork. So the child
/// must not use the pool, nor drop it: see [`WorkerPool::abandon`].
pub struct WorkerPool {
    shared: Arc<Pool>,
}

struct Pool {
    state: Mutex<PoolState>,
    /// One thread is notified per job, and all threads when the pool is dropped.
    work: Condvar,
    limit: usize,
    idle_time: Duration,
    stack_size: usize,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    threads: usize,
    /// The number of threads that wait for `work`, including notified threads that have not woken yet. A job needs a
    /// new thread exactly if there are more jobs than idle threads.
    idle: usize,
    closing: bool,
}

/// What a pool does at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// The highest number of threads.
    pub limit: usize,
    /// The number of threads.
    pub threads: usize,
    /// The number of threads that have no job.
    pub idle: usize,
    /// The number of jobs that wait for a thread.
    pub queued: usize,
}

impl WorkerPool {
    /// A pool of at most `limit` threads, but at least one. Starts no thread yet.
    pub fn new(limit: usize) -> Self {
        Self::with(limit, IDLE_TIME, STACK_SIZE)
    }

    fn with(limit: usize, idle_time: Duration, stack_size: usize) -> Self {
        let (state, work, limit) = (Mutex::default(), Condvar::new(), limit.max(1));
        WorkerPool { shared: Arc::new(Pool { state, work, limit, idle_time, stack_size }) }
    }

    /// Queues `job` for a thread. Jobs start in order of submission.
    ///
    /// # Errors
    /// Returns the job if the pool has no thread and cannot start one (EAGAIN). The caller may then run it itself.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Job> {
        let mut state = self.shared.lock();
        state.jobs.push_back(Box::new(job));
        if state.jobs.len() > state.idle
            && state.threads < self.shared.limit
            && !self.start_thread(&mut state)
            && state.threads == 0
        {
            return Err(state.jobs.pop_back().expect("pushed above, under the same lock"));
        }
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }

    /// What the pool does now.
    pub fn load(&self) -> Load {
        let state = self.shared.lock();
        Load { limit: self.shared.limit, threads: state.threads, idle: state.idle, queued: state.jobs.len() }
    }

    /// Leaks the pool in a forked child, without taking its lock.
    ///
    /// The leaked reference keeps the pool from being dropped, so other references to it may be dropped afterwards.
    pub fn abandon(self: Arc<Self>) {
        std::mem::forget(self);
    }

    fn start_thread(&self, state: &mut PoolState) -> bool {
        let shared = Arc::clone(&self.shared);
        // A thread inherits the mask of its creator, so signals are blocked in it from its very start.
        let blocked = SignalsBlocked::new();
        let thread = thread::Builder::new().name("heddle-worker".into()).stack_size(shared.stack_size);
        let started = thread.spawn(move || shared.run_jobs()).is_ok();
        drop(blocked);
        state.threads += usize::from(started);
        started
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.work.notify_all();
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // No job runs under the lock, so the state is consistent even if the lock is poisoned.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The body of a thread.
    fn run_jobs(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // The panic hook has reported a panic. A job that a fiber waits for posts its end even then.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.lock();
                continue;
            }
            if state.closing {
                break;
            }
            state.idle += 1;
            let (woken, wait) =
                self.work.wait_timeout(state, self.idle_time).unwrap_or_else(|poisoned| poisoned.into_inner());
            state = woken;
            state.idle -= 1;
            if wait.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}

#[cfg(all(test, not(heddle_models)))]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{self, Receiver, channel};

    use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

    use super::*;

    /// Fails a test that would otherwise hang.
    const TEST_TIMEOUT: Duration = Duration::from_secs(20);

    fn submit(pool: &WorkerPool, job: impl FnOnce() + Send + 'static) {
        assert!(pool.submit(job).is_ok(), "a thread could be started");
    }

    /// Submits a job and waits for what it returns.
    fn run<T: Send + 'static>(pool: &WorkerPool, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = channel();
        submit(pool, move || sender.send(job()).expect("the test waits"));
        receiver.recv_timeout(TEST_TIMEOUT).expect("the job ends")
    }

    /// Occupies one thread until the sender is dropped.
    fn occupy(pool: &WorkerPool) -> mpsc::Sender<()> {
        let (release, released) = channel::<()>();
        let (sender, started) = channel();
        submit(pool, move || {
            sender.send(()).expect("the test waits");
            let _ = released.recv();
        });
        started.recv_timeout(TEST_TIMEOUT).expect("the job starts");
        release
    }

    /// Waits for the end of all threads of a pool, each of which holds one reference.
    fn wait_for_threads_to_end(shared: &std::sync::Weak<Pool>) {
        let deadline = std::time::Instant::now() + TEST_TIMEOUT;
        while shared.strong_count() > 0 {
            assert!(std::time::Instant::now() < deadline, "the threads end");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_job_runs_on_a_thread_with_the_pools_name() {
        let pool = WorkerPool::new(1);
        assert_eq!(run(&pool, || thread::current().name().map(str::to_owned)).as_deref(), Some("heddle-worker"));
    }

    #[test]
    fn no_more_threads_run_than_the_limit_allows() {
        let pool = WorkerPool::new(3);
        let (running, max) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        // Three jobs end together, so all three threads must run at the same time, and a fourth would be counted.
        let barrier = Arc::new(Barrier::new(3));
        let (sender, ended) = channel();
        for _ in 0..30 {
            let (running, max, barrier) = (Arc::clone(&running), Arc::clone(&max), Arc::clone(&barrier));
            let sender = sender.clone();
            submit(&pool, move || {
                max.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                barrier.wait();
                running.fetch_sub(1, Ordering::SeqCst);
                sender.send(()).expect("the test waits");
            });
        }
        for _ in 0..30 {
            ended.recv_timeout(TEST_TIMEOUT).expect("every job runs");
        }
        assert_eq!(max.load(Ordering::SeqCst), 3);
        assert_eq!(pool.shared.lock().threads, 3);
    }

    #[test]
    fn the_load_tells_threads_and_queued_jobs() {
        let pool = WorkerPool::new(1);
        assert_eq!(pool.load(), Load { limit: 1, threads: 0, idle: 0, queued: 0 });
        let release = occupy(&pool);
        submit(&pool, || ());
        assert_eq!(pool.load(), Load { limit: 1, threads: 1, idle: 0, queued: 1 });
        drop(release);
    }

    #[test]
    fn an_idle_thread_is_used_before_another_is_started() {
        let pool = WorkerPool::new(8);
        for _ in 0..20 {
            run(&pool, || ());
            // The job's result arrives a moment before the thread is idle.
            while pool.shared.lock().idle == 0 {
                thread::yield_now();
            }
        }
        assert_eq!(pool.shared.lock().threads, 1);
    }

    #[test]
    fn queued_jobs_run_in_order() {
        let pool = WorkerPool::new(1);
        let release = occupy(&pool);
        let (sender, order): (_, Receiver<usize>) = channel();
        for number in 0..10 {
            let sender = sender.clone();
            submit(&pool, move || sender.send(number).expect("the test waits"));
        }
        drop((release, sender));
        assert_eq!(order.iter().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn signals_are_blocked() {
        let mask = || {
            let mut mask = SigSet::empty();
            pthread_sigmask(SigmaskHow::SIG_BLOCK, None, Some(&mut mask)).expect("reading the mask");
            mask
        };
        let before = mask();
        let pool = WorkerPool::new(1);
        let inside = run(&pool, mask);
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGCHLD, Signal::SIGUSR2, Signal::SIGVTALRM] {
            assert!(inside.contains(signal), "{signal} is blocked");
        }
        assert_eq!(mask(), before, "the mask of the thread that submits is as it was");
    }

    #[test]
    fn a_panicking_job_kills_neither_its_thread_nor_the_pool() {
        let pool = WorkerPool::new(1);
        let id = run(&pool, || thread::current().id());
        submit(&pool, || std::panic::resume_unwind(Box::new("no message: the hook is not called")));
        assert_eq!(run(&pool, || thread::current().id()), id);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_job_is_returned_when_no_thread_can_be_started() {
        // More than a process can address, so no stack can be allocated.
        let pool = WorkerPool::with(1, IDLE_TIME, 1 << 60);
        let (sender, ended) = channel();
        let job = pool.submit(move || sender.send(()).expect("the test waits")).expect_err("no thread");
        job();
        ended.try_recv().expect("the returned job is the submitted one");
        assert!(pool.shared.lock().jobs.is_empty());
    }

    #[test]
    fn idle_threads_end() {
        let pool = WorkerPool::with(2, Duration::from_millis(1), STACK_SIZE);
        run(&pool, || ());
        let deadline = std::time::Instant::now() + TEST_TIMEOUT;
        while pool.shared.lock().threads > 0 {
            assert!(std::time::Instant::now() < deadline, "the thread ends");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(run(&pool, || 1), 1, "and another takes its place when there is work");
    }

    #[test]
    fn dropping_the_pool_runs_what_is_queued_and_leaks_no_thread() {
        let pool = WorkerPool::new(1);
        let shared = Arc::downgrade(&pool.shared);
        let release = occupy(&pool);
        let (sender, ended) = channel();
        submit(&pool, move || sender.send(()).expect("the test waits"));
        // Returns while the first job is still running.
        drop(pool);
        drop(release);
        ended.recv_timeout(TEST_TIMEOUT).expect("the queued job runs");
        wait_for_threads_to_end(&shared);
    }

    #[test]
    fn dropping_an_idle_pool_ends_its_threads() {
        let pool = WorkerPool::new(2);
        let shared = Arc::downgrade(&pool.shared);
        run(&pool, || ());
        drop(pool);
        wait_for_threads_to_end(&shared);
    }

    #[test]
    fn abandoning_takes_no_lock() {
        let pool = Arc::new(WorkerPool::new(1));
        let other = Arc::clone(&pool);
        let shared = Arc::clone(&pool.shared);
        let held = shared.lock();
        pool.abandon();
        drop(other);
        assert!(!held.closing);
    }
}
