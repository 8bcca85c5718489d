//! The options of `Heddle::Scheduler.new`.

use std::ops::RangeInclusive;
use std::time::Duration;

use heddle_core::queue::run_queue::Policy;
use libc::c_int;
use magnus::scan_args::{get_kwargs, scan_args};
use magnus::{Error, Float, RArray, RHash, RString, Ruby, Symbol, TryConvert, Value, prelude::*};

use crate::ruby::error;
use crate::ruby::outcome::{Ignore, RubyOutcome};
use crate::ticker::TickerChoice;
use crate::ticker::signal_disposition;

/// Overrides the `backend:` option, for tests and for kernels whose io_uring misbehaves.
const BACKEND_VARIABLE: &str = "HEDDLE_BACKEND";
/// The same number as libuv's: enough to keep a disk busy, too few to matter when idle.
const DEFAULT_WORKERS: usize = 4;
/// More threads than this are a mistake.
const MAX_WORKERS: usize = 1024;

/// A backend, as the program asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendChoice {
    /// io_uring if it is available, else epoll.
    Auto,
    /// io_uring; an error if it is unavailable.
    Uring,
    /// epoll, which waits for readiness. Users call it `poll`.
    Epoll,
}

/// With a shorter tick, the tick itself would cost more than the work between two ticks.
const MIN_TICK: Duration = Duration::from_micros(100);
/// A longer quantum would amount to no preemption.
const MAX_QUANTUM: Duration = Duration::from_secs(60);

/// A shorter grace period would amount to none.
const MIN_GRACE: Duration = Duration::from_millis(1);
/// A longer grace period is meant to be infinite, and `Float::INFINITY` says so.
const MAX_GRACE: Duration = Duration::from_secs(24 * 60 * 60);
/// Less than the ten seconds that container runtimes leave between SIGTERM and SIGKILL.
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// A preemptible fiber may compute for a default quantum before it is known that it keeps no other fiber waiting.
const MIN_STALL: Duration = Duration::from_millis(10);
/// A longer time is meant to be none, and nil says so.
const MAX_STALL: Duration = Duration::from_secs(60 * 60);

/// Which fibers are preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preempt {
    /// Yielding fibers, and the fibers that they resume.
    Yielding,
    /// All non-blocking fibers.
    All,
    /// None, not even yielding ones.
    None,
}

impl Preempt {
    /// Whether yielding fibers are preempted.
    pub fn preempts_yielding(self) -> bool {
        self != Preempt::None
    }
}

/// What a scheduler counts for `stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsLevel {
    /// What costs next to nothing.
    Basic,
    /// Also what needs a read of the clock for each wake-up and each switch.
    Detailed,
}

/// The options of a scheduler.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The backend to use.
    pub backend: BackendChoice,
    /// The upper bound of native worker threads.
    pub workers: usize,
    /// Which fibers are preempted.
    pub preempt: Preempt,
    /// The quantum and the tick.
    pub policy: Policy,
    /// What sends ticks to the thread.
    pub ticker: TickerChoice,
    /// The signal that the ticker may use.
    pub signal: c_int,
    /// The grace period: how long a fiber that was asked to end may take for that. `None` is for ever.
    pub grace: Option<Duration>,
    /// What is counted.
    pub stats: StatsLevel,
    /// How long a fiber may keep the thread before that is reported.
    pub stall_after: Option<Duration>,
    /// Whether the thread may poll repeatedly before it sleeps.
    pub busy_poll: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            backend: BackendChoice::Auto,
            workers: DEFAULT_WORKERS,
            preempt: Preempt::Yielding,
            policy: Policy::default(),
            ticker: TickerChoice::Timerfd,
            signal: libc::SIGUSR2,
            grace: Some(DEFAULT_GRACE),
            stats: StatsLevel::Basic,
            stall_after: None,
            busy_poll: true,
        }
    }
}

