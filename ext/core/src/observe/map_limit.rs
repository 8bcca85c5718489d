//! The number of memory maps that a process may have, of which the stack of each fiber takes two.
//!
//! A process that reaches it cannot start fibers. Ruby's compaction changes the protection of single pages, which takes
//! maps, too: without one Ruby ends with SIGSEGV, and mostly cannot even report that.

use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

const FILE: &str = "/proc/sys/vm/max_map_count";
/// A stack and its guard page.
const MAPS_PER_STACK: usize = 2;
/// After so many more stacks the limit is compared again.
const INTERVAL: usize = 1024;
const UNKNOWN: usize = 0;

static LIMIT: AtomicUsize = AtomicUsize::new(UNKNOWN);
static HAS_WARNED: AtomicBool = AtomicBool::new(false);

/// Uses this limit in place of the kernel's.
pub fn assume(limit: usize) {
    LIMIT.store(limit, Relaxed);
}

/// Writes a warning to standard error, once per process, if so many stacks need four fifths of the maps or more.
#[inline]
pub fn warn_if_near(stacks: usize) {
    if stacks.is_multiple_of(INTERVAL) {
        compare(stacks);
    }
}

#[cold]
fn compare(stacks: usize) {
    let limit = limit();
    if is_near(stacks, limit) && !HAS_WARNED.swap(true, Relaxed) {
        // Standard error may be closed; then the warning is lost.
        let _ = writeln!(
            std::io::stderr(),
            "heddle: {stacks} fibers are alive, whose stacks take {} of the {limit} memory maps that this process may \
             have (vm.max_map_count). Without maps no fiber can start (FiberError), and GC.compact makes Ruby crash. \
             Raise the limit, or let fewer fibers be alive at a time: see docs/deployment.md",
            stacks * MAPS_PER_STACK,
        );
    }
}

fn limit() -> usize {
    let known = LIMIT.load(Relaxed);
    if known != UNKNOWN {
        return known;
    }
    let read = fs::read_to_string(FILE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(usize::MAX);
    LIMIT.store(read, Relaxed);
    read
}

fn is_near(stacks: usize, limit: usize) -> bool {
    stacks * MAPS_PER_STACK >= limit / 5 * 4
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn four_fifths_of_the_maps_are_near_the_limit() {
        assert_eq!([1999, 2000, 2001].map(|stacks| is_near(stacks, 5000)), [false, true, true]);
    }

    #[test]
    fn nothing_is_near_where_there_is_no_limit() {
        assert!(!is_near(1 << 20, usize::MAX));
    }
}
