//! Forking while operations are in flight.

use std::io::{Read, Write, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind};

use heddle_core::Interest;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::rig::{Buffer, FORKS, Rig, done, file, is_ready, over_every_backend};

over_every_backend!(
    abandoning_the_backend_in_a_child_does_not_affect_the_parents_operations,
    a_child_can_have_a_backend_of_its_own,
    a_waker_in_the_child_does_not_wake_the_parent,
);

/// Runs `child` with `parts` in a forked child, which then ends. Returns `parts` to the parent.
fn in_child<T>(parts: T, child: impl FnOnce(T)) -> T {
    let _alone = FORKS.write();
    // SAFETY: another test's thread may hold a lock at the fork. The child needs none of those, except the allocator's,
    // which the C library handles; and it exits without running anything else.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {
            // What the extension's handler of pthread_atfork(3) does.
            heddle_core::io::process_fd::close_inherited();
            let succeeded = catch_unwind(AssertUnwindSafe(|| child(parts))).is_ok();
            // SAFETY: ends the process.
            unsafe { libc::_exit(if succeeded { 0 } else { 1 }) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).expect("waitpid"), WaitStatus::Exited(child, 0));
            parts
        }
    }
}

fn abandoning_the_backend_in_a_child_does_not_affect_the_parents_operations(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    let (data_reader, mut data_writer) = pipe().expect("pipe");
    let file = file(b"content");
    let (mut buffer, mut from_file) = (Buffer::new(10), Buffer::new(7));
    rig.ready(1, &reader, Interest::READABLE);
    rig.read(2, &data_reader, &mut buffer, None);
    rig.nothing_completes();
    rig.read(3, &file, &mut from_file, None);
    let mut rig = in_child(rig, |rig| rig.backend.abandon());
    assert_eq!(rig.next(), done(3, 7));
    rig.nothing_completes();
    let waker = rig.backend.waker();
    waker.arm();
    waker.wake();
    rig.backend.wait(None).expect("a wake still ends a wait");
    writer.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
    data_writer.write_all(b"hello").expect("write");
    assert_eq!(rig.next(), done(2, 5));
}

fn a_child_can_have_a_backend_of_its_own(mut rig: Rig) {
    let (reader, writer) = pipe().expect("pipe");
    rig.ready(1, &reader, Interest::READABLE);
    rig.start_all();
    let (mut rig, mut reader, mut writer) = in_child((rig, reader, writer), |(rig, reader, mut writer)| {
        let make = rig.make;
        rig.backend.abandon();
        let mut rig = Rig::new(make().expect("a backend in the child"), make);
        rig.ready(1, &reader, Interest::READABLE);
        rig.nothing_completes();
        writer.write_all(b"x").expect("write");
        assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
    });
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
    reader.read_exact(&mut [0]).expect("read");
    rig.ready(1, &reader, Interest::READABLE);
    rig.nothing_completes();
    writer.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
}

fn a_waker_in_the_child_does_not_wake_the_parent(rig: Rig) {
    let mut rig = in_child(rig, |rig| {
        let waker = rig.backend.waker();
        rig.backend.abandon();
        waker.arm();
        waker.wake();
    });
    let (start, timeout) = (std::time::Instant::now(), std::time::Duration::from_millis(5));
    rig.backend.wait(Some(timeout)).expect("wait");
    assert!(start.elapsed() >= timeout);
}
