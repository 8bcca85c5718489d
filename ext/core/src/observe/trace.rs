//! What a trace records: events, each with its time, in a ring of a fixed size.
//!
//! A record has numbers alone, so that recording allocates nothing and formats nothing. `lib/heddle/traces/` makes
//! names and intervals of them when the trace has ended. All schedulers of a process write to one ring, so the records
//! that are left when the ring overflows are of the same time for all. Only one thread at a time writes, as Ruby's GVL
//! guards all schedulers.

use std::cell::{Cell, RefCell};
use std::collections::TryReserveError;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The number of bytes that [`TraceRecord::write_to`] appends.
pub const RECORD_SIZE: usize = 34;

/// What a [`TraceRecord`] tells. The fields that a kind does not name are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// `fiber` starts a slice. The fiber that ran until then, if any, waits for `what`, `value` and `detail`.
    Switch = 0,
    /// `fiber` ends its slice, and no other fiber starts one. It waits for `what`, `value` and `detail`.
    Leave = 1,
    /// `fiber` becomes runnable. `what` is a [`WakeSource`]. For a fiber, `value` is its track and `detail` its number.
    Wake = 2,
    /// The number `fiber` names no fiber any more. `detail` is the identity of the fiber that it named.
    End = 3,
    /// An operation of the kind `what` begins for `fiber` on descriptor `value`. `detail` is its token.
    OperationBegin = 4,
    /// The operation with the token `detail` ends with the result `value`. If `what` is not zero, it makes `fiber`
    /// runnable, if that waits.
    OperationEnd = 5,
    /// A system call of the kind `what` on descriptor `value`, which did not wait, ends with the result `detail`, of
    /// which the lower half counts.
    Attempt = 6,
    /// A poll that took `detail` nanoseconds and found `value` completions. `what` says whether it waited.
    Poll = 7,
    /// A stall of `detail` nanoseconds ends in the current fiber. It has delayed `value` fibers.
    Stall = 8,
    /// A garbage collection, or a step of one, that took `detail` nanoseconds on the thread `fiber`.
    Collection = 9,
    /// `fiber` gets the name with the number `detail`.
    Name = 10,
    /// `fiber` waits for `what`, `value` and `detail` when the trace begins.
    Waiting = 11,
    /// The scheduler is closed.
    Close = 12,
}

/// What has woken a fiber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WakeSource {
    /// Another fiber.
    Fiber = 0,
    /// A timer that has expired.
    Timer = 1,
    /// A thread, outside of any fiber of a scheduler that is traced.
    Thread = 2,
    /// The completion of an operation. No [`Kind::Wake`] has this.
    Completion = 3,
}

/// What a fiber waits for when its slice ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subject {
    /// The kind of wait.
    pub what: u8,
    /// A descriptor or a process.
    pub value: i32,
    /// More about it.
    pub detail: u64,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRecord {
    /// In nanoseconds since the trace began.
    pub time: u64,
    /// The number of a fiber on its track.
    pub fiber: u64,
    /// See [`Kind`].
    pub detail: u64,
    /// See [`Kind`].
    pub value: i32,
    /// The scheduler.
    pub track: u32,
    /// What this record tells.
    pub kind: Kind,
    /// See [`Kind`].
    pub what: u8,
}

impl TraceRecord {
    /// Appends the fields in the order of their declaration, each with the least significant byte first.
    pub fn write_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.time.to_le_bytes());
        bytes.extend_from_slice(&self.fiber.to_le_bytes());
        bytes.extend_from_slice(&self.detail.to_le_bytes());
        bytes.extend_from_slice(&self.value.to_le_bytes());
        bytes.extend_from_slice(&self.track.to_le_bytes());
        bytes.extend_from_slice(&[self.kind as u8, self.what]);
    }
}

/// The records of a trace. When it is full, each further record replaces the oldest one.
#[derive(Debug)]
pub struct Ring {
    records: Vec<TraceRecord>,
    capacity: usize,
    /// The number of records so far.
    total: u64,
    /// The number of last records that have no time yet.
    untimed: usize,
    origin: Instant,
}

