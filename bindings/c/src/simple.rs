//! The simple API: functions on the caller's own f32 arrays, without handles and without copies.

use crate::pointers::{Out, fail, null, text};
use crate::status::{adead_status, guard};
use adead_core::hal::cpu::HostBuffer;
use adead_core::{Attrs, Command, Context, DType, Meta, Op, Result, View, ViewMut};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The simple API computes on the CPU.
pub const ADEAD_BACKEND_CPU: c_int = 0;
/// The simple API computes on a CUDA GPU.
pub const ADEAD_BACKEND_CUDA: c_int = 1;
/// The simple API computes on a Vulkan GPU.
pub const ADEAD_BACKEND_VULKAN: c_int = 2;
/// The simple API computes on the best device, or on the one that `ADEAD_DEVICE` names.
pub const ADEAD_BACKEND_AUTO: c_int = -1;

/// The context that calls use now; null before `adead_init` and after `adead_shutdown`.
static ACTIVE: AtomicPtr<Context> = AtomicPtr::new(null_mut());

/// The context of each backend, from AUTO. An opened context stays open, because another thread's `adead_shutdown` may
/// overtake a call that uses it.
static OPENED: Mutex<[Option<&'static Context>; 4]> = Mutex::new([None; 4]);

/// The live blocks of `adead_alloc`.
#[derive(Default)]
struct Allocated {
    by_address: HashMap<usize, Block>,
    given: u64,
}

/// A block of memory, with its number among all allocations.
struct Block {
    number: u64,
    memory: HostBuffer,
}

static ALLOCATED: LazyLock<Mutex<Allocated>> = LazyLock::new(Mutex::default);

fn allocated() -> MutexGuard<'static, Allocated> {
    ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
fn active() -> Result<&'static Context> {
    // SAFETY: the pointer is not null and points to a context that is never freed.
    match unsafe { ACTIVE.load(Ordering::Acquire).as_ref() } {
        Some(context) => Ok(context),
        None => start(ADEAD_BACKEND_AUTO),
    }
}

#[cold]
fn start(backend: c_int) -> Result<&'static Context> {
    let context = context(backend)?;
    ACTIVE.store(std::ptr::from_ref(context).cast_mut(), Ordering::Release);
    Ok(context)
}

/// Returns the context of a backend, and opens it on the first call.
#[inline(never)]
fn context(backend: c_int) -> Result<&'static Context> {
    let open = match backend {
        ADEAD_BACKEND_AUTO => Context::auto,
        ADEAD_BACKEND_CPU => || Context::open("cpu"),
        ADEAD_BACKEND_CUDA => || Context::open("cuda"),
        ADEAD_BACKEND_VULKAN => || Context::open("vulkan"),
        _ => fail!(InvalidArgument, "backend is {backend}; it must be 0 (CPU), 1 (CUDA), 2 (Vulkan) or -1 (auto)"),
    };
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let slot = &mut opened[(backend - ADEAD_BACKEND_AUTO) as usize];
    Ok(match *slot {
        Some(context) => context,
        None => slot.insert(Box::leak(Box::new(open()?))),
    })
}

#[inline]
fn dimension(value: c_int, name: &str) -> Result<usize> {
    usize::try_from(value).or_else(|_| fail!(InvalidArgument, "{name} is {value}; it can't be negative"))
}

/// Returns the address of a matrix. NULL is allowed only if the matrix has no elements.
#[inline]
fn address<T>(data: *const f32, meta: &Meta, name: &str) -> Result<NonNull<T>> {
    if !data.is_aligned() {
        fail!(InvalidArgument, "{name} is at {data:p}; the address of floats must be a multiple of 4");
    }
    match NonNull::new(data.cast_mut()) {
        Some(data) => Ok(data.cast()),
        None if meta.shape.elements() == 0 => Ok(NonNull::<f32>::dangling().cast()),
        None => Err(null(name)),
    }
}

/// # Safety
/// `data` is NULL or points to as many f32 as `meta` says, which nothing writes during `'a`.
#[inline]
unsafe fn input<'a>(data: *const f32, meta: &'a Meta, name: &str) -> Result<Option<View<'a>>> {
    let data = address(data, meta, name)?;
    // SAFETY: aligned, and the caller vouches for the elements.
    Ok(Some(unsafe { View::from_raw(data, meta) }))
}

