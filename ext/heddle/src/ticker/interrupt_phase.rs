//! The state of a thread's pending interrupts, as successive ticks find it.

use std::cell::Cell;

use magnus::Ruby;

use crate::ruby::{interrupts, pending_interrupts};

/// While an interrupt is pending no fiber is preempted, as Ruby would raise it in another fiber. But a masked interrupt
/// may stay pending for long, and must not stop preemption.
///
/// ```text
///             a tick finds one          the next, too            the next, too
///     None ────────────────────▶ Found ───────────────▶ Overdue ───────────────▶ Masked
///      ▲                           │                       │                       │
///      └───────────────────────────┴───────────────────────┴───────────────────────┘
///                                a tick finds none
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InterruptPhase {
    /// No interrupt is pending.
    #[default]
    None,
    /// An interrupt is pending, and Ruby is about to raise it.
    Found,
    /// It is still pending. If several arrive before Ruby's check, Ruby raises one, and the others only when the thread
    /// waits. So Ruby was asked to check again, and must do so before a switch.
    Overdue,
    /// Ruby has checked and did not raise it.
    Masked,
}

impl InterruptPhase {
    /// The phase that this tick finds, after that of the last tick, which it replaces.
    pub fn at_tick(ruby: &Ruby, last: &Cell<Self>) -> Self {
        let found = last.get().next(pending_interrupts::is_any(ruby));
        last.set(found);
        if found == InterruptPhase::Overdue {
            interrupts::request_check(ruby);
        }
        found
    }

    fn next(self, is_any: bool) -> Self {
        match self {
            _ if !is_any => InterruptPhase::None,
            InterruptPhase::None => InterruptPhase::Found,
            InterruptPhase::Found => InterruptPhase::Overdue,
            InterruptPhase::Overdue | InterruptPhase::Masked => InterruptPhase::Masked,
        }
    }

    /// Whether the current fiber may be preempted.
    pub fn lets_switch(self) -> bool {
        matches!(self, InterruptPhase::None | InterruptPhase::Masked)
    }
}
