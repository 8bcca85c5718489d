//! Waiting until a descriptor is ready.

use std::io::{Read, Write, pipe};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use heddle_core::Interest;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send};

use crate::rig::{Rig, failed, file, is_ready, over_every_backend};

over_every_backend!(
    a_pipe_is_ready_once_there_is_data,
    a_socket_is_ready_for_its_interest_only,
    a_datagram_makes_a_socket_ready,
    a_listener_is_ready_when_a_client_connects,
    a_connecting_socket_is_ready_when_it_is_connected,
    several_operations_wait_for_the_same_event_of_one_descriptor,
    several_operations_wait_for_different_events_of_one_descriptor,
    a_waiter_that_one_event_does_not_complete_gets_the_next,
    readiness_can_be_waited_for_again,
    readiness_that_lasts_is_reported_to_every_new_waiter,
    a_duplicate_of_a_descriptor_is_waited_for_separately,
    a_hang_up_is_ready_for_every_interest,
    a_writer_without_a_reader_is_ready,
    the_end_of_a_stream_is_readable,
    priority_data_is_reported_as_such,
    a_regular_file_is_always_ready,
    waiting_for_a_closed_descriptor_fails,
    waiting_for_a_negative_descriptor_fails,
    more_operations_than_a_ring_has_entries,
);

fn a_pipe_is_ready_once_there_is_data(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    rig.ready(1, &reader, Interest::READABLE);
    rig.nothing_completes();
    writer.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
    assert!(rig.backend.is_idle());
}

fn a_socket_is_ready_for_its_interest_only(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    there.write_all(b"x").expect("write");
    rig.ready(1, &here, Interest::WRITABLE);
    assert_eq!(rig.next(), is_ready(1, Interest::WRITABLE));
    rig.ready(2, &here, Interest::READABLE);
    assert_eq!(rig.next(), is_ready(2, Interest::READABLE));
    rig.ready(3, &here, Interest::READABLE | Interest::WRITABLE);
    assert_eq!(rig.next(), is_ready(3, Interest::READABLE | Interest::WRITABLE));
}

fn a_datagram_makes_a_socket_ready(mut rig: Rig) {
    let here = UdpSocket::bind("127.0.0.1:0").expect("socket");
    let there = UdpSocket::bind("127.0.0.1:0").expect("socket");
    rig.ready(1, &here, Interest::READABLE);
    rig.nothing_completes();
    there.send_to(b"", here.local_addr().expect("address")).expect("send");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
}

fn a_listener_is_ready_when_a_client_connects(mut rig: Rig) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listener");
    rig.ready(1, &listener, Interest::READABLE);
    rig.nothing_completes();
    let _client = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
}

fn a_connecting_socket_is_ready_when_it_is_connected(mut rig: Rig) {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};
    let listener = TcpListener::bind("127.0.0.1:0").expect("listener");
    let std::net::SocketAddr::V4(address) = listener.local_addr().expect("address") else { unreachable!() };
    let client = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).expect("socket");
    let flags = nix::fcntl::OFlag::O_NONBLOCK;
    nix::fcntl::fcntl(&client, nix::fcntl::FcntlArg::F_SETFL(flags)).expect("fcntl");
    let started = connect(client.as_raw_fd(), &SockaddrIn::from(address));
    assert!(matches!(started, Ok(()) | Err(Errno::EINPROGRESS)));
    rig.ready(1, &client, Interest::READABLE | Interest::WRITABLE);
    assert_eq!(rig.next(), is_ready(1, Interest::WRITABLE));
}

fn several_operations_wait_for_the_same_event_of_one_descriptor(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    for token in 0..5 {
        rig.ready(token, &reader, Interest::READABLE);
    }
    rig.nothing_completes();
    writer.write_all(b"x").expect("write");
    let expected: Vec<_> = (0..5).map(|token| is_ready(token, Interest::READABLE)).collect();
    assert_eq!(rig.all(5), expected);
}

fn several_operations_wait_for_different_events_of_one_descriptor(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    rig.ready(1, &here, Interest::READABLE);
    rig.ready(2, &here, Interest::WRITABLE);
    assert_eq!(rig.next(), is_ready(2, Interest::WRITABLE));
    rig.nothing_completes();
    there.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
}

