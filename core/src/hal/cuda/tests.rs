//! The host side on a driver in host memory: the device layer's suite, and a driver that fails.

use super::fake::{Card, Fake};
use super::*;
use crate::command::{Command, Meta, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Status};
use crate::hal::{DeviceKind, Slice};
use crate::ops::{Attrs, Op};
use crate::shape::Shape;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const VECADD: &str = "
// c = a + b
.version 8.0
.target sm_70
.address_size 64
.visible .entry vecadd(
    .param .u64 vecadd_a, .param .u64 .ptr .global .align 4 vecadd_b,
    .param .u64 vecadd_c, /* of n */ .param .u32 vecadd_n
)
.reqntid 256
{
    ret;
}
.visible .entry bump(.param .u64 p, .param .u32 n, .param .align 8 .b8 by[8]) .maxntid 64, 2 .minnctapersm 1 { ret; }
.visible .entry complain(.param .u64 p, .param .u32 word) { { ret; } }
.visible .entry crash() .reqntid 1, 1, 1 { ret; }
";

fn source(code: &str) -> KernelSource<'_> {
    KernelSource { code: code.as_bytes(), entry: None, constants: &[], workgroup: None }
}

fn entry(name: &str) -> KernelSource<'_> {
    KernelSource { entry: Some(name), ..source(VECADD) }
}

fn open(fake: &Fake) -> Arc<CudaDevice> {
    Arc::new(CudaDevice::open(0, &fake.opening()).unwrap())
}

fn status<T>(result: Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

/// Everything went back, and nothing was done that the driver would not forgive.
fn clean(fake: &Fake, device: Arc<CudaDevice>) {
    assert_eq!(device.live(), 0, "memory that is still in use");
    drop(device);
    assert_eq!((fake.violations(), fake.live()), (Vec::new(), 0));
}

fn whole(buffer: &dyn Buffer) -> Slice<'_> {
    Slice { buffer, offset: 0, bytes: buffer.size() }
}

fn words(stream: &mut dyn Stream, buffer: &dyn Buffer) -> Vec<u32> {
    let mut bytes = vec![0; buffer.size()];
    stream.read(buffer, 0, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn conformance() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let shared: Arc<dyn Device> = device.clone();
    crate::hal::cts::run_without_operations(&shared);
    drop(shared);
    clean(&fake, device);
}
