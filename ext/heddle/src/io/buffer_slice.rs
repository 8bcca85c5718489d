//! The memory of a transfer, and how long it may be used.

use heddle_core::Interest;
use magnus::{Error, Ruby, Value};

use crate::ruby::call_sites::CallSite;
use crate::ruby::hook_interface;
use crate::ruby::io_buffer::{self, Contents, Memory};
use crate::scheduler::Scheduler;

/// How many bytes at most go through a bounce buffer at once; whoever wants more transfers again.
const MOST_BOUNCED: usize = 1 << 20;

/// Memory of the scheduler's, used instead of a program's buffer until this is dropped.
struct Bounce<'a> {
    scheduler: &'a Scheduler,
    place: usize,
    base: *mut u8,
}

impl<'a> Bounce<'a> {
    /// `None` if there is no memory.
    fn new(scheduler: &'a Scheduler, size: usize) -> Option<Self> {
        let mut memory: Vec<u8> = Vec::new();
        memory.try_reserve_exact(size).ok()?;
        let base = memory.as_mut_ptr();
        let place = scheduler.state.borrow_mut().bounce_buffers.insert(memory);
        Some(Bounce { scheduler, place, base })
    }
}

impl Drop for Bounce<'_> {
    fn drop(&mut self) {
        self.scheduler.state.borrow_mut().bounce_buffers.remove(self.place);
    }
}

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into memory.
    Read,
    /// From memory.
    Write,
}

impl Direction {
    /// What the descriptor has to be ready for.
    pub fn interest(self) -> Interest {
        match self {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        }
    }
}

/// Which part of a buffer a hook is about, and how much of it at least.
#[derive(Debug, Clone, Copy)]
pub struct SliceRange {
    /// Where in the buffer to begin.
    pub offset: usize,
    /// How many bytes to transfer at least; 0 is a single attempt that answers EAGAIN rather than wait.
    pub least: usize,
    /// How many bytes to transfer at most.
    pub most: usize,
}

impl SliceRange {
    /// What the last two arguments of a hook mean; see [`hook_interface::TRANSFERS_ARE_SINGLE`].
    pub fn new(first: usize, second: usize) -> Self {
        if hook_interface::TRANSFERS_ARE_SINGLE {
            SliceRange { offset: first, least: 0, most: second }
        } else {
            SliceRange { offset: second, least: first, most: usize::MAX }
        }
    }
}

/// A piece of memory to read into, or to write from. It is valid until another fiber or thread runs, and afterwards only
/// if it is pinned: an `IO::Buffer` of the program's own can be freed or resized while a fiber waits.
#[derive(Debug, Clone, Copy)]
pub struct BufferSlice {
    memory: Memory,
    /// The buffer that it must be asked from again, and where in that it begins. `None` if it is surely pinned.
    owner: Option<(Value, usize)>,
    looks_pinned: bool,
}

impl BufferSlice {
    /// The part of `buffer` that a hook is about.
    ///
    /// # Errors
    /// ArgumentError if the buffer is too short for it, and what [`io_buffer`] tells.
    pub fn of(ruby: &Ruby, direction: Direction, buffer: Value, range: SliceRange) -> Result<Self, Error> {
        let Contents { memory, looks_pinned } = match direction {
            Direction::Read => io_buffer::for_writing(buffer)?,
            Direction::Write => io_buffer::for_reading(buffer)?,
        };
        let SliceRange { offset, least, most } = range;
        match memory.size.checked_sub(offset) {
            Some(available) if available >= least => {
                let memory = Memory { base: memory.base.wrapping_add(offset), size: available.min(most) };
                Ok(BufferSlice { memory, owner: Some((buffer, offset)), looks_pinned })
            }
            _ => Err(Error::new(
                ruby.exception_arg_error(),
                format!("a buffer of {} bytes has no {least} bytes from offset {offset} on", memory.size),
            )),
        }
    }

    /// # Safety
    /// `memory` is valid for as long as the piece is used.
    pub unsafe fn pinned(memory: Memory) -> Self {
        BufferSlice { memory, owner: None, looks_pinned: true }
    }

    /// Its memory, to be used before another fiber runs.
    pub fn memory(self) -> Memory {
        self.memory
    }

    /// How many bytes it has.
    pub fn size(self) -> usize {
        self.memory.size
    }

    /// What is left of it after the first `done` bytes.
    pub fn after(self, done: usize) -> Self {
        let memory = Memory { base: self.memory.base.wrapping_add(done), size: self.memory.size - done };
        BufferSlice { memory, owner: self.owner.map(|(buffer, offset)| (buffer, offset + done)), ..self }
    }

    /// The same piece, after others have run.
    ///
    /// # Errors
    /// As [`of`](Self::of): the buffer may have been freed or become too short.
    pub fn renewed(self, ruby: &Ruby, call_site: &CallSite<'_>, direction: Direction) -> Result<Self, Error> {
        match self.owner {
            Some((buffer, offset)) if !self.is_pinned(call_site) => {
                BufferSlice::of(ruby, direction, buffer, SliceRange { offset, least: self.size(), most: self.size() })
            }
            _ => Ok(self),
        }
    }

    fn is_pinned(self, call_site: &CallSite<'_>) -> bool {
        self.looks_pinned && !call_site.traits().lends_own_buffer
    }

    /// Calls `transfer` with memory that is valid until it returns, even if the fiber waits meanwhile: this, or a bounce
    /// buffer in its place. `count` tells of the result how many bytes that were.
    ///
    /// # Errors
    /// What `transfer` raises. After a read, too, that the buffer has been freed or become too short meanwhile;
    /// NoMemoryError if there is no memory for a bounce buffer.
    pub fn while_pinned<R>(
        self,
        ruby: &Ruby,
        scheduler: &Scheduler,
        call_site: &CallSite<'_>,
        direction: Direction,
        transfer: impl FnOnce(Memory) -> Result<R, Error>,
        count: impl FnOnce(&R) -> usize,
    ) -> Result<R, Error> {
        let (buffer, offset) = match self.owner {
            Some(owner) if !self.is_pinned(call_site) => owner,
            _ => return transfer(self.memory),
        };
        let size = self.memory.size.min(MOST_BOUNCED);
        let Some(bounce) = Bounce::new(scheduler, size) else {
            let message = format!("no memory to keep {size} bytes of an IO::Buffer in while a fiber waits");
            return Err(Error::new(ruby.exception_no_mem_error(), message));
        };
        let base = bounce.base;
        if direction == Direction::Write {
            // SAFETY: the piece is valid, as no other fiber has run since it was made; `bounce` has room for `size`.
            unsafe { std::ptr::copy_nonoverlapping(self.memory.base, base, size) };
        }
        let result = transfer(Memory { base, size })?;
        let done = count(&result);
        if direction == Direction::Read && done > 0 {
            let BufferSlice { memory, .. } =
                BufferSlice::of(ruby, direction, buffer, SliceRange { offset, least: done, most: done })?;
            // SAFETY: that is `done` bytes, valid as no other fiber has run since, and so many were read into `bounce`.
            unsafe { std::ptr::copy_nonoverlapping(base, memory.base, done) };
        }
        Ok(result)
    }
}
