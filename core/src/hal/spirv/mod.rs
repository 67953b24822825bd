//! Kernels that users bring, as SPIR-V: what they say of themselves, and a check that they are well formed.
//!
//! Drivers take a module on trust, and crash on one that is cut off or put together wrongly. [`Module::parse`] therefore
//! refuses what is not whole and in order, in time and memory that grow with the module's length:
//!
//! - the header; every instruction's length, number and place in the module's layout; texts that end;
//! - ids within the bound, defined once, and on every path before they are used; blocks within functions, each begun and
//!   ended; jumps to blocks of the same function; phis of the blocks that jump there;
//! - operands that are what they should be (a type, a constant, a pointer, a block) and types that fit: arithmetic, loads
//!   and stores, paths into structures, calls and returns; sizes of constants, vectors, arrays and structures;
//! - functions that don't call themselves, and don't become too large when a driver puts them into each other;
//! - only what a Vulkan compute kernel may have: no graphics, ray tracing or OpenCL, and no decoration groups.
//!
//! - capabilities for widths of numbers, subgroup operations and addresses of buffers, so that a device that looks at
//!   [`Module::capabilities`] has seen what it is asked for.
//!
//! What takes a whole validator it leaves to `spirv-val`. Modules can pass that are wrong in
//!
//! - how selections and loops nest (that headers dominate what they merge is checked, and that loops have one way back),
//!   and blocks that no path leads to;
//! - signs of integers, types declared twice, decorations that mean nothing where they are;
//! - the layout of blocks: offsets and strides that overlap or are not aligned;
//! - operands of images, and memory semantics that an instruction can't have;
//! - capabilities, versions and extensions for anything but the above, and limits of a device.
//!
//! `core/tests/spirv.rs` holds modules that were changed at random against `spirv-val`, and lists its complaints.

mod blocks;
mod check;
mod grammar;
mod names;
mod numbers;
mod reflect;
mod rules;
mod types;

use super::{Number, PushNumber, pack};
use crate::error::{Result, fail};
use check::Checker;
use std::fmt;

/// Capabilities that compute kernels ask for, each behind its number.
const CAPABILITIES: &str = "0 Matrix 1 Shader 4 Addresses 5 Linkage 6 Kernel 9 Float16 10 Float64 11 Int64 12 Int64Atomics \
    22 Int16 39 Int8 61 GroupNonUniform 62 GroupNonUniformVote 63 GroupNonUniformArithmetic 64 GroupNonUniformBallot \
    65 GroupNonUniformShuffle 66 GroupNonUniformShuffleRelative 67 GroupNonUniformClustered 68 GroupNonUniformQuad \
    4433 StorageBuffer16BitAccess 4434 UniformAndStorageBuffer16BitAccess 4435 StoragePushConstant16 \
    4441 VariablePointersStorageBuffer 4442 VariablePointers 4448 StorageBuffer8BitAccess \
    4449 UniformAndStorageBuffer8BitAccess 4450 StoragePushConstant8 5345 VulkanMemoryModel \
    5346 VulkanMemoryModelDeviceScope 5347 PhysicalStorageBufferAddresses 6016 DotProductInputAll 6017 DotProductInput4x8Bit \
    6018 DotProductInput4x8BitPacked 6019 DotProduct 6022 CooperativeMatrixKHR \
    6033 AtomicFloat32AddEXT";

/// A capability's name, such as `Int64` of 11, unless it is an unusual one.
pub fn capability_name(number: u32) -> Option<&'static str> {
    let mut words = CAPABILITIES.split(' ');
    // Names are no numbers, so no name is taken for one.
    words.find(|word| word.parse() == Ok(number)).and(words.next())
}

/// The number a module begins with.
const MAGIC: u32 = 0x0723_0203;
/// The largest module, in words.
const MOST_WORDS: usize = (1 << names::PLACE) - 1;

/// A checked SPIR-V module.
#[derive(Clone, Debug)]
pub struct Module {
    words: Vec<u32>,
    capabilities: Vec<u32>,
    extensions: Vec<String>,
    entry_points: Vec<EntryPoint>,
    constants: Vec<SpecializationConstant>,
}

/// A function that a dispatch can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    /// Its name, such as `main`.
    pub name: String,
    /// Invocations of a workgroup on each axis, at least 1.
    pub workgroup_size: [u32; 3],
    /// The specialization constant that sets the size on an axis, if one does.
    pub workgroup_constants: [Option<u32>; 3],
    /// What it and the functions it calls use, by set and binding. Bindings of a module that they don't use are not
    /// here.
    pub bindings: Vec<Binding>,
    /// Its push constants, if it uses any.
    pub push_constants: Option<PushConstants>,
    /// Bytes of its variables that a workgroup shares.
    pub shared_bytes: u64,
}

/// What a dispatch must provide at a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The descriptor set.
    pub set: u32,
    /// The number within it.
    pub binding: u32,
    /// What is bound there.
    pub kind: BindingKind,
    /// How many: 1 unless the kernel declares an array of them, 0 for an array of any length.
    pub count: u32,
    /// Whether the kernel may read it.
    pub readable: bool,
    /// Whether the kernel may write it.
    pub writable: bool,
    /// Bytes of the block's fixed part, which a buffer must have at least.
    pub bytes: u64,
    /// Bytes from one element to the next of the array of any length at the block's end; 0 if there is none, 1 if
    /// variables that share the binding differ in it.
    pub stride: u64,
}

