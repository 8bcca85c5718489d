//! Durations as Ruby takes them.

use std::time::Duration;

use magnus::rb_sys::{AsRawValue, protect};
use magnus::value::{Fixnum, Flonum};
use magnus::{Error, Float, Ruby, TryConvert, Value, prelude::*};

/// The duration that `seconds` means: Integer, Float, Rational, whatever `Kernel#sleep` takes, to the nanosecond.
///
/// # Errors
/// Those of `Kernel#sleep`: ArgumentError for a negative one, RangeError or FloatDomainError for infinity and NaN,
/// TypeError for what is no number.
#[inline]
pub fn interval(seconds: Value) -> Result<Duration, Error> {
    if let Some(interval) = immediate_interval(seconds) {
        return Ok(interval);
    }
    let mut interval = Duration::ZERO;
    protect(|| {
        // SAFETY: called with the GVL on a valid object; what it raises stops at `protect`, and nothing is owned here.
        let timespec = unsafe { rb_sys::rb_time_timespec_interval(seconds.as_raw()) };
        interval = Duration::new(timespec.tv_sec.max(0) as u64, timespec.tv_nsec.max(0) as u32);
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(interval)
}

/// What almost every caller passes: a number that lies in the reference itself, and means no more than a lifetime.
#[inline]
fn immediate_interval(seconds: Value) -> Option<Duration> {
    /// Far below what any clock of the kernel's can count.
    const LIFETIME: f64 = 60.0 * 60.0 * 24.0 * 365.0 * 100.0;
    match (Fixnum::from_value(seconds), Flonum::from_value(seconds)) {
        (Some(whole), _) => u64::try_from(whole.to_i64()).ok().map(Duration::from_secs),
        (_, Some(number)) => {
            let number = number.to_f64();
            (0.0..LIFETIME).contains(&number).then(|| Duration::from_secs_f64(number))
        }
        _ => None,
    }
}

/// How long Ruby's Queue, SizedQueue and Thread wait for `seconds`: nil, infinity, NaN and what no clock can count mean
/// for ever, what is negative means not at all.
///
/// # Errors
/// Theirs: TypeError for what cannot be made a Float.
pub fn lenient_interval(seconds: Value) -> Result<Option<Duration>, Error> {
    if seconds.is_nil() {
        return Ok(None);
    }
    if let Some(interval) = immediate_interval(seconds) {
        return Ok(Some(interval));
    }
    let mut number = 0.0;
    protect(|| {
        // SAFETY: called with the GVL on a valid object; what it raises stops at `protect`, and nothing is owned here.
        number = unsafe { rb_sys::rb_num2dbl(seconds.as_raw()) };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    if number.is_nan() {
        return Ok(None);
    }
    // It fails for what is too long.
    Ok(Duration::try_from_secs_f64(number.max(0.0)).ok())
}

/// How long `Timeout.timeout` lets a block run: whatever can be added to a Float. What is negative is over at once;
/// `None` is for infinity and NaN, which are never over.
///
/// # Errors
/// TypeError for what is no number; what `coerce` raises.
pub fn limit(ruby: &Ruby, seconds: Value) -> Result<Option<Duration>, Error> {
    if let Some(interval) = immediate_interval(seconds) {
        return Ok(Some(interval));
    }
    // Ruby adds it to the time of its clock.
    let sum: Value = ruby.float_from_f64(0.0).funcall("+", (seconds,))?;
    let seconds = Float::try_convert(sum)?.to_f64();
    if seconds < 0.0 {
        return Ok(Some(Duration::ZERO));
    }
    // The error is for what is no number, or too large a one.
    Ok(Duration::try_from_secs_f64(seconds).ok())
}

/// Like [`interval`], with nil (or false) for 'for ever'.
#[inline]
pub fn optional_interval(seconds: Value) -> Result<Option<Duration>, Error> {
    if seconds.is_nil() { Ok(None) } else { interval(seconds).map(Some) }
}

/// How long `IO.select` waits for `seconds`: like [`optional_interval`], and from Ruby 4.0 on infinity, too, means for
/// ever.
pub fn select_interval(seconds: Value) -> Result<Option<Duration>, Error> {
    let is_infinite = || Float::from_value(seconds).is_some_and(|seconds| seconds.to_f64() == f64::INFINITY);
    if cfg!(ruby_gte_4_0) && is_infinite() { Ok(None) } else { optional_interval(seconds) }
}
