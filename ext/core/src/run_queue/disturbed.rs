//! A run queue as on a machine that is busy with other work, for `rake disturbed`. What examples, and the code that
//! they try, take for granted because it is mostly so does not hold here: the thread stalls before some switches, and a
//! starter finds its round over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Of so many switches, one is late.
const SWITCHES: u64 = 20;
/// By less than so many milliseconds.
const LATE: u64 = 8;
/// A program that chooses a longer tick asks for the order that it gets then.
const CHOSEN_TICK: Duration = Duration::from_secs(1);
/// An odd number without a pattern in its bits (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
const MIXER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Stalls the thread now and then, as when its processor, or the GVL, belongs to others.
pub fn stall() {
    static SWITCHED: AtomicU64 = AtomicU64::new(0);
    let number = SWITCHED.fetch_add(1, Ordering::Relaxed).wrapping_add(u64::from(std::process::id()));
    let random = number.wrapping_mul(MIXER) >> 32;
    if random % SWITCHES == 0 {
        thread::sleep(Duration::from_millis(random / SWITCHES % LATE));
    }
}

/// How long a round of starters lasts.
pub fn round(tick: Duration) -> Duration {
    if tick < CHOSEN_TICK { Duration::ZERO } else { tick }
}
