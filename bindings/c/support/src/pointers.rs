//! Checked conversions from C's pointers to values. An error names the argument.

#[doc(hidden)]
pub use adead_core::{Error, Status};
use adead_core::{MAX_RANK, Result};
use std::ffi::{CStr, c_char, c_void};

/// Returns `Err` with a formatted text: `fail!(InvalidArgument, "m is {m}")`.
#[macro_export]
macro_rules! fail {
    ($status:ident, $($text:tt)*) => {
        return Err($crate::pointers::Error::formatted($crate::pointers::Status::$status, format_args!($($text)*)))
    };
}
pub use crate::fail;

/// Returns the error of a pointer that must not be NULL.
#[cold]
pub fn null(name: &str) -> Error {
    Error::new(Status::InvalidArgument, format!("{name} is NULL"))
}

#[cold]
#[inline(never)]
fn no_array(pointer: *const u8, length: usize, name: &str) -> Error {
    Error::new(Status::InvalidArgument, format!("{name} at {pointer:p} can't be an array of {length} values"))
}

/// Returns a handle or struct that the call reads.
///
/// # Safety
/// `pointer` is NULL or points to a `T` that nothing writes during `'a`.
#[inline]
pub unsafe fn reference<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: passed on.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Returns a handle that the call changes.
///
/// # Safety
/// `pointer` is NULL or points to a `T` that nothing else uses during `'a`.
#[inline]
pub unsafe fn exclusive<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    // SAFETY: passed on.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(name))
}

/// The destination of an output. It is checked before any work and written after all work.
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Makes the destination of the output `name`; `invalid_argument` for NULL.
    ///
    /// # Safety
    /// `pointer` is NULL or may be written during the call.
    #[inline]
    pub unsafe fn new(pointer: *mut T, name: &str) -> Result<Out<T>> {
        if pointer.is_null() { Err(null(name)) } else { Ok(Out(pointer)) }
    }

    /// Writes the value.
    #[inline]
    pub fn write(self, value: T) {
        // SAFETY: not NULL, and the caller of `new` vouched for the rest. `write_unaligned` allows any address.
        unsafe { self.0.write_unaligned(value) }
    }
}

impl<T> Out<*mut T> {
    /// Writes a new handle.
    pub fn give(self, value: T) {
        self.write(Box::into_raw(Box::new(value)));
    }
}

/// Returns a text.
///
/// # Safety
/// `pointer` is NULL or points to a NUL-terminated text that nothing writes during `'a`.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    // SAFETY: passed on.
    match unsafe { optional_text(pointer, name) }? {
        Some(text) => Ok(text),
        None => Err(null(name)),
    }
}

/// Returns a text that may be NULL.
///
/// # Safety
/// As for [`text`].
pub unsafe fn optional_text<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, and the caller vouches for the rest.
    match unsafe { CStr::from_ptr(pointer) }.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(error) => fail!(InvalidArgument, "{name} is not UTF-8: {error}"),
    }
}

/// Returns an array; NULL counts as an empty one.
///
/// # Safety
/// `pointer` is NULL or points to `length` values that nothing writes during `'a`.
#[inline]
pub unsafe fn array<'a, T>(pointer: *const T, length: usize, name: &str) -> Result<&'a [T]> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    if !pointer.is_aligned() || length.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(no_array(pointer.cast(), length, name));
    }
    // SAFETY: aligned, of a size that exists, and the caller vouches for the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// Returns bytes to write; NULL counts as no bytes.
///
/// # Safety
/// `pointer` is NULL or points to `length` bytes that nothing else touches during `'a`.
pub unsafe fn array_mut<'a>(pointer: *mut c_void, length: usize, name: &str) -> Result<&'a mut [u8]> {
    // SAFETY: passed on; `array` makes the same checks that a write needs.
    let checked = unsafe { array(pointer.cast::<u8>().cast_const(), length, name) }?;
    if checked.is_empty() {
        return Ok(&mut []);
    }
    // SAFETY: not NULL, of a size that exists, and the caller vouches for the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), length) })
}

