//! Compares the driver's functions with those of the crate cudarc, which are generated from cuda.h: the compiler
//! compares the types. cudarc itself panics without a driver, so no code of it runs.

use super::*;
use cudarc::driver::sys;
use std::ffi::{c_int, c_ulonglong};

/// The type in adead's table for a type of cuda.h.
pub trait Is<Ours> {}

impl<T> Is<T> for T {}

macro_rules! is {
    ($($theirs:ty => $ours:ty,)*) => { $(impl Is<$ours> for $theirs {})* };
}

is! {
    sys::CUresult => c_int,
    sys::CUdevice_attribute => c_int,
    sys::CUfunction_attribute => c_int,
    sys::CUstreamCaptureMode => c_int,
    *mut sys::CUjit_option => *mut c_int,
    *mut sys::CUuuid => *mut [u8; 16],
    *const sys::CUlaunchConfig => *const api::LaunchConfig,
    sys::CUcontext => Handle,
    sys::CUevent => Handle,
    sys::CUfunction => Handle,
    sys::CUgraph => Handle,
    sys::CUgraphExec => Handle,
    sys::CUmodule => Handle,
    sys::CUstream => Handle,
    *mut sys::CUcontext => *mut Handle,
    *mut sys::CUevent => *mut Handle,
    *mut sys::CUfunction => *mut Handle,
    *mut sys::CUgraph => *mut Handle,
    *mut sys::CUgraphExec => *mut Handle,
    *mut sys::CUmodule => *mut Handle,
    *mut sys::CUstream => *mut Handle,
}

/// A function of cudarc with the type of one in the table.
pub trait Same<Ours> {}

macro_rules! functions {
    ($(($($theirs:ident $ours:ident),*))*) => {
        $(impl<R: Is<c_int>, $($theirs: Is<$ours>, $ours),*> Same<unsafe extern "system" fn($($ours),*) -> c_int>
            for unsafe fn($($theirs),*) -> R {})*
    };
}

functions! {
    (A X1)
    (A X1, B X2)
    (A X1, B X2, C X3)
    (A X1, B X2, C X3, D X4)
    (A X1, B X2, C X3, D X4, E X5)
    (A X1, B X2, C X3, D X4, E X5, F X6)
    (A X1, B X2, C X3, D X4, E X5, F X6, G X7, H X8, I X9, J X10, K X11)
}

/// Returns whether the table has the function. The compiler has checked its type.
pub fn same<Ours, Theirs: Same<Ours>>(ours: Option<Ours>, _: Theirs) -> bool {
    ours.is_some()
}

/// Stands for any type, for the compiler to infer.
macro_rules! any {
    ($type:ty) => {
        _
    };
}
pub(in crate::hal::cuda) use any;

#[test]
fn the_tables_signatures_are_cudas() {
    let mut table = None;
    let _fake = Fake::with(&[], |api| table = Some(*api));
    assert_eq!(table.unwrap().compare(), 54);
    // The table writes these types as numbers.
    assert_eq!((size_of::<sys::CUdeviceptr>(), size_of::<c_ulonglong>()), (8, 8));
    assert_eq!((size_of::<sys::CUresult>(), size_of::<sys::CUuuid>()), (4, 16));
    use api::attribute as a;
    use sys::CUdevice_attribute::*;
    let attributes = [
        (a::MAX_THREADS, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        (a::MAX_BLOCK[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
        (a::MAX_GRID[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
        (a::SHARED_MEMORY, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        (a::MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        (a::INTEGRATED, CU_DEVICE_ATTRIBUTE_INTEGRATED),
        (a::MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        (a::MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        (a::SHARED_MEMORY_OF_UNIT, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        (a::SHARED_MEMORY_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    ];
    attributes.into_iter().for_each(|(ours, theirs)| assert_eq!(ours, theirs as i32, "{theirs:?}"));
    use api::code as c;
    use sys::CUresult::*;
    let results = [
        (c::OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY),
        (c::INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE),
        (c::NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU),
        (c::INVALID_PTX, CUDA_ERROR_INVALID_PTX),
        (c::UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
        (c::NOT_FOUND, CUDA_ERROR_NOT_FOUND),
        (c::NOT_READY, CUDA_ERROR_NOT_READY),
    ];
    results.into_iter().for_each(|(ours, theirs)| assert_eq!(ours, theirs as i32, "{theirs:?}"));
}
