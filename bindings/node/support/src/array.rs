//! Typed arrays: elements by dtype, and adead's memory that JavaScript can access.

use crate::args::named;
use crate::error::{fail, refused};
use adead::{DType, Result};
use napi::bindgen_prelude::{FromNapiValue, Unknown};
use napi::{Env, check_status, sys};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// A kind of typed array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kind(sys::napi_typedarray_type);

impl Kind {
    const BYTES: Kind = Kind(sys::TypedarrayType::uint8_array);

    /// Returns the kind that holds elements of a dtype. f16 and bf16 are held as their bits.
    fn of(dtype: DType) -> Kind {
        Kind(match dtype {
            DType::F32 => sys::TypedarrayType::float32_array,
            DType::F16 | DType::BF16 => sys::TypedarrayType::uint16_array,
            DType::I32 => sys::TypedarrayType::int32_array,
            DType::I64 => sys::TypedarrayType::bigint64_array,
            DType::U32 => sys::TypedarrayType::uint32_array,
            DType::Bool | DType::U8 => sys::TypedarrayType::uint8_array,
            DType::F64 => sys::TypedarrayType::float64_array,
        })
    }

    /// Returns the bytes of one element.
    pub fn element(self) -> usize {
        match self.0 {
            sys::TypedarrayType::int8_array
            | sys::TypedarrayType::uint8_array
            | sys::TypedarrayType::uint8_clamped_array => 1,
            sys::TypedarrayType::int16_array | sys::TypedarrayType::uint16_array => 2,
            sys::TypedarrayType::int32_array
            | sys::TypedarrayType::uint32_array
            | sys::TypedarrayType::float32_array => 4,
            _ => 8,
        }
    }

    /// Makes a new array of this kind with a copy of `bytes`.
    pub fn array(self, env: Env, bytes: &[u8]) -> napi::Result<Unknown<'static>> {
        let (mut data, mut buffer) = (null_mut(), null_mut());
        // SAFETY: the environment of this call; a new buffer has the requested bytes, and nothing else refers to it.
        unsafe {
            check_status!(sys::napi_create_arraybuffer(env.raw(), bytes.len(), &mut data, &mut buffer))?;
            if !bytes.is_empty() {
                data.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
        self.over(env, bytes.len(), buffer)
    }

    /// Makes an array over a whole array buffer of `bytes` bytes.
    fn over(self, env: Env, bytes: usize, buffer: sys::napi_value) -> napi::Result<Unknown<'static>> {
        let mut array = null_mut();
        // SAFETY: the buffer belongs to this environment and has that many bytes.
        unsafe {
            check_status!(sys::napi_create_typedarray(
                env.raw(),
                self.0,
                bytes / self.element(),
                buffer,
                0,
                &mut array
            ))?;
            Unknown::from_napi_value(env.raw(), array)
        }
    }
}

/// A typed array of the caller, valid during the call. The address of its elements is read at each use, because getters
/// of later arguments may detach the array.
pub struct Array {
    env: sys::napi_env,
    value: sys::napi_value,
    kind: Kind,
}

impl Array {
    /// Returns a value as a typed array, or `None` for another value.
    pub fn of(env: sys::napi_env, value: sys::napi_value) -> Option<Array> {
        let mut kind = 0;
        // Node skips what is NULL and takes time for the rest, so `memory` asks for the elements when they are used.
        // SAFETY: the environment of this call and a value of it; the call fails if the value is not a typed array.
        let status = unsafe {
            sys::napi_get_typedarray_info(env, value, &mut kind, null_mut(), null_mut(), null_mut(), null_mut())
        };
        (status == sys::Status::napi_ok).then_some(Array { env, value, kind: Kind(kind) })
    }

    /// Makes the error for a value that is not a typed array.
    pub fn refused(env: sys::napi_env, value: sys::napi_value) -> napi::Error {
        refused(env, &format!("expected a typed array, not {}", named(env, value)))
    }

