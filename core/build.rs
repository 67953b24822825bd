//! Packs the operations' kernels for the library; `src/hal/lzma.rs` unpacks them, `src/hal/vulkan/shaders.rs` what is in Vulkan's.
//!
//! CUDA's machine code is packed together, because families share instructions, and so is its PTX. Both are unpacked when the first of
//! them is used. Vulkan's become a ninth of their size: words of a kind go into streams of their own. An id is told by how many were
//! defined since, or else as the difference to the last one at its place in such an instruction: functions that modules share look alike
//! then. A stream has a number's lowest seven bits in one part, the others in another.

#[path = "src/hal/vulkan/packing.rs"]
mod packing;

#[path = "src/hal/cuda/instructions.rs"]
mod instructions;

#[path = "src/hal/cuda/registers.rs"]
mod registers;

#[path = "src/hal/cuda/architectures.rs"]
mod architectures;

use lzma_rust2::{EncodeMode, LzmaOptions, LzmaWriter, MfType};
use packing::*;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::{env, fs};

/// The modules, in the order of `Kernels`.
const MODULES: [&str; 10] =
    ["attention", "elementwise", "fixed", "integers", "lines", "matmul", "moves", "quantized", "probe", "matrices"];

/// How many of them CUDA has.
const OF_CUDA: usize = 8;

/// What an instruction's words are, by its opcode. A wrong answer costs bytes, or ends the build.
fn class(opcode: u32) -> u32 {
    let operands = match opcode {
        43 => LITERALS,
        // Debug information, extensions, modes, numeric types, functions' headers and decorations.
        3..=6 | 10 | 11 | 14..=17 | 21..=23 | 32 | 50 | 71 | 72 | 331 => NUMBERS,
        _ => 0,
    };
    let defines = match opcode {
        // Types, labels, imported instructions, strings.
        7 | 11 | 19..=33 | 248 | 4456 => HAS_RESULT,
        1 | 12 | 41..=46 | 48..=52 | 54 | 55 | 57 | 59..=61 | 65..=70 | 77..=84 | 86..=92 => HAS_TYPE | HAS_RESULT,
        109..=205 | 207..=215 | 227 | 229..=242 | 245 | 4457 | 4459 => HAS_TYPE | HAS_RESULT,
        _ => 0,
    };
    operands | defines
}

/// A difference of words as a small number, whatever its sign.
fn folded(to: u32, from: u32) -> u32 {
    let difference = to.wrapping_sub(from) as i32;
    (difference << 1 ^ difference >> 31) as u32
}

/// The parts of each stream.
struct Streams([[Vec<u8>; 2]; STREAMS]);

impl Streams {
    fn push(&mut self, stream: usize, mut value: u32) {
        let mut part = 0;
        while value >= 128 {
            self.0[stream][part].push(value as u8 | 128);
            (value, part) = (value >> 7, 1);
        }
        self.0[stream][part].push(value as u8);
    }

    fn module(&mut self, words: &[u32], seen: &mut Vec<u32>, places: &mut HashMap<(u32, usize), u32>) {
        self.push(NUMBER, words.len() as u32);
        words[1..5].iter().for_each(|&word| self.push(NUMBER, word));
        let (mut lengths, mut last, mut i) = (HashMap::new(), 0, 5);
        while i < words.len() {
            let (opcode, length) = (words[i] & 0xffff, words[i] >> 16);
            let class = class(opcode);
            if !seen.contains(&opcode) {
                seen.push(opcode);
                self.push(CLASS, class);
            }
            self.push(OPCODE, opcode);
            self.push(LENGTH, folded(length, lengths.insert(opcode, length).unwrap_or(0)));
            let mut operands = &words[i + 1..i + length as usize];
            if class & HAS_TYPE != 0 {
                self.push(TYPE, operands[0]);
                operands = &operands[1..];
            }
            if class & HAS_RESULT != 0 {
                self.push(RESULT, folded(operands[0], last + 1));
                last = operands[0];
                operands = &operands[1..];
            }
            for (place, &word) in operands.iter().enumerate() {
                match class & (NUMBERS | LITERALS) {
                    NUMBERS => self.push(NUMBER, word),
                    LITERALS => self.0[LITERAL][0].extend(word.to_le_bytes()),
                    _ => {
                        let before = places.insert((opcode, place.min(PLACES - 1)), word).unwrap_or(0);
                        let age = last.wrapping_sub(word);
                        self.push(ID, if age < YOUNG { age } else { YOUNG + folded(word, before) });
                    }
                }
            }
            i += length as usize;
        }
    }
}

