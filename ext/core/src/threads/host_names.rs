//! Addresses of host names, as the system's resolver finds them, which reads /etc/hosts and nsswitch.conf.

use std::ffi::{CStr, CString};
use std::io::{self, PipeWriter, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::{Mutex, MutexGuard};

use libc::{c_char, c_int};
use nix::errno::Errno;

/// The arguments of getaddrinfo(3).
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// A name, or a numeric address. `None` means this host.
    pub host: Option<CString>,
    /// A name, or a port number in figures. `None` means port 0.
    pub service: Option<CString>,
    /// `AF_UNSPEC`, `AF_INET` or `AF_INET6`.
    pub family: c_int,
    /// `SOCK_STREAM` or the like; 0 means any.
    pub socktype: c_int,
    /// `IPPROTO_TCP` or the like; 0 means any.
    pub protocol: c_int,
    /// `AI_ADDRCONFIG` and the like.
    pub flags: c_int,
}

/// Why a look-up failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// `EAI_NONAME` or the like.
    pub code: c_int,
    /// The errno if `code` is `EAI_SYSTEM`, else 0.
    pub errno: c_int,
}

/// A socket address, as the kernel takes it.
pub type SocketAddress = Vec<u8>;

/// Asks the resolver, and blocks until it answers.
///
/// # Errors
/// The resolver's failure.
pub fn look_up(query: &Query) -> Result<Vec<SocketAddress>, Failure> {
    let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null::<c_char>(), |text| text.as_ptr());
    // SAFETY: all zeros are a valid `addrinfo`.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_family = query.family;
    hints.ai_socktype = query.socktype;
    hints.ai_protocol = query.protocol;
    hints.ai_flags = query.flags;
    let mut list = ptr::null_mut();
    // SAFETY: the strings end with a zero and outlive the call; the list is freed below.
    let code = unsafe { libc::getaddrinfo(pointer(&query.host), pointer(&query.service), &hints, &mut list) };
    if code != 0 {
        return Err(failure(code, Errno::last_raw()));
    }
    let mut addresses = Vec::new();
    let mut entry = list;
    while !entry.is_null() {
        // SAFETY: an entry of getaddrinfo's list, whose `ai_addr` points to `ai_addrlen` bytes.
        unsafe {
            let bytes = std::slice::from_raw_parts((*entry).ai_addr.cast::<u8>(), (*entry).ai_addrlen as usize);
            addresses.push(bytes.to_vec());
            entry = (*entry).ai_next;
        }
    }
    // SAFETY: the list comes from getaddrinfo, and nothing refers to it any more.
    unsafe { libc::freeaddrinfo(list) };
    Ok(addresses)
}

/// The resolver's message for a failure's code.
pub fn reason(code: c_int) -> String {
    // SAFETY: returns a string that is never freed, for every number.
    unsafe { CStr::from_ptr(libc::gai_strerror(code)) }.to_string_lossy().into_owned()
}

/// Whether a host is an address that inet_pton(3) reads: nothing has to be looked up.
pub fn is_address(host: &[u8]) -> bool {
    std::str::from_utf8(host).is_ok_and(|host| host.parse::<IpAddr>().is_ok())
}

/// An address in numeric form. `None` if it is no IP address.
pub fn numeric(address: &[u8]) -> Option<String> {
    const FAMILY: usize = std::mem::offset_of!(libc::sockaddr, sa_family);
    const FAMILY_END: usize = FAMILY + size_of::<libc::sa_family_t>();
    const V4: usize = std::mem::offset_of!(libc::sockaddr_in, sin_addr);
    const V6: usize = std::mem::offset_of!(libc::sockaddr_in6, sin6_addr);
    const SCOPE: usize = std::mem::offset_of!(libc::sockaddr_in6, sin6_scope_id);
    let family = libc::sa_family_t::from_ne_bytes(address.get(FAMILY..FAMILY_END)?.try_into().ok()?);
    match c_int::from(family) {
        libc::AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(address.get(V4..V4 + 4)?).ok()?).to_string()),
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(<[u8; 16]>::try_from(address.get(V6..V6 + 16)?).ok()?);
            match u32::from_ne_bytes(address.get(SCOPE..SCOPE + 4)?.try_into().ok()?) {
                0 => Some(ip.to_string()),
                scope => Some(format!("{ip}%{scope}")),
            }
        }
        _ => None,
    }
}

/// The writing end of a pipe for the answers of several look-ups.
#[derive(Debug)]
pub struct Answers(Mutex<PipeWriter>);

