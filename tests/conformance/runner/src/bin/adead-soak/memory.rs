//! Whether memory grows: the process's and the device's, compared between an early and a late part of the time.

use adead_core::Gpu;
use std::time::Duration;

/// Shorter runs say nothing about growth: pools, caches and compiled kernels still come.
const SHORTEST: Duration = Duration::from_secs(60);
/// What may come late: another size of a pool's block, a thread's arena.
const SLACK: u64 = 256 << 20;

/// The most that was seen in the second fifth of the time and in the last.
pub struct Growth {
    time: Duration,
    early: [u64; 2],
    late: [u64; 2],
    now: [u64; 2],
    used: u64,
}

const WHAT: [&str; 2] = ["the process's memory", "memory taken from the driver"];

impl Growth {
    pub fn new(time: Duration) -> Growth {
        Growth { time, early: [0; 2], late: [0; 2], now: [0; 2], used: 0 }
    }

    pub fn look(&mut self, at: Duration, gpu: &Gpu) -> Result<(), String> {
        let device = gpu.memory().map_err(|error| error.to_string())?;
        self.now = [resident(), device.held];
        self.used = device.used;
        let most = match at.as_secs_f64() / self.time.as_secs_f64() {
            0.2..0.4 => &mut self.early,
            0.8.. => &mut self.late,
            _ => return Ok(()),
        };
        for (most, now) in most.iter_mut().zip(self.now) {
            *most = now.max(*most);
        }
        Ok(())
    }

    pub fn now(&self) -> String {
        let [resident, held] = self.now.map(|bytes| bytes >> 20);
        format!("process {resident} MiB, device {} MiB of {held}", self.used >> 20)
    }

    pub fn judge(&self) -> Result<(), String> {
        if self.time < SHORTEST {
            println!("memory: too short a time to say whether it grows");
            return Ok(());
        }
        for ((what, early), late) in WHAT.iter().zip(self.early).zip(self.late) {
            println!("{what}: at most {} MiB early, {} MiB late", early >> 20, late >> 20);
            if late > early + early / 4 + SLACK {
                return Err(format!("{what} grows: from {early} to {late} bytes"));
            }
        }
        Ok(())
    }
}

/// Bytes of the process in memory, 0 where the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
