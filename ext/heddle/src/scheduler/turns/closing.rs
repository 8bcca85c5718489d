//! Who waits on a descriptor that is being closed, and who waits for them to leave.

use std::os::fd::RawFd;

use heddle_core::Interest;

use super::Turns;
use crate::scheduler::fibers::FiberKey;

impl Turns {
    /// The fibers that wait on a descriptor, for one of `interest`.
    pub fn waiters_on(&self, fd: RawFd, interest: Interest) -> Vec<FiberKey> {
        self.fibers
            .iter()
            .filter(|(_, record)| record.is_parked() && record.wait.is_on(fd, interest))
            .map(|(key, _)| key)
            .chain(self.selecting_on(fd, interest))
            .collect()
    }

    fn selecting_on(&self, fd: RawFd, interest: Interest) -> impl Iterator<Item = FiberKey> {
        self.selecting
            .iter()
            .filter(move |(_, watched, wanted)| *watched == fd && wanted.intersects(interest))
            .map(|(key, ..)| *key)
    }

    /// The fiber waits on several descriptors, this one among them.
    pub fn begin_select(&mut self, key: FiberKey, fd: RawFd, interest: Interest) {
        self.selecting.push((key, fd, interest));
    }

    /// The inverse of [`Turns::begin_select`].
    pub fn end_select(&mut self, key: FiberKey, fd: RawFd) {
        if let Some(index) = self.selecting.iter().rposition(|(selecting, on, _)| (*selecting, *on) == (key, fd)) {
            self.selecting.swap_remove(index);
        }
    }

    /// The fiber is to be woken whenever some wait ends.
    pub fn add_closer(&mut self, key: FiberKey) {
        self.closers.push(key);
    }

    /// The inverse of [`Turns::add_closer`].
    pub fn remove_closer(&mut self, key: FiberKey) {
        self.closers.retain(|closer| *closer != key);
    }
}
