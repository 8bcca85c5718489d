//! Fibers of a simulated scheduler. They use the run queue, the timers and the operations as Heddle's do.
//!
//! What is checked while a world runs:
//!
//! * An operation never uses another file than the one for which it was begun, although numbers are reused.
//! * Memory is not freed while an operation uses it, and a token is not reused before its completion.
//! * A fiber gets the result of its own operation, or learns that the descriptor was closed. What no fiber cancels is
//!   not cancelled.
//! * No wake-up is lost: when nothing can come any more, each fiber that waits waits for what has not come.
//! * Each fiber ends once it is asked to, and then no operation, timer or memory is left.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use heddle_core::explore::exploration::Exploration;
use heddle_core::explore::strategy::Strategy;
use heddle_core::io::operations::{OperationEnd, Operations, Ticket};
use heddle_core::queue::run_queue::{Policy, RunQueue};
use heddle_core::queue::timers::{TimerKey, Timers};
use heddle_core::{Backend, Interest, Operation};

use crate::kernel::{FileId, KernelHandle, Memory, OperationId, Simulated};

/// What a fiber does next.
#[derive(Debug, Clone)]
pub enum Action {
    /// Reads, and cancels the read after `limit` milliseconds.
    Read {
        number: usize,
        limit: Option<u64>,
    },
    /// Waits for readiness, for `limit` milliseconds.
    Ready {
        number: usize,
        limit: Option<u64>,
    },
    /// So many milliseconds.
    Sleep(u64),
    Yield,
    /// Until another fiber wakes it.
    Suspend,
    Wake(usize),
    Raise(usize),
    /// Waits for the ends of the operations on the number, and then gives it to another file.
    Close(usize),
    /// Gives the number to another file without waiting, as the garbage collector does.
    CloseAtOnce(usize),
    /// The fiber never runs again.
    Abandon(usize),
}

/// What a fiber waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Nothing,
    Operation(Begun),
    /// The end of an operation that it has cancelled.
    Cancelled {
        ticket: Ticket,
        id: OperationId,
    },
    Sleep(TimerKey),
    Suspended,
    Close(usize),
}

/// An operation that a fiber has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    ticket: Ticket,
    id: OperationId,
    number: usize,
    file: FileId,
    timer: Option<TimerKey>,
    is_transfer: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Runnable,
    Running,
    Waiting,
    Ended,
}

struct Fiber {
    state: State,
    /// Its entry in the run queue is valid if it has this number.
    epoch: u32,
    wait: Wait,
    actions: VecDeque<Action>,
    raised: bool,
    woken: bool,
}

struct File {
    id: FileId,
    /// What operations on it read into: freed when the file is closed.
    memory: Rc<Memory>,
    is_closing: bool,
}

pub struct World {
    start: Instant,
    kernel: KernelHandle,
    backend: Simulated,
    fibers: Vec<Fiber>,
    files: Vec<File>,
    queue: RunQueue<(usize, u32)>,
    exploration: Exploration,
    timers: Timers<usize>,
    operations: Operations<usize, Rc<Memory>>,
    is_ending: bool,
}

impl World {
    pub fn new(programs: Vec<Vec<Action>>, numbers: usize, seed: u64) -> Self {
        let kernel = KernelHandle::new(seed);
        let fiber = |actions: Vec<Action>| Fiber {
            state: State::Waiting,
            epoch: 0,
            wait: Wait::Nothing,
            actions: actions.into(),
            raised: false,
            woken: false,
        };
        let mut world = World {
            start: Instant::now(),
            backend: Simulated::new(kernel.clone()),
            fibers: programs.into_iter().map(fiber).collect(),
            files: Vec::new(),
            queue: RunQueue::new(Policy::default()),
            exploration: Exploration::new(Strategy::random(seed), false),
            timers: Timers::new(),
            operations: Operations::default(),
            is_ending: false,
            kernel,
        };
        world.files = (0..numbers).map(|number| world.open(number)).collect();
        (0..world.fibers.len()).for_each(|fiber| world.wake(fiber));
        world
    }

    /// Runs all fibers to their ends.
    pub fn run(mut self) {
        loop {
            if !self.queue.is_empty() {
                let keys = self.queue.woken().map(|(fiber, _)| *fiber as u64);
                let index = self.exploration.next_index(keys);
                self.queue.move_to_head(index);
            }
            let fibers = &mut self.fibers;
            let next = self.queue.pop(|(fiber, epoch)| {
                let record = &mut fibers[*fiber];
                let is_valid = record.state == State::Runnable && record.epoch == *epoch;
                is_valid.then(|| {
                    record.state = State::Running;
                    *fiber
                })
            });
            match next {
                Some(fiber) => {
                    self.resume(fiber);
                    if self.kernel.get().random.below(4) == 0 {
                        self.poll(Some(Duration::ZERO));
                    }
                }
                None if self.is_over() => break,
                None => self.wait(),
            }
        }
        assert!(self.operations.is_empty() && self.timers.is_empty(), "something is left");
        // Checks that nothing uses the files' memory.
        self.files.clear();
    }

