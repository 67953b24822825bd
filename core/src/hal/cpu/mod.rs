//! The CPU as a device: SIMD kernels for an instruction set that is chosen once, a thread pool, and scratch memory.

mod kernels;
mod packed;
mod pool;
mod simd;
mod stream;

pub use crate::host::MOST_THREADS;
pub use crate::isa::Isa;
pub use crate::memory::host::{ALIGNMENT, HostBuffer};
pub use crate::operand::Packed;
pub(crate) use kernels::{Elementwise, Reach, Run, RunOperand, RunStep, Shared, check_all_ids};
pub use pool::{Pool, default_threads, single_threaded};

use super::{
    Buffer, ContractLevel, Device, DeviceInfo, DeviceKind, Kernel, KernelSource, MemoryUse, Priority, Stream, Workers,
};
use crate::command::Command;
use crate::contract::Precision;
use crate::dtype::DType;
use crate::error::{Result, fail};
use crate::fpenv::default_environment;
use crate::host;
use crate::memory::host::ScratchPool;
use crate::memory::results::ResultPool;
use crate::operand::CpuBuffer;
use crate::operand::View;
use crate::shape::Shape;
use kernels::Exec;
use std::sync::Arc;
use stream::CpuStream;

/// The size of a second-level cache if the system doesn't report it.
const TYPICAL_CACHE: usize = 1 << 20;

/// The CPU as a device.
pub struct CpuDevice {
    info: DeviceInfo,
    isa: Isa,
    pool: Pool,
    scratch: ScratchPool,
    results: Arc<ResultPool>,
    /// Bytes of the second-level cache. Block sizes depend on it, results don't.
    cache: usize,
}

impl CpuDevice {
    /// Opens the CPU with an instruction set and a number of threads, at most [`MOST_THREADS`]. `None` takes them from
    /// `ADEAD_ISA` and `ADEAD_NUM_THREADS`, or else the best instruction set and all available threads.
    /// `invalid_argument` for another number.
    pub fn open(isa: Option<Isa>, threads: Option<usize>) -> Result<CpuDevice> {
        let isa = match isa {
            Some(isa) => isa.checked()?,
            None => Isa::from_environment()?,
        };
        let threads = match threads {
            Some(threads @ 1..=MOST_THREADS) => threads,
            Some(threads) => {
                fail!(
                    InvalidArgument,
                    "threads={threads}: pass 1 to {MOST_THREADS}, or leave it unset to use all available threads"
                )
            }
            None => default_threads()?,
        };
        let contract = match isa {
            Isa::Portable | Isa::Sse2 => ContractLevel::Emulated,
            Isa::Avx2 | Isa::Avx512 | Isa::Neon => ContractLevel::Native,
        };
        let info = DeviceInfo {
            id: "cpu".into(),
            name: host::cpu_name(),
            contract,
            arch: isa.name().into(),
            units: threads,
            memory: host::memory().total,
            kind: DeviceKind::Cpu,
            vendor: host::cpu().vendor.clone(),
            driver: String::new(),
            uuid: None,
            bus: None,
        };
        let second = host::cpu().caches.iter().find(|cache| cache.level == 2);
        let cache = second.map_or(TYPICAL_CACHE, |cache| cache.size);
        let (pool, scratch, results) = (Pool::new(threads), ScratchPool::default(), ResultPool::new(threads));
        Ok(CpuDevice { info, isa, pool, scratch, results, cache })
    }

    /// Returns the instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Returns the name of what multiplies exact integers.
    pub(crate) fn integer_unit(&self) -> &'static str {
        kernels::integer_unit(self.isa)
    }

    /// Returns the number of threads in use.
    pub fn threads(&self) -> usize {
        self.info.units
    }

    /// Frees kept scratch and result memory and ends the worker threads. The next work that needs them gets new ones.
    pub fn trim(&self) {
        self.pool.trim();
        self.scratch.trim();
        self.results.trim();
    }

    /// Returns the pool that provides the memory of large results.
    #[inline]
    pub(crate) fn results(&self) -> &Arc<ResultPool> {
        &self.results
    }

    /// Executes one command and returns when it is done. The caller must hold the turns of the command's buffers.
    #[inline]
    pub(crate) fn execute(&self, command: &mut Command<'_>) -> Result<()> {
        default_environment(|| kernels::execute(&self.exec(), command))
    }

    /// Computes a run of elementwise operations.
    ///
    /// # Safety
    /// As [`Run::compute`]'s.
    pub(crate) unsafe fn compute_run(&self, run: &Run<'_>) -> Result<()> {
        // SAFETY: passed on.
        default_environment(|| unsafe { run.compute(&self.exec()) })
    }

    /// Computes a small row-major f32 product on this thread, if the instruction set has a way for it. Returns whether it did; if not,
    /// nothing is written.
    ///
    /// # Safety
    /// `a` has `m·k` values, `b` has `k·n`, `out` has room for `m·n`. They are aligned, and only this call uses `out`.
    #[inline]
    pub(crate) unsafe fn multiply_small(&self, a: *const f32, b: *const f32, out: *mut f32, size: [usize; 3]) -> bool {
        // SAFETY: the caller's promise covers this.
        default_environment(|| unsafe { kernels::multiply_small(self.isa, a, b, out, size) })
    }

    /// Returns whether [`CpuDevice::pack`] makes digits of a matrix of this shape.
    pub(crate) fn keeps_digits(&self, shape: &Shape, transposed: bool, precision: Precision) -> bool {
        let &[k, n] = shape.dims() else { return false };
        let (k, n) = if transposed { (n, k) } else { (k, n) };
        kernels::digits_room(&self.exec(), precision, k, n).is_some()
    }

    /// Packs an f32 matrix that represents one of `dtype`, for products of a precision.
    pub(crate) fn pack(&self, b: &View<'_>, dtype: DType, transposed: bool, precision: Precision) -> Result<Packed> {
        Packed::new(&self.exec(), b, dtype, transposed, precision)
    }

    #[inline]
    fn exec(&self) -> Exec<'_> {
        Exec { isa: self.isa, pool: &self.pool, scratch: &self.scratch, cache: self.cache }
    }
}