/// Returns dimensions. The rank is checked before any of them is read.
///
/// # Safety
/// As for [`array()`].
pub unsafe fn dimensions<'a>(dims: *const usize, rank: usize) -> Result<&'a [usize]> {
    if rank > MAX_RANK {
        fail!(InvalidArgument, "rank is {rank}; a shape has at most {MAX_RANK} dimensions");
    }
    // SAFETY: passed on.
    unsafe { array(dims, rank, "dims") }
}

/// A struct whose first field is its own size, so that it can grow in later versions.
///
/// # Safety
/// The type is `repr(C)`, its first field is `struct_size: usize`, and every bit pattern of it is valid.
pub unsafe trait Growing: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// Its size when it first appeared.
    const FIRST_SIZE: usize;
}

/// `growing!(unsafe adead_cache_use, 40)` makes a struct [`Growing`] that had this many bytes when it first appeared.
/// The `unsafe` in it vouches that the struct meets the trait's conditions.
#[macro_export]
macro_rules! growing {
    (unsafe $struct:ident, $first_size:expr) => {
        const _: () = assert!(std::mem::offset_of!($struct, struct_size) == 0 && $first_size <= size_of::<$struct>());

        // SAFETY: the `unsafe` in the macro's call vouches for the conditions.
        unsafe impl $crate::pointers::Growing for $struct {
            const NAME: &'static str = stringify!($struct);
            const FIRST_SIZE: usize = $first_size;
        }
    };
}
pub use crate::growing;

/// No struct grows beyond this. A larger `struct_size` was never initialised.
const LARGEST: usize = 1 << 16;

/// The name and the sizes of a growing struct, as values, so that all structs share the checking code.
struct Known {
    name: &'static str,
    first_size: usize,
    size: usize,
}

impl Known {
    fn of<T: Growing>() -> Known {
        Known { name: T::NAME, first_size: T::FIRST_SIZE, size: size_of::<T>() }
    }

    /// Returns the size that a struct states.
    ///
    /// # Safety
    /// `pointer` points to a `usize`.
    #[inline(never)]
    unsafe fn given(&self, pointer: *const u8) -> Result<usize> {
        // SAFETY: passed on.
        let given = unsafe { pointer.cast::<usize>().read_unaligned() };
        if !(self.first_size..=LARGEST).contains(&given) {
            let Known { name, size, .. } = self;
            fail!(InvalidArgument, "struct_size of {name} is {given}; set it to sizeof({name}), {size}");
        }
        Ok(given)
    }

    /// Reads a struct over `to`, which holds its defaults.
    ///
    /// # Safety
    /// `pointer` points to as many bytes as its first field says, and `to` to as many bytes as this version knows.
    #[inline(never)]
    unsafe fn read(&self, pointer: *const u8, to: *mut u8) -> Result<()> {
        // SAFETY: the struct has `given` bytes, and at most the known bytes are overwritten.
        unsafe {
            let given = self.given(pointer)?;
            let known = given.min(self.size);
            if (known..given).any(|i| *pointer.add(i) != 0) {
                fail!(Unsupported, "{} has fields that version {} does not know", self.name, adead_core::VERSION);
            }
            to.copy_from_nonoverlapping(pointer, known);
        }
        Ok(())
    }

    /// Writes a struct of `given` bytes: the known fields, and zeros after them.
    ///
    /// # Safety
    /// `pointer` points to `given` writable bytes, and `from` to as many bytes as this version knows.
    #[inline(never)]
    unsafe fn write(&self, from: *const u8, pointer: *mut u8, given: usize) {
        let known = given.min(self.size);
        // SAFETY: at most `given` bytes are written.
        unsafe {
            pointer.copy_from_nonoverlapping(from, known);
            pointer.add(known).write_bytes(0, given - known);
        }
    }
}

