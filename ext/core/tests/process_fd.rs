//! Descriptors of a forked child. In a process of its own: the child would hold the descriptors of other tests open.

use std::io::{Read, pipe};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use heddle_core::io::process_fd::{ProcessFd, close_inherited};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

/// Whether `check` is true in a forked child, after the child's handler.
fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child makes system calls only, and ends by `_exit`.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {
            close_inherited();
            // SAFETY: always allowed.
            unsafe { libc::_exit(i32::from(!check())) }
        }
        ForkResult::Parent { child } => matches!(waitpid(child, None), Ok(WaitStatus::Exited(_, 0))),
    }
}

fn is_open(fd: RawFd) -> bool {
    // SAFETY: takes no pointers.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

#[test]
fn a_child_has_no_descriptors_of_its_parent_and_does_not_close_their_numbers_again() {
    let (mut reader, writer) = pipe().expect("a pipe");
    let number = writer.as_raw_fd();
    let owned = ProcessFd::from(OwnedFd::from(writer));
    let mut owned = Some(owned);
    assert!(in_child(|| {
        // SAFETY: takes no pointers.
        let reused = !is_open(number) && unsafe { libc::fcntl(0, libc::F_DUPFD, number) } == number;
        let names_nothing = owned.as_ref().is_some_and(|owned| owned.as_raw_fd() == -1);
        drop(owned.take());
        reused && names_nothing && is_open(number)
    }));
    assert!(is_open(number) && owned.as_ref().is_some_and(|owned| owned.as_raw_fd() == number));
    drop(owned);
    assert_eq!(reader.read(&mut [0]).expect("the end"), 0);
}
