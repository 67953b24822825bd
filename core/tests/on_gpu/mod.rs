//! Calls on this machine's first GPU, software or not, compared with the scalar references, bit for bit. `ADEAD_TEST_BACKEND` is
//! `vulkan` or `cuda`. `ADEAD_TEST_CALLS` is the number of random calls of each operation.

#[path = "../backend/mod.rs"]
pub mod backend;

use crate::draws::{Random, draw};
use adead_core::hal::cuda::{self, CudaDevice};
use adead_core::hal::vulkan::{Opening, VulkanDevice};
use adead_core::hal::{Device, Stream};
use adead_core::{Attrs, Command, DType, Meta, Op, Status, Tensor, View, ViewMut, reference};
use std::sync::Arc;

/// Bytes around a result that must stay unchanged.
const MARGIN: usize = 64;

/// Operations that compute chains.
pub const PRODUCTS: [Op; 4] = [Op::Matmul, Op::Dot, Op::Ffn, Op::Attention];

/// Returns an environment variable, or its default.
fn variable(name: &str, usual: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| usual.into())
}

/// A device and a stream on it.
pub struct Gpu {
    pub device: Arc<dyn Device>,
    pub stream: Box<dyn Stream>,
}

impl Gpu {
    /// Opens the device, or prints why there is none.
    pub fn open() -> Option<Gpu> {
        let backend = backend::backend();
        let opened = match &*backend {
            "cuda" => CudaDevice::open(0, &cuda::Opening::default()).map(|device| Arc::new(device) as Arc<dyn Device>),
            "vulkan" => VulkanDevice::open(0, &Opening::default()).map(|device| Arc::new(device) as Arc<dyn Device>),
            other => panic!("ADEAD_TEST_BACKEND is '{other}'; it must be 'cuda' or 'vulkan'"),
        };
        match opened {
            Ok(device) => {
                let stream = device.clone().stream().unwrap();
                Some(Gpu { device, stream })
            }
            Err(error) if error.status() == Status::BackendUnavailable => {
                backend::skip(&backend, &error);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs `ADEAD_TEST_CALLS` random calls of each operation, or the default number.
    pub fn random_calls(&mut self, ops: &[Op], usual: usize) {
        let calls = variable("ADEAD_TEST_CALLS", &usual.to_string());
        let Ok(calls) = calls.parse::<u64>() else { panic!("ADEAD_TEST_CALLS is '{calls}', not a number") };
        for &op in ops {
            for seed in 0..calls {
                let mut r = Random(seed << 8 | op as u64);
                let dtype = [DType::F32, DType::F32, DType::F16, DType::BF16][r.below(4)];
                let (attrs, operands) = draw(op, dtype, &mut r);
                // In half of the calls aligned to 16 bytes, in the others anywhere.
                let shifts: Vec<usize> = (0..6).map(|_| if seed % 2 == 0 { 0 } else { r.below(9) }).collect();
                self.check(&format!("seed {seed} {dtype}"), op, &attrs, &operands, &shifts);
            }
            println!("{}: {calls} random calls of {op} equal the reference", self.device.info().id);
        }
    }

    /// Runs a call whose operands begin this many elements after the beginning of their buffers. Returns the result's bytes.
    pub fn run(
        &mut self,
        op: Op,
        attrs: &Attrs,
        operands: &[Option<Tensor>],
        meta: &Meta,
        shifts: &[usize],
    ) -> adead_core::Result<Vec<u8>> {
        let shift = |i: usize| shifts[i % shifts.len()];
        let mut buffers = Vec::new();
        for (i, tensor) in operands.iter().enumerate() {
            let Some(tensor) = tensor else {
                buffers.push(None);
                continue;
            };
            let offset = shift(i + 1) * tensor.dtype().size();
            let buffer = self.device.allocate_unset(offset + tensor.bytes().len())?;
            self.stream.write(&*buffer, offset, tensor.bytes())?;
            buffers.push(Some((buffer, offset)));
        }
        let mut inputs = Vec::new();
        for (buffer, tensor) in buffers.iter().zip(operands) {
            inputs.push(match (buffer, tensor) {
                (Some((buffer, offset)), Some(tensor)) => Some(View::buffer(&**buffer, *offset, tensor.view().meta())?),
                _ => None,
            });
        }
        let offset = MARGIN + shift(0) * meta.dtype.size();
        let mut bytes = vec![0xa5; offset + meta.bytes() + MARGIN];
        let buffer = self.device.allocate_unset(bytes.len())?;
        self.stream.write(&*buffer, 0, &bytes)?;
        let output = ViewMut::buffer(&*buffer, offset, meta)?;
        let submitted = self.stream.submit(&mut [Command::new(op, *attrs, &inputs, output)?]);
        let done = self.stream.synchronize();
        self.stream.read(&*buffer, 0, &mut bytes)?;
        let written = offset..offset + meta.bytes();
        let outside = (0..bytes.len()).find(|i| !written.contains(i) && bytes[*i] != 0xa5);
        assert_eq!(outside, None, "{op}: a byte beside the result was written");
        if submitted.is_err() || done.is_err() {
            assert!(bytes.iter().all(|&byte| byte == 0xa5), "{op} failed and wrote");
        }
        submitted?;
        done?;
        Ok(bytes[written].to_vec())
    }

    /// Compares a call with the reference.
    pub fn check(&mut self, what: &str, op: Op, attrs: &Attrs, operands: &[Option<Tensor>], shifts: &[usize]) {
        let views: Vec<Option<View<'_>>> = operands.iter().map(|t| t.as_ref().map(Tensor::view)).collect();
        let meta = op.info().infer(attrs, &views).unwrap_or_else(|error| panic!("{op} {what}: {error}"));
        let expected = reference(op, attrs, &views, &meta).unwrap();
        let got = self.run(op, attrs, operands, &meta, shifts);
        let got = got.unwrap_or_else(|error| panic!("{op} {what}: {error}"));
        let at = got.iter().zip(&expected).position(|(a, b)| a != b);
        assert!(
            got.len() == expected.len() && at.is_none(),
            "{op} {what} {attrs:?} {operands:?} shifted {shifts:?}: byte {at:?} of {meta:?}"
        );
    }
}
