//! Reading and writing.

use std::fs::File;
use std::io::{Read, Seek, Write, pipe};
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use heddle_core::Interest;
use nix::errno::Errno;

use crate::rig::{Buffer, FORKS, Rig, done, failed, file, is_ready, over_every_backend, over_io_uring};

over_every_backend!(
    a_device_without_readiness_is_read,
    the_end_of_a_file_is_read_as_nothing,
    reading_a_write_only_file_fails,
    a_file_is_read_and_written_at_its_position,
    a_file_is_read_and_written_at_an_offset,
    reading_a_directory_fails,
    reading_a_closed_descriptor_fails,
    many_reads_of_a_file_complete_each_with_its_own_data,
);

over_io_uring!(
    a_pipe_is_read_once_there_is_data,
    a_socket_is_read_once_there_is_data,
    a_socket_receives_once_there_is_data,
    a_socket_receives_data_that_has_arrived_already,
    a_socket_in_blocking_mode_does_not_block_other_operations,
    a_socket_sends,
    the_end_of_a_socket_is_received_as_nothing,
    sending_without_a_receiver_fails,
    receiving_from_a_pipe_succeeds_or_fails_with_enotsock,
    a_terminal_is_read_once_there_is_a_line,
    each_reader_of_one_descriptor_gets_its_share,
    a_read_and_a_wait_share_a_descriptor,
    a_full_pipe_is_written_once_there_is_room,
    a_full_socket_is_written_once_there_is_room,
    a_datagram_is_read_whole,
    the_end_of_a_pipe_is_read_as_nothing,
    writing_without_a_reader_fails,
);

fn a_pipe_is_read_once_there_is_data(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    let mut buffer = Buffer::new(10);
    rig.read(1, &reader, &mut buffer, None);
    rig.nothing_completes();
    writer.write_all(b"hello").expect("write");
    assert_eq!(rig.next(), done(1, 5));
    assert_eq!(&**buffer.0, b"hello.....");
    assert!(rig.backend.is_idle());
}

fn a_socket_is_read_once_there_is_data(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    let mut buffer = Buffer::new(10);
    rig.read(1, &here, &mut buffer, None);
    rig.nothing_completes();
    there.write_all(b"hello").expect("write");
    assert_eq!(rig.next(), done(1, 5));
    assert_eq!(&**buffer.0, b"hello.....");
}

fn a_socket_receives_once_there_is_data(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    here.set_nonblocking(true).expect("nonblocking");
    let mut buffer = Buffer::new(10);
    rig.receive(1, &here, &mut buffer);
    rig.nothing_completes();
    there.write_all(b"hello").expect("write");
    assert_eq!(rig.next(), done(1, 5));
    assert_eq!(&**buffer.0, b"hello.....");
    assert!(rig.backend.is_idle());
}

fn a_socket_receives_data_that_has_arrived_already(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    there.write_all(b"hello").expect("write");
    let mut buffer = Buffer::new(10);
    rig.receive(1, &here, &mut buffer);
    assert_eq!(rig.next(), done(1, 5));
}

fn a_socket_in_blocking_mode_does_not_block_other_operations(mut rig: Rig) {
    let ((silent, _peer), (here, mut there)) =
        (UnixStream::pair().expect("sockets"), UnixStream::pair().expect("sockets"));
    let (mut first, mut second) = (Buffer::new(10), Buffer::new(10));
    rig.receive(1, &silent, &mut first);
    rig.receive(2, &here, &mut second);
    there.write_all(b"hello").expect("write");
    assert_eq!(rig.next(), done(2, 5));
    rig.backend.cancel(1);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
}

fn a_socket_sends(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    rig.send(1, &here, b"hello");
    assert_eq!(rig.next(), done(1, 5));
    let mut received = [0; 5];
    there.read_exact(&mut received).expect("read");
    assert_eq!(&received, b"hello");
}

fn the_end_of_a_socket_is_received_as_nothing(mut rig: Rig) {
    let (here, there) = UnixStream::pair().expect("sockets");
    let mut buffer = Buffer::new(10);
    rig.receive(1, &here, &mut buffer);
    drop(there);
    assert_eq!(rig.next(), done(1, 0));
}

fn sending_without_a_receiver_fails(mut rig: Rig) {
    let _forks = FORKS.read();
    let (here, there) = UnixStream::pair().expect("sockets");
    drop(there);
    rig.send(1, &here, b"hello");
    assert_eq!(rig.next(), failed(1, Errno::EPIPE));
}

