//! The programs of `examples/programs`. Programs generated from others are compared with them; `ADEAD_BLESS=1` writes them.

use super::{LIMIT, Random, context, decode_example, example, run};
use adead_core::contract::{self, GeluForm};
use adead_core::program::{Direction, Format, Program};
use adead_core::{Attrs, Axis, DType, MatmulOptions, Op, Tensor, reference};

/// An AHYB file around an AGPU program, with machine code that would end the process: `ud2`.
pub(super) fn hybrid(gpu: &[u8]) -> Vec<u8> {
    let (cpu, data) = (b"\x0f\x0b".repeat(8), b"data".to_vec());
    let mut bytes = b"AHYB\x01\0\0\0".to_vec();
    for size in [cpu.len(), gpu.len(), data.len(), 2] {
        bytes.extend((size as u32).to_le_bytes());
    }
    bytes.extend([&cpu[..], gpu, &data].concat());
    for (name, value) in [("main", 0u32), ("weights", 0x1000)] {
        let mut field = name.as_bytes().to_vec();
        field.resize(32, 0);
        bytes.extend(field);
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

#[test]
fn generated_examples_are_current() {
    let files = [
        ("mlp.adead", decode_example("mlp.asm").encode()),
        ("attention.hex", decode_example("attention.asm").encode_hex().unwrap().into_bytes()),
        ("hybrid.ahyb", hybrid(&decode_example("softmax.asm").encode_agpu().unwrap())),
    ];
    for (name, bytes) in files {
        if std::env::var_os("ADEAD_BLESS").is_some() {
            std::fs::write(example(name), &bytes).unwrap();
        }
        assert!(std::fs::read(example(name)).unwrap() == bytes, "{name} differs; ADEAD_BLESS=1 writes it");
    }
}

#[test]
fn matmul_1024() {
    let program = decode_example("matmul_1024.hex");
    assert_eq!((program.format(), program.len(), program.is_agpu()), (Format::Hex, 13, true));
    assert_eq!(program.line(6).unwrap(), "matmul r0 r1 r2 1024 1024 1024");
    let slots: Vec<_> = program.slots().iter().map(|slot| (slot.name.as_str(), slot.direction, slot.bytes)).collect();
    let (input, output) = (Direction::In, Direction::Out);
    assert_eq!(slots, [("0x1000", input, 4 << 20), ("0x2000", input, 4 << 20), ("0x3000", output, 4 << 20)]);
    assert!(program.slots().iter().all(|slot| slot.meta.shape.dims() == [1024, 1024]));

    // Three registers and the output.
    let plan = program.validate(16 << 20).unwrap();
    assert_eq!(plan.memory(), 16 << 20);
    assert!(program.validate((16 << 20) - 1).is_err());

    let mut random = Random(1);
    let (a, b) = (random.tensor(&[1024, 1024]), random.tensor(&[1024, 1024]));
    let outcome = run(&program, &[("0x1000", &a), ("0x2000", &b)]);
    assert_eq!((outcome.instructions, outcome.flops), (13, 2.0 * 1024f64.powi(3)));
    assert_eq!(outcome.trace[6].name, "matmul");
    assert!(outcome.trace[6].gflops() > 0.0 && &*outcome.trace[6].device == "cpu");
    let c = outcome.output("0x3000").unwrap();
    assert_eq!(c.dims(), [1024, 1024]);
    let (a, b, c) = (a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap(), c.to_vec::<f32>().unwrap());
    for _ in 0..200 {
        let (i, j) = (random.below(1024), random.below(1024));
        let expected = contract::dot(1024, |k| a[i * 1024 + k], |k| b[k * 1024 + j]);
        assert_eq!(c[i * 1024 + j].to_bits(), expected.to_bits(), "{i}, {j}");
    }
}

#[test]
fn mlp() {
    let program = decode_example("mlp.adead");
    assert_eq!(program.format(), Format::Adead);
    let x = Random(2).tensor(&[2, 4]);
    let outcome = run(&program, &[("x", &x)]);
    let constant = |values: &[f32], dims: &[usize]| Tensor::new(values, dims).unwrap();
    let w1 = [0.5, -0.25, 1.0, -1.0, 0.75, 0.125, 0.25, 0.5, -0.5, 1.5, -0.125, 0.0];
    let (w1, b1) = (constant(&w1, &[4, 3]), constant(&[0.1, -0.2, 0.3], &[3]));
    let (w2, b2) = (constant(&[1.0, -1.0, 0.5, 0.25, -0.75, 2.0], &[3, 2]), constant(&[0.05, -0.05], &[2]));
    let ctx = context();
    let relu = contract::Activation::Relu;
    let h = ctx.matmul_with(&x, &w1, MatmulOptions { bias: Some(&b1), activation: relu, ..Default::default() });
    let z = ctx.matmul_with(&h.unwrap(), &w2, MatmulOptions { bias: Some(&b2), ..Default::default() }).unwrap();
    let attrs = Attrs { axis: Axis::At(-1), ..Attrs::default() };
    let p = reference(Op::Softmax, &attrs, &[Some(z.view())], z.view().meta()).unwrap();
    assert_eq!(outcome.output("p").unwrap().bytes(), p);
    let best = ctx.argmax(&z, Axis::At(-1), false).unwrap();
    assert_eq!(outcome.output("best").unwrap().bytes(), best.bytes());
}

#[test]
fn softmax_and_the_hybrid_file_around_it() {
    let program = decode_example("hybrid.ahyb");
    assert_eq!(program.format(), Format::Ahyb);
    assert_eq!(program.report()[0], "CPU section of 16 bytes skipped: machine code is never executed");
    assert!(program.report()[1].starts_with("data section of 4 bytes skipped"));
    let symbols: Vec<_> = program.symbols().iter().map(|symbol| (symbol.name.as_str(), symbol.value)).collect();
    assert_eq!(symbols, [("main", 0), ("weights", 0x1000)]);
    assert_eq!(program.disassemble(), decode_example("softmax.asm").disassemble());

    let (x, ctx) = (Random(3).tensor(&[3, 5]), context());
    let outcome = run(&program, &[("0x1000", &x)]);
    let expected = ctx.softmax(&ctx.scale(&x, 0.5).unwrap(), -1).unwrap();
    let y = outcome.output("0x2000").unwrap();
    assert_eq!((y.bytes(), y.dims()), (expected.bytes(), &[3, 5][..]));
}

#[test]
fn attention() {
    let program = decode_example("attention.hex");
    let (mut random, ctx) = (Random(4), context());
    let ids = program.slots().iter().find(|slot| slot.name == "0x1000").unwrap();
    assert_eq!((ids.meta.dtype, ids.meta.shape.dims()), (DType::U32, &[4][..]));
    let ids = Tensor::new(&[7u32, 0, 9, 7], &[4]).unwrap();
    let (table, w1, w2) = (random.tensor(&[10, 8]), random.tensor(&[8, 16]), random.tensor(&[16, 8]));
    let inputs = [("0x1000", &ids), ("0x2000", &table), ("0x3000", &w1), ("0x4000", &w2)];
    let outcome = run(&program, &inputs);

    let x = ctx.embedding(&table, &ids).unwrap();
    let heads = ctx.permute(&x.reshape(&[4, 2, 4]).unwrap(), &[1, 0, 2]).unwrap();
    let joined = ctx.permute(&ctx.attention(&heads, &heads, &heads).unwrap(), &[1, 0, 2]).unwrap();
    let sum = ctx.add(&x, &joined.reshape(&[4, 8]).unwrap()).unwrap();
    let y = ctx.layernorm(&sum, None, None, 1e-5).unwrap();
    let hidden = ctx.relu(&ctx.matmul(&y, &w1).unwrap()).unwrap();
    let sum = ctx.add(&y, &ctx.matmul(&hidden, &w2).unwrap()).unwrap();
    let expected = ctx.gelu(&sum, GeluForm::Tanh).unwrap();
    assert_eq!(outcome.output("0x5000").unwrap().bytes(), expected.bytes());
    assert_eq!(outcome.outputs.len(), 1);

    let parallel = program.run(&ctx, &{
        let options = adead_core::program::RunOptions::new().parallel(true);
        inputs.iter().fold(options, |options, (name, tensor)| options.input(*name, (*tensor).clone()))
    });
    assert_eq!(parallel.unwrap().output("0x5000").unwrap().bytes(), expected.bytes());
}

#[test]
fn every_example_survives_every_format() {
    for name in
        ["matmul_1024.hex", "mlp.asm", "mlp.adead", "softmax.asm", "hybrid.ahyb", "attention.asm", "attention.hex"]
    {
        let program = decode_example(name);
        program.validate(LIMIT).unwrap();
        let text = program.disassemble();
        let bytes = program.encode();
        let mut again = vec![Program::assemble(&text).unwrap(), Program::decode(&bytes).unwrap()];
        if program.is_agpu() {
            again.push(Program::decode(&program.encode_agpu().unwrap()).unwrap());
            again.push(Program::decode(program.encode_hex().unwrap().as_bytes()).unwrap());
        }
        for again in again {
            assert_eq!(again.disassemble(), text, "{name} through {:?}", again.format());
            assert_eq!(again.encode(), bytes, "{name} through {:?}", again.format());
            assert_eq!(again.slots(), program.slots(), "{name} through {:?}", again.format());
        }
    }
}
