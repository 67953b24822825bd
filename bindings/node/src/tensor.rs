//! The class `Tensor`, written with Node-API directly, because making and passing tensors is most of the cost of a small call.
//!
//! napi-rs keeps two tables for every object and locks a third for every argument, which takes longer than `relu` of 16
//! numbers. Here a handle takes one allocation and one entry in a table of its thread.

use adead::{DType, Result, Tensor};
use adead_node_support::args::{Dims, Text, each, named};
use adead_node_support::array::{Array, array_of, bytes_of, external};
use adead_node_support::error::{caught, guard, refused, thrown, value};
use napi::bindgen_prelude::{FromNapiValue, JsObjectValue, Object, ToNapiValue, Unknown};
use napi::{Env, JsValue, check_status, sys};
use napi_derive::napi;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr::null_mut;

/// The data behind a `Tensor` object.
struct Handle {
    /// `None` once the object is known to be garbage. Node frees handles only between turns of its event loop.
    tensor: Option<Tensor>,
    /// The bytes reported to V8.
    reported: i64,
}

/// The bytes of a handle besides the elements: the handle, the tensor's description, Node's and V8's records.
const OVERHEAD: i64 = 512;

/// How many bytes handles must gain before the next search for dead ones.
const SWEEP_STEP: i64 = 32 << 20;

