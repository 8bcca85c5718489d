//! The operations that the backend, or a worker, performs for fibers: see `operations.rs` of the core.

use std::rc::Rc;

use heddle_core::io::operations::kind;
pub use heddle_core::io::operations::{OPERATION_KINDS, OperationEnd, Ticket};
use heddle_core::observe::trace::WakeSource;
use heddle_core::{Completion, Operation};

use super::State;
use crate::ruby::io::ReadBuffer;
use crate::scheduler::record::FiberKey;

/// The operations of a scheduler. One may own the read buffer of an IO that was closed meanwhile.
pub type Operations = heddle_core::io::operations::Operations<FiberKey, Rc<ReadBuffer>>;

impl State {
    /// See [`Operations::begin`].
    #[inline]
    pub fn begin_operation(&mut self, fiber: FiberKey, operation: Option<&Operation>) -> Ticket {
        let ticket = self.operations.begin(fiber, operation);
        if let Some(trace) = self.trace() {
            trace.operation_begin(fiber, kind(operation), operation.map_or(-1, Operation::fd), ticket.token());
        }
        ticket
    }

    /// Stores results, and wakes the fibers that wait for them.
    pub fn complete(&mut self, completions: impl Iterator<Item = Completion>) {
        let mut size = 0;
        self.trace_source(Some(WakeSource::Completion));
        for completion in completions {
            size += 1;
            let fiber = self.operations.complete(&completion);
            if let Some(trace) = self.trace() {
                trace.operation_end(&completion, fiber);
            }
            if let Some(fiber) = fiber {
                self.wake(fiber);
            }
        }
        self.trace_source(None);
        self.counters.batch(size);
        if size > 0 && self.closings.has_waiters() {
            self.wake_close_waiters();
        }
        self.closings.close_unnamed(&self.operations);
    }
}
