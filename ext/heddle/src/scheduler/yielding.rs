//! A fiber gives up its turn by itself: `sleep(0)`, and `yield`.
//!
//! Nothing is done more often where fibers are many and have little to do. So the books are opened once on the way to the
//! next fiber, and once on the way back.

use magnus::{Error, Ruby};

use super::hand_off::{Glance, Stage};
use super::wait::Wait;
use super::{Scheduler, Visit};
use crate::ruby::fiber;

impl Scheduler {
    /// Gives the turn to the others, once round. This is a whole hook.
    #[inline(always)]
    pub(super) fn yield_turn(&self, ruby: &Ruby) -> Result<(), Error> {
        let (visit, (outer, glance)) = self.enter_and(
            ruby,
            #[inline(always)]
            |turns, current| {
                let (key, outer) = turns.yield_turn(current)?;
                Some((key, (outer, self.glance(turns, key))))
            },
        )?;
        let key = visit.key;
        let stage = match glance {
            Glance::Switch(next) => match self.switch(ruby, key, || fiber::transfer(next)) {
                Ok(()) if self.turns.borrow_mut().end_plain_yield(key, outer) => {
                    // It has ended with that.
                    std::mem::forget(visit);
                    self.tick_for(key);
                    return Ok(());
                }
                switched => Stage::Back(switched),
            },
            glance => Stage::Look(glance),
        };
        self.yield_at_length(ruby, visit, outer, stage)
    }

    #[cold]
    fn yield_at_length(&self, ruby: &Ruby, visit: Visit<'_>, outer: Wait, stage: Stage) -> Result<(), Error> {
        let result = self.park_at_length(ruby, visit.key, stage);
        self.turns.borrow_mut().end_wait(visit.key, Some(outer));
        result.and_then(|()| self.raise_due(visit.key))
    }
}
