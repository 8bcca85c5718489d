//! Reading and writing where a seccomp filter does not know `preadv2` and `pwritev2`, as in older containers, and
//! returns EPERM.

use std::fs::File;
use std::io::{Read, pipe};
use std::os::fd::AsRawFd;
use std::thread;

use heddle_core::io::try_io::{self, FdKind, TryIo};
use nix::errno::Errno;

/// Runs `test` on a thread that may not call `preadv2` and `pwritev2`. The filter ends with the thread.
fn without_vectored_calls(test: impl FnOnce() + Send + 'static) {
    thread::spawn(|| {
        refuse([libc::SYS_preadv2, libc::SYS_pwritev2]);
        let byte = [0_u8];
        let vector = libc::iovec { iov_base: byte.as_ptr().cast_mut().cast(), iov_len: 1 };
        // SAFETY: one valid vector; the filter refuses the call before the kernel reads it.
        let refused = unsafe { libc::syscall(libc::SYS_preadv2, 0, &raw const vector, 1, -1, 0, libc::RWF_NOWAIT) };
        assert_eq!(Errno::result(refused), Err(Errno::EPERM));
        test();
    })
    .join()
    .expect("the test passes");
}

fn refuse(calls: [libc::c_long; 2]) {
    let statement = |code: u32, jump_if: u8, jump_unless: u8, operand: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_if,
        jf: jump_unless,
        k: operand,
    };
    let jump_if_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut filter = [
        // The data begins with the system call's number.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(jump_if_equal, 1, 0, calls[0] as u32),
        statement(jump_if_equal, 0, 1, calls[1] as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its filter outlive the calls, which affect this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

fn read(file: &impl AsRawFd, buffer: &mut [u8]) -> TryIo {
    try_io::read(file.as_raw_fd(), buffer.into(), FdKind::Other)
}

#[test]
fn a_pipe_is_read_and_written_without_blocking() {
    without_vectored_calls(|| {
        let (reader, writer) = pipe().expect("a pipe");
        let mut buffer = [0; 8];
        assert_eq!(read(&reader, &mut buffer), TryIo::WouldBlock);
        let written = try_io::write(writer.as_raw_fd(), b"weft".as_slice().into(), FdKind::Other);
        assert_eq!(written, TryIo::Done(4));
        assert_eq!(read(&reader, &mut buffer), TryIo::Done(4));
        assert_eq!(&buffer[..4], b"weft");
        drop(writer);
        assert_eq!(read(&reader, &mut buffer), TryIo::Done(0));
    });
}

#[test]
fn a_file_needs_an_operation() {
    without_vectored_calls(|| {
        let mut file = File::open("/proc/self/exe").expect("this program");
        let mut buffer = [0; 8];
        assert_eq!(read(&file, &mut buffer), TryIo::NeedsOperation);
        let at = try_io::read_at(file.as_raw_fd(), buffer.as_mut_slice().into(), 0);
        assert_eq!(at, TryIo::NeedsOperation);
        assert_eq!(file.read(&mut buffer).expect("an operation reads it"), buffer.len());
    });
}
