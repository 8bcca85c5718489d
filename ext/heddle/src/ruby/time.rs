//! Converting Ruby's objects to durations.

use std::time::Duration;

use super::outcome::Ignore;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::value::{Fixnum, Flonum};
use magnus::{Error, Float, RRational, Ruby, TryConvert, Value, prelude::*};

/// The duration of `seconds`, to the nanosecond. Accepts what `Kernel#sleep` accepts: Integer, Float, Rational.
///
/// # Errors
/// Those of `Kernel#sleep`: ArgumentError for a negative number, RangeError or FloatDomainError for infinity and NaN,
/// TypeError for other objects.
#[inline(always)]
pub fn interval(seconds: Value) -> Result<Duration, Error> {
    immediate_interval(seconds).map_or_else(|| interval_of_object(seconds), Ok)
}

#[cold]
#[inline(never)]
fn interval_of_object(seconds: Value) -> Result<Duration, Error> {
    let mut interval = Duration::ZERO;
    protect(|| {
        // SAFETY: called with the GVL on a valid object; what it raises stops at `protect`, and nothing is owned here.
        let timespec = unsafe { rb_sys::rb_time_timespec_interval(seconds.as_raw()) };
        interval = Duration::new(timespec.tv_sec.max(0) as u64, timespec.tv_nsec.max(0) as u32);
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    let is_number = Float::from_value(seconds).is_some() || RRational::from_value(seconds).is_some();
    Ok(if interval.is_zero() && is_number { some_time(f64::try_convert(seconds)?, interval) } else { interval })
}

/// Less than a nanosecond counts as one. A program that sleeps until a time, by
/// `sleep(left) while (left = deadline - now) > 0`, would otherwise loop for ever on a virtual clock, which does not
/// move while the program computes.
#[inline]
fn some_time(seconds: f64, interval: Duration) -> Duration {
    if seconds > 0.0 { interval.max(Duration::from_nanos(1)) } else { interval }
}

/// Converts what almost every caller passes: a number that is encoded in the reference itself, and less than a
/// lifetime.
#[inline(always)]
fn immediate_interval(seconds: Value) -> Option<Duration> {
    match Fixnum::from_value(seconds) {
        Some(whole) => u64::try_from(whole.to_i64()).ignored("negative").map(Duration::from_secs),
        None => interval_of_flonum(seconds),
    }
}

#[inline(never)]
fn interval_of_flonum(seconds: Value) -> Option<Duration> {
    /// Far below the limit of the kernel's clocks.
    const LIFETIME: f64 = 60.0 * 60.0 * 24.0 * 365.0 * 100.0;
    let number = Flonum::from_value(seconds)?.to_f64();
    let number = (0.0..LIFETIME).contains(&number).then_some(number)?;
    Duration::try_from_secs_f64(number)
        .ignored("never: less than a lifetime")
        .map(|interval| some_time(number, interval))
}

/// How long Ruby's Queue, SizedQueue and Thread wait for `seconds`. Nil, infinity and numbers beyond the clock's limit
/// mean no limit, and negative numbers mean zero. NaN is what C converts it to: no limit on x86-64, zero on ARM.
///
/// # Errors
/// TypeError for what cannot be converted to a Float.
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
        return Ok((!cfg!(target_arch = "x86_64")).then_some(Duration::ZERO));
    }
    let interval = Duration::try_from_secs_f64(number.max(0.0)).ignored("beyond the limit");
    Ok(interval.map(|interval| some_time(number, interval)))
}

/// How long `Timeout.timeout` lets a block run. Accepts what can be added to a Float. A negative number means zero;
/// `None`, for infinity and NaN, means no limit.
///
/// # Errors
/// TypeError for what is no number; what `coerce` raises.
pub fn limit(ruby: &Ruby, seconds: Value) -> Result<Option<Duration>, Error> {
    if let Some(interval) = immediate_interval(seconds) {
        return Ok(Some(interval));
    }
    // Ruby adds it to the clock's time, which is a Float.
    let sum: Value = ruby.float_from_f64(0.0).funcall("+", (seconds,))?;
    let seconds = Float::try_convert(sum)?.to_f64();
    if seconds < 0.0 {
        return Ok(Some(Duration::ZERO));
    }
    let interval = Duration::try_from_secs_f64(seconds).ignored("NaN, or beyond the limit");
    Ok(interval.map(|interval| some_time(seconds, interval)))
}

/// Like [`interval`], with `None` (no limit) for nil.
#[inline]
pub fn optional_interval(seconds: Value) -> Result<Option<Duration>, Error> {
    if seconds.is_nil() { Ok(None) } else { interval(seconds).map(Some) }
}

/// How long `IO.select` waits for `seconds`. Like [`optional_interval`], but from Ruby 4.0 on infinity means no limit,
/// too.
pub fn select_interval(seconds: Value) -> Result<Option<Duration>, Error> {
    let is_infinite = || Float::from_value(seconds).is_some_and(|seconds| seconds.to_f64() == f64::INFINITY);
    if cfg!(ruby_gte_4_0) && is_infinite() { Ok(None) } else { optional_interval(seconds) }
}
