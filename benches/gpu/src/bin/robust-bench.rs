//! Measures the cost of keeping users' Vulkan kernels within their buffers: `vecadd.spv` and `matmul.spv` of `examples/kernels`
//! with and without `robustBufferAccess`, in turns, by the device's clock.
//!
//! ```text
//! robust-bench           # vulkan:0
//! robust-bench vulkan:1
//! ```

use adead_core::Result;
use adead_core::hal::vulkan::{Opening, VulkanDevice};
use adead_core::hal::{Buffer, Device, KernelSource, Recording, Slice, Stream};
use std::process::ExitCode;
use std::sync::Arc;

const VECADD: &[u8] = include_bytes!("../../../../examples/kernels/vecadd.spv");
const MATMUL: &[u8] = include_bytes!("../../../../examples/kernels/matmul.spv");
/// The number of turns of both forms.
const ROUNDS: usize = 31;

/// A kernel with its call.
struct Work {
    name: &'static str,
    code: &'static [u8],
    /// Elements of each of the three buffers.
    elements: usize,
    push: Option<u32>,
    groups: [u32; 3],
}

const WORK: [Work; 3] = [
    Work { name: "vecadd of 2^16", code: VECADD, elements: 1 << 16, push: Some(1 << 16), groups: [1 << 8, 1, 1] },
    Work { name: "vecadd of 2^24", code: VECADD, elements: 1 << 24, push: Some(1 << 24), groups: [1 << 16, 1, 1] },
    Work { name: "matmul of 1024^3", code: MATMUL, elements: 1 << 20, push: None, groups: [64, 64, 1] },
];

/// A device with a recording of ten calls.
struct Form {
    stream: Box<dyn Stream>,
    recording: Arc<dyn Recording>,
    _buffers: Vec<Arc<dyn Buffer>>,
}

const CALLS: usize = 10;

impl Form {
    fn new(device: &Arc<VulkanDevice>, work: &Work) -> Result<Form> {
        let source = KernelSource { code: work.code, entry: None, constants: &[], workgroup: None };
        let kernel = device.kernel(&source)?;
        let mut stream = device.clone().stream()?;
        let bytes = 4 * work.elements;
        let mut buffers = Vec::new();
        for _ in 0..3 {
            buffers.push(device.allocate(bytes)?);
        }
        let slices: Vec<_> = buffers.iter().map(|buffer| Slice { buffer: &**buffer, offset: 0, bytes }).collect();
        let push = work.push.map_or(Vec::new(), |n| n.to_ne_bytes().to_vec());
        stream.start_recording()?;
        for _ in 0..CALLS {
            stream.dispatch(&*kernel, &slices, &push, work.groups)?;
        }
        let recording = stream.finish_recording()?;
        Ok(Form { stream, recording, _buffers: buffers })
    }

    /// Microseconds of one call.
    fn time(&mut self) -> Result<f64> {
        let begin = self.stream.timestamp()?;
        self.stream.replay(&*self.recording)?;
        let end = self.stream.timestamp()?;
        self.stream.synchronize()?;
        Ok((end.nanoseconds()? - begin.nanoseconds()?) as f64 / 1e3 / CALLS as f64)
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(index: usize) -> Result<()> {
    let open = |unchecked| VulkanDevice::open(index, &Opening { unchecked, ..Opening::default() }).map(Arc::new);
    let devices = [open(false)?, open(true)?];
    println!("{} ({})", devices[0].info().id, devices[0].info().name);
    for work in &WORK {
        let mut forms = [Form::new(&devices[0], work)?, Form::new(&devices[1], work)?];
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..=ROUNDS {
            for (form, times) in forms.iter_mut().zip(&mut times) {
                times.push(form.time()?);
            }
        }
        // The first round warms up.
        let [robust, unchecked] = times.map(|mut times| median(&mut times[1..]));
        println!(
            "{}: kept in its buffers {robust:.2} µs, unchecked {unchecked:.2} µs: {:.3}",
            work.name,
            robust / unchecked
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or("vulkan:0".into());
    match measure(name.rsplit(':').next().and_then(|index| index.parse().ok()).unwrap_or(0)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("robust-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
