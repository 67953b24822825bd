//! Users' kernels in SPIR-V: a check that a module is well formed, and what it declares.
//!
//! Drivers trust a module, and crash on one that is cut off or malformed. So [`Module::parse`] refuses modules that are
//! incomplete or out of order. It takes time and memory in proportion to the module's length. It checks:
//!
//! - the header; the length, opcode and position of every instruction; the ends of texts;
//! - ids: within the bound, defined once, and defined before use on every path; blocks: inside functions, each begun
//!   and ended; jumps to blocks of the same function; phis, by the blocks that jump there;
//! - operands: of the right kind (type, constant, pointer, block) and of types that fit, in arithmetic, loads and
//!   stores, paths into structures, calls and returns; sizes of constants, vectors, arrays and structures;
//! - functions: none calls itself, and none is too large when a driver inlines its calls;
//! - that nothing is used which a Vulkan compute kernel can't have: graphics, ray tracing, OpenCL, decoration groups.
//!
//! - capabilities for widths of numbers, subgroup operations and buffer addresses, so [`Module::capabilities`] lists
//!   every one of these that the module needs.
//!
//! A full validator such as `spirv-val` checks more. A module can pass this check and still be wrong in:
//!
//! - the nesting of selections and loops, and unreachable blocks. (It is checked that a header dominates its merge
//!   block, and that a loop has one jump back.)
//! - signs of integers, types that are declared twice, and decorations on the wrong target;
//! - the layout of blocks: offsets and strides that overlap or are misaligned;
//! - operands of images, and memory semantics that an instruction can't have;
//! - all other capabilities, versions and extensions, and a device's limits.
//!
//! `core/tests/spirv.rs` compares this check with `spirv-val` on randomly changed modules, and lists its remaining
//! complaints.

mod blocks;
mod check;
mod grammar;
mod names;
mod numbers;
mod operands;
mod reflect;
mod rules;
mod types;

use super::{Number, PushNumber, pack};
use crate::error::{Result, fail};
use check::Checker;
use std::collections::BinaryHeap;
use std::fmt;

/// The capabilities that compute kernels use: numbers, each followed by the name.
const CAPABILITIES: &str = "0 Matrix 1 Shader 4 Addresses 5 Linkage 6 Kernel 9 Float16 10 Float64 11 Int64 12 Int64Atomics \
    22 Int16 39 Int8 61 GroupNonUniform 62 GroupNonUniformVote 63 GroupNonUniformArithmetic 64 GroupNonUniformBallot \
    65 GroupNonUniformShuffle 66 GroupNonUniformShuffleRelative 67 GroupNonUniformClustered 68 GroupNonUniformQuad \
    4433 StorageBuffer16BitAccess 4434 UniformAndStorageBuffer16BitAccess 4435 StoragePushConstant16 \
    4441 VariablePointersStorageBuffer 4442 VariablePointers 4448 StorageBuffer8BitAccess \
    4449 UniformAndStorageBuffer8BitAccess 4450 StoragePushConstant8 5345 VulkanMemoryModel \
    5346 VulkanMemoryModelDeviceScope 5347 PhysicalStorageBufferAddresses 6016 DotProductInputAll 6017 DotProductInput4x8Bit \
    6018 DotProductInput4x8BitPacked 6019 DotProduct 6022 CooperativeMatrixKHR \
    6033 AtomicFloat32AddEXT";

/// Sorts as `sort_unstable` does, in a tenth of its 3 KB of code.
fn sort(list: &mut Vec<u64>) {
    *list = BinaryHeap::from(std::mem::take(list)).into_sorted_vec();
}

/// Returns the name of a capability that compute kernels use, such as `Int64` for 11.
pub fn capability_name(number: u32) -> Option<&'static str> {
    let mut words = CAPABILITIES.split(' ');
    // No name parses as a number, so only numbers match.
    words.find(|word| word.parse() == Ok(number)).and(words.next())
}

/// The first word of a module.
const MAGIC: u32 = 0x0723_0203;
/// The most words of a module.
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
    /// The specialization constant that sets the size on each axis, if there is one.
    pub workgroup_constants: [Option<u32>; 3],
    /// The bindings that it and its callees use, sorted by set and binding. Other bindings of the module are left out.
    pub bindings: Vec<Binding>,
    /// Its push constants, if it uses any.
    pub push_constants: Option<PushConstants>,
    /// Bytes of the variables that a workgroup shares.
    pub shared_bytes: u64,
}

