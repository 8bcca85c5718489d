//! A simulated kernel, and the backend over it.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use heddle_core::error::Result;
use heddle_core::threads::waker::{Notify, Waker};
use heddle_core::{Backend, Completion, Operation, Token};

/// What the kernel has open under a number. Never used again.
pub type FileId = usize;
/// Names an operation. Never used again, as tokens are.
pub type OperationId = i32;

/// Pseudo-random numbers: SplitMix64.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// What the backend and the world share.
pub struct Kernel {
    pub random: Numbers,
    open: HashMap<RawFd, FileId>,
    files: usize,
    /// What was begun with each token last: the operation, and the file that it is for.
    begun: HashMap<Token, (OperationId, FileId)>,
    operations: OperationId,
    /// How each operation ended.
    pub results: HashMap<OperationId, i32>,
    /// How many operations use each piece of memory.
    uses: HashMap<usize, usize>,
    pieces: usize,
    /// How long the backend has waited.
    pub elapsed: Duration,
}

/// The kernel, as its users share it.
#[derive(Clone)]
pub struct KernelHandle(Arc<Mutex<Kernel>>);

impl KernelHandle {
    pub fn new(seed: u64) -> Self {
        KernelHandle(Arc::new(Mutex::new(Kernel {
            random: Numbers(seed),
            open: HashMap::new(),
            files: 0,
            begun: HashMap::new(),
            operations: 0,
            results: HashMap::new(),
            uses: HashMap::new(),
            pieces: 0,
            elapsed: Duration::ZERO,
        })))
    }

    pub fn get(&self) -> MutexGuard<'_, Kernel> {
        // A failed check of another example has poisoned nothing that this one uses.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Memory for operations.
    pub fn memory(&self) -> Rc<Memory> {
        let mut kernel = self.get();
        kernel.pieces += 1;
        Rc::new(Memory { id: kernel.pieces, kernel: self.clone() })
    }
}

impl Kernel {
    /// Opens a file under this number, which closes the one that had it.
    pub fn open(&mut self, fd: RawFd) -> FileId {
        self.files += 1;
        self.open.insert(fd, self.files);
        self.files
    }

    /// An operation on this file is about to be submitted.
    pub fn begin(&mut self, token: Token, file: FileId) -> OperationId {
        self.operations += 1;
        self.begun.insert(token, (self.operations, file));
        self.operations
    }
}

/// Memory that operations read into. May only be freed when no operation uses it.
pub struct Memory {
    pub id: usize,
    kernel: KernelHandle,
}

impl Drop for Memory {
    fn drop(&mut self) {
        let uses = self.kernel.get().uses.get(&self.id).copied().unwrap_or(0);
        assert!(uses == 0 || std::thread::panicking(), "memory {} is freed while {uses} operations use it", self.id);
    }
}

/// An operation that has not completed.
struct Request {
    token: Token,
    id: OperationId,
    file: FileId,
    /// 0 is none.
    memory: usize,
    fd: RawFd,
    cancelled: bool,
    /// Whether only a cancel ends it.
    silent: bool,
}

/// See the module.
pub struct Simulated {
    kernel: KernelHandle,
    /// Not submitted yet.
    queued: Vec<Request>,
    submitted: Vec<Request>,
    done: Vec<(Completion, usize)>,
    waker: Waker,
}

struct NoOne;

impl Notify for NoOne {
    fn notify(&self) {}
}

impl Simulated {
    pub fn new(kernel: KernelHandle) -> Self {
        Simulated { kernel, queued: Vec::new(), submitted: Vec::new(), done: Vec::new(), waker: Waker::new(NoOne) }
    }

    /// Whether nothing will complete, however long the backend waits.
    pub fn is_stuck(&self) -> bool {
        let ends = |request: &Request| request.cancelled || !request.silent;
        self.queued.is_empty() && self.done.is_empty() && !self.submitted.iter().any(ends)
    }

    /// Whether an operation with this token is in flight.
    pub fn has(&self, token: Token) -> bool {
        self.queued.iter().chain(&self.submitted).any(|request| request.token == token)
    }

    fn end(&mut self, request: Request, result: i32) {
        self.kernel.get().results.insert(request.id, result);
        self.done.push((Completion { token: request.token, result }, request.memory));
    }

    /// How this operation ends now, if it does.
    fn result(random: &mut Numbers, request: &Request) -> Option<i32> {
        // A short transfer, a whole one or bits of readiness: the value names the operation.
        let own = if random.one_in(8) { -libc::EIO } else { request.id };
        match (request.cancelled, request.silent) {
            (true, false) if random.one_in(4) => Some(own),
            (true, _) => random.one_in(2).then_some(-libc::ECANCELED),
            (false, true) => None,
            (false, false) => random.one_in(3).then_some(own),
        }
    }
}

impl Backend for Simulated {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn is_batching(&self) -> bool {
        true
    }

    unsafe fn submit(&mut self, token: Token, operation: Operation) {
        assert!(!self.has(token), "token {token} is used twice");
        assert!(self.done.iter().all(|(done, _)| done.token != token), "token {token} is used before its completion");
        let memory = match operation {
            Operation::Read { buffer, .. } => buffer.addr(),
            _ => 0,
        };
        let mut kernel = self.kernel.get();
        let (id, file) = kernel.begun[&token];
        let silent = kernel.random.one_in(3);
        if memory != 0 {
            *kernel.uses.entry(memory).or_default() += 1;
        }
        drop(kernel);
        self.queued.push(Request { token, id, file, memory, fd: operation.fd(), cancelled: false, silent });
    }

    fn cancel(&mut self, token: Token) {
        if let Some(index) = self.queued.iter().position(|request| request.token == token) {
            let request = self.queued.remove(index);
            self.end(request, -libc::ECANCELED);
        }
        for request in self.submitted.iter_mut().filter(|request| request.token == token) {
            request.cancelled = true;
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<()> {
        for request in self.queued.drain(..) {
            let file = self.kernel.get().open.get(&request.fd).copied();
            assert_eq!(file, Some(request.file), "operation {} uses another file", request.id);
            self.submitted.push(request);
        }
        // A signal ends the wait.
        if self.kernel.get().random.one_in(5) {
            return Ok(());
        }
        let mut still = Vec::new();
        for request in std::mem::take(&mut self.submitted) {
            let result = Self::result(&mut self.kernel.get().random, &request);
            match result {
                Some(result) => self.end(request, result),
                None => still.push(request),
            }
        }
        self.submitted = still;
        if self.done.is_empty() {
            self.kernel.get().elapsed += timeout.unwrap_or(Duration::from_millis(1));
        }
        Ok(())
    }

    fn completions(&mut self, into: &mut Vec<Completion>) {
        let mut kernel = self.kernel.get();
        for (completion, memory) in self.done.drain(..) {
            if memory != 0 {
                *kernel.uses.entry(memory).or_default() -= 1;
            }
            into.push(completion);
        }
    }

    fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.submitted.is_empty() && self.done.is_empty()
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn abandon(self: Box<Self>) {}
}
