//! The memory of a transfer, and how long it stays valid.

use magnus::{Error, Ruby, Value};

use super::transfer::{Direction, Transfer};
use crate::ruby::error;
use crate::ruby::io_buffer::{self, Contents, Memory};
use crate::ruby::outcome::Ignore;
use crate::scheduler::Scheduler;

/// The largest transfer through a bounce buffer. The caller transfers the rest next.
const MAX_BOUNCED: usize = 1 << 20;

/// A bounce buffer: memory of the scheduler that replaces a program's buffer until this is dropped.
struct Bounce<'a> {
    scheduler: &'a Scheduler,
    slot: usize,
    base: *mut u8,
}

impl<'a> Bounce<'a> {
    /// Allocates `size` bytes. `None` if there is no memory.
    fn new(scheduler: &'a Scheduler, size: usize) -> Option<Self> {
        let mut memory: Vec<u8> = Vec::new();
        memory.try_reserve_exact(size).ignored("no memory")?;
        let base = memory.as_mut_ptr();
        let slot = scheduler.state.borrow_mut().resources.keep_memory(memory);
        Some(Bounce { scheduler, slot, base })
    }
}

impl Drop for Bounce<'_> {
    fn drop(&mut self) {
        self.scheduler.state.borrow_mut().resources.free_memory(self.slot);
    }
}

/// The part of a buffer that a hook reads into or writes from.
#[derive(Debug, Clone, Copy)]
pub struct SliceRange {
    /// Where in the buffer the part begins.
    pub offset: usize,
    /// The least number of bytes to transfer; 0 means a single try that returns EAGAIN rather than wait.
    pub min_length: usize,
    /// The greatest number of bytes to transfer.
    pub max_length: usize,
}

impl SliceRange {
    /// The range that the last two arguments of a hook mean. `SINGLE` says how; see
    /// [`hook_interface::TRANSFERS_ARE_SINGLE`](crate::ruby::hook_interface::TRANSFERS_ARE_SINGLE).
    pub fn new<const SINGLE: bool>(first: usize, second: usize) -> Self {
        if SINGLE {
            SliceRange { offset: first, min_length: 0, max_length: second }
        } else {
            SliceRange { offset: second, min_length: first, max_length: usize::MAX }
        }
    }

    /// How many bytes the buffer must have from the offset on.
    fn required(self) -> usize {
        if self.max_length == usize::MAX { self.min_length } else { self.max_length }
    }
}

/// Memory to read into, or to write from. It is valid until another fiber or thread runs, and longer only if it is
/// pinned: the program can free or resize its own `IO::Buffer` while a fiber waits.
#[derive(Debug, Clone, Copy)]
pub struct BufferSlice {
    memory: Memory,
    /// The buffer from which the memory must be obtained again, and its offset there. `None` if it is certainly pinned.
    owner: Option<(Value, usize)>,
    looks_pinned: bool,
}

impl BufferSlice {
    /// The part of `buffer` that `range` names.
    ///
    /// # Errors
    /// ArgumentError if the buffer is too short, and the errors of [`io_buffer`].
    pub fn of(ruby: &Ruby, direction: Direction, buffer: Value, range: SliceRange) -> Result<Self, Error> {
        BufferSlice::within(ruby, io_buffer::contents(buffer, direction.needs_writable())?, buffer, range)
    }

    /// The part of `buffer`, which has this memory, that `range` names.
    ///
    /// # Errors
    /// ArgumentError if the buffer is too short.
    pub fn within(ruby: &Ruby, contents: Contents, buffer: Value, range: SliceRange) -> Result<Self, Error> {
        let Contents { memory, looks_pinned } = contents;
        let (offset, required) = (range.offset, range.required());
        match memory.size.checked_sub(offset) {
            Some(available) if available >= required => {
                let memory = Memory { base: memory.base.wrapping_add(offset), size: available.min(range.max_length) };
                Ok(BufferSlice { memory, owner: Some((buffer, offset)), looks_pinned })
            }
            _ => Err(error::of(
                ruby.exception_arg_error(),
                format!("a buffer of {} bytes has no {required} bytes from offset {offset} on", memory.size),
            )),
        }
    }

    /// A slice of memory that stays in place while the fiber waits.
    ///
    /// # Safety
    /// `memory` is valid for as long as the slice is used.
    pub unsafe fn pinned(memory: Memory) -> Self {
        BufferSlice { memory, owner: None, looks_pinned: true }
    }

    /// The memory, to be used before another fiber runs.
    pub fn memory(self) -> Memory {
        self.memory
    }

    /// The number of bytes.
    pub fn size(self) -> usize {
        self.memory.size
    }

    /// The slice without its first `done` bytes.
    pub fn after(self, done: usize) -> Self {
        let memory = Memory { base: self.memory.base.wrapping_add(done), size: self.memory.size - done };
        BufferSlice { memory, owner: self.owner.map(|(buffer, offset)| (buffer, offset + done)), ..self }
    }

    /// The same slice, obtained again after other fibers have run.
    ///
    /// # Errors
    /// As [`of`](Self::of): the buffer may have been freed or become too short.
    pub fn renewed(self, transfer: &Transfer<'_>) -> Result<Self, Error> {
        match self.owner {
            Some((buffer, offset)) if !self.is_pinned(transfer) => BufferSlice::of(
                transfer.ruby,
                transfer.direction,
                buffer,
                SliceRange { offset, min_length: self.size(), max_length: self.size() },
            ),
            _ => Ok(self),
        }
    }

    /// Whether the memory stays in place while the fiber waits.
    pub fn is_pinned(self, transfer: &Transfer<'_>) -> bool {
        self.looks_pinned && !transfer.caller().lends_own_buffer
    }

    /// Calls `run` with memory that is valid until it returns, even if the fiber waits: this slice, or a bounce
    /// buffer instead. `count` returns the number of transferred bytes of a result.
    ///
    /// # Errors
    /// What `run` raises. After a read, an error if the buffer was freed or became too short during the wait.
    /// NoMemoryError if there is no memory for a bounce buffer.
    pub fn while_pinned<R>(
        self,
        transfer: &Transfer<'_>,
        run: impl FnOnce(Memory) -> Result<R, Error>,
        count: impl FnOnce(&R) -> usize,
    ) -> Result<R, Error> {
        let &Transfer { ruby, scheduler, direction, .. } = transfer;
        let (buffer, offset) = match self.owner {
            Some(owner) if !self.is_pinned(transfer) => owner,
            _ => return run(self.memory),
        };
        let size = self.memory.size.min(MAX_BOUNCED);
        let Some(bounce) = Bounce::new(scheduler, size) else {
            let message = format!("no memory to keep {size} bytes of an IO::Buffer in while a fiber waits");
            return Err(error::of(ruby.exception_no_mem_error(), message));
        };
        let base = bounce.base;
        if direction == Direction::Write {
            // SAFETY: the slice is valid, as no other fiber has run since it was made; `bounce` has room for `size`.
            unsafe { std::ptr::copy_nonoverlapping(self.memory.base, base, size) };
        }
        let result = run(Memory { base, size })?;
        let done = count(&result);
        if direction == Direction::Read && done > 0 {
            let BufferSlice { memory, .. } =
                BufferSlice::of(ruby, direction, buffer, SliceRange { offset, min_length: done, max_length: done })?;
            // SAFETY: `memory` has `done` bytes and is valid, as no other fiber has run since. `bounce` has them, too.
            unsafe { std::ptr::copy_nonoverlapping(base, memory.base, done) };
        }
        Ok(result)
    }
}
