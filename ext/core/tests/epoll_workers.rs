//! The epoll backend and files, which worker threads read and write.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use heddle_core::io::backend::epoll::Epoll;
use heddle_core::threads::workers::WorkerPool;
use heddle_core::{Backend, Completion, Interest, Operation, Token};
use nix::errno::Errno;

/// Fails a test that would otherwise hang.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A backend whose only worker thread is occupied until the sender is dropped.
fn epoll_with_occupied_worker() -> (Epoll, Sender<()>) {
    let workers = Arc::new(WorkerPool::new(1));
    let (release, released) = channel::<()>();
    let occupied = workers.submit(move || {
        let _ = released.recv();
    });
    assert!(occupied.is_ok(), "a thread could be started");
    (Epoll::new(workers).expect("epoll"), release)
}

fn file(content: &[u8]) -> File {
    use std::sync::atomic::AtomicUsize;
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("heddle-workers-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    let file = file.expect("a file in the temporary directory");
    std::fs::remove_file(path).expect("its name removed");
    file.write_all_at(content, 0).expect("its content");
    file
}

/// Submits a read into a leaked buffer, which outlives the backend.
fn read(epoll: &mut Epoll, token: Token, fd: &impl AsRawFd, length: usize) -> &'static [u8] {
    let buffer: &'static mut [u8] = vec![b'.'; length].leak();
    let operation =
        Operation::Read { fd: fd.as_raw_fd(), buffer: buffer.as_mut_ptr(), length, offset: Some(0), may_block: false };
    // SAFETY: the buffer is never freed, and is read only after the completion or the end of the backend.
    unsafe { epoll.submit(token, operation) };
    buffer
}

fn next(epoll: &mut Epoll) -> Completion {
    let deadline = Instant::now() + TEST_TIMEOUT;
    let mut completions = Vec::new();
    loop {
        epoll.completions(&mut completions);
        if let Some(&completion) = completions.first() {
            assert_eq!(completions.len(), 1);
            return completion;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "no completion came");
        epoll.wait(Some(left)).expect("wait");
    }
}

fn waiting_reader(epoll: &mut Epoll, token: Token) -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().expect("pipe");
    // SAFETY: there is no buffer.
    unsafe { epoll.submit(token, Operation::Ready { fd: reader.as_raw_fd(), interest: Interest::READABLE }) };
    (reader, writer)
}

#[test]
fn a_slow_file_does_not_delay_other_operations() {
    let (mut epoll, release) = epoll_with_occupied_worker();
    let file = file(b"content");
    read(&mut epoll, 1, &file, 7);
    let (_reader, mut writer) = waiting_reader(&mut epoll, 2);
    writer.write_all(b"x").expect("write");
    assert_eq!(next(&mut epoll), Completion { token: 2, result: 1 });
    assert!(!epoll.is_idle());
    drop(release);
    assert_eq!(next(&mut epoll), Completion { token: 1, result: 7 });
    assert!(epoll.is_idle());
}

#[test]
fn a_read_that_no_worker_has_started_is_cancelled_immediately() {
    let (mut epoll, release) = epoll_with_occupied_worker();
    let file = file(b"content");
    let buffer = read(&mut epoll, 1, &file, 7);
    epoll.cancel(1);
    assert_eq!(next(&mut epoll), Completion { token: 1, result: -(Errno::ECANCELED as i32) });
    assert!(epoll.is_idle());
    drop(release);
    // The worker dequeues the cancelled read before this one.
    read(&mut epoll, 2, &file, 7);
    assert_eq!(next(&mut epoll), Completion { token: 2, result: 7 });
    assert_eq!(buffer, b".......");
}

#[test]
fn a_cancelled_read_completes_once_whether_or_not_a_worker_has_started_it() {
    let mut epoll = Epoll::new(Arc::new(WorkerPool::new(1))).expect("epoll");
    let file = file(b"content");
    for token in 1..200 {
        let buffer = read(&mut epoll, token, &file, 7);
        epoll.cancel(token);
        epoll.cancel(token);
        let completion = next(&mut epoll);
        let is_read = completion.result == 7;
        assert!(is_read || completion.result == -(Errno::ECANCELED as i32), "{completion:?}");
        assert_eq!((completion.token, buffer == b"content"), (token, is_read));
        assert!(epoll.is_idle());
    }
}

#[test]
fn a_file_is_read_even_if_its_number_is_reused_before() {
    let (mut epoll, release) = epoll_with_occupied_worker();
    let mut number = OwnedFd::from(file(b"old"));
    let buffer = read(&mut epoll, 1, &number, 3);
    nix::unistd::dup2(file(b"new"), &mut number).expect("dup2");
    drop(release);
    assert_eq!(next(&mut epoll), Completion { token: 1, result: 3 });
    assert_eq!(buffer, b"old");
}

#[test]
fn a_result_ends_a_wait_without_an_armed_waker() {
    let (mut epoll, release) = epoll_with_occupied_worker();
    let file = file(b"content");
    read(&mut epoll, 1, &file, 7);
    let releasing = std::thread::spawn(move || drop(release));
    epoll.wait(None).expect("wait");
    assert_eq!(next(&mut epoll), Completion { token: 1, result: 7 });
    releasing.join().expect("thread");
}

