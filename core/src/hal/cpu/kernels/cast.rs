//! Conversions between element types, and the widening and narrowing around every kernel.

use super::{Call, Exec, Shared, chunks};
use crate::contract::{bf16_from_f32, bf16_to_f32, canonical, f16_from_f32, f16_to_f32};
use crate::dtype::DType;
use crate::error::Result;

/// Elements that are worth handing to another thread.
const GRAIN: usize = 32 * 1024;

/// An element type as Rust has it.
trait Element: Copy {
    fn to_f32(self) -> f32;
    fn from_f32(x: f32) -> Self;
    /// Integers only; sign or zero extended.
    fn to_i64(self) -> i64;
    /// Integers only; low bits.
    fn from_i64(x: i64) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => { $(
        impl Element for $type {
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                // Truncates, saturates, and takes NaN to 0.
                x as $type
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn from_i64(x: i64) -> Self {
                x as $type
            }
        }
    )* };
}
integers!(i32 u32 i64);

impl Element for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline(always)]
    fn from_f32(x: f32) -> f32 {
        canonical(x)
    }
    fn to_i64(self) -> i64 {
        unreachable!("floats convert through f32")
    }
    fn from_i64(x: i64) -> f32 {
        x as f32
    }
}

macro_rules! halves {
    ($($name:ident $widen:ident $narrow:ident;)*) => { $(
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        struct $name(u16);

        impl Element for $name {
            #[inline(always)]
            fn to_f32(self) -> f32 {
                $widen(self.0)
            }
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                $name($narrow(x))
            }
            fn to_i64(self) -> i64 {
                unreachable!("floats convert through f32")
            }
            #[inline(always)]
            fn from_i64(x: i64) -> Self {
                $name($narrow(x as f32))
            }
        }
    )* };
}
halves! {
    F16 f16_to_f32 f16_from_f32;
    BF16 bf16_to_f32 bf16_from_f32;
}

/// Applies `f` to `n` elements, in chunks.
fn convert<A, B>(exec: &Exec<'_>, x: *const u8, y: *mut u8, n: usize, f: impl Fn(A) -> B + Sync) {
    let (x, y) = (Shared(x.cast_mut().cast::<A>()), Shared(y.cast::<B>()));
    chunks(exec, n, GRAIN, |start, end| {
        for i in start..end {
            // SAFETY: both cover n elements of their types, aligned as the views promise; chunks are disjoint.
            unsafe { y.get().add(i).write(f(x.get().add(i).read())) };
        }
    });
}

/// Widens stored halves to f32.
pub(super) fn widen(exec: &Exec<'_>, from: DType, x: *const u8, y: *mut f32, n: usize) {
    match from {
        DType::F16 => convert(exec, x, y.cast(), n, F16::to_f32),
        _ => convert(exec, x, y.cast(), n, BF16::to_f32),
    }
}

/// Narrows f32 to stored halves.
pub(super) fn narrow(exec: &Exec<'_>, to: DType, x: *const f32, y: *mut u8, n: usize) {
    match to {
        DType::F16 => convert(exec, x.cast(), y, n, F16::from_f32),
        _ => convert(exec, x.cast(), y, n, BF16::from_f32),
    }
}

/// `cast` of the op table.
pub(super) fn cast(exec: &Exec<'_>, call: &mut Call<'_, '_>) -> Result<()> {
    let (from, to, n) = (call.meta(0).dtype, call.output.dtype(), call.output.shape().elements());
    let (x, y) = (call.f32(0)?.cast::<u8>(), call.output.host()?);
    if from == to {
        // SAFETY: both cover n elements and don't overlap.
        unsafe { y.copy_from_nonoverlapping(x, n * from.size()) };
        return Ok(());
    }
    macro_rules! targets {
        ($from:ty, $to_type:ident => $f:expr) => {{
            type A = $from;
            match to {
                DType::F32 => {
                    type $to_type = f32;
                    convert(exec, x, y, n, $f)
                }
                DType::F16 => {
                    type $to_type = F16;
                    convert(exec, x, y, n, $f)
                }
                DType::BF16 => {
                    type $to_type = BF16;
                    convert(exec, x, y, n, $f)
                }
                DType::I32 => {
                    type $to_type = i32;
                    convert(exec, x, y, n, $f)
                }
                DType::I64 => {
                    type $to_type = i64;
                    convert(exec, x, y, n, $f)
                }
                DType::U32 => {
                    type $to_type = u32;
                    convert(exec, x, y, n, $f)
                }
            }
        }};
    }
    match from {
        DType::F32 => targets!(f32, B => |x: A| B::from_f32(x.to_f32())),
        DType::F16 => targets!(F16, B => |x: A| B::from_f32(x.to_f32())),
        DType::BF16 => targets!(BF16, B => |x: A| B::from_f32(x.to_f32())),
        DType::I32 => targets!(i32, B => |x: A| B::from_i64(x.to_i64())),
        DType::I64 => targets!(i64, B => |x: A| B::from_i64(x.to_i64())),
        DType::U32 => targets!(u32, B => |x: A| B::from_i64(x.to_i64())),
    }
    Ok(())
}