fn a_waiter_that_one_event_does_not_complete_gets_the_next(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    rig.ready(1, &here, Interest::READABLE);
    for token in 2..10 {
        rig.ready(token, &here, Interest::WRITABLE);
        assert_eq!(rig.next(), is_ready(token, Interest::WRITABLE));
    }
    there.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
}

fn readiness_can_be_waited_for_again(mut rig: Rig) {
    let (mut reader, mut writer) = pipe().expect("pipe");
    for _ in 0..3 {
        rig.ready(1, &reader, Interest::READABLE);
        rig.nothing_completes();
        writer.write_all(b"x").expect("write");
        assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
        reader.read_exact(&mut [0]).expect("read");
    }
}

fn readiness_that_lasts_is_reported_to_every_new_waiter(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    writer.write_all(b"x").expect("write");
    for token in 0..3 {
        rig.ready(token, &reader, Interest::READABLE);
        assert_eq!(rig.next(), is_ready(token, Interest::READABLE));
    }
}

fn a_duplicate_of_a_descriptor_is_waited_for_separately(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    let duplicate = reader.try_clone().expect("duplicate");
    rig.ready(1, &reader, Interest::READABLE);
    rig.ready(2, &duplicate, Interest::READABLE);
    rig.nothing_completes();
    writer.write_all(b"x").expect("write");
    assert_eq!(rig.all(2), [is_ready(1, Interest::READABLE), is_ready(2, Interest::READABLE)]);
}

fn a_hang_up_is_ready_for_every_interest(mut rig: Rig) {
    let (reader, writer) = pipe().expect("pipe");
    rig.ready(1, &reader, Interest::READABLE | Interest::PRIORITY);
    rig.ready(2, &reader, Interest::PRIORITY);
    rig.nothing_completes();
    drop(writer);
    let expected = [is_ready(1, Interest::READABLE | Interest::PRIORITY), is_ready(2, Interest::PRIORITY)];
    assert_eq!(rig.all(2), expected);
}

fn a_writer_without_a_reader_is_ready(mut rig: Rig) {
    let (reader, writer) = pipe().expect("pipe");
    drop(reader);
    rig.ready(1, &writer, Interest::WRITABLE);
    assert_eq!(rig.next(), is_ready(1, Interest::WRITABLE));
}

fn the_end_of_a_stream_is_readable(mut rig: Rig) {
    let (here, there) = UnixStream::pair().expect("sockets");
    rig.ready(1, &here, Interest::READABLE);
    rig.nothing_completes();
    there.shutdown(std::net::Shutdown::Write).expect("shutdown");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
}

fn priority_data_is_reported_as_such(mut rig: Rig) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listener");
    let there = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (here, _) = listener.accept().expect("accept");
    rig.ready(1, &here, Interest::PRIORITY);
    rig.nothing_completes();
    send(there.as_raw_fd(), b"!", MsgFlags::MSG_OOB).expect("send");
    assert_eq!(rig.next(), is_ready(1, Interest::PRIORITY));
}

fn a_regular_file_is_always_ready(mut rig: Rig) {
    let empty = file(b"");
    rig.ready(1, &empty, Interest::READABLE | Interest::WRITABLE);
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE | Interest::WRITABLE));
}

fn waiting_for_a_closed_descriptor_fails(mut rig: Rig) {
    // Beyond the limit of descriptors, so that no other test opens it.
    rig.ready_raw(1, i32::MAX, Interest::READABLE);
    assert_eq!(rig.next(), failed(1, Errno::EBADF));
    assert!(rig.backend.is_idle());
}

fn waiting_for_a_negative_descriptor_fails(mut rig: Rig) {
    rig.ready_raw(1, -1, Interest::READABLE);
    assert_eq!(rig.next(), failed(1, Errno::EBADF));
}

fn more_operations_than_a_ring_has_entries(mut rig: Rig) {
    const COUNT: usize = 20_000;
    let (reader, mut writer) = pipe().expect("pipe");
    for token in 0..COUNT {
        rig.ready(token, &reader, Interest::READABLE);
    }
    rig.nothing_completes();
    writer.write_all(b"x").expect("write");
    let expected: Vec<_> = (0..COUNT).map(|token| is_ready(token, Interest::READABLE)).collect();
    assert!(rig.all(COUNT) == expected, "each completes once");
    assert!(rig.backend.is_idle());
}
