//! As on a machine that is busy with other work, for `rake disturbed`. What examples, and the code that they try, take
//! for granted because it is mostly so does not hold here: the thread stalls before some switches, and before some
//! waits, where other threads get the GVL; some starters find their round over, the ticks of some
//! schedulers are ten times as frequent, so that a fiber is preempted where it seldom is, and some reads find that the
//! kernel does not have the file in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Of so many switches, one is late.
const SWITCHES: u64 = 20;
/// By less than so many milliseconds.
const LATE: u64 = 8;
/// A program that chooses a longer tick asks for the order that it gets then.
const CHOSEN_TICK: Duration = Duration::from_secs(1);

/// A random number: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
fn random() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let number = CALLS.fetch_add(1, Ordering::Relaxed).wrapping_add(u64::from(std::process::id()) << 32);
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Stalls the thread now and then, as when its processor, or the GVL, belongs to others. It does not sleep: tests take
/// a thread that does for one that waits.
pub fn stall() {
    let random = random();
    if random % SWITCHES == 0 {
        let (begun, stalled) = (Instant::now(), Duration::from_millis(random / SWITCHES % LATE));
        while begun.elapsed() < stalled {
            std::hint::spin_loop();
        }
    }
}

/// Whether the kernel does not have what is to be read from a file, as after the start of the machine.
pub fn is_file_cold() -> bool {
    random() % 2 == 0
}

/// The time between two ticks of a scheduler whose program chooses none.
pub fn tick(usual: Duration) -> Duration {
    if random() % 2 == 0 { usual / 10 } else { usual }
}

/// How long a round of starters lasts, at a moment at which that is asked: it ends after any of them, or after none.
pub fn round(tick: Duration) -> Duration {
    if tick < CHOSEN_TICK && random() % 2 == 0 { Duration::ZERO } else { tick }
}
