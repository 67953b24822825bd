//! Converts values of metadata to Rust types.

use super::array::Array;
use super::value::{Described, Value};

mod sealed {
    pub trait Sealed {}
}

/// A type that [`Gguf::require`](super::Gguf::require) and [`Gguf::optional`](super::Gguf::optional) return.
///
/// - `u32`, `u64`, `usize`, `i32`, `i64`: any integer type, if the value fits.
/// - `f32`: f32. `f64`: f32 or f64.
/// - `bool`: bool.
/// - `&str`: a string, not copied.
/// - `&Array`: any array.
/// - `Vec` of these, except arrays: an array whose elements all have the requested type.
pub trait FromValue<'a>: Sized + sealed::Sealed {
    #[doc(hidden)]
    const WANTED: &'static str;
    #[doc(hidden)]
    fn from_value(value: &'a Value) -> Result<Self, String>;
}

/// The value was not what was wanted.
fn differs<T>(value: &Value) -> Result<T, String> {
    Err(Described(value).to_string())
}

/// Decodes an array of what `convert` takes.
fn all<T>(value: &Value, convert: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, String> {
    let Value::Array(array) = value else { return differs(value) };
    let mut converted = Vec::with_capacity(array.len());
    for element in array.iter() {
        match convert(&element) {
            Some(value) => converted.push(value),
            None => {
                return Err(format!(
                    "{}, whose element {} is {}",
                    Described(value),
                    converted.len(),
                    Described(&element)
                ));
            }
        }
    }
    whole(array, converted)
}

/// The elements, unless the array ended early.
fn whole<T>(array: &Array, elements: Vec<T>) -> Result<Vec<T>, String> {
    if elements.len() < array.len() {
        return Err(format!(
            "{array:?}, of which only {} are left: the file has changed since it was opened",
            elements.len()
        ));
    }
    Ok(elements)
}

macro_rules! convert {
    ($($type:ty, $wanted:literal, $plural:literal, $convert:expr;)*) => {$(
        impl sealed::Sealed for $type {}
        impl FromValue<'_> for $type {
            const WANTED: &'static str = $wanted;
            fn from_value(value: &Value) -> Result<$type, String> {
                let convert: fn(&Value) -> Option<$type> = $convert;
                convert(value).map_or_else(|| differs(value), Ok)
            }
        }
        impl sealed::Sealed for Vec<$type> {}
        impl FromValue<'_> for Vec<$type> {
            const WANTED: &'static str = concat!("an array of ", $plural);
            fn from_value(value: &Value) -> Result<Vec<$type>, String> {
                all(value, $convert)
            }
        }
    )*};
}

/// The value of any integer type.
fn integer(value: &Value) -> Option<i128> {
    match *value {
        Value::U8(value) => Some(value.into()),
        Value::I8(value) => Some(value.into()),
        Value::U16(value) => Some(value.into()),
        Value::I16(value) => Some(value.into()),
        Value::U32(value) => Some(value.into()),
        Value::I32(value) => Some(value.into()),
        Value::U64(value) => Some(value.into()),
        Value::I64(value) => Some(value.into()),
        _ => None,
    }
}

convert! {
    u32, "an integer from 0 to 2^32 - 1", "integers from 0 to 2^32 - 1", |value| integer(value)?.try_into().ok();
    u64, "an integer from 0 to 2^64 - 1", "integers from 0 to 2^64 - 1", |value| integer(value)?.try_into().ok();
    usize, "an integer from 0 that fits in memory's addresses", "integers from 0 that fit in memory's addresses",
        |value| integer(value)?.try_into().ok();
    i32, "an integer from -2^31 to 2^31 - 1", "integers from -2^31 to 2^31 - 1", |value| integer(value)?.try_into().ok();
    i64, "an integer from -2^63 to 2^63 - 1", "integers from -2^63 to 2^63 - 1", |value| integer(value)?.try_into().ok();
    f32, "an f32", "f32", |value| if let Value::F32(value) = *value { Some(value) } else { None };
    f64, "an f32 or f64", "f32 or f64", |value| match *value {
        Value::F32(value) => Some(value.into()),
        Value::F64(value) => Some(value),
        _ => None,
    };
    bool, "a bool", "bools", |value| if let Value::Bool(value) = *value { Some(value) } else { None };
}

impl sealed::Sealed for &str {}
impl<'a> FromValue<'a> for &'a str {
    const WANTED: &'static str = "a string";
    fn from_value(value: &'a Value) -> Result<&'a str, String> {
        if let Value::String(text) = value { Ok(text) } else { differs(value) }
    }
}

impl sealed::Sealed for Vec<&str> {}
impl<'a> FromValue<'a> for Vec<&'a str> {
    const WANTED: &'static str = "an array of strings";
    fn from_value(value: &'a Value) -> Result<Vec<&'a str>, String> {
        let Value::Array(array) = value else { return differs(value) };
        let Some(strings) = array.strings() else { return differs(value) };
        let mut collected = Vec::with_capacity(array.len());
        collected.extend(strings);
        whole(array, collected)
    }
}

impl sealed::Sealed for &Array {}
impl<'a> FromValue<'a> for &'a Array {
    const WANTED: &'static str = "an array";
    fn from_value(value: &'a Value) -> Result<&'a Array, String> {
        if let Value::Array(array) = value { Ok(array) } else { differs(value) }
    }
}
