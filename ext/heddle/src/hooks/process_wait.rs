//! `process_wait`: `Process.wait`, `system`, backticks, and other waits for a child process.

use std::os::fd::FromRawFd;

use heddle_core::Interest;
use heddle_core::io::process_fd::ProcessFd;
use magnus::{Error, RModule, Ruby, Value, prelude::*};

use crate::ruby::constant::Constant;
use crate::ruby::process;
use crate::scheduler::Scheduler;
use crate::scheduler::record::FiberKey;
use crate::scheduler::state::OwnedDescriptor;
use crate::scheduler::wait::Wait;

/// Waits for the end of a child, and returns its Process::Status.
///
/// The process's descriptor (pidfd) becomes readable then. A Ruby thread waits instead for 'any child' (-1), for groups
/// (0 and below), for other events than the end, and on kernels without pidfds.
pub fn process_wait(ruby: &Ruby, scheduler: &Scheduler, pid: i32, flags: i32) -> Result<Value, Error> {
    let hook = scheduler.enter(ruby)?;
    if flags & libc::WNOHANG != 0 {
        return process::status_if_ended(ruby, pid, flags);
    }
    let other_events = flags & (libc::WUNTRACED | libc::WCONTINUED) != 0;
    match open_process(pid).filter(|_| pid > 0 && !other_events) {
        Some(process) => {
            let descriptor = scheduler.state.borrow_mut().resources.own_descriptor(hook.key, process);
            let status = wait_for_descriptor(ruby, scheduler, hook.key, pid, flags, descriptor);
            scheduler.state.borrow_mut().resources.close_descriptor(descriptor);
            status
        }
        None => wait_in_thread(ruby, pid, flags),
    }
}

fn wait_for_descriptor(
    ruby: &Ruby,
    scheduler: &Scheduler,
    key: FiberKey,
    pid: i32,
    flags: i32,
    descriptor: OwnedDescriptor,
) -> Result<Value, Error> {
    loop {
        let status = process::status_if_ended(ruby, pid, flags)?;
        if !status.is_nil() {
            return Ok(status);
        }
        let fd = scheduler.state.borrow().resources.number_of(descriptor);
        // The scheduler was closed during the wait, or this is a forked child.
        let Some(fd) = fd else { return wait_in_thread(ruby, pid, flags) };
        let readable = (fd, Interest::READABLE);
        let result = scheduler.await_readiness(ruby, key, Wait::Process(pid), readable, None)?;
        if result.is_some_and(|result| result < 0) {
            return wait_in_thread(ruby, pid, flags);
        }
    }
}

fn wait_in_thread(ruby: &Ruby, pid: i32, flags: i32) -> Result<Value, Error> {
    static PROCESS_WAIT: Constant = Constant::new(&["Heddle", "ProcessWait"]);
    PROCESS_WAIT.get::<RModule>(ruby)?.funcall("call", (pid, flags))
}

fn open_process(pid: i32) -> Option<ProcessFd> {
    // SAFETY: no memory is passed. The new descriptor, which is close-on-exec by definition, has no other owner.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (fd >= 0).then(|| ProcessFd::from_raw_fd(fd as i32))
    }
}