/// The caller may be wrong about a descriptor's kind.
fn receiving_from_a_pipe_succeeds_or_fails_with_enotsock(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    writer.write_all(b"hello").expect("write");
    let mut buffer = Buffer::new(10);
    rig.receive(1, &reader, &mut buffer);
    let completion = rig.next();
    assert!([done(1, 5), failed(1, Errno::ENOTSOCK)].contains(&completion), "{completion:?}");
}

fn a_terminal_is_read_once_there_is_a_line(mut rig: Rig) {
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    let mut buffer = Buffer::new(10);
    rig.read(1, &terminal.slave, &mut buffer, None);
    rig.nothing_completes();
    rig.write(2, &terminal.master, b"hello\n", None);
    assert_eq!(rig.all(2), [done(1, 6), done(2, 6)]);
    assert_eq!(&**buffer.0, b"hello\n....");
}

fn a_device_without_readiness_is_read(mut rig: Rig) {
    let zero = File::open("/dev/zero").expect("/dev/zero");
    let mut buffer = Buffer::new(3);
    rig.read(1, &zero, &mut buffer, None);
    assert_eq!(rig.next(), done(1, 3));
    assert_eq!(&**buffer.0, [0, 0, 0]);
}

fn each_reader_of_one_descriptor_gets_its_share(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    let mut buffers: Vec<Buffer> = (0..3).map(|_| Buffer::new(2)).collect();
    for (token, buffer) in buffers.iter_mut().enumerate() {
        rig.read(token, &reader, buffer, None);
    }
    rig.nothing_completes();
    writer.write_all(b"abc").expect("write");
    let mut lengths: Vec<i32> = rig.all(2).iter().map(|completion| completion.result).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 2]);
    rig.nothing_completes();
    writer.write_all(b"d").expect("write");
    assert_eq!(rig.next().result, 1);
}

fn a_read_and_a_wait_share_a_descriptor(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    let mut buffer = Buffer::new(2);
    rig.ready(1, &here, Interest::READABLE);
    rig.read(2, &here, &mut buffer, None);
    rig.write(3, &here, b"out", None);
    assert_eq!(rig.next(), done(3, 3));
    there.write_all(b"in and more").expect("write");
    assert_eq!(rig.all(2), [is_ready(1, Interest::READABLE), done(2, 2)]);
}

fn a_full_pipe_is_written_once_there_is_room(mut rig: Rig) {
    let (mut reader, mut writer) = pipe().expect("pipe");
    // Both ends are in blocking mode, so a write that blocked would never return.
    let capacity = fill(&writer);
    rig.write(1, &writer, &[b'x'; 60_000], None);
    rig.nothing_completes();
    reader.read_exact(&mut vec![0; capacity]).expect("read");
    let written = rig.next();
    assert!((1..=60_000).contains(&written.result), "{written:?}");
    writer.write_all(b".").expect("write");
    let mut rest = vec![0; written.result as usize + 1];
    reader.read_exact(&mut rest).expect("read");
    assert!(rest.ends_with(b"x."), "exactly so many bytes were written");
}

fn a_full_socket_is_written_once_there_is_room(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    let capacity = fill(&here);
    rig.write(1, &here, b"hello", None);
    rig.nothing_completes();
    there.read_exact(&mut vec![0; capacity]).expect("read");
    assert_eq!(rig.next(), done(1, 5));
    let mut rest = [0; 5];
    there.read_exact(&mut rest).expect("read");
    assert_eq!(&rest, b"hello");
}