impl Ring {
    /// An empty ring. All of its memory is allocated here.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(capacity: usize) -> Result<Self, TryReserveError> {
        let mut records = Vec::new();
        records.try_reserve_exact(capacity)?;
        advise_huge_pages(&records);
        Ok(Ring { records, capacity, total: 0, untimed: 0, origin: Instant::now() })
    }

    /// The trace begins now.
    pub fn begin(&mut self) {
        self.origin = Instant::now();
    }

    /// `at` in nanoseconds since the trace began.
    pub fn time_of(&self, at: Instant) -> u64 {
        nanoseconds(at.saturating_duration_since(self.origin))
    }

    /// The present time, in nanoseconds since the trace began.
    pub fn now(&self) -> u64 {
        self.time_of(Instant::now())
    }

    /// Adds a record. The records without a time before it get its time.
    pub fn push(&mut self, record: TraceRecord) {
        if self.untimed > 0 {
            self.give_time(record.time);
        }
        self.add(record);
    }

    /// Adds a record that gets the time of the next one.
    pub fn push_untimed(&mut self, record: TraceRecord) {
        self.add(record);
        self.untimed = (self.untimed + 1).min(self.capacity);
    }

    /// The records without a time get this one.
    pub fn give_time(&mut self, time: u64) {
        for back in 1..=self.untimed as u64 {
            let index = ((self.total - back) % self.capacity as u64) as usize;
            self.records[index].time = time;
        }
        self.untimed = 0;
    }

    fn add(&mut self, record: TraceRecord) {
        if self.records.len() < self.capacity {
            self.records.push(record);
        } else {
            let oldest = self.oldest();
            self.records[oldest] = record;
        }
        self.total += 1;
    }

    /// The index of the oldest record.
    fn oldest(&self) -> usize {
        if self.records.len() < self.capacity { 0 } else { (self.total % self.capacity as u64) as usize }
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many records fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many records have been replaced.
    pub fn dropped(&self) -> u64 {
        self.total - self.records.len() as u64
    }

    /// All records, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &TraceRecord> {
        let (newer, older) = self.records.split_at(self.oldest());
        older.iter().chain(newer)
    }

    /// `count` records, as [`TraceRecord::write_to`] writes them, from the one at the position `from` on. Fewer if there
    /// are no more.
    pub fn bytes(&self, from: usize, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count.min(self.len()) * RECORD_SIZE);
        let oldest = self.oldest();
        for position in from..from.saturating_add(count).min(self.len()) {
            self.records[(oldest + position) % self.records.len()].write_to(&mut bytes);
        }
        bytes
    }
}

/// The first write to each page of memory takes longer than a hundred records do. Where the kernel has larger pages,
/// there are fewer of them.
fn advise_huge_pages(records: &Vec<TraceRecord>) {
    const PAGE: usize = 4096;
    let begin = records.as_ptr().addr().next_multiple_of(PAGE);
    let end = records.as_ptr().addr() + records.capacity() * size_of::<TraceRecord>();
    if end > begin {
        // SAFETY: whole pages within memory that `records` owns; the advice does not change their contents.
        unsafe { libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_HUGEPAGE) };
    }
}

/// The whole nanoseconds of a duration.
pub fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into())
}

thread_local! {
    /// The track and the number of the fiber that runs on this thread, if it is traced.
    static RUNNING: Cell<Option<(u32, u64)>> = const { Cell::new(None) };
}

/// Where a scheduler's records go.
#[derive(Debug)]
pub struct Track {
    ring: Rc<RefCell<Ring>>,
    number: u32,
    running: Option<u64>,
    /// What wakes fibers now, if that is not the running fiber, and the time since when. All records until it changes
    /// have this time: reading the clock is most of what a record costs.
    source: Option<(WakeSource, u64)>,
}

impl Track {
    /// A track with this number, which no other has.
    pub fn new(ring: Rc<RefCell<Ring>>, number: u32) -> Self {
        Track { ring, number, running: None, source: None }
    }

    fn push(&self, time: Option<Instant>, kind: Kind, fiber: u64, subject: Subject) {
        let Subject { what, value, detail } = subject;
        let mut ring = self.ring.borrow_mut();
        let time = match (time, self.source) {
            (Some(time), _) => ring.time_of(time),
            (None, Some((_, time))) => time,
            (None, None) => ring.now(),
        };
        ring.push(TraceRecord { time, fiber, detail, value, track: self.number, kind, what });
    }

    /// Whether this fiber has a slice.
    pub fn runs(&self, fiber: u64) -> bool {
        self.running == Some(fiber)
    }

    /// `fiber` starts a slice, and the slice of the fiber that waits for `left` ends.
    pub fn switch(&mut self, fiber: u64, left: Subject) {
        self.push(None, Kind::Switch, fiber, left);
        self.set_running(Some(fiber));
    }