// SAFETY: buffers and streams are types of this backend, which keep the promises of their traits.
unsafe impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(CpuBuffer::zeroed(bytes)?))
    }

    fn allocate_unset(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        // Buffers can be read before they are written, and uninitialised memory must not be read.
        self.allocate(bytes)
    }

    fn memory(&self) -> MemoryUse {
        let memory = host::memory();
        MemoryUse { total: memory.total, free: memory.available, ..MemoryUse::default() }
    }

    fn stream_with(self: Arc<Self>, _: Priority) -> Result<Box<dyn Stream>> {
        Ok(Box::new(CpuStream::new(self)))
    }

    fn kernel(&self, _: &KernelSource<'_>) -> Result<Arc<dyn Kernel>> {
        fail!(Unsupported, "the CPU runs no GPU kernels: open a context on a GPU, such as 'vulkan'")
    }

    fn trim(&self) {
        CpuDevice::trim(self);
    }
}

// SAFETY: the pool runs every task once and returns when all have finished.
unsafe impl Workers for CpuDevice {
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.pool.run(tasks, &|number, _| task(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operand::{Meta, ViewMut};
    use crate::ops::{Attrs, Op};
    use crate::shape::Shape;
    use crate::tensor::Tensor;

    #[test]
    fn no_threads_and_too_many_are_refused() {
        for threads in [0, MOST_THREADS + 1, 100_000, usize::MAX] {
            let error = CpuDevice::open(None, Some(threads)).map(|_| ()).unwrap_err();
            assert_eq!(error.status(), crate::Status::InvalidArgument);
            assert!(error.message().starts_with(&format!("threads={threads}: pass 1 to 1024")), "{error}");
        }
        assert_eq!(CpuDevice::open(None, Some(MOST_THREADS)).unwrap().threads(), MOST_THREADS);
    }

    #[test]
    fn conformance() {
        for isa in Isa::available() {
            for threads in [1, 3] {
                let device = CpuDevice::open(Some(isa), Some(threads)).unwrap();
                crate::hal::cts::run(Arc::new(device));
            }
        }
    }

    #[test]
    fn the_cache_s_size_changes_no_bits() {
        let values = |n: usize, step: usize| -> Vec<f32> { (0..n).map(|i| ((i * step) % 97) as f32 - 48.5).collect() };
        for (m, k, n) in
            [(3, 700, 900), (40, 600, 700), (60, 512, 512), (95, 600, 300), (200, 2048, 70), (500, 300, 130)]
        {
            let a = Tensor::new(&values(m * k, 31), &[m, k]).unwrap();
            let b = Tensor::new(&values(k * n, 57), &[k, n]).unwrap();
            let mut first: Option<Vec<f32>> = None;
            for cache in [16 << 10, 256 << 10, 2 << 20, 64 << 20] {
                let mut device = CpuDevice::open(None, Some(2)).unwrap();
                device.cache = cache;
                let (mut y, meta) = (vec![0.0; m * n], Meta::new(DType::F32, Shape::new(&[m, n]).unwrap()));
                let inputs = [Some(a.view()), Some(b.view())];
                let output = ViewMut::f32(&mut y, &meta).unwrap();
                let mut command = Command::new(Op::Matmul, Attrs::default(), &inputs, output).unwrap();
                device.execute(&mut command).unwrap();
                assert!(first.get_or_insert_with(|| y.clone()) == &y, "{m}x{k}x{n} with {cache} bytes");
            }
        }
    }
}