/// Writes until the descriptor is full, and returns the number of bytes. The descriptor stays in blocking mode.
fn fill(writer: &impl std::os::fd::AsFd) -> usize {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    fcntl(writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("fcntl");
    let mut filled = 0;
    for length in [4096, 1] {
        loop {
            match nix::unistd::write(writer, &vec![b'-'; length]) {
                Ok(written) => filled += written,
                Err(Errno::EAGAIN) => break,
                Err(errno) => panic!("{errno}"),
            }
        }
    }
    fcntl(writer, FcntlArg::F_SETFL(OFlag::empty())).expect("fcntl");
    filled
}

fn a_datagram_is_read_whole(mut rig: Rig) {
    let here = UdpSocket::bind("127.0.0.1:0").expect("socket");
    let there = UdpSocket::bind("127.0.0.1:0").expect("socket");
    let mut buffer = Buffer::new(10);
    rig.read(1, &here, &mut buffer, None);
    rig.nothing_completes();
    for datagram in [b"one", b"two"] {
        there.send_to(datagram, here.local_addr().expect("address")).expect("send");
    }
    assert_eq!(rig.next(), done(1, 3));
    assert_eq!(&**buffer.0, b"one.......");
}

fn the_end_of_a_pipe_is_read_as_nothing(mut rig: Rig) {
    let (reader, writer) = pipe().expect("pipe");
    let mut buffer = Buffer::new(10);
    rig.read(1, &reader, &mut buffer, None);
    rig.nothing_completes();
    drop(writer);
    assert_eq!(rig.next(), done(1, 0));
}

fn the_end_of_a_file_is_read_as_nothing(mut rig: Rig) {
    let file = file(b"hello");
    let mut buffer = Buffer::new(10);
    rig.read(1, &file, &mut buffer, Some(5));
    assert_eq!(rig.next(), done(1, 0));
}

fn writing_without_a_reader_fails(mut rig: Rig) {
    let _forks = FORKS.read();
    let (reader, writer) = pipe().expect("pipe");
    drop(reader);
    rig.write(1, &writer, b"hello", None);
    assert_eq!(rig.next(), failed(1, Errno::EPIPE));
}

fn reading_a_write_only_file_fails(mut rig: Rig) {
    let null = File::options().write(true).open("/dev/null").expect("/dev/null");
    let mut buffer = Buffer::new(10);
    rig.read(1, &null, &mut buffer, None);
    assert_eq!(rig.next(), failed(1, Errno::EBADF));
}

fn a_file_is_read_and_written_at_its_position(mut rig: Rig) {
    let mut file = file(b"hello, world");
    let mut buffer = Buffer::new(7);
    rig.read(1, &file, &mut buffer, None);
    assert_eq!(rig.next(), done(1, 7));
    assert_eq!(&**buffer.0, b"hello, ");
    rig.write(2, &file, b"weave", None);
    assert_eq!(rig.next(), done(2, 5));
    assert_eq!(file.stream_position().expect("position"), 12);
    let mut content = [0; 12];
    file.read_exact_at(&mut content, 0).expect("read");
    assert_eq!(&content, b"hello, weave");
}

fn a_file_is_read_and_written_at_an_offset(mut rig: Rig) {
    let mut file = file(b"hello, world");
    let mut buffer = Buffer::new(5);
    rig.read(1, &file, &mut buffer, Some(7));
    assert_eq!(rig.next(), done(1, 5));
    assert_eq!(&**buffer.0, b"world");
    rig.write(2, &file, b"J", Some(0));
    assert_eq!(rig.next(), done(2, 1));
    assert_eq!(file.stream_position().expect("position"), 0, "the file's own position stays");
    let mut content = [0; 12];
    file.read_exact_at(&mut content, 0).expect("read");
    assert_eq!(&content, b"Jello, world");
}

fn reading_a_directory_fails(mut rig: Rig) {
    let directory = File::open("/").expect("/");
    let mut buffer = Buffer::new(10);
    rig.read(1, &directory, &mut buffer, None);
    assert_eq!(rig.next(), failed(1, Errno::EISDIR));
}

fn reading_a_closed_descriptor_fails(mut rig: Rig) {
    let mut buffer = Buffer::new(10);
    // Beyond the limit of descriptors, so that no other test opens it.
    rig.read(1, &i32::MAX, &mut buffer, None);
    assert_eq!(rig.next(), failed(1, Errno::EBADF));
}

fn many_reads_of_a_file_complete_each_with_its_own_data(mut rig: Rig) {
    const COUNT: usize = 2_000;
    let content: Vec<u8> = (0..COUNT as u32).flat_map(u32::to_le_bytes).collect();
    let file = file(&content);
    let mut buffers: Vec<Buffer> = (0..COUNT).map(|_| Buffer::new(4)).collect();
    for (token, buffer) in buffers.iter_mut().enumerate() {
        rig.read(token, &file, buffer, Some(token as u64 * 4));
    }
    let expected: Vec<_> = (0..COUNT).map(|token| done(token, 4)).collect();
    assert!(rig.all(COUNT) == expected, "each completes once");
    assert!(buffers.iter().flat_map(|buffer| buffer.0.iter()).eq(&content));
}
