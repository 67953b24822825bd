//! Compares the allocators with their peers: `cargo bench -p adead-benches --bench allocators`.
//!
//! A step is one allocation and one release, timed together. The time shown is a step's. `nothing` does everything else that a
//! step does. Memory is not written, so only the allocator is measured. The general allocators use blocks of 64 bytes if they
//! have blocks, and regions twice as large as the live memory.

use adead_benches::Random;
use adead_core::memory::{ArenaAllocator, DeterministicAllocator};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::alloc::Layout;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

const BLOCK: usize = 64;

/// An allocator for any sizes in any order.
trait Heap {
    type Place: Copy;
    const NAME: &'static str;
    /// Makes one with memory for `bytes` bytes in `pieces` pieces.
    fn new(bytes: usize, pieces: usize) -> Self;
    fn take(&mut self, bytes: usize) -> Self::Place;
    fn give(&mut self, place: Self::Place, bytes: usize);
}

/// Allocates nothing: the cost of a step without an allocator.
struct Nothing;

impl Heap for Nothing {
    type Place = usize;
    const NAME: &'static str = "nothing";
    fn new(_: usize, _: usize) -> Nothing {
        Nothing
    }
    #[inline]
    fn take(&mut self, bytes: usize) -> usize {
        black_box(bytes)
    }
    #[inline]
    fn give(&mut self, place: usize, _: usize) {
        black_box(place);
    }
}

impl Heap for DeterministicAllocator {
    type Place = usize;
    const NAME: &'static str = "adead";
    fn new(bytes: usize, _: usize) -> DeterministicAllocator {
        DeterministicAllocator::with_capacity(BLOCK, bytes.div_ceil(BLOCK)).unwrap()
    }
    #[inline]
    fn take(&mut self, bytes: usize) -> usize {
        self.alloc(bytes).unwrap()
    }
    #[inline]
    fn give(&mut self, place: usize, _: usize) {
        self.free(place).unwrap()
    }
}

