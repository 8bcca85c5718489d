//! Fibers leave their waits on a number before Ruby closes it.
//!
//! From Ruby 4.0 on, `IO#close` itself interrupts the fibers that use the IO, and waits until they have left. A fiber that is
//! being killed cannot wait, since Ruby raises the kill again at each switch: its `close` would close nothing. And an
//! exception of Ruby's for a fiber that has just left its wait would be raised elsewhere. So Ruby finds none of them.

use std::os::fd::RawFd;

use magnus::{Error, Ruby};

use super::descriptors::wait_for_ends;
use crate::scheduler::Scheduler;

/// How many times a fiber that is being killed tries to let the others run. Each time, some of them do.
const MAX_KILLED_TRIES: u32 = 1000;

impl Scheduler {
    /// Lets the fibers leave whose operations on the number have ended.
    ///
    /// # Errors
    /// What was raised into the current fiber meanwhile.
    pub fn let_waiters_leave(&self, ruby: &Ruby, fd: RawFd) -> Result<(), Error> {
        let hook = self.enter(ruby)?;
        let mut result = Ok(());
        for _ in 0..MAX_KILLED_TRIES {
            if self.state.borrow_mut().have_left(fd, hook.key) {
                break;
            }
            let waited = wait_for_ends(ruby, self, hook.key, |state| state.have_left(fd, hook.key));
            if waited.is_err() {
                result = waited;
            }
        }
        self.state.borrow_mut().forget_leaving(fd);
        result
    }
}
