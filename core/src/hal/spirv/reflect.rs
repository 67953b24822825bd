//! What a checked module says of itself: entry points, bindings, constants.

use super::check::{Checker, WHOLE};
use super::names::decoration::*;
use super::names::{CONSTANT, PUSH, STORAGE, UNIFORM, WORKGROUP};
use super::types::Shape;
use super::{Binding, BindingKind, ConstantKind, EntryPoint, Member, PushConstants, SpecializationConstant};
use crate::error::Result;

/// More entry points than any module has: each costs a walk through what it calls.
const MOST_ENTRIES: usize = 64;
/// The most words of a function with everything it calls in its place, as drivers put it.
const MOST_INLINED: u64 = 1 << 24;

impl Checker<'_> {
    /// Instructions of this opcode, as places.
    pub fn all(&self, opcode: u32) -> impl Iterator<Item = usize> {
        let mut at = 5;
        std::iter::from_fn(move || {
            let here = at;
            at += (*self.words.get(here)? >> 16) as usize;
            Some(here)
        })
        .take_while(|&at| at < self.body)
        .filter(move |&at| self.words[at] & 0xffff == opcode)
    }

    /// The text that begins at a word.
    pub fn string(&self, from: usize) -> String {
        let bytes = self.words[from..].iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0);
        String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
    }

    /// No function calls itself, none is an entry point, and put together they stay of a bearable size.
    fn calls(&mut self, entries: &[u32]) -> Result<()> {
        self.uses.sort_unstable();
        for &id in &self.functions {
            self.value[id as usize] = 0;
        }
        let begin = |checker: &Self, id: u32| {
            let place = checker.define[id as usize];
            checker.uses.partition_point(|entry| entry[0] < place)
        };
        let mut stack = Vec::new();
        for root in 0..self.functions.len() {
            let root = self.functions[root];
            if self.value[root as usize] == 0 {
                stack.push((root, begin(self, root), 0));
            }
            while let Some((id, next, cost)) = stack.last_mut() {
                let place = self.define[*id as usize];
                self.value[*id as usize] = 1;
                let Some([_, callee]) = self.uses.get(*next).filter(|entry| entry[0] == place) else {
                    let done = 2 + *cost + u64::from(self.own_words(place as usize));
                    self.value[*id as usize] = done;
                    stack.pop();
                    if let Some((_, _, cost)) = stack.last_mut() {
                        *cost = cost.saturating_add(done);
                    }
                    continue;
                };
                let callee = *callee;
                *next += 1;
                if self.opcode(callee) != 54 {
                    continue;
                }
                let known = self.value[callee as usize];
                if known == 1 || entries.contains(&callee) {
                    return Err(self.fault("functions can't call the function", callee));
                }
                *cost = cost.saturating_add(known);
                if *cost > MOST_INLINED {
                    return Err(self.fault("with what it calls, it is too large, the function", *id));
                }
                if known == 0 {
                    stack.push((callee, begin(self, callee), 0));
                }
            }
        }
        Ok(())
    }

    /// Words of a function without what it calls.
    fn own_words(&self, place: usize) -> u32 {
        let next = self.functions.partition_point(|&id| self.define[id as usize] as usize <= place);
        let end = self.functions.get(next).map_or(self.words.len(), |&id| self.define[id as usize] as usize);
        (end - place) as u32
    }

    /// The entry points.
    pub fn entries(&mut self) -> Result<Vec<EntryPoint>> {
        let places: Vec<usize> = self.all(15).take(MOST_ENTRIES + 1).collect();
        self.ensure(places.len() <= MOST_ENTRIES, "its entry points are more than", MOST_ENTRIES as u32)?;
        let functions: Vec<u32> = places.iter().map(|&place| self.words[place + 2]).collect();
        self.calls(&functions)?;
        let mut entries: Vec<EntryPoint> = Vec::new();
        for place in places {
            self.at = place;
            self.end = place + (self.words[place] >> 16) as usize;
            let entry = self.entry()?;
            let twice = entries.iter().any(|other| other.name == entry.name);
            self.ensure(!twice, "its name has another entry point too, function", self.words[place + 2])?;
            entries.push(entry);
        }
        Ok(entries)
    }

    fn entry(&mut self) -> Result<EntryPoint> {
        let (at, id) = (self.at, self.words[self.at + 2]);
        let plain = self.opcode(self.word(id, 1)) == 19 && self.length(self.word(id, 4)) == 3;
        self.ensure(plain, "an entry point has no parameters and no result; not so function", id)?;
        let mut interface = self.words[self.text(at + 3)?..self.end].to_vec();
        interface.sort_unstable();
        let (workgroup_size, workgroup_constants) = self.workgroup(id)?;
        let mut entry = EntryPoint {
            name: self.string(at + 3),
            workgroup_size,
            workgroup_constants,
            bindings: Vec::new(),
            push_constants: None,
            shared_bytes: 0,
        };

        // What it and the functions it calls use.
        let (mut variables, mut functions, mut next) = (Vec::new(), vec![id], 0);
        let mut seen = vec![false; self.define.len()];
        while let Some(&function) = functions.get(next) {
            next += 1;
            let place = self.define[function as usize];
            let first = self.uses.partition_point(|entry| entry[0] < place);
            for &[_, used] in self.uses[first..].iter().take_while(|entry| entry[0] == place) {
                if !std::mem::replace(&mut seen[used as usize], true) {
                    if self.opcode(used) == 54 { &mut functions } else { &mut variables }.push(used);
                }
            }
        }
        let mut pushed = 0;
        for id in variables {
            let (class, to) = (self.word(id, 3), self.word(self.word(id, 1), 3));
            let listed = class != 1 && self.words[1] < 0x1_0400 || interface.binary_search(&id).is_ok();
            self.ensure(listed, "its interface lacks the variable", id)?;
            match class {
                WORKGROUP => entry.shared_bytes += self.bytes(to),
                PUSH => {
                    self.ensure(pushed == 0, "push constants have another variable too,", id)?;
                    pushed = id;
                    self.block(id, to)?;
                    self.ensure(!self.runtime(to), "no push constants can be of the type", to)?;
                    let members = (0..self.length(to) as u32 - 2).map(|index| Member {
                        offset: self.find(to, index, OFFSET).unwrap_or(0),
                        bytes: self.extent(to, index).min(u64::from(u32::MAX)) as u32,
                    });
                    let bytes = self.bytes(to).min(u64::from(u32::MAX)) as u32;
                    entry.push_constants = Some(PushConstants { bytes, members: members.collect() });
                }
                CONSTANT | UNIFORM | STORAGE => entry.bindings.push(self.binding(id, class, to)?),
                _ => {}
            }
        }
        entry.bindings.sort_by_key(|binding| (binding.set, binding.binding));
        let mut clash = None;
        entry.bindings.dedup_by(|b, a| {
            let same = (a.set, a.binding) == (b.set, b.binding);
            if same {
                // One descriptor under several variables.
                if a.kind != b.kind {
                    clash = Some(a.binding);
                }
                a.count = if a.count == 0 || b.count == 0 { 0 } else { a.count.max(b.count) };
                a.readable |= b.readable;
                a.writable |= b.writable;
                a.bytes = a.bytes.max(b.bytes);
                a.stride = if a.stride == b.stride { a.stride } else { 1 };
            }
            same
        });
        match clash {
            Some(number) => Err(self.fault("two variables differ in kind at binding", number)),
            None => Ok(entry),
        }
    }

    /// The workgroup's size of an entry point's function, and the specialization constants that it is made of.
    fn workgroup(&self, function: u32) -> Result<([u32; 3], [Option<u32>; 3])> {
        let mut constants = [None; 3];
        let built_in = self.decorations.iter().find(|entry| entry[1..] == [WHOLE, BUILT_IN, 25]).map(|entry| entry[0]);
        let mode = |opcode: u32, mode: u32| {
            self.all(opcode).find(|&at| self.words[at + 1..at + 3] == [function, mode]).map(|at| at + 3)
        };
        let ids = match built_in {
            Some(id) => {
                let good = matches!(self.opcode(id), 44 | 51)
                    && self.shape(self.word(id, 1)) == Shape { class: Shape::INTEGER, width: 32, count: 3 };
                self.ensure(good, "it can't be the workgroup's size, id", id)?;
                Some(self.define[id as usize] as usize + 3)
            }
            None => mode(331, 38),
        };
        let mut sizes = [0; 3];
        for axis in 0..3 {
            sizes[axis] = match (ids, mode(16, 17)) {
                (Some(ids), _) => {
                    let id = self.words[ids + axis];
                    let number = matches!(self.opcode(id), 43 | 50 | 52)
                        && self.shape(self.word(id, 1)) == Shape { class: Shape::INTEGER, width: 32, count: 1 };
                    self.ensure(number, "the workgroup's size can't be made of id", id)?;
                    constants[axis] = self.find(id, WHOLE, SPEC_ID);
                    self.value[id as usize] as u32
                }
                (None, Some(at)) => self.words[at + axis],
                (None, None) => 0,
            };
            self.ensure(sizes[axis] > 0, "the workgroup has no size on axis", axis as u32)?;
        }
        Ok((sizes, constants))
    }

    /// A block that lies in memory says where its parts are.
    fn block(&self, id: u32, structure: u32) -> Result<()> {
        let block = self.find(structure, WHOLE, BLOCK).or(self.find(structure, WHOLE, BUFFER_BLOCK)).is_some();
        self.ensure(block && self.laid_out(structure), "its type is no block with explicit offsets and strides, id", id)
    }

    fn binding(&self, id: u32, class: u32, to: u32) -> Result<Binding> {
        let (Some(set), Some(binding)) = (self.find(id, WHOLE, SET), self.find(id, WHOLE, BINDING)) else {
            return Err(self.fault("it has no set or no binding, the variable", id));
        };
        let (mut of, mut count) = (to, 1u64);
        while let 28 | 29 = self.opcode(of) {
            let length = if self.opcode(of) == 28 { self.value[self.word(of, 3) as usize] } else { 0 };
            count = count.saturating_mul(length).min(u64::from(u32::MAX));
            of = self.word(of, 2);
        }
        let (mut readable, mut writable, mut bytes, mut stride) = (true, false, 0, 0);
        let kind = if class == CONSTANT {
            let buffer = self.opcode(of) == 25 && self.word(of, 3) == 5;
            let written = self.opcode(of) == 25 && self.word(of, 7) == 2;
            writable = written;
            match (self.opcode(of), buffer, written) {
                (25, true, true) => BindingKind::StorageTexelBuffer,
                (25, true, false) => BindingKind::UniformTexelBuffer,
                (25, false, true) => BindingKind::StorageImage,
                (25, false, false) => BindingKind::SampledImage,
                (26, ..) => BindingKind::Sampler,
                _ => BindingKind::CombinedImageSampler,
            }
        } else {
            self.block(id, of)?;
            let members = self.length(of) as u32 - 2;
            let every = |kind: u32| {
                let on = |index: u32| self.find(of, index, kind).is_some();
                self.find(id, WHOLE, kind).is_some() || members > 0 && (0..members).all(on)
            };
            bytes = self.bytes(of);
            if self.runtime(of) {
                stride = self.stride(self.word(of, 1 + members as usize));
            }
            if class == STORAGE || self.find(of, WHOLE, BUFFER_BLOCK).is_some() {
                (readable, writable) = (!every(NON_READABLE), !every(NON_WRITABLE));
                BindingKind::StorageBuffer
            } else {
                BindingKind::UniformBuffer
            }
        };
        Ok(Binding { set, binding, kind, count: count as u32, readable, writable, bytes, stride })
    }

    /// The specialization constants, by their numbers.
    pub fn constants(&self) -> Vec<SpecializationConstant> {
        let decorated = self.decorations.iter().filter(|entry| entry[1..3] == [WHOLE, SPEC_ID]);
        let mut constants: Vec<_> = decorated
            .map(|&[target, _, _, id]| {
                let shape = self.shape(self.word(target, 1));
                let (kind, bits) = match shape.class {
                    Shape::BOOL => (ConstantKind::Bool, 32),
                    Shape::FLOAT => (ConstantKind::Float, shape.width),
                    _ if self.word(self.word(target, 1), 3) == 1 => (ConstantKind::Int, shape.width),
                    _ => (ConstantKind::Uint, shape.width),
                };
                let word =
                    |index: usize| if index < self.length(target) { u64::from(self.word(target, index)) } else { 0 };
                let default = if self.opcode(target) == 50 {
                    word(3) | word(4) << 32
                } else {
                    u64::from(self.opcode(target) == 48)
                };
                SpecializationConstant { id, kind, bytes: bits / 8, default }
            })
            .collect();
        constants.sort_by_key(|constant| constant.id);
        // The workgroup's size may have another constant of the same number.
        constants.dedup_by_key(|constant| constant.id);
        constants
    }
}
