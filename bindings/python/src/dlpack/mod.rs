//! DLPack: exchanges tensors and CUDA buffers with other libraries without a copy. The structs are those of dlpack.h
//! 1.1.

mod export;
mod import;

pub use export::{Request, device_of, export_buffer, export_tensor};
pub use import::{import, import_on, supports_dlpack, tensor};

use adead::DType;
use std::ffi::{CStr, c_void};

/// Host memory.
pub const CPU: (i32, i32) = (1, 0);
/// CUDA memory.
const CUDA: i32 = 2;
/// Pinned host memory.
const CUDA_HOST: i32 = 3;

/// The memory is read-only.
const READ_ONLY: u64 = 1;
/// The memory was copied for the consumer.
const IS_COPIED: u64 = 2;

const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// The version that this module writes and asks for.
const VERSION: Version = Version { major: 1, minor: 1 };

/// DLDevice.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Device {
    kind: i32,
    number: i32,
}

/// DLPackVersion.
#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

/// DLDataType.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// DLTensor.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// DLManagedTensor.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// DLManagedTensorVersioned.
#[repr(C)]
struct ManagedVersioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

// The layout of dlpack.h.
const _: () = assert!(std::mem::offset_of!(DlTensor, ndim) == 16 && size_of::<DlTensor>() == 48);
const _: () = assert!(std::mem::offset_of!(Managed, context) == 48 && size_of::<Managed>() == 64);
const _: () = assert!(std::mem::offset_of!(ManagedVersioned, tensor) == 32 && size_of::<ManagedVersioned>() == 80);

fn type_of(dtype: DType) -> DataType {
    let code = match dtype {
        DType::I32 | DType::I64 => 0,
        DType::U32 | DType::U8 => 1,
        DType::F32 | DType::F16 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::Bool => 6,
    };
    DataType { code, bits: dtype.size() as u8 * 8, lanes: 1 }
}

fn dtype_of(found: DataType) -> Option<DType> {
    DType::ALL.into_iter().find(|&dtype| type_of(dtype) == found)
}
