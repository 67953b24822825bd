//! Running operations. The methods of `Context` and `Tensor` are in `operations.js`, which is generated from the op table. They
//! all call this module with their operation's number.

use crate::context::{Context, default_context};
use crate::options::Call;
use crate::tensor::{Value, make};
use adead::{Attrs, Op, Result};
use adead_node_support::args::{Fields, List, Of, Text, absent, kind};
use adead_node_support::error::{caught, fail, refused, thrown, value};
use adead_node_support::task::{Job, aborted, promise_with};
use napi::bindgen_prelude::{AbortSignal, AsyncTask, FromNapiValue, JsObjectValue, Object, Unknown};
use napi::{Env, JsValue, ValueType, check_status, sys};
use napi_derive::napi;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ptr::null_mut;

thread_local! {
    /// The last object that `context_of` found to be a Context: the pointer that it wraps, and its context. Cleared when any
    /// Context is collected.
    static LAST: Cell<(*mut std::ffi::c_void, *const adead::Context)> = const { Cell::new((null_mut(), std::ptr::null())) };
}

/// Clears what `context_of` found, because a Context is collected and its address may be reused.
pub fn forget_contexts() {
    let _ = LAST.try_with(|last| last.set((null_mut(), std::ptr::null())));
}

/// Returns the context of a value, or the default one for `null`. The reference is valid during the call that received the
/// value.
fn context_of<'call>(env: sys::napi_env, context: sys::napi_value) -> napi::Result<&'call adead::Context> {
    let mut held = null_mut();
    // SAFETY: the environment of this call and a value of it; for a value that wraps nothing the call fails.
    let status = unsafe { sys::napi_unwrap(env, context, &mut held) };
    let (last, found) = LAST.get();
    if status == sys::Status::napi_ok && held == last && !found.is_null() {
        // SAFETY: the object holds the context, so it is alive.
        return Ok(unsafe { &*found });
    }
    // `undefined` is refused: it is `this` of a method that was detached from its context.
    if kind(env, context) == ValueType::Null {
        return default_context().map_err(|error| thrown(env, &error));
    }
    // SAFETY: as above; the conversion checks that the object is a Context.
    match unsafe { Of::<Context>::from_napi_value(env, context) } {
        Ok(context) => {
            let found: *const adead::Context = &context.inner;
            LAST.set((held, found));
            // SAFETY: as above.
            Ok(unsafe { &*found })
        }
        Err(_) => Err(refused(env, "this is not a Context: was the method detached?")),
    }
}

/// Returns the operation with a number from `operations.js`.
pub fn operation(code: f64) -> Result<Op> {
    match Op::from_code(code as u32) {
        Some(op) => Ok(op),
        None => fail!(InvalidArgument, "no operation {code}"),
    }
}

/// Adds `run(context, op, options, …operands)` to the exports. It is written with Node-API directly, because napi-rs has no
/// rest parameters.
pub fn define(exports: &mut Object<'_>, env: Env) -> napi::Result<()> {
    let mut function = null_mut();
    // SAFETY: the environment that is being set up; the name ends with NUL.
    unsafe {
        check_status!(sys::napi_create_function(
            env.raw(),
            c"run".as_ptr(),
            -1,
            Some(run_now),
            null_mut(),
            &mut function
        ))?;
        exports.set_named_property("run", Unknown::from_napi_value(env.raw(), function)?)
    }
}

unsafe extern "C" fn run_now(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let outcome = caught(|| Ok(run_arguments(env, info)));
    match outcome {
        Ok(Ok(made)) => return made,
        // SAFETY: on the environment's thread.
        Ok(Err(error)) => unsafe { napi::JsError::from(error).throw_into(env) },
        Err(error) => {
            // SAFETY: as above.
            unsafe { sys::napi_throw(env, value(env, &error)) };
        }
    }
    null_mut()
}