/// `rlsf`: two-level segregated fit, with its bookkeeping inside the memory that it allocates.
struct Rlsf(rlsf::Tlsf<'static, u32, u32, 28, 16>, NonNull<[MaybeUninit<u8>]>);

impl Heap for Rlsf {
    type Place = NonNull<u8>;
    const NAME: &'static str = "rlsf";
    fn new(bytes: usize, pieces: usize) -> Rlsf {
        let mut heap = rlsf::Tlsf::new();
        // Each piece has a header.
        let pool = Box::leak(Box::<[u8]>::new_uninit_slice(bytes + 32 * pieces));
        let whole = NonNull::from(&mut *pool);
        heap.insert_free_block(pool);
        Rlsf(heap, whole)
    }
    #[inline]
    fn take(&mut self, bytes: usize) -> NonNull<u8> {
        // SAFETY: the size is below isize::MAX and the alignment is a power of two.
        self.0.allocate(unsafe { Layout::from_size_align_unchecked(bytes, 16) }).unwrap()
    }
    #[inline]
    fn give(&mut self, place: NonNull<u8>, _: usize) {
        // SAFETY: `take` returned it, with this alignment.
        unsafe { self.0.deallocate(place, 16) }
    }
}

impl Drop for Rlsf {
    fn drop(&mut self) {
        self.0 = rlsf::Tlsf::new();
        // SAFETY: this is the box leaked in `new`, and nothing uses it any more.
        drop(unsafe { Box::from_raw(self.1.as_ptr()) });
    }
}

/// `offset-allocator`, which counts in blocks too.
impl Heap for offset_allocator::Allocator {
    type Place = offset_allocator::Allocation;
    const NAME: &'static str = "offset-allocator";
    fn new(bytes: usize, pieces: usize) -> Self {
        Self::with_max_allocs((bytes / BLOCK) as u32, 4 * pieces as u32 + 64)
    }
    #[inline]
    fn take(&mut self, bytes: usize) -> Self::Place {
        self.allocate(bytes.div_ceil(BLOCK) as u32).unwrap()
    }
    #[inline]
    fn give(&mut self, place: Self::Place, _: usize) {
        self.free(place)
    }
}

/// The system's malloc.
struct Malloc;

impl Heap for Malloc {
    type Place = *mut u8;
    const NAME: &'static str = "malloc";
    fn new(_: usize, _: usize) -> Malloc {
        Malloc
    }
    #[inline]
    fn take(&mut self, bytes: usize) -> *mut u8 {
        // SAFETY: sizes are not 0, and 16 is a power of two.
        black_box(unsafe { std::alloc::alloc(Layout::from_size_align_unchecked(bytes, 16)) })
    }
    #[inline]
    fn give(&mut self, place: *mut u8, bytes: usize) {
        // SAFETY: `take` returned it, with this layout.
        unsafe { std::alloc::dealloc(place, Layout::from_size_align_unchecked(bytes, 16)) }
    }
}

/// Which piece is released next.
#[derive(Clone, Copy)]
enum Order {
    /// The oldest.
    Fifo,
    /// The newest: sixteen are allocated, then released.
    Lifo,
    /// A random one.
    Random,
}

/// A load: this many live pieces, with sizes from one power of two to a higher one, all octaves equally often.
#[derive(Clone, Copy)]
struct Pattern {
    name: &'static str,
    order: Order,
    live: usize,
    /// The smallest size, as a power of two.
    from: u32,
    octaves: u32,
    /// Whether every other piece is released first, so the memory stays full of holes.
    holes: bool,
}

impl Pattern {
    fn size(&self, random: &mut Random) -> usize {
        let octave = 1u32 << (self.from + random.below(self.octaves));
        (octave + random.below(octave)) as usize
    }

    /// Runs `count` steps on a heap that this pattern has filled. Returns their time.
    fn run<H: Heap>(&self, state: &mut State<H>, count: u64) -> Duration {
        let State { heap, pieces, random, at } = state;
        let start = Instant::now();
        match self.order {
            Order::Lifo => {
                let mut done = 0;
                while done < count {
                    let some = 16.min(count - done) as usize;
                    let mut stack = [pieces[0]; 16];
                    for piece in &mut stack[..some] {
                        let bytes = self.size(random);
                        *piece = (heap.take(bytes), bytes);
                    }
                    for &(place, bytes) in stack[..some].iter().rev() {
                        heap.give(place, bytes);
                    }
                    done += some as u64;
                }
            }
            Order::Fifo | Order::Random => {
                for _ in 0..count {
                    let slot = match self.order {
                        Order::Fifo => {
                            *at = if *at + 1 < pieces.len() { *at + 1 } else { 0 };
                            *at
                        }
                        _ => random.below(pieces.len() as u32) as usize,
                    };
                    let (place, bytes) = pieces[slot];
                    heap.give(place, bytes);
                    let bytes = self.size(random);
                    pieces[slot] = (heap.take(bytes), bytes);
                }
            }
        }
        start.elapsed()
    }

    fn bench<H: Heap>(&self, criterion: &mut Criterion) {
        let mut group = criterion.benchmark_group(self.name);
        group.bench_function(BenchmarkId::new(H::NAME, self.live), |bencher| {
            let mut state = State::<H>::filled(self);
            bencher.iter_custom(|count| self.run(&mut state, count));
            for (place, bytes) in state.pieces {
                state.heap.give(place, bytes);
            }
        });
        group.finish();
    }
}

/// A heap in use.
struct State<H: Heap> {
    heap: H,
    pieces: Vec<(H::Place, usize)>,
    random: Random,
    at: usize,
}

impl<H: Heap> State<H> {
    /// A heap after every piece has been replaced several times.
    fn filled(pattern: &Pattern) -> State<H> {
        let mut random = Random::new(1);
        let count = pattern.live * if pattern.holes { 2 } else { 1 };
        let sum = (3 * ((1usize << pattern.octaves) - 1)) << pattern.from >> 1;
        let mut heap = H::new(2 * count.max(64) * sum.div_ceil(pattern.octaves as usize), count + 64);
        let mut pieces = Vec::new();
        for _ in 0..count {
            let bytes = pattern.size(&mut random);
            pieces.push((heap.take(bytes), bytes));
        }
        if pattern.holes {
            let mut odd = false;
            pieces.retain(|&(place, bytes)| {
                odd = !odd;
                if !odd {
                    heap.give(place, bytes);
                }
                odd
            });
        }
        let mut state = State { heap, pieces, random, at: 0 };
        pattern.run(&mut state, 3 * pattern.live as u64);
        state
    }
}

fn general(criterion: &mut Criterion) {
    let pattern = |name, order, live, from, octaves| Pattern { name, order, live, from, octaves, holes: false };
    let mut patterns = vec![
        pattern("small, first in first out", Order::Fifo, 1000, 6, 2),
        pattern("last in first out", Order::Lifo, 1000, 6, 4),
        pattern("any size, random", Order::Random, 10_000, 6, 6),
        pattern("large, random", Order::Random, 100, 16, 6),
        Pattern { holes: true, ..pattern("holes", Order::Random, 10_000, 6, 5) },
    ];
    // The time of a step for different numbers of live pieces.
    patterns.extend([100, 1000, 10_000, 100_000, 1_000_000].map(|n| pattern("live", Order::Random, n, 6, 3)));
    for pattern in patterns {
        pattern.bench::<Nothing>(criterion);
        pattern.bench::<DeterministicAllocator>(criterion);
        pattern.bench::<Rlsf>(criterion);
        pattern.bench::<offset_allocator::Allocator>(criterion);
        pattern.bench::<Malloc>(criterion);
    }
}

/// Scratch memory: the time to allocate 1000 pieces and release all, per piece.
fn arenas(criterion: &mut Criterion) {
    const PIECES: u64 = 1000;
    /// Runs rounds of [`PIECES`].
    fn rounds(count: u64, mut round: impl FnMut(u64)) -> Duration {
        let start = Instant::now();
        (0..count / PIECES).for_each(|_| round(PIECES));
        round(count % PIECES);
        start.elapsed()
    }
    for (name, from, octaves) in [("arena, small", 4, 4), ("arena, large", 14, 4)] {
        let pattern = Pattern { name, order: Order::Lifo, live: 0, from, octaves, holes: false };
        let mut group = criterion.benchmark_group(name);
        group.bench_function("nothing", |bencher| {
            let mut random = Random::new(1);
            bencher.iter_custom(|count| {
                rounds(count, |pieces| {
                    for _ in 0..pieces {
                        black_box(pattern.size(&mut random));
                    }
                })
            });
        });
        group.bench_function("adead", |bencher| {
            let (mut arena, mut random) = (ArenaAllocator::new(), Random::new(1));
            bencher.iter_custom(|count| {
                rounds(count, |pieces| {
                    for _ in 0..pieces {
                        black_box(arena.alloc(pattern.size(&mut random), 16).unwrap());
                    }
                    arena.reset();
                })
            });
        });
        group.bench_function("bumpalo", |bencher| {
            let (mut arena, mut random) = (bumpalo::Bump::new(), Random::new(1));
            bencher.iter_custom(|count| {
                rounds(count, |pieces| {
                    for _ in 0..pieces {
                        // SAFETY: the size is below isize::MAX and the alignment is a power of two.
                        let layout = unsafe { Layout::from_size_align_unchecked(pattern.size(&mut random), 16) };
                        black_box(arena.try_alloc_layout(layout).unwrap());
                    }
                    arena.reset();
                })
            });
        });
        group.bench_function("malloc", |bencher| {
            let (mut heap, mut random, mut pieces) = (Malloc, Random::new(1), Vec::new());
            bencher.iter_custom(|count| {
                rounds(count, |some| {
                    for _ in 0..some {
                        let bytes = pattern.size(&mut random);
                        pieces.push((heap.take(bytes), bytes));
                    }
                    pieces.drain(..).for_each(|(place, bytes)| heap.give(place, bytes));
                })
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(20)
        .without_plots();
    targets = arenas, general
}
criterion_main!(benches);