/// What a dispatch must provide at a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The descriptor set.
    pub set: u32,
    /// The binding's number in the set.
    pub binding: u32,
    /// The kind of resource.
    pub kind: BindingKind,
    /// The number of resources: 1, unless the kernel declares an array of them. 0 for an array without a length.
    pub count: u32,
    /// Whether the kernel may read it.
    pub readable: bool,
    /// Whether the kernel may write it.
    pub writable: bool,
    /// Bytes of the block's fixed part. The buffer must have at least as many.
    pub bytes: u64,
    /// Bytes between the elements of the array without a length at the block's end. 0 without such an array; 1 if
    /// variables of the same binding disagree.
    pub stride: u64,
}

/// The kind of a bound resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingKind {
    /// A buffer that kernels can read and write.
    StorageBuffer,
    /// A small buffer that kernels can read.
    UniformBuffer,
}

impl BindingKind {
    /// Returns `storage buffer` or `uniform buffer`.
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
    /// Bytes up to its end.
    pub bytes: u32,
    /// Its members, in the order of declaration.
    pub members: Vec<Member>,
    /// The numbers in the block, in the order of declaration. Empty if a member has parts that are no numbers, or if
    /// there are more than 1024.
    pub numbers: Vec<PushNumber>,
}

impl PushConstants {
    /// Packs one number for each of [`PushConstants::numbers`] into the block's bytes, up to a multiple of 4 as a
    /// dispatch takes them. `invalid_argument` names the number that does not fit.
    pub fn pack(&self, numbers: &[Number]) -> Result<Vec<u8>> {
        pack(&self.numbers, self.bytes.next_multiple_of(4) as usize, numbers)
    }
}

/// A member of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its offset in bytes.
    pub offset: u32,
    /// Its length in bytes.
    pub bytes: u32,
}

/// A constant that can be set when the pipeline is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecializationConstant {
    /// Its id.
    pub id: u32,
    /// Its type; `bytes` gives the width.
    pub kind: ConstantKind,
    /// Bytes of a value: 1, 2, 4 or 8. A bool has 4.
    pub bytes: u32,
    /// The bits of its default value.
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
    /// Parses and checks a module from the bytes of a file, in either byte order. `invalid_kernel`, with the word at
    /// fault, if it is malformed or not a compute kernel.
    pub fn parse(bytes: &[u8]) -> Result<Module> {
        let length = bytes.len();
        if !length.is_multiple_of(4) || length < 20 {
            fail!(
                InvalidKernel,
                "SPIR-V: a module has a header of 20 bytes and whole 4-byte words; got {length} bytes"
            );
        }
        if length / 4 > MOST_WORDS {
            fail!(InvalidKernel, "SPIR-V: a module has at most {} bytes; got {length} bytes", MOST_WORDS * 4);
        }
        let first = [bytes[0], bytes[1], bytes[2], bytes[3]];
        let decode = match MAGIC {
            magic if u32::from_le_bytes(first) == magic => u32::from_le_bytes,
            magic if u32::from_be_bytes(first) == magic => u32::from_be_bytes,
            _ => fail!(
                InvalidKernel,
                "SPIR-V: a module begins with {MAGIC:#010x}; this one begins with {:#010x}",
                u32::from_le_bytes(first)
            ),
        };
        let words: Vec<u32> = bytes.chunks_exact(4).map(|word| decode([word[0], word[1], word[2], word[3]])).collect();
        let (version, schema) = (words[1], words[4]);
        if version & 0xff00_00ff != 0 || version >> 16 != 1 || version >> 8 & 0xff > 6 || schema != 0 {
            fail!(
                InvalidKernel,
                "SPIR-V: version {version:#010x} with schema {schema}; adead takes 1.0 to 1.6 with schema 0"
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

    /// Returns the module with some specialization constants set, given as pairs of an id and the value's bits. Sizes
    /// that depend on them change too. `invalid_argument` for an id that no constant has.
    pub fn specialized(&self, constants: &[(u32, u64)]) -> Result<Module> {
        for (id, _) in constants {
            if !self.constants.iter().any(|constant| constant.id == *id) {
                fail!(InvalidArgument, "the kernel has no specialization constant {id}");
            }
        }
        Module::read(self.words.clone(), constants)
    }

    /// Returns the module for a driver, in this machine's byte order.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the numbers of the capabilities that it declares.
    pub fn capabilities(&self) -> &[u32] {
        &self.capabilities
    }

    /// Returns the names of the extensions that it declares.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// Returns the entry points; there is at least one.
    pub fn entry_points(&self) -> &[EntryPoint] {
        &self.entry_points
    }

    /// Returns the entry point with this name. Without a name: `main`, or else the first. `invalid_argument` lists the
    /// existing ones.
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

    /// Returns the specialization constants, sorted by id.
    pub fn constants(&self) -> &[SpecializationConstant] {
        &self.constants
    }
}