/// A hash for addresses.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_usize(byte.into()));
    }

    fn write_usize(&mut self, n: usize) {
        self.0 = (self.0 ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

type HandleTable = HashMap<usize, sys::napi_ref, BuildHasherDefault<AddressHasher>>;

thread_local! {
    /// The class of this thread's environment, which owns the reference.
    static CLASS: Cell<sys::napi_ref> = const { Cell::new(null_mut()) };
    /// This thread's handles by address, each with a weak reference to its object. An address that is missing here is not a
    /// handle.
    static LIVE: RefCell<HandleTable> = RefCell::default();
    /// The tensor for the object that is being constructed.
    static UNDER_CONSTRUCTION: Cell<Option<Tensor>> = const { Cell::new(None) };
    /// The bytes of all handles, and the number of bytes at which to search for dead ones.
    static HANDLE_BYTES: Cell<(i64, i64)> = const { Cell::new((0, SWEEP_STEP)) };
}

/// Adds the class to the module's exports.
#[napi(module_exports)]
pub fn define(exports: Object<'_>, env: Env) -> napi::Result<()> {
    let (mut exports, mut class, mut reference) = (exports, null_mut(), null_mut());
    // SAFETY: the environment that is being set up; the name ends with NUL.
    unsafe {
        check_status!(sys::napi_define_class(
            env.raw(),
            c"Tensor".as_ptr(),
            -1,
            Some(construct),
            null_mut(),
            0,
            null_mut(),
            &mut class
        ))?;
        check_status!(sys::napi_create_reference(env.raw(), class, 1, &mut reference))?;
        CLASS.set(reference);
        exports.set_named_property("Tensor", Unknown::from_napi_value(env.raw(), class)?)?;
    }
    crate::run::define(&mut exports, env)
}

/// Constructs a tensor for `new Tensor(data, dims, dtype?)`, and for [`make`].
unsafe extern "C" fn construct(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let (mut this, mut arguments, mut count) = (null_mut(), [null_mut(); 3], 3);
    // SAFETY: Node gave the environment and the call.
    unsafe { sys::napi_get_cb_info(env, info, &mut count, arguments.as_mut_ptr(), &mut this, null_mut()) };
    let made = caught(|| match UNDER_CONSTRUCTION.take() {
        Some(tensor) => Ok(Ok(tensor)),
        None => Ok(from_arguments(env, info, arguments)),
    });
    match made {
        Ok(Ok(tensor)) => wrap(env, this, tensor),
        // The exception is pending already, or is thrown here.
        Ok(Err(error)) => {
            // SAFETY: on the environment's thread.
            unsafe { napi::JsError::from(error).throw_into(env) }
        }
        Err(error) => {
            // SAFETY: as above.
            unsafe { sys::napi_throw(env, value(env, &error)) };
        }
    }
    this
}

fn from_arguments(
    env: sys::napi_env,
    info: sys::napi_callback_info,
    [data, dims, dtype]: [sys::napi_value; 3],
) -> napi::Result<Tensor> {
    let mut target = null_mut();
    // SAFETY: Node gave the environment and the call; a missing argument is `undefined`.
    let (dims, dtype) = unsafe {
        check_status!(sys::napi_get_new_target(env, info, &mut target))?;
        if target.is_null() {
            return Err(refused(env, "Tensor is a class: write new Tensor(data, dims)"));
        }
        (Dims::from_napi_value(env, dims)?, Option::<Text>::from_napi_value(env, dtype)?)
    };
    let dtype = dtype.as_deref();
    let made = match Array::of(env, data) {
        Some(data) => data.dtype(dtype).and_then(|dtype| Tensor::from_bytes(data.bytes(), dtype, &dims)),
        None if dtype.is_none_or(|name| name == "bool") => Tensor::from_bools(&bools(env, data)?, &dims),
        None => return Err(Array::refused(env, data)),
    };
    // `construct` catches panics.
    made.map_err(|error| thrown(env, &error))
}

/// Reads an array of booleans, which is given in place of a typed array.
fn bools(env: sys::napi_env, data: sys::napi_value) -> napi::Result<Vec<bool>> {
    let mut is_list = false;
    // SAFETY: the environment of this call and a value of it.
    check_status!(unsafe { sys::napi_is_array(env, data, &mut is_list) })?;
    if !is_list {
        return Err(Array::refused(env, data));
    }
    let mut values = Vec::new();
    each(env, data, |element| {
        let mut value = false;
        // SAFETY: as above; for a value that is not a boolean the call fails.
        if unsafe { sys::napi_get_value_bool(env, element, &mut value) } != sys::Status::napi_ok {
            return Err(refused(env, "expected a typed array or an array of booleans"));
        }
        values.push(value);
        Ok(())
    })?;
    Ok(values)
}

/// Puts a tensor into an object of the class.
fn wrap(env: sys::napi_env, object: sys::napi_value, tensor: Tensor) {
    let reported = tensor.byte_len() as i64 + OVERHEAD;
    let data: *mut c_void = Box::into_raw(Box::new(Handle { tensor: Some(tensor), reported })).cast();
    let (mut reference, mut total) = (null_mut(), 0);
    // SAFETY: `data` is a boxed `Handle`, as `finalize` expects.
    unsafe {
        if sys::napi_wrap(env, object, data, Some(finalize), null_mut(), &mut reference) != sys::Status::napi_ok {
            drop(Box::from_raw(data.cast::<Handle>()));
            sys::napi_throw(
                env,
                value(env, &adead::Error::new(adead::Status::Internal, "an object is already a Tensor")),
            );
            return;
        }
        sys::napi_adjust_external_memory(env, reported, &mut total);
    }
    LIVE.with_borrow_mut(|live| live.insert(data as usize, reference));
    let (held, limit) = HANDLE_BYTES.get();
    HANDLE_BYTES.set((held + reported, limit));
    if held + reported > limit {
        sweep_collected(env);
    }
}

/// Frees the handle of a collected object.
unsafe extern "C" fn finalize(env: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // SAFETY: `wrap` made the box, and Node calls this once for it.
    let handle = unsafe { Box::from_raw(data.cast::<Handle>()) };
    // When a worker ends, its table may be destroyed before its last objects.
    let reference = LIVE.try_with(|live| live.borrow_mut().remove(&(data as usize))).ok().flatten();
    let mut total = 0;
    // SAFETY: the environment exists until this returns.
    unsafe {
        sys::napi_adjust_external_memory(env, -handle.reported, &mut total);
        if let Some(reference) = reference {
            sys::napi_delete_reference(env, reference);
        }
    }
    let _ = HANDLE_BYTES.try_with(|held| {
        let (bytes, limit) = (held.get().0 - handle.reported, held.get().1);
        held.set((bytes, limit.min(next_sweep(bytes))));
    });
}

/// Frees the tensors of objects that have been garbage-collected. A loop that never yields to Node's event loop needs this:
/// Node calls [`finalize`] only from the event loop.
#[cold]
fn sweep_collected(env: sys::napi_env) {
    let mut freed = 0;
    LIVE.with_borrow(|live| {
        for (&address, &reference) in live {
            let (mut scope, mut object) = (null_mut(), null_mut());
            // SAFETY: references of this environment; a handle lives until `finalize` removes it from the table.
            unsafe {
                sys::napi_open_handle_scope(env, &mut scope);
                let status = sys::napi_get_reference_value(env, reference, &mut object);
                sys::napi_close_handle_scope(env, scope);
                if status == sys::Status::napi_ok && object.is_null() {
                    let handle = &mut *(address as *mut Handle);
                    if handle.tensor.take().is_some() {
                        freed += handle.reported - OVERHEAD;
                        handle.reported = OVERHEAD;
                    }
                }
            }
        }
    });
    let (held, mut total) = (HANDLE_BYTES.get().0 - freed, 0);
    // SAFETY: the environment of this call.
    unsafe { sys::napi_adjust_external_memory(env, -freed, &mut total) };
    HANDLE_BYTES.set((held, next_sweep(held)));
}

/// Returns at how many bytes to search for dead handles next. It is at least twice `held`, so the searches take a constant
/// share of the time.
fn next_sweep(held: i64) -> i64 {
    held + held.max(SWEEP_STEP)
}

/// Makes a new object for a tensor.
pub fn make(env: sys::napi_env, tensor: Tensor) -> napi::Result<sys::napi_value> {
    let (mut class, mut object) = (null_mut(), null_mut());
    UNDER_CONSTRUCTION.set(Some(tensor));
    // SAFETY: the class of this environment.
    let status = unsafe {
        sys::napi_get_reference_value(env, CLASS.get(), &mut class);
        sys::napi_new_instance(env, class, 0, null_mut(), &mut object)
    };
    UNDER_CONSTRUCTION.set(None);
    check_status!(status, "a Tensor can't be made")?;
    Ok(object)
}

/// Returns the handle of a value, or `None` if the value is not an object of the class.
fn live(env: sys::napi_env, value: sys::napi_value) -> Option<*mut Handle> {
    let mut data = null_mut();
    // SAFETY: the environment of this call and a value of it.
    let status = unsafe { sys::napi_unwrap(env, value, &mut data) };
    let found = status == sys::Status::napi_ok && LIVE.with_borrow(|live| live.contains_key(&(data as usize)));
    found.then_some(data.cast())
}

/// Returns the tensor of a value, or `None` if the value is not a tensor or was disposed.
pub fn tensor_of(env: sys::napi_env, value: sys::napi_value) -> Option<Tensor> {
    // SAFETY: every address in the table is a handle, and only this thread uses it.
    live(env, value).and_then(|handle| unsafe { (*handle).tensor.clone() })
}

/// A tensor as an argument or a result.
pub struct Value(pub Tensor);

impl FromNapiValue for Value {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Value> {
        match tensor_of(env, value) {
            Some(tensor) => Ok(Value(tensor)),
            None if live(env, value).is_some() => Err(refused(env, "expected a Tensor; this one was disposed")),
            None => Err(refused(env, &format!("expected a Tensor, not {}", named(env, value)))),
        }
    }
}

impl ToNapiValue for Value {
    unsafe fn to_napi_value(env: sys::napi_env, value: Value) -> napi::Result<sys::napi_value> {
        make(env, value.0)
    }
}

/// Returns the dtype of this name.
pub fn dtype(name: &str) -> Result<DType> {
    name.parse()
}

/// `Tensor.zeros`.
#[napi(skip_typescript)]
pub fn tensor_zeros(env: Env, dtype: Text, dims: Dims) -> napi::Result<Value> {
    guard(env, || Ok(Value(Tensor::zeros(self::dtype(&dtype)?, &dims)?)))
}

/// `Tensor.fromBytes`.
#[napi(skip_typescript)]
pub fn tensor_from_bytes(env: Env, bytes: Array, dtype: Text, dims: Dims) -> napi::Result<Value> {
    guard(env, || Ok(Value(Tensor::from_bytes(bytes.bytes(), self::dtype(&dtype)?, &dims)?)))
}

/// `tensor.dispose()`. A second call does nothing.
#[napi(skip_typescript)]
pub fn tensor_dispose(env: Env, tensor: Unknown<'_>) -> napi::Result<()> {
    let Some(handle) = live(env.raw(), tensor.raw()) else {
        return Err(refused(env.raw(), &format!("expected a Tensor, not {}", named(env.raw(), tensor.raw()))));
    };
    // SAFETY: as in `tensor_of`; the reference ends before other code runs.
    let handle = unsafe { &mut *handle };
    if handle.tensor.take().is_some() {
        let (freed, mut total) = (handle.reported - OVERHEAD, 0);
        handle.reported = OVERHEAD;
        HANDLE_BYTES.set((HANDLE_BYTES.get().0 - freed, HANDLE_BYTES.get().1));
        // SAFETY: the environment of this call.
        unsafe { sys::napi_adjust_external_memory(env.raw(), -freed, &mut total) };
    }
    Ok(())
}

/// `tensor.reshape`.
#[napi(skip_typescript)]
pub fn tensor_reshape(env: Env, tensor: Value, dims: Dims) -> napi::Result<Value> {
    guard(env, || Ok(Value(tensor.0.reshape(&dims)?)))
}

/// `tensor.toCpu()`.
#[napi(skip_typescript)]
pub fn tensor_to_cpu(env: Env, tensor: Value) -> napi::Result<Value> {
    guard(env, || Ok(Value(tensor.0.to_cpu()?)))
}

/// `tensor.places`.
#[napi(skip_typescript)]
pub fn tensor_places(tensor: Value) -> Vec<String> {
    tensor.0.places()
}

/// `tensor.dtype`.
#[napi(skip_typescript)]
pub fn tensor_dtype(tensor: Value) -> &'static str {
    tensor.0.dtype().name()
}

/// `tensor.dims`.
#[napi(skip_typescript)]
pub fn tensor_dims(tensor: Value) -> Vec<f64> {
    tensor.0.dims().iter().map(|&dim| dim as f64).collect()
}

/// `tensor.length`.
#[napi(skip_typescript)]
pub fn tensor_length(tensor: Value) -> f64 {
    tensor.0.len() as f64
}

/// `tensor.byteLength`.
#[napi(skip_typescript)]
pub fn tensor_byte_length(tensor: Value) -> f64 {
    tensor.0.byte_len() as f64
}

/// `tensor.toArray()`.
#[napi(skip_typescript)]
pub fn tensor_to_array(env: Env, tensor: Value) -> napi::Result<Unknown<'static>> {
    array_of(env, tensor.0.dtype(), guard(env, || tensor.0.host_bytes())?)
}

