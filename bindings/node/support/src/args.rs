//! Arguments: JavaScript values as the core's types. A value of another type is `invalid_argument`.

use crate::error::refused;
use adead::MAX_RANK;
use napi::bindgen_prelude::{BigInt, ClassInstance, FromNapiValue, JavaScriptClassExt, MaybeTypeTag, Object, Unknown};
use napi::{Env, ValueType, sys};
use smallvec::SmallVec;
use std::ops::Deref;
use std::ptr::null_mut;

/// Returns the type of a value, as `typeof` does, but `null` has a type of its own.
pub fn kind(env: sys::napi_env, value: sys::napi_value) -> ValueType {
    let mut kind = sys::ValueType::napi_undefined;
    // SAFETY: the environment of this call and a value of it; on a failure `kind` stays as it was.
    unsafe { sys::napi_typeof(env, value, &mut kind) };
    kind.into()
}

/// Returns the name of a value's type, for messages.
pub fn named(env: sys::napi_env, value: sys::napi_value) -> &'static str {
    match kind(env, value) {
        ValueType::Undefined => "undefined",
        ValueType::Null => "null",
        ValueType::Boolean => "a boolean",
        ValueType::Number => "a number",
        ValueType::String => "a string",
        ValueType::Symbol => "a symbol",
        ValueType::Function => "a function",
        ValueType::BigInt => "a bigint",
        _ => "another object",
    }
}

/// Returns whether a value is `undefined` or `null`.
pub fn absent(env: sys::napi_env, value: sys::napi_value) -> bool {
    matches!(kind(env, value), ValueType::Undefined | ValueType::Null)
}

/// The largest integer up to which JavaScript represents every integer exactly: 2⁵³ - 1.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// A size or count: an integer from 0 to 2⁵³ - 1.
#[derive(Clone, Copy)]
pub struct Size(pub usize);

impl FromNapiValue for Size {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Size> {
        // SAFETY: the caller's guarantee is passed on.
        let Number(number) = unsafe { Number::from_napi_value(env, value) }?;
        if !(0.0..=LARGEST).contains(&number) || number.fract() != 0.0 {
            return Err(refused(env, &format!("{number} is not a whole number from 0 to {LARGEST}")));
        }
        Ok(Size(number as usize))
    }
}

/// An integer from 0 to 2³² - 1.
#[derive(Clone, Copy)]
pub struct Word(pub u32);

impl FromNapiValue for Word {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Word> {
        // SAFETY: the caller's guarantee is passed on.
        let Size(number) = unsafe { Size::from_napi_value(env, value) }?;
        match u32::try_from(number) {
            Ok(word) => Ok(Word(word)),
            Err(_) => Err(refused(env, &format!("{number} is above {}", u32::MAX))),
        }
    }
}

/// An array of sizes.
pub struct Dims(SmallVec<[usize; MAX_RANK]>);

impl Deref for Dims {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl FromNapiValue for Dims {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Dims> {
        let mut dims = SmallVec::new();
        each(env, value, |element| {
            // SAFETY: a value of this environment.
            dims.push(unsafe { Size::from_napi_value(env, element) }?.0);
            Ok(())
        })?;
        Ok(Dims(dims))
    }
}

/// Calls a function for each element of an array.
pub fn each(
    env: sys::napi_env,
    array: sys::napi_value,
    mut visit: impl FnMut(sys::napi_value) -> napi::Result<()>,
) -> napi::Result<()> {
    let mut length = 0;
    // SAFETY: the environment of this call and a value of it; the call fails if the value is not an array.
    if unsafe { sys::napi_get_array_length(env, array, &mut length) } != sys::Status::napi_ok {
        return Err(refused(env, &format!("expected an array, not {}", named(env, array))));
    }
    for i in 0..length {
        let mut element = null_mut();
        // SAFETY: as above.
        napi::check_status!(unsafe { sys::napi_get_element(env, array, i, &mut element) })?;
        visit(element)?;
    }
    Ok(())
}

/// The bytes of a buffer for short strings, such as the names of options, operations and dtypes. One call reads them.
const SHORT: usize = 64;

/// A string.
pub struct Text(String);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0
    }
}

