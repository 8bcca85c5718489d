//! What waits to be raised at the thread, as one tick after the other finds it.

use std::cell::Cell;

use crate::ruby::{interrupts, pending_interrupts};

/// Before it is raised nobody is preempted: it would strike another fiber. But what is masked may wait for long.
///
/// ```text
///               there is something            there still is            and still
///     Nothing ─────────────────────▶ Noticed ────────────────▶ Forgotten ─────────▶ Masked
///       ▲                              │                          │                  │
///       └──────────────────────────────┴──────────────────────────┴──────────────────┘
///                                there is nothing
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InterruptPhase {
    /// There is nothing.
    #[default]
    Nothing,
    /// Ruby is about to raise it.
    Noticed,
    /// Of several that come before Ruby looks it raises one, and forgets the others until the thread waits: it has been
    /// told to look again, and is to do so before anything else happens.
    Forgotten,
    /// Ruby has looked, and did not raise it.
    Masked,
}

impl InterruptPhase {
    /// What this tick finds, after `last`, where it is noted.
    pub fn at_tick(last: &Cell<Self>) -> Self {
        let found = last.get().next(pending_interrupts::is_any());
        last.set(found);
        if found == InterruptPhase::Forgotten {
            interrupts::look_again();
        }
        found
    }

    fn next(self, is_any: bool) -> Self {
        match self {
            _ if !is_any => InterruptPhase::Nothing,
            InterruptPhase::Nothing => InterruptPhase::Noticed,
            InterruptPhase::Noticed => InterruptPhase::Forgotten,
            InterruptPhase::Forgotten | InterruptPhase::Masked => InterruptPhase::Masked,
        }
    }

    /// Whether the fiber that runs may be preempted.
    pub fn lets_switch(self) -> bool {
        matches!(self, InterruptPhase::Nothing | InterruptPhase::Masked)
    }
}