impl Answers {
    /// A pipe and its reading end.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new() -> io::Result<(OwnedFd, Self)> {
        let (reader, writer) = io::pipe()?;
        Ok((reader.into(), Answers(Mutex::new(writer))))
    }

    /// Looks up and writes the answer, unless the reading end is closed already.
    pub fn add(&self, query: &Query) {
        if !self.are_wanted() {
            return;
        }
        let frame = encode(query.family, &look_up(query));
        // Fails if the reading end has been closed during the look-up.
        let _ = self.lock().write_all(&frame);
    }

    fn are_wanted(&self) -> bool {
        let mut descriptor = libc::pollfd { fd: self.lock().as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one valid pollfd, and a timeout of zero.
        let polled = unsafe { libc::poll(&mut descriptor, 1, 0) };
        polled <= 0 || descriptor.revents & libc::POLLERR == 0
    }

    fn lock(&self) -> MutexGuard<'_, PipeWriter> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Encodes the answer for one address family. All numbers are native `i32`s: the length of what follows, the family,
/// the failure's code (0 for none) and errno, and then each address with its length before it.
fn encode(family: c_int, answer: &Result<Vec<SocketAddress>, Failure>) -> Vec<u8> {
    let (addresses, failure) = match answer {
        Ok(addresses) => (addresses.as_slice(), Failure { code: 0, errno: 0 }),
        Err(failure) => (&[][..], *failure),
    };
    let mut content = Vec::new();
    for number in [family, failure.code, failure.errno] {
        content.extend_from_slice(&number.to_ne_bytes());
    }
    for address in addresses {
        content.extend_from_slice(&(address.len() as i32).to_ne_bytes());
        content.extend_from_slice(address);
    }
    let mut frame = (content.len() as i32).to_ne_bytes().to_vec();
    frame.append(&mut content);
    frame
}

fn failure(code: c_int, errno: c_int) -> Failure {
    match code {
        // A resolver module that nsswitch.conf names is not installed, so the name is unknown.
        libc::EAI_SYSTEM if errno == libc::ENOENT => Failure { code: libc::EAI_NONAME, errno: 0 },
        libc::EAI_SYSTEM => Failure { code, errno },
        code => Failure { code, errno: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<CString> {
        Some(CString::new(text).expect("no zero in it"))
    }

    fn stream(host: &str, service: &str) -> Query {
        Query { host: text(host), service: text(service), socktype: libc::SOCK_STREAM, ..Query::default() }
    }

    #[test]
    fn a_numeric_address_is_its_own_answer() {
        let found = look_up(&stream("127.0.0.1", "80")).expect("an address");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0][2..8], [0, 80, 127, 0, 0, 1]);
    }

    #[test]
    fn a_look_up_can_be_limited_to_a_family() {
        let query = Query { family: libc::AF_INET6, ..stream("127.0.0.1", "80") };
        assert!(look_up(&query).is_err_and(|failure| failure.code != 0 && failure.errno == 0));
    }

    #[test]
    fn this_host_needs_no_name() {
        let query =
            Query { service: text("80"), family: libc::AF_INET, socktype: libc::SOCK_STREAM, ..Query::default() };
        assert_eq!(look_up(&query).expect("an address")[0][4..8], [127, 0, 0, 1]);
    }

    #[test]
    fn an_unknown_service_fails_with_a_code_of_its_own() {
        let failed = look_up(&stream("127.0.0.1", "no such service")).expect_err("no such service");
        assert_eq!(failed.code, libc::EAI_SERVICE);
        assert!(!reason(failed.code).is_empty());
    }

    #[test]
    fn addresses_have_a_numeric_form() {
        for host in ["127.0.0.1", "::1", "fe80::1%1"] {
            let found = look_up(&stream(host, "80")).expect("an address");
            assert_eq!(numeric(&found[0]).as_deref(), Some(host));
        }
        assert_eq!(numeric(&[0; 28]), None);
        assert_eq!(numeric(&[]), None);
    }

    #[test]
    fn names_and_addresses_with_a_scope_are_looked_up() {
        for host in ["127.0.0.1", "::1", "1:2:3:4:5:6:7::", "::ffff:127.0.0.1"] {
            assert!(is_address(host.as_bytes()), "{host}");
        }
        for host in ["localhost", "127.1", "127.0.0.01", "256.0.0.1", "::1%lo", "1::2::3", " ::1", "::1\0", ""] {
            assert!(!is_address(host.as_bytes()), "{host}");
        }
        assert!(!is_address(&[0xff]));
    }

    #[test]
    fn answers_are_written_to_a_pipe_until_its_reader_is_closed() {
        use std::io::Read;

        let (reader, answers) = Answers::new().expect("a pipe");
        answers.add(&Query { family: libc::AF_INET, ..stream("127.0.0.1", "80") });
        let mut reader = std::fs::File::from(reader);
        let mut length = [0; 4];
        reader.read_exact(&mut length).expect("an answer");
        assert_eq!(i32::from_ne_bytes(length), 3 * 4 + 4 + 16);
        assert!(answers.are_wanted());
        drop(reader);
        assert!(!answers.are_wanted());
        answers.add(&stream("127.0.0.1", "80"));
    }

    #[test]
    fn an_answer_begins_with_its_length() {
        let frame = encode(libc::AF_INET, &Ok(vec![vec![1, 2, 3], vec![4]]));
        let number = |at: usize| i32::from_ne_bytes(frame[at..at + 4].try_into().expect("four bytes"));
        assert_eq!([number(0), number(4), number(8), number(12)], [frame.len() as i32 - 4, libc::AF_INET, 0, 0]);
        assert_eq!((number(16), &frame[20..23], number(23), &frame[27..]), (3, &[1, 2, 3][..], 1, &[4][..]));
    }

    #[test]
    fn a_failure_has_no_addresses() {
        let frame = encode(libc::AF_INET6, &Err(Failure { code: libc::EAI_AGAIN, errno: 0 }));
        assert_eq!(frame.len(), 16);
        assert_eq!(frame[8..12], libc::EAI_AGAIN.to_ne_bytes());
    }
}