/// # Safety
/// `data` is NULL or points to as many f32 as `meta` says, which nothing else touches during `'a`.
#[inline]
unsafe fn output<'a>(data: *mut f32, meta: &'a Meta, name: &str) -> Result<ViewMut<'a>> {
    let data = address(data, meta, name)?;
    // SAFETY: aligned, and the caller vouches for the elements.
    Ok(unsafe { ViewMut::from_raw(data, meta) })
}

#[inline]
fn execute(op: Op, inputs: &[Option<View<'_>>], output: ViewMut<'_>) -> Result<()> {
    active()?.execute(&mut Command::lent(op, &Attrs::DEFAULT, inputs, output)?)
}

/// Starts the simple API on a backend: 0 CPU, 1 CUDA, 2 Vulkan, -1 the best device or the one that `ADEAD_DEVICE`
/// names. A second call with another backend switches to that one. If the first call is another function of the simple
/// API, it starts the API as -1 does. `backend_unavailable` if this machine or this version does not have the backend.
#[unsafe(no_mangle)]
pub extern "C" fn adead_init(backend: c_int) -> adead_status {
    guard(|| start(backend).map(|_| ()))
}

/// Ends the simple API and frees the blocks of `adead_alloc` that are still live. The API may be started again.
#[unsafe(no_mangle)]
pub extern "C" fn adead_shutdown() -> adead_status {
    guard(|| {
        ACTIVE.store(null_mut(), Ordering::Release);
        let left = std::mem::take(&mut allocated().by_address);
        drop(left);
        Ok(())
    })
}

/// Allocates `bytes` zeroed bytes for the simple API, aligned to 64 bytes. The functions also accept any other memory
/// of the caller. `out_of_memory` if the system refuses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_alloc(bytes: usize, out: *mut *mut c_void) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { Out::new(out, "out") }?;
        active()?;
        let memory = HostBuffer::zeroed(bytes)?;
        let pointer = memory.pointer().as_ptr();
        let mut allocated = allocated();
        allocated.given += 1;
        let number = allocated.given;
        allocated.by_address.insert(pointer as usize, Block { number, memory });
        out.write(pointer.cast());
        Ok(())
    })
}

/// Frees memory that `adead_alloc` returned; NULL is allowed. `invalid_argument`, and nothing changes, for any other
/// pointer and for freed memory.
#[unsafe(no_mangle)]
pub extern "C" fn adead_free(pointer: *mut c_void) -> adead_status {
    guard(|| {
        if pointer.is_null() {
            return Ok(());
        }
        let taken = allocated().by_address.remove(&(pointer as usize));
        match taken {
            Some(_) => Ok(()),
            None => fail!(InvalidArgument, "pointer {pointer:p} is not from adead_alloc, or it was freed before"),
        }
    })
}

/// Computes `result = a·b`: a is `[m, k]`, b `[k, n]`, result `[m, n]`, row-major. The result must not overlap a or b.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_matmul(
    a: *const f32,
    b: *const f32,
    result: *mut f32,
    m: c_int,
    n: c_int,
    k: c_int,
) -> adead_status {
    guard(|| {
        let (m, n, k) = (dimension(m, "m")?, dimension(n, "n")?, dimension(k, "k")?);
        // SAFETY: the caller vouches for the arrays.
        if unsafe { active()?.multiply_small(a, b, result, [m, n, k]) } {
            return Ok(());
        }
        let (mut of_a, mut of_b, mut of_result) = (Meta::scalar(), Meta::scalar(), Meta::scalar());
        of_a.set(DType::F32, &[m, k])?;
        of_b.set(DType::F32, &[k, n])?;
        of_result.set(DType::F32, &[m, n])?;
        // SAFETY: the caller vouches for the arrays.
        unsafe {
            let inputs = [input(a, &of_a, "a")?, input(b, &of_b, "b")?];
            execute(Op::Matmul, &inputs, output(result, &of_result, "result")?)
        }
    })
}

