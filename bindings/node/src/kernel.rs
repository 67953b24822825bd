//! User kernels.

use adead::{Result, gpu};
use adead_node_support::args::{List, Text, Word, kind};
use adead_node_support::array::Array;
use napi::bindgen_prelude::FromNapiValue;
use napi::{ValueType, sys};
use napi_derive::napi;
use std::collections::HashMap;

/// Options for making a kernel from a module.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct PipelineOptions {
    /// The entry point. The default is `main` for SPIR-V, or else the first one.
    #[napi(ts_type = "string")]
    pub entry: Option<Text>,
    /// Specialization constants by id: integers and booleans as they are, f32 as their bits.
    #[napi(ts_type = "Record<number, number>")]
    pub constants: Option<HashMap<String, Word>>,
    /// Threads of a workgroup in x, y, z, for a CUDA kernel whose module does not fix them.
    #[napi(ts_type = "[number, number, number]")]
    pub workgroup: Option<List<Word>>,
}

impl PipelineOptions {
    /// Converts the options to the core's.
    pub fn options(options: Option<PipelineOptions>) -> Result<gpu::PipelineOptions> {
        let PipelineOptions { entry, constants, workgroup } = options.unwrap_or_default();
        let mut list = Vec::new();
        for (id, value) in constants.unwrap_or_default() {
            match id.parse() {
                Ok(id) => list.push((id, value.0)),
                Err(_) => {
                    adead_node_support::error::fail!(
                        InvalidArgument,
                        "'{id}' is not the id of a specialization constant"
                    )
                }
            }
        }
        list.sort_unstable();
        let workgroup = workgroup.map(|threads| groups(&threads)).transpose()?;
        Ok(gpu::PipelineOptions { entry: entry.map(String::from), constants: list, workgroup })
    }
}

/// Returns exactly three numbers, for x, y and z.
pub fn groups(numbers: &List<Word>) -> Result<[u32; 3]> {
    let numbers: Vec<u32> = numbers.0.iter().map(|number| number.0).collect();
    match <[u32; 3]>::try_from(&*numbers) {
        Ok(groups) => Ok(groups),
        Err(_) => {
            adead_node_support::error::fail!(InvalidArgument, "{numbers:?}: pass three numbers, for x, y and z")
        }
    }
}

/// A module in memory, or the path of its file.
pub enum Module {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// Its path.
    Path(String),
}

impl FromNapiValue for Module {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Module> {
        // SAFETY: the caller's guarantee is passed on.
        unsafe {
            if kind(env, value) == ValueType::String {
                return Ok(Module::Path(Text::from_napi_value(env, value)?.into()));
            }
            Ok(Module::Bytes(Array::from_napi_value(env, value)?.bytes().to_vec()))
        }
    }
}

/// A buffer parameter of a kernel.
#[napi(object)]
pub struct Parameter {
    /// Descriptor set and binding.
    #[napi(ts_type = "[number, number]")]
    pub slot: Vec<u32>,
    /// The smallest allowed size of the buffer, in bytes.
    pub least: f64,
    /// Bytes of an element of the buffer's runtime array, or 0 without such an array.
    pub stride: f64,
    /// Whether the kernel declares the buffer as never written.
    pub readonly: bool,
}

/// A kernel compiled for a device.
#[napi]
pub struct Kernel {
    pub(crate) inner: gpu::Kernel,
}

impl From<gpu::Kernel> for Kernel {
    fn from(inner: gpu::Kernel) -> Kernel {
        Kernel { inner }
    }
}

#[napi]
impl Kernel {
    /// The name of the entry point.
    #[napi(getter)]
    pub fn name(&self) -> String {
        self.inner.name().into()
    }

    /// The buffers that a dispatch passes, in order.
    #[napi(getter)]
    pub fn parameters(&self) -> Vec<Parameter> {
        let one = |it: &adead::device::Parameter| Parameter {
            slot: vec![it.slot.0, it.slot.1],
            least: it.least as f64,
            stride: it.stride as f64,
            readonly: it.readonly,
        };
        self.inner.parameters().iter().map(one).collect()
    }

    /// Bytes of push constants that a dispatch passes.
    #[napi(getter)]
    pub fn push_bytes(&self) -> u32 {
        self.inner.push_bytes() as u32
    }

    /// Threads of a workgroup in x, y, z.
    #[napi(getter, ts_return_type = "[number, number, number]")]
    pub fn workgroup(&self) -> Vec<u32> {
        self.inner.workgroup().to_vec()
    }
}
