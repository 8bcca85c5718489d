//! What the kernel tells of a file without asking its file system, which may be on a server that does not answer.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use libc::mode_t;
use rustc_hash::FxHashMap;

/// The kernel's table of what is mounted. Reading it asks no file system.
const MOUNTS: &str = "/proc/self/mountinfo";
/// How many mounts are cached. At the limit the cache is cleared.
const MAX_CACHED: usize = 256;

/// Whether another machine or another process stores the files of a file system of this type. Such a write may block
/// without limit.
fn is_remote(name: &str) -> bool {
    const REMOTE: [&str; 24] = [
        "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2", "gpfs", "lustre", "ncpfs",
        "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "wekafs",
    ];
    name.starts_with("fuse.") || REMOTE.contains(&name)
}

/// A cache of which mounts are remote.
#[derive(Debug, Default)]
pub struct FileSystems {
    /// By mount number and device number, as the kernel reuses each once a file system is unmounted.
    remote: FxHashMap<(u64, u32, u32), bool>,
}

impl FileSystems {
    /// Whether another machine or another process stores the file. False if that is unknown.
    pub fn holds_remote(&mut self, fd: RawFd) -> bool {
        let Some(status) = status(fd) else { return false };
        let mount = (status.stx_mnt_id, status.stx_dev_major, status.stx_dev_minor);
        if let Some(remote) = self.remote.get(&mount) {
            return *remote;
        }
        let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
        let remote = type_of_mount(&mounts, status.stx_mnt_id).is_some_and(is_remote);
        if self.remote.len() >= MAX_CACHED {
            self.remote.clear();
        }
        self.remote.insert(mount, remote);
        remote
    }
}

/// The type of a file, as in `st_mode`. `None` if the descriptor is closed.
pub fn kind(fd: RawFd) -> Option<mode_t> {
    status(fd).map(|status| mode_t::from(status.stx_mode) & libc::S_IFMT)
}

/// What the kernel has cached of the file. It does not ask a server for anything newer.
fn status(fd: RawFd) -> Option<libc::statx> {
    let mut status = MaybeUninit::<libc::statx>::zeroed();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let mask = libc::STATX_TYPE | libc::STATX_MNT_ID;
    // By its number, as musl has the function since 1.2.5 only, and a library that names it is not loaded before.
    // SAFETY: an empty name that ends with a zero, and room for the result, of which all zeros are valid.
    unsafe {
        let result = libc::syscall(libc::SYS_statx, fd, c"".as_ptr(), flags, mask, status.as_mut_ptr());
        (result == 0).then(|| status.assume_init())
    }
}

/// The type of the file system with this mount number: the first field after the lone hyphen.
fn type_of_mount(mounts: &str, number: u64) -> Option<&str> {
    let number = number.to_string();
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(&number))?;
    line.split(' ').skip_while(|field| *field != "-").nth(1)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const LINES: &str = "\
        25 1 0:23 / /proc rw,relatime shared:5 - proc proc rw\n\
        251 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
        77 251 0:61 / /mnt/a\\040share rw - nfs4 server:/share rw,vers=4.2\n\
        78 251 0:62 / /mnt/b rw shared:7 master:1 - fuse.sshfs user@host: rw\n";

    #[test]
    fn a_mounts_type_is_found_by_its_number() {
        let types = [25, 251, 77, 78, 7].map(|number| type_of_mount(LINES, number));
        assert_eq!(types, [Some("proc"), Some("ext4"), Some("nfs4"), Some("fuse.sshfs"), None]);
    }

    #[test]
    fn kinds_are_told_apart() {
        let (file, pipe) = (std::fs::File::open("/proc/self/stat"), std::io::pipe());
        assert_eq!(kind(file.expect("a file").as_raw_fd()), Some(libc::S_IFREG));
        assert_eq!(kind(pipe.expect("a pipe").0.as_raw_fd()), Some(libc::S_IFIFO));
        assert_eq!(kind(-1), None);
    }

    #[test]
    fn a_local_file_is_not_remote() {
        let file = std::fs::File::open("/proc/self/stat").expect("a file");
        let mut file_systems = FileSystems::default();
        for _ in 0..2 {
            assert!(!file_systems.holds_remote(file.as_raw_fd()));
        }
        assert_eq!(file_systems.remote.len(), 1);
        assert!(!file_systems.holds_remote(-1));
    }
}