#[test]
fn reads_beyond_the_limit_are_queued_and_can_be_cancelled() {
    let (mut epoll, release) = epoll_with_occupied_worker();
    let file = file(b"content");
    for token in 0..1_000 {
        read(&mut epoll, token, &file, 7);
    }
    let mut completions = Vec::new();
    epoll.wait(Some(Duration::ZERO)).expect("wait");
    epoll.completions(&mut completions);
    assert!(completions.is_empty(), "none is done while no worker is free");
    epoll.cancel(999);
    epoll.completions(&mut completions);
    assert!(
        completions == [Completion { token: 999, result: -(Errno::ECANCELED as i32) }],
        "a queued one is cancelled"
    );
    completions.clear();
    drop(release);
    while !epoll.is_idle() {
        epoll.wait(Some(TEST_TIMEOUT)).expect("wait");
        epoll.completions(&mut completions);
    }
    completions.sort_unstable_by_key(|completion| completion.token);
    let expected: Vec<_> = (0..999).map(|token| Completion { token, result: 7 }).collect();
    assert!(completions == expected, "each completes once");
}

#[test]
fn dropping_the_backend_waits_for_reads_in_flight() {
    let (mut epoll, release) = epoll_with_occupied_worker();
    let file = file(b"content");
    let buffer = read(&mut epoll, 1, &file, 7);
    // A descriptor that stays ready must not end the wait for the read.
    let (_reader, mut writer) = waiting_reader(&mut epoll, 2);
    writer.write_all(b"x").expect("write");
    static RELEASED: AtomicBool = AtomicBool::new(false);
    let releasing = std::thread::spawn(move || {
        RELEASED.store(true, Ordering::SeqCst);
        drop(release);
    });
    drop(epoll);
    assert!(RELEASED.load(Ordering::SeqCst), "the backend outlived the read");
    assert_eq!(buffer, b"content");
    releasing.join().expect("thread");
}

/// FUSE's files report readiness, too.
#[test]
fn a_file_that_reports_readiness_is_read_by_a_worker() {
    let (mut epoll, release) = epoll_with_occupied_worker();
    let mounts = File::open("/proc/self/mounts").expect("/proc");
    // SAFETY: there is no buffer.
    unsafe { epoll.submit(1, Operation::Ready { fd: mounts.as_raw_fd(), interest: Interest::PRIORITY }) };
    read(&mut epoll, 2, &mounts, 1);
    // SAFETY: as above.
    unsafe { epoll.submit(3, Operation::Ready { fd: mounts.as_raw_fd(), interest: Interest::READABLE }) };
    assert_eq!(next(&mut epoll), Completion { token: 3, result: 1 });
    drop(release);
    assert_eq!(next(&mut epoll), Completion { token: 2, result: 1 });
    epoll.cancel(1);
    assert_eq!(next(&mut epoll), Completion { token: 1, result: -(Errno::ECANCELED as i32) });
    assert!(epoll.is_idle());
}

#[test]
fn reading_a_closed_file_fails() {
    let (mut epoll, _release) = epoll_with_occupied_worker();
    read(&mut epoll, 1, &i32::MAX, 7);
    assert_eq!(next(&mut epoll), Completion { token: 1, result: -(Errno::EBADF as i32) });
}

#[test]
fn reading_a_pipe_at_an_offset_fails() {
    let (mut epoll, release) = epoll_with_occupied_worker();
    drop(release);
    let (reader, mut writer) = pipe().expect("pipe");
    writer.write_all(b"x").expect("write");
    read(&mut epoll, 1, &reader, 7);
    assert_eq!(next(&mut epoll), Completion { token: 1, result: -(Errno::ESPIPE as i32) });
}

#[test]
fn priority_data_does_not_wake_a_reader() {
    use std::net::{TcpListener, TcpStream};
    let (mut epoll, _release) = epoll_with_occupied_worker();
    let listener = TcpListener::bind("127.0.0.1:0").expect("listener");
    let mut there = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (here, _) = listener.accept().expect("accept");
    // SAFETY: there is no buffer.
    unsafe { epoll.submit(1, Operation::Ready { fd: here.as_raw_fd(), interest: Interest::PRIORITY }) };
    // SAFETY: as above.
    unsafe { epoll.submit(2, Operation::Ready { fd: here.as_raw_fd(), interest: Interest::READABLE }) };
    nix::sys::socket::send(there.as_raw_fd(), b"!", nix::sys::socket::MsgFlags::MSG_OOB).expect("send");
    assert_eq!(next(&mut epoll), Completion { token: 1, result: 2 });
    let (start, timeout) = (Instant::now(), Duration::from_millis(10));
    epoll.wait(Some(timeout)).expect("wait");
    assert!(start.elapsed() >= timeout, "priority data ends no further wait");
    there.write_all(b"x").expect("write");
    assert_eq!(next(&mut epoll), Completion { token: 2, result: 1 });
}

#[test]
fn a_receive_is_refused() {
    let mut epoll = Epoll::new(Arc::new(WorkerPool::new(1))).expect("epoll");
    let mut buffer = [0];
    let (reader, _writer) = pipe().expect("pipe");
    let operation = Operation::Receive { fd: reader.as_raw_fd(), buffer: buffer.as_mut_ptr(), length: 1 };
    // SAFETY: the buffer outlives the completion, which is awaited.
    unsafe { epoll.submit(1, operation) };
    assert_eq!(next(&mut epoll), Completion { token: 1, result: -(Errno::EOPNOTSUPP as i32) });
}
