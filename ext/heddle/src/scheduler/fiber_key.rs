//! The names of the fibers that the scheduler knows.

use std::num::NonZeroU64;

/// Names a record: its index, and a serial number. A key whose record is gone never names a later record.
// One integer, so that it is compared and copied as one, and not 0, so that an `Option` of it takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FiberKey(NonZeroU64);

impl FiberKey {
    /// The serial number must not be 0.
    pub(super) fn new(index: u32, serial: u32) -> Self {
        let number = u64::from(serial) << u32::BITS | u64::from(index);
        FiberKey(NonZeroU64::new(number).expect("serial numbers begin with 1"))
    }

    /// A number that no other fiber of the scheduler has.
    pub fn number(self) -> u64 {
        self.0.get()
    }

    pub(super) fn index(self) -> usize {
        self.0.get() as u32 as usize
    }
}