    fn is_over(&self) -> bool {
        self.fibers.iter().all(|fiber| fiber.state == State::Ended) && self.backend.is_idle()
    }

    /// No fiber is runnable.
    fn wait(&mut self) {
        self.cancel_closed();
        let deadline = self.timers.next_deadline();
        if self.backend.is_stuck() && deadline.is_none() {
            self.expect_rightful_waits();
            assert!(!self.is_ending, "a fiber does not end although it is asked to");
            self.is_ending = true;
            (0..self.fibers.len()).for_each(|fiber| self.raise(fiber));
            return;
        }
        let now = self.now();
        self.poll(deadline.map(|deadline| deadline.saturating_duration_since(now)));
    }

    /// What each fiber waits for has not come.
    fn expect_rightful_waits(&self) {
        for (fiber, Fiber { state, wait, woken, raised, .. }) in self.fibers.iter().enumerate() {
            let has_come = match wait {
                _ if *state == State::Ended => false,
                Wait::Operation(Begun { ticket, .. }) | Wait::Cancelled { ticket, .. } => {
                    !self.backend.has(ticket.token())
                }
                Wait::Suspended => *woken,
                Wait::Close(number) => !self.operations.names(*number as RawFd),
                Wait::Nothing | Wait::Sleep(_) => true,
            };
            assert!(!has_come && (!raised || *state == State::Ended), "fiber {fiber} misses its wake-up: {wait:?}");
        }
    }

    fn now(&self) -> Instant {
        self.start + self.kernel.get().elapsed
    }

    fn poll(&mut self, timeout: Option<Duration>) {
        self.cancel_closed();
        self.backend.wait(timeout).expect("a simulated wait succeeds");
        self.complete();
        let now = self.now();
        while let Some(fiber) = self.timers.pop_expired(now) {
            self.wake(fiber);
        }
    }

    fn cancel_closed(&mut self) {
        while let Some(token) = self.operations.next_to_cancel() {
            self.backend.cancel(token);
        }
    }

    fn complete(&mut self) {
        let mut arrived = Vec::new();
        self.backend.completions(&mut arrived);
        for completion in &arrived {
            if let Some(fiber) = self.operations.complete(completion) {
                self.wake(fiber);
            }
        }
        let closers = |fiber: &usize| matches!(self.fibers[*fiber].wait, Wait::Close(_));
        let closers: Vec<usize> = (0..self.fibers.len()).filter(closers).collect();
        closers.into_iter().filter(|_| !arrived.is_empty()).for_each(|fiber| self.wake(fiber));
    }

    fn wake(&mut self, fiber: usize) {
        if self.fibers[fiber].state == State::Waiting {
            self.enqueue(fiber);
        }
    }

    fn enqueue(&mut self, fiber: usize) {
        let record = &mut self.fibers[fiber];
        (record.state, record.epoch) = (State::Runnable, record.epoch + 1);
        self.queue.push_woken((fiber, record.epoch));
    }

    fn raise(&mut self, fiber: usize) {
        if self.fibers[fiber].state != State::Ended {
            self.fibers[fiber].raised = true;
            self.wake(fiber);
        }
    }

    fn open(&self, number: usize) -> File {
        let id = self.kernel.get().open(number as RawFd);
        File { id, memory: self.kernel.memory(), is_closing: false }
    }

    /// Runs a fiber until it waits or ends.
    fn resume(&mut self, fiber: usize) {
        while self.fibers[fiber].state == State::Running {
            if self.has_ended_wait(fiber) {
                self.fibers[fiber].wait = Wait::Nothing;
                self.act(fiber);
            } else {
                self.fibers[fiber].state = State::Waiting;
            }
        }
    }

    /// Whether the fiber need not wait any longer. If it is raised into, it may begin to wait for something else.
    fn has_ended_wait(&mut self, fiber: usize) -> bool {
        match self.fibers[fiber].wait {
            Wait::Nothing => true,
            Wait::Operation(begun) => {
                let has_ended = self.has_ended_operation(fiber, begun);
                if has_ended {
                    begun.timer.map(|timer| self.timers.cancel(timer));
                }
                has_ended
            }
            Wait::Cancelled { ticket, id } => match self.operations.take_result(ticket) {
                Some(ended) => {
                    self.expect_own(id, ended);
                    true
                }
                None => false,
            },
            Wait::Sleep(timer) => {
                let is_raised = std::mem::take(&mut self.fibers[fiber].raised);
                if is_raised {
                    self.timers.cancel(timer);
                }
                is_raised || !self.timers.is_pending(timer)
            }
            Wait::Suspended => {
                let record = &mut self.fibers[fiber];
                std::mem::take(&mut record.woken) | std::mem::take(&mut record.raised)
            }
            Wait::Close(number) => {
                let has_ended = !self.operations.names(number as RawFd);
                if has_ended {
                    self.files[number] = self.open(number);
                }
                // The operations end first: what is raised meanwhile comes later.
                has_ended
            }
        }
    }