    /// `fiber` ends its slice, if it has one.
    pub fn leave(&mut self, fiber: u64, left: Subject) {
        if self.running.is_some() {
            self.push(None, Kind::Leave, fiber, left);
            self.set_running(None);
        }
    }

    /// `fiber` runs when the trace begins, on this thread if it runs `here`.
    pub fn running(&mut self, fiber: u64, here: bool) {
        self.push(None, Kind::Switch, fiber, Subject::default());
        self.running = Some(fiber);
        if here {
            RUNNING.set(Some((self.number, fiber)));
        }
    }

    fn set_running(&mut self, fiber: Option<u64>) {
        self.running = fiber;
        RUNNING.set(fiber.map(|fiber| (self.number, fiber)));
    }

    /// Fibers that become runnable have been woken by this from now on; `None` for the running fiber of the thread.
    pub fn set_source(&mut self, source: Option<WakeSource>) {
        self.source = source.map(|source| (source, self.ring.borrow().now()));
    }

    /// `fiber` becomes runnable. The record of a completion tells that itself.
    pub fn wake(&self, fiber: u64) {
        let subject = match (self.source, RUNNING.get()) {
            (Some((WakeSource::Completion, _)), _) => return,
            (Some((source, _)), _) => Subject { what: source as u8, ..Subject::default() },
            (None, Some((track, waker))) => {
                Subject { what: WakeSource::Fiber as u8, value: track.cast_signed(), detail: waker }
            }
            (None, None) => Subject { what: WakeSource::Thread as u8, ..Subject::default() },
        };
        self.push(None, Kind::Wake, fiber, subject);
    }

    /// The number names no fiber any more. It has named the one with this identity.
    pub fn end(&mut self, fiber: u64, identity: u64) {
        self.push(None, Kind::End, fiber, Subject { detail: identity, ..Subject::default() });
        if self.running == Some(fiber) {
            self.set_running(None);
        }
    }

    /// `fiber` waits when the trace begins.
    pub fn waiting(&self, fiber: u64, subject: Subject) {
        self.push(None, Kind::Waiting, fiber, subject);
    }

    /// An operation begins. The fiber leaves right afterwards, so this needs no reading of the clock.
    pub fn operation_begin(&self, fiber: u64, what: u8, fd: i32, token: u64) {
        let kind = Kind::OperationBegin;
        let record = TraceRecord { time: 0, fiber, detail: token, value: fd, track: self.number, kind, what };
        self.ring.borrow_mut().push_untimed(record);
    }

    /// An operation ends, and wakes a fiber if that waits for it.
    pub fn operation_end(&self, token: u64, result: i32, fiber: Option<u64>) {
        let subject = Subject { what: u8::from(fiber.is_some()), value: result, detail: token };
        self.push(None, Kind::OperationEnd, fiber.unwrap_or(0), subject);
    }

    /// A system call that does not wait ends.
    pub fn attempt(&self, fiber: u64, what: u8, fd: i32, result: i32) {
        self.push(None, Kind::Attempt, fiber, Subject { what, value: fd, detail: result.cast_unsigned().into() });
    }

    /// A poll that began at this time ends.
    pub fn poll(&self, began: Instant, waited: bool, completions: u64) {
        let value = i32::try_from(completions).unwrap_or(i32::MAX);
        // It may have begun before the trace.
        let length = {
            let ring = self.ring.borrow();
            ring.now() - ring.time_of(began)
        };
        self.push(Some(began), Kind::Poll, 0, Subject { what: u8::from(waited), value, detail: length });
    }

    /// A stall has ended at this time.
    pub fn stall(&self, at: Instant, length: Duration, late: usize) {
        let value = i32::try_from(late).unwrap_or(i32::MAX);
        self.push(Some(at), Kind::Stall, 0, Subject { what: 0, value, detail: nanoseconds(length) });
    }

    /// A fiber gets a name.
    pub fn name(&self, fiber: u64, name: u64) {
        self.push(None, Kind::Name, fiber, Subject { detail: name, ..Subject::default() });
    }

    /// The scheduler is closed.
    pub fn close(&mut self) {
        self.push(None, Kind::Close, 0, Subject::default());
        self.set_running(None);
    }

    /// The track's number.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Track {
    /// The thread's running fiber is not traced any more. On another thread its number stays, and names nothing.
    fn drop(&mut self) {
        if RUNNING.try_with(Cell::get).is_ok_and(|running| running.is_some_and(|(track, _)| track == self.number)) {
            RUNNING.set(None);
        }
    }
}

#[cfg(test)]
mod tests;
