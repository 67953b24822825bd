//! The allocators against simple models.

use adead_core::Status;
use adead_core::memory::{
    ArenaAllocator, DEFAULT_BLOCK_SIZE, DEFAULT_BLOCKS, DeterministicAllocator, MAX_ALIGN, Scope,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The documented placement rule, on a plain map.
struct Model {
    block: usize,
    blocks: usize,
    /// First block and length of each live allocation.
    live: BTreeMap<usize, usize>,
}

/// `docs/memory.md`: lengths with the same three leading bits form a class. All lengths from 7 * 2^13 up form one.
fn class(blocks: usize) -> (u32, usize) {
    let octave = blocks.ilog2();
    (octave, (blocks << 2) >> octave).min((15, 7))
}

impl Model {
    fn runs(&self) -> Vec<(usize, usize)> {
        let (mut runs, mut end) = (Vec::new(), 0);
        for (&first, &blocks) in self.live.iter().chain([(&self.blocks, &0)]) {
            if first > end {
                runs.push((end, first - end));
            }
            end = first + blocks;
        }
        runs
    }

    fn longest(&self) -> usize {
        self.runs().iter().map(|run| run.1).max().unwrap_or(0)
    }

    fn used(&self) -> usize {
        self.live.values().sum()
    }

    fn need(&self, bytes: usize) -> usize {
        bytes.max(1).div_ceil(self.block)
    }

    fn alloc(&mut self, bytes: usize) -> Option<usize> {
        let (need, runs) = (self.need(bytes), self.runs());
        let fits = |run: &&(usize, usize)| run.1 >= need;
        let own = runs.iter().find(|run| class(run.1) == class(need)).filter(fits);
        let above = runs.iter().find(|run| class(run.1) > class(need));
        let first = [own, above].into_iter().flatten().min().or_else(|| runs.iter().find(fits))?.0;
        self.live.insert(first, need);
        Some(first * self.block)
    }
}

#[derive(Clone, Debug)]
enum Op {
    Alloc(usize),
    /// Frees the live allocation with this number, modulo their count.
    Free(usize),
    /// Frees an offset that was never allocated, or was freed before.
    Stale(usize),
    Foreign(usize),
    Reset,
}

fn ops(bytes: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        30 => (0..=bytes).prop_map(Op::Alloc),
        20 => (0..=bytes / 16).prop_map(Op::Alloc),
        2 => any::<usize>().prop_map(Op::Alloc),
        40 => any::<usize>().prop_map(Op::Free),
        5 => any::<usize>().prop_map(Op::Stale),
        5 => (0..bytes * 2).prop_map(Op::Foreign),
        2 => any::<usize>().prop_map(Op::Foreign),
        1 => Just(Op::Reset),
    ];
    prop::collection::vec(op, 0..200)
}

/// Block size, number of blocks, and operations: a few blocks, a few bitmap words, and three levels of them.
fn cases() -> impl Strategy<Value = (usize, usize, Vec<Op>)> {
    (prop_oneof![Just(64usize), Just(4096)], prop_oneof![1..10usize, 1..300usize, 4000..70_000usize])
        .prop_flat_map(|(block, blocks)| (Just(block), Just(blocks), ops(block * blocks / 6 + block)))
}

/// Marks the ends of an allocation's bytes with its owner.
fn mark(bytes: &mut [u8], value: u8) {
    let len = bytes.len();
    bytes[..64].fill(value);
    bytes[len - 64..].fill(value);
}

