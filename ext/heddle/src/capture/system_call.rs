//! Whether a thread waits in a system call that a signal would end.
//!
//! `SA_RESTART` makes the kernel continue most calls after a signal, such as reads and locks. Others return EINTR:
//! those below, waits for locks with a timeout, and operations of sockets with a timeout. Not every library expects that,
//! and some count time by the number of their sleeps.

use std::fs;

use libc::{c_int, c_long, c_void, pid_t, socklen_t, timeval};

/// The calls that return EINTR.
const ENDED: &[c_long] = &[
    libc::SYS_clock_nanosleep,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    // Continues a call of this list after a stop (SIGSTOP, a debugger, a frozen container).
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
];

/// The calls that return EINTR if their descriptor is a socket with a timeout.
const ENDED_FOR_SOCKETS: &[c_long] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendfile,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_write,
    libc::SYS_writev,
];

const ARGUMENTS: usize = 6;
/// The argument of a wait for a lock that points to its timeout.
const FUTEX_TIMEOUT: usize = 3;

/// What a thread does in the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SystemCall {
    /// The call's number and its arguments; `None` if the thread computes.
    call: Option<(c_long, [u64; ARGUMENTS])>,
    /// Where in the program it was called.
    pub instruction: u64,
}

/// What the thread does. `None` if the kernel does not tell.
pub fn of(thread: pid_t) -> Option<SystemCall> {
    let task = format!("/proc/self/task/{thread}");
    match fs::read_to_string(format!("{task}/syscall")) {
        Ok(text) => SystemCall::parse(&text),
        // Some kernels and sandboxes tell only whether the thread runs. After the name, which may contain anything.
        Err(_) => {
            let stat = fs::read_to_string(format!("{task}/stat")).ok()?;
            stat.rsplit_once(") ").is_some_and(|(_, tail)| tail.starts_with('R')).then(SystemCall::default)
        }
    }
}

impl SystemCall {
    /// Parses proc_pid_syscall(5): `running`, `-1 sp pc`, or the number, six arguments, sp and pc.
    fn parse(text: &str) -> Option<SystemCall> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let hex = |field: &str| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok();
        if let ["running"] = fields[..] {
            return Some(SystemCall::default());
        }
        let number: c_long = fields.first()?.parse().ok()?;
        let mut arguments = [0; ARGUMENTS];
        for (argument, field) in arguments.iter_mut().zip(&fields[1..]) {
            *argument = hex(field)?;
        }
        let call = (number >= 0).then_some((number, arguments));
        Some(SystemCall { call, instruction: hex(fields.last()?)? })
    }

    /// Whether a signal to the thread would end the call.
    pub fn is_ended_by_signals(&self) -> bool {
        self.call.is_some_and(|(number, arguments)| {
            ENDED.contains(&number)
                || number == libc::SYS_futex && arguments[FUTEX_TIMEOUT] != 0
                || ENDED_FOR_SOCKETS.contains(&number) && has_timeout(arguments[0] as c_int)
        })
    }
}

/// Whether the descriptor is a socket with a timeout.
fn has_timeout(descriptor: c_int) -> bool {
    [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO].into_iter().any(|option| {
        let mut timeout = timeval { tv_sec: 0, tv_usec: 0 };
        let mut size = size_of_val(&timeout) as socklen_t;
        let value = (&raw mut timeout).cast::<c_void>();
        // SAFETY: writes so many bytes to a variable of this function. Fails for other descriptors.
        let result = unsafe { libc::getsockopt(descriptor, libc::SOL_SOCKET, option, value, &raw mut size) };
        result == 0 && (timeout.tv_sec, timeout.tv_usec) != (0, 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_in_the_kernel_is_told_apart_from_computing() {
        assert_eq!(SystemCall::parse("running\n"), Some(SystemCall::default()));
        assert_eq!(SystemCall::parse("-1 0x7ffd 0x7f91\n"), Some(SystemCall { call: None, instruction: 0x7f91 }));
        let sleep = format!("{} 0x1 0x0 0x7ffd 0x7ffd 0x0 0x0 0x7ffe 0x7f92\n", libc::SYS_clock_nanosleep);
        let sleep = SystemCall::parse(&sleep).unwrap();
        assert_eq!(sleep.instruction, 0x7f92);
        assert!(sleep.is_ended_by_signals());
        let lock = |timeout| format!("{} 0x7f 0x80 0x0 {timeout} 0x0 0x0 0x7ffe 0x7f92\n", libc::SYS_futex);
        let is_ended = |text: String| SystemCall::parse(&text).unwrap().is_ended_by_signals();
        assert_eq!((is_ended(lock("0x0")), is_ended(lock("0x7ffd"))), (false, true));
        assert_eq!(SystemCall::parse(""), None);
    }
}