/// What is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingKind {
    /// A buffer to read and write.
    StorageBuffer,
    /// A small buffer to read.
    UniformBuffer,
}

impl BindingKind {
    /// Such as `storage buffer`.
    pub const fn name(self) -> &'static str {
        match self {
            BindingKind::StorageBuffer => "storage buffer",
            BindingKind::UniformBuffer => "uniform buffer",
        }
    }
}

impl fmt::Display for BindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The block of push constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushConstants {
    /// Bytes to its end.
    pub bytes: u32,
    /// Its members, as declared.
    pub members: Vec<Member>,
    /// The numbers that these are made of, by offset as declared; none if a member is made of anything else or there are more
    /// than 1024.
    pub numbers: Vec<PushNumber>,
}

impl PushConstants {
    /// The block's bytes, up to a multiple of 4 as a dispatch takes them, from one number for each of [`PushConstants::numbers`].
    /// `invalid_argument` names the one that does not fit.
    pub fn pack(&self, numbers: &[Number]) -> Result<Vec<u8>> {
        pack(&self.numbers, self.bytes.next_multiple_of(4) as usize, numbers)
    }
}

/// A member of a block, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where it begins.
    pub offset: u32,
    /// How long it is.
    pub bytes: u32,
}

/// A constant that can be set when a pipeline is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecializationConstant {
    /// Its number.
    pub id: u32,
    /// Its type, with `bytes`.
    pub kind: ConstantKind,
    /// Bytes of a value: 1, 2, 4 or 8; 4 for a bool.
    pub bytes: u32,
    /// The bits of its default.
    pub default: u64,
}

/// The type of a specialization constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantKind {
    /// 0 or 1, in 4 bytes.
    Bool,
    /// A signed integer.
    Int,
    /// An unsigned integer.
    Uint,
    /// A float.
    Float,
}

impl Module {
    /// A module from the bytes of a file, in either byte order. `invalid_kernel`, with the word at fault, if it is not
    /// well formed or not a compute kernel.
    pub fn parse(bytes: &[u8]) -> Result<Module> {
        let length = bytes.len();
        if !length.is_multiple_of(4) || length < 20 {
            fail!(InvalidKernel, "SPIR-V: {length} bytes are no module; it has a header of 20 and whole words");
        }
        if length / 4 > MOST_WORDS {
            fail!(InvalidKernel, "SPIR-V: a module of {length} bytes; at most {} are taken", MOST_WORDS * 4);
        }
        let first = [bytes[0], bytes[1], bytes[2], bytes[3]];
        let decode = match MAGIC {
            magic if u32::from_le_bytes(first) == magic => u32::from_le_bytes,
            magic if u32::from_be_bytes(first) == magic => u32::from_be_bytes,
            _ => fail!(
                InvalidKernel,
                "SPIR-V: a module begins with {MAGIC:#010x} and this with {:#010x}",
                u32::from_le_bytes(first)
            ),
        };
        let words: Vec<u32> = bytes.chunks_exact(4).map(|word| decode([word[0], word[1], word[2], word[3]])).collect();
        let (version, schema) = (words[1], words[4]);
        if version & 0xff00_00ff != 0 || version >> 16 != 1 || version >> 8 & 0xff > 6 || schema != 0 {
            fail!(
                InvalidKernel,
                "SPIR-V: version {version:#010x} with schema {schema}; 1.0 to 1.6 with schema 0 are taken"
            );
        }
        Module::read(words, &[])
    }

    fn read(words: Vec<u32>, specialization: &[(u32, u64)]) -> Result<Module> {
        let mut checker = Checker::new(&words, specialization);
        checker.check()?;
        let (entry_points, constants) = (checker.entry_points()?, checker.constants());
        let capabilities = std::mem::take(&mut checker.capabilities);
        let extensions = checker.extensions.iter().filter_map(|&at| checker.string(at + 1)).collect();
        Ok(Module { capabilities, extensions, entry_points, constants, words })
    }

    /// The same module with some of its specialization constants set: pairs of a constant's number and its value's bits.
    /// Sizes that depend on them follow. `invalid_argument` for a number that no constant has.
    pub fn specialized(&self, constants: &[(u32, u64)]) -> Result<Module> {
        for (id, _) in constants {
            if !self.constants.iter().any(|constant| constant.id == *id) {
                fail!(InvalidArgument, "the kernel has no specialization constant {id}");
            }
        }
        Module::read(self.words.clone(), constants)
    }

    /// The module for a driver, in this machine's byte order.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The numbers of the capabilities that it declares.
    pub fn capabilities(&self) -> &[u32] {
        &self.capabilities
    }

    /// The names of the extensions that it declares.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// What it can be asked to run; at least one.
    pub fn entry_points(&self) -> &[EntryPoint] {
        &self.entry_points
    }

    /// The entry point of that name; without one `main`, else the first. `invalid_argument` lists those that there are.
    pub fn entry_point(&self, name: Option<&str>) -> Result<&EntryPoint> {
        let entries = self.entry_points();
        let wanted = name.unwrap_or("main");
        let found = entries.iter().find(|entry| entry.name == wanted);
        match found.or(if name.is_none() { entries.first() } else { None }) {
            Some(entry) => Ok(entry),
            None => {
                let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
                fail!(InvalidArgument, "the module has no entry point '{wanted}': it has {}", names.join(", "))
            }
        }
    }

    /// Its specialization constants, by number.
    pub fn constants(&self) -> &[SpecializationConstant] {
        &self.constants
    }
}