impl Options {
    /// Reads keyword arguments and the environment. Returns the option `cooperative:` apart.
    ///
    /// # Errors
    /// ArgumentError, which names the option, the valid values and the given one.
    pub fn parse(ruby: &Ruby, arguments: &[Value]) -> Result<(Self, Vec<String>), Error> {
        let arguments = scan_args::<(), (), (), (), RHash, ()>(arguments)?;
        // nil stands for the default.
        type Given = Option<Option<Value>>;
        let keywords = get_kwargs::<_, (), (Given, Given, Given, Given, Given, Given, Given, Given), RHash>(
            arguments.keywords,
            &[],
            &["backend", "workers", "preempt", "quantum", "tick", "ticker", "signal", "grace"],
        )?;
        let (backend, workers, preempt, quantum, tick, ticker, signal, grace) = keywords.optional;
        // Separate, as magnus reads nine options at most.
        let (stats, stall_after, busy_poll, cooperative) = get_kwargs::<_, (), (Given, Given, Given, Given), ()>(
            keywords.splat,
            &[],
            &["stats", "stall_after", "busy_poll", "cooperative"],
        )?
        .optional;
        let mut options = Options::default();
        if let Some(backend) = backend.flatten() {
            options.backend = parse_backend(ruby, backend)?;
        }
        if let Some(workers) = workers.flatten() {
            options.workers = parse_workers(ruby, workers)?;
        }
        if let Some(preempt) = preempt.flatten() {
            options.preempt = parse_preempt(ruby, preempt)?;
        }
        if let Some(quantum) = quantum.flatten() {
            options.policy.quantum = parse_period(ruby, "quantum", quantum, MAX_QUANTUM)?;
            options.policy.tick = options.policy.tick.min(options.policy.quantum);
        }
        if let Some(tick) = tick.flatten() {
            options.policy.tick = parse_period(ruby, "tick", tick, options.policy.quantum)?;
        }
        if let Some(ticker) = ticker.flatten() {
            options.ticker = parse_ticker(ruby, ticker)?;
        }
        if let Some(signal) = signal.flatten() {
            options.signal = signal_disposition::parse(ruby, signal)?;
        }
        if let Some(grace) = grace.flatten() {
            options.grace = parse_grace(ruby, grace)?;
        }
        if let Some(stats) = stats.flatten() {
            options.stats = parse_stats(ruby, stats)?;
        }
        if let Some(stall_after) = stall_after.flatten() {
            options.stall_after = Some(parse_stall_after(ruby, stall_after)?);
        }
        if let Some(busy_poll) = busy_poll.flatten() {
            options.busy_poll = parse_busy_poll(ruby, busy_poll)?;
        }
        match std::env::var(BACKEND_VARIABLE) {
            Ok(name) if !name.is_empty() => {
                options.backend = backend_named(&name).ok_or_else(|| {
                    argument_error(ruby, format!("{BACKEND_VARIABLE}={name}: must be auto, io_uring or poll"))
                })?;
            }
            _ => {}
        }
        let cooperative = cooperative.flatten().map_or(Ok(Vec::new()), |value| parse_cooperative(ruby, value))?;
        Ok((options, cooperative))
    }
}

fn parse_cooperative(ruby: &Ruby, value: Value) -> Result<Vec<String>, Error> {
    let entries = RArray::from_value(value).and_then(|entries| {
        let texts = entries
            .into_iter()
            .map(|entry| cooperative_entry(RString::from_value(entry)?.to_string().not_an_interrupt("no UTF-8")?));
        texts.collect::<Option<Vec<String>>>()
    });
    entries.ok_or_else(|| {
        let message = format!(
            "cooperative: must be an Array of names of gems, as in \"async-http\" or \"async*\", and of absolute paths of \
             folders, not {}",
            value.inspect()
        );
        argument_error(ruby, message)
    })
}

/// The name of a gem, perhaps with an asterisk, or the real path of a folder, as Ruby has it for code. `None` for
/// anything else.
fn cooperative_entry(text: String) -> Option<String> {
    if text.starts_with('/') {
        let real = std::fs::canonicalize(&text).ignored("no such folder, or no access to it");
        let path = real.and_then(|path| Some(path.to_str()?.to_owned())).unwrap_or(text);
        return (path != "/").then_some(path);
    }
    let name = text.strip_suffix('*').unwrap_or(&text);
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'));
    (is_name && name.contains(|letter: char| letter.is_ascii_alphanumeric())).then_some(text)
}

fn parse_backend(ruby: &Ruby, value: Value) -> Result<BackendChoice, Error> {
    symbol(value).and_then(|name| backend_named(&name)).ok_or_else(|| {
        argument_error(ruby, format!("backend: must be :auto, :io_uring or :poll, not {}", value.inspect()))
    })
}

fn backend_named(name: &str) -> Option<BackendChoice> {
    match name {
        "auto" => Some(BackendChoice::Auto),
        "io_uring" => Some(BackendChoice::Uring),
        "poll" => Some(BackendChoice::Epoll),
        _ => None,
    }
}

