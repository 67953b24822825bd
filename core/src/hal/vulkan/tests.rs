//! Tests of the device layer on this machine's GPU, software or not. Some replace driver functions, to test failures.

use super::api::DeviceApi;
use super::*;
use crate::command::Command;
use crate::dtype::DType;
use crate::error::Status;
use crate::hal::lowering::{Encoder, Kernels, Push};
use crate::hal::{KernelSource, Slice};
use crate::operand::{Meta, View, ViewMut};
use crate::ops::{Attrs, Op};
use crate::shape::Shape;
use ash::vk;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};

/// Opens the first GPU. Without one, returns `None` and prints the reason.
fn device(opening: &Opening) -> Option<Arc<VulkanDevice>> {
    match VulkanDevice::open(0, opening) {
        Ok(device) => Some(Arc::new(device)),
        Err(error) if error.status() == Status::BackendUnavailable => {
            println!("skipped: vulkan: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn status<T>(result: Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

#[test]
fn conformance() {
    // The validation layer doesn't accept an event as a sign that work is done.
    let validated = std::env::var_os("VK_INSTANCE_LAYERS").is_some();
    for (plain, marks) in [(false, false), (true, false), (false, !validated)] {
        let Some(device) = device(&Opening { plain, marks, ..Opening::default() }) else { return };
        crate::hal::cts::run(device.clone());
        assert_eq!(device.live(), 0, "memory that is still in use");
    }
}

#[test]
fn openings_share_the_driver_s_device_and_not_what_they_use() {
    let (Some(one), Some(other)) = (device(&Opening::default()), device(&Opening::default())) else { return };
    assert_eq!(one.shared.device, other.shared.device);
    let buffer = one.allocate(5000).unwrap();
    assert_eq!((one.live(), other.live()), (1, 0));
    let (used, none) = (one.memory(), other.memory());
    assert!(used.allocations == 1 && used.used >= 5000 && used.held >= used.used, "{used:?}");
    assert_eq!((none.allocations, none.used), (0, 0));
    // One opening refuses what another one made.
    let mut stream = other.clone().stream().unwrap();
    assert_eq!(status(stream.read(&*buffer, 0, &mut [0; 4])), Some(Status::InvalidArgument));
    // Closing one opening does not affect the other.
    drop(one);
    let kept = other.allocate(64).unwrap();
    stream.write(&*kept, 0, &[7; 64]).unwrap();
    let mut bytes = [0; 64];
    stream.read(&*kept, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 64]);
}

#[test]
fn no_loader() {
    let error = api::open(&["libadead-has-no-such-loader.so.7"]).err().unwrap();
    assert_eq!(error.status(), Status::BackendUnavailable);
    assert!(error.message().contains("libadead-has-no-such-loader.so.7"), "{error}");
}

/// A driver function that fails while its counter is above 0.
macro_rules! failing {
    ($test:ident, $field:ident: $pfn:ident, $result:ident, ($($name:ident: $type:ty),*)) => {
        mod $test {
            use super::*;
            /// How many more calls fail.
            pub static LEFT: AtomicI64 = AtomicI64::new(0);
            static REAL: OnceLock<vk::$pfn> = OnceLock::new();

            unsafe extern "system" fn replaced($($name: $type),*) -> vk::Result {
                if LEFT.fetch_sub(1, SeqCst) > 0 {
                    return vk::Result::$result;
                }
                LEFT.store(0, SeqCst);
                // SAFETY: the arguments are passed on unchanged.
                unsafe { REAL.get().unwrap()($($name),*) }
            }

            /// Replaces the function in a table.
            pub fn inject(api: &mut DeviceApi) {
                let _ = REAL.set(api.$field);
                api.$field = replaced;
            }
        }
    };
}

failing!(memory_fails, allocate_memory: PFN_vkAllocateMemory, ERROR_OUT_OF_DEVICE_MEMORY,
    (device: vk::Device, info: *const vk::MemoryAllocateInfo<'_>, callbacks: *const vk::AllocationCallbacks<'_>,
     out: *mut vk::DeviceMemory));

#[test]
fn out_of_memory() {
    let opening = Opening { faults: Some(memory_fails::inject), ..Opening::default() };
    let Some(device) = device(&opening) else { return };
    device.trim();
    // One failure: idle memory is returned, and the driver is asked again.
    memory_fails::LEFT.store(1, SeqCst);
    let kept = device.allocate_unset(3 << 20).unwrap();
    assert_eq!(device.memory().held, 3 << 20, "no more than needed when there is little");
    // Every call fails: the error has the numbers, and existing memory stays usable.
    memory_fails::LEFT.store(1000, SeqCst);
    let error = device.allocate_unset(100 << 20).err().unwrap();
    memory_fails::LEFT.store(0, SeqCst);
    assert_eq!(error.status(), Status::OutOfMemory);
    assert!(error.message().contains("104857600 bytes") && error.message().contains("free"), "{error}");
    assert_eq!(kept.size(), 3 << 20);
    let again = device.allocate_unset(100 << 20).unwrap();
    drop((kept, again));
    assert_eq!(device.live(), 0);
}

#[test]
fn memory_of_calls_in_flight_is_used_again() {
    let Some(device) = device(&Opening::default()) else { return };
    let to = device.buffer(256).unwrap();
    let mut stream = stream::VulkanStream::new(&device.shared).unwrap();
    for _ in 0..40 {
        let encode = |encoder: &mut encoder::VulkanEncoder<'_>| {
            encoder.scratch(48 << 20)?;
            let from = encoder.parameters(&[0; 4])?;
            let push = Push::new().address(from).address(to.memory.address).word(1);
            encoder.dispatch(Kernels::Probe, &[0], &push, [1, 1, 1])
        };
        stream.encode(encode).unwrap();
        let used = device.memory().used;
        assert!(used < 512 << 20, "{used} bytes for calls that take 48 MiB each");
    }
    stream.synchronize().unwrap();
}

failing!(submit_fails, queue_submit: PFN_vkQueueSubmit, ERROR_DEVICE_LOST,
    (queue: vk::Queue, count: u32, info: *const vk::SubmitInfo<'_>, fence: vk::Fence));
failing!(wait_fails, wait_semaphores: PFN_vkWaitSemaphores, ERROR_DEVICE_LOST,
    (device: vk::Device, info: *const vk::SemaphoreWaitInfo<'_>, timeout: u64));

#[test]
fn a_lost_device_stays_lost() {
    type Case = (fn(&mut DeviceApi), &'static AtomicI64);
    let cases: [Case; 2] = [(submit_fails::inject, &submit_fails::LEFT), (wait_fails::inject, &wait_fails::LEFT)];
    for (inject, left) in cases {
        let Some(device) = device(&Opening { faults: Some(inject), ..Opening::default() }) else { return };
        let mut stream = device.clone().stream().unwrap();
        let (buffer, other) = (device.allocate(1 << 25).unwrap(), device.allocate(1 << 25).unwrap());
        stream.write(&*buffer, 0, &[1; 1000]).unwrap();
        stream.synchronize().unwrap();
        left.store(1, SeqCst);
        // Submits more and more work, until it takes so long that the host waits in the driver.
        let whole = |buffer| Slice { buffer, offset: 0, bytes: 1 << 25 };
        let lost = (0..14).find_map(|more| {
            let copied = (0..1 << more).try_for_each(|_| stream.copy(whole(&*buffer), whole(&*other)));
            copied.and_then(|()| stream.synchronize()).err()
        });
        assert_eq!(lost.map(|error| error.status()), Some(Status::DeviceLost));
        // From now on every call reports the loss, although the driver would answer.
        left.store(0, SeqCst);
        let mut byte = [0];
        assert_eq!(status(stream.read(&*buffer, 0, &mut byte)), Some(Status::DeviceLost));
        assert_eq!(status(device.allocate(16)), Some(Status::DeviceLost));
        assert_eq!(status(device.clone().stream()), Some(Status::DeviceLost));
        drop((buffer, other, stream));
        assert_eq!(device.live(), 0);
        // A new opening gets a new device, and the CPU still works.
        let again = self::device(&Opening::default()).unwrap();
        assert_eq!(again.allocate(16).unwrap().size(), 16);
        let ctx = crate::Context::open("cpu").unwrap();
        let one = crate::Tensor::new(&[1.0f32], &[1]).unwrap();
        assert_eq!(ctx.add(&one, &one).unwrap().to_vec::<f32>().unwrap(), [2.0]);
    }
}

failing!(compiler_fails, create_compute_pipelines: PFN_vkCreateComputePipelines, ERROR_UNKNOWN,
    (device: vk::Device, cache: vk::PipelineCache, count: u32, info: *const vk::ComputePipelineCreateInfo<'_>,
     callbacks: *const vk::AllocationCallbacks<'_>, out: *mut vk::Pipeline));

const VECADD: &[u8] = include_bytes!("../../../../examples/kernels/vecadd.spv");
const REDUCE: &[u8] = include_bytes!("../../../../examples/kernels/reduce.spv");

#[test]
fn a_kernel_that_the_driver_refuses() {
    let Some(device) = device(&Opening { faults: Some(compiler_fails::inject), ..Opening::default() }) else { return };
    let code = VECADD;
    let source = KernelSource { code, entry: None, constants: &[], workgroup: None };
    compiler_fails::LEFT.store(1, SeqCst);
    let error = device.kernel(&source).err().unwrap();
    assert_eq!(error.status(), Status::InvalidKernel);
    assert!(error.message().contains("refuses"), "{error}");
    assert_eq!(device.kernel(&source).unwrap().name(), "main", "and the next one is built");
}

const STRAY: &[u8] = include_bytes!("../../../tests/data/stray.spv");

#[test]
fn a_kernel_that_writes_out_of_its_buffer_changes_no_other() {
    let Some(device) = device(&Opening::default()) else { return };
    let kernel = device.kernel(&KernelSource { code: STRAY, entry: None, constants: &[], workgroup: None }).unwrap();
    let mut stream = device.clone().stream().unwrap();
    // Nine adjacent buffers of one block; the kernel gets the middle one.
    let all: Vec<_> = (0..9).map(|_| device.allocate_unset(4096).unwrap()).collect();
    all.iter().for_each(|buffer| stream.write(&**buffer, 0, &[0x11; 4096]).unwrap());
    let mine = Slice { buffer: &*all[4], offset: 0, bytes: 4096 };
    // Writes each word from its start to 64 KiB behind it, then farther and farther out, up to 16 GiB.
    for (first, stride, groups) in
        [(0, 1, 256), (1024, 1 << 10, 1024), (1 << 20, 0xffff, 1024), (u32::MAX - 65_535, 1, 1024)]
    {
        let push: Vec<u8> = [first, stride].iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
        stream.dispatch(&*kernel, &[mine], &push, [groups, 1, 1]).unwrap();
        stream.synchronize().unwrap();
    }
    for (i, buffer) in all.iter().enumerate() {
        let mut bytes = [0; 4096];
        stream.read(&**buffer, 0, &mut bytes).unwrap();
        let expected = if i == 4 { 0xdead_beef_u32 } else { 0x1111_1111 };
        let changed = bytes.chunks_exact(4).position(|word| word != expected.to_ne_bytes());
        assert_eq!(changed, None, "the first wrong word of buffer {i}");
    }
}

failing!(pool_fails, create_command_pool: PFN_vkCreateCommandPool, ERROR_OUT_OF_HOST_MEMORY,
    (device: vk::Device, info: *const vk::CommandPoolCreateInfo<'_>, callbacks: *const vk::AllocationCallbacks<'_>,
     out: *mut vk::CommandPool));

#[test]
fn a_stream_without_memory_for_commands() {
    let Some(device) = device(&Opening { faults: Some(pool_fails::inject), ..Opening::default() }) else { return };
    let buffer = device.allocate_unset(64).unwrap();
    let mut stream = device.clone().stream().unwrap();
    pool_fails::LEFT.store(1, SeqCst);
    assert_eq!(status(stream.write(&*buffer, 0, &[7; 64])), Some(Status::OutOfMemory));
    stream.write(&*buffer, 0, &[8; 64]).unwrap();
    let mut bytes = [0; 64];
    stream.read(&*buffer, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [8; 64]);
}

static BLOCKS: AtomicI64 = AtomicI64::new(0);
static REAL_BLOCKS: OnceLock<(vk::PFN_vkAllocateMemory, vk::PFN_vkFreeMemory)> = OnceLock::new();

unsafe extern "system" fn counted_allocate(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    BLOCKS.fetch_add(1, SeqCst);
    // SAFETY: the arguments are passed on unchanged.
    unsafe { REAL_BLOCKS.get().unwrap().0(device, info, callbacks, out) }
}

unsafe extern "system" fn counted_free(
    device: vk::Device,
    memory: vk::DeviceMemory,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    BLOCKS.fetch_sub(1, SeqCst);
    // SAFETY: the arguments are passed on unchanged.
    unsafe { REAL_BLOCKS.get().unwrap().1(device, memory, callbacks) }
}

#[test]
fn thousands_of_buffers_take_few_blocks_and_leave_none() {
    let inject = |api: &mut DeviceApi| {
        let _ = REAL_BLOCKS.set((api.allocate_memory, api.free_memory));
        (api.allocate_memory, api.free_memory) = (counted_allocate, counted_free);
    };
    let Some(device) = device(&Opening { faults: Some(inject), ..Opening::default() }) else { return };
    let most = AtomicUsize::new(0);
    for round in 0..5 {
        let held: Vec<_> = (0..2000).map(|i| device.allocate_unset(1 + (i * 37 + round) % 5000).unwrap()).collect();
        most.fetch_max(BLOCKS.load(SeqCst) as usize, SeqCst);
        assert!(device.live() >= held.len());
    }
    assert!(most.load(SeqCst) < 8, "{most:?} blocks");
    assert_eq!(device.live(), 0);
    drop(device);
    assert_eq!(BLOCKS.load(SeqCst), 0, "blocks that were never returned");
}

static BARRIERS: AtomicUsize = AtomicUsize::new(0);
static REAL_BARRIER: OnceLock<vk::PFN_vkCmdPipelineBarrier> = OnceLock::new();

unsafe extern "system" fn counted_barrier(
    commands: vk::CommandBuffer,
    from: vk::PipelineStageFlags,
    until: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'_>,
) {
    BARRIERS.fetch_add(1, SeqCst);
    let real = REAL_BARRIER.get().unwrap();
    // SAFETY: the arguments are passed on unchanged.
    unsafe { real(commands, from, until, flags, memory_count, memory, buffer_count, buffers, image_count, images) }
}

#[test]
fn only_commands_that_depend_on_one_another_have_a_barrier_between_them() {
    let inject = |api: &mut DeviceApi| {
        let _ = REAL_BARRIER.set(api.cmd_pipeline_barrier);
        api.cmd_pipeline_barrier = counted_barrier;
    };
    let Some(device) = device(&Opening { faults: Some(inject), ..Opening::default() }) else { return };
    const N: usize = 300;
    let meta = Meta::new(DType::F32, Shape::new(&[N]).unwrap());
    let buffer = device.allocate(8 * 4 * N).unwrap();
    let mut stream = device.clone().stream().unwrap();
    let begin: Vec<u8> = (0..N).flat_map(|i| (i as f32 - 150.0).to_ne_bytes()).collect();
    stream.write(&*buffer, 0, &begin).unwrap();
    // Operations between eighths of the buffer: the operation, its source, its destination, and the barriers that it
    // takes.
    let work: [(Op, &[usize], usize, usize); 8] = [
        (Op::Relu, &[0], 1, 1),
        (Op::Abs, &[0], 2, 0),
        (Op::Neg, &[0], 3, 0),
        // They read results.
        (Op::Add, &[1, 2], 4, 1),
        (Op::Sub, &[0, 3], 5, 0),
        // It overwrites what was read.
        (Op::Abs, &[0], 3, 1),
        // It overwrites a result.
        (Op::Neg, &[0], 3, 1),
        // It reads a result that the last barrier has ordered.
        (Op::Mul, &[4, 5], 6, 0),
    ];
    stream.start_recording().unwrap();
    for (i, &(op, from, to, barriers)) in work.iter().enumerate() {
        let view = |&part: &usize| Some(View::buffer(&*buffer, part * 4 * N, &meta).unwrap());
        let inputs: Vec<_> = from.iter().map(view).collect();
        let output = ViewMut::buffer(&*buffer, to * 4 * N, &meta).unwrap();
        let before = BARRIERS.load(SeqCst);
        let command = Command::new(op, Attrs::default(), &inputs, output).unwrap();
        stream.submit(&mut [command]).unwrap();
        assert_eq!(BARRIERS.load(SeqCst) - before, barriers, "work {i}");
    }
    let recording = stream.finish_recording().unwrap();
    for _ in 0..3 {
        stream.replay(&*recording).unwrap();
    }
    let mut bytes = vec![0; 7 * 4 * N];
    stream.read(&*buffer, 0, &mut bytes).unwrap();
    let values: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect();
    for (i, column) in (0..N).map(|i| (i, [0, 1, 2, 3, 4, 5, 6].map(|part| values[part * N + i]))) {
        let x = i as f32 - 150.0;
        let (relu, abs) = (x.max(0.0), x.abs());
        assert_eq!(column, [x, relu, abs, -x, relu + abs, x + x, (relu + abs) * (x + x)], "element {i}");
    }
}

/// A temporary folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("adead-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self) -> Option<PathBuf> {
        let files: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() <= 1, "{files:?}");
        files.into_iter().next()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn pipelines_are_kept_on_disk() {
    let folder = Folder::new("pipelines");
    let code = REDUCE;
    let build = || {
        let device = device(&Opening { cache: Some(folder.0.clone()), ..Opening::default() })?;
        let source = KernelSource { code, entry: None, constants: &[], workgroup: None };
        assert_eq!(device.kernel(&source).unwrap().name(), "main");
        Some(())
    };
    if build().is_none() {
        return;
    }
    let file = folder.file().expect("the cache was written");
    let good = fs::read(&file).unwrap();
    assert!(good.starts_with(b"adeadpc1"));
    // Files that are cut off, damaged, of another driver, of another version, or no cache are ignored and replaced.
    let damaged = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    let bad = [
        good[..good.len() - 1].to_vec(),
        good[..20].to_vec(),
        Vec::new(),
        damaged(good.len() - 5),
        damaged(9),
        damaged(30),
        damaged(7),
        b"no cache".to_vec(),
    ];
    for (i, bad) in bad.into_iter().enumerate() {
        fs::write(&file, &bad).unwrap();
        build();
        let written = fs::read(&file).unwrap();
        assert!(written != bad && written.starts_with(b"adeadpc1"), "case {i}");
    }
    // A folder that can't be written causes no error.
    fs::remove_file(&file).unwrap();
    let blocked = folder.0.join("file");
    fs::write(&blocked, b"").unwrap();
    let device = device(&Opening { cache: Some(blocked.join("below")), ..Opening::default() }).unwrap();
    device.kernel(&KernelSource { code, entry: None, constants: &[], workgroup: None }).unwrap();
    drop(device);
    fs::remove_file(&blocked).unwrap();
}
