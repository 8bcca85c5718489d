//! A backend with helpers for tests.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use heddle_core::io::backend::epoll::Epoll;
use heddle_core::io::backend::uring::Uring;
use heddle_core::threads::workers::WorkerPool;
use heddle_core::{Backend, Completion, Error, Interest, Operation, Token};

/// Fails a test that would otherwise hang.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Held by a test that forks while its child lives, as the child holds the descriptors of all tests open; and, for
/// reading, by one that needs that nobody else does.
pub static FORKS: RwLock<()> = RwLock::new(());

/// Defines a test of each behaviour for each backend.
macro_rules! over_every_backend {
    ($($behaviour:ident),+ $(,)?) => {
        mod epoll {
            $(#[test] fn $behaviour() { crate::rig::check(crate::rig::epoll, super::$behaviour) })+
        }
        mod io_uring {
            $(#[test] fn $behaviour() { crate::rig::check(crate::rig::io_uring, super::$behaviour) })+
        }
        mod io_uring_of_any_thread {
            $(#[test] fn $behaviour() { crate::rig::check(crate::rig::io_uring_of_any_thread, super::$behaviour) })+
        }
    };
}
pub(crate) use over_every_backend;

/// Defines a test of each behaviour for each backend that itself reads and writes what is no file.
macro_rules! over_io_uring {
    ($($behaviour:ident),+ $(,)?) => {
        mod transferring_io_uring {
            $(#[test] fn $behaviour() { crate::rig::check(crate::rig::io_uring, super::$behaviour) })+
        }
        mod transferring_io_uring_of_any_thread {
            $(#[test] fn $behaviour() { crate::rig::check(crate::rig::io_uring_of_any_thread, super::$behaviour) })+
        }
    };
}
pub(crate) use over_io_uring;

/// Makes a backend.
pub type Maker = fn() -> Result<Box<dyn Backend>, Error>;

pub fn epoll() -> Result<Box<dyn Backend>, Error> {
    Ok(Box::new(Epoll::new(workers())?))
}

pub fn io_uring() -> Result<Box<dyn Backend>, Error> {
    Ok(Box::new(Uring::new(true)?))
}

pub fn io_uring_of_any_thread() -> Result<Box<dyn Backend>, Error> {
    Ok(Box::new(Uring::new(false)?))
}

fn workers() -> Arc<WorkerPool> {
    Arc::new(WorkerPool::new(2))
}

/// Checks one behaviour of one backend.
pub fn check(make: Maker, behaviour: fn(Rig)) {
    match make() {
        Ok(backend) => behaviour(Rig::new(backend, make)),
        Err(error @ Error::BackendUnavailable { .. }) => println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    }
}

pub struct Rig {
    pub backend: Box<dyn Backend>,
    pub make: Maker,
    /// Completions that the backend has returned and `next` has not.
    completed: Vec<Completion>,
}

impl Rig {
    pub fn new(backend: Box<dyn Backend>, make: Maker) -> Self {
        Rig { backend, make, completed: Vec::new() }
    }

    /// Waits for readiness.
    pub fn ready(&mut self, token: Token, fd: &impl AsRawFd, interest: Interest) {
        self.ready_raw(token, fd.as_raw_fd(), interest);
    }

    pub fn ready_raw(&mut self, token: Token, fd: RawFd, interest: Interest) {
        // SAFETY: there is no buffer.
        unsafe { self.backend.submit(token, Operation::Ready { fd, interest }) }
    }

    pub fn read(&mut self, token: Token, fd: &impl AsRawFd, buffer: &mut Buffer, offset: Option<u64>) {
        let (buffer, length) = (buffer.0.as_mut_ptr().cast(), buffer.0.len());
        // SAFETY: a `Buffer` is leaked if its test fails. Otherwise it outlives the completion, or the backend.
        unsafe {
            self.backend.submit(token, Operation::Read { fd: fd.as_raw_fd(), buffer, length, offset, may_block: false })
        }
    }

    pub fn write(&mut self, token: Token, fd: &impl AsRawFd, data: &'static [u8], offset: Option<u64>) {
        let (buffer, length) = (data.as_ptr(), data.len());
        // SAFETY: the data is never freed.
        unsafe {
            self.backend
                .submit(token, Operation::Write { fd: fd.as_raw_fd(), buffer, length, offset, may_block: false })
        }
    }

    pub fn receive(&mut self, token: Token, fd: &impl AsRawFd, buffer: &mut Buffer) {
        let (buffer, length) = (buffer.0.as_mut_ptr().cast(), buffer.0.len());
        // SAFETY: as in `read`.
        unsafe { self.backend.submit(token, Operation::Receive { fd: fd.as_raw_fd(), buffer, length }) }
    }

    pub fn send(&mut self, token: Token, fd: &impl AsRawFd, data: &'static [u8]) {
        let (buffer, length) = (data.as_ptr(), data.len());
        // SAFETY: as in `write`.
        unsafe { self.backend.submit(token, Operation::Send { fd: fd.as_raw_fd(), buffer, length }) }
    }

    /// Waits for one completion.
    pub fn next(&mut self) -> Completion {
        self.wait_for(1);
        self.completed.remove(0)
    }

    /// Waits for `count` completions, and returns them in order of their tokens.
    pub fn all(&mut self, count: usize) -> Vec<Completion> {
        self.wait_for(count);
        let mut all: Vec<Completion> = self.completed.drain(..count).collect();
        all.sort_unstable_by_key(|completion| completion.token);
        all
    }

    fn wait_for(&mut self, count: usize) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            self.backend.completions(&mut self.completed);
            if self.completed.len() >= count {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} of {count} completions came", self.completed.len());
            self.backend.wait(Some(left)).expect("wait");
        }
    }

    /// Checks that no submitted operation completes within a short time.
    pub fn nothing_completes(&mut self) {
        let deadline = Instant::now() + Duration::from_millis(10);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            self.backend.wait(Some(left)).expect("wait");
            self.backend.completions(&mut self.completed);
            assert_eq!(self.completed, []);
            if left.is_zero() {
                return;
            }
        }
    }

    /// Submits all operations to the kernel.
    pub fn start_all(&mut self) {
        self.backend.wait(Some(Duration::ZERO)).expect("wait");
    }
}

/// A buffer that is leaked if the test fails, as the kernel may still write to it.
pub struct Buffer(pub std::mem::ManuallyDrop<Box<[u8]>>);

impl Buffer {
    pub fn new(length: usize) -> Self {
        Buffer(std::mem::ManuallyDrop::new(vec![b'.'; length].into_boxed_slice()))
    }
}

pub fn done(token: Token, bytes: usize) -> Completion {
    Completion { token, result: bytes as i32 }
}

pub fn is_ready(token: Token, interest: Interest) -> Completion {
    Completion { token, result: interest.0.into() }
}

pub fn failed(token: Token, errno: nix::errno::Errno) -> Completion {
    Completion { token, result: -(errno as i32) }
}

/// A regular file with this content and no name, positioned at its start.
pub fn file(content: &[u8]) -> File {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("heddle-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let options = File::options().read(true).write(true).create_new(true).open(&path);
    let mut file = options.expect("a file in the temporary directory");
    std::fs::remove_file(path).expect("its name removed");
    file.write_all(content).expect("its content");
    file.rewind().expect("its position");
    file
}

/// Closes `number`'s file and gives the number to `file`, in one step, as other tests open files, too.
pub fn take_over(number: &mut OwnedFd, file: impl Into<OwnedFd>) {
    nix::unistd::dup2(file.into(), number).expect("dup2");
}
