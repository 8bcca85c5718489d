//! Sets up a ring, with whatever the kernel has to offer.

use std::io;

use io_uring::{IoUring, Probe, opcode};
use nix::errno::Errno;

use crate::error::{Error, Exhausted, Result};

/// How many operations fit into one batch. When it is full it is submitted early.
pub const SUBMISSION_ENTRIES: u32 = 512;
/// How many completions the ring holds. The kernel buffers any beyond that (`IORING_FEAT_NODROP`).
const COMPLETION_ENTRIES: u32 = 4096;

/// When the kernel runs the task work of operations that did not finish immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    /// When the thread asks for completions. From Linux 6.1 on.
    Deferred,
    /// Whenever the thread enters the kernel. From Linux 5.19 on.
    Cooperative,
    /// Immediately, by interrupting the thread.
    Plain,
}

/// Tries the setups from the cheapest to the one that every kernel supports.
///
/// # Errors
/// [`Error::BackendUnavailable`] if the kernel refuses all of them.
pub fn set_up(stays_on_thread: bool) -> Result<(IoUring, Setup)> {
    let setups =
        if stays_on_thread { &[Setup::Deferred, Setup::Cooperative, Setup::Plain][..] } else { &[Setup::Plain] };
    let mut result = Err(io::Error::from_raw_os_error(libc::EINVAL));
    for setup in setups {
        let mut builder = IoUring::builder();
        builder.setup_clamp().setup_cqsize(COMPLETION_ENTRIES);
        match setup {
            Setup::Deferred => {
                builder.setup_submit_all().setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            }
            Setup::Cooperative => {
                builder.setup_submit_all().setup_coop_taskrun().setup_taskrun_flag();
            }
            Setup::Plain => {}
        }
        result = builder.build(SUBMISSION_ENTRIES).map(|ring| (ring, *setup));
        // EINVAL: an older kernel does not know a flag.
        if !matches!(&result, Err(error) if error.raw_os_error() == Some(libc::EINVAL)) {
            break;
        }
    }
    result.map_err(|error| unavailable(refusal(&error), error.raw_os_error()))
}

/// # Errors
/// [`Error::BackendUnavailable`] if the kernel is too old.
pub fn check_features(ring: &IoUring) -> Result<()> {
    let params = ring.params();
    if !(params.is_feature_ext_arg() && params.is_feature_nodrop() && params.is_feature_rw_cur_pos()) {
        return Err(unavailable("the kernel is older than Linux 5.11".to_owned(), None));
    }
    let mut probe = Probe::new();
    ring.submitter()
        .register_probe(&mut probe)
        .map_err(|error| unavailable(format!("its operations cannot be probed ({error})"), error.raw_os_error()))?;
    let transfers = [opcode::Read::CODE, opcode::Write::CODE, opcode::Recv::CODE, opcode::Send::CODE];
    let mut needed = [opcode::PollAdd::CODE, opcode::AsyncCancel::CODE].into_iter().chain(transfers);
    if needed.all(|code| probe.is_supported(code)) {
        Ok(())
    } else {
        Err(unavailable("the kernel lacks an operation that Heddle needs".to_owned(), None))
    }
}

/// The backend cannot be had. `errno` is what the kernel answered, if that is why.
pub fn unavailable(reason: String, errno: Option<i32>) -> Error {
    let exhausted = errno.and_then(|errno| Exhausted::by(Errno::from_raw(errno)));
    Error::BackendUnavailable { backend: "io_uring", reason, exhausted }
}

/// Why `io_uring_setup` failed, and what to do about it.
fn refusal(error: &io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM) => "not permitted (a container's seccomp profile, or the sysctl kernel.io_uring_disabled)",
        Some(libc::ENOSYS) => "the kernel has no io_uring",
        Some(libc::ENOMEM) => "no memory for the ring (perhaps the limit of locked memory, `ulimit -l`)",
        Some(libc::EMFILE | libc::ENFILE) => "no file descriptor is left for the ring",
        _ => "io_uring_setup failed",
    };
    format!("{hint} ({error})")
}