fn is_marked(bytes: &[u8], value: u8) -> bool {
    bytes[..64].iter().chain(&bytes[bytes.len() - 64..]).all(|&byte| byte == value)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn deterministic_agrees_with_the_model((block, blocks, ops) in cases()) {
        let mut memory = DeterministicAllocator::with_capacity(block, blocks).unwrap();
        let mut twin = DeterministicAllocator::with_capacity(block, blocks).unwrap();
        let mut model = Model { block, blocks, live: BTreeMap::new() };
        let (mut values, mut freed) = (BTreeMap::new(), Vec::new());
        let (mut peak, mut largest, mut high) = (0, 1, 0);
        prop_assert_eq!((memory.block_size(), memory.capacity()), (block, block * blocks));

        for (step, op) in ops.into_iter().enumerate() {
            match op {
                Op::Alloc(bytes) => {
                    let (before, need, live) = (model.runs(), bytes.saturating_sub(1) / block + 1, model.live.len());
                    let used = model.used();
                    let got = memory.alloc(bytes);
                    let same = twin.alloc(bytes);
                    prop_assert_eq!(got.as_ref().ok(), same.as_ref().ok());
                    match (got, model.alloc(bytes)) {
                        (Ok(offset), Some(expected)) => {
                            prop_assert_eq!(offset, expected);
                            prop_assert_eq!(memory.size(offset).unwrap(), need * block);
                            prop_assert_eq!(memory.ptr(offset).unwrap().addr().get() % block, 0);
                            mark(memory.bytes_mut(offset).unwrap(), step as u8);
                            values.insert(offset, step as u8);
                            (peak, largest) = (peak.max(model.used()), largest.max(need));
                            high = high.max(offset / block + need);
                        }
                        (Err(error), None) => {
                            prop_assert_eq!(error.status(), Status::OutOfMemory);
                            let numbers = [bytes, block * (blocks - used), block * model.longest()];
                            prop_assert!(numbers.iter().all(|n| error.message().contains(&n.to_string())), "{}", error);
                            // It fails exactly if no run is long enough. So more free memory must be in many runs, and the bound
                            // of fragmentation must be exceeded.
                            prop_assert!(before.iter().all(|run| run.1 < need));
                            prop_assert!(blocks - used <= (live + 1) * (need - 1));
                            if need <= blocks {
                                let (peak, largest) = (peak.max(used + need), largest.max(need));
                                prop_assert!(blocks < bound(peak, largest));
                            }
                        }
                        (got, expected) => prop_assert!(false, "{got:?}, expected {expected:?}"),
                    }
                }
                Op::Free(index) if !model.live.is_empty() => {
                    let first = *model.live.keys().nth(index % model.live.len()).unwrap();
                    let offset = first * block;
                    prop_assert!(is_marked(memory.bytes(offset).unwrap(), values[&offset]));
                    memory.free(offset).unwrap();
                    twin.free(offset).unwrap();
                    model.live.remove(&first);
                    values.remove(&offset);
                    freed.push(offset);
                }
                Op::Free(_) => {}
                Op::Stale(index) if freed.is_empty() => prop_assert!(memory.free(index).is_err()),
                Op::Stale(index) => refused(&mut memory, &model, freed[index % freed.len()])?,
                Op::Foreign(offset) => refused(&mut memory, &model, offset)?,
                Op::Reset => {
                    memory.reset();
                    // The twin starts from scratch instead, which must give the same state.
                    twin = DeterministicAllocator::with_capacity(block, blocks).unwrap();
                    model.live.clear();
                    values.clear();
                    (peak, largest, high) = (0, 1, 0);
                }
            }
            prop_assert_eq!(memory.used(), model.used() * block);
            prop_assert_eq!(memory.used() + memory.available(), memory.capacity());
            prop_assert_eq!(memory.largest_free(), model.longest() * block);
            prop_assert_eq!(memory.live(), model.live.len());
            prop_assert_eq!(memory.high_water(), high * block);
            prop_assert!(high <= bound(peak, largest));
        }

        for (offset, value) in values {
            prop_assert!(is_marked(memory.bytes(offset).unwrap(), value));
            memory.free(offset).unwrap();
        }
        prop_assert_eq!((memory.used(), memory.live()), (0, 0));
        prop_assert_eq!(memory.largest_free(), memory.capacity());
        prop_assert_eq!(memory.alloc(memory.capacity()).unwrap(), 0);
        prop_assert_eq!(memory.alloc(0).unwrap_err().status(), Status::OutOfMemory);
    }
}

/// The stated bound of external fragmentation, in blocks.
fn bound(peak: usize, largest: usize) -> usize {
    peak * (1 + 3 * largest.next_power_of_two().trailing_zeros() as usize)
}

/// An offset that is not a live allocation's is refused by every call, and changes nothing.
fn refused(memory: &mut DeterministicAllocator, model: &Model, offset: usize) -> Result<(), TestCaseError> {
    if offset.is_multiple_of(model.block) && model.live.contains_key(&(offset / model.block)) {
        return Ok(());
    }
    let errors = [memory.free(offset).err(), memory.size(offset).err(), memory.ptr(offset).err()];
    for error in errors.into_iter().chain([memory.bytes(offset).err(), memory.bytes_mut(offset).err()]) {
        prop_assert_eq!(error.map(|error| error.status()), Some(Status::InvalidArgument));
    }
    Ok(())
}