fn main() {
    let folder = Path::new("kernels/vulkan/generated");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/hal/cuda");
    println!("cargo:rerun-if-changed={}", folder.display());
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let (mut streams, mut seen, mut places) = (Streams(Default::default()), Vec::new(), HashMap::new());
    for module in MODULES {
        let bytes = fs::read(folder.join(module).with_extension("spv")).expect("a kernel can be read");
        let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
        let mut words = words.collect::<Vec<_>>();
        let unused = match module {
            "integers" | "matrices" => !cfg!(feature = "integers"),
            "quantized" => !cfg!(feature = "quantized"),
            _ => false,
        };
        if unused {
            // Its header alone.
            words.truncate(5);
        }
        streams.module(&words, &mut seen, &mut places);
    }
    let parts: Vec<_> = streams.0.into_iter().flatten().collect();
    let mut bytes: Vec<_> = parts.iter().flat_map(|part| (part.len() as u32).to_le_bytes()).collect();
    parts.iter().for_each(|part| bytes.extend(part));
    write(Path::new(&out), "vulkan", &bytes, [0, 0, 0]);
    if env::var_os("CARGO_FEATURE_CUDA").is_some() {
        cuda(Path::new(&out));
    }
}

/// CUDA's families, in the order of `Kernels`, as a table for `images.rs`.
fn cuda(out: &Path) {
    let folder = Path::new("kernels/cuda/generated");
    println!("cargo:rerun-if-changed={}", folder.display());
    let read = |family: &str, ending: &str| {
        let path = folder.join(format!("{family}.{ending}"));
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}: run ci/cuda-kernels", path.display()))
    };
    let (mut table, mut machine, mut ptx) = (String::new(), Part::default(), Part::default());
    for family in &MODULES[..OF_CUDA] {
        // Machine code consists of instructions of 16 bytes; a text ends with zero.
        let mut places = Vec::new();
        let compiled = architectures::has_machine_code(family, cfg!(feature = "machine-code"));
        for architecture in architectures::MACHINE_CODE.iter().filter(|_| compiled) {
            let mut code = read(family, &format!("sm_{architecture}.cubin"));
            code.resize((code.len() + 1).next_multiple_of(16), 0);
            let from = machine.bytes.len();
            machine.push(&code);
            places.push((from, machine.bytes.len()));
        }
        for architecture in architectures::PTX {
            if !architectures::has_text(family, architecture) {
                ptx.push(&[]);
                continue;
            }
            let utf8 = |ending: &str| String::from_utf8(read(family, ending)).expect("PTX is ASCII");
            let mut text = utf8(&format!("compute_{}.ptx", architectures::WHOLE));
            if architecture != architectures::WHOLE {
                text = architectures::edited(&text, &utf8(&format!("compute_{architecture}.ed")));
            }
            let mut text = text.into_bytes();
            text.push(0);
            let relative = relative(&text);
            assert!(registers::absolute(&relative) == text, "{family}: registers' numbers don't come back");
            ptx.push(&relative);
        }
        table += &format!("&{places:?},\n");
    }
    write(out, "ptx", &ptx.bytes, [2, 0, 0]);
    let mut code = machine.bytes.clone();
    instructions::pack(&mut code);
    write(out, "machine", &code, [0, 4, 4]);
    instructions::unpack(&mut code);
    assert!(code == machine.bytes, "machine code doesn't come back");
    fs::write(out.join("cuda.rs"), format!("([{table}], {:?})", ptx.ends)).expect("OUT_DIR is writable");
}

/// Files behind each other.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Part {
    fn push(&mut self, file: &[u8]) {
        self.bytes.extend(file);
        self.ends.push(self.bytes.len());
    }
}

/// PTX as `registers.rs` reads it.
fn relative(mut text: &[u8]) -> Vec<u8> {
    let (mut to, mut numbers) = (Vec::new(), registers::Numbers::new());
    while !text.is_empty() {
        let kind = registers::kind_of(text);
        let (before, rest) = text.split_at(kind.max(1));
        numbers.pass(before);
        to.extend(before);
        text = rest;
        if kind > 0 && text.first() == Some(&b'<') {
            numbers.declare(before);
        }
        let (number, digits) = registers::number_of(text);
        if kind == 0 || digits == 0 {
            continue;
        }
        let age = *numbers.newest(before) - number;
        to.extend(
            match age {
                -1 => "!".to_string(),
                0..registers::DIGITS => age.to_string(),
                _ => format!("{:+}", number - *numbers.last()),
            }
            .bytes(),
        );
        *numbers.newest(before) += i64::from(age == -1);
        *numbers.last() = number;
        text = &text[digits..];
    }
    to
}

/// Writes them packed; lc, lp and pb are LZMA's parameters.
fn write(out: &Path, name: &str, bytes: &[u8], [lc, lp, pb]: [u32; 3]) {
    let options = LzmaOptions {
        dict_size: bytes.len().next_power_of_two().max(1 << 16) as u32,
        lc,
        lp,
        pb,
        mode: EncodeMode::Normal,
        nice_len: LzmaOptions::NICE_LEN_MAX,
        mf: MfType::Bt4,
        depth_limit: 1000,
        preset_dict: None,
    };
    let mut packed = vec![options.get_props()];
    packed.extend((bytes.len() as u32).to_le_bytes());
    let mut writer = LzmaWriter::new_no_header(packed, &options, false).expect("the parameters are LZMA's");
    writer.write_all(bytes).expect("there is memory");
    let packed = writer.finish().expect("there is memory");
    fs::write(out.join(format!("{name}.packed")), packed).expect("OUT_DIR is writable");
}