impl FromNapiValue for Text {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Text> {
        let (mut short, mut length) = ([0u8; SHORT], 0);
        // SAFETY: the environment of this call and a value of it; Node writes no more than the given number of bytes. The
        // call fails if the value is not a string.
        let status =
            unsafe { sys::napi_get_value_string_utf8(env, value, short.as_mut_ptr().cast(), short.len(), &mut length) };
        if status != sys::Status::napi_ok {
            return Err(refused(env, &format!("expected a string, not {}", named(env, value))));
        }
        match std::str::from_utf8(&short[..length]) {
            // A NUL and the next character, of at most four bytes, would fit too, so this is the whole string.
            Ok(text) if length + 4 < SHORT => Ok(Text(text.into())),
            // SAFETY: the caller's guarantee is passed on.
            _ => unsafe { String::from_napi_value(env, value) }.map(Text),
        }
    }
}

/// An array of values.
pub struct List<T>(pub Vec<T>);

impl<T: FromNapiValue> FromNapiValue for List<T> {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<List<T>> {
        let mut list = Vec::new();
        each(env, value, |element| {
            // SAFETY: a value of this environment.
            list.push(unsafe { T::from_napi_value(env, element) }?);
            Ok(())
        })?;
        Ok(List(list))
    }
}

/// An object of one of the classes, valid during the call.
pub struct Of<T: 'static>(ClassInstance<'static, T>);

impl<T> Deref for Of<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: MaybeTypeTag + JavaScriptClassExt> FromNapiValue for Of<T> {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Of<T>> {
        // Another copy of this package has the same type tags, so the class itself is checked too.
        // SAFETY: the value is of this environment.
        let own = unsafe { Unknown::from_napi_value(env, value) }
            .and_then(|value| T::instance_of(&Env::from_raw(env), &value))
            .unwrap_or(false);
        // SAFETY: as above; the check has shown that the value is an instance of the class.
        match if own { unsafe { ClassInstance::from_napi_value(env, value) }.ok() } else { None } {
            Some(instance) => Ok(Of(instance)),
            None => {
                let class = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
                Err(refused(env, &format!("expected a {class}, not {}", named(env, value))))
            }
        }
    }
}

/// A boolean.
pub struct Flag(pub bool);

impl FromNapiValue for Flag {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Flag> {
        let mut flag = false;
        // SAFETY: the environment of this call and a value of it.
        if unsafe { sys::napi_get_value_bool(env, value, &mut flag) } != sys::Status::napi_ok {
            return Err(refused(env, &format!("expected true or false, not {}", named(env, value))));
        }
        Ok(Flag(flag))
    }
}

/// Any number.
pub struct Number(pub f64);

impl FromNapiValue for Number {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Number> {
        let mut number = 0.0;
        // SAFETY: the environment of this call and a value of it.
        if unsafe { sys::napi_get_value_double(env, value, &mut number) } != sys::Status::napi_ok {
            return Err(refused(env, &format!("expected a number, not {}", named(env, value))));
        }
        Ok(Number(number))
    }
}

/// An object with properties.
pub struct Fields(pub Object<'static>);

impl FromNapiValue for Fields {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Fields> {
        if kind(env, value) != ValueType::Object {
            return Err(refused(env, &format!("expected an object, not {}", named(env, value))));
        }
        // SAFETY: the caller's guarantee is passed on.
        unsafe { Object::from_napi_value(env, value) }.map(Fields)
    }
}

/// A number of 64 bits: a bigint, or a number up to 2⁵³ - 1.
#[derive(Clone, Copy)]
pub struct Long(pub u64);

impl FromNapiValue for Long {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Long> {
        if kind(env, value) != ValueType::BigInt {
            // SAFETY: the caller's guarantee is passed on.
            return unsafe { Size::from_napi_value(env, value) }.map(|size| Long(size.0 as u64));
        }
        // SAFETY: as above.
        match unsafe { BigInt::from_napi_value(env, value) }?.get_u64() {
            (false, number, true) => Ok(Long(number)),
            _ => Err(refused(env, "a bigint must be from 0 to 2^64 - 1")),
        }
    }
}