#[test]
fn fragmentation_stays_within_the_bound_under_attack() {
    // Robson's game: fill with blocks of one size, keep as few as possible that leave no room for twice the size, double the
    // size.
    let budget = 2048;
    let mut memory = DeterministicAllocator::with_capacity(64, DEFAULT_BLOCKS).unwrap();
    let (mut live, mut used, mut largest) = (Vec::new(), 0, 0);
    for size in (0..=8).map(|level| 1usize << level) {
        while used + size <= budget {
            live.push((memory.alloc(size * 64).unwrap() / 64, size));
            (used, largest) = (used + size, size);
        }
        live.sort_unstable();
        let mut window = usize::MAX;
        live.retain(|&(first, blocks)| {
            let keep = (first + blocks - 1) / (2 * size) != window;
            window = if keep { (first + blocks - 1) / (2 * size) } else { window };
            if !keep {
                memory.free(first * 64).unwrap();
                used -= blocks;
            }
            keep
        });
    }
    let high = memory.high_water() / 64;
    assert!(high > 2 * budget && high <= bound(budget, largest), "{high} blocks of {}", bound(budget, largest));
}

#[test]
fn one_block_requests_lose_nothing() {
    let mut memory = DeterministicAllocator::with_capacity(64, 5000).unwrap();
    let offsets: Vec<_> = (0..5000).map(|_| memory.alloc(64).unwrap()).collect();
    for offset in offsets.iter().step_by(3) {
        memory.free(*offset).unwrap();
    }
    for offset in offsets.iter().step_by(3) {
        assert_eq!(memory.alloc(1).unwrap(), *offset);
    }
    assert!(memory.alloc(1).is_err());
}

#[test]
fn holes_of_any_size_are_used_again() {
    // Sizes between powers of two and between classes.
    for blocks in [3, 5, 9, 100, 300, 777] {
        let mut memory = DeterministicAllocator::new().unwrap();
        let offsets: Vec<_> = (0..20).map(|_| memory.alloc(blocks * 4096).unwrap()).collect();
        for _ in 0..100 {
            memory.free(offsets[7]).unwrap();
            assert_eq!(memory.alloc(blocks * 4096).unwrap(), offsets[7]);
        }
    }
}

#[test]
fn default_size_and_limits() {
    let mut memory = DeterministicAllocator::new().unwrap();
    assert_eq!((memory.block_size(), memory.capacity()), (DEFAULT_BLOCK_SIZE, DEFAULT_BLOCK_SIZE * DEFAULT_BLOCKS));
    assert_eq!(memory.capacity(), 256 << 20);
    let a = memory.alloc(0).unwrap();
    assert_eq!(memory.bytes(a).unwrap(), [0; 4096]);
    assert_eq!((memory.used(), memory.alloc(usize::MAX).unwrap_err().status()), (4096, Status::OutOfMemory));
    for (block, blocks) in [(0, 1), (1, 1), (32, 1), (96, 1), (1 << 31, 1), (4096, 0), (4096, usize::MAX)] {
        let error = DeterministicAllocator::with_capacity(block, blocks).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument, "{block}, {blocks}");
    }
    // 2^54 bytes, more than a process can map.
    let error = DeterministicAllocator::with_capacity(1 << 30, 1 << 24).unwrap_err();
    assert_eq!(error.status(), Status::OutOfMemory);
}

