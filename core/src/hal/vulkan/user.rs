//! Users' kernels: a checked module, its descriptors and its pipeline.

use super::memory::Allocation;
use super::recorder::Recorder;
use super::requirements::{fits, supported};
use super::shared::Shared;
use super::steps::Kind;
use super::stream::of_device;
use crate::error::{Error, Result, Status, fail};
use crate::fpenv::DefaultEnvironment;
use crate::hal::spirv::{BindingKind, EntryPoint, Module};
use crate::hal::{Kernel, KernelSource, Parameter, PushNumber, Slice, check_slice};
use ash::vk;
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::CString;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// A user's kernel. Clones share it.
#[derive(Clone)]
pub struct UserKernel(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    entry: EntryPoint,
    parameters: Vec<Parameter>,
    kinds: Vec<vk::DescriptorType>,
    set_layouts: Vec<vk::DescriptorSetLayout>,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    /// Whether descriptors are pushed into the command buffer. Otherwise they are written to descriptor sets.
    pushes: bool,
    /// Descriptor sets that no work uses.
    idle: Mutex<Vec<Sets>>,
}

// SAFETY: it holds handles, and a lock guards what changes.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// A pool with one descriptor set for each layout.
struct Sets {
    pool: vk::DescriptorPool,
    sets: Vec<vk::DescriptorSet>,
}

/// Descriptor sets in use by work. Dropping it makes them idle again.
struct SetsInUse {
    of: Arc<Inner>,
    sets: Option<Sets>,
}

/// A checked call: allocation, offset and bytes of each buffer, in the order of the parameters.
pub struct Bound(SmallVec<[(Arc<Allocation>, u64, u64); 8]>);