/// `tensor.toBytes()`.
#[napi(skip_typescript)]
pub fn tensor_to_bytes(env: Env, tensor: Value) -> napi::Result<Unknown<'static>> {
    bytes_of(env, guard(env, || tensor.0.host_bytes())?)
}

/// `tensor.view()`.
#[napi(skip_typescript)]
pub fn tensor_view(env: Env, tensor: Value) -> napi::Result<Unknown<'static>> {
    // GPU copies would not see writes through the view, so they are dropped and the tensor stays in host memory.
    let data = guard(env, || tensor.0.stay_on_host().and_then(|()| tensor.0.host_bytes()))?;
    let (pointer, bytes, dtype) = (data.as_ptr(), data.len(), tensor.0.dtype());
    external(env, pointer.cast_mut(), bytes, Some(dtype), tensor.0)
}

/// `tensor.toString()`.
#[napi(skip_typescript)]
pub fn tensor_to_string(tensor: Value) -> String {
    format!("{:?}", tensor.0)
}

/// Returns, for this module's tests, the number of tensor objects, their bytes, and all bytes reported to V8.
#[napi(skip_typescript)]
pub fn statistics(env: Env) -> napi::Result<Vec<f64>> {
    let told = env.adjust_external_memory(0)?;
    Ok(vec![LIVE.with_borrow(HandleTable::len) as f64, HANDLE_BYTES.get().0 as f64, told as f64])
}
