//! Closed descriptors, numbers that are reused for another file, and dropping the backend.

use std::io::{ErrorKind, Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use heddle_core::Interest;
use nix::errno::Errno;

use crate::rig::{Buffer, Rig, done, failed, file, is_ready, over_every_backend, over_io_uring, take_over};

over_every_backend!(
    a_reused_number_names_the_new_file,
    a_number_reused_for_a_regular_file_is_ready,
    a_number_reused_after_a_regular_file_is_waited_for,
    a_number_that_names_its_old_file_again_is_waited_for,
    an_event_of_the_old_file_is_not_delivered_to_a_waiter_for_the_new_one,
    an_event_of_the_old_file_is_not_delivered_after_its_waiter_was_cancelled,
    a_wait_for_a_closed_descriptor_can_be_cancelled,
    dropping_the_backend_ends_reads_of_files,
    wakers_outlive_their_backend,
);

over_io_uring!(
    a_reused_number_is_read_by_the_new_files_kind,
    a_read_cancelled_before_its_submission_takes_nothing_from_the_next_file,
    a_write_cancelled_before_its_submission_gives_nothing_to_the_next_file,
    operations_around_one_cancelled_before_its_submission_are_done,
    dropping_the_backend_ends_the_use_of_buffers,
);

fn a_reused_number_names_the_new_file(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    let mut number = OwnedFd::from(reader);
    for _ in 0..3 {
        rig.ready(1, &number, Interest::READABLE);
        rig.nothing_completes();
        writer.write_all(b"x").expect("write");
        assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
        let (reader, next) = pipe().expect("pipe");
        take_over(&mut number, reader);
        writer = next;
    }
}

fn a_read_cancelled_before_its_submission_takes_nothing_from_the_next_file(mut rig: Rig) {
    let (here, _peer) = UnixStream::pair().expect("socketpair");
    let (next, mut next_peer) = UnixStream::pair().expect("socketpair");
    next_peer.write_all(b"secret").expect("write");
    let mut number = OwnedFd::from(here);
    let mut buffer = Buffer::new(6);
    rig.receive(1, &number, &mut buffer);
    rig.backend.cancel(1);
    take_over(&mut number, next);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
    rig.nothing_completes();
    rig.receive(2, &number, &mut buffer);
    assert_eq!(rig.next(), done(2, 6));
}

fn a_write_cancelled_before_its_submission_gives_nothing_to_the_next_file(mut rig: Rig) {
    let (here, _peer) = UnixStream::pair().expect("socketpair");
    let (next, mut next_peer) = UnixStream::pair().expect("socketpair");
    let mut number = OwnedFd::from(here);
    rig.send(1, &number, b"for the old one");
    rig.backend.cancel(1);
    take_over(&mut number, next);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
    rig.nothing_completes();
    next_peer.set_nonblocking(true).expect("fcntl");
    assert_eq!(next_peer.read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
}

fn operations_around_one_cancelled_before_its_submission_are_done(mut rig: Rig) {
    let (here, mut peer) = UnixStream::pair().expect("socketpair");
    let (silent, _other) = UnixStream::pair().expect("socketpair");
    let mut buffers = [Buffer::new(1), Buffer::new(1), Buffer::new(1)];
    rig.receive(1, &here, &mut buffers[0]);
    rig.receive(2, &silent, &mut buffers[1]);
    rig.receive(3, &here, &mut buffers[2]);
    rig.backend.cancel(2);
    peer.write_all(b"ab").expect("write");
    let mut ended = rig.all(3);
    ended.sort_by_key(|completion| completion.token);
    assert_eq!(ended, [done(1, 1), failed(2, Errno::ECANCELED), done(3, 1)]);
}

fn a_number_reused_for_a_regular_file_is_ready(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    writer.write_all(b"x").expect("write");
    let mut number = OwnedFd::from(reader);
    rig.ready(1, &number, Interest::READABLE);
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
    take_over(&mut number, file(b""));
    rig.ready(2, &number, Interest::READABLE);
    assert_eq!(rig.next(), is_ready(2, Interest::READABLE));
}

fn a_number_reused_after_a_regular_file_is_waited_for(mut rig: Rig) {
    let mut number = OwnedFd::from(file(b""));
    rig.ready(1, &number, Interest::READABLE);
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
    let (reader, mut writer) = pipe().expect("pipe");
    take_over(&mut number, reader);
    rig.ready(2, &number, Interest::READABLE);
    rig.nothing_completes();
    writer.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(2, Interest::READABLE));
}

fn a_number_that_names_its_old_file_again_is_waited_for(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    let kept = reader.try_clone().expect("duplicate");
    let mut number = OwnedFd::from(reader);
    rig.ready(1, &number, Interest::READABLE);
    rig.start_all();
    rig.backend.cancel(1);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
    let (other, _other_writer) = pipe().expect("pipe");
    take_over(&mut number, other);
    rig.ready(2, &number, Interest::READABLE);
    rig.start_all();
    rig.backend.cancel(2);
    assert_eq!(rig.next(), failed(2, Errno::ECANCELED));
    take_over(&mut number, kept);
    rig.ready(3, &number, Interest::READABLE);
    rig.nothing_completes();
    writer.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(3, Interest::READABLE));
}