/// Reads options. The defaults fill fields that an older header lacks, and all of them if `pointer` is NULL. A newer
/// struct is accepted if all bytes that this version does not know are zero.
///
/// # Safety
/// `pointer` is NULL or points to as many bytes as its first field says, which nothing writes meanwhile.
pub unsafe fn options<T: Growing>(pointer: *const T, defaults: T) -> Result<T> {
    let mut options = defaults;
    if !pointer.is_null() {
        // SAFETY: passed on; T is plain data.
        unsafe { Known::of::<T>().read(pointer.cast(), (&raw mut options).cast()) }?;
    }
    Ok(options)
}

/// Writes a report: as much of `value` as the caller's struct has room for, and zeros after it.
///
/// # Safety
/// `pointer` is NULL or points to as many writable bytes as its first field says.
pub unsafe fn report<T: Growing>(pointer: *mut T, name: &str, make: impl FnOnce(usize) -> Result<T>) -> Result<()> {
    if pointer.is_null() {
        return Err(null(name));
    }
    let known = Known::of::<T>();
    // SAFETY: passed on.
    unsafe {
        let given = known.given(pointer.cast())?;
        let value = make(given)?;
        known.write((&raw const value).cast(), pointer.cast(), given);
    }
    Ok(())
}

/// Writes a text into a fixed array. It always ends with NUL, and is cut between characters if it is too long.
pub fn fixed<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    let end = (0..=text.len().min(N - 1)).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    for (to, &from) in array.iter_mut().zip(&text.as_bytes()[..end]) {
        *to = from as c_char;
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Example {
        struct_size: usize,
        first: u64,
        later: u64,
    }

    // SAFETY: as `Growing` requires; the first version had only `first`.
    unsafe impl Growing for Example {
        const NAME: &'static str = "example";
        const FIRST_SIZE: usize = 16;
    }

    const DEFAULTS: Example = Example { struct_size: 24, first: 1, later: 2 };

    #[test]
    fn structs_from_older_and_newer_headers_are_read() {
        let read = |words: &[usize]| {
            // SAFETY: the tests give at least as many bytes as the first word says.
            unsafe { options(words.as_ptr().cast::<Example>(), DEFAULTS) }.map(|read| (read.first, read.later))
        };
        assert_eq!(read(&[16, 7]).unwrap(), (7, 2));
        assert_eq!(read(&[24, 7, 8]).unwrap(), (7, 8));
        assert_eq!(read(&[32, 7, 8, 0]).unwrap(), (7, 8));
        assert_eq!(read(&[32, 7, 8, 9]).unwrap_err().status(), Status::Unsupported);
        assert_eq!(read(&[0, 7, 8]).unwrap_err().status(), Status::InvalidArgument);
        assert_eq!(read(&[usize::MAX, 7, 8]).unwrap_err().status(), Status::InvalidArgument);
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { options(std::ptr::null(), DEFAULTS) }.unwrap(), DEFAULTS);
    }

    #[test]
    fn reports_fill_what_there_is() {
        let write = |words: &mut [usize]| {
            // SAFETY: as above.
            unsafe {
                report(words.as_mut_ptr().cast::<Example>(), "out", |given| {
                    Ok(Example { struct_size: given, ..DEFAULTS })
                })
            }
        };
        let mut older = [16, 0, 99];
        write(&mut older).unwrap();
        assert_eq!(older, [16, 1, 99]);
        let mut newer = [32, 0, 0, 99];
        write(&mut newer).unwrap();
        assert_eq!(newer, [32, 1, 2, 0]);
        assert!(write(&mut [8, 0, 0]).is_err());
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let bytes = |array: [c_char; 4]| array.map(|byte| byte.to_ne_bytes()[0]);
        assert_eq!(&bytes(fixed::<4>("aé!")), b"a\xc3\xa9\0");
        assert_eq!(&bytes(fixed::<4>("aaé")), b"aa\0\0");
        assert_eq!(&bytes(fixed::<4>("")), b"\0\0\0\0");
    }
}
