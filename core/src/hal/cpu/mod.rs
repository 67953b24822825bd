//! The CPU as a device: SIMD kernels chosen once, a thread pool, scratch memory.

mod fpenv;
mod isa;
mod kernels;
mod memory;
mod packed;
mod pool;
mod simd;

pub(crate) use fpenv::default_environment;
pub use isa::Isa;
pub use memory::{ALIGNMENT, HostBuffer};
pub use packed::Packed;
pub use pool::{Pool, default_threads};

use super::{Buffer, ContractLevel, Device, DeviceInfo, Stream};
use crate::command::{Command, View};
use crate::dtype::DType;
use crate::error::Result;
use crate::hardware;
use kernels::Exec;
use memory::ScratchPool;
use std::sync::Arc;

/// The processor.
pub struct CpuDevice {
    info: DeviceInfo,
    isa: Isa,
    pool: Pool,
    scratch: ScratchPool,
}

impl CpuDevice {
    /// The CPU with an instruction set and a number of threads; `None` takes `ADEAD_ISA` and `ADEAD_NUM_THREADS`, else
    /// the best there is.
    pub fn open(isa: Option<Isa>, threads: Option<usize>) -> Result<CpuDevice> {
        let isa = match isa {
            Some(isa) => isa.checked()?,
            None => Isa::from_environment()?,
        };
        let threads = match threads {
            Some(threads) => threads.max(1),
            None => default_threads()?,
        };
        let contract = match isa {
            Isa::Portable | Isa::Sse2 => ContractLevel::Emulated,
            Isa::Avx2 | Isa::Avx512 | Isa::Neon => ContractLevel::Native,
        };
        let info = DeviceInfo {
            id: "cpu".into(),
            name: hardware::cpu_name(),
            contract,
            arch: isa.name().into(),
            units: threads,
            memory: hardware::memory().total,
        };
        Ok(CpuDevice { info, isa, pool: Pool::new(threads), scratch: ScratchPool::default() })
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The threads in use.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Gives kept scratch memory back to the system and ends the worker threads; the next work takes both anew.
    pub fn trim(&self) {
        self.pool.trim();
        self.scratch.trim();
    }

    /// Executes one command and returns when it is done.
    #[inline]
    pub fn execute(&self, command: &mut Command<'_>) -> Result<()> {
        fpenv::default_environment(|| kernels::execute(&self.exec(), command))
    }

    /// Packs a matrix of f32 that stands for one of `dtype`.
    pub(crate) fn pack(&self, b: &View<'_>, dtype: DType, transposed: bool) -> Result<Packed> {
        Packed::new(&self.exec(), b, dtype, transposed)
    }

    #[inline]
    fn exec(&self) -> Exec<'_> {
        Exec { isa: self.isa, pool: &self.pool, scratch: &self.scratch }
    }
}

impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(HostBuffer::zeroed(bytes)?))
    }

    fn stream(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(CpuStream))
    }

    fn submit(&self, _: &mut dyn Stream, commands: &mut [Command<'_>]) -> Result<()> {
        commands.iter_mut().try_for_each(|command| self.execute(command))
    }
}

/// Work on the CPU is done when `submit` returns, so its streams never have anything left.
struct CpuStream;

impl Stream for CpuStream {
    fn synchronize(&mut self) -> Result<()> {
        Ok(())
    }

    fn is_idle(&self) -> Result<bool> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformance() {
        for isa in Isa::available() {
            for threads in [1, 3] {
                let device = CpuDevice::open(Some(isa), Some(threads)).unwrap();
                crate::hal::cts::run(Arc::new(device));
            }
        }
    }
}
