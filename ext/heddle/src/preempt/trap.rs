//! The program traps the signal of a ticker.

use magnus::{Error, Ruby, Value};

use crate::ruby::ractor;
use crate::scheduler::registry;
use crate::ticker::signal_disposition as disposition;

/// Called before `trap`. Tickers that use the signal change to timerfd, and the signal's disposition is restored.
pub fn trapping(ruby: &Ruby, signal: Value) -> Result<(), Error> {
    if disposition::is_asking() || !ractor::is_main() {
        return Ok(());
    }
    // `trap` itself raises for an invalid signal name.
    let Ok(number) = disposition::parse(ruby, signal) else { return Ok(()) };
    if disposition::is_taken(number) {
        registry::each(|scheduler| scheduler.give_up_signal(ruby, number))?;
        disposition::give_back_inherited(number);
    }
    Ok(())
}
