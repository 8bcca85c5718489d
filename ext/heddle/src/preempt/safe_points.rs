//! Where a fiber can be preempted.

use crate::ruby::frames;

/// Where the C functions are at home that look at interrupts and never switch fibers themselves.
///
/// Those that do (`Fiber#resume`, `Enumerator#next`, the selectors of other schedulers) look at interrupts right after a
/// switch, before they have taken what was passed to the fiber. A switch in between would lose that.
const OWNERS: [&str; 16] = [
    "Array",
    "BigDecimal",
    "Complex",
    "Digest",
    "Enumerable",
    "Float",
    "Hash",
    "Integer",
    "JSON",
    "MatchData",
    "OpenSSL",
    "Range",
    "Rational",
    "Regexp",
    "String",
    "Symbol",
];

/// Whether the fiber that runs a postponed job can be switched away from.
pub fn is_here() -> bool {
    let Some(frame) = frames::innermost() else { return false };
    !frame.is_native() || frame.method_name().is_some_and(|name| is_harmless(&name))
}

fn is_harmless(method: &str) -> bool {
    let owner = method.split(['#', '.', ':']).next().unwrap_or(method);
    OWNERS.contains(&owner) || owner.starts_with("String")
}