impl UserKernel {
    /// Checks a module and compiles it. Errors: see [`crate::hal::Device::kernel`].
    pub fn new(shared: &Arc<Shared>, source: &KernelSource<'_>) -> Result<UserKernel> {
        let constants: Vec<(u32, u64)> = source.constants.iter().map(|&(id, word)| (id, word.into())).collect();
        let mut module = Module::parse(source.code)?;
        if let Some(size) = source.workgroup {
            fail!(
                InvalidArgument,
                "workgroup={size:?}: a SPIR-V module fixes its own workgroup, or takes it as specialization constants"
            );
        }
        if !constants.is_empty() {
            module = module.specialized(&constants)?;
        }
        supported(shared, &module)?;
        let entry = module.entry_point(source.entry)?.clone();
        fits(shared, &entry)?;
        let mut inner = Inner {
            shared: shared.clone(),
            parameters: Vec::new(),
            kinds: Vec::new(),
            set_layouts: Vec::new(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
            pushes: false,
            idle: Mutex::new(Vec::new()),
            entry,
        };
        inner.read_bindings()?;
        inner.make_layouts()?;
        let name = CString::new(inner.entry.name.as_str());
        let name = name.map_err(|_| Error::new(Status::InvalidKernel, "an entry point's name contains a NUL byte"))?;
        inner.pipeline =
            shared.pipelines.compile(shared, module.words(), &name, source.constants, inner.layout, None)?;
        Ok(UserKernel(Arc::new(inner)))
    }

    /// Checks the buffers, push constants and workgroups of a call.
    pub fn check(&self, shared: &Arc<Shared>, buffers: &[Slice<'_>], push: &[u8], groups: [u32; 3]) -> Result<Bound> {
        let Inner { entry, parameters, kinds, .. } = &*self.0;
        let name = &entry.name;
        if !Arc::ptr_eq(&self.0.shared, shared) {
            fail!(InvalidArgument, "kernel '{name}' was built on another opening of {}", shared.info.id);
        }
        if buffers.len() != parameters.len() {
            let slots: Vec<String> =
                parameters.iter().map(|parameter| format!("{}.{}", parameter.slot.0, parameter.slot.1)).collect();
            fail!(
                InvalidArgument,
                "kernel '{name}' takes {} buffers (set.binding {}) and got {}",
                parameters.len(),
                slots.join(", "),
                buffers.len()
            );
        }
        if push.len() != self.push_bytes() {
            fail!(
                InvalidArgument,
                "kernel '{name}' takes {} bytes of push constants and got {}",
                self.push_bytes(),
                push.len()
            );
        }
        let most = shared.physical.limits.max_compute_work_group_count;
        for (axis, (&count, most)) in groups.iter().zip(most).enumerate() {
            if count == 0 || (count > most && axis > 0) {
                fail!(InvalidArgument, "kernel '{name}': {groups:?} workgroups; each axis must be 1 to {most}");
            }
        }
        let limits = &shared.physical.limits;
        let mut call = SmallVec::new();
        for (i, ((buffer, parameter), &kind)) in buffers.iter().zip(parameters).zip(kinds).enumerate() {
            check_slice("dispatch", buffer.buffer.size(), buffer.offset, buffer.bytes)?;
            let uniform = kind == vk::DescriptorType::UNIFORM_BUFFER;
            let (align, most) = match uniform {
                true => (limits.min_uniform_buffer_offset_alignment, limits.max_uniform_buffer_range),
                false => (limits.min_storage_buffer_offset_alignment, limits.max_storage_buffer_range),
            };
            let (bytes, at) = (buffer.bytes as u64, parameter.slot);
            let what = format_args!("kernel '{name}', buffer {i} (set {}, binding {})", at.0, at.1);
            if bytes < parameter.least.max(1) {
                fail!(InvalidArgument, "{what}: {bytes} bytes; the kernel declares {} or more", parameter.least.max(1));
            }
            if parameter.stride > 0 && !(bytes - parameter.least).is_multiple_of(parameter.stride) {
                fail!(
                    InvalidArgument,
                    "{what}: {bytes} bytes; beyond {} it must be a multiple of the element's {} bytes",
                    parameter.least,
                    parameter.stride
                );
            }
            if !(buffer.offset as u64).is_multiple_of(align.max(1)) {
                fail!(InvalidArgument, "{what}: offset {}; it must be a multiple of {align}", buffer.offset);
            }
            if bytes > u64::from(most) {
                fail!(Unsupported, "{what}: {bytes} bytes; {} binds at most {most}", shared.info.id);
            }
            let memory = of_device(buffer.buffer, shared)?;
            call.push((memory.clone(), memory.offset() + buffer.offset as u64, bytes));
        }
        Ok(Bound(call))
    }

    /// Records a checked call.
    pub fn encode(&self, recorder: &mut Recorder, call: &Bound, push: &[u8], groups: [u32; 3]) -> Result<()> {
        let inner = &self.0;
        let infos: SmallVec<[vk::DescriptorBufferInfo; 8]> = call
            .0
            .iter()
            .map(|(memory, offset, range)| vk::DescriptorBufferInfo {
                buffer: memory.buffer,
                offset: *offset,
                range: *range,
            })
            .collect();
        let in_use = if inner.pushes || infos.is_empty() { None } else { Some(inner.acquire_sets()?) };
        let sets: &[vk::DescriptorSet] = in_use.as_ref().map_or(&[], |in_use| in_use.sets());
        let writes: SmallVec<[vk::WriteDescriptorSet<'_>; 8]> = infos
            .iter()
            .zip(&inner.parameters)
            .zip(&inner.kinds)
            .map(|((info, parameter), &kind)| {
                let (set, binding) = parameter.slot;
                vk::WriteDescriptorSet::default()
                    .dst_set(sets.get(set as usize).copied().unwrap_or_default())
                    .dst_binding(binding)
                    .descriptor_type(kind)
                    .buffer_info(std::slice::from_ref(info))
            })
            .collect();
        let (api, point) = (&recorder.shared.api, vk::PipelineBindPoint::COMPUTE);
        let (commands, count) = (recorder.commands, writes.len() as u32);
        // SAFETY: the command buffer is being recorded, and the structures live until each call returns. No work uses
        // the sets, and the recorder keeps the buffers that they name until this work is done.
        unsafe {
            match (inner.shared.push_descriptors, in_use.is_some()) {
                (_, true) => {
                    (api.update_descriptor_sets)(inner.shared.device, count, writes.as_ptr(), 0, ptr::null());
                    let (count, layout) = (sets.len() as u32, inner.layout);
                    (api.cmd_bind_descriptor_sets)(commands, point, layout, 0, count, sets.as_ptr(), 0, ptr::null());
                }
                (Some(push), false) if count > 0 => {
                    push(commands, point, inner.layout, 0, count, writes.as_ptr());
                }
                _ => {}
            }
        }
        recorder.barrier(Kind::Kernel);
        recorder.bind(inner.pipeline);
        if !push.is_empty() {
            recorder.push(inner.layout, push);
        }
        recorder.groups(groups);
        recorder.keep(inner.clone());
        call.0.iter().for_each(|(memory, ..)| recorder.keep(memory.clone()));
        if let Some(in_use) = in_use {
            recorder.keep(Arc::new(in_use));
        }
        Ok(())
    }
}

impl Inner {
    /// Makes the parameters from the bindings.
    fn read_bindings(&mut self) -> Result<()> {
        let sets = self.shared.physical.limits.max_bound_descriptor_sets;
        // The bindings are sorted by set and binding.
        for binding in &self.entry.bindings {
            let (set, number) = (binding.set, binding.binding);
            let kind = match binding.kind {
                BindingKind::StorageBuffer => vk::DescriptorType::STORAGE_BUFFER,
                BindingKind::UniformBuffer => vk::DescriptorType::UNIFORM_BUFFER,
            };
            if binding.count != 1 {
                fail!(Unsupported, "set {set}, binding {number} is an array of buffers: kernels take single ones");
            }
            if set >= sets {
                fail!(Unsupported, "set {set}, binding {number}: {} has sets 0 to {}", self.shared.info.id, sets - 1);
            }
            self.kinds.push(kind);
            self.parameters.push(Parameter {
                slot: (set, number),
                least: binding.bytes,
                stride: binding.stride,
                readonly: !binding.writable,
            });
        }
        let few = self.parameters.len() <= MOST_PUSHED;
        self.pushes = few && self.shared.push_descriptors.is_some() && self.parameters.iter().all(|p| p.slot.0 == 0);
        Ok(())
    }

    fn make_layouts(&mut self) -> Result<()> {
        let (api, device) = (&self.shared.api, self.shared.device);
        let sets = self.parameters.iter().map(|parameter| parameter.slot.0 + 1).max().unwrap_or(0);
        for set in 0..sets {
            let bindings: Vec<vk::DescriptorSetLayoutBinding<'_>> = self
                .parameters
                .iter()
                .zip(&self.kinds)
                .filter(|(parameter, _)| parameter.slot.0 == set)
                .map(|(parameter, &kind)| {
                    vk::DescriptorSetLayoutBinding::default()
                        .binding(parameter.slot.1)
                        .descriptor_type(kind)
                        .descriptor_count(1)
                        .stage_flags(vk::ShaderStageFlags::COMPUTE)
                })
                .collect();
            let mut info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            if self.pushes {
                info = info.flags(vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR);
            }
            let mut layout = vk::DescriptorSetLayout::null();
            // SAFETY: the structures live until the call returns.
            let result = unsafe { (api.create_descriptor_set_layout)(device, &info, ptr::null(), &mut layout) };
            self.shared.check(result, "making a descriptor layout")?;
            self.set_layouts.push(layout);
        }
        let size = self.entry.push_constants.as_ref().map_or(0, |push| push.bytes).next_multiple_of(4);
        let range = vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size };
        let ranges = if size > 0 { std::slice::from_ref(&range) } else { &[] };
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&self.set_layouts).push_constant_ranges(ranges);
        // SAFETY: as above.
        let result = unsafe { (api.create_pipeline_layout)(device, &info, ptr::null(), &mut self.layout) };
        self.shared.check(result, "making a pipeline layout")
    }

    /// Returns descriptor sets for a call: idle ones, or new ones.
    fn acquire_sets(self: &Arc<Self>) -> Result<SetsInUse> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let sets = match idle {
            Some(sets) => sets,
            None => self.new_sets()?,
        };
        Ok(SetsInUse { of: self.clone(), sets: Some(sets) })
    }

