// Streams and kernels trust what buffers, elements and workers promise about memory, so these traits are unsafe.
#![forbid(unsafe_code)]

use adead::{DType, Element, device::Buffer};
use std::any::Any;
use std::ptr::NonNull;

struct Mine;

impl Buffer for Mine {
    fn size(&self) -> usize {
        1 << 20
    }

    fn device_name(&self) -> &str {
        "cpu"
    }

    fn host_pointer(&self) -> Option<NonNull<u8>> {
        Some(NonNull::dangling())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Clone, Copy)]
struct Byte(#[allow(dead_code)] u8);

impl Element for Byte {
    const DTYPE: DType = DType::I64;
}

struct Nobody;

impl adead_core::hal::Workers for Nobody {
    fn run(&self, _: usize, _: &(dyn Fn(usize) + Sync)) {}
}

struct Never;

impl adead_core::hal::Event for Never {
    fn is_done(&self) -> adead::Result<bool> {
        Ok(false)
    }

    fn wait(&self, _: u64) -> adead::Result<()> {
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn main() {}
