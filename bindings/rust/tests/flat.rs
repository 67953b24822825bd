//! Objects that are made and dropped 100,000 times (contexts: 10,000) leak no memory: tensors, results, errors,
//! contexts, and objects of streams.

#![cfg(target_os = "linux")]

use adead::gpu::Operand;
use adead::layout::Layout;
use adead::memory::ArenaAllocator;
use adead::program::{OpcodeEngine, Program, RunOptions};
use adead::{Attrs, Context, ContextOptions, DType, DataLoader, Meta, Op, Shape, Tensor};

const PAGE: usize = 4096;

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * PAGE
}

/// Runs a tenth of the cycles to warm up, then the cycles. These must add less than 600 KB.
fn flat_for(cycles: usize, what: &str, mut cycle: impl FnMut()) {
    (0..cycles / 10).for_each(|_| cycle());
    let before = resident();
    (0..cycles).for_each(|_| cycle());
    let grown = resident().saturating_sub(before);
    println!("{what}: {cycles} cycles: {grown} bytes more");
    assert!(grown < 600_000, "{what} keeps memory: {grown} bytes more after {cycles} cycles");
}

fn flat(what: &str, cycle: impl FnMut()) {
    flat_for(100_000, what, cycle);
}

#[test]
fn memory_stays_flat() {
    let ctx = Context::with_options("cpu", &ContextOptions { threads: Some(1), ..Default::default() }).unwrap();
    let values: Vec<f32> = (0..16).map(|i| i as f32 - 7.5).collect();
    let (x, wide) = (Tensor::new(&values, &[4, 4]).unwrap(), Tensor::zeros(DType::F32, &[7]).unwrap());
    flat("tensors", || drop(Tensor::new(&values, &[16]).unwrap().clone()));
    flat("operations", || drop(ctx.softmax(&ctx.matmul(&x, &x).unwrap(), -1).unwrap()));
    flat("errors", || drop(ctx.add(&x, &wide).unwrap_err()));
    flat("packed matrices", || drop(ctx.matmul_packed(&x, &ctx.pack(&x, false).unwrap(), Default::default()).unwrap()));
    let one = ContextOptions { threads: Some(1), ..Default::default() };
    flat_for(10_000, "contexts", || drop(Context::with_options("cpu", &one).unwrap()));
    let (a, b) = (ctx.buffer(&values).unwrap(), ctx.buffer_zeroed(64).unwrap());
    let meta = Meta::new(DType::F32, Shape::new(&[16]).unwrap());
    flat("streams, events, downloads", || {
        let mut stream = ctx.stream().unwrap();
        let [from, to] = [&a, &b].map(|buffer| Operand { buffer, offset: 0, meta: &meta });
        stream.run(Op::Relu, &Attrs::default(), &[Some(from)], to).unwrap();
        stream.event().unwrap().wait().unwrap();
        assert_eq!(stream.download(&b, 0, 64).unwrap().to_bytes().unwrap().len(), 64);
    });
    let text = ".adead 1\ninput a f32[4,4]\noutput c f32[4,4]\nc = relu a\nhalt\n";
    let file = Program::assemble(text).unwrap().encode();
    flat("programs and runs", || {
        let program = Program::decode(&file).unwrap();
        drop(OpcodeEngine::new(&ctx).run(&program, &RunOptions::new().input("a", x.clone())).unwrap());
    });
    flat_for(3_000, "batches under way, left early", || {
        let batches = std::iter::repeat_n(values.clone(), 5);
        let loader = DataLoader::new(batches.map(Ok::<_, adead::Error>), 2).unwrap();
        let mut results = adead::overlap(&ctx, loader, 2, |stage| Ok(stage.input())).unwrap();
        assert_eq!(results.next().unwrap().unwrap().as_slice::<f32>().unwrap(), values);
    });
    flat("arenas", || assert_eq!(ArenaAllocator::new().alloc(100, 8).unwrap().len(), 100));
    flat("layouts", || drop(Layout::morton(4, 2).unwrap().apply(&values[..8]).unwrap()));
}