/// Computes the softmax of every row of a row-major `[rows, cols]` matrix. `out` may equal `in`, but must not overlap
/// it otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_softmax(r#in: *const f32, out: *mut f32, rows: c_int, cols: c_int) -> adead_status {
    guard(|| {
        let mut meta = Meta::scalar();
        meta.set(DType::F32, &[dimension(rows, "rows")?, dimension(cols, "cols")?])?;
        // SAFETY: the caller vouches for the arrays.
        unsafe { execute(Op::Softmax, &[input(r#in, &meta, "in")?], output(out, &meta, "out")?) }
    })
}

/// Computes `max(x, 0)` of `size` values; NaN stays NaN. `out` may equal `in`, but must not overlap it otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_relu(r#in: *const f32, out: *mut f32, size: c_int) -> adead_status {
    guard(|| {
        let mut meta = Meta::scalar();
        meta.set(DType::F32, &[dimension(size, "size")?])?;
        // SAFETY: the caller vouches for the arrays.
        unsafe { execute(Op::Relu, &[input(r#in, &meta, "in")?], output(out, &meta, "out")?) }
    })
}

/// Starts the simple API on the best Vulkan GPU, as `adead_init(2)` does. `backend_unavailable` if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn adead_vulkan_init() -> adead_status {
    guard(|| start(ADEAD_BACKEND_VULKAN).map(|_| ()))
}

/// Runs a compute shader on the best Vulkan GPU over `x`·`y`·`z` workgroups, and returns when it has finished. `shader`
/// names the file with its SPIR-V. Its buffers, by set and binding, are the live blocks of `adead_alloc` in the order
/// of allocation. The call copies them to the GPU first, and copies back those that the shader may write. For push
/// constants and repeated work use the object API: `adead_kernel_load_spirv`, `adead_dispatch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_vulkan_compute(shader: *const c_char, x: c_int, y: c_int, z: c_int) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the text.
        let shader = unsafe { text(shader, "shader") }?;
        let mut groups = [0; 3];
        for ((to, given), name) in groups.iter_mut().zip([x, y, z]).zip(["x", "y", "z"]) {
            *to = match u32::try_from(given) {
                Ok(given @ 1..) => given,
                _ => fail!(InvalidArgument, "{name} is {given}; it must be at least 1"),
            };
        }
        compute(shader, groups)
    })
}

fn compute(shader: &str, groups: [u32; 3]) -> Result<()> {
    let gpu = context(ADEAD_BACKEND_VULKAN)?;
    let kernel = gpu.load_spirv(shader)?;
    let parameters = kernel.parameters();
    // Held until the end, so that no thread frees memory that this call copies.
    let allocated = allocated();
    let blocks = &allocated.by_address;
    if blocks.len() < parameters.len() {
        let count = parameters.len();
        fail!(InvalidArgument, "{shader} takes {count} buffers; adead_alloc gave {} that are not freed", blocks.len());
    }
    let (mut memories, mut buffers, mut last) = (Vec::new(), Vec::new(), 0);
    for _ in parameters {
        let mut next: Option<&Block> = None;
        for block in blocks.values() {
            if block.number > last && next.is_none_or(|next| block.number < next.number) {
                next = Some(block);
            }
        }
        let Some(Block { number, memory }) = next else { break };
        last = *number;
        let bytes = memory.pointer().as_ptr();
        // SAFETY: the block is not freed while the lock is held, and its owner waits for this call.
        buffers.push(gpu.buffer_of_bytes(unsafe { slice::from_raw_parts(bytes, memory.len()) })?);
        memories.push(bytes);
    }
    let mut operands = Vec::new();
    for buffer in &buffers {
        operands.push(buffer);
    }
    gpu.dispatch(&kernel, &operands, groups)?;
    gpu.wait()?;
    for ((parameter, buffer), bytes) in parameters.iter().zip(&buffers).zip(memories) {
        if !parameter.readonly {
            // SAFETY: as above.
            buffer.read_bytes(0, unsafe { slice::from_raw_parts_mut(bytes, buffer.size()) })?;
        }
    }
    Ok(())
}
