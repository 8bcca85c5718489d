//! What `Heddle::Scheduler.new` takes.

use magnus::scan_args::{get_kwargs, scan_args};
use magnus::{Error, RHash, Ruby, Symbol, Value, prelude::*};

/// Overrides the `backend:` option; for tests, and for the day when a kernel's io_uring makes trouble.
const BACKEND_VARIABLE: &str = "HEDDLE_BACKEND";
/// As many workers as libuv has: enough to keep a disk busy, too few to matter when idle.
const DEFAULT_WORKERS: usize = 4;
/// More threads than this are a mistake in the unit.
const MOST_WORKERS: usize = 1024;

/// Which backend is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendChoice {
    /// io_uring if it can be had, else poll.
    Auto,
    /// io_uring or an error.
    Uring,
    /// Readiness: epoll, kqueue.
    Poll,
}

/// The options of a scheduler.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Which backend is asked for.
    pub backend: BackendChoice,
    /// The upper bound of native worker threads.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { backend: BackendChoice::Auto, workers: DEFAULT_WORKERS }
    }
}

impl Options {
    /// Reads keyword arguments and the environment.
    ///
    /// # Errors
    /// ArgumentError that names the option and says what would be right.
    pub fn parse(ruby: &Ruby, arguments: &[Value]) -> Result<Self, Error> {
        let arguments = scan_args::<(), (), (), (), RHash, ()>(arguments)?;
        let keywords = get_kwargs::<_, (), (Option<Option<Value>>, Option<Option<Value>>), ()>(
            arguments.keywords,
            &[],
            &["backend", "workers"],
        )?;
        let (backend, workers) = keywords.optional;
        let mut options = Options::default();
        if let Some(backend) = backend.flatten() {
            options.backend = parse_backend(ruby, backend)?;
        }
        if let Some(workers) = workers.flatten() {
            options.workers = parse_workers(ruby, workers)?;
        }
        match std::env::var(BACKEND_VARIABLE) {
            Ok(name) if !name.is_empty() => {
                options.backend = backend_named(&name).ok_or_else(|| {
                    argument_error(ruby, format!("{BACKEND_VARIABLE}={name}: must be auto, io_uring or poll"))
                })?;
            }
            _ => {}
        }
        Ok(options)
    }
}

fn parse_backend(ruby: &Ruby, value: Value) -> Result<BackendChoice, Error> {
    Symbol::from_value(value).and_then(|symbol| symbol.name().ok().and_then(|name| backend_named(&name))).ok_or_else(
        || argument_error(ruby, format!("backend: must be :auto, :io_uring or :poll, not {}", value.inspect())),
    )
}

fn backend_named(name: &str) -> Option<BackendChoice> {
    match name {
        "auto" => Some(BackendChoice::Auto),
        "io_uring" => Some(BackendChoice::Uring),
        "poll" => Some(BackendChoice::Poll),
        _ => None,
    }
}

fn parse_workers(ruby: &Ruby, value: Value) -> Result<usize, Error> {
    magnus::Integer::from_value(value)
        .and_then(|count| count.to_usize().ok())
        .filter(|count| (1..=MOST_WORKERS).contains(count))
        .ok_or_else(|| {
            let message = format!("workers: must be an Integer from 1 to {MOST_WORKERS}, not {}", value.inspect());
            argument_error(ruby, message)
        })
}

fn argument_error(ruby: &Ruby, message: String) -> Error {
    Error::new(ruby.exception_arg_error(), message)
}