fn an_event_of_the_old_file_is_not_delivered_to_a_waiter_for_the_new_one(mut rig: Rig) {
    let (reader, mut old_writer) = pipe().expect("pipe");
    // Keeps the old file open, so that the kernel keeps watching it.
    let _kept = reader.try_clone().expect("duplicate");
    let mut number = OwnedFd::from(reader);
    rig.ready(1, &number, Interest::READABLE);
    rig.start_all();
    let (reader, mut new_writer) = pipe().expect("pipe");
    take_over(&mut number, reader);
    rig.ready(2, &number, Interest::READABLE);
    rig.start_all();
    old_writer.write_all(b"x").expect("write");
    // A backend that holds a reference to the file completes the wait; other backends fail it.
    let old = rig.next();
    assert!([is_ready(1, Interest::READABLE), failed(1, Errno::EBADF)].contains(&old), "{old:?}");
    rig.nothing_completes();
    new_writer.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(2, Interest::READABLE));
}

fn an_event_of_the_old_file_is_not_delivered_after_its_waiter_was_cancelled(mut rig: Rig) {
    let (reader, mut old_writer) = pipe().expect("pipe");
    let _kept = reader.try_clone().expect("duplicate");
    let mut number = OwnedFd::from(reader);
    rig.ready(1, &number, Interest::READABLE);
    rig.start_all();
    rig.backend.cancel(1);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
    let (reader, _new_writer) = pipe().expect("pipe");
    take_over(&mut number, reader);
    rig.ready(1, &number, Interest::READABLE);
    rig.start_all();
    old_writer.write_all(b"x").expect("write");
    rig.nothing_completes();
    rig.backend.cancel(1);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
}

fn a_wait_for_a_closed_descriptor_can_be_cancelled(mut rig: Rig) {
    let (reader, _writer) = pipe().expect("pipe");
    rig.ready(1, &reader, Interest::READABLE);
    rig.nothing_completes();
    drop(reader);
    rig.backend.cancel(1);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
}

fn a_reused_number_is_read_by_the_new_files_kind(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    let mut number = OwnedFd::from(here);
    let mut buffer = Buffer::new(5);
    there.write_all(b"first").expect("write");
    rig.read(1, &number, &mut buffer, None);
    assert_eq!(rig.next(), done(1, 5));
    take_over(&mut number, file(b"second"));
    rig.read(2, &number, &mut buffer, None);
    assert_eq!(rig.next(), done(2, 5));
    assert_eq!(&**buffer.0, b"secon");
    let (reader, mut writer) = pipe().expect("pipe");
    take_over(&mut number, reader);
    rig.read(3, &number, &mut buffer, None);
    rig.nothing_completes();
    writer.write_all(b"third").expect("write");
    assert_eq!(rig.next(), done(3, 5));
    assert_eq!(&**buffer.0, b"third");
}

fn dropping_the_backend_ends_the_use_of_buffers(mut rig: Rig) {
    let (mut reader, mut writer) = pipe().expect("pipe");
    let mut buffer = Buffer::new(10);
    rig.read(1, &reader, &mut buffer, None);
    rig.ready(2, &reader, Interest::READABLE);
    rig.start_all();
    drop(rig);
    writer.write_all(b"hello").expect("write");
    let mut data = [0; 5];
    reader.read_exact(&mut data).expect("read");
    assert_eq!(&data, b"hello");
    assert_eq!(&**buffer.0, b"..........");
}

fn dropping_the_backend_ends_reads_of_files(mut rig: Rig) {
    let file = file(&[b'x'; 4096]);
    let mut buffers: Vec<Buffer> = (0..100).map(|_| Buffer::new(4096)).collect();
    for (token, buffer) in buffers.iter_mut().enumerate() {
        rig.read(token, &file, buffer, Some(0));
    }
    rig.start_all();
    drop(rig);
    for buffer in &mut buffers {
        buffer.0.fill(b'!');
    }
    // A read that still wrote to a buffer would show by now, or to a sanitizer.
    std::thread::yield_now();
    assert!(buffers.iter().all(|buffer| buffer.0.iter().all(|&byte| byte == b'!')));
}

fn wakers_outlive_their_backend(rig: Rig) {
    let waker = rig.backend.waker();
    drop(rig);
    waker.arm();
    waker.wake();
}
