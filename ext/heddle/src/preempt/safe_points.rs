//! Where a fiber can be preempted, and where an exception can be raised in it.
//!
//! Ruby checks interrupts in Ruby code, and at the end of each C function before it has returned. So a fiber that
//! calls short C functions again and again is mostly interrupted in one of them. But C functions that switch fibers
//! (`Fiber#resume`, `Enumerator#next`, the selectors of other schedulers) also check interrupts right after a switch,
//! before they have taken the value that was passed to the fiber. A switch at that moment would lose the value. The
//! two cases look the same, so the decision depends on the function.

use magnus::{Error, Ruby, Value, prelude::*};

use crate::ruby::{frames, pending_interrupts, raise_hooks};

/// Whether the fiber that runs a postponed job can be switched away from.
pub fn may_switch_here(ruby: &Ruby) -> bool {
    let Some(frame) = frames::innermost(ruby) else { return false };
    !frame.is_native() || frame.method_name().is_some_and(|name| never_switches(&name))
}

/// Whether an exception can be raised where a postponed job has interrupted a fiber. Not in a C function
///
/// - that another C function has called, which has not finished its work. `IO.pipe`, for example, would close
///   descriptors that the new IOs already own. The IOs close them again when they are collected, and the numbers may
///   name other files by then;
/// - that opens or closes files and sockets. It takes no time, or waits in a hook. A connection that `accept` has
///   taken would be lost between the end of `accept` and the assignment of its result.
///
/// And not while a [hook of `TracePoint.new(:raise)`](raise_hooks) runs.
pub fn may_raise_here(ruby: &Ruby) -> bool {
    let is_in_c_function = |frame: frames::Frame| {
        let handles_descriptors = frame.method_name().is_some_and(|name| is_descriptor_class(class_of(&name)));
        handles_descriptors || frames::caller(ruby).is_some_and(frames::Frame::is_native)
    };
    let is_unsafe = frames::innermost(ruby).filter(|frame| frame.is_native()).is_some_and(is_in_c_function);
    !is_unsafe && !raise_hooks::is_running(ruby)
}

/// Raises `exception`, or an instance of it if it is a class, in the current fiber as soon as the running postponed job
/// ends: Ruby swallows what is raised in the job, but raises what is on the thread's list of pending interrupts as soon
/// as the job ends. Returns false if Ruby would not raise it then, as the fiber masks it (see
/// [`Masks::defer`](crate::ruby::masks::Masks::defer)). In that case it is never raised.
///
/// # Errors
/// What was raised instead, by the class or by a signal or another thread. `exception` is then never raised.
pub fn raise_after_job(ruby: &Ruby, exception: Value) -> Result<bool, Error> {
    // As `raise` does with a class.
    let exception: Value = exception.funcall("exception", ())?;
    pending_interrupts::raise_next(ruby, exception)
}

fn is_descriptor_class(class: &str) -> bool {
    matches!(class, "File" | "IO") || class.ends_with("Socket") || class.ends_with("Server")
}

/// The class or module that a method's name begins with.
fn class_of(method: &str) -> &str {
    method.split(['#', '.']).next().unwrap_or(method)
}

fn never_switches(method: &str) -> bool {
    /// Triggers the postponed job that switches to the root.
    const SENDS_TO_ROOT: &str = "Heddle::Native.send_to_root";
    if method == SENDS_TO_ROOT {
        return true;
    }
    let class = class_of(method);
    let library = class.split("::").next().unwrap_or(class);
    is_core(class) || is_library(library)
}

/// Whether this is one of Ruby's own classes and modules that have no C function that switches fibers. Classes that
/// libraries have put into their namespaces (`IO::Event`) are not included.
///
/// `IO` and `Thread` are included: a fiber that waits in a hook is not preempted there.
#[rustfmt::skip]
fn is_core(class: &str) -> bool {
    matches!(class,
        "Array" | "BasicObject" | "Binding" | "Class" | "Comparable" | "Complex" | "Data" | "Dir" | "Encoding"
        | "Encoding::Converter" | "Enumerable" | "Exception" | "FalseClass" | "File" | "File::Stat" | "FileTest"
        | "Float" | "FrozenError" | "GC" | "GC::Profiler" | "Hash" | "IO" | "IO::Buffer" | "Integer" | "Kernel"
        | "KeyError" | "Marshal" | "MatchData" | "Math" | "Method" | "Module" | "Monitor" | "NameError" | "NilClass"
        | "NoMatchingPatternKeyError" | "NoMethodError" | "Numeric" | "Object" | "ObjectSpace"
        | "ObjectSpace::WeakKeyMap" | "ObjectSpace::WeakMap" | "Pathname" | "Proc" | "Process" | "Process::Status"
        | "Process::Tms" | "Random" | "Random::Base" | "Random::Formatter" | "Range" | "Rational" | "Refinement"
        | "Regexp" | "RubyVM" | "RubyVM::InstructionSequence" | "Set" | "Signal" | "SignalException" | "String"
        | "Struct" | "Symbol" | "SyntaxError" | "SystemCallError" | "SystemExit" | "Thread"
        | "Thread::Backtrace::Location" | "Thread::ConditionVariable" | "Thread::Mutex" | "Thread::Queue"
        | "Thread::SizedQueue" | "ThreadGroup" | "Time" | "TrueClass" | "UnboundMethod" | "Warning"
    )
}

/// Whether this is the name, or the namespace, of a library that comes with Ruby and has no C function that switches
/// fibers.
#[rustfmt::skip]
fn is_library(name: &str) -> bool {
    matches!(name,
        "Addrinfo" | "BasicSocket" | "BigDecimal" | "Coverage" | "Date" | "DateTime" | "Digest" | "Etc" | "IPSocket"
        | "JSON" | "OpenSSL" | "Psych" | "Socket" | "StringIO" | "StringScanner" | "TCPServer" | "TCPSocket"
        | "UDPSocket" | "UNIXServer" | "UNIXSocket" | "Zlib"
    )
}
