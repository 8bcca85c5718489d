//! Constants that are looked up once.

use magnus::rb_sys::{FromRawValue, protect};
use magnus::{Error, Ruby, TryConvert, Value};
use rb_sys::VALUE;

use super::value::Registered;

/// The value of a constant, such as a class, by its names. Its first look-up takes a hash look-up and an `rb_protect`
/// for each name; later ones take neither.
pub struct Constant {
    path: &'static [&'static str],
    value: Registered,
}

impl Constant {
    /// For a static. `path` begins below Object: `["IO", "TimeoutError"]`.
    pub const fn new(path: &'static [&'static str]) -> Self {
        Constant { path, value: Registered::new() }
    }

    /// The value, which is kept alive until the process ends.
    ///
    /// # Errors
    /// NameError if it is not defined; TypeError if it is no `T`.
    pub fn get<T: TryConvert>(&self, ruby: &Ruby) -> Result<T, Error> {
        let value = match self.value.get(ruby) {
            Some(value) => value,
            // Not while the static is locked: an autoload may release the GVL, and another thread would then wait for
            // the lock with the GVL held.
            None => self.value.get_or_register(self.look_up(ruby)?),
        };
        T::try_convert(value.get())
    }

    #[cold]
    fn look_up(&self, _: &Ruby) -> Result<Value, Error> {
        let look_up = |module: VALUE, name: &&str| {
            // SAFETY: called with the GVL on a class or module, as `rb_const_get` raises for a path through any other
            // object; the pointer and the length are those of a string, which Ruby copies.
            unsafe { rb_sys::rb_const_get(module, rb_sys::rb_intern2(name.as_ptr().cast(), name.len() as _)) }
        };
        // SAFETY: Object is defined before extensions are loaded. What the closure raises stops at `protect`, and it
        // owns nothing.
        protect(|| self.path.iter().fold(unsafe { rb_sys::rb_cObject }, look_up))
            // SAFETY: a constant's value is a valid object.
            .map(|raw| unsafe { Value::from_raw(raw) })
    }
}
