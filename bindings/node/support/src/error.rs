//! Errors: the core's status and text as `AdeadError`, which `index.js` defines, and panics as `internal`.

use adead::Result;
#[doc(hidden)]
pub use adead::{Error, Status};
use napi::bindgen_prelude::{FromNapiValue, Function, Unknown};
use napi::{Env, sys};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

thread_local! {
    /// The constructor of `AdeadError` in this thread's environment, which owns it and frees it at its end.
    static CLASS: Cell<sys::napi_ref> = const { Cell::new(null_mut()) };
}

/// Sets what this thread's environment constructs for an error: `new class(message, code, status)`.
pub fn set_class(env: Env, class: Function<'_, Unknown<'_>, Unknown<'_>>) -> napi::Result<()> {
    let mut reference = null_mut();
    // SAFETY: a value of this call.
    let value = unsafe { napi::bindgen_prelude::ToNapiValue::to_napi_value(env.raw(), class) }?;
    // SAFETY: the environment and a function of it.
    napi::check_status!(unsafe { sys::napi_create_reference(env.raw(), value, 1, &mut reference) })?;
    CLASS.set(reference);
    Ok(())
}

/// Runs work that may panic, and turns a panic into an error.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(Error::new(Status::Internal, panic_text(&*payload))))
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    format!("a panic: {}", text.unwrap_or("no message"))
}

/// Runs the body of a function, and throws its error or panic.
pub fn guard<T>(env: Env, work: impl FnOnce() -> Result<T>) -> napi::Result<T> {
    caught(work).map_err(|error| thrown(env.raw(), &error))
}

/// Returns an error as a JavaScript value, or NULL if the environment can't make one any more.
pub fn value(env: sys::napi_env, error: &Error) -> sys::napi_value {
    let text = |text: &str| {
        let mut value = null_mut();
        // SAFETY: the text is alive during the call.
        unsafe { sys::napi_create_string_utf8(env, text.as_ptr().cast(), text.len() as isize, &mut value) };
        value
    };
    let (message, code) = (text(error.message()), text(error.status().name()));
    let (mut status, mut class, mut made) = (null_mut(), null_mut(), null_mut());
    // SAFETY: values and a reference of this environment; a failure leaves NULL, which the next function refuses.
    unsafe {
        sys::napi_create_int32(env, error.status() as i32, &mut status);
        let reference = CLASS.get();
        if !reference.is_null() && sys::napi_get_reference_value(env, reference, &mut class) == sys::Status::napi_ok {
            let arguments = [message, code, status];
            if sys::napi_new_instance(env, class, 3, arguments.as_ptr(), &mut made) == sys::Status::napi_ok {
                return made;
            }
        }
        sys::napi_create_error(env, code, message, &mut made);
        sys::napi_set_named_property(env, made, c"status".as_ptr(), status);
    }
    made
}

/// Returns an error for napi-rs to throw or to reject with.
pub fn thrown(env: sys::napi_env, error: &Error) -> napi::Error {
    let made = value(env, error);
    if made.is_null() {
        return napi::Error::from_reason(error.message());
    }
    // SAFETY: a value of this environment.
    match unsafe { Unknown::from_napi_value(env, made) } {
        Ok(made) => napi::Error::from(made),
        Err(error) => error,
    }
}

/// Makes the error of an invalid argument.
pub fn refused(env: sys::napi_env, text: &str) -> napi::Error {
    thrown(env, &Error::new(Status::InvalidArgument, text))
}

/// Returns from the function with an error of a status and a formatted text, for what only JavaScript can get wrong.
#[macro_export]
macro_rules! fail {
    ($status:ident, $($text:tt)*) => {
        return Err($crate::error::Error::new($crate::error::Status::$status, format!($($text)*)))
    };
}
pub use crate::fail;