    /// Returns the address of its elements and their size in bytes.
    fn memory(&self) -> (*mut u8, usize) {
        let (mut length, mut data) = (0, null_mut());
        // SAFETY: the environment and a typed array of it, as `of` found; a failure leaves no elements.
        unsafe {
            sys::napi_get_typedarray_info(
                self.env,
                self.value,
                null_mut(),
                &mut length,
                &mut data,
                null_mut(),
                null_mut(),
            )
        };
        // An empty or detached array has no address.
        let data = if data.is_null() { NonNull::<u64>::dangling().as_ptr().cast() } else { data.cast() };
        (data, length * self.kind.element())
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        let (data, bytes) = self.memory();
        // SAFETY: the array is an argument of the running call, so it is alive. The code that uses the bytes runs no
        // JavaScript meanwhile that could detach it.
        unsafe { std::slice::from_raw_parts(data, bytes) }
    }

    /// Returns its bytes for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let (data, bytes) = self.memory();
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(data, bytes) }
    }

    /// Returns the dtype of the elements: the named one, or else the only one that such an array can hold. `dtype_mismatch` if
    /// the array can't hold the dtype, `invalid_argument` if the dtype must be named.
    pub fn dtype(&self, name: Option<&str>) -> Result<DType> {
        let mut fitting = DType::ALL.into_iter().filter(|&dtype| Kind::of(dtype) == self.kind);
        let Some(name) = name else {
            return match (fitting.next(), fitting.next()) {
                (Some(dtype), None) => Ok(dtype),
                (Some(one), Some(other)) => {
                    fail!(InvalidArgument, "the array may hold {one} or {other}: pass the dtype")
                }
                _ => fail!(DtypeMismatch, "no dtype has this array's elements: use Tensor.fromBytes"),
            };
        };
        let dtype: DType = name.parse()?;
        if Kind::of(dtype) != self.kind {
            fail!(DtypeMismatch, "an array of this kind can't hold {dtype}");
        }
        Ok(dtype)
    }

    /// Returns the kind of the array.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl FromNapiValue for Array {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Array> {
        Array::of(env, value).ok_or_else(|| Array::refused(env, value))
    }
}

/// Makes a new array for elements of a dtype, with a copy of `bytes`.
pub fn array_of(env: Env, dtype: DType, bytes: &[u8]) -> napi::Result<Unknown<'static>> {
    Kind::of(dtype).array(env, bytes)
}

/// Makes a new `Uint8Array` with a copy of bytes.
pub fn bytes_of(env: Env, bytes: &[u8]) -> napi::Result<Unknown<'static>> {
    Kind::BYTES.array(env, bytes)
}

/// Makes an array over adead's memory, which `owner` keeps alive as long as the array. Without a dtype it is a `Uint8Array`.
pub fn external<T: 'static>(
    env: Env,
    pointer: *mut u8,
    bytes: usize,
    dtype: Option<DType>,
    owner: T,
) -> napi::Result<Unknown<'static>> {
    unsafe extern "C" fn release<T>(_: sys::napi_env, _: *mut c_void, owner: *mut c_void) {
        // SAFETY: `owner` is the box made below, and is dropped once.
        drop(unsafe { Box::from_raw(owner.cast::<T>()) });
    }
    let kind = dtype.map_or(Kind::BYTES, Kind::of);
    if bytes == 0 {
        return kind.array(env, &[]);
    }
    let owner = Box::into_raw(Box::new(owner));
    let mut buffer = null_mut();
    // SAFETY: `owner` keeps the memory alive, and is dropped with the buffer.
    let status = unsafe {
        sys::napi_create_external_arraybuffer(
            env.raw(),
            pointer.cast(),
            bytes,
            Some(release::<T>),
            owner.cast(),
            &mut buffer,
        )
    };
    if status != sys::Status::napi_ok {
        // SAFETY: on this failure the buffer has not taken ownership of `owner`.
        drop(unsafe { Box::from_raw(owner) });
        let text = "this runtime can't make views of external memory: copy instead";
        return Err(crate::error::thrown(env.raw(), &adead::Error::new(adead::Status::Unsupported, text)));
    }
    kind.over(env, bytes, buffer)
}
