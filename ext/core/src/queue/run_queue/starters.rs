//! Fibers that have started another fiber, which runs first.
//!
//! A starter continues ahead of the woken fibers, as with Go's `runnext` and tokio's LIFO slot. At the end of the queue
//! it would start one fiber per round, and so N fibers in N²/2 slices of the others. But a fiber that starts fibers for
//! ever must not starve the others, and each fiber that it starts may compute. So starters and woken fibers alternate
//! by time:
//!
//! ```text
//!                 a tick has elapsed since the round began, or
//!                 a fiber that was started in it was preempted
//!     in a round ─────────────────────────────────────────────▶ late
//!          │                                                      │
//!          │ the started fiber waits                              │ all woken fibers have run once,
//!          ▼                                                      ▼ or woken fibers have run for a tick
//!        runs                                                   runs
//! ```
//!
//! A fiber that yields runs behind its starter in either case.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Woken fibers that run ahead of late starters.
struct Ahead {
    since: Instant,
    /// How many have not run yet.
    left: usize,
}

/// A starter that was dequeued.
pub struct Continued<R> {
    /// What the claim has returned for its entry.
    pub claimed: R,
    /// When its round began, if it continues in one.
    pub round: Option<Instant>,
}

/// See the module.
pub struct Starters<T> {
    /// Those of the present round. The last one continues first: each has started the one after it.
    round: Vec<T>,
    /// When the round began. Means something only while there is one.
    began: Instant,
    late: VecDeque<T>,
    /// Which woken fibers run ahead of late starters.
    ahead: Option<Ahead>,
}

impl<T> Starters<T> {
    pub fn new() -> Self {
        Starters { round: Vec::new(), began: Instant::now(), late: VecDeque::new(), ahead: None }
    }

    pub fn len(&self) -> usize {
        self.round.len() + self.late.len()
    }

    pub fn is_empty(&self) -> bool {
        self.round.is_empty() && self.late.is_empty()
    }

    /// Enqueues the current fiber, which has run since `running_since` and starts another one.
    pub fn push(&mut self, entry: T, running_since: Instant) {
        if self.round.is_empty() {
            self.began = running_since;
        }
        self.round.push(entry);
    }

    /// Ends the round: woken fibers run next.
    pub fn end_round(&mut self) {
        self.late.extend(self.round.drain(..).rev());
    }

    /// Dequeues the starter that is next, unless a woken fiber is: `woken` of them run ahead of late starters. Drops
    /// entries for which `claim` returns none.
    pub fn pop<R>(
        &mut self,
        now: Instant,
        tick: Duration,
        woken: usize,
        claim: &mut impl FnMut(&T) -> Option<R>,
    ) -> Option<Continued<R>> {
        if !self.round.is_empty() {
            #[cfg(heddle_disturbed)]
            let tick = crate::disturbed::round(tick);
            if now.saturating_duration_since(self.began) < tick {
                let round = Some(self.began);
                let continued = std::iter::from_fn(|| self.round.pop()).find_map(continue_by(claim, round));
                if continued.is_some() {
                    return continued;
                }
            }
            self.end_round();
        }
        if self.late.is_empty() {
            return None;
        }
        let ahead = self.ahead.get_or_insert(Ahead { since: now, left: woken });
        if woken > 0 && ahead.left > 0 && now.saturating_duration_since(ahead.since) < tick {
            ahead.left -= 1;
            return None;
        }
        self.ahead = None;
        std::iter::from_fn(|| self.late.pop_front()).find_map(continue_by(claim, None))
    }
}

fn continue_by<T, R>(
    claim: &mut impl FnMut(&T) -> Option<R>,
    round: Option<Instant>,
) -> impl FnMut(T) -> Option<Continued<R>> {
    move |entry| claim(&entry).map(|claimed| Continued { claimed, round })
}