    fn new_sets(&self) -> Result<Sets> {
        let (api, device) = (&self.shared.api, self.shared.device);
        let sizes: Vec<vk::DescriptorPoolSize> =
            self.kinds.iter().map(|&ty| vk::DescriptorPoolSize { ty, descriptor_count: 1 }).collect();
        let count = self.set_layouts.len();
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(count as u32).pool_sizes(&sizes);
        let mut sets = Sets { pool: vk::DescriptorPool::null(), sets: vec![vk::DescriptorSet::null(); count] };
        // SAFETY: the structures live until each call returns. If the sets can't be allocated, the pool is destroyed.
        unsafe {
            let result = (api.create_descriptor_pool)(device, &info, ptr::null(), &mut sets.pool);
            self.shared.check(result, "making a descriptor pool")?;
            let info =
                vk::DescriptorSetAllocateInfo::default().descriptor_pool(sets.pool).set_layouts(&self.set_layouts);
            let result = (api.allocate_descriptor_sets)(device, &info, sets.sets.as_mut_ptr());
            if result != vk::Result::SUCCESS {
                (api.destroy_descriptor_pool)(device, sets.pool, ptr::null());
            }
            self.shared.check(result, "taking descriptor sets")?;
        }
        Ok(sets)
    }
}

/// Every device with push descriptors supports at least this many in a set.
const MOST_PUSHED: usize = 32;

impl SetsInUse {
    fn sets(&self) -> &[vk::DescriptorSet] {
        self.sets.as_ref().map_or(&[], |sets| &sets.sets)
    }
}

impl Drop for SetsInUse {
    fn drop(&mut self) {
        let sets = self.sets.take();
        self.of.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(sets);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _environment = DefaultEnvironment::enter();
        let (api, device) = (&self.shared.api, self.shared.device);
        if !self.shared.opened_in_this_process() {
            return;
        }
        // SAFETY: work that uses the kernel holds it, so no work does any more.
        unsafe {
            for sets in self.idle.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
                (api.destroy_descriptor_pool)(device, sets.pool, ptr::null());
            }
            (api.destroy_pipeline)(device, self.pipeline, ptr::null());
            (api.destroy_pipeline_layout)(device, self.layout, ptr::null());
            for &layout in &self.set_layouts {
                (api.destroy_descriptor_set_layout)(device, layout, ptr::null());
            }
        }
    }
}

// SAFETY: `as_any` returns `self`.
unsafe impl Kernel for UserKernel {
    fn name(&self) -> &str {
        &self.0.entry.name
    }

    fn parameters(&self) -> &[Parameter] {
        &self.0.parameters
    }

    fn push_bytes(&self) -> usize {
        self.0.entry.push_constants.as_ref().map_or(0, |push| push.bytes as usize).next_multiple_of(4)
    }

    fn push_numbers(&self) -> &[PushNumber] {
        self.0.entry.push_constants.as_ref().map_or(&[], |push| &push.numbers)
    }

    fn workgroup(&self) -> [u32; 3] {
        self.0.entry.workgroup_size
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
