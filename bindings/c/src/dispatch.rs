//! Dispatch: the device that an operation runs on, and the reason.

use crate::call::asked;
use crate::context::adead_context;
use crate::op::{adead_attrs, adead_op, operation};
use crate::pointers::{array, fail, fixed, growing, optional_text, reference, report};
use crate::status::{Names, adead_status, guard, texts};
use crate::tensor::adead_tensor;
use adead_core::dispatch::Estimate;
use adead_core::{Attrs, Family, Result, Tensor};
use std::ffi::c_char;

/// A group of operations with similar costs, one of `ADEAD_FAMILY_…`.
pub type adead_family = i32;

/// The most devices that an explanation lists.
pub const ADEAD_MAX_ESTIMATES: usize = 16;

/// No threshold: the cost model decides.
pub const ADEAD_NO_THRESHOLD: usize = usize::MAX;

/// A device's estimated time for an operation, in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct adead_estimate {
    /// The time of the computation.
    pub compute_ns: f64,
    /// The time to start the computation.
    pub launch_ns: f64,
    /// The time to move operands to the device and the result back.
    pub transfer_ns: f64,
    /// The sum of these.
    pub total_ns: f64,
    /// Whether operands and result fit in the device's memory: 0 or 1.
    pub fits: i32,
    /// Always 0.
    pub reserved: i32,
}

/// A choice of device, its reason, and every device's estimate. The caller sets `struct_size`. Texts end with NUL and
/// are cut if they are too long.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_explanation {
    /// `sizeof(adead_explanation)`.
    pub struct_size: usize,
    /// The chosen device, by its index for `adead_context_device_at`.
    pub device: usize,
    /// Elements of the largest operand or result. The threshold is compared with this number.
    pub elements: usize,
    /// Floating-point operations; a multiply-add counts as two.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
    /// The family whose costs were used.
    pub family: adead_family,
    /// The number of `estimates`, in the order of the devices.
    pub estimate_count: u32,
    /// Each device's estimate.
    pub estimates: [adead_estimate; ADEAD_MAX_ESTIMATES],
    /// The name that opens the chosen device: "cpu", "cuda:0".
    pub id: [c_char; 32],
    /// Why it was chosen.
    pub reason: [c_char; 256],
    /// If the operation is divided: the rows of its result for each device, in the order of the devices. Else 0.
    pub rows: [u64; ADEAD_MAX_ESTIMATES],
    /// Nanoseconds until all devices have finished their part; 0 if the operation is not divided.
    pub split_ns: f64,
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_explanation, 48 + 40 * ADEAD_MAX_ESTIMATES + 32 + 256);

fn family(code: adead_family) -> Result<Family> {
    match u32::try_from(code).ok().and_then(Family::from_code) {
        Some(family) => Ok(family),
        None => fail!(InvalidArgument, "family is {code}; it must be one of ADEAD_FAMILY_…"),
    }
}

/// Returns the name of a family, such as "matmul", or NULL for an unknown number. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn adead_family_name(family: adead_family) -> *const c_char {
    static NAMES: Names = Names::new();
    NAMES.get(usize::try_from(family).ok(), &mut Family::ALL.iter().map(|family| family.name()))
}

/// Chooses the device for work on `elements` elements in host memory, when only this number is known. Returns the
/// device's index for `adead_context_device_at`. The call takes a few nanoseconds. Results are the same on every
/// device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_select(context: *const adead_context, elements: usize, out: *mut usize) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { asked(context, "context", out, |context| Ok(context.0.dispatcher().select(elements))) }
}

/// Explains on which device `adead_op_run` would run with the same arguments, why, and how long each device would take.
/// Runs nothing. The caller sets `out->struct_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_explain(
    context: *const adead_context,
    op: adead_op,
    operands: *const *const adead_tensor,
    count: usize,
    attrs: *const adead_attrs,
    out: *mut adead_explanation,
) -> adead_status {
    guard(|| {
        texts()?;
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let context = reference(context, "context")?;
            let attrs = attrs.as_ref().map_or(Attrs::default(), |attrs| attrs.0);
            let operands = array(operands, count, "operands")?;
            let operands: Vec<Option<&Tensor>> =
                operands.iter().map(|operand| operand.as_ref().map(|tensor| &tensor.0)).collect();
            report(out, "out", |struct_size| {
                let it = context.0.explain(operation(op)?, &attrs, &operands)?;
                let mut estimates = [adead_estimate::default(); ADEAD_MAX_ESTIMATES];
                for (to, from) in estimates.iter_mut().zip(&it.estimates) {
                    let Estimate { compute_ns, launch_ns, transfer_ns, fits, .. } = *from;
                    let (total_ns, fits) = (from.total_ns(), i32::from(fits));
                    *to = adead_estimate { compute_ns, launch_ns, transfer_ns, total_ns, fits, reserved: 0 };
                }
                let mut rows = [0; ADEAD_MAX_ESTIMATES];
                let mut split_ns = 0.0;
                if let Some(split) = &it.split {
                    split_ns = split.ns;
                    rows.iter_mut().zip(&split.rows).for_each(|(to, &from)| *to = from as u64);
                }
                Ok(adead_explanation {
                    struct_size,
                    device: it.device,
                    elements: it.elements,
                    flops: it.cost.flops,
                    bytes: it.cost.bytes,
                    family: it.family as adead_family,
                    estimate_count: it.estimates.len().min(ADEAD_MAX_ESTIMATES) as u32,
                    estimates,
                    id: fixed(it.id()),
                    reason: fixed(&it.reason),
                    rows,
                    split_ns,
                })
            })
        }
    })
}

/// Sets the number of elements from which operations of a family run on a GPU; smaller ones run on the CPU. With
/// `ADEAD_NO_THRESHOLD` the cost model decides. Has no effect without a GPU. Other threads may use the context
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_set_threshold(
    context: *const adead_context,
    family: adead_family,
    elements: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let context = unsafe { reference(context, "context")? };
        let elements = Some(elements).filter(|&elements| elements != ADEAD_NO_THRESHOLD);
        context.0.dispatcher().set_threshold(self::family(family)?, elements);
        Ok(())
    })
}

/// Runs everything on one of the context's devices by its id ("cpu"), whatever the cost. NULL lets the cost model
/// decide again. `invalid_argument` for an id that the context does not have. Other threads may use the context
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_context_force(context: *const adead_context, device: *const c_char) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, device) = unsafe { (reference(context, "context")?, optional_text(device, "device")?) };
        context.0.dispatcher().force(device)
    })
}
