//! Fetching memory into the cache before it is needed.

/// The size of a cache line in bytes.
const LINE: usize = 64;

/// Prefetches the cache lines from `address` on that `size` bytes take. The address need not be a valid one: then this
/// does nothing, as on other processors than x86-64 and AArch64.
#[inline(always)]
pub fn prefetch(address: usize, size: usize) {
    for line in 0..size.div_ceil(LINE) {
        prefetch_line(address.wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_line(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch does nothing for an address that must not be read.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn prefetch_line(address: usize) {
    // SAFETY: a prefetch does nothing for an address that must not be read, and changes no register.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn prefetch_line(_: usize) {}
