//! What a checked module declares: entry points, bindings, constants.

use super::check::{Checker, Wrong};
use super::names::*;
use super::sort;
use super::types::*;
use super::{Binding, BindingKind, ConstantKind, EntryPoint, Member, PushConstants, SpecializationConstant};
use crate::error::Result;

/// The most words of a function with all calls inlined, as drivers do.
const MOST_INLINED: u64 = 1 << 24;
/// Marks a function that is not visited yet, and one that is being visited.
const NEW: u64 = 1 << 62;
const OPEN: u64 = 1 << 63;

impl Checker<'_> {
    /// Reads the text that starts at a word; `None` unless it is UTF-8.
    pub fn string(&self, mut at: u32) -> Option<String> {
        let mut bytes = Vec::new();
        loop {
            for byte in self.word(at).to_le_bytes() {
                if byte == 0 {
                    return String::from_utf8(bytes).ok();
                }
                bytes.push(byte);
            }
            at += 1;
        }
    }

    /// Returns where the uses of a function start in the list.
    fn uses_of(&self, function: u32) -> usize {
        let place = u64::from(self.place(function));
        self.uses.partition_point(|&entry| entry >> 32 < place)
    }

    /// Returns the use at this index, if it is the function's.
    fn used(&self, function: u32, index: usize) -> Option<u32> {
        let entry = *self.uses.get(index)?;
        (entry >> 32 == u64::from(self.place(function))).then_some(entry as u32)
    }

    /// Checks that no function calls itself or an entry point, and that inlined functions stay small enough.
    fn calls(&mut self) -> bool {
        sort(&mut self.uses);
        let functions = std::mem::take(&mut self.functions);
        for &id in &functions {
            let words = self.known(id) - u64::from(self.place(id));
            self.learn(id, NEW | words);
        }
        let mut stack: Vec<u64> = Vec::new();
        for &root in &functions {
            self.open(root, &mut stack);
            while let Some(top) = stack.last_mut() {
                let (id, index) = (*top as u32, *top >> 32);
                *top += 1 << 32;
                let cost = self.known(id);
                self.about = id;
                if cost & !OPEN > MOST_INLINED {
                    return false;
                }
                let Some(callee) = self.used(id, index as usize) else {
                    self.learn(id, cost & !OPEN);
                    stack.pop();
                    continue;
                };
                if self.opcode(callee) != 54 {
                    continue;
                }
                let known = self.known(callee);
                if known & OPEN != 0 {
                    return false;
                }
                if known & NEW != 0 {
                    // The callee is visited first, then this use again.
                    *top -= 1 << 32;
                    self.open(callee, &mut stack);
                } else {
                    self.learn(id, cost + known);
                }
            }
        }
        true
    }

    /// Starts the visit of a function, unless it was visited.
    fn open(&mut self, id: u32, stack: &mut Vec<u64>) {
        let known = self.known(id);
        if known & NEW != 0 {
            self.learn(id, known ^ NEW ^ OPEN);
            stack.push((self.uses_of(id) as u64) << 32 | u64::from(id));
        }
    }

    /// Returns the entry points.
    pub fn entry_points(&mut self) -> Result<Vec<EntryPoint>> {
        let mut entries: Vec<EntryPoint> = Vec::new();
        let places = std::mem::take(&mut self.entries);
        self.wrong = Wrong::Interface;
        if !self.calls() {
            return Err(self.error());
        }
        for at in places {
            self.at = at;
            let entry = self.entry_point().filter(|entry| !entries.iter().any(|other| other.name == entry.name));
            entries.push(entry.ok_or_else(|| self.error())?);
        }
        Ok(entries)
    }

    fn entry_point(&mut self) -> Option<EntryPoint> {
        let id = self.word(self.at + 2);
        self.about = id;
        // An entry point has no parameters and no result.
        if self.opcode(self.part(id, 1)) != 19 || self.length(self.part(id, 4)) != 3 {
            return None;
        }
        let mut entry = EntryPoint {
            name: self.string(self.at + 3)?,
            workgroup_size: [0; 3],
            workgroup_constants: [None; 3],
            bindings: Vec::new(),
            push_constants: None,
            shared_bytes: 0,
        };
        self.workgroup(id, &mut entry)?;

        // First the ids that the entry point lists, then the ids that it and its callees use.
        const LISTED: u8 = 1;
        const SEEN: u8 = 2;
        let mut marks = vec![0; self.define.len()];
        self.end = self.at + (self.word(self.at) >> 16);
        for at in self.text(self.at + 3)..self.end {
            *marks.get_mut(self.word(at) as usize)? = LISTED;
        }
        let (mut found, mut next) = (vec![id], 0);
        while let Some(&id) = found.get(next) {
            next += 1;
            self.about = id;
            if self.opcode(id) == 59 {
                // Before SPIR-V 1.4, an entry point lists only its inputs.
                let listed = self.word(1) < 0x1_0400 && self.part(id, 3) != INPUT;
                if marks[id as usize] & LISTED == 0 && !listed {
                    return None;
                }
                self.take(id, &mut entry)?;
                continue;
            }
            let mut index = self.uses_of(id);
            while let Some(used) = self.used(id, index) {
                index += 1;
                let mark = marks.get_mut(used as usize)?;
                if *mark & SEEN == 0 {
                    *mark |= SEEN;
                    found.push(used);
                }
            }
        }
        Some(entry)
    }

    /// Adds a variable that the entry point uses.
    fn take(&self, id: u32, entry: &mut EntryPoint) -> Option<()> {
        let (class, to) = (self.part(id, 3), self.part(self.part(id, 1), 3));
        let of = self.element(to);
        match class {
            WORKGROUP => entry.shared_bytes += self.bytes(to),
            PUSH | UNIFORM | STORAGE => {
                let old = self.find(of, WHOLE, BUFFER_BLOCK) != 0;
                // A block in memory needs the offset of each part.
                if !(old || self.find(of, WHOLE, BLOCK) != 0) || !self.laid_out(of) {
                    return None;
                }
                if class != PUSH {
                    return self.bind(id, to, of, old || class == STORAGE, entry);
                }
                if entry.push_constants.is_some() || self.runtime(of) {
                    return None;
                }
                let numbers = self.numbers(of);
                let mut push = PushConstants { bytes: self.bytes(of) as u32, members: Vec::new(), numbers };
                for index in 0..self.length(of) - 2 {
                    let offset = self.word(self.find(of, index, OFFSET));
                    push.members.push(Member { offset, bytes: self.extent(of, index) as u32 });
                }
                entry.push_constants = Some(push);
            }
            _ => {}
        }
        Some(())
    }

    /// Adds a buffer, or merges it with another variable of the same binding.
    fn bind(&self, id: u32, to: u32, of: u32, storage: bool, entry: &mut EntryPoint) -> Option<()> {
        let (set, binding) = (self.find(id, WHOLE, SET), self.find(id, WHOLE, BINDING));
        let members = self.length(of) - 2;
        let every =
            |kind: u32| self.find(id, WHOLE, kind) != 0 || (0..members).all(|index| self.find(of, index, kind) != 0);
        let (mut count, mut array) = (1u64, to);
        while array != of {
            count = count.saturating_mul(if self.opcode(array) == 28 { self.members(array) } else { 0 });
            array = self.part(array, 2);
        }
        let mut new = Binding {
            set: self.word(set),
            binding: self.word(binding),
            kind: if storage { BindingKind::StorageBuffer } else { BindingKind::UniformBuffer },
            count: count.min(u32::MAX.into()) as u32,
            readable: !storage || !every(NON_READABLE),
            writable: storage && !every(NON_WRITABLE),
            bytes: self.bytes(of),
            stride: if self.runtime(of) { self.stride(self.part(of, 1 + members)) } else { 0 },
        };
        let key = (new.set, new.binding);
        let place = entry.bindings.iter().position(|other| (other.set, other.binding) >= key);
        let place = place.unwrap_or(entry.bindings.len());
        match entry.bindings.get_mut(place) {
            Some(other) if (other.set, other.binding) == key => {
                if other.kind != new.kind {
                    return None;
                }
                new.count = if new.count == 0 { 0 } else { new.count.max(other.count) };
                new.readable |= other.readable;
                new.writable |= other.writable;
                new.bytes = new.bytes.max(other.bytes);
                new.stride = if new.stride == other.stride { new.stride } else { 1 };
                *other = new;
            }
            _ => entry.bindings.insert(place, new),
        }
        (set != 0 && binding != 0 && entry.bindings.len() <= MOST).then_some(())
    }

    /// Reads the workgroup's size of an entry point's function, and the specialization constants behind it.
    fn workgroup(&mut self, function: u32, entry: &mut EntryPoint) -> Option<()> {
        let (mut literal, mut ids) = (0, 0);
        for &at in &self.modes {
            if self.word(at + 1) == function {
                match self.word(at + 2) {
                    17 => literal = at + 3,
                    38 => ids = at + 3,
                    _ => {}
                }
            }
        }
        // The built-in WorkgroupSize takes precedence.
        for &entry in &self.decorations {
            let (target, kind) = ((entry >> (PLACE + 20)) as u32, (entry >> PLACE) as u32 & 0x3f);
            if kind == BUILT_IN && self.word(entry as u32 & ((1 << PLACE) - 1)) == 25 {
                ids = self.place(target) + 3;
                self.about = target;
                if self.shape(self.part(target, 1)) != INTEGER | 32 << 8 | 3 {
                    return None;
                }
            }
        }
        for axis in 0..3 {
            let mut size = self.word(literal + axis);
            if ids != 0 {
                let id = self.word(ids + axis);
                self.about = id;
                let integer = self.shape(self.part(id, 1)) == INTEGER | 32 << 8 | 1;
                if !integer || !matches!(self.opcode(id), 43 | 50 | 52) {
                    return None;
                }
                size = self.known(id) as u32;
                let number = self.find(id, WHOLE, SPEC_ID);
                entry.workgroup_constants[axis as usize] = (number != 0).then(|| self.word(number));
            }
            if size == 0 || literal == 0 && ids == 0 {
                return None;
            }
            entry.workgroup_size[axis as usize] = size;
        }
        Some(())
    }

    /// Returns the specialization constants, sorted by id.
    pub fn constants(&self) -> Vec<SpecializationConstant> {
        let mut constants: Vec<SpecializationConstant> = Vec::new();
        for &entry in &self.decorations {
            let (target, kind) = ((entry >> (PLACE + 20)) as u32, (entry >> PLACE) as u32 & 0x3f);
            if kind != SPEC_ID || constants.len() >= MOST {
                continue;
            }
            let (of, opcode) = (self.part(target, 1), self.opcode(target));
            let shape = self.shape(of);
            let kind = match shape & CLASS {
                BOOL => ConstantKind::Bool,
                FLOAT => ConstantKind::Float,
                _ if self.part(of, 3) == 1 => ConstantKind::Int,
                _ => ConstantKind::Uint,
            };
            let high = if self.length(target) > 4 { self.part(target, 4) } else { 0 };
            let number = u64::from(high) << 32 | u64::from(self.part(target, 3));
            let id = self.word(entry as u32 & ((1 << PLACE) - 1));
            let bytes = if kind == ConstantKind::Bool { 4 } else { (shape >> 8 & 0xff) / 8 };
            let default = if opcode == 50 { number } else { (opcode == 48).into() };
            let place = constants.iter().position(|other| other.id >= id).unwrap_or(constants.len());
            // The workgroup's size may contain another constant with the same id.
            if constants.get(place).is_none_or(|other| other.id != id) {
                constants.insert(place, SpecializationConstant { id, kind, bytes, default });
            }
        }
        constants
    }
}