#[test]
fn allocators_move_between_threads() {
    let mut memory = DeterministicAllocator::with_capacity(64, 100).unwrap();
    let mut arena = ArenaAllocator::new();
    let offset = std::thread::spawn(move || {
        arena.alloc(10, 1).unwrap().fill(1);
        arena.reset();
        memory.alloc(10).unwrap()
    });
    assert_eq!(offset.join().unwrap(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Alloc(usize, u32),
    Scope(Vec<Step>, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![10 => 0..100usize, 3 => 0..5000usize, 1 => 0..200_000usize];
    let alloc = (size, 0..=12u32).prop_map(|(bytes, align)| Step::Alloc(bytes, align));
    let leaf = prop::collection::vec(alloc.clone(), 0..20);
    leaf.prop_recursive(4, 100, 8, move |inner| {
        let scope = (inner, any::<bool>()).prop_map(|(steps, panic)| Step::Scope(steps, panic));
        prop::collection::vec(prop_oneof![2 => alloc.clone(), 1 => scope], 0..8)
    })
}

/// Runs the steps. Checks at the end that no later allocation disturbed an earlier one.
fn play(scope: &mut Scope<'_>, steps: &[Step], limit: usize, count: &mut u8) {
    let mut live: Vec<(&mut [u8], u8)> = Vec::new();
    for step in steps {
        let before = scope.used();
        match step {
            Step::Alloc(bytes, align) => match scope.alloc(*bytes, 1 << align) {
                Ok(memory) => {
                    *count = count.wrapping_add(1);
                    assert_eq!((memory.len(), memory.as_ptr().addr() % (1 << align)), (*bytes, 0));
                    assert!(scope.used() >= before + bytes && scope.used() < before + bytes + (1 << align));
                    memory.fill(*count);
                    live.push((memory, *count));
                }
                Err(error) => {
                    assert_eq!((error.status(), scope.used()), (Status::OutOfMemory, before));
                    assert!(*bytes > 0 && limit < usize::MAX);
                }
            },
            Step::Scope(steps, panic) => {
                let body = |inner: &mut Scope<'_>| {
                    play(inner, steps, limit, count);
                    if *panic {
                        std::panic::resume_unwind(Box::new(()));
                    }
                };
                let ended = catch_unwind(AssertUnwindSafe(|| scope.scope(body)));
                assert_eq!((ended.is_err(), scope.used()), (*panic, before));
            }
        }
    }
    assert!(live.iter().all(|(memory, value)| memory.iter().all(|byte| byte == value)));
}

proptest! {
    #[test]
    fn arena_scopes_nest(
        steps in steps(),
        (first, limit) in prop_oneof![
            (1..100_000usize).prop_map(|bytes| (bytes, bytes)),
            (1..10_000usize).prop_map(|bytes| (bytes, bytes * 30)),
            (1..10_000usize).prop_map(|bytes| (bytes, usize::MAX)),
        ],
    ) {
        let mut arena = ArenaAllocator::with_limit(first, limit).unwrap();
        prop_assert_eq!((arena.used(), arena.capacity()), (0, first));
        let mut capacity = first;
        for round in 0..3 {
            arena.scope(|scope| play(scope, &steps, limit, &mut 0));
            prop_assert_eq!(arena.used(), 0);
            prop_assert!(arena.capacity() <= limit);
            // Repeating the same steps takes no more memory.
            prop_assert!(round == 0 || arena.capacity() == capacity);
            capacity = arena.capacity();
        }
    }

    #[test]
    fn arena_allocations_are_apart(sizes in prop::collection::vec((0..3000usize, 0..=12u32), 0..100)) {
        let mut arena = ArenaAllocator::with_capacity(100).unwrap();
        for _ in 0..2 {
            let alloc = |&(bytes, align): &(usize, u32)| arena.alloc(bytes, 1 << align).unwrap();
            let mut live: Vec<_> = sizes.iter().map(alloc).collect();
            for (value, memory) in live.iter_mut().enumerate() {
                memory.fill(value as u8);
            }
            prop_assert!(live.iter().enumerate().all(|(value, memory)| memory.iter().all(|&byte| byte == value as u8)));
            prop_assert!(arena.used() >= sizes.iter().map(|size| size.0).sum());
            prop_assert!(arena.used() <= arena.capacity());
            arena.reset();
            prop_assert_eq!(arena.used(), 0);
        }
    }
}

#[test]
fn arena_limits() {
    let arena = ArenaAllocator::fixed(100).unwrap();
    assert_eq!(arena.capacity(), 100);
    assert_eq!(arena.alloc(60, 1).unwrap().len(), 60);
    let error = arena.alloc(1, 128).unwrap_err();
    assert_eq!((error.status(), arena.used()), (Status::OutOfMemory, 60));
    assert_eq!(arena.alloc(40, 4).unwrap().len(), 40);
    assert!(arena.alloc(0, MAX_ALIGN).unwrap().is_empty());
    for align in [0, 3, MAX_ALIGN * 2, usize::MAX] {
        assert_eq!(arena.alloc(0, align).unwrap_err().status(), Status::InvalidArgument);
    }
    let arena = ArenaAllocator::new();
    assert_eq!((arena.capacity(), arena.used()), (0, 0));
    for bytes in [usize::MAX, isize::MAX as usize, isize::MAX as usize - MAX_ALIGN] {
        assert_eq!(arena.alloc(bytes, 1).unwrap_err().status(), Status::OutOfMemory);
        assert_eq!(ArenaAllocator::fixed(bytes).unwrap_err().status(), Status::OutOfMemory);
        assert_eq!(ArenaAllocator::with_capacity(bytes).unwrap_err().status(), Status::OutOfMemory);
    }
    assert_eq!(arena.alloc(1 << 20, MAX_ALIGN).unwrap()[0], 0);
    assert_eq!(ArenaAllocator::fixed(0).unwrap_err().status(), Status::InvalidArgument);
    assert_eq!(ArenaAllocator::with_limit(10, 9).unwrap_err().status(), Status::InvalidArgument);
}
