//! Where a fiber can be preempted.
//!
//! Ruby looks at interrupts in its own code, and at the end of each function written in C, before that has returned. So
//! a fiber that calls short C functions again and again is mostly found in one of them. But those that switch fibers
//! (`Fiber#resume`, `Enumerator#next`, the selectors of other schedulers) look at interrupts right after a switch, too,
//! before they have taken what was passed to the fiber: a switch in between would lose that. Nobody can tell which of
//! the two it is; so it depends on the function.

use crate::ruby::frames;

/// Where the C functions are at home that never switch fibers themselves: Ruby's own, and those of the libraries that come
/// with it. Not among them: `Fiber`, `Enumerator`, `Fiddle` and `Ractor`.
///
/// What waits in a hook is not preempted there, so `IO` and `Thread` may be among them.
const OWNERS: [&str; 76] = [
    "Addrinfo",
    "Array",
    "BasicObject",
    "BasicSocket",
    "BigDecimal",
    "Binding",
    "Class",
    "Comparable",
    "Complex",
    "Coverage",
    "Data",
    "Date",
    "DateTime",
    "Digest",
    "Dir",
    "ENV",
    "Encoding",
    "Enumerable",
    "Errno",
    "Etc",
    "Exception",
    "FalseClass",
    "File",
    "FileTest",
    "Float",
    "FrozenError",
    "GC",
    "Hash",
    "IO",
    "IPSocket",
    "Integer",
    "JSON",
    "KeyError",
    "Kernel",
    "Marshal",
    "MatchData",
    "Math",
    "Method",
    "Module",
    "Monitor",
    "NameError",
    "NilClass",
    "NoMatchingPatternKeyError",
    "NoMethodError",
    "Numeric",
    "Object",
    "ObjectSpace",
    "OpenSSL",
    "Pathname",
    "Proc",
    "Process",
    "Psych",
    "Random",
    "Range",
    "Rational",
    "Regexp",
    "RubyVM",
    "Set",
    "Signal",
    "Socket",
    "String",
    "StringIO",
    "StringScanner",
    "Struct",
    "Symbol",
    "TCPServer",
    "TCPSocket",
    "Thread",
    "Time",
    "TrueClass",
    "UDPSocket",
    "UNIXServer",
    "UNIXSocket",
    "UnboundMethod",
    "Warning",
    "Zlib",
];

/// Whether the fiber that runs a postponed job can be switched away from.
pub fn is_here() -> bool {
    let Some(frame) = frames::innermost() else { return false };
    !frame.is_native() || frame.method_name().is_some_and(|name| is_harmless(&name))
}

fn is_harmless(method: &str) -> bool {
    let owner = method.split(['#', '.', ':']).next().unwrap_or(method);
    OWNERS.binary_search(&owner).is_ok()
}
