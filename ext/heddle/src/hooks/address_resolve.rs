//! `address_resolve`, and the look-ups of connecting by name: host names, by the system's own resolver.

use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

use heddle_core::threads::host_names::{self, Answers, Failure, Query, SocketAddress};
use heddle_core::threads::locking::lock;
use libc::c_int;
use magnus::exception::Exception;
use magnus::{Error, ExceptionClass, RString, Ruby, Value, prelude::*};
use nix::errno::Errno;

use crate::ruby::constant::Constant;
use crate::ruby::error;
use crate::ruby::hidden_variable::HiddenVariable;
use crate::ruby::outcome::Ignore;
use crate::scheduler::Scheduler;
use crate::scheduler::wait::Wait;

/// Where `Socket::ResolutionError#error_code` reads its result.
static ERROR_CODE: HiddenVariable = HiddenVariable::new("error_code");

/// The addresses of a host, as getaddrinfo(3) finds them, which reads /etc/hosts and nsswitch.conf. Nil if there are
/// none; Ruby then raises its usual error.
///
/// # Errors
/// Ruby's error for any failure but an unknown name. The hook's nil result could not tell Ruby which failure it was.
pub fn address_resolve(ruby: &Ruby, scheduler: &Scheduler, hostname: RString) -> Result<Option<Vec<String>>, Error> {
    let query = Query { host: Some(text(ruby, hostname)?), socktype: libc::SOCK_STREAM, ..Query::default() };
    let hook = scheduler.enter(ruby)?;
    let found = Arc::new(Mutex::new(None));
    let answer = Arc::clone(&found);
    // A look-up cannot be cancelled and may take long: an exception raised into the fiber abandons it.
    let wait = Wait::address(hostname.as_value());
    scheduler.look_up_in_thread(ruby, hook.key, wait, move || {
        let result = host_names::look_up(&query);
        *lock(&answer) = Some(result);
    })?;
    let found = lock(&found).take();
    match found {
        Some(Ok(addresses)) => Ok(Some(numeric(&addresses))),
        Some(Err(Failure { code: libc::EAI_NONAME, .. })) | None => Ok(None),
        Some(Err(Failure { code, errno })) => {
            Err(resolution_error(ruby, "getaddrinfo".to_owned(), code, errno)?.into())
        }
    }
}

/// Starts a look-up for each family, and returns the IO from which the answers are read, as [`Answers`] writes them and
/// in the order of their arrival. Closing it discards the look-ups that have not begun.
pub fn look_up(
    ruby: &Ruby,
    scheduler: &Scheduler,
    host: Option<RString>,
    service: Option<RString>,
    families: Vec<c_int>,
    flags: c_int,
) -> Result<Value, Error> {
    let host = host.map(|host| text(ruby, host)).transpose()?;
    let service = service.map(|service| text(ruby, service)).transpose()?;
    // Entering resets the scheduler in a forked child, where the threads are the parent's.
    let _hook = scheduler.enter(ruby)?;
    let (reader, answers) = Answers::new().map_err(|error| {
        error::system_call(ruby, Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)), "pipe")
    })?;
    let answers = Arc::new(answers);
    for family in families {
        let (host, service, answers) = (host.clone(), service.clone(), Arc::clone(&answers));
        let query = Query { host, service, family, socktype: libc::SOCK_STREAM, protocol: libc::IPPROTO_TCP, flags };
        scheduler.submit_to_names(ruby, move || answers.add(&query));
    }
    let io: Value =
        ruby.class_io().funcall("for_fd", (reader.as_raw_fd(), "rb", magnus::kwargs!("autoclose" => false)))?;
    // Only now it belongs to the IO: whatever is raised before that, it is closed once.
    io.funcall::<_, _, Value>("autoclose=", (true,))?;
    std::mem::forget(reader);
    Ok(io)
}

/// Whether the host is an IPv4 or IPv6 address without a scope, which Ruby does not look up.
pub fn is_address(host: RString) -> bool {
    // SAFETY: Ruby does not run while the bytes are read.
    host_names::is_address(unsafe { host.as_slice() })
}

/// `Socket::ResolutionError`, or a SystemCallError, as Ruby makes them; `what` begins the message.
pub fn resolution_error(ruby: &Ruby, what: String, code: c_int, errno: c_int) -> Result<Exception, Error> {
    if code == libc::EAI_SYSTEM && errno != 0 {
        let class = ruby.exception_system_call_error();
        return class.funcall("new", (what, errno));
    }
    static RESOLUTION_ERROR: Constant = Constant::new(&["Socket", "ResolutionError"]);
    let class: ExceptionClass = RESOLUTION_ERROR.get(ruby)?;
    let message = ruby.str_new(&format!("{what}: {}", host_names::reason(code)));
    drop(what);
    let exception: Exception = class.funcall("new", (message,))?;
    let code: Value = ruby.integer_from_i64(i64::from(code)).as_value();
    ERROR_CODE.set(exception.as_value(), code)?;
    Ok(exception)
}

fn text(ruby: &Ruby, string: RString) -> Result<CString, Error> {
    // SAFETY: copied before Ruby runs again.
    let bytes = unsafe { string.as_slice() }.to_vec();
    let text = CString::new(bytes).ignored("a null byte");
    text.ok_or_else(|| error::of(ruby.exception_arg_error(), "string contains null byte"))
}

/// The addresses in numeric form, which Ruby parses, without duplicates.
fn numeric(addresses: &[SocketAddress]) -> Vec<String> {
    let mut numeric: Vec<String> = Vec::new();
    for address in addresses.iter().filter_map(|address| host_names::numeric(address)) {
        if !numeric.contains(&address) {
            numeric.push(address);
        }
    }
    numeric
}
