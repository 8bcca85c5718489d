//! Which signals a ticker may use, and returning a signal to the program.

use std::cell::Cell;

use libc::c_int;
use magnus::{Error, RHash, RModule, RString, Ruby, Symbol, Value, prelude::*};

use super::signal;
use crate::ruby::error;
use crate::ruby::outcome::RubyOutcome;

/// The signals that end or stop programs, report errors, or that Ruby reserves.
const RESERVED: [c_int; 21] = [
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGCHLD,
    libc::SIGCONT,
    libc::SIGFPE,
    libc::SIGHUP,
    libc::SIGILL,
    libc::SIGINT,
    libc::SIGKILL,
    libc::SIGPIPE,
    libc::SIGQUIT,
    libc::SIGSEGV,
    libc::SIGSTOP,
    libc::SIGSYS,
    libc::SIGTERM,
    libc::SIGTRAP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGVTALRM,
    // `trap("EXIT")`
    0,
];

/// What `Signal.trap` returns if the program has set no handler.
const UNSET: [&str; 2] = ["DEFAULT", "SYSTEM_DEFAULT"];

/// The number of a signal that a program names: `"USR2"`, `"SIGUSR2"`, `:USR2` or 12.
///
/// # Errors
/// ArgumentError, with the signals that can be used.
pub fn parse(ruby: &Ruby, value: Value) -> Result<c_int, Error> {
    let refuse = |why: &str| {
        let message = format!("signal: {} {why}; USR1, USR2, ALRM, PROF and URG can be used", value.inspect());
        error::of(ruby.exception_arg_error(), message)
    };
    match number_of(ruby, value)? {
        Some(number) if RESERVED.contains(&number) => Err(refuse("is reserved")),
        Some(number) => Ok(number),
        None => Err(refuse("is no signal of this system")),
    }
}

/// The number of a signal that a program names, if it is one of this system.
pub fn number_of(ruby: &Ruby, value: Value) -> Result<Option<c_int>, Error> {
    let list: RHash = ruby.class_object().const_get::<_, RModule>("Signal")?.funcall("list", ())?;
    if let Some(name) = name_of(value) {
        list.lookup::<_, Option<c_int>>(name.trim_start_matches("SIG"))
    } else if let Some(number) =
        magnus::Integer::from_value(value).and_then(|number| number.to_i32().not_an_interrupt("too great"))
    {
        let known = list.funcall::<_, _, bool>("value?", (number,))?;
        Ok(known.then_some(number))
    } else {
        Ok(None)
    }
}

fn name_of(value: Value) -> Option<String> {
    let symbol = Symbol::from_value(value)
        .and_then(|symbol| symbol.name().not_an_interrupt("no UTF-8"))
        .map(|name| name.into_owned());
    symbol.or_else(|| RString::from_value(value).and_then(|name| name.to_string().not_an_interrupt("no UTF-8")))
}

/// Checks that a ticker may use the signal.
///
/// # Errors
/// ArgumentError if the program or a library handles the signal.
pub fn expect_free(ruby: &Ruby, number: c_int) -> Result<(), Error> {
    if signal::is_taken(number) {
        return Ok(());
    }
    let Some(handler) = handler_of(ruby, number)? else { return Ok(()) };
    let name: String = ruby.class_object().const_get::<_, RModule>("Signal")?.funcall("signame", (number,))?;
    let message = format!(
        "signal: {name} has a handler already ({handler}); take another signal, or ticker: :timerfd, which needs none"
    );
    Err(error::of(ruby.exception_arg_error(), message))
}

/// The handler of a signal that the program, a library or a ticker handles, for a message; `None` if the signal has the
/// default disposition.
pub fn handler_of(ruby: &Ruby, number: c_int) -> Result<Option<String>, Error> {
    if signal::is_taken(number) {
        return Ok(Some("that of a ticker".to_owned()));
    }
    // While a scheduler is open on the main thread, Heddle's handler may replace the program's. Asking for the handler
    // installs Heddle's again, so it is released before and after.
    let handlers: RModule = ruby.class_object().const_get::<_, RModule>("Heddle")?.const_get("SignalHandlers")?;
    handlers.funcall::<_, _, Value>("release", (number,))?;
    let disposition = disposition(ruby, number)?;
    handlers.funcall::<_, _, Value>("release", (number,))?;
    if disposition.is_some() {
        handlers.funcall::<_, _, Value>("reclaim", (number,))?;
    }
    Ok(disposition)
}

/// The signal's handler, for a message; `None` if it has the default disposition.
fn disposition(ruby: &Ruby, number: c_int) -> Result<Option<String>, Error> {
    let signals: RModule = ruby.class_object().const_get("Signal")?;
    let before = signal::Disposition::of(number);
    // `trap` is Ruby's only way to read a handler. If there is none, this call changes nothing.
    let set: Value = without_watching(|| signals.funcall("trap", (number, "DEFAULT")))?;
    let found = match RString::from_value(set).map(|name| name.to_string()).transpose()? {
        Some(name) if UNSET.contains(&name.as_str()) => None,
        Some(name) => Some(name),
        None if set.is_nil() => Some("in C".to_owned()),
        None => Some(set.inspect()),
    };
    if found.is_some() && !set.is_nil() {
        without_watching(|| signals.funcall::<_, _, Value>("trap", (number, set)))?;
    }
    before.restore();
    Ok(found)
}

thread_local! {
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

fn without_watching<T>(ask: impl FnOnce() -> T) -> T {
    ASKING.set(true);
    let result = ask();
    ASKING.set(false);
    result
}

/// Whether Heddle itself is calling `trap`, to read a signal's handler.
pub fn is_asking() -> bool {
    ASKING.get()
}

/// Restores the signal's previous action in a forked child that has inherited Heddle's handler.
pub fn give_back_inherited(number: c_int) {
    signal::give_back_inherited(number);
}

/// Whether a ticker uses the signal.
pub fn is_taken(number: c_int) -> bool {
    signal::is_taken(number)
}

/// Patches `trap`, so that a ticker gives up a signal that the program starts to handle.
pub fn watch_trap(ruby: &Ruby) -> Result<(), Error> {
    let heddle: RModule = ruby.class_object().const_get("Heddle")?;
    heddle.const_get::<_, RModule>("SignalHandlers")?.funcall::<_, _, Value>("patch_trap", ()).map(|_| ())
}

/// Whether Ruby handles the signal, and not a C function of a library.
pub fn is_handled(_: &Ruby, number: c_int) -> bool {
    /// Ruby installs its handler for these when it starts, unless they are ignored.
    const BY_DEFAULT: [c_int; 7] =
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGALRM, libc::SIGUSR1, libc::SIGUSR2];
    let of = |number| signal::Disposition::of(number).handler();
    let Some(handler) = of(number) else { return false };
    // Ruby uses one C function for all signals that it handles, so several of these signals have it.
    BY_DEFAULT.into_iter().filter(|other| *other != number && of(*other) == Some(handler)).count() > 1
}