    /// See `ext/heddle/src/io/operation.rs` and `readiness.rs`.
    fn has_ended_operation(&mut self, fiber: usize, begun: Begun) -> bool {
        let Begun { ticket, id, number, file, timer, is_transfer } = begun;
        if let Some(result) = self.operations.take_own_result(ticket) {
            self.expect_own(id, OperationEnd::Result(result));
            assert_ne!(result, -libc::ECANCELED, "operation {id} was cancelled by mistake");
            let File { id: open, is_closing, .. } = self.files[number];
            assert!(open == file && !is_closing, "operation {id} has a result although its number was closed");
            return true;
        }
        if let Some(ended) = self.operations.take_result(ticket) {
            assert_eq!(ended, OperationEnd::Closed);
            return true;
        }
        let is_late = timer.is_some_and(|timer| !self.timers.is_pending(timer));
        if !is_late && !std::mem::take(&mut self.fibers[fiber].raised) {
            return false;
        }
        if is_transfer {
            self.operations.under_way(ticket).inspect(|token| self.backend.cancel(*token));
            timer.map(|timer| self.timers.cancel(timer));
            self.fibers[fiber].wait = Wait::Cancelled { ticket, id };
            return self.has_ended_wait(fiber);
        }
        let token = self.operations.under_way(ticket).expect("it has no result");
        assert_eq!(self.operations.abandon(ticket), None);
        self.backend.cancel(token);
        true
    }

    fn expect_own(&self, id: OperationId, ended: OperationEnd) {
        if let OperationEnd::Result(result) = ended {
            assert_eq!(self.kernel.get().results.get(&id), Some(&result), "the result of operation {id}");
        }
    }

    fn act(&mut self, fiber: usize) {
        let action = self.fibers[fiber].actions.pop_front().filter(|_| !self.is_ending);
        let Some(action) = action else {
            self.fibers[fiber].state = State::Ended;
            return;
        };
        let other = |number: usize| number % self.fibers.len();
        match action {
            Action::Read { number, limit } => self.begin(fiber, number, limit, true),
            Action::Ready { number, limit } => self.begin(fiber, number, limit, false),
            Action::Sleep(time) => self.fibers[fiber].wait = Wait::Sleep(self.set_timer(fiber, time)),
            Action::Yield => self.enqueue(fiber),
            Action::Suspend => self.fibers[fiber].wait = Wait::Suspended,
            Action::Wake(number) => {
                let number = other(number);
                self.fibers[number].woken = true;
                self.wake(number);
            }
            Action::Raise(number) => self.raise(other(number)),
            Action::Close(number) => self.close(fiber, number),
            Action::CloseAtOnce(number) => self.close_at_once(number),
            Action::Abandon(number) => self.abandon(other(number)),
        }
    }

    fn set_timer(&mut self, fiber: usize, time: u64) -> TimerKey {
        self.timers.insert(self.now() + Duration::from_millis(time), fiber)
    }

    fn begin(&mut self, fiber: usize, number: usize, limit: Option<u64>, is_transfer: bool) {
        let File { id: file, ref memory, is_closing } = self.files[number];
        if is_closing {
            return;
        }
        let fd = number as RawFd;
        let operation = if is_transfer {
            let buffer = std::ptr::without_provenance_mut(memory.id);
            Operation::Read { fd, buffer, length: 1, offset: None, may_block: false }
        } else {
            Operation::Ready { fd, interest: Interest::READABLE }
        };
        let ticket = self.operations.begin(fiber, Some(&operation));
        let id = self.kernel.get().begin(ticket.token(), file);
        // SAFETY: the simulated backend does not use the memory.
        unsafe { self.backend.submit(ticket.token(), operation) };
        let timer = limit.map(|limit| self.set_timer(fiber, limit));
        self.fibers[fiber].wait = Wait::Operation(Begun { ticket, id, number, file, timer, is_transfer });
    }

    /// See `ext/heddle/src/io/descriptors.rs`.
    fn close(&mut self, fiber: usize, number: usize) {
        if std::mem::replace(&mut self.files[number].is_closing, true) {
            return;
        }
        self.operations.close(number as RawFd);
        // A closer on another thread leaves this to the next poll.
        if self.kernel.get().random.below(2) == 0 {
            self.cancel_closed();
            self.complete();
        }
        self.fibers[fiber].wait = Wait::Close(number);
    }

    fn close_at_once(&mut self, number: usize) {
        if self.files[number].is_closing {
            return;
        }
        self.operations.close(number as RawFd);
        self.cancel_closed();
        self.complete();
        self.operations.detach(number as RawFd, Some(&self.files[number].memory));
        self.files[number] = self.open(number);
    }

    /// See `ext/heddle/src/scheduler/state/ending.rs`.
    fn abandon(&mut self, fiber: usize) {
        for token in self.operations.abandon_all_of(&[fiber]) {
            self.backend.cancel(token);
        }
        self.timers.retain(|owner| *owner != fiber);
        if let Wait::Close(number) = self.fibers[fiber].wait {
            self.files[number].is_closing = false;
        }
        self.fibers[fiber].state = State::Ended;
    }
}
