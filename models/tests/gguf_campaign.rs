//! Mutated GGUF files: no panic, and little memory. 200,000 files; `ADEAD_EXHAUSTIVE=1` tests 10,000,000.

mod common;

use adead_models::gguf::{Array, Gguf, Kind, Value};
use common::gguf::{Builder, Item};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the bytes that each thread has allocated, and their peak.
struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn allocated(bytes: usize) {
    let now = NOW.get().wrapping_add(bytes);
    NOW.set(now);
    // What this thread freed for another makes it negative.
    PEAK.set(if now as isize > PEAK.get() as isize { now } else { PEAK.get() });
}

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.set(NOW.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's pointer, which is of the system's allocator, with its layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    // realloc is the default: both blocks count while one is copied to the other.
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What an error's text and the file's struct take.
const CONSTANT: usize = 1024;

/// Opens a file, uses all that is in it, and returns whether it opened and the peak of memory while it was opened.
fn open(bytes: Vec<u8>) -> (bool, usize) {
    let size = bytes.len();
    let before = NOW.get();
    PEAK.set(before);
    let opened = Gguf::from_bytes(bytes);
    let peak = PEAK.get().wrapping_sub(before);
    match &opened {
        Ok(gguf) => use_all(gguf, size),
        Err(error) => assert!(error.message().starts_with("not a valid GGUF file: ")),
    }
    (opened.is_ok(), peak)
}

fn use_all(gguf: &Gguf, size: usize) {
    for (key, value) in gguf.metadata() {
        assert!(is_nan(value) || gguf.value(key) == Some(value));
        if let Value::Array(array) = value {
            decode(array);
        }
    }
    let mut ranges: Vec<_> = gguf.tensors().iter().map(|info| info.range()).filter(|range| !range.is_empty()).collect();
    ranges.sort_by_key(|range| range.start);
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{ranges:?}");
    assert!(ranges.last().is_none_or(|range| range.end <= size), "{ranges:?}");
    for info in gguf.tensors() {
        let used = gguf.tensor(info.name());
        assert_eq!(used.is_ok(), !matches!(info.kind(), Kind::Other(_)));
        assert_eq!(gguf.bytes(info).len(), info.size());
        if let (Some(block), Some(bytes)) = (info.kind().block(), info.kind().block_bytes()) {
            assert_eq!(info.elements() / block * bytes, info.size());
        }
    }
}

fn is_nan(value: &Value) -> bool {
    match value {
        Value::F32(value) => value.is_nan(),
        Value::F64(value) => value.is_nan(),
        _ => false,
    }
}

fn decode(array: &Array) {
    let mut count = 0;
    for element in array.iter() {
        count += 1;
        if let Value::Array(array) = &element {
            decode(array);
        }
    }
    assert_eq!(count, array.len());
    assert!(array.strings().is_none_or(|strings| strings.count() == count));
}

/// A generator of random numbers, xorshift64*, with a stream for each number.
struct Random(u64);

impl Random {
    fn new(stream: u64) -> Random {
        let mut random = Random((stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for _ in 0..4 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Valid files: values of every type and nested arrays, many small keys, many tensors, unknown kinds.
fn seeds() -> Vec<Vec<u8>> {
    let nested =
        Item::array(9, vec![vec!["x", ""].into(), Item::array(9, vec![vec![true].into(), vec![1.5f64].into()])]);
    let model = Builder::new()
        .value("general.architecture", "llama")
        .value("a", 1u8)
        .value("b", -1i16)
        .value("llama.block_count", 30u32)
        .value("llama.rope.freq_base", 1e5f32)
        .value("c", false)
        .value("d", u64::MAX)
        .value("tokens", vec!["<s>", "", "schön", "\u{2581}the"])
        .value("types", vec![1i32, 2, 3])
        .value("flags", vec![true, false])
        .value("nested", nested)
        .tensor("token_embd.weight", &[2, 32], Kind::Q8_0, &[1; 68])
        .tensor("output_norm.weight", &[5], Kind::F32, &[2; 20])
        .tensor("cube", &[2, 1, 256], Kind::Q4_K, &[3; 288])
        .tensor("other", &[3], Kind::Other(99), &[4; 3]);
    let name = |index: usize| char::from_u32(0x100 + index as u32).unwrap().to_string();
    let keys = (0..40).fold(Builder::new(), |file, index| file.value(&name(index), index as u8));
    let arrays = (0..20).fold(Builder::new(), |file, index| file.value(&name(index), Vec::<u8>::new()));
    let tensors = (0..20).fold(Builder::new(), |file, index| file.tensor(&name(index), &[1], Kind::F32, &[5; 4]));
    let empty = (0..20).fold(Builder::new(), |file, index| file.tensor(&name(index), &[0], Kind::Q6_K, &[]));
    let strings = Builder::new().value("tokens", vec![""; 60]);
    let files = [model.clone(), model.clone().version(2), model.alignment(8), keys, arrays, tensors, empty, strings];
    files.iter().map(Builder::finish).collect()
}

const INTERESTING: [u64; 18] = [
    0,
    1,
    2,
    3,
    8,
    9,
    13,
    31,
    64,
    255,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 32,
    1 << 59,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

fn mutate(file: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(file.len());
    let near = 1 + random.below(16);
    match random.below(8) {
        0 | 1 if !file.is_empty() => file[at] ^= 1 << random.below(8),
        2 if !file.is_empty() => file[at] = random.next() as u8,
        3 => {
            let inserted: Vec<u8> = (0..near).map(|_| random.next() as u8 & random.next() as u8).collect();
            drop(file.splice(at..at, inserted));
        }
        4 => drop(file.drain(at..(at + near).min(file.len()))),
        5 if random.below(4) == 0 => file.truncate(at),
        _ => {
            let value = match random.below(4) {
                0 => random.next() % (2 * file.len() as u64 + 1),
                1 => INTERESTING[random.below(INTERESTING.len())].wrapping_neg(),
                _ => INTERESTING[random.below(INTERESTING.len())],
            };
            let width = [1, 2, 4, 8][random.below(4)].min(file.len() - at);
            // Half of them where the format's numbers are: behind the header, which counts.
            let at = if random.below(4) == 0 { random.below(24.min(file.len() - width + 1)) } else { at };
            file[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
    }
}

/// Opens the files of a range of numbers. Returns how many opened, and the largest share of the limit of memory.
fn campaign(numbers: impl Iterator<Item = u64>) -> (u64, f64) {
    let seeds = seeds();
    let (mut opened, mut share) = (0, 0f64);
    for number in numbers {
        let mut random = Random::new(number);
        let mut file = seeds[random.below(seeds.len())].clone();
        (0..=random.below(4)).for_each(|_| mutate(&mut file, &mut random));
        let limit = 4 * file.len() + CONSTANT;
        let (valid, peak) = open(file);
        assert!(peak <= limit, "file {number}: {peak} bytes of memory; the limit is {limit}");
        opened += u64::from(valid);
        share = share.max(peak as f64 / limit as f64);
    }
    (opened, share)
}

#[test]
fn mutated_files_are_read_or_refused() {
    let count: u64 = if std::env::var_os("ADEAD_EXHAUSTIVE").is_some() { 10_000_000 } else { 200_000 };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let (opened, share) = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || campaign((thread..count).step_by(threads as usize))))
            .collect();
        let parts = parts.into_iter().map(|part| part.join().unwrap());
        parts.fold((0, 0f64), |(opened, share), part| (opened + part.0, share.max(part.1)))
    });
    println!("{count} files, {opened} of them opened; memory: at most {share:.2} of the limit");
    // Some change only values, so that they open.
    assert!(opened > count / 50 && opened < count / 2, "{opened} of {count}");
}

#[test]
fn the_smallest_parts_take_little_memory() {
    let name = |index: usize| format!("{index:x}");
    let files = [
        ("keys", (0..20_000).fold(Builder::new(), |file, index| file.value(&name(index), 0u8))),
        ("arrays", (0..20_000).fold(Builder::new(), |file, index| file.value(&name(index), Vec::<u8>::new()))),
        ("texts", (0..20_000).fold(Builder::new(), |file, index| file.value(&name(index), ""))),
        ("tensors", (0..20_000).fold(Builder::new(), |file, index| file.tensor(&name(index), &[0], Kind::F32, &[]))),
        ("strings", Builder::new().value("tokens", vec![""; 1_000_000])),
        ("nested", Builder::new().value("a", Item::array(9, vec![Vec::<u8>::new().into(); 100_000]))),
        ("one text", Builder::new().value("a", "x".repeat(1_000_000))),
    ];
    for (what, file) in files {
        let file = file.finish();
        let size = file.len();
        let (opened, peak) = open(file);
        println!("{what}: {size} bytes, {:.2} of them allocated", peak as f64 / size as f64);
        assert!(opened && peak <= 4 * size, "{what}: {peak} bytes of memory for {size}");
    }
    // What is counted isn't there, as far as it can't be seen from the file's size.
    let mut file = Builder::new();
    (file.counted_entries, file.counted_tensors) = (Some(100_000), Some(0));
    let mut file = file.finish();
    file.resize(24 + 13 * 100_000, 0xff);
    let limit = 4 * file.len();
    let (opened, peak) = open(file);
    assert!(!opened && peak <= limit, "{peak}");
}