fn run_arguments(env: sys::napi_env, info: sys::napi_callback_info) -> napi::Result<sys::napi_value> {
    let (mut few, mut count) = ([null_mut(); 8], 8);
    // SAFETY: Node gave the environment and the call; the array has as many places as the count says.
    unsafe { sys::napi_get_cb_info(env, info, &mut count, few.as_mut_ptr(), null_mut(), null_mut()) };
    let mut many = Vec::new();
    let arguments: &[sys::napi_value] = if count <= few.len() {
        &few[..count]
    } else {
        many.resize(count, null_mut());
        // SAFETY: as above.
        unsafe { sys::napi_get_cb_info(env, info, &mut count, many.as_mut_ptr(), null_mut(), null_mut()) };
        &many
    };
    let &[context, op, options, ref operands @ ..] = arguments else {
        return Err(refused(env, "run: expected a context, an operation and options"));
    };
    let mut code = 0.0;
    // SAFETY: a value of this environment.
    check_status!(unsafe { sys::napi_get_value_double(env, op, &mut code) })?;
    let op = operation(code).map_err(|error| thrown(env, &error))?;
    let context = context_of(env, context)?;
    let call = Call::new(env, op, operands, options)?;
    let result = execute(context, op, &call).map_err(|error| thrown(env, &error))?;
    make(env, result)
}

fn execute(context: &adead::Context, op: Op, call: &Call) -> Result<adead::Tensor> {
    if let [Some(x)] = &call.operands[..] {
        return context.run(op, &call.attrs, &[Some(x)]);
    }
    let operands: SmallVec<[Option<&adead::Tensor>; 5]> = call.operands.iter().map(Option::as_ref).collect();
    context.run(op, &call.attrs, &operands)
}

/// Runs `run` on another thread.
#[napi(skip_typescript)]
pub fn run_async(
    env: Env,
    context: Unknown<'_>,
    op: f64,
    options: Unknown<'_>,
    operands: List<Unknown<'_>>,
) -> napi::Result<AsyncTask<Job>> {
    let operands: Vec<_> = operands.0.iter().map(JsValue::raw).collect();
    let signal = optional_signal(env, Some(&options))?;
    let op = adead_node_support::error::guard(env, || operation(op))?;
    let call = Call::new(env.raw(), op, &operands, options.raw())?;
    let context = context_of(env.raw(), context.raw())?.clone();
    Ok(promise_with(Ok(move || execute(&context, op, &call)), |_, tensor| Ok(Value(tensor)), signal))
}

/// Returns the AbortSignal in options that may be left out.
pub fn optional_signal(env: Env, options: Option<&Unknown<'_>>) -> napi::Result<Option<AbortSignal>> {
    match options {
        Some(options) if !absent(env.raw(), options.raw()) => {
            // SAFETY: a value of this environment.
            signal(env, &unsafe { Fields::from_napi_value(env.raw(), options.raw()) }?)
        }
        _ => Ok(None),
    }
}

/// Returns the AbortSignal in the options. Fails with its error if it is aborted already.
pub fn signal(env: Env, Fields(options): &Fields) -> napi::Result<Option<AbortSignal>> {
    let Some(signal) = options.get::<Fields>("signal")? else { return Ok(None) };
    if signal.0.get::<bool>("aborted").ok().flatten() == Some(true) {
        return Err(aborted(env)?);
    }
    // SAFETY: as above.
    let signal = unsafe { AbortSignal::from_napi_value(env.raw(), signal.0.raw()) };
    signal.map(Some).map_err(|_| refused(env.raw(), "signal is not an AbortSignal"))
}

/// Reads an operation by name, with its attributes and all of its operands. null or undefined stands for an optional operand
/// that is left out.
pub fn by_name(
    env: Env,
    op: &Text,
    operands: List<Option<Value>>,
    options: Option<Unknown<'_>>,
) -> napi::Result<(Op, Attrs, Vec<Option<adead::Tensor>>)> {
    let op = adead_node_support::error::guard(env, || Op::from_name(op))?;
    let attrs = match options {
        Some(options) => Call::attributes(env.raw(), op, options.raw())?,
        None => Attrs::default(),
    };
    Ok((op, attrs, operands.0.into_iter().map(|operand| operand.map(|Value(tensor)| tensor)).collect()))
}
