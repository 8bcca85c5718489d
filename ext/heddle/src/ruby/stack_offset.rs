//! Where on its stack a fiber's frames begin.
//!
//! All stacks of fibers begin at a page's edge. So fibers that wait at the same place have the same frames at the same
//! offset in their pages, where they compete for the same few sets of the processor's caches, and where what one of them
//! loads is taken for what the one before has just stored, as far as the lower twelve bits of an address tell ('4K
//! aliasing'). Fibers of different colours begin at different offsets. The idea is that of the slab allocator (Bonwick,
//! 'The Slab Allocator', USENIX Summer 1994, 'Slab Coloring').

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

/// From one colour to the next: some lines of a cache. All of them together stay within what the frames of a waiting
/// fiber leave free of their two pages, so no fiber takes a page more.
const STEP: usize = 192;

const OFFSETS: usize = 8;

/// Runs `body` with its frames at the next one of the offsets.
#[inline(always)]
pub fn with_offset<R>(body: impl FnOnce() -> R) -> R {
    static FIBERS: AtomicUsize = AtomicUsize::new(0);
    match FIBERS.fetch_add(1, Ordering::Relaxed) % OFFSETS {
        0 => body(),
        1 => beyond::<STEP, R>(body),
        2 => beyond::<{ 2 * STEP }, R>(body),
        3 => beyond::<{ 3 * STEP }, R>(body),
        4 => beyond::<{ 4 * STEP }, R>(body),
        5 => beyond::<{ 5 * STEP }, R>(body),
        6 => beyond::<{ 6 * STEP }, R>(body),
        _ => beyond::<{ 7 * STEP }, R>(body),
    }
}

/// Runs `body` with a gap before its frames. The gap is cleared, as the collector looks for references there.
#[inline(never)]
fn beyond<const GAP: usize, R>(body: impl FnOnce() -> R) -> R {
    let gap = [0_u8; GAP];
    black_box(&gap);
    let result = body();
    // Still here, or the call of `body` might reuse the gap.
    black_box(&gap);
    result
}