fn parse_workers(ruby: &Ruby, value: Value) -> Result<usize, Error> {
    magnus::Integer::from_value(value)
        .and_then(|count| count.to_usize().not_an_interrupt("negative, or too great"))
        .filter(|count| (1..=MAX_WORKERS).contains(count))
        .ok_or_else(|| {
            let message = format!("workers: must be an Integer from 1 to {MAX_WORKERS}, not {}", value.inspect());
            argument_error(ruby, message)
        })
}

fn parse_preempt(ruby: &Ruby, value: Value) -> Result<Preempt, Error> {
    match symbol(value).as_deref() {
        Some("yielding") => Ok(Preempt::Yielding),
        Some("all") => Ok(Preempt::All),
        Some("none") => Ok(Preempt::None),
        _ => {
            let message = format!("preempt: must be :yielding, :all or :none, not {}", value.inspect());
            Err(argument_error(ruby, message))
        }
    }
}

fn parse_ticker(ruby: &Ruby, value: Value) -> Result<TickerChoice, Error> {
    match symbol(value).as_deref() {
        Some("signal") => Ok(TickerChoice::Signal),
        Some("auto" | "timerfd") => Ok(TickerChoice::Timerfd),
        _ => {
            let message = format!("ticker: must be :auto, :signal or :timerfd, not {}", value.inspect());
            Err(argument_error(ruby, message))
        }
    }
}

fn parse_stall_after(ruby: &Ruby, value: Value) -> Result<Duration, Error> {
    parse_time(ruby, "stall_after", value, MIN_STALL..=MAX_STALL)
}

fn parse_busy_poll(ruby: &Ruby, value: Value) -> Result<bool, Error> {
    if value.is_kind_of(ruby.class_true_class()) || value.is_kind_of(ruby.class_false_class()) {
        return Ok(value.to_bool());
    }
    Err(argument_error(ruby, format!("busy_poll: must be true or false, not {}", value.inspect())))
}

fn parse_stats(ruby: &Ruby, value: Value) -> Result<StatsLevel, Error> {
    match symbol(value).as_deref() {
        Some("basic") => Ok(StatsLevel::Basic),
        Some("detailed") => Ok(StatsLevel::Detailed),
        _ => Err(argument_error(ruby, format!("stats: must be :basic or :detailed, not {}", value.inspect()))),
    }
}

fn symbol(value: Value) -> Option<String> {
    Symbol::from_value(value)
        .and_then(|symbol| symbol.name().not_an_interrupt("no UTF-8"))
        .map(|name| name.into_owned())
}

fn parse_grace(ruby: &Ruby, value: Value) -> Result<Option<Duration>, Error> {
    let seconds = seconds(ruby, value)?;
    if seconds == Some(f64::INFINITY) {
        return Ok(None);
    }
    let grace = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ignored("negative, too great, or NaN"));
    grace.filter(|grace| (MIN_GRACE..=MAX_GRACE).contains(grace)).map(Some).ok_or_else(|| {
        let message = format!(
            "grace: must be seconds from {} to {}, or Float::INFINITY, not {}",
            MIN_GRACE.as_secs_f64(),
            MAX_GRACE.as_secs_f64(),
            value.inspect()
        );
        argument_error(ruby, message)
    })
}

/// The seconds, if it is a number. A program's own class of numbers may raise an error.
fn seconds(ruby: &Ruby, value: Value) -> Result<Option<f64>, Error> {
    if !value.is_kind_of(ruby.class_numeric()) {
        return Ok(None);
    }
    match Float::try_convert(value) {
        Ok(number) => Ok(Some(number.to_f64())),
        // A Complex, for instance.
        Err(error)
            if error.is_kind_of(ruby.exception_type_error()) || error.is_kind_of(ruby.exception_range_error()) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn parse_period(ruby: &Ruby, name: &str, value: Value, longest: Duration) -> Result<Duration, Error> {
    parse_time(ruby, name, value, MIN_TICK..=longest)
}

fn parse_time(ruby: &Ruby, name: &str, value: Value, range: RangeInclusive<Duration>) -> Result<Duration, Error> {
    seconds(ruby, value)?
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ignored("negative, too great, or NaN"))
        .filter(|period| range.contains(period))
        .ok_or_else(|| {
            let message = format!(
                "{name}: must be seconds from {} to {}, not {}",
                range.start().as_secs_f64(),
                range.end().as_secs_f64(),
                value.inspect()
            );
            argument_error(ruby, message)
        })
}

fn argument_error(ruby: &Ruby, message: String) -> Error {
    error::of(ruby.exception_arg_error(), message)
}
