//! Cancelling operations.

use std::io::{Read, Write, pipe};
use std::os::unix::net::UnixStream;

use heddle_core::Interest;
use nix::errno::Errno;

use crate::rig::{Buffer, Rig, done, failed, is_ready, over_every_backend, over_io_uring};

over_every_backend!(
    a_cancelled_wait_completes_as_cancelled,
    a_wait_can_be_cancelled_before_its_submission,
    cancelling_one_waiter_does_not_affect_the_others,
    cancelling_a_complete_operation_does_nothing,
    cancelling_an_unknown_token_does_nothing,
    a_token_can_be_reused_after_its_cancel,
    a_descriptor_can_be_waited_for_after_a_cancel,
    twenty_thousand_waits_can_be_cancelled,
);

over_io_uring!(a_cancelled_read_takes_no_data,);

fn a_cancelled_wait_completes_as_cancelled(mut rig: Rig) {
    let (reader, _writer) = pipe().expect("pipe");
    rig.ready(1, &reader, Interest::READABLE);
    rig.nothing_completes();
    rig.backend.cancel(1);
    assert!(!rig.backend.is_idle(), "not idle until the completion has been returned");
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
    assert!(rig.backend.is_idle());
}

fn a_cancelled_read_takes_no_data(mut rig: Rig) {
    let (mut reader, mut writer) = pipe().expect("pipe");
    let mut buffer = Buffer::new(10);
    rig.read(1, &reader, &mut buffer, None);
    rig.nothing_completes();
    rig.backend.cancel(1);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
    writer.write_all(b"hello").expect("write");
    let mut data = [0; 5];
    reader.read_exact(&mut data).expect("read");
    assert_eq!(&data, b"hello");
    rig.nothing_completes();
    assert_eq!(&**buffer.0, b"..........");
}

fn a_wait_can_be_cancelled_before_its_submission(mut rig: Rig) {
    let (reader, _writer) = pipe().expect("pipe");
    rig.ready(1, &reader, Interest::READABLE);
    rig.backend.cancel(1);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
}

fn cancelling_one_waiter_does_not_affect_the_others(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    let mut buffer = Buffer::new(1);
    rig.ready(1, &here, Interest::READABLE);
    rig.ready(2, &here, Interest::READABLE | Interest::PRIORITY);
    rig.read(3, &here, &mut buffer, None);
    rig.backend.cancel(2);
    assert_eq!(rig.next(), failed(2, Errno::ECANCELED));
    rig.nothing_completes();
    there.write_all(b"xy").expect("write");
    assert_eq!(rig.all(2), [is_ready(1, Interest::READABLE), done(3, 1)]);
}

fn cancelling_a_complete_operation_does_nothing(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    writer.write_all(b"x").expect("write");
    rig.ready(1, &reader, Interest::READABLE);
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
    rig.backend.cancel(1);
    rig.nothing_completes();
    assert!(rig.backend.is_idle());
}

fn cancelling_an_unknown_token_does_nothing(mut rig: Rig) {
    rig.backend.cancel(12345);
    rig.nothing_completes();
    assert!(rig.backend.is_idle());
}

fn a_token_can_be_reused_after_its_cancel(mut rig: Rig) {
    let (reader, mut writer) = pipe().expect("pipe");
    for _ in 0..3 {
        rig.ready(1, &reader, Interest::READABLE);
        rig.backend.cancel(1);
        assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
    }
    rig.ready(1, &reader, Interest::READABLE);
    rig.nothing_completes();
    writer.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(1, Interest::READABLE));
}

fn a_descriptor_can_be_waited_for_after_a_cancel(mut rig: Rig) {
    let (here, mut there) = UnixStream::pair().expect("sockets");
    rig.ready(1, &here, Interest::READABLE);
    rig.start_all();
    rig.backend.cancel(1);
    assert_eq!(rig.next(), failed(1, Errno::ECANCELED));
    there.write_all(b"x").expect("write");
    rig.nothing_completes();
    rig.ready(2, &here, Interest::WRITABLE);
    assert_eq!(rig.next(), is_ready(2, Interest::WRITABLE));
}

fn twenty_thousand_waits_can_be_cancelled(mut rig: Rig) {
    const COUNT: usize = 20_000;
    let (reader, mut writer) = pipe().expect("pipe");
    for token in 0..=COUNT {
        rig.ready(token, &reader, Interest::READABLE);
    }
    rig.start_all();
    for token in 0..COUNT {
        rig.backend.cancel(token);
    }
    let expected: Vec<_> = (0..COUNT).map(|token| failed(token, Errno::ECANCELED)).collect();
    assert!(rig.all(COUNT) == expected, "each completes once");
    writer.write_all(b"x").expect("write");
    assert_eq!(rig.next(), is_ready(COUNT, Interest::READABLE));
}
